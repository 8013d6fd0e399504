/* Tensors in .npy files: one file, or the files of one folder. */
#include "acc/npy.h"
#include "acc/stream.h"
#include "dump/op/handname.h"
#include "dump/payload.h"
#include "dump/say.h"
#include "dump/weight/ptfile.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "dump/place.h"

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		/* Other dumps have such files too. */
		return acc_dump_sure(acc_dir_has_end(p->dirfd, ".npy", p->e), 30);
	if (p->nhead >= 6 && memcmp(p->head, "\x93NUMPY", 6) == 0)
		return 95;
	return acc_str_ends(p->base, ".npy") ? 30 : 0;
}

struct files {
	struct acc_dump_ctx *c;
	const char *dir; /* for messages and as root */
	int dirfd;
	struct dump_said said;
	struct acc_arena mem; /* of one tensor */
	const char **names;   /* of a folder */
	int64_t n;
	struct acc_arena list;
};

static int
put_file(struct files *f, const char *file, struct acc_str name, struct acc_err *e)
{
	struct argname a;
	struct acc_ref ref;
	struct acc_err bad = {0};
	acc_arena_reset(&f->mem);
	if (acc_str_ends(name, ".npy"))
		name.n -= 4;
	int rc = acc_dump_argname(name, &f->mem, &a);
	if (rc == 0 && a.pass.n == 0 && acc_dump_handname(name, &a))
		rc = acc_dump_handkey(&a, &f->mem);
	if (rc < 0)
		return acc_nomem(e);
	struct acc_rec *r = acc_dump_rec(f->c, "tensor", name);
	rc = acc_dump_argname_put(r, &a);
	if (rc == 0 && !acc_dump_selects(f->c, r))
		return acc_dump_put(f->c, r, e);
	if (acc_dump_payload(f->dirfd, acc_str(file), &ref, &f->mem, &bad) == 0)
		rc |= acc_ref_put(r, &ref);
	else if (ref.ndim > 0)
		rc |= acc_add(r, "", "shape", acc_ints(ref.shape, ref.ndim));
	const char *path = acc_arena_printf(&f->mem, "%s/%s", f->dir, file);
	rc |= acc_dump_say_err(&f->said, f->c, r, &bad, path == NULL ? file : path);
	return rc < 0 ? acc_nomem(e) : acc_dump_put(f->c, r, e);
}

/* Numbers, or what numpy.save makes of anything else: a pickle behind a header. */
static int
put_any(struct files *f, const char *file, struct acc_str name, struct acc_err *e)
{
	uint8_t head[4096];
	struct acc_err bad = {0};
	struct acc_ref ref = {0};
	struct acc_str descr = {0};
	struct acc_file_info info;
	acc_arena_reset(&f->mem);
	int fd = acc_file_beneath(f->dirfd, acc_str(file), &bad);
	int64_t n = fd < 0 || acc_file_stat(fd, &info, &bad) < 0
			    ? -1
			    : acc_file_peek(fd, head, sizeof head, 0, &bad);
	if (n > 0)
		acc_npy_header(head, (size_t)n, &ref, &descr, &f->mem, &bad);
	if (fd >= 0)
		close(fd);
	if (bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	if (n <= 0 || !acc_str_is(descr, "|O") || ref.off >= info.size)
		return put_file(f, file, name, e);
	struct weights w = {.c = f->c, .dir = f->dir, .io = "param"};
	struct ptfile t = {.w = &w,
		.dirfd = f->dirfd,
		.file = file,
		.stem = acc_dump_stem(file),
		.slice = true,
		.off = ref.off,
		.len = info.size - ref.off};
	bad = (struct acc_err){0};
	int rc = acc_dump_ptfile(&t, &bad);
	if (rc < 0 && bad.code == ACC_ENOMEM)
		rc = acc_nomem(e);
	else if (rc < 0 && bad.code != 0) {
		acc_err_in(&bad, file);
		acc_dump_say(&f->said, f->c, &bad);
		rc = 0;
	}
	acc_dump_weights_end(&w, f->dir);
	return rc;
}

static int
put_folder(struct files *f, struct acc_err *e)
{
	int rc = 0;
	for (int64_t i = 0; i < f->n && rc == 0; i++)
		if (acc_str_ends(acc_str(f->names[i]), ".npy"))
			rc = put_any(f, f->names[i], acc_str(f->names[i]), e);
	acc_dump_say_rest(&f->said, f->c, f->dir);
	return rc;
}

static int
read_npy(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL, *slash = strrchr(path, '/');
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	struct files f = {.c = c, .dir = dir, .dirfd = fd};
	f.n = file == NULL ? acc_dir_list(fd, &f.names, &f.list, e) : 0;
	struct acc_source s = {.root = f.dir,
		.format = "npy",
		.task = "tensor",
		.step = -1,
		.rank = -1,
		.proc = -1,
		/* Behaviour mlx-savez-order. */
		.order = f.n <= 0 ? NULL : acc_dump_handorder(f.names, (size_t)f.n, ".npy")};
	int rc = f.n < 0 ? (int)f.n : acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = file == NULL ? put_folder(&f, e)
				  : put_any(&f, file, acc_str(slash == NULL ? path : slash + 1), e);
	close(f.dirfd);
	acc_arena_release(&f.mem);
	acc_arena_release(&f.list);
	return rc;
}

const struct acc_dump acc_dump_npy = {
	.name = "npy",
	.help = "a .npy file, or a folder of them",
	.probe = probe,
	.read = read_npy,
};
