/* The whole: gather, measure, judge, write. */
#include "curve/curve.h"

#include <math.h>
#include <stdlib.h>

struct acc_curves *
acc_curves_open(const struct acc_curve_opt *opt, struct acc_err *e)
{
	struct acc_curves *cs = calloc(1, sizeof *cs);
	if (cs == NULL) {
		acc_nomem(e);
		return NULL;
	}
	cs->opt = *opt;
	return cs;
}

void
acc_curves_close(struct acc_curves *cs)
{
	if (cs == NULL)
		return;
	for (unsigned k = 0; k < cs->nset; k++) {
		for (size_t i = 0; i < cs->set[k].n; i++)
			free(cs->set[k].c[i].p);
		free(cs->set[k].c);
		acc_map_release(&cs->set[k].at);
		acc_map_release(&cs->set[k].run);
	}
	free(cs->set);
	free(cs->order);
	free(cs->remark);
	free(cs->setting);
	acc_rec_release(&cs->rec);
	acc_arena_release(&cs->mem);
	free(cs);
}

int
acc_curves_add(struct acc_curves *cs, const struct acc_rec *r, unsigned noise, struct acc_err *e)
{
	if (noise >= cs->nset) {
		if (!ACC_ROOM(cs->set, cs->set_cap, (size_t)noise + 1, e))
			return ACC_ENOMEM;
		while (cs->nset <= noise)
			cs->set[cs->nset++] = (struct curve_set){.n = 0};
	}
	int rc = noise == 0 ? acc_curve_setting(cs, r, e) : 0;
	return rc < 0 ? rc : acc_curve_take(&cs->set[noise], &cs->mem, r, e);
}

/* The order of writing: times and counters, which nobody judges, far from the findings at the
 * end; then what a person asks first. */
static int
rank(const struct curve *c)
{
	if (c->cls[0] != 'm')
		return -1;
	switch (c->role) {
	case ROLE_LOSS:
		return strcmp(c->base, "loss") == 0 ? 0 : 1;
	case ROLE_RATE:
		return 2;
	case ROLE_NORM:
		return 3;
	case ROLE_NONE:
	case ROLE_KL:
	case ROLE_RATIO:
	case ROLE_CLIP:
	case ROLE_ENTROPY:
	case ROLE_REWARD:
	case ROLE_POLICY:
		return 4;
	default:
		return 5;
	}
}

static int
by_rank(const void *px, const void *py)
{
	const struct curve *x = *(struct curve *const *)px, *y = *(struct curve *const *)py;
	if (rank(x) != rank(y))
		return rank(x) - rank(y);
	/* Weights: the worst first. */
	double a = x->f.mean_rel, b = y->f.mean_rel;
	if (x->role == ROLE_LOCAL && !(a == b) && !(isnan(a) && isnan(b)))
		return isnan(a) || b > a ? 1 : -1;
	return strcmp(x->tag, y->tag);
}

/* Is the learning rate 0 at all steps, on both sides? Then the weights stay as they are. */
static bool
weights_fixed(const struct curve_set *s)
{
	bool any = false;
	for (size_t i = 0; i < s->n; i++) {
		const struct curve *c = &s->c[i];
		if (c->role != ROLE_RATE || c->f.n == 0)
			continue;
		any = true;
		for (size_t k = 0; k < c->n; k++)
			for (int side = 0; side < 2; side++)
				if (c->p[k].has & 1U << side && c->p[k].v[side] != 0)
					return false;
	}
	return any;
}

static int
judge_one(struct acc_curves *cs, struct curve *c, struct acc_err *e)
{
	c->judged = c->f.n > 0 && c->cls[0] == 'm';
	int rc = cs->nset > 1 ? acc_curve_noise(cs, c, e) : 0;
	if (rc == 0)
		rc = acc_curve_record(&cs->rec, &cs->mem, c);
	if (rc == 0) {
		struct acc_verdict v;
		rc = acc_rules_one(cs->opt.rules, &cs->rec, &cs->mem, &v, e);
		if (rc > 0)
			c->v = v;
		return rc < 0 ? rc : 0;
	}
	return acc_rec_fail(e, rc);
}

int
acc_curves_judge(struct acc_curves *cs, struct acc_err *e)
{
	if (cs->nset == 0)
		return 0;
	struct curve_set *s = &cs->set[0];
	for (unsigned k = 0; k < cs->nset; k++)
		acc_curve_place(&cs->set[k]);
	int rc = acc_curve_square(cs, e);
	if (rc == 0)
		rc = acc_curve_join_local(cs, e);
	for (unsigned k = 0; k < cs->nset && rc == 0; k++)
		rc = acc_curve_split(&cs->set[k], &cs->mem, e);
	if (rc < 0)
		return rc;
	for (unsigned k = 0; k < cs->nset; k++)
		for (size_t i = 0; i < cs->set[k].n; i++)
			acc_curve_settle(&cs->set[k].c[i]);
	cs->order = malloc((s->n + 1) * sizeof(struct curve *));
	if (cs->order == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		cs->order[i] = &s->c[i];
		rc = acc_curve_measure(&s->c[i], e);
		cs->joined += s->c[i].f.n > 0;
	}
	if (rc < 0)
		return rc;
	bool fixed = weights_fixed(s);
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		s->c[i].lr0 = fixed && s->c[i].cls[0] == 'm';
		rc = judge_one(cs, &s->c[i], e);
		if (s->c[i].v.level != NULL && strcmp(s->c[i].v.level, "error") == 0)
			cs->status = 1;
	}
	if (rc == 0)
		rc = acc_curve_monitor(cs, e);
	if (s->n > 1)
		qsort(cs->order, s->n, sizeof(struct curve *), by_rank);
	return rc == 0 ? acc_curve_conclude(cs, e) : rc;
}

const struct acc_point *
acc_curves_points(const struct acc_curves *cs, const char *tag, size_t *n)
{
	const struct curve *c = cs->nset == 0 ? NULL : acc_curve_find(&cs->set[0], tag);
	*n = c == NULL ? 0 : c->n;
	return c == NULL ? NULL : c->p;
}

size_t
acc_curves_joined(const struct acc_curves *cs)
{
	return cs->joined;
}

bool
acc_curves_unjudged(const struct acc_curves *cs, const char **tag)
{
	size_t judged = 0;
	*tag = NULL;
	for (size_t i = 0; cs->order != NULL && i < cs->set[0].n; i++) {
		const struct curve *c = cs->order[i];
		/* NaN on both sides is nothing that a rule could judge. */
		if (!c->judged || (c->f.neither == c->f.n && c->v.level == NULL))
			continue;
		judged++;
		if (c->role != ROLE_NONE || c->v.level != NULL || strcmp(c->cls, "monitor") == 0)
			return false;
		if (*tag == NULL && c->f.apart > 0 && !c->noise.inside)
			*tag = c->tag;
	}
	return cs->joined > 0 && (judged == 0 || *tag != NULL);
}

int
acc_curves_status(const struct acc_curves *cs)
{
	return cs->status;
}

int
acc_curves_next(struct acc_curves *cs, struct acc_rec **r, struct acc_err *e)
{
	size_t n = cs->nset > 0 ? cs->set[0].n : 0;
	/* Times that one side alone has are no news; nor is a list whose norms have names now. */
	while (cs->next < n && cs->order[cs->next]->f.n == 0 &&
		(cs->order[cs->next]->cls[0] != 'm' || cs->order[cs->next]->n == 0))
		cs->next++;
	if (cs->next >= n + cs->nremark)
		return 0;
	int rc = cs->next < n
			 ? acc_curve_record(&cs->rec, &cs->mem, cs->order[cs->next])
			 : acc_curve_remark_record(&cs->rec, &cs->mem, &cs->remark[cs->next - n]);
	cs->next++;
	*r = &cs->rec;
	return rc < 0 ? acc_rec_fail(e, rc) : 1;
}
