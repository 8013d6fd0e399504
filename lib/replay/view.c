#include "replay/view.h"

#include "replay/impl.h"

void
acc_view_of(const struct acc_dense *d, struct acc_view *v)
{
	uint64_t step = 1; /* of no elements it may be beyond 64 bits */
	*v = (struct acc_view){.ndim = d->ndim};
	for (uint32_t k = d->ndim; k-- > 0;) {
		v->shape[k] = d->shape[k];
		v->stride[k] = (int64_t)step;
		step *= (uint64_t)d->shape[k];
	}
}

size_t
acc_view_count(const struct acc_view *v)
{
	size_t n = 1;
	for (uint32_t k = 0; k < v->ndim; k++)
		n *= (size_t)v->shape[k];
	return n;
}

struct walk {
	int64_t idx[ACC_DENSE_DIMS], at;
};

static void
next(const struct acc_view *v, struct walk *w)
{
	for (uint32_t d = v->ndim; d-- > 0;) {
		w->at += v->stride[d];
		if (++w->idx[d] < v->shape[d])
			return;
		w->at -= v->stride[d] * v->shape[d];
		w->idx[d] = 0;
	}
}

int
acc_view_note(struct acc_replay *r, const double *all, const struct acc_view *v, const double *part,
	bool of_input)
{
	if (r->notes->n == ACC_NOTES)
		return acc_cannot(r, "too many parts");
	r->notes->list[r->notes->n++] = (struct acc_note){all, part, *v, of_input};
	return 0;
}

int
acc_view_same(struct acc_replay *r, const struct acc_dense *x, const struct acc_dense *out)
{
	struct acc_view v = {.ndim = 1, .shape = {(int64_t)x->n}, .stride = {1}};
	if (r->notes != NULL)
		return acc_view_note(r, x->v, &v, out->v, true);
	memcpy(out->v, x->v, x->n * sizeof *x->v);
	return 0;
}

int
acc_view_copy(struct acc_replay *r, const struct acc_view *v, const double *from,
	const struct acc_dense *out)
{
	struct walk w = {.at = v->first};
	if (acc_out_shape(r, out, v->shape, v->ndim) < 0)
		return ACC_EUNSUP;
	if (r->notes != NULL)
		return acc_view_note(r, from, v, out->v, true);
	for (size_t i = 0; i < out->n; i++, next(v, &w))
		out->v[i] = from[w.at];
	return 0;
}

size_t *
acc_view_offsets(struct acc_replay *r, const struct acc_view *v)
{
	struct walk w = {.at = v->first};
	size_t n = acc_view_count(v);
	size_t *p = n > ACC_MAX_TABLE ? NULL : acc_alloc(r->mem, (n > 0 ? n : 1) * sizeof *p);
	if (p == NULL)
		acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; p != NULL && i < n; i++, next(v, &w))
		p[i] = (size_t)w.at;
	return p;
}
