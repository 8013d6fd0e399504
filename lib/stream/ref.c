#include "acc/stream.h"

#include "io/chunks.h"
#include "io/grid.h"
#include "io/lora.h"
#include "io/quant.h"

static const char *const encodings[] = {"", "deflate", "zstd", "varint", "latin1", "base64",
	"msckpt"};

static const char *
encoding(enum acc_enc enc)
{
	return enc <= ACC_MSCKPT   ? encodings[enc]
	       : enc == ACC_GRID   ? "grid"
	       : enc == ACC_LORA   ? "lora"
	       : enc == ACC_CHUNKS ? "chunks"
				   : acc_quant_of(enc)->name;
}

static int
put_parts(struct acc_rec *r, const struct acc_parts *p)
{
	int rc = acc_add(r, "", "part.src", acc_texts(p->src, p->n));
	rc |= acc_add(r, "", "part.file", acc_texts(p->file, p->n));
	rc |= acc_add(r, "", "part.off", acc_ints(p->off, p->n));
	rc |= acc_add(r, "", "part.len", acc_ints(p->len, p->n));
	if (p->crc32 != NULL)
		rc |= acc_add(r, "", "part.crc32", acc_ints(p->crc32, p->n));
	rc |= acc_add(r, "", "part.fsize", acc_ints(p->fsize, p->n));
	rc |= acc_add(r, "", "part.mtime", acc_ints(p->mtime, p->n));
	return rc | acc_add(r, "", "part.rows", acc_ints(p->rows, p->nrows));
}

int
acc_ref_put(struct acc_rec *r, const struct acc_ref *ref)
{
	int rc = acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(ref->dtype)->name));
	rc |= acc_add(r, "", "shape", acc_ints(ref->shape, ref->ndim));
	if (ref->strided)
		rc |= acc_add(r, "", "stride", acc_ints(ref->stride, ref->ndim));
	if (ref->block.n > 0) {
		const int64_t block[3] = {ref->block.axis, ref->block.n, ref->block.stride};
		rc |= acc_add(r, "", "block", acc_ints(block, 3));
	}
	if (ref->first != 0)
		rc |= acc_add(r, "", "offset", acc_uint(ref->first));
	if (ref->big_endian)
		rc |= acc_add(r, "", "order", acc_ctext("big"));
	if (ref->parts.n > 0)
		rc |= put_parts(r, &ref->parts);
	if (ref->parts.n > 0 && ref->enc != ACC_PARTS)
		rc |= acc_add(r, "", "enc", acc_ctext(encoding(ref->enc)));
	if (ref->file.n == 0)
		return rc < 0 ? ACC_ENOMEM : 0;
	rc |= acc_add(r, "", "file", acc_text(ref->file));
	rc |= acc_add(r, "", "off", acc_uint(ref->off));
	rc |= acc_add(r, "", "len", acc_uint(ref->len));
	if (ref->enc != ACC_STORED) {
		rc |= acc_add(r, "", "enc", acc_ctext(encoding(ref->enc)));
		rc |= acc_add(r, "", "clen", acc_uint(ref->clen));
	}
	if (ref->has_crc)
		rc |= acc_add(r, "", "crc32", acc_int(ref->crc32));
	rc |= acc_add(r, "", "fsize", acc_uint(ref->fsize));
	rc |= acc_add(r, "", "mtime", acc_int(ref->mtime_ns));
	return rc < 0 ? ACC_ENOMEM : 0;
}

bool
acc_ref_is(const struct acc_rec *r)
{
	return acc_get(r, "", "file") != NULL || acc_get(r, "", "part.file") != NULL;
}

/* The fields that make a reference, found in one walk over the record. */
#define X(name, key) key,
static const char *const keys[ACC_REF_N] = {ACC_REF_KEYS(X)};
#undef X

static int
which(struct acc_str k)
{
	int i;
	switch (acc_key(k)) {
	case ACC_KEY(5, 'd', 'e'):
		i = ACC_REF_DTYPE;
		break;
	case ACC_KEY(5, 's', 'e'):
		i = ACC_REF_SHAPE;
		break;
	case ACC_KEY(6, 's', 'e'):
		i = ACC_REF_STRIDE;
		break;
	case ACC_KEY(5, 'b', 'k'):
		i = ACC_REF_BLOCK;
		break;
	case ACC_KEY(6, 'o', 't'):
		i = ACC_REF_OFFSET;
		break;
	case ACC_KEY(5, 'o', 'r'):
		i = ACC_REF_ORDER;
		break;
	case ACC_KEY(4, 'f', 'e'):
		i = ACC_REF_FILE;
		break;
	case ACC_KEY(3, 'o', 'f'):
		i = ACC_REF_OFF;
		break;
	case ACC_KEY(3, 'l', 'n'):
		i = ACC_REF_LEN;
		break;
	case ACC_KEY(3, 'e', 'c'):
		i = ACC_REF_ENC;
		break;
	case ACC_KEY(4, 'c', 'n'):
		i = ACC_REF_CLEN;
		break;
	case ACC_KEY(5, 'c', '2'):
		i = ACC_REF_CRC32;
		break;
	case ACC_KEY(5, 'f', 'e'):
		i = ACC_REF_FSIZE;
		break;
	case ACC_KEY(5, 'm', 'e'):
		i = ACC_REF_MTIME;
		break;
	case ACC_KEY(8, 'p', 'c'):
		i = ACC_REF_PART_SRC;
		break;
	case ACC_KEY(9, 'p', 'e'):
		i = ACC_REF_PART_FILE;
		break;
	case ACC_KEY(8, 'p', 'f'):
		i = ACC_REF_PART_OFF;
		break;
	case ACC_KEY(8, 'p', 'n'):
		i = ACC_REF_PART_LEN;
		break;
	case ACC_KEY(10, 'p', '2'):
		i = ACC_REF_PART_CRC32;
		break;
	case ACC_KEY(10, 'p', 'e'):
		i = k.p[5] == 'f' ? ACC_REF_PART_FSIZE : ACC_REF_PART_MTIME;
		break;
	case ACC_KEY(9, 'p', 's'):
		i = ACC_REF_PART_ROWS;
		break;
	default:
		return ACC_REF_N;
	}
	return memcmp(k.p, keys[i], k.n) == 0 ? i : ACC_REF_N;
}

void
acc_ref_forget(struct acc_rec *r)
{
	for (int i = ACC_REF_STRIDE; i < ACC_REF_N; i++)
		acc_del(r, "", keys[i]);
}

static void
collect(const struct acc_rec *r, const char *prefix, const struct acc_val *v[ACC_REF_N + 1])
{
	uint32_t np = (uint32_t)strlen(prefix);
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_str k = r->f[i].key;
		if (np > 0 && acc_is_shared(k)) {
			int j = which((struct acc_str){k.p + 3, k.n - 3});
			if (v[j] == NULL)
				v[j] = &r->f[i].v;
			continue;
		}
		if (k.n < np + 3 ||
			(np > 0 && (k.p[0] != prefix[0] || memcmp(k.p, prefix, np) != 0)))
			continue;
		int j = which((struct acc_str){k.p + np, k.n - np});
		if (v[j] == NULL)
			v[j] = &r->f[i].v;
	}
}

static int
wrong(struct acc_err *e, int key)
{
	return acc_fail(e, ACC_EFORMAT, "field '%s' is missing or of the wrong type", keys[key]);
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
layout(const struct acc_val *const v[ACC_REF_N], struct acc_ref *ref, struct acc_err *e)
{
	struct acc_str s;
	if (v[ACC_REF_DTYPE] != NULL) {
		if (!acc_as_text(v[ACC_REF_DTYPE], &s))
			return wrong(e, ACC_REF_DTYPE);
		ref->dtype = acc_dtype_find(s);
	}
	if (v[ACC_REF_SHAPE] != NULL) {
		if (v[ACC_REF_SHAPE]->type != ACC_V_INTS || v[ACC_REF_SHAPE]->n > ACC_MAXDIM)
			return wrong(e, ACC_REF_SHAPE);
		ref->ndim = v[ACC_REF_SHAPE]->n;
		if (ref->ndim > 0)
			memcpy(ref->shape, v[ACC_REF_SHAPE]->ints, ref->ndim * sizeof *ref->shape);
	}
	if (v[ACC_REF_STRIDE] != NULL) {
		if (v[ACC_REF_STRIDE]->type != ACC_V_INTS || v[ACC_REF_STRIDE]->n != ref->ndim)
			return wrong(e, ACC_REF_STRIDE);
		ref->strided = true;
		if (ref->ndim > 0)
			memcpy(ref->stride, v[ACC_REF_STRIDE]->ints,
				ref->ndim * sizeof *ref->stride);
	}
	if (v[ACC_REF_BLOCK] != NULL) {
		const struct acc_val *b = v[ACC_REF_BLOCK];
		if (b->type != ACC_V_INTS || b->n != 3 || b->ints[0] < 0 ||
			b->ints[0] >= ref->ndim || b->ints[1] <= 0 || !ref->strided)
			return wrong(e, ACC_REF_BLOCK);
		ref->block = (struct acc_block){(uint32_t)b->ints[0], b->ints[1], b->ints[2]};
	}
	if (!size(v[ACC_REF_OFFSET], 0, &ref->first))
		return wrong(e, ACC_REF_OFFSET);
	if (v[ACC_REF_ORDER] != NULL) {
		if (!acc_as_text(v[ACC_REF_ORDER], &s) ||
			!(acc_str_is(s, "big") || acc_str_is(s, "little")))
			return wrong(e, ACC_REF_ORDER);
		ref->big_endian = acc_str_is(s, "big");
	}
	return 0;
}

static int
storage(const struct acc_val *const v[ACC_REF_N], struct acc_ref *ref, struct acc_err *e)
{
	struct acc_str s;
	uint64_t crc;
	if (!acc_as_text(v[ACC_REF_FILE], &ref->file) || ref->file.n == 0)
		return wrong(e, ACC_REF_FILE);
	if (!size(v[ACC_REF_OFF], -1, &ref->off))
		return wrong(e, ACC_REF_OFF);
	if (!size(v[ACC_REF_LEN], -1, &ref->len))
		return wrong(e, ACC_REF_LEN);
	if (!size(v[ACC_REF_FSIZE], -1, &ref->fsize))
		return wrong(e, ACC_REF_FSIZE);
	if (!acc_as_int(v[ACC_REF_MTIME], &ref->mtime_ns))
		return wrong(e, ACC_REF_MTIME);
	if (v[ACC_REF_CRC32] != NULL) {
		if (!size(v[ACC_REF_CRC32], -1, &crc) || crc > UINT32_MAX)
			return wrong(e, ACC_REF_CRC32);
		ref->has_crc = true;
		ref->crc32 = (uint32_t)crc;
	}
	if (v[ACC_REF_ENC] != NULL) {
		if (!acc_as_text(v[ACC_REF_ENC], &s))
			return wrong(e, ACC_REF_ENC);
		for (int i = ACC_DEFLATE; i <= ACC_MSCKPT; i++)
			if (acc_str_is(s, encodings[i]))
				ref->enc = (enum acc_enc)i;
		if (ref->enc == ACC_STORED)
			ref->enc = acc_quant_named(s);
		if (ref->enc == ACC_STORED)
			return wrong(e, ACC_REF_ENC);
		if (!size(v[ACC_REF_CLEN], -1, &ref->clen))
			return wrong(e, ACC_REF_CLEN);
	}
	return 0;
}

static bool
texts(const struct acc_val *v, uint32_t n, const struct acc_str **out)
{
	if (v == NULL || v->type != ACC_V_TEXTS || v->n != n)
		return false;
	*out = v->texts;
	return true;
}

static bool
ints(const struct acc_val *v, uint32_t n, const int64_t **out)
{
	if (v == NULL || v->type != ACC_V_INTS || v->n != n)
		return false;
	*out = v->ints;
	return true;
}

/* Are its elements those of its parts, or made of them? */
static int
made(const struct acc_val *v, enum acc_enc *enc, struct acc_err *e)
{
	struct acc_str s = ACC_STR("");
	if (v != NULL && !acc_as_text(v, &s))
		return wrong(e, ACC_REF_ENC);
	for (int i = ACC_CHUNKS; i <= ACC_LORA; i++)
		if (i == ACC_PARTS ? s.n == 0 : acc_str_is(s, encoding((enum acc_enc)i))) {
			*enc = (enum acc_enc)i;
			return 0;
		}
	return wrong(e, ACC_REF_ENC);
}

static int
chunks(const struct acc_ref *ref, uint64_t *n, struct acc_err *e)
{
	struct acc_chunks c = {.count = 0};
	int rc = acc_chunks_read(ref, &c, e);
	*n = c.count;
	return rc;
}

static int
parts(const struct acc_val *const v[ACC_REF_N], struct acc_ref *ref, struct acc_err *e)
{
	struct acc_parts *p = &ref->parts;
	const struct {
		int key;
		const int64_t **to;
	} number[] = {{ACC_REF_PART_OFF, &p->off}, {ACC_REF_PART_LEN, &p->len},
		{ACC_REF_PART_FSIZE, &p->fsize}, {ACC_REF_PART_MTIME, &p->mtime},
		{ACC_REF_PART_CRC32, &p->crc32}};
	uint64_t n;
	p->n = v[ACC_REF_PART_FILE]->n;
	if (!texts(v[ACC_REF_PART_FILE], p->n, &p->file) || p->n == 0)
		return wrong(e, ACC_REF_PART_FILE);
	if (!texts(v[ACC_REF_PART_SRC], p->n, &p->src))
		return wrong(e, ACC_REF_PART_SRC);
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		if (!ints(v[number[i].key], p->n, number[i].to) &&
			(number[i].key != ACC_REF_PART_CRC32 || v[number[i].key] != NULL))
			return wrong(e, number[i].key);
	p->nrows = v[ACC_REF_PART_ROWS] == NULL ? 0 : v[ACC_REF_PART_ROWS]->n;
	if (!ints(v[ACC_REF_PART_ROWS], p->nrows, &p->rows))
		return wrong(e, ACC_REF_PART_ROWS);
	if (ref->dtype == ACC_NODTYPE)
		return wrong(e, ACC_REF_DTYPE);
	const uint64_t size = acc_dtype_of(ref->dtype)->size;
	struct acc_parts places = *p;
	int rc = made(v[ACC_REF_ENC], &ref->enc, e);
	places.nrows = ref->enc == ACC_PARTS ? p->nrows : 0;
	if (rc == 0)
		rc = acc_parts_count(&places, size, &n, e);
	if (rc == 0 && ref->enc != ACC_PARTS)
		rc = ref->enc == ACC_GRID   ? acc_grid_read(p, &(struct acc_grid){0}, &n, e)
		     : ref->enc == ACC_LORA ? acc_lora_read(p, &(struct acc_lora){0}, &n, e)
					    : chunks(ref, &n, e);
	if (rc < 0)
		return rc;
	ref->len = n * size;
	/* What may be measured once for all is the same file. */
	ref->fsize = (uint64_t)p->fsize[0];
	return rc;
}

int
acc_ref_of(const struct acc_val *const v[ACC_REF_N], struct acc_ref *ref, struct acc_err *e)
{
	*ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	int rc = layout(v, ref, e);
	if (rc < 0 || (v[ACC_REF_FILE] == NULL && v[ACC_REF_PART_FILE] == NULL))
		return rc;
	rc = v[ACC_REF_FILE] != NULL ? storage(v, ref, e) : parts(v, ref, e);
	if (rc == 0)
		rc = acc_ref_check(ref, e);
	return rc < 0 ? rc : 1;
}

int
acc_ref_get(const struct acc_rec *r, const char *prefix, struct acc_ref *ref, struct acc_err *e)
{
	const struct acc_val *v[ACC_REF_N + 1] = {0};
	collect(r, prefix, v);
	return acc_ref_of(v, ref, e);
}
