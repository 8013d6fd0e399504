/* Arrays in one .npz: a zip of .npy files, stored or deflated. */
#include "acc/inflate.h"
#include "acc/npy.h"
#include "acc/zip.h"
#include "dump/place.h"
#include "dump/weight/npz.h"
#include "dump/weight/weight.h"
#include "io/crc.h"

#include <limits.h>
#include <unistd.h>

static int
probe(const struct acc_probe *p)
{
	bool named = acc_str_ends(p->base, ".npz");
	if (p->is_dir)
		return 0;
	/* The first local header: its name stands behind 30 bytes. */
	if (p->nhead >= 30 && memcmp(p->head, "PK\3\4", 4) == 0) {
		size_t n = p->head[26] | (size_t)p->head[27] << 8;
		if (n >= 4 && n <= p->nhead - 30 && memcmp(p->head + 30 + n - 4, ".npy", 4) == 0)
			return named ? 97 : 80;
	}
	return named ? 35 : 0;
}

struct npz {
	struct weights w;
	int fd;
	const char *file;
	struct acc_file_info info;
	struct acc_arena mem;          /* of one member */
	char framework[64], said[128]; /* its name; with versions, as it says */
};

/* The first n bytes of a member, as they were before they were compressed. */
static int
head(int fd, const struct acc_zip_member *zm, uint8_t *out, size_t n, struct acc_err *e)
{
	uint8_t in[4096];
	uint64_t at = 0;
	size_t have = 0;
	int rc = 0;
	if (zm->enc == ACC_STORED)
		return acc_file_pread(fd, out, n, zm->off, e);
	struct acc_inflate *z = acc_inflate_open(ACC_INFLATE_RAW, e);
	if (z == NULL)
		return ACC_ENOMEM;
	while (rc == 0 && have < n && at < zm->clen) {
		size_t nin = zm->clen - at < sizeof in ? (size_t)(zm->clen - at) : sizeof in;
		size_t nout = n - have;
		rc = acc_file_pread(fd, in, nin, zm->off + at, e);
		if (rc == 0)
			rc = acc_inflate_run(z, in, &nin, out + have, &nout, e);
		at += nin;
		have += nout;
	}
	acc_inflate_close(z);
	if (rc >= 0 && have < n)
		return acc_fail_at(e, ACC_EFORMAT, zm->off, "it does not inflate to its length");
	return rc < 0 ? rc : 0;
}

/* The bytes behind the header: where they are, and what their checksum is, which follows from
 * that of the member and that of the header. */
static int
data_at(const struct acc_zip_member *zm, bool crc, const uint8_t *header, uint64_t n,
	struct acc_ref *ref, struct acc_err *e)
{
	const uint64_t size = acc_dtype_of(ref->dtype)->size;
	if (zm->len - n != ref->len)
		return acc_fail_at(e, zm->len - n < ref->len ? ACC_ETRUNC : ACC_EFORMAT, zm->off,
			"its header says %llu bytes of elements, there are %llu",
			(unsigned long long)ref->len, (unsigned long long)(zm->len - n));
	ref->has_crc = crc && !zm->unsummed;
	ref->enc = zm->enc;
	ref->off = zm->off;
	if (zm->enc == ACC_STORED) {
		ref->off += n;
		ref->clen = ref->len;
		uint32_t before = acc_crc32(0, header, (size_t)n);
		ref->crc32 = zm->crc32 ^ acc_crc32_join(before, 0, ref->len);
		return acc_ref_check(ref, e);
	}
	if (n % size != 0)
		return acc_fail_at(e, ACC_EUNSUP, zm->off,
			"elements that do not begin at a multiple of their size");
	ref->first = n / size;
	ref->len = zm->len;
	ref->clen = zm->clen;
	ref->crc32 = zm->crc32;
	return acc_ref_check(ref, e);
}

int
acc_dump_npy_member(int fd, const struct acc_zip_member *zm, bool crc, struct acc_ref *ref,
	struct acc_arena *m, struct acc_err *e)
{
	for (uint64_t n = 256;; n *= 4) {
		n = n < zm->len ? n : zm->len;
		uint8_t *p = acc_alloc(m, (size_t)n);
		if (p == NULL)
			return acc_nomem(e);
		int rc = head(fd, zm, p, (size_t)n, e);
		if (rc < 0)
			return rc;
		int64_t len = acc_npy_header(p, (size_t)n, ref, NULL, NULL, e);
		if (len != 0)
			return len < 0 ? (int)len : data_at(zm, crc, p, (uint64_t)len, ref, e);
		if (n == zm->len)
			return acc_fail_at(e, ACC_ETRUNC, zm->off, "it ends in its header");
	}
}

static int
put(struct npz *f, const struct acc_zip_member *zm, struct acc_err *e)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	struct argname a;
	struct weight x = {.name = zm->name,
		.arg = &a,
		.file = acc_str(f->file),
		.info = f->info,
		.ref = &ref,
		.several = true};
	acc_arena_reset(&f->mem);
	x.name.n -= 4;
	if (acc_dump_argname(x.name, &f->mem, &a) < 0)
		return acc_nomem(e);
	if (acc_dump_npy_member(f->fd, zm, true, &ref, &f->mem, &bad) < 0)
		x.err = &bad;
	if (x.err != NULL && ref.ndim == 0)
		x.ref = NULL;
	return acc_dump_weight(&f->w, &x, e);
}

/* numpy.savez(..., framework="onnxruntime 1.32.0"): one text, of four bytes a letter. Is this member it? To f->said. */
static bool
framework(struct npz *f, const struct acc_zip_member *zm)
{
	enum { V1 = 10 }; /* bytes in front of a header, of which the last two are its length */
	uint8_t p[512];
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_str type = {0};
	if (!acc_str_is(zm->name, "framework.npy") || zm->len < V1 || zm->len > sizeof p ||
		head(f->fd, zm, p, (size_t)zm->len, NULL) < 0)
		return false;
	acc_arena_reset(&f->mem);
	acc_npy_header(p, (size_t)zm->len, &ref, &type, &f->mem, NULL);
	const size_t at = V1 + (size_t)(p[8] | p[9] << 8),
		     n = at < zm->len ? (size_t)zm->len - at : 0;
	if (ref.ndim != 0 || !acc_str_starts(type, "<U") || n == 0 || n % 4 != 0 ||
		n / 4 >= sizeof f->said)
		return false;
	for (size_t i = 0; i < n; i += 4) {
		const uint8_t *c = p + at + i;
		if (c[0] < ' ' || c[0] > '~' || c[1] != 0 || c[2] != 0 || c[3] != 0)
			return false;
		f->said[i / 4] = (char)c[0];
	}
	f->said[n / 4] = '\0';
	return true;
}

static int
read_zip(struct npz *f, struct acc_source *s, struct acc_err *e)
{
	struct acc_zip z = {0};
	struct acc_arena m = {0};
	size_t own = SIZE_MAX;
	int rc = acc_zip_read(f->fd, 0, f->info.size, &z, &m, e);
	for (size_t i = 0; i < z.n && rc == 0 && own == SIZE_MAX; i++)
		own = framework(f, &z.m[i]) ? i : own;
	if (own != SIZE_MAX) {
		s->versions = acc_framework_versions(f->said, f->framework);
		s->framework = f->framework;
	}
	if (rc == 0)
		rc = acc_dump_source(f->w.c, s, e);
	for (size_t i = 0; i < z.n && rc == 0; i++) {
		struct acc_err bad = {0};
		if (i == own)
			continue;
		if (acc_str_ends(z.m[i].name, ".npy")) {
			rc = put(f, &z.m[i], e);
			continue;
		}
		acc_fail_at(&bad, ACC_EUNSUP, z.m[i].off, "member %.*s is no .npy",
			z.m[i].name.n < 100 ? (int)z.m[i].name.n : 100, z.m[i].name.p);
		acc_err_in(&bad, f->file);
		acc_dump_say(&f->w.said, f->w.c, &bad);
	}
	acc_arena_release(&m);
	return rc;
}

static int
read_npz(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct npz f = {.w = {.c = c, .dir = dir}};
	f.fd = acc_dump_open_file(path, dir, &f.file, e);
	if (f.fd < 0)
		return f.fd;
	struct acc_source s = {.root = dir, .format = "npz", .task = "tensor", ACC_NO_PLACE};
	int rc = acc_file_stat(f.fd, &f.info, e);
	if (rc == 0)
		rc = read_zip(&f, &s, e);
	if (rc == 0)
		rc = acc_file_same(f.fd, &f.info, e);
	close(f.fd);
	acc_arena_release(&f.mem);
	acc_dump_weights_end(&f.w, path);
	return rc;
}

const struct acc_dump acc_dump_npz = {
	.name = "npz",
	.help = "a .npz file of numpy",
	.probe = probe,
	.read = read_npz,
};
