/* Which op calls of a side are lost, and where the stretch of them ends: see parting.h.
 *
 * The first calls that are lost begin the stretch. Weights have the same values on both sides, whatever is wrong,
 * so the first call behind them that takes a weight of a later lost call of the bench ends it: what goes into that
 * one is to be what goes into the bench's. */
#include "judge/parting.h"

#include <math.h>
#include <stdlib.h>

#include "judge/limits.h"

/* Beside what a mask puts in, -1e9, statistics tell nothing of the rest. */
static bool
is_swamped(const struct parting *p, const struct part_value *v)
{
	return v->stat[ACC_STAT_MAX] != 0 &&
	       fabs(v->stat[ACC_STAT_MAX]) < -p->unit * v->stat[ACC_STAT_MIN];
}

bool
acc_part_agrees(const struct parting *p, const struct part_value *v)
{
	return v->real && v->off <= p->may &&
	       !((p->low || is_swamped(p, v)) && v->paired &&
		       v->rms > fmax(LIMIT_MARGIN * p->may, v->noise));
}

/* Mark whoever gave what this step takes. */
void
acc_part_mark_makers(const struct part_side *d, uint32_t step, uint8_t *mark, uint8_t as)
{
	const struct part_step *s = &d->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (d->value[i].maker != ACC_NOCALL)
			mark[d->value[i].maker] |= as;
}

/* The last step that gives floats, and of which this holds. ACC_NOCALL: there is none. */
static uint32_t
last_of(const struct part_side *d, bool with_gradient)
{
	for (uint32_t i = d->nstep; i-- > 0;)
		for (uint32_t j = d->step[i].value; j < d->step[i].value + d->step[i].n; j++)
			if (d->value[j].out && d->value[j].real &&
				(!with_gradient || d->step[i].gradient))
				return i;
	return ACC_NOCALL;
}

/* Is step `to` made of what step `from` gives? mark: room for a byte a step. */
static bool
is_made_of(const struct part_side *d, uint32_t to, uint32_t from, uint8_t *mark)
{
	memset(mark, 0, d->nstep);
	mark[to] = 1;
	for (uint32_t i = to; i > from; i--)
		if (mark[i] != 0)
			acc_part_mark_makers(d, i, mark, 1);
	return mark[from] != 0;
}

/* What is computed behind the loss, and not of it, such as logits for a report, is not the end. */
static void
find_pass_end(struct part_side *d, uint8_t *mark)
{
	const uint32_t last = last_of(d, false), loss = last_of(d, true);
	d->end = loss == ACC_NOCALL || is_made_of(d, last, loss, mark) ? last : loss;
}

/* Nothing comes back behind a step; but for one number of 16 bits, which may agree by chance; and it leads to
 * the end. */
enum { BACK = 1, NUMBER = 2, LIVE = 4 };

/* Does it give masks or indices alone, and the other side has them? Of what it takes that tells nothing. */
static bool
gives_twins(const struct part_side *d, uint32_t step)
{
	const struct part_step *s = &d->step[step];
	bool any = false;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &d->value[i];
		if (v->out && v->count > 1) {
			if (!v->twin)
				return false;
			any = true;
		}
	}
	return any;
}

/* Two numbers of 16 bits may agree by chance, and such of f32 as what goes into them was rounded to 16 bits, unless they do as
 * f32 does. */
static bool
is_by_chance(const struct parting *p, const struct part_value *v)
{
	return p->low && v->count == 1 &&
	       (acc_unit_low(v->unit) || v->off > LIMIT_PART_U * acc_unit(ACC_F32));
}

/* What a step gives beside that which others take, as the mean beside a deviation, tells nothing of these. */
static uint8_t
gives_right(const struct parting *p, const struct part_side *d, uint32_t step)
{
	const struct part_step *s = &d->step[step];
	uint8_t right = 0;
	bool taken = false;
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		taken |= d->value[i].taken;
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (d->value[i].out && d->value[i].taken == taken &&
			acc_part_agrees(p, &d->value[i]))
			right |= is_by_chance(p, &d->value[i]) ? NUMBER : BACK;
	return right;
}

/* Is all that a step takes made of numbers that stand in the program? */
static bool
is_constant(const struct part_side *d, uint32_t step)
{
	const struct part_step *s = &d->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &d->value[i];
		if (!v->out && (v->bridged || (v->maker != ACC_NOCALL ? !d->step[v->maker].constant
								      : v->real && v->count > 1)))
			return false;
	}
	return true;
}

/* Two steps may give the same values, as a ratio that is 1 everywhere and what was clamped of it: who takes them takes
 * both. Which right steps took: values. 0 or < 0. */
static int
share_right(const struct part_side *d, uint32_t step, struct acc_ids *values, uint8_t *mark,
	struct acc_err *e)
{
	const struct part_step *s = &d->step[step];
	int rc = 0;
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (d->value[i].out && d->value[i].id != 0 &&
			acc_ids_get(values, d->value[i].id) != ACC_NOID)
			*mark |= BACK;
	for (uint32_t i = s->value; i < s->value + s->n && (*mark & BACK) != 0 && rc == 0; i++)
		if (!d->value[i].out && d->value[i].real && d->value[i].count > 1 &&
			d->value[i].id != 0)
			rc = acc_ids_put(values, d->value[i].id, i, true, e);
	return rc;
}

int
acc_part_find_lost(struct parting *p, struct part_side *d, uint8_t *mark, struct acc_err *e)
{
	struct acc_ids right = {0};
	int rc = 0;
	find_pass_end(d, mark);
	memset(mark, 0, d->nstep);
	for (uint32_t i = d->nstep; i-- > 0 && rc == 0;) {
		if (i == d->end)
			mark[i] |= LIVE;
		mark[i] |= gives_right(p, d, i);
		rc = share_right(d, i, &right, &mark[i], e);
		acc_part_mark_makers(d, i, mark, mark[i]);
		d->step[i].back = (mark[i] & (BACK | NUMBER)) != 0;
		d->step[i].apart = (mark[i] & BACK) == 0;
		d->step[i].lost = (mark[i] & (BACK | LIVE)) == LIVE && !gives_twins(d, i);
	}
	acc_ids_release(&right);
	for (uint32_t i = 0; i < d->nstep; i++) {
		struct part_step *s = &d->step[i];
		s->constant = is_constant(d, i);
		s->first = s->lost;
		for (uint32_t j = s->value; j < s->value + s->n; j++) {
			const struct part_value *v = &d->value[j];
			s->first &= v->out || !v->real || acc_part_agrees(p, v) ||
				    v->maker == ACC_NOCALL || !d->step[v->maker].lost;
		}
	}
	return rc;
}

bool
acc_part_is_weight(const struct parting *p, const struct part_value *v)
{
	return !v->out && v->leaf && v->count > 1 && v->real && v->off <= p->may;
}

/* The lost call of the bench, behind the first of them, that takes this weight; none of the first may. lost: the
 * weights that lost calls take. */
static uint32_t
later(const struct parting *p, const struct part_value *w, const uint32_t *lost, uint32_t n)
{
	const struct part_side *b = &p->side[ACC_B];
	uint32_t found = ACC_NOCALL;
	for (uint32_t i = 0; i < n; i++) {
		const struct part_value *v = &b->value[lost[i]];
		if (!(acc_part_off(w, v) <= p->may))
			continue;
		if (b->step[v->step].first)
			return ACC_NOCALL;
		found = found == ACC_NOCALL ? v->step : found;
	}
	return found;
}

const struct part_value *
acc_part_taken(const struct part_side *d, uint32_t step)
{
	const struct part_value *found = NULL;
	const struct part_step *s = &d->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &d->value[i];
		if (!v->out && v->real && v->maker != ACC_NOCALL && d->step[v->maker].lost &&
			(found == NULL || v->count > found->count))
			found = v;
	}
	return found;
}

/* Do two steps, one of each side, take one weight? */
static bool
share_weight(const struct parting *p, uint32_t x, uint32_t y)
{
	const struct part_step *s = &p->side[ACC_A].step[x], *t = &p->side[ACC_B].step[y];
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		for (uint32_t j = t->value; j < t->value + t->n; j++) {
			const struct part_value *v = &p->side[ACC_A].value[i],
						*w = &p->side[ACC_B].value[j];
			if (acc_part_is_weight(p, v) && acc_part_is_weight(p, w) &&
				acc_part_off(v, w) <= p->may)
				return true;
		}
	return false;
}

/* Where a step of the device adds its bias to a product, that product, if y takes both weights: the bench has them in
 * one. */
static uint32_t
product_of(const struct parting *p, uint32_t x, uint32_t y)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *s = &a->step[x];
	for (uint32_t i = s->value; i < s->value + s->n && s->cls == ACC_OP_ADD; i++) {
		const uint32_t m = a->value[i].out ? ACC_NOCALL : a->value[i].maker;
		if (m != ACC_NOCALL && a->step[m].cls == ACC_OP_CONTRACT && share_weight(p, m, y))
			return m;
	}
	return x;
}

/* Is what leads to a product of the bench more than sums and factors? Those may stand behind a product as well. */
static bool
is_fed_by_more(const struct parting *p, uint32_t step)
{
	const struct part_side *b = &p->side[ACC_B];
	if (b->step[step].cls != ACC_OP_CONTRACT)
		return false;
	for (uint32_t hops = 0; hops < LIMIT_PART_CALLS && step != ACC_NOCALL; hops++) {
		const struct part_value *v = acc_part_taken(b, step);
		step = v == NULL ? ACC_NOCALL : v->maker;
		if (step != ACC_NOCALL && acc_part_computes(p, ACC_B, step) &&
			b->step[step].cls != ACC_OP_ADD && b->step[step].cls != ACC_OP_MUL)
			return true;
	}
	return false;
}

int
acc_part_find_end(struct parting *p, struct acc_err *e)
{
	const struct part_side *a = &p->side[ACC_A], *b = &p->side[ACC_B];
	uint32_t *lost = malloc(((size_t)b->nvalue + 1) * sizeof *lost), n = 0;
	p->end[ACC_A] = p->end[ACC_B] = ACC_NOCALL;
	if (lost == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < b->nvalue; i++)
		if (b->step[b->value[i].step].lost && acc_part_is_weight(p, &b->value[i]))
			lost[n++] = i;
	for (uint32_t i = 0; i < a->nvalue && p->end[ACC_A] == ACC_NOCALL; i++) {
		const struct part_value *v = &a->value[i];
		const struct part_step *s = &a->step[v->step];
		if (!s->lost || !acc_part_is_weight(p, v))
			continue;
		p->end[ACC_B] = later(p, v, lost, n);
		if (p->end[ACC_B] == ACC_NOCALL)
			continue;
		if (s->first && (s->cls != ACC_OP_CONTRACT || !is_fed_by_more(p, p->end[ACC_B])))
			p->end[ACC_B] = ACC_NOCALL;
		else
			p->end[ACC_A] = product_of(p, v->step, p->end[ACC_B]);
	}
	free(lost);
	return 0;
}
