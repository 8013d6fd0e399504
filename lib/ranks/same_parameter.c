/* What two ranks have in one place is one parameter, or not: by the ranks' roles, as stages of a pipeline have others,
 * and by its values, for op calls are counted, and a rank may leave some out in a step. */
#include "acc/say.h"
#include "ranks/collective.h"
#include "replay/limits.h"
#include "ranks/asked.h"

enum { LEAST_JOINS = 2, NORMS_A_JOIN = 4, MOST_MADE = 64, MOST_CALLS = 256 };

/* --- op calls --- */

/* Is it a weight, or what is made of one, as a part of it is? */
static bool
is_weight(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	return s->weight || (s->place && s->wants && !s->out && s->n > 1 && s->mark != 0 &&
				    !t->call[s->call].k->backward);
}

static const struct acc_replica_seen *
weight_at(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *w)
{
	for (uint32_t j = c == NULL ? 0 : c->first; c != NULL && j < c->first + c->n; j++)
		if (is_weight(t, &t->seen[j]) && t->seen[j].pos == w->pos &&
			t->seen[j].shape == w->shape)
			return &t->seen[j];
	return NULL;
}

struct place {
	int64_t step, rank;
};

static struct place
place_of(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	return (struct place){k->step, k->rank};
}

static bool
is_of(const struct acc_seen_call *c, struct place p)
{
	return c->k->rank == p.rank && c->k->step == p.step;
}

/* Has each weight of a rank's step its like, in the same place, in another rank's or step's? */
static bool
all_there(const struct acc_replicas *t, struct place a, struct place b)
{
	const struct place side[] = {a, b};
	uint64_t n[2] = {0, 0};
	for (int k = 0; k < 2; k++)
		for (size_t i = acc_calls_of(t, side[k].rank); i < t->f->ncall;
			i = t->call[i].next) {
			const struct acc_seen_call *c = &t->call[i];
			for (uint32_t j = c->first; is_of(c, side[k]) && j < c->first + c->n; j++) {
				if (!is_weight(t, &t->seen[j]))
					continue;
				if (k == 0 &&
					weight_at(t,
						acc_replicas_call(t, b.step, b.rank, c->k->key),
						&t->seen[j]) == NULL)
					return false;
				n[k]++;
			}
		}
	return n[0] == n[1];
}

/* --- values --- */

/* Is what a weight is now nearer to another one of the step before, on whatever rank, than to `was`? */
static int
is_another(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, const struct acc_kinship *own, bool *is,
	struct acc_err *e)
{
	int64_t step = place_of(t, was).step;
	int rc = 0;
	*is = false;
	for (size_t i = 0; i < t->f->ncall && rc == 0 && !*is; i++) {
		const struct acc_seen_call *c = &t->call[i];
		for (uint32_t j = c->first;
			c->k->step == step && j < c->first + c->n && rc == 0 && !*is; j++) {
			const struct acc_replica_seen *w = &t->seen[j];
			struct acc_kinship k = {0};
			if ((!w->leaf && !is_weight(t, w)) || w->shape != was->shape ||
				w->mark == was->mark)
				continue;
			rc = acc_replicas_kin(t, now, w, &k, e);
			*is = k.elements ? k.like > own->like
					 : k.statistics && k.apart < own->apart / 2;
		}
	}
	return rc;
}

/* Is it shown that a weight of an op call is another one than that of the same op call in the step before? What
 * begins as one number shows nothing. */
static int
is_other(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, bool *is, struct acc_err *e)
{
	struct acc_kinship k = {0};
	*is = false;
	int rc = now->mark == was->mark ? 0 : acc_replicas_kin(t, now, was, &k, e);
	if (rc < 0 || now->mark == was->mark)
		return rc;
	if (k.elements)
		*is = k.like < LIMIT_REPLICA_KIN;
	else if (k.statistics && k.apart > LIMIT_REPLICA_KIN && now->n >= ACC_KIN_ELEMENTS)
		*is = true;
	else if (k.statistics && k.apart > LIMIT_REPLICA_FEW)
		rc = is_another(t, now, was, &k, is, e);
	return rc;
}

/* Does a rank, in a step, give the same weights to the same op calls as in the one before? */
static int
look_steady(struct acc_replicas *t, struct place now, struct place was, bool *is, struct acc_err *e)
{
	int rc = 0;
	*is = all_there(t, now, was);
	for (size_t i = acc_calls_of(t, now.rank); i < t->f->ncall && rc == 0 && *is;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		for (uint32_t j = c->first; is_of(c, now) && j < c->first + c->n && rc == 0 && *is;
			j++) {
			bool other = false;
			if (!is_weight(t, &t->seen[j]))
				continue;
			rc = is_other(t, &t->seen[j],
				weight_at(t, acc_replicas_call(t, was.step, was.rank, c->k->key),
					&t->seen[j]),
				&other, e);
			*is = !other;
		}
	}
	return rc;
}

/* Of weights in the same places of two ranks: are most the same, that are not one number everywhere? Or are parts
 * joined, layer by layer? */
static int
look_beside(struct acc_replicas *t, struct place a, struct place b, bool *is, struct acc_err *e)
{
	uint64_t alike = 0, apart = 0, norms = 0, joins = 0;
	int rc = 0;
	*is = all_there(t, a, b);
	for (size_t i = acc_calls_of(t, a.rank); i < t->f->ncall && rc == 0 && *is;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (!is_of(c, a) || c->k->backward)
			continue;
		const struct acc_seen_call *d = acc_replicas_call(t, b.step, b.rank, c->k->key);
		joins += c->k->talks && d != NULL && d->members == c->members &&
			 (c->reduces || c->gathers || c->exchanges);
		bool weights = false;
		for (uint32_t j = c->first; j < c->first + c->n && rc == 0; j++) {
			bool flat = false;
			if (!is_weight(t, &t->seen[j]))
				continue;
			weights = true;
			rc = acc_replicas_flat(t, &t->seen[j], &flat, e);
			bool same = weight_at(t, d, &t->seen[j])->mark == t->seen[j].mark;
			alike += same && !flat;
			apart += !same;
		}
		norms += weights && c->norm;
	}
	*is &= alike > apart || (joins >= LEAST_JOINS && joins * NORMS_A_JOIN >= norms);
	return rc;
}

/* The same, once for each two. */
static int
ask(struct acc_replicas *t, struct place a, struct place b,
	int look(struct acc_replicas *, struct place, struct place, bool *, struct acc_err *),
	bool *is, struct acc_err *e)
{
	uint64_t id = acc_seen_place(a.step, a.rank, acc_seen_place(b.step, b.rank, 0));
	uint32_t known = acc_ids_get(&t->roles, id);
	*is = known == 1;
	if (known != ACC_NOID)
		return 0;
	int rc = look(t, a, b, is, e);
	return rc < 0 ? rc : acc_ids_put(&t->roles, id, *is, false, e);
}

/* Where a rank leaves out other op calls in each step, a weight that is much the same as before is known. */
static int
is_known(struct acc_replicas *t, const struct acc_replica_seen *now,
	const struct acc_replica_seen *was, bool *is, struct acc_err *e)
{
	struct acc_kinship k = {0};
	bool another = false;
	*is = now->mark == was->mark;
	int rc = *is ? 0 : acc_replicas_kin(t, now, was, &k, e);
	if (rc == 0 && k.elements && k.like >= LIMIT_REPLICA_KIN) {
		rc = is_another(t, now, was, &k, &another, e);
		*is = rc == 0 && !another;
	}
	return rc;
}

/* The first op call that is given what another one made, and a weight; NULL: communication is, or nothing. */
static const struct acc_seen_call *
next_weight(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	uint64_t made[MOST_MADE];
	uint32_t n = 0;
	for (const struct acc_seen_call *o = c; o < t->call + t->f->ncall && o - c < MOST_CALLS;
		o++) {
		bool given = o == c, weight = false;
		if (!acc_seen_beside(o, c) || o->k->backward)
			continue;
		for (uint32_t i = o->first; i < o->first + o->n; i++) {
			weight |= o != c && t->seen[i].leaf;
			for (uint32_t j = 0; j < n && !t->seen[i].out && !given; j++)
				given = made[j] == t->seen[i].mark;
		}
		if (given && (o->k->talks || weight))
			return o->k->talks ? NULL : o;
		for (uint32_t i = o->first; i < o->first + o->n && given; i++)
			if (t->seen[i].out && t->seen[i].mark != 0 && n < MOST_MADE)
				made[n++] = t->seen[i].mark;
	}
	return NULL;
}

/* Is a norm one of an expert's, though all begin as the same number: of two ranks, given other data, and what it makes
 * to another weight, with no communication in between? */
static int
is_own(struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b,
	bool *is, struct acc_err *e)
{
	const int64_t ranks[2] = {a->k->rank, b->k->rank};
	const struct acc_rank_group g = {.rank = ranks, .n = 2};
	const struct acc_seen_call *two[2] = {a, b}, *next;
	bool apart = false;
	*is = false;
	if (!a->norm || t->scattered || a->n != b->n)
		return 0;
	for (uint32_t j = 0; j < a->n && !apart; j++) {
		const struct acc_replica_seen *s = &t->seen[a->first + j];
		enum acc_alike how = ACC_EQUAL;
		int rc = s->out || s->place || s->n < 2
				 ? 0
				 : acc_replicas_alike(t, &g, two, j, &how, e);
		if (rc < 0)
			return rc;
		apart = how == ACC_APART;
	}
	next = apart ? next_weight(t, a) : NULL;
	b = next == NULL ? NULL : acc_replicas_call(t, next->k->step, ranks[1], next->k->key);
	for (uint32_t j = 0; b != NULL && next->n == b->n && j < next->n; j++)
		*is |= t->seen[next->first + j].leaf &&
		       t->seen[next->first + j].mark != t->seen[b->first + j].mark;
	return 0;
}

int
acc_replicas_one(struct acc_replicas *t, const struct acc_replica_seen *const w[4], bool *is,
	struct acc_err *e)
{
	struct place a = place_of(t, w[0]), a0 = place_of(t, w[1]), b = place_of(t, w[2]),
		     b0 = place_of(t, w[3]);
	const struct acc_seen_call *ca = &t->call[w[1]->call], *cb = &t->call[w[3]->call];
	bool flat = true,
	     beside = t->stage[acc_fleet_index(t->f, a.rank)] ==
		      t->stage[acc_fleet_index(t->f, b.rank)],
	     own = false, steady[2] = {false, false};
	int rc = w[1]->lone ? 0 : acc_replicas_flat(t, w[1], &flat, e);
	*is = false;
	/* Stages that begin with the same random numbers have them for the same operator; a weight that they share is
	 * given to two. */
	if (rc < 0 || (!beside && (flat || ca->k->op == cb->k->op)))
		return rc;
	if (flat)
		rc = ask(t, a0, b0, look_beside, &beside, e);
	if (rc == 0 && flat && beside)
		rc = is_own(t, ca, cb, &own, e);
	if (rc < 0 || (flat && !beside) || own)
		return rc;
	rc = ask(t, a, a0, look_steady, &steady[0], e);
	if (rc == 0)
		rc = ask(t, b, b0, look_steady, &steady[1], e);
	for (int i = 0; i < 4 && rc == 0 && steady[0] && steady[1]; i += 2) {
		bool other = false;
		rc = is_other(t, w[i], w[i + 1], &other, e);
		steady[0] = !other;
	}
	*is = rc == 0 && steady[0] && steady[1];
	if (rc < 0 || *is || flat || ca->norm)
		return rc;
	rc = is_known(t, w[0], w[1], is, e);
	return rc < 0 || !*is ? rc : is_known(t, w[2], w[3], is, e);
}

/* --- what a call is given --- */

int
acc_replicas_moved(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_replica_seen *w, const struct acc_seen_call **room, bool *is,
	struct acc_err *e)
{
	int rc = 0;
	*is = false;
	for (const struct acc_seen_call *c = t->call; c < t->call + w->call && rc == 0 && !*is;
		c++) {
		if (!acc_seen_beside(c, &t->call[w->call]) || c->k->op != t->call[w->call].k->op)
			continue;
		for (uint32_t j = 0; j < c->n && rc == 0 && !*is; j++) {
			const struct acc_replica_seen *s = &t->seen[c->first + j];
			struct acc_kinship k = {0};
			if (!s->leaf || s->pos != w->pos || s->shape != w->shape ||
				!acc_replicas_peers(t, g, c, room) ||
				!acc_replicas_marked(t, g, room, j))
				continue;
			rc = acc_replicas_kin(t, w, s, &k, e);
			*is = k.elements ? k.like >= LIMIT_REPLICA_KIN
					 : k.statistics && k.apart <= LIMIT_REPLICA_KIN;
		}
	}
	return rc;
}

int
acc_replicas_of_whole(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c, const struct acc_seen_call **room, bool *is,
	struct acc_err *e)
{
	bool product = c->info != NULL && (strcmp(c->info->family, "linear") == 0 ||
						  strncmp(c->info->family, "conv", 4) == 0);
	int rc = 0;
	*is = false;
	for (uint32_t j = 0; product && acc_replicas_peers(t, g, c, room) && j < c->n && rc == 0;
		j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		enum acc_alike how = ACC_APART;
		if (s->out || !s->real || s->place || s->n < 2)
			continue;
		rc = acc_replicas_alike(t, g, room, j, &how, e);
		*is |= how < ACC_APART;
	}
	return rc;
}
