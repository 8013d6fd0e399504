/* Two programs of two frameworks whose forward passes end in values that are not each other's, where nothing else tells
 * why. A loss whose labels are smoothed goes on behind what the bench ends in; one that is not reduced ends in another
 * shape. Neither is accused for that alone, since who reports something ends otherwise, too: an argument has to explain it. */
#include "acc/say.h"
#include "judge/parting.h"

#include <math.h>

/* The finding about the device's end, which the bench's call would give with one thing changed. */
static int
say(struct scan *s, const struct parting *p, const struct part_value *x, const struct part_value *y,
	const char *cause, struct acc_err *e)
{
	const struct part_step *own = &p->side[ACC_A].step[x->step],
			       *bench = &p->side[ACC_B].step[y->step];
	const struct acc_call *k = &s->c->call[own->call];
	const char *stack, *src = acc_say_source(s->c, &s->c->call[bench->call], &stack, e);
	if (src == NULL)
		return e->code == 0 ? acc_nomem(e) : e->code;
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_program_end, "culprit", "program",
		e);
	if (f == NULL)
		return e->code;
	f->name = own->name;
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->stack = stack;
	f->value = acc_part_off(x, y);
	f->limit = p->may;
	f->text = acc_say(acc_mem(s),
		"%s: the forward pass ends in another value than in %s on the bench, off by %.2g of it; the bench's call gives"
		" the same if one thing is changed: %s%s%s",
		f->name, bench->name, f->value, cause, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* The first step of the device that gives nothing of the bench's, though all that it takes is the bench's, and has an
 * argument that is not torch's by default: suspected. 0 or < 0. */
static int
suspect_first(struct scan *s, const struct parting *p, uint32_t *chosen)
{
	const struct part_side *a = &p->side[ACC_A];
	for (uint32_t i = 0; i < a->nstep; i++) {
		uint32_t item;
		if (!a->step[i].first || !acc_part_computes(p, ACC_A, i) ||
			s->c->call[a->step[i].call].key[ACC_B] != NULL)
			continue;
		int rc = acc_other_default(s, a->step[i].call, &item);
		if (rc <= 0)
			return rc;
		rc = acc_suspect_argument(s, item, LIMIT_CERTAIN, INFINITY);
		*chosen = rc == 0 ? s->nsuspect - 1 : *chosen;
		return rc;
	}
	return 0;
}

/* Are the two sides of two frameworks? 1, 0, or < 0. */
static int
is_foreign(struct acc_case *c, struct acc_err *e)
{
	struct acc_recorded how = {.framework = true};
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (k->keyed && k->key[ACC_A] != NULL && k->key[ACC_B] != NULL)
			return acc_recorded(c, k, &how, e) < 0 ? e->code : !how.framework;
	}
	return 0;
}

/* The values that the two passes end in, where the device's is none of the bench's. 1 with p, which is to be released; 0; or
 * < 0. */
static int
other_ends(struct scan *s, struct parting *p, const struct part_value *end[2], struct acc_err *e)
{
	int rc = s->parted && !acc_unit_low(s->unit) ? is_foreign(s->c, e) : 0;
	if (rc <= 0 || (rc = acc_part_find(s, ACC_NOCALL, p, e)) < 0)
		return rc;
	for (int side = 0; side < 2; side++)
		end[side] = acc_part_given_by(&p->side[side], p->side[side].end);
	if (end[ACC_A] != NULL && end[ACC_B] != NULL && !acc_part_agrees(p, end[ACC_A]))
		return 1;
	acc_part_release(p);
	return 0;
}

int
acc_part_other_shape(struct scan *s, uint32_t *chosen, struct acc_err *e)
{
	struct parting p;
	const struct part_value *end[2];
	int rc = other_ends(s, &p, end, e);
	if (rc <= 0)
		return rc;
	rc = end[ACC_A]->count == end[ACC_B]->count || acc_part_agrees(&p, end[ACC_B])
		     ? 0
		     : suspect_first(s, &p, chosen);
	acc_part_release(&p);
	return rc;
}

int
acc_part_say_other_end(struct scan *s, struct acc_err *e)
{
	struct parting p;
	const struct part_value *end[2];
	const char *cause = "";
	int rc = other_ends(s, &p, end, e);
	if (rc <= 0)
		return rc;
	rc = end[ACC_A]->count != end[ACC_B]->count
		     ? 0
		     : acc_substitute_with(s, p.side[ACC_B].step[end[ACC_B]->step].call,
			       end[ACC_B]->item, end[ACC_A]->item, &cause, e);
	if (rc == 0 && cause[0] != '\0')
		rc = say(s, &p, end[ACC_A], end[ACC_B], cause, e);
	acc_part_release(&p);
	return rc;
}
