/* Do the parts of a tensor make it up? */
#include "dump/weight/dcp_part.h"

#include <stdlib.h>

static bool
overlap(const struct dcp_part *p, const struct dcp_part *q)
{
	for (uint32_t i = 0; i < p->ndim; i++)
		if (p->at[i] + p->size[i] <= q->at[i] || q->at[i] + q->size[i] <= p->at[i])
			return false;
	return true;
}

/* By where they begin along this axis, then along the others. */
struct order {
	const struct dcp_part *p;
	uint32_t axis;
};

static int
by_begin(const void *x, const void *y, void *arg)
{
	const struct order *o = arg;
	const struct dcp_part *a = &o->p[*(const uint32_t *)x], *b = &o->p[*(const uint32_t *)y];
	if (a->at[o->axis] != b->at[o->axis])
		return a->at[o->axis] < b->at[o->axis] ? -1 : 1;
	for (uint32_t i = 0; i < a->ndim; i++)
		if (a->at[i] != b->at[i])
			return a->at[i] < b->at[i] ? -1 : 1;
	return 0;
}

/* Does a part overlap one behind it? What stands at the same place, empty parts mostly, is one. */
static const char *
sweep(struct dcp_part *p, const uint32_t *at, uint32_t n, const struct order *o)
{
	enum { MOST = 1 << 24 };
	uint32_t left = MOST;
	for (uint32_t i = 0; i < n; i++) {
		struct dcp_part *a = &p[at[i]];
		for (uint32_t k = i + 1; k < n && !a->again; k++) {
			struct dcp_part *b = &p[at[k]];
			bool here = memcmp(a->at, b->at, a->ndim * sizeof *a->at) == 0;
			if (b->at[o->axis] >= a->at[o->axis] + a->size[o->axis] && !here)
				break;
			if (here && memcmp(a->size, b->size, a->ndim * sizeof *a->size) == 0)
				b->again = true;
			else if (overlap(a, b))
				return "parts of its tensor overlap";
			if (left-- == 0)
				return "its tensor has too many parts";
		}
	}
	return NULL;
}

int
acc_dcp_make_up(struct dcp_part *p, uint32_t n, const int64_t *whole, uint32_t ndim,
	const char **why, struct acc_err *e)
{
	uint64_t all, sum = 0, k;
	struct order o = {.p = p};
	uint32_t *at = calloc((size_t)n + 1, sizeof *at);
	if (at == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < n; i++)
		at[i] = i;
	/* The axis that is cut most leaves least to look at. */
	for (uint32_t d = 1; d < ndim && n > 0; d++)
		if (p[0].size[d] > 0 && p[0].size[o.axis] > 0 &&
			whole[d] / p[0].size[d] > whole[o.axis] / p[0].size[o.axis])
			o.axis = d;
	*why = acc_count(whole, ndim, &all) ? NULL : "its tensor is too large";
	if (*why == NULL && ndim > 0) {
		qsort_r(at, n, sizeof *at, by_begin, &o);
		*why = sweep(p, at, n, &o);
	}
	for (uint32_t i = 0; i < n && *why == NULL; i++)
		if (!p[i].again && (!acc_count(p[i].size, ndim, &k) || k > all - sum))
			*why = "parts of its tensor overlap";
		else if (!p[i].again)
			sum += k;
	if (*why == NULL && sum != all)
		*why = "parts of its tensor are missing";
	free(at);
	return 0;
}
