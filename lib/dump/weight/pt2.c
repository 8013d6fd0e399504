/* The weights of a program that torch.export or AOTInductor has packed (.pt2): a zip of raw storages, and JSON that
 * says what they are. Its constants are no part of a module's state dict, and not read; nor is the program. */
#include "acc/json.h"
#include "acc/zip.h"
#include "dump/place.h"
#include "dump/weight/weight.h"

#include <limits.h>
#include <unistd.h>

#define WEIGHTS "data/weights/"

/* torch/_export/serde/schema.py, ScalarType. */
static const enum acc_dtype types[] = {ACC_NODTYPE, ACC_U8, ACC_I8, ACC_I16, ACC_I32, ACC_I64,
	ACC_F16, ACC_F32, ACC_F64, ACC_C32, ACC_C64, ACC_C128, ACC_BOOL, ACC_BF16};
static const enum acc_dtype later[] = {ACC_U16, ACC_F8E4M3, ACC_F8E5M2, ACC_F8E4M3FNUZ,
	ACC_F8E5M2FNUZ, ACC_F8E8M0, ACC_U32, ACC_U64};
enum { NTYPES = sizeof types / sizeof *types, FIRST = 28, NLATER = sizeof later / sizeof *later };

static enum acc_dtype
dtype_of(int64_t t)
{
	return t >= 0 && t < NTYPES               ? types[t]
	       : t >= FIRST && t < FIRST + NLATER ? later[t - FIRST]
						  : ACC_NODTYPE;
}

static int
probe(const struct acc_probe *p)
{
	const bool named = !p->is_dir && acc_str_ends(p->base, ".pt2");
	if (p->is_dir || p->nhead < 30 || memcmp(p->head, "PK\3\4", 4) != 0)
		return named ? 30 : 0;
	const size_t n = p->head[26] | (size_t)p->head[27] << 8;
	const bool weights = n <= p->nhead - 30 &&
			     memmem(p->head + 30, n, "/" WEIGHTS, sizeof WEIGHTS) != NULL;
	return named ? 96 : weights ? 90 : 0;
}

struct pt2 {
	struct weights w;
	int fd;
	const char *file;
	struct acc_file_info info;
	struct acc_zip zip;
	struct acc_json *j;
	struct acc_arena mem, one; /* one: of one tensor */
	struct acc_err *e;
};

/* What is said of one. */
struct entry {
	struct acc_str name, path;
	bool tensor, pickled;
	int64_t dtype, first;
	int64_t shape[ACC_MAXDIM], stride[ACC_MAXDIM];
	uint32_t ndim, nstride;
};

/* --- JSON --- */

static int
next(struct pt2 *x, struct acc_json_tok *t)
{
	int rc = acc_json_next(x->j, t, x->e);
	return rc == 0 ? acc_fail(x->e, ACC_ETRUNC, "the JSON of its weights ends too early") : rc;
}

static int
wrong(struct pt2 *x, const struct acc_json_tok *t)
{
	return acc_fail_at(x->e, ACC_EFORMAT, t->pos,
		"the JSON of its weights is not as torch writes it");
}

/* The number n, or {"as_int": n}. */
static int
number(struct pt2 *x, struct acc_json_tok t, int64_t *out)
{
	int rc = 1;
	const bool in = t.type == ACC_JSON_OBJECT;
	if (in && (rc = next(x, &t)) > 0 && (t.type != ACC_JSON_KEY || !acc_str_is(t.s, "as_int")))
		return wrong(x, &t);
	if (in && rc > 0)
		rc = next(x, &t);
	if (rc > 0 && t.type != ACC_JSON_INT)
		return wrong(x, &t);
	*out = t.i;
	if (in && rc > 0 && (rc = next(x, &t)) > 0 && t.type != ACC_JSON_OBJECT_END)
		return wrong(x, &t);
	return rc;
}

static int
numbers(struct pt2 *x, int64_t *out, uint32_t *n)
{
	struct acc_json_tok t;
	int rc = next(x, &t);
	if (rc > 0 && t.type != ACC_JSON_ARRAY)
		return wrong(x, &t);
	for (*n = 0; rc > 0 && (rc = next(x, &t)) > 0 && t.type != ACC_JSON_ARRAY_END; ++*n) {
		if (*n == ACC_MAXDIM)
			return wrong(x, &t);
		rc = number(x, t, &out[*n]);
	}
	return rc;
}

/* The members of an object, after its beginning: fn is given each key. */
typedef int key_fn(struct pt2 *x, struct acc_str key, struct entry *n);

static int
members(struct pt2 *x, key_fn *fn, struct entry *n)
{
	struct acc_json_tok t;
	int rc;
	while ((rc = next(x, &t)) > 0 && t.type == ACC_JSON_KEY)
		if ((rc = fn(x, t.s, n)) < 0)
			return rc;
	return rc > 0 && t.type != ACC_JSON_OBJECT_END ? wrong(x, &t) : rc;
}

static int
meta(struct pt2 *x, struct acc_str key, struct entry *n)
{
	struct acc_json_tok t;
	if (acc_str_is(key, "sizes"))
		return numbers(x, n->shape, &n->ndim);
	if (acc_str_is(key, "strides"))
		return numbers(x, n->stride, &n->nstride);
	const bool first = acc_str_is(key, "storage_offset");
	if (!first && !acc_str_is(key, "dtype"))
		return acc_json_skip(x->j, x->e);
	int rc = next(x, &t);
	return rc < 0 ? rc : number(x, t, first ? &n->first : &n->dtype);
}

static int
about(struct pt2 *x, struct acc_str key, struct entry *n)
{
	struct acc_json_tok t;
	const bool path = acc_str_is(key, "path_name"), pickled = acc_str_is(key, "use_pickle");
	if (!path && !pickled && !acc_str_is(key, "tensor_meta"))
		return acc_json_skip(x->j, x->e);
	int rc = next(x, &t);
	if (rc > 0 && path && t.type == ACC_JSON_STRING) {
		n->path = acc_arena_str(&x->one, t.s);
		return n->path.p == NULL ? acc_nomem(x->e) : rc;
	}
	if (rc > 0 && pickled)
		n->pickled = t.type == ACC_JSON_TRUE;
	else if (rc > 0 && !path && t.type == ACC_JSON_OBJECT) {
		n->tensor = true;
		rc = members(x, meta, n);
	} else if (rc > 0 && (path || t.type != ACC_JSON_NULL)) {
		return wrong(x, &t);
	}
	return rc;
}

/* --- its tensors --- */

/* In the zip the storage is `folder` and the path. */
static int
place(struct pt2 *x, const struct entry *n, struct acc_str folder, struct acc_ref *r,
	struct acc_err *e)
{
	const char *path = acc_arena_printf(&x->one, "%.*s%.*s", ACC_PRS(folder), ACC_PRS(n->path));
	if (path == NULL)
		return acc_nomem(e);
	const struct acc_zip_member *m = acc_zip_find(&x->zip, acc_str(path));
	if (n->pickled)
		return acc_fail(e, ACC_EUNSUP, "pickled, which is not decoded");
	if (r->dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "unknown type %lld of torch", (long long)n->dtype);
	if (m == NULL)
		return acc_fail(e, ACC_EFORMAT, "its bytes, %.150s, are not in the file", path);
	if (n->nstride != n->ndim || n->first < 0)
		return acc_fail(e, ACC_EFORMAT, "an impossible shape");
	r->strided = true;
	r->first = (uint64_t)n->first;
	r->off = m->off;
	r->len = m->len;
	r->enc = m->enc;
	r->clen = m->clen;
	r->has_crc = !m->unsummed;
	r->crc32 = m->crc32;
	memcpy(r->stride, n->stride, n->ndim * sizeof *n->stride);
	return acc_ref_check(r, e);
}

static int
put(struct pt2 *x, const struct entry *n, struct acc_str folder)
{
	struct acc_err bad = {0};
	struct acc_ref ref = {.dtype = dtype_of(n->dtype), .ndim = n->ndim};
	if (!n->tensor)
		return 1; /* no tensor */
	memcpy(ref.shape, n->shape, n->ndim * sizeof *n->shape);
	if (place(x, n, folder, &ref, &bad) < 0 && bad.code == ACC_ENOMEM)
		return acc_nomem(x->e);
	struct weight w = {.name = n->name,
		.file = acc_str(x->file),
		.info = x->info,
		.ref = &ref,
		.err = bad.code != 0 ? &bad : NULL,
		.several = true};
	int rc = acc_dump_weight(&x->w, &w, x->e);
	return rc < 0 ? rc : 1;
}

static int
config(struct pt2 *x, struct acc_str folder)
{
	struct acc_json_tok t;
	int rc = next(x, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return wrong(x, &t);
	while (rc > 0 && (rc = next(x, &t)) > 0 && t.type == ACC_JSON_KEY) {
		struct entry n = {.dtype = 0};
		acc_arena_reset(&x->one);
		n.name = acc_arena_str(&x->one, t.s);
		if (n.name.p == NULL)
			return acc_nomem(x->e);
		rc = next(x, &t);
		if (rc > 0 && t.type != ACC_JSON_OBJECT)
			return wrong(x, &t);
		rc = rc < 0 ? rc : members(x, about, &n);
		rc = rc < 0 ? rc : put(x, &n, folder);
	}
	return rc;
}

static int
read_config(struct pt2 *x, const struct acc_zip_member *m, struct acc_str folder)
{
	struct acc_json_tok t;
	if (m->enc != ACC_STORED)
		return acc_fail_at(x->e, ACC_EUNSUP, m->off, "%.150s is compressed", m->name.p);
	x->j = acc_json_open(acc_bytes_part(x->fd, "", m->off, m->len, x->e), false, x->e);
	int rc = x->j == NULL ? -1 : next(x, &t);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		rc = wrong(x, &t);
	while (rc > 0 && (rc = next(x, &t)) > 0 && t.type == ACC_JSON_KEY) {
		const bool found = acc_str_is(t.s, "config");
		rc = found ? config(x, folder) : acc_json_skip(x->j, x->e);
		rc = rc == 0 ? 1 : rc;
	}
	acc_json_close(x->j);
	x->j = NULL;
	return rc < 0 ? rc : 0;
}

/* "m/data/weights/model_weights_config.json": what stands before the last slash, with it. */
static bool
is_config(struct acc_str name, struct acc_str *folder)
{
	const char *slash = name.n == 0 ? NULL : memrchr(name.p, '/', name.n);
	if (slash == NULL)
		return false;
	*folder = (struct acc_str){name.p, (uint32_t)(slash - name.p) + 1};
	return acc_str_ends(*folder, "/" WEIGHTS) && acc_str_ends(name, "_weights_config.json");
}

static int
read_archive(struct pt2 *x)
{
	struct acc_str folder;
	size_t found = 0;
	int rc = acc_zip_read(x->fd, 0, x->info.size, &x->zip, &x->mem, x->e);
	for (size_t i = 0; i < x->zip.n && rc == 0; i++)
		if (is_config(x->zip.m[i].name, &folder)) {
			rc = read_config(x, &x->zip.m[i], folder);
			found++;
		}
	return rc == 0 && found == 0
		       ? acc_fail(x->e, ACC_EUNSUP,
				 "nothing in it says where weights are, as torch 2.8 and later do")
		       : rc;
}

static int
read_pt2(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct pt2 x = {.w = {.c = c, .dir = dir, .io = "param"}, .e = e};
	x.fd = acc_dump_open_file(path, dir, &x.file, e);
	if (x.fd < 0)
		return x.fd;
	const struct acc_source s = {.root = dir,
		.format = "pt2",
		.framework = "pytorch",
		.task = "tensor",
		ACC_NO_PLACE,
		.order = "names"};
	int rc = acc_file_stat(x.fd, &x.info, e);
	if (rc == 0)
		rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = read_archive(&x);
	if (rc == 0)
		rc = acc_file_same(x.fd, &x.info, e);
	close(x.fd);
	acc_arena_release(&x.mem);
	acc_arena_release(&x.one);
	acc_dump_weights_end(&x.w, path);
	return rc;
}

const struct acc_dump acc_dump_pt2 = {
	.name = "pt2",
	.help = "the weights of a program of torch.export: .pt2",
	.probe = probe,
	.read = read_pt2,
};
