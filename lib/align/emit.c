/* The pairs, in the order of the device; what only the bench has, behind what stands before it
 * on the bench. */
#include "align/impl.h"
#include "acc/tensor.h"

#include <inttypes.h>

struct emit {
	struct acc_align *al;
	acc_align_fn *fn;
	void *arg;
	struct acc_err *e;
	struct acc_rec out;
};

/* What differs before anything is measured: into buf, each with a comma before it. */
static void
note(const struct acc_item *x, const struct acc_item *y, char *buf, size_t size)
{
	bool dtype = x->has_dtype && y->has_dtype && x->dtype != y->dtype &&
		     (x->num != y->num || x->num == ACC_NODTYPE);
	bool shape = x->has_shape && y->has_shape && x->shape != y->shape;
	bool grad = x->grad >= 0 && y->grad >= 0 && x->grad != y->grad;
	bool type = (x->type != 0 && y->type != 0 && x->type != y->type) ||
		    x->tensor != y->tensor;
	if (dtype || shape || grad || type)
		snprintf(buf, size, "%s%s%s%s", dtype ? ",dtype" : "", shape ? ",shape" : "",
			grad ? ",requires_grad" : "", type ? ",type" : "");
}

static int
add(struct acc_rec *r, struct acc_str key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = key, .v = v});
}

/* One pair record; a or b is NULL where a side is missing. Their keys have their prefixes, and
 * nothing is copied before it is written. */
static int
put(struct emit *em, const struct acc_rec *a, const struct acc_rec *b, const struct acc_how *h,
	const char *differs)
{
	struct acc_rec *r = &em->out;
	const char *how = b == NULL ? "only-a" : a == NULL ? "only-b" : h->how;
	struct acc_str name = a != NULL ? acc_get_text(a, "a.", "name")
					: acc_get_text(b, "b.", "name");
	int rc = acc_rec_start(r, ACC_STR("pair"));
	if (rc == 0 && name.n > 0)
		rc = add(r, ACC_STR("name"), acc_text(name));
	if (rc == 0 && a != NULL)
		rc = add(r, ACC_STR("a.kind"), acc_text(a->kind));
	if (rc == 0 && b != NULL)
		rc = add(r, ACC_STR("b.kind"), acc_text(b->kind));
	if (rc == 0)
		rc = add(r, ACC_STR("how"), acc_ctext(how));
	if (rc == 0 && a != NULL && b != NULL && h->sure < 1)
		rc = add(r, ACC_STR("sure"), acc_f64(h->sure));
	if (rc == 0 && differs[0] != '\0')
		rc = add(r, ACC_STR("note"), acc_ctext(differs + 1));
	if (rc == 0 && a != NULL)
		rc = acc_rec_append(r, "", a);
	if (rc == 0 && b != NULL)
		rc = acc_rec_append(r, "", b);
	if (rc < 0)
		return acc_fail(em->e, rc, rc == ACC_ENOMEM ? "out of memory"
							    : "a pair of too many fields");
	return em->fn(em->arg, r);
}

static int
put_item(struct emit *em, uint32_t a, uint32_t b, const struct acc_op *op)
{
	struct acc_half *h = em->al->h;
	const struct acc_item *x = h[ACC_A].ix.item, *y = h[ACC_B].ix.item;
	struct acc_rec *p = NULL, *q = NULL;
	char differs[64] = "";
	int rc = 0;
	if (a != ACC_NOMATE)
		rc = acc_spool_get(h[ACC_A].spool, x[a].at, &p, em->e);
	if (rc >= 0 && b != ACC_NOMATE)
		rc = acc_spool_get(h[ACC_B].spool, y[b].at, &q, em->e);
	if (rc >= 0 && p != NULL && q != NULL)
		note(&x[a], &y[b], differs, sizeof differs);
	struct acc_how how = {op->how, op->sure};
	if (a != ACC_NOMATE && x[a].how != ACC_HOW_OP)
		how = acc_item_hows[x[a].how];
	return rc < 0 ? rc : put(em, p, q, &how, differs);
}

/* An item of the device with its mates. */
static int
put_all(struct emit *em, uint32_t a, const struct acc_op *op)
{
	const struct acc_item *it = &em->al->h[ACC_A].ix.item[a];
	const struct acc_scratch *s = em->al->scratch;
	int rc = put_item(em, a, it->mate, op);
	for (uint32_t i = s->nshare; it->how == ACC_HOW_PART && i-- > 0 && rc >= 0;)
		if (s->share[i].a == a)
			rc = put_item(em, a, s->share[i].b, op);
	return rc;
}

/* The records of a device's op call (may be NULL), with those that only its mate has (may be
 * NULL), by their place in the call. */
static int
put_op(struct emit *em, const struct acc_op *a, const struct acc_op *b)
{
	const struct acc_item *x = em->al->h[ACC_A].ix.item, *y = em->al->h[ACC_B].ix.item;
	int rc = 0;
	for (int io = 0; io < ACC_NIO && rc >= 0; io++) {
		for (uint32_t i = 0; a != NULL && i < a->n && rc >= 0; i++)
			if (x[a->first + i].io == io)
				rc = put_all(em, a->first + i, a);
		for (uint32_t i = 0; b != NULL && i < b->n && rc >= 0; i++)
			if (y[b->first + i].io == io && y[b->first + i].mate == ACC_NOMATE)
				rc = put_item(em, ACC_NOMATE, b->first + i, b);
	}
	return rc;
}

/* The op calls from position `at` of a group of the bench that have no mate, up to the next that
 * has one. */
static int
put_unmatched(struct emit *em, const struct acc_group *g, uint32_t at)
{
	const struct acc_half *h = &em->al->h[ACC_B];
	int rc = 0;
	for (; at < g->nop && rc >= 0; at++) {
		const struct acc_op *op = &h->ix.op[h->byop[g->first + at]];
		if (op->mate != ACC_NOMATE)
			break;
		rc = put_op(em, NULL, op);
	}
	return rc;
}

/* Where an op call stands in its group. */
static uint32_t
position(const struct acc_half *h, const struct acc_group *g, uint32_t op)
{
	uint32_t lo = 0, hi = g->nop;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (h->byop[g->first + mid] <= op)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

static int
put_group(struct emit *em, const struct acc_group *ga)
{
	const struct acc_half *a = &em->al->h[ACC_A], *b = &em->al->h[ACC_B];
	const struct acc_group *gb = ga->mate == ACC_NOMATE ? NULL : &b->group[ga->mate];
	int rc = gb != NULL ? put_unmatched(em, gb, 0) : 0;
	for (uint32_t i = 0; i < ga->nop && rc >= 0; i++) {
		const struct acc_op *op = &a->ix.op[a->byop[ga->first + i]];
		bool paired = op->mate != ACC_NOMATE;
		rc = put_op(em, op, paired ? &b->ix.op[op->mate] : NULL);
		if (rc >= 0 && paired)
			rc = put_unmatched(em, gb, position(b, gb, op->mate) + 1);
	}
	return rc;
}

/* Say which step and rank has no partner at all. */
static int
put_finding(struct emit *em, const struct acc_group *g, const char *side)
{
	struct acc_rec *r = &em->out;
	char text[160], step[32] = "", who[40] = "";
	const struct acc_group_id *id = &g->id;
	int rc = acc_rec_start(r, ACC_STR("finding"));
	if (rc == 0)
		rc = acc_add(r, "", "what", acc_ctext("unmatched"));
	if (id->step != INT64_MIN) {
		snprintf(step, sizeof step, " step %" PRId64, id->step);
		if (rc == 0)
			rc = acc_add(r, "", "step", acc_int(id->step));
	}
	if (id->kind == WHO_RANK || id->kind == WHO_PROC) {
		const char *what = id->kind == WHO_RANK ? "rank" : "proc";
		snprintf(who, sizeof who, " %s %" PRId64, what, id->who);
		if (rc == 0)
			rc = acc_add(r, "", what, acc_int(id->who));
	}
	snprintf(text, sizeof text, "only the %s has%s%s: %" PRIu32 " op calls without a partner "
		"(join them with --steps or --ranks)", side,
		step[0] == '\0' && who[0] == '\0' ? " records without step and rank" : step, who,
		g->nop);
	if (rc == 0)
		rc = acc_add(r, "", "text", acc_ctext(text));
	return rc < 0 ? acc_fail(em->e, rc, "out of memory") : em->fn(em->arg, r);
}

int
acc_align_emit(struct acc_align *al, acc_align_fn *fn, void *arg, struct acc_err *e)
{
	static const char *const side[2] = {"device", "bench"};
	struct emit em = {.al = al, .fn = fn, .arg = arg, .e = e};
	int rc = 0;
	for (uint32_t i = 0; i < al->h[ACC_A].ngroup && rc >= 0; i++)
		rc = put_group(&em, &al->h[ACC_A].group[i]);
	for (uint32_t i = 0; i < al->h[ACC_B].ngroup && rc >= 0; i++)
		if (al->h[ACC_B].group[i].mate == ACC_NOMATE)
			rc = put_unmatched(&em, &al->h[ACC_B].group[i], 0);
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < al->h[s].ngroup && rc >= 0; i++) {
			const struct acc_group *g = &al->h[s].group[i];
			if (g->mate == ACC_NOMATE && g->id.kind != WHO_GLOBAL)
				rc = put_finding(&em, g, side[s]);
		}
	acc_rec_release(&em.out);
	return rc < 0 ? rc : 0;
}
