/* The adjoint test proper: <g_in, v> against <g_out, J v> for random v, in blocks that do not
 * depend on each other. */
#include "replay/limits.h"
#include "replay/op/loss.h"

enum { PROBES = 6, FEW_PROBES = 2, MANY = 1 << 17, DRAWS = 4 };
#define STEP 0x1p-18
/* Of a finer unit, a gradient is finer than what the step errs by, see adjoint_point.c. */
#define FINE (STEP * STEP)
/* Nearer to 0 or 1, frameworks divide by this much instead. */
#define LEAST 1e-12

struct block_sum {
	double in, in2, out, out2, abs, noise, saved2, logs;
	double x, x2;  /* of the input: the sum, squares, */
	size_t nx;     /* of so many elements */
	size_t finite; /* so many of the gradient's are */
	bool wild, gwild;
};

static size_t
block_of(const struct acc_blocks *b, size_t i)
{
	size_t c = i % b->c, r = i / b->c, k = 0;
	if (b->by_a)
		k = r / b->b;
	if (b->by_b)
		k = k * b->b + r % b->b;
	if (b->by_c)
		k = k * b->c + c;
	return k;
}

static size_t
blocks(const struct acc_blocks *b)
{
	return (b->by_a ? b->a : 1) * (b->by_b ? b->b : 1) * (b->by_c ? b->c : 1);
}

static void
rows(const struct acc_dense *d, struct acc_blocks *b)
{
	size_t len = d->ndim == 0 ? 1 : (size_t)d->shape[d->ndim - 1];
	*b = (struct acc_blocks){len == 0 ? 0 : d->n / len, 1, len, true, false, false};
}

static bool
own_scale(const struct acc_adjoint *a)
{
	return (a->t->r.op->flags & ACC_OWN_SCALE) != 0 && strcmp(a->name, "var") == 0;
}

/* The scale on which the operator changes with x: how much its elements differ. */
static double
scale_of(const struct acc_adjoint *a)
{
	double sum = 0, sq = 0, n = 0;
	if ((a->t->r.op->flags & ACC_UNIT_SCALE) != 0 || own_scale(a))
		return 1;
	for (size_t i = 0; i < a->x->n; i++)
		if (isfinite(a->x->v[i])) {
			sum += a->x->v[i];
			n++;
		}
	double mean = n > 0 ? sum / n : 0;
	for (size_t i = 0; i < a->x->n; i++)
		if (isfinite(a->x->v[i]))
			sq += (a->x->v[i] - mean) * (a->x->v[i] - mean);
	if (sq > 0)
		return sqrt(sq / n);
	return mean != 0 ? fabs(mean) : 1;
}

struct probe {
	struct acc_blocks in, out;
	size_t n;
	struct block_sum *sum;
	double *v, *up, *down;
	struct acc_dense *fup, *fdown, *wup, *wdown; /* w: of a step of twice the size; or NULL */
	double h;
	struct acc_dense *
		base; /* at x itself: what kinks between the steps add is told apart, by w; or NULL */
	double *dup, *ddown;        /* what softmax divided by, see ACC_LESS_SUM; or NULL */
	struct acc_tangent tangent; /* see ACC_TANGENT */
	bool tells;                 /* the operator does */
	double *rough; /* of each block: what rounding on the way adds, in parts of it, squared */
	bool drowned;  /* and nothing is left of some */
	const double *other; /* the other side's gradient */
	bool only; /* nothing moves but what has a finite gradient, and what is not finite is left out */
	int zero; /* of the input that is 0 where it is not finite, 2: everywhere, as of what is linear in it, whatever it is */
	int k;    /* which probe */
};

/* What p->up and p->down give. */
static int
both(struct acc_adjoint *a, struct probe *p, struct acc_dense *up, struct acc_dense *down)
{
	double *x = a->x->v;
	a->t->r.gradient = a->t->r.op->product != NULL;
	a->x->v = p->up;
	a->t->r.divided = up == p->fup ? p->dup : NULL;
	int rc = acc_replay_eval(&a->t->r, up);
	a->x->v = p->down;
	a->t->r.divided = up == p->fup ? p->ddown : NULL;
	if (rc == 0)
		rc = acc_replay_eval(&a->t->r, down);
	a->x->v = x;
	a->t->r.divided = NULL;
	a->t->r.gradient = false;
	return rc;
}

/* Of a block, the products of each output's gradient and change: of what is rounded on the way less p->fup's. */
static void
part(struct acc_adjoint *a, struct probe *p)
{
	double *sum = p->up;
	for (size_t i = 0; i < p->n; i++)
		sum[i] = 0;
	for (uint32_t k = 0; k < a->t->nout; k++)
		for (size_t o = 0; a->gout[k] != NULL && o < a->gout[k]->n; o++)
			sum[block_of(&p->out, o)] += a->gout[k]->v[o] *
						     (p->fdown[k].v[o] - p->fup[k].v[o]);
	for (size_t i = 0; i < p->n; i++)
		p->rough[i] += sum[i] * sum[i] / DRAWS;
}

/* As the operator itself tells; at first also how far off it may be. */
static int
follow(struct acc_adjoint *a, struct probe *p, uint64_t seed)
{
	struct acc_tangent *t = &p->tangent;
	const size_t draws = seed == 1 ? DRAWS : 0;
	*t = (struct acc_tangent){.of = a->x->v, .along = p->v};
	a->t->r.tangent = t;
	int rc = acc_replay_eval(&a->t->r, p->fup);
	t->unit = a->unit;
	for (size_t i = 0; i < draws && rc == 0; i++) {
		t->seed = acc_mix(i + 1);
		rc = acc_replay_eval(&a->t->r, p->fdown);
		if (rc == 0)
			part(a, p);
	}
	a->t->r.tangent = NULL;
	return rc;
}

static bool
rests(const struct probe *p, double x)
{
	return p->zero == 2 || (p->zero && !isfinite(x));
}

static int
evaluate(struct acc_adjoint *a, struct probe *p, uint64_t seed)
{
	double *x = a->x->v;
	/* A probability; what it is compared with is not. */
	const bool one = (a->t->r.op->flags & ACC_UNTIL_ONE) != 0 && strcmp(a->name, "input") == 0;
	const bool own = own_scale(a);
	for (size_t i = 0; i < a->x->n; i++) {
		uint64_t r = acc_mix(seed ^ acc_mix(i));
		double until = one ? fmin(fabs(x[i]), fabs(1 - x[i])) : own ? fabs(x[i]) : 1;
		until = until < LEAST ? 0 : until;
		const double at = rests(p, x[i]) ? 0 : x[i];
		double v = until * (0.5 + (double)(r >> 12) * 0x1p-52);
		v = r & 1 ? v : -v;
		p->up[i] = at + p->h * v;
		p->down[i] = at - p->h * v;
		/* Beside a large x, a small step is what is left of it; an infinite one, such as a
		 * masked score, has none: its gradient must be 0 for any. */
		p->v[i] = p->tells || !isfinite(at) ? v : (p->up[i] - p->down[i]) / (2 * p->h);
		if (p->only && !isfinite(a->gin->v[i])) {
			p->up[i] = p->down[i] = at;
			p->v[i] = 0;
		}
	}
	if (p->tells)
		return follow(a, p, seed);
	int rc = both(a, p, p->fup, p->fdown);
	for (size_t i = 0; p->wup != NULL && i < a->x->n; i++) {
		const double at = rests(p, x[i]) ? 0 : x[i];
		p->up[i] = 2 * p->up[i] - at;
		p->down[i] = 2 * p->down[i] - at;
	}
	return rc < 0 || p->wup == NULL ? rc : both(a, p, p->wup, p->wdown);
}

/* That of twice the step errs by 4 times as much: both are apart by 3 times what the step errs by. */
static double
blur(const struct probe *p, uint32_t k, size_t o, double jv)
{
	if (p->wup == NULL)
		return 0;
	double far = (p->wup[k].v[o] - p->wdown[k].v[o]) / (4 * p->h);
	double off = isfinite(far) ? fabs(far - jv) : 0;
	if (p->base == NULL)
		return off;
	/* What is left of a second difference when it is less by what one of twice the step has twice of. */
	const double f = 2 * p->base[k].v[o],
		     near = (p->fup[k].v[o] + p->fdown[k].v[o] - f) / (2 * p->h),
		     wide = (p->wup[k].v[o] + p->wdown[k].v[o] - f) / (4 * p->h);
	const double kink = 2 * near - wide;
	return off + (isfinite(kink) ? 2 * fabs(kink) : 0);
}

static void
take_in(struct acc_adjoint *a, struct probe *p)
{
	const bool saves = a->t->r.op->flags & ACC_SAVES_OUTPUT;
	const bool logs = a->t->r.op->flags & ACC_SAVES_LOG;
	for (size_t i = 0; i < p->n; i++)
		p->sum[i] = (struct block_sum){0};
	for (size_t i = 0; i < a->x->n; i++) {
		struct block_sum *s = &p->sum[block_of(&p->in, i)];
		s->finite += isfinite(a->gin->v[i]);
		if (p->v[i] == 0) /* it was not moved: nothing is known of its gradient */
			continue;
		double term = a->gin->v[i] * p->v[i];
		s->in += term;
		s->in2 += term * term;
		s->x += a->x->v[i];
		s->x2 += a->x->v[i] * a->x->v[i];
		s->nx++;
		s->gwild |= !isfinite(term) || fabs(a->gin->v[i]) >= acc_max_of(a->gin->dtype);
	}
	for (uint32_t k = 0; k < a->t->nout; k++) {
		const struct acc_dense *g = a->gout[k];
		for (size_t o = 0; g != NULL && o < g->n; o++) {
			struct block_sum *s = &p->sum[block_of(&p->out, o)];
			double jv = p->tells ? p->fup[k].v[o]
					     : (p->fup[k].v[o] - p->fdown[k].v[o]) / (2 * p->h);
			double term = g->v[o] * jv, size = fabs(p->fup[k].v[o]);
			if (p->only && !p->zero && !isfinite(term) &&
				!isfinite(a->t->formed->ref[k].v[o]))
				continue;
			const double *mag = a->t->formed->ref[k].mag;
			if (mag != NULL && p->zero != 2 && !(p->only && isinf(mag[o])))
				size = fmax(size, mag[o]); /* it is what larger numbers leave */
			s->out += term;
			s->out2 += term * term;
			s->abs += fabs(term);
			s->noise += p->tells ? 0
					     : fabs(g->v[o]) * ((0x1p-51 / p->h) * size +
								       blur(p, k, o, jv));
			s->wild |= !isfinite(term);
			double y = g->v[o] * a->t->formed->ref[k].v[o];
			s->saved2 += saves ? y * y : 0;
			if (k == 0 && p->dup != NULL) {
				const double by = (p->dup[o] - p->ddown[o]) / (2 * p->h);
				s->saved2 += isfinite(by) ? y * y * by * by : 0;
			}
			s->logs += logs ? g->v[o] : 0;
		}
		/* As with logarithms, see compare: of each row on its own. */
		if (g != NULL && p->n == 1 && (a->t->r.op->flags & ACC_LESS_TARGET) != 0)
			p->sum[0].abs += 1.4 * sqrt(acc_loss_terms2(&a->t->r, g));
		if (g == NULL || p->n != 1 || (a->t->r.op->flags & ACC_LESS_TARGET) == 0)
			continue;
		const double by = acc_loss_divisor(&a->t->r);
		p->sum[0].saved2 += acc_loss_kept2(&a->t->r, g) + by * by * p->sum[0].in2;
	}
}

/* The elements of a block. */
static void
leave(struct acc_adjoint *a, struct probe *p, size_t block)
{
	if (p->k > 0) /* as in the first probe */
		return;
	if (p->other == NULL && a->held != NULL)
		p->other = acc_other_values(a->t->j, a->t->r.mem, a->held);
	for (size_t i = 0; i < a->gin->n; i++) {
		if (block_of(&p->in, i) != block)
			continue;
		a->left.n++;
		a->left.open += p->other != NULL && acc_differs(a->unit, a->gin->v[i], p->other[i]);
	}
}

static void
compare(struct acc_adjoint *a, struct probe *p)
{
	const double max = a->max;
	double tiny = acc_tiny_of(a->gin->dtype) * sqrt((double)a->x->n / (double)p->n + 1);
	bool steps = (a->t->r.op->flags & ACC_IN_STEPS) != 0 && acc_unit_low(a->unit) && !p->tells;
	double unit = a->unit * (steps ? LIMIT_STEPS_BACK : 1);
	/* The quotient errs by the square of the step beside the row: by 2^-20, 16 units of f32. */
	const bool by_length = (a->t->r.op->flags & ACC_BY_LENGTH) != 0;
	const bool lengths = by_length || acc_str_is(a->t->r.name, "norm") ||
			     acc_str_is(a->t->r.name, "dist") ||
			     acc_str_is(a->t->r.name, "cdist") || acc_str_is(a->t->r.name, "std");
	const double least = a->gin->dtype == ACC_F64   ? 0x1p-485
			     : a->gin->dtype == ACC_F16 ? 0x1p-12
							: 0x1p-51;
	const double shortest = 0x1p10 * p->h;
	const bool less_mean = (a->t->r.op->flags & ACC_LESS_MEAN) != 0 &&
			       strcmp(a->name, "input") == 0;
	const bool products = acc_str_is(a->t->r.name, "prod") && acc_unit_low(a->unit);
	const double windows = acc_unit_low(a->unit) ? acc_pool_overlap(&a->t->r, a->gout[0]) : 1;
	for (size_t i = 0; i < p->n; i++) {
		const struct block_sum *s = &p->sum[i];
		double many = p->tells ? p->tangent.sums : 0, rough = 0;
		/* Squares of what is small are lost. */
		if (lengths && s->x2 < least * least * (double)s->nx) {
			leave(a, p, i);
			continue;
		}
		/* What is divided by a length that is near the largest number is no normal one. */
		if (lengths &&
			sqrt(s->x2 / (double)(s->nx + (s->nx == 0))) * acc_tiny_of(a->gin->dtype) >
				a->unit) {
			leave(a, p, i);
			continue;
		}
		if (by_length && s->x2 < shortest * shortest * (double)s->nx) {
			leave(a, p, i);
			continue;
		}
		/* In parts of the first probe's, as of any other. */
		const double size2 = fmax(s->in2, s->out2);
		if (p->tells && p->k == 0 && size2 > 0)
			p->rough[i] = p->rough[i] / size2;
		if (p->tells)
			rough = sqrt(p->rough[i] * (size2 > 0 ? size2 : 1));
		if (!s->wild && (rough * rough > s->out2 || isnan(rough))) {
			p->drowned = true;
			leave(a, p, i);
			continue;
		}
		if (s->wild ||
			(s->gwild && (sqrt(s->out2) > max / 4 || s->noise > sqrt(s->out2)))) {
			leave(a, p, i); /* it overflows, or may */
			/* As what it was given does: no element of it is finite. */
			if (s->wild && s->finite == 0 && s->nx > 0) {
				acc_err_add(&a->err, 0);
				acc_err_add(&a->coarse, 0);
			}
			continue;
		}
		if (s->gwild) {
			acc_err_add(&a->err, INFINITY);
			acc_err_add(&a->coarse, INFINITY);
			continue;
		}
		if (less_mean &&
			s->nx > 0) { /* so many times the spread is what the mean is rounded by */
			const double mean = s->x / (double)s->nx,
				     var = fmax(s->x2 / (double)s->nx - mean * mean,
					     0x1p-50 * s->x2 / (double)s->nx);
			many = var > 0 && mean * mean > var ? fabs(mean) / sqrt(var) : 0;
		}
		/* It is made of the output, each factor of which was rounded. */
		if (products)
			many = (double)s->nx / 2;
		if (windows > 1) /* as of sums of n terms, see acc_adjoint_compare */
			many = sqrt(windows) / 4;
		/* p sum(g): p = exp(y) is off by p (1 + |y|) at most, which is below 1.4. */
		double den = unit * ((1 + many) * sqrt(fmax(s->in2, s->out2)) + sqrt(s->saved2) +
					    1.4 * fabs(s->logs)) +
			     rough + s->noise + tiny;
		double e = fabs(s->in - s->out);
		if (p->only && !isfinite(den + a->unit * s->abs)) {
			leave(a, p, i);
			continue;
		}
		acc_err_add(&a->err, e / (den + a->work * s->abs));
		acc_err_add(&a->coarse, e / (den + a->unit * s->abs));
	}
}

static const char *
cause(const struct acc_adjoint *a)
{
	for (size_t i = 0; i < a->gin->n; i++)
		if (a->gin->v[i] != 0)
			return a->err.broken ? "NaN or Inf from finite numbers" : NULL;
	return "all zeros";
}

static int
widen(struct acc_adjoint *a, struct probe *p)
{
	p->wup = acc_trial_outputs(a->t, false);
	p->wdown = acc_trial_outputs(a->t, false);
	return p->wup == NULL || p->wdown == NULL ? acc_cannot(&a->t->r, ACC_NOMEM_TEXT) : 0;
}

static int
at_rest(struct acc_adjoint *a, struct probe *p)
{
	p->base = acc_trial_outputs(a->t, false);
	if (p->base == NULL)
		return acc_cannot(&a->t->r, ACC_NOMEM_TEXT);
	a->t->r.gradient = a->t->r.op->product != NULL;
	int rc = acc_replay_eval(&a->t->r, p->base);
	a->t->r.gradient = false;
	return rc;
}

static int
probes(struct acc_adjoint *a, struct probe *p)
{
	int rc = 0;
	const int n = a->t->j->part ? 1 : a->x->n > MANY ? FEW_PROBES : PROBES;
	for (int k = 0; k < n && rc == 0; k++) {
		rc = evaluate(a, p, (uint64_t)k + 1);
		if (rc == 0) {
			take_in(a, p);
			p->k = k;
			compare(a, p);
		}
	}
	return rc;
}

/* Where NaN or Inf in one element leaves nothing of a block to compare: that of the others, as far as they hang together
 * with what is finite; or that of another input, if it is linear in it. Nobody knows whether it is so: this says what is
 * right alone. */
static int
finite_only(struct acc_adjoint *a, struct probe *p, int zero)
{
	const struct acc_left all = a->left;
	p->only = true;
	p->zero = p->tells ? 0 : zero;
	p->h = p->zero == 2 ? STEP : p->h;
	a->left = (struct acc_left){0};
	int rc = probes(a, p);
	bool right = rc == 0 && a->err.n > 0 && a->left.n == 0 &&
		     !acc_far_off(&a->err, acc_unit_low(a->unit));
	for (size_t i = 0; i < a->gin->n && right; i++) {
		a->left.n += !isfinite(a->gin->v[i]);
		a->left.open += p->other != NULL && !isfinite(a->gin->v[i]) &&
				acc_differs(a->unit, a->gin->v[i], p->other[i]);
	}
	if (!right) {
		a->err = a->coarse = (struct acc_errsum){0};
		a->left = all;
	}
	return rc;
}

int
acc_adjoint_block(struct acc_adjoint *a, bool whole)
{
	struct acc_trial *t = a->t;
	struct probe p = {0};
	size_t n = a->x->n;
	int rc = 0;
	if (whole || t->nout == 0) {
		p.in = (struct acc_blocks){1, 1, n, false, false, false};
		p.out = (struct acc_blocks){1, 1, 1, false, false, false};
	} else if (t->r.op->blocks != NULL) {
		rc = t->r.op->blocks(&t->r, a->name, &p.in, &p.out);
	} else {
		rows(a->x, &p.in);
		rows(&t->formed->ref[0], &p.out);
	}
	p.n = blocks(&p.in);
	if (rc < 0 || n == 0)
		return rc;
	if (p.n == 0 || p.n != blocks(&p.out))
		return acc_cannot(&t->r, "its gradient could not be followed");
	p.sum = acc_alloc(t->r.mem, p.n * sizeof *p.sum);
	p.v = acc_doubles(&t->r, n);
	p.up = acc_doubles(&t->r, n);
	p.down = acc_doubles(&t->r, n);
	p.fup = acc_trial_outputs(t, false);
	p.fdown = acc_trial_outputs(t, false);
	if (p.sum == NULL || p.v == NULL || p.up == NULL || p.down == NULL || p.fup == NULL ||
		p.fdown == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	if ((t->r.op->flags & ACC_LESS_SUM) != 0 && strcmp(a->name, "value") != 0) {
		p.dup = acc_doubles(&t->r, t->out[0].n);
		p.ddown = acc_doubles(&t->r, t->out[0].n);
		if (p.dup == NULL || p.ddown == NULL)
			return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	}
	p.tells = (t->r.op->flags & ACC_TANGENT) != 0;
	p.rough = acc_doubles(&t->r, p.n);
	if (p.rough == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < p.n; i++)
		p.rough[i] = 0;
	if (a->unit < FINE && !p.tells && widen(a, &p) < 0)
		return ACC_EUNSUP;
	p.h = STEP * scale_of(a);
	rc = probes(a, &p);
	for (int zero = 0; zero < 3 && rc == 0 && a->err.n == 0 && a->left.n > 0; zero++)
		rc = finite_only(a, &p, zero);
	p.only = false;
	p.zero = 0;
	if (rc == 0 && p.drowned && a->err.n == 0)
		return acc_cannot(&t->r, "rounding on the way leaves nothing of its gradient");
	/* What is far off may be so by kinks alone. */
	if (rc == 0 && acc_far_off(&a->err, acc_unit_low(a->unit)) && t->nout > 0 && !p.tells) {
		if ((p.wup == NULL && widen(a, &p) < 0) || at_rest(a, &p) < 0)
			return ACC_EUNSUP;
		a->err = a->coarse = (struct acc_errsum){0};
		a->left = (struct acc_left){0};
		rc = probes(a, &p);
	}
	if (rc == 0 && acc_far_off(&a->err, acc_unit_low(a->unit)))
		a->cause = cause(a);
	return rc;
}
