/* DeepSpeed's universal checkpoints: zero/NAME/{fp32,exp_avg,exp_avg_sq}.pt, of each parameter all of it,
 * whatever ranks wrote it; beside that folder the ranks' model states, which hold the shapes, buffers, and of
 * frozen parameters a fragment each. The weights that these have are placeholders or copies. */
#include "dump/place.h"
#include "dump/weight/ptfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#define WEIGHT "fp32.pt"

static bool
level(const char *name, struct place *p)
{
	/* ds_to_universal.py is told the name of its folder. */
	struct acc_str s = acc_str(name);
	int64_t step;
	if (acc_str_ends(s, "_universal"))
		s.n -= 10;
	if (!acc_str_starts(s, "global_step") || s.n < 12 ||
		!acc_str_int((struct acc_str){s.p + 11, s.n - 11}, &step) || step < 0)
		return false;
	p->step = step;
	return true;
}

/* The folder `name`: 1 and *fd; 0: there is none; < 0: that cannot be told. */
static int
folder_at(int dirfd, const char *name, int *fd, struct acc_err *e)
{
	*fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd >= 0)
		return 1;
	return acc_file_absent(errno) ? 0 : acc_fail(e, ACC_EIO, "cannot open %.200s:", name);
}

/* Is there a folder of a parameter in this one? */
static int
has_weight(int dirfd, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	int found = 0;
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	for (int64_t i = 0; i < n && found == 0; i++) {
		int fd;
		found = folder_at(dirfd, names[i], &fd, e);
		if (found <= 0)
			continue;
		found = acc_dir_has(fd, WEIGHT, e);
		close(fd);
	}
	acc_arena_release(&m);
	return n < 0 ? (int)n : found;
}

static int
holds(int dirfd, struct acc_err *e)
{
	int fd, found = folder_at(dirfd, "zero", &fd, e);
	if (found <= 0)
		return found < 0 ? found : has_weight(dirfd, e);
	found = has_weight(fd, e);
	close(fd);
	return found;
}

static const struct place_rule rule = {level, holds, 1, "zero/NAME/" WEIGHT};

static int
probe(const struct acc_probe *p)
{
	return p->is_dir ? acc_dump_probe_places(p, &rule, 85) : 0;
}

struct shape {
	uint32_t ndim;
	int64_t dim[ACC_MAXDIM];
};

struct universal {
	struct weights w;
	int dirfd;
	struct acc_map shapes; /* name -> struct shape */
	struct acc_map names;  /* parameters of zero/, and what was handed on of model states */
	struct acc_str name;   /* of the folder that is read */
	const char *state;     /* NULL: the weight; else exp_avg ... */
	int64_t file;          /* of the model states: which; its rank */
	struct acc_arena mem;
};

/* What is read of a file: a file that cannot be read is a trouble. */
static int
read_file(struct universal *u, const char *file,
	int (*own)(void *, struct ptfile *, const struct acc_torch_leaf *, struct acc_err *),
	struct acc_err *e)
{
	struct acc_err bad = {0};
	struct ptfile f = {.w = &u->w,
		.dirfd = u->dirfd,
		.file = file,
		.stem = acc_dump_stem(file),
		.own = own,
		.arg = u};
	int rc = acc_dump_ptfile(&f, &bad);
	if (rc == 0 || bad.code == 0)
		return rc;
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	char *path = acc_arena_printf(&u->mem, "%s/%s", u->w.dir, file);
	acc_err_in(&bad, path == NULL ? file : path);
	acc_dump_say(&u->w.said, u->w.c, &bad);
	return 0;
}

/* --- zero/NAME --- */

/* One tensor, alone or with what is said of it; as it is, or flat, of the shape that is known. */
static int
zero_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct universal *u = arg;
	struct acc_torch_leaf own = *l;
	struct acc_ref ref;
	const bool self = l->path.n == 0 || acc_str_is(l->path, "param");
	const struct acc_str rest = self ? ACC_STR("") : l->path;
	const uint64_t *at = acc_map_get(&u->shapes, u->name);
	if (l->ref != NULL && at != NULL && self && l->ref->ndim == 1) {
		const struct shape *s = (const struct shape *)(uintptr_t)*at;
		uint64_t n;
		ref = *l->ref;
		if (acc_count(s->dim, s->ndim, &n) && n == (uint64_t)ref.shape[0] && !ref.strided) {
			ref.ndim = s->ndim;
			memcpy(ref.shape, s->dim, s->ndim * sizeof *s->dim);
		}
		own.ref = &ref;
	}
	const char *name = acc_arena_printf(&f->mem, "%s%.*s%s%s%s%.*s",
		u->state == NULL ? "" : "optimizer.", ACC_PRS(u->name), u->state == NULL ? "" : ".",
		u->state == NULL ? "" : u->state, rest.n > 0 ? "." : "", ACC_PRS(rest));
	if (name == NULL)
		return acc_nomem(e);
	if (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0)
		return 1;
	int rc = acc_dump_ptleaf(f, &own, acc_str(name), NULL);
	return rc < 0 ? rc : 1;
}

/* Values of the optimizer; the flat tensors beside them are those of one of the ranks that were. */
static int
value_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	(void)arg;
	if (l->value_type == NULL || strcmp(l->value_type, "opaque") == 0)
		return 1;
	const char *name = acc_arena_printf(&f->mem, "optimizer.%.*s", ACC_PRS(l->path));
	int rc = name == NULL ? acc_nomem(e) : acc_dump_ptleaf(f, l, acc_str(name), NULL);
	return rc < 0 ? rc : 1;
}

/* The files of one parameter, the weight first. */
static int
read_param(struct universal *u, const char *zero, const char *name, struct acc_err *e)
{
	const char *folder = acc_arena_printf(&u->mem, "%s%s", zero, name), **files;
	if (folder == NULL)
		return acc_nomem(e);
	int fd, there = folder_at(u->dirfd, folder, &fd, e);
	int64_t n = there <= 0 ? there : acc_dir_list(fd, &files, &u->mem, e);
	int has = n < 0 ? (int)n : fd < 0 ? 0 : acc_dir_has(fd, WEIGHT, e), rc = has < 0 ? has : 0;
	if (fd >= 0)
		close(fd);
	if (has <= 0)
		return rc;
	u->name = acc_str(name);
	if (acc_map_put(&u->names, u->name, 0) == NULL)
		return acc_nomem(e);
	for (int pass = 0; pass < 2; pass++)
		for (int64_t i = 0; i < n && rc == 0; i++) {
			struct acc_str s = acc_str(files[i]);
			if (!acc_str_ends(s, ".pt") ||
				(strcmp(files[i], WEIGHT) == 0) == (pass > 0))
				continue;
			const char *file = acc_arena_printf(&u->mem, "%s/%s", folder, files[i]);
			u->state = pass == 0 ? NULL
					     : acc_arena_printf(&u->mem, "%.*s", (int)s.n - 3, s.p);
			rc = file == NULL || (pass > 0 && u->state == NULL)
				     ? acc_nomem(e)
				     : read_file(u, file, zero_leaf, e);
		}
	return rc;
}

/* --- model states --- */

/* "param_shapes.0.l1.weight.1": extent 1 of l1.weight. */
static int
shape_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	struct universal *u = arg;
	struct acc_str s = l->path;
	int64_t d;
	(void)f;
	if (l->value_type == NULL || strcmp(l->value_type, "int") != 0)
		return 1;
	if (acc_str_starts(s, "param_shapes.")) {
		const char *dot = memchr(s.p + 13, '.', s.n - 13);
		if (dot == NULL)
			return 1;
		s = (struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 1)};
	} else if (acc_str_starts(s, "frozen_param_shapes.")) {
		s = (struct acc_str){s.p + 20, s.n - 20};
	} else {
		return 1;
	}
	const char *dot = s.n == 0 ? NULL : memrchr(s.p, '.', s.n);
	if (dot == NULL || l->i < 0 ||
		!acc_str_int((struct acc_str){dot + 1, (uint32_t)(s.p + s.n - dot - 1)}, &d) ||
		d < 0 || d >= ACC_MAXDIM)
		return 1;
	s.n = (uint32_t)(dot - s.p);
	const uint64_t *known = acc_map_get(&u->shapes, s);
	struct shape *shape = known == NULL ? acc_alloc(&u->mem, sizeof *shape)
					    : (struct shape *)(uintptr_t)*known;
	if (shape == NULL)
		return acc_nomem(e);
	if (known == NULL) {
		*shape = (struct shape){0};
		if (acc_map_put(&u->shapes, s, (uint64_t)(uintptr_t)shape) == NULL)
			return acc_nomem(e);
	}
	shape->dim[d] = l->i;
	shape->ndim = (uint32_t)d + 1 > shape->ndim ? (uint32_t)d + 1 : shape->ndim;
	return 1;
}

/* A rank's fragment of a frozen parameter, which is flat: all are as long, the last is filled up. */
static int
put_fragment(struct universal *u, struct ptfile *f, const struct acc_torch_leaf *l,
	struct acc_str name, struct acc_err *e)
{
	const uint64_t *known = acc_map_get(&u->shapes, name);
	const struct shape *s = known == NULL ? NULL : (const struct shape *)(uintptr_t)*known;
	struct acc_torch_leaf own = *l;
	struct acc_ref ref;
	int64_t whole[1], at[1], end,
		n = l->ref == NULL || l->ref->ndim != 1 ? -1 : l->ref->shape[0];
	uint64_t all = 0;
	if (l->err != NULL || n < 0 || s == NULL || !acc_count(s->dim, s->ndim, &all) ||
		all > INT64_MAX || __builtin_mul_overflow(n, u->file, &at[0]) ||
		__builtin_add_overflow(at[0], n, &end))
		return acc_dump_ptleaf(f, l, name, NULL);
	whole[0] = (int64_t)all;
	at[0] = at[0] > whole[0] ? whole[0] : at[0];
	ref = *l->ref;
	ref.shape[0] = (end > whole[0] ? whole[0] : end) - at[0];
	own.ref = &ref;
	own.whole = whole;
	own.at = at;
	own.nwhole = 1;
	if (ref.shape[0] < whole[0])
		name = acc_dump_weight_part(&f->mem, name, at, ref.shape, 1);
	else
		own.whole = NULL;
	return name.p == NULL ? acc_nomem(e) : acc_dump_ptleaf(f, &own, name, NULL);
}

static int
model_leaf(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	static const char module[] = "module.", frozen[] = "frozen_param_fragments.";
	struct universal *u = arg;
	struct acc_str s = l->path;
	int rc = 0;
	if (acc_str_starts(s, frozen)) {
		s = (struct acc_str){s.p + strlen(frozen), s.n - (uint32_t)strlen(frozen)};
		rc = l->value_type != NULL ? 0 : put_fragment(u, f, l, s, e);
	} else if (acc_str_starts(s, module)) {
		uint64_t n = 1;
		s = (struct acc_str){s.p + strlen(module), s.n - (uint32_t)strlen(module)};
		/* A placeholder of what stands in zero/ or in fragments, or a copy: behaviour
		 * deepspeed-universal-placeholders. */
		if (acc_map_get(&u->names, s) != NULL ||
			(l->ref != NULL && acc_count(l->ref->shape, l->ref->ndim, &n) && n == 0))
			return 1;
		if (acc_map_put(&u->names, s, 0) == NULL)
			return acc_nomem(e);
		rc = acc_dump_ptleaf(f, l, s, NULL);
	} else if (u->file == 0 && !acc_str_starts(s, "param_shapes.") &&
		   !acc_str_starts(s, "frozen_param_shapes.")) {
		return 0;
	}
	return rc < 0 ? rc : 1;
}

static int
read_states(struct universal *u, const char *const *names, int64_t n, bool shapes,
	struct acc_err *e)
{
	int rc = 0;
	u->file = 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (!acc_str_ends(acc_str(names[i]), "_model_states.pt"))
			continue;
		rc = read_file(u, names[i], shapes ? shape_leaf : model_leaf, e);
		u->file++;
	}
	return rc;
}

static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct universal u = {.w = {.c = c, .dir = dir, .io = "param"}, .dirfd = dirfd};
	const struct acc_source src = {.root = dir,
		.format = "universal",
		.framework = "pytorch",
		.task = "tensor",
		.step = at->step,
		.rank = -1,
		.proc = -1,
		.order = "names"};
	const char **names, **params;
	(void)file;
	if (!acc_dump_wants(c, at->step, -1))
		return 0;
	int fd, there = folder_at(dirfd, "zero", &fd, e);
	const char *zero = there <= 0 ? "" : "zero/";
	int64_t n = there < 0 ? there : acc_dir_list(dirfd, &names, &u.mem, e);
	int64_t np = n < 0 ? n : acc_dir_list(fd < 0 ? dirfd : fd, &params, &u.mem, e);
	if (fd >= 0)
		close(fd);
	int rc = np < 0 ? (int)np : acc_dump_source(c, &src, e);
	if (rc == 0)
		rc = read_states(&u, names, n, true, e);
	for (int64_t i = 0; i < np && rc == 0; i++)
		rc = strcmp(params[i], "optimizer_state.pt") == 0
			     ? 0
			     : read_param(&u, zero, params[i], e);
	for (int64_t i = 0; i < np && rc == 0; i++) {
		const char *path = acc_arena_printf(&u.mem, "%s%s", zero, params[i]);
		if (strcmp(params[i], "optimizer_state.pt") == 0)
			rc = path == NULL ? acc_nomem(e) : read_file(&u, path, value_leaf, e);
	}
	if (rc == 0)
		rc = read_states(&u, names, n, false, e);
	acc_dump_weights_end(&u.w, dir);
	acc_map_release(&u.shapes);
	acc_map_release(&u.names);
	acc_arena_release(&u.mem);
	return rc;
}

static int
read_universal(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_universal = {
	.name = "universal",
	.help = "a universal checkpoint of DeepSpeed: zero/NAME/fp32.pt",
	.probe = probe,
	.read = read_universal,
};
