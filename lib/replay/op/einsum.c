/* einsum of two operands, as a product: letters that both have and the output has are batches,
 * those that only one has are rows and columns, those that the output lacks are summed over. Of one,
 * or of more than two, as it is written. */
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

/* --- of one, or of more than two --- */

enum { MOST = 8 };
struct terms {
	uint32_t n, nletter; /* letters: those of the output first */
	struct term t[MOST], o;
	const struct acc_dense *x[MOST];
	char letter[LETTERS];
	int64_t size[LETTERS], step[MOST][LETTERS];
};

/* The letters that occur once, in order of the alphabet, as above. */
static void
implied(struct terms *s)
{
	s->o.n = 0;
	for (int c = 'A'; c <= 'z'; c++) {
		uint32_t times = 0;
		for (uint32_t i = 0; i < s->n; i++)
			times += axis_of(&s->t[i], (char)c) >= 0;
		if (times == 1 && s->o.n < DIMS)
			s->o.letter[s->o.n++] = (char)c;
	}
}

/* A letter's size and steps; false: it is of two sizes. */
static bool
add_letter(struct terms *s, char c)
{
	const uint32_t k = s->nletter;
	if (k > 0 && memchr(s->letter, c, k) != NULL)
		return true;
	s->letter[k] = c;
	s->size[k] = -1;
	for (uint32_t i = 0; i < s->n; i++) {
		int64_t size = -1;
		strides(s->x[i], &s->t[i], c, &size, &s->step[i][k]);
		if (size >= 0 && s->size[k] >= 0 && size != s->size[k])
			return false;
		s->size[k] = size >= 0 ? size : s->size[k];
	}
	s->nletter++;
	return s->size[k] >= 0;
}

static bool
read_terms(struct acc_str text, struct terms *s)
{
	const char *p = text.p, *end = text.p + text.n;
	for (uint32_t i = 0; i < s->n; i++)
		if (!read_term(&p, end, &s->t[i]) || s->t[i].n != s->x[i]->ndim ||
			(i + 1 < s->n && (p >= end || *p++ != ',')))
			return false;
	if (p == end)
		implied(s);
	else if (end - p < 2 || p[1] != '>' || (p += 2, !read_term(&p, end, &s->o)) || p != end)
		return false;
	for (uint32_t i = 0; i < s->o.n; i++)
		if (!add_letter(s, s->o.letter[i]))
			return false;
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t k = 0; k < s->t[i].n; k++)
			if (!add_letter(s, s->t[i].letter[k]))
				return false;
	return true;
}

/* On to the next index; false: that was the last. */
static bool
next(const struct terms *s, int64_t *at, size_t *place)
{
	for (uint32_t k = s->nletter; k-- > 0;) {
		const bool more = ++at[k] < s->size[k];
		for (uint32_t i = 0; i < s->n; i++)
			place[i] += (size_t)(more ? s->step[i][k] : -s->step[i][k] * (at[k] - 1));
		if (more)
			return true;
		at[k] = 0;
	}
	return false;
}

static void
sum_terms(const struct terms *s, size_t summed, double step, const double *rec,
	struct acc_dense *out)
{
	int64_t at[LETTERS] = {0};
	size_t place[MOST] = {0};
	double most = (double)summed;
	for (uint32_t i = 0; i < s->n; i++)
		most *= acc_largest(s->x[i]);
	/* What lies between may have overflowed. */
	const bool may = s->n > 2 && most > acc_max_of(out->dtype) / 4 && rec != NULL;
	for (size_t o = 0; o < out->n; o++) {
		double sum = 0, abs = 0, sq = 0;
		for (size_t k = 0; k < summed; k++) {
			double term = 1;
			for (uint32_t i = 0; i < s->n; i++)
				term *= s->x[i]->v[place[i]];
			sum += term;
			abs += fabs(term);
			sq += term * term;
			next(s, at, place);
		}
		out->v[o] = sum;
		/* What lies between is rounded to the result's dtype. */
		if (out->mag != NULL)
			out->mag[o] = may && !isfinite(rec[o])
					      ? INFINITY
					      : abs + (s->n > 2 ? 2 * (s->n - 2) * step * sqrt(sq)
								: 0);
	}
}

static int
einsum_as_written(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_value *v = acc_arg(r, "operands");
	struct acc_str text = {"", 0};
	struct terms s = {0};
	double work = 1, summed = 1;
	if (r->nin == 0 || acc_arg_text(r, "equation", &text) <= 0)
		return acc_cannot(r, "its equation was not recorded");
	const bool list = v != NULL && v->type == ACC_A_LIST;
	s.n = list ? v->n : r->nin - 1;
	if (s.n == 0 || s.n > MOST)
		return acc_cannot(r, "einsum of too many tensors");
	for (uint32_t i = 0; i < s.n; i++) {
		const struct acc_value *one = list ? &v->item[i] : &r->in[1 + i];
		if (one->type != ACC_A_TENSOR || one->t->v == NULL)
			return acc_cannot(r, "its tensors were not recorded");
		s.x[i] = one->t;
	}
	if (!read_terms(text, &s))
		return acc_cannot(r, "an equation that is not understood");
	if (acc_out_shape(r, out, s.size, s.o.n) < 0)
		return ACC_EUNSUP;
	for (uint32_t k = 0; k < s.nletter; k++) {
		work *= (double)s.size[k];
		summed *= k < s.o.n ? 1 : (double)s.size[k];
	}
	if (work > 0x1p26)
		return acc_cannot(r, "too large to be recomputed");
	sum_terms(&s, (size_t)summed, acc_roundings(r, out->dtype), r->rec[0].v, out);
	return 0;
}

static const struct acc_op as_written = {.names = "einsum",
	.sig = "equation *operands:any",
	.cls = "product",
	.rounding = ACC_FEW,
	.eval = einsum_as_written};

const struct acc_op acc_ops_einsum[] = {
	{.names = "einsum",
		.of_others = &as_written,
		.sig = "equation *operands:prod",
		.cls = "product",
		.rounding = ACC_FEW,
		.product = einsum,
		.streams = true},
	{.names = NULL},
};
