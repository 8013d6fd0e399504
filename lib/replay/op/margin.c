/* Losses of margins, of distances and of likelihoods with parameters. */
#include "replay/op/loss.h"

/* --- element by element: all inputs have the shape of the first, or one element --- */

enum { RANKING, HINGE, SOFT, POISSON, GAUSSIAN };

struct each {
	double margin, eps;
	bool log_input, full;
};

#define TAU 6.283185307179586

/* *mag: of the terms that are rounded on the way. */
static double
each_term(int which, const double *x, const struct each *k, double *mag)
{
	double v, var;
	switch (which) {
	case RANKING: /* x1, x2, target */
		*mag = fabs(x[2]) * (fabs(x[0]) + fabs(x[1])) + fabs(k->margin);
		return fmax(0, -x[2] * (x[0] - x[1]) + k->margin);
	case HINGE: /* x, target: the terms of both kinds of target are added */
		*mag = fabs(x[0]) + fabs(k->margin);
		v = x[1] != 1 ? fmax(0, k->margin - x[0]) : 0;
		return v + (x[1] != -1 ? x[0] : 0);
	case SOFT: /* x, target: 1 is added to the exponential */
		v = -x[1] * x[0];
		*mag = 1 + fabs(v);
		return fmax(v, 0) + log1p(exp(-fabs(v)));
	case POISSON: /* x, target */
		v = k->log_input ? exp(x[0]) : x[0];
		var = x[1] * (k->log_input ? x[0] : log(x[0] + k->eps));
		*mag = (1 + fabs(x[0])) * fabs(v) + fabs(var);
		v -= var;
		if (k->full && x[1] > 1) {
			*mag += fabs(x[1] * log(x[1])) + x[1];
			v += x[1] * log(x[1]) - x[1] + 0.5 * log(TAU * x[1]);
		}
		return v;
	default: /* GAUSSIAN: x, target, var */
		var = fmax(x[2], k->eps);
		v = (x[0] - x[1]) * (x[0] - x[1]) / var;
		*mag = 1 + fabs(log(var)) + 2 * v +
		       2 * fabs(x[0] - x[1]) * (fabs(x[0]) + fabs(x[1])) / var;
		return 0.5 * (log(var) + v + (k->full ? log(TAU) : 0));
	}
}

/* A variance for each row instead of each element has 1 there, or not that dimension. */
static size_t
step_of(const struct acc_dense *x, const struct acc_dense *y)
{
	if (y->n == x->n)
		return 1;
	if (y->n == 1)
		return x->n;
	uint32_t nd = x->ndim;
	size_t len = nd == 0 ? 1 : (size_t)x->shape[nd - 1];
	bool rows = nd > 0 && len > 0 && y->n == x->n / len &&
		    (y->ndim == nd - 1 || (y->ndim == nd && y->shape[nd - 1] == 1));
	for (uint32_t d = 0; rows && d + 1 < nd; d++)
		rows = y->shape[d] == x->shape[d];
	return rows ? len : 0;
}

static int
each_loss(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const names[][3] = {[RANKING] = {"input1", "input2", "target"},
		[GAUSSIAN] = {"input", "target", "var"},
		[HINGE] = {"input", "target"},
		[SOFT] = {"input", "target"},
		[POISSON] = {"input", "target"}};
	const int which = r->op->which;
	const struct acc_dense *in[3] = {NULL};
	struct each k = {.margin = which == HINGE,
		.eps = which == POISSON ? 1e-8 : 1e-6,
		.log_input = true};
	struct acc_loss t = {.out = out};
	size_t step[3] = {1, 1, 1}, n = 0;
	for (; n < 3 && names[which][n] != NULL; n++)
		if (acc_need_tensor(r, names[which][n], &in[n]) < 0)
			return ACC_EUNSUP;
	if (acc_arg_float(r, "margin", &k.margin) < 0 || acc_arg_float(r, "eps", &k.eps) < 0 ||
		acc_arg_bool(r, "log_input", &k.log_input) < 0 ||
		acc_arg_bool(r, "full", &k.full) < 0 || acc_loss_reduction(r, &t.how) < 0)
		return ACC_EUNSUP;
	for (size_t i = 1; i < n; i++) {
		step[i] = step_of(in[0], in[i]);
		if (step[i] == 0 || (step[i] > 1 && which != GAUSSIAN && in[i]->n != 1))
			return acc_cannot(r, "inputs that are broadcast");
	}
	if (t.how == ACC_LOSS_NONE && acc_out_shape(r, out, in[0]->shape, in[0]->ndim) < 0)
		return ACC_EUNSUP;
	t.step = acc_roundings(r, out->dtype);
	const double most = log(fmin(acc_max_of(out->dtype), acc_max_of(ACC_F32)));
	for (size_t i = 0; i < in[0]->n; i++) {
		double x[3] = {0}, mag;
		for (size_t a = 0; a < n; a++)
			x[a] = in[a]->v[i / step[a]];
		double v = each_term(which, x, &k, &mag);
		/* Each step is rounded, in 16 bits, too; and log(1 + exp(x)) overflows where it is computed so. */
		t.rough = mag;
		if (which == SOFT && v > most)
			mag = INFINITY;
		acc_loss_count(&t, v, mag, 1);
	}
	return acc_loss_finish(r, &t, (double)in[0]->n);
}

/* --- of rows of vectors [.., d] --- */

enum { TRIPLET, COSINE };

struct rows {
	const struct acc_dense *x[3]; /* anchor, positive, negative; input1, input2, target */
	size_t n, len;
	double margin, p, eps;
	bool swap;
};

/* The distance of two rows; *mag: of the differences, as they are rounded. */
static double
distance(const struct rows *k, size_t i, int a, int b, double *mag)
{
	const double *x = k->x[a]->v + i * k->len, *y = k->x[b]->v + i * k->len;
	double sum = 0, size = 0;
	for (size_t j = 0; j < k->len; j++) {
		double d = fabs(x[j] - y[j] + k->eps);
		sum = isinf(k->p) ? fmax(sum, d) : sum + (k->p == 2 ? d * d : pow(d, k->p));
		size = fmax(size, fabs(x[j]) + fabs(y[j]));
	}
	if (!isinf(k->p))
		sum = k->p == 2 ? sqrt(sum) : pow(sum, 1 / k->p);
	*mag += sum + size * sqrt((double)k->len);
	return sum;
}

static double
triplet(const struct rows *k, size_t i, double *mag, double *rough)
{
	*mag = fabs(k->margin);
	double near = distance(k, i, 0, 1, mag), far = distance(k, i, 0, 2, mag);
	if (k->swap)
		far = fmin(far, distance(k, i, 1, 2, mag));
	/* Both distances, and the sum, are rounded. */
	*rough = fabs(k->margin) + near + far;
	return fmax(0, k->margin + near - far);
}

/* 1 - cos, or what cos has beyond the margin */
static double
direction(const struct rows *k, size_t i, double *mag, bool *fits)
{
	const double *x = k->x[0]->v + i * k->len, *y = k->x[1]->v + i * k->len;
	double xy = 0, xx = 1e-12, yy = 1e-12, abs = 0, target = k->x[2]->v[i];
	for (size_t j = 0; j < k->len; j++) {
		xy += x[j] * y[j];
		abs += fabs(x[j] * y[j]);
		xx += x[j] * x[j];
		yy += y[j] * y[j];
	}
	const enum acc_dtype t = k->x[0]->dtype;
	double cos = xy / sqrt(xx * yy);
	/* PyTorch has that product in the tensor's dtype. */
	*fits &= !(xx * yy > acc_max_of(t)) && !(xx * yy < acc_tiny_of(t));
	*mag = 1 + abs / sqrt(xx * yy) + fabs(k->margin);
	return target == 1 ? 1 - cos : target == -1 ? fmax(0, cos - k->margin) : 0;
}

static int
row_loss(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const names[][3] = {[TRIPLET] = {"anchor", "positive", "negative"},
		[COSINE] = {"input1", "input2", "target"}};
	const bool of_triplet = r->op->which == TRIPLET;
	struct rows k = {.len = 1, .n = 1, .margin = of_triplet, .p = 2, .eps = 1e-6};
	struct acc_loss t = {.out = out};
	for (int i = 0; i < 3; i++)
		if (acc_need_tensor(r, names[r->op->which][i], &k.x[i]) < 0)
			return ACC_EUNSUP;
	if (acc_arg_float(r, "margin", &k.margin) < 0 || acc_arg_float(r, "p", &k.p) < 0 ||
		acc_arg_float(r, "eps", &k.eps) < 0 || acc_arg_bool(r, "swap", &k.swap) < 0 ||
		acc_loss_reduction(r, &t.how) < 0)
		return ACC_EUNSUP;
	const struct acc_dense *x = k.x[0];
	uint32_t nd = x->ndim;
	if (nd == 0 || !(k.p > 0))
		return acc_cannot(r, "a norm that is not understood");
	k.len = (size_t)x->shape[nd - 1];
	for (uint32_t d = 0; d + 1 < nd; d++)
		k.n *= (size_t)x->shape[d];
	for (int i = 1; i < 3; i++) {
		bool targets = i == 2 && !of_triplet;
		bool fits = k.x[i]->ndim == (targets ? nd - 1 : nd);
		for (uint32_t d = 0; fits && d < k.x[i]->ndim; d++)
			fits = k.x[i]->shape[d] == x->shape[d];
		if (!fits)
			return acc_cannot(r, "inputs that are broadcast");
	}
	if (t.how == ACC_LOSS_NONE && acc_out_shape(r, out, x->shape, nd - 1) < 0)
		return ACC_EUNSUP;
	t.step = acc_roundings(r, out->dtype);
	bool fits = true;
	for (size_t i = 0; i < k.n; i++) {
		double mag, v = of_triplet ? triplet(&k, i, &mag, &t.rough)
					   : direction(&k, i, &mag, &fits);
		if (!of_triplet) /* the cosine, and what is subtracted from it */
			t.rough = 2;
		acc_loss_count(&t, v, mag, 1);
	}
	if (!fits)
		return acc_cannot(r, "squares of its input are no numbers of its dtype");
	return acc_loss_finish(r, &t, (double)k.n);
}

/* --- of classes, one margin for each: x [n, c] or [c] --- */

enum { MULTI, MULTI_LABEL };

/* What class y of a row loses to the others. */
static double
against(const double *x, size_t c, size_t y, double p, double margin, double weight, double *mag)
{
	double sum = 0, size = 0;
	for (size_t j = 0; j < c; j++) {
		double z = margin - x[y] + x[j];
		size += j == y ? 0 : fabs(margin) + fabs(x[y]) + fabs(x[j]);
		sum += j == y || !(z > 0) ? 0 : weight * (p == 1 ? z : z * z);
	}
	*mag = fabs(weight) * size / (double)c + fabs(sum) / (double)c;
	return sum / (double)c;
}

/* Each class by itself: -(t log s(x) + (1 - t) log s(-x)), the mean of a row. */
static double
each_label(const double *x, const double *t, const double *w, size_t c, double *mag)
{
	double sum = 0, size = 0;
	for (size_t j = 0; j < c; j++) {
		double soft = log1p(exp(-fabs(x[j]))), by = w == NULL ? 1 : w[j];
		double yes = soft + fmax(-x[j], 0), no = soft + fmax(x[j], 0);
		sum += by * (t[j] * yes + (1 - t[j]) * no);
		size += fabs(by) * (1 + fabs(t[j]) * yes + fabs(1 - t[j]) * no);
	}
	*mag = size / (double)c;
	return sum / (double)c;
}

static int
label_loss(struct acc_replay *r, struct acc_dense *out)
{
	const bool multi = r->op->which == MULTI;
	const struct acc_dense *x, *y, *w = NULL;
	double margin = 1, p = 1;
	struct acc_loss t = {.out = out};
	if (acc_need_tensor(r, "input", &x) < 0 || acc_need_tensor(r, "target", &y) < 0 ||
		acc_arg_tensor(r, "weight", &w) < 0 || acc_arg_float(r, "p", &p) < 0 ||
		acc_arg_float(r, "margin", &margin) < 0 || acc_loss_reduction(r, &t.how) < 0)
		return ACC_EUNSUP;
	size_t c = x->ndim == 0 ? 1 : (size_t)x->shape[x->ndim - 1];
	size_t n = c == 0 ? 0 : x->n / c;
	if ((multi && x->ndim > 2) || y->n != (multi ? n : x->n) || (w != NULL && w->n != c) ||
		(p != 1 && p != 2))
		return acc_cannot(r, "its inputs do not fit each other");
	if (t.how == ACC_LOSS_NONE &&
		acc_out_shape(r, out, x->shape, x->ndim > 0 ? x->ndim - 1 : 0) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < n; i++) {
		double mag, v;
		if (multi && !(y->v[i] >= 0 && y->v[i] < (double)c))
			return acc_cannot(r, "a target that is no class");
		if (multi)
			v = against(x->v + i * c, c, (size_t)y->v[i], p, margin,
				w == NULL ? 1 : w->v[(size_t)y->v[i]], &mag);
		else
			v = each_label(x->v + i * c, y->v + i * c, w == NULL ? NULL : w->v, c,
				&mag);
		acc_loss_count(&t, v, mag, 1);
	}
	return acc_loss_finish(r, &t, (double)n);
}

/* In torch all but one are made of other operators, each of which rounds. */
#define LOSS(n, s, fl, f, w) \
	{ \
		.names = n, .sig = s, .cls = "loss", .rounding = ACC_FEW, .flags = fl, .eval = f, \
		.which = w \
	}
#define HOW " size_average reduce reduction"
#define ROWS ACC_IN_STEPS /* which change as their vectors are long */
#define EACH (ACC_IN_STEPS | ACC_UNIT_SCALE)
const struct acc_op acc_ops_margin[] = {
	LOSS("margin_ranking_loss MarginRankingLoss", "input1:any input2:any target margin" HOW,
		EACH, each_loss, RANKING),
	LOSS("hinge_embedding_loss HingeEmbeddingLoss", "input:any target margin" HOW, EACH,
		each_loss, HINGE),
	LOSS("soft_margin_loss SoftMarginLoss", "input:any target" HOW, EACH, each_loss, SOFT),
	LOSS("poisson_nll_loss PoissonNLLLoss",
		"input:any target log_input full size_average eps reduce reduction", EACH,
		each_loss, POISSON),
	LOSS("gaussian_nll_loss GaussianNLLLoss", "input:any target:any var:any full eps reduction",
		ACC_IN_STEPS | ACC_OWN_SCALE, each_loss, GAUSSIAN),
	LOSS("triplet_margin_loss TripletMarginLoss",
		"anchor:any positive:any negative:any margin p eps swap" HOW, ROWS, row_loss,
		TRIPLET),
	LOSS("cosine_embedding_loss CosineEmbeddingLoss", "input1:any input2:any target margin" HOW,
		ROWS, row_loss, COSINE),
	LOSS("multi_margin_loss MultiMarginLoss", "input:any target p margin weight" HOW,
		ACC_UNIT_SCALE, label_loss, MULTI),
	LOSS("multilabel_soft_margin_loss MultiLabelSoftMarginLoss",
		"input:any target:any weight:any" HOW, EACH, label_loss, MULTI_LABEL),
	{.names = NULL},
};
