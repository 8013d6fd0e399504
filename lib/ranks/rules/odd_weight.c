/* Weights that one rank has otherwise, where the gradients do not tell that they are to be the same: all others are,
 * or those that one line of code has in one shape. What is at once exchanged was made by parts. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_MADE = 64, MOST_CALLS = 256 };

/* Does communication get what the op call made, before another weight is in it? */
static bool
exchanged(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	uint64_t made[MOST_MADE];
	uint32_t n = 0;
	const struct acc_seen_call *end = t->call + t->f->ncall;
	if (t->scattered)
		return true;
	for (const struct acc_seen_call *o = c;
		o < end && o - c < MOST_CALLS && acc_seen_beside(o, c) && !o->k->backward; o++) {
		bool given = o == c, leaf = false;
		for (uint32_t i = o->first; i < o->first + o->n; i++) {
			leaf |= t->seen[i].leaf && o != c;
			for (uint32_t j = 0; j < n && !t->seen[i].out && !given; j++)
				given = made[j] == t->seen[i].mark;
		}
		if (given && o->k->talks)
			return true;
		for (uint32_t i = o->first; i < o->first + o->n && given && !leaf; i++)
			if (t->seen[i].out && t->seen[i].mark != 0 && n < MOST_MADE)
				made[n++] = t->seen[i].mark;
	}
	return false;
}

/* The weights of its line, in its place and shape, that are not one number everywhere: so many are the same on all
 * ranks, so many not. */
struct of_line {
	uint64_t alike, apart,
		moved; /* of the latter, to another op call of the other rank, or of this one */
};

/* Does another rank hold the same weight, whatever op call it gives it to? */
static bool
is_held(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	for (uint32_t r = 0; r < g->n; r++)
		if (g->rank[r] != k->rank &&
			acc_ids_get(&t->first, acc_seen_place(k->step, g->rank[r], s->mark)) !=
				ACC_NOID)
			return true;
	return false;
}

/* Has another rank, where an expert gets no tokens, another op call of this number, that is given what this rank gives to one
 * of another number? */
static bool
is_shifted(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	for (uint32_t r = 0; r < g->n; r++) {
		const struct acc_seen_call *c = acc_replicas_call(t, k->step, g->rank[r], k->key);
		for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
			if (c->k->rank != k->rank && t->seen[i].pos == s->pos && !t->seen[i].out &&
				acc_ids_get(&t->first, acc_seen_place(k->step, k->rank,
							       t->seen[i].mark)) != ACC_NOID)
				return true;
	}
	return false;
}

static int
of_line(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_replica_seen *w,
	const struct acc_seen_call **room, struct of_line *out, struct acc_err *e)
{
	const struct acc_seen_call *own = &t->call[w->call];
	*out = (struct of_line){0};
	for (size_t i = acc_calls_of(t, own->k->rank); i < t->f->ncall && own->line != 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != own->k->step || c->k->backward || c->line != own->line ||
			c == own)
			continue;
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			bool flat = false;
			if (!s->weight || s->pos != w->pos || s->shape != w->shape ||
				s->mark == w->mark)
				continue;
			if (!acc_replicas_peers(t, g, c, room) ||
				!acc_replicas_marked(t, g, room, j)) {
				out->apart++;
				out->moved += is_held(t, g, s) || is_shifted(t, g, s);
				continue;
			}
			int rc = acc_replicas_flat(t, s, &flat, e);
			if (rc < 0)
				return rc;
			out->alike += !flat;
		}
	}
	return 0;
}

int
acc_replicas_same_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, const struct acc_seen_call **room, bool *said,
	struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[w->call];
	struct of_line line = {0};
	const bool same = acc_replicas_peers(t, g, c, room) &&
			  acc_replicas_marked(t, g, room, (uint32_t)(w - t->seen) - c->first);
	int rc = same ? of_line(t, g, w, room, &line, e) : 0;
	*said = rc == 0 && w->weight && line.alike == 0 && line.apart > line.moved;
	return !*said ? rc
		      : acc_replicas_blame(t, g, w->line,
				acc_say(&t->f->mem,
					"is a weight that is the same on all ranks, where the other weights of its line and"
					" shape, %llu, are another part on each, and no reduction joins its gradients: did"
					" all ranks load the same part?",
					(unsigned long long)(line.apart - line.moved)),
				1, 0, e);
}

int
acc_rule_odd(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *const *odd, uint32_t nodd, uint64_t equal, uint64_t differ,
	const struct acc_seen_call **room, struct acc_err *e)
{
	for (uint32_t i = 0; i < nodd; i++) {
		const struct acc_seen_call *c = &t->call[odd[i]->call];
		bool one = differ == 1 && !g->parts && equal >= LIMIT_REPLICA_WEIGHTS;
		struct of_line line = {0};
		int rc = one ? 0 : of_line(t, g, odd[i], room, &line, e);
		if (rc < 0)
			return rc;
		if ((!one && (line.alike == 0 || line.apart > 0)) || exchanged(t, c))
			continue;
		return acc_replicas_blame(t, g, odd[i]->line,
			one ? acc_say(&t->f->mem,
				      "is a weight that differs on rank %lld from the others of its group, where all %llu "
				      "other weights are the same",
				      (long long)c->k->rank, (unsigned long long)equal)
			    : acc_say(&t->f->mem,
				      "is a weight that differs on rank %lld from the others of its group, where the other "
				      "weights of its line and shape, %llu, are the same",
				      (long long)c->k->rank, (unsigned long long)line.alike),
			1, 0, e);
	}
	return 0;
}
