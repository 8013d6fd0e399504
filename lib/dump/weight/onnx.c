/* The initializers of a model in ONNX: where their bytes lie, in the file or in one beside it. The graph is not
 * read. */
#include "dump/place.h"
#include "dump/weight/packed.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

enum { MAXNAME = 4096, VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
/* Numbers of fields in github.com/onnx/onnx, onnx/onnx.proto. */
enum { MODEL_GRAPH = 7, GRAPH_INITIALIZER = 5, GRAPH_SPARSE = 15 };
enum {
	DIMS = 1,
	DATA_TYPE = 2,
	FLOAT_DATA = 4,
	INT32_DATA = 5,
	STRING_DATA = 6,
	INT64_DATA = 7,
	NAME = 8,
	RAW_DATA = 9,
	DOUBLE_DATA = 10,
	UINT64_DATA = 11,
	EXTERNAL = 13,
	LOCATION = 14
};

/* TensorProto.DataType. Numbers of fewer than 8 bits are their bytes. */
static const struct {
	const char *name;
	enum acc_dtype dtype;
	uint8_t bits;
} types[] = {[1] = {"FLOAT", ACC_F32, 32},
	[2] = {"UINT8", ACC_U8, 8},
	[3] = {"INT8", ACC_I8, 8},
	[4] = {"UINT16", ACC_U16, 16},
	[5] = {"INT16", ACC_I16, 16},
	[6] = {"INT32", ACC_I32, 32},
	[7] = {"INT64", ACC_I64, 64},
	[8] = {"STRING", ACC_NODTYPE, 0},
	[9] = {"BOOL", ACC_BOOL, 8},
	[10] = {"FLOAT16", ACC_F16, 16},
	[11] = {"DOUBLE", ACC_F64, 64},
	[12] = {"UINT32", ACC_U32, 32},
	[13] = {"UINT64", ACC_U64, 64},
	[14] = {"COMPLEX64", ACC_C64, 64},
	[15] = {"COMPLEX128", ACC_C128, 128},
	[16] = {"BFLOAT16", ACC_BF16, 16},
	[17] = {"FLOAT8E4M3FN", ACC_F8E4M3, 8},
	[18] = {"FLOAT8E4M3FNUZ", ACC_F8E4M3FNUZ, 8},
	[19] = {"FLOAT8E5M2", ACC_F8E5M2, 8},
	[20] = {"FLOAT8E5M2FNUZ", ACC_F8E5M2FNUZ, 8},
	[21] = {"UINT4", ACC_U8, 4},
	[22] = {"INT4", ACC_U8, 4},
	[23] = {"FLOAT4E2M1", ACC_U8, 4},
	[24] = {"FLOAT8E8M0", ACC_F8E8M0, 8},
	[25] = {"UINT2", ACC_U8, 2},
	[26] = {"INT2", ACC_U8, 2}};
enum { NTYPES = sizeof types / sizeof *types };

struct onnx {
	struct weights w;
	int fd, dirfd;
	const char *file;
	struct acc_file_info info;
	struct acc_map names;
	bool looks; /* what there is, before it is read */
	struct packed_set
		set; /* of several, each one weight: as onnxruntime's quantizers leave them */
	struct acc_buf list;
	struct acc_map where;
	struct acc_arena kept;
	struct acc_arena mem; /* of one tensor */
};

/* A message of protobuf that begins with the version of ONNX, and behind it names its producer: in
 * both, lengths are plain bytes. */
static bool
is_onnx(const uint8_t *h, size_t n)
{
	return n > 4 && h[0] == 0x08 && h[1] > 0 && h[1] < 32 && h[2] == 0x12 && h[3] > 0 &&
	       h[3] < 64 && (size_t)h[3] + 5 <= n && h[4] >= 'A' && h[4] <= 'z' &&
	       (h[4 + h[3]] == 0x1a || h[4 + h[3]] == 0x22 || h[4 + h[3]] == 0x3a);
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return 0;
	if (acc_str_ends(p->base, ".onnx"))
		return p->nhead > 3 && p->head[0] == 0x08 ? 92 : 30;
	return is_onnx(p->head, p->nhead) ? 80 : 0;
}

/* --- fields, of which the bytes stay in the file --- */

struct field {
	uint32_t number, type;
	uint64_t u, off; /* a number; or off, u: where so many bytes lie */
};

struct cursor {
	int fd;
	uint64_t at, end;
};

static int
varint(struct cursor *c, uint64_t *v, struct acc_err *e)
{
	uint8_t b[10];
	const size_t most = c->end - c->at < sizeof b ? (size_t)(c->end - c->at) : sizeof b;
	int rc = acc_file_pread(c->fd, b, most, c->at, e);
	*v = 0;
	for (size_t i = 0; i < most && rc == 0; i++) {
		*v |= (uint64_t)(b[i] & 0x7f) << (7 * i);
		if (b[i] < 0x80) {
			c->at += i + 1;
			return 0;
		}
	}
	return rc < 0 ? rc
		      : acc_fail_at(e, ACC_EFORMAT, c->at, "protobuf: a number without an end");
}

/* 1; 0: that was all; < 0. */
static int
next(struct cursor *c, struct field *f, struct acc_err *e)
{
	uint64_t tag;
	if (c->at == c->end)
		return 0;
	int rc = varint(c, &tag, e);
	if (rc < 0)
		return rc;
	*f = (struct field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
	if (f->type == VARINT || f->type == BYTES)
		rc = varint(c, &f->u, e);
	if (rc < 0)
		return rc;
	const uint64_t n = f->type == BYTES     ? f->u
			   : f->type == FIXED64 ? 8
			   : f->type == FIXED32 ? 4
						: 0;
	if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff || (n == 0 && f->type > BYTES))
		return acc_fail_at(e, ACC_EFORMAT, c->at, "protobuf: no field");
	if (n > c->end - c->at)
		return acc_fail_at(e, ACC_ETRUNC, c->at,
			"protobuf: a field ends behind its message");
	f->off = c->at;
	c->at += n;
	return 1;
}

static struct cursor
inside(const struct cursor *c, const struct field *f)
{
	return (struct cursor){c->fd, f->off, f->off + f->u};
}

/* A text, in x->mem. */
static int
text(struct onnx *x, const struct field *f, struct acc_str *out, struct acc_err *e)
{
	char buf[MAXNAME];
	if (f->type != BYTES || f->u > sizeof buf)
		return acc_fail_at(e, ACC_EFORMAT, f->off, "a name of %llu bytes",
			(unsigned long long)f->u);
	int rc = acc_file_pread(x->fd, buf, (size_t)f->u, f->off, e);
	if (rc < 0)
		return rc;
	if (memchr(buf, '\0', (size_t)f->u) != NULL)
		return acc_fail_at(e, ACC_EFORMAT, f->off, "a zero in a name");
	*out = (struct acc_str){acc_arena_copy(&x->mem, buf, (size_t)f->u), (uint32_t)f->u};
	return out->p == NULL ? acc_nomem(e) : 0;
}

/* --- one tensor --- */

struct tensor {
	struct acc_str name, location;
	uint64_t type;
	struct acc_ref ref;
	bool stored, outside, apart; /* as bytes; in another file; as text, or in several fields */
	bool has_len;
};

static int
dims(struct tensor *t, const struct cursor *c, const struct field *f, struct acc_err *e)
{
	struct cursor in = inside(c, f);
	uint64_t v = f->u;
	int rc = 0;
	do {
		if (f->type == BYTES && in.at == in.end)
			break;
		if (f->type == BYTES)
			rc = varint(&in, &v, e);
		if (rc == 0 && (t->ref.ndim == ACC_MAXDIM || v > INT64_MAX))
			rc = acc_fail_at(e, ACC_EFORMAT, f->off, "an impossible shape");
		if (rc == 0)
			t->ref.shape[t->ref.ndim++] = (int64_t)v;
	} while (f->type == BYTES && rc == 0);
	return rc;
}

/* location, offset, length of external data, each a key and a value. */
static int
external(struct onnx *x, struct tensor *t, const struct cursor *c, const struct field *f,
	struct acc_err *e)
{
	struct cursor in = inside(c, f);
	struct field g;
	struct acc_str s[2] = {{"", 0}, {"", 0}};
	int64_t v;
	int rc;
	while ((rc = next(&in, &g, e)) > 0)
		if ((g.number == 1 || g.number == 2) && (rc = text(x, &g, &s[g.number - 1], e)) < 0)
			return rc;
	if (rc < 0)
		return rc;
	if (acc_str_is(s[0], "location"))
		t->location = s[1];
	if (!acc_str_is(s[0], "offset") && !acc_str_is(s[0], "length"))
		return 0;
	if (!acc_str_int(s[1], &v) || v < 0)
		return acc_fail_at(e, ACC_EFORMAT, f->off, "external data at no place");
	if (acc_str_is(s[0], "offset"))
		t->ref.off = (uint64_t)v;
	else
		t->ref.len = (uint64_t)v;
	t->has_len |= acc_str_is(s[0], "length");
	return 0;
}

static int
parse(struct onnx *x, struct tensor *t, struct cursor c, struct acc_err *e)
{
	struct field f;
	int rc;
	while ((rc = next(&c, &f, e)) > 0) {
		switch (f.number) {
		case DIMS:
			rc = dims(t, &c, &f, e);
			break;
		case DATA_TYPE:
			t->type = f.u;
			break;
		case NAME:
			rc = text(x, &f, &t->name, e);
			break;
		case EXTERNAL:
			rc = f.type == BYTES ? external(x, t, &c, &f, e) : 0;
			break;
		case LOCATION:
			t->outside = f.u == 1;
			break;
		case RAW_DATA:
		case FLOAT_DATA:
		case DOUBLE_DATA:
		case INT32_DATA:
		case INT64_DATA:
		case UINT64_DATA:
			if (f.type == BYTES && f.u == 0)
				break;
			t->apart |= t->stored || f.type != BYTES;
			t->stored = true;
			t->ref.enc = f.number == INT32_DATA || f.number == INT64_DATA ||
						     f.number == UINT64_DATA
					     ? ACC_VARINT
					     : ACC_STORED;
			t->ref.off = f.off;
			t->ref.len = f.u;
			break;
		case STRING_DATA:
			t->apart = true;
			break;
		default:
			break;
		}
		if (rc < 0)
			break;
	}
	return rc < 0 ? rc : 0;
}

/* Where it lies, of what size. *info: of that file. */
static int
place(struct onnx *x, struct tensor *t, struct acc_file_info *info, struct acc_err *e)
{
	struct acc_ref *r = &t->ref;
	uint64_t count;
	if (t->type >= NTYPES || types[t->type].name == NULL)
		return acc_fail(e, ACC_EUNSUP, "unknown type %llu of ONNX",
			(unsigned long long)t->type);
	const uint8_t bits = types[t->type].bits;
	if (bits == 0)
		return acc_fail(e, ACC_EUNSUP, "strings are not decoded");
	if (t->apart)
		return acc_fail(e, ACC_EUNSUP,
			"stored in several fields, which are not put together");
	if (!acc_count(r->shape, r->ndim, &count) || count > UINT64_MAX / 128)
		return acc_fail(e, ACC_EFORMAT, "impossible shape");
	r->dtype = types[t->type].dtype;
	const uint64_t len = (count * bits + 7) / 8;
	if (bits < 8) {
		r->ndim = 1;
		r->shape[0] = (int64_t)len;
	}
	if (t->outside && t->location.n == 0)
		return acc_fail(e, ACC_EFORMAT, "external data in no file");
	if (t->outside) {
		int fd = acc_file_beneath(x->dirfd, t->location, e);
		int rc = fd < 0 ? fd : acc_file_stat(fd, info, e);
		if (fd >= 0)
			close(fd);
		if (rc < 0)
			return acc_err_in(e, t->location.p);
		if (!t->has_len)
			r->len = len;
	}
	if (r->enc == ACC_VARINT) {
		/* That there are as many numbers is seen as they are read. */
		r->clen = r->len;
		r->len = len;
		if (r->clen < len / acc_dtype_of(r->dtype)->size)
			return acc_fail(e, ACC_EFORMAT, "other numbers than its shape needs");
		return 0;
	}
	if (r->len != len)
		return acc_fail(e, ACC_EFORMAT, "its shape needs %llu bytes, there are %llu",
			(unsigned long long)len, (unsigned long long)r->len);
	if (len > 0 && (r->off > info->size || len > info->size - r->off))
		return acc_fail_at(e, ACC_ETRUNC, info->size,
			"the file ends before its tensor does");
	return 0;
}

/* --- weights that are made of several initializers --- */

struct entry {
	struct acc_st_tensor t;
	const char *file;
	struct acc_file_info info;
	bool numbers;
	int64_t all; /* of what stands as numbers of the message: each is this one */
};

static bool
find(const void *arg, struct acc_str name, struct packed_tensor *out)
{
	const struct onnx *x = arg;
	const uint64_t *at = acc_map_get(&x->where, name);
	const struct entry *list = (const struct entry *)(const void *)x->list.p;
	if (at == NULL)
		return false;
	*out = (struct packed_tensor){&list[*at].t, list[*at].file, &list[*at].info,
		list[*at].numbers ? &list[*at].all : NULL};
	return true;
}

/* Zero points, which onnx.helper writes as numbers: are all the same? 1 or 0. */
static int
constant(struct onnx *x, const struct tensor *t, int64_t *all)
{
	enum { MOST = 1 << 20 };
	const struct acc_ref *r = &t->ref;
	struct cursor c = {x->fd, r->off, r->off + r->clen};
	uint64_t v, first = 0;
	if (r->enc != ACC_VARINT || (r->dtype != ACC_I8 && r->dtype != ACC_U8) || r->clen > MOST)
		return 0;
	for (bool any = false; c.at < c.end; any = true) {
		/* What is wrong with it is said where it is read. */
		if (varint(&c, &v, NULL) < 0 || (any && v != first))
			return 0;
		first = v;
	}
	*all = (int64_t)first;
	return *all >= INT8_MIN && *all <= UINT8_MAX;
}

static int
note(struct onnx *x, const struct tensor *t, const struct acc_file_info *info, struct acc_err *e)
{
	const struct acc_ref *r = &t->ref;
	int64_t all = 0;
	int rc = r->enc == ACC_STORED ? 1 : constant(x, t, &all);
	if (rc == 0)
		return 0;
	int64_t *shape = acc_alloc(&x->kept, (r->ndim + 1) * sizeof *shape);
	const char *name = acc_arena_copy(&x->kept, t->name.p, t->name.n);
	const char *file = t->outside ? acc_arena_copy(&x->kept, t->location.p, t->location.n)
				      : x->file;
	if (shape == NULL || name == NULL || file == NULL)
		return acc_nomem(e);
	memcpy(shape, r->shape, r->ndim * sizeof *shape);
	const struct entry one = {.t = {.name = {name, t->name.n},
					  .dtype = r->dtype,
					  .ndim = r->ndim,
					  .shape = shape,
					  .off = r->off,
					  .len = r->len},
		.file = file,
		.info = *info,
		.numbers = r->enc != ACC_STORED,
		.all = all};
	const uint64_t *at = acc_map_put(&x->where, one.t.name, x->list.n / sizeof one);
	return at == NULL || acc_buf_add(&x->list, &one, sizeof one) < 0 ? acc_nomem(e) : 0;
}

/* 1: it is a weight that is made of several, or part of one, and is taken care of; 0; < 0. */
static int
put_made(struct onnx *x, const struct tensor *t, struct acc_err *e)
{
	struct packed_tensor own;
	struct packed_weight made;
	if (!find(x, t->name, &own))
		return 0;
	x->set.src = acc_dump_source_id(x->w.c);
	int rc = acc_packed(&x->set, &own, &made, e);
	if (rc != 1)
		return rc < 0 ? rc : rc != 0;
	const struct weight w = {.name = made.name,
		.file = acc_str(own.file),
		.info = *own.info,
		.ref = &made.ref,
		.dtype_raw = acc_str(made.raw),
		.err = made.bad.code != 0 ? &made.bad : NULL,
		.several = true};
	rc = acc_dump_weight(&x->w, &w, e);
	return rc < 0 ? rc : 1;
}

static int
put(struct onnx *x, const struct cursor *graph, const struct field *f, struct acc_err *e)
{
	struct tensor t = {.ref = {.dtype = ACC_NODTYPE}};
	struct acc_err bad = {0};
	struct acc_file_info info = x->info;
	acc_arena_reset(&x->mem);
	int rc = parse(x, &t, inside(graph, f), e);
	if (rc < 0)
		return rc;
	if (t.name.n == 0)
		return acc_fail_at(e, ACC_EFORMAT, f->off, "an initializer without a name");
	const size_t had = x->names.n;
	if (!x->looks && acc_map_put(&x->names, t.name, 0) == NULL)
		return acc_nomem(e);
	if (!x->looks && x->names.n == had)
		return acc_fail_at(e, ACC_EFORMAT, f->off, "%.100s stands twice", t.name.p);
	if (place(x, &t, &info, &bad) < 0 && bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (x->looks)
		return bad.code == 0 ? note(x, &t, &info, e) : 0;
	rc = put_made(x, &t, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	struct weight w = {.name = t.name,
		.file = t.outside && bad.code == 0 ? t.location : acc_str(x->file),
		.info = info,
		.ref = &t.ref,
		.dtype_raw = acc_str(t.type < NTYPES ? types[t.type].name : NULL),
		.err = bad.code != 0 ? &bad : NULL,
		.several = true};
	return acc_dump_weight(&x->w, &w, e);
}

static int
read_graph(struct onnx *x, struct cursor c, struct acc_err *e)
{
	struct field f;
	uint64_t sparse = 0;
	int rc;
	while ((rc = next(&c, &f, e)) > 0) {
		if (f.type == BYTES && f.number == GRAPH_INITIALIZER)
			rc = put(x, &c, &f, e);
		else if (f.type == BYTES && f.number == GRAPH_SPARSE)
			sparse++;
		if (rc < 0)
			return rc;
	}
	if (rc == 0 && sparse > 0 && !x->looks) {
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EUNSUP, "sparse initializers (%llu) are not decoded",
			(unsigned long long)sparse);
		acc_err_in(&bad, x->file);
		acc_dump_say(&x->w.said, x->w.c, &bad);
	}
	return rc;
}

static int
read_model(struct onnx *x, struct acc_err *e)
{
	struct cursor c = {x->fd, 0, x->info.size};
	struct field f;
	bool found = false;
	int rc;
	while ((rc = next(&c, &f, e)) > 0)
		if (f.type == BYTES && f.number == MODEL_GRAPH) {
			found = true;
			if ((rc = read_graph(x, inside(&c, &f), e)) < 0)
				break;
		}
	return rc < 0 ? rc : found ? 0 : acc_fail(e, ACC_EFORMAT, "there is no graph in it");
}

static int
read_onnx(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct onnx x = {.w = {.c = c, .dir = dir, .io = "param"}};
	int rc = acc_dump_real(path, dir, &x.file, e);
	x.dirfd = rc < 0 ? rc : acc_dir_open(dir, e);
	if (x.dirfd < 0)
		return x.dirfd;
	x.fd = acc_file_beneath(x.dirfd, acc_str(x.file), e);
	const struct acc_source s = {.root = dir,
		.format = "onnx",
		.task = "tensor",
		ACC_NO_PLACE,
		.order = "names"};
	rc = x.fd < 0 ? x.fd : acc_file_stat(x.fd, &x.info, e);
	if (rc == 0)
		rc = acc_dump_source(c, &s, e);
	x.set = (struct packed_set){.dirfd = x.dirfd, .find = find, .arg = &x, .adapter = NAN};
	for (int pass = 0; pass < 2 && rc == 0; pass++) {
		x.looks = pass == 0;
		rc = read_model(&x, e);
	}
	if (rc == 0)
		rc = acc_file_same(x.fd, &x.info, e);
	if (x.fd >= 0)
		close(x.fd);
	close(x.dirfd);
	acc_map_release(&x.names);
	acc_map_release(&x.where);
	acc_buf_release(&x.list);
	acc_arena_release(&x.kept);
	acc_arena_release(&x.set.mem);
	acc_arena_release(&x.mem);
	acc_dump_weights_end(&x.w, dir);
	return rc;
}

const struct acc_dump acc_dump_onnx = {
	.name = "onnx",
	.help = "the initializers of a model in ONNX",
	.probe = probe,
	.read = read_onnx,
};
