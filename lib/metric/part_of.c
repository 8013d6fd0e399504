/* Of a tensor that accfold has made of parts: which rank's part holds the element that is furthest off. */
#include "metric/measurer.h"

/* Where element `at` of a reference, in row-major order, stands in its storage. False: it cannot be told. */
static bool
stored_at(const struct acc_ref *ref, uint64_t at, uint64_t *out)
{
	int64_t to = (int64_t)ref->first;
	if (!ref->strided) {
		*out = ref->first + at;
		return true;
	}
	for (uint32_t i = ref->ndim; i-- > 0 && ref->block.n == 0;) {
		int64_t run, k = (int64_t)(at % (uint64_t)ref->shape[i]);
		at /= (uint64_t)ref->shape[i];
		if (i == 0 && ref->groups.n > 0)
			k = acc_grouped(&ref->groups, k, &run);
		to += k * ref->stride[i];
	}
	*out = (uint64_t)to;
	return ref->block.n == 0 && to >= 0;
}

/* A word of a layout: Shard(D), or _StridedShard(D, P): P pieces one behind the other, of which each rank
 * has a part. */
static bool
split(struct acc_str s, uint32_t *axis, int64_t *pieces)
{
	int64_t d = -1, p = 1;
	const char *open = s.n == 0 ? NULL : memchr(s.p, '(', s.n), *comma;
	if (open == NULL || s.p[s.n - 1] != ')' ||
		!(acc_str_starts(s, "Shard(") || acc_str_starts(s, "_StridedShard(")))
		return false;
	struct acc_str in = {open + 1, (uint32_t)(s.p + s.n - 1 - (open + 1))};
	comma = in.n == 0 ? NULL : memmem(in.p, in.n, ", ", 2);
	if (comma != NULL) {
		struct acc_str rest = {comma + 2, (uint32_t)(in.p + in.n - (comma + 2))};
		in.n = (uint32_t)(comma - in.p);
		p = acc_str_int(rest, &p) ? p : 0;
	}
	if (!acc_str_int(in, &d) || d < 0 || d >= ACC_MAXDIM || p <= 0 || p > 1 << 20)
		return false;
	*axis = (uint32_t)d;
	*pieces = p;
	return true;
}

/* Which of n ranks side by side has the element `at` of the whole, by a word of the layout; -1. */
static int64_t
rank_along(struct acc_str word, int64_t n, const struct acc_val *whole, uint64_t at)
{
	int64_t pieces, inner = 1;
	uint32_t axis;
	if (!split(word, &axis, &pieces) || axis >= whole->n || n <= 0 || n > 1 << 20 ||
		whole->ints[axis] <= 0 || whole->ints[axis] % (pieces * n) != 0)
		return -1;
	for (uint32_t i = axis + 1; i < whole->n; i++)
		if (whole->ints[i] <= 0 || __builtin_mul_overflow(inner, whole->ints[i], &inner))
			return -1;
	int64_t each = whole->ints[axis] / pieces / n;
	return (int64_t)(at / (uint64_t)inner) % (each * n) / each;
}

/* Which of fold.ranks has it; -1: that cannot be told. */
static int64_t
rank_of(const struct acc_rec *r, const char *prefix, uint32_t n, uint64_t at)
{
	const struct acc_val *whole = acc_get(r, prefix, "fold.shape");
	const struct acc_val *grid = acc_get(r, prefix, "fold.grid");
	const struct acc_val *cuts = acc_get(r, prefix, "fold.cuts");
	struct acc_str text = acc_get_text(r, prefix, "fold");
	if (cuts != NULL && cuts->type == ACC_V_INTS && cuts->n == n) {
		int64_t k = -1;
		for (uint32_t i = 0; i < n; i++)
			k = cuts->ints[i] >= 0 && (uint64_t)cuts->ints[i] <= at ? (int64_t)i : k;
		return k;
	}
	if (whole == NULL || whole->type != ACC_V_INTS)
		return -1;
	if (grid == NULL || grid->type != ACC_V_INTS || grid->n != 2)
		return rank_along(text, n, whole, at);
	const char *end = text.n == 0 ? NULL : memmem(text.p, text.n, ") ", 2);
	if (end == NULL)
		return -1;
	struct acc_str one = {text.p, (uint32_t)(end + 1 - text.p)};
	struct acc_str two = {end + 2, text.n - one.n - 1};
	int64_t i = rank_along(one, grid->ints[0], whole, at);
	int64_t k = rank_along(two, grid->ints[1], whole, at);
	return i < 0 || k < 0 || i * grid->ints[1] + k >= (int64_t)n ? -1 : i * grid->ints[1] + k;
}

int
acc_measurer_part(struct slot *s, const struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	const struct side *side[2] = {&s->a, &s->b};
	int rc = 0;
	for (int k = 0; k < 2 && rc == 0 && got->two.max_absd > 0; k++) {
		const struct acc_val *ranks = acc_get(r, side[k]->prefix, "fold.ranks");
		uint64_t at;
		if (ranks == NULL || ranks->type != ACC_V_INTS || ranks->n == 0 ||
			!stored_at(&side[k]->ref, got->two.max_absd_at, &at))
			continue;
		int64_t i = rank_of(r, side[k]->prefix, ranks->n, at);
		if (i >= 0)
			rc = acc_add(r, side[k]->prefix, "fold.rank", acc_int(ranks->ints[i]));
	}
	return rc;
}
