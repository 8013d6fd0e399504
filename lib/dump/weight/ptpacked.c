#include "dump/weight/ptpacked.h"

#include "dump/weight/ptfile.h"

struct entry {
	struct acc_st_tensor t;
	const char *file;
	struct acc_file_info info;
};

static bool
find(const void *arg, struct acc_str name, struct packed_tensor *out)
{
	const struct ptpacked *p = arg;
	const uint64_t *at = acc_map_get(&p->where, name);
	const struct entry *x = (const struct entry *)(const void *)p->list.p;
	if (at == NULL)
		return false;
	*out = (struct packed_tensor){.t = &x[*at].t, .file = x[*at].file, .info = &x[*at].info};
	return true;
}

/* A tensor whose bytes lie one behind the other in the file, as they are. */
static int
note(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct ptpacked *p = arg;
	const struct acc_ref *r = l->ref;
	uint64_t count;
	if (!l->in_dict || r == NULL || l->err != NULL || l->whole != NULL || r->big_endian ||
		r->enc != ACC_STORED ||
		(r->strided && !acc_contiguous(r->shape, r->stride, r->ndim)) ||
		!acc_count(r->shape, r->ndim, &count))
		return 1;
	const uint64_t size = acc_dtype_of(r->dtype)->size;
	int64_t *shape = acc_alloc(&p->mem, (r->ndim + 1) * sizeof *shape);
	const char *name = acc_arena_copy(&p->mem, l->path.p, l->path.n);
	if (shape == NULL || name == NULL)
		return acc_nomem(e);
	memcpy(shape, r->shape, r->ndim * sizeof *shape);
	const struct entry x = {.t = {.name = {name, l->path.n},
					.dtype = r->dtype,
					.ndim = r->ndim,
					.shape = shape,
					.off = r->off + r->first * size,
					.len = count * size},
		.file = f->file,
		.info = f->info};
	const uint64_t *at = acc_map_put(&p->where, x.t.name, p->list.n / sizeof x);
	return at == NULL || acc_buf_add(&p->list, &x, sizeof x) < 0 ? acc_nomem(e) : 1;
}

int
acc_ptpacked_begin(struct ptpacked *p, struct weights *w, int dirfd, const char *const *files,
	size_t n, struct acc_err *e)
{
	*p = (struct ptpacked){.set = {.dirfd = dirfd, .find = find, .arg = p}};
	for (size_t i = 0; i < n; i++) {
		struct acc_err bad = {0};
		struct ptfile f = {.w = w, .dirfd = dirfd, .file = files[i], .own = note, .arg = p};
		if (acc_dump_ptfile(&f, &bad) == ACC_ENOMEM)
			return acc_nomem(e);
	}
	return acc_packed_begin(&p->set, e);
}

int
acc_ptpacked(struct ptpacked *p, struct ptfile *f, const struct acc_torch_leaf *l,
	struct acc_err *e)
{
	struct packed_tensor x;
	struct packed_weight made;
	if (!l->in_dict || l->ref == NULL || !find(p, l->path, &x) || strcmp(x.file, f->file) != 0)
		return 0;
	p->set.src = acc_dump_source_id(f->w->c);
	int rc = acc_packed(&p->set, &x, &made, e);
	if (rc != 1)
		return rc < 0 ? rc : rc != 0;
	const struct weight w = {.name = made.name,
		.file = acc_str(f->file),
		.info = f->info,
		.ref = &made.ref,
		.dtype_raw = acc_str(made.raw),
		.err = made.bad.code != 0 ? &made.bad : NULL,
		.several = true};
	rc = acc_dump_weight(f->w, &w, e);
	return rc < 0 ? rc : 1;
}

void
acc_ptpacked_release(struct ptpacked *p)
{
	acc_buf_release(&p->list);
	acc_map_release(&p->where);
	acc_arena_release(&p->mem);
	acc_arena_release(&p->set.mem);
}
