/* The recorder of MXMACA (maca_tools.accuracy): a folder with a file for each op call. */
#include "dump/op/maca_file.h"
#include "dump/place.h"

#include <stdlib.h>

static bool
level(const char *name, struct place *p)
{
	int64_t rank = acc_dump_place_number(name, "rank");
	int64_t step = acc_dump_place_number(name, "step");
	if (rank < 0)
		rank = acc_dump_place_number(name, "rank_");
	if (step < 0)
		step = acc_dump_place_number(name, "step_");
	if (rank < 0 && step < 0)
		return strcmp(name, "record_dir") == 0;
	p->rank = rank < 0 ? p->rank : rank;
	p->step = step < 0 ? p->step : step;
	return true;
}

static int
holds(int dirfd, struct acc_err *e)
{
	static const char *const ends[] = {".fwd.pt", ".bwd.pt", ".fwd", ".bwd"};
	int rc = 0;
	for (size_t i = 0; i < sizeof ends / sizeof *ends && rc == 0; i++)
		rc = acc_dir_has_end(dirfd, ends[i], e);
	return rc;
}

static const struct place_rule rule = {level, holds, 3, ".fwd.pt or .bwd.pt of record_dir"};

static int
probe(const struct acc_probe *p)
{
	struct maca_name name;
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 72);
	return p->nhead >= 4 && acc_maca_name(p->base, &name) ? 96 : 0;
}

struct file {
	const char *file;
	struct maca_name name;
};

/* What ran first, for backward follows forward. */
static int
by_number(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	if (x->name.backward != y->name.backward)
		return x->name.backward ? 1 : -1;
	if (x->name.n != y->name.n)
		return x->name.n < y->name.n ? -1 : 1;
	return strcmp(x->file, y->file);
}

static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *only,
	const struct place *at, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names = &only;
	struct weights w = {.c = c, .dir = dir, .io = "out"};
	const struct acc_source s = {.root = dir,
		.format = "maca",
		.framework = "pytorch",
		.step = at->step,
		.rank = at->rank,
		.proc = -1};
	if (!acc_dump_wants(c, at->step, at->rank))
		return 0;
	int64_t n = only != NULL ? 1 : acc_dir_list(dirfd, &names, &m, e), k = 0;
	struct file *f = n < 0 ? NULL : acc_alloc(&m, (size_t)n * sizeof *f);
	int rc = n < 0 ? (int)n : f == NULL ? acc_nomem(e) : acc_dump_source(c, &s, e);
	for (int64_t i = 0; i < n && rc == 0; i++) {
		f[k].file = names[i];
		k += acc_maca_name(acc_str(names[i]), &f[k].name);
	}
	if (k > 0)
		qsort(f, (size_t)k, sizeof *f, by_number);
	for (int64_t i = 0; i < k && rc == 0; i++)
		rc = acc_maca_file(&w, dirfd, f[i].file, &f[i].name, e);
	acc_dump_weights_end(&w, dir);
	acc_arena_release(&m);
	return rc;
}

static int
read_maca(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_maca = {
	.name = "maca",
	.help = "MXMACA's record_dir: torch.nn.Conv1d.6.fwd.pt, ...",
	.probe = probe,
	.read = read_maca,
};
