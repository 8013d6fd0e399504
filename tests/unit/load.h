/* load.h - all tensors of a dump, elements and all, as a filter would read them */
#ifndef LOAD_H
#define LOAD_H

#include <stdlib.h>
#include <string.h>

#include "acc/dump.h"
#include "acc/stream.h"
#include "io/crc.h"
#include "payload/pay.h"

struct loaded {
	char name[64];
	enum acc_dtype dtype;
	uint32_t ndim;
	int64_t shape[8];
	uint8_t *bytes; /* row-major, native */
	size_t n;
};

struct load {
	struct acc_roots *roots;
	struct loaded *t;
	size_t n;
	unsigned troubles; /* said, of records, or of their elements */
	char text[256];    /* the first of them */
};

__attribute__((unused)) static void
load_trouble(void *arg, const struct acc_err *e)
{
	struct load *l = arg;
	if (l->troubles++ == 0)
		acc_err_text(e, l->text, sizeof l->text);
}

/* The elements, and the container's checksum where it is one of the whole tensor. */
static int
load_bytes(struct load *l, const struct acc_rec *r, const struct acc_ref *ref, struct loaded *t,
	struct acc_err *e)
{
	struct acc_pay *p = acc_pay_open(l->roots, acc_get_text(r, "", "src"), ref, e);
	if (p == NULL)
		return -1;
	const size_t size = acc_dtype_of(ref->dtype)->size;
	const uint64_t count = acc_pay_count(p);
	const bool check = ref->has_crc && acc_pay_whole(p);
	uint32_t crc = acc_pay_before(p);
	int rc = count > 1 << 20 ? acc_fail(e, ACC_ELIMIT, "too large for this test") : 0;
	t->n = rc == 0 ? (size_t)count * size : 0;
	t->bytes = malloc(t->n + 1);
	for (uint64_t at = 0, n; at < count && rc == 0; at += n) {
		n = count - at < ACC_CHUNK ? count - at : ACC_CHUNK;
		uint8_t *to = t->bytes + at * size;
		rc = acc_pay_fetch(p, at, (size_t)n, to, e);
		if (rc == 0 && check)
			crc = acc_crc32(crc, to, (size_t)n * size);
		acc_pay_native(p, to, (size_t)n);
	}
	if (rc == 0 && check && crc != ref->crc32)
		rc = acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match");
	acc_pay_close(p);
	return rc;
}

static int
load_emit(void *arg, struct acc_rec *r)
{
	struct load *l = arg;
	struct acc_ref ref;
	struct acc_err e = {0};
	if (acc_rec_is(r, "source"))
		return acc_roots_add(l->roots, r, NULL);
	if (!acc_rec_is(r, "tensor") || acc_get(r, "", "err") != NULL)
		return 0;
	struct loaded t = {.dtype = ACC_NODTYPE};
	int rc = acc_ref_get(r, "", &ref, &e);
	if (rc <= 0 || ref.ndim > 8)
		abort(); /* a record without err refers to what can be read */
	struct acc_str name = acc_get_text(r, "", "name");
	snprintf(t.name, sizeof t.name, "%.*s", ACC_PRS(name));
	t.dtype = ref.dtype;
	t.ndim = ref.ndim;
	memcpy(t.shape, ref.shape, ref.ndim * sizeof *ref.shape);
	if (load_bytes(l, r, &ref, &t, &e) < 0) {
		load_trouble(l, &e);
		free(t.bytes);
		return 0;
	}
	size_t cap = l->n;
	l->t = acc_grow(l->t, &cap, l->n + 1, sizeof *l->t, NULL);
	l->t[l->n++] = t;
	return 0;
}

/* Read it; what fails is counted. */
static void
load_dump(struct load *l, const char *path, const char *format)
{
	struct acc_err e = {0};
	*l = (struct load){.roots = acc_roots_open(NULL)};
	struct acc_dump_ctx *c = acc_dump_open(NULL, load_emit, load_trouble, l, NULL);
	if (acc_dump_read(c, path, format, &e) < 0)
		load_trouble(l, &e);
	acc_dump_close(c);
	acc_roots_close(l->roots);
}

static void
load_free(struct load *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->t[i].bytes);
	free(l->t);
}

#endif
