/* Axes in another order, throughout: where pairs of other shapes show that one side lays out its axes otherwise, as
 * engines with channels last do, and no pair of as many axes is as the bench's, numbers of equal axes in that order are
 * in their right places. */
#include "judge/first_bad.h"

#include "judge/limits.h"

struct orders {
	struct acc_ids shown;       /* by pairs of other shapes */
	bool plain[ACC_MAXDIM + 1]; /* with so many axes a pair is as the bench's */
	uint64_t order;             /* of the item that was asked last; 0: the bench's */
	uint32_t ndim;              /* and its axes */
	struct acc_rec *r;          /* and its record */
};

static int
ask(struct acc_case *c, const struct acc_item *it, struct orders *o, struct acc_err *e)
{
	if (acc_case_record(c, it, &o->r, e) < 0)
		return e->code;
	const struct acc_str s = acc_get_text(o->r, "", "m.layout");
	const struct acc_val *shape = acc_get(o->r, "a.", "shape");
	o->order = memmem(s.p, s.n, "permute", 7) != NULL ? acc_hash(s.p, s.n) | 1 : 0;
	o->ndim = shape == NULL || shape->type != ACC_V_INTS || shape->n > ACC_MAXDIM ? 0
										      : shape->n;
	return 0;
}

static int
learn(struct acc_case *c, struct orders *o, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		/* Weights lie as each framework wants them. */
		if (it->sides != 3 || it->measure != ACC_BY_TENSOR || it->weight || it->permuted ||
			it->count < 2 || !(it->rms <= LIMIT_HEALED))
			continue;
		rc = ask(c, it, o, e);
		if (rc == 0 && o->order == 0 && !it->note_shape)
			o->plain[o->ndim] = true;
		else if (rc == 0 && o->order != 0)
			rc = acc_ids_put(&o->shown, o->order, i, false, e);
	}
	return rc;
}

int
acc_forgive_orders(struct acc_case *c, struct acc_err *e)
{
	struct orders o = {.ndim = 0};
	bool any = false;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i))
		any |= c->item[i].permuted;
	int rc = any ? learn(c, &o, e) : 0;
	for (uint32_t i = 0; any && i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		double rms = NAN, max = NAN;
		if (!it->permuted || it->weight)
			continue;
		rc = ask(c, it, &o, e);
		if (rc < 0 || acc_ids_get(&o.shown, o.order) == ACC_NOID || o.plain[o.ndim])
			continue;
		it->permuted = false;
		if (acc_as_f64(acc_get(o.r, "", "m.err_rms"), &rms) &&
			acc_as_f64(acc_get(o.r, "", "m.err_max"), &max)) {
			it->rms = (float)rms;
			it->max = (float)max;
		}
	}
	acc_ids_release(&o.shown);
	return rc;
}
