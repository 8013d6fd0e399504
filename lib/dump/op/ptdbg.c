/* Where ptdbg_ascend puts its files: [ptdbg_dump_v4.0/][step0/][rank0/] dump.pkl dump/X.npy, or
 * npu_dump.pkl npu_dump_20230703104808/X.npy; and TroubleShooter, which was made after it:
 * rank0/mindspore_api_dump_info.csv rank0/mindspore_api_dump/X.npy */
#include "dump/op/ptdbg.h"

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

/* The name of its list without what the folder of its tensors has not; 0: it is none. */
static size_t
stem_of(struct acc_str name)
{
	static const char *const ends[] = {".pkl", "_info.csv"};
	const bool csv = acc_str_ends(name, "_api_dump_info.csv");
	return acc_str_ends(name, ends[csv]) ? name.n - strlen(ends[csv]) : 0;
}

/* An empty one is what a recorder leaves that was stopped. */
static int
is_pkl(int dirfd, const char *name, struct acc_err *e)
{
	uint8_t head[64];
	if (stem_of(acc_str(name)) == 0)
		return 0;
	int64_t n = acc_file_head(dirfd, name, head, sizeof head, e);
	return n < 0 ? (int)n : n == 0 || begins_list(head, (size_t)n);
}

static int
has_pkl_name(int dirfd, struct acc_err *e)
{
	const int rc = acc_dir_has_end(dirfd, ".pkl", e);
	return rc == 0 ? acc_dir_has_end(dirfd, "_api_dump_info.csv", e) : rc;
}

static int
has_pkl(int dirfd, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	int found = has_pkl_name(dirfd, e);
	if (found <= 0)
		return found;
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	found = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && found == 0; i++)
		found = is_pkl(dirfd, names[i], e);
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
		return acc_dump_probe_places(p, &by_name, 60);
	return stem_of(p->base) > 0 && begins_list(p->head, p->nhead) ? 90 : 0;
}

/* The folder of x.pkl's tensors, in m: x, or the newest x_TIME; NULL where there is none, or nothing
 * in it. 0 or < 0. */
static int
npy_folder(struct ptdbg *p, struct acc_arena *m, struct acc_err *e)
{
	const size_t n = stem_of(acc_str(p->file));
	if (n == 0)
		return 0;
	const char *stem = acc_arena_copy(m, p->file, n), *best = NULL, **names;
	int rc = stem == NULL ? acc_nomem(e) : acc_dir_has(p->dirfd, stem, e);
	if (rc > 0)
		best = stem;
	int64_t v, k = rc != 0 ? 0 : acc_dir_list(p->dirfd, &names, m, e);
	for (int64_t i = 0; i < k; i++)
		if (strncmp(names[i], stem, n) == 0 && names[i][n] == '_' &&
			acc_str_int(acc_str(names[i] + n + 1), &v))
			best = names[i]; /* they are sorted */
	if (rc < 0 || k < 0 || best == NULL)
		return rc < 0 ? rc : (int)k;
	int fd = acc_dir_beneath(p->dirfd, best, e);
	rc = fd < 0 ? fd : acc_dir_has_end(fd, "", e);
	if (fd >= 0)
		close(fd);
	p->npy = rc > 0 ? best : NULL;
	return rc < 0 ? rc : 0;
}

static int
read_pkl(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct ptdbg p = {.c = c,
		.dir = dir,
		.file = file,
		.dirfd = dirfd,
		.mindspore = strncmp(file, "mindspore_", 10) == 0,
		.step = at->step,
		.rank = at->rank,
		.proc = at->proc};
	struct acc_arena m = {0};
	struct acc_err bad = {0};
	char *path = acc_arena_printf(&m, "%s/%s", dir, file);
	int fd = acc_file_beneath(dirfd, (struct acc_str){file, (uint32_t)strlen(file)}, e);
	int rc = fd;
	if (fd >= 0 && npy_folder(&p, &m, &bad) < 0) { /* what the .pkl says is read */
		acc_err_in(&bad, path == NULL ? file : path);
		acc_dump_trouble(c, &bad);
	}
	if (fd >= 0) {
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
		rc = is_pkl(dirfd, names[i], e);
		if (rc == 0)
			continue;
		any = true;
		if (rc > 0)
			rc = read_pkl(c, dirfd, dir, names[i], p, e);
		else
			acc_err_in(e, dir);
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
	.help = "ptdbg_ascend, TroubleShooter's API dump: a dump root, a step or rank folder, a .pkl or _info.csv",
	.probe = probe,
	.read = read_dump,
};
