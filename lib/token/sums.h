/* sums.h - sums over all tokens of both sides */
#ifndef TOKEN_SUMS_H
#define TOKEN_SUMS_H

#include "acc/token.h"

enum { SIDE_A, SIDE_B, NSIDE };

/* Sums over all tokens, in the order in which they come. */
enum { TOK_POSITIONS = 1 << 16, TOK_VALUES = 64, TOK_BINS = 64, NSHIFT = 2, NSCALE = 6, NSEEN = 5 };
struct tok_cell {
	double n, s1, s2;
};
struct tok_all {
	double n, s1, s2, s3, sabs, sexp;
	double w, w2;                                /* of exp(l), exp(2 l) */
	double clipped, rho2;                        /* of chi2_token */
	double pa, pb, paa, pbb, pab, pd, pdd, pmax; /* probabilities */
	double a, b, aa, bb, ab;
	double bbb, bbbb, abb; /* for a fit in b and b^2 */
	double seq_w, seq_w2, seq_rho2, seq_n, ppl, dppl, dppl_abs, dppl_max, dppl_min;
	double ent[NSIDE], nent[NSIDE];
	/* What the named causes need. */
	double shift[NSHIFT], shift0[NSHIFT], nshift[NSHIFT]; /* b one later, one earlier */
	double scale[NSCALE], nscale[NSCALE];
	double da, db, dab, nd, dres; /* differences of first and second choice */
	double one, nones;            /* rollout's log-probability 0 where the trainer's is not */
	double most, least;           /* the largest and least l */
	double topless[NSIDE],
		ntop[NSIDE]; /* tokens whose choices' probabilities do not sum up to 1; and all */
	double bf16[NSIDE], fp16[NSIDE];
	double grid[NSIDE],
		ngrid[NSIDE];        /* differences of two choices that logits of bf16 would have */
	struct tok_cell seen[NSEEN]; /* by how often the id came before */
	struct tok_cell bin[TOK_BINS]; /* by the size of |l|, powers of 2 */
	uint32_t *both; /* by both log-probabilities, in steps of 1 / 4; NULL: not wanted */
	struct tok_cell *place, *end; /* by position in the response; in the whole */
	size_t nplace, nend;
	/* Of the masks: tokens that one alone has; samples where they differ, where one is the other one token
	 * later, where the one more is the last; tokens of prompts and padding that are counted. */
	uint64_t mask_more[NSIDE], mask_samples, mask_shift, mask_last, mask_prompt[NSIDE],
		counted[NSIDE];
	size_t mask_first;      /* the first such sample */
	uint64_t masked[NSIDE]; /* samples with a mask */
	uint64_t absent[NSIDE]; /* tokens without log-probability on that side alone */
	uint64_t nans[NSIDE], positive[NSIDE];
};

#endif
