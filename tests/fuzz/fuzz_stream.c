/* Any bytes as a stream of records: scanned, decoded, encoded again, taken as references. */
#include "acc/stream.h"
#include "stream/codec.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the first half of a record: what is open agrees with what is whole. */
static void
half(const uint8_t *p, size_t n, const struct acc_rec *whole)
{
	struct acc_rec r = {0};
	size_t rest = 0;
	int64_t len = acc_decode_open(p, n / 2, &r, NULL, &rest, NULL);
	if (len < 0 ||
		(len > 0 && (len != (int64_t)(n / 2) || rest != n - n / 2 || r.n != whole->n ||
				    r.f[r.n - 1].v.s.n != whole->f[r.n - 1].v.s.n)))
		abort();
	acc_rec_release(&r);
}

/* Its shape says nothing else for what came before it. */
static void
shape(const uint8_t *p, size_t n, struct acc_shapes *before)
{
	struct acc_rec r = {0};
	struct acc_shapes none = {0};
	uint64_t shape[2] = {0};
	for (int i = 0; i < 2; i++) {
		if (acc_decode_open(p, n, &r, i == 0 ? before : &none, NULL, NULL) != (int64_t)n)
			abort();
		shape[i] = r.shape;
	}
	if (shape[0] != shape[1])
		abort();
	acc_rec_release(&r);
	acc_shapes_release(&none);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_shapes shapes = {0};
	struct acc_rec r = {0}, back = {0};
	struct acc_buf b = {0};
	while (size > 0) {
		int64_t n = acc_scan(data, size, NULL);
		if (n <= 0)
			break;
		if (acc_decode(data, size, &r, NULL) != n)
			abort();
		half(data, (size_t)n, &r);
		shape(data, (size_t)n, &shapes);
		struct acc_ref ref;
		acc_ref_get(&r, "", &ref, NULL);
		acc_ref_get(&r, "a.", &ref, NULL);
		/* What was put anew must read back the same. */
		struct acc_rec copy = {0};
		b.n = 0;
		if (acc_rec_copy(&copy, &r) < 0 || acc_encode(&copy, &b, NULL) < 0 ||
			acc_decode(b.p, b.n, &back, NULL) != (int64_t)b.n || back.n != r.n)
			abort();
		for (uint32_t i = 0; i < r.n; i++)
			if (!acc_val_eq(&r.f[i].v, &back.f[i].v))
				abort();
		acc_rec_release(&copy);
		data += n;
		size -= (size_t)n;
	}
	acc_rec_release(&r);
	acc_rec_release(&back);
	acc_buf_release(&b);
	acc_shapes_release(&shapes);
	return 0;
}
