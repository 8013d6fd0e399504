/* The finding that says where two programs part: see parting.h. */
#include "acc/say.h"
#include "judge/parting.h"

#include <math.h>

enum { NAMES = 4, RANKED = 24 };

static const char *
name_of(const struct parting *p, int side, uint32_t step)
{
	return p->side[side].step[step].name;
}

/* "on the bench it is Functional.layer_norm.1.forward, Functional.silu.0.forward (from model.py:12 in forward: ...)" */
static const char *
bench_names(const struct parting *p, struct acc_err *e)
{
	struct acc_arena *m = &p->c->mem;
	const char *s = "", *line = "";
	uint32_t n = 0;
	for (uint32_t i = 0; i < p->side[ACC_B].nstep; i++) {
		if (!p->side[ACC_B].step[i].in || !acc_part_computes(p, ACC_B, i))
			continue;
		if (n == 0 && (line = acc_source_on(p->c, &p->c->call[p->side[ACC_B].step[i].call],
				       ACC_B, e)) == NULL)
			return NULL;
		if (n++ < NAMES)
			s = acc_arena_printf(m, "%s%s%s", acc_got(s), n == 1 ? "" : ", ",
				name_of(p, ACC_B, i));
	}
	if (n == 0)
		return acc_say(m, "the bench has nothing there");
	s = n <= NAMES ? s : acc_say(m, "%s and %u more", acc_got(s), n - NAMES);
	return line[0] == '\0' ? acc_say(m, "on the bench it is %s", acc_got(s))
			       : acc_say(m, "on the bench it is %s (from %s)", acc_got(s), line);
}

static const char *
off_text(const struct parting *p)
{
	struct acc_arena *m = &p->c->mem;
	const uint32_t b = p->end[ACC_B];
	const char *what =
		b == ACC_NOCALL
			? acc_say(m, "the forward pass ends off by %.2g of the bench's",
				  p->off * p->wide)
			: acc_say(m, "%s gets what is off by %.2g from what %s gets on the bench",
				  name_of(p, ACC_A, p->end[ACC_A]), p->off * p->wide,
				  name_of(p, ACC_B, b));
	if (isnan(p->factor))
		return what;
	return acc_say(m, "%s, as all of it times %.4g would be", acc_got(what), p->factor);
}

/* The calls of the stretch on the device, as what is ranked. */
static int
rank(const struct parting *p, uint32_t named, struct acc_finding *f)
{
	const char **list = acc_alloc(&p->c->mem, RANKED * sizeof *list);
	if (list == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < p->side[ACC_A].nstep && f->nranked < RANKED; i++)
		if (p->side[ACC_A].step[i].in && p->side[ACC_A].step[i].call != named)
			list[f->nranked++] = name_of(p, ACC_A, i);
	f->ranked = list;
	return 0;
}

/* "A to B, 8 op calls that compute" */
static const char *
stretch_text(const struct parting *p)
{
	struct acc_arena *m = &p->c->mem;
	const uint32_t n = p->ncompute[ACC_A];
	if (p->moved != ACC_NOCALL)
		return acc_say(m,
			"%s, which puts right numbers in other places than the bench has them",
			name_of(p, ACC_A, p->moved));
	if (p->lacks != ACC_NOCALL && p->alike)
		return name_of(p, ACC_A, p->named);
	if (p->lacks != ACC_NOCALL)
		return acc_say(m,
			"%s, where the bench has %s, too, and the device nothing of that kind",
			name_of(p, ACC_A, p->named), name_of(p, ACC_B, p->lacks));
	return n == 1 ? name_of(p, ACC_A, p->first)
		      : acc_say(m, "%s to %s, %u op calls that compute",
				name_of(p, ACC_A, p->first), name_of(p, ACC_A, p->last), n);
}

static bool
is_off(const struct parting *p, const struct part_value *v)
{
	const struct acc_item *it = &p->c->item[v->item];
	return v->real && v->count > 1 && v->off > p->may && it->sides == 3 &&
	       it->measure == ACC_BY_TENSOR && it->rms > fmax(p->may, v->noise);
}

/* The first step up to where the stretch begins that takes a weight which has other numbers on the bench, and gives
 * others for it, and that weight. Some of these may agree, as rows of a table. ACC_NOCALL: none does. */
static uint32_t
other_weight(const struct parting *p, const struct part_value **weight)
{
	const struct part_side *a = &p->side[ACC_A];
	for (uint32_t i = 0; i <= p->first && i < a->nstep; i++) {
		bool gives = false;
		*weight = NULL;
		for (uint32_t j = 0; j < a->step[i].n; j++) {
			const struct part_value *v = &a->value[a->step[i].value + j];
			if (v->out)
				gives |= is_off(p, v);
			else if (*weight == NULL && v->leaf && v->weight && is_off(p, v) &&
				 !p->c->item[v->item].note_shape)
				*weight = v;
		}
		if (gives && *weight != NULL)
			return i;
	}
	return ACC_NOCALL;
}

int
acc_part_say(struct scan *s, const struct parting *p, uint32_t outstanding, struct acc_err *e)
{
	struct acc_arena *m = acc_mem(s);
	const bool known = outstanding != ACC_NOCALL && p->moved == ACC_NOCALL &&
			   p->lacks == ACC_NOCALL && s->c->call[outstanding].key[ACC_B] != NULL &&
			   acc_part_is_first(p, outstanding);
	const char *changed;
	uint32_t step;
	bool leads;
	const int rc = acc_substitute_within(s, p, &step, &leads, &changed, e);
	if (rc < 0)
		return rc;
	leads &= p->moved == ACC_NOCALL;
	/* Of a call behind others of the stretch, what these do may be what the argument explains; not of the bench's
	 * first, which the device writes out. */
	const bool own = step != ACC_NOCALL &&
			 (step == p->first || p->side[ACC_A].step[step].first || leads);
	const struct part_value *weight = NULL;
	const uint32_t other = p->moved == ACC_NOCALL && changed[0] == '\0'
				       ? other_weight(p, &weight)
				       : ACC_NOCALL;
	const uint32_t call = other != ACC_NOCALL ? p->side[ACC_A].step[other].call
			      : own               ? p->side[ACC_A].step[step].call
			      : known             ? outstanding
						  : acc_part_first(p);
	const struct acc_call *k = &s->c->call[call];
	const char *stack, *src = acc_say_source(s->c, k, &stack, e),
			   *where = acc_say_where(s->c, k);
	const char *which = other != ACC_NOCALL           ? name_of(p, ACC_A, other)
			    : step != ACC_NOCALL && leads ? name_of(p, ACC_A, step)
							  : stretch_text(p),
		   *bench = bench_names(p, e), *off = off_text(p);
	if (other != ACC_NOCALL)
		changed = acc_say(m, "; its weight is off by %.2g from the one on the bench",
			p->c->item[weight->item].rms);
	bench = acc_say(m, "%s%s", acc_got(bench), acc_got(changed));
	if (src == NULL || where == NULL || which == NULL || bench == NULL || off == NULL)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_parted_programs,
		acc_part_is_long(p) ? "difference" : "culprit", "program", e);
	if (f == NULL)
		return e->code;
	f->name = k->key[ACC_A];
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->value = p->off * p->wide;
	f->limit = p->limit * p->wide;
	f->limit_from = "what goes in agrees by its statistics";
	f->stack = stack;
	f->confidence = acc_witness_share(ACC_WITNESS_parted_programs);
	if (rank(p, call, f) < 0)
		return acc_nomem(e);
	f->text = acc_say(m,
		"%s%s: here the two programs part: what goes in agrees, %s, and nothing behind agrees"
		" again; %s%s%s%s",
		where, which, off, bench, acc_got(acc_beyond_times(m, INFINITY, f->confidence)),
		src[0] != '\0' ? "; at " : "", src);
	int flat = f->text == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < p->side[ACC_B].nstep && flat == 0; i++)
		if (p->side[ACC_B].step[i].in)
			flat = acc_blame_flat(s->c, f, k->segment, p->side[ACC_B].step[i].name, e);
	return flat < 0 ? flat : 1;
}

int
acc_part_say_unknown(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	struct acc_finding *f;
	int rc = acc_warn_of(s, x, x->call, "program", &f, e);
	if (rc < 0)
		return rc;
	f->io = "out";
	/* What is right for what it was given may be given what is hidden otherwise; what nobody recomputed is off, and
	 * what could not be compared excuses nothing. */
	if (!acc_acquitted(&s->c->item[x->item])) {
		f->what = "difference";
		f->bad = true;
	}
	f->text = acc_say(acc_mem(s),
		"%s; the two programs part before it, where nothing could be compared", f->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}
