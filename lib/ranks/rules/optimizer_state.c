/* Why a weight parts whose gradient is the same on all ranks: its update is given a state, or a number, that is another on
 * one of them. */
#include "acc/say.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct inputs { /* of the same op call on two ranks */
	const struct acc_replica_seen
		*own; /* what is not the same, and nobody made in this step; NULL: none */
	bool alike, apart,
		lacks; /* some are the same; some are made otherwise; the other rank has no such */
};

static const struct acc_replica_seen *
at_place(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *s)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].pos == s->pos && t->seen[i].out == s->out)
			return &t->seen[i];
	return NULL;
}

/* From before the step, or read then, or one number everywhere, as a state begins. */
static int
brought(struct acc_replicas *t, const struct acc_replica_seen *s, bool *is, struct acc_err *e)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	*is = c == NULL || (c->raw && !c->behind && !c->k->talks);
	return *is || c->behind || c->k->talks ? 0 : acc_replicas_flat(t, s, is, e);
}

/* The second list of what an optimizer of torch is given are gradients. */
static int
is_gradient(struct acc_replicas *t, const struct acc_seen_call *c, const struct acc_replica_seen *s,
	bool *is, struct acc_err *e)
{
	struct acc_rec *r;
	*is = false;
	int rc = c->optimizer ? t->f->get(t->f->arg, s->line, &r, e) : 0;
	if (rc == 0 && c->optimizer)
		*is = acc_str_starts(acc_get_text(r, "", "pos"), "1.");
	return rc;
}

static int
compare(struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b,
	struct inputs *out, struct acc_err *e)
{
	*out = (struct inputs){.own = NULL};
	for (uint32_t j = 0; j < a->n; j++) {
		const struct acc_replica_seen *x = &t->seen[a->first + j], *y = at_place(t, b, x);
		enum acc_alike is = ACC_EQUAL;
		if (x->out || !x->real)
			continue;
		int rc = y == NULL || y->n != x->n ? 0 : acc_seen_alike(t, x, y, &is, e);
		if (rc < 0)
			return rc;
		if (y != NULL && y->n == x->n && is < ACC_APART) {
			out->alike |= x->n > 1;
			continue;
		}
		bool own = false, other = true, gradient = false;
		rc = is_gradient(t, a, x, &gradient, e);
		if (rc == 0 && !gradient)
			rc = brought(t, x, &own, e);
		if (rc == 0 && own && y != NULL)
			rc = brought(t, y, &other, e);
		out->apart = !own || !other;
		if (rc < 0 || out->apart)
			return rc;
		out->lacks |= out->own == NULL && y == NULL;
		out->own = out->own == NULL ? x : out->own;
	}
	return 0;
}

/* Is the output, of as many elements as the weight, another? */
static int
differs(struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b,
	uint64_t n, const struct acc_replica_seen **out, struct acc_err *e)
{
	*out = NULL;
	for (uint32_t j = 0; a->n == b->n && j < a->n; j++) {
		const struct acc_replica_seen *x = &t->seen[a->first + j];
		enum acc_alike is = ACC_EQUAL;
		if (!x->out || !x->real || x->n != n)
			continue;
		int rc = acc_seen_alike(t, x, &t->seen[b->first + j], &is, e);
		if (rc < 0 || is == ACC_APART) {
			*out = &t->seen[b->first + j];
			return rc;
		}
	}
	return 0;
}

/* Who does the step of an optimizer: an op call behind the backward pass, on both ranks. NULL: it is none. */
static const struct acc_seen_call *
peer_of(const struct acc_replicas *t, const struct acc_seen_call *c, int64_t step,
	const int64_t rank[2])
{
	const struct acc_seen_call *p;
	if (c->k->step != step || c->k->rank != rank[0] || !c->behind || c->k->backward ||
		c->k->talks || acc_seen_real(t, c, true) == NULL)
		return NULL;
	p = acc_replicas_call(t, step, rank[1], c->k->key);
	return p == NULL || p->line != c->line ? NULL : p;
}

/* What is said of an op call: at `own`, a state that is not the same or that one rank lacks, or at `out`, what is made with
 * another number. */
struct reason {
	const struct acc_replica_seen *own, *out;
	bool lacks;
};

static int
reason_of(struct acc_replicas *t, const struct acc_seen_call *a, const struct acc_seen_call *b,
	uint64_t n, struct reason *why, struct acc_err *e)
{
	struct inputs in[2] = {{.apart = true}, {.apart = true}};
	int rc = compare(t, a, b, &in[0], e);
	*why = (struct reason){.own = NULL};
	if (rc == 0 && !in[0].apart)
		rc = compare(t, b, a, &in[1], e);
	if (rc < 0 || in[0].apart || in[1].apart)
		return rc;
	/* A state that is scaled in its place before a gradient is added is given alone. */
	if (!in[0].alike && (in[1].own == NULL || in[1].own->n != n || !b->in_place))
		return 0;
	why->lacks = in[0].lacks || in[1].lacks;
	why->own = in[0].lacks ? in[0].own : in[1].own;
	return why->own != NULL || a->switches == b->switches ? 0
							      : differs(t, a, b, n, &why->out, e);
}

/* A step of an optimizer that one rank takes and the other one does not, by the line that it is called from; NULL. */
static const struct acc_seen_call *
one_more(const struct acc_replicas *t, int64_t step, int64_t has, int64_t lacks)
{
	for (size_t i = acc_calls_of(t, has); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		uint32_t n[2] = {0, 0};
		if (c->k->step != step || !c->optimizer || c->line == 0)
			continue;
		for (int r = 0; r < 2; r++)
			for (size_t k = acc_calls_of(t, r ? lacks : has); k < t->f->ncall;
				k = t->call[k].next)
				n[r] += t->call[k].line == c->line && t->call[k].k->step == step;
		if (n[0] > n[1])
			return c;
	}
	return NULL;
}

/* What made the weight as it is now, behind the backward pass of this step or before it is used, where the other rank has no
 * call of that line. NULL. */
static const struct acc_replica_seen *
made_alone(const struct acc_replicas *t, int64_t step, const struct acc_replica_seen *now,
	int64_t other)
{
	const struct acc_fleet_call *k = t->call[now->call].k;
	const struct acc_replica_seen *made = acc_seen_maker(t, now);
	const uint32_t i = now->mark == 0 || made != NULL
				   ? ACC_NOID
				   : acc_ids_get(&t->made,
					     acc_seen_place(step, k->rank, now->mark));
	const struct acc_seen_call *c = acc_seen_caller(t, i == ACC_NOID ? made : &t->seen[i]);
	bool alone = c != NULL && !c->k->backward && !c->k->talks && c->line != 0 &&
		     (c->behind || made != NULL);
	for (size_t j = acc_calls_of(t, other); j < t->f->ncall && alone; j = t->call[j].next)
		alone = t->call[j].line != c->line || t->call[j].k->step != c->k->step;
	return !alone ? NULL : i == ACC_NOID ? made : &t->seen[i];
}

int
acc_replicas_update_apart(struct acc_replicas *t, const struct acc_rank_group *g, int64_t step,
	const struct acc_replica_seen *w, const struct acc_replica_seen *const now[2], bool *said,
	struct acc_err *e)
{
	const int64_t rank[2] = {t->call[now[0]->call].k->rank, t->call[now[1]->call].k->rank};
	const uint64_t id = acc_seen_place(step, rank[0], acc_seen_place(step, rank[1], w->n + 4));
	struct reason why = {.own = NULL};
	const char *said_alone = NULL;
	int rc = 0;
	const uint32_t known = acc_ids_get(&t->roles, id); /* asked of each weight that parts */
	*said = known == 1;
	if (known != ACC_NOID)
		return 0;
	const struct acc_replica_seen *alone = NULL;
	for (int i = 0; i < 4 && alone == NULL; i++) {
		const int k =
			i % 2; /* a step that one of them takes, before what else one of them has */
		const struct acc_seen_call *more = i < 2 ? one_more(t, step, rank[k], rank[!k])
							 : NULL;
		alone = more != NULL ? acc_seen_real(t, more, true)
			: i < 2      ? NULL
				     : made_alone(t, step, now[k], rank[!k]);
		if (alone != NULL)
			said_alone =
				i < 2 ? SAY(t,
						"is of a step of the optimizer that rank %lld takes and rank %lld does not: the "
						"weight of %s diverges",
						(long long)rank[k], (long long)rank[!k],
						acc_replicas_name(t, w->line, e))
				      : SAY(t,
						"becomes the weight of %s, and rank %lld has no call of this line: the weight "
						"diverges",
						acc_replicas_name(t, now[k]->line, e),
						(long long)rank[!k]);
	}
	if (alone != NULL) {
		*said = true;
		rc = acc_ids_put(&t->roles, id, 1, true, e);
		return rc < 0 ? rc : acc_replicas_blame(t, g, alone->line, said_alone, 1, 0, e);
	}
	for (size_t i = 0; i < t->f->ncall && rc == 0 && why.own == NULL && why.out == NULL; i++) {
		const struct acc_seen_call *p = peer_of(t, &t->call[i], step, rank);
		rc = p == NULL ? 0 : reason_of(t, &t->call[i], p, w->n, &why, e);
	}
	*said = rc == 0 && (why.own != NULL || why.out != NULL);
	if (rc == 0)
		rc = acc_ids_put(&t->roles, id, *said, true, e);
	if (rc < 0 || !*said)
		return rc;
	const struct acc_replica_seen *at = why.own == NULL ? why.out : why.own;
	const int64_t here = t->call[at->call].k->rank, there = rank[here == rank[0]];
	const char *name = acc_replicas_name(t, w->line, e);
	return acc_replicas_blame(t, g, at->line,
		why.own == NULL
			? SAY(t,
				  "is made with different numbers on rank %lld and rank %lld, of what is the same on "
				  "both: the weight of %s diverges",
				  (long long)here, (long long)there, name)
		: at->n == 1
			? SAY(t,
				  "is a number that differs between rank %lld and rank %lld, while their weights and "
				  "gradients are the same: the weight of %s diverges",
				  (long long)here, (long long)there, name)
			: SAY(t,
				  why.lacks
					  ? "is a state that rank %lld has and rank %lld has not, while their weights and "
					    "gradients are the same: the weight of %s diverges"
					  : "is a state that differs between rank %lld and rank %lld, while their weights and "
					    "gradients are the same: the weight of %s diverges",
				  (long long)here, (long long)there, name),
		1, 0, e);
}
