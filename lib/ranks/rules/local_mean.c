/* What may be right by design, and is said as a doubt: a mean that each rank, or each micro-batch, divides by a count of its
 * own, where the gradients are averaged: an element of the one counts more than one of the other. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#include <math.h>

struct own { /* a mean of a loss, over a count */
	const struct acc_seen_call *c;
	size_t line;   /* of what it makes, */
	uint64_t mark; /* and what that is */
	double n;      /* the count */
	double began;  /* the gradient that it is given */
};

/* A reduction over some of the group. */
static bool
is_among_fewer(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	return c->reduces && c->nmember > 1 && c->nmember < g->n && !acc_seen_among(t, c, g);
}

/* What a call divides by, where that is a number that this rank alone counted, or some of the group: not what goes through a
 * reduction over all of it. */
static int
divisor(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	double *n, struct acc_err *e)
{
	const struct acc_replica_seen *by = NULL;
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, c->k->line, &r, e);
	struct acc_str op = rc < 0 ? acc_str("") : acc_op_name(acc_get_text(r, "", "op"));
	bool wants = false;
	if (rc < 0 || !(acc_str_is(op, "div") || acc_str_is(op, "truediv") ||
			      acc_str_is(op, "true_divide")))
		return rc;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		wants |= !s->out && s->wants && s->n == 1;
		by = !s->out && !s->wants && s->n == 1 ? s : by;
	}
	const struct acc_seen_call *maker = by == NULL ? NULL
						       : acc_seen_caller(t, acc_seen_maker(t, by));
	if (!wants || (maker != NULL && maker->k->talks && !is_among_fewer(t, g, maker)))
		return 0;
	if (by != NULL)
		return acc_seen_number(t, by->line, n, e);
	double v = 0;
	rc = acc_seen_times(t, c, &v, e);
	*n = rc == 1 ? 1 / v : 0;
	return rc;
}

/* Is it such a mean, with a gradient? 1; 0; < 0. */
static int
is_mean(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	struct own *out, struct acc_err *e)
{
	const struct acc_seen_call *back = acc_seen_backward(t, c);
	const struct acc_replica_seen *y = NULL, *x = NULL;
	int rc = 0;
	*out = (struct own){.c = c};
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		if (t->seen[j].out)
			y = y == NULL ? &t->seen[j] : y;
		else if (t->seen[j].real)
			x = x == NULL ? &t->seen[j] : x;
	if (c->k->backward || c->k->talks || back == NULL || y == NULL || y->n != 1 || x == NULL)
		return 0;
	if (c->loss && !c->sums) {
		rc = acc_seen_labels(t, c, &out->n, e);
		if (rc == 0) { /* of numbers, one for each element */
			out->n = (double)x->n;
			rc = 1;
		}
	} else if (c->mean) {
		out->n = (double)x->n;
		rc = 1;
	} else if (c->info != NULL && c->info->cls == ACC_OP_MUL) {
		rc = divisor(t, g, c, &out->n, e);
	}
	if (rc != 1 || !(out->n >= 1))
		return rc < 0 ? rc : 0;
	rc = 0;
	for (uint32_t j = back->first; j < back->first + back->n && rc == 0; j++)
		if (!t->seen[j].out && t->seen[j].n == 1)
			rc = acc_seen_number(t, t->seen[j].line, &out->began, e);
	out->line = y->line;
	out->mark = y->mark;
	return rc;
}

/* Is it a sum of elements, none of which is masked, with a gradient: as many means of one element? */
static int
is_total(struct acc_replicas *t, const struct acc_seen_call *c, struct own *out, struct acc_err *e)
{
	const struct acc_seen_call *back = acc_seen_backward(t, c), *maker;
	const struct acc_replica_seen *x = acc_seen_real(t, c, false), *y = NULL;
	uint32_t given = 0;
	int rc = 0;
	*out = (struct own){.c = c};
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		y = t->seen[j].out ? &t->seen[j] : y;
	maker = x == NULL ? NULL : acc_seen_caller(t, acc_seen_maker(t, x));
	if (!c->total || c->k->backward || back == NULL || y == NULL || y->n != 1 || maker == NULL)
		return 0;
	for (uint32_t j = maker->first; j < maker->first + maker->n; j++)
		given += !t->seen[j].out;
	for (uint32_t j = back->first; j < back->first + back->n && rc == 0 && given == 1; j++)
		if (!t->seen[j].out && t->seen[j].n == 1)
			rc = acc_seen_number(t, t->seen[j].line, &out->began, e);
	out->began *= (double)x->n;
	out->mark = y->mark;
	return rc;
}

/* Are gradients joined behind the backward pass? */
static bool
joins(const struct acc_replicas *t, const struct acc_rank_group *g)
{
	bool backward = false, is = false;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && !is; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		const struct acc_replica_seen *x = backward && c->k->talks && c->reduces
							   ? acc_seen_real(t, c, false)
							   : NULL;
		is = x != NULL && x->n > 1 && acc_seen_among(t, c, g);
	}
	return is;
}

static bool
unlike(const struct own *a, const struct own *b)
{
	return fabs(a->n / b->n - 1) > LIMIT_RANKS_ROUNDED &&
	       fabs(a->began / b->began - 1) <= LIMIT_RANKS_ROUNDED;
}

static bool
is_of(const struct acc_rank_group *g, int64_t rank)
{
	bool is = false;
	for (uint32_t r = 0; r < g->n && !is; r++)
		is = g->rank[r] == rank;
	return is;
}

/* A mean of the same line, of another rank or micro-batch, that counts otherwise. 1; 0; < 0. */
static int
other_count(struct acc_replicas *t, const struct acc_rank_group *g, const struct own *a,
	struct own *b, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = t->f->ncall; rc == 0 && a->c->line != 0 && i-- > 0;) {
		const struct acc_seen_call *c = &t->call[i];
		if (c == a->c || c->line != a->c->line || c->k->step != a->c->k->step ||
			!is_of(g, c->k->rank))
			continue;
		rc = is_mean(t, g, c, b, e);
		rc = rc == 1 ? unlike(a, b) : rc;
	}
	return rc;
}

/* Means that each divide by a count of their own. */
static int
own_counts(struct acc_replicas *t, const struct acc_rank_group *g, struct acc_err *e)
{
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		struct own a, b = {.n = 0};
		if (c->k->step != t->step[0])
			continue;
		int rc = is_mean(t, g, c, &a, e);
		rc = rc == 1 ? other_count(t, g, &a, &b, e) : rc;
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		const long long ranks[2] = {(long long)a.c->k->rank, (long long)b.c->k->rank};
		return acc_fleet_doubts(t->f, a.line,
			ranks[0] == ranks[1]
				? acc_say(&t->f->mem,
					  "is a mean over %.6g, and that of %s over %.6g, each by its own count, with"
					  " the same gradient: one of the %.6g counts %.3g times as much as one of"
					  " the %.6g. Where all are to count alike, as in one batch, sums are divided"
					  " by what all micro-batches and ranks count together",
					  a.n, acc_replicas_name(t, b.c->k->line, e), b.n,
					  fmin(a.n, b.n), a.n < b.n ? b.n / a.n : a.n / b.n,
					  fmax(a.n, b.n))
				: acc_say(&t->f->mem,
					  "is a mean over %.6g on rank %lld and over %.6g on rank %lld, each by its own"
					  " count, and their gradients are joined: one of rank %lld counts %.3g times"
					  " as much as one of rank %lld. Where all are to count alike, as in one"
					  " batch, sums are divided by what all ranks count together",
					  a.n, ranks[0], b.n, ranks[1], ranks[a.n > b.n],
					  a.n < b.n ? b.n / a.n : a.n / b.n, ranks[a.n <= b.n]),
			e);
	}
	return 0;
}

/* --- how often all means count together --- */

struct means {         /* of the losses of all ranks */
	uint64_t line; /* of all */
	uint64_t last; /* what the last of a rank is */
	double sum;    /* of the gradients that they are given */
	uint32_t n;    /* of a rank */
};

/* How much the means of one line, or the sums, that a rank makes count. 1; 0: there is none, or they are of several lines,
 * or a sum, or the same as those of the rank before; < 0. */
static int
count_all(struct acc_replicas *t, const struct acc_rank_group *g, int64_t rank, bool sums,
	struct means *m, struct acc_err *e)
{
	uint64_t last = 0;
	m->n = 0;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		struct own a;
		if (c->k->step != t->step[0] || c->k->backward ||
			!(c->loss || (sums ? c->total : c->mean)))
			continue;
		int rc = sums                 ? is_total(t, c, &a, e)
			 : c->loss && c->sums ? 0
					      : is_mean(t, g, c, &a, e);
		if (rc < 0 || (rc == 0 && c->loss))
			return rc;
		if (rc == 0)
			continue;
		if (m->line != 0 && c->line != m->line)
			return 0;
		m->line = c->line;
		m->sum += a.began;
		m->n++;
		last = a.mark;
	}
	const bool same = last != 0 && last == m->last;
	m->last = last;
	return m->n > 0 && !same;
}

/* All ranks' losses, which are means, count once together, as that of one batch does; not as often as there are ranks or
 * micro-batches. */
static int
together(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call **room,
	struct acc_err *e)
{
	struct acc_scale scale = {.n = 0};
	struct means m = {.n = 0};
	int rc = g->n == t->f->nrank && g->data_differ;
	bool multiplied = false;
	if (rc == 1 && acc_seen_multiplied(t, g->rank[0], &multiplied, e) < 0)
		return e->code;
	const bool can = rc == 1 && !multiplied;
	bool summed = false;
	for (int sums = 0; sums < 2 && can && (sums == 0 || (rc == 0 && m.n == 0)); sums++) {
		summed = sums == 1;
		m = (struct means){.n = 0};
		rc = 1;
		for (uint32_t r = 0; r < g->n && rc == 1; r++)
			rc = count_all(t, g, g->rank[r], summed, &m, e);
	}
	if (!can)
		return 0;
	rc = rc == 1 ? acc_seen_scale(t, g, room, &scale, e) : (rc < 0 ? rc : 0);
	const double all = m.sum * scale.factor, off = all < 1 ? 1 / all : all;
	const uint32_t times = fabs(off - g->n) < LIMIT_RANKS_ROUNDED * g->n ? g->n : m.n;
	if (rc < 0 || scale.n < LIMIT_REPLICA_SCALED || times < 2 ||
		!(fabs(off - times) < LIMIT_RANKS_ROUNDED * times))
		return rc;
	const char *text =
		summed ? acc_say(&t->f->mem,
				 "is the gradient of a weight, or what is made of it; all %llu end so that the"
				 " elements of the losses of all %u ranks, which are sums, count %.6g times their"
				 " mean together, and not once: are they divided by the number of all, once?",
				 (unsigned long long)scale.n, g->n, all)
		: times == g->n
			? acc_say(&t->f->mem,
				  "is the gradient of a weight, or what is made of it; all %llu end so that the losses"
				  " of all %u ranks, each a mean, count %.6g times together, and not once, as the mean"
				  " of one batch does: are they divided by the number of ranks, once?",
				  (unsigned long long)scale.n, g->n, all)
			: acc_say(&t->f->mem,
				  "is the gradient of a weight, or what is made of it; all %llu end so that the losses"
				  " of all %u ranks, each a mean, count %.6g times together, and not once, as the mean"
				  " of one batch does: are they divided by the number of micro-batches, once?",
				  (unsigned long long)scale.n, g->n, all);
	return acc_fleet_doubts(t->f, scale.line, text, e);
}

int
acc_rule_doubt(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = t->nstep == 0 || !joins(t, g) ? 0 : own_counts(t, g, e);
	return rc < 0 || t->nstep == 0 ? rc : together(t, g, room, e);
}
