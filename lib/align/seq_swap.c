/* A sum and a product are the same whichever operand stands first: those of two programs may stand the
 * other way round. */
#include "align/seq.h"

static bool
both_of(const char *const *names, size_t n, const struct call *x, const struct call *y)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t family = acc_hash(names[i], strlen(names[i]));
		if (x->family == family && y->family == family)
			return true;
	}
	return false;
}

static bool
commutes(const struct call *x, const struct call *y)
{
	static const char *const names[] = {"add", "mul"};
	return both_of(names, sizeof names / sizeof *names, x, y);
}

bool
acc_seq_ordered(const struct call *x, const struct call *y)
{
	static const char *const names[] = {"sub", "div", "matmul"};
	return both_of(names, sizeof names / sizeof *names, x, y);
}

/* The two tensors of an op call that stand there; false: it has more, or fewer. */
static bool
two_of(const struct acc_index *ix, uint32_t op, enum acc_io io, struct acc_align_item *out[2])
{
	const struct acc_align_call *k = &ix->op[op];
	int n = 0;
	for (struct acc_align_item *it = &ix->item[k->first]; it < &ix->item[k->first + k->n]; it++)
		if (it->has_shape && it->io == io) {
			if (n == 2)
				return false;
			out[n++] = it;
		}
	return n == 2;
}

/* How well two operands fit: by where they come from, by their values, and by their sizes. */
static int
fit(const struct seq *s, const struct acc_align_item *p, const struct acc_align_item *q,
	uint32_t made_p, uint32_t made_q)
{
	if (p->count != q->count)
		return -100;
	const int value = acc_seq_value_points(p->like, q->like, p->liked & q->liked);
	return 60 * acc_seq_origin(s, made_p, made_q) + value +
	       (p->print != 0 && p->print == q->print ? 60 : 0);
}

bool
acc_seq_swapped(const struct seq *s, uint32_t x, uint32_t y)
{
	enum { ENOUGH = 60 };
	struct acc_align_item *p[2], *q[2];
	const struct call *a = &s->a[x], *b = &s->b[y];
	if (!commutes(a, b) || !two_of(s->j->a, a->op, ACC_IO_IN, p) ||
		!two_of(s->j->b, b->op, ACC_IO_IN, q))
		return false;
	const int straight = fit(s, p[0], q[0], a->from[0], b->from[0]) +
			     fit(s, p[1], q[1], a->from[1], b->from[1]);
	const int crossed = fit(s, p[0], q[1], a->from[0], b->from[1]) +
			    fit(s, p[1], q[0], a->from[1], b->from[0]);
	return crossed >= straight + ENOUGH;
}

void
acc_seq_swap_items(struct acc_joined *j, uint32_t a, uint32_t b, enum acc_io io)
{
	struct acc_align_item *p[2], *q[2];
	if (!two_of(j->a, a, io, p) || !two_of(j->b, b, io, q) ||
		p[0]->mate != (uint32_t)(q[0] - j->b->item) ||
		p[1]->mate != (uint32_t)(q[1] - j->b->item))
		return;
	for (int i = 0; i < 2; i++)
		acc_mate_items(j, (uint32_t)(p[i] - j->a->item), (uint32_t)(q[!i] - j->b->item));
}
