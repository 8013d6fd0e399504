/* The gradient of an input each element of which makes one element of an output: from what the evaluation does
 * to a change of all elements at once. */
#include "replay/impl.h"

#include <float.h>

/* Central differences: their own error is below h^2, where h is in parts of the scale on which
 * the operator changes, plus the rounding 2^-52 / h of the evaluation. */
#define STEP 0x1p-17
/* Of a finer unit, a gradient is finer than that. */
#define FINE (STEP * STEP)
/* Two one-sided derivatives that differ by more than this share: a kink lies between. */
#define KINK 1e-3

struct step {
	double *up, *down; /* the changed inputs */
	struct acc_dense *fup, *fdown;
	const struct step *wide; /* of twice the size; or NULL */
};

/* How far the step's own error takes a derivative off, and more: that of a step of twice the size is 4 times
 * as large, so that both are apart by 3 times. */
static double
blur(const struct step *s, uint32_t k, size_t in, size_t out)
{
	const struct step *w = s->wide;
	if (w == NULL)
		return 0;
	double near = (s->fup[k].v[out] - s->fdown[k].v[out]) / (s->up[in] - s->down[in]);
	double far = (w->fup[k].v[out] - w->fdown[k].v[out]) / (w->up[in] - w->down[in]);
	return isfinite(far) ? fabs(far - near) : 0;
}

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
	if (a->linear && fabs(x) > DBL_MAX / 2 && isfinite(x))
		return -x / 2; /* not beyond the largest number */
	if (a->linear)
		return isfinite(x) ? fmax(1, fabs(x)) : 1;
	if (a->t->r.op->flags & ACC_UNTIL_ONE)
		return STEP * fmin(fmax(1, 0x1p-10 * fabs(x)), fabs(1 - fabs(x)));
	/* A step that is large beside the period tells nothing. */
	if ((a->t->r.op->flags & ACC_PERIODIC) != 0 && fabs(x) > 0x1p24)
		return NAN;
	if (a->t->r.op->flags & ACC_UNIT_SCALE)
		return STEP * fmax(1, 0x1p-10 * fabs(x));
	return STEP * (x != 0 && isfinite(x) ? fabs(x) : fmin(rms, 1));
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
	a->shared->how = *a;
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

/* What else the derivative of an element is uncertain by, in parts of it and on its own; ref: the gradient. */
static double
unsure(const struct acc_adjoint *a, const struct step *st, uint32_t k, size_t in, size_t out,
	double ref)
{
	double x2 = a->x->v[in] * a->x->v[in],
	       sum = fabs(a->gout[k]->v[out]) * blur(st, k, in, out);
	/* The evaluation is as exact as the largest number on the way, and no finer than a double is. */
	const double *mag = a->t->formed->ref[k].mag;
	if (mag != NULL && !a->linear && st->up[in] != a->x->v[in]) {
		const double most = fmax(mag[out],
			fmax(fabs(st->fup[k].v[out]), fabs(a->x->v[in])));
		sum += (0x1p-52 * most + 0x1p-1074) / fabs(st->up[in] - a->x->v[in]) *
		       fabs(a->gout[k]->v[out]);
	}
	if (a->t->r.op->terms != NULL && !a->linear && a->gout[k]->v[out] != 0) {
		const struct acc_steep at = {a->name, a->x->v[in], st->fup[k].v[out],
			ref / a->gout[k]->v[out]};
		sum += a->unit * fabs(a->gout[k]->v[out]) * a->t->r.op->terms(&a->t->r, &at);
	}
	/* It is divided by 1 - x^2, or the root of that, where x^2 was rounded. */
	if ((a->t->r.op->flags & ACC_UNTIL_ONE) != 0 && x2 != 1 && isfinite(x2))
		sum += a->unit * fabs(ref) * x2 / fabs(1 - x2);
	return sum;
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
			more[k] = skip[k] != 0 ? INFINITY
					       : more[k] + unsure(a, st, 0, i + k, i + k, ref[k]);
		}
		if (!acc_audit_row()->judge(&y, a->gin->v + i, ref, mag, more, n, &b) ||
			!isfinite(b.sum2))
			return false;
		acc_err_merge(&err, &(struct acc_errsum){b.sum2, b.max, n - kinks, false});
		acc_err_merge(&coarse,
			&(struct acc_errsum){b.coarse2, b.coarse_max, n - kinks, false});
		skipped += kinks;
	}
	if (acc_far_off(&err, acc_unit_low(a->unit)) ||
		(skipped > 0 && a->held != NULL && a->held->other != NULL))
		return false;
	a->err = err;
	a->coarse = coarse;
	a->left.n += skipped;
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
	const double *made = a->linear || f != &a->t->formed->ref[k] ? NULL
								     : a->t->formed->rec[k].v;
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
			/* So steep that it overflows before it is multiplied, or a part of it does. */
			if (skip[i] != 0 || !(fabs(ref[i]) <= a->max / 8 * fabs(g[o + i])))
				s->skip[at[i]] |= skip[i] != 0 || !isfinite(a->gin->v[at[i]]);
			const double off = more[i] + unsure(a, st, k, at[i], o + i, ref[i]);
			acc_sums_add(s, at[i], ref[i]);
			s->more[at[i]] += off;
			/* Made of an output that overflowed, it may be 0. */
			s->skip[at[i]] |= !isfinite(off) || (made != NULL && isinf(made[o + i]) &&
								    isfinite(f->v[o + i]));
		}
	}
	return 0;
}

/* Where a step lies within the rounding of x, the gradient is that of either side. */
static int
leave_steps(struct acc_adjoint *a, const struct acc_dense *base, struct acc_sums *s)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_dense *in = a->x;
	struct step st = {.up = acc_doubles(r, in->n), .down = acc_doubles(r, in->n)};
	if (st.up == NULL || st.down == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < in->n; i++) {
		const double h = 8 * a->unit * fabs(in->v[i]);
		st.up[i] = in->v[i] + h;
		st.down[i] = in->v[i] - h;
	}
	int rc = difference(a, &st);
	for (uint32_t k = 0; k < a->t->nout && rc == 0; k++) {
		struct acc_broadcast b;
		const struct acc_dense *f = &base[k];
		if (!acc_broadcast_start(&b, f->shape, f->ndim, &in, 1))
			return acc_cannot(r, "its gradient could not be followed");
		for (size_t o = 0; o < f->n; o++, acc_broadcast_next(&b)) {
			const double up = st.fup[k].v[o] - f->v[o],
				     down = f->v[o] - st.fdown[k].v[o];
			/* The slope and no more, on both sides. */
			s->skip[b.at[0]] |= !(fabs(up - down) <=
					      0.25 * fmax(fabs(in->v[b.at[0]]), fabs(f->v[o])));
		}
	}
	return rc;
}

/* Of what has the same gradient everywhere: 0, or that of the output. */
static int
everywhere(struct acc_adjoint *a, struct acc_sums *s)
{
	struct acc_trial *t = a->t;
	const struct acc_dense *in = a->x;
	for (uint32_t k = 0; k < t->nout; k++) {
		struct acc_broadcast b;
		const struct acc_outline *f = &t->out[k];
		if (a->gout[k] == NULL)
			continue;
		if (!acc_broadcast_start(&b, f->shape, f->ndim, &in, 1))
			return acc_cannot(&t->r, "its gradient could not be followed");
		for (size_t o = 0; o < f->n; o++, acc_broadcast_next(&b))
			acc_sums_add(s, b.at[0], a->flat ? 0 : a->gout[k]->v[o]);
	}
	if (a->shared == NULL)
		acc_adjoint_compare(a, s);
	return 0;
}

/* The same with a step of twice the size. */
static int
widened(struct acc_adjoint *a, struct step *st)
{
	struct acc_replay *r = &a->t->r;
	size_t n = a->x->n;
	struct step *w = acc_alloc(r->mem, sizeof *w);
	if (w == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	*w = (struct step){.up = acc_doubles(r, n), .down = acc_doubles(r, n)};
	if (w->up == NULL || w->down == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < n; i++) {
		w->up[i] = 2 * st->up[i] - a->x->v[i];
		w->down[i] = 2 * st->down[i] - a->x->v[i];
	}
	r->gradient = r->op->product != NULL;
	int rc = difference(a, w);
	r->gradient = false;
	st->wide = w;
	return rc;
}

int
acc_adjoint_point(struct acc_adjoint *a)
{
	struct acc_trial *t = a->t;
	size_t n = a->x->n;
	struct acc_sums s;
	if (t->large && t->r.op->blocks == NULL)
		return added(a);
	if (a->flat || a->same)
		return point_sums(a, &s) < 0 ? ACC_EUNSUP : everywhere(a, &s);
	const double *x = a->x->v;
	struct step st = {.up = acc_doubles(&t->r, n), .down = acc_doubles(&t->r, n)};
	if (st.up == NULL || st.down == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	double rms = a->linear ? 1 : rms_of(x, n);
	for (size_t i = 0; i < n; i++) {
		double h = reach(a, x[i], rms);
		st.up[i] = x[i] + h;
		st.down[i] = x[i] - h;
	}
	/* What is added to a product: the product itself does not matter. */
	const struct acc_dense *base = t->formed->ref;
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
	const bool steps = (t->r.op->flags & ACC_STEPS) != 0;
	if (a->shared == NULL && !steps && at_once(a, &st, base))
		return 0;
	if (!a->linear && a->unit < FINE && (rc = widened(a, &st)) < 0)
		return rc;
	if (point_sums(a, &s) < 0)
		return ACC_EUNSUP;
	for (uint32_t k = 0; k < t->nout && rc == 0; k++)
		if (a->gout[k] != NULL)
			rc = sum_output(a, &st, &base[k], k, &s);
	if (rc == 0 && steps)
		rc = leave_steps(a, base, &s);
	if (rc == 0 && a->shared == NULL)
		acc_adjoint_compare(a, &s);
	return rc;
}
