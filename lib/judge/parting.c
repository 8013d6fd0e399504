/* Where two programs part: see parting.h. */
#include "judge/parting.h"

#include <math.h>
#include <stdlib.h>

#include "judge/limits.h"

/* What a step gives leads to the end; and is taken there though the other side has it not. */
enum { LEADS = 1, OTHER = 2 };

/* Who gave what a step of the stretch takes, and the other side has not: part of it, too, though something else that is
 * made of it agrees, as behind a norm, which hides a factor. */
static void
mark_others(const struct parting *p, const struct part_side *d, uint32_t step, uint8_t *mark)
{
	const struct part_step *s = &d->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &d->value[i];
		if (!v->out && v->met && v->count > 1 && v->maker != ACC_NOCALL && !v->bridged &&
			!d->step[v->maker].constant && !acc_part_agrees(p, v))
			mark[v->maker] |= OTHER;
	}
}

/* The lost calls that lead to the end, that one left out. */
static void
mark_stretch(const struct parting *p, int side, uint8_t *mark)
{
	const struct part_side *d = &p->side[side];
	memset(mark, 0, d->nstep);
	if (p->end[side] != ACC_NOCALL)
		acc_part_mark_makers(d, p->end[side], mark, LEADS);
	for (uint32_t i = d->nstep; i-- > 0;) {
		struct part_step *s = &d->step[i];
		s->in = (s->lost && (mark[i] != 0 || p->end[side] == ACC_NOCALL)) ||
			(mark[i] & OTHER) != 0;
		if (!s->in)
			continue;
		acc_part_mark_makers(d, i, mark, LEADS);
		if (p->others)
			mark_others(p, d, i, mark);
	}
}

/* Is it a number of many that a side makes of constants, that is lost, and that the other side does not have? */
static bool
is_other_table(const struct parting *p, const struct part_side *d, const struct part_value *v)
{
	const struct part_step *s = &d->step[v->step];
	return v->out && v->real && v->count > 1 && s->constant && s->lost &&
	       !acc_part_agrees(p, v);
}

/* What is made of constants, as masks are, is none of it where nothing shows that it differs: that the other side makes
 * as many numbers of constants, and none the same. Tables are made in many ways, of which some values are the same in
 * all. */
static int
drop_constants(const struct parting *p, struct part_side *d, struct acc_err *e)
{
	const struct part_side *o = &p->side[d == &p->side[ACC_A]];
	struct acc_ids tables = {0};
	int rc = 0;
	for (uint32_t i = 0; i < o->nvalue && rc == 0; i++)
		if (is_other_table(p, o, &o->value[i]))
			rc = acc_ids_put(&tables, o->value[i].count, i, true, e);
	for (uint32_t i = 0; i < d->nstep && rc == 0; i++) {
		struct part_step *s = &d->step[i];
		bool fed = false;
		for (uint32_t j = s->value; j < s->value + s->n && s->in; j++) {
			const struct part_value *v = &d->value[j];
			fed |= is_other_table(p, d, v) &&
			       acc_ids_get(&tables, v->count) != ACC_NOID;
			fed |= !v->out && (acc_part_agrees(p, v) ||
						  (v->maker != ACC_NOCALL &&
							  (d->step[v->maker].in || v->bridged)));
		}
		s->in &= fed;
	}
	acc_ids_release(&tables);
	return rc;
}

const struct part_value *
acc_part_given_by(const struct part_side *d, uint32_t step)
{
	const struct part_value *found = NULL;
	for (uint32_t i = 0; step != ACC_NOCALL && i < d->step[step].n; i++) {
		const struct part_value *v = &d->value[d->step[step].value + i];
		if (v->out && v->real && (found == NULL || v->count > found->count))
			found = v;
	}
	return found;
}

/* The last step of each side that takes a weight of the other's, one and the same, and is lost. */
static void
find_heads(const struct parting *p, uint32_t head[2])
{
	const struct part_side *a = &p->side[ACC_A], *b = &p->side[ACC_B];
	head[ACC_A] = head[ACC_B] = ACC_NOCALL;
	for (uint32_t i = a->nvalue; i-- > 0 && head[ACC_A] == ACC_NOCALL;)
		if (acc_part_is_weight(p, &a->value[i]) && a->step[a->value[i].step].lost)
			head[ACC_A] = a->value[i].step;
	if (head[ACC_A] == ACC_NOCALL)
		return;
	const struct part_step *s = &a->step[head[ACC_A]];
	for (uint32_t i = b->nvalue; i-- > 0 && head[ACC_B] == ACC_NOCALL;)
		for (uint32_t j = s->value; j < s->value + s->n; j++)
			if (b->step[b->value[i].step].lost && acc_part_is_weight(p, &b->value[i]) &&
				acc_part_is_weight(p, &a->value[j]) &&
				acc_part_off(&a->value[j], &b->value[i]) <= p->may)
				head[ACC_B] = b->value[i].step;
}

/* Is the one the other times a factor, as all of its statistics say? */
static double
factor_of(const struct parting *p, const struct part_value *x, const struct part_value *y)
{
	const double by = x->stat[ACC_STAT_NORM] / y->stat[ACC_STAT_NORM];
	struct part_value z = *y;
	for (int i = 0; i < ACC_STATS; i++)
		z.stat[i] *= by;
	return x->count > 1 && acc_part_off(x, &z) <= p->may ? by : NAN;
}

/* What a step of the device takes that agrees and was computed: the largest one. NULL: nothing. */
static const struct part_value *
computed(const struct parting *p)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *s = &a->step[p->end[ACC_A]];
	const struct part_value *found = NULL;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &a->value[i];
		if (!v->out && v->real && v->maker != ACC_NOCALL && !v->leaf &&
			(found == NULL || v->count > found->count))
			found = v;
	}
	return found;
}

/* The device has nothing in the stretch: who gave what goes past it stands for it. */
static void
find_giver(struct parting *p)
{
	const struct part_value *v = p->empty ? computed(p) : NULL;
	const uint32_t m = v == NULL ? ACC_NOCALL : v->maker;
	if (m == ACC_NOCALL)
		return;
	p->first = p->last = m;
	p->ncompute[ACC_A] = 1;
}

/* What goes into the stretch and what comes out of it. Do the two sides come out of it alike in kind, and
 * further apart than they went in? */
static bool
measure(struct parting *p, bool heads)
{
	const struct part_value *out[2];
	const struct part_side *a = &p->side[ACC_A];
	uint32_t head[2];
	if (heads)
		find_heads(p, head);
	for (int s = 0; s < 2; s++)
		out[s] = heads                     ? acc_part_given_by(&p->side[s], head[s])
			 : p->end[s] == ACC_NOCALL ? acc_part_given_by(&p->side[s], p->side[s].end)
						   : acc_part_taken(&p->side[s], p->end[s]);
	if (p->empty)
		out[ACC_A] = computed(p);
	if (out[ACC_A] == NULL || out[ACC_B] == NULL)
		return false;
	/* A norm's weight may be multiplied by its deviation first. */
	for (uint32_t i = a->nvalue; !heads && out[ACC_A]->count != out[ACC_B]->count && i-- > 0;)
		if (a->step[a->value[i].step].in && a->value[i].out && a->value[i].real &&
			a->value[i].count == out[ACC_B]->count)
			out[ACC_A] = &a->value[i];
	if (out[ACC_A]->count != out[ACC_B]->count || (heads && out[ACC_A]->count == 1))
		return false;
	p->given = 0;
	for (uint32_t i = 0; i < a->nvalue; i++) {
		const struct part_value *v = &a->value[i];
		if (a->step[v->step].in && !v->out && acc_part_agrees(p, v))
			p->given = fmax(p->given, v->off);
	}
	p->off = acc_part_off(out[ACC_A], out[ACC_B]);
	p->wide = fmax(out[ACC_A]->wide, out[ACC_B]->wide);
	p->factor = factor_of(p, out[ACC_A], out[ACC_B]);
	p->limit = LIMIT_MARGIN * (p->may + LIMIT_OTHER_GAIN * p->given);
	if (heads)
		p->limit = fmax(p->limit, acc_end_limit(p->unit, a->nstep));
	return p->off > p->limit;
}

/* Does something that was computed go in, and agrees? Else weights alone agree, and what comes from elsewhere,
 * such as a kernel that was not recorded, may differ; as may what does not agree, though something behind it does. */
static bool
is_fed(const struct parting *p)
{
	const struct part_side *a = &p->side[ACC_A];
	bool unknown = false, known = false;
	for (uint32_t i = 0; i < a->nvalue; i++) {
		const struct part_value *v = &a->value[i];
		if (!a->step[v->step].in || v->out || !v->real || v->count == 1)
			continue;
		if (acc_part_agrees(p, v)) {
			known |= !v->leaf;
			continue;
		}
		if (v->maker != ACC_NOCALL && !a->step[v->maker].lost && !a->step[v->maker].in)
			return false;
		unknown |= v->maker == ACC_NOCALL;
	}
	return known || !unknown;
}

/* Of what moves numbers, are new ones among them, as of masked_fill? Where some are to be hidden, each program has
 * its own number for these. */
static bool
changes(const struct parting *p, int side, uint32_t step)
{
	const struct part_side *d = &p->side[side];
	const struct part_step *s = &d->step[step];
	const struct part_value *out = NULL;
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (d->value[i].out && d->value[i].real)
			out = &d->value[i];
	for (uint32_t i = s->value; i < s->value + s->n && out != NULL; i++) {
		const struct part_value *v = &d->value[i];
		if (!v->out && v->count == out->count && acc_part_agrees(p, v))
			return s->first && !acc_part_agrees(p, out) &&
			       out->stat[ACC_STAT_MIN] > -LIMIT_HIDDEN;
	}
	return false;
}

bool
acc_part_has_weight(const struct parting *p, uint32_t step)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *s = &a->step[step];
	uint32_t weights = 0, taken = 0;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *v = &a->value[i];
		taken += v->real && !v->out && v->count > 1;
		weights += acc_part_is_weight(p, v) && !(v->rms > LIMIT_HEALED);
	}
	return weights > 0 && taken > weights && acc_part_computes(p, ACC_A, step);
}

/* Does a step of the device take a weight of both sides, as a table of which it picks rows? */
static bool
takes_weight(const struct parting *p, uint32_t step)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *s = &a->step[step];
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (acc_part_is_weight(p, &a->value[i]))
			return true;
	return false;
}

static void
count(struct parting *p)
{
	p->first = p->last = ACC_NOCALL;
	for (int s = 0; s < 2; s++) {
		p->ncompute[s] = 0;
		for (uint32_t i = 0; i < p->side[s].nstep; i++) {
			if (!p->side[s].step[i].in ||
				(!acc_part_computes(p, s, i) && !changes(p, s, i) &&
					!(s == ACC_A && i == p->moved)))
				continue;
			p->ncompute[s]++;
			if (s == ACC_B)
				continue;
			p->first = p->first == ACC_NOCALL ? i : p->first;
			p->last = i;
		}
	}
	for (uint32_t i = 0; p->first != ACC_NOCALL && i < p->first; i++)
		if (p->side[ACC_A].step[i].in && p->side[ACC_A].step[i].first &&
			!p->side[ACC_A]
				 .step[p->first]
				 .first && /* other numbers were picked before */
			(acc_part_has_weight(p, p->first) || takes_weight(p, i)))
			p->first = i;
}

/* The bench's, in the order of its calls: not all values that go into one were recorded as another gave them, as
 * those of a packed sequence. */
static void
fill_bench(struct parting *p)
{
	struct part_side *b = &p->side[ACC_B];
	for (uint32_t i = 0; i < b->nstep && i < p->end[ACC_B]; i++) {
		struct part_step *s = &b->step[i];
		for (uint32_t j = s->value; j < s->value + s->n && s->apart; j++)
			s->in |= b->value[j].out && b->value[j].real;
	}
}

/* Does one side alone call any of it? Else the op calls are pairs, and what they add tells. */
static bool
is_rewritten(const struct parting *p)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < p->side[s].nstep; i++) {
			const struct part_step *t = &p->side[s].step[i];
			const struct acc_call *k = &p->c->call[t->call];
			if (t->in && (k->key[ACC_A] == NULL || k->key[ACC_B] == NULL ||
					     acc_call_is_fused(p->c, t->call)))
				return true;
		}
	return false;
}

/* Is what ends the pass of the device part of what gradients come from, and no mere factor? */
static bool
goes_back(const struct parting *p)
{
	const struct acc_case *c = p->c;
	const struct acc_call *k = &c->call[p->side[ACC_A].step[p->last].call];
	if (p->ncompute[ACC_A] == 1 && k->cls == ACC_OP_MUL)
		return false;
	for (const struct acc_call *b = k; b < c->call + c->ncall && b->segment == k->segment; b++)
		if (b->backward && b->twin == k->twin && b->key[ACC_A] != NULL)
			return true;
	return false;
}

/* The stretch up to its end. */
static int
mark_up_to(struct parting *p, uint8_t *room, struct acc_err *e)
{
	p->empty = p->end[ACC_A] != ACC_NOCALL && p->side[ACC_A].step[p->end[ACC_A]].first;
	int rc = 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		mark_stretch(p, s, room);
		rc = drop_constants(p, &p->side[s], e);
	}
	if (rc < 0)
		return rc;
	p->moved = ACC_NOCALL;
	fill_bench(p);
	rc = acc_part_add_movers(p, e);
	if (rc < 0)
		return rc;
	count(p);
	acc_part_add_idle(p);
	find_giver(p);
	/* The bench may have nothing there, which says something only where something is suspected, or has a gradient:
	 * who counts what was right, or scales a loss, has more op calls at the end, too. */
	p->found = p->ncompute[ACC_A] > 0 &&
		   (p->ncompute[ACC_B] > 0 || p->suspected || goes_back(p)) && is_rewritten(p) &&
		   (measure(p, false) || (p->end[ACC_A] == ACC_NOCALL && measure(p, true)));
	p->fed = is_fed(p);
	return p->found ? acc_part_name(p, e) : 0;
}

/* The same, with who gave what it takes, unless nothing parts the sides then. */
static int
mark(struct parting *p, uint8_t *room, struct acc_err *e)
{
	p->others = true;
	const int rc = mark_up_to(p, room, e);
	p->others = rc < 0 || p->found;
	return p->others ? rc : mark_up_to(p, room, e);
}

static int
locate(struct parting *p, struct acc_err *e)
{
	const uint32_t n = p->side[ACC_A].nstep, m = p->side[ACC_B].nstep;
	uint8_t *room = malloc((size_t)(n > m ? n : m) + 1);
	if (room == NULL)
		return acc_nomem(e);
	int rc = 0;
	for (int s = 0; s < 2 && rc == 0; s++)
		rc = acc_part_find_lost(p, &p->side[s], room, e);
	if (rc == 0)
		rc = acc_part_find_end(p, e);
	if (rc == 0)
		rc = mark(p, room, e);
	if (rc == 0 && !p->found && p->end[ACC_A] != ACC_NOCALL) { /* up to where the pass ends */
		p->end[ACC_A] = p->end[ACC_B] = ACC_NOCALL;
		rc = mark(p, room, e);
		p->found = p->found && p->fed;
	}
	free(room);
	if (rc < 0)
		return rc;
	return 0;
}

int
acc_part_clear(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t done = UINT32_MAX;
	int rc = 0;
	if (!s->two || c->ncall == 0)
		return 0;
	s->cleared = calloc((size_t)c->ncall + 1, sizeof *s->cleared);
	if (s->cleared == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < c->ncall && rc == 0; i++) {
		struct parting p;
		if (c->call[i].segment == done)
			continue;
		done = c->call[i].segment;
		rc = acc_part_find(s, i, &p, e);
		for (uint32_t j = 0; j < p.side[ACC_A].nstep && rc == 0; j++)
			if (p.side[ACC_A].step[j].back)
				s->cleared[p.side[ACC_A].step[j].call] = true;
		for (uint32_t j = 0; j < p.side[ACC_A].nstep && rc == 0; j++)
			s->parted |= p.side[ACC_A].step[j].lost;
		for (uint32_t j = 0; j < p.side[ACC_A].nvalue && rc == 0; j++) {
			const struct part_value *v = &p.side[ACC_A].value[j];
			c->item[v->item].ordered = acc_part_is_weight(&p, v) &&
						   v->off <= LIMIT_STAT_F32;
		}
		acc_part_release(&p);
	}
	return rc;
}

int
acc_part_find(struct scan *s, uint32_t suspected, struct parting *p, struct acc_err *e)
{
	*p = (struct parting){.c = s->c,
		.low = acc_unit_low(s->unit),
		.suspected = suspected != ACC_NOCALL};
	if (!s->two || s->c->ncall == 0)
		return 0;
	p->unit = s->unit;
	p->ratio = s->noise;
	p->may = (p->low ? LIMIT_PART_U_16 : LIMIT_PART_U) * s->unit;
	/* What the bench alone has may stand before the device's first step. */
	for (uint32_t i = 0; suspected == ACC_NOCALL && i < s->c->ncall; i++)
		if (s->c->call[i].keyed && s->c->call[i].key[ACC_A] != NULL)
			suspected = i;
	int rc = acc_part_read(p, suspected == ACC_NOCALL ? 0 : suspected, e);
	return rc < 0 ? rc : locate(p, e);
}

void
acc_part_release(struct parting *p)
{
	for (int s = 0; s < 2; s++) {
		free(p->side[s].value);
		free(p->side[s].step);
	}
	*p = (struct parting){0};
}

bool
acc_part_is_long(const struct parting *p)
{
	return !p->fed || (p->moved == ACC_NOCALL && p->ncompute[ACC_A] > LIMIT_PART_CALLS &&
				  p->ncompute[ACC_B] > LIMIT_PART_BENCH);
}

bool
acc_part_is_plain(const struct parting *p)
{
	const struct part_value *x = acc_part_given_by(&p->side[ACC_A], p->side[ACC_A].end),
				*y = acc_part_given_by(&p->side[ACC_B], p->side[ACC_B].end);
	return p->low || (x != NULL && y != NULL && isfinite(acc_part_off(x, y)));
}

uint32_t
acc_part_first(const struct parting *p)
{
	return p->side[ACC_A].step[p->moved != ACC_NOCALL ? p->moved : p->named].call;
}

/* The device's step of a call, or ACC_NOCALL. */
static uint32_t
step_of(const struct parting *p, uint32_t call)
{
	const struct part_side *a = &p->side[ACC_A];
	const char *name = p->c->call[call].key[ACC_A];
	const uint64_t key = name == NULL ? 0 : acc_hash(name, strlen(name));
	for (uint32_t i = 0; i < a->nstep && name != NULL; i++)
		if (a->step[i].key == key)
			return i;
	return ACC_NOCALL;
}

bool
acc_part_is_behind(const struct parting *p, uint32_t call)
{
	const uint32_t step = step_of(p, call);
	return step == ACC_NOCALL || step > p->last;
}

bool
acc_part_is_within(const struct parting *p, uint32_t call)
{
	const uint32_t step = step_of(p, call);
	return step != ACC_NOCALL && p->side[ACC_A].step[step].in &&
	       !p->side[ACC_A].step[step].first;
}

bool
acc_part_is_first(const struct parting *p, uint32_t call)
{
	const uint32_t step = step_of(p, call);
	return step != ACC_NOCALL && p->side[ACC_A].step[step].in &&
	       p->side[ACC_A].step[step].first;
}
