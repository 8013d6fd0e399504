/* How large an error may be, and what the dump itself says about it. */
#include "replay/impl.h"

#include <math.h>
#include <stdlib.h>

#include "replay/limits.h"

#define ROW(name, value, what, source) {#name, value, what, source},
const struct acc_limit acc_audit_limits[] = {AUDIT_LIMITS(ROW, ROW)};
#undef ROW
const size_t acc_naudit_limits = sizeof acc_audit_limits / sizeof *acc_audit_limits;

/* Limits in units of rounding, of the rms and of the largest error. */
static void
basic(const struct acc_audited *v, double *rms, double *max)
{
	if (v->rounding == ACC_EXACT && !v->backward) {
		*rms = LIMIT_EXACT_RMS;
		*max = LIMIT_EXACT_MAX;
	} else if (v->low) {
		*rms = v->backward            ? LIMIT_LOW_BACK_RMS
		       : v->n < LIMIT_LOW_FEW ? LIMIT_LOW_FEW_RMS
					      : LIMIT_LOW_RMS;
		*max = fmax(v->backward ? LIMIT_LOW_BACK_MAX : LIMIT_LOW_MAX,
			v->steps > 1 ? LIMIT_LOW_STEP * v->steps : 0);
	} else if (v->rounding == ACC_FEW) {
		*rms = LIMIT_OFTEN_RMS;
		*max = LIMIT_OFTEN_MAX;
	} else {
		*rms = LIMIT_ONCE_RMS;
		*max = LIMIT_ONCE_MAX;
	}
}

/* What all calls of a class do cannot all be faults: tf32 and hf32 in products (2^-11 of the
 * terms), fast approximations elsewhere. But what another argument explains to the rounding (the tanh
 * form of gelu, another eps) is no approximation: of that nothing is learnt, and nothing forgiven. Where there are enough calls of a class, each may have the
 * usual error of the others at this place, several times over.
 *
 * In 16 bits errors are of the final rounding, whose rms is nearly the same everywhere, unless
 * they are larger than that; and where gradients are summed up in 16 bits, some are far off. */
static double
raise_rms(const struct acc_audited *v, double usual, bool rough)
{
	if (rough && v->backward)
		return LIMIT_LEARN_ROUGH;
	return v->low && usual <= v->limit * LIMIT_LEARN_USUAL ? LIMIT_LEARN_LOW : LIMIT_LEARN;
}

static double
raise_max(const struct acc_audited *v, bool rough)
{
	if (rough && v->backward)
		return LIMIT_LEARN_ROUGH;
	return !v->low || v->backward || rough ? LIMIT_LEARN : 0;
}

static bool
is_product(const struct acc_audited *v)
{
	return strcmp(v->cls, "product") == 0;
}

/* The rms that a class may be forgiven. */
static double
ceiling(const struct acc_audited *v)
{
	if (v->low)
		return LIMIT_MOST_LOW;
	if (v->compared && !is_product(v))
		return LIMIT_MOST_COMPARED * v->limit;
	if (v->among_low && !is_product(v))
		return LIMIT_MOST_LOW * acc_unit(ACC_BF16) / acc_unit(ACC_F32);
	return is_product(v) ? LIMIT_MOST_PRODUCTS : LIMIT_MOST_OTHER;
}

/* Calls whose errors are alike: of one class, pass and precision, and of one kind of gradient. */
static int
compare_class(const struct acc_audited *x, const struct acc_audited *y, bool wide)
{
	int d = strcmp(x->cls, y->cls);
	if (d == 0)
		d = x->backward - y->backward;
	if (d == 0)
		d = x->low - y->low;
	return d != 0 || wide ? d : x->mode - y->mode;
}

static int
in_order(const struct acc_audited *x, const struct acc_audited *y, bool wide)
{
	int d = compare_class(x, y, wide);
	if (d == 0)
		d = (x->call > y->call) - (x->call < y->call);
	return d != 0 ? d : (x->line > y->line) - (x->line < y->line);
}

static int
by_call(const void *a, const void *b)
{
	return in_order(*(struct acc_audited *const *)a, *(struct acc_audited *const *)b, false);
}

static int
by_call_wide(const void *a, const void *b)
{
	return in_order(*(struct acc_audited *const *)a, *(struct acc_audited *const *)b, true);
}

/* The lower median of all of n sorted values but one that is y. */
static double
median_but(const double *x, size_t n, double y)
{
	size_t m = (n - 2) / 2;
	return x[m + (y <= x[m])];
}

static void
raise_to(struct acc_audited *v, double rms, double max)
{
	double most = ceiling(v), each = v->limit_max / v->limit;
	v->limit = fmax(v->limit, fmin(rms, most));
	v->limit_max = fmax(v->limit_max, fmin(max, most * each));
}

/* The worst errors of each call among v[0..n), which stand call by call; how many calls. */
static size_t
calls_of(struct acc_audited *const *v, size_t n, double *rms, double *max)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		bool more = i > 0 && v[i]->call == v[i - 1]->call;
		k += !more;
		rms[k - 1] = more ? fmax(rms[k - 1], v[i]->rms) : v[i]->rms;
		max[k - 1] = more ? fmax(max[k - 1], v[i]->max) : v[i]->max;
	}
	return k;
}

/* In 16 bits: if most calls are beyond what f32 inside explains, or many have single elements
 * that are, then this device's operator rounds each step to 16 bits, and is measured so. */
static bool
coarsen(struct acc_audited **v, size_t n, double *rms, double *max)
{
	double most = v[0]->backward ? LIMIT_LOW_BACK_MAX : LIMIT_LOW_MAX;
	size_t calls = calls_of(v, n, rms, max), far = 0, beyond = 0;
	for (size_t i = 0; i < calls; i++) {
		far += rms[i] > v[0]->limit;
		beyond += max[i] > most;
	}
	if (!v[0]->low || beyond < LIMIT_LEARN_CALLS ||
		(far * LIMIT_ROUGH_CALLS <= calls && beyond * LIMIT_ROUGH_MAX_CALLS < calls))
		return false;
	for (size_t i = 0; i < n; i++) {
		v[i]->rms = v[i]->coarse_rms;
		v[i]->max = v[i]->coarse_max;
	}
	return true;
}

/* v[0..n) are calls alike; room has place for 4 n numbers. With few calls nothing is learnt;
 * what was learnt before is not learnt again. */
static void
learn(struct acc_audited **v, size_t n, bool wide, double *room)
{
	double *rms = room, *max = rms + n, *own_rms = max + n, *own_max = own_rms + n;
	bool rough = !wide && coarsen(v, n, rms, max);
	size_t calls = calls_of(v, n, own_rms, own_max), k = 0;
	if (calls < LIMIT_LEARN_CALLS)
		return;
	memcpy(rms, own_rms, calls * sizeof *rms);
	memcpy(max, own_max, calls * sizeof *max);
	qsort(rms, calls, sizeof *rms, acc_by_double);
	qsort(max, calls, sizeof *max, acc_by_double);
	for (size_t i = 0; i < n; i++) {
		k += i > 0 && v[i]->call != v[i - 1]->call;
		double usual = median_but(rms, calls, own_rms[k]);
		/* Of many errors by the normal law the largest is far from their rms: calls of few
		 * elements do not show how far. */
		double most = fmax(median_but(max, calls, own_max[k]),
			usual * sqrt(2 * log(2 * fmax(1, (double)v[i]->n))));
		if (!v[i]->learnt)
			raise_to(v[i], raise_rms(v[i], usual, rough) * usual,
				raise_max(v[i], rough) * most);
		v[i]->learnt = true;
	}
}

/* Does it fit only a device that rounds every step? Errors of either sign. One that adds up in 16 bits, too, is off by more
 * than its magnitudes tell: its limit is larger. */
static bool
needs_steps(const struct acc_audited *v, bool sums)
{
	return v->low && (v->rms > v->limit || v->max > v->limit_max) &&
	       v->coarse_rms <= v->limit * (sums ? sqrt(v->steps) : 1) &&
	       v->coarse_max <= v->limit_max;
}

/* Does it show that its operator, though of several steps, rounds once? */
static bool
rounds_once(const struct acc_audited *v)
{
	return v->low && !v->backward && v->steps > 1 && v->n >= LIMIT_LOW_FEW &&
	       v->max <= LIMIT_LOW_ONCE;
}

/* Do enough calls of this one's class, but itself? */
static bool
class_rounds_once(struct acc_audited *const *p, size_t m, const struct acc_audited *v)
{
	size_t calls = 0, last = SIZE_MAX;
	for (size_t i = 0; i < m; i++)
		if (p[i]->call != v->call && p[i]->call != last && strcmp(p[i]->cls, v->cls) == 0 &&
			rounds_once(p[i])) {
			calls++;
			last = p[i]->call;
		}
	return calls >= LIMIT_LOW_STEP_CALLS;
}

/* In 16 bits, of any class: where that is what some calls show forward, it is the device's way, and
 * whoever needs it is measured so. What is several operators in turn explains much with it, so two such
 * calls show nothing. Nor is one of a class accused of it that shows nothing else, as far as its own steps take it. */
static void
learn_steps(struct acc_audited **p, size_t m)
{
	size_t calls = 0, plain = 0, last = SIZE_MAX;
	const char *cls = NULL;
	bool once = false;
	for (size_t i = 0; i < m; i++)
		if (!p[i]->backward && p[i]->call != last && needs_steps(p[i], true)) {
			calls++;
			plain += !p[i]->in_steps;
			last = p[i]->call;
		}
	const bool usual = calls >= LIMIT_LEARN_CALLS || plain >= LIMIT_LOW_STEP_CALLS;
	for (size_t i = 0; i < m; i++) {
		if (!needs_steps(p[i], usual) || (!usual && !p[i]->tells_steps))
			continue;
		if (!usual && (cls == NULL || strcmp(cls, p[i]->cls) != 0)) {
			cls = p[i]->cls;
			once = class_rounds_once(p, m, p[i]);
		}
		if (!usual && once)
			continue;
		p[i]->rms = p[i]->coarse_rms;
		p[i]->max = p[i]->coarse_max;
		p[i]->limit *= usual ? sqrt(p[i]->steps) : 1;
	}
}

/* A device that cuts off what it should round makes everything too small: then slopes tell nothing. */
static void
learn_slopes(struct acc_audited *v, size_t n)
{
	size_t all = 0, beyond = 0;
	for (size_t i = 0; i < n; i++) {
		all += v[i].slope.limit > 0;
		beyond += v[i].slope.slope > v[i].slope.limit;
	}
	for (size_t i = 0; i < n && beyond * LIMIT_SLOPE_CALLS > all && beyond > 1; i++)
		v[i].slope = (struct acc_slope_found){0};
}

static void
learn_all(struct acc_audited **p, size_t m, bool wide, double *room)
{
	qsort(p, m, sizeof *p, wide ? by_call_wide : by_call);
	for (size_t i = 0, k; i < m; i = k) {
		for (k = i + 1; k < m && compare_class(p[i], p[k], wide) == 0; k++)
			;
		learn(p + i, k - i, wide, room);
	}
}

/* A network in 16 bits may do what little it does in f32 by tf32: nobody sees a twentieth of its
 * rounding. And where all calls of a class do in 16 bits what they give in f32 (a softmax of scores that
 * were cast), that is learnt. */
static void
forgive(struct acc_audited **v, size_t n)
{
	double bf16 = acc_unit(ACC_BF16) / acc_unit(ACC_F32);
	size_t low = 0, all = 0;
	for (size_t i = 0; i < n; i++)
		if (is_product(v[i])) {
			all++;
			low += v[i]->low;
		}
	for (size_t i = 0; i < n && low * 2 > all; i++) {
		v[i]->among_low = true;
		if (is_product(v[i]) && !v[i]->low)
			raise_to(v[i], LIMIT_LOW_NETWORK_RMS * bf16, LIMIT_LOW_NETWORK_MAX * bf16);
	}
}

static int
by_call_product(const void *a, const void *b)
{
	const struct acc_audited *x = *(struct acc_audited *const *)a;
	const struct acc_audited *y = *(struct acc_audited *const *)b;
	if (x->call != y->call)
		return x->call < y->call ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

/* How many of p[0..n) are of this form. */
static size_t
of_form(struct acc_audited *const *p, size_t n, const char *form)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++)
		k += p[i]->form != NULL && strcmp(p[i]->form, form) == 0;
	return k;
}

/* A device multiplies in one way, forward and backward: where the form of most errors of f32
 * products shows which, and there are too few of a pass to learn from, the others of either pass
 * tell how large they are. Where that is not the device's way, no form excuses. */
static void
learn_form(struct acc_audited **p, size_t m, double *room)
{
	size_t n = 0, most = 0;
	const char *form = NULL;
	for (size_t i = 0; i < m; i++)
		if (is_product(p[i]) && !p[i]->low && (p[i]->mode == 0 || p[i]->mode == 'r')) {
			struct acc_audited *v = p[i]; /* a result, or the gradient of a factor */
			p[i] = p[n];
			p[n++] = v;
		}
	for (size_t i = 0; i < n; i++) {
		size_t k = p[i]->form == NULL ? 0 : of_form(p, n, p[i]->form);
		form = k > most ? p[i]->form : form;
		most = k > most ? k : most;
	}
	for (size_t i = 0; i < n; i++)
		if (most * 2 < n || p[i]->form == NULL || strcmp(p[i]->form, form) != 0)
			p[i]->form = NULL;
	if (most == 0 || most * 2 < n)
		return;
	qsort(p, n, sizeof *p, by_call_product);
	double *rms = room, *max = rms + n, *own_rms = max + n, *own_max = own_rms + n;
	size_t calls = calls_of(p, n, own_rms, own_max), k = 0;
	memcpy(rms, own_rms, calls * sizeof *rms);
	memcpy(max, own_max, calls * sizeof *max);
	qsort(rms, calls, sizeof *rms, acc_by_double);
	qsort(max, calls, sizeof *max, acc_by_double);
	for (size_t i = 0; i < n; i++) {
		k += i > 0 && p[i]->call != p[i - 1]->call;
		if (p[i]->learnt)
			continue;
		if (calls < 2)
			raise_to(p[i], INFINITY, INFINITY);
		else
			raise_to(p[i], LIMIT_LEARN * median_but(rms, calls, own_rms[k]),
				LIMIT_LEARN * median_but(max, calls, own_max[k]));
	}
}

int
acc_limits(struct acc_audited *v, size_t n, const struct acc_audit_opt *opt)
{
	struct acc_audited **p = malloc((n > 0 ? n : 1) * sizeof *p);
	size_t m = 0;
	double *room = malloc((n > 0 ? n : 1) * 4 * sizeof *room);
	int rc = p == NULL || room == NULL ? ACC_ENOMEM : 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		if (v[i].skip != NULL)
			continue;
		basic(&v[i], &v[i].limit, &v[i].limit_max);
		if (opt->learn != NULL)
			rc = acc_profile_note(opt->learn, &v[i]);
		if (opt->usual != NULL)
			acc_profile_raise(opt->usual, &v[i]);
		if (v[i].known != NULL && opt->learn == NULL)
			acc_profile_raise(v[i].known, &v[i]);
		bool exact = v[i].rounding == ACC_EXACT && !v[i].backward;
		if (v[i].finite && !exact && !v[i].explained)
			p[m++] = &v[i];
	}
	if (rc < 0) {
		free(p);
		free(room);
		return rc;
	}
	forgive(p, m);
	learn_all(p, m, false, room);
	learn_all(p, m, true, room);
	learn_form(p, m, room);
	learn_steps(p, m);
	learn_slopes(v, n);
	free(p);
	free(room);
	return 0;
}

bool
acc_audited_good(const struct acc_audited *v)
{
	return v->rms <= v->limit && v->max <= v->limit_max && v->slope.slope <= v->slope.limit;
}
