/* x[...]: numbers, slices, new dimensions, tensors of indices and masks. */
#include "replay/op/index.h"

#include "replay/compose.h"
#include "replay/impl.h"
#include "replay/view.h"

static const char BEYOND[] = "an index outside of its input";

/* One axis of the result that tensors of indices share, or none. */
struct subscript {
	struct acc_view v; /* with the axes of index tensors left in, in order */
	const struct acc_dense *by[ACC_DENSE_DIMS]; /* of each axis of v: its indices, or NULL */
};

static int
slice(struct acc_replay *r, const struct acc_value *s, struct acc_view *v, uint32_t d)
{
	int64_t k[3] = {0, 0, 1}, n = v->shape[d];
	for (int i = 0; i < 3; i++)
		if (s->item[i].type == ACC_A_INT)
			k[i] = s->item[i].i;
		else if (s->item[i].type != ACC_A_NONE)
			return acc_cannot(r, "a slice that is not understood");
	if (k[2] <= 0)
		return acc_cannot(r, "a slice that is not understood");
	int64_t from = s->item[0].type == ACC_A_NONE ? 0 : k[0] < 0 ? k[0] + n : k[0];
	int64_t to = s->item[1].type == ACC_A_NONE ? n : k[1] < 0 ? k[1] + n : k[1];
	from = from < 0 ? 0 : from > n ? n : from;
	to = to < from ? from : to > n ? n : to;
	v->first += from * v->stride[d];
	v->shape[d] = (to - from) / k[2] + ((to - from) % k[2] != 0);
	v->stride[d] *= v->shape[d] > 1 ? k[2] : 1;
	return 0;
}

static void
drop_axis(struct acc_view *v, uint32_t d)
{
	v->ndim--;
	for (uint32_t i = d; i < v->ndim; i++) {
		v->shape[i] = v->shape[i + 1];
		v->stride[i] = v->stride[i + 1];
	}
}

static int
new_axis(struct acc_replay *r, struct acc_view *v, uint32_t d)
{
	if (v->ndim == ACC_DENSE_DIMS)
		return acc_cannot(r, "too many dimensions");
	for (uint32_t i = v->ndim++; i > d; i--) {
		v->shape[i] = v->shape[i - 1];
		v->stride[i] = v->stride[i - 1];
	}
	v->shape[d] = 1;
	v->stride[d] = 0;
	return 0;
}

/* The indices of a mask's true elements, one tensor per dimension. */
static int
nonzero(struct acc_replay *r, const struct acc_dense *mask, struct acc_dense **out)
{
	size_t n = 0, k = 0;
	for (size_t i = 0; i < mask->n; i++)
		n += mask->v[i] != 0;
	struct acc_dense *d = acc_alloc(r->mem, (mask->ndim + 1) * sizeof *d);
	if (d == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (uint32_t a = 0; a < mask->ndim; a++) {
		d[a] = (struct acc_dense){.dtype = ACC_I64,
			.ndim = 1,
			.shape = {(int64_t)n},
			.n = n,
			.v = acc_doubles(r, n)};
		if (d[a].v == NULL)
			return ACC_EUNSUP;
	}
	for (size_t i = 0; i < mask->n; i++) {
		size_t rest = i;
		if (mask->v[i] == 0)
			continue;
		for (uint32_t a = mask->ndim; a-- > 0;) {
			d[a].v[k] = (double)(rest % (size_t)mask->shape[a]);
			rest /= (size_t)mask->shape[a];
		}
		k++;
	}
	*out = d;
	return 0;
}

static uint32_t
axes_of(const struct acc_value *v)
{
	if (v->type == ACC_A_NONE || v->type == ACC_A_ELLIPSIS)
		return 0;
	return v->type == ACC_A_TENSOR && v->t->dtype == ACC_BOOL ? v->t->ndim : 1;
}

/* A list of ints is a tensor of indices. */
static int
as_tensor(struct acc_replay *r, const struct acc_value *v, const struct acc_dense **out)
{
	struct acc_dense *d = acc_alloc(r->mem, sizeof *d);
	double *p = acc_doubles(r, v->n);
	if (d == NULL || p == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (uint32_t i = 0; i < v->n; i++) {
		if (v->item[i].type != ACC_A_INT)
			return acc_cannot(r, "an index that is not understood");
		p[i] = (double)v->item[i].i;
	}
	*d = (struct acc_dense){.dtype = ACC_I64, .ndim = 1, .shape = {v->n}, .n = v->n, .v = p};
	*out = d;
	return 0;
}

static int
by_tensor(struct acc_replay *r, const struct acc_dense *t, struct subscript *s, uint32_t *d)
{
	struct acc_dense *one = NULL;
	if (t->v == NULL || acc_is_float(t->dtype))
		return acc_cannot(r, "an index that is not understood");
	if (t->dtype != ACC_BOOL) {
		s->by[(*d)++] = t;
		return 0;
	}
	if (t->ndim == 0 || r->notes != NULL || nonzero(r, t, &one) < 0)
		return acc_cannot(r, "an index that is not understood");
	for (uint32_t a = 0; a < t->ndim; a++)
		s->by[(*d)++] = &one[a];
	return 0;
}

static int
subscript(struct acc_replay *r, const struct acc_dense *x, const struct acc_value *idx, uint32_t n,
	struct subscript *s)
{
	uint32_t d = 0, axes = 0;
	*s = (struct subscript){0};
	acc_view_of(x, &s->v);
	for (uint32_t i = 0; i < n; i++)
		axes += axes_of(&idx[i]);
	if (axes > x->ndim)
		return acc_cannot(r, "more indices than dimensions");
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_value *v = &idx[i];
		const struct acc_dense *t = NULL;
		int rc = 0;
		if (v->type == ACC_A_ELLIPSIS) {
			d += x->ndim - axes;
		} else if (v->type == ACC_A_NONE) {
			rc = new_axis(r, &s->v, d++);
		} else if (v->type == ACC_A_SLICE) {
			rc = slice(r, v, &s->v, d++);
		} else if (v->type == ACC_A_INT) {
			int64_t k = v->i < 0 ? v->i + s->v.shape[d] : v->i;
			if (k < 0 || k >= s->v.shape[d])
				return acc_cannot(r, BEYOND);
			s->v.first += k * s->v.stride[d];
			drop_axis(&s->v, d);
		} else if (v->type == ACC_A_TENSOR) {
			rc = by_tensor(r, v->t, s, &d);
		} else if (v->type == ACC_A_LIST && v->n > 0) {
			rc = as_tensor(r, v, &t);
			s->by[d++] = t;
		} else {
			rc = acc_cannot(r, "an index that is not understood");
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The axes that tensors index become those of the broadcast indices: in their place if they
 * stand together, else in front. */
struct lookup {
	const struct acc_dense *by[ACC_BROADCAST_MAX];
	uint32_t axis[ACC_BROADCAST_MAX], nby;
	int64_t bshape[ACC_DENSE_DIMS]; /* of the indices, broadcast */
	uint32_t bdim;
	uint32_t front;                /* how many of the other axes stand before them */
	struct acc_view rest;          /* the other axes */
	int64_t shape[ACC_DENSE_DIMS]; /* of the result */
	uint32_t ndim;
};

static int
look_up(struct acc_replay *r, const struct subscript *s, struct lookup *p)
{
	*p = (struct lookup){.rest = s->v};
	for (uint32_t d = 0; d < s->v.ndim; d++) {
		if (s->by[d] == NULL)
			continue;
		if (p->nby == ACC_BROADCAST_MAX)
			return acc_cannot(r, "too many tensors of indices");
		p->axis[p->nby] = d;
		p->by[p->nby++] = s->by[d];
		p->bdim = s->by[d]->ndim > p->bdim ? s->by[d]->ndim : p->bdim;
	}
	for (uint32_t d = 0; d < p->bdim; d++) {
		p->bshape[d] = 1;
		for (uint32_t k = 0; k < p->nby; k++) {
			uint32_t off = p->bdim - p->by[k]->ndim;
			if (d >= off && p->by[k]->shape[d - off] != 1)
				p->bshape[d] = p->by[k]->shape[d - off];
		}
	}
	bool together = p->nby > 0 && p->axis[p->nby - 1] - p->axis[0] == p->nby - 1;
	p->front = together ? p->axis[0] : 0;
	for (uint32_t k = p->nby; k-- > 0;)
		drop_axis(&p->rest, p->axis[k]);
	if (p->rest.ndim + p->bdim > ACC_DENSE_DIMS)
		return acc_cannot(r, "too many dimensions");
	for (uint32_t d = 0; d < p->front; d++)
		p->shape[p->ndim++] = p->rest.shape[d];
	for (uint32_t d = 0; d < p->bdim; d++)
		p->shape[p->ndim++] = p->bshape[d];
	for (uint32_t d = p->front; d < p->rest.ndim; d++)
		p->shape[p->ndim++] = p->rest.shape[d];
	return 0;
}

/* Where the current indices point to, from the front of the axes they index. */
static int
indexed(struct acc_replay *r, const struct subscript *s, const struct lookup *p,
	const struct acc_broadcast *b, int64_t *at)
{
	for (uint32_t k = 0; k < p->nby; k++) {
		double j = p->by[k]->v[b->at[k]];
		int64_t len = s->v.shape[p->axis[k]];
		j += j < 0 ? (double)len : 0;
		if (!(j >= 0 && j < (double)len))
			return acc_cannot(r, BEYOND);
		*at += (int64_t)j * s->v.stride[p->axis[k]];
	}
	return 0;
}

static int
advanced(struct acc_replay *r, const struct acc_dense *x, const struct subscript *s,
	struct acc_dense *out)
{
	struct lookup p;
	if (look_up(r, s, &p) < 0 || acc_out_shape(r, out, p.shape, p.ndim) < 0)
		return ACC_EUNSUP;
	struct acc_view lead = p.rest, tail = p.rest;
	lead.ndim = p.front;
	tail.first = 0;
	tail.ndim = p.rest.ndim - p.front;
	memmove(tail.shape, p.rest.shape + p.front, tail.ndim * sizeof *tail.shape);
	memmove(tail.stride, p.rest.stride + p.front, tail.ndim * sizeof *tail.stride);
	const size_t *a = acc_view_offsets(r, &lead), *c = acc_view_offsets(r, &tail);
	size_t na = acc_view_count(&lead), nc = acc_view_count(&tail), o = 0;
	for (size_t i = 0; a != NULL && c != NULL && i < na; i++) {
		struct acc_broadcast b;
		if (!acc_broadcast_start(&b, p.bshape, p.bdim, p.by, p.nby))
			return acc_cannot(r, "its indices do not fit each other");
		for (size_t n = nc == 0 || na == 0 ? 0 : out->n / na / nc; n-- > 0;
			acc_broadcast_next(&b)) {
			int64_t at = (int64_t)a[i];
			if (indexed(r, s, &p, &b, &at) < 0)
				return ACC_EUNSUP;
			for (size_t k = 0; k < nc; k++)
				out->v[o++] = x->v[(size_t)at + c[k]];
		}
	}
	return a == NULL || c == NULL ? ACC_EUNSUP : 0;
}

static bool
by_tensors(const struct subscript *s)
{
	for (uint32_t d = 0; d < s->v.ndim; d++)
		if (s->by[d] != NULL)
			return true;
	return false;
}

static int
apply(struct acc_replay *r, const struct acc_dense *x, const struct acc_value *idx, uint32_t n,
	struct acc_dense *out)
{
	struct subscript s;
	int rc = subscript(r, x, idx, n, &s);
	if (rc < 0)
		return rc;
	if (by_tensors(&s) && r->notes != NULL)
		return acc_cannot(r, "its indices are not known yet");
	return by_tensors(&s) ? advanced(r, x, &s, out) : acc_view_copy(r, &s.v, x->v, out);
}

/* ATen's index(x, [indices]): None stands for a whole dimension. */
static int
whole_dimensions(struct acc_replay *r, const struct acc_value *idx, struct acc_value *out)
{
	static struct acc_value all[3] = {{.type = ACC_A_NONE}, {.type = ACC_A_NONE},
		{.type = ACC_A_NONE}};
	*out = *idx;
	if (idx->type != ACC_A_LIST)
		return 0;
	out->item = acc_alloc(r->mem, (idx->n + 1) * sizeof *out->item);
	if (out->item == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (uint32_t i = 0; i < idx->n; i++) {
		out->item[i] = idx->item[i];
		if (idx->item[i].type == ACC_A_NONE)
			out->item[i] = (struct acc_value){.type = ACC_A_SLICE, .item = all, .n = 3};
	}
	return 0;
}

/* The index of an operator that is a list of tensors, or None for those that are left whole. */
static int
by_list(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	const struct acc_value *idx = acc_arg(r, "index");
	struct acc_value all;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (idx == NULL || idx->type != ACC_A_LIST)
		return acc_cannot(r, "its index was not recorded");
	return whole_dimensions(r, idx, &all) < 0 ? ACC_EUNSUP : apply(r, x, all.item, all.n, out);
}

int
acc_index_places(struct acc_replay *r, const struct acc_dense *x, const struct acc_value *idx,
	struct acc_dense *out)
{
	struct subscript s;
	struct lookup p;
	struct acc_dense number = *x;
	bool list = idx->type == ACC_A_LIST, ints = list && idx->n > 1;
	for (uint32_t i = 0; ints && i < idx->n; i++)
		ints = idx->item[i].type == ACC_A_INT;
	if (ints && x->ndim > 1)
		return acc_cannot(r, "an index that may be a tuple or a list");
	struct acc_value all = *idx;
	if (acc_str_starts(r->name, "index_put") && whole_dimensions(r, idx, &all) < 0)
		return ACC_EUNSUP;
	idx = &all;
	number.v = acc_doubles(r, x->n);
	if (number.v == NULL ||
		subscript(r, x, list ? idx->item : idx, list ? idx->n : 1, &s) < 0 ||
		look_up(r, &s, &p) < 0 || acc_between(r, ACC_I64, p.shape, p.ndim, false, out) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < x->n; i++)
		number.v[i] = (double)i;
	return by_tensors(&s) ? advanced(r, &number, &s, out)
			      : acc_view_copy(r, &s.v, number.v, out);
}

static int
getitem(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x;
	if (acc_need_tensor(r, "input", &x) < 0)
		return ACC_EUNSUP;
	if (r->nin < 2)
		return acc_cannot(r, "its index was not recorded");
	const struct acc_value *idx = &r->in[1];
	if (idx->type != ACC_A_LIST)
		return apply(r, x, idx, 1, out);
	/* Recorders write a tuple and a list alike: the shape tells. */
	int rc = apply(r, x, idx->item, idx->n, out);
	if (rc == 0)
		return 0;
	r->why = NULL;
	return apply(r, x, idx, 1, out);
}

#define MOVE(n, s, f) \
	{ \
		.names = n, .sig = s, .cls = "move", .rounding = ACC_EXACT, .eval = f, \
		.views = f == getitem \
	}
const struct acc_op acc_ops_index[] = {
	MOVE("index", "input|self:move index|indices", by_list),
	MOVE("getitem", "input|self:move index", getitem),
	{.names = NULL},
};
