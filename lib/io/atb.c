#include "io/atb.h"

#include "acc/file.h"

/* A dozen short lines. */
enum { HEAD_LIMIT = 16384 };

static enum acc_dtype
dtype(int64_t acl)
{
	static const struct {
		uint8_t acl;
		int8_t dtype;
	} rows[] = {{0, ACC_F32}, {1, ACC_F16}, {2, ACC_I8}, {3, ACC_I32}, {4, ACC_U8},
		{6, ACC_I16}, {7, ACC_U16}, {8, ACC_U32}, {9, ACC_I64}, {10, ACC_U64},
		{11, ACC_F64}, {12, ACC_BOOL}, {16, ACC_C64}, {17, ACC_C128}, {27, ACC_BF16},
		{33, ACC_C32}, {34, ACC_HIF8}, {35, ACC_F8E5M2}, {36, ACC_F8E4M3},
		{37, ACC_F8E8M0}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].acl == acl)
			return (enum acc_dtype)rows[i].dtype;
	return ACC_NODTYPE;
}

/* The next line, without its end; false: there is none. */
static bool
line(const uint8_t *p, size_t n, size_t *at, struct acc_str *key, struct acc_str *value)
{
	const uint8_t *start = p + *at, *lf = memchr(start, '\n', n - *at), *eq;
	if (lf == NULL)
		return false;
	*at = (size_t)(lf - p) + 1;
	eq = memchr(start, '=', (size_t)(lf - start));
	if (eq == NULL)
		return false;
	*key = (struct acc_str){(const char *)start, (uint32_t)(eq - start)};
	*value = (struct acc_str){(const char *)eq + 1, (uint32_t)(lf - eq - 1)};
	return true;
}

bool
acc_atb_is(const uint8_t *p, size_t n)
{
	struct acc_str key, value;
	size_t at = 0;
	bool dtyped = false;
	while (at < n && line(p, n, &at, &key, &value)) {
		if (acc_str_is(key, "$End"))
			return dtyped;
		dtyped |= acc_str_is(key, "dtype");
	}
	return false;
}

/* "2,16"; nothing for a scalar. */
static bool
dims(struct acc_str s, struct acc_ref *ref)
{
	ref->ndim = 0;
	if (s.n == 0)
		return true;
	for (uint32_t i = 0; i <= s.n; i++) {
		uint32_t n = 0;
		while (i + n < s.n && s.p[i + n] != ',')
			n++;
		if (ref->ndim == ACC_MAXDIM ||
			!acc_str_int((struct acc_str){s.p + i, n}, &ref->shape[ref->ndim]) ||
			ref->shape[ref->ndim] < 0)
			return false;
		ref->ndim++;
		i += n;
	}
	return true;
}

struct head {
	bool has_dtype, has_dims, has_object, ends;
	int64_t object[2]; /* offset and length of the one object */
};

static int
entry(struct head *h, struct acc_ref *ref, struct acc_atb *a, struct acc_str key,
	struct acc_str value, struct acc_err *e)
{
	if (acc_str_is(key, "dtype") && !h->has_dtype) {
		h->has_dtype = acc_str_int(value, &a->dtype);
		return h->has_dtype ? 0 : acc_fail(e, ACC_EFORMAT, "ATB: dtype is no number");
	}
	if (acc_str_is(key, "dims") && !h->has_dims) {
		h->has_dims = dims(value, ref);
		return h->has_dims ? 0 : acc_fail(e, ACC_EFORMAT, "ATB: dims are no numbers");
	}
	if (acc_str_is(key, "format"))
		return acc_str_int(value, &a->format)
			       ? 0
			       : acc_fail(e, ACC_EFORMAT, "ATB: format is no number");
	if (acc_str_is(key, "data"))
		return acc_fail(e, ACC_EUNSUP, "ATB: its elements are in another file");
	if (!acc_str_starts(key, "$Object.") || acc_str_is(key, "$Object.Count") ||
		acc_str_is(key, "$Object.Length"))
		return acc_str_starts(key, "$")
			       ? 0
			       : acc_fail(e, ACC_EFORMAT,
					 "ATB: a line that is not known, or twice");
	const char *comma = memchr(value.p, ',', value.n);
	uint32_t n = comma == NULL ? 0 : (uint32_t)(comma - value.p);
	if (h->has_object)
		return acc_fail(e, ACC_EUNSUP, "ATB: more than one object");
	h->has_object = acc_str_int((struct acc_str){value.p, n}, &h->object[0]) &&
			acc_str_int((struct acc_str){value.p + n + 1, value.n - n - 1},
				&h->object[1]);
	return h->has_object ? 0 : acc_fail(e, ACC_EFORMAT, "ATB: an object without a place");
}

static int
parse(const uint8_t *p, size_t n, struct head *h, struct acc_ref *ref, struct acc_atb *a,
	struct acc_err *e)
{
	struct acc_str key, value;
	size_t at = 0;
	while (!h->ends && at < n) {
		if (!line(p, n, &at, &key, &value))
			return acc_fail_at(e, ACC_EFORMAT, at, "ATB: the head has no end");
		h->ends = acc_str_is(key, "$End");
		int rc = h->ends ? 0 : entry(h, ref, a, key, value, e);
		if (rc < 0)
			return rc;
	}
	if (!h->ends || !h->has_dtype || !h->has_dims)
		return acc_fail(e, ACC_EFORMAT, "ATB: dtype, dims or $End is missing");
	ref->off = at;
	return 0;
}

/* Are the bytes what the head says? $Object.data's place is within what follows the head; it may
 * only be all of it. */
static int
check(const struct head *h, struct acc_ref *ref, const struct acc_atb *a, uint64_t size,
	struct acc_err *e)
{
	uint64_t count, need = 0;
	ref->dtype = dtype(a->dtype);
	ref->len = size - ref->off;
	if (ref->dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "ATB: elements of type %lld are not decoded",
			(long long)a->dtype);
	if (!acc_count(ref->shape, ref->ndim, &count) ||
		__builtin_mul_overflow(count, acc_dtype_of(ref->dtype)->size, &need) ||
		need != ref->len || (h->has_object && h->object[0] != 0))
		return acc_fail_at(e, need > ref->len ? ACC_ETRUNC : ACC_EFORMAT, ref->off,
			"ATB: %llu bytes are not what dtype and dims say",
			(unsigned long long)ref->len);
	return acc_ref_check(ref, e);
}

int
acc_atb_read(int fd, struct acc_ref *ref, struct acc_atb *a, struct acc_err *e)
{
	uint8_t p[HEAD_LIMIT];
	struct acc_file_info info;
	struct head h = {0};
	*ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	*a = (struct acc_atb){.dtype = -1, .format = -1};
	int rc = acc_file_stat(fd, &info, e);
	if (rc < 0)
		return rc;
	size_t n = info.size < sizeof p ? (size_t)info.size : sizeof p;
	rc = acc_file_pread(fd, p, n, 0, e);
	if (rc == 0)
		rc = parse(p, n, &h, ref, a, e);
	if (rc == 0)
		rc = check(&h, ref, a, info.size, e);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	ref->fsize = info.size;
	ref->mtime_ns = info.mtime_ns;
	return rc;
}
