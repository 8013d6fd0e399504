/* Forward: what was recorded against what the inputs give. */
#include "kernel/row.h"
#include "replay/impl.h"
#include "replay/limits.h"

static int
any_wild(void *arg, struct acc_held *h)
{
	*(bool *)arg |= h->wild;
	return 0;
}

static int
any_as_fine(void *arg, struct acc_held *h)
{
	enum acc_dtype *t = arg;
	if (acc_is_float(h->d.dtype) && acc_unit(h->d.dtype) >= acc_unit(*t))
		*t = ACC_NODTYPE;
	return 0;
}

static int
coarsest(void *arg, struct acc_held *h)
{
	double *unit = arg;
	if (acc_is_float(h->d.dtype)) {
		unit[0] = fmin(unit[0], acc_unit(h->d.dtype));
		unit[1] = fmax(unit[1], acc_unit(h->d.dtype));
	}
	return 0;
}

double
acc_unit_of_mixed(const struct acc_trial *t)
{
	/* Of these kernels one reads all it is given and computes in f32. */
	static const char *const whole[] = {"product", "optimizer", "recurrent"};
	double unit[2] = {INFINITY, 0};
	for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
		if (t->r.op->rounding != ACC_FEW || strcmp(t->r.op->cls, whole[i]) == 0)
			return 0;
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, coarsest, unit);
	return unit[0] < unit[1] && acc_unit_low(unit[1]) ? unit[1] : 0;
}

struct yardstick {
	enum acc_dtype t;
	bool exact, wild; /* no error is right; inputs are not finite */
	bool keeps;       /* see ACC_KEEPS_NAN */
	bool mixes;       /* each output is of many inputs, in no way that their terms tell */
	bool formula;     /* a function of one element, as it is written down */
	double top;       /* of its inputs: the sum of their squares */
	struct acc_ruler r;
	struct acc_range range;
};

static enum acc_fate
fate(const struct yardstick *y, double rec, double ref, double mag)
{
	enum acc_fate f = acc_fate_beyond(&y->range, rec, ref, mag);
	if (y->keeps && isnan(ref) && isfinite(rec))
		return ACC_WRONG;
	/* What is nobody's knowledge has no bound, see unknown_row of op/attention.c. */
	if (f == ACC_LEFT && isnan(ref) && !isinf(mag) && !y->wild && !(y->mixes && isinf(y->top)))
		return ACC_WRONG;
	/* Squares that overflow on the way; 0 times Inf, where the limit is 0. */
	if (f == ACC_WRONG && ((y->mixes && !(y->top < y->range.sums / 4)) ||
				      (y->wild && y->formula && isnan(rec) && ref == 0)))
		return ACC_LEFT;
	return f == ACC_WRONG && y->wild && !isfinite(ref) ? ACC_LEFT : f;
}

/* Of numbers. */
static double
error(const struct yardstick *y, double work, double rec, double ref, double mag)
{
	double d = fabs(rec - ref);
	if (!acc_is_float(y->t))
		return d;
	double den = y->r.unit * fabs(ref) + y->r.tiny + work * mag;
	if (!y->exact)
		return d / den;
	return rec == acc_round_to(y->t, ref) ? 0 : fmax(1, d / den);
}

/* At once, where all is finite, and equal where it must be; else element by element. */
static void
judge_block(const struct yardstick *y, const double *rec, const double *ref, const double *mag,
	const double *other, size_t n, struct acc_errsum *s, struct acc_errsum *coarse,
	struct acc_left *left)
{
	const struct acc_audit_row *row = acc_audit_row();
	struct acc_block_err b = {0};
	bool same = y->exact || !acc_is_float(y->t);
	if (same ? memcmp(rec, ref, n * sizeof *rec) == 0 && row->finite(rec, n)
		 : row->judge(&y->r, rec, ref, mag, NULL, n, &b) && isfinite(b.sum2)) {
		acc_err_merge(s, &(struct acc_errsum){b.sum2, b.max, n, false});
		acc_err_merge(coarse, &(struct acc_errsum){b.coarse2, b.coarse_max, n, false});
		return;
	}
	for (size_t i = 0; i < n; i++) {
		enum acc_fate f = fate(y, rec[i], ref[i], mag[i]);
		left->n += f == ACC_LEFT;
		left->open += f == ACC_LEFT && other != NULL &&
			      acc_differs(y->r.unit, rec[i], other[i]);
		if (f == ACC_LEFT || (f == ACC_RIGHT && !isfinite(ref[i])))
			continue;
		double wrong = f == ACC_WRONG ? INFINITY : 0;
		acc_err_add(s,
			f != ACC_NUMBER ? wrong : error(y, y->r.work, rec[i], ref[i], mag[i]));
		acc_err_add(coarse,
			f != ACC_NUMBER ? wrong : error(y, y->r.coarse, rec[i], ref[i], mag[i]));
	}
}

static bool
product_of(struct acc_trial *t, uint32_t k, struct acc_product *p)
{
	*p = (struct acc_product){.alpha = 1, .beta = 1};
	return k == 0 && t->r.op->product != NULL && t->r.op->product(&t->r, &t->r.rec[0], p) == 0;
}

static int
squares(void *arg, struct acc_held *h)
{
	double *sum = arg;
	for (size_t i = 0;
		acc_is_float(h->d.dtype) && h->d.v != NULL && h->pay == NULL && i < h->d.n; i++)
		*sum += isnan(h->d.v[i]) ? INFINITY : h->d.v[i] * h->d.v[i];
	return 0;
}

/* Which powers a norm sums up. */
static double
order(struct acc_trial *t)
{
	double p = 2;
	const char *why = t->r.why;
	if (!acc_str_is(t->r.name, "norm") && !acc_str_is(t->r.name, "vector_norm"))
		return p;
	acc_arg_float(&t->r, "p", &p);
	t->r.why = why;
	return isfinite(p) ? p : 2;
}

static struct yardstick
yardstick(const struct acc_trial *t, enum acc_dtype own, bool wild)
{
	/* Of a complex output the real part is computed, see acc_widen. */
	own = acc_component(own);
	enum acc_dtype in = own;
	/* Where all inputs are finer than the output, they may have been rounded first. */
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, any_as_fine, &in);
	double unit = acc_unit(own);
	double work = (in == ACC_NODTYPE || t->j->casts) && !t->r.stepwise ? acc_work_unit(unit)
									   : unit;
	const double mixed = acc_unit_of_mixed(t);
	if (mixed > unit) /* by the limit of 16 bits, of an output that has the one of 32 */
		work = mixed * LIMIT_LOW_RMS / LIMIT_OFTEN_RMS;
	struct acc_range range = acc_range_of(own, unit, INFINITY);
	struct acc_str name, mode = acc_sig_mode(t->r.op, (struct acc_str){"", 0}, 0, &name);
	const bool by_element = mode.n > 0 && !acc_str_is(mode, "block") &&
				!acc_str_is(mode, "any");
	range.cast = strcmp(t->r.op->cls, "cast") == 0;
	return (struct yardstick){.t = own,
		.exact = t->r.op->rounding == ACC_EXACT,
		.wild = wild,
		.keeps = (t->r.op->flags & ACC_KEEPS_NAN) != 0 && acc_is_float(own),
		.mixes = mode.n > 0 && !by_element && t->r.op->product == NULL,
		.formula = by_element && t->r.op->rounding == ACC_FEW,
		.range = range,
		.r = {.unit = unit,
			.tiny = acc_tiny_of(own),
			.max = acc_max_of(own),
			.work = work,
			.coarse = t->r.rounds ? work : unit}};
}

static void
judge_large(struct acc_trial *t, uint32_t k, const struct yardstick *y, struct acc_audited *v)
{
	struct acc_tally *tally = &t->j->tally[k];
	struct acc_errsum s = {0}, coarse = {0};
	if (acc_freivalds(t, &t->product, t->out[k].held, t->out[k].v, y->r.max, y->r.unit,
		    y->r.work, &s, &coarse, &tally->forms, &tally->left, &v->part) < 0) {
		v->skip = t->r.why;
		return;
	}
	acc_err_merge(&tally->err, &s);
	acc_err_merge(&tally->coarse, &coarse);
	tally->parts++;
	tally->far += acc_far_off(&s, v->low);
}

/* Of complex numbers places are of these, and what is compared there is the part that is further off. */
static void
spots(struct acc_trial *t, const struct acc_dense *rec, const double *ref, uint32_t k)
{
	struct acc_spots *s = &t->j->tally[k].spots;
	struct acc_dense own = *rec;
	const bool parts = (t->r.op->flags & ACC_COMPLEX) != 0 &&
			   acc_dtype_of(t->out[k].held->ref.dtype)->cls == 'C' && rec->ndim > 0 &&
			   rec->shape[rec->ndim - 1] == 2;
	if (!parts) {
		acc_spots_add(s, rec, ref, t->out[k].first);
		return;
	}
	own.n /= 2;
	own.ndim--;
	own.v = acc_doubles(&t->r, own.n);
	double *of = acc_doubles(&t->r, own.n);
	for (size_t i = 0; own.v != NULL && of != NULL && i < own.n; i++) {
		const double *x = rec->v + 2 * i, *y = ref + 2 * i;
		const size_t c = fabs(x[0] - y[0]) >= fabs(x[1] - y[1]) || isnan(x[0]) ? 0 : 1;
		own.v[i] = x[c];
		of[i] = y[c];
	}
	if (own.v != NULL && of != NULL)
		acc_spots_add(s, &own, of, t->out[k].first);
}

static void
judge_formed(struct acc_trial *t, const struct acc_formed *f, uint32_t k,
	const struct yardstick *y0, struct acc_audited *v)
{
	const struct acc_dense *rec = &f->rec[k], *ref = &f->ref[k];
	struct yardstick own = *y0, *y = &own;
	struct acc_tally *tally = &t->j->tally[k];
	struct acc_errsum s = {0}, coarse = {0};
	const double *other = NULL;
	struct acc_left left;
	if (own.mixes && (own.wild || !acc_audit_row()->finite(rec->v, rec->n) ||
				 !acc_audit_row()->finite(ref->v, rec->n))) {
		acc_each_held(t->j->fwd.in, t->j->fwd.nin, squares, &own.top);
		acc_each_held(t->j->fwd.kw, t->j->fwd.nkw, squares, &own.top);
		own.top = fmax(own.top, pow(own.top, order(t) / 2));
	}
	/* What cannot be told leaves the element out. */
	for (size_t i = 0; i < ref->n; i++)
		ref->mag[i] = isnan(ref->mag[i]) ? INFINITY : ref->mag[i];
	/* Where something is left out, it is looked at once more, with the other side. */
	do {
		left = (struct acc_left){0};
		s = coarse = (struct acc_errsum){0};
		for (size_t i = 0; i < rec->n; i += ACC_AUDIT_BLOCK) {
			size_t n = rec->n - i < ACC_AUDIT_BLOCK ? rec->n - i : ACC_AUDIT_BLOCK;
			judge_block(y, rec->v + i, ref->v + i, ref->mag + i,
				other == NULL ? NULL : other + i, n, &s, &coarse, &left);
		}
	} while (left.n > 0 && other == NULL &&
		 (other = acc_other_values(t->j, t->r.mem, t->out[k].held)) != NULL);
	acc_left_add(&tally->left, &left);
	acc_err_merge(&tally->err, &s);
	acc_err_merge(&tally->coarse, &coarse);
	struct acc_slope_of of = {rec->dtype, y->r.unit, y->r.work, rec->n, rec->v, ref->v,
		ref->mag, NULL};
	struct acc_slope_found slope = {0};
	if (acc_slope_applies(t) && acc_slope(&t->r, &of, &slope) < 0)
		v->skip = t->r.why;
	acc_slope_keep(&tally->slope, &slope);
	tally->parts++;
	bool far = acc_far_off(&s, v->low);
	if (y->r.unit > 0 && !y->exact &&
		(far || t->out[k].held->other != NULL || slope.slope > slope.limit))
		acc_rounds_add(&tally->rounds, rec->dtype, rec->v, ref->v, rec->n);
	if (far || (v->rounding == ACC_EXACT && acc_err_max(&s) > 0.5))
		v->skip = acc_exempt(t, f, k);
	if (v->skip != NULL || !far)
		return;
	struct acc_product p;
	if (rec->dtype == ACC_F32 && product_of(t, k, &p) &&
		acc_form_product(&t->r, &p, rec->v, &tally->forms) < 0)
		v->skip = ACC_NOMEM_TEXT;
	tally->far++;
	if (tally->far == 1) {
		tally->cause = acc_cause_forward(t, f, k);
		tally->explained = t->explained;
		tally->changed = t->changed;
	}
	tally->rough = acc_cause_rough(rec, ref->v) && (tally->rough || tally->far == 1);
	spots(t, rec, ref->v, k);
}

static void
judge(struct acc_trial *t, uint32_t k, bool wild, struct acc_audited *v)
{
	const struct acc_outline *rec = &t->out[k];
	const struct yardstick y = yardstick(t, rec->dtype, wild);
	v->low = acc_is_float(rec->dtype) && acc_unit_low(y.r.unit);
	v->rounding = (uint8_t)(acc_is_float(rec->dtype) ? t->r.op->rounding : ACC_EXACT);
	if (rec->v == NULL && rec->n > 0)
		v->skip = rec->err != NULL ? rec->err : "recorded without data";
	else if (t->formed == NULL)
		judge_large(t, k, &y, v);
	else
		judge_formed(t, t->formed, k, &y, v);
}

void
acc_forward(struct acc_trial *t)
{
	bool wild = false;
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, any_wild, &wild);
	acc_each_held(t->j->fwd.kw, t->j->fwd.nkw, any_wild, &wild);
	for (uint32_t k = 0; k < t->nout; k++) {
		struct acc_audited *v = &t->j->result[k];
		v->line = t->out[k].line;
		v->cls = t->r.op->cls;
		v->steps = acc_op_steps(t->j->op);
		v->tells_steps = (t->r.op->flags & ACC_TELLS_STEPS) != 0;
		v->in_steps = (t->r.op->flags & ACC_IN_STEPS) != 0;
		if (v->skip == NULL)
			judge(t, k, wild, v);
	}
}
