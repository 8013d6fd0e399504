/* Where ptdbg_ascend puts its files: [ptdbg_dump_v4.0/][step0/][rank0/] dump.pkl dump/X.npy, or
 * npu_dump.pkl npu_dump_20230703104808/X.npy */
#include "dump/op/ptdbg.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "dump/place.h"

/* Until a rank is known its folder is named by the process id, later versions add 100000. */
enum { PROC = 100000 };

static bool
level(const char *name, struct place *p)
{
	int64_t v;
	if ((v = acc_dump_place_number(name, "step")) >= 0) {
		p->step = v;
		return true;
	}
	if ((v = acc_dump_place_number(name, "rank")) >= 0) {
		p->rank = v < PROC ? v : -1;
		p->proc = v < PROC ? -1 : v;
		p->rank_level = true;
		return true;
	}
	return acc_glob("*_v[0-9]*", acc_str(name));
}

/* A first '[': a real pickle begins with something else. */
static bool
begins_list(const uint8_t *p, size_t n)
{
	size_t i = 0;
	while (i < n && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n'))
		i++;
	return i < n && p[i] == '[';
}

/* An empty one is what a recorder leaves that was stopped. */
static bool
is_pkl(int dirfd, const char *name)
{
	uint8_t head[64];
	if (!acc_str_ends(acc_str(name), ".pkl"))
		return false;
	int fd = acc_file_beneath(dirfd, acc_str(name), NULL);
	ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
	if (fd >= 0)
		close(fd);
	return n == 0 || (n > 0 && begins_list(head, (size_t)n));
}

static bool
has_pkl_name(int dirfd)
{
	return acc_dump_dir_has(dirfd, ".pkl");
}

static bool
has_pkl(int dirfd)
{
	struct acc_arena m = {0};
	const char **names;
	bool found = false;
	int64_t n = has_pkl_name(dirfd) ? acc_dir_list(dirfd, &names, &m, NULL) : 0;
	for (int64_t i = 0; i < n && !found; i++)
		found = is_pkl(dirfd, names[i]);
	acc_arena_release(&m);
	return found;
}

/* Recognising goes by names, reading by what is in the files. */
static const struct place_rule by_name = {level, has_pkl_name, 3, NULL};
static const struct place_rule by_content = {level, has_pkl, 3, ".pkl of ptdbg_ascend"};

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return acc_dump_has_place(p->dirfd, &by_name) > 0 ? 60 : 0;
	return acc_str_ends(p->base, ".pkl") && begins_list(p->head, p->nhead) ? 90 : 0;
}

/* The folder of x.pkl's tensors: x, or the newest x_TIME; NULL where there is none, or nothing
 * in it. */
static const char *
npy_folder(struct ptdbg *p)
{
	if (!acc_str_ends(acc_str(p->file), ".pkl"))
		return NULL;
	size_t n = strlen(p->file) - 4;
	const char *stem = acc_arena_copy(&p->mem, p->file, n), *best = stem, **names;
	if (stem == NULL)
		return NULL;
	if (faccessat(p->dirfd, stem, F_OK, 0) < 0) {
		int64_t v, k = acc_dir_list(p->dirfd, &names, &p->mem, NULL);
		for (int64_t i = 0; i < k; i++)
			if (strncmp(names[i], stem, n) == 0 && names[i][n] == '_' &&
				acc_str_int(acc_str(names[i] + n + 1), &v))
				best = names[i]; /* they are sorted */
	}
	int fd = openat(p->dirfd, best, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool any = fd >= 0 && acc_dump_dir_has(fd, "");
	if (fd >= 0)
		close(fd);
	return any ? best : NULL;
}

static int
read_pkl(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct ptdbg p = {.c = c,
		.dir = dir,
		.file = file,
		.dirfd = dirfd,
		.step = at->step,
		.rank = at->rank,
		.proc = at->proc};
	struct acc_arena m = {0};
	char *path = acc_arena_printf(&m, "%s/%s", dir, file);
	int fd = acc_file_beneath(dirfd, acc_str(file), e);
	int rc = fd;
	if (fd >= 0) {
		p.npy = npy_folder(&p);
		if (p.npy != NULL)
			p.npy = acc_arena_copy(&m, p.npy, strlen(p.npy));
		struct acc_bytes *b = acc_bytes_open(fd, path == NULL ? file : path, false, e);
		rc = b != NULL ? acc_ptdbg_pkl(&p, b, e) : e != NULL ? e->code : ACC_ENOMEM;
	}
	if (rc < 0)
		acc_err_in(e, path == NULL ? file : path);
	acc_ptdbg_release(&p);
	acc_arena_release(&m);
	return rc;
}

static int
read_place(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	bool any = false;
	if (!acc_dump_wants(c, p->step, p->rank < 0 ? p->proc : p->rank))
		return 0;
	if (file != NULL)
		return read_pkl(c, dirfd, dir, file, p, e);
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (!is_pkl(dirfd, names[i]))
			continue;
		any = true;
		rc = read_pkl(c, dirfd, dir, names[i], p, e);
		if (rc == ACC_EIO || rc == ACC_EREFUSED) {
			acc_dump_trouble(c, e);
			rc = 0;
		}
	}
	if (n > 0 && !any) { /* an empty folder lacks nothing */
		struct acc_err bad = {0};
		acc_fail(&bad, ACC_EFORMAT, "there is no %s", by_content.part);
		acc_err_in(&bad, dir);
		acc_dump_trouble(c, &bad);
	}
	acc_arena_release(&m);
	return rc;
}

static int
read_dump(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &by_content, read_place, e);
}

const struct acc_dump acc_dump_ptdbg = {
	.name = "ptdbg",
	.help = "ptdbg_ascend: a dump root, a step or rank folder, a .pkl",
	.probe = probe,
	.read = read_dump,
};
