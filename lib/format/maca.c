/* The columns of the report of maca_tools: dtype, shape and extremes of both devices, diff1, diff2 and
 * the Python stack. Its own titles are not published: these are ours. */
#include "format/cells.h"
#include "format/stacks.h"

#include <stdlib.h>

static int
start(void **ctx, struct acc_err *e)
{
	*ctx = calloc(1, sizeof(struct acc_stacks));
	return *ctx == NULL ? acc_nomem(e) : 0;
}

static int
see(void *ctx, const struct acc_rec *r, struct acc_err *e)
{
	return acc_stacks_see(ctx, r, e);
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
	struct acc_str id = acc_get_text(r, "", "a.stack");
	(void)c;
	(void)m;
	return acc_stacks_get(ctx, id.n > 0 ? id : acc_get_text(r, "", "b.stack"));
}

static const struct acc_column *
columns(void *ctx, const struct acc_rec *first)
{
	static const struct acc_column all[] = {{"op", plain, "name"},
		{"device0 dtype", plain, "a.dtype"}, {"device1 dtype", plain, "b.dtype"},
		{"device0 shape", plain, "a.shape"}, {"device1 shape", plain, "b.shape"},
		{"device0 max", extreme, "a.s.max"}, {"device1 max", extreme, "b.s.max"},
		{"device0 min", extreme, "a.s.min"}, {"device1 min", extreme, "b.s.min"},
		{"diff1", plain, "m.diff1"}, {"diff2", plain, "m.diff2"}, {"stack", frames, NULL},
		{NULL, NULL, NULL}};
	(void)ctx;
	(void)first;
	return all;
}

static void
stop(void *ctx)
{
	acc_stacks_release(ctx);
	free(ctx);
}

const struct acc_columns acc_columns_maca = {"maca", start, see, is_row, columns, stop};
