/* By how much gradients are scaled on their way: the loss of each rank is the mean over its own data, so
 * that what is right for all of them is the mean over the ranks. Judged where all that scales can be
 * seen: the gradient that the loss began with, the reduction, and the numbers behind it. */
#include "ranks/asked.h"
#include "acc/say.h"

#include <stdlib.h>

#include "replay/limits.h"

enum { MOST_STEPS = 8 };

struct scaling {
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_replica_seen *seed; /* the gradient of the loss, on the first rank */
	double began;                        /* and its value */
	double factor;                       /* of the gradients, all alike */
	size_t last;                         /* record of what scaled the first of them last */
	uint64_t n;
	bool visible, unlike;
};

int
acc_seen_number(struct acc_replicas *t, size_t line, double *v, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_fleet_tensor x;
	int rc = t->f->get(t->f->arg, line, &r, e);
	if (rc < 0)
		return rc;
	rc = acc_fleet_tensor(r, line, &x);
	if (rc <= 0)
		return rc < 0 ? acc_nomem(e) : 0;
	if (x.n != 1)
		return 0;
	if (acc_as_f64(acc_get(r, "", "stat.max"), v))
		return 1;
	return x.data ? acc_fleet_read(t->f, &x, 0, 1, v, e) : 0;
}

bool
acc_divides(double v)
{
	const double n = fabs(v) < 1 ? 1 / v : v;
	return fabs(n - rint(n)) < 1e-6 * fabs(n);
}

int
acc_seen_factor(struct acc_replicas *t, const struct acc_seen_call *c, double *v, struct acc_err *e)
{
	struct acc_rec *r;
	bool divides = false;
	double x;
	unsigned found = 0;
	for (size_t i = 0; i < c->k->n; i++) {
		int rc = t->f->get(t->f->arg, c->k->line + i, &r, e);
		if (rc < 0)
			return rc;
		struct acc_str io = acc_get_text(r, "", "io"),
			       name = acc_op_name(acc_get_text(r, "", "op"));
		if (acc_str_is(io, "out"))
			continue;
		divides = acc_str_is(name, "div") || acc_str_is(name, "truediv") ||
			  acc_str_is(name, "true_divide");
		if (!divides && !acc_str_is(name, "mul"))
			return 0;
		if (!acc_rec_is(r, "tensor") && acc_as_f64(acc_get(r, "", "value"), &x)) {
			*v = x;
			found++;
		}
	}
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		if (s->out || s->n != 1)
			continue;
		int rc = acc_seen_number(t, s->line, v, e);
		if (rc != 1)
			return rc;
		found++;
	}
	if (divides)
		*v = 1 / *v;
	return found == 1 && isfinite(*v);
}

int
acc_seen_shared_out(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, struct acc_err *e)
{
	double v = 0;
	int rc = c == NULL || c->k->talks || c->info == NULL || c->info->cls != ACC_OP_MUL
			 ? 0
			 : acc_seen_factor(t, c, &v, e);
	return rc != 1 ? rc : fabs(v * g->n - 1) < 1e-6;
}

int
acc_seen_loss(struct acc_replicas *t, int64_t rank, bool sums, const struct acc_seen_call **found,
	const struct acc_replica_seen **seed, double *began, struct acc_err *e)
{
	const struct acc_seen_call *loss = NULL, *back;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || !c->loss)
			continue;
		if (loss != NULL || c->sums != sums)
			return 0;
		loss = c;
	}
	back = loss == NULL ? NULL : acc_replicas_call(t, loss->k->step, rank, loss->k->twin);
	for (uint32_t j = 0; back != NULL && j < back->n; j++)
		if (!t->seen[back->first + j].out && t->seen[back->first + j].n == 1) {
			*seed = &t->seen[back->first + j];
			*found = loss;
			return acc_seen_number(t, (*seed)->line, began, e);
		}
	return 0;
}

/* A hash of the labels: what is no real number among what a loss is given, or what nobody made; of statistics,
 * of the largest and the least. 0: none. */
static int
labels_of(struct acc_replicas *t, const struct acc_seen_call *loss, uint64_t *labels,
	struct acc_err *e)
{
	*labels = 0;
	for (uint32_t j = 0; j < loss->n && *labels == 0; j++) {
		const struct acc_replica_seen *s = &t->seen[loss->first + j];
		struct acc_rec *r;
		double ends[2];
		if (s->out || (s->real && !s->data))
			continue;
		int rc = t->f->get(t->f->arg, s->line, &r, e);
		if (rc < 0)
			return rc;
		*labels = s->mark;
		if (*labels == 0 && acc_as_f64(acc_get(r, "", "stat.max"), &ends[0]) &&
			acc_as_f64(acc_get(r, "", "stat.min"), &ends[1]))
			*labels = acc_hash(ends, sizeof ends) | 1;
	}
	return 0;
}

/* Is all that the loss is given the same on all ranks? */
static int
is_whole(struct scaling *s, const struct acc_seen_call *loss, bool *is, struct acc_err *e)
{
	const struct acc_seen_call **peer = malloc(s->g->n * sizeof *peer);
	int rc = peer == NULL ? acc_nomem(e) : 0;
	*is = rc == 0 && acc_replicas_peers(s->t, s->g, loss, peer);
	for (uint32_t j = 0; j < loss->n && rc == 0 && *is; j++)
		if (!s->t->seen[loss->first + j].out)
			rc = acc_replicas_same(s->t, s->g, peer, j, is, e);
	free(peer);
	return rc;
}

/* Does a rank go on with its part of the gradient of the loss, as it is? */
static bool
is_cut(const struct scaling *s)
{
	const struct acc_replicas *t = s->t;
	const struct acc_seen_call *back = &t->call[s->seed->call];
	for (uint32_t j = back->first; j < back->first + back->n; j++) {
		const struct acc_replica_seen *dx = &t->seen[j];
		uint32_t by = !dx->out || dx->mark == 0
				      ? ACC_NOID
				      : acc_ids_get(&t->taken, acc_seen_id(t, dx));
		const struct acc_seen_call *cut = by == ACC_NOID ? NULL : &t->call[by];
		for (uint32_t i = cut == NULL ? 0 : cut->first;
			cut != NULL && i < cut->first + cut->n; i++)
			if (t->seen[i].out && t->seen[i].n * s->g->n == dx->n &&
				t->seen[i].mark != 0 &&
				acc_ids_get(&t->entered, acc_seen_id(t, &t->seen[i])) != ACC_NOID)
				return true;
	}
	return false;
}

/* What becomes of a reduction's result: the numbers by which it is scaled, one call after another. */
static int
follow(struct scaling *s, const struct acc_replica_seen *x, double *factor, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	for (unsigned i = 0; i < MOST_STEPS; i++) {
		uint32_t next = x->mark == 0 ? ACC_NOID
					     : acc_ids_get(&t->scaled, acc_seen_id(t, x));
		double v = 0;
		if (next == ACC_NOID || next <= x->call)
			return 1;
		const struct acc_seen_call *c = &t->call[next];
		int rc = acc_seen_factor(t, c, &v, e);
		if (rc != 1)
			return rc;
		const struct acc_replica_seen *out = NULL;
		for (uint32_t j = 0; j < c->n && out == NULL; j++)
			out = t->seen[c->first + j].out ? &t->seen[c->first + j] : NULL;
		if (out == NULL || out->n != x->n)
			return 0;
		const bool counts = v != 1 && acc_divides(v);
		*factor *= counts ? v : 1;
		s->visible |= counts;
		if (s->n == 0 && counts)
			s->last = out->line;
		x = out;
	}
	return 0;
}

/* A reduction of a weight's gradient. */
static int
reduction(struct scaling *s, const struct acc_seen_call *c, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	const struct acc_replica_seen *in = NULL, *out = NULL;
	if (c->elsewhere)
		return 0;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *x = &t->seen[c->first + j];
		if (x->n > 1 && !x->out && in == NULL)
			in = x;
		if (x->n > 1 && x->out && out == NULL)
			out = x;
	}
	uint32_t made = in == NULL || out == NULL || in->mark == 0
				? ACC_NOID
				: acc_ids_get(&t->made, acc_seen_id(t, in));
	const struct acc_seen_call *back = made == ACC_NOID ? NULL : &t->call[t->seen[made].call],
				   *own = back == NULL || !back->k->backward
						  ? NULL
						  : acc_replicas_call(t, back->k->step,
							    back->k->rank, back->k->twin);
	if (back == NULL || !back->k->backward)
		return 1;
	/* Of experts, which have copies on these ranks alone, and are given rows of all. */
	if (s->g->n < t->f->nrank && own != NULL && acc_seen_exchanged(t, own))
		return 1;
	double factor = s->began * (c->average ? 1.0 / s->g->n : 1);
	s->visible |= c->average || s->began != 1;
	if (s->n == 0)
		s->last = out->line;
	int rc = follow(s, out, &factor, e);
	if (rc != 1)
		return rc;
	s->unlike |= s->n > 0 && fabs(factor - s->factor) > 1e-6 * fabs(factor);
	s->factor = factor;
	s->n++;
	return 1;
}

/* The sum of the ranks' parts is the gradient of the loss, which is one for all. */
static int
say_cut(struct scaling *s, struct acc_err *e)
{
	return fabs(s->factor * s->g->n - 1) > 1e-6
		       ? 0
		       : acc_replicas_blame(s->t, s->g, s->last,
				 acc_say(&s->t->f->mem,
					 "is a mean over the ranks: their loss is one and the same, and each goes on with"
					 " its part of the gradient of that, so that their sum is the gradient: %u"
					 " times too small; gradients must be summed up",
					 s->g->n),
				 1, 0, e);
}

static uint64_t
given_amid(const struct acc_seen_call *c, uint64_t mark)
{
	const uint64_t id[4] = {(uint64_t)c->k->step, c->k->op, c->line, mark};
	return acc_hash(id, sizeof id);
}

/* What communication of the backward pass is given, by its line: the rank, or, where several are, the number of ranks. */
static int
note_amid(struct acc_replicas *t, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		const uint32_t rank = (uint32_t)acc_fleet_index(t->f, c->k->rank);
		for (uint32_t j = c->first;
			j < c->first + c->n && c->k->talks && c->amid && rc == 0; j++) {
			const uint64_t id = given_amid(c, t->seen[j].mark);
			const uint32_t was = t->seen[j].out ? rank : acc_ids_get(&t->amid, id);
			if (was != rank)
				rc = acc_ids_put(&t->amid, id,
					was == ACC_NOID ? rank : (uint32_t)t->f->nrank, true, e);
		}
	}
	return rc;
}

/* Is a call of another rank, of this one's line in the backward pass, given this, too? */
static bool
given_alike(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *s)
{
	const uint32_t is = acc_ids_get(&t->amid, given_amid(c, s->mark));
	return is != ACC_NOID && is != acc_fleet_index(t->f, c->k->rank);
}

int
acc_seen_multiplied(struct acc_replicas *t, int64_t rank, bool *is, struct acc_err *e)
{
	int rc = 0;
	*is = false;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall && rc == 0 && !*is;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || !c->amid || !c->k->talks || c->average ||
			c->sends || c->receives)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 0 && !*is; j++) {
			const struct acc_replica_seen *s = &t->seen[j],
						      *made = s->out || !s->real || s->n < 2
								      ? NULL
								      : acc_seen_maker(t, s);
			bool flat = true;
			if (made == NULL || !t->call[made->call].amid)
				continue;
			rc = t->amid.n > 0 ? 0 : note_amid(t, e);
			rc = rc < 0 ? rc : acc_replicas_flat(t, s, &flat, e);
			*is = rc == 0 && !flat && given_alike(t, c, s);
		}
	}
	return rc;
}

int
acc_fleet_divisor(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	struct scaling s = {.t = t, .g = g};
	uint64_t labels = 0;
	bool differ = false, cut = false, more = false;
	int rc = 1;
	for (uint32_t i = 0; i < g->n && rc == 1; i++) {
		const struct acc_replica_seen *seed = NULL;
		const struct acc_seen_call *loss;
		double began = 0;
		uint64_t own = 0;
		rc = acc_seen_loss(t, g->rank[i], false, &loss, &seed, &began, e);
		if (rc == 1 && i > 0 && began != s.began)
			rc = 0;
		if (rc == 1 && labels_of(t, loss, &own, e) < 0)
			return e->code;
		s.began = began;
		s.seed = i == 0 ? seed : s.seed;
		if (rc == 1 && i == 0 && is_whole(&s, loss, &cut, e) < 0)
			return e->code;
		if (own == 0 && !cut)
			rc = rc < 0 ? rc : 0;
		differ |= i > 0 && own != labels;
		labels = own;
	}
	cut = rc == 1 && cut && is_cut(&s);
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 1;
		i = t->call[i].next)
		if (t->call[i].k->step == t->step[0] && t->call[i].k->talks && t->call[i].reduces &&
			acc_seen_among(t, &t->call[i], g))
			rc = reduction(&s, &t->call[i], e);
	if (rc != 1 || (!differ && !cut) || s.n < LIMIT_REPLICA_WEIGHTS || s.unlike || !s.visible)
		return rc < 0 ? rc : 0;
	rc = acc_seen_multiplied(t, g->rank[0], &more, e);
	if (rc < 0 || more)
		return rc;
	if (cut)
		return say_cut(&s, e);
	double off = s.factor * g->n;
	const bool less = fabs(off * g->n - 1) < 1e-6;
	more = fabs(off / g->n - 1) < 1e-6;
	if (!more && !less)
		return 0;
	bool loss = s.began != 1 && fabs(s.factor / s.began * g->n - 1) < 1e-6;
	struct acc_fleet_verdict v = {.line = loss ? s.seed->line : s.last,
		.who = g->who,
		.rms = 1,
		.max = 1};
	v.said = acc_say(&t->f->mem,
		"%s: the loss of each of these ranks is a mean over its own data and begins with the"
		" gradient %.6g, and what is made of the sum of the %llu gradients of weights is %.6g"
		" times it, where their mean is %.6g times it: %u times too %s",
		loss ? "begins otherwise than the ranks' mean asks for" : "is scaled wrongly",
		s.began, (unsigned long long)s.n, s.factor / s.began, 1.0 / g->n, g->n,
		more ? "large" : "small");
	return v.said == NULL ? acc_nomem(e) : acc_fleet_say(t->f, &v, e);
}
