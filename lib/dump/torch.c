/* One file of torch.save: every tensor and every plain value in it. */
#include "acc/stream.h"
#include "acc/torch.h"
#include "dump/argname.h"
#include "dump/place.h"
#include "dump/say.h"

#include <limits.h>
#include <unistd.h>

static int
probe(const struct acc_probe *p)
{
	bool named = acc_str_ends(p->base, ".pt") || acc_str_ends(p->base, ".pth");
	if (p->is_dir)
		return 0;
	/* The first member of torch's zip is NAME/data.pkl. */
	if (p->nhead >= 4 && memcmp(p->head, "PK\3\4", 4) == 0 &&
		memmem(p->head, p->nhead, "/data.pkl", 9) != NULL)
		return named ? 95 : 80;
	return named ? 30 : 0;
}

struct file {
	struct acc_dump_ctx *c;
	const char *dir, *name;
	struct acc_str stem;
	struct acc_file_info info;
	struct dump_said said;
	struct acc_arena mem; /* of one leaf */
};

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
	return rc | add(r, "value", strcmp(l->value_type, "None") == 0 ? acc_nil() : acc_text(l->s));
}

static int
add_tensor(struct file *f, struct acc_rec *r, const struct acc_torch_leaf *l)
{
	struct acc_err bad = {0};
	int rc = 0;
	if (l->dtype_raw.n > 0)
		rc |= add(r, "dtype.raw", acc_text(l->dtype_raw));
	if (l->err != NULL) {
		bad = *l->err;
		if (l->ref != NULL && l->ref->dtype != ACC_NODTYPE)
			rc |= add(r, "dtype", acc_ctext(acc_dtypes[l->ref->dtype].name));
		if (l->ref != NULL)
			rc |= acc_add(r, "", "shape", acc_ints(l->ref->shape, l->ref->ndim));
	} else {
		struct acc_ref ref = *l->ref;
		ref.file = acc_str(f->name);
		ref.fsize = f->info.size;
		ref.mtime_ns = f->info.mtime_ns;
		rc |= acc_ref_put(r, &ref);
		rc |= add(r, "requires_grad", acc_bool(l->requires_grad));
	}
	char *where = acc_arena_printf(&f->mem, "%s/%s", f->dir, f->name);
	return rc | acc_dump_say_err(&f->said, f->c, r, &bad, where == NULL ? f->name : where);
}

/* The file's only tensor is named as the file is, as in the folders of the recorders. */
static int
place(struct file *f, struct acc_str path, struct argname *a, struct acc_str *name)
{
	*name = f->stem;
	if (path.n == 0)
		return acc_dump_argname(f->stem, &f->mem, a);
	*a = (struct argname){.key = f->stem, .op = f->stem, .call = -1, .pass = {"", 0},
		.io = "out", .pos = path};
	*name = acc_str(acc_arena_printf(&f->mem, "%.*s.%.*s", ACC_PRS(f->stem), ACC_PRS(path)));
	return name->n == 0 ? ACC_ENOMEM : 0;
}

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct file *f = arg;
	struct argname a;
	struct acc_str name;
	if (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0)
		return 0;
	acc_arena_reset(&f->mem);
	if (place(f, l->path, &a, &name) < 0)
		return ACC_ENOMEM;
	struct acc_rec *r = acc_dump_rec(f->c, l->value_type != NULL ? "arg" : "tensor", name);
	int rc = acc_dump_argname_put(r, &a);
	if (rc == 0 && acc_dump_selects(f->c, r))
		rc = l->value_type != NULL ? add_value(r, l) : add_tensor(f, r, l);
	return rc < 0 ? ACC_ENOMEM : acc_dump_put(f->c, r, NULL);
}

static int
read_pt(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	struct file f = {.c = c, .dir = dir, .stem = acc_str(slash == NULL ? path : slash + 1)};
	int rc = acc_dump_real(path, dir, &f.name, e);
	if (rc < 0)
		return rc;
	const char *dot = memrchr(f.stem.p, '.', f.stem.n);
	if (dot != NULL && dot > f.stem.p)
		f.stem.n = (uint32_t)(dot - f.stem.p);
	int dirfd = acc_dir_open(dir, e);
	if (dirfd < 0)
		return dirfd;
	int fd = acc_file_beneath(dirfd, acc_str(f.name), e);
	close(dirfd);
	if (fd < 0)
		return fd;
	struct acc_source s = {.root = f.dir, .format = "pt", .framework = "pytorch",
		.task = "tensor", .step = -1, .rank = -1, .proc = -1};
	rc = acc_file_stat(fd, &f.info, e);
	if (rc == 0)
		rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = acc_torch_read(fd, 0, f.info.size, leaf, &f, e);
	if (rc == ACC_ENOMEM)
		acc_fail(e, rc, "out of memory");
	close(fd);
	acc_dump_say_rest(&f.said, c, path);
	acc_arena_release(&f.mem);
	return rc;
}

const struct acc_dump acc_dump_pt = {
	.name = "pt",
	.help = "a .pt or .pth file of torch.save",
	.looks_for = "*.pt",
	.probe = probe,
	.read = read_pt,
};
