#include "acc/safetensors.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "acc/file.h"
#include "acc/json.h"
#include "base/order.h"

enum { MAXHEADER = 100000000 };

/* All that the format has, also what safetensors.numpy does not read: behaviour safetensors-numpy-bf16. */
static const struct {
	const char *name;
	enum acc_dtype dtype;
	uint32_t bits;
} dtypes[] = {{"F32", ACC_F32, 32}, {"BF16", ACC_BF16, 16}, {"F16", ACC_F16, 16},
	{"F64", ACC_F64, 64}, {"I64", ACC_I64, 64}, {"I32", ACC_I32, 32}, {"I16", ACC_I16, 16},
	{"I8", ACC_I8, 8}, {"U64", ACC_U64, 64}, {"U32", ACC_U32, 32}, {"U16", ACC_U16, 16},
	{"U8", ACC_U8, 8}, {"BOOL", ACC_BOOL, 8}, {"F8_E4M3", ACC_F8E4M3, 8},
	{"F8_E5M2", ACC_F8E5M2, 8}, {"F8_E8M0", ACC_F8E8M0, 8}, {"F8_E4M3FNUZ", ACC_F8E4M3FNUZ, 8},
	{"F8_E5M2FNUZ", ACC_F8E5M2FNUZ, 8}, {"C64", ACC_C64, 64}, {"F4", ACC_NODTYPE, 4},
	{"F6_E2M3", ACC_NODTYPE, 6}, {"F6_E3M2", ACC_NODTYPE, 6}};

enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };

struct reader {
	struct acc_json *j;
	struct acc_arena *m;
	struct acc_err *e;
	uint64_t data, end;   /* where the data begin, and the file ends */
	struct acc_buf list;  /* of struct acc_st_tensor */
	struct acc_map names; /* -> place in the list */
	struct acc_str parts; /* what __metadata__ says of where parts begin; empty: nothing */
};

bool
acc_st_is(const void *head, size_t n)
{
	const uint8_t *p = head;
	uint64_t len = 0;
	if (n < 10)
		return false;
	for (int i = 7; i >= 0; i--)
		len = len << 8 | p[i];
	return len >= 2 && len <= MAXHEADER && p[8] == '{' &&
	       (p[9] == '"' || p[9] == '}' || p[9] == ' ' || p[9] == '\n');
}

static int
next(struct reader *r, struct acc_json_tok *t)
{
	int rc = acc_json_next(r->j, t, r->e);
	return rc == 0 ? acc_fail(r->e, ACC_ETRUNC, "the header ends too early") : rc;
}

static int
expected(struct reader *r, const struct acc_json_tok *t, const char *what)
{
	return acc_fail_at(r->e, ACC_EFORMAT, t->pos, "the header: expected %s", what);
}

/* Integers that are not negative, up to the end of their array. Their number, or < 0. */
static int
numbers(struct reader *r, int64_t *out, int max)
{
	struct acc_json_tok t;
	int n = 0, rc = next(r, &t);
	if (rc > 0 && t.type != ACC_JSON_ARRAY)
		return expected(r, &t, "an array");
	while (rc > 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_ARRAY_END) {
		if (t.type != ACC_JSON_INT || t.i < 0)
			return expected(r, &t, "a number that is not negative");
		if (n == max)
			return expected(r, &t, "fewer numbers");
		out[n++] = t.i;
	}
	return rc < 0 ? rc : n;
}

static int
element(struct reader *r, struct acc_st_tensor *x, uint32_t *bits)
{
	struct acc_json_tok t;
	int rc = next(r, &t);
	if (rc < 0)
		return rc;
	for (size_t i = 0; t.type == ACC_JSON_STRING && i < sizeof dtypes / sizeof *dtypes; i++)
		if (acc_str_is(t.s, dtypes[i].name)) {
			x->dtype_raw = dtypes[i].name;
			x->dtype = dtypes[i].dtype;
			*bits = dtypes[i].bits;
			return 0;
		}
	return expected(r, &t, "a data type of safetensors");
}

static int
shape(struct reader *r, struct acc_st_tensor *x)
{
	int64_t dim[ACC_MAXDIM];
	int n = numbers(r, dim, ACC_MAXDIM);
	if (n < 0)
		return n;
	x->ndim = (uint32_t)n;
	x->shape = (const int64_t *)acc_arena_copy(r->m, dim, (size_t)n * sizeof *dim);
	return x->shape == NULL ? acc_nomem(r->e) : 0;
}

static int
offsets(struct reader *r, struct acc_st_tensor *x, const struct acc_json_tok *key)
{
	int64_t at[2];
	int n = numbers(r, at, 2);
	if (n < 0)
		return n;
	if (n != 2 || at[0] > at[1] || (uint64_t)at[1] > r->end - r->data)
		return acc_fail_at(r->e, ACC_EFORMAT, key->pos, "data_offsets outside the file");
	x->off = r->data + (uint64_t)at[0];
	x->len = (uint64_t)(at[1] - at[0]);
	return 0;
}

/* Numbers of 4 or 6 bits are their bytes: along the last axis, where a row is whole bytes. */
static int
pack(struct reader *r, struct acc_st_tensor *x, uint32_t bits)
{
	int64_t *shape = acc_alloc(r->m, (x->ndim + 1) * sizeof *shape);
	const uint32_t last = x->ndim == 0 ? 0 : x->ndim - 1;
	if (shape == NULL)
		return acc_nomem(r->e);
	x->dtype = ACC_U8;
	if (x->ndim > 0 && x->shape[last] < INT32_MAX && x->shape[last] * bits % 8 == 0) {
		memcpy(shape, x->shape, x->ndim * sizeof *shape);
		shape[last] = shape[last] * bits / 8;
	} else {
		x->ndim = 1;
		shape[0] = (int64_t)x->len;
	}
	x->shape = shape;
	return 0;
}

/* Do shape and type need just as many bytes? */
static bool
fits(const struct acc_st_tensor *x, uint32_t bits)
{
	uint64_t n;
	return acc_count(x->shape, x->ndim, &n) && !__builtin_mul_overflow(n, bits, &n) &&
	       n % 8 == 0 && n / 8 == x->len;
}

static int
tensor(struct reader *r, struct acc_str name, uint64_t pos)
{
	struct acc_st_tensor x = {.name = name};
	struct acc_json_tok t;
	uint32_t bits = 0;
	int seen = 0, rc = next(r, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return expected(r, &t, "an object with dtype, shape and data_offsets");
	while (rc >= 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_OBJECT_END) {
		int what = acc_str_is(t.s, "dtype")          ? DTYPE
			   : acc_str_is(t.s, "shape")        ? SHAPE
			   : acc_str_is(t.s, "data_offsets") ? OFFSETS
							     : 0;
		if ((seen & what) != 0)
			return expected(r, &t, "each key once");
		seen |= what;
		rc = what == DTYPE     ? element(r, &x, &bits)
		     : what == SHAPE   ? shape(r, &x)
		     : what == OFFSETS ? offsets(r, &x, &t)
				       : acc_json_skip(r->j, r->e);
	}
	if (rc < 0)
		return rc;
	if (seen != (DTYPE | SHAPE | OFFSETS) || !fits(&x, bits))
		return acc_fail_at(r->e, ACC_EFORMAT, pos,
			"'%.100s': its shape and type do not make its length", name.p);
	if (x.dtype == ACC_NODTYPE && (rc = pack(r, &x, bits)) < 0)
		return rc;
	return acc_buf_add(&r->list, &x, sizeof x) < 0 ? acc_nomem(r->e) : 0;
}

/* "__metadata__": text by text. */
static int
metadata(struct reader *r)
{
	struct acc_json_tok t;
	int rc = next(r, &t);
	if (rc > 0 && t.type == ACC_JSON_NULL) /* behaviour mlx-null-metadata */
		return 0;
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return expected(r, &t, "an object");
	while (rc >= 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_OBJECT_END) {
		const bool parts = acc_str_is(t.s, "DCP_SHARDING_INFO");
		if (!parts) {
			rc = acc_json_skip(r->j, r->e);
			continue;
		}
		rc = next(r, &t);
		if (rc > 0 && t.type != ACC_JSON_STRING)
			return expected(r, &t, "text");
		if (rc > 0)
			r->parts = acc_arena_str(r->m, t.s);
		if (rc > 0 && r->parts.p == NULL)
			return acc_nomem(r->e);
	}
	return rc < 0 ? rc : 0;
}

/* The tensor of r->list that a key of DCP_SHARDING_INFO names: {"saved_offsets": [...]}. */
static int
begins(struct reader *r, struct acc_st_tensor *x)
{
	struct acc_json_tok t;
	int64_t at[ACC_MAXDIM];
	int n = -1, rc = next(r, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return expected(r, &t, "an object with saved_offsets");
	while (rc >= 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_OBJECT_END) {
		if (!acc_str_is(t.s, "saved_offsets"))
			rc = acc_json_skip(r->j, r->e);
		else
			rc = n = numbers(r, at, ACC_MAXDIM);
	}
	if (rc < 0 || x == NULL)
		return rc < 0 ? rc : 0;
	for (int i = 0; i < n; i++)
		if ((uint32_t)n != x->ndim || at[i] > INT64_MAX - x->shape[i])
			n = -1;
	if (n < 0)
		return acc_fail(r->e, ACC_EFORMAT,
			"DCP_SHARDING_INFO does not say where '%.100s' begins", x->name.p);
	x->at = (const int64_t *)acc_arena_copy(r->m, at, (size_t)n * sizeof *at);
	return x->at == NULL ? acc_nomem(r->e) : 0;
}

/* Where the parts begin that distributed checkpoints write as files of Hugging Face's. */
static int
parts(struct reader *r)
{
	struct acc_st_tensor *list = (struct acc_st_tensor *)(void *)r->list.p;
	struct acc_json_tok t;
	int fd = memfd_create("acc", MFD_CLOEXEC);
	int rc = fd < 0 ? acc_fail(r->e, ACC_EIO, "no memory file:")
			: acc_file_write(fd, r->parts.p, r->parts.n, r->e);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) < 0)
		rc = acc_fail(r->e, ACC_EIO, "no memory file:");
	if (rc < 0) {
		if (fd >= 0)
			close(fd);
		return rc;
	}
	struct acc_json *whole = r->j;
	r->j = acc_json_open(acc_bytes_open(fd, "", false, r->e), false, r->e);
	rc = r->j == NULL ? ACC_ENOMEM : next(r, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		rc = expected(r, &t, "an object");
	while (rc >= 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_OBJECT_END) {
		const uint64_t *at = acc_map_get(&r->names, t.s);
		rc = begins(r, at == NULL ? NULL : &list[*at]);
	}
	acc_json_close(r->j);
	r->j = whole;
	return rc < 0 ? rc : 0;
}

static int
header(struct reader *r)
{
	struct acc_json_tok t;
	int rc = next(r, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return expected(r, &t, "an object");
	while (rc >= 0 && (rc = next(r, &t)) > 0 && t.type != ACC_JSON_OBJECT_END) {
		uint64_t pos = t.pos;
		size_t had = r->names.n;
		char *name = acc_arena_copy(r->m, t.s.p, t.s.n);
		if (name == NULL || acc_map_put(&r->names, t.s,
					    r->list.n / sizeof(struct acc_st_tensor)) == NULL)
			return acc_nomem(r->e);
		if (r->names.n == had)
			return acc_fail_at(r->e, ACC_EFORMAT, pos, "'%.100s' stands twice", name);
		if (acc_str_is(t.s, "__metadata__"))
			rc = metadata(r);
		else
			rc = tensor(r, (struct acc_str){name, t.s.n}, pos);
	}
	if (rc > 0)
		rc = acc_json_next(r->j, &t, r->e);
	return rc < 0 ? rc : 0;
}

ACC_ORDER_2(by_off, struct acc_st_tensor, off, len)

/* One behind the other, from the first byte of the data to the last. */
static int
settle(struct reader *r, struct acc_st *out)
{
	uint64_t at = r->data;
	out->n = r->list.n / sizeof *out->t;
	out->t = acc_alloc(r->m, r->list.n);
	if (out->t == NULL)
		return acc_nomem(r->e);
	if (out->n > 0) {
		memcpy(out->t, r->list.p, r->list.n);
		qsort(out->t, out->n, sizeof *out->t, by_off);
	}
	for (size_t i = 0; i < out->n; i++) {
		if (out->t[i].off != at)
			return acc_fail_at(r->e, ACC_EFORMAT, at, "'%.100s' %s", out->t[i].name.p,
				out->t[i].off < at ? "overlaps another tensor"
						   : "leaves a hole before it");
		at += out->t[i].len;
	}
	if (at != r->end)
		return acc_fail_at(r->e, ACC_EFORMAT, at,
			"the file goes on for %llu bytes behind its last tensor",
			(unsigned long long)(r->end - at));
	return 0;
}

int
acc_st_read(int fd, struct acc_st *out, struct acc_arena *m, struct acc_err *e)
{
	struct acc_file_info info;
	uint8_t head[9];
	uint64_t n = 0;
	int rc = acc_file_stat(fd, &info, e);
	if (rc == 0)
		rc = acc_file_pread(fd, head, sizeof head, 0, e);
	if (rc < 0)
		return rc;
	for (int i = 7; i >= 0; i--)
		n = n << 8 | head[i];
	if (n > MAXHEADER)
		return acc_fail_at(e, ACC_ELIMIT, 0,
			"a header of %llu bytes: no safetensors, or "
			"damaged",
			(unsigned long long)n);
	if (n > info.size - 8)
		return acc_fail_at(e, ACC_ETRUNC, info.size, "the file ends in its header");
	if (head[8] != '{')
		return acc_fail_at(e, ACC_EFORMAT, 8, "the header does not begin with '{'");
	struct reader r = {.m = m, .e = e, .data = 8 + n, .end = info.size};
	r.j = acc_json_open(acc_bytes_part(fd, "", 8, n, e), false, e);
	rc = r.j == NULL ? -1 : header(&r);
	if (rc == 0 && r.parts.n > 0)
		rc = parts(&r);
	if (rc == 0)
		rc = settle(&r, out);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	acc_json_close(r.j);
	acc_buf_release(&r.list);
	acc_map_release(&r.names);
	return rc;
}
