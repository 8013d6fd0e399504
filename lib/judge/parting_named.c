/* Which op call of a stretch has its finding: see parting.h. */
#include "judge/parting.h"

#include "judge/case.h"

/* All products are of one kind, however they are written, and so are all that scale, and that add. */
enum kind { PRODUCT = 1, SCALE, SUM };

static uint64_t
kind_of(const struct parting *p, int side, uint32_t step)
{
	const struct part_step *s = &p->side[side].step[step];
	const uint8_t cls = s->cls;
	if (cls == ACC_OP_CONTRACT || cls == ACC_OP_ATTEND)
		return PRODUCT;
	return cls == ACC_OP_MUL ? SCALE : cls == ACC_OP_ADD ? SUM : s->family;
}

/* Does a side have one of this kind in the stretch, or at its end; or one of which such a call may be part? */
static bool
has_kind(const struct parting *p, int side, uint64_t kind, uint64_t family)
{
	const struct part_side *d = &p->side[side];
	for (uint32_t i = 0; i < d->nstep; i++) {
		const bool within = d->step[i].in && acc_part_computes(p, side, i);
		if (!within && i != p->end[side])
			continue;
		if (kind_of(p, side, i) == kind || acc_op_ends_in(d->step[i].family, family) > 0)
			return true;
	}
	return false;
}

/* Does the bench have all kinds that the device has? */
static bool
has_all(const struct parting *p)
{
	const struct part_side *a = &p->side[ACC_A];
	for (uint32_t i = 0; i < a->nstep; i++)
		if (a->step[i].in && acc_part_computes(p, ACC_A, i) &&
			!has_kind(p, ACC_B, kind_of(p, ACC_A, i), a->step[i].family))
			return false;
	return true;
}

static uint32_t
first_of(const struct parting *p, int side)
{
	const struct part_side *d = &p->side[side];
	for (uint32_t i = 0; i < d->nstep; i++)
		if (d->step[i].in && acc_part_computes(p, side, i))
			return i;
	return ACC_NOCALL;
}

/* The largest value that a step of the bench takes and the device has. NULL: there is none. */
static const struct part_value *
shared(const struct parting *p, uint32_t step)
{
	const struct part_side *b = &p->side[ACC_B];
	const struct part_step *s = &b->step[step];
	const struct part_value *v = NULL;
	for (uint32_t i = s->value; i < s->value + s->n; i++) {
		const struct part_value *w = &b->value[i];
		if (!w->out && w->real && acc_part_agrees(p, w) &&
			(v == NULL || w->count > v->count))
			v = w;
	}
	return v;
}

/* The last step of the device that computes and gives such a value; ACC_NOCALL: none does. */
static uint32_t
giver(const struct parting *p, const struct part_value *v)
{
	const struct part_side *a = &p->side[ACC_A];
	for (uint32_t i = a->nvalue; i-- > 0;)
		if (a->value[i].out && acc_part_computes(p, ACC_A, a->value[i].step) &&
			acc_part_off(&a->value[i], v) <= p->may)
			return a->value[i].step;
	return ACC_NOCALL;
}

/* Do two steps of the bench stand at one line of its source? 1, 0 or < 0. */
static int
at_one_line(const struct parting *p, uint32_t x, uint32_t y, struct acc_err *e)
{
	const struct part_side *b = &p->side[ACC_B];
	const char *s = acc_source_on(p->c, &p->c->call[b->step[x].call], ACC_B, e);
	const char *t = s == NULL ? NULL
				  : acc_source_on(p->c, &p->c->call[b->step[y].call], ACC_B, e);
	if (t == NULL)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	return s[0] != '\0' && strcmp(s, t) == 0;
}

int
acc_part_name(struct parting *p, struct acc_err *e)
{
	const struct part_side *b = &p->side[ACC_B];
	p->lacks = ACC_NOCALL;
	p->alike = false;
	p->named = p->first;
	const uint32_t x = first_of(p, ACC_A), y = first_of(p, ACC_B);
	/* Of a long stretch that would tell little. */
	if (x == ACC_NOCALL || y == ACC_NOCALL || p->moved != ACC_NOCALL ||
		p->ncompute[ACC_A] > LIMIT_PART_CALLS ||
		has_kind(p, ACC_A, kind_of(p, ACC_B, y), b->step[y].family) || !has_all(p))
		return 0;
	const struct part_value *v = shared(p, y);
	if (v == NULL)
		return 0;
	p->lacks = y;
	/* At the line of what gives its input, it belongs to that; else to what comes behind. */
	const int one = v->maker == ACC_NOCALL ? 0 : at_one_line(p, v->maker, y, e);
	if (one > 0) {
		const uint32_t from = giver(p, v);
		p->named = from == ACC_NOCALL ? p->named : from;
		p->alike = from != ACC_NOCALL &&
			   p->side[ACC_A].step[from].family == b->step[y].family;
	}
	return one < 0 ? one : 0;
}
