/* Where msprobe puts its files: [graph|pynative/] step0/ rank0|proc4711|pid4711|rank/ dump.json */
#include "dump/op/msprobe.h"

#include <unistd.h>

#include "dump/place.h"

/* Does a folder of this name belong to a dump? Notes what it stands for. */
static bool
level(const char *name, struct place *p)
{
	int64_t v;
	if ((v = acc_dump_place_number(name, "step")) >= 0) {
		p->step = v;
		return true;
	}
	if (strcmp(name, "graph") == 0 || strcmp(name, "pynative") == 0)
		return true;
	int64_t rank = acc_dump_place_number(name, "rank");
	int64_t proc = acc_dump_place_number(name, "proc");
	if (proc < 0)
		proc = acc_dump_place_number(name, "pid"); /* of its recordings of graphs */
	if (rank < 0 && proc < 0 && strcmp(name, "rank") != 0)
		return false;
	p->rank = rank;
	p->proc = proc;
	p->rank_level = true;
	return true;
}

static int
has_dump(int dirfd, struct acc_err *e)
{
	int rc = acc_dir_has(dirfd, "dump.json", e);
	return rc != 0 ? rc : acc_dir_has(dirfd, "debug.json", e);
}

static const struct place_rule rule = {level, has_dump, 3, "dump.json"};

static bool
mentions(const struct acc_probe *p, const char *word)
{
	return memmem(p->head, p->nhead, word, strlen(word)) != NULL;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir) {
		int rc = has_dump(p->dirfd, p->e);
		if (rc != 0)
			return acc_dump_sure(rc, 95);
		rc = acc_dump_has_place(p->dirfd, &rule, p->e);
		/* Where nothing else is, reading says which link was not followed. */
		return rc == ACC_EREFUSED ? 20 : acc_dump_sure(rc, 90);
	}
	size_t i = 0;
	while (i < p->nhead && strchr(" \t\r\n", p->head[i]) != NULL && p->head[i] != '\0')
		i++;
	if (i == p->nhead || p->head[i] != '{')
		return 0;
	if (acc_str_is(p->base, "dump.json") || acc_str_is(p->base, "debug.json"))
		return 95;
	return acc_str_ends(p->base, ".json") && mentions(p, "\"data\"") &&
			       (mentions(p, "\"task\"") || mentions(p, "\"dump_data_dir\""))
		       ? 70
		       : 0;
}

/* A file of a dump's folder. NULL where it is missing, or cannot be opened: *e says why. */
static struct acc_bytes *
open_json(struct msprobe *m, const char *name, struct acc_err *e)
{
	int fd = acc_file_beneath(m->dirfd, acc_str(name), e);
	char *path = acc_arena_printf(&m->mem, "%s/%s", m->dir, name);
	if (fd < 0 || path == NULL) {
		if (fd >= 0)
			acc_nomem(e);
		acc_err_in(e, path == NULL ? name : path);
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	return acc_bytes_open(fd, path, false, e);
}

typedef int maps_fn(struct msprobe_maps *m, struct acc_bytes *b, struct acc_err *e);

/* stack.json or construct.json. Both may be missing, or be empty. */
static void
read_maps(struct msprobe *m, const char *name, maps_fn *fn)
{
	struct acc_err e = {0};
	const uint8_t *p;
	size_t n;
	struct acc_bytes *b = NULL;
	if (acc_dir_has(m->dirfd, name, &e) > 0)
		b = open_json(m, name, &e);
	if (b != NULL && acc_bytes_peek(b, &p) == 0 && acc_bytes_more(b, &p, &n, &e) == 0)
		acc_bytes_close(b);
	else if (b != NULL)
		fn(&m->maps, b, &e);
	if (e.code != 0) {
		const char *path = acc_arena_printf(&m->mem, "%s/%s", m->dir, name);
		acc_err_in(&e, path == NULL ? name : path);
		acc_dump_trouble(m->c, &e);
	}
}

static int
read_file(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e)
{
	struct msprobe m = {.c = c,
		.dirfd = dirfd,
		.dir = dir,
		.file = file,
		.step = p->step,
		.rank = p->rank,
		.proc = p->proc};
	if (!acc_dump_wants(c, p->step, p->rank < 0 ? p->proc : p->rank))
		return 0;
	struct acc_bytes *b = open_json(&m, file, e);
	int rc = b == NULL ? (e != NULL ? e->code : ACC_EIO) : 0;
	if (rc == 0) {
		read_maps(&m, "stack.json", acc_msprobe_stacks);
		read_maps(&m, "construct.json", acc_msprobe_parents);
		rc = acc_msprobe_json(&m, b, e);
	}
	if (rc == 0 && m.structure && m.nops == 0 &&
		(rc = acc_dir_has(dirfd, "construct.json", e)) > 0) {
		b = open_json(&m, "construct.json", e);
		rc = b == NULL ? (e != NULL ? e->code : ACC_EIO) : acc_msprobe_structure(&m, b, e);
		acc_dump_note(c, dir,
			"only the structure was recorded: op calls without tensors, of which nothing can be"
			" compared but who is there");
	}
	acc_msprobe_release(&m);
	return rc;
}

static int
read_place(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e)
{
	static const char *const files[] = {"dump.json", "debug.json"};
	int rc = 0;
	if (file != NULL)
		return read_file(c, dirfd, dir, file, p, e);
	bool any = false;
	for (int i = 0; i < 2 && rc == 0; i++) {
		rc = acc_dir_has(dirfd, files[i], e);
		any = any || rc != 0;
		if (rc > 0)
			rc = read_file(c, dirfd, dir, files[i], p, e);
	}
	if (rc == ACC_EIO || rc == ACC_EREFUSED) {
		acc_err_in(e, dir);
		acc_dump_trouble(c, e);
		rc = 0;
	}
	if (any || !acc_dump_wants(c, p->step, p->rank < 0 ? p->proc : p->rank))
		return rc;
	/* An empty folder is what a recorder leaves that was stopped; it lacks nothing. */
	struct acc_arena m = {0};
	const char **names;
	struct acc_err bad = {0};
	int64_t n = acc_dir_list(dirfd, &names, &m, &bad);
	if (n != 0) {
		acc_fail(&bad, ACC_EFORMAT, "there is no dump.json");
		acc_err_in(&bad, dir);
		acc_dump_trouble(c, &bad);
	}
	acc_arena_release(&m);
	return rc;
}

static int
read_dump(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_place, e);
}

const struct acc_dump acc_dump_msprobe = {
	.name = "msprobe",
	.help = "msprobe: a dump root, a folder of a step or rank, dump.json, debug.json",
	.probe = probe,
	.read = read_dump,
};
