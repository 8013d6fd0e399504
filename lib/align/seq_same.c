/* Two programs reach the same number on different ways: a sum that is divided afterwards, a loss of
 * log_softmax and gather. So calls whose results have the same values, each nobody else's, belong together,
 * whatever computes them, where no other pair says so of either. */
#include "align/seq.h"
#include "align/limits.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* The result of a whole that is one number tells less, but all of it. */
static int
same(const struct call *x, const struct call *y)
{
	const float p = x->like[ACC_LIKE_RMS], q = y->like[ACC_LIKE_RMS];
	if (x->count != y->count)
		return 0;
	if (x->count > 1)
		return acc_seq_value(x, y);
	const float off = x->like[ACC_LIKE_MEAN] * y->like[ACC_LIKE_MEAN] > 0 ? fabsf(p - q) / q
									      : 1;
	return off < 0.003F ? 20 : off < 0.02F ? 15 : 0;
}

bool
acc_seq_findable(const struct call *c)
{
	const unsigned both = 1 << ACC_LIKE_RMS | 1 << ACC_LIKE_MEAN;
	return (c->liked & both) == both && isfinite(c->like[ACC_LIKE_RMS]) &&
	       c->like[ACC_LIKE_RMS] > 0;
}

/* What another call made belongs to that. */
static bool
is_known(const struct call *c)
{
	return acc_seq_findable(c) && c->moved == ACC_NOMATE;
}

ACC_ORDER_3(by_size, struct seq_open, count, rms, call)

void
acc_seq_by_size(struct seq_open *v, uint32_t n)
{
	qsort(v, n, sizeof *v, by_size);
}

enum { NEAR = 15 };

/* May another call be the partner of one of these two? */
static bool
is_open(const struct seq *s, uint32_t x, uint32_t y)
{
	return s->how[x] != SEQ_RULE && is_known(&s->b[y]) && same(&s->a[x], &s->b[y]) < NEAR;
}

/* The op calls of a side that are packed, or parts of a packed one. */
static int
packed(const struct seq *s, bool b, struct acc_ids *ids)
{
	int rc = 0;
	for (uint32_t i = 0; i < s->npack && rc == 0; i++) {
		const struct seq_pack *p = &s->pack[i];
		if (p->b == b)
			rc = acc_ids_put(ids, p->op, 1, false, s->e);
		for (uint32_t k = 0; p->b != b && k < p->n && rc == 0; k++)
			rc = acc_ids_put(ids, p->part[k], 1, false, s->e);
	}
	return rc;
}

/* Calls that have no partner, or one whose result is another. */
static uint32_t
list(const struct seq *s, bool b, const struct acc_ids *done, struct seq_open *out)
{
	const struct call *c = b ? s->b : s->a;
	const uint32_t *mate = b ? s->mb : s->ma, n = b ? s->nb : s->na;
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_known(&c[i]) && acc_ids_get(done, c[i].op) == ACC_NOID &&
			(mate[i] == ACC_NOMATE || is_open(s, b ? mate[i] : i, b ? i : mate[i])))
			out[k++] = (struct seq_open){c[i].count, c[i].like[ACC_LIKE_RMS], i};
	acc_seq_by_size(out, k);
	return k;
}

uint32_t
acc_seq_nearest(const struct call *c, const struct call *all, const struct seq_open *v, uint32_t n,
	int least)
{
	enum { MOST = 64 };
	const float rms = c->like[ACC_LIKE_RMS];
	uint32_t lo = 0, found = ACC_NOMATE;
	const struct seq_open from = {c->count, rms * 0.98F, 0};
	ACC_LOWER(lo, n, by_size(&v[lo], &from) < 0);
	int best = 0;
	for (uint32_t i = lo; i < n && v[i].count == c->count && v[i].rms < rms * 1.02F; i++) {
		const int points = same(c, &all[v[i].call]);
		if (i - lo == MOST)
			return ACC_NOMATE;
		if (points < least || points < best || (points == best && v[i].call > found))
			continue;
		found = v[i].call;
		best = points;
	}
	return found;
}

static void
part(struct seq *s, uint32_t x, uint32_t y)
{
	if (s->ma[x] != ACC_NOMATE)
		s->mb[s->ma[x]] = ACC_NOMATE;
	if (s->mb[y] != ACC_NOMATE)
		s->ma[s->mb[y]] = ACC_NOMATE;
}

/* The values of an input that an earlier call made, or NULL. */
static const struct acc_align_item *
made(const struct acc_index *ix, const struct call *c, uint32_t t)
{
	const struct acc_align_call *op = &ix->op[c->op];
	if (c->from[t] == ACC_NOMATE)
		return NULL;
	for (uint32_t i = op->first; i < op->first + op->n; i++)
		if (acc_seq_is_input(&ix->item[i]) && t-- == 0)
			return &ix->item[i];
	return NULL;
}

/* Is some input, or are all, that were made on the way the same, as far as their values or their origin tell? */
static bool
same_given(const struct seq *s, uint32_t x, uint32_t y, bool all)
{
	const struct call *p = &s->a[x], *q = &s->b[y];
	bool any = false;
	for (uint32_t t = 0; t < SEQ_INS; t++) {
		const struct acc_align_item *a = made(s->j->a, p, t);
		bool same = false, other = false;
		for (uint32_t u = 0; u < SEQ_INS && a != NULL; u++) {
			const struct acc_align_item *b = made(s->j->b, q, u);
			if (b == NULL)
				continue;
			other = true;
			same |= acc_seq_origin(s, p->from[t], q->from[u]) == 1 ||
				(a->count == b->count && acc_seq_value_points(a->like, b->like,
								 a->liked & b->liked) >= NEAR);
		}
		if (other && same != all)
			return !all;
		any |= other;
	}
	return all || !any;
}

/* Is the result of z that of y, as far as values tell? One number tells less, and is as near as rounding is. */
static bool
gives(const struct call *z, const struct call *y)
{
	return is_known(z) && acc_seq_findable(y) &&
	       (z->count == 1 ? acc_seq_apart(z, y) < LIMIT_SAME_LOSS : same(z, y) >= NEAR);
}

/* Does call z take what the maker gives? */
static bool
takes(const struct acc_index *ix, const struct call *c, uint32_t z, uint32_t maker)
{
	for (int t = 0; t < SEQ_INS; t++)
		if (c[z].from[t] != ACC_NOMATE && c[z].from[t] / SEQ_OUTS == maker)
			return true;
	return c[maker].count == 1 && acc_seq_takes_number(ix, &c[z], c[maker].like[ACC_LIKE_MAX]);
}

/* Of the calls behind call x those that have no partner and take what it gives, or what they make of it: a bit each. */
enum { NEXT = 16 };
static uint32_t
chain(const struct acc_index *ix, const struct call *c, const uint32_t *mate, uint32_t n,
	uint32_t x)
{
	uint32_t made = 1;
	for (uint32_t z = x + 1; z < n && z < x + NEXT; z++) {
		bool any = false;
		for (uint32_t by = x; by < z && mate[z] == ACC_NOMATE && !any; by++)
			any = (made >> (by - x) & 1) != 0 && takes(ix, c, z, by);
		made |= (uint32_t)any << (z - x);
	}
	return made;
}

/* Two calls that are given the same are no pair where what one of them gives, or a later call of its side alone makes of it,
 * is what a later call of the other side makes of its own: a loss that is summed up, and then divided. */
static void
look_onward(struct seq *s, uint32_t x, uint32_t y)
{
	const uint32_t a = chain(s->j->a, s->a, s->ma, s->na, x),
		       b = chain(s->j->b, s->b, s->mb, s->nb, y);
	for (uint32_t both = 1; both < 2 * NEXT - 1; both++)
		for (uint32_t i = both < NEXT ? 0 : both - NEXT + 1; i <= both && i < NEXT; i++) {
			const uint32_t k = both - i, z = x + i, w = y + k;
			if ((a >> i & 1) == 0 || (b >> k & 1) == 0 ||
				!(i > 0 ? gives(&s->a[z], &s->b[w]) : gives(&s->b[w], &s->a[z])))
				continue;
			s->ma[x] = s->mb[y] = ACC_NOMATE;
			acc_seq_mate(s, z, w, k > 0 ? SEQ_FUSED_A : SEQ_FUSED_B);
			return;
		}
}

void
acc_seq_onward(struct seq *s)
{
	for (uint32_t x = 0; x < s->na && !s->values && !s->modules; x++) {
		const uint32_t y = s->ma[x];
		if (y != ACC_NOMATE && s->how[x] != SEQ_RULE && s->how[x] < SEQ_PACKED &&
			same(&s->a[x], &s->b[y]) < NEAR && s->a[x].leaf == s->b[y].leaf &&
			same_given(s, x, y, true))
			look_onward(s, x, y);
	}
}

void
acc_seq_distrust(struct seq *s)
{
	for (uint32_t x = 0; x < s->na && s->other_code && !s->values && !s->modules; x++) {
		const uint32_t y = s->ma[x];
		if (y == ACC_NOMATE || s->how[x] == SEQ_RULE || s->how[x] == SEQ_PACKED ||
			(s->a[x].leaf != 0 && s->a[x].leaf == s->b[y].leaf) ||
			acc_seq_value(&s->a[x], &s->b[y]) >= 0 || same_given(s, x, y, false))
			continue;
		s->ma[x] = s->mb[y] = ACC_NOMATE;
	}
}

int
acc_seq_same(struct seq *s)
{
	if (!s->other_code || s->values || s->modules)
		return 0;
	struct seq_open *a = malloc(((size_t)s->na + s->nb + 1) * sizeof *a);
	if (a == NULL)
		return acc_nomem(s->e);
	struct seq_open *b = a + s->na;
	struct acc_ids done[2] = {{0}};
	int rc = packed(s, false, &done[0]);
	if (rc == 0)
		rc = packed(s, true, &done[1]);
	const uint32_t na = rc < 0 ? 0 : list(s, false, &done[0], a),
		       nb = list(s, true, &done[1], b);
	for (uint32_t i = 0; i < na; i++) {
		const uint32_t x = a[i].call, y = acc_seq_nearest(&s->a[x], s->b, b, nb, NEAR);
		/* Of several that have the same values, the later ones hand them on. */
		if (y == ACC_NOMATE || acc_seq_nearest(&s->b[y], s->a, a, na, NEAR) != x)
			continue;
		part(s, x, y);
		acc_seq_mate(s, x, y, acc_seq_kin(&s->a[x], &s->b[y]) ? SEQ_LIKENESS : SEQ_FUSED_A);
	}
	acc_ids_release(&done[0]);
	acc_ids_release(&done[1]);
	free(a);
	return rc;
}
