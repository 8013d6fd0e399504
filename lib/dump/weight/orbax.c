/* Weights as Orbax has them where it is told to leave OCDBT out: a folder of folders, one an array, each with a
 * .zarray and one chunk. Its database of all arrays, OCDBT, is named. */
#include "dump/jtree.h"
#include "dump/place.h"
#include "dump/weight/weight.h"

#include <ctype.h>
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

/* Its metadata; of a database or of arrays. */
static int
holds(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has(dirfd, "_METADATA", e);
	return rc > 0 ? acc_dir_has(dirfd, "_sharding", e) : rc;
}

static const struct place_rule rule = {level, holds, 2, "_METADATA"};

static int
probe(const struct acc_probe *p)
{
	return p->is_dir ? acc_dump_probe_places(p, &rule, 66) : 0;
}

/* How an array lies: zarr's specification, version 2. 0 or < 0. */
static int
describe(const struct jnode *z, struct acc_ref *ref, char chunk[256], struct acc_err *e)
{
	const struct jnode *shape = jtree_get(z, "shape"), *chunks = jtree_get(z, "chunks"),
			   *by = jtree_get(z, "compressor"), *filters = jtree_get(z, "filters");
	const struct acc_str type = acc_jtree_text(jtree_get(z, "dtype")),
			     order = acc_jtree_text(jtree_get(z, "order")),
			     dot = acc_jtree_text(jtree_get(z, "dimension_separator"));
	const struct jnode *c = chunks == NULL ? NULL : chunks->child;
	uint64_t count;
	if (shape == NULL || chunks == NULL || shape->type != ACC_JSON_ARRAY ||
		chunks->type != ACC_JSON_ARRAY || shape->n != chunks->n || shape->n > 32)
		return acc_fail(e, ACC_EFORMAT, ".zarray: no shape, or other chunks");
	size_t at = shape->n == 0 ? (size_t)snprintf(chunk, 256, "0") : 0;
	bool one = true;
	for (const struct jnode *s = shape->child; s != NULL; s = s->next, c = c->next) {
		if (s->type != ACC_JSON_INT || c->type != ACC_JSON_INT || s->i < 0)
			return acc_fail(e, ACC_EFORMAT, ".zarray: an impossible shape");
		one &= s->i == c->i;
		ref->shape[ref->ndim++] = s->i;
		at += (size_t)snprintf(chunk + at, 256 - at, "%s0",
			at == 0                         ? ""
			: dot.n == 1 && dot.p[0] == '/' ? "/"
							: ".");
	}
	ref->big_endian = type.n > 2 && type.p[0] == '>';
	ref->dtype = type.n > 2 && ispunct((unsigned char)type.p[0])
			     ? acc_dtype_numpy((struct acc_str){type.p + 1, type.n - 1})
			     : acc_dtype_find(type);
	if (ref->dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "of dtype %.40s, which is not decoded",
			type.n < 40 ? type.p : "?");
	if (!acc_count(ref->shape, ref->ndim, &count) || count > UINT64_MAX / 16)
		return acc_fail(e, ACC_EFORMAT, ".zarray: an impossible shape");
	if (!one)
		return acc_fail(e, ACC_EUNSUP, "in several chunks, which are not read");
	if (order.n > 0 && !acc_str_is(order, "C"))
		return acc_fail(e, ACC_EUNSUP, "of order %.8s, which is not read", order.p);
	if (filters != NULL && filters->type == ACC_JSON_ARRAY && filters->n > 0)
		return acc_fail(e, ACC_EUNSUP, "filtered, which is not decoded");
	const struct acc_str codec = acc_jtree_text(jtree_get(by, "id"));
	if (by != NULL && by->type == ACC_JSON_OBJECT && !acc_str_is(codec, "zstd"))
		return acc_fail(e, ACC_EUNSUP, "compressed by %.40s, which is not decoded",
			codec.n > 0 ? codec.p : "?");
	ref->enc = by != NULL && by->type == ACC_JSON_OBJECT ? ACC_ZSTD : ACC_STORED;
	ref->len = count * acc_dtype_of(ref->dtype)->size;
	return 0;
}

/* Its chunk. */
static int
locate(int dirfd, const char *file, struct acc_ref *ref, struct acc_file_info *info,
	struct acc_err *e)
{
	int fd = acc_file_beneath(dirfd, acc_str(file), e);
	int rc = fd < 0 ? fd : acc_file_stat(fd, info, e);
	if (fd >= 0)
		close(fd);
	if (rc < 0)
		return acc_err_in(e, file);
	ref->clen = ref->enc == ACC_ZSTD ? info->size : 0;
	if (ref->enc == ACC_STORED && info->size != ref->len)
		return acc_fail(e, ACC_EFORMAT, "%s: its shape needs %llu bytes, there are %llu",
			file, (unsigned long long)ref->len, (unsigned long long)info->size);
	return 0;
}

static int
put(struct weights *w, int dirfd, const char *name, struct acc_arena *m, struct acc_err *e)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE};
	struct acc_file_info info = {0};
	struct acc_err bad = {0};
	char chunk[256] = "";
	struct jnode *root = NULL;
	const char *path = acc_arena_printf(m, "%s/.zarray", name);
	int rc = path == NULL ? acc_nomem(&bad) : acc_jtree_file(dirfd, path, path, m, &root, &bad);
	if (rc == 0)
		rc = root == NULL ? acc_fail(&bad, ACC_EFORMAT, ".zarray: empty")
				  : describe(root, &ref, chunk, &bad);
	const char *file = acc_arena_printf(m, "%s/%s", name, chunk);
	if (file == NULL || bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc == 0)
		rc = locate(dirfd, file, &ref, &info, &bad);
	const struct weight x = {.name = acc_str(name),
		.file = acc_str(file),
		.info = info,
		.ref = &ref,
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
