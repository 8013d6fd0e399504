/* The rate of an optimizer, on ranks that join gradients or weights. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* 1, 0: it has none; < 0. */
static int
rate_of(struct acc_replicas *t, const struct acc_seen_call *c, double *rate, struct acc_err *e)
{
	for (size_t i = 0; i < c->k->n; i++) {
		struct acc_rec *r;
		int rc = t->f->get(t->f->arg, c->k->line + i, &r, e);
		if (rc < 0)
			return rc;
		if (acc_str_is(acc_get_text(r, "", "pos"), "lr") &&
			acc_as_f64(acc_get(r, "", "value"), rate))
			return 1;
	}
	return 0;
}

/* Do two ranks give an optimizer's call as many tensors of the same shapes? */
static bool
as_many(const struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b)
{
	bool same = a->n == b->n && a->line == b->line;
	for (uint32_t j = 0; j < a->n && same; j++)
		same = t->seen[a->first + j].shape == t->seen[b->first + j].shape;
	return same;
}

enum acc_work
acc_seen_work(const struct acc_replicas *t, const struct acc_rank_group *g)
{
	enum acc_work out = ACC_WORK_ALONE;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && out != ACC_WORK_PARTS;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *x = !c->k->talks || !(c->amid || c->behind)
							   ? NULL
							   : acc_seen_real(t, c, false);
		if (c->k->step != t->step[0] || x == NULL || !acc_seen_among(t, c, g))
			continue;
		out = c->scatters                                  ? ACC_WORK_PARTS
		      : c->reduces || c->gathers || c->hands_round ? ACC_WORK_SHARED
								   : out;
	}
	return out;
}

/* The rates of the first step, of what two ranks have as many of, or parts, which work together. Of other numbers of tensors,
 * where each optimizer has weights of its own, they may be by design. */
static int
first_rates(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	enum acc_work work, bool *said, struct acc_err *e)
{
	double rate[2] = {0, 0};
	int rc = rate_of(t, c, &rate[0], e);
	for (uint32_t k = 1; k < g->n && rc == 1; k++) {
		const struct acc_seen_call *o = acc_replicas_call(t, c->k->step, g->rank[k],
			c->k->key);
		rc = o == NULL || o->line != c->line ? 0 : rate_of(t, o, &rate[1], e);
		if (rc < 0 || rc == 0 || rate[0] == rate[1]) {
			rc = rc < 0 ? rc : 1;
			continue;
		}
		const char *text = SAY(t,
			"is made with the rate %.6g on rank %lld and %.6g on rank %lld, which join gradients or weights",
			rate[1], (long long)g->rank[k], rate[0], (long long)g->rank[0]);
		const size_t line = acc_seen_real(t, o, true)->line;
		*said = true;
		return as_many(t, c, o) || work == ACC_WORK_PARTS
			       ? acc_replicas_blame(t, g, line, text, 1, 0, e)
			       : acc_fleet_doubts(t->f, line, text, e);
	}
	return rc < 0 ? rc : 0;
}

/* The rates of the optimizers' calls, each of a part of the weights, were the same on two ranks in the first step, and are
 * not any more. A warm-up that begins with 0 tells nothing. */
int
acc_rule_rates(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	const enum acc_work work = t->nstep == 0 ? ACC_WORK_ALONE : acc_seen_work(t, g);
	bool said = false;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && t->nstep > 0 && !said;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *call[4];
		double rate[4];
		if (work != ACC_WORK_ALONE && c->k->step == t->step[0] && c->optimizer) {
			int rc = first_rates(t, g, c, work, &said, e);
			if (rc < 0)
				return rc;
		}
		if (c->k->rank != g->rank[0] || c->k->step == t->step[0] || !c->optimizer)
			continue;
		for (uint32_t k = 1; k < g->n; k++) {
			int rc = 1;
			for (int j = 0; j < 4 && rc == 1; j++) {
				call[j] = acc_replicas_call(t, j < 2 ? t->step[0] : c->k->step,
					g->rank[j % 2 == 0 ? 0 : k], c->k->key);
				rc = call[j] == NULL ? 0 : rate_of(t, call[j], &rate[j], e);
			}
			if (rc < 0)
				return rc;
			if (rc == 0 || rate[0] != rate[1] || rate[0] == 0 || rate[2] == rate[3])
				continue;
			return acc_replicas_blame(t, g, acc_seen_real(t, call[3], true)->line,
				SAY(t,
					"is made with the rate %.6g on rank %lld and %.6g on rank %lld, which both had"
					" %.6g in step %lld",
					rate[3], (long long)g->rank[k], rate[2],
					(long long)g->rank[0], rate[0], (long long)t->step[0]),
				1, 0, e);
		}
	}
	return 0;
}
