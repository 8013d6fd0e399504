/* What optimizers are given: where ranks have the same weights, they have the same gradients of them by then. */
#include "acc/say.h"
#include "replay/limits.h"
#include "ranks/asked.h"

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

int
acc_seen_lists(struct acc_replicas *t, const struct acc_seen_call *c,
	struct acc_optimizer_lists *out, struct acc_err *e)
{
	*out = (struct acc_optimizer_lists){.n = {0, 0}};
	for (uint32_t i = c->first; i < c->first + c->n && !t->seen[i].out; i++) {
		struct acc_rec *r;
		int rc = t->f->get(t->f->arg, t->seen[i].line, &r, e);
		struct acc_str pos = rc < 0 ? acc_str("") : acc_get_text(r, "", "pos");
		if (rc < 0)
			return rc;
		const int k = acc_str_starts(pos, "0.") ? 0 : acc_str_starts(pos, "1.") ? 1 : -1;
		if (k < 0)
			continue;
		out->first[k] = out->n[k]++ == 0 ? i : out->first[k];
	}
	bool same = out->n[0] > 0 && out->n[0] == out->n[1] &&
		    out->first[0] + out->n[0] == out->first[1];
	for (uint32_t k = 0; k < out->n[0] && same; k++)
		same = t->seen[out->first[0] + k].shape == t->seen[out->first[1] + k].shape;
	return same;
}

/* The backward call's output that a gradient is, if it is given to no reduction; NULL. */
static const struct acc_replica_seen *
left(const struct acc_replicas *t, const struct acc_replica_seen *d)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, d);
	const struct acc_seen_call *maker = acc_seen_caller(t, made);
	return maker != NULL && maker->k->backward && !acc_seen_given(t, made) ? made : NULL;
}

struct pair { /* of two ranks */
	int64_t rank[2];
	uint64_t alike, apart, parts; /* gradients; weights that are not the same, as parts are */
	const struct acc_replica_seen
		*odd[2]; /* the first gradients that are not the same, of one weight */
	const struct acc_replica_seen
		*left;                  /* the first of these that no reduction is given; NULL */
	const struct acc_seen_call *by; /* what is given these, on the first rank */
};

static int
compare(struct acc_replicas *t, struct pair *p, const struct acc_seen_call *by,
	const struct acc_replica_seen *const w[2], const struct acc_replica_seen *const d[2],
	struct acc_err *e)
{
	enum acc_alike is = ACC_EQUAL;
	bool flat[2] = {false, false};
	p->parts += w[0]->mark != w[1]->mark && w[0]->mark != 0 && w[1]->mark != 0;
	if (w[0]->mark == 0 || w[0]->mark != w[1]->mark || d[0]->mark == 0 || d[1]->mark == 0)
		return 0;
	int rc = acc_replicas_flat(t, d[0], &flat[0], e);
	if (rc == 0)
		rc = acc_replicas_flat(t, d[1], &flat[1], e);
	if (rc == 0)
		rc = acc_seen_alike(t, d[0], d[1], &is, e);
	if (rc < 0)
		return rc;
	p->alike += is < ACC_APART && !flat[0] && d[0]->n > 1;
	if (is != ACC_APART || (d[0]->n > 1 && (flat[0] || flat[1])))
		return 0;
	if (p->left == NULL && (p->left = left(t, d[0])) != NULL && p->apart > 0)
		p->by = by;
	if (p->apart++ == 0) {
		p->odd[0] = d[0];
		p->odd[1] = d[1];
		p->by = by;
	}
	return 0;
}

/* What an op call behind the backward pass, that changes a weight in its place, adds to it: the other operand of its shape.
 * NULL. */
static const struct acc_replica_seen *
added(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_replica_seen *w = c->n == 0 ? NULL : &t->seen[c->first], *d = NULL;
	if (w == NULL || !c->in_place || !c->behind || c->k->backward || c->k->talks || w->out ||
		!w->wants)
		return NULL;
	for (uint32_t j = c->first + 1; j < c->first + c->n; j++)
		d = d == NULL && !t->seen[j].out && !t->seen[j].wants &&
				    t->seen[j].shape == w->shape
			    ? &t->seen[j]
			    : d;
	return d;
}

/* The weights that a step of an optimizer, or of a loop by hand, changes on two ranks. */
static int
compare_calls(struct acc_replicas *t, struct pair *p, const struct acc_seen_call *a,
	const struct acc_seen_call *b, struct acc_err *e)
{
	const struct acc_replica_seen *d[2] = {added(t, a), added(t, b)}, *w[2];
	struct acc_optimizer_lists l[2] = {{.n = {0, 0}}, {.n = {0, 0}}};
	int rc = a->optimizer ? acc_seen_lists(t, a, &l[0], e) : 0;
	if (rc == 1)
		rc = acc_seen_lists(t, b, &l[1], e);
	if (rc < 0 || (l[0].n[0] > 0 && (rc == 0 || l[0].n[0] != l[1].n[0])))
		return rc < 0 ? rc : 0;
	const uint32_t n = l[0].n[0];
	rc = 0;
	for (uint32_t k = 0; k < n && rc == 0; k++) {
		for (int i = 0; i < 2; i++) {
			w[i] = &t->seen[l[i].first[0] + k];
			d[i] = &t->seen[l[i].first[1] + k];
		}
		rc = compare(t, p, a, w, d, e);
	}
	if (n > 0 || d[0] == NULL || d[1] == NULL)
		return rc;
	w[0] = &t->seen[a->first];
	w[1] = &t->seen[b->first];
	return compare(t, p, a, w, d, e);
}

static int
say(struct acc_replicas *t, const struct acc_rank_group *g, const struct pair *p, struct acc_err *e)
{
	const struct acc_replica_seen *made = left(t, p->odd[0]);
	const char *name = acc_replicas_name(t, p->by->k->line, e);
	const long long a = (long long)p->rank[0], b = (long long)p->rank[1];
	if (made != NULL)
		return acc_replicas_blame(t, g, made->line,
			SAY(t,
				"is the gradient of a weight that is the same on ranks %lld and %lld, differs "
				"between them, and was given to no reduction: %s is given it as it is, and %llu "
				"others that are the same on both",
				a, b, name, (unsigned long long)p->alike),
			1, 0, e);
	return acc_replicas_blame(t, g, p->odd[1]->line,
		SAY(t,
			"is a gradient that differs between rank %lld and rank %lld, which have the same "
			"weight, and %llu other gradients",
			b, a, (unsigned long long)p->alike),
		1, 0, e);
}

static int
say_left(struct acc_replicas *t, const struct acc_rank_group *g, const struct pair *p,
	struct acc_err *e)
{
	return acc_replicas_blame(t, g, p->left->line,
		SAY(t,
			"is the gradient of a weight that is the same on ranks %lld and %lld, differs "
			"between them, and was given to no reduction; of %llu other weights these ranks hold "
			"parts, whose gradients are dealt out to them: %s is given it as it is",
			(long long)p->rank[0], (long long)p->rank[1], (unsigned long long)p->parts,
			acc_replicas_name(t, p->by->k->line, e)),
		1, 0, e);
}

int
acc_rule_gradients(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	(void)room;
	for (uint32_t r = 1; r < g->n && t->nstep > 0; r++) {
		struct pair p = {.rank = {g->rank[0], g->rank[r]}};
		for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall; i = t->call[i].next) {
			const struct acc_seen_call *c = &t->call[i], *o;
			if (c->k->step != t->step[0] || !(c->optimizer || added(t, c) != NULL))
				continue;
			o = acc_replicas_call(t, c->k->step, g->rank[r], c->k->key);
			int rc = o == NULL || o->line != c->line ? 0
								 : compare_calls(t, &p, c, o, e);
			if (rc < 0)
				return rc;
		}
		if (p.apart > 0 && p.alike >= LIMIT_REPLICA_SCALED && p.alike > p.apart)
			return say(t, g, &p, e);
		if (p.left != NULL && p.alike == 0 && p.parts >= LIMIT_REPLICA_SCALED &&
			acc_seen_work(t, g) == ACC_WORK_PARTS)
			return say_left(t, g, &p, e);
	}
	return 0;
}
