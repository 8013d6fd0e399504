/* Causes found by trying, of what has a state: steps of optimizers, recurrent networks. */
#include "acc/say.h"
#include "replay/cause.h"
#include "replay/compose.h"
#include "replay/limits.h"

#include <stdlib.h>

/* All steps so late that nothing is corrected any more. */
static bool
uncorrected(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	uint32_t n = acc_arg_count(r, "params");
	static double late = 1e9;
	struct acc_dense step = {.dtype = ACC_F64, .n = 1, .v = &late};
	if (acc_try_has(r, "beta1_power")) {
		struct acc_value args[] = {acc_named("beta1_power", acc_of_float(0)),
			acc_named("beta2_power", acc_of_float(0))};
		return acc_try_equals(a, acc_try_with(a, args, 2));
	}
	struct acc_value steps = {.type = ACC_A_LIST,
		.n = n,
		.item = acc_alloc(r->mem, (n + 1) * sizeof *steps.item)};
	if (!acc_try_has(r, "state_steps") || steps.item == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++)
		steps.item[i] = acc_of_tensor(&step);
	return acc_try(a, "state_steps", steps);
}

/* A weight decay of the other kind: "adam" adds it to the gradient, "adamw" takes it off the parameter. */
static const char *
other_decay(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_op *op = r->op;
	bool coupled = acc_try_is(r, "adam"), decoupled = false, other;
	if ((!coupled && !acc_try_is(r, "adamw")) ||
		acc_arg_bool(r, "decoupled_weight_decay", &decoupled) < 0)
		return NULL;
	if (coupled) {
		coupled = !decoupled;
		other = acc_try(a, "decoupled_weight_decay",
			(struct acc_value){.type = ACC_A_BOOL, .b = coupled});
	} else {
		r->op = acc_op_find(acc_str("adam"));
		other = acc_try_equals(a, acc_try_with(a, NULL, 0));
		r->op = op;
	}
	if (!other)
		return NULL;
	return coupled ? "the weight decay is taken off the parameter, not added to the gradient"
		       : "the weight decay is added to the gradient, not taken off the parameter";
}

/* Sums of squares that began at another number, before the first step; and where eps is added. */
static const char *
adagrad(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const struct acc_value *sums = acc_try_given(r, "state_sums");
	size_t n, m;
	const double *eps = acc_usual_values("eps_in_root", &n),
		     *start = acc_usual_values("initial_accumulator_value", &m);
	if (!acc_try_is(r, "adagrad") || sums == NULL || sums->type != ACC_A_LIST)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		struct acc_value args[] = {
			acc_named("eps_in_root", (struct acc_value){.type = ACC_A_BOOL, .b = true}),
			acc_named("eps", acc_of_float(eps[i]))};
		if (acc_try_equals(a, acc_try_with(a, args, 2)))
			return acc_say(r->mem, "eps, %g, is added within the root", eps[i]);
	}
	for (size_t k = 0; k < m; k++) {
		struct acc_value list = {.type = ACC_A_LIST,
			.n = sums->n,
			.item = acc_alloc(r->mem, (sums->n + 1) * sizeof *list.item)};
		for (uint32_t i = 0; list.item != NULL && i < sums->n; i++) {
			const struct acc_value *v = &sums->item[i];
			struct acc_dense *d = acc_alloc(r->mem, sizeof *d);
			if (d == NULL || v->type != ACC_A_TENSOR || v->t->v == NULL)
				return NULL;
			*d = *v->t;
			if ((d->v = acc_doubles(r, d->n)) == NULL)
				return NULL;
			for (size_t j = 0; j < d->n; j++)
				d->v[j] = start[k];
			list.item[i] = acc_of_tensor(d);
		}
		if (list.item == NULL)
			return NULL;
		struct acc_value args[] = {acc_named("state_sums", list),
			acc_named("eps", acc_of_float(1e-8)),
			acc_named("eps_in_root",
				(struct acc_value){.type = ACC_A_BOOL, .b = true})};
		for (uint32_t given = 1; given <= 3; given += 2)
			if (acc_try_equals(a, acc_try_with(a, args, given)))
				return acc_say(r->mem, "as if initial_accumulator_value were %g",
					start[k]);
	}
	return NULL;
}

/* Numbers that a step is not linear in: what is usual. */
static const char *
usual(const struct attempt *a)
{
	static const char *const names[] = {"weight_decay", "rho", "alpha", "beta1", "beta2",
		"momentum_decay"};
	struct acc_replay *r = &a->t->r;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const double x = acc_try_usual(a, names[i]);
		if (!isnan(x))
			return acc_say(r->mem, "as if %s were %g", names[i], x);
	}
	r->why = NULL;
	return NULL;
}

const char *
acc_cause_step(const struct attempt *a)
{
	struct acc_replay *r = &a->t->r;
	const char *s = NULL;
	double decay = 0;
	if (strcmp(r->op->cls, "optimizer") != 0)
		return NULL;
	if ((s = adagrad(a)) != NULL)
		return s;
	if (uncorrected(a)) {
		/* Of the first step of some, a learning rate says the same. */
		s = acc_try_solved(a, "lr");
		return s == NULL ? "the bias correction is missing"
				 : acc_say(r->mem, "%s, or the bias correction is missing", s);
	}
	if (acc_try_has(r, "momentum") && acc_try_number(a, "momentum", 0))
		return "the momentum is missing";
	if (acc_try_has(r, "weight_decay") && acc_arg_float(r, "weight_decay", &decay) >= 0 &&
		decay != 0)
		s = acc_try_number(a, "weight_decay", 0) ? "the weight decay is missing"
							 : other_decay(a);
	if (s == NULL)
		s = acc_try_solved(a, "lr");
	if (s == NULL)
		s = acc_try_solved(a, "weight_decay");
	return s != NULL ? s : usual(a);
}

/* --- recurrent networks --- */

/* Blocks of rows of each weight and bias in another order, and which biases are nothing: 1 those of what goes in, 2 of the
 * state. */
struct change {
	uint8_t order[4];
	size_t blocks;
	unsigned without;
};

/* Weights of layers are a list, those of a step arguments of their own. */
enum { CELL_WEIGHTS = 4 };
static const char *const cell_weights[CELL_WEIGHTS] = {"w_ih", "w_hh", "b_ih", "b_hh"};

static struct acc_dense *
changed(struct acc_replay *r, const struct acc_value *v, const struct change *c, uint32_t *biases)
{
	struct acc_dense *d = acc_alloc(r->mem, sizeof *d);
	if (d == NULL || v->type != ACC_A_TENSOR || v->t->v == NULL || v->t->ndim == 0 ||
		(size_t)v->t->shape[0] % c->blocks != 0)
		return NULL;
	*d = *v->t;
	if ((d->v = acc_doubles(r, d->n)) == NULL)
		return NULL;
	const size_t n = d->n / c->blocks;
	for (size_t k = 0; k < c->blocks; k++)
		memcpy(d->v + k * n, v->t->v + c->order[k] * n, n * sizeof *d->v);
	if (d->ndim == 1 && (c->without & ((*biases)++ % 2 + 1)) != 0)
		memset(d->v, 0, d->n * sizeof *d->v);
	return d;
}

static bool
try_change(const struct attempt *a, const struct acc_value *params, const struct change *c)
{
	struct acc_replay *r = &a->t->r;
	const uint32_t n = params == NULL ? CELL_WEIGHTS : params->n;
	struct acc_value *item = acc_alloc(r->mem, (n + 1) * sizeof *item);
	uint32_t biases = 0;
	for (uint32_t i = 0; item != NULL && i < n; i++) {
		const struct acc_value *v = params != NULL ? &params->item[i]
							   : acc_try_given(r, cell_weights[i]);
		const struct acc_dense *d = v == NULL ? NULL : changed(r, v, c, &biases);
		if (d == NULL)
			return false;
		item[i] = params != NULL ? acc_of_tensor(d)
					 : acc_named(cell_weights[i], acc_of_tensor(d));
	}
	if (item == NULL)
		return false;
	if (params == NULL)
		return acc_try_equals(a, acc_try_with(a, item, n));
	const struct acc_value list = {.type = ACC_A_LIST, .n = n, .item = item};
	return acc_try(a, "params", list);
}

/* A converter that knows one bias leaves the other out. */
static const char *
without_bias(const struct attempt *a, const struct acc_value *params)
{
	static const char *const text[] = {"", "as if its bias of what goes in were 0",
		"as if its bias of the state were 0", "as if its biases were 0"};
	for (unsigned without = 1; without <= 3; without++)
		if (try_change(a, params, &(struct change){.blocks = 1, .without = without}))
			return text[without];
	return NULL;
}

/* Frameworks pack the gates in orders of their own. */
const char *
acc_cause_gates(const struct attempt *a)
{
	enum { MOST = 1 << 16 }; /* elements, of a cause that takes two dozen evaluations */
	struct acc_replay *r = &a->t->r;
	const struct acc_value *params = acc_try_given(r, "params");
	const char *const name = acc_try_is(r, "lstm lstm_cell") ? "ifgo"
				 : acc_try_is(r, "gru gru_cell") ? "rzn"
								 : "";
	const size_t n = strlen(name), all = n == 4 ? 256 : 27;
	if (n == 0 || a->rec->n > MOST ||
		(params == NULL ? acc_try_given(r, "w_ih") == NULL : params->type != ACC_A_LIST))
		return NULL;
	for (size_t code = 0; code < all; code++) {
		struct change c = {.blocks = n};
		unsigned seen = 0;
		for (size_t i = 0, k = code; i < n; i++, k /= n) {
			c.order[i] = (uint8_t)(k % n);
			seen |= 1U << c.order[i];
		}
		if (seen != (1U << n) - 1 || !try_change(a, params, &c))
			continue;
		char text[8];
		for (size_t i = 0; i < n; i++) {
			text[2 * i] = name[c.order[i]];
			text[2 * i + 1] = i + 1 < n ? ' ' : '\0';
		}
		return acc_say(r->mem, "the gates in its weights in the order %s", text);
	}
	return without_bias(a, params);
}
