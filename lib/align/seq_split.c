/* One call that cuts a tensor (chunk, split, unbind) against several that take a part of it each, as kernels that
 * slice: parts pair by their values, else in their order. */
#include "align/seq.h"

#include <stdlib.h>

enum { REACH = 64, SAME = 60 };

/* The two sides: of the whole, and of the parts. */
struct cut {
	struct seq *s;
	bool b; /* the whole is one of b */
	const struct acc_index *p, *q;
	const struct call *c, *d;
	const uint32_t *mate_c, *mate_d;
	uint32_t nc, nd;
};

/* The free tensors that a call gives; how many: 0 where they are more than there is room for, or not all are free. */
static uint32_t
outputs(const struct acc_index *ix, uint32_t op, uint32_t *out)
{
	const struct acc_align_call *o = &ix->op[op];
	uint32_t n = 0;
	for (uint32_t i = o->first; i < o->first + o->n; i++) {
		if (!ix->item[i].tensor || ix->item[i].io != ACC_IO_OUT)
			continue;
		if (n == SEQ_PARTS || !ix->item[i].has_shape || ix->item[i].mate != ACC_NOMATE)
			return 0;
		out[n++] = i;
	}
	return n;
}

static uint32_t
input(const struct acc_index *ix, uint32_t op)
{
	const struct acc_align_call *o = &ix->op[op];
	for (uint32_t i = o->first; i < o->first + o->n; i++)
		if (acc_seq_is_input(&ix->item[i]))
			return i;
	return ACC_NOMATE;
}

static int
points(const struct cut *k, uint32_t x, uint32_t y)
{
	const struct acc_align_item *p = &k->p->item[x], *q = &k->q->item[y];
	return p->count != q->count ? SEQ_NEVER
				    : acc_seq_value_points(p->like, q->like, p->liked & q->liked);
}

/* Do both take the same? */
static bool
same_source(const struct cut *k, const struct call *x, const struct call *y)
{
	const uint32_t i = input(k->p, x->op), j = input(k->q, y->op);
	if (i == ACC_NOMATE || j == ACC_NOMATE)
		return false;
	return points(k, i, j) >= SAME ||
	       (k->p->item[i].count == k->q->item[j].count &&
		       (k->b ? acc_seq_origin(k->s, y->from[0], x->from[0])
			     : acc_seq_origin(k->s, x->from[0], y->from[0])) == 1);
}

static void
join(const struct cut *k, uint32_t x, uint32_t y, uint32_t op)
{
	struct acc_joined *j = k->s->j;
	const uint32_t a = k->b ? y : x, b = k->b ? x : y;
	acc_mate_items(j, a, b);
	j->a->item[a].how = j->b->item[b].how = ACC_HOW_FUSED;
	struct acc_align_call *part = k->b ? &j->a->op[op] : &j->b->op[op];
	part->how = "fused";
	part->sure = 0.8;
}

/* The parts of whole x, among the free calls behind `from`: as many as x gives, each of one tensor. */
static uint32_t
parts_of(const struct cut *k, uint32_t x, uint32_t from, uint32_t n, const uint32_t *out,
	uint32_t *part)
{
	uint32_t found = 0, one[SEQ_PARTS];
	for (uint32_t y = from; y < k->nd && y < from + REACH; y++) {
		if (k->mate_d[y] != ACC_NOMATE || !k->d[y].moves || k->d[y].op == ACC_NOMATE ||
			outputs(k->q, k->d[y].op, one) != 1 ||
			k->q->item[one[0]].count != k->p->item[out[0]].count ||
			!same_source(k, &k->c[x], &k->d[y]))
			continue;
		if (found == n)
			return 0;
		part[found++] = y;
	}
	return found;
}

/* Is there one of the parts that has the values of one of the whole's? Of the same tensor other parts may be taken, as every
 * second element. */
static bool
are_same(const struct cut *k, uint32_t n, const uint32_t *out, const uint32_t *part)
{
	uint32_t one[SEQ_PARTS];
	for (uint32_t t = 0; t < n; t++)
		for (uint32_t u = 0; u < n; u++)
			if (outputs(k->q, k->d[part[u]].op, one) == 1 &&
				points(k, out[t], one[0]) >= SAME)
				return true;
	return false;
}

static void
cut(const struct cut *k, uint32_t x, uint32_t from)
{
	uint32_t out[SEQ_PARTS], part[SEQ_PARTS], one[SEQ_PARTS];
	const uint32_t n = outputs(k->p, k->c[x].op, out);
	if (n < 2 || parts_of(k, x, from, n, out, part) != n)
		return;
	struct acc_joined *j = k->s->j;
	const uint32_t in = input(k->p, k->c[x].op), given = input(k->q, k->d[part[0]].op);
	if (points(k, in, given) >= SAME && !are_same(k, n, out, part))
		return;
	acc_mate_ops(j, k->b ? k->d[part[0]].op : k->c[x].op, k->b ? k->c[x].op : k->d[part[0]].op,
		"fused", 0.8);
	if (k->p->item[in].mate == ACC_NOMATE && k->q->item[given].mate == ACC_NOMATE)
		join(k, in, given, k->d[part[0]].op);
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t t = 0; t < n; t++)
			for (uint32_t u = 0; u < n; u++) {
				if (outputs(k->q, k->d[part[u]].op, one) != 1 ||
					k->p->item[out[t]].mate != ACC_NOMATE ||
					(pass == 0 && points(k, out[t], one[0]) < SAME))
					continue;
				join(k, out[t], one[0], k->d[part[u]].op);
			}
}

void
acc_seq_split(struct seq *s)
{
	for (int b = 0; b < 2; b++) {
		struct acc_joined *j = s->j;
		const struct cut k = b ? (struct cut){s, true, j->b, j->a, s->b, s->a, s->mb, s->ma,
						 s->nb, s->na}
				       : (struct cut){s, false, j->a, j->b, s->a, s->b, s->ma,
						 s->mb, s->na, s->nb};
		uint32_t at = 0;
		for (uint32_t i = 0; i < k.nc; i++) {
			if (k.mate_c[i] != ACC_NOMATE)
				at = k.mate_c[i] + 1;
			else if (k.c[i].moves)
				cut(&k, i, at > REACH / 2 ? at - REACH / 2 : 0);
		}
	}
}
