/* Which of the suspects is named. */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"
#include "judge/order.h"

/* The rms of a gradient of which only some elements or rows went another way at a kink, where what came
 * there is off by e: a share of 0.8 e; by chance, of few, as many more as Poisson's law gives. Half of
 * the gradients there are may be none. */
static double
flipped(const struct scan *s, const struct acc_call *k, const struct acc_item *it, double cause)
{
	const double e = it->measure == ACC_BY_STAT ? acc_stat_element(s, cause, acc_item_unit(it))
						    : cause;
	const double rows = k->response == ACC_OP_KINK_ROWS ? fmax(1, it->row) : 1;
	const double n = fmax(1, (double)it->count / rows), usual = 0.8 * e * n;
	const double most = usual + 3 * sqrt(usual) + LIMIT_KINK_FEW;
	return fmax(LIMIT_KINK * sqrt(e), sqrt(2 * most / n));
}

/* How far beyond its limit a suspect must be before it is named. What its own inputs do not give is
 * wrong, whatever the limits; they are of what is usual, and what stands just beyond them where
 * nothing was recomputed is as often noise as not. */
static double
gate(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	/* What one side alone calls was not compared, and may have made it as well as not. */
	const bool compared = x->blame == x->call || s->c->call[x->blame].key[ACC_B] != NULL;
	bool made = (x->producer != ACC_NOCALL && compared) || it->weight || x->sum != NULL;
	if (x->audit || x->role == ROLE_ARG || it->exact || it->measure == ACC_BY_SUM ||
		(it->permuted && it->rms >= 1))
		return 0;
	const struct acc_call *k = &s->c->call[x->call];
	/* What follows of kinks, a slope's limit has in it. */
	if (x->slope || x->own)
		return LIMIT_NAMED;
	if (x->role == ROLE_OUT && acc_passes_kink(k) && it->rms <= flipped(s, k, it, x->cause))
		return INFINITY;
	/* Statistics do not show which elements of an incoming gradient are there or not. */
	if (x->role == ROLE_OUT && it->measure == ACC_BY_STAT && k->backward &&
		it->rms <= LIMIT_KINK * x->flips)
		return INFINITY;
	if (x->role == ROLE_OUT && it->audit[ACC_A] > 1)
		return LIMIT_NAMED_BOTH;
	if (x->role == ROLE_IN && (!made || it->measure == ACC_BY_STAT) && !it->weight)
		return LIMIT_NAMED_INPUT;
	return LIMIT_NAMED;
}

/* The path of a module that was recorded by hand, behind the number of the call: 00005-blocks.0.attn. */
static struct acc_str
path_of(const struct acc_call *k)
{
	struct acc_str s = acc_str(acc_call_name(k));
	uint32_t n = 0;
	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	return n > 0 && n + 1 < s.n && strchr("-._", s.p[n]) != NULL
		       ? (struct acc_str){s.p + n + 1, s.n - n - 1}
		       : s;
}

/* A hook fires behind those of the modules within: what went into the whole, and nobody made, was there before what went
 * into them. */
static uint32_t
enclosing(struct scan *s, uint32_t best, double enough)
{
	const struct suspect *x = &s->suspect[best];
	uint32_t found = best;
	if (x->role != ROLE_IN || x->producer != ACC_NOCALL || s->c->item[x->item].weight)
		return best;
	const struct acc_str within = path_of(&s->c->call[x->call]);
	for (uint32_t i = best + 1; i < s->nsuspect; i++) {
		const struct suspect *y = &s->suspect[i];
		const struct acc_str path = path_of(&s->c->call[y->call]);
		if (y->role == ROLE_IN && y->producer == ACC_NOCALL && !y->guess && !y->doubted &&
			y->margin >= enough && path.n > 0 && path.n < within.n &&
			memcmp(path.p, within.p, path.n) == 0 && within.p[path.n] == '.')
			found = i;
	}
	/* What was wrong within it is no excuse. */
	struct suspect *y = &s->suspect[found];
	if (found != best && y->limit > x->limit) {
		y->limit = x->limit;
		y->margin = y->value / y->limit;
	}
	return found;
}

/* The earliest suspect that stands out, and by enough to be named if that is asked for, in the order
 * of steps and of communication. Inputs were found before arguments and outputs, as they stand.
 * Where something is plainly wrong, what may be arithmetic of another kind is not it. */
uint32_t
acc_choose(struct scan *s, bool name)
{
	double largest = 0, plain = 0;
	s->nfirst = 0;
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		if (s->suspect[i].guess || s->suspect[i].doubted)
			continue;
		largest = fmax(largest, s->suspect[i].margin);
		plain = fmax(plain, s->suspect[i].weak ? 0 : s->suspect[i].margin);
	}
	double enough = fmin(LIMIT_NAMED, LIMIT_NAMED_SHARE * largest);
	uint32_t best = ACC_NOCALL, segment = UINT32_MAX;
	/* Where nothing says what ran first, an input that is bad says only that something else is. */
	bool makes = false;
	for (uint32_t i = 0; i < s->nsuspect && s->c->by_names; i++)
		makes |= s->suspect[i].margin >= enough && s->suspect[i].role == ROLE_OUT;
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		struct suspect *x = &s->suspect[i];
		x->first = false;
		if (x->guess || x->doubted || (makes && x->role == ROLE_IN) ||
			x->margin < (name ? fmax(enough, gate(s, x)) : enough) ||
			(plain >= LIMIT_PLAIN && x->weak) || s->c->call[x->call].segment == segment)
			continue;
		segment = s->c->call[x->call].segment;
		s->first[s->nfirst++] = x->call;
		x->first = true;
		if (best == ACC_NOCALL ||
			acc_before(s->ranks, s->c, x->call, s->suspect[best].call))
			best = i;
	}
	/* An argument explains what comes out of its call. */
	for (uint32_t i = best; best != ACC_NOCALL && i < s->nsuspect; i++)
		if (!s->suspect[i].guess && !s->suspect[i].doubted &&
			s->suspect[i].call == s->suspect[best].call &&
			s->suspect[i].role == ROLE_ARG && s->suspect[best].role == ROLE_OUT)
			return i;
	return best == ACC_NOCALL ? best : enclosing(s, best, enough);
}
