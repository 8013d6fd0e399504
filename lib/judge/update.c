/* An optimizer that one side calls for all parameters, and the other writes out in kernels. What both must agree in is
 * each weight behind the step: the bench's call has it beside the weight before it and its gradient, a dump of
 * MindSpore as a parameter of the graph's end. Where weight and gradient are the same, and the step is another, the
 * optimizer is; which argument of it the bench's call tells, recomputed with the device's weight. */
#include "acc/payload.h"
#include "acc/say.h"
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/recompute.h"

/* Parameters and elements that are looked at; tensors that may be a gradient; elements that are read for all. */
enum { PARAMS = 64, ELEMENTS = 1 << 20, GRADIENTS = 256, READ = 1 << 28 };
/* The one behind the nearest is so many times as far. */
enum { NEXT = 4 };

struct step {
	uint32_t old[PARAMS], grad[PARAMS], new[PARAMS], n; /* items of the bench's call */
	uint32_t agree, differ;
	uint32_t
		other; /* whose gradient is none of the device's, and whose weight becomes another */
	double by, tenth; /* the largest median, and of one element in ten */
	double factor; /* all steps are the bench's times this; NAN: they are not; 0: none was seen */
	uint32_t device, item; /* the device's first weight that differs, and the bench's */
	uint64_t read;
};

double *
acc_read_elements(struct acc_case *c, uint32_t item, const char *prefix, uint64_t n, uint64_t most,
	struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	struct acc_err own = {0};
	uint64_t have;
	int rc = acc_case_record(c, &c->item[item], &r, e);
	if (rc < 0 || n == 0 || n > most || acc_ref_get(r, prefix, &ref, &own) <= 0 ||
		!acc_count(ref.shape, ref.ndim, &have) || have != n ||
		acc_dtype_of(ref.dtype)->cls != 'F')
		return NULL;
	struct acc_pay *p = acc_pay_open(c->opt.where, acc_get_text(r, prefix, "src"), &ref, &own);
	double *v = p == NULL || acc_pay_count(p) != n ? NULL : malloc(n * sizeof *v);
	uint8_t *raw = v == NULL ? NULL : malloc(ACC_CHUNK * sizeof *v);
	for (uint64_t at = 0, k; v != NULL && at < n; at += k) {
		const void *q = NULL;
		k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		if (raw == NULL || acc_pay_read(p, at, (size_t)k, raw, &q, &own) < 0) {
			free(v);
			v = NULL;
			break;
		}
		for (uint64_t i = 0; i < k; i++)
			v[at + i] = acc_load_f64(ref.dtype,
				(const uint8_t *)q + i * acc_dtype_of(ref.dtype)->size);
	}
	free(raw);
	acc_pay_close(p);
	return v;
}

double
acc_far(const double *x, const double *y, uint64_t n)
{
	double off = 0, size = 0;
	for (uint64_t i = 0; i < n; i++) {
		off += (x[i] - y[i]) * (x[i] - y[i]);
		size += y[i] * y[i];
	}
	return size > 0 ? sqrt(off / size) : INFINITY;
}

/* Can this tensor of the device be so near to one of that size and norm? Norms are no further apart than tensors are;
 * one that was not measured may be. */
static bool
may_be(struct acc_case *c, uint32_t item, uint64_t n, double norm, double most)
{
	struct acc_rec *r;
	struct acc_ref ref;
	struct acc_err own = {0};
	uint64_t have;
	double is;
	if (acc_case_record(c, &c->item[item], &r, &own) < 0 ||
		acc_ref_get(r, "a.", &ref, &own) <= 0 || !acc_count(ref.shape, ref.ndim, &have) ||
		have != n)
		return false;
	const struct acc_val *v = acc_get(r, "a.", "s.norm");
	return v == NULL || !acc_as_f64(v, &is) || !(fabs(is - norm) > most * norm);
}

/* Of the device's tensors of this size in the same step the nearest to x: parameters of the graph, or results.
 * *next: how far the one behind it is. */
static uint32_t
nearest(struct acc_case *c, struct step *s, uint32_t like, const double *x, uint64_t n, bool params,
	double *least, double *next, struct acc_err *e)
{
	const struct acc_call *k = &c->call[c->item[like].call];
	const double most = params ? NEXT * LIMIT_UPDATE_NEAR : LIMIT_UPDATE_GRADIENT;
	uint32_t best = ACC_NOCALL, seen = 0;
	double norm = 0;
	for (uint64_t i = 0; i < n; i++)
		norm += x[i] * x[i];
	norm = sqrt(norm);
	*least = *next = INFINITY;
	for (uint32_t i = 0; i < c->nitem && seen < GRADIENTS && s->read < READ;
		i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->kind == ACC_ITEM_ARG || it->kind == ACC_ITEM_AUX || (it->sides & 1) == 0 ||
			it->call == ACC_NOCALL || c->call[it->call].step != k->step)
			continue;
		if (params != (it->io == ACC_IO_PARAM))
			continue;
		if (!may_be(c, i, n, norm, most))
			continue;
		struct acc_err quiet = {0};
		s->read += n;
		double *v = acc_read_elements(c, i, "a.", n, ELEMENTS, &quiet);
		if (v == NULL)
			continue;
		seen++;
		const double off = acc_far(v, x, n);
		free(v);
		if (off < *least) {
			*next = *least;
			*least = off;
			best = i;
		} else if (off != *least) { /* what a kernel writes in place is there twice */
			*next = fmin(*next, off);
		}
		if (!params && *least <= LIMIT_UPDATE_GRADIENT)
			break;
	}
	if (e->code != 0)
		return ACC_NOCALL;
	return best;
}

/* Of the two steps from `old`, how far they are apart, of the bench's in the median: in the median, and of one element in
 * ten, for what is divided by its own size shows elsewhere in its signs alone. Rounding of the weights is taken off. */
static void
apart(const double *old, const double *a, const double *b, uint64_t n, double *median,
	double *tenth)
{
	double *d = malloc(2 * n * sizeof *d);
	*median = *tenth = NAN;
	for (uint64_t i = 0; d != NULL && i < n; i++) {
		d[i] = fmax(0, fabs(a[i] - b[i]) - 0x1p-22 * fabs(b[i]));
		d[n + i] = fabs(b[i] - old[i]);
	}
	if (d != NULL) {
		qsort(d, n, sizeof *d, acc_by_double);
		qsort(d + n, n, sizeof *d, acc_by_double);
		if (d[n + n / 2] > 0) {
			*median = d[n / 2] / d[n + n / 2];
			*tenth = d[n - 1 - n / 10] / d[n + n / 2];
		}
	}
	free(d);
}

/* The factor that makes the one step the other, to a hundredth of it, as all of `before` do; NAN: there is none. */
static double
factor_of(const double *old, const double *a, const double *b, uint64_t n, double before)
{
	double ab = 0, bb = 0, left = 0, size = 0;
	for (uint64_t i = 0; i < n; i++) {
		ab += (a[i] - old[i]) * (b[i] - old[i]);
		bb += (b[i] - old[i]) * (b[i] - old[i]);
	}
	const double f = bb > 0 ? ab / bb : NAN;
	for (uint64_t i = 0; i < n; i++) {
		const double step = f * (b[i] - old[i]);
		left += (a[i] - old[i] - step) * (a[i] - old[i] - step);
		size += step * step;
	}
	const bool is = left <= LIMIT_UPDATE_TENTH * LIMIT_UPDATE_TENTH * 1e-2 * size;
	return is && (before == 0 || fabs(f - before) <= 0.01 * fabs(before)) ? f : NAN;
}

/* Do the two steps lead the same way, as those of n elements do not by chance? The cosine of two that have nothing to do
 * with each other is 0, give or take the root of 1/n. */
static bool
is_along(const double *old, const double *a, const double *b, uint64_t n)
{
	double ab = 0, aa = 0, bb = 0;
	for (uint64_t i = 0; i < n; i++) {
		ab += (a[i] - old[i]) * (b[i] - old[i]);
		aa += (a[i] - old[i]) * (a[i] - old[i]);
		bb += (b[i] - old[i]) * (b[i] - old[i]);
	}
	return ab > 0 && ab * ab > LIMIT_UPDATE_ALONG * aa * bb &&
	       (double)n * ab * ab > LIMIT_UPDATE_CHANCE * LIMIT_UPDATE_CHANCE * aa * bb;
}

/* The device's parameter to which the bench's step leads from `old`, times some number: a step that is many times as
 * large leads away from both weights. Where the gradient is not known, the way alone tells. *at: its item. NULL: there is
 * none. */
static double *
along(struct acc_case *c, struct step *s, uint32_t like, const double *old, const double *new,
	uint64_t n, bool known, uint32_t *at)
{
	const struct acc_call *k = &c->call[c->item[like].call];
	uint32_t seen = 0;
	for (uint32_t i = 0; i < c->nitem && seen < GRADIENTS && s->read < READ;
		i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_err quiet = {0};
		if (it->io != ACC_IO_PARAM || (it->sides & 1) == 0 || it->call == ACC_NOCALL ||
			c->call[it->call].step != k->step || !may_be(c, i, n, 0, INFINITY))
			continue;
		s->read += n;
		seen++;
		double *v = acc_read_elements(c, i, "a.", n, ELEMENTS, &quiet);
		if (v != NULL &&
			(known ? factor_of(old, v, new, n, 0) > 0 : is_along(old, v, new, n))) {
			*at = i;
			return v;
		}
		free(v);
	}
	return NULL;
}

static uint64_t
count_of(struct acc_case *c, uint32_t item, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_ref ref;
	struct acc_err own = {0};
	uint64_t n = 0;
	if (acc_case_record(c, &c->item[item], &r, e) < 0 ||
		acc_ref_get(r, "b.", &ref, &own) <= 0 || !acc_count(ref.shape, ref.ndim, &n))
		return 0;
	return n;
}

static void
compare(struct acc_case *c, struct step *s, uint32_t i, struct acc_err *e)
{
	const uint64_t n = count_of(c, s->old[i], e);
	double *old = acc_read_elements(c, s->old[i], "b.", n, ELEMENTS, e),
	       *new = acc_read_elements(c, s->new[i], "b.", n, ELEMENTS, e);
	double *grad = acc_read_elements(c, s->grad[i], "b.", n, ELEMENTS, e), *own = NULL, least,
	       next, by = 0;
	uint32_t at = ACC_NOCALL;
	bool known = false;
	if (old != NULL && new != NULL && grad != NULL) {
		at = nearest(c, s, s->grad[i], grad, n, false, &least, &next, e);
		known = at != ACC_NOCALL && least <= LIMIT_UPDATE_GRADIENT;
		by = known ? least : 0;
		/* A large step leads far away from the old weight, but not from the new one. */
		for (int k = 0; k < 2 && own == NULL; k++) {
			at = nearest(c, s, s->old[i], k == 0 ? old : new, n, true, &least, &next,
				e);
			if (at != ACC_NOCALL && least <= LIMIT_UPDATE_NEAR && next > NEXT * least)
				own = acc_read_elements(c, at, "a.", n, ELEMENTS, e);
		}
		if (own == NULL && n > 1)
			own = along(c, s, s->old[i], old, new, n, known, &at);
	}
	double off = NAN, tenth = NAN;
	if (own != NULL)
		apart(old, own, new, n, &off, &tenth);
	const double most = fmax(LIMIT_UPDATE_STEP, LIMIT_UPDATE_TIMES * by);
	const bool another = known ? off > most || tenth > LIMIT_UPDATE_TENTH
				   : off > LIMIT_UPDATE_TENTH;
	if (another) {
		if (s->differ + s->other == 0) {
			s->device = at;
			s->item = s->new[i];
		}
		s->differ += known;
		s->other += !known;
		s->factor = factor_of(old, own, new, n, s->factor);
		s->by = fmax(s->by, off);
		s->tenth = fmax(s->tenth, tenth);
	} else {
		s->agree += off <= most;
	}
	free(old);
	free(new);
	free(grad);
	free(own);
}

/* The weights, gradients and new weights of a call of the bench, in order: 0.i, 1.i, i. */
static int
find(struct acc_case *c, const char *key, uint32_t segment, struct step *s, struct acc_err *e)
{
	for (uint32_t i = 0; i < PARAMS; i++)
		s->old[i] = s->grad[i] = s->new[i] = ACC_NOCALL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		int64_t list, at;
		if (it->kind == ACC_ITEM_ARG || it->kind == ACC_ITEM_AUX || (it->sides & 2) == 0 ||
			it->call == ACC_NOCALL)
			continue;
		const struct acc_call *k = &c->call[it->call];
		if (k->segment != segment || k->key[ACC_B] == NULL ||
			strcmp(k->key[ACC_B], key) != 0)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		/* What is one tensor on the device may be one of several calls of the bench. */
		if (!acc_str_is(acc_get_text(r, "b.", "key"), key))
			continue;
		struct acc_str pos = acc_get_text(r, "b.", "pos");
		const char *dot = pos.n == 0 ? NULL : memchr(pos.p, '.', pos.n);
		if (dot == NULL && acc_is_output(it) && acc_str_int(pos, &at) && at >= 0 &&
			at < PARAMS)
			s->new[at] = i;
		if (dot == NULL || !acc_is_input(it) ||
			!acc_str_int((struct acc_str){pos.p, (uint32_t)(dot - pos.p)}, &list) ||
			!acc_str_int((struct acc_str){dot + 1, pos.n - (uint32_t)(dot + 1 - pos.p)},
				&at) ||
			at < 0 || at >= PARAMS)
			continue;
		if (list == 0)
			s->old[at] = i;
		else if (list == 1)
			s->grad[at] = i;
	}
	while (s->n < PARAMS && s->old[s->n] != ACC_NOCALL && s->grad[s->n] != ACC_NOCALL &&
		s->new[s->n] != ACC_NOCALL)
		s->n++;
	return 0;
}

/* The device's call that gives that weight: the first whose result it is. */
static const struct acc_call *
giver(const struct acc_case *c, uint32_t device)
{
	for (uint32_t i = 0; i < c->nitem && c->item[device].id[ACC_A] != 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->kind == ACC_ITEM_TENSOR && acc_is_output(it) && it->call != ACC_NOCALL &&
			it->id[ACC_A] == c->item[device].id[ACC_A] && c->call[it->call].keyed)
			return &c->call[it->call];
	}
	return &c->call[c->item[device].call];
}

static int
say(struct scan *s, const struct step *t, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = giver(c, t->device);
	const char *cause = "", *stack, *src = acc_say_source(c, &c->call[call], &stack, e);
	int rc = src == NULL     ? ACC_ENOMEM
		 : t->other == 0 ? acc_substitute_with(s, call, t->item, t->device, &cause, e)
				 : 0;
	/* Where most weights agree, an argument says why one does not, or nothing does. */
	if (rc == 0 && t->other == 0 && t->differ <= t->agree && cause[0] == '\0')
		return 0;
	struct acc_finding *f = rc == 0 ? acc_witness_find(s, ACC_WITNESS_weight_step, "culprit",
						  "update", e)
					: NULL;
	if (f == NULL)
		return rc < 0 ? rc : e->code;
	acc_finding_of(f, k);
	f->io = "out";
	const bool few = !(t->by > LIMIT_UPDATE_STEP);
	f->value = few ? t->tenth : t->by;
	f->limit = few ? LIMIT_UPDATE_TENTH : LIMIT_UPDATE_STEP;
	f->stack = stack;
	if (t->other > 0) {
		const char *times =
			isnan(t->factor)
				? ""
				: acc_say(acc_mem(s),
					  ", as what the gradients are multiplied with being %.4g times the bench's would make it",
					  t->factor);
		f->text = acc_say(acc_mem(s),
			"%s: the weights become others: of %u parameters that agree before the step %u do not behind it, the step being"
			" off by up to %.2g of itself in the median%s; the device has none of the gradients that %s takes on the bench:"
			" is the backward pass the same, and what scales or clips them?%s%s",
			f->name, t->agree + t->other, t->other, f->value, acc_got(times),
			c->call[call].key[ACC_B], src[0] != '\0' ? "; at " : "", src);
		return f->text == NULL ? acc_nomem(e) : 1;
	}
	f->text = acc_say(acc_mem(s),
		few ? "%s: the optimizer's step is another: of %u parameters whose weight and gradient agree, %u become"
		      " others than by %s on the bench, the step being off by %.2g of itself in one element of ten%s%s%s%s"
		    : "%s: the optimizer's step is another: of %u parameters whose weight and gradient agree, %u become others"
		      " than by %s on the bench, the step being off by up to %.2g of itself in the median%s%s%s%s",
		f->name, t->agree + t->differ, t->differ, c->call[call].key[ACC_B], f->value,
		cause[0] == '\0'
			? ""
			: acc_tr("; the bench's call gives the same if one thing is changed: "),
		cause, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 1;
}

/* Is the bench's tensor one of those that its optimizers of this step are given? */
static bool
is_stepped(const struct acc_case *c, uint32_t item)
{
	const struct acc_item *of = &c->item[item];
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->call != ACC_NOCALL && (it->sides & 2) != 0 && acc_is_input(it) &&
			it->id[ACC_B] == of->id[ACC_B] && acc_call_steps(&c->call[it->call]) &&
			c->call[it->call].step == c->call[of->call].step)
			return true;
	}
	return false;
}

/* Does the bench's backward pass leave this call out, and not all? */
static bool
stops_before(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *of = &c->call[call];
	bool any = false;
	for (uint32_t i = 0; i < c->ncall; i++) {
		const struct acc_call *k = &c->call[i];
		if (k->segment != of->segment || !k->backward || k->key[ACC_B] == NULL)
			continue;
		if (k->twin == of->twin)
			return false;
		any = true;
	}
	return any;
}

/* The parameter that the device has in place of this weight behind the step, where that is another: how far in *off;
 * ACC_NOCALL: it has the very same, or nothing like it. */
static uint32_t
stepped_alone(struct acc_case *c, struct step *s, uint32_t item, double *off, struct acc_err *e)
{
	double next;
	const uint64_t n = count_of(c, item, e);
	double *x = n < 2 ? NULL : acc_read_elements(c, item, "b.", n, ELEMENTS, e);
	const uint32_t at = x == NULL ? ACC_NOCALL : nearest(c, s, item, x, n, true, off, &next, e);
	free(x);
	return at != ACC_NOCALL && *off > LIMIT_UPDATE_GRADIENT && *off <= LIMIT_UPDATE_NEAR &&
			       next > NEXT * *off
		       ? at
		       : ACC_NOCALL;
}

/* A weight of both that the device's step changes, and that no optimizer of the bench is given: what gradients stop
 * before on one side alone. 1, 0, or < 0. */
static int
say_alone(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct step t = {.n = 0};
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		double off;
		if (it->kind != ACC_ITEM_TENSOR || it->sides != 3 || !acc_is_input(it) ||
			it->call == ACC_NOCALL || it->rms != 0 || !it->weight ||
			c->call[it->call].backward || it->id[ACC_B] == 0 || is_stepped(c, i) ||
			!stops_before(c, it->call))
			continue;
		const uint32_t at = stepped_alone(c, &t, i, &off, e);
		if (e->code != 0)
			return e->code;
		if (at == ACC_NOCALL)
			continue;
		const struct acc_call *k = giver(c, at), *user = &c->call[it->call];
		const char *stack, *src = acc_say_source(c, user, &stack, e);
		if (src == NULL)
			return acc_nomem(e);
		struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_weight_step, "culprit",
			"update", e);
		if (f == NULL)
			return e->code;
		acc_finding_of(f, k);
		f->io = "out";
		f->value = off;
		f->limit = LIMIT_UPDATE_GRADIENT;
		f->stack = stack;
		f->text = acc_say(acc_mem(s),
			"%s: a weight that %s takes is stepped by the device, by %.2g of itself, and no optimizer of the bench is given"
			" it: is its gradient to stop before it (detach, stop_gradient), or is it not to be trained?%s%s",
			f->name, user->key[ACC_B], off, src[0] != '\0' ? "; at " : "", src);
		return f->text == NULL ? acc_nomem(e) : 1;
	}
	return 0;
}

int
acc_say_update(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct acc_err own = {0};
	int rc = 0;
	if (c->opt.where == NULL || c->opt.roots == NULL)
		return 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind == ACC_ITEM_AUX &&
			(rc = acc_case_record(c, &c->item[i], &r, e)) == 0 &&
			acc_rec_is(r, "source"))
			acc_roots_add(c->opt.where, r, &own);
	}
	uint32_t last = ACC_NOCALL;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		struct step t = {.n = 0};
		if (!acc_call_steps(k))
			continue;
		last = i;
		rc = find(c, k->key[ACC_B], k->segment, &t, e);
		for (uint32_t p = 0; p < t.n && rc == 0; p++)
			compare(c, &t, p, e);
		/* In 16 bits gradients are others, by noise alone. */
		const bool other = t.other > t.agree + t.differ && !acc_unit_low(s->unit);
		t.other = other ? t.other : 0;
		if (rc == 0 && (t.differ > 0 || other)) {
			rc = say(s, &t, i, e);
			*call = rc > 0 ? i : *call;
		}
	}
	if (rc == 0 && last != ACC_NOCALL && !acc_unit_low(s->unit)) {
		rc = say_alone(s, e);
		*call = rc > 0 ? last : *call;
	}
	return rc;
}
