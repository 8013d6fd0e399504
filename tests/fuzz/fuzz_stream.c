/* Any bytes as a stream of records: scanned, decoded, encoded again, taken as references; as a file
 * alone, with its payload left unread, and as two that are merged. */
#include "dump.h"
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

/* The same records, however they are read; a failure says why. */
static void
file(const uint8_t *data, size_t size)
{
	enum { WHOLE, OPEN, TWICE, WAYS };
	char path[512];
	uint64_t n[WAYS] = {0};
	int rc[WAYS];
	fuzz_file("x.acc", data, size);
	snprintf(path, sizeof path, "%s/x.acc", fuzz_folder());
	char *paths[] = {path, path};
	for (int way = 0; way < WAYS; way++) {
		struct acc_err e = {0};
		struct acc_rec *r;
		struct acc_in *in = acc_in_open(paths, way == TWICE ? 2 : 1, &e);
		rc[way] = in == NULL ? e.code : 1;
		if (in != NULL && way == OPEN)
			acc_in_leave_open(in);
		while (rc[way] > 0 && (rc[way] = acc_in_next(in, &r, &e)) > 0) {
			n[way]++;
			if (way == OPEN && n[way] % 2 == 0 && acc_rd_rest(acc_in_rd(in)) > 0 &&
				(rc[way] = acc_rd_whole(acc_in_rd(in), &r, &e)) <= 0)
				break;
		}
		if (rc[way] < 0 && e.code == 0)
			abort();
		if (rc[way] == 0)
			acc_in_status(in);
		acc_in_close(in);
	}
	if ((rc[WHOLE] < 0) != (rc[OPEN] < 0) || (rc[WHOLE] < 0) != (rc[TWICE] < 0) ||
		(rc[WHOLE] == 0 && (n[OPEN] != n[WHOLE] || n[TWICE] != 2 * n[WHOLE])))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	file(data, size);
	struct acc_shapes shapes = {0};
	struct acc_rec r = {0}, back = {0};
	struct acc_buf b = {0};
	while (size > 0) {
		int64_t n = acc_scan(data, size, NULL);
		if (n <= 0)
			break;
		const int64_t decoded = acc_decode(data, size, &r, NULL);
		if (decoded == ACC_EFORMAT) /* a key twice, which scanning does not see */
			break;
		if (decoded != n)
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
