#include "io/chunks.h"

/* Elements of chunks that are not there, and take no room: what a few bytes can ask to be measured. */
enum { ABSENT = 1 << 26 };

uint64_t
acc_chunks_number(const int64_t *shape, const int64_t *chunk, uint32_t ndim)
{
	int64_t n = 1;
	for (uint32_t i = 0; i < ndim; i++)
		if (shape[i] < 0 || chunk[i] <= 0 || shape[i] > INT64_MAX - chunk[i] ||
			__builtin_mul_overflow(n, (shape[i] + chunk[i] - 1) / chunk[i], &n) ||
			n > UINT32_MAX)
			return 0;
	return (uint64_t)n;
}

int
acc_chunks_read(const struct acc_ref *ref, struct acc_chunks *c, struct acc_err *e)
{
	const struct acc_parts *p = &ref->parts;
	const uint64_t size = acc_dtype_of(ref->dtype)->size;
	if (ref->ndim == 0 || p->nrows != ref->ndim + 1 || p->rows == NULL ||
		(p->rows[0] != 0 && p->rows[0] != 1) || ref->first != 0 ||
		acc_chunks_number(ref->shape, p->rows + 1, ref->ndim) != p->n)
		return acc_fail(e, ACC_EFORMAT,
			"field 'part.rows' does not say what its chunks are");
	*c = (struct acc_chunks){.zstd = p->rows[0] == 1, .shape = p->rows + 1, .beside = 1};
	if (!acc_count(ref->shape, ref->ndim, &c->count) ||
		!acc_count(c->shape, ref->ndim, &c->one) || c->one > UINT32_MAX ||
		c->count > INT64_MAX / size)
		return acc_fail(e, ACC_EFORMAT, "impossible chunks");
	if (ref->ndim > 1)
		c->beside = acc_chunks_number(ref->shape + 1, c->shape + 1, ref->ndim - 1);
	uint64_t absent = 0;
	for (uint32_t i = 0; i < p->n; i++)
		absent += p->len[i] == 0;
	if (absent > ABSENT / c->one)
		return acc_fail(e, ACC_ELIMIT, "more than %d elements in chunks that are not there",
			ABSENT);
	for (uint32_t i = 0; i < p->n; i++)
		if (!c->zstd && p->len[i] != 0 && (uint64_t)p->len[i] != c->one * size)
			return acc_fail(e, ACC_EFORMAT, "%.*s: a chunk of %lld bytes, not of %llu",
				ACC_PRS(p->file[i]), (long long)p->len[i],
				(unsigned long long)c->one * size);
	return 0;
}
