/* The checksum that a stream ends with, so that a bit that turned is no fault of an operator. */
#include "io/crc.h"
#include "stream/codec.h"

enum {
	VALUE = 4
}; /* bytes that the checksum itself takes, behind the byte that says so: always as many */

uint32_t
acc_large_data(const struct acc_rec *r)
{
	const struct acc_field *f = r->n == 0 ? NULL : &r->f[r->n - 1];
	const bool data = f != NULL && f->v.type == ACC_V_BIN && f->v.s.n >= ACC_LARGE_DATA &&
			  acc_rec_is(r, "data") && acc_str_is(f->key, "data");
	return data ? f->v.s.n : 0;
}

int
acc_data_start(struct acc_rec *r, struct acc_str src, int64_t seq, uint64_t off,
	struct acc_str side, const void *p, size_t n)
{
	const struct acc_field data = {.key = ACC_STR("data"),
		.v = {.type = ACC_V_BIN, .s = {p, (uint32_t)n}}};
	int rc = acc_rec_start(r, ACC_STR("data"));
	rc |= acc_add(r, "", "src", acc_text(src));
	rc |= acc_add(r, "", "seq", acc_int(seq));
	rc |= acc_add(r, "", "off", acc_uint(off));
	if (side.n > 0)
		rc |= acc_add(r, "", "side", acc_text(side));
	if (n >= ACC_LARGE_DATA)
		rc |= acc_add(r, "", "crc32", acc_uint(acc_crc32(0, p, n)));
	return (rc | acc_rec_push(r, &data)) < 0 ? ACC_ENOMEM : 0;
}

int
acc_encode_end(struct acc_buf *out, uint64_t n, int status, uint32_t crc, struct acc_err *e)
{
	struct acc_rec end = {0};
	const size_t start = out->n;
	int rc = acc_rec_start(&end, ACC_STR("end"));
	rc |= acc_add(&end, "", "n", acc_uint(n));
	rc |= acc_add(&end, "", "st", acc_int(status));
	rc |= acc_add(&end, "", "crc32", acc_uint(UINT32_MAX));
	rc = rc < 0 ? acc_nomem(e) : acc_encode(&end, out, e);
	acc_rec_release(&end);
	if (rc < 0)
		return rc;
	crc = acc_crc32(crc, out->p + start, out->n - VALUE - start);
	for (size_t i = 0; i < VALUE; i++, crc <<= 8)
		out->p[out->n - VALUE + i] = (uint8_t)(crc >> 24);
	return 0;
}

int
acc_sum_check(int64_t minor, const struct acc_rec *end, const void *p, size_t len, uint32_t crc,
	struct acc_err *e)
{
	const struct acc_val *said = acc_get(end, "", "crc32");
	int64_t sum = -1;
	if (said == NULL && minor < 1)
		return 0; /* as older programs and others write them */
	/* What is not the last has nothing that vouches for what follows. */
	if (said == NULL || said != &end->f[end->n - 1].v || !acc_as_int(said, &sum) || len < VALUE)
		return acc_fail(e, ACC_EFORMAT,
			"the end record lacks its checksum: the stream is damaged");
	crc = acc_crc32(crc, p, len - VALUE);
	if (sum < 0 || sum > UINT32_MAX || !acc_crc_is(crc, (uint32_t)sum))
		return acc_fail(e, ACC_EFORMAT,
			"the checksum %08x of its end is not that of its bytes, %08x: the stream is damaged",
			(unsigned)sum, (unsigned)crc);
	return 0;
}
