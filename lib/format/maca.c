/* The columns of the report of maca_tools: dtype, shape and extremes of both devices, diff1, diff2 and
 * the Python stack. Its own titles are not published: these are ours. device0 is the one that is trusted, as
 * in gen_report(dir0, dir1): our bench. */
#include "format/cells.h"
#include "format/stacks.h"

#include <stdlib.h>

struct maca {
	struct acc_stacks stacks;
	bool names;           /* in its form: torch.nn.functional.conv1d.6.fwd */
	struct acc_map at;    /* forward op call of this step -> its number among all of its rank */
	struct acc_arena mem; /* what the map has */
	uint64_t n;
	int64_t step, rank; /* of the last record */
};

static int
start(void **ctx, struct acc_err *e)
{
	*ctx = calloc(1, sizeof(struct maca));
	return *ctx == NULL ? acc_nomem(e) : 0;
}

static int
start_names(void **ctx, struct acc_err *e)
{
	const int rc = start(ctx, e);
	if (rc == 0)
		((struct maca *)*ctx)->names = true;
	return rc;
}

/* The side whose calls are counted, where it has this one. */
static const char *
side_of(const struct acc_rec *r)
{
	return acc_rec_is(r, "pair") ? acc_get_text(r, "b.", "key").n > 0 ? "b." : "a." : "";
}

/* The forward op call of this record, in m; n 0: it is of none. */
static struct acc_str
forward_of(const struct acc_rec *r, const char *side, struct acc_arena *m, bool *back)
{
	const struct acc_str key = acc_get_text(r, side, "key"),
			     pass = acc_get_text(r, side, "pass");
	*back = acc_str_is(pass, "backward");
	if (acc_str_starts(key, "Module.") || !(*back || acc_str_is(pass, "forward")) ||
		!acc_str_ends(key, *back ? ".backward" : ".forward"))
		return (struct acc_str){"", 0};
	const uint32_t n = key.n - (*back ? 9 : 8);
	const char *name = acc_arena_copy(m, key.p, n);
	return (struct acc_str){name, name == NULL ? 0 : n};
}

static int
count(struct maca *x, const struct acc_rec *r, struct acc_err *e)
{
	const char *side = side_of(r);
	const int64_t step = acc_get_int(r, side, "step", 0),
		      rank = acc_get_int(r, side, "rank", 0);
	bool back;
	if (step != x->step || rank != x->rank) {
		acc_map_release(&x->at);
		acc_arena_release(&x->mem);
		x->at = (struct acc_map){0};
		x->mem = (struct acc_arena){0};
		x->n = rank != x->rank ? 0 : x->n;
	}
	x->step = step;
	x->rank = rank;
	const struct acc_str key = forward_of(r, side, &x->mem, &back);
	if (key.n == 0 || back)
		return 0;
	const uint64_t *at = acc_map_put(&x->at, key, x->n);
	if (at == NULL)
		return acc_nomem(e);
	x->n += *at == x->n;
	return 0;
}

static int
see(void *ctx, const struct acc_rec *r, struct acc_err *e)
{
	struct maca *x = ctx;
	if (x->names &&
		(acc_rec_is(r, "pair") || acc_rec_is(r, "tensor") || acc_rec_is(r, "arg"))) {
		const int rc = count(x, r, e);
		if (rc < 0)
			return rc;
	}
	return acc_stacks_see(&x->stacks, r, e);
}

static bool
is_row(void *ctx, const struct acc_rec *r)
{
	(void)ctx;
	return acc_rec_is(r, "pair");
}

static struct acc_str
plain(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	(void)ctx;
	return acc_cell_text(acc_get(r, "", c->key), m);
}

/* torch.nn.functional.conv1d.6.fwd.input.0: the operator's own name in Python, the number among all
 * forward calls, of a backward call that of its forward call. What is no op call keeps its name. */
static struct acc_str
name(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	static const struct {
		const char *ours, *its;
	} spaces[] = {{"Functional.", "torch.nn.functional."}, {"Tensor.", "torch.Tensor."},
		{"Torch.", "torch."}, {"Distributed.", "torch.distributed."},
		{"NPU.", "torch_npu."}, {"Aten.", "torch.ops.aten."}};
	struct maca *x = ctx;
	const char *side = side_of(r);
	struct acc_str own = acc_get_text(r, "", "name"), op = acc_get_text(r, side, "op");
	if (own.n == 0)
		own = acc_get_text(r, side, "name");
	bool back;
	const struct acc_str key = x->names ? forward_of(r, side, m, &back)
					    : (struct acc_str){"", 0};
	const uint64_t *at = key.n == 0 ? NULL : acc_map_get(&x->at, key);
	(void)c;
	for (size_t i = 0; at != NULL && i < sizeof spaces / sizeof *spaces; i++) {
		const uint32_t n = (uint32_t)strlen(spaces[i].ours), used = key.n + (back ? 9 : 8);
		if (!acc_str_starts(op, spaces[i].ours) || own.n < used)
			continue;
		const char *text = acc_arena_printf(m, "%s%.*s.%llu.%s%.*s", spaces[i].its,
			(int)(op.n - n), op.p + n, (unsigned long long)*at, back ? "bwd" : "fwd",
			(int)(own.n - used), own.p + used);
		return acc_str(text == NULL ? "" : text);
	}
	return own;
}

/* As it was measured, or else as the recorder has it. */
static struct acc_str
extreme(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	const char side[] = {c->key[0], '.', '\0'};
	const struct acc_val *v = acc_get(r, "", c->key);
	(void)ctx;
	return acc_cell_text(
		v != NULL ? v : acc_get(r, side, strstr(c->key, "max") ? "stat.max" : "stat.min"),
		m);
}

static struct acc_str
frames(void *ctx, const struct acc_rec *r, const struct acc_column *c, struct acc_arena *m)
{
	struct maca *x = ctx;
	struct acc_str id = acc_get_text(r, "", "a.stack");
	(void)c;
	(void)m;
	return acc_stacks_get(&x->stacks, id.n > 0 ? id : acc_get_text(r, "", "b.stack"));
}

static const struct acc_column *
columns(void *ctx, const struct acc_rec *first)
{
	static const struct acc_column all[] = {{"op", name, "name"},
		{"device0 dtype", plain, "b.dtype"}, {"device1 dtype", plain, "a.dtype"},
		{"device0 shape", plain, "b.shape"}, {"device1 shape", plain, "a.shape"},
		{"device0 max", extreme, "b.s.max"}, {"device1 max", extreme, "a.s.max"},
		{"device0 min", extreme, "b.s.min"}, {"device1 min", extreme, "a.s.min"},
		{"diff1", plain, "m.diff1"}, {"diff2", plain, "m.diff2"}, {"stack", frames, NULL},
		{NULL, NULL, NULL}};
	(void)ctx;
	(void)first;
	return all;
}

static void
stop(void *ctx)
{
	struct maca *x = ctx;
	acc_stacks_release(&x->stacks);
	acc_map_release(&x->at);
	acc_arena_release(&x->mem);
	free(x);
}

const struct acc_columns acc_columns_maca = {"maca", start, see, is_row, columns, stop};
const struct acc_columns acc_columns_maca_fwd = {"maca-fwd", start_names, see, is_row, columns,
	stop};
