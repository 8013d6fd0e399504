/* By what the losses of all ranks are divided: together each label counts once. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_LOSSES = 32, MOST_HOPS = 6 };

struct sums { /* of a rank */
	double labels,
		weight; /* how many of its losses; and times the gradient that each loss begins with */
	uint64_t mark[MOST_LOSSES]; /* the labels */
	uint32_t n;
};

static int
count(struct acc_replicas *t, const struct acc_seen_call *c, double *n, uint64_t *mark,
	struct acc_err *e)
{
	const struct acc_replica_seen *labels = NULL;
	double ignored = -100;
	bool known = true;
	for (uint32_t j = c->first; j < c->first + c->n; j++)
		if (!t->seen[j].out && !t->seen[j].real && t->seen[j].n > 1)
			labels = labels == NULL ? &t->seen[j] : labels;
	if (labels == NULL || labels->mark == 0)
		return 0;
	for (size_t i = 0; i < c->k->n; i++) {
		struct acc_rec *r;
		int rc = t->f->get(t->f->arg, c->k->line + i, &r, e);
		if (rc < 0)
			return rc;
		if (acc_str_is(acc_get_text(r, "", "pos"), "ignore_index"))
			acc_as_f64(acc_get(r, "", "value"), &ignored);
	}
	*n = 0;
	*mark = labels->mark;
	for (uint64_t at = 0; at < labels->n && known; at += ACC_CHUNK) {
		size_t some = labels->n - at < ACC_CHUNK ? (size_t)(labels->n - at) : ACC_CHUNK;
		int rc = acc_seen_elements(t, labels, at, some, t->a, &known, e);
		if (rc < 0)
			return rc;
		for (size_t i = 0; i < some && known; i++)
			*n += t->a[i] != ignored;
	}
	return known;
}

int
acc_seen_labels(struct acc_replicas *t, const struct acc_seen_call *loss, double *n,
	struct acc_err *e)
{
	uint64_t mark;
	return count(t, loss, n, &mark, e);
}

/* The losses of a rank, sums over labels, in the first step. 1; 0: not all are known; < 0. */
static int
losses(struct acc_replicas *t, int64_t rank, struct sums *out, struct acc_err *e)
{
	*out = (struct sums){.n = 0};
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *back;
		double n = 0, began = 0;
		bool seed = false;
		if (c->k->step != t->step[0] || !c->loss)
			continue;
		back = acc_seen_backward(t, c);
		if (!c->sums || back == NULL || out->n == MOST_LOSSES)
			return 0;
		int rc = count(t, c, &n, &out->mark[out->n], e);
		for (uint32_t j = back->first; j < back->first + back->n && rc == 1; j++) {
			if (t->seen[j].out)
				continue;
			seed = t->seen[j].n == 1;
			rc = seed ? acc_seen_number(t, t->seen[j].line, &began, e) : 0;
		}
		if (rc != 1 || !seed)
			return rc < 0 ? rc : 0;
		out->labels += n;
		out->weight += n * began;
		out->n++;
	}
	return out->n > 0;
}

static bool
share(const struct sums *a, const struct sums *b)
{
	for (uint32_t i = 0; i < a->n; i++)
		for (uint32_t j = 0; j < b->n; j++)
			if (a->mark[i] == b->mark[j])
				return true;
	return false;
}

/* Does this reduction sum up a number, for the ranks to divide by? */
static bool
is_sum(const struct acc_seen_call *c)
{
	return c->reduces && !c->average && !c->picks && !c->scatters;
}

/* Of the number of ranks a whole part, such as of those that share data; 0: it is none. */
static uint32_t
part_of_ranks(const struct acc_rank_group *g, double times)
{
	const double n = rint(times);
	return n >= 2 && n <= g->n && fabs(times - n) < LIMIT_RANKS_ROUNDED * n &&
			       g->n % (uint32_t)n == 0
		       ? (uint32_t)n
		       : 0;
}

/* Does a reduction make this number, before the backward pass? Or as many times it as some ranks are, which share the labels and
 * have them counted once each. 1; 0; < 0. */
static int
is_summed_up(struct acc_replicas *t, const struct acc_rank_group *g, double n, struct acc_err *e)
{
	double v = 0;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		if (c->k->backward)
			return 0;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 0 && is_sum(c); j++) {
			if (!t->seen[j].out || t->seen[j].n != 1)
				continue;
			rc = acc_seen_number(t, t->seen[j].line, &v, e);
			rc = rc < 0 ? rc : rc == 1 && (v == n || part_of_ranks(g, v / n) > 0);
		}
	}
	return rc;
}

/* Is it what such a reduction made, or a cast of that? */
static bool
came_of_sum(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; s != NULL && hops < MOST_HOPS; hops++) {
		const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
		if (c == NULL || c->k->talks)
			return c != NULL && is_sum(c) && acc_seen_among(t, c, g);
		const struct acc_replica_seen *from = NULL;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (!t->seen[j].out)
				from = from == NULL ? &t->seen[j] : from;
		s = c->info == NULL || c->info->cls != ACC_OP_MOVE ? NULL : from;
	}
	return false;
}

int
acc_rule_total(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct sums *x = t->nstep == 0 || g->n != t->f->nrank ? NULL : calloc(g->n, sizeof *x);
	struct acc_scale scale = {.n = 0};
	double labels = 0, weight = 0;
	int rc = t->nstep == 0 || g->n != t->f->nrank ? 0 : x == NULL ? acc_nomem(e) : 1;
	for (uint32_t i = 0; i < g->n && rc == 1; i++) {
		rc = losses(t, g->rank[i], &x[i], e);
		for (uint32_t k = 0; k < i && rc == 1; k++)
			rc = !share(&x[i], &x[k]);
		labels += x[i].labels;
		weight += x[i].weight;
	}
	free(x);
	if (rc == 1)
		rc = is_summed_up(t, g, labels, e);
	if (rc == 1 && (rc = acc_seen_scale(t, g, room, &scale, e)) == 0)
		rc = scale.n >= LIMIT_REPLICA_SCALED;
	const double all = weight * scale.factor, off = all < 1 ? 1 / all : all;
	const uint32_t times = rc == 1 ? part_of_ranks(g, off) : 0;
	if (times == 0)
		return rc < 0 ? rc : 0;
	/* As there are in some group of ranks may be by design. */
	return acc_replicas_tell(t, g, scale.line, times == g->n,
		acc_say(&t->f->mem,
			"is the gradient of a weight, or what is made of it; all %llu end so that each of the %llu"
			" labels of all ranks, which these count together and divide the loss by, counts %.6g times:"
			" %u times too %s",
			(unsigned long long)scale.n, (unsigned long long)labels, all, times,
			all > 1 ? "large" : "small"),
		e);
}

/* --- a sum that is divided by what the ranks counted together --- */

int
acc_seen_times(struct acc_replicas *t, const struct acc_seen_call *c, double *v, struct acc_err *e)
{
	int found = 0;
	for (size_t i = 0; i < c->k->n; i++) {
		struct acc_rec *r;
		double x;
		int rc = t->f->get(t->f->arg, c->k->line + i, &r, e);
		if (rc < 0)
			return rc;
		struct acc_str name = acc_op_name(acc_get_text(r, "", "op"));
		if (acc_rec_is(r, "tensor") || acc_str_is(acc_get_text(r, "", "io"), "out") ||
			!acc_as_f64(acc_get(r, "", "value"), &x))
			continue;
		*v = acc_str_is(name, "mul") ? x : 1 / x;
		found++;
	}
	return found == 1;
}

/* Is a number divided by one that no gradient is wanted of, and that the ranks counted together? 1; 0; < 0. */
static int
is_divided(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	struct acc_err *e)
{
	const struct acc_replica_seen *by = NULL;
	bool wants = false;
	struct acc_rec *r;
	if (c->k->backward || c->k->talks || c->info == NULL || c->info->cls != ACC_OP_MUL)
		return 0;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (s->n != 1)
			return 0;
		wants |= !s->out && s->wants;
		by = !s->out && !s->wants && s->mark != 0 ? s : by;
	}
	if (!wants || by == NULL || !came_of_sum(t, g, by))
		return 0;
	int rc = t->f->get(t->f->arg, c->k->line, &r, e);
	return rc < 0 ? rc : !acc_str_is(acc_op_name(acc_get_text(r, "", "op")), "mul");
}

/* By what numbers the terms of a sum were multiplied before that. 1; 0: not all are known; < 0. */
static int
multiplied(struct acc_replicas *t, const struct acc_seen_call *c, double *by, struct acc_err *e)
{
	*by = 1;
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		const struct acc_replica_seen *x = NULL;
		double v = 1;
		uint32_t tensors = 0;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			tensors += !t->seen[j].out;
			x = !t->seen[j].out && t->seen[j].wants ? &t->seen[j] : x;
		}
		if (hops > 0 && c->info != NULL && c->info->cls == ACC_OP_MUL && tensors == 1) {
			int rc = acc_seen_times(t, c, &v, e);
			if (rc != 1)
				return rc;
			*by *= v;
		}
		c = x == NULL ? NULL : acc_seen_caller(t, acc_seen_maker(t, x));
		if (c == NULL || c->k->talks || c->k->backward || c->loss)
			return c == NULL || c->loss;
	}
	return 1;
}

int
acc_rule_divided(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct acc_scale scale = {.n = 0};
	double seed = 0, s = 0, by = 1;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && t->nstep > 0 && g->n == t->f->nrank; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i], *back = acc_seen_backward(t, c);
		if (c->k->step != t->step[0] || back == NULL)
			continue;
		rc = is_divided(t, g, c, e);
		if (rc == 0)
			continue;
		for (uint32_t j = back->first; j < back->first + back->n && rc == 1; j++)
			if (!t->seen[j].out)
				rc = acc_seen_number(t, t->seen[j].line, &s, e);
		rc = rc == 1 ? multiplied(t, c, &by, e) : rc;
		if (rc != 1 || (seed != 0 && s * by != seed))
			return rc < 0 ? rc : 0;
		seed = s * by;
	}
	rc = seed == 0 ? 0 : acc_seen_scale(t, g, room, &scale, e);
	const double all = seed * scale.factor, off = all < 1 ? 1 / all : all;
	const uint32_t times = rc < 0 || seed == 0 || scale.n < LIMIT_REPLICA_SCALED
				       ? 0
				       : part_of_ranks(g, off);
	if (times == 0)
		return rc;
	/* As there are in some group of ranks may be by design. */
	return acc_replicas_tell(t, g, scale.line, times == g->n,
		acc_say(&t->f->mem,
			"is the gradient of a weight, or what is made of it; all %llu end as %.6g times the sum over the"
			" ranks of gradients of a loss that is divided by what they counted together: %u times too %s",
			(unsigned long long)scale.n, all, times, all > 1 ? "large" : "small"),
		e);
}
