/* Causes found by trying: an argument is changed, and the result is what was recorded. */
#include "replay/cause.h"
#include "acc/say.h"
#include "replay/compose.h"
#include "replay/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct attempt {
	struct acc_trial *t;
	const struct acc_dense *rec; /* output 0 */
	const double *ref;           /* what the arguments give as they are */
	double most;                 /* a residue that convinces: far below that of ref */
};

/* Output 0 with other arguments: the first n of `with`, by name; NULL: they do not fit. */
static const double *
with(const struct attempt *a, const struct acc_value *args, uint32_t n)
{
	struct acc_trial *t = a->t;
	struct acc_replay *r = &a->t->r;
	struct acc_value *old = r->kw, *kw = acc_alloc(r->mem, (r->nkw + n) * sizeof *kw);
	struct acc_dense *out = acc_trial_outputs(t, false);
	if (kw == NULL || out == NULL)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		kw[i] = args[i];
	if (r->nkw > 0)
		memcpy(kw + n, old, r->nkw * sizeof *kw);
	r->kw = kw;
	r->nkw += n;
	int rc = acc_replay_eval(r, out);
	r->kw = old;
	r->nkw -= n;
	r->why = NULL;
	return rc == 0 ? out[0].v : NULL;
}

static bool
equals(const struct attempt *a, const double *v)
{
	double left = v == NULL ? INFINITY : acc_residue(a->rec, v, 1, NULL);
	bool low = acc_unit_low(acc_unit(a->rec->dtype));
	a->t->explained = left < a->most && left <= (low ? LIMIT_LOW_RMS : LIMIT_ONCE_RMS);
	return left < a->most;
}

static bool
matches(const struct attempt *a, const char *name, struct acc_value v)
{
	v = acc_named(name, v);
	return equals(a, with(a, &v, 1));
}

static bool
matches_number(const struct attempt *a, const char *name, double x)
{
	return matches(a, name, acc_of_float(x));
}

/* Does the row know an argument of this name? */
static bool
has(const struct acc_replay *r, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = r->op->sig; (p = strstr(p, name)) != NULL; p += n) {
		bool first = p == r->op->sig || strchr(" |*", p[-1]) != NULL;
		if (first && strchr(" |:", p[n]) != NULL) /* or its end */
			return true;
	}
	return false;
}

static const struct acc_value *
given(const struct acc_replay *r, const char *name)
{
	return has(r, name) ? acc_arg(r, name) : NULL;
}

static bool
is(const struct acc_replay *r, const char *names)
{
	return acc_word_in(names, r->info == NULL ? r->name : acc_op_own_name(r->info));
}

/* --- tensors turned or shifted --- */

static bool
transposed(const struct attempt *a, const char *name)
{
	const struct acc_value *v = given(&a->t->r, name);
	if (v == NULL || v->type != ACC_A_TENSOR || v->t->ndim < 2)
		return false;
	struct acc_dense d = *v->t;
	size_t n = (size_t)d.shape[d.ndim - 1];
	if (d.shape[d.ndim - 2] != d.shape[d.ndim - 1] ||
		(d.v = acc_doubles(&a->t->r, d.n)) == NULL)
		return false;
	for (size_t i = 0; i < d.n; i++)
		d.v[i] = v->t->v[i / (n * n) * n * n + i % n * n + i / n % n];
	return matches(a, name, acc_of_tensor(&d));
}

/* A mask whose edge lies one column further. */
static bool
shifted(const struct attempt *a, const char *name, int by)
{
	const struct acc_value *v = given(&a->t->r, name);
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
	return matches(a, name, acc_of_tensor(&d));
}

/* A causal mask that sees up to column i + diagonal of row i, as an argument. */
static bool
causal(const struct attempt *a, int64_t diagonal)
{
	const struct acc_value *q = given(&a->t->r, "query"), *k = given(&a->t->r, "key");
	bool torch = has(&a->t->r, "is_causal");
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
	return equals(a, with(a, args, 2));
}

static const char *
masks(const struct attempt *a)
{
	static const char *const name[] = {"mask", "attn_mask", "atten_mask"};
	struct acc_replay *r = &a->t->r;
	bool on = false;
	for (int by = -1; by <= 1; by += 2) {
		int64_t d = 0;
		if (has(r, "diagonal") && acc_arg_int(r, "diagonal", &d) >= 0 &&
			matches(a, "diagonal", acc_of_int(d + by)))
			return "the mask is off by one";
		for (size_t i = 0; i < 3; i++)
			if (shifted(a, name[i], by))
				return "the mask is off by one";
	}
	bool triangle = has(r, "is_causal") && acc_arg_bool(r, "is_causal", &on) > 0 && on;
	const struct acc_value *mode = given(r, "sparse_mode");
	if (triangle || (mode != NULL && mode->type == ACC_A_INT && mode->i == 2)) {
		if (causal(a, 1) || causal(a, -1))
			return "the mask is off by one";
		if (causal(a, INT32_MAX))
			return "the mask is missing";
	}
	for (size_t i = 1; i < 3; i++)
		if (given(r, name[i]) != NULL &&
			matches(a, name[i], (struct acc_value){.type = ACC_A_NONE}))
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
		good = equals(a, with(a, NULL, 0));
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
		if (is(r, "getitem") && subscript(a, by))
			return "the slice is shifted by one";
		if (has(r, "start") && has(r, "length") && acc_arg_int(r, "start", &start) > 0 &&
			matches(a, "start", acc_of_int(start + by)))
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
	if (!is(r, "clamp hardtanh"))
		return NULL;
	for (size_t i = 0; i < a->rec->n; i++) {
		low = fmin(low, a->rec->v[i]);
		high = fmax(high, a->rec->v[i]);
		rlow = fmin(rlow, a->ref[i]);
		rhigh = fmax(rhigh, a->ref[i]);
	}
	for (size_t i = 0; i < a->rec->n; i++)
		between += a->rec->v[i] > low && a->rec->v[i] < high;
	bool torch = has(r, "min_val");
	struct acc_value args[] = {acc_named(torch ? "min_val" : "a", acc_of_float(low)),
		acc_named(torch ? "max_val" : "b", acc_of_float(high))};
	if (between == 0 || !equals(a, with(a, args, 2)))
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
	const char *name = has(r, "scale")           ? "scale"
			   : has(r, "softmax_scale") ? "softmax_scale"
						     : NULL;
	const struct acc_value *q = given(r, "query");
	if (name != NULL) {
		int rc = acc_arg_float(r, name, &s);
		if (rc == 0 && q != NULL && q->type == ACC_A_TENSOR && q->t->ndim > 0)
			s = 1 / sqrt((double)q->t->shape[q->t->ndim - 1]);
	} else if (is(r, "mul imul div truediv idiv")) {
		const struct acc_value *v = acc_arg(r, "other");
		name = "other";
		if (v != NULL && (v->type != ACC_A_TENSOR || v->t->n == 1))
			acc_arg_float(r, name, &s);
	}
	r->why = NULL;
	if (name == NULL || !(fabs(s) > 0) || fabs(fabs(s) - 1) < LIMIT_FACTOR_NEAR)
		return NULL;
	if (matches_number(a, name, 1))
		return "the scale is missing";
	if (matches_number(a, name, 1 / s))
		return "the scale is inverted";
	if (matches_number(a, name, s * s))
		return acc_say(r->mem, "scaled by %.4g in place of its root %.4g", s * s, s);
	if (s > 0 && matches_number(a, name, sqrt(s)))
		return acc_say(r->mem, "scaled by %.4g in place of its square %.4g", sqrt(s), s);
	return NULL;
}

/* A factor that a reduction or a dropout explains. */
static const char *
factors(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	double c = acc_residue_factor(a->rec, a->ref, NULL), p = 0.5, n = 0;
	const struct acc_value *x = given(r, "input");
	if (!isfinite(c) || a->rec->n == 0 || x == NULL || x->type != ACC_A_TENSOR ||
		!(acc_residue(a->rec, a->ref, c, NULL) < a->most))
		return NULL;
	n = (double)x->t->n / (double)a->rec->n;
	bool mean = is(r, "mean"), sum = is(r, "sum");
	if (mean && n > 1 && fabs(c / n - 1) < LIMIT_FACTOR_NEAR)
		return acc_say(r->mem, "a factor of %.4g too much: a sum in place of a mean", c);
	if (sum && n > 1 && fabs(c * n - 1) < LIMIT_FACTOR_NEAR)
		return acc_say(r->mem, "a factor of %.4g: a mean in place of a sum", c);
	if (is(r, "dropout native_dropout") && acc_arg_float(r, "p", &p) >= 0 && p > 0 && p < 1 &&
		fabs(c / (1 - p) - 1) < LIMIT_FACTOR_NEAR)
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
	const struct acc_value *x = given(r, "input");
	double c, n = 1, correction = 1;
	if (has(r, "correction")) {
		if (acc_arg_float(r, "correction", &correction) < 0)
			return NULL;
		bool unbiased = correction != 0;
		if (acc_arg_bool(r, "unbiased", &unbiased) < 0)
			return NULL;
		return matches_number(a, "correction", unbiased ? 0 : 1) ? unbiased ? more : less
									 : NULL;
	}
	if (strcmp(r->op->cls, "norm") != 0 || x == NULL || x->type != ACC_A_TENSOR ||
		x->t->ndim < 2)
		return NULL;
	struct acc_value none = acc_named("bias", (struct acc_value){.type = ACC_A_NONE});
	const double *bare = given(r, "bias") == NULL ? a->ref : with(a, &none, 1);
	double *shift = acc_doubles(r, a->rec->n);
	if (bare == NULL || shift == NULL)
		return NULL;
	for (size_t i = 0; i < a->rec->n; i++)
		shift[i] = a->ref[i] - bare[i];
	c = acc_residue_factor(a->rec, bare, shift);
	if (!isfinite(c) || !(acc_residue(a->rec, bare, c, shift) < a->most))
		return NULL;
	n = x->t->shape[1] == 0 ? 0 : (double)x->t->n / (double)x->t->shape[1]; /* batch norm */
	if (!is(r, "batch_norm native_batch_norm"))
		n = (double)x->t->shape[x->t->ndim - 1];
	double want = sqrt((n - 1) / n);
	return fabs(c - want) < LIMIT_VARIANCE_NEAR * (1 - want) ? less : NULL;
}

/* --- steps of optimizers --- */

/* All steps so late that nothing is corrected any more. */
static bool
uncorrected(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	uint32_t n = acc_arg_count(r, "params");
	static double late = 1e9;
	struct acc_dense step = {.dtype = ACC_F64, .n = 1, .v = &late};
	if (has(r, "beta1_power")) {
		struct acc_value args[] = {acc_named("beta1_power", acc_of_float(0)),
			acc_named("beta2_power", acc_of_float(0))};
		return equals(a, with(a, args, 2));
	}
	struct acc_value steps = {.type = ACC_A_LIST,
		.n = n,
		.item = acc_alloc(r->mem, (n + 1) * sizeof *steps.item)};
	if (!has(r, "state_steps") || steps.item == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
		steps.item[i] = acc_of_tensor(&step);
	return matches(a, "state_steps", steps);
}

/* The value of a number in which a step is linear. */
static const char *
solved(const struct attempt *a, const char *name)
{
	struct acc_replay *r = &a->t->r;
	double x = 0, over = 0, under = 0;
	char text[24];
	if (!has(r, name) || acc_arg_float(r, name, &x) < 0)
		return NULL;
	const double h = x != 0 ? x : 0.01;
	const struct acc_value more = acc_named(name, acc_of_float(x + h));
	const double *v = with(a, &more, 1);
	for (size_t i = 0; v != NULL && i < a->rec->n; i++) {
		over += (a->rec->v[i] - a->ref[i]) * (v[i] - a->ref[i]);
		under += (v[i] - a->ref[i]) * (v[i] - a->ref[i]);
	}
	if (!(under > 0))
		return NULL;
	snprintf(text, sizeof text, "%.3g", x + h * over / under);
	x = strtod(text, NULL);
	return matches_number(a, name, x) ? acc_say(r->mem, "as if %s were %g", name, x) : NULL;
}

/* A weight decay of the other kind: "adam" adds it to the gradient, "adamw" takes it off the parameter. */
static const char *
other_decay(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_op *op = r->op;
	bool coupled = is(r, "adam"), decoupled = false, other;
	if ((!coupled && !is(r, "adamw")) ||
		acc_arg_bool(r, "decoupled_weight_decay", &decoupled) < 0)
		return NULL;
	if (coupled) {
		coupled = !decoupled;
		other = matches(a, "decoupled_weight_decay",
			(struct acc_value){.type = ACC_A_BOOL, .b = coupled});
	} else {
		r->op = acc_op_find(acc_str("adam"));
		other = equals(a, with(a, NULL, 0));
		r->op = op;
	}
	if (!other)
		return NULL;
	return coupled ? "the weight decay is taken off the parameter, not added to the gradient"
		       : "the weight decay is added to the gradient, not taken off the parameter";
}

static const char *
steps(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const char *s = NULL;
	double decay = 0;
	if (strcmp(r->op->cls, "optimizer") != 0)
		return NULL;
	if (uncorrected(a))
		return "the bias correction is missing";
	if (has(r, "momentum") && matches_number(a, "momentum", 0))
		return "the momentum is missing";
	if (has(r, "weight_decay") && acc_arg_float(r, "weight_decay", &decay) >= 0 && decay != 0)
		s = matches_number(a, "weight_decay", 0) ? "the weight decay is missing"
							 : other_decay(a);
	if (s == NULL)
		s = solved(a, "lr");
	return s != NULL ? s : solved(a, "weight_decay");
}

/* --- recurrent networks --- */

/* The blocks of rows of each weight and bias, in another order. */
static bool
reordered(const struct attempt *a, const struct acc_value *params, const uint8_t *order,
	size_t blocks)
{
	struct acc_replay *r = &a->t->r;
	struct acc_value list = {.type = ACC_A_LIST,
		.n = params->n,
		.item = acc_alloc(r->mem, (params->n + 1) * sizeof *list.item)};
	for (uint32_t i = 0; list.item != NULL && i < params->n; i++) {
		const struct acc_value *v = &params->item[i];
		struct acc_dense *d = acc_alloc(r->mem, sizeof *d);
		if (d == NULL || v->type != ACC_A_TENSOR || v->t->v == NULL || v->t->ndim == 0 ||
			(size_t)v->t->shape[0] % blocks != 0)
			return false;
		*d = *v->t;
		if ((d->v = acc_doubles(r, d->n)) == NULL)
			return false;
		const size_t n = d->n / blocks;
		for (size_t k = 0; k < blocks; k++)
			memcpy(d->v + k * n, v->t->v + order[k] * n, n * sizeof *d->v);
		list.item[i] = acc_of_tensor(d);
	}
	return list.item != NULL && matches(a, "params", list);
}

/* Frameworks pack the gates in orders of their own. */
static const char *
gates(const struct attempt *a)
{
	enum { MOST = 1 << 16 }; /* elements, of a cause that takes two dozen evaluations */
	struct acc_replay *r = &a->t->r;
	const struct acc_value *params = given(r, "params");
	const char *const name = is(r, "lstm") ? "ifgo" : is(r, "gru") ? "rzn" : "";
	const size_t n = strlen(name), all = n == 4 ? 256 : 27;
	if (n == 0 || params == NULL || params->type != ACC_A_LIST || a->rec->n > MOST)
		return NULL;
	for (size_t code = 0; code < all; code++) {
		uint8_t order[4];
		unsigned seen = 0;
		for (size_t i = 0, c = code; i < n; i++, c /= n) {
			order[i] = (uint8_t)(c % n);
			seen |= 1U << order[i];
		}
		if (seen != (1U << n) - 1 || !reordered(a, params, order, n))
			continue;
		char text[8];
		for (size_t i = 0; i < n; i++) {
			text[2 * i] = name[order[i]];
			text[2 * i + 1] = i + 1 < n ? ' ' : '\0';
		}
		return acc_say(r->mem, "the gates in its weights in the order %s", text);
	}
	return NULL;
}

/* --- all --- */

static const char *
numbers(const struct attempt *a)
{
	static const double eps[] = {1e-5, 1e-6, 1e-12, 1e-8, 1e-3, 1e-2};
	static const struct {
		const char *name, *value, *text;
	} word[] = {{"approximate", "tanh", "the tanh form of gelu in place of erf"},
		{"approximate", "none", "the erf form of gelu in place of tanh"}};
	static const struct {
		const char *value, *text;
	} reduction[] = {{"sum", "a sum in place of a mean"}, {"mean", "a mean in place of a sum"}};
	static const struct {
		const char *name, *cls, *text;
	} left_out[] = {{"bias", NULL, "the bias is missing"},
		{"weight", "norm", "the weight is missing"},
		{"gamma", "norm", "the weight is missing"},
		{"weight", "loss", "the weights of the classes are missing"}};
	struct acc_replay *r = &a->t->r;
	double smooth = 0;
	for (size_t i = 0; i < sizeof word / sizeof *word; i++)
		if (has(r, word[i].name) && matches(a, word[i].name,
						    (struct acc_value){.type = ACC_A_TEXT,
							    .s = acc_str(word[i].value)}))
			return word[i].text;
	for (size_t i = 0; i < 2 && has(r, "reduction"); i++)
		if (matches(a, "reduction",
			    (struct acc_value){.type = ACC_A_TEXT,
				    .s = acc_str(reduction[i].value)}))
			return acc_say(r->mem, "a factor of %.4g: %s",
				acc_residue_factor(a->rec, a->ref, NULL), reduction[i].text);
	for (size_t i = 0; has(r, "eps") && i < sizeof eps / sizeof *eps; i++)
		if (matches_number(a, "eps", eps[i]))
			return acc_say(r->mem, "as if eps were %g", eps[i]);
	for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
		if (given(r, left_out[i].name) != NULL &&
			(left_out[i].cls == NULL || strcmp(left_out[i].cls, r->op->cls) == 0) &&
			matches(a, left_out[i].name, (struct acc_value){.type = ACC_A_NONE}))
			return left_out[i].text;
	if (has(r, "label_smoothing") && acc_arg_float(r, "label_smoothing", &smooth) > 0 &&
		smooth > 0 && matches_number(a, "label_smoothing", 0))
		return "label smoothing is missing";
	if (transposed(a, "weight") || transposed(a, "mat2"))
		return "the second operand is transposed";
	return NULL;
}

/* What other frameworks have by default, where these are not torch's: MindSpore, Keras, JAX, Paddle, ONNX, ggml. */
static const char *
defaults(const struct attempt *a)
{
	static const struct {
		const char *of, *name;
		double value;
	} number[] = {{"leaky_relu", "negative_slope", 0.2}, {"leaky_relu", "negative_slope", 0.3},
		{"leaky_relu", "negative_slope", 0.01}, {"elu", "alpha", 1}, {"celu", "alpha", 1},
		{"smooth_l1_loss", "beta", 1}, {"smooth_l1_loss", "beta", 0.5},
		{"layer_norm", "eps", 1e-7}, {"layer_norm batch_norm group_norm", "eps", 1e-3},
		{"softplus", "beta", 1}};
	static const struct {
		const char *of, *name;
		bool value;
	} flag[] = {{"interpolate", "align_corners", true}, {"interpolate", "align_corners", false},
		{"avg_pool2d", "count_include_pad", true},
		{"avg_pool2d", "count_include_pad", false}, {"sgd", "nesterov", true},
		{"sgd", "nesterov", false}};
	static const char *const pads[] = {"same", "valid"};
	struct acc_replay *r = &a->t->r;
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		if (is(r, number[i].of) && has(r, number[i].name) &&
			matches_number(a, number[i].name, number[i].value))
			return acc_say(r->mem, "as if %s were %g", number[i].name, number[i].value);
	for (size_t i = 0; i < sizeof flag / sizeof *flag; i++)
		if (is(r, flag[i].of) && has(r, flag[i].name) &&
			matches(a, flag[i].name,
				(struct acc_value){.type = ACC_A_BOOL, .b = flag[i].value}))
			return acc_say(r->mem, "as if %s were %s", flag[i].name,
				flag[i].value ? "True" : "False");
	for (size_t i = 0; i < 2 && is(r, "conv1d") && has(r, "padding"); i++)
		if (matches(a, "padding",
			    (struct acc_value){.type = ACC_A_TEXT, .s = acc_str(pads[i])}))
			return acc_say(r->mem, "as if the padding were '%s'", pads[i]);
	return NULL;
}

static const char *
dimensions(const struct attempt *a)
{
	const struct acc_value *x = given(&a->t->r, "input");
	int64_t nd = x != NULL && x->type == ACC_A_TENSOR ? x->t->ndim : a->rec->ndim;
	for (int64_t d = -1; has(&a->t->r, "dim") && d >= -nd; d--)
		if (matches(a, "dim", acc_of_int(d)))
			return acc_say(a->t->r.mem, "along dimension %" PRId64, d + nd);
	return NULL;
}

const char *
acc_cause_argument(struct acc_trial *t, const struct acc_dense *rec, const double *ref)
{
	static const char *(*const tries[])(const struct attempt *a) = {numbers, masks, slices,
		bounds, scales, factors, variance, steps, defaults, gates, dimensions};
	double most = acc_residue(rec, ref, 1, NULL) / LIMIT_CAUSE_SHARE;
	struct attempt a = {t, rec, ref, fmin(acc_residue_most(rec), most)};
	const char *s = NULL;
	for (size_t i = 0; i < sizeof tries / sizeof *tries && s == NULL; i++) {
		s = tries[i](&a);
		t->r.why = NULL;
	}
	return s;
}
