/* The backward pass of kernels against that of operators. Kernels of a backward pass are numbered on their own
 * (Gradients/Default/fc1-Dense/Grad_MatMul/MatMul-op1), and one of these gives one gradient, where an operator's backward
 * call gives all of its inputs'. So gradients pair, by their values, each nobody else's, or else by the pair that their
 * forward calls are: a kernel of the cell of that. */
#include "align/seq.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

/* A tensor that a backward call gives. */
struct grad {
	uint64_t count;
	float rms;
	uint32_t item, op;
	uint64_t
		cell; /* of a kernel, its own; of an operator, that of its forward call's pair; 0: unknown */
	uint32_t best; /* of the other side */
	int points, next;
};

ACC_ORDER_3(by_size, struct grad, count, rms, item)

struct grads {
	struct grad *v;
	uint32_t n;
};

/* The cell of the kernel that the forward call of an operator's backward one is a pair with. */
static uint64_t
cell_of(const struct seq *s, const struct acc_align_call *back, const struct acc_ids *forward)
{
	const bool kernels_b = s->j->b->kernels;
	const uint32_t f = acc_ids_get(forward, acc_hash_pair(back->op_text, (uint64_t)back->call)),
		       k = f == ACC_NOID ? ACC_NOMATE : (kernels_b ? s->ma : s->mb)[f];
	return k == ACC_NOMATE ? 0 : (kernels_b ? s->b : s->a)[k].scope;
}

/* Those of a side that have no mate, and are more than one number. */
static int
list(const struct seq *s, bool b, bool kernels, const struct acc_ids *forward, struct grads *out)
{
	const struct acc_joined *j = s->j;
	const struct acc_index *ix = b ? j->b : j->a;
	const uint32_t *op = b ? j->bop : j->aop, n = b ? j->nb : j->na;
	uint32_t most = 0;
	for (uint32_t i = 0; i < n; i++)
		most += ix->op[op[i]].pass == ACC_PASS_BACKWARD ? ix->op[op[i]].n : 0;
	out->v = malloc((most + (size_t)1) * sizeof *out->v);
	if (out->v == NULL)
		return acc_nomem(s->e);
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *c = &ix->op[op[i]];
		if (c->pass != ACC_PASS_BACKWARD || c->module || acc_seq_is_inner(c))
			continue;
		for (uint32_t k = c->first; k < c->first + c->n; k++) {
			const struct acc_align_item *it = &ix->item[k];
			if (!it->tensor || !it->has_shape || it->io != ACC_IO_OUT ||
				it->mate != ACC_NOMATE || it->count < 2 ||
				(it->liked & 1 << ACC_LIKE_RMS) == 0 ||
				!(it->like[ACC_LIKE_RMS] > 0))
				continue;
			out->v[out->n++] = (struct grad){it->count, it->like[ACC_LIKE_RMS], k,
				op[i], kernels ? c->scope : cell_of(s, c, forward), ACC_NOMATE,
				SEQ_NEVER, SEQ_NEVER};
		}
	}
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_size);
	return 0;
}

/* What hands a gradient on has the very same. */
static bool
is_same(const struct acc_index *ix, const struct grad *x, const struct grad *y)
{
	return x != y && ix->item[x->item].print != 0 &&
	       ix->item[x->item].print == ix->item[y->item].print;
}

static void
candidate(const struct acc_index *ix, struct grads *q, struct grad *x, uint32_t k, int points)
{
	if (x->best != ACC_NOMATE && is_same(ix, &q->v[x->best], &q->v[k])) {
		/* The first of them made it. */
		if (q->v[k].item < q->v[x->best].item && points >= x->points)
			x->best = k;
		return;
	}
	if (points > x->points) {
		x->next = x->points;
		x->points = points;
		x->best = k;
	} else if (points > x->next) {
		x->next = points;
	}
}

/* Those of the same cell before others. */
static int
likeness(const struct seq *s, const struct grad *x, const struct grad *y)
{
	const struct acc_align_item *p = &s->j->a->item[x->item], *q = &s->j->b->item[y->item];
	const int points = acc_seq_value_points(p->like, q->like, p->liked & q->liked);
	return points + (x->cell != 0 && x->cell == y->cell ? 15 : 0) +
	       (p->dims == q->dims ? 5 : 0);
}

enum { NEAR = 45, MARGIN = 10, MOST = 64 };

static void
by_value(struct seq *s, struct grads *p, struct grads *q)
{
	static const float near_size = 1.02F;
	for (uint32_t i = 0, lo = 0; i < p->n; i++) {
		const struct grad *x = &p->v[i];
		while (lo < q->n &&
			(q->v[lo].count < x->count ||
				(q->v[lo].count == x->count && q->v[lo].rms * near_size < x->rms)))
			lo++;
		for (uint32_t k = lo; k < q->n && k < lo + MOST && q->v[k].count == x->count &&
				      q->v[k].rms <= x->rms * near_size;
			k++) {
			const int points = likeness(s, &p->v[i], &q->v[k]);
			if (points < NEAR)
				continue;
			candidate(s->j->b, q, &p->v[i], k, points);
			candidate(s->j->a, p, &q->v[k], i, points);
		}
	}
}

/* The only one left of the other side that has as many elements, of the same cell; ACC_NOMATE: none, or several. */
static uint32_t
only_of_cell(const struct grads *q, const struct acc_index *ix, const struct grad *x)
{
	uint32_t found = ACC_NOMATE;
	for (uint32_t k = 0; k < q->n && x->cell != 0; k++) {
		if (q->v[k].count != x->count || q->v[k].cell != x->cell ||
			ix->item[q->v[k].item].mate != ACC_NOMATE)
			continue;
		if (found != ACC_NOMATE && !is_same(ix, &q->v[found], &q->v[k]))
			return ACC_NOMATE;
		found = found == ACC_NOMATE || q->v[k].item < q->v[found].item ? k : found;
	}
	return found;
}

static void
join(struct seq *s, const struct grad *x, const struct grad *y, double sure)
{
	struct acc_align_call *a = &s->j->a->op[x->op], *b = &s->j->b->op[y->op];
	if (a->mate == ACC_NOMATE && b->mate == ACC_NOMATE) {
		acc_mate_ops(s->j, x->op, y->op, "fused", sure);
	} else if (a->mate == ACC_NOMATE) { /* another kernel of the same whole */
		a->how = "fused";
		a->sure = sure;
	} else if (b->mate == ACC_NOMATE) {
		b->how = "fused";
		b->sure = sure;
	}
	acc_mate_items(s->j, x->item, y->item);
}

int
acc_seq_back(struct seq *s, const struct acc_ids *forward)
{
	const bool kernels_b = s->j->b->kernels;
	struct grads p = {0}, q = {0};
	int rc = list(s, false, !kernels_b, forward, &p);
	if (rc == 0)
		rc = list(s, true, kernels_b, forward, &q);
	if (rc == 0 && p.n > 0 && q.n > 0)
		by_value(s, &p, &q);
	for (uint32_t i = 0; i < p.n && rc == 0; i++) {
		const struct grad *x = &p.v[i];
		const struct grad *y = x->best == ACC_NOMATE ? NULL : &q.v[x->best];
		if (y != NULL && y->best == i && x->points - x->next >= MARGIN &&
			y->points - y->next >= MARGIN)
			join(s, x, y, x->cell != 0 && x->cell == y->cell ? 1 : 0.8);
	}
	for (uint32_t i = 0; i < p.n && rc == 0; i++) {
		const struct grad *x = &p.v[i];
		const uint32_t k = s->j->a->item[x->item].mate != ACC_NOMATE
					   ? ACC_NOMATE
					   : only_of_cell(&q, s->j->b, x);
		if (k != ACC_NOMATE && only_of_cell(&p, s->j->a, &q.v[k]) == i)
			join(s, x, &q.v[k], 0.5);
	}
	free(p.v);
	free(q.v);
	return rc;
}
