/* What puts right numbers in other places than the bench has them: statistics of a tensor do not show where they stand,
 * elements of pairs do. See parting.h. */
#include "judge/parting.h"

#include <math.h>
#include <string.h>

#include "judge/limits.h"

/* Which values of the device stand in the right places somewhere, and which of the bench's is in an item. */
struct places {
	struct acc_ids right, pair;
};

static void
release(struct places *at)
{
	acc_ids_release(&at->right);
	acc_ids_release(&at->pair);
}

/* How far a value is from its pair by elements, in whatever shape these lie one behind another; NAN: not known. */
static double
by_elements(const struct parting *p, const struct part_value *v)
{
	const struct acc_item *it = &p->c->item[v->item];
	return acc_is_measured(it) && it->note_shape && !it->permuted ? it->rms : v->rms;
}

/* Does the bench have the same numbers in the pair of this value, in whatever places? */
static bool
has_numbers(const struct parting *p, const struct places *at, const struct part_value *v)
{
	const uint32_t i = acc_ids_get(&at->pair, v->item + (uint64_t)1);
	return i != ACC_NOID && acc_part_off(v, &p->side[ACC_B].value[i]) <= p->may;
}

/* Does a step give the numbers that it takes, each in its place? Then the bench may be the one that moves them. */
static bool
hands_on(const struct part_side *d, uint32_t step)
{
	const struct part_step *s = &d->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		for (uint32_t k = s->value; k < s->value + s->n; k++)
			if (d->value[i].out && !d->value[k].out && d->value[i].id != 0 &&
				d->value[i].id == d->value[k].id)
				return true;
	return false;
}

/* Of a value that agrees, are the numbers in other places, where it is taken, or where a call before gives it? Then the
 * last call before that took them in the right ones, of those that only move them: ACC_NOCALL where none is known to.
 * placed: the values that stand in the right places somewhere, of what is paired; one call may take them as another. */
static uint32_t
mover(const struct parting *p, const struct places *at, const struct part_value *taken)
{
	const struct part_side *a = &p->side[ACC_A];
	const bool others = by_elements(p, taken) > LIMIT_HEALED && has_numbers(p, at, taken);
	bool other = false;
	uint32_t step = taken->maker;
	while (step != ACC_NOCALL && a->step[step].cls == ACC_OP_MOVE) {
		const struct part_step *s = &a->step[step];
		uint32_t before = ACC_NOCALL;
		bool right = true;
		for (uint32_t i = s->value; i < s->value + s->n; i++) {
			const struct part_value *v = &a->value[i];
			if (!v->real)
				continue;
			other |= v->out && v->rms > LIMIT_HEALED && has_numbers(p, at, v);
			right &= v->out || acc_ids_get(&at->right, v->id) != ACC_NOID;
			before = v->out ? before : v->maker;
		}
		if (right && (other || (others && !hands_on(a, step))))
			return step;
		step = before;
	}
	return ACC_NOCALL;
}

static int
find_places(const struct parting *p, struct places *at, struct acc_err *e)
{
	const struct part_side *a = &p->side[ACC_A], *b = &p->side[ACC_B];
	int rc = 0;
	for (uint32_t i = 0; i < a->nvalue && rc == 0; i++)
		if (a->value[i].id != 0 && by_elements(p, &a->value[i]) <= LIMIT_HEALED)
			rc = acc_ids_put(&at->right, a->value[i].id, i, false, e);
	for (uint32_t i = 0; i < b->nvalue && rc == 0; i++)
		rc = acc_ids_put(&at->pair, b->value[i].item + (uint64_t)1, i, false, e);
	return rc;
}

/* Does a step take, or give, the bench's numbers in other places than its partner? */
static bool
is_displaced(const struct parting *p, const struct places *at, uint32_t step, bool out)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *s = &a->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &a->value[i];
		if (v->real && v->count > 1 && v->out == out && v->rms > LIMIT_HEALED &&
			acc_ids_get(&at->right, v->id) == ACC_NOID && has_numbers(p, at, v))
			return true;
	}
	return false;
}

/* Of the op calls before the stretch that take a weight, whose partners are sure, do the last ones have right numbers
 * in other places? Then the first op call that gives such, behind the last one that has them in the right ones;
 * ACC_NOCALL: they do not, or it computes what it is given such, as where the rows of a batch stand in another order. */
static uint32_t
displacer(const struct parting *p, const struct places *at)
{
	const struct part_side *a = &p->side[ACC_A];
	uint32_t since = 0, until = ACC_NOCALL;
	for (uint32_t i = 0; i < a->nstep && i < p->end[ACC_A] && !a->step[i].in; i++) {
		if (!acc_part_has_weight(p, i))
			continue;
		const bool displaced = is_displaced(p, at, i, false) &&
				       is_displaced(p, at, i, true);
		since = displaced ? since : i + 1;
		until = displaced ? i : ACC_NOCALL;
	}
	for (uint32_t i = since; until != ACC_NOCALL && i <= until; i++)
		if (is_displaced(p, at, i, true))
			return a->step[i].cls != ACC_OP_MOVE && is_displaced(p, at, i, false)
				       ? ACC_NOCALL
				       : i;
	return ACC_NOCALL;
}

/* Does a step give these numbers, as one of several parts? */
static bool
gives_part(const struct parting *p, int side, uint32_t step, const struct part_value *v)
{
	const struct part_step *s = &p->side[side].step[step];
	uint32_t parts = 0;
	bool has = false;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *w = &p->side[side].value[i];
		parts += w->out && w->real && w->count > 1;
		has |= w->out && acc_part_off(v, w) <= p->may;
	}
	return has && parts > 1;
}

/* The first step of the stretch that computes, of this family if it is not 0. */
static uint32_t
first_of(const struct parting *p, int side, uint64_t family)
{
	const struct part_side *d = &p->side[side];
	for (uint32_t i = 0; i < d->nstep; i++)
		if (d->step[i].in && acc_part_computes(p, side, i) &&
			(family == 0 || d->step[i].family == family))
			return i;
	return ACC_NOCALL;
}

/* Where the stretch begins with an operator that the bench has, too: does it take another part of what one op call
 * splits than the bench's does? That one: its parts go to each other's places. */
static uint32_t
misrouted(const struct parting *p)
{
	const struct part_side *a = &p->side[ACC_A], *b = &p->side[ACC_B];
	const uint32_t f = first_of(p, ACC_A, 0);
	const uint32_t g = f == ACC_NOCALL ? ACC_NOCALL : first_of(p, ACC_B, a->step[f].family);
	if (g == ACC_NOCALL || a->step[f].n != b->step[g].n)
		return ACC_NOCALL;
	for (uint32_t i = 0; i < a->step[f].n; i++) {
		const struct part_value *v = &a->value[a->step[f].value + i],
					*w = &b->value[b->step[g].value + i];
		if (v->out || w->out || !v->real || !w->real || v->maker == ACC_NOCALL ||
			w->maker == ACC_NOCALL || acc_part_off(v, w) <= p->may)
			continue;
		if (gives_part(p, ACC_A, v->maker, v) && gives_part(p, ACC_A, v->maker, w) &&
			gives_part(p, ACC_B, w->maker, v) && gives_part(p, ACC_B, w->maker, w))
			return v->maker;
	}
	return ACC_NOCALL;
}

/* That is part of the stretch. */
int
acc_part_add_movers(struct parting *p, struct acc_err *e)
{
	struct part_side *a = &p->side[ACC_A];
	struct places at = {.right = {0}};
	int rc = find_places(p, &at, e);
	for (uint32_t i = a->nvalue; i-- > 0 && rc == 0;) {
		const struct part_value *v = &a->value[i];
		if (v->out || !a->step[v->step].in || !acc_part_agrees(p, v) ||
			v->maker == ACC_NOCALL)
			continue;
		const uint32_t m = mover(p, &at, v);
		if (m == ACC_NOCALL)
			continue;
		a->step[m].in = true;
		p->moved = m;
	}
	if (rc == 0 && p->moved == ACC_NOCALL)
		p->moved = displacer(p, &at);
	if (rc == 0 && p->moved == ACC_NOCALL)
		p->moved = misrouted(p);
	if (p->moved != ACC_NOCALL)
		a->step[p->moved].in = true;
	release(&at);
	return rc;
}

/* The bench's step that this value is paired with; ACC_NOCALL: it is with none. */
static uint32_t
partner(const struct parting *p, const struct part_value *v)
{
	const struct part_side *b = &p->side[ACC_B];
	const uint32_t call = p->c->item[v->item].call;
	const char *name = call == ACC_NOCALL ? NULL : p->c->call[call].key[ACC_B];
	for (uint32_t i = 0; i < b->nstep && name != NULL; i++)
		if (strcmp(b->step[i].name, name) == 0)
			return i;
	return ACC_NOCALL;
}

/* Is a value off from what it is paired with, element by element? */
static bool
is_off(const struct parting *p, const struct part_value *v)
{
	return !(p->c->item[v->item].rms <= fmax(p->may, v->noise));
}

/* Does a step give what it takes, which is what its partner of the bench's stretch takes, and does that give something
 * else? */
static bool
is_idle(const struct parting *p, uint32_t step)
{
	const struct part_side *a = &p->side[ACC_A], *b = &p->side[ACC_B];
	const struct part_step *s = &a->step[step];
	if (s->in || !hands_on(a, step))
		return false;
	const struct part_value *in = NULL, *out = NULL;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &a->value[i];
		const bool known = v->real && v->count > 1 &&
				   p->c->item[v->item].measure == ACC_BY_TENSOR;
		in = known && !v->out && in == NULL ? v : in;
		out = known && v->out && out == NULL ? v : out;
	}
	const uint32_t other = in == NULL || out == NULL ? ACC_NOCALL : partner(p, out);
	return other != ACC_NOCALL && b->step[other].in && in->id == out->id && !is_off(p, in) &&
	       out->paired && is_off(p, out);
}

void
acc_part_add_idle(struct parting *p)
{
	for (uint32_t i = 0; p->moved == ACC_NOCALL && p->first != ACC_NOCALL && i < p->first; i++)
		if (is_idle(p, i)) {
			p->side[ACC_A].step[i].in = true;
			p->ncompute[ACC_A]++;
			p->first = i;
		}
}

/* From a step back to the first that puts right numbers in other places. */
static uint32_t
first_mover(const struct parting *p, const struct places *at, uint32_t step)
{
	const struct part_side *a = &p->side[ACC_A];
	for (uint32_t before = step; before != ACC_NOCALL;) {
		const struct part_step *s = &a->step[step = before];
		before = ACC_NOCALL;
		for (uint32_t i = s->value; i < s->value + s->n; i++) {
			const struct part_value *v = &a->value[i];
			if (v->real && !v->out && v->maker != ACC_NOCALL && v->rms > LIMIT_HEALED &&
				acc_ids_get(&at->right, v->id) == ACC_NOID && has_numbers(p, at, v))
				before = v->maker;
		}
	}
	return step;
}

int
acc_part_begins(const struct parting *p, uint32_t *call, struct acc_err *e)
{
	const struct part_side *a = &p->side[ACC_A];
	struct places at = {.right = {0}};
	uint32_t step = 0;
	while (step < a->nstep && !(a->step[step].lost && a->step[step].first && a->step[step].in))
		step++;
	*call = ACC_NOCALL;
	if (step == a->nstep)
		return 0;
	const int rc = find_places(p, &at, e);
	if (rc == 0)
		*call = a->step[first_mover(p, &at, step)].call;
	release(&at);
	return rc;
}
