/* Losses. */
#include "replay/op/loss.h"

int
acc_loss_reduction(struct acc_replay *r, int *out)
{
	struct acc_str how = ACC_STR("mean");
	if (acc_arg_text(r, "reduction", &how) < 0)
		return ACC_EUNSUP;
	*out = acc_str_is(how, "none")  ? ACC_LOSS_NONE
	       : acc_str_is(how, "sum") ? ACC_LOSS_SUM
					: ACC_LOSS_MEAN;
	if (acc_arg(r, "size_average") != NULL || acc_arg(r, "reduce") != NULL ||
		(*out == ACC_LOSS_MEAN && !acc_str_is(how, "mean")))
		return acc_cannot(r, "a reduction that is not understood");
	return 0;
}

void
acc_loss_count(struct acc_loss *t, double term, double mag, double weight)
{
	if (t->how == ACC_LOSS_NONE) {
		t->out->v[t->at] = term;
		if (t->out->mag != NULL)
			t->out->mag[t->at] = mag + t->step * t->rough;
	}
	t->sq += t->rough * t->rough;
	t->at++;
	const double y = term - t->carry, next = t->sum + y;
	t->carry = isfinite(next) ? (next - t->sum) - y : 0;
	t->sum = next;
	t->abs += mag;
	t->weight += weight;
}

int
acc_loss_finish(struct acc_replay *r, struct acc_loss *t, double divisor)
{
	if (t->how == ACC_LOSS_NONE)
		return 0;
	if (acc_out_shape(r, t->out, NULL, 0) < 0)
		return ACC_EUNSUP;
	double by = t->how == ACC_LOSS_MEAN ? divisor : 1;
	t->out->v[0] = t->sum / by;
	if (t->out->mag != NULL)
		/* The terms are rounded, and their sums may be, to 16 bits. */
		t->out->mag[0] = (t->abs + t->step * (sqrt(t->sq) + fabs(t->sum))) / fabs(by);
	/* Sums in 16 bits may overflow. */
	if (t->out->mag != NULL && t->abs > acc_max_of(t->out->dtype) && r->rec[0].v != NULL &&
		!isfinite(r->rec[0].v[0]))
		t->out->mag[0] = INFINITY;
	return 0;
}

double
acc_loss_terms2(struct acc_replay *r, const struct acc_dense *g)
{
	const struct acc_dense *t;
	int64_t ignore = -100;
	double sum = 0, n = 0;
	int how;
	if (acc_need_tensor(r, "target", &t) < 0 || acc_loss_reduction(r, &how) < 0 ||
		acc_arg_int(r, "ignore_index", &ignore) < 0)
		return 0;
	for (size_t i = 0; i < g->n; i++)
		sum += g->v[i] * g->v[i];
	if (how == ACC_LOSS_NONE)
		return sum;
	const bool shares = acc_str_is(r->name, "cross_entropy") && acc_is_float(t->dtype);
	for (size_t i = 0; i < t->n; i++)
		n += shares || t->v[i] != (double)ignore;
	if (shares) /* a row has one for each class */
		n /= (double)t->shape[t->ndim > 1] + (t->n == 0);
	return how == ACC_LOSS_SUM ? sum * n : n > 0 ? sum / n : 0;
}

/* --- classes: x [n, c, ...], target [n, ...] --- */

enum { CROSS, NLL };

struct classes {
	const struct acc_dense *x, *t, *w;
	size_t n, c, inner;
	int64_t ignore;
	double smooth;
	bool shares; /* targets are probabilities of all classes */
};

static int
classes(struct acc_replay *r, struct classes *k)
{
	*k = (struct classes){.ignore = -100, .n = 1, .inner = 1};
	if (acc_need_tensor(r, "input", &k->x) < 0 || acc_need_tensor(r, "target", &k->t) < 0 ||
		acc_arg_tensor(r, "weight", &k->w) < 0 ||
		acc_arg_int(r, "ignore_index", &k->ignore) < 0 ||
		acc_arg_float(r, "label_smoothing", &k->smooth) < 0)
		return ACC_EUNSUP;
	uint32_t nd = k->x->ndim, axis = nd == 1 ? 0 : 1;
	k->shares = r->op->which == CROSS && acc_is_float(k->t->dtype) && k->t->ndim == nd;
	if (nd == 0 || (!k->shares && (acc_is_float(k->t->dtype) || k->t->ndim + 1 != nd)))
		return acc_cannot(r, "targets that are no classes");
	k->c = (size_t)k->x->shape[axis];
	for (uint32_t d = 0; d < nd; d++) {
		if ((d != axis || k->shares) &&
			k->x->shape[d] != k->t->shape[d < axis || k->shares ? d : d - 1])
			return acc_cannot(r, "its inputs do not fit each other");
		k->n *= d < axis ? (size_t)k->x->shape[d] : 1;
		k->inner *= d > axis ? (size_t)k->x->shape[d] : 1;
	}
	if (k->w != NULL && k->w->n != k->c)
		return acc_cannot(r, "its inputs do not fit each other");
	return 0;
}

/* log of the softmax at class k, of c classes a step apart. */
static double
log_sum(const double *x, size_t c, size_t step)
{
	double top = -INFINITY, sum = 0, room[ACC_AUDIT_BLOCK], abs;
	if (step == 1) {
		top = acc_audit_row()->top(x, c);
		for (size_t i = 0, n; i < c; i += n) {
			n = c - i < ACC_AUDIT_BLOCK ? c - i : ACC_AUDIT_BLOCK;
			acc_audit_row()->exp(x + i, top, n, room);
			sum += acc_audit_row()->sum(room, n, &abs);
		}
		return isfinite(top) ? top + log(sum) : top;
	}
	for (size_t i = 0; i < c; i++)
		top = isnan(x[i * step]) || x[i * step] > top ? x[i * step] : top;
	for (size_t i = 0; i < c; i++)
		sum += exp(x[i * step] - top);
	return isfinite(top) ? top + log(sum) : top;
}

static void
one_place(const struct classes *k, bool cross, const double *x, size_t target, struct acc_loss *t)
{
	double lse = cross ? log_sum(x, k->c, k->inner) : 0;
	double w = k->w == NULL ? 1 : k->w->v[target];
	double v = w * (lse - x[target * k->inner]), all = 0;
	/* The sum is rounded, of which 1 is a part, though little may be left of its logarithm. */
	double mag = fabs(w) * (fabs(lse) + fabs(x[target * k->inner]) + (cross ? 1 : 0));
	for (size_t c = 0; k->smooth > 0 && c < k->c; c++)
		all += (k->w == NULL ? 1 : k->w->v[c]) * (lse - x[c * k->inner]);
	t->rough = fabs(v); /* the logarithm, which is picked */
	if (k->smooth > 0) {
		/* The sum over the classes is rounded, and what each is multiplied with. */
		const double part = k->smooth * all / (double)k->c;
		t->rough += (1 - k->smooth) * fabs(v) + 2 * fabs(part);
		v = (1 - k->smooth) * v + part;
		if (!(fabs(all) < acc_max_of(t->out->dtype)) && t->out->mag != NULL &&
			t->rec != NULL && !isfinite(t->rec[t->at]))
			mag = INFINITY; /* that sum overflows */
	}
	acc_loss_count(t, v, mag + fabs(v), w);
}

/* Of probabilities y: what each class would cost, in their proportion. */
static void
all_classes(const struct classes *k, const double *x, const double *y, struct acc_loss *t)
{
	const double lse = log_sum(x, k->c, k->inner);
	double v = 0, mag = 0, sq = 0;
	for (size_t c = 0; c < k->c; c++) {
		const double share = (1 - k->smooth) * y[c * k->inner] + k->smooth / (double)k->c;
		const double w = share * (k->w == NULL ? 1 : k->w->v[c]);
		const double term = w == 0 && !isnan(lse) ? 0 : w * (lse - x[c * k->inner]);
		v += term;
		sq += term * term;
		mag += fabs(w) * (fabs(lse) + fabs(x[c * k->inner]) + 1);
	}
	t->rough = 2 * sqrt(sq); /* the logarithms, and what they are multiplied with */
	acc_loss_count(t, v, mag, 1);
}

double
acc_loss_kept2(struct acc_replay *r, const struct acc_dense *g)
{
	struct classes k;
	double sum = 0;
	int how;
	if (!acc_str_is(r->name, "cross_entropy") || classes(r, &k) < 0 || !k.shares ||
		acc_loss_reduction(r, &how) < 0 || g->n == 0)
		return 0;
	for (size_t i = 0; i < k.n * k.inner; i++) {
		const double *x = k.x->v + i / k.inner * k.c * k.inner + i % k.inner;
		const double lse = log_sum(x, k.c, k.inner);
		const double by = g->v[how == ACC_LOSS_NONE ? i % g->n : 0] /
				  (how == ACC_LOSS_MEAN ? (double)(k.n * k.inner) : 1);
		for (size_t c = 0; c < k.c; c++) {
			const double y = x[c * k.inner] - lse;
			sum += y > -700 ? exp(2 * y) * y * y * by * by : 0;
		}
	}
	return sum;
}

/* PyTorch adds the terms up in the result's dtype, sums of 16 of them and sums of 16 of these again (LossNLL.cpp).
 * Each partial sum is rounded, to either side, or all to the same one where what is added is nearly the same. */
static double
cascade(double n, bool alike)
{
	enum { EACH = 16 };
	const double levels = n > 1 ? ceil(log2(n) / log2(EACH)) : 0;
	const double some = levels * fmin(n, EACH);
	return alike ? some / 4 : sqrt(some / 3);
}

double
acc_loss_divisor(struct acc_replay *r)
{
	struct classes k;
	int how;
	return classes(r, &k) < 0 || acc_loss_reduction(r, &how) < 0 || k.w == NULL ||
			       how != ACC_LOSS_MEAN
		       ? 0
		       : cascade((double)k.t->n, false);
}

static int
class_loss(struct acc_replay *r, struct acc_dense *out)
{
	struct classes k;
	struct acc_loss t = {.out = out};
	if (acc_loss_reduction(r, &t.how) < 0 || classes(r, &k) < 0 ||
		(t.how == ACC_LOSS_NONE && !k.shares &&
			acc_out_shape(r, out, k.t->shape, k.t->ndim) < 0))
		return ACC_EUNSUP;
	t.step = acc_roundings(r, out->dtype);
	t.rec = t.how == ACC_LOSS_NONE ? r->rec[0].v : NULL;
	if (k.shares && t.how == ACC_LOSS_NONE && out->n != k.n * k.inner)
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; k.shares && i < k.n * k.inner; i++) {
		const size_t at = i / k.inner * k.c * k.inner + i % k.inner;
		all_classes(&k, k.x->v + at, k.t->v + at, &t);
	}
	for (size_t i = 0; i < k.t->n && !k.shares; i++) {
		double target = k.t->v[i];
		const double *x = k.x->v + i / k.inner * k.c * k.inner + i % k.inner;
		if (target == (double)k.ignore)
			acc_loss_count(&t, 0, 0, 0);
		else if (!(target >= 0 && target < (double)k.c))
			return acc_cannot(r, "a target that is no class");
		else
			one_place(&k, r->op->which == CROSS, x, (size_t)target, &t);
	}
	if (acc_loss_finish(r, &t, t.weight) < 0)
		return ACC_EUNSUP;
	if (k.w != NULL && t.how == ACC_LOSS_MEAN && out->mag != NULL) /* the sum of the weights */
		out->mag[0] += t.step * fabs(out->v[0]);
	const double n = (double)k.t->n;
	const bool alike = t.sq * n <= t.sum * t.sum * (1 + 0x1p-8);
	if (t.how != ACC_LOSS_NONE && !k.shares && out->mag != NULL && t.sum != 0)
		out->mag[0] += t.step * fabs(out->v[0]) * cascade(n, alike);
	/* All classes of all rows may be summed up in 16 bits first. */
	const double sum = t.abs * (double)k.c;
	if (k.smooth > 0 && out->mag != NULL && t.how != ACC_LOSS_NONE && r->rec[0].v != NULL &&
		!isfinite(r->rec[0].v[0]) && sum > acc_max_of(out->dtype))
		out->mag[0] = INFINITY;
	return 0;
}

/* --- element by element --- */

enum { MSE, L1, SMOOTH_L1, HUBER, BCE, BCE_LOGITS, KL };

struct pair {
	double beta;
	bool log_target, pos;
	double pos_weight;
};

static double
clamped_log(double x)
{
	return fmax(log(x), -100);
}

static double
term(int which, double x, double y, const struct pair *k)
{
	double d = fabs(x - y), soft;
	switch (which) {
	case MSE:
		return d * d;
	case L1:
		return d;
	case SMOOTH_L1:
		return d < k->beta ? 0.5 * d * d / k->beta : d - 0.5 * k->beta;
	case HUBER:
		return d <= k->beta ? 0.5 * d * d : k->beta * (d - 0.5 * k->beta);
	case BCE:
		return -(y * clamped_log(x) + (1 - y) * clamped_log(1 - x));
	case BCE_LOGITS:
		soft = log1p(exp(-fabs(x))) + fmax(-x, 0);
		return (1 - y) * x + (1 + (k->pos_weight - 1) * y) * soft;
	default: /* KL */
		if (k->log_target)
			return exp(y) * (y - x);
		return y > 0 ? y * (log(y) - x) : 0;
	}
}

/* How large the numbers are that such a term is the small difference of, beside x y: with logits, frameworks add
 * the largest of 0 and -x again to what a log of a sum near 1 leaves. */
static double
terms(int which, double x, double y)
{
	return which != BCE_LOGITS ? 0 : fabs((1 - y) * x) + fmax(-x, 0) + 1;
}

/* What frameworks round on the way to a term where they compute it in steps: the sum of the sizes. */
static double
rough(int which, double x, double y, double v, const struct pair *k)
{
	const double d = fabs(x - y);
	switch (which) {
	case MSE:
		return 2 * v;
	case L1:
		return 0;
	case SMOOTH_L1:
	case HUBER:
		return d <= k->beta ? 2 * v : 2 * k->beta * d;
	case BCE_LOGITS:
		return fabs(x) * (1 + fabs(1 - y)) + 2 * (log1p(exp(-fabs(x))) + fmax(-x, 0));
	case BCE:
		return fabs(v);
	default:
		return fabs(v) + fabs(x * y);
	}
}

static int
pair_arguments(struct acc_replay *r, struct pair *k)
{
	const struct acc_dense *pos = NULL;
	*k = (struct pair){.beta = 1, .pos_weight = 1};
	if (acc_arg_float(r, "beta", &k->beta) < 0 ||
		acc_arg_bool(r, "log_target", &k->log_target) < 0 ||
		acc_arg_tensor(r, "pos_weight", &pos) < 0)
		return ACC_EUNSUP;
	if (pos != NULL && pos->n != 1)
		return acc_cannot(r, "a weight for each class");
	k->pos_weight = pos == NULL ? 1 : pos->v[0];
	return 0;
}

static int
pair_loss(struct acc_replay *r, struct acc_dense *out)
{
	const struct acc_dense *x, *y, *w = NULL;
	struct acc_str how = {"", 0};
	struct pair k;
	struct acc_loss t = {.out = out};
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "target", &y) < 0 ||
		acc_arg_tensor(r, "weight", &w) < 0 || pair_arguments(r, &k) < 0)
		return ACC_EUNSUP;
	if (r->op->which == KL && acc_arg_text(r, "reduction", &how) < 0)
		return ACC_EUNSUP;
	/* Of MindSpore's kernel it is not recorded: a number may be any of them. */
	if (r->op->which == KL && acc_str_is(r->name, "KLDivLoss") && !r->module && how.n == 0)
		return acc_cannot(r, "how it is reduced was not recorded");
	bool per_row = acc_str_is(how, "batchmean");
	if (per_row)
		t.how = ACC_LOSS_MEAN;
	else if (acc_loss_reduction(r, &t.how) < 0)
		return ACC_EUNSUP;
	if (x->n != y->n || (w != NULL && w->n != x->n))
		return acc_cannot(r, "inputs that are broadcast");
	if (t.how == ACC_LOSS_NONE && acc_out_shape(r, out, x->shape, x->ndim) < 0)
		return ACC_EUNSUP;
	t.step = acc_roundings(r, out->dtype);
	for (size_t i = 0; i < x->n; i++) {
		const double by = w == NULL ? 1 : w->v[i];
		double v = term(r->op->which, x->v[i], y->v[i], &k) * by;
		t.rough = rough(r->op->which, x->v[i], y->v[i], v, &k) *
				  (w == NULL ? 1 : fabs(by)) +
			  (w == NULL ? 0 : fabs(v));
		acc_loss_count(&t, v,
			fabs(v) + fabs(x->v[i] * y->v[i]) +
				fabs(by) * terms(r->op->which, x->v[i], y->v[i]),
			1);
	}
	bool rows = per_row && x->ndim > 0;
	return acc_loss_finish(r, &t, rows ? (double)x->shape[0] : (double)x->n);
}

/* --- CTC: x [t, n, c] or [t, c] of log probabilities, targets [n, s] or one after another --- */

struct ctc {
	const struct acc_dense *x, *targets;
	size_t t, n, c;
	int64_t *steps, *length; /* of each sample: of x, of its targets */
	int64_t blank;
	bool zero_infinity;
};

/* The lengths of n samples: a tensor, or integers. */
static int
lengths(struct acc_replay *r, const char *name, size_t n, size_t most, int64_t **out)
{
	const struct acc_value *v = acc_arg(r, name);
	bool tensor = v != NULL && v->type == ACC_A_TENSOR;
	uint32_t have = 0;
	*out = acc_alloc(r->mem, (n + 1) * sizeof **out);
	if (*out == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	if (!tensor && acc_arg_ints(r, name, *out, (uint32_t)n, &have) < 0)
		return ACC_EUNSUP;
	if (tensor && v->t->v != NULL && v->t->n == n)
		for (; have < n; have++)
			(*out)[have] = (int64_t)v->t->v[have];
	for (size_t i = 0; i < n; i++)
		if (have != n || (*out)[i] < 0 || (uint64_t)(*out)[i] > most)
			return acc_cannot(r, "its lengths are not understood");
	return 0;
}

static int
ctc_read(struct acc_replay *r, struct ctc *k)
{
	*k = (struct ctc){.n = 1};
	if (acc_need_tensor(r, "input", &k->x) < 0 ||
		acc_need_tensor(r, "targets", &k->targets) < 0 ||
		acc_arg_int(r, "blank", &k->blank) < 0 ||
		acc_arg_bool(r, "zero_infinity", &k->zero_infinity) < 0)
		return ACC_EUNSUP;
	uint32_t nd = k->x->ndim;
	if (nd != 2 && nd != 3)
		return acc_cannot(r, "its inputs do not fit each other");
	k->t = (size_t)k->x->shape[0];
	k->n = nd == 3 ? (size_t)k->x->shape[1] : 1;
	k->c = (size_t)k->x->shape[nd - 1];
	if (k->n > ACC_MAX_TABLE || k->blank < 0 || (uint64_t)k->blank >= k->c ||
		(k->targets->ndim == 2 && (size_t)k->targets->shape[0] != k->n))
		return acc_cannot(r, "its inputs do not fit each other");
	for (size_t i = 0; i < k->targets->n; i++)
		if (!(k->targets->v[i] >= 0 && k->targets->v[i] < (double)k->c))
			return acc_cannot(r, "a class outside of its input");
	size_t most = k->targets->ndim == 2 ? (size_t)k->targets->shape[1] : k->targets->n;
	if (lengths(r, "input_lengths", k->n, k->t, &k->steps) < 0)
		return ACC_EUNSUP;
	return lengths(r, "target_lengths", k->n, most, &k->length);
}

static double
log_add(double a, double b)
{
	double top = fmax(a, b);
	return isinf(top) ? top : top + log(exp(a - top) + exp(b - top));
}

/* The log of what all paths through the labels of sample i sum up to; *mag: of the sizes of what
 * is added on the way. Labels stand between blanks; from one, a path stays, goes on, or leaves a
 * blank out between different ones. `a` has room for a number for each of them. */
static double
paths(const struct ctc *k, size_t i, const double *label, double *a, double *mag)
{
	size_t s = (size_t)k->length[i], n = 2 * s + 1;
	for (size_t j = 0; j < n; j++)
		a[j] = -INFINITY;
	*mag = 0;
	for (int64_t t = 0; t < k->steps[i]; t++) {
		const double *x = k->x->v + ((size_t)t * k->n + i) * k->c;
		double most = 0;
		for (size_t j = n; j-- > 0;) {
			double here = x[j % 2 == 0 ? (size_t)k->blank : (size_t)label[j / 2]],
			       sum = a[j];
			if (j > 0)
				sum = log_add(sum, a[j - 1]);
			if (j % 2 == 1 && j > 1 && label[j / 2] != label[j / 2 - 1])
				sum = log_add(sum, a[j - 2]);
			a[j] = here + (t > 0 ? sum : j < 2 ? 0 : -INFINITY);
			most = isfinite(a[j]) ? fmax(most, fabs(here)) : most;
		}
		*mag += most;
	}
	/* Of no steps, what is empty is certain. */
	if (k->steps[i] == 0)
		return s == 0 ? 0 : -INFINITY;
	return s == 0 ? a[0] : log_add(a[n - 1], a[n - 2]);
}

/* What torch gives back is the gradient of what log_softmax was given, if that is where x is from: for
 * every step, the probabilities are added to it. They are the gradient of their own sum. */
static double
certainty(const struct ctc *k, size_t i)
{
	double sum = 0;
	for (int64_t t = 0; t < k->steps[i]; t++)
		for (size_t c = 0; c < k->c; c++)
			sum += exp(k->x->v[((size_t)t * k->n + i) * k->c + c]);
	return sum;
}

static int
ctc_loss(struct acc_replay *r, struct acc_dense *out)
{
	struct ctc k;
	struct acc_loss t = {.out = out};
	if (acc_loss_reduction(r, &t.how) < 0 || ctc_read(r, &k) < 0 ||
		(t.how == ACC_LOSS_NONE &&
			acc_out_shape(r, out, &k.x->shape[1], k.x->ndim - 2) < 0))
		return ACC_EUNSUP;
	double *a = acc_doubles(r, 2 * k.targets->n + 1);
	if (a == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	size_t at = 0;
	for (size_t i = 0; i < k.n; i++) {
		bool padded = k.targets->ndim == 2;
		size_t first = padded ? i * (size_t)k.targets->shape[1] : at;
		if (first + (size_t)k.length[i] > k.targets->n)
			return acc_cannot(r, "its lengths are not understood");
		double mag, v = -paths(&k, i, k.targets->v + first, a, &mag);
		double by = t.how == ACC_LOSS_MEAN && k.length[i] > 1 ? (double)k.length[i] : 1;
		bool lost = k.zero_infinity && isinf(v);
		v = lost ? 0 : v;
		if (out->mag == NULL && !lost)
			v += certainty(&k, i);
		acc_loss_count(&t, v / by, mag / by, 1);
		at += (size_t)k.length[i];
	}
	return acc_loss_finish(r, &t, (double)k.n);
}

#define LOSS_AS(n, s, f, w, more) \
	{ \
		.names = n, .sig = s, .cls = "loss", .rounding = ACC_FEW, \
		.flags = ACC_UNIT_SCALE | (more), .eval = f, .which = w \
	}
#define LOSS(n, s, f, w) LOSS_AS(n, s, f, w, 0)
#define PAIR "input:any target:any "
const struct acc_op acc_ops_loss[] = {
	LOSS_AS("cross_entropy CrossEntropyLoss",
		"input:any target:any weight size_average ignore_index reduce reduction "
		"label_smoothing",
		class_loss, CROSS, ACC_LESS_TARGET),
	LOSS("nll_loss NLLLoss",
		"input:any target weight size_average ignore_index reduce reduction", class_loss,
		NLL),
	LOSS("mse_loss MSELoss", PAIR "size_average reduce reduction", pair_loss, MSE),
	LOSS("l1_loss L1Loss", PAIR "size_average reduce reduction", pair_loss, L1),
	LOSS("smooth_l1_loss SmoothL1Loss", PAIR "size_average reduce reduction beta", pair_loss,
		SMOOTH_L1),
	LOSS("huber_loss HuberLoss", PAIR "reduction beta|delta", pair_loss, HUBER),
	LOSS_AS("binary_cross_entropy BCELoss BinaryCrossEntropy",
		PAIR "weight size_average reduce reduction", pair_loss, BCE, ACC_UNTIL_ONE),
	LOSS_AS("binary_cross_entropy_with_logits BCEWithLogitsLoss",
		PAIR "weight size_average reduce reduction pos_weight", pair_loss, BCE_LOGITS,
		ACC_LESS_TARGET),
	LOSS("kl_div KLDivLoss", PAIR "size_average reduce reduction log_target", pair_loss, KL),
	{.names = "ctc_loss",
		.sig = "input|log_probs:any targets input_lengths target_lengths blank "
		       "reduction zero_infinity",
		.cls = "loss",
		.rounding = ACC_FEW,
		.flags = ACC_UNIT_SCALE,
		.eval = ctc_loss},
	{.names = NULL},
};
#undef PAIR
