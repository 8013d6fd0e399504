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
	return f->text == NULL ? acc_nomem(e) : 1;
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

int
acc_part_other_end(struct scan *s, uint32_t *chosen, uint32_t *call, struct acc_err *e)
{
	struct parting p;
	const char *cause = "";
	int rc = s->parted && !acc_unit_low(s->unit) ? is_foreign(s->c, e) : 0;
	if (rc <= 0)
		return rc;
	rc = acc_part_find(s, ACC_NOCALL, &p, e);
	if (rc < 0)
		return rc;
	const struct part_value *x = acc_part_given_by(&p.side[ACC_A], p.side[ACC_A].end),
				*y = acc_part_given_by(&p.side[ACC_B], p.side[ACC_B].end);
	if (x == NULL || y == NULL || acc_part_agrees(&p, x)) {
		; /* it ends in what the bench has */
	} else if (x->count == y->count) {
		*call = p.side[ACC_B].step[y->step].call;
		rc = acc_substitute_with(s, *call, y->item, x->item, &cause, e);
		rc = rc == 0 && cause[0] != '\0' ? say(s, &p, x, y, cause, e) : rc;
		*call = rc > 0 ? *call : ACC_NOCALL;
	} else if (!acc_part_agrees(&p, y)) {
		rc = suspect_first(s, &p, chosen);
	}
	acc_part_release(&p);
	return rc;
}
