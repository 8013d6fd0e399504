/* The gradient that a stage is given is that of what it sent. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_TERMS = 8 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

static int
say_stage(struct acc_replicas *t, const struct acc_replica_seen *got, const struct acc_seen_call *b,
	int64_t other, const struct acc_seen_call *right, struct acc_err *e)
{
	const int64_t own = t->call[got->call].k->rank,
		      rank[2] = {own < other ? own : other, own < other ? other : own};
	const struct acc_rank_group g = {.n = 2, .who = acc_fleet_ranks(t->f, rank, 2)};
	const char *name = acc_replicas_name(t, right->k->line, e);
	const struct acc_replica_seen *out = acc_seen_output(t, b);
	return acc_replicas_accuse(t, &g, got, out == NULL ? got->line : out->line,
		SAY(t,
			"is made of the gradient of what %s gave to rank %lld, not of what this op"
			" call did",
			name, (long long)other),
		e);
}

/* The gradients of what a rank received, which it gave to several op calls. */
static uint32_t
terms_of(const struct acc_replicas *t, const struct acc_replica_seen *got,
	const struct acc_replica_seen **term, uint32_t most)
{
	const struct acc_seen_call *from = &t->call[got->call];
	uint32_t n = 0;
	for (const struct acc_seen_call *c = from;
		c < t->call + t->f->ncall && acc_seen_beside(c, from) && n < most; c++) {
		if (c->k->talks || c->k->backward)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n && n < most; j++)
			if (!t->seen[j].out && t->seen[j].mark == got->mark &&
				(term[n] = acc_seen_gradient(t, c->k->step, c->k->rank,
					 &t->seen[j])) != NULL)
				n++;
	}
	return n;
}

/* The same, of a gradient that several op calls of the other rank make together: which of what this op call's
 * operator put out is it of? */
static int
stage_of_sum(struct acc_replicas *t, const struct acc_replica_seen *got,
	const struct acc_seen_call *b, const struct acc_replica_seen *y, int64_t other,
	struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[got->call].k;
	const struct acc_seen_call *fwd = &t->call[y->call], *right = NULL;
	int rc = 0;
	for (const struct acc_seen_call *c = &t->call[got->call];
		!t->scattered && c-- > t->call && acc_seen_beside(c, &t->call[got->call]) &&
		rc == 0;) {
		const struct acc_replica_seen *x = acc_seen_output(t, c), *term[MOST_TERMS];
		bool is = false, data = false;
		if (c->k->backward || c->k->op != fwd->k->op || x == NULL || x->mark == 0 ||
			x->n != got->n)
			continue;
		uint32_t by = acc_ids_get(&t->made, acc_seen_place(k->step, other, x->mark));
		uint32_t n = by == ACC_NOID || !t->call[t->seen[by].call].receives
				     ? 0
				     : terms_of(t, &t->seen[by], term, MOST_TERMS);
		if (n > 1 && n < MOST_TERMS)
			rc = acc_replicas_sum(t, got, term, n, &is, &data, e);
		if (is && (c == fwd || !data))
			return 0;
		right = is ? c : right;
	}
	return rc < 0 || right == NULL ? rc : say_stage(t, got, b, other, right, e);
}

/* A gradient that comes from another rank: what that rank had the gradient of is what this rank's op call,
 * which is given it, had made. */
static int
stage(struct acc_replicas *t, const struct acc_replica_seen *got, struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[got->call].k;
	uint32_t in = acc_ids_get(&t->entered, acc_seen_id(t, got));
	if (in == ACC_NOID || t->seen[in].call < got->call)
		return 0;
	const struct acc_seen_call *b = &t->call[t->seen[in].call],
				   *fwd = acc_replicas_call(t, k->step, k->rank, b->k->twin);
	const struct acc_replica_seen *y = NULL;
	for (uint32_t i = 0; fwd != NULL && i < fwd->n; i++)
		if (t->seen[fwd->first + i].out && t->seen[fwd->first + i].pos == t->seen[in].pos)
			y = &t->seen[fwd->first + i];
	if (y == NULL || y->n != got->n || y->mark == 0)
		return 0;
	for (size_t i = 0; i < t->f->nrank; i++) {
		uint32_t m = acc_ids_get(&t->made,
			acc_seen_place(k->step, t->f->rank[i], got->mark));
		const struct acc_replica_seen *x =
			m == ACC_NOID || t->f->rank[i] == k->rank ||
					!t->call[t->seen[m].call].k->backward
				? NULL
				: acc_seen_input(t, &t->seen[m]);
		uint32_t own = x == NULL || x->mark == 0 || x->mark == y->mark
				       ? ACC_NOID
				       : acc_ids_get(&t->made,
						 acc_seen_place(k->step, k->rank, x->mark));
		if ((m == ACC_NOID || !t->call[t->seen[m].call].k->backward) &&
			t->f->rank[i] != k->rank) {
			int rc = stage_of_sum(t, got, b, y, t->f->rank[i], e);
			if (rc < 0)
				return rc;
		}
		if (own == ACC_NOID || t->call[t->seen[own].call].k->op != fwd->k->op)
			continue;
		return say_stage(t, got, b, t->f->rank[i], &t->call[t->seen[own].call], e);
	}
	return 0;
}

int
acc_rule_stages(struct acc_replicas *t, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *got = c->receives ? acc_seen_output(t, c) : NULL;
		if (got != NULL && got->mark != 0)
			rc = stage(t, got, e);
	}
	return rc;
}
