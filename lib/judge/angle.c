/* Positions in 16 bits. Rounding explains that 257 becomes 256 in bf16, and that a sine of it is another; but angles
 * of a radian and more apart are no rounding error of what comes of them: rotary embeddings and time steps are
 * computed in f32 by whoever trained the network. Two witnesses: a call that is given the same on both sides and
 * rounds to 16 bits on the device alone, and a sine or cosine that takes what is made of that. */
#include "acc/say.h"
#include "judge/first_bad.h"

#include "judge/case.h"

static bool
is_sine(const struct acc_call *k)
{
	const char *name = acc_call_name(k), *op = strchr(name, '.');
	return op != NULL && (strncmp(op, ".sin.", 5) == 0 || strncmp(op, ".cos.", 5) == 0);
}

/* An output that is rounded to 16 bits on the device alone, so far that an angle is another. NULL: there is none. */
static const struct acc_item *
rounded(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	const struct acc_item *out = NULL;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR)
			continue;
		if (acc_is_input(it) && !(acc_is_measured(it) && it->rms == 0))
			return NULL;
		const double u[2] = {acc_unit((enum acc_dtype)it->dtype[ACC_A]),
			acc_unit((enum acc_dtype)it->dtype[ACC_B])};
		if (acc_is_output(it) && it->measure == ACC_BY_TENSOR && it->id[ACC_A] != 0 &&
			!it->nonfinite && acc_unit_low(u[ACC_A]) && u[ACC_B] < u[ACC_A] &&
			it->max_abs >= LIMIT_ANGLE && it->max_abs <= 2 * u[ACC_A] * it->b_max)
			out = it;
	}
	return out;
}

/* The first sine of the device that takes, over whatever calls, what is made of that output, so far off; or NULL. */
static const struct acc_item *
taker(const struct acc_case *c, const struct acc_item *out, struct acc_ids *made, struct acc_err *e)
{
	acc_ids_clear(made);
	if (acc_ids_put(made, out->id[ACC_A], out->call, true, e) < 0)
		return NULL;
	for (uint32_t i = out->call + 1;
		i < c->ncall && c->call[i].segment == c->call[out->call].segment; i++) {
		const struct acc_call *k = &c->call[i];
		bool takes = false;
		for (uint32_t j = k->first; j <= k->last && !k->backward; j++) {
			const struct acc_item *it = &c->item[j];
			if (it->call != i || it->kind != ACC_ITEM_TENSOR || it->id[ACC_A] == 0)
				continue;
			if (acc_is_input(it) && acc_ids_get(made, it->id[ACC_A]) != ACC_NOID) {
				takes = true;
				if (is_sine(k) && acc_is_measured(it) && it->max_abs >= LIMIT_ANGLE)
					return it;
			} else if (acc_is_output(it) && takes &&
				   acc_ids_put(made, it->id[ACC_A], i, true, e) < 0) {
				return NULL;
			}
		}
	}
	return NULL;
}

static int
say(struct scan *s, const struct acc_item *out, const struct acc_item *in, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[out->call];
	struct acc_rec *r;
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	if (src == NULL || where == NULL || acc_case_record(c, out, &r, e) < 0)
		return e->code == 0 ? acc_nomem(e) : e->code;
	const char *place = acc_say_position(c, r, out);
	struct acc_str pos = acc_get_text(r, "a.", "pos");
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_rounded_angle, "culprit", "angle",
		e);
	if (f == NULL && e->code == 0)
		return 0;
	if (f == NULL || place == NULL)
		return acc_nomem(e);
	acc_finding_of(f, k);
	f->io = acc_say_io(out);
	f->pos = acc_arena_copy(&c->mem, pos.p, pos.n);
	f->value = in->max_abs;
	f->limit = LIMIT_ANGLE;
	f->stack = stack;
	f->text = acc_say(&c->mem,
		"%s%s: %s is rounded to %s on the device, to %s on the bench, and off by up to %.3g of values up to"
		" %.6g; %s takes angles made of it that are off by up to %.3g rad: positions and angles want f32%s%s",
		where, f->name, place, acc_item_dtype(out, ACC_A)->name,
		acc_item_dtype(out, ACC_B)->name, out->max_abs, out->b_max,
		acc_call_name(&c->call[in->call]), in->max_abs, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL || f->pos == NULL ? acc_nomem(e) : 1;
}

int
acc_say_angle(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct acc_ids made = {0};
	int rc = 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!k->keyed || k->backward || k->grad || k->module || k->key[ACC_A] == NULL ||
			k->key[ACC_B] == NULL)
			continue;
		const struct acc_item *out = rounded(c, i);
		const struct acc_item *in = out == NULL ? NULL : taker(c, out, &made, e);
		rc = e->code;
		if (rc == 0 && in != NULL) {
			rc = say(s, out, in, e);
			*call = rc > 0 ? i : *call;
		}
	}
	acc_ids_release(&made);
	return rc;
}
