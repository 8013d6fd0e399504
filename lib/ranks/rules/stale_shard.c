/* What a step leaves for the next one: parts of weights that are gathered before their step is done, so that the next one
 * begins with what they were; what an optimizer keeps, and one rank alone has lost. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* --- gathered too early --- */

/* The part that a rank gives to be gathered: what is filled is larger. */
static const struct acc_replica_seen *
part_of(const struct acc_replicas *t, const struct acc_seen_call *c, bool whole)
{
	const struct acc_replica_seen *s = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out == whole && t->seen[i].real && t->seen[i].mark != 0 &&
			(s == NULL || (whole ? t->seen[i].n > s->n : t->seen[i].n < s->n)))
			s = &t->seen[i];
	return s;
}

/* The op call behind it that changes the part in its place; NULL. */
static const struct acc_seen_call *
changed_by(const struct acc_replicas *t, const struct acc_seen_call *gather,
	const struct acc_replica_seen *part)
{
	for (const struct acc_seen_call *c = gather + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, gather); c++) {
		const struct acc_replica_seen *in = acc_seen_real(t, c, false),
					      *out = acc_seen_real(t, c, true);
		if (!c->k->talks && in != NULL && out != NULL && in->mark == part->mark &&
			in->pos == out->pos && in->shape == out->shape && in->mark != out->mark)
			return c;
	}
	return NULL;
}

/* Does the next step begin with it? */
static bool
is_taken(const struct acc_replicas *t, const struct acc_seen_call *gather,
	const struct acc_replica_seen *whole, int64_t step)
{
	for (size_t i = acc_calls_of(t, gather->k->rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != step || c->k->talks)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++)
			if (!t->seen[j].out && t->seen[j].mark == whole->mark &&
				acc_seen_maker(t, &t->seen[j]) == NULL)
				return true;
	}
	return false;
}

static int
early(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	int64_t next, bool *said, struct acc_err *e)
{
	const struct acc_replica_seen *part = part_of(t, c, false), *whole = part_of(t, c, true);
	const struct acc_seen_call *by = part == NULL || whole == NULL || whole->n <= part->n
						 ? NULL
						 : changed_by(t, c, part);
	bool flat = true;
	int rc = by == NULL || !is_taken(t, c, whole, next) ? 0
							    : acc_replicas_flat(t, part, &flat, e);
	*said = rc == 0 && !flat;
	return !*said ? rc
		      : acc_replicas_blame(t, g, whole->line,
				SAY(t,
					"gathers parts of a weight that %s changes after that, and the next step begins with"
					" what was gathered: it is a step behind",
					acc_replicas_name(t, by->k->line, e)),
				1, 0, e);
}

/* --- lost --- */

/* What an op call changes in its place. */
static const struct acc_replica_seen *
kept_by(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *in = acc_seen_real(t, c, false),
				      *out = acc_seen_real(t, c, true);
	return in == NULL || out == NULL || in->pos != out->pos || in->shape != out->shape ||
			       in->wants || in->mark == 0
		       ? NULL
		       : in;
}

/* What the step before left for it, as on a rank that goes on with what `made` put out there; NULL. */
static const struct acc_replica_seen *
left_for(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *made, int64_t before)
{
	const struct acc_seen_call *by = &t->call[made->call],
				   *own = acc_replicas_call(t, before, c->k->rank, by->k->key);
	const uint32_t j = (uint32_t)(made - t->seen) - by->first;
	return own == NULL || own->n != by->n || !t->seen[own->first + j].out ||
			       t->seen[own->first + j].pos != made->pos
		       ? NULL
		       : &t->seen[own->first + j];
}

/* Was it another op call, on some ranks, that made what these begin with in the step before? */
static bool
others_made(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, int64_t before)
{
	uint64_t by = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_replica_seen *s = kept_by(t, peer[i]);
		const uint32_t at = s == NULL ? ACC_NOID
					      : acc_ids_get(&t->made,
							acc_seen_place(before, peer[i]->k->rank,
								s->mark));
		const uint64_t key = at == ACC_NOID ? 0 : t->call[t->seen[at].call].k->key;
		if (i > 0 && key != by)
			return true;
		by = key;
	}
	return false;
}

/* One rank alone begins with one number everywhere, where all others go on with what they left; or goes on, where all
 * others begin so. */
static int
lost(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	int64_t before, const struct acc_seen_call **peer, bool *said, struct acc_err *e)
{
	const struct acc_replica_seen *anew[2] = {NULL, NULL}, *kept[2] = {NULL, NULL},
				      *made = NULL, *odd, *left;
	uint32_t n = 0;
	bool flat = true;
	if (kept_by(t, c) == NULL || !acc_replicas_peers(t, g, c, peer) ||
		!others_made(t, g, peer, before))
		return 0;
	for (uint32_t i = 0; i < g->n; i++) {
		const struct acc_replica_seen *s = kept_by(t, peer[i]);
		int rc = s == NULL ? 0 : acc_replicas_flat(t, s, &flat, e);
		const uint32_t by = rc < 0 || s == NULL || flat
					    ? ACC_NOID
					    : acc_ids_get(&t->made,
						      acc_seen_place(before, peer[i]->k->rank,
							      s->mark));
		if (rc < 0 || s == NULL || (!flat && by == ACC_NOID))
			return rc;
		const struct acc_replica_seen **of = flat ? anew : kept;
		of[of[0] != NULL] = s;
		n += flat;
		made = flat ? made : &t->seen[by];
	}
	if (made == NULL || n == 0 || (n > 1 && n + 1 < g->n))
		return 0;
	/* Of two ranks nobody knows which is right: what begins anew on one is lost. */
	odd = n == 1 ? anew[0] : kept[0];
	left = left_for(t, &t->call[anew[0]->call], made, before);
	flat = true;
	int rc = left == NULL ? 0 : acc_replicas_flat(t, left, &flat, e);
	*said = rc == 0 && !flat;
	if (!*said)
		return rc;
	const long long rank = t->call[odd->call].k->rank;
	return acc_replicas_blame(t, g, odd->line,
		n == 1 ? SAY(t,
				 "is one number everywhere on rank %lld, where all other ranks go on with what the step"
				 " before left: what is kept from step to step is lost there",
				 rank)
		       : SAY(t,
				 "is what the step before left on rank %lld, where it is one number everywhere on all"
				 " other ranks: it was not begun anew there",
				 rank),
		1, 0, e);
}

/* The place of a step among all, which rise. */
static size_t
place_of(const struct acc_replicas *t, int64_t step)
{
	size_t low = 0, high = t->nstep;
	while (high - low > 1) {
		const size_t mid = (low + high) / 2;
		*(t->step[mid] <= step ? &low : &high) = mid;
	}
	return low;
}

int
acc_rule_kept(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	bool said = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0 && !said;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->backward)
			continue;
		const size_t s = place_of(t, c->k->step);
		if (c->k->talks) {
			if (c->behind && c->gathers && s + 1 < t->nstep && acc_seen_among(t, c, g))
				rc = early(t, g, c, t->step[s + 1], &said, e);
		} else if (s > 0 && g->n == t->f->nrank && acc_seen_backward(t, c) == NULL) {
			rc = lost(t, g, c, t->step[s - 1], room, &said, e);
		}
	}
	return rc;
}
