/* Weights as Orbax has them where it is told to leave OCDBT out: a folder of folders, one an array, each with a
 * .zarray and its chunks. Its database of all arrays, OCDBT, is named. */
#include "dump/jtree.h"
#include "dump/place.h"
#include "dump/weight/weight.h"
#include "io/chunks.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* CheckpointManager's: 7/default. */
static bool
level(const char *name, struct place *p)
{
	int64_t step = acc_dump_place_number(name, "");
	if (step < 0 && strcmp(name, "default") != 0)
		return false;
	p->step = step < 0 ? p->step : step;
	return true;
}

/* Its metadata, and those of its writing. There is no _sharding where all arrays were numpy's. */
static int
holds(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has(dirfd, "_METADATA", e);
	if (rc > 0 && (rc = acc_dir_has(dirfd, "_sharding", e)) == 0)
		rc = acc_dir_has(dirfd, "_CHECKPOINT_METADATA", e);
	return rc;
}

static const struct place_rule rule = {level, holds, 2, "_METADATA"};

static int
probe(const struct acc_probe *p)
{
	return p->is_dir ? acc_dump_probe_places(p, &rule, 66) : 0;
}

/* An array as .zarray has it. */
struct zarray {
	struct acc_ref ref;
	struct acc_str src;
	int64_t rows[ACC_MAXDIM + 1]; /* of chunks: is it compressed; a chunk's shape */
	char dot;
	bool zero; /* a chunk that is not there is of zeros */
};

static int
shapes(const struct jnode *z, struct zarray *a, struct acc_err *e)
{
	enum { MOST = 32 };
	const struct jnode *shape = jtree_get(z, "shape"), *chunks = jtree_get(z, "chunks");
	struct acc_ref *ref = &a->ref;
	uint64_t count;
	if (shape == NULL || chunks == NULL || shape->type != ACC_JSON_ARRAY ||
		chunks->type != ACC_JSON_ARRAY || shape->n != chunks->n || shape->n > MOST)
		return acc_fail(e, ACC_EFORMAT, ".zarray: no shape, or other chunks");
	const struct jnode *c = chunks->child;
	for (const struct jnode *s = shape->child; s != NULL; s = s->next, c = c->next) {
		if (s->type != ACC_JSON_INT || c->type != ACC_JSON_INT || s->i < 0)
			return acc_fail(e, ACC_EFORMAT, ".zarray: an impossible shape");
		a->rows[ref->ndim + 1] = c->i;
		ref->shape[ref->ndim++] = s->i;
	}
	if (!acc_count(ref->shape, ref->ndim, &count) || count > UINT64_MAX / 16)
		return acc_fail(e, ACC_EFORMAT, ".zarray: an impossible shape");
	ref->len = count * acc_dtype_of(ref->dtype)->size;
	return 0;
}

static bool
is_zero(const struct jnode *v)
{
	return v == NULL || v->type == ACC_JSON_NULL || v->type == ACC_JSON_FALSE ||
	       (v->type == ACC_JSON_INT && v->i == 0) || (v->type == ACC_JSON_FLOAT && v->f == 0);
}

/* How an array lies: zarr's specification, version 2. 0 or < 0. */
static int
describe(const struct jnode *z, struct zarray *a, struct acc_err *e)
{
	const struct jnode *by = jtree_get(z, "compressor"), *filters = jtree_get(z, "filters");
	const struct acc_str type = acc_jtree_text(jtree_get(z, "dtype")),
			     order = acc_jtree_text(jtree_get(z, "order")),
			     dot = acc_jtree_text(jtree_get(z, "dimension_separator"));
	struct acc_ref *ref = &a->ref;
	a->dot = dot.n == 1 && dot.p[0] == '/' ? '/' : '.';
	a->zero = is_zero(jtree_get(z, "fill_value"));
	ref->big_endian = type.n > 2 && type.p[0] == '>';
	ref->dtype = type.n > 2 && ispunct((unsigned char)type.p[0])
			     ? acc_dtype_numpy((struct acc_str){type.p + 1, type.n - 1})
			     : acc_dtype_find(type);
	int rc = shapes(z, a, e);
	if (rc < 0)
		return rc;
	if (ref->dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "of dtype %.40s, which is not decoded",
			type.n < 40 ? type.p : "?");
	if (order.n > 0 && !acc_str_is(order, "C"))
		return acc_fail(e, ACC_EUNSUP, "of order %.8s, which is not read", order.p);
	if (filters != NULL && filters->type == ACC_JSON_ARRAY && filters->n > 0)
		return acc_fail(e, ACC_EUNSUP, "filtered, which is not decoded");
	const struct acc_str codec = acc_jtree_text(jtree_get(by, "id"));
	a->rows[0] = by != NULL && by->type == ACC_JSON_OBJECT;
	if (a->rows[0] && !acc_str_is(codec, "zstd"))
		return acc_fail(e, ACC_EUNSUP, "compressed by %.40s, which is not decoded",
			codec.n > 0 ? codec.p : "?");
	return 0;
}

/* The file of chunk number i, of all in row-major order. NULL: no memory. */
static const char *
chunk_name(struct acc_arena *m, const char *name, const struct zarray *a, uint64_t i)
{
	const char *out = a->ref.ndim == 0 ? "0" : "";
	for (uint32_t k = a->ref.ndim; k-- > 0 && out != NULL;) {
		const uint64_t many = acc_chunks_number(a->ref.shape + k, a->rows + 1 + k, 1);
		out = acc_arena_printf(m, "%llu%.*s%s",
			(unsigned long long)(many > 0 ? i % many : 0), out[0] != '\0', &a->dot,
			out);
		i /= many > 0 ? many : 1;
	}
	return out == NULL ? NULL : acc_arena_printf(m, "%s/%s", name, out);
}

/* 1; 0: it is not there, which means zeros; < 0. */
static int
look(int dirfd, const struct zarray *a, const char *file, struct acc_file_info *info,
	struct acc_err *e)
{
	struct acc_err own = {0};
	int fd = acc_file_beneath(dirfd, acc_str(file), &own);
	if (fd == ACC_EIO && acc_file_absent(errno) && a->zero)
		return 0;
	int rc = fd < 0 ? fd : acc_file_stat(fd, info, &own);
	if (fd >= 0)
		close(fd);
	*e = own;
	return rc < 0 ? acc_err_in(e, file) : 1;
}

static int
locate(int dirfd, const char *name, struct zarray *a, struct acc_arena *m, struct acc_err *e)
{
	enum { MOST = 1 << 16 };
	struct acc_ref *ref = &a->ref;
	struct acc_chunks c;
	const uint64_t n = acc_chunks_number(ref->shape, a->rows + 1, ref->ndim);
	if (n == 0 || n > MOST)
		return acc_fail(e, ACC_EUNSUP, "in no chunks, or in more than %d", MOST);
	int64_t *v = acc_alloc(m, 4 * n * sizeof *v);
	struct acc_str *s = acc_alloc(m, 2 * n * sizeof *s);
	if (v == NULL || s == NULL)
		return acc_nomem(e);
	for (uint64_t i = 0; i < n; i++) {
		struct acc_file_info info = {0};
		const char *file = chunk_name(m, name, a, i);
		int rc = file == NULL ? acc_nomem(e) : look(dirfd, a, file, &info, e);
		if (rc < 0)
			return rc;
		s[i] = a->src;
		s[n + i] = acc_str(file);
		v[i] = 0;
		v[n + i] = v[2 * n + i] = (int64_t)info.size;
		v[3 * n + i] = info.mtime_ns;
	}
	ref->enc = ACC_CHUNKS;
	ref->parts = (struct acc_parts){.n = (uint32_t)n,
		.nrows = ref->ndim + 1,
		.src = s,
		.file = s + n,
		.off = v,
		.len = v + n,
		.fsize = v + 2 * n,
		.mtime = v + 3 * n,
		.rows = a->rows};
	return acc_chunks_read(ref, &c, e);
}

/* The one chunk that is all of it. 1; 0: it is of zeros; < 0. */
static int
locate_one(int dirfd, const char *file, struct zarray *a, struct acc_file_info *info,
	struct acc_err *e)
{
	struct acc_ref *ref = &a->ref;
	int rc = look(dirfd, a, file, info, e);
	if (rc <= 0)
		return rc;
	ref->enc = a->rows[0] ? ACC_ZSTD : ACC_STORED;
	ref->clen = a->rows[0] ? info->size : 0;
	if (ref->enc == ACC_STORED && info->size != ref->len)
		return acc_fail(e, ACC_EFORMAT, "%s: its shape needs %llu bytes, there are %llu",
			file, (unsigned long long)ref->len, (unsigned long long)info->size);
	return 1;
}

static int
put(struct weights *w, int dirfd, const char *name, struct acc_arena *m, struct acc_err *e)
{
	struct zarray a = {.ref = {.dtype = ACC_NODTYPE}, .src = acc_dump_source_id(w->c)};
	struct acc_file_info info = {0};
	struct acc_err bad = {0};
	struct jnode *root = NULL;
	const char *path = acc_arena_printf(m, "%s/.zarray", name), *file = path;
	int rc = path == NULL ? acc_nomem(&bad) : acc_jtree_file(dirfd, path, path, m, &root, &bad);
	if (rc == 0)
		rc = root == NULL ? acc_fail(&bad, ACC_EFORMAT, ".zarray: empty")
				  : describe(root, &a, &bad);
	bool one = true;
	for (uint32_t i = 0; i < a.ref.ndim; i++)
		one &= a.ref.shape[i] == a.rows[i + 1];
	if (rc == 0 && one) {
		file = chunk_name(m, name, &a, 0);
		rc = file == NULL ? acc_nomem(&bad) : locate_one(dirfd, file, &a, &info, &bad);
		one = rc != 0 || a.ref.ndim == 0;
		if (rc == 0 && one)
			rc = acc_fail(&bad, ACC_EFORMAT, "cannot open its chunk %s", file);
	}
	if (rc >= 0 && !one)
		locate(dirfd, name, &a, m, &bad);
	if (file == NULL || bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	const struct weight x = {.name = acc_str(name),
		.file = acc_str(file),
		.info = info,
		.ref = &a.ref,
		.err = bad.code != 0 ? &bad : NULL,
		.several = true};
	return acc_dump_weight(w, &x, e);
}

static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct weights w = {.c = c, .dir = dir, .io = "param"};
	const struct acc_source src = {.root = dir,
		.format = "orbax",
		.framework = "jax",
		.task = "tensor",
		.step = at->step,
		.rank = -1,
		.proc = -1,
		.order = "names"};
	struct acc_arena m = {0};
	const char **names;
	(void)file;
	if (!acc_dump_wants(c, at->step, -1))
		return 0;
	int rc = acc_dir_has(dirfd, "manifest.ocdbt", e);
	if (rc > 0)
		return acc_fail(e, ACC_EUNSUP,
			"Orbax' arrays in an OCDBT database, which is not read: save them with use_ocdbt=False");
	int64_t n = rc < 0 ? rc : acc_dir_list(dirfd, &names, &m, e);
	rc = n < 0 ? (int)n : acc_dump_source(c, &src, e);
	uint64_t arrays = 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct acc_err none = {0};
		int fd = acc_dir_beneath(dirfd, names[i], &none);
		if (fd < 0)
			continue;
		int zarr = acc_dir_has(fd, ".zarray", e),
		    newer = zarr == 0 ? acc_dir_has(fd, "zarr.json", e) : 0;
		close(fd);
		rc = zarr < 0 ? zarr : newer < 0 ? newer : 0;
		arrays += zarr > 0;
		if (rc == 0 && zarr > 0)
			rc = put(&w, dirfd, names[i], &m, e);
		if (rc == 0 && newer > 0)
			rc = acc_fail(e, ACC_EUNSUP,
				"arrays of zarr 3, which are not read: save them with use_zarr3=False");
	}
	if (rc == 0 && arrays == 0)
		rc = acc_fail(e, ACC_EFORMAT, "there is no array in it");
	acc_dump_weights_end(&w, dir);
	acc_arena_release(&m);
	return rc;
}

static int
read_orbax(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_orbax = {
	.name = "orbax",
	.help = "a checkpoint of Orbax without OCDBT: NAME/.zarray",
	.probe = probe,
	.read = read_orbax,
};
