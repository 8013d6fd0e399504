/* As ptdbg_ascend pairs: two queues of op calls. Each round takes one more from either side; the
 * first two that have the same names and the same structure pair, and everything before them is
 * given up. Its search of the whole queue is done here with a table from names to what waits. */
#include "align/impl.h"
#include "acc/tensor.h"

#include <stdlib.h>

/* The op calls of one side, by position in the group. */
struct queue {
	const struct acc_index *ix;
	const uint32_t *op;
	uint32_t n, begin, taken; /* [begin, taken) waits */
	struct acc_map first;     /* names to the first position that may wait, + 1; 0: none */
	uint32_t *next, *last;    /* the next position of the same names; of a first, the last */
};

static const struct acc_align_call *
at(const struct queue *q, uint32_t i)
{
	return &q->ix->op[q->op[i]];
}

static int
begin(struct queue *q, const struct acc_index *ix, const uint32_t *op, uint32_t n,
	struct acc_err *e)
{
	*q = (struct queue){.ix = ix, .op = op, .n = n};
	q->next = malloc(((size_t)n + 1) * sizeof *q->next);
	q->last = malloc(((size_t)n + 1) * sizeof *q->last);
	return q->next == NULL || q->last == NULL ? acc_nomem(e) : 0;
}

static void
end(struct queue *q)
{
	acc_map_release(&q->first);
	free(q->next);
	free(q->last);
}

static struct acc_str
names(const struct acc_align_call *op)
{
	return (struct acc_str){(const char *)&op->names, sizeof op->names};
}

/* The first position that waits under these names, or NOMATE. Forgets those given up. */
static uint32_t
waiting(const struct queue *q, const struct acc_align_call *op)
{
	uint64_t *first = acc_map_get(&q->first, names(op));
	while (first != NULL && *first != 0 && *first - 1 < q->begin) {
		uint32_t i = (uint32_t)*first - 1, next = q->next[i];
		if (next != ACC_NOMATE)
			q->last[next] = q->last[i];
		*first = next == ACC_NOMATE ? 0 : (uint64_t)next + 1;
	}
	return first == NULL || *first == 0 ? ACC_NOMATE : (uint32_t)*first - 1;
}

/* One more op call waits. */
static int
take(struct queue *q, struct acc_err *e)
{
	uint32_t i = q->taken++;
	uint32_t head = waiting(q, at(q, i));
	q->next[i] = ACC_NOMATE;
	if (head == ACC_NOMATE) {
		uint64_t *first = acc_map_put(&q->first, names(at(q, i)), 0);
		if (first == NULL)
			return acc_nomem(e);
		*first = (uint64_t)i + 1;
		q->last[i] = i;
	} else {
		q->next[q->last[head]] = i;
		q->last[head] = i;
	}
	return 0;
}

static bool
types_agree(const struct acc_align_item *x, const struct acc_align_item *y)
{
	bool half = x->num == ACC_F16 || y->num == ACC_F16;
	int8_t other = x->num == ACC_F16 ? y->num : x->num;
	return x->dtype == y->dtype || (half && (other == ACC_F32 || other == ACC_BF16));
}

/* The names are equal; is the structure? Where something differs, ptdbg also demands that
 * there are inputs and outputs. */
static bool
same_structure(const struct queue *a, uint32_t i, const struct queue *b, uint32_t k)
{
	const struct acc_align_call *x = at(a, i), *y = at(b, k);
	const struct acc_align_item *p = &a->ix->item[x->first], *q = &b->ix->item[y->first];
	bool equal = true;
	uint32_t in = 0;
	if (x->n != y->n)
		return false;
	for (uint32_t t = 0; t < x->n; t++) {
		equal = equal && p[t].dtype == q[t].dtype;
		in += p[t].io == ACC_IO_IN;
		if (p[t].shape != q[t].shape || !types_agree(&p[t], &q[t]))
			return false;
	}
	return equal || (in > 0 && in < x->n);
}

/* The first of q that fits op call i of p, or NOMATE. */
static uint32_t
search(const struct queue *p, uint32_t i, const struct queue *q)
{
	uint32_t k = waiting(q, at(p, i));
	while (k != ACC_NOMATE && !same_structure(p, i, q, k))
		k = q->next[k];
	return k;
}

static void
mate(struct acc_joined *j, uint32_t a, uint32_t b)
{
	const struct acc_align_call *x = &j->a->op[a], *y = &j->b->op[b];
	acc_mate_ops(j, a, b, "ptdbg", 1);
	for (uint32_t t = 0; t < x->n; t++)
		acc_mate_items(j, x->first + t, y->first + t);
}

static int
run(struct acc_joined *j, struct queue *a, struct queue *b, struct acc_err *e)
{
	while (a->taken < a->n || b->taken < b->n) {
		bool more_a = a->taken < a->n, more_b = b->taken < b->n;
		if ((more_a && take(a, e) < 0) || (more_b && take(b, e) < 0))
			return ACC_ENOMEM;
		uint32_t i = ACC_NOMATE, k = ACC_NOMATE;
		if (more_a)
			k = search(a, i = a->taken - 1, b);
		if (k == ACC_NOMATE && more_b)
			i = search(b, k = b->taken - 1, a);
		if (i == ACC_NOMATE || k == ACC_NOMATE)
			continue;
		mate(j, a->op[i], b->op[k]);
		a->begin = i + 1;
		b->begin = k + 1;
	}
	return 0;
}

static int
pair(struct acc_joined *j, struct acc_err *e)
{
	struct queue a = {0}, b = {0};
	int rc = begin(&a, j->a, j->aop, j->na, e);
	if (rc == 0)
		rc = begin(&b, j->b, j->bop, j->nb, e);
	if (rc == 0)
		rc = run(j, &a, &b, e);
	end(&a);
	end(&b);
	return rc;
}

const struct acc_aligner acc_aligner_ptdbg = {
	.name = "ptdbg",
	.help = "the next op call with the same names, shapes and data types",
	.pair = pair,
};
