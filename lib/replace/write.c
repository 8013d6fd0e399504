/* One .npy file of a tensor by reference. */
#include "replace/replace.h"
#include "acc/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_BYTES = 255 };

const char *
acc_replace_file(struct acc_arena *m, const char *name)
{
	static const char end[] = ".npy", hex[] = "0123456789ABCDEF",
			  letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.:+-,=@";
	char out[NAME_BYTES + 1];
	size_t n = 0;
	for (const char *s = name; *s != '\0'; s++) {
		const unsigned char c = (unsigned char)*s;
		const bool plain = strchr(letters, c) != NULL && (c != '.' || s > name);
		if (n + (plain ? 1 : 3) + sizeof end > sizeof out)
			return NULL;
		if (plain) {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '%';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	memcpy(out + n, end, sizeof end);
	return acc_arena_copy(m, out, n + sizeof end - 1);
}

/* numpy's name of a dtype; NULL: it has none. */
static const char *
descr(enum acc_dtype t)
{
	static const struct {
		enum acc_dtype t;
		const char *name;
	} names[] = {{ACC_F64, "<f8"}, {ACC_F32, "<f4"}, {ACC_F16, "<f2"}, {ACC_I64, "<i8"},
		{ACC_I32, "<i4"}, {ACC_I16, "<i2"}, {ACC_I8, "|i1"}, {ACC_U64, "<u8"},
		{ACC_U32, "<u4"}, {ACC_U16, "<u2"}, {ACC_U8, "|u1"}, {ACC_BOOL, "|b1"},
		{ACC_C64, "<c8"}, {ACC_C128, "<c16"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].t == t)
			return names[i].name;
	return NULL;
}

/* What the file holds: the bench's own, or what its values are exactly, or are rounded to by an engine in f32. */
static enum acc_dtype
dtype_of(const struct feed *f)
{
	const struct acc_dtype_info *a = acc_dtype_of(f->dtype), *b = acc_dtype_of(f->ref.dtype);
	if (f->dtype == f->ref.dtype && descr(f->dtype) != NULL)
		return f->dtype;
	if (b->cls == 'F')
		return f->dtype == ACC_F64 ? ACC_F64 : ACC_F32;
	if (a->cls == 'F' && b->size <= 2)
		return ACC_F32;
	return f->ref.dtype;
}

static int
put_header(int fd, const struct feed *f, enum acc_dtype t, struct acc_err *e)
{
	char text[4096], head[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
	int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (",
		descr(t));
	for (uint32_t d = 0; d < f->ndim; d++)
		n += snprintf(text + n, sizeof text - (size_t)n, "%lld,%s", (long long)f->shape[d],
			d + 1 < f->ndim ? " " : "");
	n += snprintf(text + n, sizeof text - (size_t)n, "), }");
	while ((sizeof head + (size_t)n + 1) % 64 != 0)
		text[n++] = ' ';
	text[n++] = '\n';
	head[8] = (char)(n & 255);
	head[9] = (char)(n >> 8);
	int rc = acc_file_write(fd, head, sizeof head, e);
	return rc < 0 ? rc : acc_file_write(fd, text, (size_t)n, e);
}

struct room {
	uint8_t own[ACC_CHUNK * 16];
	union {
		float f32[ACC_CHUNK];
		double f64[ACC_CHUNK];
	} as;
};

static int
put_elements(int fd, struct acc_pay *p, struct feed *f, enum acc_dtype t, struct acc_err *e)
{
	const uint64_t count = acc_pay_count(p);
	const size_t size = acc_dtype_of(f->ref.dtype)->size;
	struct room *r = malloc(sizeof *r);
	int rc = r == NULL ? acc_nomem(e) : 0;
	for (uint64_t at = 0; rc == 0 && at < count; at += ACC_CHUNK) {
		const size_t n = count - at < ACC_CHUNK ? (size_t)(count - at) : ACC_CHUNK;
		const void *v;
		rc = acc_pay_read(p, at, n, r->own, &v, e);
		if (rc < 0)
			break;
		for (size_t i = 0; t != f->ref.dtype && i < n; i++) {
			const double x = acc_load_f64(f->ref.dtype, (const uint8_t *)v + i * size);
			if (t == ACC_F64)
				r->as.f64[i] = x;
			else
				r->as.f32[i] = (float)x;
		}
		if (t != f->ref.dtype)
			v = &r->as;
		rc = acc_file_write(fd, v, n * acc_dtype_of(t)->size, e);
	}
	free(r);
	return rc;
}

int
acc_replace_write(struct acc_roots *roots, struct feed *f, int dirfd, struct acc_err *e)
{
	const enum acc_dtype t = dtype_of(f);
	if (descr(t) == NULL)
		return acc_fail(e, ACC_EUNSUP, "%s: .npy has no %s", f->key, acc_dtype_of(t)->name);
	struct acc_pay *p = acc_pay_open(roots, f->src, &f->ref, e);
	if (p == NULL)
		return e->code;
	const int fd = openat(dirfd, f->file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		0666);
	int rc = fd < 0 ? acc_fail(e, ACC_EIO, "%s:", f->file) : put_header(fd, f, t, e);
	if (rc == 0)
		rc = put_elements(fd, p, f, t, e);
	if (fd >= 0 && close(fd) < 0 && rc == 0)
		rc = acc_fail(e, ACC_EIO, "%s:", f->file);
	if (fd >= 0 && rc < 0)
		unlinkat(dirfd, f->file, 0);
	f->bytes = acc_pay_count(p) * acc_dtype_of(t)->size;
	acc_pay_close(p);
	return rc;
}
