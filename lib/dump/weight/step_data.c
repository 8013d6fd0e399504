/* The data of each training step, saved as step_N/rank_M/tokens.npy, labels.npy, loss_mask.npy,
 * attention_mask.npy; gradients of an optimizer's check beside them. */

#include "dump/payload.h"
#include "dump/place.h"
#include "dump/weight/weight.h"

static bool
level(const char *name, struct place *p)
{
	int64_t step = acc_dump_place_number(name, "step_");
	int64_t rank = acc_dump_place_number(name, "rank_");
	if (step < 0 && rank < 0)
		return false;
	p->step = step < 0 ? p->step : step;
	p->rank = rank < 0 ? p->rank : rank;
	return true;
}

static int
holds(int dirfd, struct acc_err *e)
{
	return acc_dir_has_end(dirfd, ".npy", e);
}

static const struct place_rule rule = {level, holds, 2, "step_N/rank_M"};

static int
found(void *arg, int dirfd, const struct place *p, struct acc_err *e)
{
	(void)arg, (void)dirfd, (void)e;
	return p->depth > 0;
}

static int
probe(const struct acc_probe *p)
{
	struct place top = {.path = "."};
	if (!p->is_dir)
		return 0;
	/* A folder of .npy files is one of ours by its own name. */
	int rc = acc_dump_place_of(p->path, &rule, &top, p->e);
	if (rc == 0 && top.step >= 0)
		rc = holds(p->dirfd, p->e);
	if (rc == 0)
		rc = acc_dump_each_place(p->dirfd, &top, &rule, found, NULL, p->e);
	return acc_dump_sure(rc, 50);
}

static int
put(struct weights *w, int dirfd, const char *file, struct acc_err *e)
{
	struct acc_ref ref;
	struct acc_err bad = {0};
	struct acc_arena m = {0};
	struct weight x = {.name = {file, (uint32_t)strlen(file) - 4},
		.file = acc_str(file),
		.ref = &ref};
	w->io = acc_str_starts(x.name, "grad_") ? "grad" : "in";
	if (acc_dump_payload(dirfd, x.file, &ref, &m, &bad) < 0)
		x.err = &bad;
	x.info = (struct acc_file_info){.size = ref.fsize, .mtime_ns = ref.mtime_ns};
	int rc = acc_dump_weight(w, &x, e);
	acc_arena_release(&m);
	return rc;
}

static int
read_place(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e)
{
	const char **names = &file;
	struct acc_arena m = {0};
	if (file != NULL && !acc_str_ends(acc_str(file), ".npy"))
		return acc_fail(e, ACC_EFORMAT, "not an .npy file");
	if (!acc_dump_wants(c, p->step, p->rank))
		return 0;
	const struct acc_source s = {.root = dir,
		.format = "step_data",
		.task = "tensor",
		.step = p->step,
		.rank = p->rank,
		.proc = -1,
		.order = "names"};
	struct weights w = {.c = c, .dir = dir};
	int64_t n = file != NULL ? 1 : acc_dir_list(dirfd, &names, &m, e);
	int rc = n < 0 ? (int)n : acc_dump_source(c, &s, e);
	for (int64_t i = 0; i < n && rc == 0; i++)
		if (acc_str_ends(acc_str(names[i]), ".npy"))
			rc = put(&w, dirfd, names[i], e);
	acc_dump_weights_end(&w, dir);
	acc_arena_release(&m);
	return rc;
}

static int
read_steps(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_place, e);
}

const struct acc_dump acc_dump_step_data = {
	.name = "step_data",
	.help = "the data of each training step: step_N/rank_M/tokens.npy",
	.probe = probe,
	.read = read_steps,
};
