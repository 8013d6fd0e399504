/* What an op call makes other on each rank of what is the same on all: by random numbers, by a number, by a kernel. */
#include "ranks/asked.h"

struct seen { /* an op call of all ranks of a group */
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call *const *peer;
};

/* Are all tensors that the peers were given equal? *numbers: those of one element, too; NULL: they must be. */
static bool
given_alike(const struct seen *p, bool *numbers)
{
	const struct acc_seen_call *c = p->peer[0];
	bool any = false;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &p->t->seen[c->first + j];
		bool alike = s->out || acc_replicas_marked(p->t, p->g, p->peer, j);
		if (numbers != NULL && s->n == 1)
			*numbers &= alike;
		else if (!alike)
			return false;
		any |= !s->out && s->n > 1;
	}
	return any;
}

/* The first output that is not the same on all; -1: none. */
static int64_t
parts_at(const struct seen *p)
{
	const struct acc_seen_call *c = p->peer[0];
	for (uint32_t j = 0; j < c->n; j++)
		if (p->t->seen[c->first + j].out && p->t->seen[c->first + j].mark != 0 &&
			!acc_replicas_marked(p->t, p->g, p->peer, j))
			return j;
	return -1;
}

/* Random numbers that are others where those of replicas must be the same: what they are drawn for is
 * the same on ranks that hold parts of the weights. */
int
acc_rule_draws(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *drawn, bool *said, struct acc_err *e)
{
	const struct seen seen = {t, g, peer}, *p = &seen;
	int64_t j = parts_at(p);
	if (j < 0)
		return 0;
	*drawn = true;
	if (*said || !p->g->weights_differ || !given_alike(p, NULL) ||
		(p->g->data_differ && !acc_seen_summed(t, peer[0], g)))
		return 0;
	*said = true;
	return acc_replicas_blame(p->t, p->g, p->t->seen[p->peer[p->g->n - 1]->first + j].line,
		"is made of other random numbers on each rank, although the input is the same on all:"
		" what follows is computed as if it still were",
		1, 0, e);
}

/* The input of a product or a sum that is random on each rank, where the other one is the same; -1: there is none. A mask is
 * of two numbers, what stays from step to step is a buffer, and what is smaller may be told to all parts of a sequence. */
static int
random_input(const struct seen *p, int64_t *at, struct acc_err *e)
{
	const struct acc_seen_call *c = p->peer[0];
	const struct acc_replica_seen *s = p->t->seen + c->first, *out = acc_seen_output(p->t, c);
	int64_t whole = -1, noise = -1;
	*at = -1;
	for (uint32_t j = 0; j < c->n && out != NULL; j++) {
		const struct acc_seen_call *maker = acc_seen_caller(p->t,
			acc_seen_maker(p->t, &s[j]));
		if (s[j].out || s[j].n < 2)
			continue;
		if (s[j].n == out->n && s[j].wants && !s[j].leaf && maker != NULL)
			whole = j;
		else if (s[j].n == out->n && s[j].real && s[j].raw && s[j].mark != 0 &&
			 (maker == NULL || maker->raw))
			noise = j;
		else
			return 0;
	}
	enum acc_alike is = ACC_EQUAL;
	int rc = whole < 0 || noise < 0
			 ? 1
			 : acc_replicas_alike(p->t, p->g, p->peer, (uint32_t)whole, &is, e);
	if (rc != 0 || is >= ACC_APART)
		return rc < 0 ? rc : 0;
	for (uint32_t i = 0; i < p->g->n; i++) {
		const struct acc_replica_seen *x = &p->t->seen[p->peer[i]->first + noise];
		bool binary = false;
		rc = acc_replicas_binary(p->t, x, &binary, e);
		if (rc < 0 || binary || x->n != out->n || acc_seen_stays(p->t, x) ||
			(i > 0 && x->mark == s[noise].mark))
			return rc;
	}
	*at = noise;
	return 0;
}

/* Random numbers that an op call is given, another draw on each rank, for activations that are whole on all. */
int
acc_rule_noise(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, bool *said, struct acc_err *e)
{
	const struct seen seen = {t, g, peer}, *p = &seen;
	const struct acc_seen_call *c = peer[0];
	int64_t at = -1, j;
	if (*said || !g->weights_differ || c->module || c->info == NULL ||
		(c->info->cls != ACC_OP_MUL && c->info->cls != ACC_OP_ADD) ||
		(j = parts_at(p)) < 0 || !acc_seen_summed(t, c, g))
		return 0;
	int rc = random_input(p, &at, e);
	if (rc < 0 || at < 0)
		return rc;
	*said = true;
	return acc_replicas_blame(t, g, t->seen[peer[g->n - 1]->first + j].line,
		"is made of other random numbers on each rank, although what they are for is a sum over"
		" the ranks, the same on all: what follows is computed as if it still were",
		1, 0, e);
}

/* Is it an optimizer's step of a weight, in its place? */
static bool
steps(const struct seen *p)
{
	const struct acc_seen_call *c = p->peer[0];
	const struct acc_replica_seen *w = acc_seen_real(p->t, c, false),
				      *out = acc_seen_real(p->t, c, true);
	return c->behind && w != NULL && w->leaf && w->wants && out != NULL && out->pos == w->pos &&
	       out->shape == w->shape;
}

/* What a reduction made alike, and a number, or a kernel, makes other; or the weights that all have, in their step. */
int
acc_rule_after(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, struct acc_err *e)
{
	const struct seen seen = {t, g, peer}, *p = &seen;
	const struct acc_seen_call *c = peer[0];
	int64_t j = c->info == NULL || c->module ||
				    (c->info->cls != ACC_OP_MUL && c->info->cls != ACC_OP_ADD &&
					    c->info->cls != ACC_OP_STEADY)
			    ? -1
			    : parts_at(p);
	bool flat = true, args = true; /* what is one number everywhere may come from elsewhere */
	for (uint32_t i = c->first; j >= 0 && i < c->first + c->n && flat; i++) {
		uint32_t by = t->seen[i].out || t->seen[i].n < 2 || t->seen[i].mark == 0
				      ? ACC_NOID
				      : acc_seen_reduced(t, &t->seen[i]);
		int rc = by == ACC_NOID ? 0 : acc_replicas_flat(t, &t->seen[i], &flat, e);
		if (rc < 0)
			return rc;
	}
	if (j < 0 || (flat && !steps(p)) || !given_alike(p, &args))
		return 0;
	for (uint32_t i = 1; i < p->g->n; i++)
		args &= p->peer[i]->args == c->args;
	uint32_t odd = acc_replicas_odd(p->t, p->g, p->peer, (uint32_t)j);
	struct acc_distance d;
	double near = 0;
	const struct acc_replica_seen *x = &t->seen[p->peer[odd]->first + j],
				      *y = &t->seen[p->peer[odd == 0]->first + j];
	int rc = acc_replicas_distance(t, x, y, &d, e);
	if (rc == 0)
		rc = acc_replicas_near(t, x, &near, e);
	if (rc < 0 || !d.known || !(d.d > near * d.size))
		return rc;
	if (flat)
		return acc_replicas_blame(p->t, p->g, x->line,
			"is a weight that is not the same on all ranks afterwards, although all tensors that it"
			" is made of are: a number, such as the rate, differs by rank",
			d.d / d.size, near, e);
	return acc_replicas_blame(p->t, p->g, x->line,
		args ? "is not the same on all ranks, although what a reduction gave to it is, and its"
		       " other arguments are"
		     : "is not the same on all ranks, although what a reduction gave to it is: a number"
		       " differs by rank",
		d.d / d.size, near, e);
}
