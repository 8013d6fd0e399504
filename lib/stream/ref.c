#include "acc/stream.h"

static const char *const encodings[] = {"", "deflate", "latin1", "msckpt"};

int
acc_ref_put(struct acc_rec *r, const struct acc_ref *ref)
{
	int rc = acc_add(r, "", "dtype", acc_ctext(acc_dtypes[ref->dtype].name));
	rc |= acc_add(r, "", "shape", acc_ints(ref->shape, ref->ndim));
	if (ref->strided)
		rc |= acc_add(r, "", "stride", acc_ints(ref->stride, ref->ndim));
	if (ref->first != 0)
		rc |= acc_add(r, "", "offset", acc_uint(ref->first));
	if (ref->big_endian)
		rc |= acc_add(r, "", "order", acc_ctext("big"));
	if (ref->file.n == 0)
		return rc < 0 ? ACC_ENOMEM : 0;
	rc |= acc_add(r, "", "file", acc_text(ref->file));
	rc |= acc_add(r, "", "off", acc_uint(ref->off));
	rc |= acc_add(r, "", "len", acc_uint(ref->len));
	if (ref->enc != ACC_STORED) {
		rc |= acc_add(r, "", "enc", acc_ctext(encodings[ref->enc]));
		rc |= acc_add(r, "", "clen", acc_uint(ref->clen));
	}
	if (ref->has_crc)
		rc |= acc_add(r, "", "crc32", acc_int(ref->crc32));
	rc |= acc_add(r, "", "fsize", acc_uint(ref->fsize));
	rc |= acc_add(r, "", "mtime", acc_int(ref->mtime_ns));
	return rc < 0 ? ACC_ENOMEM : 0;
}

/* The fields that make a reference, found in one walk over the record. */
enum { DTYPE, SHAPE, STRIDE, OFFSET, ORDER, FILE_, OFF, LEN, ENC, CLEN, CRC32, FSIZE, MTIME, NKEY };
static const char *const keys[NKEY] = {"dtype", "shape", "stride", "offset", "order", "file",
	"off", "len", "enc", "clen", "crc32", "fsize", "mtime"};

static int
which(struct acc_str k)
{
	int i;
	switch (acc_key(k)) {
	case ACC_KEY(5, 'd', 'e'): i = DTYPE; break;
	case ACC_KEY(5, 's', 'e'): i = SHAPE; break;
	case ACC_KEY(6, 's', 'e'): i = STRIDE; break;
	case ACC_KEY(6, 'o', 't'): i = OFFSET; break;
	case ACC_KEY(5, 'o', 'r'): i = ORDER; break;
	case ACC_KEY(4, 'f', 'e'): i = FILE_; break;
	case ACC_KEY(3, 'o', 'f'): i = OFF; break;
	case ACC_KEY(3, 'l', 'n'): i = LEN; break;
	case ACC_KEY(3, 'e', 'c'): i = ENC; break;
	case ACC_KEY(4, 'c', 'n'): i = CLEN; break;
	case ACC_KEY(5, 'c', '2'): i = CRC32; break;
	case ACC_KEY(5, 'f', 'e'): i = FSIZE; break;
	case ACC_KEY(5, 'm', 'e'): i = MTIME; break;
	default: return NKEY;
	}
	return memcmp(k.p, keys[i], k.n) == 0 ? i : NKEY;
}

static void
collect(const struct acc_rec *r, const char *prefix, const struct acc_val *v[NKEY + 1])
{
	uint32_t np = (uint32_t)strlen(prefix);
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_str k = r->f[i].key;
		if (k.n < np + 3 || (np > 0 && (k.p[0] != prefix[0] || memcmp(k.p, prefix, np) != 0)))
			continue;
		int j = which((struct acc_str){k.p + np, k.n - np});
		if (v[j] == NULL)
			v[j] = &r->f[i].v;
	}
}

static int
wrong(struct acc_err *e, int key)
{
	return acc_fail(e, ACC_EFORMAT, "field '%s' is missing or of the wrong type",
		keys[key]);
}

/* An integer of at least 0; an absent one is `dflt`, where that is allowed. */
static bool
size(const struct acc_val *v, int64_t dflt, uint64_t *out)
{
	int64_t i = dflt;
	if (v != NULL && !acc_as_int(v, &i))
		return false;
	*out = (uint64_t)i;
	return i >= 0;
}

static int
layout(const struct acc_val *v[NKEY], struct acc_ref *ref, struct acc_err *e)
{
	struct acc_str s;
	if (v[DTYPE] != NULL) {
		if (!acc_as_text(v[DTYPE], &s))
			return wrong(e, DTYPE);
		ref->dtype = acc_dtype_find(s);
	}
	if (v[SHAPE] != NULL) {
		if (v[SHAPE]->type != ACC_V_INTS || v[SHAPE]->n > ACC_MAXDIM)
			return wrong(e, SHAPE);
		ref->ndim = v[SHAPE]->n;
		if (ref->ndim > 0)
			memcpy(ref->shape, v[SHAPE]->ints, ref->ndim * sizeof *ref->shape);
	}
	if (v[STRIDE] != NULL) {
		if (v[STRIDE]->type != ACC_V_INTS || v[STRIDE]->n != ref->ndim)
			return wrong(e, STRIDE);
		ref->strided = true;
		if (ref->ndim > 0)
			memcpy(ref->stride, v[STRIDE]->ints, ref->ndim * sizeof *ref->stride);
	}
	if (!size(v[OFFSET], 0, &ref->first))
		return wrong(e, OFFSET);
	if (v[ORDER] != NULL) {
		if (!acc_as_text(v[ORDER], &s) ||
			!(acc_str_is(s, "big") || acc_str_is(s, "little")))
			return wrong(e, ORDER);
		ref->big_endian = acc_str_is(s, "big");
	}
	return 0;
}

static int
storage(const struct acc_val *v[NKEY], struct acc_ref *ref, struct acc_err *e)
{
	struct acc_str s;
	uint64_t crc;
	if (!acc_as_text(v[FILE_], &ref->file) || ref->file.n == 0)
		return wrong(e, FILE_);
	if (!size(v[OFF], -1, &ref->off))
		return wrong(e, OFF);
	if (!size(v[LEN], -1, &ref->len))
		return wrong(e, LEN);
	if (!size(v[FSIZE], -1, &ref->fsize))
		return wrong(e, FSIZE);
	if (!acc_as_int(v[MTIME], &ref->mtime_ns))
		return wrong(e, MTIME);
	if (v[CRC32] != NULL) {
		if (!size(v[CRC32], -1, &crc) || crc > UINT32_MAX)
			return wrong(e, CRC32);
		ref->has_crc = true;
		ref->crc32 = (uint32_t)crc;
	}
	if (v[ENC] != NULL) {
		if (!acc_as_text(v[ENC], &s))
			return wrong(e, ENC);
		for (int i = ACC_DEFLATE; i <= ACC_MSCKPT; i++)
			if (acc_str_is(s, encodings[i]))
				ref->enc = (enum acc_enc)i;
		if (ref->enc == ACC_STORED)
			return wrong(e, ENC);
		if (!size(v[CLEN], -1, &ref->clen))
			return wrong(e, CLEN);
	}
	return 0;
}

int
acc_ref_get(const struct acc_rec *r, const char *prefix, struct acc_ref *ref, struct acc_err *e)
{
	const struct acc_val *v[NKEY + 1] = {0};
	*ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	collect(r, prefix, v);
	int rc = layout(v, ref, e);
	if (rc < 0 || v[FILE_] == NULL)
		return rc;
	rc = storage(v, ref, e);
	if (rc == 0)
		rc = acc_ref_check(ref, e);
	return rc < 0 ? rc : 1;
}
