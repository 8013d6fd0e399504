/* Operators of one framework against kernels of another. What one side computes in a call the
 * other may compute in several, in other shapes and in another order of axes; modules and lines of
 * code have nothing in common. What is the same are the values: of all results, and so of the last
 * of several kernels. Where a fault has changed these, the operators and where inputs come from
 * tell what is left. */
#include "align/limits.h"
#include "align/seq.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

enum { EQUAL = 60, NEAR = 45, ALIKE = 10, OTHER = -10, FAR = -25 };

static float
larger(float x, float y)
{
	return x > y ? x : y;
}

/* Rounding to 16 bits moves the extremes by as much as a few of their units, the mean and the root
 * mean square of many elements hardly. */
int
acc_seq_value_points(const float *p, const float *q, int known)
{
	float scale = 0, d[ACC_NLIKE] = {0};
	if ((known & (known - 1)) == 0)
		return 0; /* none, or one, which says little */
	for (int i = 0; i < ACC_NLIKE; i++)
		if (known & 1 << i) {
			if (!isfinite(p[i]) || !isfinite(q[i]))
				return p[i] == q[i] || (isnan(p[i]) && isnan(q[i])) ? 5 : OTHER;
			scale = larger(scale, larger(fabsf(p[i]), fabsf(q[i])));
		}
	float rms = known & 1 << ACC_LIKE_RMS
			    ? larger(fabsf(p[ACC_LIKE_RMS]), fabsf(q[ACC_LIKE_RMS]))
			    : scale;
	for (int i = 0; i < ACC_NLIKE; i++)
		if (known & 1 << i && p[i] != q[i])
			d[i] = fabsf(p[i] - q[i]) / (i >= ACC_LIKE_MEAN ? rms : scale);
	float ends = larger(d[ACC_LIKE_MAX], d[ACC_LIKE_MIN]);
	float bulk = larger(d[ACC_LIKE_MEAN], d[ACC_LIKE_RMS]), most = larger(ends, bulk);
	/* All constants are alike. */
	if (p[ACC_LIKE_MAX] == p[ACC_LIKE_MIN] && q[ACC_LIKE_MAX] == q[ACC_LIKE_MIN])
		return most < 0.02F ? ALIKE : -15;
	return most < 0.003F                  ? EQUAL
	       : bulk < 0.01F && ends < 0.05F ? NEAR
	       : most < 0.1F                  ? ALIKE
	       : most < 0.5F                  ? OTHER
					      : FAR;
}

static int
value(const struct call *x, const struct call *y)
{
	return acc_seq_value_points(x->like, y->like, x->liked & y->liked);
}

/* Is the one a step of an optimizer for all parameters, the other one for a parameter, or alike? */
static bool
both_step(const struct call *x, const struct call *y)
{
	static const char *const families[] = {"adam", "adamw", "sgd"};
	int n = 0;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		const uint64_t f = acc_hash(families[i], strlen(families[i]));
		n += (x->family == f) + (y->family == f);
	}
	return n == 2;
}

/* May the one stand for calls that end in the other? As acc_op_ends_in. */
static unsigned
whole_of(const struct call *x, const struct call *y)
{
	unsigned rank = acc_op_ends_in(x->family, y->family);
	if (both_step(x, y))
		return x->takes < y->takes; /* the first of the kernels stands for all */
	/* A product alone is no linear layer that has a bias, however small that is. */
	return rank > 1 && y->product && x->takes > y->takes ? 0 : rank;
}

static bool
related(const struct call *x, const struct call *y)
{
	return x->name == y->name || acc_seq_kin(x, y) || whole_of(x, y) != 0 ||
	       whole_of(y, x) != 0;
}

int
acc_seq_value_score(const struct seq *s, uint32_t i, uint32_t k)
{
	const struct call *x = &s->a[i], *y = &s->b[k];
	bool same = x->name == y->name || acc_seq_kin(x, y);
	unsigned part = same ? 0 : whole_of(x, y) != 0 ? whole_of(x, y) : whole_of(y, x);
	int known = value(x, y);
	if (x->count != y->count || both_step(x, y)) /* see acc_seq_wholes */
		return SEQ_NEVER;
	/* Who moves another's result is not who made it; and between operators that have nothing to do
	 * with each other, only values speak. */
	if (!same && part == 0 && (x->moves || y->moves || known < NEAR))
		return SEQ_NEVER;
	if (part != 0 && known < NEAR)
		return SEQ_NEVER; /* see acc_seq_wholes */
	int v = 20 + (same ? 25 : part == 1 ? 15 : part > 1 ? 5 : -25) + known;
	if (x->scope != 0 && x->scope == y->scope)
		v += 15;
	/* Of several with the same result (a bias of 0 is added, a scale of 1) the last ends a whole. */
	if (part != 0 && (whole_of(x, y) != 0 ? y : x)->moved != ACC_NOMATE)
		v += 2;
	return v;
}

/* --- anchors --- */

/* A call by what comes out of it, or a weight; and who fits best, and how well the next. */
struct sized {
	uint64_t count;
	float rms;
	uint32_t call, best; /* call: of a weight its item */
	int points, next;
	uint32_t user; /* of a weight: the call that takes it */
};

ACC_ORDER_3(by_size, struct sized, count, rms, call)

static uint32_t
list(const struct call *c, uint32_t n, const uint32_t *mate, struct sized *out)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool known = (c[i].liked & 1 << ACC_LIKE_RMS) != 0 &&
			     isfinite(c[i].like[ACC_LIKE_RMS]) && c[i].like[ACC_LIKE_RMS] > 0;
		if (mate[i] == ACC_NOMATE && known && c[i].count > 1)
			out[k++] = (struct sized){c[i].count, c[i].like[ACC_LIKE_RMS], i,
				ACC_NOMATE, SEQ_NEVER, SEQ_NEVER, i};
	}
	qsort(out, k, sizeof *out, by_size);
	return k;
}

static void
candidate(struct sized *x, uint32_t other, int points)
{
	if (points > x->points) {
		x->next = x->points;
		x->points = points;
		x->best = other;
	} else if (points > x->next) {
		x->next = points;
	}
}

/* What is nearly as large stands together in q: from where on, and how far. */
static const float near_size = 1.02F;

static uint32_t
first_near(const struct sized *x, const struct sized *q, uint32_t m, uint32_t lo)
{
	while (lo < m && (q[lo].count < x->count ||
				 (q[lo].count == x->count && q[lo].rms * near_size < x->rms)))
		lo++;
	return lo;
}

static bool
is_near(const struct sized *x, const struct sized *q, uint32_t m, uint32_t lo, uint32_t k)
{
	enum { MOST = 64 };
	return k < m && k < lo + MOST && q[k].count == x->count && q[k].rms <= x->rms * near_size;
}

static void
compare(const struct seq *s, struct sized *p, uint32_t n, struct sized *q, uint32_t m)
{
	for (uint32_t i = 0, lo = 0; i < n; i++) {
		lo = first_near(&p[i], q, m, lo);
		for (uint32_t k = lo; is_near(&p[i], q, m, lo, k); k++) {
			const struct call *x = &s->a[p[i].call], *y = &s->b[q[k].call];
			if (value(x, y) < NEAR || !related(x, y))
				continue;
			int points = acc_seq_value_score(s, p[i].call, q[k].call);
			candidate(&p[i], k, points);
			candidate(&q[k], i, points);
		}
	}
}

/* Whose is p[i], if nobody else's? ACC_NOMATE: several may be. */
static uint32_t
only(const struct sized *p, const struct sized *q, uint32_t i)
{
	const int margin = 10;
	uint32_t k = p[i].best;
	if (k == ACC_NOMATE || q[k].best != i || p[i].points - p[i].next < margin ||
		q[k].points - q[k].next < margin)
		return ACC_NOMATE;
	return k;
}

static int
result_anchors(struct seq *s)
{
	struct sized *p = malloc(((size_t)s->na + s->nb + 1) * sizeof *p);
	if (p == NULL)
		return acc_nomem(s->e);
	uint32_t n = list(s->a, s->na, s->ma, p);
	struct sized *q = p + n;
	uint32_t m = list(s->b, s->nb, s->mb, q);
	compare(s, p, n, q, m);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = only(p, q, i);
		if (k != ACC_NOMATE)
			acc_seq_mate(s, p[i].call, q[k].call, SEQ_LIKENESS);
	}
	free(p);
	return 0;
}

/* --- one call against several --- */

/* The two sides, so that either can have the whole. */
struct view {
	const struct call *c;
	uint32_t *mate, n;
};

/* Does a call behind x take its result, whose mate takes that of y? */
static bool
same_use(const struct view *p, const struct view *q, uint32_t x, uint32_t y)
{
	enum { REACH = 64 };
	for (uint32_t i = x + 1; i < p->n && i < x + REACH; i++)
		for (int t = 0; t < SEQ_INS && p->mate[i] != ACC_NOMATE; t++) {
			const struct call *d = &q->c[p->mate[i]];
			if (p->c[i].from[t] == ACC_NOMATE || p->c[i].from[t] / SEQ_OUTS != x)
				continue;
			for (int u = 0; u < SEQ_INS; u++)
				if (d->from[u] != ACC_NOMATE && d->from[u] / SEQ_OUTS == y)
					return true;
		}
	return false;
}

float
acc_seq_apart(const struct call *x, const struct call *y)
{
	if (x->count != 1 || y->count != 1 || (x->liked & y->liked & 1 << ACC_LIKE_MAX) == 0)
		return INFINITY;
	const float a = x->like[ACC_LIKE_MAX], b = y->like[ACC_LIKE_MAX];
	return a == b ? 0 : fabsf(a - b) / larger(fabsf(a), fabsf(b));
}

/* Of the free calls [lo, hi) of q the one that ends call x of p: where the result goes tells, else
 * the last that may. */
static uint32_t
end_of(const struct view *p, const struct view *q, uint32_t x, uint32_t lo, uint32_t hi)
{
	uint32_t best = ACC_NOMATE;
	float least = INFINITY;
	for (uint32_t k = hi; k-- > lo;) {
		const struct call *y = &q->c[k];
		if (q->mate[k] != ACC_NOMATE || y->moves || whole_of(&p->c[x], y) == 0 ||
			(y->count != p->c[x].count && !both_step(&p->c[x], y)))
			continue;
		if (same_use(p, q, x, k))
			return k;
		/* A loss stands beside others that are made on the way (smoothing that is off): the nearest is it. */
		const float far = acc_seq_apart(&p->c[x], y);
		if (best != ACC_NOMATE && far < least &&
			whole_of(&p->c[x], y) == whole_of(&p->c[x], &q->c[best]))
			best = ACC_NOMATE;
		least = far < least ? far : least;
		bool usual = whole_of(&p->c[x], y) == 1 || value(&p->c[x], y) > FAR;
		if (best == ACC_NOMATE && usual)
			best = k;
	}
	return best;
}

/* --- weights: what no call made, and one call of either side takes --- */

/* The weights of the free calls of a side that compute; NULL out: only their number. */
static uint32_t
weights(const struct acc_index *ix, const struct view *v, struct sized *out)
{
	uint32_t n = 0;
	for (uint32_t c = 0; c < v->n; c++) {
		const struct acc_align_call *op = &ix->op[v->c[c].op];
		uint32_t t = 0;
		for (uint32_t i = op->first; i < op->first + op->n && t < SEQ_INS; i++) {
			const struct acc_align_item *it = &ix->item[i];
			if (!acc_seq_is_input(it))
				continue;
			bool leaf = v->c[c].from[t++] == ACC_NOMATE && it->print != 0;
			if (!leaf || v->mate[c] != ACC_NOMATE || it->count < 2 ||
				(v->c[c].moves && v->c[c].takes < 2))
				continue;
			if (out != NULL)
				out[n] = (struct sized){it->count, it->like[ACC_LIKE_RMS], i,
					ACC_NOMATE, SEQ_NEVER, SEQ_NEVER, c};
			n++;
		}
	}
	if (out != NULL && n > 1)
		qsort(out, n, sizeof *out, by_size);
	return n;
}

static void
compare_weights(const struct seq *s, struct sized *p, uint32_t n, struct sized *q, uint32_t m)
{
	for (uint32_t i = 0, lo = 0; i < n; i++) {
		lo = first_near(&p[i], q, m, lo);
		for (uint32_t k = lo; is_near(&p[i], q, m, lo, k); k++) {
			const struct acc_align_item *x = &s->j->a->item[p[i].call],
						    *y = &s->j->b->item[q[k].call];
			int points = acc_seq_value_points(x->like, y->like, x->liked & y->liked);
			if (points < NEAR)
				continue;
			candidate(&p[i], k, points);
			candidate(&q[k], i, points);
		}
	}
}

/* Where call y of q takes a weight of the whole x of p: the call that ends x. */
static uint32_t
end_behind(const struct call *x, const struct view *q, uint32_t y)
{
	enum { NEXT = 8 };
	for (uint32_t k = y + 1; k < q->n && k <= y + NEXT; k++)
		for (int t = 0; t < SEQ_INS; t++)
			if (q->c[k].from[t] != ACC_NOMATE && q->c[k].from[t] / SEQ_OUTS == y &&
				!q->c[k].moves && whole_of(x, &q->c[k]) == 1 &&
				q->c[k].count == x->count)
				return k;
	return whole_of(x, &q->c[y]) != 0 && q->c[y].count == x->count ? y : ACC_NOMATE;
}

static void
mate_users(struct seq *s, const struct view *a, const struct view *b, uint32_t x, uint32_t y)
{
	if (a->mate[x] != ACC_NOMATE || b->mate[y] != ACC_NOMATE)
		return;
	if (s->a[x].family == s->b[y].family) {
		if (s->a[x].count == s->b[y].count)
			acc_seq_mate(s, x, y, SEQ_WEIGHTS);
		return;
	}
	uint32_t end = end_behind(&s->a[x], b, y);
	if (end != ACC_NOMATE && b->mate[end] == ACC_NOMATE)
		acc_seq_mate(s, x, end, SEQ_FUSED_A);
	end = a->mate[x] == ACC_NOMATE ? end_behind(&s->b[y], a, x) : ACC_NOMATE;
	if (end != ACC_NOMATE && a->mate[end] == ACC_NOMATE)
		acc_seq_mate(s, end, y, SEQ_FUSED_B);
}

static int
weight_anchors(struct seq *s)
{
	struct view a = {s->a, s->ma, s->na}, b = {s->b, s->mb, s->nb};
	uint32_t n = weights(s->j->a, &a, NULL), m = weights(s->j->b, &b, NULL);
	struct sized *p = malloc(((size_t)n + m + 1) * sizeof *p), *q = p + n;
	if (p == NULL)
		return acc_nomem(s->e);
	weights(s->j->a, &a, p);
	weights(s->j->b, &b, q);
	compare_weights(s, p, n, q, m);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = only(p, q, i);
		if (k != ACC_NOMATE)
			mate_users(s, &a, &b, p[i].user, q[k].user);
	}
	free(p);
	return 0;
}

int
acc_seq_value_anchors(struct seq *s)
{
	int rc = result_anchors(s);
	return rc < 0 ? rc : weight_anchors(s);
}

static void
one_way(struct seq *s, bool swapped)
{
	struct view a = {s->a, s->ma, s->na}, b = {s->b, s->mb, s->nb};
	const struct view *p = swapped ? &b : &a, *q = swapped ? &a : &b;
	enum { MOST = 256 };
	for (uint32_t i = 0, lo = 0; i < p->n; i++) {
		if (p->mate[i] != ACC_NOMATE) {
			lo = p->mate[i] + 1;
			continue;
		}
		uint32_t end = i, hi;
		while (end < p->n && p->mate[end] == ACC_NOMATE)
			end++;
		hi = end < p->n ? p->mate[end] : q->n;
		for (; i < end && lo < hi; i++) {
			uint32_t stop = hi - lo > MOST ? lo + MOST : hi;
			uint32_t y = p->c[i].moves ? ACC_NOMATE : end_of(p, q, i, lo, stop);
			if (y == ACC_NOMATE)
				continue;
			acc_seq_mate(s, swapped ? y : i, swapped ? i : y,
				swapped ? SEQ_FUSED_B : SEQ_FUSED_A);
			lo = y + 1;
		}
		i = end - 1;
	}
}

/* A number that an operator gives, by the kernel that gives the same at the end of the forward pass, which a graph may
 * compute last of all, behind the backward pass and the step: the last of them. */
static uint32_t
same_number(const struct seq *s, uint32_t y)
{
	uint32_t best = ACC_NOMATE;
	for (uint32_t x = 0; x < s->na; x++)
		if (s->a[x].count == 1 && !s->a[x].moves && s->ma[x] == ACC_NOMATE &&
			whole_of(&s->b[y], &s->a[x]) != 0 &&
			acc_seq_apart(&s->b[y], &s->a[x]) < LIMIT_SAME_LOSS)
			best = x;
	return best;
}

static void
late_numbers(struct seq *s)
{
	enum { MOST = 64 }; /* losses of a step */
	for (uint32_t y = 0, n = 0; y < s->nb && n < MOST; y++) {
		const uint32_t had = s->mb[y];
		if (s->b[y].count != 1 || s->b[y].moves || s->b[y].like[ACC_LIKE_MAX] == 0 ||
			(had != ACC_NOMATE &&
				(s->how[had] != SEQ_FUSED_B ||
					acc_seq_apart(&s->b[y], &s->a[had]) < LIMIT_SAME_LOSS)))
			continue;
		n++;
		const uint32_t x = same_number(s, y);
		if (x == ACC_NOMATE)
			continue;
		if (had != ACC_NOMATE)
			s->ma[had] = ACC_NOMATE;
		acc_seq_mate(s, x, y, SEQ_FUSED_B);
	}
}

bool
acc_seq_takes_number(const struct acc_index *ix, const struct call *c, float number)
{
	const struct acc_align_call *op = &ix->op[c->op];
	bool takes = false;
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct acc_align_item *it = &ix->item[i];
		takes |= acc_seq_is_input(it) && it->count == 1 &&
			 (it->liked & 1 << ACC_LIKE_MAX) != 0 && it->like[ACC_LIKE_MAX] == number;
	}
	return takes;
}

static bool
goes_on(const struct seq *s, uint32_t y)
{
	bool taken = false;
	for (uint32_t i = y + 1; i < s->nb && !taken; i++)
		taken = acc_seq_takes_number(s->j->b, &s->b[i], s->b[y].like[ACC_LIKE_MAX]);
	return taken;
}

/* Of the free calls that make another number of what call x of a gives, the last of its cell: what smoothing or the
 * size of a batch makes of a loss. x: none. */
static uint32_t
last_of_cell(const struct seq *s, uint32_t x)
{
	enum { MOST = 8 };
	float chain[MOST] = {s->a[x].like[ACC_LIKE_MAX]};
	uint32_t n = 1, last = x;
	for (uint32_t k = x + 1; k < s->na && n < MOST; k++) {
		const struct call *c = &s->a[k];
		bool takes = false;
		for (uint32_t i = 0; i < n && c->count == 1 && s->ma[k] == ACC_NOMATE; i++)
			takes |= acc_seq_takes_number(s->j->a, c, chain[i]);
		if (!takes)
			continue;
		chain[n++] = c->like[ACC_LIKE_MAX];
		last = c->scope == s->a[x].scope ? k : last;
	}
	return last;
}

/* A cell's loss is what the last of its kernels gives; the bench's is taken as that, unless it goes on with it. */
static void
ends_of_cells(struct seq *s)
{
	static const char mean[] = "mean";
	const uint64_t reduced = acc_hash(mean, sizeof mean - 1);
	enum { MOST = 64 }; /* losses of a step */
	for (uint32_t y = 0, n = 0; y < s->nb && n < MOST; y++) {
		const uint32_t x = s->mb[y];
		if (x == ACC_NOMATE || s->b[y].count != 1 || s->a[x].scope == 0 ||
			(s->a[x].liked & s->b[y].liked & 1 << ACC_LIKE_MAX) == 0 ||
			s->how[x] == SEQ_RULE || acc_op_ends_in(s->b[y].family, reduced) == 0)
			continue;
		n++;
		const uint32_t last = last_of_cell(s, x);
		if (last == x ||
			(acc_seq_apart(&s->b[y], &s->a[last]) >= LIMIT_SAME_LOSS && goes_on(s, y)))
			continue;
		s->ma[x] = ACC_NOMATE;
		acc_seq_mate(s, last, y, SEQ_FUSED_B);
	}
}

void
acc_seq_wholes(struct seq *s)
{
	one_way(s, false);
	one_way(s, true);
	late_numbers(s);
	if (s->j->a->kernels)
		ends_of_cells(s);
	for (uint32_t i = 0; i < s->na; i++) {
		if (s->ma[i] == ACC_NOMATE || s->how[i] == SEQ_RULE || s->how[i] == SEQ_PACKED)
			continue;
		const struct call *x = &s->a[i], *y = &s->b[s->ma[i]];
		if (x->family != y->family && whole_of(x, y) != 0)
			s->how[i] = SEQ_FUSED_A;
		else if (x->family != y->family && whole_of(y, x) != 0)
			s->how[i] = SEQ_FUSED_B;
	}
}

/* Does a call of this side take what this one gives? */
static bool
is_taken(const struct call *c, uint32_t n, uint32_t maker)
{
	for (uint32_t i = maker + 1; i < n; i++)
		for (int t = 0; t < SEQ_INS; t++)
			if (c[i].from[t] != ACC_NOMATE && c[i].from[t] / SEQ_OUTS == maker)
				return true;
	return false;
}

/* The operator of free call x, given the same, among the free calls of the other side, where that gives another number
 * of elements, and either result is an end: a loss that is reduced on one side alone; or a number, that is another: a
 * loss that is reduced otherwise. */
static uint32_t
unreduced(const struct seq *s, uint32_t x)
{
	const struct call *p = &s->a[x];
	uint32_t best = ACC_NOMATE;
	for (uint32_t y = 0; y < s->nb; y++) {
		const struct call *q = &s->b[y];
		if (s->mb[y] != ACC_NOMATE || !acc_seq_kin(p, q) || p->family == 0 || q->moves ||
			p->given != q->given ||
			(p->count == q->count ? p->count != 1 || p->given < 2
					      : is_taken(s->b, s->nb, y)) ||
			acc_seq_flow(s, x, y) < 20)
			continue;
		if (best != ACC_NOMATE)
			return ACC_NOMATE;
		best = y;
	}
	return best;
}

void
acc_seq_unreduced(struct seq *s)
{
	for (uint32_t x = 0; x < s->na; x++) {
		if (s->ma[x] != ACC_NOMATE || s->a[x].moves || s->a[x].nobodys ||
			(s->a[x].count != 1 && is_taken(s->a, s->na, x)))
			continue;
		const uint32_t y = unreduced(s, x);
		if (y != ACC_NOMATE)
			acc_seq_mate(s, x, y, SEQ_LIKENESS);
	}
}
