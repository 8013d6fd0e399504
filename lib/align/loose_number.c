/* Tensors whose names are one word and a number, grad_0 and so on: gradients and norms as scripts save them, in the order in which
 * their program numbers its parameters. Where shapes or contents contradict the numbers, these are no names: the same content
 * belongs together, then what is nearest to each other of one shape. */
#include "align/loose.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* Are all names of the side that word and a number? Their hash, or 0. */
static uint64_t
one_word(struct loosely *l, int side, struct acc_buf *buf)
{
	const struct loose_side *s = &l->s[side];
	uint64_t all = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		struct loose_index at;
		const struct acc_str t = acc_loose_template(l, buf, s->v[i].path, &at);
		const uint64_t h = acc_hash(t.p, t.n) | 1;
		if (at.n != 1 || (all != 0 && all != h) || !s->h->ix.item[s->v[i].item].tensor)
			return 0;
		all = h;
	}
	return s->n > 1 ? all : 0;
}

static uint64_t
dims(const struct loosely *l, int side, uint32_t i)
{
	const struct acc_align_item *it = &l->s[side].h->ix.item[l->s[side].v[i].item];
	return it->has_shape ? it->dims : 0;
}

/* How far the statistics are apart: of each the difference as a share of what it is measured by. */
static double
distance(const struct loose *x, const struct loose *y)
{
	const double most = fmax(fmax(fabs(x->max), fabs(x->min)),
			     fmax(fabs(y->max), fabs(y->min))),
		     norm = sqrt(fmax(x->square, y->square));
	if (!x->measured || !y->measured)
		return INFINITY;
	if (norm == 0 || most == 0)
		return 0;
	return (fabs(x->max - y->max) + fabs(x->min - y->min)) / most +
	       fabs(sqrt(x->square) - sqrt(y->square)) / norm +
	       fabs(x->sum - y->sum) / (norm * sqrt((double)x->count));
}

/* Is there another of the other side that has the content of x? */
static bool
elsewhere(const struct loosely *l, uint32_t i)
{
	for (uint32_t k = 0; k < l->s[1].n; k++)
		if (dims(l, 0, i) == dims(l, 1, k) && acc_loose_close(&l->s[0].v[i], &l->s[1].v[k]))
			return true;
	return false;
}

/* A namesake of another shape, or that has not the content that another has. */
static bool
contradicted(const struct loosely *l, const uint32_t *place)
{
	for (uint32_t i = 0; i < l->s[0].n; i++) {
		const struct loose *x = &l->s[0].v[i];
		const uint32_t mate = l->s[0].h->ix.item[x->item].mate,
			       k = mate == ACC_NOMATE ? ACC_NOMATE : place[mate];
		if (k == ACC_NOMATE)
			continue;
		if (dims(l, 0, i) != dims(l, 1, k) ||
			(!acc_loose_close(x, &l->s[1].v[k]) && elsewhere(l, i)))
			return true;
	}
	return false;
}

static void
part(struct loosely *l)
{
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; i < l->s[s].n; i++) {
			struct acc_index *ix = &l->s[s].h->ix;
			ix->item[l->s[s].v[i].item].mate = ACC_NOMATE;
			ix->op[l->s[s].v[i].op].mate = ACC_NOMATE;
		}
}

struct near {
	double d;
	uint32_t i, k;
};

ACC_ORDER_3(cmp_near, struct near, d, i, k)

/* The nearest first; a choice that was none but for the order is said to be that. */
static int
pair_nearest(struct loosely *l)
{
	struct near *v = NULL;
	size_t n = 0, cap = 0;
	for (uint32_t i = 0; i < l->s[0].n; i++)
		for (uint32_t k = 0; k < l->s[1].n; k++) {
			if (dims(l, 0, i) != dims(l, 1, k))
				continue;
			struct near *p = acc_grow(v, &cap, n + 1, sizeof *p, l->e);
			if (p == NULL) {
				free(v);
				return ACC_ENOMEM;
			}
			v = p;
			v[n++] = (struct near){distance(&l->s[0].v[i], &l->s[1].v[k]), i, k};
		}
	if (n > 0)
		qsort(v, n, sizeof *v, cmp_near);
	for (size_t i = 0; i < n; i++) {
		const struct loose *x = &l->s[0].v[v[i].i], *y = &l->s[1].v[v[i].k];
		if (l->j->a->item[x->item].mate != ACC_NOMATE ||
			l->j->b->item[y->item].mate != ACC_NOMATE)
			continue;
		bool choice = false;
		for (size_t k = i + 1; k < n && !choice; k++)
			choice = (v[k].i == v[i].i) != (v[k].k == v[i].k) && v[k].d <= 2 * v[i].d &&
				 l->j->a->item[l->s[0].v[v[k].i].item].mate == ACC_NOMATE &&
				 l->j->b->item[l->s[1].v[v[k].k].item].mate == ACC_NOMATE;
		acc_loose_mate(l, x, y, choice ? ACC_HOW_ORDER : ACC_HOW_CONTENT);
	}
	free(v);
	return 0;
}

/* Has none a mate? So it is with 3 of two lists, before which stand the names of their files. */
static bool
is_unpaired(const struct loosely *l)
{
	for (uint32_t i = 0; i < l->s[0].n; i++)
		if (l->s[0].h->ix.item[l->s[0].v[i].item].mate != ACC_NOMATE)
			return false;
	return true;
}

/* The same number. */
static int
by_number(struct loosely *l, struct acc_buf *buf)
{
	struct acc_ids numbers = {0};
	int rc = 0;
	for (int s = 1; s >= 0; s--)
		for (uint32_t i = 0; i < l->s[s].n && rc == 0; i++) {
			struct loose_index at;
			acc_loose_template(l, buf, l->s[s].v[i].path, &at);
			const uint32_t k = acc_ids_get(&numbers, (uint64_t)at.v[0]);
			if (s == 1)
				rc = acc_ids_put(&numbers, (uint64_t)at.v[0], i, false, l->e);
			else if (k != ACC_NOID)
				acc_mate_items(l->j, l->s[0].v[i].item, l->s[1].v[k].item);
		}
	acc_ids_release(&numbers);
	return rc;
}

int
acc_loose_numbers(struct loosely *l)
{
	struct acc_buf buf = {0};
	const uint64_t a = one_word(l, ACC_A, &buf), b = a == 0 ? 0 : one_word(l, ACC_B, &buf);
	const bool lists = a != 0 && a == b && is_unpaired(l);
	const int rc = lists ? by_number(l, &buf) : 0;
	acc_buf_release(&buf);
	if (rc < 0 || a == 0 || a != b)
		return rc;
	uint32_t *place = malloc((size_t)l->s[1].h->ix.nitem * sizeof *place);
	if (place == NULL)
		return acc_nomem(l->e);
	for (uint32_t i = 0; i < l->s[1].h->ix.nitem; i++)
		place[i] = ACC_NOMATE;
	for (uint32_t k = 0; k < l->s[1].n; k++)
		place[l->s[1].v[k].item] = k;
	const bool wrong = contradicted(l, place);
	free(place);
	if (wrong || lists)
		part(l);
	if (!wrong)
		return 0;
	const int done = pair_nearest(l);
	return done < 0 ? done : 1;
}
