/* Causes found by trying: an argument is changed, and the result is what was recorded. */
#include "replay/cause.h"
#include "acc/default.h"
#include "acc/say.h"
#include "replay/compose.h"
#include "replay/limits.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- tensors turned or shifted --- */

static bool
transposed(const struct attempt *a, const char *name)
{
	const struct acc_value *v = acc_try_given(&a->t->r, name);
	if (v == NULL || v->type != ACC_A_TENSOR || v->t->ndim < 2)
		return false;
	struct acc_dense d = *v->t;
	size_t n = (size_t)d.shape[d.ndim - 1];
	if (d.shape[d.ndim - 2] != d.shape[d.ndim - 1] ||
		(d.v = acc_doubles(&a->t->r, d.n)) == NULL)
		return false;
	for (size_t i = 0; i < d.n; i++)
		d.v[i] = v->t->v[i / (n * n) * n * n + i % n * n + i / n % n];
	return acc_try(a, name, acc_of_tensor(&d));
}

/* A mask whose edge lies one column further. */
static bool
shifted(const struct attempt *a, const char *name, int by)
{
	const struct acc_value *v = acc_try_given(&a->t->r, name);
	if (v == NULL || v->type != ACC_A_TENSOR || v->t->ndim == 0 || v->t->n == 0)
		return false;
	struct acc_dense d = *v->t;
	int64_t n = d.shape[d.ndim - 1];
	if ((d.v = acc_doubles(&a->t->r, d.n)) == NULL)
		return false;
	for (int64_t i = 0; i < (int64_t)d.n; i++) {
		int64_t c = i % n + by;
		d.v[i] = v->t->v[c < 0 || c >= n ? i : i + by];
	}
	return acc_try(a, name, acc_of_tensor(&d));
}

/* A causal mask that sees up to column i + diagonal of row i, as an argument. */
static bool
causal(const struct attempt *a, int64_t diagonal)
{
	const struct acc_value *q = acc_try_given(&a->t->r, "query"),
			       *k = acc_try_given(&a->t->r, "key");
	bool torch = acc_try_has(&a->t->r, "is_causal");
	struct acc_dense d;
	if (q == NULL || k == NULL || q->type != ACC_A_TENSOR || k->type != ACC_A_TENSOR ||
		q->t->ndim != 4 || k->t->ndim != 4)
		return false;
	int64_t shape[2] = {q->t->shape[2], k->t->shape[2]};
	if (acc_between(&a->t->r, ACC_BOOL, shape, 2, false, &d) < 0)
		return false;
	for (int64_t i = 0; i < (int64_t)d.n; i++)
		d.v[i] = (i % shape[1] <= i / shape[1] + diagonal) == torch;
	struct acc_value args[] = {acc_named(torch ? "attn_mask" : "atten_mask", acc_of_tensor(&d)),
		torch ? acc_named("is_causal", (struct acc_value){.type = ACC_A_BOOL})
		      : acc_named("sparse_mode", acc_of_int(0))};
	return acc_try_equals(a, acc_try_with(a, args, 2));
}

static const char *
masks(const struct attempt *a)
{
	static const char *const name[] = {"mask", "attn_mask", "atten_mask"};
	struct acc_replay *r = &a->t->r;
	bool on = false;
	for (int by = -1; by <= 1; by += 2) {
		int64_t d = 0;
		if (acc_try_has(r, "diagonal") && acc_arg_int(r, "diagonal", &d) >= 0 &&
			acc_try(a, "diagonal", acc_of_int(d + by)))
			return "the mask is off by one";
		for (size_t i = 0; i < 3; i++)
			if (shifted(a, name[i], by))
				return "the mask is off by one";
	}
	bool triangle = acc_try_has(r, "is_causal") && acc_arg_bool(r, "is_causal", &on) > 0 && on;
	const struct acc_value *mode = acc_try_given(r, "sparse_mode");
	if (triangle || (mode != NULL && mode->type == ACC_A_INT && mode->i == 2)) {
		if (causal(a, 1) || causal(a, -1))
			return "the mask is off by one";
		if (causal(a, INT32_MAX))
			return "the mask is missing";
	}
	for (size_t i = 1; i < 3; i++)
		if (acc_try_given(r, name[i]) != NULL &&
			acc_try(a, name[i], (struct acc_value){.type = ACC_A_NONE}))
			return "the mask is missing";
	return NULL;
}

/* --- places --- */

/* x[...] with one of its numbers one further. */
static bool
subscript(const struct attempt *a, int by)
{
	struct acc_replay *r = &a->t->r;
	struct acc_value *old = r->in, *in = acc_alloc(r->mem, r->nin * sizeof *in), *part;
	bool good = false;
	if (in == NULL || r->nin < 2)
		return false;
	memcpy(in, old, r->nin * sizeof *in);
	bool list = in[1].type == ACC_A_LIST;
	uint32_t n = list ? in[1].n : 1;
	for (uint32_t i = 0; i < n && !good; i++) {
		struct acc_value *item = acc_alloc(r->mem, (n + 3) * sizeof *item);
		if (item == NULL)
			return false;
		in[1] = old[1];
		if (list) {
			memcpy(item, old[1].item, n * sizeof *item);
			in[1].item = item;
		}
		part = list ? &item[i] : &in[1];
		if (part->type == ACC_A_INT) {
			part->i += by;
		} else if (part->type == ACC_A_SLICE) {
			memcpy(item + n, part->item, 3 * sizeof *item);
			part->item = item + n;
			for (int k = 0; k < 2; k++)
				if (part->item[k].type == ACC_A_INT)
					part->item[k].i += by;
		} else {
			continue;
		}
		r->in = in;
		good = acc_try_equals(a, acc_try_with(a, NULL, 0));
		r->in = old;
	}
	return good;
}

static const char *
slices(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	int64_t start;
	for (int by = -1; by <= 1; by += 2) {
		if (acc_try_is(r, "getitem") && subscript(a, by))
			return "the slice is shifted by one";
		if (acc_try_has(r, "start") && acc_try_has(r, "length") &&
			acc_arg_int(r, "start", &start) > 0 &&
			acc_try(a, "start", acc_of_int(start + by)))
			return "the slice is shifted by one";
	}
	return NULL;
}

/* Bounds as the recorded elements have them, if something lies between. */
static const char *
bounds(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	double low = INFINITY, high = -INFINITY, rlow = INFINITY, rhigh = -INFINITY;
	size_t between = 0;
	if (!acc_try_is(r, "clamp hardtanh"))
		return NULL;
	for (size_t i = 0; i < a->rec->n; i++) {
		low = fmin(low, a->rec->v[i]);
		high = fmax(high, a->rec->v[i]);
		rlow = fmin(rlow, a->ref[i]);
		rhigh = fmax(rhigh, a->ref[i]);
	}
	for (size_t i = 0; i < a->rec->n; i++)
		between += a->rec->v[i] > low && a->rec->v[i] < high;
	bool torch = acc_try_has(r, "min_val");
	struct acc_value args[] = {acc_named(torch ? "min_val" : "a", acc_of_float(low)),
		acc_named(torch ? "max_val" : "b", acc_of_float(high))};
	if (between == 0 || !acc_try_equals(a, acc_try_with(a, args, 2)))
		return NULL;
	if (low == rlow)
		return acc_say(r->mem, "as if its upper bound were %.6g", high);
	if (high == rhigh)
		return acc_say(r->mem, "as if its lower bound were %.6g", low);
	return acc_say(r->mem, "as if its bounds were %.6g and %.6g", low, high);
}

/* --- scales --- */

static const char *
scales(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	double s = 0;
	const char *name = acc_try_has(r, "scale")           ? "scale"
			   : acc_try_has(r, "softmax_scale") ? "softmax_scale"
							     : NULL;
	const struct acc_value *q = acc_try_given(r, "query");
	if (name != NULL) {
		int rc = acc_arg_float(r, name, &s);
		if (rc == 0 && q != NULL && q->type == ACC_A_TENSOR && q->t->ndim > 0)
			s = 1 / sqrt((double)q->t->shape[q->t->ndim - 1]);
	} else if (acc_try_is(r, "mul imul div truediv idiv")) {
		const struct acc_value *v = acc_arg(r, "other");
		name = "other";
		if (v != NULL && (v->type != ACC_A_TENSOR || v->t->n == 1))
			acc_arg_float(r, name, &s);
	}
	r->why = NULL;
	if (name == NULL || !(fabs(s) > 0) || fabs(fabs(s) - 1) < LIMIT_FACTOR_NEAR)
		return NULL;
	if (acc_try_number(a, name, 1))
		return "the scale is missing";
	if (acc_try_number(a, name, 1 / s))
		return "the scale is inverted";
	if (acc_try_number(a, name, s * s))
		return acc_say(r->mem, "scaled by %.4g in place of its root %.4g", s * s, s);
	if (s > 0 && acc_try_number(a, name, sqrt(s)))
		return acc_say(r->mem, "scaled by %.4g in place of its square %.4g", sqrt(s), s);
	return NULL;
}

/* A factor that a reduction or a dropout explains. */
static const char *
factors(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	double c = acc_residue_factor(a->rec, a->ref, NULL), p = 0.5, n = 0;
	const struct acc_value *x = acc_try_given(r, "input");
	if (!isfinite(c) || a->rec->n == 0 || x == NULL || x->type != ACC_A_TENSOR ||
		!(acc_residue(a->rec, a->ref, c, NULL) < a->most))
		return NULL;
	n = (double)x->t->n / (double)a->rec->n;
	bool mean = acc_try_is(r, "mean"), sum = acc_try_is(r, "sum");
	if (mean && n > 1 && fabs(c / n - 1) < LIMIT_FACTOR_NEAR)
		return acc_say(r->mem, "a factor of %.4g too much: a sum in place of a mean", c);
	if (sum && n > 1 && fabs(c * n - 1) < LIMIT_FACTOR_NEAR)
		return acc_say(r->mem, "a factor of %.4g: a mean in place of a sum", c);
	if (acc_try_is(r, "dropout native_dropout") && acc_arg_float(r, "p", &p) >= 0 && p > 0 &&
		p < 1 && fabs(c / (1 - p) - 1) < LIMIT_FACTOR_NEAR)
		return "the scale 1 / (1 - p) is missing";
	return NULL;
}

/* A norm whose variance is divided by n - 1, or by n in place of it. */
static const char *
variance(const struct attempt *a)
{
	static const char less[] = "the variance is divided by n - 1 in place of n";
	static const char more[] = "the variance is divided by n in place of n - 1";
	struct acc_replay *r = &a->t->r;
	const struct acc_value *x = acc_try_given(r, "input");
	double c, n = 1, correction = 1;
	if (acc_try_has(r, "correction")) {
		if (acc_arg_float(r, "correction", &correction) < 0)
			return NULL;
		bool unbiased = correction != 0;
		if (acc_arg_bool(r, "unbiased", &unbiased) < 0)
			return NULL;
		return acc_try_number(a, "correction", unbiased ? 0 : 1) ? unbiased ? more : less
									 : NULL;
	}
	if (strcmp(r->op->cls, "norm") != 0 || x == NULL || x->type != ACC_A_TENSOR ||
		x->t->ndim < 2)
		return NULL;
	struct acc_value none = acc_named("bias", (struct acc_value){.type = ACC_A_NONE});
	const double *bare = acc_try_given(r, "bias") == NULL ? a->ref : acc_try_with(a, &none, 1);
	double *shift = acc_doubles(r, a->rec->n);
	if (bare == NULL || shift == NULL)
		return NULL;
	for (size_t i = 0; i < a->rec->n; i++)
		shift[i] = a->ref[i] - bare[i];
	c = acc_residue_factor(a->rec, bare, shift);
	if (!isfinite(c) || !(acc_residue(a->rec, bare, c, shift) < a->most))
		return NULL;
	n = x->t->shape[1] == 0 ? 0 : (double)x->t->n / (double)x->t->shape[1]; /* batch norm */
	if (!acc_try_is(r, "batch_norm native_batch_norm"))
		n = (double)x->t->shape[x->t->ndim - 1];
	double want = sqrt((n - 1) / n);
	acc_try_note(a, NULL);
	return fabs(c - want) < LIMIT_VARIANCE_NEAR * (1 - want) ? less : NULL;
}

/* --- all --- */

/* A flag the other way round. */
static const char *
flags(const struct attempt *a)
{
	static const struct {
		const char *of, *name;
		bool usual;
	} flag[] = {{"interpolate", "align_corners", false},
		{"avg_pool2d", "count_include_pad", true}, {"sgd", "nesterov", false}};
	struct acc_replay *r = &a->t->r;
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++) {
		bool on = flag[i].usual;
		if (acc_try_is(r, flag[i].of) && acc_try_has(r, flag[i].name) &&
			acc_arg_bool(r, flag[i].name, &on) >= 0 &&
			acc_try(a, flag[i].name, (struct acc_value){.type = ACC_A_BOOL, .b = !on}))
			return acc_say(r->mem, "as if %s were %s", flag[i].name,
				on ? "False" : "True");
		r->why = NULL;
	}
	return NULL;
}

static const char *
numbers(const struct attempt *a)
{
	static const struct {
		const char *name, *value, *text;
	} word[] = {{"approximate", "tanh", "the tanh form of gelu in place of erf"},
		{"approximate", "none", "the erf form of gelu in place of tanh"}};
	static const char *const reduction[] = {"sum", "mean", "batchmean"};
	static const struct {
		const char *name, *cls, *text;
	} left_out[] = {{"bias", NULL, "the bias is missing"},
		{"weight", "norm", "the weight is missing"},
		{"gamma", "norm", "the weight is missing"},
		{"weight", "loss", "the weights of the classes are missing"},
		{"pos_weight", "loss", "pos_weight is missing"}};
	static const double usual_smoothing[] = {0.1, 0.05, 0.2};
	struct acc_replay *r = &a->t->r;
	double smooth = 0;
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (acc_try_has(r, word[i].name) && acc_try(a, word[i].name,
							    (struct acc_value){.type = ACC_A_TEXT,
								    .s = acc_str(word[i].value)}))
			return word[i].text;
	for (size_t i = 0; i < 3 && acc_try_has(r, "reduction"); i++)
		if (acc_try(a, "reduction",
			    (struct acc_value){.type = ACC_A_TEXT, .s = acc_str(reduction[i])}))
			return acc_say(r->mem, "a factor of %.4g, as if reduction were '%s'",
				acc_residue_factor(a->rec, a->ref, NULL), reduction[i]);
	const double eps = acc_try_usual(a, "eps");
	if (!isnan(eps))
		return acc_say(r->mem, "as if eps were %g", eps);
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (acc_try_given(r, left_out[i].name) != NULL &&
			(left_out[i].cls == NULL || strcmp(left_out[i].cls, r->op->cls) == 0) &&
			acc_try(a, left_out[i].name, (struct acc_value){.type = ACC_A_NONE}))
			return left_out[i].text;
	if (acc_try_has(r, "label_smoothing") && acc_arg_float(r, "label_smoothing", &smooth) > 0 &&
		smooth > 0 && acc_try_number(a, "label_smoothing", 0))
		return "label smoothing is missing";
	for (size_t i = 0; i < sizeof usual_smoothing / sizeof *usual_smoothing && smooth == 0 &&
			   acc_try_has(r, "label_smoothing");
		i++)
		if (acc_try_number(a, "label_smoothing", usual_smoothing[i]))
			return acc_say(r->mem, "as if label_smoothing were %g", usual_smoothing[i]);
	if (transposed(a, "weight") || transposed(a, "mat2"))
		return "the second operand is transposed";
	return NULL;
}

/* A class that counts for nothing, of those that are there: of so many one may leave the same loss by chance, so what
 * is left is no more than rounding. */
static const char *
ignored(const struct attempt *a)
{
	enum { MOST = 1 << 10, CLASSES = 64 };
	const struct acc_value *t = acc_try_given(&a->t->r, "target");
	double tried[CLASSES];
	uint32_t n = 0;
	if (!acc_try_has(&a->t->r, "ignore_index") || t == NULL || t->type != ACC_A_TENSOR ||
		t->t->v == NULL || acc_unit(t->t->dtype) > 0)
		return NULL;
	for (size_t i = 0; i < t->t->n && i < MOST && n < CLASSES; i++) {
		const double one = t->t->v[i];
		uint32_t k = 0;
		while (k < n && tried[k] != one)
			k++;
		if (k < n)
			continue;
		tried[n++] = one;
		char text[32];
		snprintf(text, sizeof text, "%.0f", one);
		if (acc_try(a, "ignore_index", acc_of_int((int64_t)one)) && a->t->explained)
			return acc_say(a->t->r.mem, "as if %s were %s", "ignore_index", text);
	}
	return NULL;
}

static bool
is_default(const struct attempt *a, const struct acc_default *d)
{
	char *end;
	const double x = strtod(d->value, &end);
	if (acc_word_in("True False", acc_str(d->value)))
		return acc_try(a, d->name,
			(struct acc_value){.type = ACC_A_BOOL, .b = d->value[0] == 'T'});
	if (*end != '\0')
		return acc_try(a, d->name,
			(struct acc_value){.type = ACC_A_TEXT, .s = acc_str(d->value)});
	return acc_try_number(a, d->name, x);
}

/* What frameworks have by default. */
static const char *
defaults(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_default *d, *had;
	for (size_t i = 0; (d = acc_default_at(i)) != NULL; i++) {
		bool tried = !acc_try_is(r, d->ops) || !acc_try_has(r, d->name);
		for (size_t k = 0; k < i && !tried; k++) {
			had = acc_default_at(k);
			tried = acc_try_is(r, had->ops) && strcmp(had->name, d->name) == 0 &&
				strcmp(had->value, d->value) == 0;
		}
		if (!tried && is_default(a, d))
			return isalpha((unsigned char)d->value[0]) &&
					       strchr("TF", d->value[0]) == NULL
				       ? acc_say(r->mem, "as if the %s were '%s'", d->name,
						 d->value)
				       : acc_say(r->mem, "as if %s were %s", d->name, d->value);
	}
	return NULL;
}

/* As many axes as are given, others. */
static const char *
several_axes(const struct attempt *a, int64_t nd)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_value *dim = acc_try_given(r, "dim");
	if (dim == NULL || dim->type != ACC_A_LIST || dim->n < 2 || dim->n >= nd || nd > ACC_MAXDIM)
		return NULL;
	for (unsigned bits = 1; bits < 1U << nd; bits++) {
		struct acc_value axis[ACC_MAXDIM];
		char text[4 * ACC_MAXDIM] = "";
		uint32_t n = 0;
		for (int64_t d = 0; d < nd; d++)
			if (bits >> d & 1)
				axis[n++] = acc_of_int(d);
		if (n != dim->n ||
			!acc_try(a, "dim",
				(struct acc_value){.type = ACC_A_LIST, .item = axis, .n = n}))
			continue;
		for (uint32_t i = 0; i < n; i++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRId64,
				i > 0 ? ", " : "", axis[i].i);
		return acc_say(r->mem, "along dimensions %s", text);
	}
	return NULL;
}

static const char *
dimensions(const struct attempt *a)
{
	const struct acc_value *x = acc_try_given(&a->t->r, "input");
	int64_t nd = x != NULL && x->type == ACC_A_TENSOR ? x->t->ndim : a->rec->ndim;
	for (int64_t d = -1; acc_try_has(&a->t->r, "dim") && d >= -nd; d--)
		if (acc_try(a, "dim", acc_of_int(d)))
			return acc_say(a->t->r.mem, "along dimension %" PRId64, d + nd);
	return acc_try_has(&a->t->r, "dim") ? several_axes(a, nd) : NULL;
}

const char *
acc_cause_argument(struct acc_trial *t, uint32_t k, const struct acc_dense *rec, const double *ref)
{
	static const char *(*const tries[])(const struct attempt *a) = {numbers, masks, slices,
		bounds, scales, factors, variance, flags, acc_cause_step, defaults, ignored,
		acc_cause_gates, dimensions, acc_cause_number};
	double most = acc_residue(rec, ref, 1, NULL) / LIMIT_CAUSE_SHARE;
	struct attempt a = {t, k, rec, ref, fmin(acc_residue_most(rec), most)};
	const char *s = NULL;
	for (size_t i = 0; i < sizeof tries / sizeof *tries && s == NULL; i++) {
		acc_try_note(&a, NULL);
		s = tries[i](&a);
		t->r.why = NULL;
	}
	if (s == NULL)
		t->changed.text[0] = '\0';
	return s;
}
