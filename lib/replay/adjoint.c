/* The gradient of an input, element by element, where the structure of the operator tells it:
 * from what the evaluation does to a change of all elements at once. */
#include "replay/impl.h"

/* Central differences: their own error is below h^2, where h is in parts of the scale on which
 * the operator changes, plus the rounding 2^-52 / h of the evaluation. */
#define STEP 0x1p-17
/* Two one-sided derivatives that differ by more than this share: a kink lies between. */
#define KINK 1e-3

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

static void
sums_add(struct acc_sums *s, size_t i, double term)
{
	s->ref[i] += term;
	s->abs[i] += fabs(term);
	s->sq[i] += term * term;
	s->terms[i]++;
}

void
acc_adjoint_compare(struct acc_adjoint *a, const struct acc_sums *s)
{
	const double tiny = acc_tiny_of(a->gin->dtype);
	for (size_t i = 0; i < a->gin->n; i++) {
		double rec = a->gin->v[i], ref = s->ref[i];
		if (s->skip[i] || !isfinite(s->abs[i])) {
			a->skipped++;
			continue;
		}
		if (fabs(ref) > a->max * (1 - 8 * a->unit)) {
			a->skipped++;
			continue;
		}
		if (!isfinite(rec)) {
			acc_err_add(&a->err, INFINITY);
			acc_err_add(&a->coarse, INFINITY);
			continue;
		}
		double den = a->unit * (fabs(ref) + (s->terms[i] > 1 ? sqrt(s->sq[i]) : 0)) +
			     s->more[i] + tiny;
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
	/* Element i becomes i + 1, then -(i + 1): what changes its sign was moved. */
	for (int sign = 1; sign >= -1 && rc == 0; sign -= 2) {
		for (size_t i = 0; i < a->x->n; i++)
			mark[i] = sign * (double)(i + 1);
		a->x->v = mark;
		rc = acc_replay_eval(&t->r, sign > 0 ? plus : minus);
		a->x->v = x;
	}
	t->r.gradient = false;
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
				sums_add(&s, (size_t)p - 1, a->gout[k]->v[i]);
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
		size_t *from = acc_offsets(&t->r, t->ref[k].n, 0);
		if (a->gout[k] == NULL)
			continue;
		if (from == NULL)
			return ACC_EUNSUP;
		int rc = t->r.op->pick(&t->r, a->name, k, from, s.skip);
		if (rc < 0)
			return rc;
		for (size_t o = 0; o < t->ref[k].n; o++) {
			if (from[o] < a->x->n)
				sums_add(&s, from[o], a->gout[k]->v[o]);
			wild |= !isfinite(a->gout[k]->v[o]);
		}
	}
	/* By a mask, what is not finite reaches all that was not picked: 0 times Inf. */
	for (size_t i = 0; i < a->x->n && wild; i++)
		s.skip[i] |= !isfinite(a->gin->v[i]);
	acc_adjoint_compare(a, &s);
	return 0;
}

/* --- one input element for each output element --- */

struct step {
	double *up, *down; /* the changed inputs */
	struct acc_dense *fup, *fdown;
};

static int
difference(struct acc_adjoint *a, struct step *s)
{
	struct acc_trial *t = a->t;
	double *x = a->x->v;
	s->fup = acc_trial_outputs(t, false);
	s->fdown = a->linear ? NULL : acc_trial_outputs(t, false);
	if (s->fup == NULL || (s->fdown == NULL && !a->linear))
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	a->x->v = s->up;
	int rc = acc_replay_eval(&t->r, s->fup);
	a->x->v = s->down;
	if (rc == 0 && !a->linear)
		rc = acc_replay_eval(&t->r, s->fdown);
	a->x->v = x;
	return rc;
}

/* How much an element may change: a part of itself, or of the scale of the operator. */
static double
reach(const struct acc_adjoint *a, double x, double rms)
{
	if (a->linear)
		return isfinite(x) ? fmax(1, fabs(x)) : 1;
	if (a->t->r.op->flags & ACC_UNTIL_ONE)
		return STEP * fmin(1, fabs(1 - fabs(x)));
	if (a->t->r.op->flags & ACC_UNIT_SCALE)
		return STEP * fmax(1, 0x1p-10 * fabs(x));
	return STEP * (x != 0 && isfinite(x) ? fabs(x) : rms);
}

static double
rms_of(const double *x, size_t n)
{
	double sum = 0;
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		if (isfinite(x[i])) {
			sum += x[i] * x[i];
			k++;
		}
	return sum > 0 ? sqrt(sum / (double)k) : 1;
}

/* New ones, or those that other parts added to. */
static int
point_sums(struct acc_adjoint *a, struct acc_sums *s)
{
	if (a->shared == NULL)
		return acc_sums_start(&a->t->r, a->x->n, s);
	*s = a->shared->sums;
	a->shared->unit = a->unit;
	a->shared->work = a->work;
	a->shared->max = a->max;
	s->ref += a->first;
	s->abs += a->first;
	s->sq += a->first;
	s->more += a->first;
	s->terms += a->first;
	s->skip += a->first;
	return 0;
}

static int
added(struct acc_adjoint *a)
{
	struct acc_sums s;
	struct acc_window w;
	struct acc_dense gin = *a->gin;
	if (acc_sums_start(&a->t->r, a->x->n, &s) < 0 || acc_freivalds_added(a, &s) < 0)
		return ACC_EUNSUP;
	acc_window_open(&w, a->t->j, gin.v);
	gin.v = (double *)(uintptr_t)acc_window_at(&w, 0, gin.n);
	if (gin.v == NULL)
		return acc_cannot(&a->t->r, w.err);
	const struct acc_dense *open = a->gin;
	a->gin = &gin;
	acc_adjoint_compare(a, &s);
	a->gin = open;
	return 0;
}

/* Where each element makes one element of the one output, and all is right. */
static bool
at_once(struct acc_adjoint *a, const struct step *st, const struct acc_dense *base)
{
	struct acc_trial *t = a->t;
	double ref[ACC_AUDIT_BLOCK], more[ACC_AUDIT_BLOCK], skip[ACC_AUDIT_BLOCK];
	double mag[ACC_AUDIT_BLOCK];
	const struct acc_ruler y = {.unit = a->unit,
		.work = a->work,
		.coarse = a->unit,
		.tiny = acc_tiny_of(a->gin->dtype),
		.max = a->max * (1 - 8 * a->unit)};
	bool saves = t->r.op->flags & ACC_SAVES_OUTPUT;
	struct acc_errsum err = {0}, coarse = {0};
	size_t skipped = 0;
	if (t->nout != 1 || a->gout[0] == NULL || base[0].n != a->x->n)
		return false;
	for (size_t i = 0, n; i < a->x->n; i += n) {
		struct acc_block_err b;
		n = a->x->n - i < ACC_AUDIT_BLOCK ? a->x->n - i : ACC_AUDIT_BLOCK;
		struct acc_slope s = {a->x->v + i, st->up + i, a->linear ? NULL : st->down + i,
			base[0].v + i, st->fup[0].v + i, a->linear ? NULL : st->fdown[0].v + i,
			a->gout[0]->v + i, KINK, saves ? a->unit : 0, ref, more, skip};
		acc_audit_row()->slope(&s, n);
		size_t kinks = 0;
		for (size_t k = 0; k < n; k++) {
			kinks += skip[k] != 0;
			ref[k] = skip[k] != 0 ? 0 : ref[k];
			mag[k] = fabs(ref[k]);
			more[k] = skip[k] != 0 ? INFINITY : more[k];
		}
		if (!acc_audit_row()->judge(&y, a->gin->v + i, ref, mag, more, n, &b))
			return false;
		acc_err_merge(&err, &(struct acc_errsum){b.sum2, b.max, n - kinks, false});
		acc_err_merge(&coarse,
			&(struct acc_errsum){b.coarse2, b.coarse_max, n - kinks, false});
		skipped += kinks;
	}
	if (acc_far_off(&err, acc_unit_low(a->unit)))
		return false;
	a->err = err;
	a->coarse = coarse;
	a->skipped = skipped;
	return true;
}

/* Of one output, element by element. */
static int
sum_output(struct acc_adjoint *a, const struct step *st, const struct acc_dense *f, uint32_t k,
	struct acc_sums *s)
{
	struct acc_broadcast b;
	const struct acc_dense *in = a->x;
	const double *x = a->x->v, *fup = st->fup[k].v, *g = a->gout[k]->v;
	const double *fdown = a->linear ? NULL : st->fdown[k].v;
	double ref[ACC_AUDIT_BLOCK], more[ACC_AUDIT_BLOCK], skip[ACC_AUDIT_BLOCK];
	double xs[ACC_AUDIT_BLOCK], ups[ACC_AUDIT_BLOCK], downs[ACC_AUDIT_BLOCK];
	size_t at[ACC_AUDIT_BLOCK];
	bool saves = a->t->r.op->flags & ACC_SAVES_OUTPUT;
	if (!acc_broadcast_start(&b, f->shape, f->ndim, &in, 1))
		return acc_cannot(&a->t->r, "its gradient could not be followed");
	for (size_t o = 0, n; o < f->n; o += n) {
		n = f->n - o < ACC_AUDIT_BLOCK ? f->n - o : ACC_AUDIT_BLOCK;
		for (size_t i = 0; i < n; i++, acc_broadcast_next(&b)) {
			at[i] = b.at[0];
			xs[i] = x[at[i]];
			ups[i] = st->up[at[i]];
			downs[i] = st->down[at[i]];
		}
		struct acc_slope p = {xs, ups, a->linear ? NULL : downs, f->v + o, fup + o,
			a->linear ? NULL : fdown + o, g + o, KINK, saves ? a->unit : 0, ref, more,
			skip};
		acc_audit_row()->slope(&p, n);
		for (size_t i = 0; i < n; i++) {
			if (skip[i] != 0)
				s->skip[at[i]] = true;
			sums_add(s, at[i], ref[i]);
			s->more[at[i]] += more[i];
		}
	}
	return 0;
}

int
acc_adjoint_point(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	size_t n = a->x->n;
	if (t->large && t->r.op->blocks == NULL)
		return added(a);
	const double *x = a->x->v;
	struct step st = {.up = acc_doubles(&t->r, n), .down = acc_doubles(&t->r, n)};
	struct acc_sums s;
	if (st.up == NULL || st.down == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	double rms = a->linear ? 1 : rms_of(x, n);
	for (size_t i = 0; i < n; i++) {
		double h = reach(a, x[i], rms);
		st.up[i] = x[i] + h;
		st.down[i] = x[i] - h;
	}
	/* What is added to a product: the product itself does not matter. */
	const struct acc_dense *base = t->ref;
	t->r.gradient = t->r.op->product != NULL;
	int rc = difference(a, &st);
	if (rc == 0 && t->r.gradient) {
		struct acc_dense *own = acc_trial_outputs(t, false);
		base = own;
		rc = own == NULL ? acc_cannot(&t->r, ACC_NOMEM_TEXT) : acc_replay_eval(&t->r, own);
	}
	t->r.gradient = false;
	if (rc < 0)
		return rc;
	if (a->shared == NULL && at_once(a, &st, base))
		return 0;
	if (point_sums(a, &s) < 0)
		return ACC_EUNSUP;
	for (uint32_t k = 0; k < t->nout && rc == 0; k++)
		if (a->gout[k] != NULL)
			rc = sum_output(a, &st, &base[k], k, &s);
	if (rc == 0 && a->shared == NULL)
		acc_adjoint_compare(a, &s);
	return rc;
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
						sums_add(s, to, go * (of_x ? p->y[iy] : p->x[ix]));
				}
			}
}

int
acc_adjoint_product(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	struct acc_product p = {.alpha = 1, .beta = 1};
	struct acc_sums s;
	int rc = t->r.op->product(&t->r, &t->ref[0], &p);
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
