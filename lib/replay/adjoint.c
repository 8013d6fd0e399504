/* The gradient of an input, element by element, where the structure of the operator tells it: elements that are
 * moved, or factors of a product. */
#include "replay/impl.h"

int
acc_sums_start(struct acc_replay *r, size_t n, struct acc_sums *s)
{
	struct acc_arena *mem = r->mem;
	*s = (struct acc_sums){acc_doubles(r, n), acc_doubles(r, n), acc_doubles(r, n),
		acc_doubles(r, n), acc_alloc(mem, n * sizeof *s->terms),
		acc_alloc(mem, n * sizeof *s->skip)};
	if (s->ref == NULL || s->abs == NULL || s->sq == NULL || s->more == NULL ||
		s->terms == NULL || s->skip == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < n; i++) {
		s->ref[i] = s->abs[i] = s->sq[i] = s->more[i] = 0;
		s->terms[i] = 0;
		s->skip[i] = false;
	}
	return 0;
}

void
acc_sums_add(struct acc_sums *s, size_t i, double term)
{
	s->ref[i] += term;
	s->abs[i] += fabs(term);
	s->sq[i] += term * term;
	s->terms[i]++;
}

static enum acc_fate
fate(const struct acc_adjoint *a, const struct acc_range *range, const struct acc_sums *s, size_t i)
{
	const double rec = a->gin->v[i], ref = s->ref[i];
	if (s->skip[i])
		return ACC_LEFT;
	enum acc_fate f = acc_fate_of(range, rec, ref, s->abs[i]);
	/* What NaN and Inf leave of a slope tells nothing; what they leave of a sum, they do everywhere. */
	if (!isfinite(s->abs[i]))
		return f == ACC_RIGHT                                ? ACC_RIGHT
		       : a->exact && isfinite(rec) && !isfinite(ref) ? ACC_WRONG
								     : ACC_LEFT;
	return f;
}

void
acc_adjoint_compare(struct acc_adjoint *a, const struct acc_sums *s)
{
	const double tiny = acc_tiny_of(a->gin->dtype);
	const struct acc_range range = acc_range_of(a->gin->dtype, a->unit, a->max);
	const double *other = NULL;
	bool looked = false;
	for (size_t i = 0; i < a->gin->n; i++) {
		double rec = a->gin->v[i], ref = s->ref[i];
		const enum acc_fate f = fate(a, &range, s, i);
		if (f == ACC_LEFT) {
			if (!looked && a->held != NULL)
				other = acc_other_values(a->t->j, a->t->r.mem, a->held);
			looked = true;
			a->left.n++;
			a->left.open += other != NULL && acc_differs(a->unit, rec, other[i]);
			continue;
		}
		if (f != ACC_NUMBER) {
			acc_err_add(&a->err, f == ACC_WRONG ? INFINITY : 0);
			acc_err_add(&a->coarse, f == ACC_WRONG ? INFINITY : 0);
			continue;
		}
		double den = a->unit * (fabs(ref) + (s->terms[i] > 1 ? sqrt(s->sq[i]) : 0)) +
			     s->more[i] + tiny;
		/* Sums that are rounded to 16 bits as each of n terms is added err by 0.6 root n times that. */
		if (a->one_by_one && s->terms[i] > 1)
			den += a->unit * sqrt(s->sq[i] * (double)s->terms[i]) / 4;
		acc_err_add(&a->err, fabs(rec - ref) / (den + a->work * s->abs[i]));
		acc_err_add(&a->coarse, fabs(rec - ref) / (den + a->unit * s->abs[i]));
	}
	const struct acc_slope_of of = {a->gin->dtype, a->unit, a->work, a->gin->n, a->gin->v,
		s->ref, s->abs, s->skip};
	if (a->sloped)
		acc_slope(&a->t->r, &of, &a->slope);
	if (!acc_far_off(&a->err, acc_unit_low(a->unit)))
		return;
	a->cause = acc_cause_plain(a->t->r.mem, a->gin, s->ref);
	acc_spots_add(a->spots, a->gin, s->ref, a->first);
}

/* --- elements that are moved --- */

int
acc_adjoint_move(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	struct acc_dense *plus = acc_trial_outputs(t, false), *minus = acc_trial_outputs(t, false);
	struct acc_sums s;
	double *x = a->x->v, *mark = acc_doubles(&t->r, a->x->n);
	if (plus == NULL || minus == NULL || mark == NULL || acc_sums_start(&t->r, a->x->n, &s) < 0)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	int rc = 0;
	t->r.gradient = true;
	t->r.marked = x;
	/* Element i becomes i + 1, then -(i + 1): what changes its sign was moved. */
	for (int sign = 1; sign >= -1 && rc == 0; sign -= 2) {
		for (size_t i = 0; i < a->x->n; i++)
			mark[i] = sign * (double)(i + 1);
		a->x->v = mark;
		rc = acc_replay_eval(&t->r, sign > 0 ? plus : minus);
		a->x->v = x;
	}
	t->r.gradient = false;
	t->r.marked = NULL;
	if (rc < 0)
		return rc;
	for (uint32_t k = 0; k < t->nout; k++)
		for (size_t i = 0; i < plus[k].n; i++) {
			double p = plus[k].v[i], m = minus[k].v[i];
			if (p == m || (isnan(p) && isnan(m)))
				continue;
			if (p != -m || p < 1 || p > (double)a->x->n)
				return acc_cannot(&t->r, "its gradient could not be followed");
			if (a->gout[k] != NULL)
				acc_sums_add(&s, (size_t)p - 1, a->gout[k]->v[i]);
		}
	acc_adjoint_compare(a, &s);
	return 0;
}

int
acc_adjoint_pick(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	struct acc_sums s;
	bool wild = false;
	if (acc_sums_start(&t->r, a->x->n, &s) < 0)
		return ACC_EUNSUP;
	for (uint32_t k = 0; k < t->nout; k++) {
		size_t *from = acc_offsets(&t->r, t->out[k].n, 0);
		if (a->gout[k] == NULL)
			continue;
		if (from == NULL)
			return ACC_EUNSUP;
		int rc = t->r.op->pick(&t->r, a->name, k, from, s.skip);
		if (rc < 0)
			return rc;
		for (size_t o = 0; o < t->out[k].n; o++) {
			if (from[o] < a->x->n)
				acc_sums_add(&s, from[o], a->gout[k]->v[o]);
			wild |= !isfinite(a->gout[k]->v[o]);
		}
	}
	/* By a mask, what is not finite reaches all that was not picked: 0 times Inf. */
	for (size_t i = 0; i < a->x->n && wild; i++)
		s.skip[i] |= !isfinite(a->gin->v[i]);
	acc_adjoint_compare(a, &s);
	return 0;
}

/* --- products --- */

static void
gradient(const struct acc_product *p, const double *g, bool of_x, const size_t *from,
	struct acc_sums *s)
{
	for (size_t b = 0; b < p->nb; b++)
		for (size_t i = 0; i < p->m; i++)
			for (size_t k = 0; k < p->nk; k++) {
				size_t ix = p->xb[b] + p->xm[i] + p->xk[k];
				for (size_t j = 0; j < p->n; j++) {
					size_t iy = p->yb[b] + p->yk[k] + p->yn[j];
					double go = p->alpha * g[p->ob[b] + p->om[i] + p->on[j]];
					size_t to = of_x ? ix : iy;
					if (of_x && from != NULL)
						to = from[ix];
					if (to != SIZE_MAX)
						acc_sums_add(s, to,
							go * (of_x ? p->y[iy] : p->x[ix]));
				}
			}
}

int
acc_adjoint_product(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	struct acc_product p = {.alpha = 1, .beta = 1};
	struct acc_sums s;
	int rc = t->r.op->product(&t->r, &t->r.rec[0], &p);
	if (rc < 0)
		return rc;
	bool of_x = p.xfrom != NULL ? a->x->v == p.xsrc : a->x->v == p.x;
	if (!of_x && a->x->v != p.y)
		return acc_cannot(&t->r, "its gradient could not be followed");
	if (t->large)
		return acc_freivalds_gradient(a, &p, of_x);
	if (acc_sums_start(&t->r, a->x->n, &s) < 0)
		return ACC_EUNSUP;
	if (a->gout[0] != NULL)
		gradient(&p, a->gout[0]->v, of_x, p.xfrom, &s);
	acc_adjoint_compare(a, &s);
	struct acc_product q;
	if (a->gin->dtype == ACC_F32 && acc_far_off(&a->err, false) &&
		acc_product_gradient(a, &p, of_x, &q) == 0 &&
		acc_form_product(&t->r, &q, a->gin->v, &a->forms) < 0)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	return 0;
}
