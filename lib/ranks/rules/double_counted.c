/* What is whole, the same on all ranks, where communication takes what it is given for a part: it stands there as often
 * as there are ranks. */
#include "acc/say.h"
#include "ranks/asked.h"

#include <math.h>

enum { FEW_ELEMENTS = 4 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Is it the same on all ranks, and not one number? */
static int
is_whole(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_replica_seen *s, const struct acc_seen_call **peer, bool *is,
	struct acc_err *e)
{
	bool flat = true;
	*is = false;
	if (s->n < FEW_ELEMENTS || s->mark == 0 || !acc_replicas_peers(t, g, c, peer))
		return 0;
	int rc = acc_replicas_same(t, g, peer, (uint32_t)(s - t->seen) - c->first, is, e);
	if (rc == 0 && *is)
		rc = acc_replicas_flat(t, s, &flat, e);
	*is &= !flat;
	return rc;
}

/* Are they whole numbers, as counts are, which ranks may have alike by chance? */
static int
is_count(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	struct acc_rec *r;
	double ends[2];
	bool known = true;
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	if (rc < 0)
		return rc;
	*is = !acc_as_f64(acc_get(r, "", "stat.max"), &ends[0]) ||
	      !acc_as_f64(acc_get(r, "", "stat.min"), &ends[1]) ||
	      (ends[0] == rint(ends[0]) && ends[1] == rint(ends[1]));
	for (uint64_t at = 0; at < s->n && rc == 0 && *is && known; at += ACC_CHUNK) {
		const size_t n = s->n - at < ACC_CHUNK ? (size_t)(s->n - at) : ACC_CHUNK;
		rc = acc_seen_elements(t, s, at, n, t->a, &known, e);
		for (size_t i = 0; i < n && rc == 0 && known && *is; i++)
			*is = t->a[i] == rint(t->a[i]);
	}
	return rc;
}

static int
summed(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	bool backward, const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *in = acc_seen_real(t, c, false),
				      *out = acc_seen_real(t, c, true);
	bool whole = false;
	if (c->average || c->picks || c->scatters || in == NULL || out == NULL)
		return 0;
	const struct acc_replica_seen *made = acc_seen_maker(t, in);
	int rc = made == NULL || t->call[made->call].k->talks
			 ? 0
			 : is_whole(t, g, c, in, peer, &whole, e);
	bool counts = false;
	if (rc == 0 && whole)
		rc = is_count(t, in, &counts, e);
	if (rc < 0 || !whole || counts)
		return rc;
	const uint32_t next = out->mark == 0 ? ACC_NOID
					     : acc_ids_get(&t->scaled, acc_seen_id(t, out));
	if (next != ACC_NOID &&
		next <= out->call) /* the same numbers as before: what scales these is not known */
		return 0;
	rc = acc_seen_shared_out(t, g, &t->call[made->call], e);
	if (rc == 0 && next != ACC_NOID)
		rc = acc_seen_shared_out(t, g, &t->call[next], e);
	if (rc == 0 && backward)
		return acc_fleet_doubts(t->f, out->line,
			SAY(t,
				"sums up gradients that %s made, which are the same on all ranks, and goes on with"
				" the sum: it is %u times too large, unless the loss makes up for that",
				acc_replicas_name(t, made->line, e), g->n),
			e);
	return rc != 0 ? (rc < 0 ? rc : 0)
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "sums up what %s made, which is whole, the same on all ranks: it is %u times"
					 " too large",
					 acc_replicas_name(t, made->line, e), g->n),
				 1, 0, e);
}

/* What is gathered, if an op call made it: what is filled is no smaller. */
static const struct acc_replica_seen *
gathered(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *part = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		if (!s->out && s->real && acc_seen_maker(t, s) != NULL &&
			(part == NULL || s->n < part->n))
			part = s;
	}
	return part;
}

/* Of what is joined to a part that is gathered: something whole, beside what is another on each rank. */
static int
joined_whole(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, const struct acc_replica_seen **out, struct acc_err *e)
{
	bool apart = false;
	*out = NULL;
	if (c->info == NULL || c->info->cls != ACC_OP_MOVE || c->k->talks || c->k->backward)
		return 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		bool whole = false;
		if (s->out || !s->real || s->n < FEW_ELEMENTS)
			continue;
		int rc = is_whole(t, g, c, s, peer, &whole, e);
		if (rc < 0)
			return rc;
		*out = whole && acc_seen_maker(t, s) != NULL ? s : *out;
		apart |= !whole;
	}
	*out = apart ? *out : NULL;
	return 0;
}

static int
taken_for_part(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *part = gathered(t, c), *out = acc_seen_real(t, c, true),
				      *whole;
	const struct acc_replica_seen *made = part == NULL ? NULL : acc_seen_maker(t, part);
	if (made == NULL || out == NULL || t->call[made->call].k->talks)
		return 0;
	int rc = joined_whole(t, g, &t->call[made->call], peer, &whole, e);
	return rc < 0 || whole == NULL
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "gathers what %s joined to each rank's part, and what %s made of that is whole,"
					 " the same on all ranks: it stands there %u times",
					 acc_replicas_name(t, made->line, e),
					 acc_replicas_name(t, acc_seen_maker(t, whole)->line, e),
					 g->n),
				 1, 0, e);
}

/* Is it there to be filled? */
static bool
is_filled(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *s)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].pos == s->pos)
			return t->seen[i].mark != s->mark;
	return false;
}

/* Is all that is exchanged whole, and made by op calls: what wants a gradient may be a piece that no record shows? */
static int
sent_whole(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, bool *is, struct acc_err *e)
{
	*is = false;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		if (s->out || is_filled(t, c, s))
			continue;
		const struct acc_seen_call *made = acc_seen_caller(t, acc_seen_maker(t, s));
		bool own = made == NULL ? s->wants : !made->k->talks;
		int rc = own ? is_whole(t, g, c, s, peer, &own, e) : 0;
		*is = own;
		if (rc < 0 || !own)
			return rc;
	}
	return 0;
}

static int
exchanged(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	bool whole = false;
	int rc = out == NULL ? 0 : sent_whole(t, g, c, peer, &whole, e);
	return rc < 0 || !whole
		       ? rc
		       : acc_replicas_blame(t, g, out->line,
				 SAY(t,
					 "exchanges what is whole, the same on all ranks: each is sent the same by all %u"
					 " of them",
					 g->n),
				 1, 0, e);
}

/* Is what a reduction made given to a backward call behind it? */
static bool
goes_on(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *out = acc_seen_real(t, c, true);
	const uint32_t next = out == NULL || out->mark == 0
				      ? ACC_NOID
				      : acc_ids_get(&t->entered, acc_seen_id(t, out));
	return next != ACC_NOID && t->seen[next].call > out->call;
}

int
acc_rule_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	bool backward = false;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && t->nstep > 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		if (!c->k->talks || c->hands_round || !acc_seen_among(t, c, g) ||
			(backward && (!c->reduces || !goes_on(t, c))))
			continue;
		rc = c->reduces     ? summed(t, g, c, backward, room, e)
		     : c->gathers   ? taken_for_part(t, g, c, room, e)
		     : c->exchanges ? exchanged(t, g, c, room, e)
				    : 0;
	}
	return rc;
}
