/* A loss that agrees, and is divided or multiplied behind it, where the bench returns it as it is. Where gradients were
 * recorded they tell: all of them are one number times the bench's. Where none were, it is what another reduction gives. */
#include "judge/first_bad.h"

#include <math.h>

#include "acc/replay.h"
#include "acc/say.h"
#include "judge/case.h"

/* The single number that a call gives on the device; NULL: it gives more, or none. */
static const struct acc_item *
number_of(const struct acc_case *c, uint32_t call)
{
	const struct acc_item *found = NULL;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || acc_is_input(it) ||
			(it->sides & 1) == 0)
			continue;
		if (found != NULL || it->exact || it->dtype[ACC_A] == ACC_NODTYPE)
			return NULL;
		found = it;
	}
	return found;
}

/* Is it the number that the last call of the bench's pass gives, a loss, and the device's the same? 1, 0 or < 0. */
static int
is_end(struct scan *s, const struct acc_item *it, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[it->call];
	struct acc_rec *r;
	if (it->sides != 3 || it->count != 1 || !acc_is_measured(it) || it->exact ||
		!(it->rms <= LIMIT_PART_U * s->unit) || it->id[ACC_A] == 0)
		return 0;
	for (uint32_t i = it->call + 1; i < c->ncall && c->call[i].segment == k->segment; i++)
		if (c->call[i].key[ACC_B] != NULL && !c->call[i].module)
			return 0;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const struct acc_op *row = acc_op_find(acc_get_text(r, "b.", "op"));
	return row != NULL && strcmp(row->cls, "loss") == 0;
}

/* Who takes a number of the device, and only scales it to another? */
static uint32_t
scaler(const struct acc_case *c, const struct acc_item *of)
{
	for (uint32_t i = of->call + 1;
		i < c->ncall && c->call[i].segment == c->call[of->call].segment; i++) {
		const struct acc_call *k = &c->call[i];
		if (k->key[ACC_B] != NULL || k->cls != ACC_OP_MUL)
			continue;
		for (uint32_t j = k->first; j <= k->last; j++)
			if (c->item[j].call == i && acc_is_input(&c->item[j]) &&
				c->item[j].id[ACC_A] == of->id[ACC_A])
				return i;
	}
	return ACC_NOCALL;
}

struct acc_finding *
acc_scaled_find(struct scan *s, const struct acc_call *k, const char **src, const char **where,
	struct acc_err *e)
{
	const char *stack;
	*src = acc_say_source(s->c, k, &stack, e);
	*where = acc_say_where(s->c, k);
	if (*src == NULL || *where == NULL) {
		acc_nomem(e);
		return NULL;
	}
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_scaled_loss, "culprit",
		"scaled-loss", e);
	if (f != NULL) {
		acc_finding_of(f, k);
		f->stack = stack;
	}
	return f;
}

static int
say(struct scan *s, const struct acc_item *loss, uint32_t call, const char *cause,
	struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[loss->call];
	const char *src, *where;
	struct acc_finding *f = acc_scaled_find(s, k, &src, &where, e);
	if (f == NULL)
		return e->code;
	f->text = acc_say(&c->mem,
		"%s%s: what it gives agrees, and ends the pass of the bench; %s makes of it what the bench's call gives if one"
		" thing is changed: %s%s%s",
		where, f->name, acc_call_name(&c->call[call]), cause, src[0] != '\0' ? "; at " : "",
		src);
	return f->text == NULL ? acc_nomem(e) : 1;
}

/* Gradients that are one number times the bench's. */
struct factor {
	double times, off;     /* by so much of itself some are not that number times the bench's */
	uint32_t first, calls; /* op calls */
	uint32_t last, tensors;
};

/* A gradient that is not so: 1; that is, or tells nothing: 0; < 0. Of |a - b| a factor leaves nothing but the difference of
 * the norms, and the angle tells what it leaves. */
static int
is_other(struct scan *s, uint32_t item, struct factor *f, struct acc_err *e)
{
	const struct acc_item *it = &s->c->item[item];
	struct acc_rec *r;
	double a, b, angle;
	if (acc_case_record(s->c, it, &r, e) < 0)
		return e->code;
	if (!acc_str_is(acc_get_text(r, "m.", "mode"), "tensor") ||
		!acc_as_f64(acc_get(r, "a.s.", "norm"), &a) ||
		!acc_as_f64(acc_get(r, "b.s.", "norm"), &b) || (a == 0 && b == 0))
		return 0;
	if (!(a > 0 && b > 0) || !acc_as_f64(acc_get(r, "m.", "one_minus_cosine"), &angle))
		return 1;
	const double times = a / b, off = sqrt(2 * angle) + LIMIT_SAME_INPUT * s->unit;
	if (f->tensors == 0)
		*f = (struct factor){.times = times,
			.off = off,
			.first = it->call,
			.last = ACC_NOCALL};
	if (!(fabs(times / f->times - 1) <= off + f->off) || !(fabs(log(times)) > LIMIT_JUMP * off))
		return 1;
	if (off < f->off) { /* what tells it best */
		f->times = times;
		f->off = off;
	}
	f->calls += it->call != f->last;
	f->last = it->call;
	f->tensors++;
	return 0;
}

bool
acc_is_loss_scale(double times, double off)
{
	const double k = rint(log2(times));
	return fabs(k) >= LIMIT_LOSS_SCALE && fabs(times / exp2(k) - 1) <= off;
}

static int
say_gradients(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct factor f = {.tensors = 0};
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->call == ACC_NOCALL || !c->call[it->call].backward ||
			it->kind != ACC_ITEM_TENSOR || it->sides != 3 || !acc_is_output(it) ||
			it->exact || it->count < 2)
			continue;
		const int rc = is_other(s, i, &f, e);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	if (f.calls < 2)
		return 0;
	const struct acc_call *k = &c->call[f.first];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL)
		return acc_nomem(e);
	const bool scale = acc_is_loss_scale(f.times, f.off);
	struct acc_finding *g = acc_witness_find(s, ACC_WITNESS_scaled_loss,
		scale ? "warning" : "difference", "scaled-loss", e);
	if (g == NULL)
		return e->code;
	acc_finding_of(g, k);
	g->value = f.times;
	g->limit = 1;
	g->stack = stack;
	g->bad &= !scale;
	g->doubtful = !g->bad;
	g->text = acc_say(acc_mem(s),
		"%s%s: from here on all gradients are %.6g times the bench's, %u tensors of %u op calls, and no op call that was"
		" compared makes them so: is the loss divided, summed up or scaled on one side alone%s?%s%s",
		where, g->name, f.times, f.tensors, f.calls, scale ? ", as loss scaling does" : "",
		src[0] != '\0' ? "; at " : "", src);
	*call = f.first;
	return g->text == NULL ? acc_nomem(e) : 1;
}

int
acc_say_reduced(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	int rc = 0;
	if (!s->two)
		return 0;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i))
		if (c->call[i].backward || c->call[i].grad)
			return say_gradients(s, call, e);
	if (acc_unit_low(s->unit))
		return 0;
	for (uint32_t i = c->ncall; i-- > 0 && rc == 0;) {
		const struct acc_call *k = &c->call[i];
		if (!k->keyed || k->module || k->key[ACC_A] == NULL || k->key[ACC_B] == NULL)
			continue;
		const struct acc_item *loss = number_of(c, i), *end = NULL;
		rc = loss == NULL ? 0 : is_end(s, loss, e);
		const uint32_t by = rc > 0 ? scaler(c, loss) : ACC_NOCALL;
		if (by != ACC_NOCALL)
			end = number_of(c, by);
		if (rc < 0 || end == NULL) {
			rc = rc < 0 ? rc : 0;
			continue;
		}
		const char *cause;
		rc = acc_substitute_with(s, i, (uint32_t)(loss - c->item),
			(uint32_t)(end - c->item), &cause, e);
		if (rc == 0 && cause[0] != '\0') {
			rc = say(s, loss, by, cause, e);
			*call = rc > 0 ? i : *call;
		}
	}
	return rc;
}
