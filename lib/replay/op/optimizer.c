/* Steps of optimizers: what becomes of a parameter and its state.
 *
 * Sources: torch.optim (_fused_adam_, _fused_adamw_, _fused_sgd_ of ATen, and the functional forms
 * adam, adamw, sgd); torch_npu.npu_apply_adam, npu_apply_adam_w; MindSpore's primitives Adam,
 * AdamWeightDecay, ApplyMomentum. Scalars such as 1 - beta2 are rounded on some devices before
 * they are used: the error of each is a unit of 1, not of the difference. */
#include "replay/compose.h"
#include "acc/say.h"
#include "replay/impl.h"
#include "replay/op/step.h"

enum form {
	ADAM,         /* weight decay is added to the gradient */
	ADAMW,        /* weight decay scales the parameter */
	EPS_LATE,     /* lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps) */
	NO_CORRECTION /* lr (m / (sqrt(v) + eps) + decay p) */
};

struct adam {
	enum form form;
	double lr, b1, b2, eps, decay, scale;
	double c1, c2;  /* 1 - beta^t */
	double r1, r2;  /* what these are rounded by */
	double counted; /* what its bias corrections are rounded by, where their step is a tensor */
	bool amsgrad, maximize, nesterov;
};

struct state { /* of one element: value, and what it was summed up of */
	double p, m, v, max;
	double pmag, mmag, vmag;
};

static void
adam_step(const struct adam *k, double g, struct state *s)
{
	double p = s->p, decay = k->decay;
	g = (k->maximize ? -g : g) * k->scale;
	const double size = fabs(g) + (k->form == ADAM ? fabs(decay * p) : 0);
	if (k->form == ADAM)
		g += decay * p;
	else if (k->form == ADAMW)
		p *= 1 - k->lr * decay;
	s->mmag = fabs(s->m) + size;
	s->vmag = s->v + size * size;
	s->m = k->b1 * s->m + (1 - k->b1) * g;
	s->v = k->b2 * s->v + (1 - k->b2) * g * g;
	s->max = fmax(s->max, s->v);
	double m = k->nesterov ? k->b1 * s->m + (1 - k->b1) * g : s->m;
	double v = k->amsgrad ? s->max : s->v, root = sqrt(v), den = root / sqrt(k->c2) + k->eps;
	double rate = k->lr / k->c1;
	if (k->form == EPS_LATE) {
		den = root + k->eps;
		rate *= sqrt(k->c2);
	} else if (k->form == NO_CORRECTION) {
		den = root + k->eps;
	}
	double step = rate * m / den;
	s->pmag = fabs(s->p) + rate * s->mmag / den +
		  fabs(step) * (k->r1 + k->r2 + (s->v > 0 ? s->vmag / s->v : 0));
	if (k->form == NO_CORRECTION)
		step += k->lr * decay * s->p;
	s->p = p - step;
}

/* --- where things stand in a call --- */

int
acc_step_check(struct acc_replay *r, const struct acc_slot *s, const struct acc_dense *g)
{
	for (int i = 0; i < STEP_SLOTS; i++) {
		/* What the step makes is as large as its gradient. */
		const struct acc_dense *x = s[i].x == NULL && s[i].out != NULL ? g : s[i].x;
		if (x == NULL)
			continue;
		if (x->n != g->n)
			return acc_cannot(r, "its inputs do not fit each other");
		if (s[i].out != NULL && acc_out_shape(r, s[i].out, x->shape, x->ndim) < 0)
			return ACC_EUNSUP;
	}
	return 0;
}

void
acc_step_store(const struct acc_slot *s, size_t i, double v, double mag)
{
	if (s->out == NULL)
		return;
	s->out->v[i] = v;
	if (s->out->mag != NULL)
		s->out->mag[i] = mag;
}

double
acc_step_unit(const struct acc_replay *r, enum acc_dtype t)
{
	return r->stepwise ? acc_unit(t) : acc_work_unit(acc_unit(t));
}

double
acc_step_correction(const struct acc_replay *r, double correction)
{
	return r->stepwise ? 1 : 1 / correction;
}

static int
adam_one(struct acc_replay *r, struct adam *k, const struct acc_dense *g, const struct acc_slot *s)
{
	if (acc_step_check(r, s, g) < 0)
		return ACC_EUNSUP;
	if (!(k->c1 != 0) || !(k->c2 > 0))
		return acc_cannot(r, "its step is not understood");
	k->r1 = acc_step_correction(r, k->c1);
	k->r2 = acc_step_correction(r, k->c2);
	for (size_t i = 0; i < g->n; i++) {
		const double fine = acc_step_unit(r, g->dtype);
		struct state e = {.p = s[STEP_PARAM].x->v[i],
			.m = s[STEP_FIRST].x->v[i],
			.v = s[STEP_SECOND].x->v[i],
			.max = s[STEP_MOST].x == NULL ? 0 : s[STEP_MOST].x->v[i]};
		adam_step(k, g->v[i], &e);
		/* 1 - beta^t has the rounding of beta^t, near 1. */
		e.pmag += fabs(e.p - s[STEP_PARAM].x->v[i]) * (1 / k->c1 + 1 / k->c2) * k->counted /
			  fine;
		acc_step_store(&s[STEP_PARAM], i, e.p, e.pmag);
		acc_step_store(&s[STEP_FIRST], i, e.m, e.mmag);
		acc_step_store(&s[STEP_SECOND], i, e.v, e.vmag);
		acc_step_store(&s[STEP_MOST], i, e.max, e.vmag);
	}
	return 0;
}

int
acc_step_need(struct acc_replay *r, const char *name, double *out)
{
	int rc = acc_arg_float(r, name, out);
	char *why = rc != 0 ? NULL : acc_say(r->mem, "its argument %s is not recorded", name);
	return rc > 0 ? 0 : acc_cannot(r, why == NULL ? ACC_NOMEM_TEXT : why);
}

static int
read_adam(struct acc_replay *r, struct adam *k)
{
	*k = (struct adam){.form = (enum form)r->op->which, .scale = 1, .c1 = 1, .c2 = 1};
	bool decoupled = false, capturable = false, differentiable = false;
	if (acc_step_need(r, "lr", &k->lr) < 0 || acc_step_need(r, "beta1", &k->b1) < 0 ||
		acc_step_need(r, "beta2", &k->b2) < 0 || acc_step_need(r, "eps", &k->eps) < 0 ||
		acc_arg_float(r, "weight_decay", &k->decay) < 0 ||
		acc_arg_bool(r, "decoupled_weight_decay", &decoupled) < 0 ||
		acc_arg_bool(r, "capturable", &capturable) < 0 ||
		acc_arg_bool(r, "differentiable", &differentiable) < 0 ||
		acc_arg_bool(r, "amsgrad", &k->amsgrad) < 0 ||
		acc_arg_bool(r, "maximize", &k->maximize) < 0)
		return ACC_EUNSUP;
	/* Then they are computed on the device, in the f32 of the step. */
	k->counted = capturable || differentiable ? acc_unit(ACC_F32) : 0;
	/* As torch.optim.AdamW calls adam: behaviour torch-adamw-is-adam. */
	k->form = decoupled ? ADAMW : k->form;
	return 0;
}

/* What scales gradients, and what says that the step is left out. */
static int
scaling(struct acc_replay *r, double *scale)
{
	double by = 1, skip = 0;
	if (acc_arg_float(r, "grad_scale", &by) < 0 || acc_arg_float(r, "found_inf", &skip) < 0)
		return ACC_EUNSUP;
	*scale = 1 / by;
	return skip != 0 ? acc_cannot(r, "the step was left out, for Inf in a gradient") : 0;
}

/* The slots of the k-th parameter of n. Outputs: the parameters alone, or what the arguments of
 * the call are afterwards, in their order: parameters, gradients, states; the first state also where the step
 * makes it, as that of momentum. */
static int
place(struct acc_replay *r, struct acc_dense *out, uint32_t k, uint32_t n, const char *const *name,
	struct acc_slot *s)
{
	uint32_t lists = 0;
	for (int i = 0; i < STEP_SLOTS; i++) {
		s[i] = (struct acc_slot){NULL, NULL};
		if (name[i] != NULL && acc_arg_item(r, name[i], k, &s[i].x) < 0)
			return ACC_EUNSUP;
		lists += s[i].x != NULL;
	}
	if (s[STEP_PARAM].x == NULL)
		return acc_cannot(r, "its parameters were not recorded");
	s[STEP_PARAM].out = &out[k];
	if (r->nrec == n)
		return 0;
	const bool makes = s[STEP_FIRST].x == NULL && lists == 1 && name[STEP_FIRST] != NULL &&
			   strcmp(name[STEP_FIRST], "momentum_buffer_list") == 0 &&
			   r->nrec == 3 * n;
	if (r->nrec != n * (lists + 1) && !makes)
		return acc_cannot(r, "outputs that are not understood");
	if (makes)
		s[STEP_FIRST].out = &out[2 * n + k];
	for (uint32_t i = STEP_FIRST, at = 2; i < STEP_SLOTS; i++)
		if (s[i].x != NULL)
			s[i].out = &out[at++ * n + k];
	return 0;
}

/* So, and how they round: a step that is not fused is a dozen op calls, each of which rounds to the dtype that it
 * writes; torch's also round the learning rate, weight decay and the like to it. */
static int
slots(struct acc_replay *r, struct acc_dense *out, uint32_t k, uint32_t n, const char *const *name,
	struct acc_slot *s)
{
	bool fused = acc_str_starts(r->name, "fused");
	if (place(r, out, k, n, name, s) < 0 || (!fused && acc_arg_bool(r, "fused", &fused) < 0))
		return ACC_EUNSUP;
	r->stepwise = !fused;
	return 0;
}

/* Where gradients stand among the outputs, they are what they were, scaled. */
static void
same_gradient(struct acc_replay *r, struct acc_dense *out, uint32_t k, uint32_t n, double scale,
	const struct acc_dense *g)
{
	if (r->nrec > n)
		for (size_t i = 0; i < g->n && i < out[n + k].n; i++)
			out[n + k].v[i] = g->v[i] * scale;
}

#define NOT_RECORDED "its gradient or its state was not recorded"

/* Of parameter i of lists; its state must be there, too. */
static int
gradient(struct acc_replay *r, uint32_t i, const struct acc_slot *s, const struct acc_dense **g,
	double *step)
{
	const struct acc_dense *t;
	if (acc_arg_item(r, "grads", i, g) <= 0 || acc_arg_item(r, "state_steps", i, &t) <= 0 ||
		t->n != 1 || s[STEP_FIRST].x == NULL)
		return acc_cannot(r, NOT_RECORDED);
	*step = t->v[0];
	return 0;
}

int
acc_step_each(struct acc_replay *r, struct acc_dense *out, const char *const *name, acc_step_fn *f,
	const void *told)
{
	const uint32_t n = acc_arg_count(r, "params");
	struct acc_slot s[STEP_SLOTS];
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_dense *g;
		double step;
		if (slots(r, out, i, n, name, s) < 0 || gradient(r, i, s, &g, &step) < 0 ||
			f(r, told, step, g, s) < 0)
			return ACC_EUNSUP;
		same_gradient(r, out, i, n, 1, g);
	}
	return n > 0 ? 0 : acc_cannot(r, "its parameters were not recorded");
}

/* _fused_adam_, _fused_adamw_ with steps that were counted before, adam and adamw that count. */
static int
adam_lists(struct acc_replay *r, struct acc_dense *out)
{
	const char *name[STEP_SLOTS] = {"params", "exp_avgs", "exp_avg_sqs", NULL};
	struct adam k;
	struct acc_slot s[STEP_SLOTS];
	uint32_t n = acc_arg_count(r, "params");
	if (read_adam(r, &k) < 0 || scaling(r, &k.scale) < 0)
		return ACC_EUNSUP;
	bool counted = acc_str_starts(r->name, "fused");
	if (k.amsgrad)
		name[STEP_MOST] = "max_exp_avg_sqs";
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_dense *g;
		double step;
		if (slots(r, out, i, n, name, s) < 0 || gradient(r, i, s, &g, &step) < 0)
			return ACC_EUNSUP;
		if (s[STEP_SECOND].x == NULL || (k.amsgrad && s[STEP_MOST].x == NULL))
			return acc_cannot(r, NOT_RECORDED);
		step += counted ? 0 : 1;
		k.c1 = 1 - pow(k.b1, step);
		k.c2 = 1 - pow(k.b2, step);
		if (adam_one(r, &k, g, s) < 0)
			return ACC_EUNSUP;
		same_gradient(r, out, i, n, k.scale, g);
	}
	return n > 0 ? 0 : acc_cannot(r, "its parameters were not recorded");
}

/* One parameter, with the powers of the betas given: beta^t, or before they are multiplied. */
static int
adam_powers(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[STEP_SLOTS] = {"var", "m", "v", NULL};
	struct adam k;
	struct acc_slot s[STEP_SLOTS] = {{NULL, NULL}};
	const struct acc_dense *g;
	double p1 = 0, p2 = 0;
	if (read_adam(r, &k) < 0 || acc_need_tensor(r, "grad", &g) < 0 ||
		acc_arg_float(r, "beta1_power", &p1) < 0 ||
		acc_arg_float(r, "beta2_power", &p2) < 0 ||
		acc_arg_bool(r, "use_nesterov", &k.nesterov) < 0)
		return ACC_EUNSUP;
	bool multiplies = k.form == ADAMW;
	if (k.form != NO_CORRECTION) {
		k.c1 = 1 - p1 * (multiplies ? k.b1 : 1);
		k.c2 = 1 - p2 * (multiplies ? k.b2 : 1);
	}
	if (r->nrec > 3 || k.amsgrad)
		return acc_cannot(r, "outputs that are not understood");
	const struct acc_value *list = acc_arg(r, "out");
	for (uint32_t i = 0; i < 3; i++) {
		int rc = list != NULL ? acc_arg_item(r, "out", i, &s[i].x)
				      : acc_arg_item(r, name[i], 0, &s[i].x);
		if (rc <= 0)
			return acc_cannot(r, "its parameter or its state was not recorded");
		s[i].out = i < r->nrec ? &out[i] : NULL;
	}
	return adam_one(r, &k, g, s);
}

/* --- SGD --- */

struct sgd {
	double lr, decay, momentum, dampening, scale;
	bool nesterov, maximize, first;
};

static int
sgd_one(struct acc_replay *r, const struct sgd *k, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	if (acc_step_check(r, s, grad) < 0)
		return ACC_EUNSUP;
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i],
		       g = (k->maximize ? -1 : 1) * grad->v[i] * k->scale;
		double sum = fabs(g) + fabs(k->decay * p), d = g + k->decay * p, b = d;
		if (s[STEP_FIRST].x != NULL && !k->first) {
			b = k->momentum * s[STEP_FIRST].x->v[i] + (1 - k->dampening) * d;
			sum += fabs(k->momentum * s[STEP_FIRST].x->v[i]);
		}
		acc_step_store(&s[STEP_FIRST], i, b, sum);
		if (k->momentum != 0)
			d = k->nesterov ? d + k->momentum * b : b;
		acc_step_store(&s[STEP_PARAM], i, p - k->lr * d, fabs(p) + k->lr * sum);
	}
	return 0;
}

static int
sgd_lists(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[STEP_SLOTS] = {"params", "momentum_buffer_list", NULL, NULL};
	struct sgd k = {.scale = 1};
	struct acc_slot s[STEP_SLOTS];
	uint32_t n = acc_arg_count(r, "params");
	if (acc_step_need(r, "lr", &k.lr) < 0 || acc_arg_float(r, "weight_decay", &k.decay) < 0 ||
		acc_arg_float(r, "momentum", &k.momentum) < 0 ||
		acc_arg_float(r, "dampening", &k.dampening) < 0 ||
		acc_arg_bool(r, "nesterov", &k.nesterov) < 0 ||
		acc_arg_bool(r, "maximize", &k.maximize) < 0 ||
		acc_arg_bool(r, "is_first_step", &k.first) < 0 || scaling(r, &k.scale) < 0)
		return ACC_EUNSUP;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_dense *g;
		if (slots(r, out, i, n, name, s) < 0)
			return ACC_EUNSUP;
		if (acc_arg_item(r, "grads", i, &g) <= 0)
			return acc_cannot(r, NOT_RECORDED);
		if (sgd_one(r, &k, g, s) < 0)
			return ACC_EUNSUP;
		same_gradient(r, out, i, n, k.scale, g);
	}
	return n > 0 ? 0 : acc_cannot(r, "its parameters were not recorded");
}

/* --- Adagrad --- */

struct adagrad {
	double lr, decay, lr_decay, eps;
	bool maximize, within; /* within: eps is added within the root, as MindSpore does */
};

static int
adagrad_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	const struct adagrad *k = told;
	if (acc_step_check(r, s, grad) < 0)
		return ACC_EUNSUP;
	const double lr = k->lr / (1 + counted * k->lr_decay);
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i], g = (k->maximize ? -1 : 1) * grad->v[i];
		double d = g + k->decay * p, size = fabs(g) + fabs(k->decay * p);
		double sum = s[STEP_FIRST].x->v[i] + d * d;
		double below = k->within ? sqrt(sum + k->eps) : sqrt(sum) + k->eps;
		acc_step_store(&s[STEP_FIRST], i, sum, s[STEP_FIRST].x->v[i] + size * size);
		acc_step_store(&s[STEP_PARAM], i, p - lr * d / below, fabs(p) + lr * size / below);
	}
	return 0;
}

static int
adagrad_lists(struct acc_replay *r, struct acc_dense *out)
{
	static const char *const name[STEP_SLOTS] = {"params", "state_sums", NULL, NULL};
	struct adagrad k = {0};
	if (acc_step_need(r, "lr", &k.lr) < 0 || acc_step_need(r, "eps", &k.eps) < 0 ||
		acc_arg_float(r, "weight_decay", &k.decay) < 0 ||
		acc_arg_float(r, "lr_decay", &k.lr_decay) < 0 ||
		acc_arg_bool(r, "maximize", &k.maximize) < 0 ||
		acc_arg_bool(r, "eps_in_root", &k.within) < 0)
		return ACC_EUNSUP;
	return acc_step_each(r, out, name, adagrad_one, &k);
}

struct mean_square {
	double lr, alpha, eps, decay, momentum;
	bool maximize, centered, within; /* within: eps is added within the root, as optax does */
};

static int
rmsprop_one(struct acc_replay *r, const void *told, double counted, const struct acc_dense *grad,
	const struct acc_slot *s)
{
	const struct mean_square *k = told;
	const struct acc_slot *buf = k->momentum == 0 ? NULL : &s[STEP_FIRST];
	const struct acc_slot *square = buf == NULL ? &s[STEP_FIRST] : &s[STEP_SECOND];
	const struct acc_slot *mean = k->centered ? square + 1 : NULL;
	(void)counted;
	if (acc_step_check(r, s, grad) < 0)
		return ACC_EUNSUP;
	if (square->x == NULL || (mean != NULL && mean->x == NULL) ||
		(buf != NULL && buf->x == NULL))
		return acc_cannot(r, NOT_RECORDED);
	for (size_t i = 0; i < grad->n; i++) {
		double p = s[STEP_PARAM].x->v[i],
		       g = (k->maximize ? -1 : 1) * grad->v[i] + k->decay * p;
		double size = fabs(grad->v[i]) + fabs(k->decay * p);
		double v = k->alpha * square->x->v[i] + (1 - k->alpha) * g * g, var = v;
		acc_step_store(square, i, v, square->x->v[i] + size * size);
		if (mean != NULL) {
			const double m = k->alpha * mean->x->v[i] + (1 - k->alpha) * g;
			acc_step_store(mean, i, m, fabs(mean->x->v[i]) + size);
			var = v - m * m;
		}
		double below = k->within ? sqrt(var + k->eps) : sqrt(var) + k->eps;
		double step = g / below;
		/* Of a variance what cancels is as far off as the mean square. */
		double mag = size / below * (mean == NULL ? 1 : 1 + v / (below * below));
		if (buf != NULL) {
			step += k->momentum * buf->x->v[i];
			mag += fabs(k->momentum * buf->x->v[i]);
			acc_step_store(buf, i, step, mag);
		}
		acc_step_store(&s[STEP_PARAM], i, p - k->lr * step, fabs(p) + k->lr * mag);
	}
	return 0;
}

static int
rmsprop_lists(struct acc_replay *r, struct acc_dense *out)
{
	/* In the order in which the recorder writes what they become. */
	const char *name[STEP_SLOTS] = {"params", NULL, NULL, NULL};
	struct mean_square k = {0};
	int n = STEP_FIRST;
	if (acc_step_need(r, "lr", &k.lr) < 0 || acc_step_need(r, "eps", &k.eps) < 0 ||
		acc_step_need(r, "alpha", &k.alpha) < 0 ||
		acc_arg_float(r, "weight_decay", &k.decay) < 0 ||
		acc_arg_float(r, "momentum", &k.momentum) < 0 ||
		acc_arg_bool(r, "centered", &k.centered) < 0 ||
		acc_arg_bool(r, "maximize", &k.maximize) < 0 ||
		acc_arg_bool(r, "eps_in_root", &k.within) < 0)
		return ACC_EUNSUP;
	if (k.momentum != 0)
		name[n++] = "momentum_buffer_list";
	name[n++] = "square_avgs";
	if (k.centered)
		name[n++] = "grad_avgs";
	return acc_step_each(r, out, name, rmsprop_one, &k);
}

/* MindSpore's ApplyMomentum: the buffer is always there. */
static int
momentum(struct acc_replay *r, struct acc_dense *out)
{
	struct sgd k = {.scale = 1};
	struct acc_slot s[STEP_SLOTS] = {{NULL, NULL}};
	const struct acc_dense *g;
	if (acc_step_need(r, "lr", &k.lr) < 0 || acc_step_need(r, "momentum", &k.momentum) < 0 ||
		acc_need_tensor(r, "grad", &g) < 0 ||
		acc_need_tensor(r, "var", &s[STEP_PARAM].x) < 0 ||
		acc_need_tensor(r, "accum", &s[STEP_FIRST].x) < 0)
		return ACC_EUNSUP;
	s[STEP_PARAM].out = &out[0];
	s[STEP_FIRST].out = r->nrec > 1 ? &out[1] : NULL;
	return r->nrec > 2 ? acc_cannot(r, "outputs that are not understood")
			   : sgd_one(r, &k, g, s);
}

#define STEP(n, s, f, w) \
	{ \
		.names = n, .sig = s, .cls = "optimizer", .rounding = ACC_FEW, \
		.flags = ACC_NO_BACKWARD, .eval = f, .which = w \
	}
#define LISTS "params|self grads exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps "
#define NUMBERS \
	"lr beta1 beta2 weight_decay eps amsgrad maximize grad_scale found_inf " \
	"decoupled_weight_decay capturable differentiable fused"
const struct acc_op acc_ops_optimizer[] = {
	STEP("adam", LISTS NUMBERS, adam_lists, ADAM),
	STEP("adamw", LISTS NUMBERS, adam_lists, ADAMW),
	STEP("sgd",
		"params|self grads|d_p_list momentum_buffer_list weight_decay momentum "
		"lr dampening nesterov maximize is_first_step grad_scale found_inf fused",
		sgd_lists, 0),
	STEP("adagrad",
		"params|self grads state_sums state_steps lr weight_decay lr_decay eps maximize "
		"eps_in_root fused",
		adagrad_lists, 0),
	STEP("rmsprop",
		"params|self grads square_avgs grad_avgs momentum_buffer_list state_steps lr alpha eps "
		"weight_decay momentum centered maximize eps_in_root",
		rmsprop_lists, 0),
	STEP("npu_apply_adam_w",
		"beta1_power beta2_power lr weight_decay beta1 beta2 eps|epsilon "
		"grad max_grad_norm amsgrad maximize out var m v",
		adam_powers, ADAMW),
	STEP("npu_apply_adam",
		"beta1_power beta2_power lr beta1 beta2 eps|epsilon grad use_locking "
		"use_nesterov out var m v",
		adam_powers, EPS_LATE),
	STEP("Adam", "var m v beta1_power beta2_power lr beta1 beta2 eps|epsilon grad|gradient",
		adam_powers, EPS_LATE),
	STEP("AdamWeightDecay",
		"var m v lr beta1 beta2 eps|epsilon weight_decay|decay "
		"grad|gradient",
		adam_powers, NO_CORRECTION),
	STEP("ApplyMomentum",
		"var|variable accum|accumulation lr|learning_rate grad|gradient "
		"momentum",
		momentum, 0),
	{.names = NULL},
};
#undef LISTS
#undef NUMBERS
