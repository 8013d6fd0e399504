/* The angle between two tensors. 1 - cos is the number that says something: two tensors that
 * differ by 1e-6 have a cosine of 1 - 5e-13, which no rounding of a cosine keeps. */
#include "acc/metric.h"

#include <math.h>

/* 1 - cos. With the three sums known to some 1e-16, 1 - a.b / |a||b| loses all digits below
 * that; (sum d^2 - (|a| - |b|)^2) / (2 |a||b|) keeps them as long as d is small, and is wrong
 * where d is large (cancellation). |a| - |b| is (|a|^2 - |b|^2) / (|a| + |b|). */
static double
omc(const struct acc_two *t)
{
	if (t->aa.hi == 0 && t->bb.hi == 0)
		return 0;
	if (t->aa.hi == 0 || t->bb.hi == 0)
		return 1;
	/* The larger first, so that the sides exchanged give the same bits. */
	const bool first = !(acc_sum_root(&t->aa) < acc_sum_root(&t->bb));
	const struct acc_sum *x = first ? &t->aa : &t->bb, *y = first ? &t->bb : &t->aa;
	const struct acc_sum near = acc_sum_at(y, (int)x->exp), d = acc_sum_at(&t->dd, (int)x->exp);
	double na = sqrt(x->hi + x->lo), nb = sqrt(near.hi + near.lo), dd = d.hi + d.lo, v;
	if (dd < 0.01 * na * nb) {
		double diff = ((x->hi - near.hi) + (x->lo - near.lo)) / (na + nb);
		v = (dd - diff * diff) / na / nb / 2;
	} else {
		/* Norms of other sizes have a product, too. */
		nb = sqrt(y->hi + y->lo);
		v = 1 - ldexp((t->dot.hi + t->dot.lo) / na / nb,
				(int)(t->dot.exp - (x->exp + y->exp) / 2));
	}
	return v < 0 ? 0 : v > 2 ? 2 : v;
}

static struct acc_val
cosine(struct acc_subject *s)
{
	return acc_f64(1 - omc(&s->r->two));
}

static struct acc_val
one_minus_cosine(struct acc_subject *s)
{
	return acc_f64(omc(&s->r->two));
}

const struct acc_metric acc_metric_cosine = {
	.name = "m.cosine",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "cosine of the angle: sum a b / (|a| |b|); 1 if both are zero, 0 if one is",
	.value = cosine,
	.plain = true,
};
const struct acc_metric acc_metric_one_minus_cosine = {
	.name = "m.one_minus_cosine",
	.of = ACC_OF_PAIR,
	.unit = "",
	.help = "1 - cosine with all its digits: (sum d^2 - (|a| - |b|)^2) / (2 |a| |b|)",
	.value = one_minus_cosine,
	.plain = true,
};
