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

/* Shard(D), or _StridedShard(D, P): P pieces one behind the other, of which each rank has a part. */
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

int
acc_measurer_part(struct slot *s, const struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	const struct side *side[2] = {&s->a, &s->b};
	int rc = 0;
	for (int k = 0; k < 2 && rc == 0 && got->two.max_absd > 0; k++) {
		const struct acc_val *ranks = acc_get(r, side[k]->prefix, "fold.ranks");
		const struct acc_val *whole = acc_get(r, side[k]->prefix, "fold.shape");
		uint32_t axis;
		int64_t pieces, each, inner = 1;
		uint64_t at;
		if (ranks == NULL || ranks->type != ACC_V_INTS || ranks->n == 0 || whole == NULL ||
			whole->type != ACC_V_INTS ||
			!split(acc_get_text(r, side[k]->prefix, "fold"), &axis, &pieces) ||
			axis >= whole->n || whole->ints[axis] <= 0 ||
			whole->ints[axis] % (pieces * (int64_t)ranks->n) != 0 ||
			!stored_at(&side[k]->ref, got->two.max_absd_at, &at))
			continue;
		for (uint32_t i = axis + 1; i < whole->n; i++)
			inner = whole->ints[i] > 0 && inner < INT64_MAX / whole->ints[i]
					? inner * whole->ints[i]
					: 0;
		each = whole->ints[axis] / pieces / ranks->n;
		if (inner <= 0 || each <= 0)
			continue;
		int64_t row = (int64_t)(at / (uint64_t)inner) % (each * ranks->n);
		rc = acc_add(r, side[k]->prefix, "fold.rank", acc_int(ranks->ints[row / each]));
	}
	return rc;
}
