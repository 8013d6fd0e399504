/* Steps of optimizers that have a rate of their own for each element, by lists of parameters.
 *
 * Sources: torch.optim of 2.15, the functional forms adamax, nadam, radam, adadelta, rprop. */
#include "replay/op/step.h"

#include <math.h>

/* What the call is told. */
struct rate {
	double lr, b1, b2, eps, decay, forget; /* forget: momentum_decay of NAdam */
	bool maximize, decoupled;
	bool before_2; /* as torch before 2.0 calls it, which has no decoupled weight decay */
};

/* The gradient, with the weight decay that is added to it, and what it was summed up of. */
static double
decayed(const struct rate *k, double g, double p, double *size)
{
	const double d = k->decoupled ? 0 : k->decay * p;
	*size = fabs(g) + fabs(d);
	return (k->maximize ? -g : g) + d;
}

#define NO_STATE "its gradient or its state was not recorded"

static int
begin(struct acc_replay *r, const struct acc_slot *s, const struct acc_dense *g)
{
	return s[STEP_SECOND].x == NULL ? acc_cannot(r, NO_STATE) : acc_step_check(r, s, g);
}

static int
adamax_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	const struct rate *k = told;
	if (begin(r, s, grad) < 0)
		return ACC_EUNSUP;
	const double rate = k->lr / (1 - pow(k->b1, counted + 1));
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i], was = s[STEP_FIRST].x->v[i], size;
		double g = decayed(k, grad->v[i], p, &size), m = k->b1 * was + (1 - k->b1) * g;
		double most = fmax(k->b2 * s[STEP_SECOND].x->v[i], fabs(g) + k->eps);
		const double mmag = fabs(was) + size, step = rate * m / most;
		acc_step_store(&s[STEP_FIRST], i, m, mmag);
		acc_step_store(&s[STEP_SECOND], i, most, fmax(most, size));
		acc_step_store(&s[STEP_PARAM], i, p - step,
			fabs(p) + rate * mmag / most + fabs(step) * fmax(most, size) / most);
	}
	return 0;
}

/* How much of the momentum NAdam takes in step t, from 1 on. */
static double
taken(const struct rate *k, double t)
{
	return k->b1 * (1 - 0.5 * pow(0.96, t * k->forget));
}

static int
nadam_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	enum { STEPS = 1 << 20 };
	const struct rate *k = told;
	if (begin(r, s, grad) < 0)
		return ACC_EUNSUP;
	if (!(counted >= 0 && counted < STEPS))
		return acc_cannot(r, "its step is not understood");
	double product = 1, now = taken(k, counted + 1), next = taken(k, counted + 2);
	for (int t = 1; t <= counted + 1 && product > 0; t++)
		product *= taken(k, t);
	const double of_grad = k->lr * (1 - now) / (1 - product),
		     of_mean = k->lr * next / (1 - product * next),
		     c2 = 1 - pow(k->b2, counted + 1);
	/* torch keeps the product in f32, and rounds it in each step. */
	const double unit = acc_step_unit(r, grad->dtype);
	const double kept = (counted + 1) * acc_unit(ACC_F32) * product / (1 - product) / unit;
	/* The loop of torch 1.13, not its foreach, multiplies the next product by this step's factor once more
	 * (torch-nadam-once-more): which of them ran is not recorded. */
	const double once_more =
		k->before_2 ? fabs(of_mean - k->lr * next / (1 - product * now * next)) / unit : 0;
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i], was = s[STEP_FIRST].x->v[i], size;
		double g = decayed(k, grad->v[i], p, &size), v0 = s[STEP_SECOND].x->v[i];
		double m = k->b1 * was + (1 - k->b1) * g, v = k->b2 * v0 + (1 - k->b2) * g * g;
		double below = sqrt(v / c2) + k->eps;
		if (k->decoupled)
			p *= 1 - k->lr * k->decay;
		const double step = (of_grad * g + of_mean * m) / below;
		const double vmag = v0 + size * size;
		acc_step_store(&s[STEP_FIRST], i, m, fabs(was) + size);
		acc_step_store(&s[STEP_SECOND], i, v, vmag);
		acc_step_store(&s[STEP_PARAM], i, p - step,
			fabs(p) + (of_grad * size + of_mean * (fabs(was) + size)) / below +
				once_more * fabs(m) / below +
				fabs(step) * (acc_step_correction(r, c2) +
						     acc_step_correction(r, 1 - product) + kept +
						     (v > 0 ? vmag / v : 0)));
	}
	return 0;
}

/* While too few steps were made to tell a variance, it is a step of the mean alone. */
static int
radam_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	const struct rate *k = told;
	if (begin(r, s, grad) < 0)
		return ACC_EUNSUP;
	const double t = counted + 1, c1 = 1 - pow(k->b1, t), c2 = 1 - pow(k->b2, t);
	const double all = 2 / (1 - k->b2) - 1, seen = all - 2 * t * pow(k->b2, t) / c2;
	const double rect = sqrt((seen - 4) * (seen - 2) * all / ((all - 4) * (all - 2) * seen));
	/* The length of what was seen is a difference of large numbers, of which torch takes 5 to be enough. */
	if (fabs(seen - 5) < 1e-6)
		return acc_cannot(r, "its step is not understood");
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i], was = s[STEP_FIRST].x->v[i], size;
		double g = decayed(k, grad->v[i], p, &size), v0 = s[STEP_SECOND].x->v[i];
		double m = k->b1 * was + (1 - k->b1) * g, v = k->b2 * v0 + (1 - k->b2) * g * g;
		const double vmag = v0 + size * size;
		const double by = seen > 5 ? rect * sqrt(c2) / (sqrt(v) + k->eps) : 1;
		if (k->decoupled)
			p *= 1 - k->lr * k->decay;
		const double step = k->lr * by * m / c1;
		acc_step_store(&s[STEP_FIRST], i, m, fabs(was) + size);
		acc_step_store(&s[STEP_SECOND], i, v, vmag);
		acc_step_store(&s[STEP_PARAM], i, p - step,
			fabs(p) + k->lr * by * (fabs(was) + size) / c1 +
				fabs(step) *
					(acc_step_correction(r, c1) + acc_step_correction(r, c2) +
						(seen > 5 && v > 0 ? vmag / v : 0)));
	}
	return 0;
}

/* b1 is rho. */
static int
adadelta_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	const struct rate *k = told;
	(void)counted;
	if (begin(r, s, grad) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i], v0 = s[STEP_FIRST].x->v[i],
		       u0 = s[STEP_SECOND].x->v[i], size;
		double g = decayed(k, grad->v[i], p, &size);
		double v = k->b1 * v0 + (1 - k->b1) * g * g;
		double by = sqrt(u0 + k->eps) / sqrt(v + k->eps), d = by * g;
		acc_step_store(&s[STEP_FIRST], i, v, v0 + size * size);
		acc_step_store(&s[STEP_SECOND], i, k->b1 * u0 + (1 - k->b1) * d * d,
			u0 + by * by * size * size);
		acc_step_store(&s[STEP_PARAM], i, p - k->lr * d, fabs(p) + k->lr * by * size);
	}
	return 0;
}

static int
read_rate(struct acc_replay *r, struct rate *k)
{
	*k = (struct rate){.lr = 0};
	const int decoupled = acc_arg_bool(r, "decoupled_weight_decay", &k->decoupled);
	k->before_2 = decoupled == 0;
	if (decoupled < 0 || acc_step_need(r, "lr", &k->lr) < 0 ||
		acc_step_need(r, "eps", &k->eps) < 0 ||
		acc_arg_float(r, "weight_decay", &k->decay) < 0 ||
		acc_arg_bool(r, "maximize", &k->maximize) < 0)
		return ACC_EUNSUP;
	return 0;
}

enum form { ADAMAX, NADAM, RADAM };

static int
betas(struct acc_replay *r, struct acc_dense *out)
{
	static acc_step_fn *const one[] = {adamax_one, nadam_one, radam_one};
	const char *const name[STEP_SLOTS] = {"params", "exp_avgs",
		r->op->which == ADAMAX ? "exp_infs" : "exp_avg_sqs", NULL};
	struct rate k;
	if (read_rate(r, &k) < 0 || acc_step_need(r, "beta1", &k.b1) < 0 ||
		acc_step_need(r, "beta2", &k.b2) < 0 ||
		(r->op->which == NADAM && acc_step_need(r, "momentum_decay", &k.forget) < 0))
		return ACC_EUNSUP;
	return acc_step_each(r, out, name, one[r->op->which], &k);
}

static int
adadelta(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[STEP_SLOTS] = {"params", "square_avgs", "acc_deltas", NULL};
	struct rate k;
	if (read_rate(r, &k) < 0 || acc_step_need(r, "rho", &k.b1) < 0)
		return ACC_EUNSUP;
	return acc_step_each(r, out, name, adadelta_one, &k);
}

#define STEP(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "optimizer", .rounding = ACC_FEW, \
		.flags = ACC_NO_BACKWARD, .eval = f, .which = w \
	}
#define NUMBERS "lr beta1 beta2 eps weight_decay maximize decoupled_weight_decay"
const struct acc_op acc_ops_rates[] = {
	STEP("adamax", "params|self grads exp_avgs exp_infs state_steps " NUMBERS, betas, ADAMAX),
	STEP("nadam",
		"params|self grads exp_avgs exp_avg_sqs mu_products state_steps momentum_decay " NUMBERS,
		betas, NADAM),
	STEP("radam", "params|self grads exp_avgs exp_avg_sqs state_steps " NUMBERS, betas, RADAM),
	STEP("adadelta",
		"params|self grads square_avgs acc_deltas state_steps lr rho eps weight_decay maximize",
		adadelta, 0),
	{.names = NULL},
};
#undef NUMBERS
