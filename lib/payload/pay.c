/* The bytes of one tensor. Files are read: one that shrinks is then a short read and not a
 * signal. Only a pool that was told so maps large ones. */
#include "payload/pay.h"

#include "io/base64.h"
#include "io/crc.h"

#include <stdlib.h>
#include <unistd.h>

/* A compressed array that is not row-major is inflated into memory; so is one that is text. */
enum { MAX_INFLATED = 8 << 20 };
/* Below this, mapping costs more than copying. */
enum { MIN_MAPPED = 1 << 20 };

struct acc_pay {
	int fd;
	struct acc_ref ref; /* `file` is not kept */
	char name[256];     /* for messages */
	uint64_t count;
	size_t size;
	bool plain; /* row-major without gaps, in the file or inflated */
	struct acc_strided *strided;
	struct acc_pieces *pieces;
	struct acc_parted *parts;
	struct acc_scaled *scaled;
	struct acc_deflated *deflated;
	uint64_t next;   /* where the deflated one stands */
	uint32_t before; /* CRC-32 of what stands before its first element */
	uint64_t summed; /* elements that acc_pay_read gave in order, from the first on */
	uint32_t crc;    /* of them */
	struct acc_mapped *mapped;
	bool ours;                 /* payload that came in the stream: it grows meanwhile */
	struct acc_file_info info; /* of the file as it was opened */
};

static int
holds(const struct acc_ref *r, const struct acc_file_info *now, struct acc_err *e)
{
	const uint64_t len = r->enc == ACC_STORED ? r->len : r->clen;
	if (r->off > now->size || len > now->size - r->off)
		return acc_fail_at(e, ACC_ETRUNC, now->size, "ends before its tensor does");
	return 0;
}

int
acc_pay_check(const struct acc_ref *r, const struct acc_file_info *now, bool moved,
	struct acc_err *e)
{
	/* Who made the record has seen the file, and it is still the same. A copied dump has new
	 * times. */
	if (r->fsize != now->size || (!moved && r->mtime_ns != now->mtime_ns))
		return r->fsize == 0 || (!moved && r->mtime_ns == 0)
			       ? acc_fail(e, ACC_EREFUSED,
					 "refused: its record has no fsize and mtime of it")
			       : acc_fail(e, ACC_EFORMAT,
					 "changed since its record was made; read the dump again");
	return holds(r, now, e);
}

static int
check(struct acc_pay *p, bool moved, struct acc_err *e)
{
	int rc = acc_file_stat(p->fd, &p->info, e);
	rc = rc < 0 ? rc : acc_ref_check(&p->ref, e);
	if (rc < 0)
		return rc;
	return p->ours ? holds(&p->ref, &p->info, e) : acc_pay_check(&p->ref, &p->info, moved, e);
}

/* Read UTF-8, write bytes. */
static int
read_latin1(const struct acc_pay *p, uint8_t *out, struct acc_err *e)
{
	size_t n = (size_t)p->ref.clen, at = 0, k = 0;
	uint8_t *in = malloc(n > 0 ? n : 1);
	int rc = in == NULL ? acc_nomem(e) : acc_file_pread(p->fd, in, n, p->ref.off, e);
	for (; rc == 0 && at < n && k < p->ref.len; k++) {
		uint8_t c = in[at++];
		if (c >= 0x80 && (c & 0xfe) == 0xc2 && at < n && (in[at] & 0xc0) == 0x80)
			out[k] = (uint8_t)(c << 6 | (in[at++] & 0x3f));
		else if (c < 0x80)
			out[k] = c;
		else
			break;
	}
	if (rc == 0 && (at != n || k != p->ref.len))
		rc = acc_fail_at(e, ACC_EFORMAT, p->ref.off + at, "not the bytes of its array");
	free(in);
	return rc;
}

static int
read_base64(const struct acc_pay *p, uint8_t *out, struct acc_err *e)
{
	const size_t n = (size_t)p->ref.clen, room = n / 4 * 3;
	char *in = malloc(n > 0 ? n : 1);
	uint8_t *all = malloc(room > 0 ? room : 1);
	int rc = in == NULL || all == NULL ? acc_nomem(e)
					   : acc_file_pread(p->fd, in, n, p->ref.off, e);
	const int64_t got = rc < 0 ? 0 : acc_base64_decode(in, n, all);
	if (rc == 0 && got != (int64_t)p->ref.len)
		rc = acc_fail_at(e, ACC_EFORMAT, p->ref.off, "not the bytes of its array");
	if (rc == 0)
		memcpy(out, all, (size_t)got);
	free(in);
	free(all);
	return rc;
}

static int
read_deflated(const struct acc_pay *p, struct acc_roots *roots, uint8_t *out, struct acc_err *e)
{
	struct acc_deflated *d = acc_deflated_open(roots, &p->ref, p->fd, e);
	int rc = d == NULL ? -1 : acc_deflated_read(d, out, (size_t)p->ref.len, e);
	acc_deflated_close(d);
	return rc;
}

static int
read_pieces(const struct acc_pay *p, uint8_t *out, struct acc_err *e)
{
	struct acc_pieces *x = acc_pieces_open(&p->ref, p->fd, e);
	int rc = x == NULL ? -1 : acc_pieces_read(x, 0, out, (size_t)p->ref.len, e);
	acc_pieces_close(x);
	return rc;
}

/* Decode all of a small array, for strides to walk it. */
static uint8_t *
decode_whole(struct acc_pay *p, struct acc_roots *roots, struct acc_err *e)
{
	const enum acc_enc enc = p->ref.enc;
	const bool spelled = enc == ACC_LATIN1 || enc == ACC_BASE64;
	if (p->ref.len > MAX_INFLATED || (spelled && p->ref.clen > 2 * MAX_INFLATED)) {
		acc_fail(e, ACC_EUNSUP, "a %s, of more than %d MiB",
			enc == ACC_LATIN1   ? "numpy array inside a pickle"
			: enc == ACC_BASE64 ? "array in base64"
			: enc == ACC_MSCKPT ? "tensor in pieces that is not taken in order"
					    : "compressed array that is not row-major",
			MAX_INFLATED >> 20);
		return NULL;
	}
	uint8_t *mem = malloc(p->ref.len > 0 ? (size_t)p->ref.len : 1);
	int rc;
	if (mem == NULL)
		rc = acc_nomem(e);
	else
		rc = enc == ACC_LATIN1   ? read_latin1(p, mem, e)
		     : enc == ACC_BASE64 ? read_base64(p, mem, e)
		     : enc == ACC_MSCKPT ? read_pieces(p, mem, e)
					 : read_deflated(p, roots, mem, e);
	if (rc == 0 && p->ref.has_crc &&
		!acc_crc_is(acc_crc32(0, mem, (size_t)p->ref.len), p->ref.crc32))
		rc = acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match");
	if (rc < 0) {
		free(mem);
		return NULL;
	}
	return mem;
}

/* Elements behind a header in the same compressed member. */
static int
skip_header(struct acc_pay *p, struct acc_err *e)
{
	uint8_t buf[4096];
	int rc = 0;
	for (uint64_t left = p->ref.first * p->size, n; left > 0 && rc == 0; left -= n) {
		n = left < sizeof buf ? left : sizeof buf;
		rc = acc_deflated_read(p->deflated, buf, (size_t)n, e);
		p->before = acc_crc32(p->before, buf, (size_t)n);
	}
	return rc;
}

static int
layout(struct acc_pay *p, struct acc_roots *roots, struct acc_err *e)
{
	const struct acc_ref *r = &p->ref;
	if (p->count == 0) {
		p->plain = true;
		return 0;
	}
	p->plain = !r->strided || (r->block.n == 0 && r->groups.n == 0 &&
					  acc_contiguous(r->shape, r->stride, r->ndim));
	if (p->plain && acc_is_in_order(r->enc)) {
		p->deflated = acc_deflated_open(roots, r, p->fd, e);
		return p->deflated == NULL ? -1 : skip_header(p, e);
	}
	if (p->plain && r->enc == ACC_MSCKPT) {
		p->pieces = acc_pieces_open(r, p->fd, e);
		return p->pieces == NULL ? -1 : 0;
	}
	if (r->enc > ACC_PARTS && (p->scaled = acc_scaled_open(roots, r, p->fd, e)) == NULL)
		return -1;
	p->plain = p->plain && (r->enc == ACC_STORED || r->enc >= ACC_PARTS);
	if (p->plain)
		return 0;
	uint8_t *mem = NULL;
	if (r->enc != ACC_STORED && r->enc < ACC_PARTS && (mem = decode_whole(p, roots, e)) == NULL)
		return -1;
	p->strided = acc_strided_open(r, p->fd, mem, p->parts, p->scaled, e);
	if (p->strided == NULL)
		free(mem);
	return p->strided == NULL ? -1 : 0;
}

static int
open_pay(struct acc_pay *p, struct acc_roots *r, struct acc_str src, struct acc_err *e)
{
	bool moved = false;
	if (!acc_dtype_measured(p->ref.dtype))
		return acc_dtype_fail(p->ref.dtype, e);
	if (p->ref.ndim > ACC_MAXDIM || !acc_count(p->ref.shape, p->ref.ndim, &p->count))
		return acc_fail(e, ACC_EFORMAT, "impossible shape");
	p->size = acc_dtype_of(p->ref.dtype)->size;
	if (p->ref.enc == ACC_PARTS) {
		int rc = acc_ref_check(&p->ref, e);
		p->parts = rc < 0 ? NULL : acc_parted_open(r, &p->ref, e);
		return p->parts == NULL ? -1 : layout(p, r, e);
	}
	if (acc_is_made(p->ref.enc) || p->ref.enc == ACC_CHUNKS) {
		int rc = acc_ref_check(&p->ref, e);
		return rc < 0 ? rc : layout(p, r, e);
	}
	p->fd = acc_roots_file(r, src, e);
	p->ours = p->fd >= 0;
	if (p->fd == -1)
		p->fd = acc_roots_open_file(r, src, p->ref.file, &moved, e);
	if (p->fd < 0)
		return p->fd;
	int rc = check(p, moved, e);
	return rc < 0 ? rc : layout(p, r, e);
}

struct acc_pay *
acc_pay_open(struct acc_roots *r, struct acc_str src, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_pay *p = calloc(1, sizeof *p);
	if (p == NULL) {
		acc_nomem(e);
		return NULL;
	}
	p->fd = -1;
	p->ref = *ref;
	size_t n = ref->file.n < sizeof p->name ? ref->file.n : sizeof p->name - 1;
	if (n > 0)
		memcpy(p->name, ref->file.p + ref->file.n - n, n);
	if (open_pay(p, r, src, e) < 0) {
		if (ref->parts.n == 0)
			acc_err_in(e, p->name);
		acc_pay_close(p);
		return NULL;
	}
	p->ref.file = (struct acc_str){"", 0};
	p->ref.parts = (struct acc_parts){0};
	return p;
}

void
acc_pay_close(struct acc_pay *p)
{
	if (p == NULL)
		return;
	acc_mapped_close(p->mapped);
	acc_strided_close(p->strided);
	acc_deflated_close(p->deflated);
	acc_pieces_close(p->pieces);
	acc_parted_close(p->parts);
	acc_scaled_close(p->scaled);
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

uint64_t
acc_pay_count(const struct acc_pay *p)
{
	return p->count;
}

bool
acc_pay_random(const struct acc_pay *p)
{
	return p->plain && p->deflated == NULL;
}

bool
acc_pay_can_peek(const struct acc_pay *p)
{
	return p->deflated == NULL;
}

bool
acc_pay_whole(const struct acc_pay *p)
{
	const uint64_t all = (p->ref.first + p->count) * p->size;
	return p->plain && p->parts == NULL && (p->ref.first == 0 || p->deflated != NULL) &&
	       all == p->ref.len;
}

uint32_t
acc_pay_before(const struct acc_pay *p)
{
	return p->before;
}

/* Behind each chunk: so nobody can forget it, and a call of the system for each is not felt. */
static int
same(const struct acc_pay *p, uint64_t touched, struct acc_err *e)
{
	if (p->parts != NULL)
		return acc_parted_same(p->parts, touched, e);
	return p->ours || p->fd < 0 ? 0 : acc_file_same(p->fd, &p->info, e);
}

/* What went wrong with a part says which. */
static int
named(const struct acc_pay *p, int rc, struct acc_err *e)
{
	if (p->parts == NULL && p->fd >= 0)
		acc_err_in(e, p->name);
	return rc;
}

/* Elements as they are stored; sum, touched: see acc_parted_read. */
static int
get(struct acc_pay *p, uint64_t first, size_t n, bool sum, uint64_t *touched, void *out,
	struct acc_err *e)
{
	if (n > p->count || first > p->count - n)
		return acc_fail(e, ACC_EUSAGE, "elements that the tensor does not have");
	if (n == 0)
		return 0;
	if (p->deflated != NULL) {
		if (first != p->next)
			return acc_fail(e, ACC_EUSAGE, "compressed data is read in order");
		p->next += n;
		return acc_deflated_read(p->deflated, out, n * p->size, e);
	}
	if (p->pieces != NULL)
		return acc_pieces_read(p->pieces, (p->ref.first + first) * p->size, out,
			n * p->size, e);
	if (!p->plain)
		return acc_strided_read(p->strided, first, n, out, e);
	if (p->parts != NULL)
		return acc_parted_read(p->parts, p->ref.first + first, n, sum, touched, out, e);
	if (p->scaled != NULL)
		return acc_scaled_read(p->scaled, p->ref.first + first, n, out, e);
	return acc_file_pread(p->fd, out, n * p->size,
		p->ref.off + (p->ref.first + first) * p->size, e);
}

int
acc_pay_fetch(struct acc_pay *p, uint64_t first, size_t n, void *out, struct acc_err *e)
{
	uint64_t touched = 0;
	int rc = get(p, first, n, true, &touched, out, e);
	rc = rc < 0 ? rc : same(p, touched, e);
	return rc < 0 ? named(p, rc, e) : 0;
}

int
acc_pay_sums(const struct acc_pay *p, struct acc_err *e)
{
	return p->parts == NULL ? 0 : acc_parted_sums(p->parts, e);
}

static int
peek(struct acc_pay *p, uint64_t first, size_t n, uint64_t *touched, void *out, struct acc_err *e)
{
	int rc = 0;
	if (p->plain)
		return get(p, first, n, false, touched, out, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = acc_strided_peek(p->strided, first + i, (uint8_t *)out + i * p->size, e);
	return rc;
}

/* What was peeked at, if the files are as they were. */
static int
peeked(const struct acc_pay *p, int rc, uint64_t touched, void *out, size_t n, struct acc_err *e)
{
	rc = rc < 0 ? rc : same(p, touched, e);
	if (rc < 0)
		return named(p, rc, e);
	acc_pay_native(p, out, n);
	return 0;
}

int
acc_pay_peek(struct acc_pay *p, uint64_t first, size_t n, void *out, struct acc_err *e)
{
	uint64_t touched = 0;
	int rc = peek(p, first, n, &touched, out, e);
	return peeked(p, rc, touched, out, n, e);
}

int
acc_pay_peek_each(struct acc_pay *p, const uint64_t *at, size_t n, void *out, struct acc_err *e)
{
	uint64_t touched = 0;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = peek(p, at[i], 1, &touched, (uint8_t *)out + i * p->size, e);
	return peeked(p, rc, touched, out, n, e);
}

void
acc_pay_map(struct acc_pay *p)
{
	if (acc_pay_random(p) && p->pieces == NULL && p->parts == NULL && p->scaled == NULL &&
		p->count * p->size >= MIN_MAPPED)
		p->mapped = acc_mapped_open(p->fd, p->ref.off + p->ref.first * p->size,
			p->count * p->size);
}

struct acc_mapped *
acc_pay_mapped(const struct acc_pay *p)
{
	return p->mapped;
}

const uint8_t *
acc_pay_bytes(const struct acc_pay *p, uint64_t first)
{
	return acc_mapped_at(p->mapped, first * p->size);
}

int
acc_pay_intact(const struct acc_pay *p, struct acc_err *e)
{
	if (p->mapped == NULL)
		return 0;
	int rc = acc_mapped_torn(p->mapped)
			 ? acc_fail(e, ACC_ETRUNC, "became shorter while it was read")
			 : same(p, 0, e);
	if (rc < 0)
		acc_err_in(e, p->name);
	return rc;
}

void
acc_pay_done(struct acc_pay *p, uint64_t n)
{
	if (p->mapped != NULL)
		acc_mapped_drop(p->mapped, n * p->size);
}

bool
acc_pay_swapped(const struct acc_pay *p)
{
	return p->ref.big_endian == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

void
acc_pay_native(const struct acc_pay *p, void *bytes, size_t n)
{
	uint8_t *b = bytes;
	if (!acc_pay_swapped(p))
		return;
	size_t size = p->size;
	if (acc_dtype_of(p->ref.dtype)->cls == 'C') {
		size /= 2;
		n *= 2;
	}
#define SWAP(bits) \
	for (size_t i = 0; i < n; i++) { \
		uint##bits##_t v; \
		memcpy(&v, b + i * sizeof v, sizeof v); \
		v = __builtin_bswap##bits(v); \
		memcpy(b + i * sizeof v, &v, sizeof v); \
	}
	if (size == 2) {
		SWAP(16)
	} else if (size == 4) {
		SWAP(32)
	} else if (size == 8) {
		SWAP(64)
	}
#undef SWAP
}

int
acc_pay_read(struct acc_pay *p, uint64_t first, size_t n, void *scratch, const void **out,
	struct acc_err *e)
{
	int rc = acc_pay_fetch(p, first, n, scratch, e);
	if (rc < 0)
		return rc;
	if (p->ref.has_crc && first == p->summed && acc_pay_whole(p)) {
		p->crc = acc_crc32(first == 0 ? acc_pay_before(p) : p->crc, scratch, n * p->size);
		p->summed += n;
		if (p->summed == p->count && !acc_crc_is(p->crc, p->ref.crc32)) {
			acc_fail(e, ACC_EFORMAT, "checksum (CRC-32) does not match: damaged data");
			return acc_err_in(e, p->name);
		}
	}
	if (first + n == p->count && (rc = acc_pay_sums(p, e)) < 0)
		return rc;
	acc_pay_native(p, scratch, n);
	*out = scratch;
	return 0;
}
