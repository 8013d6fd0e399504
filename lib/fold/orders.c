/* Which elements of the parts are which of the reference: in what order parts stand is found line of code by
 * line of code, of tensors that are the reference's.
 *
 * Where the reference was several ranks, too, whose parts are fewer says what the order is: one behind the other.
 * So it is the same whichever side is folded. Where one line lays out several things, each of its shapes has an order;
 * where even those are at odds, as of tokens that are sorted by their experts, each tensor has, if its elements show
 * it. */
#include "fold/impl.h"

#include <math.h>
#include <stdlib.h>

/* One part behind the other? */
static bool
is_plain(const struct fold_order *o, uint32_t parts)
{
	bool is = o->npiece == 0 || o->npiece == parts;
	for (uint32_t i = 0; i < o->npiece && is; i++)
		is = o->piece[i].part == i && o->piece[i].start == 0;
	return is;
}

/* The class of its line and shapes, which every tensor that has a class has. */
static uint32_t
wide_of(const struct acc_fold *f, const struct fold_plan *p)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_call *k = &f->device.call[t->call[t->v[p->virtual].rank]];
	return acc_fold_wide(f, k, &f->device.item[k->first + p->item]);
}

enum { ENOUGH = 6, PLENTY = 64 }; /* bits; rows */

/* Of a line of code, argument and axis; of one shape of it; of one tensor. */
enum { OF_LINE, OF_SHAPE, OF_ONE, KINDS };

static void
ids_of(const struct fold_plan *p, uint32_t cls, const struct fold_item *want, uint64_t id[KINDS])
{
	const uint64_t line[3] = {cls, p->place.kind == ACC_SHARD ? p->place.axis : ACC_FOLD_NDIM,
		want->stat.ndim};
	id[OF_LINE] = acc_hash(line, sizeof line);
	const uint64_t shape[2] = {id[OF_LINE],
		want->stat.ndim > ACC_FOLD_NDIM
			? 0
			: acc_hash(want->stat.shape, want->stat.ndim * sizeof *want->stat.shape)};
	id[OF_SHAPE] = acc_hash(shape, sizeof shape);
	const uint64_t one[4] = {id[OF_SHAPE], p->step, p->virtual, p->item};
	id[OF_ONE] = acc_hash(one, sizeof one);
}

/* Its number; FOLD_NONE: there is none yet. */
static uint32_t
order_of(const struct acc_fold *f, uint64_t id)
{
	const uint32_t i = acc_ids_get(&f->by_order, id);
	return i == ACC_NOID ? FOLD_NONE : i;
}

static struct fold_order *
new_order(struct acc_fold *f, uint64_t id, struct acc_err *e)
{
	if (!ACC_ROOM(f->order, f->order_cap, (size_t)f->norder + 1, e))
		return NULL;
	struct fold_order *o = f->order;
	o += f->norder;
	*o = (struct fold_order){.npiece = 0};
	return acc_ids_put(&f->by_order, id, f->norder++, false, e) < 0 ? NULL : o;
}

/* Most are in this order: one that is not is wrong. Those behind a fault are not tried, so that of a fault in the
 * second call there is one of each: where the first is in the ranks' order, as what is sorted is not, that is the
 * order. */
static bool
is_order(const struct fold_order *o)
{
	return o->right > 0 && (o->sure || (o->bits >= ENOUGH && o->right > 2 * o->wrong));
}

static double
log2_factorial(double n)
{
	return lgamma(n + 1) / log(2);
}

/* In one of how many orders, as a power of 2, parts of which each stays in order would be so by chance; where it was
 * found of this tensor, by how many slices follow each other. rows: of what one rank alone has, which two may have
 * sent. */
static double
bits_of(const struct fold_order *o, const struct fold_whole *w, uint64_t rows)
{
	if (!o->plain && o->right == 0)
		return (double)w->axis - o->npiece;
	if (w->n < 2)
		return log2_factorial((double)rows) - 2 * log2_factorial((double)rows / 2);
	double bits = log2_factorial((double)w->axis), left = (double)w->axis;
	for (uint32_t i = 0; i < w->n; i++) {
		const double n = fmin((double)w->len[i], left);
		bits -= log2_factorial(n);
		left -= n;
	}
	return bits;
}

static int
find_order(struct fold_order *o, const struct fold_plan *p, struct fold_whole *w,
	struct fold_whole *ref, double tol, struct acc_err *e)
{
	if (o->npiece > 0 || p->whose == FOLD_NOBODY ||
		(p->whose == FOLD_MINE && p->place.kind != ACC_SHARD && !p->rows))
		return 0;
	o->theirs = p->whose == FOLD_THEIRS;
	int rc = o->theirs ? acc_whole_order(ref, w, tol, &o->piece, &o->npiece, e)
			   : acc_whole_order(w, ref, tol, &o->piece, &o->npiece, e);
	return rc < 0 ? rc : 0;
}

/* Has one rank alone all rows? */
static bool
has_rows(const struct acc_fold *f, const struct fold_plan *p)
{
	return f->both == NULL && p->n < 2 && p->place.kind != ACC_SHARD &&
	       acc_fold_lone(f, &f->step[p->step].v[p->virtual]);
}

/* How many may stand in another order. */
static uint64_t
rows_of(const struct acc_fold *f, const struct fold_plan *p)
{
	const struct fold_step *t = &f->step[p->step];
	const struct fold_call *k = &f->device.call[t->call[t->v[p->virtual].rank]];
	const struct fold_stat *s = &f->device.item[k->first + p->item].stat;
	return has_rows(f, p) && s->ndim > 0 && s->ndim <= ACC_FOLD_NDIM ? (uint64_t)s->shape[0]
									 : PLENTY;
}

/* Is a tensor, which is as the reference's, in this order, which is found by it if it is not known yet? Element by
 * element, not by sums alone. 1, 0, or < 0: it cannot be read. */
static int
is_in_order(struct acc_fold *f, struct fold_plan *p, uint32_t order, struct fold_whole *w,
	struct fold_whole *ref, double tol, struct acc_err *e)
{
	struct fold_order *o = &f->order[order];
	struct fold_pieces piece, theirs;
	double *error = calloc(w->n, sizeof *error), all = 1;
	int rc = error == NULL ? acc_nomem(e) : find_order(o, p, w, ref, tol, e);
	p->order = order;
	const bool fits = rc == 0 && w->count == ref->count && acc_fold_pieces(f, p, w, &piece) &&
			  acc_fold_their_pieces(f, p, ref, &theirs);
	if (fits)
		rc = acc_whole_errors(w, piece, ref, theirs, error, &all, e);
	free(error);
	acc_whole_rewind(w);
	acc_whole_rewind(ref);
	if (rc < 0)
		return rc;
	const bool right = fits && sqrt(all) <= (tol > FOLD_NOISE ? tol : FOLD_NOISE);
	const struct fold_whole *of = o->theirs ? ref : w, *row = of->nrow > 0 ? of->row[0] : of;
	o->plain = is_plain(o, row->n);
	o->bits += right ? bits_of(o, row, rows_of(f, p)) : 0;
	o->sure |= right && o->plain && o->bits >= ENOUGH && o->right + o->wrong == 0;
	o->right += right;
	o->wrong += !right;
	return right;
}

/* A tensor of this shape is as those of its line are, which needs no second look. */
static int
as_line(struct acc_fold *f, uint32_t line, uint32_t shape, double bits, struct acc_err *e)
{
	const struct fold_order *from = &f->order[line];
	struct fold_order *o = &f->order[shape];
	if (o->right + o->wrong == 0) {
		struct fold_piece *own = malloc((from->npiece + 1) * sizeof *own);
		if (own == NULL)
			return acc_nomem(e);
		if (from->npiece > 0)
			memcpy(own, from->piece, from->npiece * sizeof *own);
		*o = *from;
		o->piece = own;
		o->right = o->wrong = 0;
		o->bits = 0;
		o->as_line = true;
	}
	o->bits += bits;
	o->right++;
	return 0;
}

struct tried { /* a tensor that is the reference's */
	struct fold_plan p;
	const struct fold_item *it;
	uint32_t cls;
	double tol;
};

/* Opens it, and the reference's; false: they cannot be read. */
static bool
open_both(struct acc_fold *f, const struct tried *x, struct fold_whole **w, struct fold_whole **ref)
{
	struct acc_err own = {0};
	*w = acc_fold_open_plan(f, &x->p, &own);
	*ref = *w == NULL ? NULL : acc_fold_open_want(f, x->it, &own);
	acc_fold_note(f, &own);
	if (*ref == NULL)
		acc_whole_close(*w);
	return *ref != NULL;
}

/* What it says of the orders of its line and of its shape: the first that is found stands, else the ranks' own, and the
 * others are or are not in it. */
static int
learn(struct acc_fold *f, struct tried *x, struct acc_err *e)
{
	enum { TRIES = 6 };
	uint64_t id[KINDS];
	uint32_t at[OF_ONE];
	struct acc_err own = {0};
	struct fold_whole *w, *ref;
	bool full = true;
	ids_of(&x->p, x->cls, x->it, id);
	for (int i = OF_LINE; i < OF_ONE; i++) {
		at[i] = order_of(f, id[i]);
		if (at[i] == FOLD_NONE && new_order(f, id[i], e) == NULL)
			return ACC_ENOMEM;
		at[i] = order_of(f, id[i]);
		full &= f->order[at[i]].right + f->order[at[i]].wrong >= TRIES;
	}
	if (full || !open_both(f, x, &w, &ref))
		return 0;
	const double before = f->order[at[OF_LINE]].bits;
	int rc = is_in_order(f, &x->p, at[OF_LINE], w, ref, x->tol, &own);
	const struct fold_order *line = &f->order[at[OF_LINE]], *shape = &f->order[at[OF_SHAPE]];
	f->cls[wide_of(f, &x->p)].in_turn |= rc > 0 && line->plain && x->p.place.kind == ACC_SHARD;
	if (rc > 0 && (shape->as_line || shape->right + shape->wrong == 0))
		rc = as_line(f, at[OF_LINE], at[OF_SHAPE], line->bits - before, &own);
	else if (rc >= 0)
		rc = is_in_order(f, &x->p, at[OF_SHAPE], w, ref, x->tol, &own);
	acc_whole_close(ref);
	acc_whole_close(w);
	acc_fold_note(f, &own);
	return rc == ACC_ENOMEM ? acc_nomem(e) : 0;
}

/* Of stages of one rank: what a stage has is the whole tensor, or its micro-batches one behind the
 * other; if they are so in one line of code they are in others that call the same, though behind a
 * fault each may be in an order of its own. */
static bool
in_turn(const struct acc_fold *f, const struct fold_plan *p)
{
	return f->both == NULL &&
	       (f->mesh.zip == 1 || (f->mesh.ranks == 1 && f->cls[wide_of(f, p)].in_turn));
}

/* The order of its shape, if that is known, else that of its line; FOLD_NONE: they are at odds. *open: more tensors that are
 * in another order would be no fault. */
static uint32_t
chosen(const struct acc_fold *f, uint32_t line, uint32_t shape, bool *open)
{
	const struct fold_order *l = line == FOLD_NONE ? NULL : &f->order[line],
				*s = shape == FOLD_NONE ? NULL : &f->order[shape];
	const bool known = l != NULL && is_order(l), settled = s != NULL && s->right + s->wrong > 1;
	*open = !settled && (l == NULL || !known || l->wrong > 0);
	if (known && (!settled || s->as_line))
		return s != NULL && s->right > 0 && !s->as_line ? FOLD_NONE : line;
	if (s != NULL && is_order(s) && (settled || s->sure))
		return shape;
	*open = true;
	return FOLD_NONE;
}

bool
acc_fold_choose_order(const struct acc_fold *f, struct fold_plan *p, uint32_t cls,
	const struct fold_item *want)
{
	uint64_t id[KINDS];
	bool open;
	p->order = FOLD_NONE;
	if (cls == FOLD_NONE || in_turn(f, p))
		return true;
	ids_of(p, cls, want, id);
	const uint32_t one = order_of(f, id[OF_ONE]);
	if (one != FOLD_NONE && f->order[one].right > 0) {
		p->order = one;
		p->rows = has_rows(f, p);
		return true;
	}
	p->order = chosen(f, order_of(f, id[OF_LINE]), order_of(f, id[OF_SHAPE]), &open);
	return p->order != FOLD_NONE;
}

/* Of a line whose tensors are at odds, as of tokens that are sorted by their experts: the order of this one alone. */
static int
learn_one(struct acc_fold *f, struct tried *x, struct acc_err *e)
{
	uint64_t id[KINDS];
	struct acc_err own = {0};
	struct fold_whole *w, *ref;
	bool open = false;
	ids_of(&x->p, x->cls, x->it, id);
	chosen(f, order_of(f, id[OF_LINE]), order_of(f, id[OF_SHAPE]), &open);
	x->p.rows = has_rows(f, &x->p);
	if (!open || in_turn(f, &x->p) || (x->p.rows && x->it->stat.ndim == 0) ||
		!open_both(f, x, &w, &ref))
		return 0;
	int rc = new_order(f, id[OF_ONE], e) == NULL ? ACC_ENOMEM : 0;
	if (rc == 0)
		rc = is_in_order(f, &x->p, order_of(f, id[OF_ONE]), w, ref, x->tol, &own);
	acc_whole_close(ref);
	acc_whole_close(w);
	acc_fold_note(f, &own);
	return rc == ACC_ENOMEM ? acc_nomem(e) : 0;
}

/* An item of a virtual call whose elements may be put together; *is: it is the reference's. */
static bool
look_at(struct acc_fold *f, uint32_t step, uint32_t i, uint32_t x, struct tried *out, bool *is)
{
	struct fold_step *t = &f->step[step];
	const struct fold_virtual *v = &t->v[i];
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const struct fold_item *own = &f->device.item[k->first + x],
			       *it = acc_fold_counterpart(f, t, v, x);
	const uint32_t cls = own->tensor ? acc_fold_class(f, k, own) : FOLD_NONE;
	if (cls == FOLD_NONE || it == NULL || !acc_fold_gather(f, &f->mesh, t, v, x))
		return false;
	const double tol = own->tol > it->tol ? own->tol : it->tol;
	struct acc_fold_layout l = acc_fold_choose(f, k, own, FOLD_STAT(it), tol);
	struct acc_fold_stat whole;
	*out = (struct tried){
		.p = {.step = step, .virtual = i, .item = x, .order = FOLD_NONE, .scale = l.scale},
		.it = it,
		.cls = cls,
		.tol = tol};
	/* What a communication gives stands for a sum, but where the reference may have one, too. */
	if (!acc_fold_axis(&f->mesh, &l, &out->p) ||
		(out->p.place.kind == ACC_PARTIAL && f->both == NULL) ||
		!acc_fold_by_layout(f, &f->mesh, &l, tol, &whole))
		return false;
	/* What it is filled up with, statistics do not tell from it. */
	*is = acc_fold_same(&whole, 1, FOLD_STAT(it), tol) != 0 || (l.cut > 0 && !l.zeros);
	out->p.whose = acc_fold_whose(f, &out->p, it);
	return true;
}

/* Do rows of the one stand as those of the other? */
static bool
has_same_rows(const struct tried *a, const struct tried *b)
{
	const bool split = a->p.place.kind == ACC_SHARD;
	const uint32_t axis = split ? a->p.place.axis : 0;
	return split == (b->p.place.kind == ACC_SHARD) && (!split || b->p.place.axis == axis) &&
	       a->p.whose == b->p.whose && a->p.n == b->p.n && a->p.row.n == b->p.row.n &&
	       axis < a->it->stat.ndim && axis < b->it->stat.ndim &&
	       a->it->stat.shape[axis] == b->it->stat.shape[axis];
}

/* What is made of tokens in an order of their own, and is not the reference's, is in their order. */
static int
hand_on(struct acc_fold *f, uint32_t step, uint32_t i, struct acc_err *e)
{
	const struct fold_step *t = &f->step[step];
	const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
	struct tried in, out;
	bool same = false, found = false;
	int rc = 0;
	if (k->moves || k->talks)
		return 0;
	for (uint32_t x = 0; x < k->n && !found; x++)
		found = !f->device.item[k->first + x].output &&
			look_at(f, step, i, x, &in, &same) && same &&
			acc_fold_choose_order(f, &in.p, in.cls, in.it) && in.p.order != FOLD_NONE &&
			!f->order[in.p.order].plain;
	for (uint32_t x = 0; x < k->n && found && rc == 0; x++) {
		uint64_t id[KINDS];
		if (!f->device.item[k->first + x].output || !look_at(f, step, i, x, &out, &same) ||
			same || acc_fold_choose_order(f, &out.p, out.cls, out.it) ||
			!has_same_rows(&in, &out))
			continue;
		ids_of(&out.p, out.cls, out.it, id);
		rc = acc_ids_put(&f->by_order, id[OF_ONE], in.p.order, true, e);
	}
	return rc < 0 ? rc : 0;
}

typedef int tried_fn(struct acc_fold *f, struct tried *x, struct acc_err *e);

/* Each item of a virtual call that is the reference's. */
static int
each_same(struct acc_fold *f, uint32_t step, uint32_t i, tried_fn *fn, struct acc_err *e)
{
	const struct fold_step *t = &f->step[step];
	const uint32_t n = f->device.call[t->call[t->v[i].rank]].n;
	struct tried x;
	bool same;
	int rc = 0;
	for (uint32_t k = 0; k < n && rc == 0; k++)
		if (look_at(f, step, i, k, &x, &same) && same)
			rc = fn(f, &x, e);
	return rc;
}

int
acc_fold_orders(struct acc_fold *f, struct acc_err *e)
{
	tried_fn *const pass[] = {learn, learn_one, NULL}; /* NULL: hand on */
	int rc = 0;
	for (size_t k = 0; k < sizeof pass / sizeof *pass && f->roots != NULL; k++)
		for (uint32_t s = 0; s < f->nstep; s++)
			for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++)
				if (f->step[s].v[i].mate != FOLD_NONE)
					rc = pass[k] == NULL ? hand_on(f, s, i, e)
							     : each_same(f, s, i, pass[k], e);
	return rc;
}
