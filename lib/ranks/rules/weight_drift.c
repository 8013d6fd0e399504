/* Weights that ranks had alike, and that part from one step to the next. */
#include "acc/say.h"
#include "ranks/account.h"

/* Is the gradient of the weight that of this call alone? Of weights that begin as the same number, as
 * those of norms do, each seems to be all of them. */
static int
is_alone(struct acc_replicas *t, const struct acc_replica_seen *w, bool *is, struct acc_err *e)
{
	*is = acc_ids_get(&t->shared, acc_seen_id(t, w)) == ACC_NOID;
	return *is ? 0 : acc_replicas_flat(t, w, is, e);
}

/* Is it a gradient of another weight, as its shape shows, or something else that is not flat, as buckets are? */
static bool
is_of_other(struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	const int64_t n = (int64_t)s->n;
	const uint64_t id = acc_seen_place(k->step, k->rank, s->shape + 5);
	uint32_t is = acc_ids_get(&t->roles, id);
	if (s->shape != acc_hash(&n, sizeof n))
		return true;
	if (is != ACC_NOID)
		return is;
	is = 0;
	for (size_t i = acc_calls_of(t, k->rank); i < t->f->ncall && !is; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		for (uint32_t j = c->first; j < c->first + c->n && c->k->step == k->step; j++)
			is |= t->seen[j].leaf && t->seen[j].shape == s->shape;
	}
	if (acc_ids_put(&t->roles, id, is, true, NULL) < 0)
		t->lost = ACC_ENOMEM;
	return is;
}

/* Can something of so many elements be in what a reduction is given? */
static bool
may_hold(struct acc_replicas *t, const struct acc_seen_call *c, uint64_t n)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_seen_call *join;
		bool part = s->n == n;
		if (s->out || s->n < 2 || s->n < n)
			continue;
		join = acc_seen_joined(t, s);
		for (uint32_t j = join == NULL ? 0 : join->first;
			join != NULL && j < join->first + join->n; j++)
			part |= !t->seen[j].out && t->seen[j].n == n;
		if (part || (join == NULL && !is_of_other(t, s)))
			return true;
	}
	return false;
}

/* Behind the op call that made a gradient, which is one of several of its weight: can another rank be given their sum? Not
 * where nothing that is communicated with it has as many elements. */
static bool
may_join(struct acc_replicas *t, const struct acc_replica_seen *g, int64_t rank)
{
	const struct acc_seen_call *from = &t->call[g->call];
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && (t->scattered || acc_seen_beside(c, from)); c++) {
		if (!c->k->talks || !acc_seen_beside(c, from))
			continue;
		const bool one = c->sends || c->receives;
		for (uint32_t i = c->first; one && c->behind && i < c->first + c->n; i++)
			if (t->seen[i].n == g->n)
				return true;
		/* What is exchanged or gathered before the last backward call is activations. */
		if (!one && (c->reduces || c->behind) && acc_seen_joins(t, c, c->k->rank, rank) &&
			may_hold(t, c, g->n))
			return true;
	}
	return false;
}

/* A reduction among too few ranks, or others, is given the gradient of a weight that parts. */
static int
say_few(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	const struct acc_seen_call *c, struct acc_err *e)
{
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	return acc_replicas_blame(t, g, out->line,
		acc_say(&t->f->mem,
			"joins the gradient of a weight that rank %lld had alike in step %lld, and not with "
			"that one's, nor does another reduction: the weight diverges, in step %lld at %s; is "
			"it the right group?",
			(long long)t->call[b->call].k->rank, (long long)step,
			(long long)t->call[a->call].k->step, acc_replicas_name(t, a->line, e)),
		1, 0, e);
}

/* What a reduction made is given to no op call of its step, and what it was given is, behind it: the op call; NULL. */
static const struct acc_seen_call *
goes_on_without(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	const struct acc_replica_seen *in = acc_seen_real(t, sum, false),
				      *out = acc_seen_real(t, sum, true);
	const struct acc_seen_call *use = NULL;
	for (const struct acc_seen_call *c = sum + 1;
		in != NULL && out != NULL && c < t->call + t->f->ncall && acc_seen_beside(c, sum);
		c++)
		for (uint32_t i = c->first; i < c->first + c->n; i++) {
			if (t->seen[i].out)
				continue;
			if (t->seen[i].mark == out->mark)
				return NULL;
			use = use == NULL && t->seen[i].mark == in->mark ? c : use;
		}
	return in != NULL && out != NULL && in->mark != out->mark ? use : NULL;
}

/* Is an op call behind it given something of which only the shape was recorded, and that may be what it made? */
static bool
given_unseen(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	const struct acc_replica_seen *out = acc_seen_real(t, sum, true);
	for (const struct acc_seen_call *c = sum + 1; out != NULL && c < t->call + t->f->ncall;
		c++) {
		if (!acc_seen_beside(c, sum))
			break;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (!t->seen[j].out && t->seen[j].mark == 0 && t->seen[j].n == out->n)
				return true;
	}
	return false;
}

/* Such a reduction of a step, which joins two ranks, of as much as a weight; NULL. It is asked of each weight that
 * parts. */
static int
left_aside(struct acc_replicas *t, int64_t step, const struct acc_replica_seen *w, int64_t rank,
	const struct acc_seen_call **out, const struct acc_seen_call **use, struct acc_err *e)
{
	const int64_t own = t->call[w->call].k->rank;
	const uint64_t id = acc_seen_place(step, own, acc_seen_place(step, rank, 2));
	const uint32_t known = acc_ids_get(&t->roles, id);
	*out = *use = NULL;
	for (const struct acc_seen_call *c = t->call;
		c < t->call + t->f->ncall && *use == NULL && known != 0; c++) {
		const struct acc_replica_seen *in;
		if (c->k->step != step || c->k->rank != own || !c->reduces ||
			!acc_seen_joins(t, c, own, rank))
			continue;
		in = acc_seen_real(t, c, false);
		*use = in == NULL || given_unseen(t, c) ? NULL : goes_on_without(t, c);
		*out = *use == NULL ? NULL : c;
	}
	return known == 0 ? 0 : acc_ids_put(&t->roles, id, *out != NULL, true, e);
}

static int
say_unused(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *sum,
	const struct acc_seen_call *use, const char *weight, struct acc_err *e)
{
	return acc_replicas_blame(t, g, acc_seen_real(t, sum, true)->line,
		acc_say(&t->f->mem,
			"is not used: %s behind it is given what went into it instead; is a wait() missing? "
			"the weight of %s diverges",
			acc_replicas_name(t, use->k->line, e), weight),
		1, 0, e);
}

/* Has the other rank the weight of a gradient, too, if it is one? */
static bool
has_weight(const struct acc_replicas *t, const struct acc_replica_seen *g, int64_t rank)
{
	const struct acc_replica_seen *w = g == NULL || g->n < 2 ? NULL : acc_seen_weight(t, g);
	return w == NULL || acc_ids_get(&t->first, acc_seen_place(t->call[g->call].k->step, rank,
							   w->mark)) != ACC_NOID;
}

/* Of all gradients that a reduction, and those of its line among the same ranks, are given, has the other rank the weights,
 * too? Then it is among too few; else it is right for those of parts, and what is whole needs another one. */
static bool
all_elsewhere(const struct acc_replicas *t, const struct acc_seen_call *c, int64_t rank)
{
	const struct acc_seen_call *o = t->scattered ? t->call : c;
	bool all = true;
	while (!t->scattered && o > t->call && acc_seen_beside(o - 1, c))
		o--;
	for (; o < t->call + t->f->ncall && all && (t->scattered || acc_seen_beside(o, c)); o++) {
		if (!acc_seen_beside(o, c) || !o->reduces || o->members != c->members ||
			(o != c && (c->line == 0 || o->line != c->line)))
			continue;
		const struct acc_replica_seen *in = acc_seen_real(t, o, false);
		const struct acc_seen_call *join = in == NULL ? NULL : acc_seen_joined(t, in);
		all = join != NULL || has_weight(t, in, rank);
		for (uint32_t j = join == NULL ? 0 : join->first;
			join != NULL && j < join->first + join->n && all; j++)
			all = t->seen[j].out || has_weight(t, &t->seen[j], rank);
	}
	return all;
}

/* A weight that was alike in `step` and is not any more: what of its gradient is known? a, b: of two
 * ranks now; ga, gb: their gradients then. */
static int
say_drift(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b, double ratio,
	double limit, bool stays, struct acc_err *e)
{
	const struct acc_fleet_call *ka = t->call[a->call].k, *kb = t->call[b->call].k;
	const struct acc_replica_seen *ga = acc_seen_gradient(t, step, ka->rank,
					      acc_seen_before(t, a, step, ka->rank)),
				      *gb = acc_seen_gradient(t, step, kb->rank,
					      acc_seen_before(t, b, step, kb->rank));
	const char *name = acc_replicas_name(t, a->line, e);
	struct acc_distance d = {0};
	int rc = 0;
	if (ga != NULL && gb != NULL && ga->mark != gb->mark)
		rc = acc_replicas_distance(t, gb, ga, &d, e);
	if (rc < 0)
		return rc;
	double near = 0;
	if (d.known)
		rc = acc_replicas_near(t, ga, &near, e);
	if (rc < 0)
		return rc;
	bool differ = d.known && d.d > near * d.size;
	bool alone = false;
	if (differ)
		rc = is_alone(t, acc_seen_before(t, a, step, ka->rank), &alone, e);
	if (rc < 0)
		return rc;
	const struct acc_seen_call *few[2] = {NULL, NULL};
	const bool joined = differ &&
			    (acc_seen_joined_with(t, ga, kb->rank, &few[0]) ||
				    acc_seen_joined_with(t, gb, ka->rank, &few[1]) ||
				    acc_account_joins(t, step,
					    acc_seen_before(t, a, step, ka->rank), kb->rank));
	const bool lost = differ && !stays && !joined &&
			  (alone || !(may_join(t, ga, kb->rank) || may_join(t, gb, ka->rank)));
	bool said = false;
	if (lost)
		rc = ACC_CAUSE(t->f, forward_parts, acc_replicas_spoiled(t, g, ga, name, &said, e));
	if (rc == 0 && !said && !stays && ga != NULL)
		rc = ACC_CAUSE(t->f, weight_update,
			acc_replicas_cause(t, g, acc_seen_before(t, a, step, ka->rank), &said, e));
	if (rc < 0 || said)
		return rc;
	bool wrong = false;
	for (uint32_t i = 0; i < g->n && lost && few[0] != NULL && !wrong; i++)
		wrong = g->rank[i] != ka->rank && has_weight(t, ga, g->rank[i]) &&
			!acc_seen_joins(t, few[0], ka->rank, g->rank[i]) &&
			all_elsewhere(t, few[0], g->rank[i]);
	if (wrong)
		return say_few(t, g, step, a, b, few[0], e);
	const struct acc_replica_seen *part = NULL;
	if (lost)
		rc = acc_replicas_partial(t, acc_seen_before(t, a, step, ka->rank), kb->rank, &part,
			e);
	if (rc < 0)
		return rc;
	const char *since =
		part == NULL
			? ""
			: acc_say(&t->f->mem,
				  "; weights that are the same on these ranks have different gradients since %s",
				  acc_replicas_name(t, part->line, e));
	if (since == NULL)
		return acc_nomem(e);
	if (lost)
		return acc_replicas_blame(t, g, ga->line,
			acc_say(&t->f->mem,
				"is the gradient of a weight that was the same on these ranks in step %lld, differs "
				"between them, and was given to no reduction that joins them: the weight diverges, "
				"in step %lld at %s%s",
				(long long)step, (long long)ka->step, name, since),
			ratio, limit, e);
	const struct acc_seen_call *use = NULL, *aside = NULL;
	if (differ && !stays)
		rc = left_aside(t, step, a, kb->rank, &aside, &use, e);
	if (rc < 0 || aside != NULL)
		return rc < 0 ? rc : say_unused(t, g, aside, use, name, e);
	const struct acc_replica_seen *w = acc_seen_before(t, a, step, ka->rank);
	if (!stays && w != NULL)
		rc = ACC_CAUSE(t->f, optimizer_state,
			acc_replicas_update_apart(t, g, step, w,
				(const struct acc_replica_seen *const[]){a, b}, &said, e));
	if (rc < 0 || said)
		return rc;
	const struct acc_replica_seen *update = stays ? NULL : acc_seen_made_in(t, b, step);
	if (update != NULL && acc_rule_use(t->f, ACC_RULE_weight_update) != ACC_RULE_OFF)
		return ACC_RULE(t->f, weight_update,
			acc_replicas_say_update(t, g, step, a, b, update, ratio, limit, e));
	return acc_replicas_blame(t, g, b->line,
		stays ? acc_say(&t->f->mem,
				b->kept ? "is a weight without a gradient, such as an average, that was the same on these "
					  "ranks in step %lld, and that stayed as it was on rank %lld alone"
					: "is a weight that was the same on these ranks in step %lld, and that stayed as it "
					  "was on rank %lld alone: the step of the optimizer is missing there",
				(long long)step, (long long)kb->rank)
		      : acc_say(&t->f->mem,
				"is a weight that was the same on these ranks in step %lld, and that differs between "
				"rank %lld and rank %lld since step %lld%s",
				(long long)step, (long long)kb->rank, (long long)ka->rank,
				(long long)kb->step,
				ga == NULL || gb == NULL ? ""
				: differ ? ": its gradient was another before its reduction, too"
					 : ": its gradient was the same"),
		ratio, limit, e);
}

int
acc_replicas_drift(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *a, const struct acc_replica_seen *b, struct acc_err *e)
{
	const struct acc_replica_seen *a0 = acc_seen_before(t, a, step, t->call[a->call].k->rank),
				      *b0 = acc_seen_before(t, b, step, t->call[b->call].k->rank);
	double ratio = 0, limit = 0, number = 0;
	bool flat = false, one = false;
	/* Who left its op call out in that step may have it as the others had it. */
	const bool left_out[2] = {
		b0 != NULL && a->mark == b0->mark && (a0 == NULL || a0->mark != a->mark),
		a0 != NULL && b->mark == a0->mark && (b0 == NULL || b0->mark != b->mark)};
	a0 = left_out[0] ? b0 : a0;
	b0 = left_out[1] ? a0 : b0;
	if (a0 == NULL || b0 == NULL || a0->mark != b0->mark || a->mark == b->mark ||
		acc_ids_get(&t->mixed, a0->mark) != ACC_NOID)
		return 0;
	int rc = 0;
	if (left_out[0] || left_out[1])
		rc = acc_replicas_flat(t, a0, &flat, e);
	else if (!a0->lone)
		rc = acc_replicas_constant(t, a0, &flat, e);
	else if ((rc = acc_seen_number(t, a0->line, &number, e)) == 1) {
		flat = number ==
		       0; /* what nobody is seen to have made may be a term of a loss, and none yet */
		rc = 0;
	}
	if (rc < 0 || flat)
		return rc;
	const struct acc_replica_seen *const w[4] = {a, a0, b, b0};
	bool design = false;
	rc = acc_replicas_parted(t, w, g->twins, &ratio, &limit, e);
	if (rc == 0 && ratio > limit)
		rc = acc_replicas_apart_by_design(t, a0, a, t->call[b->call].k->rank, &design, e);
	if (rc == 0 && ratio > limit && !design)
		rc = acc_replicas_own_ways(t, step, a, t->call[b->call].k->rank, &design, e);
	if (rc < 0 || !(ratio > limit) || design)
		return rc;
	rc = acc_replicas_one(t, w, &one, e);
	if (rc < 0 || !one)
		return rc;
	/* On one of them nothing happened. */
	if (a->mark == a0->mark)
		return say_drift(t, g, step, b, a, ratio, limit, true, e);
	return say_drift(t, g, step, a, b, ratio, limit, b->mark == b0->mark, e);
}
