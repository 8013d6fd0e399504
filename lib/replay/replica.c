/* What was the same on all ranks of a group, and parts: weights, their gradients, and what a
 * reduction, or the same draw of random numbers, should have made alike. */
#include "replay/replica.h"

#include <stdlib.h>

#include "replay/limits.h"

/* How two tensors of the same place on two ranks lie to each other. */
enum alike { EQUAL, NEAR, APART, UNKNOWN };

struct distance {
	double d, size; /* norms: of the difference, of the second tensor */
	bool known;
};

struct parting { /* a group, and what is found in it */
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call **peer;
	struct acc_map lines;   /* of code, whose calls were alike: their number, or dead */
	bool parted, drawn;     /* a reduction is missing; random numbers are others */
	uint64_t equal, differ; /* weights of the first step */
	const struct acc_replica_seen *odd;
	uint64_t joined, unlike; /* gradients that are reduced: of weights that are alike, or not */
	const struct acc_seen_call *reduction; /* the first of these, and two of its weights */
	const struct acc_replica_seen *weight[2];
};

/* --- distances --- */

static int
by_elements(struct acc_replicas *t, const struct acc_fleet_tensor *a,
	const struct acc_fleet_tensor *b, struct distance *out, struct acc_err *e)
{
	double dd = 0, bb = 0;
	int rc = 1;
	for (uint64_t at = 0; at < a->n && rc == 1; at += ACC_CHUNK) {
		size_t n = a->n - at < ACC_CHUNK ? (size_t)(a->n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, a, at, n, t->a, e);
		if (rc == 1)
			rc = acc_fleet_read(t->f, b, at, n, t->b, e);
		for (size_t i = 0; i < n && rc == 1; i++) {
			double d = t->a[i] - t->b[i];
			dd += t->a[i] == t->b[i] ? 0 : d * d;
			bb += t->b[i] * t->b[i];
		}
	}
	*out = (struct distance){sqrt(dd), sqrt(bb), rc == 1 && isfinite(dd) && isfinite(bb)};
	return rc < 0 ? rc : 0;
}

/* At least so far apart they are, by what statistics tell. */
static void
by_statistics(const double *a, const double *b, struct distance *out)
{
	double d = fabs(a[3] - b[3]);
	d = fmax(d, fmax(fabs(a[0] - b[0]), fabs(a[1] - b[1])));
	*out = (struct distance){d, fabs(b[3]), isfinite(d) && isfinite(b[3])};
}

static int
statistics(struct acc_replicas *t, size_t line, double s[4], struct acc_fleet_tensor *x,
	bool *known, struct acc_err *e)
{
	static const char *const keys[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, line, &r, e);
	if (rc < 0)
		return rc;
	*known = true;
	for (int i = 0; i < 4; i++)
		*known &= acc_as_f64(acc_get(r, "", keys[i]), &s[i]);
	rc = acc_fleet_tensor(r, line, x);
	return rc < 0 ? acc_nomem(e) : 0;
}

static int
distance(struct acc_replicas *t, const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	struct distance *out, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0}, y = {0};
	double s[2][4];
	bool known[2];
	*out = (struct distance){0};
	int rc = statistics(t, a->line, s[0], &x, &known[0], e);
	if (rc == 0)
		rc = statistics(t, b->line, s[1], &y, &known[1], e);
	if (rc < 0 || a->n != b->n || x.n != y.n)
		return rc;
	if (x.data && y.data)
		rc = by_elements(t, &x, &y, out, e);
	else if (known[0] && known[1])
		by_statistics(s[0], s[1], out);
	return rc;
}

/* Rounding alone does not lead further. */
static double
near_limit(struct acc_replicas *t, const struct acc_replica_seen *s)
{
	struct acc_rec *r;
	if (t->f->get(t->f->arg, s->line, &r, NULL) < 0)
		return LIMIT_REPLICA_MOST;
	double unit = acc_unit(acc_dtype_find(acc_get_text(r, "", "dtype")));
	return fmin(LIMIT_REPLICA_MOST, LIMIT_MOST_PRODUCTS * unit);
}

static bool
marked_alike(const struct parting *p, uint32_t j)
{
	const struct acc_replica_seen *s = p->t->seen;
	uint64_t mark = s[p->peer[0]->first + j].mark;
	for (uint32_t i = 1; i < p->g->n; i++)
		if (s[p->peer[i]->first + j].mark != mark)
			return false;
	return mark != 0;
}

/* The j-th tensor of the peers. */
static int
alike(struct parting *p, uint32_t j, enum alike *is, struct acc_err *e)
{
	const struct acc_replica_seen *s = p->t->seen, *a = &s[p->peer[0]->first + j];
	int rc = 0;
	*is = EQUAL;
	for (uint32_t i = 1; i < p->g->n && rc == 0 && *is < APART; i++) {
		const struct acc_replica_seen *b = &s[p->peer[i]->first + j];
		struct distance d;
		if (a->mark != 0 && a->mark == b->mark)
			continue;
		rc = distance(p->t, b, a, &d, e);
		if (rc == 0 && !d.known)
			*is = UNKNOWN;
		else if (rc == 0 && d.d > 0)
			*is = a->real && d.d <= near_limit(p->t, a) * d.size ? NEAR : APART;
	}
	return rc;
}

/* --- words --- */

/* The op call of a record, in the fleet's memory. */
static const char *
name_of(struct acc_replicas *t, size_t line, struct acc_err *e)
{
	struct acc_rec *r;
	if (t->f->get(t->f->arg, line, &r, e) < 0)
		return NULL;
	struct acc_str key = acc_get_text(r, "", "key");
	const char *p = acc_arena_copy(&t->f->mem, key.p, key.n);
	if (p == NULL)
		acc_nomem(e);
	return p;
}

static int
blame(struct parting *p, size_t line, const char *said, double value, double limit,
	struct acc_err *e)
{
	if (said == NULL)
		return e != NULL && e->code != 0 ? e->code : acc_nomem(e);
	const struct acc_fleet_verdict v = {.line = line,
		.said = said,
		.who = p->g->who,
		.rms = value,
		.max = value,
		.limit = limit};
	return acc_fleet_say(p->t->f, &v, e);
}

#define SAY(p, ...) acc_arena_printf(&(p)->t->f->mem, __VA_ARGS__)

/* The rank whose j-th tensor is not that of most; of two, the second. */
static uint32_t
odd_one(const struct parting *p, uint32_t j)
{
	const struct acc_replica_seen *s = p->t->seen;
	uint32_t best = p->g->n - 1, least = UINT32_MAX;
	for (uint32_t i = p->g->n; i-- > 0;) {
		uint32_t same = 0;
		for (uint32_t k = 0; k < p->g->n; k++)
			same += s[p->peer[i]->first + j].mark == s[p->peer[k]->first + j].mark;
		if (same < least) {
			least = same;
			best = i;
		}
	}
	return best;
}

/* --- weights --- */

/* The gradient of a weight, on a rank: the backward call's output of the same place. */
static const struct acc_replica_seen *
gradient(const struct acc_replicas *t, int64_t step, int64_t rank, const struct acc_replica_seen *w)
{
	const struct acc_seen_call *c = acc_replicas_call(t, step, rank, t->call[w->call].k->twin);
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].pos == w->pos && t->seen[i].n == w->n)
			return &t->seen[i];
	return NULL;
}

static bool
is_given(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	return s->mark != 0 && acc_ids_get(&t->given, acc_seen_id(t, s)) != ACC_NOID;
}

/* The same tensor of the same call in an earlier step. */
static const struct acc_replica_seen *
before(const struct acc_replicas *t, const struct acc_replica_seen *w, int64_t step, int64_t rank)
{
	const struct acc_seen_call *c = acc_replicas_call(t, step, rank, t->call[w->call].k->key);
	for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
		if (t->seen[i].pos == w->pos && t->seen[i].n == w->n && t->seen[i].leaf)
			return &t->seen[i];
	return NULL;
}

/* A weight that was alike in `step` and is not any more: what of its gradient is known? a, b: of two
 * ranks now; ga, gb: their gradients then. */
static int
say_drift(struct parting *p, int64_t step, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, double ratio, bool stays, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_fleet_call *ka = t->call[a->call].k, *kb = t->call[b->call].k;
	const struct acc_replica_seen *ga = gradient(t, step, ka->rank,
					      before(t, a, step, ka->rank)),
				      *gb = gradient(t, step, kb->rank,
					      before(t, b, step, kb->rank));
	const char *name = name_of(t, a->line, e);
	struct distance d = {0};
	int rc = name == NULL ? ACC_ENOMEM : 0;
	if (rc == 0 && ga != NULL && gb != NULL && ga->mark != gb->mark)
		rc = distance(t, gb, ga, &d, e);
	if (rc < 0)
		return rc;
	bool differ = d.known && d.d > near_limit(t, ga) * d.size;
	if (differ && !stays && !is_given(t, ga) && !is_given(t, gb))
		return blame(p, ga->line,
			SAY(p,
				"is the gradient of a weight that these ranks had alike in step %lld, is another"
				" on each of them, and was given to no reduction: the weight parts,"
				" in step %lld at %s",
				(long long)step, (long long)ka->step, name),
			ratio, LIMIT_REPLICA_MOST, e);
	return blame(p, b->line,
		stays ? SAY(p,
				"is a weight that these ranks had alike in step %lld, and that stayed as it was on"
				" rank %lld alone: the step of the optimizer is missing there",
				(long long)step, (long long)kb->rank)
		      : SAY(p,
				"is a weight that these ranks had alike in step %lld, and that is another on rank"
				" %lld than on rank %lld since step %lld%s",
				(long long)step, (long long)kb->rank, (long long)ka->rank,
				(long long)kb->step,
				ga == NULL || gb == NULL ? ""
				: differ ? ": its gradient was another before its reduction, too"
					 : ": its gradient was the same"),
		ratio, LIMIT_REPLICA_MOST, e);
}

/* All elements the same: parts of zeros are equal, too. Weights of norms are whole on all ranks. */
static int
constant(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	double st[4];
	bool known;
	int rc = statistics(t, s->line, st, &x, &known, e);
	*is = !known || st[0] == st[1];
	if (t->call[s->call].norm) {
		*is = false;
		return rc;
	}
	if (rc < 0 || known || !x.data)
		return rc;
	size_t n = x.n < ACC_CHUNK ? (size_t)x.n : ACC_CHUNK;
	rc = acc_fleet_read(t->f, &x, 0, n, t->a, e);
	for (size_t i = 1; i < n && rc == 1 && *is; i++)
		*is = t->a[i] == t->a[0];
	return rc < 0 ? rc : 0;
}

/* Two ranks' weight now, which was alike in an earlier step. */
static int
drift(struct parting *p, int64_t step, const struct acc_replica_seen *a,
	const struct acc_replica_seen *b, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_replica_seen *a0 = before(t, a, step, t->call[a->call].k->rank),
				      *b0 = before(t, b, step, t->call[b->call].k->rank);
	struct distance d, ua, ub;
	bool flat = false;
	if (a0 == NULL || b0 == NULL || a0->mark != b0->mark || a->mark == b->mark)
		return 0;
	int rc = constant(t, a0, &flat, e);
	if (rc < 0 || flat)
		return rc;
	rc = distance(t, b, a, &d, e);
	if (rc == 0)
		rc = distance(t, a, a0, &ua, e);
	if (rc == 0)
		rc = distance(t, b, b0, &ub, e);
	if (rc < 0 || !d.known || !ua.known || !ub.known)
		return rc;
	double ratio = d.d / fmax(ua.d, ub.d);
	if (!(ratio > LIMIT_REPLICA_MOST))
		return 0;
	/* On one of them nothing happened. */
	if (a->mark == a0->mark)
		return say_drift(p, step, b, a, ratio, true, e);
	return say_drift(p, step, a, b, ratio, b->mark == b0->mark, e);
}

static int64_t
step_before(const struct acc_replicas *t, int64_t step)
{
	for (size_t i = t->nstep; i-- > 1;)
		if (t->step[i] == step)
			return t->step[i - 1];
	return INT64_MIN;
}

/* --- calls --- */

/* Are all tensors that the peers were given equal? */
static bool
given_alike(const struct parting *p, bool any)
{
	const struct acc_seen_call *c = p->peer[0];
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &p->t->seen[c->first + j];
		if (!s->out && !marked_alike(p, j))
			return false;
		any |= !s->out && s->n > 1;
	}
	return any;
}

/* The first output that is not the same on all; -1: none. */
static int64_t
parts_at(const struct parting *p)
{
	const struct acc_seen_call *c = p->peer[0];
	for (uint32_t j = 0; j < c->n; j++)
		if (p->t->seen[c->first + j].out && p->t->seen[c->first + j].mark != 0 &&
			!marked_alike(p, j))
			return j;
	return -1;
}

/* Random numbers that are others where those of replicas must be the same: what they are drawn for is
 * the same on ranks that hold parts of the weights. */
static int
draws(struct parting *p, struct acc_err *e)
{
	int64_t j = parts_at(p);
	bool was = p->drawn;
	if (j < 0)
		return 0;
	p->drawn = true;
	if (was || !p->g->weights_differ || p->g->data_differ || !given_alike(p, false))
		return 0;
	return blame(p, p->t->seen[p->peer[p->g->n - 1]->first + j].line,
		"is made of other random numbers on each rank, although the input is the same on all:"
		" what follows is computed as if it still were",
		1, 0, e);
}

/* What a reduction made alike, and a number, or a kernel, makes other. */
static int
after_reduction(struct parting *p, struct acc_err *e)
{
	const struct acc_seen_call *c = p->peer[0];
	struct acc_replicas *t = p->t;
	int64_t j = c->info == NULL || c->module ||
				    (c->info->cls != ACC_OP_MUL && c->info->cls != ACC_OP_ADD &&
					    c->info->cls != ACC_OP_STEADY)
			    ? -1
			    : parts_at(p);
	bool reduced = false;
	for (uint32_t i = c->first; j >= 0 && i < c->first + c->n; i++)
		reduced |= !t->seen[i].out && t->seen[i].n > 1 && t->seen[i].mark != 0 &&
			   acc_ids_get(&t->reduced, acc_seen_id(t, &t->seen[i])) != ACC_NOID;
	if (!reduced || !given_alike(p, false))
		return 0;
	bool args = true;
	for (uint32_t i = 1; i < p->g->n; i++)
		args &= p->peer[i]->args == c->args;
	uint32_t odd = odd_one(p, (uint32_t)j);
	struct distance d;
	const struct acc_replica_seen *x = &t->seen[p->peer[odd]->first + j],
				      *y = &t->seen[p->peer[odd == 0]->first + j];
	int rc = distance(t, x, y, &d, e);
	if (rc < 0 || !d.known || !(d.d > near_limit(t, x) * d.size))
		return rc;
	return blame(p, x->line,
		args ? "is not the same on all ranks, although what a reduction gave to it is, and its"
		       " other arguments are"
		     : "is not the same on all ranks, although what a reduction gave to it is: a number"
		       " differs by rank",
		d.d / d.size, near_limit(t, x), e);
}

/* A reduction over weights' gradients, where the weights are not the same. */
static int
unlike_weights(struct parting *p)
{
	struct acc_replicas *t = p->t;
	const struct acc_replica_seen *w[2] = {NULL, NULL};
	const struct acc_seen_call *c = p->peer[0];
	int64_t at = -1;
	for (uint32_t j = 0; j < c->n && at < 0; j++)
		at = !t->seen[c->first + j].out && t->seen[c->first + j].n > 1 ? (int64_t)j : -1;
	bool differ = false;
	for (uint32_t i = 0; i < p->g->n && at >= 0; i++) {
		const struct acc_replica_seen *s = &t->seen[p->peer[i]->first + at];
		uint32_t made = s->mark == 0 ? ACC_NOID : acc_ids_get(&t->made, acc_seen_id(t, s));
		const struct acc_seen_call *b = made == ACC_NOID ? NULL
								 : &t->call[t->seen[made].call];
		const struct acc_seen_call *fwd = b == NULL || !b->k->backward
							  ? NULL
							  : acc_replicas_call(t, b->k->step,
								    b->k->rank, b->k->twin);
		const struct acc_replica_seen *found = NULL;
		for (uint32_t j = 0; fwd != NULL && j < fwd->n; j++)
			if (t->seen[fwd->first + j].pos == t->seen[made].pos &&
				t->seen[fwd->first + j].leaf && t->seen[fwd->first + j].n == s->n)
				found = &t->seen[fwd->first + j];
		if (found == NULL)
			return 0;
		w[i > 0] = i > 0 && differ ? w[1] : found;
		differ |= w[0]->mark != found->mark;
	}
	p->joined += at >= 0 && !differ;
	if (!differ)
		return 0;
	p->unlike++;
	if (p->unlike == 1) {
		p->reduction = c;
		p->weight[0] = w[0];
		p->weight[1] = w[1];
	}
	return 0;
}

/* One weight, or all of them, are not what they should be; or some are joined that are others. */
static int
say_unlike(struct parting *p, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->reduction;
	const struct acc_replica_seen *const *w = p->weight;
	if (p->unlike == 0)
		return 0;
	if (p->unlike == 1 || p->joined == 0)
		return blame(p, w[1]->line,
			SAY(p,
				"is a weight that is not the same on rank %lld and on rank %lld, which join its"
				" gradients",
				(long long)t->call[w[0]->call].k->rank,
				(long long)t->call[w[1]->call].k->rank),
			1, 0, e);
	const char *a = name_of(t, w[0]->line, e),
		   *b = a == NULL ? NULL : name_of(t, w[1]->line, e);
	for (uint32_t j = 0; j < c->n && b != NULL; j++)
		if (t->seen[c->first + j].out && t->seen[c->first + j].n > 1)
			return blame(p, t->seen[c->first + j].line,
				SAY(p,
					"joins the gradients of weights that are not the same: that of"
					" %s on rank %lld, of %s on rank %lld: is it the right group?",
					a, (long long)t->call[w[0]->call].k->rank, b,
					(long long)t->call[w[1]->call].k->rank),
				1, 0, e);
	return b == NULL ? ACC_ENOMEM : 0;
}

/* Was this tensor, on its rank, made from a weight that is not the same on all? */
static bool
from_shard(const struct parting *p, const struct acc_seen_call *maker)
{
	const struct acc_replicas *t = p->t;
	for (uint32_t j = 0; j < maker->n; j++) {
		const struct acc_replica_seen *s = &t->seen[maker->first + j];
		const struct acc_seen_call *other = acc_replicas_call(t, maker->k->step,
			p->g->rank[p->g->n - 1], maker->k->key);
		if (s->weight && other != NULL && other->n == maker->n &&
			t->seen[other->first + j].mark != s->mark)
			return true;
	}
	return false;
}

static const struct acc_seen_call *
maker_of(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	uint32_t i = s->mark == 0 ? ACC_NOID : acc_ids_get(&t->made, acc_seen_id(t, s));
	return i == ACC_NOID || t->seen[i].call >= s->call ? NULL : &t->call[t->seen[i].call];
}

/* A call whose line was alike on all ranks so far is not: was it given what a reduction made, and is
 * now given what parts of a weight made, as they are? */
static int
lost_reduction(struct parting *p, uint32_t sibling, uint32_t j, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->peer[0], *was = &t->call[sibling];
	if (was->n != c->n || t->seen[c->first + j].out)
		return 0;
	const struct acc_seen_call *now = maker_of(t, &t->seen[c->first + j]),
				   *then = maker_of(t, &t->seen[was->first + j]);
	if (now == NULL || then == NULL || now->k->talks || !then->k->talks || !from_shard(p, now))
		return 0;
	const char *a = name_of(t, now->k->line, e),
		   *b = a == NULL ? NULL : name_of(t, then->k->line, e),
		   *d = b == NULL ? NULL : name_of(t, was->k->line, e);
	p->parted = true;
	if (d == NULL)
		return ACC_ENOMEM;
	return blame(p, t->seen[c->first + j].line,
		SAY(p,
			"is another on each rank: it comes from %s and its part of a weight, as it is; at"
			" %s, of the same line, it comes from %s: a reduction is missing",
			a, d, b),
		1, 0, e);
}

/* The line of code that a call is of: its calls have been alike, or have not. */
static int
line_of_code(struct parting *p, struct acc_err *e)
{
	const struct acc_seen_call *c = p->peer[0];
	/* One line may call an operator for several things. */
	uint64_t id[3] = {c->line, c->n, 0};
	for (uint32_t j = 0; j < c->n; j++)
		id[2] += acc_mix(p->t->seen[c->first + j].shape ^ p->t->seen[c->first + j].pos);
	uint64_t *was = acc_map_put(&p->lines, (struct acc_str){(char *)id, sizeof id}, 0);
	enum alike is = EQUAL;
	uint32_t at = 0;
	int rc = 0;
	if (was == NULL)
		return acc_nomem(e);
	if (*was == ACC_NOID) /* dead */
		return 0;
	for (uint32_t j = 0; j < c->n && rc == 0 && is < APART; j++) {
		rc = alike(p, j, &is, e);
		at = j;
	}
	if (rc == 0 && is == APART && *was > 0)
		rc = lost_reduction(p, (uint32_t)*was - 1, at, e);
	*was = is >= APART ? ACC_NOID : (uint64_t)(c - p->t->call) + 1;
	return rc;
}

/* --- a group --- */

/* A weight of the first step. */
static void
weight(struct parting *p, uint32_t j)
{
	if (marked_alike(p, j)) {
		p->equal++;
		return;
	}
	p->differ++;
	const struct acc_replica_seen *s = &p->t->seen[p->peer[odd_one(p, j)]->first + j];
	p->odd = s->weight ? s : p->odd;
}

static int
visit(struct parting *p, struct acc_err *e)
{
	struct acc_replicas *t = p->t;
	const struct acc_seen_call *c = p->peer[0];
	int64_t last = step_before(t, c->k->step);
	bool first = t->nstep > 0 && c->k->step == t->step[0];
	int rc = 0;
	for (uint32_t j = 0; j < c->n && rc == 0; j++) {
		if (!t->seen[c->first + j].leaf)
			continue;
		if (first)
			weight(p, j);
		for (uint32_t i = 1; i < p->g->n && last != INT64_MIN && rc == 0; i++)
			rc = drift(p, last, &t->seen[c->first + j], &t->seen[p->peer[i]->first + j],
				e);
	}
	if (rc < 0 || c->k->backward)
		return rc;
	if (c->k->talks)
		return first ? unlike_weights(p) : 0;
	if (c->info != NULL && c->info->cls == ACC_OP_RANDOM)
		return draws(p, e);
	rc = after_reduction(p, e);
	if (rc == 0 && c->line != 0 && !p->parted && !p->drawn)
		rc = line_of_code(p, e);
	return rc;
}

/* A weight that is another on a rank, where all others are the same on all: nobody holds parts of
 * weights, and it was not handed round. Where what it makes is at once exchanged, it is a part. */
static int
odd_weight(struct parting *p, struct acc_err *e)
{
	const struct acc_seen_call *c = p->odd == NULL ? NULL : &p->t->call[p->odd->call];
	if (p->odd == NULL || p->differ != 1 || p->g->parts || p->equal < LIMIT_REPLICA_WEIGHTS)
		return 0;
	for (uint32_t i = 1; i <= LIMIT_REPLICA_NEXT; i++)
		if (c + i < p->t->call + p->t->f->ncall && c[i].k->rank == c->k->rank &&
			c[i].k->talks)
			return 0;
	return blame(p, p->odd->line,
		SAY(p,
			"is a weight that is another on rank %lld than on the others of its group, where all %llu"
			" other weights are the same",
			(long long)c->k->rank, (unsigned long long)p->equal),
		1, 0, e);
}

/* Which ranks hold the same weights, and are given the same data? */
static void
look(struct acc_replicas *t, struct acc_rank_group *g, const struct acc_seen_call **peer)
{
	const struct parting p = {.t = t, .g = g, .peer = peer};
	for (size_t i = 0; i < t->f->ncall; i++) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->rank != g->rank[0] || c->k->step != t->step[0] || c->k->backward)
			continue;
		if (!acc_replicas_peers(t, g, c, peer)) {
			/* A part of another shape is one, too. */
			for (uint32_t j = 0; j < c->n; j++) {
				g->parts |= t->seen[c->first + j].leaf;
				g->weights_differ |= t->seen[c->first + j].weight;
			}
			continue;
		}
		for (uint32_t j = 0; j < c->n; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			g->weights_differ |= s->weight && !marked_alike(&p, j);
			g->data_differ |= s->data && !marked_alike(&p, j);
		}
	}
}

static int
judge(struct acc_replicas *t, struct acc_rank_group *g, struct acc_err *e)
{
	struct parting p = {.t = t, .g = g, .peer = malloc(g->n * sizeof *p.peer)};
	int rc = p.peer == NULL ? acc_nomem(e) : 0;
	if (rc == 0)
		look(t, g, p.peer);
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++)
		if (t->call[i].k->rank == g->rank[0] &&
			acc_replicas_peers(t, g, &t->call[i], p.peer))
			rc = visit(&p, e);
	if (rc == 0)
		rc = odd_weight(&p, e);
	if (rc == 0)
		rc = say_unlike(&p, e);
	if (rc == 0)
		rc = acc_fleet_divisor(t, g, e);
	acc_map_release(&p.lines);
	free(p.peer);
	return rc;
}

/* Weights that two ranks hold for different calls, as two stages do the embedding. */
static int
tied(struct acc_replicas *t, const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	struct acc_err *e)
{
	const struct acc_fleet_call *ka = t->call[a->call].k, *kb = t->call[b->call].k;
	const int64_t rank[2] = {ka->rank < kb->rank ? ka->rank : kb->rank,
		ka->rank < kb->rank ? kb->rank : ka->rank};
	struct acc_rank_group g = {.rank = rank, .n = 2, .who = acc_fleet_ranks(t->f, rank, 2)};
	struct parting p = {.t = t, .g = &g};
	int rc = g.who == NULL ? acc_nomem(e) : 0;
	for (size_t i = 1; i < t->nstep && rc == 0; i++) {
		const struct acc_replica_seen *x = before(t, a, t->step[i], ka->rank),
					      *y = before(t, b, t->step[i], kb->rank);
		if (x != NULL && y != NULL)
			rc = drift(&p, t->step[i - 1], x, y, e);
	}
	return rc;
}

/* Each with the first one that is like it, if that one's rank has another weight in its place. */
static int
all_tied(struct acc_replicas *t, struct acc_err *e)
{
	struct acc_ids first = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->nseen && rc == 0 && t->nstep > 1; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_fleet_call *k = t->call[s->call].k;
		if (!s->leaf || k->step != t->step[0] || t->call[s->call].norm)
			continue;
		uint32_t was = acc_ids_get(&first, s->mark);
		const struct acc_replica_seen *a = was == ACC_NOID ? NULL : &t->seen[was];
		if (a == NULL)
			rc = acc_ids_put(&first, s->mark, i, false, e);
		else if (t->call[a->call].k->rank != k->rank && t->call[a->call].k->key != k->key)
			rc = tied(t, a, s, e);
	}
	acc_ids_release(&first);
	return rc;
}

int
acc_fleet_replicas(struct acc_fleet *f, struct acc_err *e)
{
	struct acc_replicas t = {.f = f};
	int rc = acc_replicas_read(&t, e);
	for (size_t i = 0; i < t.ngroup && rc == 0; i++)
		rc = judge(&t, &t.group[i], e);
	if (rc == 0)
		rc = all_tied(&t, e);
	acc_replicas_release(&t);
	return rc;
}
