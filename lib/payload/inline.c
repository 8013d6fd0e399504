/* Payload in data records, for a reader that cannot reach the files. References wait in an
 * unlinked file, because all records come before all payload. */
#include "payload/pay.h"

#include <stdlib.h>

#include "acc/stream.h"
#include "io/crc.h"

struct acc_inline {
	struct acc_roots *roots;
	struct acc_spool *spool;
	struct acc_buf at; /* of uint64_t: handles of the spool */
	void *chunk;
};

struct acc_inline *
acc_inline_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_inline *in = calloc(1, sizeof *in);
	if (in != NULL)
		in->chunk = malloc(ACC_MAX_DATA);
	if (in == NULL || in->chunk == NULL)
		acc_nomem(e);
	else if ((in->roots = acc_roots_open(e)) != NULL)
		in->spool = acc_spool_open(tmpdir, e);
	if (in == NULL || in->spool == NULL) {
		acc_inline_close(in);
		return NULL;
	}
	return in;
}

void
acc_inline_close(struct acc_inline *in)
{
	if (in == NULL)
		return;
	acc_roots_close(in->roots);
	acc_spool_close(in->spool);
	acc_buf_release(&in->at);
	free(in->chunk);
	free(in);
}

struct acc_roots *
acc_inline_roots(struct acc_inline *in)
{
	return in->roots;
}

static int
measure(struct acc_inline *in, struct acc_str src, const struct acc_ref *ref, struct acc_one *all,
	struct acc_err *e)
{
	struct acc_pay *pay = acc_pay_open(in->roots, src, ref, e);
	const uint64_t count = pay == NULL ? 0 : acc_pay_count(pay);
	struct acc_one one;
	const void *p;
	int rc = pay == NULL ? ACC_EIO : 0;
	acc_one_init(all);
	for (uint64_t at = 0; at < count && rc == 0; at += ACC_CHUNK) {
		const size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		if ((rc = acc_pay_read(pay, at, n, in->chunk, &p, e)) == 0) {
			acc_kernel_one(ref->dtype, p, n, &one);
			acc_one_merge(all, &one);
		}
	}
	acc_pay_close(pay);
	return rc;
}

int
acc_inline_statistics(struct acc_inline *in, struct acc_rec *r, struct acc_err *e)
{
	struct acc_ref ref;
	struct acc_one one;
	if (acc_rec_is(r, "source"))
		return acc_roots_add(in->roots, r, e);
	if (!acc_rec_is(r, "tensor") || !acc_ref_is(r))
		return 0;
	int rc = acc_ref_get(r, "", &ref, e);
	if (rc > 0)
		rc = measure(in, acc_get_text(r, "", "src"), &ref, &one, e);
	acc_ref_forget(r);
	if (rc == 0 && acc_get(r, "", "stat.max") == NULL &&
		acc_stat_put(r, ref.dtype, ref.ndim, one.n, &one) < 0)
		rc = acc_nomem(e);
	return rc;
}

int
acc_inline_take(struct acc_inline *in, struct acc_rec *r, struct acc_err *e)
{
	uint64_t at;
	if (acc_rec_is(r, "source"))
		return acc_roots_add(in->roots, r, e);
	if (!acc_rec_is(r, "tensor") || !acc_ref_is(r))
		return 0;
	int rc = acc_spool_put(in->spool, r, &at, e);
	if (rc < 0)
		return rc;
	if (acc_buf_add(&in->at, &at, sizeof at) < 0)
		return acc_nomem(e);
	acc_ref_forget(r);
	return 0;
}

struct sink {
	int (*emit)(void *arg, struct acc_rec *r);
	void *arg;
	struct acc_rec rec;
	int stopped; /* what emit returned below 0 */
};

static int
put(struct sink *out, const struct acc_rec *tensor, uint64_t off, const void *p, size_t n,
	struct acc_err *e)
{
	struct acc_rec *r = &out->rec;
	/* Borrowed, not copied: a record is written before the next chunk is read. */
	int rc = acc_data_start(r, acc_get_text(tensor, "", "src"),
		acc_get_int(tensor, "", "seq", 0), off, (struct acc_str){0}, p, n);
	if (rc < 0)
		return acc_nomem(e);
	rc = out->emit(out->arg, r);
	if (rc < 0)
		out->stopped = rc;
	return rc;
}

static int
one(struct acc_inline *in, const struct acc_rec *tensor, struct sink *out, struct acc_err *e)
{
	struct acc_ref ref;
	int rc = acc_ref_get(tensor, "", &ref, e);
	if (rc <= 0)
		return rc;
	struct acc_pay *p = acc_pay_open(in->roots, acc_get_text(tensor, "", "src"), &ref, e);
	if (p == NULL)
		return ACC_EIO;
	uint64_t count = acc_pay_count(p), size = acc_dtype_of(ref.dtype)->size;
	bool check = ref.has_crc && acc_pay_whole(p);
	uint32_t crc = acc_pay_before(p);
	rc = 0;
	for (uint64_t at = 0; at < count && rc == 0;) {
		size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		rc = acc_pay_fetch(p, at, n, in->chunk, e);
		if (rc < 0)
			break;
		crc = check ? acc_crc32(crc, in->chunk, n * size) : 0;
		acc_pay_native(p, in->chunk, n);
		rc = put(out, tensor, at * size, in->chunk, n * size, e);
		at += n;
	}
	if (rc == 0 && (rc = acc_pay_sums(p, e)) < 0)
		check = false;
	acc_pay_close(p);
	if (rc == 0 && check && crc != ref.crc32)
		rc = acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match");
	char name[256];
	snprintf(name, sizeof name, "%.*s", ACC_PRS(ref.file));
	if (rc < 0)
		acc_err_in(e, name);
	return rc;
}

int
acc_inline_data(struct acc_inline *in, int (*emit)(void *arg, struct acc_rec *r),
	void (*trouble)(void *arg, const struct acc_err *e), void *arg, struct acc_err *e)
{
	struct sink out = {.emit = emit, .arg = arg};
	int rc = 0;
	for (size_t i = 0; i < in->at.n && rc == 0; i += sizeof(uint64_t)) {
		struct acc_rec *tensor;
		struct acc_err bad = {0};
		uint64_t at;
		memcpy(&at, in->at.p + i, sizeof at);
		rc = acc_spool_get(in->spool, at, &tensor, e);
		if (rc > 0 && one(in, tensor, &out, &bad) < 0 && bad.code != 0)
			trouble(arg, &bad);
		if (rc > 0)
			rc = out.stopped;
	}
	acc_rec_release(&out.rec);
	return rc;
}
