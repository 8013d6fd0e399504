/* A loss that agrees, and is divided or multiplied behind it to what another reduction gives, where the bench returns it
 * as it is. Where gradients were recorded they tell: many scale a loss for their sake. */
#include "judge/first_bad.h"

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

static int
say(struct scan *s, const struct acc_item *loss, uint32_t call, const char *cause,
	struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[loss->call];
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL)
		return acc_nomem(e);
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_scaled_loss, "culprit",
		"scaled-loss", e);
	if (f == NULL)
		return e->code;
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->stack = stack;
	f->text = acc_say(&c->mem,
		"%s%s: what it gives agrees, and ends the pass of the bench; %s makes of it what the bench's call gives if one"
		" thing is changed: %s%s%s",
		where, f->name, acc_call_name(&c->call[call]), cause, src[0] != '\0' ? "; at " : "",
		src);
	return f->text == NULL ? acc_nomem(e) : 1;
}

int
acc_say_reduced(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	int rc = 0;
	if (!s->two || acc_unit_low(s->unit))
		return 0;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i))
		if (c->call[i].backward || c->call[i].grad)
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
