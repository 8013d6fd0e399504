/* Of a tensor that accfold has made of parts: which rank's part holds the element that is furthest off. */
#include "metric/chunks.h"

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

bool
acc_part_at(const struct acc_parts *p, uint64_t at, uint32_t *part, struct acc_run *out)
{
	for (uint32_t i = 0; i < p->nrows;) {
		const uint64_t rows = (uint64_t)p->rows[i], pieces = (uint64_t)p->rows[i + 1];
		const int64_t *v = p->rows + i + ACC_BAND;
		uint64_t row = 0;
		for (uint64_t k = 0; k < pieces; k++)
			row += (uint64_t)v[k * ACC_PIECE + 2];
		if (at >= rows * row) {
			at -= rows * row;
			i += ACC_BAND + (uint32_t)pieces * ACC_PIECE;
			continue;
		}
		const uint64_t in_row = at / row;
		for (at %= row; at >= (uint64_t)v[2]; v += ACC_PIECE)
			at -= (uint64_t)v[2];
		*part = (uint32_t)v[0];
		out->at = (uint64_t)v[1] + in_row * (uint64_t)v[3] + at;
		out->n = (uint64_t)v[2] - at;
		if (pieces == 1 && v[3] == v[2])
			out->n += (rows - 1 - in_row) * row;
		return true;
	}
	return false;
}

/* Elements of the storage that lie in this part. */
static uint64_t
size_of(const struct acc_parts *p, uint32_t part)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < p->nrows;) {
		const int64_t rows = p->rows[i], pieces = p->rows[i + 1];
		i += ACC_BAND;
		for (int64_t k = 0; k < pieces; k++, i += ACC_PIECE)
			n += p->rows[i] == (int64_t)part ? (uint64_t)(rows * p->rows[i + 2]) : 0;
	}
	return n;
}

int
acc_measurer_part(const struct acc_measurer *m, struct slot *s, const struct acc_reading *got)
{
	struct acc_rec *r = &s->rec;
	const struct side *side[2] = {&s->a, &s->b};
	int rc = 0;
	for (int k = 0; k < 2 && rc == 0 && got->two.max_absd > 0; k++) {
		const struct acc_val *ranks = acc_get(r, side[k]->prefix, "fold.ranks");
		uint64_t at;
		const struct acc_parts *parts = &side[k]->ref.parts;
		if (ranks == NULL || ranks->type != ACC_V_INTS || ranks->n == 0 ||
			ranks->n != parts->n ||
			!stored_at(&side[k]->ref, got->two.max_absd_at, &at))
			continue;
		struct acc_run run;
		uint32_t i = 0;
		/* The fault of a rank is in its part, or in two that have changed places: where more is off
		 * than these have, it is the whole that is. */
		if (acc_part_at(parts, at, &i, &run) &&
			(m->plain || got->two.outside / 2 <= size_of(parts, i)))
			rc = acc_add(r, side[k]->prefix, "fold.rank", acc_int(ranks->ints[i]));
	}
	return rc;
}
