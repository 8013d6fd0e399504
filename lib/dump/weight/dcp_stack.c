#include "dump/weight/dcp_stack.h"

#include <ctype.h>

#define LAYERS ".layers."
#define EXPERTS ".experts.experts."

/* Behind "decoder.layers.", where no number follows; NULL. */
static const char *
behind_layers(struct acc_str s)
{
	static const char *const heads[] = {"decoder" LAYERS, "encoder" LAYERS};
	for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
		const size_t n = strlen(heads[i]);
		const char *p = memmem(s.p, s.n, heads[i], n);
		if (p != NULL && (p == s.p || p[-1] == '.') && p + n < s.p + s.n &&
			!isdigit((unsigned char)p[n]))
			return p + n;
	}
	return NULL;
}

uint32_t
acc_dcp_stacked(struct acc_str s, uint32_t ndim)
{
	const uint32_t n = (behind_layers(s) != NULL) +
			   (memmem(s.p, s.n, EXPERTS, strlen(EXPERTS)) != NULL);
	return n <= ndim ? n : 0;
}

/* With the numbers of the layer and the expert; those that are not stacked are not put in. */
static struct acc_str
numbered(struct acc_arena *m, struct acc_str s, int64_t layer, int64_t expert)
{
	const char *l = behind_layers(s), *e = memmem(s.p, s.n, EXPERTS, strlen(EXPERTS)),
		   *end = s.p + s.n;
	const char *rest = l == NULL ? s.p : l, *text = "";
	if (l != NULL)
		text = acc_arena_printf(m, "%.*s%lld.", (int)(l - s.p), s.p, (long long)layer);
	if (text != NULL && e != NULL && e >= rest) {
		text = acc_arena_printf(m, "%s%.*s.experts.local_experts.%lld.", text,
			(int)(e - rest), rest, (long long)expert);
		rest = e + strlen(EXPERTS);
	}
	return text == NULL
		       ? (struct acc_str){0}
		       : acc_str_made(acc_arena_printf(m, "%s%.*s", text, (int)(end - rest), rest));
}

int
acc_dcp_put_stacked(struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const int64_t *at, const int64_t *size, const int64_t *whole)
{
	const uint32_t k = acc_dcp_stacked(name, l->ref->ndim), n = l->ref->ndim - k;
	const bool layers = behind_layers(name) != NULL;
	int64_t stride[ACC_MAXDIM];
	uint64_t step = 1;
	bool only = true;
	for (uint32_t d = l->ref->ndim; d-- > 0;) {
		stride[d] = l->ref->strided ? l->ref->stride[d] : (int64_t)step;
		step *= (uint64_t)l->ref->shape[d];
		only = only && (d < k || size[d] == whole[d]);
	}
	for (int64_t i = 0; i < size[0]; i++)
		for (int64_t j = 0; j < (k > 1 ? size[1] : 1); j++) {
			struct acc_torch_leaf own = *l;
			struct acc_ref ref = *l->ref;
			ref.first += (uint64_t)(i * stride[0] + (k > 1 ? j * stride[1] : 0));
			ref.ndim = n;
			memcpy(ref.shape, l->ref->shape + k, n * sizeof *ref.shape);
			memcpy(ref.stride, stride + k, n * sizeof *ref.stride);
			own.ref = &ref;
			own.whole = only ? NULL : whole + k;
			own.at = at + k;
			own.nwhole = n;
			acc_arena_reset(&f->mem);
			struct acc_str s = numbered(&f->mem, name, layers ? at[0] + i : 0,
				layers ? (k > 1 ? at[1] + j : 0) : at[0] + i);
			if (s.p != NULL && !only)
				s = acc_dump_weight_part(&f->mem, s, at + k, size + k, n);
			int rc = s.p == NULL ? acc_nomem(f->e) : acc_dump_ptleaf(f, &own, s, NULL);
			if (rc < 0)
				return rc;
		}
	return 0;
}
