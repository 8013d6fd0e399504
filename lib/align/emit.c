/* The pairs, in the order of the device; what only the bench has, behind what stands before it
 * on the bench. */
#include "acc/say.h"
#include "align/impl.h"
#include "acc/tensor.h"
#include "base/order.h"
#include "stream/codec.h"
#include "stream/keys.h"

#include <inttypes.h>
#include <stdlib.h>

/* What a pair says beside its sides. */
struct about {
	struct acc_how how;
	struct acc_str a, b; /* kinds; empty: that side is missing */
	const char *note;
};

struct emit {
	struct acc_align *al;
	acc_align_fn *fn;
	void *arg;
	struct acc_err *e;
	struct acc_rec out;
	struct acc_rec about; /* the fields of `last` behind the name, of these bytes */
	struct acc_buf bytes;
	struct acc_shapes shapes; /* of about */
	struct about last;
	char note[64];
	uint32_t turns;
};

/* What differs before anything is measured: into buf, each with a comma before it. */
static void
note(const struct acc_align_item *x, const struct acc_align_item *y, char *buf, size_t size)
{
	bool dtype = x->has_dtype && y->has_dtype && x->dtype != y->dtype &&
		     (x->num != y->num || x->num == ACC_NODTYPE);
	bool shape = x->has_shape && y->has_shape && x->shape != y->shape;
	bool grad = x->grad >= 0 && y->grad >= 0 && x->grad != y->grad;
	bool type = (x->type != 0 && y->type != 0 && x->type != y->type) || x->tensor != y->tensor;
	if (dtype || shape || grad || type)
		snprintf(buf, size, "%s%s%s%s", dtype ? ",dtype" : "", shape ? ",shape" : "",
			grad ? ",requires_grad" : "", type ? ",type" : "");
}

static int
add(struct acc_rec *r, struct acc_str key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = key, .v = v});
}

/* The fields behind the name, as bytes. They are those of the record before most of the time. */
static int
encode_about(struct emit *em, const struct about *w)
{
	struct acc_rec *r = &em->out;
	struct about *last = &em->last;
	if (em->bytes.n > 0 && w->how.how == last->how.how && w->how.sure == last->how.sure &&
		w->a.p == last->a.p && w->b.p == last->b.p && strcmp(w->note, em->note) == 0)
		return 0;
	int rc = acc_rec_start(r, ACC_STR("pair"));
	if (rc == 0 && w->a.n > 0)
		rc = add(r, ACC_STR("a.kind"), acc_text(w->a));
	if (rc == 0 && w->b.n > 0)
		rc = add(r, ACC_STR("b.kind"), acc_text(w->b));
	if (rc == 0)
		rc = add(r, ACC_STR("how"), acc_ctext(w->how.how));
	if (rc == 0 && w->a.n > 0 && w->b.n > 0 && w->how.sure < 1)
		rc = add(r, ACC_STR("sure"), acc_f64(w->how.sure));
	if (rc == 0 && w->note[0] != '\0')
		rc = add(r, ACC_STR("note"), acc_ctext(w->note + 1));
	em->bytes.n = 0;
	if (rc == 0)
		rc = acc_encode(r, &em->bytes, em->e);
	if (rc == 0 && acc_buf_reserve(&em->bytes, KEYS_PAD) < 0)
		rc = ACC_ENOMEM;
	*last = *w;
	snprintf(em->note, sizeof em->note, "%s", w->note);
	if (rc < 0)
		return rc;
	int64_t len = acc_decode_open(em->bytes.p, em->bytes.n, &em->about, &em->shapes, NULL,
		em->e);
	return len < 0 ? (int)len : 0;
}

/* Hand out the record that stands in em->out. */
static int
hand_out(struct emit *em)
{
	if (em->al->raw != NULL)
		return em->al->raw(em->arg, &em->out);
	int rc = acc_raw_values(&em->out, em->e);
	return rc < 0 ? rc : em->fn(em->arg, &em->out);
}

/* One pair record; a or b is NULL where a side is missing. */
static int
put(struct emit *em, const struct acc_stored *a, const struct acc_stored *b, struct about *w)
{
	struct acc_str name = a != NULL ? a->name : b->name;
	struct acc_rec *r = &em->out;
	if (a == NULL || b == NULL)
		w->how.how = b == NULL ? "only-a" : "only-b";
	if (a != NULL)
		w->a = a->kind;
	if (b != NULL)
		w->b = b->kind;
	int rc = encode_about(em, w);
	if (rc == 0)
		rc = acc_rec_start(r, ACC_STR("pair"));
	if (rc == 0 && name.n > 0)
		rc = acc_rec_push(r, &(struct acc_field){.key = ACC_STR("name"),
					     .raw = (const uint8_t *)name.p,
					     .nraw = name.n});
	if (rc == 0)
		rc = acc_rec_append(r, "", &em->about);
	uint64_t id[5] = {em->about.shape, a == NULL ? 0 : acc_stored_shape(a),
		b == NULL ? 0 : acc_stored_shape(b), 0, name.n > 0};
	if (rc == 0)
		rc = a == NULL   ? acc_store_push(b, r)
		     : b == NULL ? acc_store_push(a, r)
				 : acc_store_push_pair(a, b, r, &id[3]);
	if (rc < 0)
		return acc_rec_fail(em->e, rc);
	r->shape = acc_hash(id, sizeof id);
	return hand_out(em);
}

static int
put_item(struct emit *em, uint32_t a, uint32_t b, const struct acc_align_call *op)
{
	struct acc_half *h = em->al->h;
	const struct acc_align_item *x = h[ACC_A].ix.item, *y = h[ACC_B].ix.item;
	struct acc_stored p, q;
	char differs[64] = "";
	struct about w = {.how = {op->how, op->sure}, .note = differs};
	int rc = 0;
	if (a != ACC_NOMATE)
		rc = acc_store_get(h[ACC_A].store, x[a].at, &p, em->e);
	if (rc >= 0 && b != ACC_NOMATE)
		rc = acc_store_get(h[ACC_B].store, y[b].at, &q, em->e);
	if (rc >= 0 && a != ACC_NOMATE && b != ACC_NOMATE)
		note(&x[a], &y[b], differs, sizeof differs);
	if (a != ACC_NOMATE && x[a].how != ACC_HOW_OP)
		w.how = acc_item_hows[x[a].how];
	return rc < 0 ? rc : put(em, a != ACC_NOMATE ? &p : NULL, b != ACC_NOMATE ? &q : NULL, &w);
}

ACC_ORDER_2(cmp_shared, struct acc_shared_texts, a, nth)

/* An item of the device with its mates. */
static int
put_all(struct emit *em, uint32_t a, const struct acc_align_call *op)
{
	const struct acc_align_item *it = &em->al->h[ACC_A].ix.item[a];
	const struct acc_scratch *s = em->al->scratch;
	int rc = put_item(em, a, it->mate, op);
	uint32_t lo = 0;
	ACC_LOWER(lo, s->nshare, s->share[lo].a < a);
	for (; lo < s->nshare && s->share[lo].a == a && rc >= 0; lo++)
		rc = put_item(em, a, s->share[lo].b, op);
	return rc;
}

/* The records of a device's op call (may be NULL), with those that only its mate has (may be
 * NULL), by their place in the call. */
static int
put_mates(struct emit *em, const struct acc_align_call *a, const struct acc_align_call *b)
{
	const struct acc_align_item *x = em->al->h[ACC_A].ix.item, *y = em->al->h[ACC_B].ix.item;
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

/* Is `a` the last of several that make up `b`: what goes into it is not paired, and what goes into that is, elsewhere? */
static bool
ends(const struct emit *em, const struct acc_align_call *a, const struct acc_align_call *b)
{
	const struct acc_align_item *x = em->al->h[ACC_A].ix.item, *y = em->al->h[ACC_B].ix.item;
	bool in = false, elsewhere = false;
	for (uint32_t i = a->first; i < a->first + a->n; i++) {
		if (x[i].mate != ACC_NOMATE && x[i].io != ACC_IO_OUT)
			return false;
		in |= x[i].io == ACC_IO_IN;
	}
	for (uint32_t i = b->first; i < b->first + b->n; i++)
		elsewhere |= y[i].io == ACC_IO_IN && y[i].mate != ACC_NOMATE;
	return in && elsewhere;
}

/* What only one of several calls against one has is no part of that one: it stands behind it. */
static int
put_op(struct emit *em, const struct acc_align_call *a, const struct acc_align_call *b)
{
	bool fused = a != NULL && b != NULL && (strcmp(a->how, "fused") == 0 || ends(em, a, b));
	int rc = put_mates(em, a, fused ? NULL : b);
	return rc >= 0 && fused ? put_mates(em, NULL, b) : rc;
}

/* The op calls from position `at` of a group of the bench that have no mate, up to the next that
 * has one. */
static int
put_unmatched(struct emit *em, const struct acc_group *g, uint32_t at)
{
	const struct acc_half *h = &em->al->h[ACC_B];
	int rc = 0;
	for (; at < g->nop && rc >= 0; at++) {
		const struct acc_align_call *op = &h->ix.op[h->byop[g->first + at]];
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
		const struct acc_align_call *op = &a->ix.op[a->byop[ga->first + i]];
		bool paired = op->mate != ACC_NOMATE;
		acc_align_turn(em->al, &em->turns);
		rc = put_op(em, op, paired ? &b->ix.op[op->mate] : NULL);
		if (rc >= 0 && paired)
			rc = put_unmatched(em, gb, position(b, gb, op->mate) + 1);
	}
	return rc;
}

/* Groups of one step that have no partner: ranks as ranges, 1-3,5. */
struct lone {
	const struct acc_group *first;
	uint64_t nop;
	uint32_t n;
	int64_t from, to; /* the range that is not yet in who */
	char who[120];
};

static void
end_range(struct lone *l)
{
	size_t at = strlen(l->who);
	if (at + 48 > sizeof l->who) {
		if (at + 5 < sizeof l->who && !strchr(l->who, '.'))
			memcpy(l->who + at, ",...", 5);
		return;
	}
	at += (size_t)snprintf(l->who + at, sizeof l->who - at, "%s%" PRId64, at > 0 ? "," : "",
		l->from);
	if (l->to > l->from)
		snprintf(l->who + at, sizeof l->who - at, "-%" PRId64, l->to);
}

/* Say which step and ranks have no partner at all. */
static int
put_lone(struct emit *em, struct lone *l, const char *side)
{
	struct acc_rec *r = &em->out;
	struct acc_arena mem = {0};
	const char *text, *step = "", *who = "";
	if (l->n == 0)
		return 0;
	const struct acc_group_id *id = &l->first->id;
	int rc = acc_rec_start(r, ACC_STR("finding"));
	if (rc == 0)
		rc = acc_add(r, "", "what", acc_ctext("unmatched"));
	if (id->step != INT64_MIN) {
		step = acc_say(&mem, " step %" PRId64, id->step);
		if (rc == 0)
			rc = acc_add(r, "", "step", acc_int(id->step));
	}
	if (id->kind == WHO_RANK || id->kind == WHO_PROC) {
		const char *what = id->kind == WHO_RANK ? "rank" : "proc";
		end_range(l);
		who = acc_say(&mem, " %s%s %s", what, l->n > 1 ? "s" : "", l->who);
		if (rc == 0 && l->n == 1)
			rc = acc_add(r, "", what, acc_int(id->who));
	}
	if (step == NULL || who == NULL)
		text = NULL;
	else
		text = acc_say(&mem,
			"only the %s has%s%s: %" PRIu64 " op calls unmatched "
			"(join them with --steps or --ranks)",
			side,
			step[0] == '\0' && who[0] == '\0' ? " records without step and rank" : step,
			who, l->nop);
	*l = (struct lone){.n = 0};
	if (rc == 0)
		rc = acc_put_said(r, "", "text", &mem, text);
	acc_arena_release(&mem);
	return rc < 0 ? acc_rec_fail(em->e, rc) : em->fn(em->arg, r);
}

static int
put_findings(struct emit *em, const struct acc_half *h, const char *side)
{
	struct lone l = {.n = 0};
	int rc = 0;
	for (uint32_t i = 0; i < h->ngroup && rc >= 0; i++) {
		const struct acc_group *g = &h->group[i];
		if (g->mate != ACC_NOMATE || g->id.kind == WHO_GLOBAL)
			continue;
		bool ranked = g->id.kind == WHO_RANK || g->id.kind == WHO_PROC;
		if (l.n > 0 && (!ranked || g->id.kind != l.first->id.kind ||
				       g->id.step != l.first->id.step))
			rc = put_lone(em, &l, side);
		if (l.n == 0)
			l = (struct lone){.first = g, .from = g->id.who, .to = g->id.who};
		else if (g->id.who == l.to + 1)
			l.to++;
		else {
			end_range(&l);
			l.from = l.to = g->id.who;
		}
		l.n++;
		l.nop += g->nop;
	}
	return rc < 0 ? rc : put_lone(em, &l, side);
}

int
acc_align_emit(struct acc_align *al, acc_align_fn *fn, void *arg, struct acc_err *e)
{
	static const char *const side[2] = {"device", "bench"};
	struct emit em = {.al = al, .fn = fn, .arg = arg, .e = e};
	int rc = 0;
	if (al->scratch->nshare > 0)
		qsort(al->scratch->share, al->scratch->nshare, sizeof *al->scratch->share,
			cmp_shared);
	for (uint32_t i = 0; i < al->h[ACC_A].ngroup && rc >= 0; i++) {
		rc = put_group(&em, &al->h[ACC_A].group[i]);
		acc_align_rest(al);
	}
	for (uint32_t i = 0; i < al->h[ACC_B].ngroup && rc >= 0; i++)
		if (al->h[ACC_B].group[i].mate == ACC_NOMATE)
			rc = put_unmatched(&em, &al->h[ACC_B].group[i], 0);
	for (int s = 0; s < 2 && rc >= 0; s++)
		rc = put_findings(&em, &al->h[s], side[s]);
	acc_rec_release(&em.out);
	acc_rec_release(&em.about);
	acc_buf_release(&em.bytes);
	acc_shapes_release(&em.shapes);
	return rc < 0 ? rc : 0;
}
