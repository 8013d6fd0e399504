#include "dump/weight/ptfile.h"
#include "dump/op/handname.h"
#include "dump/weight/ptpacked.h"

#include <unistd.h>

struct acc_str
acc_dump_stem(const char *path)
{
	const char *slash = strrchr(path, '/');
	struct acc_str s = acc_str(slash == NULL ? path : slash + 1);
	const char *dot = s.n == 0 ? NULL : memrchr(s.p, '.', s.n);
	if (dot != NULL && dot > s.p)
		s.n = (uint32_t)(dot - s.p);
	return s;
}

static int
add(struct acc_rec *r, const char *key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = acc_str(key), .v = v});
}

static int
add_value(struct acc_rec *r, const struct acc_torch_leaf *l)
{
	int rc = add(r, "type", acc_ctext(l->value_type));
	if (strcmp(l->value_type, "int") == 0)
		return rc | add(r, "value", acc_int(l->i));
	if (strcmp(l->value_type, "bool") == 0)
		return rc | add(r, "value", acc_bool(l->i != 0));
	if (strcmp(l->value_type, "float") == 0)
		return rc | add(r, "value", acc_f64(l->f));
	return rc |
	       add(r, "value", strcmp(l->value_type, "None") == 0 ? acc_nil() : acc_text(l->s));
}

static int
put_tensor(struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const struct argname *at)
{
	struct weight x = {.name = name,
		.arg = at,
		.file = acc_str(f->file),
		.info = f->info,
		.ref = l->ref,
		.dtype_raw = l->dtype_raw,
		.err = l->err,
		.grad_known = true,
		.requires_grad = l->requires_grad,
		.buffer = l->is_buffer,
		.whole = l->whole != NULL ? l->whole : f->whole,
		.at = l->whole != NULL ? l->at : f->at,
		.nwhole = l->whole != NULL ? l->nwhole : f->nwhole,
		.stack = f->stack,
		.several = l->path.n > 0};
	if (l->unsummed && !f->w->unsummed) {
		acc_dump_note(f->w->c, f->file,
			"written without checksums: damage to it would not be seen");
		f->w->unsummed = true;
	}
	/* numpy's short names (f8) say nothing that dtype does not. */
	if (l->err == NULL && acc_dtype_find(l->dtype_raw) == ACC_NODTYPE)
		x.dtype_raw = (struct acc_str){0};
	return acc_dump_weight(f->w, &x, f->e);
}

int
acc_dump_ptleaf(struct ptfile *f, const struct acc_torch_leaf *l, struct acc_str name,
	const struct argname *at)
{
	if (l->value_type == NULL)
		return put_tensor(f, l, name, at);
	struct acc_rec *r = acc_dump_rec(f->w->c, "arg", name);
	int rc = at != NULL ? acc_dump_argname_put(r, at) : acc_dump_weight_place(f->w, r, name);
	if (rc == 0 && f->stack.n > 0)
		rc = add(r, "stack", acc_text(f->stack));
	if (rc == 0 && acc_dump_selects(f->w->c, r))
		rc = add_value(r, l);
	return rc < 0 ? acc_nomem(f->e) : acc_dump_put(f->w->c, r, f->e);
}

/* A name that says where the tensors belong, as recorders give to files, holds for all in it. */
static int
name_of(struct ptfile *f, struct acc_str path, struct argname *a, struct acc_str *name)
{
	int rc = acc_dump_argname(f->stem, &f->mem, a);
	*name = f->stem;
	if (rc == 0 && path.n == 0 && a->pass.n == 0 && acc_dump_handname(f->stem, a))
		rc = acc_dump_handkey(a, &f->mem);
	if (rc < 0 || path.n == 0)
		return rc;
	*name = acc_str_made(
		acc_arena_printf(&f->mem, "%.*s.%.*s", ACC_PRS(f->stem), ACC_PRS(path)));
	a->pos = path;
	return name->n == 0 ? ACC_ENOMEM : 0;
}

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct ptfile *f = arg;
	struct argname a;
	struct acc_str name;
	acc_arena_reset(&f->mem);
	int rc = f->own != NULL ? f->own(f->arg, f, l, f->e) : 0;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0)
		return 0;
	if (name_of(f, l->path, &a, &name) < 0)
		return acc_nomem(f->e);
	if (l->in_dict && a.pass.n == 0 && f->apart) {
		/* "blocks.0.fc1.in.0", or, of no word that is known, a key of its own. */
		bool known = acc_dump_handpath(f->stem, l->path, &a);
		if (known && acc_dump_handkey(&a, &f->mem) < 0)
			return acc_nomem(f->e);
		return acc_dump_ptleaf(f, l, name, known ? &a : NULL);
	}
	if (l->in_dict && a.pass.n == 0) {
		/* A state dict: its file's name says nothing. */
		rc = f->packed != NULL ? acc_ptpacked(f->packed, f, l, f->e) : 0;
		if (rc != 0)
			return rc < 0 ? rc : 0;
		return acc_dump_ptleaf(f, l, l->path, NULL);
	}
	return acc_dump_ptleaf(f, l, name, &a);
}

int
acc_dump_ptfile(struct ptfile *f, struct acc_err *e)
{
	int fd = acc_file_beneath(f->dirfd, acc_str(f->file), e);
	if (fd < 0)
		return fd;
	f->e = e;
	int rc = acc_file_stat(fd, &f->info, e);
	if (rc == 0 && !f->slice)
		f->len = f->info.size;
	if (rc == 0 && (f->off > f->info.size || f->len > f->info.size - f->off))
		rc = acc_fail_at(e, ACC_ETRUNC, f->info.size,
			"the file ends before this part of it");
	if (rc == 0)
		rc = acc_torch_read(fd, f->off, f->len, leaf, f, e);
	if (rc == 0)
		rc = acc_file_same(fd, &f->info, e);
	close(fd);
	acc_arena_release(&f->mem);
	return rc;
}
