/* torch.distributed.checkpoint: .metadata is a pickle that says which part of which tensor is
 * stored where; each part is a whole file of torch.save within a .distcp file. */
#include "dump/weight/dcp.h"
#include "dump/weight/dcp_part.h"
#include "dump/weight/dcp_st.h"
#include "dump/weight/dcp_stack.h"
#include "dump/place.h"
#include "dump/weight/ptfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAXMETA = 1 << 30 };

/* Where one part is stored: an entry of storage_data. */
struct stored {
	struct acc_str file;
	uint64_t off, len;
	bool changed; /* compressed or encrypted on the way */
};

struct dcp {
	struct weights *w;
	int dirfd;
	struct acc_arena mem; /* of the pickle and all that follows from it */
	struct acc_map parts; /* key_of() -> index of `stored` */
	struct stored *stored;
	size_t nstored;
	struct dcp_st st;
	struct acc_err *e;
};

static int
malformed(struct dcp *d, const char *what)
{
	return acc_fail(d->e, ACC_EFORMAT, "not the metadata of torch.distributed.checkpoint: %s",
		what);
}

/* --- dataclasses --- */

/* Is it an object of this class, whatever its module? */
static bool
is(const struct acc_py *x, const char *class)
{
	if (x == NULL || x->type != ACC_PY_CALL)
		return false;
	struct acc_str s = x->item[ACC_CALL_NAME]->s;
	size_t n = strlen(class);
	return s.n > n && s.p[s.n - n - 1] == ' ' && memcmp(s.p + s.n - n, class, n) == 0;
}

static const struct acc_py *
get(const struct acc_py *x, const char *name)
{
	const struct acc_py *state = x->type == ACC_PY_CALL ? x->item[ACC_CALL_STATE] : NULL;
	if (state == NULL || state->type != ACC_PY_DICT)
		return NULL;
	for (uint32_t i = 0; i < state->n; i += 2)
		if (state->item[i]->type == ACC_PY_STR && acc_str_is(state->item[i]->s, name))
			return state->item[i + 1];
	return NULL;
}

static const struct acc_py *
typed(const struct acc_py *x, const char *name, enum acc_py_type type)
{
	const struct acc_py *v = get(x, name);
	return v != NULL && v->type == type ? v : NULL;
}

/* The integers of a torch.Size, a tuple or a list; false if it is none, or one is negative. */
static bool
dims(const struct acc_py *x, int64_t *out, uint32_t *n)
{
	if (x != NULL && x->type == ACC_PY_CALL && is(x, "Size") && x->item[ACC_CALL_ARGS]->n == 1)
		x = x->item[ACC_CALL_ARGS]->item[0];
	if (x == NULL || (x->type != ACC_PY_TUPLE && x->type != ACC_PY_LIST) || x->n > ACC_MAXDIM)
		return false;
	for (uint32_t i = 0; i < x->n; i++) {
		if (x->item[i]->type != ACC_PY_INT || x->item[i]->i < 0)
			return false;
		out[i] = x->item[i]->i;
	}
	*n = x->n;
	return true;
}

/* --- where what is --- */

/* A name and where the part begins, as bytes. at NULL: it has no parts. */
static struct acc_str
key_of(struct dcp *d, struct acc_str name, const int64_t *at, uint32_t n)
{
	size_t more = at == NULL ? 0 : 1 + n * sizeof *at;
	char *p = acc_alloc(&d->mem, name.n + more + 1);
	if (p == NULL)
		return (struct acc_str){0};
	memcpy(p, name.p, name.n);
	if (at != NULL) {
		p[name.n] = '\0';
		memcpy(p + name.n + 1, at, n * sizeof *at);
	}
	return (struct acc_str){p, (uint32_t)(name.n + more)};
}

static int
note_stored(struct dcp *d, const struct acc_py *index, const struct acc_py *info)
{
	const struct acc_py *fqn = is(index, "MetadataIndex") ? typed(index, "fqn", ACC_PY_STR)
							      : NULL;
	const struct acc_py *path = NULL, *off = NULL, *len = NULL, *at = NULL, *how = NULL;
	int64_t first[ACC_MAXDIM];
	uint32_t n = 0;
	if (is(info, "_StorageInfo")) {
		path = typed(info, "relative_path", ACC_PY_STR);
		off = typed(info, "offset", ACC_PY_INT);
		len = typed(info, "length", ACC_PY_INT);
		how = get(info, "transform_descriptors");
	}
	if (fqn == NULL || path == NULL || off == NULL || len == NULL || off->i < 0 || len->i < 0)
		return malformed(d, "an entry of storage_data");
	at = get(index, "offset");
	if (at != NULL && at->type == ACC_PY_NONE)
		at = NULL;
	if (at != NULL && !dims(at, first, &n))
		return malformed(d, "the offset of a part");
	struct acc_str key = key_of(d, fqn->s, at == NULL ? NULL : first, n);
	uint64_t *slot = key.p == NULL ? NULL : acc_map_put(&d->parts, key, d->nstored);
	if (slot == NULL)
		return acc_nomem(d->e);
	if (*slot != d->nstored)
		return malformed(d, "two entries of storage_data for one part");
	d->stored[d->nstored++] = (struct stored){.file = path->s,
		.off = (uint64_t)off->i,
		.len = (uint64_t)len->i,
		.changed = how != NULL && how->type != ACC_PY_NONE && how->n > 0};
	return 0;
}

static int
note_all(struct dcp *d, const struct acc_py *data)
{
	d->stored = acc_alloc(&d->mem, data->n / 2 * sizeof *d->stored);
	if (d->stored == NULL)
		return acc_nomem(d->e);
	int rc = 0;
	for (uint32_t i = 0; i < data->n && rc == 0; i += 2)
		rc = note_stored(d, data->item[i], data->item[i + 1]);
	return rc;
}

/* --- tensors --- */

static int
name_part(struct dcp_part *p, struct acc_str fqn)
{
	p->fqn = fqn;
	p->name = acc_dump_weight_part(&p->d->mem, fqn, p->at, p->size, p->only ? 0 : p->ndim);
	return p->name.p == NULL ? acc_nomem(p->d->e) : 0;
}

/* What is known of a part that cannot be read. */
static int
put_bad(struct dcp_part *p, struct acc_str file, const struct acc_err *why)
{
	struct acc_ref ref = {.dtype = ACC_NODTYPE, .ndim = p->ndim};
	memcpy(ref.shape, p->size, p->ndim * sizeof *p->size);
	struct weight x = {.name = p->name,
		.file = file,
		.ref = &ref,
		.err = why,
		.several = true,
		.whole = p->only ? NULL : p->whole,
		.at = p->at,
		.nwhole = p->ndim};
	return acc_dump_weight(p->d->w, &x, p->d->e);
}

/* The one tensor that a part is. */
static int
part_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct dcp_part *p = arg;
	if (p->n++ > 0 || l->value_type != NULL)
		return acc_fail(e, ACC_EFORMAT, "a part that is not one tensor");
	if (l->err == NULL && (l->ref->ndim != p->ndim || memcmp(l->ref->shape, p->size,
								  p->ndim * sizeof *p->size) != 0))
		return acc_fail(e, ACC_EFORMAT, "its shape is not that of .metadata");
	int rc = 0;
	if (l->err == NULL && acc_dcp_stacked(p->fqn, p->ndim) > 0) {
		f->whole = NULL;
		rc = acc_dcp_put_stacked(f, l, p->fqn, p->at, p->size, p->whole);
	} else {
		rc = acc_dump_ptleaf(f, l, p->name, NULL);
	}
	return rc == 0 ? 1 : rc;
}

/* Parts in safetensors: all that a rank has written is one such file. 0: it is none. */
static int
read_st(struct dcp_part *p, const struct stored *s, struct acc_str fqn, struct acc_err *bad)
{
	const struct acc_st_tensor *t;
	struct acc_file_info info;
	int rc = acc_dcp_st_find(&p->d->st, p->d->dirfd, s->file, fqn, &t, &info, bad);
	if (rc <= 0)
		return rc;
	if (t == NULL)
		return acc_fail(bad, ACC_EFORMAT, "the file does not hold it");
	struct acc_ref ref = {.dtype = t->dtype, .ndim = t->ndim, .off = t->off, .len = t->len};
	memcpy(ref.shape, t->shape, t->ndim * sizeof *t->shape);
	if (t->ndim != p->ndim || memcmp(t->shape, p->size, p->ndim * sizeof *p->size) != 0)
		return acc_fail(bad, ACC_EFORMAT, "its shape is not that of .metadata");
	struct weight x = {.name = p->name,
		.file = s->file,
		.info = info,
		.ref = &ref,
		.dtype_raw = acc_str(t->dtype_raw),
		.several = true,
		.whole = p->only ? NULL : p->whole,
		.at = p->at,
		.nwhole = p->ndim};
	rc = acc_dump_weight(p->d->w, &x, p->d->e);
	return rc < 0 ? rc : 1;
}

static int
read_part(struct dcp_part *p, const struct stored *s, struct acc_str fqn)
{
	struct acc_err bad = {0};
	int st = s->changed ? 0 : read_st(p, s, fqn, &bad);
	if (st != 0)
		return st > 0                   ? 0
		       : bad.code == ACC_ENOMEM ? acc_nomem(p->d->e)
		       : bad.code == 0          ? st
						: put_bad(p, s->file, &bad);
	const char *file = acc_arena_copy(&p->d->mem, s->file.p, s->file.n);
	if (file == NULL)
		return acc_nomem(p->d->e);
	struct ptfile f = {.w = p->d->w,
		.dirfd = p->d->dirfd,
		.file = file,
		.slice = true,
		.off = s->off,
		.len = s->len,
		.whole = p->only ? NULL : p->whole,
		.at = p->at,
		.nwhole = p->ndim,
		.own = part_leaf,
		.arg = p};
	int rc = s->changed ? acc_fail(&bad, ACC_EUNSUP, "it is compressed or encrypted")
			    : acc_dump_ptfile(&f, &bad);
	if (rc == 0 && p->n == 0)
		acc_fail(&bad, ACC_EFORMAT, "a part that is not one tensor");
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(p->d->e);
	/* Stopped, or the failure came after its record. */
	return bad.code == 0 ? rc : put_bad(p, s->file, &bad);
}

static int
chunk(struct dcp *d, const struct acc_py *x, const int64_t *whole, uint32_t ndim,
	struct dcp_part *p)
{
	uint32_t na, ns;
	*p = (struct dcp_part){.d = d, .ndim = ndim, .only = true};
	if (!is(x, "ChunkStorageMetadata") || !dims(get(x, "offsets"), p->at, &na) ||
		!dims(get(x, "sizes"), p->size, &ns) || na != ndim || ns != ndim)
		return malformed(d, "a chunk");
	for (uint32_t i = 0; i < ndim; i++) {
		p->whole[i] = whole[i];
		if (p->at[i] > whole[i] || p->size[i] > whole[i] - p->at[i])
			return malformed(d, "a chunk outside of its tensor");
		p->only = p->only && p->size[i] == whole[i];
	}
	return 0;
}

static int
read_chunk(struct dcp_part *p, struct acc_str fqn, const char *why)
{
	struct acc_err bad = {0};
	int rc = name_part(p, fqn);
	if (rc < 0)
		return rc;
	struct acc_str key = key_of(p->d, fqn, p->at, p->ndim);
	if (key.p == NULL)
		return acc_nomem(p->d->e);
	const uint64_t *at = acc_map_get(&p->d->parts, key);
	if (why == NULL && at != NULL)
		return read_part(p, &p->d->stored[*at], fqn);
	acc_fail(&bad, ACC_EFORMAT, "%s",
		why == NULL ? "no entry of storage_data says where it is" : why);
	return put_bad(p, ACC_STR(".metadata"), &bad);
}

static int
read_tensor(struct dcp *d, struct acc_str fqn, const struct acc_py *meta)
{
	int64_t whole[ACC_MAXDIM];
	uint32_t ndim;
	const struct acc_py *chunks = typed(meta, "chunks", ACC_PY_LIST);
	if (chunks == NULL || !dims(get(meta, "size"), whole, &ndim))
		return malformed(d, "a tensor");
	if (chunks->n > (1 << 20))
		return malformed(d, "a million parts");
	struct dcp_part *p = calloc(chunks->n + 1, sizeof *p);
	if (p == NULL)
		return acc_nomem(d->e);
	int rc = 0;
	for (uint32_t i = 0; i < chunks->n && rc == 0; i++)
		rc = chunk(d, chunks->item[i], whole, ndim, &p[i]);
	const char *why = NULL;
	if (rc == 0)
		rc = acc_dcp_make_up(p, chunks->n, whole, ndim, &why, d->e);
	for (uint32_t i = 0; i < chunks->n && rc == 0; i++)
		if (!p[i].again)
			rc = read_chunk(&p[i], fqn, why);
	free(p);
	return rc;
}

/* --- what is no tensor: an object, saved by torch.save --- */

struct object {
	struct dcp *d;
	struct acc_str name;
};

static int
object_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct object *o = arg;
	struct acc_str name = o->name;
	if (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0)
		return 1;
	if (l->path.n > 0) {
		const char *whole = acc_arena_printf(&f->mem, "%.*s.%.*s", ACC_PRS(name),
			ACC_PRS(l->path));
		if (whole == NULL)
			return acc_nomem(e);
		name = acc_str(whole);
	}
	int rc = acc_dump_ptleaf(f, l, name, NULL);
	return rc == 0 ? 1 : rc;
}

static int
read_object(struct dcp *d, struct acc_str fqn)
{
	struct object o = {d, fqn};
	struct acc_err bad = {0};
	const uint64_t *at = acc_map_get(&d->parts, fqn);
	const struct stored *s = at == NULL ? NULL : &d->stored[*at];
	const char *file = s == NULL ? ".metadata" : acc_arena_copy(&d->mem, s->file.p, s->file.n);
	if (file == NULL)
		return acc_nomem(d->e);
	struct ptfile f = {.w = d->w,
		.dirfd = d->dirfd,
		.file = file,
		.slice = true,
		.off = s == NULL ? 0 : s->off,
		.len = s == NULL ? 0 : s->len,
		.own = object_leaf,
		.arg = &o};
	int rc = s == NULL
			 ? acc_fail(&bad, ACC_EFORMAT, "no entry of storage_data says where it is")
		 : s->changed ? acc_fail(&bad, ACC_EUNSUP, "it is compressed or encrypted")
			      : acc_dump_ptfile(&f, &bad);
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(d->e);
	if (bad.code == 0)
		return rc;
	char *where = acc_arena_printf(&d->mem, "%s/%s: %.*s", d->w->dir, file, ACC_PRS(fqn));
	acc_err_in(&bad, where == NULL ? file : where);
	acc_dump_say(&d->w->said, d->w->c, &bad);
	return 0;
}

/* --- the folder --- */

static int
read_all(struct dcp *d, const struct acc_py *root)
{
	const struct acc_py *names, *data;
	if (!is(root, "Metadata"))
		return malformed(d, "it is another object");
	names = typed(root, "state_dict_metadata", ACC_PY_DICT);
	data = typed(root, "storage_data", ACC_PY_DICT);
	if (names == NULL || data == NULL)
		return malformed(d, "no state_dict_metadata, or no storage_data");
	int rc = note_all(d, data);
	for (uint32_t i = 0; i < names->n && rc == 0; i += 2) {
		const struct acc_py *key = names->item[i], *x = names->item[i + 1];
		if (key->type != ACC_PY_STR || key->s.n > 4095)
			return malformed(d, "a name");
		if (is(x, "TensorStorageMetadata"))
			rc = read_tensor(d, key->s, x);
		else if (is(x, "BytesStorageMetadata"))
			rc = read_object(d, key->s);
		else
			return malformed(d, "neither a tensor nor bytes");
	}
	return rc;
}

static int
load(struct dcp *d, struct acc_py **root)
{
	struct acc_file_info info;
	int fd = acc_file_beneath(d->dirfd, ACC_STR(".metadata"), d->e);
	if (fd < 0)
		return fd;
	int rc = acc_file_stat(fd, &info, d->e);
	uint8_t *p = NULL;
	if (rc == 0 && info.size > MAXMETA)
		rc = acc_fail(d->e, ACC_ELIMIT, "%llu bytes of .metadata are too many",
			(unsigned long long)info.size);
	if (rc == 0 && (p = acc_alloc(&d->mem, (size_t)info.size)) == NULL)
		rc = acc_nomem(d->e);
	if (rc == 0)
		rc = acc_file_pread(fd, p, (size_t)info.size, 0, d->e);
	if (rc == 0)
		rc = acc_file_same(fd, &info, d->e);
	close(fd);
	return rc < 0 ? rc : acc_pickle_read(p, (size_t)info.size, NULL, root, &d->mem, d->e);
}

/* What Megatron does not shard stands beside it. */
static int
read_common(struct weights *w, int dirfd, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct ptfile f = {.w = w, .dirfd = dirfd, .file = "common.pt", .stem = ACC_STR("common")};
	int rc = acc_dir_has(dirfd, f.file, e);
	if (rc <= 0)
		return rc;
	rc = acc_dump_ptfile(&f, &bad);
	if (bad.code == 0 || bad.code == ACC_ENOMEM)
		return bad.code == 0 ? rc : acc_nomem(e);
	acc_err_in(&bad, f.file);
	acc_dump_say(&w->said, w->c, &bad);
	return 0;
}

int
acc_dcp_in(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has(dirfd, ".metadata", e);
	if (rc > 0)
		rc = acc_dir_has_end(dirfd, ".distcp", e);
	else
		return rc;
	return rc != 0 ? rc : acc_dir_has(dirfd, "common.pt", e);
}

int
acc_dcp_read(struct weights *w, int dirfd, struct acc_err *e)
{
	struct acc_err why = {0};
	struct dcp d = {.w = w, .dirfd = dirfd, .e = &why};
	struct acc_py *root = NULL;
	int rc = read_common(w, dirfd, &why);
	if (rc == 0) {
		rc = load(&d, &root);
		if (rc == 0)
			rc = read_all(&d, root);
		if (why.code != 0 && why.where[0] == '\0') {
			char *path = acc_arena_printf(&d.mem, "%s/.metadata", w->dir);
			acc_err_in(&why, path == NULL ? ".metadata" : path);
		}
	}
	if (why.code != 0 && e != NULL)
		*e = why;
	acc_map_release(&d.parts);
	acc_dcp_st_release(&d.st);
	acc_arena_release(&d.mem);
	return rc;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return acc_dump_sure(acc_dcp_in(p->dirfd, p->e), 80);
	return acc_str_is(p->base, ".metadata") ? 80 : 0;
}

static int
read_dcp(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file;
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	struct weights w = {.c = c, .dir = dir, .io = "param"};
	const struct acc_source s = {.root = dir,
		.format = "dcp",
		.framework = "pytorch",
		.task = "tensor",
		ACC_NO_PLACE};
	int rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = acc_dcp_read(&w, fd, e);
	close(fd);
	acc_dump_weights_end(&w, path);
	return rc;
}

const struct acc_dump acc_dump_dcp = {
	.name = "dcp",
	.help = "a folder of torch.distributed.checkpoint",
	.probe = probe,
	.read = read_dcp,
};
