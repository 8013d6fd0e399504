/* einsum of two operands, as a product: letters that both have and the output has are batches,
 * those that only one has are rows and columns, those that the output lacks are summed over. */
#include "replay/impl.h"
#include "replay/view.h"

enum { LETTERS = 52, DIMS = ACC_DENSE_DIMS };

struct term {
	char letter[DIMS];
	uint32_t n;
};

/* Letters up to ',' , "->" or the end, blanks skipped; an ellipsis is not understood. */
static bool
read_term(const char **p, const char *end, struct term *t)
{
	t->n = 0;
	while (*p < end && **p != ',' && **p != '-') {
		char c = *(*p)++;
		if (c == ' ')
			continue;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) || t->n == DIMS ||
			(t->n > 0 && memchr(t->letter, c, t->n) != NULL))
			return false;
		t->letter[t->n++] = c;
	}
	return true;
}

static int
axis_of(const struct term *t, char c)
{
	const char *at = t->n == 0 ? NULL : memchr(t->letter, c, t->n);
	return at == NULL ? -1 : (int)(at - t->letter);
}

/* Without "->": the letters that occur once, in order of the alphabet. */
static void
implicit(const struct term *x, const struct term *y, struct term *out)
{
	out->n = 0;
	for (int c = 'A'; c <= 'z'; c++)
		if ((axis_of(x, (char)c) >= 0) != (axis_of(y, (char)c) >= 0) && out->n < DIMS)
			out->letter[out->n++] = (char)c;
}

struct plan {
	struct term x, y, o;
	const struct acc_dense *xt, *yt;
	const struct acc_dense *ot;
};

/* Offsets of the letters for which `which` holds, in the order of the output's letters (or of x's
 * for those that are summed over), in one of the three tensors. */
enum role { BATCH, ROW, COLUMN, SUMMED };

static enum role
role_of(const struct plan *p, char c)
{
	bool x = axis_of(&p->x, c) >= 0, y = axis_of(&p->y, c) >= 0, o = axis_of(&p->o, c) >= 0;
	return !o ? SUMMED : x && y ? BATCH : x ? ROW : COLUMN;
}

static void
strides(const struct acc_dense *d, const struct term *t, char c, int64_t *size, int64_t *stride)
{
	struct acc_view v;
	int at = axis_of(t, c);
	*stride = 0;
	if (at < 0)
		return;
	acc_view_of(d, &v);
	*size = v.shape[at];
	*stride = v.stride[at];
}

/* The letters of a role as a view of tensor d. */
static void
view(const struct plan *p, enum role role, const struct acc_dense *d, const struct term *t,
	struct acc_view *v)
{
	*v = (struct acc_view){0};
	for (int pass = 0; pass < 3; pass++) {
		const struct term *from = pass == 0 ? &p->o : pass == 1 ? &p->x : &p->y;
		for (uint32_t i = 0; i < from->n; i++) {
			char c = from->letter[i];
			int64_t size = 1, stride, none;
			bool seen = (pass > 0 && axis_of(&p->o, c) >= 0) ||
				    (pass > 1 && axis_of(&p->x, c) >= 0);
			if (seen || role_of(p, c) != role || v->ndim == DIMS)
				continue;
			strides(p->xt, &p->x, c, &size, &none);
			strides(p->yt, &p->y, c, &size, &none);
			strides(d, t, c, &size, &stride);
			v->shape[v->ndim] = size;
			v->stride[v->ndim++] = stride;
		}
	}
}

static const size_t *
offsets(struct acc_replay *r, const struct plan *p, enum role role, int which, size_t *n)
{
	struct acc_view v;
	const struct acc_dense *d = which == 0 ? p->xt : which == 1 ? p->yt : p->ot;
	view(p, role, d, which == 0 ? &p->x : which == 1 ? &p->y : &p->o, &v);
	*n = acc_view_count(&v);
	return acc_view_offsets(r, &v);
}

static bool
sizes_agree(const struct plan *p)
{
	for (uint32_t i = 0; i < p->x.n; i++) {
		int y = axis_of(&p->y, p->x.letter[i]);
		if (y >= 0 && p->yt->shape[y] != p->xt->shape[i])
			return false;
	}
	return true;
}

/* einsum(text, x, y), or einsum(text, [x, y]) */
static int
operands(struct acc_replay *r, struct plan *p)
{
	const struct acc_value *v = acc_arg(r, "operands");
	uint32_t at = 1, n = r->nin - 1;
	if (v != NULL && v->type == ACC_A_LIST) {
		n = v->n;
		v = v->item;
	} else {
		v = r->in + at;
	}
	if (r->nin < 2 || n != 2 || v[0].type != ACC_A_TENSOR || v[1].type != ACC_A_TENSOR)
		return acc_cannot(r, "einsum of other than two tensors");
	p->xt = v[0].t;
	p->yt = v[1].t;
	return 0;
}

static int
einsum(struct acc_replay *r, const struct acc_dense *out, struct acc_product *q)
{
	struct acc_str text = {"", 0};
	struct plan p = {.ot = out};
	int64_t shape[DIMS], none;
	if (r->nin == 0 || acc_arg_text(r, "equation", &text) <= 0 || operands(r, &p) < 0)
		return acc_cannot(r, "its equation was not recorded");
	const char *s = text.p, *end = s + text.n;
	bool good = read_term(&s, end, &p.x) && s < end && *s++ == ',' && read_term(&s, end, &p.y);
	if (good && s == end)
		implicit(&p.x, &p.y, &p.o);
	else if (good)
		good = end - s >= 2 && s[1] == '>' && (s += 2, read_term(&s, end, &p.o)) &&
		       s == end;
	if (!good || p.x.n != p.xt->ndim || p.y.n != p.yt->ndim || !sizes_agree(&p))
		return acc_cannot(r, "an equation that is not understood");
	for (uint32_t i = 0; i < p.o.n; i++) {
		shape[i] = -1;
		strides(p.xt, &p.x, p.o.letter[i], &shape[i], &none);
		strides(p.yt, &p.y, p.o.letter[i], &shape[i], &none);
	}
	if (acc_out_shape(r, out, shape, p.o.n) < 0)
		return ACC_EUNSUP;
	q->x = p.xt->v;
	q->nx = p.xt->n;
	q->y = p.yt->v;
	q->ny = p.yt->n;
	q->xb = offsets(r, &p, BATCH, 0, &q->nb);
	q->yb = offsets(r, &p, BATCH, 1, &q->nb);
	q->ob = offsets(r, &p, BATCH, 2, &q->nb);
	q->xm = offsets(r, &p, ROW, 0, &q->m);
	q->om = offsets(r, &p, ROW, 2, &q->m);
	q->yn = offsets(r, &p, COLUMN, 1, &q->n);
	q->on = offsets(r, &p, COLUMN, 2, &q->n);
	q->xk = offsets(r, &p, SUMMED, 0, &q->nk);
	q->yk = offsets(r, &p, SUMMED, 1, &q->nk);
	return q->xb && q->yb && q->ob && q->xm && q->om && q->yn && q->on && q->xk && q->yk
		       ? 0
		       : ACC_EUNSUP;
}

const struct acc_op acc_ops_einsum[] = {
	{.names = "einsum",
		.sig = "equation *operands:prod",
		.cls = "product",
		.rounding = ACC_FEW,
		.product = einsum,
		.streams = true},
	{.names = NULL},
};
