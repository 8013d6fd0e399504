/* The trees that Megatron and DeepSpeed save: a folder for each iteration, in it files or folders
 * for each model-parallel rank, or a distributed checkpoint; and the gradients and activations
 * that Megatron saves in trees of their own. */
#include "dump/weight/dcp.h"
#include "dump/place.h"
#include "dump/weight/ptfile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* What the names of folders say, in struct place's proc, which is free here. */
enum { WGRADS = 1, DGRADS, ACTIVATIONS };

enum { COORDS = 4 }; /* pipeline, expert, data, tensor: the last changes fastest */

/* The number behind `word` in s, and what follows it. */
static bool
number(struct acc_str s, const char *word, int64_t *out, struct acc_str *rest)
{
	uint32_t n = (uint32_t)strlen(word), k = n;
	if (!acc_str_starts(s, word))
		return false;
	while (k < s.n && s.p[k] >= '0' && s.p[k] <= '9')
		k++;
	*rest = (struct acc_str){s.p + k, s.n - k};
	return acc_str_int((struct acc_str){s.p + n, k - n}, out);
}

/* mp_rank_01, mp_rank_01_002, mp_rank_01_002_003: tensor, pipeline, expert. DeepSpeed also
 * zero_pp_rank_D_mp_rank_01, with bf16_ before it: data. How many of the first three it has; 0: none. */
static int
coords(struct acc_str s, int64_t c[COORDS])
{
	int64_t *const order[] = {&c[3], &c[0], &c[1]};
	struct acc_str rest;
	int n = 1;
	if (acc_str_starts(s, "bf16_"))
		s = (struct acc_str){s.p + 5, s.n - 5};
	memset(c, 0, COORDS * sizeof *c);
	if (number(s, "zero_pp_rank_", &c[2], &rest))
		s = rest.n > 0 && rest.p[0] == '_' ? (struct acc_str){rest.p + 1, rest.n - 1}
						   : rest;
	if (!number(s, "mp_rank_", order[0], &rest))
		return 0;
	for (; n < 3 && number(rest, "_", order[n], &s); n++)
		rest = s;
	return n;
}

enum { NO_LAYER, LAYER, EXPERT };

/* DeepSpeed's files of a pipeline's layers, layer_03[-model_01]-model_states.pt, whose keys are those of the
 * layer alone; and of single experts, [layer_0_]expert_3_mp_rank_01_model_states.pt. *layer is the first
 * number. */
static int
layer_of(struct acc_str s, int64_t c[COORDS], int64_t *layer)
{
	struct acc_str rest;
	int64_t expert;
	memset(c, 0, COORDS * sizeof *c);
	bool first = number(s, "layer_", layer, &rest);
	if (first &&
		(acc_str_is(rest, "-model_states.pt") ||
			(number(rest, "-model_", &c[3], &s) && acc_str_is(s, "-model_states.pt"))))
		return LAYER;
	if (first && acc_str_starts(rest, "_"))
		s = (struct acc_str){rest.p + 1, rest.n - 1};
	return number(s, "expert_", &expert, &rest) && number(rest, "_mp_rank_", &c[3], &s) &&
			       acc_str_is(s, "_model_states.pt")
		       ? EXPERT
		       : NO_LAYER;
}

static bool
is_pt(const char *name)
{
	struct acc_str s = acc_str(name);
	return acc_str_ends(s, ".pt") || acc_str_ends(s, ".pth");
}

static bool
level(const char *name, struct place *p)
{
	static const char *const kinds[] =
		{[WGRADS] = "wgrads", [DGRADS] = "dgrads", [ACTIVATIONS] = "activations"};
	int64_t c[COORDS], step;
	struct acc_str s = acc_str(name), rest;
	for (int i = WGRADS; i <= ACTIVATIONS; i++)
		if (strcmp(name, kinds[i]) == 0) {
			p->proc = i;
			return true;
		}
	if ((number(s, "iter_", &step, &rest) || number(s, "global_step", &step, &rest)) &&
		rest.n == 0) {
		p->step = step;
		return true;
	}
	return strcmp(name, "release") == 0 || (coords(s, c) > 0 && !is_pt(name));
}

/* Is it the folder of one iteration, or of one rank? */
static int
holds(int dirfd, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	int64_t c[COORDS], layer;
	int found = acc_dcp_in(dirfd, e);
	int64_t n = found != 0 ? 0 : acc_dir_list(dirfd, &names, &m, e);
	if (n < 0)
		found = (int)n;
	for (int64_t i = 0; i < n && found == 0; i++)
		found = is_pt(names[i]) &&
			(coords(acc_str(names[i]), c) > 0 ||
				layer_of(acc_str(names[i]), c, &layer) != NO_LAYER ||
				strcmp(names[i], "model_optim_rng.pt") == 0 ||
				strcmp(names[i], "distrib_optim.pt") == 0 ||
				strcmp(names[i], "model_rng.pt") == 0);
	acc_arena_release(&m);
	return found;
}

static const struct place_rule rule = {level, holds, 3, "mp_rank_*"};

static int
probe(const struct acc_probe *p)
{
	return p->is_dir ? acc_dump_probe_places(p, &rule, 75) : 0;
}

/* One file of one rank, or (file NULL) a distributed checkpoint. */
struct part {
	const char *path, *file; /* its folder, beneath the dump's */
	const char *place;       /* what says the rank: the file's name, or the folder's; or NULL */
	char prefix[24];         /* of the names of what is in it; "": none */
	int64_t kind, step, c[COORDS];
	int n; /* of tensor, pipeline and expert ranks, which the names say */
};

struct tree {
	struct acc_dump_ctx *c;
	const char *root;
	int dirfd;
	struct acc_buf parts;
	bool alone; /* the user has named the folder of one rank */
	int64_t said
		[COORDS]; /* how many ranks the files themselves say that there are; 0: nothing */
	struct acc_arena mem;
};

static int
add(struct tree *t, const struct place *p, const char *file, const int64_t c[COORDS],
	const char *place, const char *prefix, struct acc_err *e)
{
	struct part x = {.path = acc_arena_copy(&t->mem, p->path, strlen(p->path)),
		.kind = p->proc,
		.step = p->step};
	snprintf(x.prefix, sizeof x.prefix, "%s", prefix);
	if (file != NULL) {
		x.file = acc_arena_copy(&t->mem, file, strlen(file));
		x.place = acc_arena_copy(&t->mem, place, strlen(place));
		memcpy(x.c, c, sizeof x.c);
		x.n = coords(acc_str(place), (int64_t[COORDS]){0});
	}
	if (x.path == NULL || (file != NULL && (x.file == NULL || x.place == NULL)) ||
		acc_buf_add(&t->parts, &x, sizeof x) < 0)
		return acc_nomem(e);
	return 0;
}

/* Of a pipeline the files of its layers hold the model; where experts have files of their own, they are
 * its, beside those of each rank. What else was saved, the optimizer's, is not read then, which is said. */
static int
add_layers(struct tree *t, const struct place *p, const char *const *names, int64_t n, int kind,
	struct acc_err *e)
{
	int64_t c[COORDS], layer, left = 0;
	const char *first = "";
	int rc = 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		const struct acc_str s = acc_str(names[i]);
		char prefix[24] = "module";
		if (acc_str_ends(s, "_optim_states.pt") && left++ == 0)
			first = names[i];
		const int is = layer_of(s, c, &layer);
		if (is == LAYER)
			snprintf(prefix, sizeof prefix, "layer_%02lld", (long long)layer);
		if (is == kind)
			rc = add(t, p, names[i], c, names[i], prefix, e);
		else if (kind == EXPERT && acc_str_starts(s, "mp_rank_") && is_pt(names[i]) &&
			 coords(s, c) > 0)
			rc = add(t, p, names[i], c, names[i], "", e);
	}
	if (rc == 0 && left > 0)
		acc_dump_note(t->c, first,
			"left out, as all that the optimizer has saved (files: %lld): where layers or "
			"experts have files of their own, only the model is read",
			(long long)left);
	return rc;
}

/* The name of the folder itself says the rank, or those of its files do. */
static int
collect(void *arg, int dirfd, const struct place *p, struct acc_err *e)
{
	struct tree *t = arg;
	struct acc_arena m = {0};
	const char **names;
	int64_t own[COORDS] = {0}, c[COORDS], layer;
	char real[PATH_MAX];
	int rc = acc_dcp_in(dirfd, e), kind = NO_LAYER;
	if (rc != 0)
		return rc < 0 ? rc : add(t, p, NULL, NULL, NULL, "", e);
	char *path = acc_arena_printf(&m, "%s/%s", t->root, p->path);
	if (path == NULL)
		rc = acc_nomem(e);
	else if (realpath(path, real) == NULL)
		rc = acc_fail(e, ACC_EIO, "cannot find the folder %.150s:", p->path);
	else
		coords(acc_str(strrchr(real, '/') + 1), own);
	int64_t n = rc < 0 ? 0 : acc_dir_list(dirfd, &names, &m, e);
	rc = n < 0 ? (int)n : rc;
	for (int64_t i = 0; i < n && kind != LAYER; i++) {
		const int is = layer_of(acc_str(names[i]), c, &layer);
		kind = is != NO_LAYER && (kind == NO_LAYER || is == LAYER) ? is : kind;
	}
	if (rc == 0 && kind != NO_LAYER)
		rc = add_layers(t, p, names, n, kind, e);
	for (int64_t i = 0; i < n && rc == 0 && kind == NO_LAYER; i++)
		if (is_pt(names[i])) {
			bool says = coords(acc_str(names[i]), c) > 0;
			rc = add(t, p, names[i], says ? c : own,
				says ? names[i] : strrchr(real, '/') + 1, "", e);
		}
	acc_arena_release(&m);
	return rc;
}

static int
by_place(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	for (int i = 0; i < COORDS; i++)
		if (x->c[i] != y->c[i])
			return x->c[i] < y->c[i] ? -1 : 1;
	int d = strcmp(x->path, y->path);
	return d != 0 || x->file == NULL || y->file == NULL ? d : acc_natural_cmp(x->file, y->file);
}

static int
by_coords(const void *a, const void *b)
{
	for (int i = 0; i < COORDS; i++) {
		int64_t x = ((const int64_t *)a)[i], y = ((const int64_t *)b)[i];
		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

/* The ranks that there are, in order: a rank's number is its place among them. */
static int64_t *
ranks(struct tree *t, size_t *n)
{
	const struct part *p = (const struct part *)(const void *)t->parts.p;
	size_t np = t->parts.n / sizeof *p, k = 0;
	int64_t(*c)[COORDS] = acc_alloc(&t->mem, np * sizeof *c);
	*n = 0;
	for (size_t i = 0; c != NULL && i < np; i++)
		if (p[i].file != NULL)
			memcpy(c[k++], p[i].c, sizeof *c);
	if (k > 0)
		qsort(c, k, sizeof *c, by_coords);
	for (size_t i = 0; i < k; i++)
		if (i == 0 || by_coords(c[*n - 1], c[i]) != 0)
			memmove(c[(*n)++], c[i], sizeof *c);
	return (int64_t *)c;
}

/* What a file holds is named by what says which part of the model it is, too. */
static int
prefixed(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	if (!l->in_dict || (l->value_type != NULL && strcmp(l->value_type, "opaque") == 0))
		return 0;
	struct acc_str name = acc_str_made(
		acc_arena_printf(&f->mem, "%s.%.*s", (const char *)arg, ACC_PRS(l->path)));
	int rc = name.p == NULL ? acc_nomem(e) : acc_dump_ptleaf(f, l, name, NULL);
	return rc < 0 ? rc : 1;
}

static void
said(struct tree *t, int axis, int64_t n)
{
	if (n > t->said[axis] && n < (1 << 20))
		t->said[axis] = n;
}

/* Megatron's arguments, an object that is not made: what its dict has by this name. */
static int64_t
argument(const struct acc_py *object, const char *name)
{
	const struct acc_py *state = object == NULL || object->type != ACC_PY_CALL
					     ? NULL
					     : object->item[ACC_CALL_STATE];
	for (uint32_t i = 0; state != NULL && state->type == ACC_PY_DICT && i < state->n; i += 2)
		if (state->item[i]->type == ACC_PY_STR && acc_str_is(state->item[i]->s, name))
			return state->item[i + 1]->type == ACC_PY_INT ? state->item[i + 1]->i : 0;
	return 0;
}

struct reading {
	struct tree *t;
	const char *prefix;
};

/* How many ranks there are, as Megatron and DeepSpeed note it. */
static int
watched(void *arg, struct ptfile *f, const struct acc_torch_leaf *l, struct acc_err *e)
{
	const struct reading *r = arg;
	struct acc_str s = l->path;
	if (l->value_type != NULL && acc_str_is(s, "args")) {
		said(r->t, 3, argument(l->object, "tensor_model_parallel_size"));
		said(r->t, 0, argument(l->object, "pipeline_model_parallel_size"));
	} else if (l->value_type != NULL && strcmp(l->value_type, "int") == 0) {
		if (acc_str_is(s, "mp_world_size"))
			said(r->t, 3, l->i);
		else if (acc_str_starts(s, "optimizer_state_dict.partition_count"))
			said(r->t, 2, l->i);
	}
	return r->prefix[0] == '\0' ? 0 : prefixed((void *)(uintptr_t)r->prefix, f, l, e);
}

static int
read_part(struct tree *t, const struct part *p, int64_t rank, struct weights *w, struct acc_err *e)
{
	static const char *const io[] = {
		"param", [WGRADS] = "grad", [DGRADS] = "grad", [ACTIVATIONS] = "out"};
	char dir[PATH_MAX];
	struct acc_err bad = {0};
	if (!acc_dump_wants(t->c, p->step, rank))
		return 0;
	int fd = openat(t->dirfd, p->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return acc_fail(e, ACC_EIO, "cannot open the folder %.150s:", p->path);
	snprintf(dir, sizeof dir, "%s%s", t->root, p->path + 1); /* it starts with "." */
	const struct acc_source s = {.root = dir,
		.format = "megatron",
		.framework = "pytorch",
		.task = "tensor",
		.place = p->place,
		.step = p->step,
		.rank = rank,
		.proc = -1};
	w->dir = dir;
	w->io = io[p->kind];
	char prefix[sizeof p->prefix];
	memcpy(prefix, p->prefix, sizeof prefix);
	struct reading reading = {t, prefix};
	struct ptfile f = {.w = w, .dirfd = fd, .file = p->file, .own = watched, .arg = &reading};
	int rc = acc_dump_source(t->c, &s, &bad);
	if (rc == 0 && p->file == NULL)
		rc = acc_dcp_read(w, fd, &bad);
	else if (rc == 0) {
		f.stem = acc_dump_stem(p->file);
		rc = acc_dump_ptfile(&f, &bad);
	}
	close(fd);
	if (bad.code == 0 || bad.code == ACC_ENOMEM)
		return bad.code == 0 ? rc : acc_nomem(e);
	/* The other files are read. */
	char *path = acc_arena_printf(&t->mem, "%s/%s", dir,
		p->file == NULL ? ".metadata" : p->file);
	acc_err_in(&bad, path == NULL ? dir : path);
	acc_dump_say(&w->said, t->c, &bad);
	return 0;
}

static bool
is_there(const struct part *p, size_t n, int axis, int64_t at, int other, int64_t of, bool states)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].file != NULL && p[i].c[axis] == at && (other < 0 || p[i].c[other] == of) &&
			(!states || acc_str_ends(acc_str(p[i].file), "_optim_states.pt")))
			return true;
	return false;
}

/* The next rank of an axis that is there; of: none is. */
static int64_t
next_there(const struct part *p, size_t n, int axis, int64_t at, int64_t of)
{
	int64_t next = of;
	for (size_t i = 0; i < n; i++)
		if (p[i].file != NULL && p[i].c[axis] >= at && p[i].c[axis] < next)
			next = p[i].c[axis];
	return next;
}

/* Ranks from..to - 1 of so many. Their number is what a file says: they are said at once. */
static void
say_gone(struct tree *t, struct weights *w, int axis, int64_t from, int64_t to, int64_t of)
{
	struct acc_err bad = {0};
	char which[64];
	if (to - from == 1)
		snprintf(which, sizeof which, "%lld", (long long)from);
	else
		snprintf(which, sizeof which, "%lld-%lld", (long long)from, (long long)to - 1);
	const long long all = of;
	if (axis == 3)
		acc_fail(&bad, ACC_EFORMAT, "tensor parallel rank %s of %lld is not there", which,
			all);
	else if (axis == 0)
		acc_fail(&bad, ACC_EFORMAT, "pipeline parallel rank %s of %lld is not there", which,
			all);
	else if (axis == 1)
		acc_fail(&bad, ACC_EFORMAT, "expert parallel rank %s of %lld is not there", which,
			all);
	else
		acc_fail(&bad, ACC_EFORMAT,
			"the optimizer of data parallel rank %s of %lld is not there", which, all);
	acc_err_in(&bad, t->root);
	acc_dump_say(&w->said, t->c, &bad);
}

static void
say_axis(struct tree *t, struct weights *w, const struct part *p, size_t n, int axis, int64_t of)
{
	for (int64_t x = 0; x < of; x++) {
		const int64_t next = next_there(p, n, axis, x, of);
		if (next > x)
			say_gone(t, w, axis, x, next, of);
		x = next;
	}
}

/* Of one iteration: ranks that the others, or what they hold, say that there are. */
static void
look_for_ranks(struct tree *t, const struct part *p, size_t n, struct weights *w)
{
	int64_t size[COORDS] = {0};
	for (int k = 0; k < COORDS; k++) {
		size[k] = t->said[k];
		for (size_t i = 0; i < n; i++)
			if (p[i].file != NULL && p[i].c[k] >= size[k])
				size[k] = p[i].c[k] + 1;
	}
	/* Megatron writes the numbers of pipeline and expert ranks only where there are several. */
	for (size_t i = 0; i < n; i++) {
		size[0] = p[i].n > 1 && size[0] < 2 ? 2 : size[0];
		size[1] = p[i].n > 2 && size[1] < 2 ? 2 : size[1];
	}
	say_axis(t, w, p, n, 3, size[3]);
	say_axis(t, w, p, n, 0, size[0]);
	say_axis(t, w, p, n, 1, size[1]);
	/* Of each stage that is there, the tensor parallel ranks that some stage has. */
	for (int64_t y = next_there(p, n, 0, 0, size[0]); y < size[0];
		y = next_there(p, n, 0, y + 1, size[0]))
		for (int64_t x = next_there(p, n, 3, 0, size[3]); x < size[3];
			x = next_there(p, n, 3, x + 1, size[3]))
			if (!is_there(p, n, 3, x, 0, y, false))
				say_gone(t, w, 3, x, x + 1, size[3]);
	/* Of data parallel ranks, what the optimizer of each has. */
	bool any = false;
	for (size_t i = 0; i < n && !any; i++)
		any = p[i].file != NULL && is_there(p, n, 2, p[i].c[2], -1, 0, true);
	for (int64_t d = 0; d < size[2] && any; d++) {
		const int64_t next = next_there(p, n, 2, d, size[2]);
		if (next > d)
			say_gone(t, w, 2, d, next, size[2]);
		for (int64_t x = next_there(p, n, 3, 0, size[3]); x < size[3] && next < size[2];
			x = next_there(p, n, 3, x + 1, size[3]))
			if (!is_there(p, n, 2, next, 3, x, true))
				say_gone(t, w, 2, next, next + 1, size[2]);
		d = next;
	}
}

static int
read_parts(struct tree *t, struct acc_err *e)
{
	struct part *p = (struct part *)(void *)t->parts.p;
	size_t n = t->parts.n / sizeof *p, nranks;
	struct weights w = {.c = t->c, .dir = t->root};
	if (n == 0)
		return acc_fail(e, ACC_EFORMAT, "there is no mp_rank_*");
	qsort(p, n, sizeof *p, by_place);
	const int64_t *c = ranks(t, &nranks);
	int rc = c == NULL ? acc_nomem(e) : 0;
	for (size_t i = 0, from = 0; i < n && rc == 0; i++) {
		const int64_t *at = p[i].file == NULL ? NULL
						      : bsearch(p[i].c, c, nranks,
								COORDS * sizeof *c, by_coords);
		rc = read_part(t, &p[i], at == NULL ? -1 : (at - c) / COORDS, &w, e);
		if (rc < 0 ||
			(i + 1 < n && p[i + 1].step == p[i].step && p[i + 1].kind == p[i].kind))
			continue;
		if (!t->alone)
			look_for_ranks(t, &p[from], i + 1 - from, &w);
		memset(t->said, 0, sizeof t->said);
		from = i + 1;
	}
	acc_dump_weights_end(&w, t->root);
	return rc;
}

static int
read_megatron(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	struct place top;
	struct tree t = {.c = c, .root = dir};
	acc_dump_trim(path, dir);
	t.dirfd = acc_dir_open(dir, e);
	if (t.dirfd < 0)
		return t.dirfd;
	int rc = acc_dump_place_of(dir, &rule, &top, e);
	char real[PATH_MAX];
	int64_t own[COORDS];
	t.alone = realpath(dir, real) != NULL && coords(acc_str(strrchr(real, '/') + 1), own) > 0;
	top.rank = -1;
	top.proc = top.proc < 0 ? 0 : top.proc;
	if (rc == 0)
		rc = acc_dump_each_place(t.dirfd, &top, &rule, collect, &t, e);
	if (rc == 0)
		rc = read_parts(&t, e);
	close(t.dirfd);
	acc_buf_release(&t.parts);
	acc_arena_release(&t.mem);
	return rc;
}

const struct acc_dump acc_dump_megatron = {
	.name = "megatron",
	.help = "checkpoints and gradients of Megatron and DeepSpeed: mp_rank_*",
	.probe = probe,
	.read = read_megatron,
};
