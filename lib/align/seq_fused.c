/* One call on one side that does what several do on the other: what comes out of it is what comes
 * out of the last of them, and what goes in is what goes into some of them. */
#include "align/seq.h"

#include <stdlib.h>

/* The two sides, so that either can be the fused one. */
struct side {
	struct acc_index *ix;
	const struct call *c;
	uint32_t n;
	uint32_t *mate;
};

struct fuse {
	struct seq *s;
	struct side p, q; /* p has the fused call */
	bool swapped;     /* p is b */
	/* Calls of q with the same result: of each gap and result the last, and of each call the one
	 * before. */
	struct acc_ids last;
	uint32_t *earlier;
};

bool
acc_seq_moves(const struct acc_index *ix, const struct call *c)
{
	const struct acc_align_call *op = &ix->op[c->op];
	uint64_t in = 0, out = 0;
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct acc_align_item *it = &ix->item[i];
		if (it->io == ACC_IO_IN && in == 0)
			in = it->print;
		if (it->io == ACC_IO_OUT && out == 0)
			out = it->print;
	}
	return in != 0 && in == out;
}

static void
set(struct fuse *f, uint32_t x, uint32_t y)
{
	acc_seq_mate(f->s, f->swapped ? y : x, f->swapped ? x : y,
		f->swapped ? SEQ_FUSED_B : SEQ_FUSED_A);
}

/* Which inputs of a call come from this one, a bit each. */
static unsigned
takes(const struct call *c, uint32_t maker)
{
	unsigned set = 0;
	for (int t = 0; t < SEQ_INS; t++)
		if (c->from[t] != ACC_NOMATE && c->from[t] / SEQ_OUTS == maker)
			set |= 1U << t;
	return set;
}

/* The mates of calls behind x that take its result, and where they take it. */
enum { USES = 64 };
struct uses {
	uint32_t mate[USES];
	unsigned set[USES], n;
};

static void
uses_of(const struct fuse *f, uint32_t x, struct uses *u)
{
	u->n = 0;
	for (uint32_t i = x + 1; i < f->p.n && i < x + USES; i++) {
		const unsigned set = f->p.mate[i] == ACC_NOMATE ? 0 : takes(&f->p.c[i], x);
		if (set == 0)
			continue;
		u->mate[u->n] = f->p.mate[i];
		u->set[u->n++] = set;
	}
}

/* Does one of them take the result of y there? In the same place: a product of q and k takes both. */
static bool
same_use(const struct fuse *f, const struct uses *u, uint32_t y)
{
	for (unsigned i = 0; i < u->n; i++)
		if ((u->set[i] & takes(&f->q.c[u->mate[i]], y)) != 0)
			return true;
	return false;
}

/* The free calls of a gap, which ends at hi, by what comes out of them; *last: the last of all, or ACC_NOMATE.
 * 0 or ACC_ENOMEM. */
static int
index_gap(struct fuse *f, uint32_t lo, uint32_t hi, uint32_t *last)
{
	int rc = 0;
	*last = ACC_NOMATE;
	for (uint32_t k = lo; k < hi && rc >= 0; k++) {
		if (f->q.mate[k] != ACC_NOMATE)
			continue;
		const uint64_t id = acc_hash_pair(f->q.c[k].out, hi);
		f->earlier[k] = acc_ids_get(&f->last, id);
		rc = acc_ids_put(&f->last, id, k, true, f->s->e);
		*last = k;
	}
	return rc < 0 ? rc : 0;
}

/* The last of the free calls from lo on of a gap of q whose result is that of call x, by its use or by its
 * value: one that computes rather than one that moves. Where nothing is known of either, only the very last
 * can be it; ACC_NOMATE: nor that. */
static uint32_t
last_part(const struct fuse *f, uint32_t x, uint32_t lo, uint32_t hi, uint32_t very_last)
{
	enum { REACH = 1024 }; /* as wide as the band */
	const struct call *c = &f->p.c[x];
	struct uses u;
	uses_of(f, x, &u);
	uint32_t best = ACC_NOMATE, k = acc_ids_get(&f->last, acc_hash_pair(c->out, hi));
	for (int n = 0; n < REACH && k != ACC_NOID && k >= lo; n++, k = f->earlier[k]) {
		const struct call *d = &f->q.c[k];
		bool blind = (c->liked & d->liked) == 0 && k == very_last;
		if (!(acc_seq_value(c, d) >= 15 || blind || same_use(f, &u, k)))
			continue;
		if (!acc_seq_moves(f->q.ix, d))
			return k;
		if (best == ACC_NOMATE)
			best = k;
	}
	return best;
}

static uint32_t
count_free(const struct side *d, uint32_t lo, uint32_t hi)
{
	uint32_t n = 0;
	for (; lo < hi; lo++)
		n += d->mate[lo] == ACC_NOMATE;
	return n;
}

/* Free calls [i, end) of p stand opposite of those in [lo, hi) of q, which are more. */
static int
fuse_gap(struct fuse *f, uint32_t i, uint32_t end, uint32_t lo, uint32_t hi)
{
	const bool alone = end - i == 1;
	uint32_t last;
	const int rc = index_gap(f, lo, hi, &last);
	for (; i < end && lo < hi && rc == 0; i++) {
		if (acc_seq_moves(f->p.ix, &f->p.c[i]))
			continue;
		uint32_t y = last_part(f, i, lo, hi, alone ? last : ACC_NOMATE);
		if (y == ACC_NOMATE)
			continue;
		set(f, i, y);
		lo = y + 1;
	}
	return rc;
}

static int
fuse_side(struct fuse *f)
{
	uint32_t lo = 0;
	f->earlier = malloc(((size_t)f->q.n + 1) * sizeof *f->earlier);
	int rc = f->earlier == NULL ? acc_nomem(f->s->e) : 0;
	for (uint32_t i = 0; i < f->p.n && rc == 0; i++) {
		if (f->p.mate[i] != ACC_NOMATE) {
			lo = f->p.mate[i] + 1;
			continue;
		}
		uint32_t end = i;
		while (end < f->p.n && f->p.mate[end] == ACC_NOMATE)
			end++;
		uint32_t hi = end < f->p.n ? f->p.mate[end] : f->q.n;
		if (lo < hi && count_free(&f->q, lo, hi) > end - i)
			rc = fuse_gap(f, i, end, lo, hi);
		i = end - 1;
	}
	free(f->earlier);
	acc_ids_release(&f->last);
	return rc;
}

/* Of another family, and with other inputs or behind a call without a partner: the one may be a
 * part of the other. */
static bool
doubtful(const struct seq *s, uint32_t i)
{
	uint32_t k = s->ma[i];
	if (k == ACC_NOMATE || s->how[i] == SEQ_RULE || s->a[i].family == s->b[k].family)
		return false;
	return s->a[i].in != s->b[k].in || (i > 0 && s->ma[i - 1] == ACC_NOMATE) ||
	       (k > 0 && s->mb[k - 1] == ACC_NOMATE);
}

int
acc_seq_fused(struct seq *s)
{
	uint32_t *was = malloc(((size_t)s->na + 1) * sizeof *was);
	if (was == NULL)
		return acc_nomem(s->e);
	for (uint32_t i = 0; i < s->na; i++)
		was[i] = doubtful(s, i) ? s->ma[i] : ACC_NOMATE;
	for (uint32_t i = 0; i < s->na; i++)
		if (was[i] != ACC_NOMATE)
			s->mb[was[i]] = s->ma[i] = ACC_NOMATE;
	struct side a = {s->j->a, s->a, s->na, s->ma}, b = {s->j->b, s->b, s->nb, s->mb};
	struct fuse f = {.s = s, .p = a, .q = b}, g = {.s = s, .p = b, .q = a, .swapped = true};
	int rc = fuse_side(&f);
	if (rc == 0)
		rc = fuse_side(&g);
	for (uint32_t i = 0; i < s->na; i++)
		if (was[i] != ACC_NOMATE && s->ma[i] == ACC_NOMATE && s->mb[was[i]] == ACC_NOMATE)
			acc_seq_mate(s, i, was[i],
				s->a[i].in != s->b[was[i]].in ? SEQ_FUSED_A : s->how[i]);
	free(was);
	return rc;
}

/* The number of the record that is tensor input t of a call. */
static uint32_t
input(const struct acc_index *ix, const struct call *c, uint32_t t)
{
	const struct acc_align_call *op = &ix->op[c->op];
	for (uint32_t i = op->first; i < op->first + op->n; i++)
		if (acc_seq_is_input(&ix->item[i]) && t-- == 0)
			return i;
	return ACC_NOMATE;
}

/* Does input t of x come from where input u of y does? */
static bool
same_input(const struct seq *s, const struct call *x, uint32_t t, const struct call *y, uint32_t u,
	bool moved)
{
	uint32_t i = input(s->j->a, x, t), k = input(s->j->b, y, u);
	if (i == ACC_NOMATE || k == ACC_NOMATE)
		return false;
	const struct acc_align_item *p = &s->j->a->item[i], *q = &s->j->b->item[k];
	if (p->mate != ACC_NOMATE || q->mate != ACC_NOMATE || p->dims != q->dims ||
		(p->shape != q->shape && !moved))
		return false;
	if (acc_seq_origin(s, x->from[t], y->from[u]) == 1)
		return true;
	return x->from[t] == ACC_NOMATE && y->from[u] == ACC_NOMATE && p->print != 0 &&
	       p->print == q->print;
}

/* Mate inputs of x and y that are the same; true if there are any. */
static bool
mate_inputs(struct seq *s, uint32_t x, uint32_t y, bool moved)
{
	bool any = false;
	for (uint32_t t = 0; t < SEQ_INS; t++)
		for (uint32_t u = 0; u < SEQ_INS; u++)
			if (same_input(s, &s->a[x], t, &s->b[y], u, moved)) {
				acc_mate_items(s->j, input(s->j->a, &s->a[x], t),
					input(s->j->b, &s->b[y], u));
				any = true;
			}
	return any;
}

/* The parts are the free calls before the last one, on the side that is not fused. */
static void
mate_parts(struct seq *s, uint32_t x, uint32_t y, bool moved)
{
	const struct acc_align_call *op = &s->j->a->op[s->a[x].op];
	mate_inputs(s, x, y, moved);
	for (uint32_t k = y; s->how[x] == SEQ_FUSED_A && k-- > 0 && s->mb[k] == ACC_NOMATE;)
		mate_inputs(s, x, k, moved);
	for (uint32_t i = x; s->how[x] == SEQ_FUSED_B && i-- > 0 && s->ma[i] == ACC_NOMATE;)
		if (mate_inputs(s, i, y, moved)) {
			struct acc_align_call *part = &s->j->a->op[s->a[i].op];
			part->how = op->how;
			part->sure = op->sure;
		}
}

void
acc_seq_fused_inputs(struct seq *s, uint32_t x, uint32_t y)
{
	mate_parts(s, x, y, false);
	mate_parts(s, x, y, true);
}
