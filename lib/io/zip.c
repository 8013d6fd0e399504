#include "acc/zip.h"
#include "base/order.h"

#include <stdlib.h>

#include "acc/file.h"
#include "acc/inflate.h"
#include "io/crc.h"

/* A dump holds tens of thousands of small zips, so a file is looked at through two windows
 * that live on the stack: its tail, where the directory is, and the last place that was
 * looked at outside it. */
enum { WINDOW = 4096, MAXCOMMENT = 65535 };
enum { MAXMEMBERS = 1000000 };
/* What a member that is held in memory may inflate to: so much in any case, and so much for each
 * compressed byte. Pickles of weights are 3 to 5 times their deflated bytes (measured: see
 * pickle.c), those of equal numbers 580 times. */
enum { INFLATED_FREE = 16 << 20, INFLATED_PER_BYTE = 16 };

/* Sizes of the fixed parts of records, by the application note of PKWARE (APPNOTE.TXT). */
enum { END = 22, LOCATOR = 20, END64 = 56, CENTRAL = 46, LOCAL = 30 };

struct view {
	int fd;
	uint64_t base, size; /* of the zip within the file */
	struct acc_err *e;
	struct {
		uint64_t off;
		size_t n;
		uint8_t buf[WINDOW];
	} win[2];
};

struct end {
	uint64_t at;           /* of the first end record */
	uint64_t n, size, off; /* of the directory */
};

static uint32_t
get16(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t
get32(const uint8_t *p)
{
	return get16(p) | get16(p + 2) << 16;
}

static uint64_t
get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

static int
fill(struct view *v, int w, uint64_t off, size_t n)
{
	v->win[w].off = off;
	v->win[w].n = 0;
	int rc = acc_file_pread(v->fd, v->win[w].buf, n, v->base + off, v->e);
	if (rc < 0)
		return rc;
	v->win[w].n = n;
	return 0;
}

/* n <= WINDOW bytes at off of the zip, valid until the next call; NULL with v->e set. */
static const uint8_t *
see(struct view *v, uint64_t off, size_t n)
{
	if (off > v->size || n > v->size - off) {
		acc_fail_at(v->e, ACC_ETRUNC, v->base + off, "the zip ends too early");
		return NULL;
	}
	for (int w = 0; w < 2; w++)
		if (off >= v->win[w].off && off - v->win[w].off <= v->win[w].n &&
			n <= v->win[w].n - (off - v->win[w].off))
			return v->win[w].buf + (off - v->win[w].off);
	if (fill(v, 1, off, v->size - off < WINDOW ? (size_t)(v->size - off) : WINDOW) < 0)
		return NULL;
	return v->win[1].buf;
}

/* The last end record in p[0..n) whose comment ends where the zip ends; NULL if none. */
static const uint8_t *
last_end(const uint8_t *p, size_t n)
{
	for (size_t i = n < END ? 0 : n - END + 1; i-- > 0;)
		if (get32(p + i) == 0x06054b50 && get16(p + i + 20) == n - i - END)
			return p + i;
	return NULL;
}

static int
find_end(struct view *v, struct acc_arena *m, struct end *end, uint8_t rec[END])
{
	size_t n = v->size < WINDOW ? (size_t)v->size : WINDOW;
	int rc = fill(v, 0, v->size - n, n);
	if (rc < 0)
		return rc;
	const uint8_t *buf = v->win[0].buf, *p = last_end(buf, n);
	if (p == NULL && v->size > n) {
		/* Only a long comment hides the record from the window. */
		n = v->size < END + MAXCOMMENT ? (size_t)v->size : END + MAXCOMMENT;
		uint8_t *big = acc_alloc(m, n);
		if (big == NULL)
			return acc_nomem(v->e);
		rc = acc_file_pread(v->fd, big, n, v->base + (v->size - n), v->e);
		if (rc < 0)
			return rc;
		buf = big;
		p = last_end(big, n);
	}
	if (p == NULL)
		return acc_fail(v->e, ACC_EFORMAT, "not a zip file, or cut short: no end record");
	end->at = v->size - n + (uint64_t)(p - buf);
	memcpy(rec, p, END);
	return 0;
}

static int
read_end(struct view *v, struct acc_arena *m, struct end *end)
{
	uint8_t rec[END] = {0};
	int rc = find_end(v, m, end, rec);
	if (rc < 0)
		return rc;
	uint64_t at = v->base + end->at, disk = get16(rec + 4), here = get16(rec + 8);
	end->n = get16(rec + 10);
	end->size = get32(rec + 12);
	end->off = get32(rec + 16);
	const uint8_t *p = NULL;
	if (end->at >= LOCATOR) {
		p = see(v, end->at - LOCATOR, LOCATOR);
		if (p == NULL)
			return v->e->code;
	}
	if (p != NULL && get32(p) == 0x07064b50) {
		uint64_t where = get64(p + 8);
		p = where < end->at ? see(v, where, END64) : NULL;
		if (p == NULL && v->e->code != 0)
			return v->e->code;
		if (p == NULL || get32(p) != 0x06064b50)
			return acc_fail_at(v->e, ACC_EFORMAT, at - LOCATOR,
				"no zip64 end record where its locator says");
		end->at = where;
		disk = get32(p + 16);
		here = get64(p + 24);
		end->n = get64(p + 32);
		end->size = get64(p + 40);
		end->off = get64(p + 48);
	}
	if (disk != 0 || here != end->n)
		return acc_fail_at(v->e, ACC_EUNSUP, at, "a zip in several parts");
	if (end->off > end->at || end->size > end->at - end->off || end->n > end->size / CENTRAL)
		return acc_fail_at(v->e, ACC_EFORMAT, at, "the zip's directory lies outside it");
	/* Names of 200 bytes on average are generous; the directory is held in memory. */
	if (end->n > MAXMEMBERS || end->size > MAXMEMBERS * UINT64_C(256))
		return acc_fail_at(v->e, ACC_ELIMIT, at, "a zip of more than %d members",
			MAXMEMBERS);
	return 0;
}

/* Replace what stands as 0xffffffff by the zip64 extra field, in the field's order. */
static bool
widen(struct acc_zip_member *zm, uint64_t *off, const uint8_t *p, size_t n)
{
	uint64_t *want[] = {&zm->len, &zm->clen, off};
	for (; n >= 4; n -= 4 + get16(p + 2), p += 4 + get16(p + 2)) {
		size_t len = get16(p + 2);
		if (len > n - 4)
			return false;
		if (get16(p) != 1)
			continue;
		const uint8_t *q = p + 4;
		for (size_t i = 0; i < 3; i++) {
			if (*want[i] != UINT32_MAX)
				continue;
			if (len < 8)
				return false;
			*want[i] = get64(q);
			q += 8;
			len -= 8;
		}
		return true;
	}
	return true;
}

/* One entry of the directory at p[0..n). off becomes that of the local header, for the moment.
 * The entry's length, or < 0. */
static int64_t
entry(struct view *v, const struct end *end, const uint8_t *p, size_t n, struct acc_zip_member *zm,
	uint64_t at)
{
	if (n < CENTRAL || get32(p) != 0x02014b50)
		return acc_fail_at(v->e, ACC_EFORMAT, at, "the zip's directory is damaged");
	size_t nname = get16(p + 28), nextra = get16(p + 30);
	size_t all = CENTRAL + nname + nextra + get16(p + 32);
	if (all > n)
		return acc_fail_at(v->e, ACC_EFORMAT, at, "the zip's directory is cut short");
	*zm = (struct acc_zip_member){.name = {(const char *)p + CENTRAL, (uint32_t)nname},
		.crc32 = get32(p + 16),
		.clen = get32(p + 20),
		.len = get32(p + 24)};
	uint64_t off = get32(p + 42);
	int method = (int)get16(p + 10);
	if (!widen(zm, &off, p + CENTRAL + nname, nextra))
		return acc_fail_at(v->e, ACC_EFORMAT, at, "member %.*s: bad zip64 field",
			ACC_PRS(zm->name));
	if ((get16(p + 8) & 0x2041) != 0)
		return acc_fail_at(v->e, ACC_EUNSUP, at, "member %.*s is encrypted",
			ACC_PRS(zm->name));
	if (method != 0 && method != 8)
		return acc_fail_at(v->e, ACC_EUNSUP, at,
			"member %.*s: compression method %d is not supported", ACC_PRS(zm->name),
			method);
	zm->enc = method == 0 ? ACC_STORED : ACC_DEFLATE;
	/* Deflate makes at most 258 bytes of 2 bits: 1032 to 1. */
	if (method == 0 ? zm->len != zm->clen : zm->len / 1032 > zm->clen)
		return acc_fail_at(v->e, ACC_EFORMAT, at, "member %.*s: impossible length",
			ACC_PRS(zm->name));
	if (off > end->off || zm->clen > end->off - off)
		return acc_fail_at(v->e, ACC_EFORMAT, at, "member %.*s lies outside the zip",
			ACC_PRS(zm->name));
	zm->off = off;
	return (int64_t)all;
}

ACC_ORDER_OF(by_off, struct acc_zip_member, off)

static int
by_name(const void *a, const void *b)
{
	return acc_str_cmp((*(struct acc_zip_member *const *)a)->name,
		(*(struct acc_zip_member *const *)b)->name);
}

/* What stands behind the bytes of a member whose writer did not know their length before: again
 * its checksum and lengths, of 4 or 8 bytes, perhaps after a signature. */
static int
check_behind(struct view *v, const struct acc_zip_member *zm, uint64_t end, uint64_t gap)
{
	uint8_t want[24];
	const uint8_t *p = gap < 12 ? NULL : see(v, end, gap < 24 ? (size_t)gap : 24);
	if (p == NULL && gap >= 12)
		return v->e->code;
	bool sig = p != NULL && get32(p) == 0x08074b50;
	for (int wide = 0; p != NULL && wide < 2; wide++) {
		size_t n = wide ? 20 : 12, at = sig ? 4 : 0;
		for (unsigned i = 0; i < n; i++) {
			uint64_t x = i < 4 ? zm->crc32 : i < (wide ? 12 : 8) ? zm->clen : zm->len;
			unsigned first = i < 4 ? 0 : i < (wide ? 12 : 8) ? 4 : wide ? 12 : 8;
			want[i] = (uint8_t)(x >> (i - first) * 8);
		}
		if (gap >= at + n && memcmp(p + at, want, n) == 0)
			return 0;
	}
	return acc_fail_at(v->e, ACC_EFORMAT, v->base + end,
		"member %.*s does not end where its header says", ACC_PRS(zm->name));
}

/* From local headers, which are known, to the bytes behind them; `sorted` is by offset. */
static int
settle(struct view *v, struct acc_zip_member **sorted, size_t n, uint64_t limit)
{
	for (size_t i = 0; i < n; i++) {
		struct acc_zip_member *zm = sorted[i];
		uint64_t next = i + 1 < n ? sorted[i + 1]->off : limit, at = v->base + zm->off;
		const uint8_t *p = see(v, zm->off, LOCAL);
		if (p == NULL)
			return v->e->code;
		if (get32(p) != 0x04034b50)
			return acc_fail_at(v->e, ACC_EFORMAT, at, "member %.*s: no local header",
				ACC_PRS(zm->name));
		uint64_t head = LOCAL + get16(p + 26) + get16(p + 28);
		bool later = (get16(p + 6) & 8) != 0, same = get16(p + 26) == zm->name.n;
		if (same && LOCAL + zm->name.n <= WINDOW) {
			p = see(v, zm->off, LOCAL + zm->name.n);
			if (p == NULL)
				return v->e->code;
			same = memcmp(p + LOCAL, zm->name.p, zm->name.n) == 0;
		}
		if (!same)
			return acc_fail_at(v->e, ACC_EFORMAT, at,
				"member %.*s has another name in its own header",
				ACC_PRS(zm->name));
		if (head > next - zm->off || zm->clen > next - zm->off - head)
			return acc_fail_at(v->e, ACC_EFORMAT, at, "member %.*s overlaps another",
				ACC_PRS(zm->name));
		uint64_t end = zm->off + head + zm->clen;
		if (later && check_behind(v, zm, end, next - end) < 0)
			return v->e->code;
		zm->off = v->base + zm->off + head;
	}
	return 0;
}

int
acc_zip_read(int fd, uint64_t base, uint64_t size, struct acc_zip *z, struct acc_arena *m,
	struct acc_err *e)
{
	struct acc_err own = {0};
	struct view v;
	v.fd = fd;
	v.base = base;
	v.size = size;
	/* The code tells what see() met, so it must not be one that was there before. */
	v.e = e != NULL && e->code == 0 ? e : &own;
	v.win[0].n = v.win[0].off = v.win[1].n = v.win[1].off = 0;
	if (base > INT64_MAX || size > INT64_MAX - base)
		return acc_fail(v.e, ACC_EFORMAT, "a zip beyond the end of the file");
	struct end end = {0};
	int rc = read_end(&v, m, &end);
	if (rc < 0)
		return rc;
	size_t n = (size_t)end.n, left = (size_t)end.size;
	uint8_t *dir = acc_alloc(m, left);
	z->m = acc_alloc(m, n * sizeof *z->m);
	z->by_name = acc_alloc(m, n * sizeof *z->by_name);
	if (dir == NULL || z->m == NULL || z->by_name == NULL)
		return acc_nomem(v.e);
	const uint8_t *seen = left > 0 && left <= WINDOW ? see(&v, end.off, left) : NULL;
	if (seen != NULL)
		memcpy(dir, seen, left);
	else
		rc = acc_file_pread(fd, dir, left, base + end.off, v.e);
	if (rc < 0)
		return rc;
	bool in_order = true;
	for (z->n = 0; z->n < n; z->n++) {
		struct acc_zip_member *zm = &z->m[z->n];
		int64_t used = entry(&v, &end, dir + ((size_t)end.size - left), left, zm,
			base + end.off + end.size - left);
		if (used < 0)
			return (int)used;
		left -= (size_t)used;
		z->by_name[z->n] = zm;
		if (z->n > 0 && zm->off < zm[-1].off)
			in_order = false;
	}
	/* As torch.serialization.set_crc32_options(False) does: all 0, which is the checksum of nothing. */
	bool summed = false;
	for (size_t i = 0; i < n && !summed; i++)
		summed = z->m[i].crc32 != 0;
	for (size_t i = 0; i < n; i++)
		z->m[i].unsummed = !summed && z->m[i].len > 0;
	if (!in_order)
		qsort(z->by_name, n, sizeof *z->by_name, by_off);
	rc = settle(&v, z->by_name, n, end.off);
	if (rc < 0)
		return rc;
	return acc_zip_sort(z, m, v.e);
}

int
acc_zip_sort(struct acc_zip *z, struct acc_arena *m, struct acc_err *e)
{
	if (z->by_name == NULL)
		z->by_name = acc_alloc(m, z->n * sizeof *z->by_name);
	if (z->by_name == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < z->n; i++)
		z->by_name[i] = &z->m[i];
	if (z->n > 0)
		qsort(z->by_name, z->n, sizeof *z->by_name, by_name);
	for (size_t i = 1; i < z->n; i++)
		if (acc_str_eq(z->by_name[i - 1]->name, z->by_name[i]->name))
			return acc_fail(e, ACC_EFORMAT, "two members are named %.*s",
				ACC_PRS(z->by_name[i]->name));
	return 0;
}

const struct acc_zip_member *
acc_zip_find(const struct acc_zip *z, struct acc_str name)
{
	size_t lo = 0, hi = z->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int d = acc_str_cmp(z->by_name[mid]->name, name);
		if (d == 0)
			return z->by_name[mid];
		if (d < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static int
inflate_all(const struct acc_zip_member *zm, const uint8_t *in, uint8_t *out, struct acc_err *e)
{
	struct acc_inflate *f = acc_inflate_open(ACC_INFLATE_RAW, e);
	if (f == NULL)
		return ACC_ENOMEM;
	size_t nin = (size_t)zm->clen, nout = (size_t)zm->len;
	int rc = acc_inflate_run(f, in, &nin, out, &nout, e);
	acc_inflate_close(f);
	if (rc < 0)
		return rc;
	if (rc == 0 || nout != zm->len)
		return acc_fail_at(e, ACC_EFORMAT, zm->off,
			"member %.*s does not inflate to its length", ACC_PRS(zm->name));
	return 0;
}

int
acc_zip_load(int fd, const struct acc_zip_member *zm, uint64_t limit, struct acc_arena *m,
	const uint8_t **out, struct acc_err *e)
{
	/* Deflate adds 5 bytes to each 64 KiB that it cannot compress. */
	if (zm->len > limit || zm->clen > limit + limit / 1000 + 100 || limit > SIZE_MAX / 4)
		return acc_fail_at(e, ACC_ELIMIT, zm->off, "member %.*s: %llu bytes are too many",
			ACC_PRS(zm->name), (unsigned long long)zm->len);
	if (zm->len > INFLATED_FREE && zm->len - INFLATED_FREE > INFLATED_PER_BYTE * zm->clen)
		return acc_fail_at(e, ACC_ELIMIT, zm->off,
			"member %.*s: %llu bytes out of %llu that are compressed are too many",
			ACC_PRS(zm->name), (unsigned long long)zm->len,
			(unsigned long long)zm->clen);
	uint8_t *in = acc_alloc(m, (size_t)zm->clen), *p = in;
	if (zm->enc == ACC_DEFLATE)
		p = acc_alloc(m, (size_t)zm->len);
	if (in == NULL || p == NULL)
		return acc_nomem(e);
	int rc = acc_file_pread(fd, in, (size_t)zm->clen, zm->off, e);
	if (rc == 0 && zm->enc == ACC_DEFLATE)
		rc = inflate_all(zm, in, p, e);
	if (rc < 0)
		return rc;
	if (!zm->unsummed && !acc_crc_is(acc_crc32(0, p, (size_t)zm->len), zm->crc32))
		return acc_fail_at(e, ACC_EFORMAT, zm->off, "member %.*s: wrong checksum",
			ACC_PRS(zm->name));
	*out = p;
	return 0;
}
