/* Weights in HDF5, as Keras writes them: .h5, and a .keras, which is a zip with one in it. A layer has the name that
 * its user gave it, where the file says that: the path alone numbers layers of a kind. */
#include "dump/place.h"
#include "dump/weight/weight.h"

#include "acc/zip.h"
#include "io/hdf5.h"

#include <limits.h>
#include <unistd.h>

static const char inside[] = "model.weights.h5";

struct found {
	struct acc_str path;
	struct acc_ref ref;
	struct acc_err err;
};

struct hdf5 {
	struct weights w;
	int fd;
	const char *file;
	struct acc_file_info info;
	struct acc_buf list;  /* of struct found */
	struct acc_map own;   /* path of a group with attribute "name": which of `names` that is */
	struct acc_buf names; /* of struct acc_str */
	struct acc_map taken; /* names that were given */
	struct acc_str typed; /* the object whose attribute "dtype" was the last, and that */
	enum acc_dtype type;
	struct acc_arena mem;
};

static bool
is_keras(const uint8_t *h, size_t n)
{
	return n > 30 && memcmp(h, "PK\3\4", 4) == 0 &&
	       memmem(h + 30, n - 30 < 64 ? n - 30 : 64, "metadata.json", 13) == h + 30;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return 0;
	if (acc_hdf5_is(p->head, p->nhead) || is_keras(p->head, p->nhead))
		return 97;
	return acc_str_ends(p->base, ".h5") || acc_str_ends(p->base, ".keras") ? 30 : 0;
}

static int
take(void *arg, const struct acc_hdf5_item *item)
{
	struct hdf5 *x = arg;
	struct acc_str path = acc_arena_str(&x->mem, item->path);
	if (path.p == NULL)
		return ACC_ENOMEM;
	if (item->ref == NULL) {
		struct acc_str name = acc_arena_str(&x->mem, item->text);
		if (name.p == NULL)
			return ACC_ENOMEM;
		if (acc_str_is(item->name, "dtype")) {
			x->typed = path;
			x->type = acc_dtype_find(name);
		}
		if (!acc_str_is(item->name, "name") || name.n == 0)
			return 0;
		if (acc_map_put(&x->own, path, x->names.n / sizeof name) == NULL ||
			acc_buf_add(&x->names, &name, sizeof name) < 0)
			return ACC_ENOMEM;
		return 0;
	}
	struct found f = {.path = path, .ref = *item->ref};
	if (item->err != NULL)
		f.err = *item->err;
	/* What HDF5 has no type for, such as bf16, h5py writes as bytes: behaviour h5py-bfloat16-opaque. */
	if (item->opaque && acc_str_eq(path, x->typed) && x->type != ACC_NODTYPE &&
		acc_dtype_of(x->type)->size == acc_dtype_of(f.ref.dtype)->size)
		f.ref.dtype = x->type;
	return acc_buf_add(&x->list, &f, sizeof f) < 0 ? ACC_ENOMEM : 0;
}

/* layers/dense/vars/0 of the Dense that is called up: layers/up/vars/0. */
static int
named(struct hdf5 *x, struct acc_str path, struct acc_str *out)
{
	struct acc_buf text = {0}, key = {0};
	int rc = 0;
	for (uint32_t at = 0, end; at < path.n && rc == 0; at = end + 1) {
		for (end = at; end < path.n && path.p[end] != '/';)
			end++;
		struct acc_str part = {path.p + at, end - at};
		key.n = 0;
		rc = acc_buf_add(&key, path.p, end) < 0 || acc_buf_add(&key, "/vars", 5) < 0
			     ? ACC_ENOMEM
			     : 0;
		const uint64_t *own = rc == 0 ? acc_map_get(&x->own,
							(struct acc_str){(const char *)key.p,
								(uint32_t)key.n})
					      : NULL;
		if (own != NULL && end < path.n)
			part = ((const struct acc_str *)(const void *)x->names.p)[*own];
		if (rc == 0 && ((at > 0 && acc_buf_add(&text, "/", 1) < 0) ||
				       acc_buf_add(&text, part.p, part.n) < 0))
			rc = ACC_ENOMEM;
	}
	*out = (struct acc_str){acc_arena_copy(&x->mem, (const char *)text.p, text.n),
		(uint32_t)text.n};
	acc_buf_release(&text);
	acc_buf_release(&key);
	return rc == 0 && out->p == NULL ? ACC_ENOMEM : rc;
}

static int
put_all(struct hdf5 *x, struct acc_err *e)
{
	const struct found *f = (const struct found *)(const void *)x->list.p;
	for (size_t i = 0; i < x->list.n / sizeof *f; i++) {
		struct acc_str name;
		const size_t had = x->taken.n;
		if (named(x, f[i].path, &name) < 0 || acc_map_put(&x->taken, name, 0) == NULL)
			return acc_nomem(e);
		const struct weight w = {.name = x->taken.n > had ? name : f[i].path,
			.file = acc_str(x->file),
			.info = x->info,
			.ref = &f[i].ref,
			.err = f[i].err.code != 0 ? &f[i].err : NULL,
			.several = true};
		int rc = acc_dump_weight(&x->w, &w, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Where the HDF5 lies: the file, or what a .keras has in it. */
static int
place(struct hdf5 *x, uint64_t *base, uint64_t *size, struct acc_err *e)
{
	uint8_t head[4];
	struct acc_zip z = {0};
	*base = 0;
	*size = x->info.size;
	int rc = x->info.size < sizeof head ? acc_fail(e, ACC_EFORMAT, "not an HDF5 file")
					    : acc_file_pread(x->fd, head, sizeof head, 0, e);
	if (rc < 0 || memcmp(head, "PK\3\4", 4) != 0)
		return rc;
	rc = acc_zip_read(x->fd, 0, x->info.size, &z, &x->mem, e);
	if (rc < 0)
		return rc;
	const struct acc_zip_member *m = acc_zip_find(&z, acc_str(inside));
	if (m == NULL)
		return acc_fail(e, ACC_EFORMAT, "there is no %s in it", inside);
	if (m->enc != ACC_STORED)
		return acc_fail(e, ACC_EUNSUP, "%s is compressed: unpack it, and read that",
			inside);
	*base = m->off;
	*size = m->len;
	return 0;
}

static int
read_hdf5(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	uint64_t base, size;
	struct hdf5 x = {.w = {.c = c, .dir = dir, .io = "param"}};
	x.fd = acc_dump_open_file(path, dir, &x.file, e);
	if (x.fd < 0)
		return x.fd;
	const struct acc_source s = {.root = dir,
		.format = "hdf5",
		.task = "tensor",
		ACC_NO_PLACE,
		.order = "names"}; /* whatever the names: behaviour keras-weights-by-order */
	int rc = acc_file_stat(x.fd, &x.info, e);
	rc = rc == 0 ? place(&x, &base, &size, e) : rc;
	rc = rc == 0 ? acc_hdf5_read(x.fd, base, size, take, &x, e) : rc;
	if (rc == ACC_ENOMEM)
		acc_nomem(e);
	rc = rc == 0 ? acc_dump_source(c, &s, e) : rc;
	rc = rc == 0 ? put_all(&x, e) : rc;
	rc = rc == 0 ? acc_file_same(x.fd, &x.info, e) : rc;
	close(x.fd);
	acc_buf_release(&x.list);
	acc_buf_release(&x.names);
	acc_map_release(&x.own);
	acc_map_release(&x.taken);
	acc_arena_release(&x.mem);
	acc_dump_weights_end(&x.w, path);
	return rc;
}

const struct acc_dump acc_dump_hdf5 = {
	.name = "hdf5",
	.help = "weights in HDF5: a .h5 or .keras of Keras",
	.probe = probe,
	.read = read_hdf5,
};
