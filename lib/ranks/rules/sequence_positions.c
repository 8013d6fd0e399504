/* Ranks that hold parts of a sequence: the keys and values of attention came from all of them, so that their rows are
 * other ones, at other positions. What says where a row is, is not the same on all ranks. */
#include "acc/say.h"
#include "ranks/asked.h"
#include "ranks/walk.h"

enum { MOST_AHEAD = 64, MOST_ROWS = 1 << 16, FEW_ROWS = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- attention to what came from all ranks --- */

/* Is one operand of a product what the softmax made, and another one from all ranks? */
static bool
takes(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call *soft)
{
	bool is = false, from = false;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		if (t->seen[j].out || !t->seen[j].real || t->seen[j].n < 2)
			continue;
		acc_walk_back(w, t, g, &t->seen[j]);
		from |= w->talk != NULL;
		for (unsigned i = 0; i < w->nend; i++)
			is |= w->end[i] == soft;
	}
	return is && from;
}

/* The calls whose operands are keys: a product whose softmax is taken with values from all ranks; attention in one
 * call, whose second and third operand are. */
static const struct acc_seen_call *
attends(struct acc_walk *w, const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	if (c->info == NULL || c->k->talks || c->k->backward)
		return NULL;
	if (c->info->cls == ACC_OP_ATTEND)
		return c;
	const struct acc_seen_call *product = acc_seen_is_of(c, "softmax")
						      ? acc_walk_product(w, t, g, c)
						      : NULL;
	for (const struct acc_seen_call *v = c + 1;
		product != NULL && v < t->call + t->f->ncall && v - c <= MOST_AHEAD &&
		acc_seen_beside(v, c) && !v->k->backward;
		v++)
		if (v->info != NULL && v->info->cls == ACC_OP_CONTRACT && !v->k->talks &&
			takes(w, t, g, v, c))
			return product;
	return NULL;
}

/* --- where rows are --- */

/* Has it rows, of several numbers each, one beside another? */
static int
has_rows(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	const struct acc_val *shape = rc < 0 ? NULL : acc_get(r, "", "shape");
	unsigned wide = 0;
	for (size_t i = 0; shape != NULL && shape->type == ACC_V_INTS && i < shape->n; i++)
		wide += shape->ints[i] > 1;
	*is = wide > 1;
	return rc < 0 ? rc : 0;
}

/* Did communication give it, with numbers that scale it? */
static bool
came(const struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *s)
{
	struct acc_walk w;
	acc_walk_back(&w, t, g, s);
	return w.talk != NULL || acc_seen_reduced(t, s) != ACC_NOID;
}

/* Something of rows that wants no gradient, the same on all ranks, beside what is another on each. */
static int
same_rows(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	bool apart = false, rows = false;
	int rc = 0;
	*is = false;
	if (!acc_replicas_peers(t, g, c, peer))
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike how = ACC_EQUAL;
		bool flat = true, two = false;
		if (s->out || !s->real || s->n < 2)
			continue;
		rc = acc_replicas_alike(t, g, peer, j, &how, e);
		apart |= rc == 0 && how == ACC_APART;
		if (rc < 0 || how >= ACC_APART || s->wants || s->leaf || came(t, g, s))
			continue;
		rc = acc_replicas_flat(t, s, &flat, e);
		if (rc == 0 && !flat)
			rc = has_rows(t, s, &two, e);
		rows |= two;
	}
	*is = rc == 0 && rows && apart;
	return rc;
}

struct same { /* what is made of the same positions on all ranks; NULL: nothing */
	const struct acc_replica_seen *s;
	uint64_t n; /* looked up: so many; 0: of rows of numbers */
};

static int
turned(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_walk *w,
	const struct acc_seen_call **peer, struct same *out, struct acc_err *e)
{
	const struct acc_seen_call *first = NULL;
	int rc = 0;
	for (unsigned i = 0; i < w->n && rc == 0; i++) {
		bool is = false;
		if (!w->beyond[i] || w->call[i]->k->talks || w->call[i]->info->cls != ACC_OP_MUL ||
			(first != NULL && w->call[i] > first))
			continue;
		rc = same_rows(t, g, w->call[i], peer, &is, e);
		first = is ? w->call[i] : first;
	}
	*out = (struct same){first == NULL ? NULL : acc_seen_real(t, first, true), 0};
	return rc;
}

/* The numbers of rows, 0 and on, of a table that is the same on all ranks? *n: how many; 0: it is not. */
static int
counts_rows(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, uint64_t *n, struct acc_err *e)
{
	const struct acc_replica_seen *rows = NULL;
	bool table = false, is = true;
	*n = 0;
	if (!acc_seen_is_of(c, "embedding") || !acc_replicas_peers(t, g, c, peer))
		return 0;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		const bool alike = !s->out && acc_replicas_marked(t, g, peer, j);
		table |= alike && s->real;
		rows = alike && !s->real && s->exact ? s : rows;
	}
	if (!table || rows == NULL || rows->n < FEW_ROWS || rows->n > MOST_ROWS)
		return 0;
	for (uint64_t at = 0; at < rows->n && is; at += ACC_CHUNK) {
		const size_t some = rows->n - at < ACC_CHUNK ? (size_t)(rows->n - at) : ACC_CHUNK;
		int rc = acc_seen_elements(t, rows, at, some, t->a, &is, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < some && is; i++)
			is = t->a[i] == (double)(at + i);
	}
	*n = is ? rows->n : 0;
	return 0;
}

static int
looked_up(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *talk,
	const struct acc_seen_call **peer, struct same *out, struct acc_err *e)
{
	int rc = 0;
	for (const struct acc_seen_call *c = t->call; c < talk && rc == 0 && out->s == NULL; c++) {
		uint64_t n = 0;
		rc = acc_seen_beside(c, talk) ? counts_rows(t, g, c, peer, &n, e) : 0;
		if (rc == 0 && n > 0)
			*out = (struct same){acc_seen_output(t, c), n};
	}
	return rc;
}

static int
say_same(struct acc_replicas *t, const struct acc_rank_group *g, const struct same *at,
	const struct acc_seen_call *talk, struct acc_err *e)
{
	const char *name = acc_replicas_name(t, talk->k->line, e);
	return acc_replicas_blame(t, g, at->s->line,
		at->n > 0
			? SAY(t,
				  "is of the positions 0 to %llu on all ranks, which hold parts of a sequence, whose"
				  " keys %s takes to the others: each part begins where the one before it ends",
				  (unsigned long long)at->n - 1, name)
			: SAY(t,
				  "is made of the rank's rows, which %s takes to the others for attention, and of rows "
				  "that are the same on all ranks: every rank counts positions from 0; is an offset "
				  "missing?",
				  name),
		1, 0, e);
}

/* Is it made by weights that are the same on all ranks, of what is another on each? Parts of heads are made the other way
 * round. */
static int
of_rows(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	bool weights = true, place = false, apart = false;
	*is = false;
	if (!acc_replicas_peers(t, g, c, peer))
		return 0;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike how = ACC_EQUAL;
		if (s->out || !s->real || s->n < 2)
			continue;
		int rc = acc_replicas_alike(t, g, peer, j, &how, e);
		if (rc < 0)
			return rc;
		place |= s->place;
		weights &= !s->place || how < ACC_APART;
		apart |= !s->place && how == ACC_APART;
	}
	*is = place && weights && apart;
	return 0;
}

/* Is a mask given to it, or to one of the op calls between the product and its softmax? */
static bool
is_masked(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *attention)
{
	const struct acc_replica_seen *in = acc_seen_real(t, attention, false);
	struct acc_walk w = {.n = 0};
	if (in != NULL && attention->info->cls != ACC_OP_ATTEND)
		acc_walk_back(&w, t, g, in);
	else
		w.call[w.n++] = attention;
	for (unsigned i = 0; i < w.n; i++)
		for (uint32_t j = w.call[i]->first; j < w.call[i]->first + w.call[i]->n; j++)
			if (!t->seen[j].out && t->seen[j].n > 1 && !t->seen[j].leaf &&
				(!t->seen[j].real || t->seen[j].raw))
				return true;
	return false;
}

/* What took the keys of an attention, and its values, to this call, from parts of a sequence; NULL: they are no such.
 * Where each rank has queries of its own they are parts of one sequence if a mask says which come first. 0 or < 0. */
static int
keys_from(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, const struct acc_seen_call **talk, struct acc_err *e)
{
	struct acc_walk w;
	const struct acc_seen_call *product = attends(&w, t, g, c);
	unsigned from = 0;
	bool rows = false;
	*talk = NULL;
	for (uint32_t j = product == NULL ? 0 : product->first;
		product != NULL && j < product->first + product->n; j++) {
		if (t->seen[j].out || !t->seen[j].real || t->seen[j].n < 2)
			continue;
		acc_walk_back(&w, t, g, &t->seen[j]);
		for (unsigned i = 0; i < w.nend && !rows; i++) {
			int rc = w.far[i] ? of_rows(t, g, w.end[i], peer, &rows, e) : 0;
			if (rc < 0)
				return rc;
		}
		*talk = w.talk == NULL ? *talk : w.talk;
		from += w.talk != NULL;
	}
	/* Of attention in one call, keys and values. */
	if (!rows || (from < 2 && product == c) || !((*talk)->exchanges || is_masked(t, g, c)))
		*talk = NULL;
	return 0;
}

int
acc_seen_sequence(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *talk = NULL;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && t->nstep > 0 && rc == 0 && talk == NULL; i = t->call[i].next)
		if (t->call[i].k->step == t->step[0])
			rc = keys_from(t, g, &t->call[i], room, &talk, e);
	*is = talk != NULL;
	return rc;
}

/* Do the keys of another attention of its line come from other ranks? Then those of this one come from the wrong ones,
 * which hold the same part of other sequences. */
static int
other_ranks(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call *talk, const struct acc_seen_call **room, bool *said,
	struct acc_err *e)
{
	const struct acc_seen_call *like = NULL;
	const struct acc_rank_group *other = NULL;
	int rc = 0;
	for (size_t k = 0; k < t->ngroup && other == NULL; k++)
		for (size_t i = acc_calls_of(t, c->k->rank);
			i < t->f->ncall && rc == 0 && other == NULL && c->line != 0;
			i = t->call[i].next) {
			const struct acc_seen_call *o = &t->call[i];
			if (t->group[k].members == g->members || o->line != c->line ||
				o->k->backward || !acc_seen_beside(o, c))
				continue;
			rc = keys_from(t, &t->group[k], o, room, &like, e);
			other = like != NULL ? &t->group[k] : NULL;
		}
	const struct acc_replica_seen *out = acc_seen_output(t, talk);
	*said = rc == 0 && other != NULL && out != NULL;
	return !*said ? rc
		      : acc_replicas_blame(t, g, out->line,
				SAY(t,
					"takes keys of attention to ranks that hold the same positions; those of another"
					" attention of its line come by %s, from ranks %s: is it the right group?",
					acc_replicas_name(t, like->k->line, e), other->who),
				1, 0, e);
}

int
acc_rule_sequence(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_walk w;
	struct same at = {.s = NULL};
	bool said = false, looked = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && rc == 0 && at.s == NULL && t->nstep > 0; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		const struct acc_seen_call *talk = NULL, *product;
		rc = keys_from(t, g, c, room, &talk, e);
		product = talk == NULL ? NULL : attends(&w, t, g, c);
		for (uint32_t j = product == NULL ? 0 : product->first;
			product != NULL && j < product->first + product->n && rc == 0 &&
			at.s == NULL;
			j++) {
			if (t->seen[j].out || !t->seen[j].real || t->seen[j].n < 2)
				continue;
			acc_walk_back(&w, t, g, &t->seen[j]);
			rc = w.talk == NULL ? 0 : turned(t, g, &w, room, &at, e);
		}
		if (rc == 0 && at.s == NULL && !looked && talk != NULL)
			rc = looked_up(t, g, talk, room, &at, e);
		looked |= talk != NULL;
		if (rc == 0 && at.s != NULL)
			rc = other_ranks(t, g, c, talk, room, &said, e);
		if (rc == 0 && at.s != NULL && !said)
			rc = say_same(t, g, &at, talk, e);
	}
	return rc;
}
