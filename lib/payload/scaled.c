/* What is decoded as it is read, to f32: blocks with scales, as GGUF has them; and what lies in several parts. */
#include "payload/pay.h"

#include "acc/file.h"
#include "io/quant.h"

#include <stdlib.h>

struct acc_scaled {
	int fd;
	const struct acc_quant *q;
	uint64_t off, n; /* n: elements */
	bool reach;
	struct acc_gridded *grid; /* or it is this, */
	struct acc_added *sum;    /* or this */
};

static struct acc_scaled *
open_parts(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_scaled *b = calloc(1, sizeof *b);
	if (b == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (ref->enc == ACC_GRID)
		b->grid = acc_gridded_open(r, ref, e);
	else
		b->sum = acc_added_open(r, ref, e);
	if (b->grid == NULL && b->sum == NULL) {
		free(b);
		return NULL;
	}
	return b;
}

struct acc_scaled *
acc_scaled_open(struct acc_roots *r, const struct acc_ref *ref, int fd, struct acc_err *e)
{
	const struct acc_quant *q = acc_quant_of(ref->enc);
	if (q == NULL)
		return open_parts(r, ref, e);
	const uint64_t n = ref->len / sizeof(float);
	struct acc_scaled *b = NULL;
	if (ref->dtype != ACC_F32 || ref->big_endian || n % q->n != 0 ||
		n / q->n != ref->clen / q->size || ref->clen % q->size != 0)
		acc_fail(e, ACC_EFORMAT, "other blocks of %s than its shape needs", q->name);
	else if ((b = malloc(sizeof *b)) == NULL)
		acc_nomem(e);
	else
		*b = (struct acc_scaled){fd, q, ref->off, n, ref->reach, NULL, NULL};
	return b;
}

void
acc_scaled_close(struct acc_scaled *b)
{
	if (b != NULL) {
		acc_gridded_close(b->grid);
		acc_added_close(b->sum);
	}
	free(b);
}

int
acc_scaled_read(const struct acc_scaled *b, uint64_t first, size_t n, void *out, struct acc_err *e)
{
	enum { TOGETHER = 64 };
	uint8_t raw[TOGETHER * ACC_QUANT_BYTES];
	float value[ACC_QUANT_MOST], reach[ACC_QUANT_MOST];
	uint8_t *to = out;
	if (b->q == NULL)
		return b->grid != NULL ? acc_gridded_read(b->grid, first, n, out, e)
				       : acc_added_read(b->sum, first, n, out, e);
	const size_t wide = b->q->n;
	if (first > b->n || n > b->n - first)
		return acc_fail(e, ACC_EFORMAT, "elements that the blocks do not have");
	for (uint64_t block = first / wide, have = 0, at = 0; n > 0; block++, at++) {
		if (at == have) {
			have = (first % wide + n + wide - 1) / wide;
			have = have < TOGETHER ? have : TOGETHER;
			at = 0;
			int rc = acc_file_pread(b->fd, raw, (size_t)have * b->q->size,
				b->off + block * b->q->size, e);
			if (rc < 0)
				return rc;
		}
		b->q->decode(raw + at * b->q->size, value, b->reach ? reach : NULL);
		const size_t skip = first % wide, k = wide - skip < n ? wide - skip : n;
		memcpy(to, (b->reach ? reach : value) + skip, k * sizeof *value);
		to += k * sizeof *value;
		first += k;
		n -= k;
	}
	return 0;
}
