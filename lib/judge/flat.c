/* The weights of a recurrent layer as one tensor, which MindSpore's kernel takes: the weights of what goes in, of the
 * state and the biases behind each other, where torch's call takes each by itself. Nothing pairs with it, so where
 * such a layer is named the parts are compared here. Source: ops.LSTM of MindSpore 2.10.0, whose w has the
 * shape (weight_size, 1, 1), and nn.LSTM, which on a CPU adds up the two biases before, and on a GPU does not. */
#include "acc/op.h"
#include "acc/payload.h"
#include "acc/say.h"
#include "judge/case.h"
#include "judge/first_bad.h"

#include <stdlib.h>
#include <string.h>

/* Tensors and elements that are looked at, and directions of layers. */
enum { TENSORS = 128, ELEMENTS = 1 << 22, GROUPS = 32 };
enum part { INPUT, STATE, BIAS, BIAS_OF_STATE, PARTS };

/* What torch takes for one direction of one layer; bias ACC_NOCALL: it has none. */
struct group {
	uint32_t call;
	uint32_t item[PARTS];
	uint64_t n[PARTS];
};

/* The parts of a kernel's tensor that are the group's: how far each is off, of itself; 0 where it agrees. */
struct found {
	uint32_t group;
	uint32_t parts, wrong;
	double off[PARTS];
};

static bool
same_call(const struct acc_call *k, const struct acc_call *of, int side)
{
	return k->segment == of->segment && k->key[side] != NULL &&
	       strcmp(k->key[side], of->key[side]) == 0;
}

static bool
is_lstm(struct acc_str op)
{
	return acc_op_family(op) == acc_op_family(acc_str("lstm"));
}

/* The shape of a side's tensor, that goes into a call. NULL: it has none. */
static const struct acc_val *
shape_of(struct acc_case *c, const struct acc_item *it, const char *side, struct acc_str *pos,
	struct acc_err *e)
{
	struct acc_rec *r;
	if (it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) || acc_case_record(c, it, &r, e) < 0)
		return NULL;
	const struct acc_val *v = acc_get(r, side, "shape");
	*pos = acc_get_text(r, side, "pos");
	return v == NULL || v->type != ACC_V_INTS || !is_lstm(acc_get_text(r, side, "op")) ? NULL
											   : v;
}

struct tensor {
	uint32_t item, ndim, call, at; /* at: where it stands in the list of them */
	int64_t shape[2];
};

static int
by_place(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;
	return x->call != y->call ? (x->call > y->call) - (x->call < y->call)
				  : (x->at > y->at) - (x->at < y->at);
}

/* The weights of such calls of the bench in a segment, in the order of their lists: torch.lstm(input, hx, params, ...). */
static int
read_tensors(struct acc_case *c, uint32_t segment, struct tensor *t, uint32_t *n, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem && *n < TENSORS; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_str pos;
		if (it->call == ACC_NOCALL || (it->sides & 2) == 0 ||
			c->call[it->call].segment != segment)
			continue;
		const struct acc_val *v = shape_of(c, it, "b.", &pos, e);
		if (v == NULL && e->code < 0)
			return e->code;
		if (v == NULL || v->n == 0 || v->n > 2 || pos.n < 3 || memcmp(pos.p, "2.", 2) != 0)
			continue;
		struct tensor *x = &t[(*n)++];
		*x = (struct tensor){.item = i, .ndim = v->n, .call = it->call};
		for (uint32_t k = 2; k < pos.n && pos.p[k] >= '0' && pos.p[k] <= '9'; k++)
			x->at = x->at * 10 + (uint32_t)(pos.p[k] - '0');
		memcpy(x->shape, v->ints, v->n * sizeof *v->ints);
		/* Parts that are a pair with a kernel's before it are of the same call. */
		for (uint32_t k = 0; k + 1 < *n; k++)
			if (same_call(&c->call[t[k].call], &c->call[x->call], ACC_B))
				x->call = t[k].call;
	}
	qsort(t, *n, sizeof *t, by_place);
	return 0;
}

/* The same by directions of layers; none where one of them has a projection, or what nobody knows. */
static int
read_groups(struct acc_case *c, uint32_t segment, struct group *g, uint32_t *ng, struct acc_err *e)
{
	struct tensor t[TENSORS];
	uint32_t n = 0;
	int rc = read_tensors(c, segment, t, &n, e);
	*ng = 0;
	for (uint32_t i = 0; rc == 0 && i < n && *ng < GROUPS;) {
		struct group *x = &g[(*ng)++];
		const int64_t rows = t[i].shape[0];
		*x = (struct group){.call = t[i].call,
			.item = {ACC_NOCALL, ACC_NOCALL, ACC_NOCALL, ACC_NOCALL}};
		for (int p = 0; p < PARTS && i < n && t[i].call == x->call; p++) {
			if (t[i].shape[0] != rows || t[i].ndim != (p < BIAS ? 2 : 1))
				break;
			x->item[p] = t[i].item;
			x->n[p] = (uint64_t)(rows * (p < BIAS ? t[i].shape[1] : 1));
			i++;
		}
		if (x->item[STATE] == ACC_NOCALL || x->n[STATE] * 4 != (uint64_t)(rows * rows))
			return *ng = 0, 0;
	}
	return rc;
}

/* How many elements the kernel's tensor has: its biases summed up, or each by itself. */
static uint64_t
flat_size(const struct group *g, bool summed)
{
	return g->n[INPUT] + g->n[STATE] + g->n[BIAS] + (summed ? 0 : g->n[BIAS_OF_STATE]);
}

/* How far a part of the kernel's is from the group's: 0, if by no more than its rounding. < 0: it cannot be read. */
static double
part_off(struct acc_case *c, const struct group *g, enum part p, bool summed, const double *flat,
	double unit, struct acc_err *e)
{
	const uint64_t n = g->n[p];
	double *x = acc_read_elements(c, g->item[p], "b.", n, ELEMENTS, e), off = -1;
	double *y = x != NULL && summed && p == BIAS && g->item[BIAS_OF_STATE] != ACC_NOCALL
			    ? acc_read_elements(c, g->item[BIAS_OF_STATE], "b.", n, ELEMENTS, e)
			    : NULL;
	if (x != NULL &&
		(y != NULL || !summed || p != BIAS || g->item[BIAS_OF_STATE] == ACC_NOCALL)) {
		for (uint64_t i = 0; i < n && y != NULL; i++)
			x[i] += y[i];
		off = acc_far(flat, x, n);
		off = off > LIMIT_OTHER_OUTPUT * unit ? off : 0;
	}
	free(x);
	free(y);
	return off;
}

/* The group that a kernel's tensor has most parts of; of two, that of its own place. */
static bool
nearest(struct acc_case *c, const struct group *g, uint32_t ng, uint32_t own, uint32_t item,
	uint64_t n, struct found *out, struct acc_err *e)
{
	double *flat = acc_read_elements(c, item, "a.", n, ELEMENTS, e);
	const double unit = acc_item_unit(&c->item[item]);
	bool any = false;
	for (uint32_t i = 0; i < ng && flat != NULL; i++) {
		const uint32_t k = (own + i) % ng;
		const bool summed = n == flat_size(&g[k], true);
		struct found f = {.group = k};
		bool read = summed || n == flat_size(&g[k], false);
		uint64_t at = 0;
		for (int p = 0; p < PARTS && read; p++) {
			if (g[k].item[p] == ACC_NOCALL || (summed && p == BIAS_OF_STATE))
				continue;
			f.off[p] = part_off(c, &g[k], (enum part)p, summed, flat + at, unit, e);
			read = f.off[p] >= 0;
			f.wrong += f.off[p] > 0;
			f.parts++;
			at += g[k].n[p];
		}
		if (read && (!any || f.wrong < out->wrong))
			*out = f;
		any |= read;
	}
	free(flat);
	return any;
}

/* What is said of a kernel whose weights are others; "": they are not. NULL: no memory. */
static const char *
text_of(struct acc_case *c, const struct group *g, const struct found *f)
{
	const char *const what[] = {acc_tr("the weights of what goes in"),
		acc_tr("the weights of the state"),
		g->item[BIAS_OF_STATE] == ACC_NOCALL || f->off[BIAS_OF_STATE] > 0
			? acc_tr("the bias")
			: acc_tr("the bias, the sum of both"),
		acc_tr("the bias of the state")};
	const char *text = "";
	for (int p = 0; p < PARTS && text != NULL; p++)
		if (f->off[p] > 0)
			text = acc_arena_printf(&c->mem, "%s%s%s (%.2g)", text,
				text[0] != '\0' ? ", " : "", what[p], f->off[p]);
	return text;
}

/* A kernel's tensor, that goes in. */
struct kernel {
	uint32_t item;
	uint64_t n;
	struct acc_str pos;
};

/* The tensors of the device's kernels in a segment that lie so, in their order. */
static int
read_kernels(struct acc_case *c, uint32_t segment, struct kernel *out, uint32_t *n,
	struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem && *n < GROUPS; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct kernel *k = &out[*n];
		if (it->call == ACC_NOCALL || (it->sides & 1) == 0 ||
			c->call[it->call].segment != segment)
			continue;
		const struct acc_val *v = shape_of(c, it, "a.", &k->pos, e);
		if (v == NULL && e->code < 0)
			return e->code;
		if (v == NULL || v->n != 3 || v->ints[1] != 1 || v->ints[2] != 1)
			continue;
		k->item = i;
		k->n = (uint64_t)v->ints[0];
		k->pos = acc_arena_str(&c->mem, k->pos);
		if (k->pos.p == NULL)
			return acc_nomem(e);
		++*n;
	}
	return 0;
}

/* Let the finding name this kernel, whose weights are others. */
static int
blame(struct acc_case *c, struct acc_finding *f, const struct kernel *by, const char *what,
	struct acc_err *e)
{
	const struct acc_call *k = &c->call[c->item[by->item].call];
	f->name = acc_call_name(k);
	f->seq = k->seq;
	f->io = "in";
	f->pos = by->pos.p;
	f->rule = "input";
	f->text =
		what == NULL
			? NULL
			: acc_say(&c->mem,
				  "%s: of the weights that lie in one tensor, input %s, these are off from the"
				  " bench's, by so much of themselves: %s; %s",
				  f->name, f->pos, what, f->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* A call of the bench in this segment that takes such weights; ACC_NOCALL: it is none. */
static int
find_call(struct acc_case *c, uint32_t segment, const char *bench, uint32_t *call,
	struct acc_err *e)
{
	*call = ACC_NOCALL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call == ACC_NOCALL || (it->sides & 2) == 0)
			continue;
		const struct acc_call *k = &c->call[it->call];
		if (k->segment != segment || k->key[ACC_B] == NULL ||
			strcmp(k->key[ACC_B], bench) != 0)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		*call = is_lstm(acc_get_text(r, acc_rec_is(r, "pair") ? "b." : "", "op"))
				? it->call
				: ACC_NOCALL;
		return 0;
	}
	return 0;
}

int
acc_blame_flat(struct acc_case *c, struct acc_finding *f, uint32_t segment, const char *bench,
	struct acc_err *e)
{
	struct group g[GROUPS];
	struct kernel k[GROUPS];
	uint32_t ng = 0, nk = 0, call = ACC_NOCALL;
	int rc = c->opt.where == NULL || bench == NULL ? 0 : find_call(c, segment, bench, &call, e);
	if (rc < 0 || call == ACC_NOCALL)
		return rc;
	rc = read_groups(c, segment, g, &ng, e);
	if (rc == 0 && ng > 0)
		rc = read_kernels(c, segment, k, &nk, e);
	for (uint32_t i = 0; rc == 0 && i < nk && ng > 0; i++) {
		struct acc_err quiet = {0};
		struct found w = {0};
		if (!nearest(c, g, ng, i % ng, k[i].item, k[i].n, &w, &quiet) || w.wrong == 0)
			continue;
		/* Whose it is, where no part agrees, only its place tells. */
		if ((w.wrong < w.parts || nk == ng) &&
			same_call(&c->call[g[w.group].call], &c->call[call], ACC_B)) {
			rc = blame(c, f, &k[i], text_of(c, &g[w.group], &w), e);
			return rc < 0 ? rc : 1;
		}
	}
	return rc;
}
