/* What an op call is given, beside what others of its line are given: what went through a reduction there goes
 * through one here; what came from the ranks of one group there does not come from those of another here. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_HOPS = 6, MOST_NODES = 64, MOST_LIKES = 8, MOST_OPERANDS = 8, FEW_OTHERS = 2 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- the way back to communication --- */

struct back { /* the op calls that something is made by, up to communication */
	const struct acc_seen_call *call[MOST_NODES], *talk[MOST_NODES];
	const struct acc_replica_seen *by[MOST_NODES]; /* what the call put out on this way */
	unsigned hops[MOST_NODES];
	unsigned n, ntalk;
	bool lost; /* there are more */
};

static void
add_maker(struct back *b, const struct acc_replicas *t, const struct acc_replica_seen *s,
	unsigned hops)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, s);
	const struct acc_seen_call *c = acc_seen_caller(t, made);
	if (c == NULL)
		return;
	for (unsigned i = 0; i < b->n; i++)
		if (b->call[i] == c)
			return;
	for (unsigned i = 0; i < b->ntalk; i++)
		if (b->talk[i] == c)
			return;
	if (b->n == MOST_NODES || b->ntalk == MOST_NODES || hops > MOST_HOPS) {
		b->lost = true;
	} else if (c->k->talks) {
		b->talk[b->ntalk++] = c;
	} else {
		b->hops[b->n] = hops;
		b->by[b->n] = made;
		b->call[b->n++] = c;
	}
}

bool
acc_seen_joins_parts(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	bool came = false;
	for (uint32_t j = c->first; j < c->first + c->n && !came; j++) {
		const struct acc_seen_call *from =
			t->seen[j].out ? NULL : acc_seen_caller(t, acc_seen_maker(t, &t->seen[j]));
		came = from != NULL && from->k->talks;
	}
	return came && c->info != NULL && c->info->cls == ACC_OP_MOVE;
}

static void
go_back(struct back *b, const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const bool number = s->n == 1;
	*b = (struct back){.n = 0};
	add_maker(b, t, s, 0);
	for (unsigned i = 0; i < b->n; i++) {
		const struct acc_seen_call *c = b->call[i], *from;
		const bool parts = acc_seen_joins_parts(t, c);
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (t->seen[j].out || !t->seen[j].real ||
				(number ? t->seen[j].n != 1 : t->seen[j].n < 2))
				continue;
			from = parts ? acc_seen_caller(t, acc_seen_maker(t, &t->seen[j])) : NULL;
			if (!parts || (from != NULL && from->k->talks))
				add_maker(b, t, &t->seen[j], b->hops[i] + 1);
		}
	}
}

bool
acc_seen_exchanged(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	struct back b;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		if (t->seen[j].out || t->seen[j].leaf || t->seen[j].n < 2)
			continue;
		go_back(&b, t, &t->seen[j]);
		for (unsigned i = 0; i < b.ntalk; i++)
			if (b.talk[i]->exchanges || b.talk[i]->gathers)
				return true;
	}
	return false;
}

bool
acc_seen_summed(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g)
{
	struct back b;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (s->out || s->leaf || s->n < 2 || !s->wants)
			continue;
		go_back(&b, t, s);
		for (unsigned i = 0; i < b.ntalk; i++)
			if (b.talk[i]->reduces && !b.talk[i]->scatters &&
				acc_seen_among(t, b.talk[i], g))
				return true;
	}
	return false;
}

/* --- a reduction that is missing --- */

/* The first real tensor, or number, that a call is given or puts out; NULL: none. */
static const struct acc_replica_seen *
first_real(const struct acc_replicas *t, const struct acc_seen_call *c, bool out)
{
	const struct acc_replica_seen *s = acc_seen_real(t, c, out);
	for (uint32_t i = c->first; i < c->first + c->n && s == NULL; i++)
		if (t->seen[i].out == out && t->seen[i].real)
			s = &t->seen[i];
	return s;
}

/* What a reduction sums up, as an op call put it out; NULL: it is not known. */
static const struct acc_replica_seen *
made_for_sum(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	const struct acc_replica_seen *in = first_real(t, sum, false),
				      *made = in == NULL ? NULL : acc_seen_maker(t, in);
	const struct acc_seen_call *c = acc_seen_caller(t, made);
	return c == NULL || c->k->talks || c->line == 0 ? NULL : made;
}

/* Who made it. */
static const struct acc_seen_call *
maker_of_sum(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	return acc_seen_caller(t, made_for_sum(t, sum));
}

/* Is what an op call put out another on each rank, and not by its part of a weight? The gradient of that is all of it, and
 * what it makes of what is whole is a part of the columns. */
static int
is_apart(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *out,
	const struct acc_seen_call **room, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[out->call];
	const struct acc_replica_seen *w = acc_seen_input(t, out);
	enum acc_alike how = ACC_EQUAL, part = ACC_EQUAL;
	bool columns = false;
	int rc = !acc_replicas_peers(t, g, c, room)
			 ? 0
			 : acc_replicas_alike(t, g, room, (uint32_t)(out - t->seen) - c->first,
				   &how, e);
	if (rc == 0 && how == ACC_APART && !c->k->backward)
		rc = acc_replicas_of_whole(t, g, c, room, &columns, e);
	if (rc == 0 && how == ACC_APART && w != NULL && w->weight) {
		c = &t->call[w->call];
		part = ACC_APART;
		if (acc_replicas_peers(t, g, c, room))
			rc = acc_replicas_alike(t, g, room, (uint32_t)(w - t->seen) - c->first,
				&part, e);
	}
	*is = how == ACC_APART && part != ACC_APART && !columns;
	return rc;
}

/* Does what a call puts out go into a reduction as it is? Then parts of a sum are what it is given. */
static bool
is_part_of_sum(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	const uint32_t by = out == NULL || out->mark == 0
				    ? ACC_NOID
				    : acc_ids_get(&t->given, acc_seen_id(t, out));
	return by != ACC_NOID && by > out->call && acc_seen_among(t, &t->call[by], g);
}

static int
lost_reduction(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s, const struct acc_replica_seen *like,
	const struct acc_seen_call **room, bool *said, struct acc_err *e)
{
	struct back now, then;
	const struct acc_seen_call *sum = NULL, *made;
	const struct acc_replica_seen *in, *same = NULL;
	go_back(&then, t, like);
	for (unsigned i = 0; i < then.ntalk && sum == NULL; i++)
		if (then.talk[i]->reduces && !then.talk[i]->scatters)
			sum = then.talk[i];
	in = sum == NULL ? NULL : made_for_sum(t, sum);
	if (in == NULL || is_part_of_sum(t, g, &t->call[s->call]))
		return 0;
	made = acc_seen_caller(t, in);
	go_back(&now, t, s);
	for (unsigned i = 0; i < now.ntalk; i++)
		if (now.talk[i]->reduces)
			return 0;
	/* The same of what it puts out: one gradient is the input's, another one a weight's. */
	for (unsigned i = 0; i < now.n && same == NULL; i++)
		if (now.call[i]->line == made->line && now.by[i]->pos == in->pos &&
			now.call[i]->k->backward == made->k->backward)
			same = now.by[i];
	bool apart = false;
	int rc = same == NULL ? 0 : is_apart(t, g, same, room, &apart, e);
	if (rc < 0 || !apart)
		return rc;
	*said = true;
	return acc_replicas_blame(t, g, s->line,
		SAY(t,
			"differs between the ranks: it is made of what %s put out, as it is; at %s, of the "
			"same line, what %s put out went through %s first: a reduction is missing",
			acc_replicas_name(t, same->line, e),
			acc_replicas_name(t, t->call[like->call].k->line, e),
			acc_replicas_name(t, made->k->line, e),
			acc_replicas_name(t, sum->k->line, e)),
		1, 0, e);
}

/* Is the j-th tensor of a call the same on all ranks, and not one number everywhere? */
static int
is_alike(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t j, const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	bool flat = true;
	*is = false;
	if (!acc_replicas_peers(t, g, c, peer) || !acc_replicas_marked(t, g, peer, j))
		return 0;
	if (t->seen[c->first + j].n == 1)
		flat = false;
	int rc = flat ? acc_replicas_flat(t, &t->seen[c->first + j], &flat, e) : 0;
	*is = !flat;
	return rc;
}

/* A number that is each rank's own belongs there where what it scales is, too: is it given beside what is the same on all
 * ranks? */
static int
is_misplaced(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t number, const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	int rc = 0;
	*is = t->seen[c->first + number].n != 1;
	for (uint32_t j = 0; j < c->n && rc == 0 && !*is; j++)
		if (j != number && !t->seen[c->first + j].out && t->seen[c->first + j].n > 1)
			rc = is_alike(t, g, c, j, peer, is, e);
	return rc;
}

/* An operand of a call, beside that of others of its line: one that is alike on all ranks, where this one is not. */
static int
judge_operand(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_likes *all, size_t at, size_t from, size_t to, uint32_t j,
	const struct acc_seen_call **room, bool *said, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[all->like[at].call];
	enum acc_alike how = ACC_EQUAL;
	bool is = false;
	int rc = acc_replicas_peers(t, g, c, room) && !acc_replicas_marked(t, g, room, j)
			 ? acc_replicas_alike(t, g, room, j, &how, e)
			 : 0;
	if (rc == 0 && how == ACC_APART)
		rc = is_misplaced(t, g, c, j, room, &is, e);
	how = is ? how : ACC_EQUAL;
	for (size_t i = at > from + MOST_LIKES ? at - MOST_LIKES : from;
		i < to && i <= at + MOST_LIKES && rc == 0 && how == ACC_APART && !*said; i++) {
		const struct acc_seen_call *like = &t->call[all->like[i].call];
		rc = i == at ? 0 : is_alike(t, g, like, j, room, &is, e);
		if (rc == 0 && i != at && is)
			rc = lost_reduction(t, g, &t->seen[c->first + j], &t->seen[like->first + j],
				room, said, e);
	}
	return rc;
}

int
acc_rule_roles(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_seen_likes all = {.n = 0};
	bool said = false;
	int rc = t->nstep == 0 ? 0 : acc_seen_likes_of(t, g->rank[0], &all, e);
	for (size_t i = 0, end; i < all.n && rc == 0; i = end) {
		end = acc_seen_likes_end(&all, i);
		for (size_t at = i; at < end && rc == 0 && end - i > 1; at++) {
			const struct acc_seen_call *c = &t->call[all.like[at].call];
			for (uint32_t j = 0; j < c->n && rc == 0 && !c->k->talks &&
					     !c->k->backward && !c->behind;
				j++) {
				const struct acc_replica_seen *s = &t->seen[c->first + j];
				if (!s->out && s->real && !s->leaf && s->mark != 0)
					rc = judge_operand(t, g, &all, at, i, end, j, room, &said,
						e);
			}
		}
	}
	free(all.like);
	return rc;
}

/* --- another reduction --- */

enum kind { KIND_UNKNOWN, KIND_SUM, KIND_MEAN, KIND_PICK };

/* What a reduction makes, with the number that scales it. < 0: failure. */
static int
kind_of(struct acc_replicas *t, const struct acc_seen_call *c, enum kind *out, struct acc_err *e)
{
	const double n = c->nmember == 0 ? (double)t->f->nrank : c->nmember;
	const struct acc_replica_seen *sum = acc_seen_real(t, c, true);
	const uint32_t next = sum == NULL || sum->mark == 0
				      ? ACC_NOID
				      : acc_ids_get(&t->scaled, acc_seen_id(t, sum));
	double v = 0;
	*out = sum == NULL  ? KIND_UNKNOWN
	       : c->picks   ? KIND_PICK
	       : c->average ? KIND_MEAN
			    : KIND_SUM;
	if (*out != KIND_SUM || next == ACC_NOID)
		return 0;
	if (next <= sum->call) { /* the same numbers as before: what scales these is not known */
		*out = KIND_UNKNOWN;
		return 0;
	}
	int rc = acc_seen_factor(t, &t->call[next], &v, e);
	if (rc == 1 && fabs(v * n - 1) < 1e-6)
		*out = KIND_MEAN;
	return rc < 0 ? rc : 0;
}

static int
say_kind(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call *like, enum kind kind, uint32_t n, struct acc_err *e)
{
	const char *name = acc_replicas_name(t, like->k->line, e);
	return acc_replicas_blame(t, g, acc_seen_real(t, c, true)->line,
		kind == KIND_MEAN
			? SAY(t, "is a mean over the ranks, while %u others of its line, such as %s, are none",
				  n, name)
		: kind == KIND_SUM
			? SAY(t, "is a sum over the ranks, while %u others of its line, such as %s, are none",
				  n, name)
			: SAY(t,
				  "is the largest or least of the ranks, while %u others of its line, such as %s, are sums"
				  " or means",
				  n, name),
		1, 0, e);
}

/* Of the reductions of a line, before ranks go backward: one that is another than all others. */
static int
judge_kinds(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_likes *all, size_t from, size_t to, struct acc_err *e)
{
	uint32_t n[KIND_PICK + 1] = {0};
	size_t at[KIND_PICK + 1] = {0};
	/* A loop over several sums, which one line joins, makes of each what it wants. */
	const struct acc_seen_call *made = maker_of_sum(t, &t->call[all->like[from].call]), *other;
	for (size_t i = from; i < to; i++) {
		enum kind kind;
		other = maker_of_sum(t, &t->call[all->like[i].call]);
		if (other == NULL || made == NULL || other->line != made->line)
			return 0;
		int rc = kind_of(t, &t->call[all->like[i].call], &kind, e);
		if (rc < 0)
			return rc;
		at[kind] = i;
		n[kind]++;
	}
	for (int k = KIND_SUM; k <= KIND_PICK && n[KIND_UNKNOWN] == 0; k++)
		for (int o = KIND_SUM; o <= KIND_PICK; o++)
			if (n[k] == 1 && o != k && n[o] >= FEW_OTHERS && n[o] + 1 == to - from)
				return say_kind(t, g, &t->call[all->like[at[k]].call],
					&t->call[all->like[at[o]].call], k, n[o], e);
	return 0;
}

int
acc_rule_kinds(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_seen_likes all = {.n = 0};
	uint32_t backward = 0;
	(void)room;
	if (t->nstep == 0 || g->n != t->f->nrank)
		return 0;
	while (backward < t->f->ncall &&
		!(t->call[backward].k->backward && t->call[backward].k->rank == g->rank[0]))
		backward++;
	int rc = acc_seen_likes_of(t, g->rank[0], &all, e);
	for (size_t i = 0, end; i < all.n && rc == 0; i = end) {
		const struct acc_seen_call *c = &t->call[all.like[i].call];
		end = acc_seen_likes_end(&all, i);
		if (c->k->talks && c->reduces && !c->scatters && all.like[end - 1].call < backward)
			rc = judge_kinds(t, g, &all, i, end, e);
	}
	free(all.like);
	return rc;
}

/* --- another group --- */

/* The communication that it comes from, if that is of one group; NULL: it is not. */
static const struct acc_seen_call *
came_by(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	struct back b;
	if (s->out || !s->real || s->n < 2 || s->leaf)
		return NULL;
	go_back(&b, t, s);
	for (unsigned i = 0; i < b.ntalk; i++)
		if (b.talk[i]->members == 0 || b.talk[i]->members != b.talk[0]->members)
			return NULL;
	return b.lost || b.ntalk == 0 ? NULL : b.talk[0];
}

/* A product of what ranks exchanged: its factors belong to the same data. What is added up may come by several
 * groups, one after another. */
static bool
is_product(const struct acc_seen_call *c)
{
	return !c->k->talks && !c->k->backward && c->info != NULL &&
	       (c->info->cls == ACC_OP_CONTRACT || c->info->cls == ACC_OP_ATTEND);
}

/* All that c is given, and that its like is, came by the ranks of one group, but one thing: by those of another. */
static const struct acc_seen_call *
other_group(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_seen_call *like, const struct acc_seen_call **beside)
{
	const struct acc_seen_call *odd = NULL, *usual = NULL, *was = NULL;
	for (uint32_t j = 0; j < c->n && j < MOST_OPERANDS; j++) {
		const struct acc_seen_call *x = came_by(t, &t->seen[c->first + j]),
					   *y = came_by(t, &t->seen[like->first + j]);
		if (x == NULL || y == NULL)
			continue;
		if (x->members == y->members) {
			if (usual != NULL && usual->members != x->members)
				return NULL;
			usual = x;
			continue;
		}
		if (odd != NULL || x->line != y->line || x->line == 0)
			return NULL;
		odd = x;
		was = y;
	}
	*beside = usual;
	return usual == NULL || odd == NULL || was->members != usual->members ? NULL : odd;
}

static const char *
who(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (size_t i = 0; i < t->ngroup; i++)
		if (t->group[i].members == c->members)
			return t->group[i].who;
	return "?";
}

static int
say_group(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call *like, const struct acc_seen_call *odd,
	const struct acc_seen_call *beside, struct acc_err *e)
{
	const struct acc_replica_seen *out = acc_seen_real(t, odd, true);
	return out == NULL
		       ? 0
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "comes from ranks %s; what %s is given beside it comes from ranks %s, by %s, as"
					 " all does that %s, of the same line, is given: is it the right group?",
					 who(t, odd), acc_replicas_name(t, c->k->line, e),
					 who(t, beside), acc_replicas_name(t, beside->k->line, e),
					 acc_replicas_name(t, like->k->line, e)),
				 1, 0, e);
}

int
acc_rule_groups(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	struct acc_seen_likes all = {.n = 0};
	const struct acc_seen_call *first = NULL, *odd, *beside;
	int rc = t->nstep == 0 || t->ngroup < 2 || g->n != t->f->nrank
			 ? 0
			 : acc_seen_likes_of(t, g->rank[0], &all, e);
	uint32_t at = ACC_NOID;
	for (size_t i = 0, from = 0; i < all.n && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[all.like[i].call];
		from = all.like[i].form == all.like[from].form ? from : i;
		for (size_t k = i; k-- > from && i - k <= MOST_LIKES && is_product(c);) {
			const struct acc_seen_call *o = &t->call[all.like[k].call];
			for (int way = 0; way < 2; way++) {
				odd = other_group(t, way ? o : c, way ? c : o, &beside);
				if (odd == NULL || (uint32_t)(odd - t->call) >= at)
					continue;
				at = (uint32_t)(odd - t->call);
				first = way ? o : c;
				rc = say_group(t, g, first, way ? c : o, odd, beside, e);
			}
		}
	}
	free(all.like);
	return rc;
}
