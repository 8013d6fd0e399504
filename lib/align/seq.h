/* What the files of the way `sequence` share. */
#ifndef ALIGN_SEQ_H
#define ALIGN_SEQ_H

#include "align/impl.h"
#include "align/seq_call.h"

/* How two calls were found to belong together. */
enum seq_how {
	SEQ_SOURCE,
	SEQ_WEIGHTS,
	SEQ_ORDER,
	SEQ_LIKENESS,
	SEQ_RULE,
	SEQ_PACKED, /* see acc_seq_packed */
	SEQ_FUSED_A,
	SEQ_FUSED_B /* one call of this side against several of the other */
};

/* A call whose result is packed, and those that make the parts: op calls. */
enum { SEQ_PARTS = 8 };
struct seq_pack {
	bool b; /* the packed call is one of b */
	uint32_t op, part[SEQ_PARTS], n;
};

/* How alike two call sites are, in tenths of points, once they were compared: site x of a and y of b. */
struct seq_near {
	uint64_t both; /* x nsite + y, and 1 */
	int points;
};

struct seq {
	struct acc_joined *j;
	struct call *a, *b;
	uint32_t na, nb;
	uint32_t *ma, *mb; /* the mate of each call, or ACC_NOMATE */
	uint32_t npair;    /* pairs that were made, some of them twice */
	uint8_t *how;      /* of each call of a that has a mate */
	bool modules;      /* calls of modules, not of operators */
	bool flow;         /* the origin of inputs counts */
	bool values; /* operators of one framework against kernels of another: see seq_value.c */
	bool loose;  /* what comes out may have another shape */
	/* Another program computes the same: where in the source a call stands, or in which module, says
	 * nothing against a pair. */
	bool other_code, other_modules;
	struct seq_near *near; /* of two sites at x nsite + y, modulo nnear, a power of two */
	uint64_t nnear, nsite;
	struct acc_ids unshaped; /* lines of code, see acc_seq_numbered */
	struct seq_pack *pack;
	uint32_t npack;
	size_t pack_cap;
	struct acc_err *e;
};

/* Points are in tenths. Two calls of the same operator with the same shapes have 55 if nothing
 * else is known of them. */
enum {
	SEQ_NEVER = -1000,
	SEQ_GAP = -6,
	SEQ_ACCEPT = 10,
	SEQ_LOOSE = 20,
	SEQ_SURE = 55,
	SEQ_CERTAIN = 75
};

/* The number of a result of a call. */
enum { SEQ_OUTS = 16 };
static inline uint32_t
seq_out(uint32_t call, uint32_t which)
{
	return call * SEQ_OUTS + (which < SEQ_OUTS ? which : SEQ_OUTS - 1);
}

int acc_seq_calls(struct seq *s);
/* Are they of one family, or learned to be the same operator under two names? Both sides must say
 * so: what one fused operator ends in is not called as it is. */
bool acc_seq_kin(const struct call *x, const struct call *y);
/* How well two calls fit; with acc_seq_flow below. */
int acc_seq_points(const struct seq *s, uint32_t x, uint32_t y);
int acc_seq_score(const struct seq *s, uint32_t x, uint32_t y);
/* The part of it that their values have: -25 (far apart) to 20, 0 unknown. */
int acc_seq_value(const struct call *x, const struct call *y);

/* The same between frameworks: the points of two calls, and of what comes out of them. */
int acc_seq_value_score(const struct seq *s, uint32_t x, uint32_t y);
int acc_seq_value_points(const float *p, const float *q, int known);
/* Pair what has the same values, each nobody else's. */
int acc_seq_value_anchors(struct seq *s);
/* One call against several, where only the order and the operators tell; then which of the two is
 * the whole. */
void acc_seq_wholes(struct seq *s);
/* Then: the same operator, given the same, that reduces what it gives on one side alone. */
void acc_seq_unreduced(struct seq *s);
/* Pair what goes in and comes out of x, y, and of the parts of either. false: nothing but the
 * shapes speaks for this pair, which is none then. */
bool acc_seq_value_items(struct seq *s, uint32_t x, uint32_t y);

/* Of these, torch 2.15 makes several nodes of its graph, and what a hook on the call is given as its gradient is that of
 * the last node: of cross_entropy's log-softmax, not of its logits (tests/mindspore/inner.py). */
bool acc_seq_is_inner(const struct acc_align_call *op);
/* Then: what cuts a tensor into several, which the other side has of as many calls. */
void acc_seq_split(struct seq *s);
/* Then: gradients of the backward pass, each by its values, or by the pair of the forward calls; forward: the operators'
 * forward calls, by hash of name and number. 0 or < 0. */
int acc_seq_back(struct seq *s, const struct acc_ids *forward);

/* What the origin of their inputs says, by the pairs so far: -20 to 20. */
int acc_seq_flow(const struct seq *s, uint32_t x, uint32_t y);

/* Where two results come from, by the pairs so far: 1 the same place, -1 places that belong to
 * others, 0 unknown. */
int acc_seq_origin(const struct seq *s, uint32_t p, uint32_t q);
/* Is it a tensor that goes into a call? */
bool acc_seq_is_input(const struct acc_align_item *it);

/* Pair what is alike and as often on both sides. */
int acc_seq_anchors(struct seq *s);
/* Find the lines of code of which shapes are unknown, and pair their calls that have the same number and the
 * same values. */
int acc_seq_numbered(struct seq *s);
/* Is it a call of such a line? How many calls it has of one shape is not known then. */
bool acc_seq_is_uncounted(const struct seq *s, const struct acc_index *ix, const struct call *c);
/* Take out of free calls x[*n] of a and y[*m] of b those that acc_seq_score gives SEQ_NEVER with each of the
 * other side. before[i]: how many of them stand before the i-th that is left, counted from 1; before[0] is
 * 0; all: in all. before is the caller's to free, whatever comes back. 0 or ACC_ENOMEM. */
struct seq_hopeless {
	uint32_t *before, all;
};
int acc_seq_hope(const struct seq *s, uint32_t *x, uint32_t *n, uint32_t *y, uint32_t *m,
	struct seq_hopeless h[2]);
/* Align what is free between pairs that do not cross. */
int acc_seq_between(struct seq *s);
/* Names that only these pairs show to be the same. */
int acc_seq_learn(struct seq *s);
/* What is still free, in whatever order; and pairs that would be better crossed. */
int acc_seq_left(struct seq *s);
void acc_seq_steps(struct seq *s); /* at last: of optimizers, by their order */
int acc_seq_uncross(struct seq *s);
/* Give up pairs of which everything around says that they do not belong together. */
void acc_seq_reject(struct seq *s);
/* Does this call give back what it was given, in another place or shape? */
bool acc_seq_moves(const struct acc_index *ix, const struct call *c);
/* Of other code, what has the same values: see seq_same.c. */
int acc_seq_same(struct seq *s);
/* How far the numbers that two calls give are apart, for their size; INFINITY: one of them is not known. */
float acc_seq_apart(const struct call *x, const struct call *y);
/* Does a call take this number? Numbers are traced by what they are. */
bool acc_seq_takes_number(const struct acc_index *ix, const struct call *c, float number);
/* Of whatever code, what one call gives, or it and some behind it. */
void acc_seq_onward(struct seq *s);
/* Calls by the size of their results, so that one is found by its values. */
struct seq_open {
	uint64_t count;
	float rms;
	uint32_t call;
};
/* Can it be found so? Its values are known, and not all 0. */
bool acc_seq_findable(const struct call *c);
/* Put calls of a side into this order. */
void acc_seq_by_size(struct seq_open *v, uint32_t n);
/* Of n calls in this order, of those in `all`, the one whose values are most like those of c, of several the
 * first; ACC_NOMATE if none is within `least` points (acc_seq_value), or too many might be. */
uint32_t acc_seq_nearest(const struct call *c, const struct call *all, const struct seq_open *v,
	uint32_t n, int least);
/* And pairs of which neither what goes in nor what comes out is the same are none. */
void acc_seq_distrust(struct seq *s);
/* One call against several. */
int acc_seq_fused(struct seq *s);
/* Of such a pair, x and y: pair what goes into them and the parts, as far as it is the same. */
void acc_seq_fused_inputs(struct seq *s, uint32_t x, uint32_t y);

/* The backward call of a forward op call of a side (b: true), or ACC_NOMATE. */
typedef uint32_t acc_seq_back_fn(void *arg, bool b, uint32_t op);
/* Find calls that make at once what several make, among those that are free. */
int acc_seq_packed(struct seq *s);
/* Pair what goes in and comes out of them, and of their backward calls. */
int acc_seq_unpack(struct seq *s, acc_seq_back_fn *back, void *arg);

/* Pair the backward calls of what one side computes a second time: see seq_again.c. */
int acc_seq_again(struct seq *s, acc_seq_back_fn *back, void *arg);
/* Do the operands of two sums or products stand the other way round? And: pair them so that were paired by
 * their places, or what has become of them, such as gradients. */
bool acc_seq_swapped(const struct seq *s, uint32_t x, uint32_t y);
/* Are both differences, quotients or products of matrices, of which each operand has its place? */
bool acc_seq_ordered(const struct call *x, const struct call *y);
void acc_seq_swap_items(struct acc_joined *j, uint32_t a, uint32_t b, enum acc_io io);
/* Pair the items of two op calls by their places. */
int acc_seq_mate_items(struct acc_joined *j, uint32_t a, uint32_t b, struct acc_err *e);

static inline void
acc_seq_mate(struct seq *s, uint32_t x, uint32_t y, enum seq_how how)
{
	s->npair++;
	s->ma[x] = y;
	s->mb[y] = x;
	s->how[x] = (uint8_t)how;
}

#endif
