/* Two programs of two frameworks whose forward passes end in values that are not each other's, where nothing else tells
 * why. A loss whose labels are smoothed goes on behind what the bench ends in; one that is not reduced ends in another
 * shape. Neither is accused for that alone, since who reports something ends otherwise, too: an argument has to explain it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "acc/replay.h"
#include "acc/say.h"
#include "judge/parting.h"

/* The finding about the device's end, of which the text is left to say. NULL: e. */
static struct acc_finding *
find(struct scan *s, const struct parting *p, const struct part_value *x,
	const struct part_value *y, const char **src, struct acc_err *e)
{
	const struct part_step *own = &p->side[ACC_A].step[x->step],
			       *bench = &p->side[ACC_B].step[y->step];
	const struct acc_call *k = &s->c->call[own->call];
	const char *stack;
	*src = acc_say_source(s->c, &s->c->call[bench->call], &stack, e);
	if (*src == NULL) {
		if (e->code == 0)
			acc_nomem(e);
		return NULL;
	}
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_program_end, "culprit", "program",
		e);
	if (f == NULL)
		return NULL;
	f->name = own->name;
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->stack = stack;
	f->limit = p->may;
	return f;
}

/* The bench's call would give it with one thing changed. */
static int
say(struct scan *s, const struct parting *p, const struct part_value *x, const struct part_value *y,
	const char *cause, struct acc_err *e)
{
	const char *src;
	struct acc_finding *f = find(s, p, x, y, &src, e);
	if (f == NULL)
		return e->code;
	f->value = acc_part_off(x, y);
	f->text = acc_say(acc_mem(s),
		"%s: the forward pass ends in another value than in %s on the bench, off by %.2g of it; the bench's call gives"
		" the same if one thing is changed: %s%s%s",
		f->name, p->side[ACC_B].step[y->step].name, f->value, cause,
		src[0] != '\0' ? "; at " : "", src);
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

/* The losses that the device's end gives, of which the bench's number is the mean or the sum. NULL: it gives none. */
static const struct part_value *
losses_of(const struct parting *p, const struct part_value *end, bool *mean)
{
	const struct part_side *a = &p->side[ACC_A];
	const struct part_step *step = &a->step[a->end];
	const double loss = end->stat[ACC_STAT_MEAN];
	for (uint32_t i = 0; i < step->n && end->count == 1; i++) {
		const struct part_value *v = &a->value[step->value + i];
		const double m = v->stat[ACC_STAT_MEAN];
		*mean = fabs(m - loss) <= p->may * fabs(loss);
		if (v->out && v->real && v->count > 1 &&
			(*mean || fabs(m * (double)v->count - loss) <= p->may * fabs(loss)))
			return v;
	}
	return NULL;
}

/* Is what the device ends in a loss by its kind? 1, 0 or < 0. */
static int
is_loss(struct acc_case *c, const struct part_value *v, struct acc_err *e)
{
	struct acc_rec *r;
	if (acc_case_record(c, &c->item[v->item], &r, e) < 0)
		return e->code;
	const struct acc_op *row = acc_op_find(acc_get_text(r, "a.", "op"));
	return row != NULL && strcmp(row->cls, "loss") == 0;
}

/* A loss that the device gives of each sample, and the bench as their mean or sum. 0 or < 0. */
static int
say_unreduced(struct scan *s, const struct parting *p, const struct part_value *end,
	struct acc_err *e)
{
	bool mean;
	const char *src;
	const struct part_value *v = losses_of(p, end, &mean);
	const int rc = v == NULL ? 0 : is_loss(s->c, v, e);
	if (rc <= 0)
		return rc;
	struct acc_finding *f = find(s, p, v, end, &src, e);
	if (f == NULL)
		return e->code;
	f->value = (double)v->count;
	f->limit = 1;
	f->text = acc_say(acc_mem(s),
		"%s: the forward pass ends in %" PRIu64
		" losses, %s %s: reduction is 'none' on the device%s%s",
		f->name, v->count,
		mean ? acc_tr("whose mean is what the bench ends in, of")
		     : acc_tr("whose sum is what the bench ends in, of"),
		p->side[ACC_B].step[end->step].name, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
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
		     ? say_unreduced(s, &p, end[ACC_B], e)
		     : acc_substitute_with(s, p.side[ACC_B].step[end[ACC_B]->step].call,
			       end[ACC_B]->item, end[ACC_A]->item, &cause, e);
	if (rc == 0 && cause[0] != '\0')
		rc = say(s, &p, end[ACC_A], end[ACC_B], cause, e);
	acc_part_release(&p);
	return rc;
}
