/* Gradients that are brought to fewer numbers before they are summed up over the ranks: by one factor on all of them, for
 * a sum of products is that of the sum only then. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_NODES = 32 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct way { /* the op calls that something is made by */
	const struct acc_seen_call *call[MOST_NODES];
	unsigned n;
	bool lost; /* there are more */
};

static void
add_maker(struct way *w, const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_seen_call *c = acc_seen_caller(t, acc_seen_maker(t, s));
	bool known = c == NULL;
	for (unsigned i = 0; i < w->n && !known; i++)
		known = w->call[i] == c;
	w->lost |= !known && w->n == MOST_NODES;
	if (!known && w->n < MOST_NODES)
		w->call[w->n++] = c;
}

/* Is it the gradient of a weight, as it was made, or with something added, scaled or moved? */
static bool
is_gradient(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	struct way w = {.n = 0};
	add_maker(&w, t, s);
	for (unsigned i = 0; i < w.n; i++) {
		const struct acc_seen_call *c = w.call[i];
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			const struct acc_replica_seen *x = &t->seen[j];
			const struct acc_replica_seen *in = c->k->backward && x->out
								    ? acc_seen_input(t, x)
								    : NULL;
			if (in != NULL && in->weight && in->n == s->n)
				return true;
			if (!c->k->backward && !c->k->talks && !x->out && x->n == s->n &&
				c->info != NULL &&
				(c->info->cls == ACC_OP_ADD || c->info->cls == ACC_OP_MUL ||
					c->info->cls == ACC_OP_MOVE))
				add_maker(&w, t, x);
		}
	}
	return false;
}

/* Is it made of nothing that ranks share: of no weight, of no data's gradient, of nothing that came from others? */
static bool
is_own(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	struct way w = {.n = 0};
	bool own = s->real && !s->wants && s->mark != 0;
	add_maker(&w, t, s);
	for (unsigned i = 0; i < w.n && own; i++) {
		const struct acc_seen_call *c = w.call[i];
		own = !c->k->talks && !c->k->backward;
		for (uint32_t j = c->first; j < c->first + c->n && own; j++) {
			own = t->seen[j].out || !t->seen[j].wants;
			if (!t->seen[j].out)
				add_maker(&w, t, &t->seen[j]);
		}
	}
	return own && !w.lost;
}

/* Is the j-th tensor of the peers another on each of them, and of no one number? */
static int
is_apart(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, uint32_t j, bool *is, struct acc_err *e)
{
	enum acc_alike how = ACC_EQUAL;
	bool flat = true;
	int rc = acc_replicas_alike(t, g, peer, j, &how, e);
	if (rc == 0 && how == ACC_APART)
		rc = acc_replicas_flat(t, &t->seen[peer[0]->first + j], &flat, e);
	*is = rc == 0 && !flat;
	return rc;
}

/* What is summed up, a product of a gradient and of what each rank has of its own. */
static int
product(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *sum,
	const struct acc_replica_seen *made, const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[made->call];
	const struct acc_replica_seen *gradient = NULL, *factor = NULL;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (s->out || s->n < 2)
			continue;
		if (s->n > made->n && gradient == NULL && is_gradient(t, s))
			gradient = s;
		else if (factor == NULL && is_own(t, s))
			factor = s;
	}
	bool apart = false, parts = false;
	int rc = 0;
	if (gradient != NULL && factor != NULL && acc_replicas_peers(t, g, c, peer)) {
		rc = is_apart(t, g, peer, (uint32_t)(factor - t->seen) - c->first, &apart, e);
		if (rc == 0 && apart)
			rc = is_apart(t, g, peer, (uint32_t)(gradient - t->seen) - c->first, &parts,
				e);
	}
	return rc < 0 || !parts
		       ? rc
		       : acc_replicas_blame(t, g, made->line,
				 SAY(t,
					 "projects the gradient of each rank with that rank's own matrix; %s sums that up, "
					 "which is no projection of the sum: all ranks must take one matrix",
					 acc_replicas_name(t, sum->k->line, e)),
				 1, 0, e);
}

int
acc_rule_project(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]);
		i < t->f->ncall && rc == 0 && !g->weights_differ && !g->parts;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *made = acc_seen_summand(t, g, c);
		const struct acc_op_info *info = made == NULL ? NULL : t->call[made->call].info;
		if (info != NULL && info->cls == ACC_OP_CONTRACT)
			rc = product(t, g, c, made, room, e);
	}
	return rc;
}
