/* Parameters that stand in lists. Two programs may divide their parameters into other groups, or list them in another
 * order: then what stands at one place of the lists is not the same parameter. Where shapes or contents contradict the
 * places, parameters pair by shape, and of one shape by what they hold, or in their order. */
#include "align/lists.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

struct lists_call *
acc_lists_call(struct lists_side *s, uint64_t base, uint32_t n, uint32_t lists, struct acc_err *e)
{
	const size_t cells = (size_t)n * lists;
	if (!ACC_ROOM(s->c, s->cap, (size_t)s->nc + 1, e))
		return NULL;
	struct lists_call *v = s->c;
	uint32_t *item = malloc((cells + 1) * sizeof *item);
	if (item == NULL) {
		acc_nomem(e);
		return NULL;
	}
	for (size_t i = 0; i < cells; i++)
		item[i] = ACC_NOMATE;
	v = &v[s->nc++];
	*v = (struct lists_call){.base = base,
		.op = ACC_NOMATE,
		.n = n,
		.lists = lists,
		.item = item,
		.first = s->np};
	s->np += n;
	return v;
}

int
acc_lists_params(struct lists_side *s, struct acc_err *e)
{
	s->p = calloc((size_t)s->np + 1, sizeof *s->p);
	if (s->p == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < s->nc; i++)
		for (uint32_t k = 0; k < s->c[i].n; k++) {
			const uint32_t item = s->c[i].item[k];
			struct lists_param *p = &s->p[s->c[i].first + k];
			*p = (struct lists_param){.call = i, .at = k, .mate = ACC_NOMATE};
			if (item == ACC_NOMATE)
				continue;
			p->shape = s->h->ix.item[item].shape;
			p->print = s->h->ix.item[item].print;
		}
	return 0;
}

void
acc_lists_release(struct lists *l)
{
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < l->s[s].nc; i++)
			free(l->s[s].c[i].item);
		free(l->s[s].c);
		free(l->s[s].p);
	}
}

/* Parameters by what they are called in and their shape, then by what they hold, then in order. */
struct sorted {
	uint64_t base, shape, print;
	uint32_t at;
};

static int
cmp(const void *x, const void *y)
{
	const struct sorted *p = x, *q = y;
	if (p->base != q->base)
		return p->base < q->base ? -1 : 1;
	if (p->shape != q->shape)
		return p->shape < q->shape ? -1 : 1;
	if (p->print != q->print)
		return p->print < q->print ? -1 : 1;
	return (p->at > q->at) - (p->at < q->at);
}

ACC_ORDER(cmp_order, struct sorted, at)

static bool
one_kind(const struct sorted *x, const struct sorted *y)
{
	return x->base == y->base && x->shape == y->shape;
}

static void
sort(const struct lists_side *s, struct sorted *v)
{
	for (uint32_t i = 0; i < s->np; i++)
		v[i] = (struct sorted){s->c[s->p[i].call].base, s->p[i].shape, s->p[i].print, i};
	if (s->np > 0)
		qsort(v, s->np, sizeof *v, cmp);
}

/* How many from i on are of its call and shape; content: and hold the same. */
static uint32_t
run(const struct sorted *v, uint32_t i, uint32_t n, bool content)
{
	uint32_t m = 1;
	while (i + m < n && one_kind(&v[i], &v[i + m]) &&
		(!content || v[i].print == v[i + m].print))
		m++;
	return m;
}

static void
mate(struct lists *l, uint32_t a, uint32_t b, enum acc_align_how how)
{
	l->s[0].p[a].mate = b;
	l->s[1].p[b].mate = a;
	l->s[0].p[a].how = (uint8_t)how;
}

static bool
several_calls(const struct lists_side *s, const struct sorted *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (s->p[v[i].at].call != s->p[v[0].at].call)
			return true;
	return false;
}

/* Of a list of its call, or NULL. */
static const struct acc_align_item *
item_of(const struct lists_side *s, uint32_t p, uint32_t list)
{
	const struct lists_call *c = &s->c[s->p[p].call];
	const uint32_t i = list < c->ins ? c->item[list * c->n + s->p[p].at] : ACC_NOMATE;
	return i == ACC_NOMATE ? NULL : &s->h->ix.item[i];
}

/* How far the statistics of two are apart, of the largest; INFINITY: not to be told. */
static double
apart(const struct acc_align_item *x, const struct acc_align_item *y)
{
	const unsigned all = 1 << ACC_LIKE_MAX | 1 << ACC_LIKE_MIN | 1 << ACC_LIKE_RMS;
	double far = 0, size = 0;
	if (x == NULL || y == NULL || (x->liked & y->liked & all) != all)
		return INFINITY;
	for (int i = 0; i < ACC_NLIKE; i++) {
		const double a = (double)x->like[i], b = (double)y->like[i], off = fabs(a - b);
		/* Two reductions by fmax() in one loop are an internal error of GCC 12 for ARM. */
		const double larger = fmax(fabs(a), fabs(b));
		size = larger > size ? larger : size;
		far = off > far ? off : far;
	}
	return size > 0 ? far / size : 0;
}

/* The parameter of v that has no mate and is nearest to p of the other side, or ACC_NOMATE: none is within a hundredth. Of
 * those that are as they were made, ones and zeros, the second list tells, the gradients. */
static uint32_t
nearest(const struct lists_side *s, const struct sorted *v, uint32_t n,
	const struct lists_side *other, uint32_t p)
{
	const double most = 0.01;
	double least = INFINITY;
	uint32_t best = ACC_NOMATE;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t q = v[i].at;
		const double d = s->p[q].mate != ACC_NOMATE
					 ? INFINITY
					 : apart(item_of(s, q, 0), item_of(other, p, 0));
		const double second = d > most ? INFINITY
					       : apart(item_of(s, q, 1), item_of(other, p, 1)),
			     sum = d + (isinf(second) ? 0 : second);
		if (d <= most && sum < least) {
			least = sum;
			best = q;
		}
	}
	return best;
}

/* n of one shape on each side, whose order says which is which, or is a guess: then what both have once belongs together,
 * what is nearest to each other, and what is left by its order. */
static void
pair_kind(struct lists *l, struct sorted *x, struct sorted *y, uint32_t n, bool guess)
{
	enum { MOST = 512 };
	const struct lists_side *a = &l->s[0], *b = &l->s[1];
	guess = n > 1 && (guess || several_calls(a, x, n) || several_calls(b, y, n));
	for (uint32_t i = 0, k = 0; i < n && k < n;) {
		const uint32_t ni = run(x, i, n, true), nk = run(y, k, n, true);
		const bool first = x[i].print <= y[k].print, second = x[i].print >= y[k].print;
		if (first && second && ni == 1 && nk == 1 && x[i].print != 0)
			mate(l, x[i].at, y[k].at, ACC_HOW_CONTENT);
		i += first ? ni : 0;
		k += second ? nk : 0;
	}
	qsort(x, n, sizeof *x, cmp_order);
	qsort(y, n, sizeof *y, cmp_order);
	for (uint32_t i = 0; i < n && guess && n <= MOST; i++) {
		const uint32_t p = x[i].at,
			       q = a->p[p].mate != ACC_NOMATE ? ACC_NOMATE : nearest(b, y, n, a, p);
		if (q != ACC_NOMATE && nearest(a, x, n, b, q) == p)
			mate(l, p, q, ACC_HOW_CONTENT);
	}
	for (uint32_t i = 0, k = 0; i < n; i++) {
		if (a->p[x[i].at].mate != ACC_NOMATE)
			continue;
		while (b->p[y[k].at].mate != ACC_NOMATE)
			k++;
		mate(l, x[i].at, y[k].at, guess ? ACC_HOW_ORDER : ACC_HOW_OP);
	}
}

/* All of one operator: those of one shape, then the next. 1: some stand in another order than their mates, 0, < 0. */
static int
pair_kinds(struct lists *l, struct sorted *x, struct sorted *y, uint32_t n, bool guess)
{
	struct acc_ids last = {0};
	int rc = 0;
	qsort(x, n, sizeof *x, cmp);
	qsort(y, n, sizeof *y, cmp);
	for (uint32_t i = 0; i < n; i++)
		l->s[0].p[x[i].at].mate = l->s[1].p[y[i].at].mate = ACC_NOMATE;
	for (uint32_t i = 0, k; i < n; i += k)
		pair_kind(l, x + i, y + i, k = run(x, i, n, false), guess);
	qsort(x, n, sizeof *x, cmp_order);
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct lists_param *p = &l->s[0].p[x[i].at], *q = &l->s[1].p[p->mate];
		const uint64_t calls = acc_hash_pair(p->call, q->call);
		const uint32_t before = acc_ids_get(&last, calls);
		rc = before != ACC_NOID && before > q->at
			     ? 1
			     : acc_ids_put(&last, calls, q->at, true, l->e);
	}
	acc_ids_release(&last);
	return rc;
}

/* What is paired with it by its place: a parameter of the bench, or ACC_NOMATE. */
static uint32_t
opposite(const struct lists *l, const uint32_t *owner, uint32_t p)
{
	const struct acc_align_item *it = item_of(&l->s[0], p, 0);
	return it == NULL || it->mate == ACC_NOMATE ? ACC_NOMATE : owner[it->mate];
}

/* Is one paired with what its place contradicts? */
static bool
contradicted(const struct lists *l, const uint32_t *owner, const struct sorted *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct lists_param *p = &l->s[0].p[x[i].at];
		const uint32_t k = opposite(l, owner, x[i].at);
		if (k == ACC_NOMATE || l->s[1].p[k].shape != p->shape ||
			(p->how == ACC_HOW_CONTENT && k != p->mate))
			return true;
	}
	return false;
}

/* --- what was found, to items and calls --- */

static void
part_lists(struct lists *l, uint64_t base)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].nc; i++) {
			struct lists_call *c = &l->s[s].c[i];
			c->changed |= c->base == base;
			for (uint32_t k = 0; k < c->lists * c->n && c->base == base; k++) {
				const uint32_t item = c->item[k];
				const uint32_t other = item == ACC_NOMATE
							       ? item
							       : l->s[s].h->ix.item[item].mate;
				if (item != ACC_NOMATE)
					l->part(l->arg, s, item);
				if (other != ACC_NOMATE)
					l->part(l->arg, 1 - s, other);
			}
		}
}

static void
mate_lists(struct lists *l, const struct sorted *x, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct lists_param *p = &l->s[0].p[x[i].at], *q = &l->s[1].p[p->mate];
		const struct lists_call *a = &l->s[0].c[p->call], *b = &l->s[1].c[q->call];
		for (uint32_t k = 0; k < a->lists && k < b->lists; k++) {
			const uint32_t from = a->item[k * a->n + p->at],
				       to = b->item[k * b->n + q->at];
			if (from == ACC_NOMATE || to == ACC_NOMATE)
				continue;
			l->mate(l->arg, from, to, (enum acc_align_how)p->how);
		}
	}
}

/* All calls of one operator, if both sides have parameters of the same shapes. */
static int
pair_base(struct lists *l, const uint32_t *owner, struct sorted *x, uint32_t n, struct sorted *y,
	uint32_t m)
{
	const uint64_t base = x[0].base;
	for (uint32_t i = 0; i < n; i++)
		if (n != m || !one_kind(&x[i], &y[i]))
			return 0;
	int rc = pair_kinds(l, x, y, n, false);
	if (rc > 0)
		rc = pair_kinds(l, x, y, n, true);
	if (rc < 0 || !contradicted(l, owner, x, n))
		return rc < 0 ? rc : 0;
	part_lists(l, base);
	mate_lists(l, x, n);
	return 0;
}

static uint32_t
of_base(const struct sorted *v, uint32_t i, uint32_t n)
{
	uint32_t m = 1;
	while (i + m < n && v[i + m].base == v[i].base)
		m++;
	return m;
}

int
acc_lists_pair(struct lists *l)
{
	const struct lists_side *b = &l->s[1];
	const uint32_t n = l->s[0].np, m = b->np, nitem = b->h->ix.nitem;
	if (n == 0 || m == 0)
		return 0;
	struct sorted *x = malloc(((size_t)n + m) * sizeof *x), *y = x == NULL ? NULL : x + n;
	uint32_t *owner = malloc(((size_t)nitem + 1) * sizeof *owner);
	int rc = x == NULL || owner == NULL ? acc_nomem(l->e) : 0;
	if (rc == 0) {
		for (uint32_t i = 0; i < nitem; i++)
			owner[i] = ACC_NOMATE;
		for (uint32_t i = 0; i < m; i++) {
			const struct acc_align_item *it = item_of(b, i, 0);
			if (it != NULL)
				owner[it - b->h->ix.item] = i;
		}
		sort(&l->s[0], x);
		sort(b, y);
	}
	for (uint32_t i = 0, k = 0; rc == 0 && i < n && k < m;) {
		const uint32_t ni = of_base(x, i, n), nk = of_base(y, k, m);
		const bool first = x[i].base <= y[k].base, second = x[i].base >= y[k].base;
		if (first && second)
			rc = pair_base(l, owner, x + i, ni, y + k, nk);
		i += first ? ni : 0;
		k += second ? nk : 0;
	}
	free(owner);
	free(x);
	return rc;
}
