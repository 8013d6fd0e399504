/* Weights as flax.serialization writes them: maps within maps in MessagePack, arrays as extensions that hold a shape,
 * a dtype and bytes. Where these lie is found; the bytes stay in the file. */
#include "dump/place.h"
#include "dump/weight/weight.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* github.com/google/flax, flax/serialization.py: _MsgpackExtType. */
enum { NDARRAY = 1, SCALAR = 3 };
enum { DEEPEST = 64, MAX_PATH = 4096, MAX_NAME = 1024 };
static const char chunked[] = "__msgpack_chunked_array__";

struct flax {
	struct weights w;
	int fd;
	const char *file;
	struct acc_file_info info;
	uint64_t at;
	char path[MAX_PATH];
	uint32_t npath;
	struct acc_err *e;
};

static bool
is_map(uint8_t c)
{
	return (c >= 0x81 && c <= 0x8f) || c == 0xde || c == 0xdf;
}

/* A map whose first key is a text. */
static bool
begins_well(const uint8_t *h, size_t n)
{
	const size_t key = n == 0 ? 0 : h[0] == 0xde ? 3 : h[0] == 0xdf ? 5 : 1;
	return n > key + 2 && is_map(h[0]) && ((h[key] > 0xa0 && h[key] <= 0xbf) || h[key] == 0xd9);
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir || !acc_str_ends(p->base, ".msgpack"))
		return 0;
	return begins_well(p->head, p->nhead) ? 92 : 30;
}

/* --- MessagePack --- */

enum kind { OTHER, MAP, ARRAY, TEXT, BYTES, EXTENSION };
struct token {
	enum kind kind;
	uint64_t n; /* entries; or bytes, at `at` */
	int64_t number;
	uint8_t ext;
	uint64_t at;
};

/* The next one. Of what has bytes, these are still to be passed. */
static int
next(struct flax *x, struct token *t)
{
	uint8_t b[16] = {0};
	const uint64_t left = x->info.size - x->at;
	const size_t have = left < sizeof b ? (size_t)left : sizeof b;
	if (have == 0)
		return acc_fail_at(x->e, ACC_ETRUNC, x->at, "the file ends within its values");
	int rc = acc_file_pread(x->fd, b, have, x->at, x->e);
	if (rc < 0)
		return rc;
	/* Bytes of a length (or of a number), by the first byte from 0xc0 on. */
	static const uint8_t more[32] = {0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8,
		0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4};
	const uint8_t c = b[0];
	uint64_t v = 0;
	const size_t n = c >= 0xc0 && c < 0xe0 ? more[c - 0xc0] : 0;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | b[1 + i];
	*t = (struct token){.kind = OTHER, .n = v, .number = c < 0x80 ? c : (int64_t)v};
	size_t used = 1 + n;
	if (c >= 0x80 && c < 0x90)
		*t = (struct token){.kind = MAP, .n = c & 15};
	else if (c >= 0x90 && c < 0xa0)
		*t = (struct token){.kind = ARRAY, .n = c & 15};
	else if (c >= 0xa0 && c < 0xc0)
		*t = (struct token){.kind = TEXT, .n = c & 31};
	else if (c >= 0xc4 && c <= 0xc6)
		t->kind = BYTES;
	else if (c >= 0xd9 && c <= 0xdb)
		t->kind = TEXT;
	else if (c == 0xdc || c == 0xdd)
		t->kind = ARRAY;
	else if (c == 0xde || c == 0xdf)
		t->kind = MAP;
	else if ((c >= 0xc7 && c <= 0xc9) || (c >= 0xd4 && c <= 0xd8)) {
		t->kind = EXTENSION;
		t->n = c >= 0xd4 ? UINT64_C(1) << (c - 0xd4) : v;
		t->ext = b[used++];
	} else if (c == 0xc1) {
		return acc_fail_at(x->e, ACC_EFORMAT, x->at, "no MessagePack");
	}
	if (used > have || (t->kind > ARRAY && t->n > left - used))
		return acc_fail_at(x->e, ACC_ETRUNC, x->info.size, "the file ends within a value");
	if ((t->kind == MAP || t->kind == ARRAY) && t->n > left)
		return acc_fail_at(x->e, ACC_EFORMAT, x->at, "more values than the file has bytes");
	x->at += used;
	t->at = x->at;
	return 0;
}

static int
pass(struct flax *x, int depth)
{
	struct token t;
	int rc = depth > DEEPEST
			 ? acc_fail_at(x->e, ACC_EFORMAT, x->at, "values within values without end")
			 : next(x, &t);
	if (rc == 0 && t.kind > ARRAY)
		x->at += t.n;
	for (uint64_t i = 0;
		rc == 0 && (t.kind == MAP || t.kind == ARRAY) && i < t.n * (t.kind == MAP ? 2 : 1);
		i++)
		rc = pass(x, depth + 1);
	return rc;
}

static int
text(struct flax *x, char buf[MAX_NAME], struct acc_str *out)
{
	struct token t;
	int rc = next(x, &t);
	if (rc == 0 && (t.kind != TEXT || t.n > MAX_NAME))
		rc = acc_fail_at(x->e, ACC_EFORMAT, x->at, "no name where one is due");
	rc = rc == 0 ? acc_file_pread(x->fd, buf, (size_t)t.n, x->at, x->e) : rc;
	if (rc < 0)
		return rc;
	if (memchr(buf, '\0', (size_t)t.n) != NULL)
		return acc_fail_at(x->e, ACC_EFORMAT, x->at, "a zero in a name");
	x->at += t.n;
	*out = (struct acc_str){buf, (uint32_t)t.n};
	return 0;
}

/* --- arrays --- */

/* [shape, dtype, bytes]. */
static int
array(struct flax *x, struct acc_ref *ref, char type[MAX_NAME], struct acc_str *raw)
{
	struct token t, d;
	uint64_t count;
	int rc = next(x, &t);
	if (rc == 0 && (t.kind != ARRAY || t.n != 3))
		rc = acc_fail_at(x->e, ACC_EFORMAT, x->at,
			"an array that is not shape, dtype and bytes");
	rc = rc == 0 ? next(x, &t) : rc;
	if (rc == 0 && (t.kind != ARRAY || t.n > ACC_MAXDIM))
		rc = acc_fail_at(x->e, ACC_EFORMAT, x->at, "an impossible shape");
	for (uint64_t i = 0; i < t.n && rc == 0; i++) {
		rc = next(x, &d);
		if (rc == 0 && (d.kind != OTHER || d.number < 0))
			rc = acc_fail_at(x->e, ACC_EFORMAT, x->at, "an impossible shape");
		ref->shape[ref->ndim++] = d.number;
	}
	rc = rc == 0 ? text(x, type, raw) : rc;
	rc = rc == 0 ? next(x, &d) : rc;
	if (rc < 0)
		return rc;
	if (d.kind != BYTES || !acc_count(ref->shape, ref->ndim, &count) || count > UINT64_MAX / 16)
		return acc_fail_at(x->e, ACC_EFORMAT, x->at, "an array without its bytes");
	ref->dtype = acc_str_is(*raw, "int4") || acc_str_is(*raw, "int2") ? ACC_I8
		     : acc_str_is(*raw, "uint4") || acc_str_is(*raw, "uint2")
			     ? ACC_U8
			     : acc_dtype_find(*raw);
	ref->off = d.at;
	ref->len = d.n;
	if (ref->dtype != ACC_NODTYPE && d.n != count * acc_dtype_of(ref->dtype)->size)
		return acc_fail_at(x->e, ACC_EFORMAT, x->at,
			"an array of %llu elements and %llu bytes", (unsigned long long)count,
			(unsigned long long)d.n);
	return 0;
}

static int
put(struct flax *x, const struct acc_ref *ref, struct acc_str raw, const struct acc_err *bad)
{
	const struct weight w = {.name = {x->path, x->npath},
		.file = acc_str(x->file),
		.info = x->info,
		.ref = ref,
		.dtype_raw = raw,
		.err = bad,
		.several = true};
	return acc_dump_weight(&x->w, &w, x->e);
}

static int
extension(struct flax *x, const struct token *t)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_err bad = {0};
	struct acc_str raw = {"", 0};
	char type[MAX_NAME];
	int rc = 0;
	if (t->ext == NDARRAY || t->ext == SCALAR) {
		rc = array(x, &ref, type, &raw);
		if (rc == 0 && ref.off + ref.len != t->at + t->n)
			rc = acc_fail_at(x->e, ACC_EFORMAT, t->at,
				"an array that is longer than its bytes");
		if (rc == 0 && ref.dtype == ACC_NODTYPE)
			acc_fail(&bad, ACC_EUNSUP, "of dtype %.40s, which is not decoded",
				raw.n < 40 ? type : "?");
		rc = rc == 0 ? put(x, &ref, raw, bad.code != 0 ? &bad : NULL) : rc;
	}
	x->at = t->at + t->n;
	return rc;
}

/* --- an array in chunks, of more than 1 GiB: true, "shape", "chunks", of which each is flat --- */

enum { MOST_CHUNKS = 4096 };
struct chunks {
	struct acc_ref ref;
	uint64_t all; /* elements */
	struct acc_str src[MOST_CHUNKS], file[MOST_CHUNKS];
	int64_t off[MOST_CHUNKS], len[MOST_CHUNKS], fsize[MOST_CHUNKS], mtime[MOST_CHUNKS];
	int64_t rows[ACC_BAND + MOST_CHUNKS * ACC_PIECE];
};

static int
unlike(struct flax *x)
{
	return acc_fail_at(x->e, ACC_EFORMAT, x->at,
		"an array in chunks that is not as Flax has it");
}

/* The head of a map whose keys count from 0. */
static int
counted(struct flax *x, const char *name, struct token *t)
{
	char buf[MAX_NAME];
	struct acc_str key;
	int rc = text(x, buf, &key);
	if (rc == 0 && !acc_str_is(key, name))
		return unlike(x);
	rc = rc == 0 ? next(x, t) : rc;
	return rc == 0 && t->kind != MAP ? unlike(x) : rc;
}

static int
count_is(struct flax *x, uint64_t i)
{
	char buf[MAX_NAME], want[32];
	struct acc_str key;
	snprintf(want, sizeof want, "%llu", (unsigned long long)i);
	int rc = text(x, buf, &key);
	return rc == 0 && !acc_str_is(key, want) ? unlike(x) : rc;
}

static int
add_chunk(struct flax *x, struct chunks *c, char type[MAX_NAME], struct acc_str *raw)
{
	struct acc_ref one = {.dtype = ACC_NODTYPE};
	struct acc_parts *p = &c->ref.parts;
	struct token t;
	int rc = next(x, &t);
	if (rc == 0 && (t.kind != EXTENSION || t.ext != NDARRAY || p->n == MOST_CHUNKS))
		rc = unlike(x);
	rc = rc == 0 ? array(x, &one, type, raw) : rc;
	if (rc < 0)
		return rc;
	if (one.ndim != 1 || one.off + one.len != t.at + t.n ||
		(p->n > 0 && one.dtype != c->ref.dtype))
		return unlike(x);
	const uint32_t i = p->n++;
	int64_t *piece = c->rows + ACC_BAND + (size_t)i * ACC_PIECE;
	c->ref.dtype = one.dtype;
	c->src[i] = acc_dump_source_id(x->w.c);
	c->file[i] = acc_str(x->file);
	c->off[i] = (int64_t)one.off;
	c->len[i] = (int64_t)one.len;
	c->fsize[i] = (int64_t)x->info.size;
	c->mtime[i] = x->info.mtime_ns;
	c->all += (uint64_t)one.shape[0];
	piece[0] = i;
	piece[1] = piece[3] = 0;
	piece[2] = one.shape[0];
	x->at = t.at + t.n;
	return 0;
}

static int
read_chunks(struct flax *x, struct chunks *c)
{
	struct acc_ref *r = &c->ref;
	struct acc_err bad = {0};
	struct acc_str raw = {"", 0};
	char type[MAX_NAME];
	struct token t, d;
	uint64_t count;
	int rc = next(x, &t);
	rc = rc == 0 ? counted(x, "shape", &t) : rc;
	if (rc == 0 && t.n > ACC_MAXDIM)
		rc = unlike(x);
	for (uint64_t i = 0; rc == 0 && i < t.n; i++) {
		rc = count_is(x, i);
		rc = rc == 0 ? next(x, &d) : rc;
		if (rc == 0 && (d.kind != OTHER || d.number < 0))
			rc = unlike(x);
		r->shape[r->ndim++] = d.number;
	}
	rc = rc == 0 ? counted(x, "chunks", &t) : rc;
	for (uint64_t i = 0; rc == 0 && i < t.n; i++) {
		rc = count_is(x, i);
		rc = rc == 0 ? add_chunk(x, c, type, &raw) : rc;
	}
	if (rc < 0)
		return rc;
	if (r->parts.n == 0 || !acc_count(r->shape, r->ndim, &count) || count != c->all)
		return unlike(x);
	if (r->dtype == ACC_NODTYPE)
		acc_fail(&bad, ACC_EUNSUP, "of dtype %.40s, which is not decoded",
			raw.n < 40 ? type : "?");
	c->rows[0] = 1;
	c->rows[1] = r->parts.n;
	r->enc = ACC_PARTS;
	r->len = count * acc_dtype_of(r->dtype)->size;
	r->parts = (struct acc_parts){.n = r->parts.n,
		.nrows = ACC_BAND + r->parts.n * ACC_PIECE,
		.src = c->src,
		.file = c->file,
		.off = c->off,
		.len = c->len,
		.fsize = c->fsize,
		.mtime = c->mtime,
		.rows = c->rows};
	return put(x, r, raw, bad.code != 0 ? &bad : NULL);
}

static int
in_chunks(struct flax *x, uint64_t n)
{
	struct chunks *c = n == 3 ? calloc(1, sizeof *c) : NULL;
	if (n != 3)
		return unlike(x);
	if (c == NULL)
		return acc_nomem(x->e);
	c->ref.dtype = ACC_NODTYPE;
	int rc = read_chunks(x, c);
	free(c);
	return rc;
}

static int value(struct flax *x, int depth);

static int
map(struct flax *x, uint64_t n, int depth)
{
	const uint32_t before = x->npath;
	int rc = 0;
	for (uint64_t i = 0; i < n && rc == 0; i++) {
		char buf[MAX_NAME];
		struct acc_str key;
		rc = text(x, buf, &key);
		if (rc == 0 && acc_str_is(key, chunked))
			return i == 0 ? in_chunks(x, n) : unlike(x);
		if (rc == 0 && before + 1 + key.n > sizeof x->path)
			rc = acc_fail_at(x->e, ACC_EFORMAT, x->at, "a name that is too long");
		if (rc < 0)
			return rc;
		if (before > 0)
			x->path[x->npath++] = '.';
		memcpy(x->path + x->npath, key.p, key.n);
		x->npath += key.n;
		rc = value(x, depth + 1);
		x->npath = before;
	}
	return rc;
}

/* What is neither an array nor holds any is no weight. */
static int
value(struct flax *x, int depth)
{
	struct token t;
	int rc = depth > DEEPEST
			 ? acc_fail_at(x->e, ACC_EFORMAT, x->at, "maps within maps without end")
			 : next(x, &t);
	if (rc < 0)
		return rc;
	if (t.kind == MAP)
		return map(x, t.n, depth);
	if (t.kind == EXTENSION)
		return extension(x, &t);
	if (t.kind > ARRAY)
		x->at += t.n;
	for (uint64_t i = 0; t.kind == ARRAY && i < t.n && rc == 0; i++)
		rc = pass(x, depth + 1);
	return rc;
}

static int
is_flax(struct flax *x)
{
	uint8_t head[16];
	const size_t n = x->info.size < sizeof head ? (size_t)x->info.size : sizeof head;
	int rc = acc_file_pread(x->fd, head, n, 0, x->e);
	return rc < 0 || begins_well(head, n)
		       ? rc
		       : acc_fail_at(x->e, ACC_EFORMAT, 0, "no map of names, as Flax writes");
}

static int
read_flax(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct flax x = {.w = {.c = c, .dir = dir, .io = "param"}, .e = e};
	x.fd = acc_dump_open_file(path, dir, &x.file, e);
	if (x.fd < 0)
		return x.fd;
	const struct acc_source s = {.root = dir,
		.format = "flax",
		.framework = "jax",
		.task = "tensor",
		ACC_NO_PLACE,
		.order = "names"};
	int rc = acc_file_stat(x.fd, &x.info, e);
	rc = rc == 0 ? is_flax(&x) : rc;
	rc = rc == 0 ? acc_dump_source(c, &s, e) : rc;
	rc = rc == 0 ? value(&x, 0) : rc;
	if (rc == 0 && x.at != x.info.size)
		rc = acc_fail_at(e, ACC_EFORMAT, x.at, "the file goes on behind its map");
	rc = rc == 0 ? acc_file_same(x.fd, &x.info, e) : rc;
	close(x.fd);
	acc_dump_weights_end(&x.w, path);
	return rc;
}

const struct acc_dump acc_dump_flax = {
	.name = "flax",
	.help = "weights of flax.serialization: a .msgpack",
	.probe = probe,
	.read = read_flax,
};
