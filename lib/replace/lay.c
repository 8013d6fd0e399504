/* How the bench's elements lie in the device's order of axes. */
#include "replace/replace.h"

#include <stdlib.h>

enum { DIMS = 8 };

struct order {
	char side;
	uint32_t nview, nperm;
	int64_t view[ACC_MAXDIM], perm[ACC_MAXDIM];
};

/* ".permute(0,2,1)": its numbers; false: it is none. */
static bool
numbers(const char **s, const char *word, int64_t *v, uint32_t *n)
{
	const size_t k = strlen(word);
	if (strncmp(*s, word, k) != 0)
		return true;
	const char *p = *s + k;
	do {
		char *end;
		if (*n >= DIMS)
			return false;
		v[(*n)++] = strtoll(p, &end, 10);
		if (end == p || (*end != ',' && *end != ')'))
			return false;
		p = end + 1;
	} while (p[-1] == ',');
	*s = p;
	return true;
}

/* m.layout, where it is of views and orders of axes alone. */
static bool
parse(const char *s, struct order *o)
{
	*o = (struct order){.side = s[0]};
	if (s[0] != 'a' && s[0] != 'b')
		return false;
	s++;
	if (!numbers(&s, ".view(", o->view, &o->nview) ||
		!numbers(&s, ".permute(", o->perm, &o->nperm))
		return false;
	bool seen[DIMS] = {false};
	for (uint32_t d = 0; d < o->nperm; d++) {
		if (o->perm[d] < 0 || o->perm[d] >= o->nperm || seen[o->perm[d]])
			return false;
		seen[o->perm[d]] = true;
	}
	return strcmp(s, "") == 0 || strcmp(s, ".reshape") == 0;
}

/* The tensor in another shape of as many elements, then its axes in another order. */
static bool
view(struct acc_ref *r, uint32_t ndim, const int64_t *shape, const int64_t *perm)
{
	uint64_t had, has;
	struct acc_ref to = *r;
	if (!acc_count(r->shape, r->ndim, &had) || !acc_count(shape, ndim, &has) || had != has ||
		r->block.n > 0 || r->groups.n > 0)
		return false;
	const bool same = r->ndim == ndim && memcmp(r->shape, shape, ndim * sizeof *shape) == 0;
	if (!same && r->strided && !acc_contiguous(r->shape, r->stride, r->ndim))
		return false;
	int64_t stride[ACC_MAXDIM];
	uint64_t step = 1; /* of no elements it may be beyond 64 bits */
	for (uint32_t d = ndim; d-- > 0; step *= (uint64_t)shape[d])
		stride[d] = same && r->strided ? r->stride[d] : (int64_t)step;
	for (uint32_t d = 0; d < ndim; d++) {
		to.shape[d] = shape[perm == NULL ? d : (uint32_t)perm[d]];
		to.stride[d] = stride[perm == NULL ? d : (uint32_t)perm[d]];
	}
	to.ndim = ndim;
	to.strided = true;
	*r = to;
	return true;
}

static bool
apply(struct feed *f, struct order *o)
{
	const bool of_a = o->side == 'a';
	if (o->nview == 0) {
		o->nview = of_a ? f->ndim : f->ref.ndim;
		memcpy(o->view, of_a ? f->shape : f->ref.shape, o->nview * sizeof *o->view);
	}
	if (o->nperm == 0)
		for (; o->nperm < o->nview; o->nperm++)
			o->perm[o->nperm] = o->nperm;
	if (o->nperm != o->nview)
		return false;
	if (!of_a)
		return view(&f->ref, o->nview, o->view, o->perm);
	/* The device's, so viewed, is the bench's: the bench's goes the way back. */
	int64_t shape[ACC_MAXDIM], back[ACC_MAXDIM];
	for (uint32_t d = 0; d < o->nview; d++) {
		shape[d] = o->view[o->perm[d]];
		back[o->perm[d]] = d;
	}
	return view(&f->ref, o->nview, shape, back);
}

/* The same shape, but for axes of one element. */
static bool
alike(const struct feed *f)
{
	uint32_t i = 0, k = 0;
	for (;;) {
		while (i < f->ndim && f->shape[i] == 1)
			i++;
		while (k < f->ref.ndim && f->ref.shape[k] == 1)
			k++;
		if (i == f->ndim || k == f->ref.ndim)
			return i == f->ndim && k == f->ref.ndim;
		if (f->shape[i++] != f->ref.shape[k++])
			return false;
	}
}

int
acc_replace_lay(struct feed *f, struct acc_err *e)
{
	struct order o;
	if (f->layout[0] == '\0')
		return alike(f) ? 0 : acc_fail(e, ACC_EUNSUP, "its shape is another");
	if (!parse(f->layout, &o) || !apply(f, &o))
		return acc_fail(e, ACC_EUNSUP, "its elements lie as %s", f->layout);
	return 0;
}

bool
acc_replace_lay_like(struct feed *f, const char *layout)
{
	struct order o;
	struct feed to = *f;
	if (!parse(layout, &o) || o.nview > 0 || o.nperm == 0 ||
		o.nperm != (o.side == 'a' ? f->ndim : f->ref.ndim) || !apply(&to, &o))
		return false;
	to.layout = "";
	if (!alike(&to))
		return false;
	*f = to;
	return true;
}
