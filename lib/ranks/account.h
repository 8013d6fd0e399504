/* account.h - of whose gradients those are made that optimizers are given */
#ifndef ACC_RANKS_ACCOUNT_H
#define ACC_RANKS_ACCOUNT_H

#include "ranks/asked.h"
#include "ranks/fit.h"

struct acc_account { /* of the gradient of a weight, or of a part of it, in the first step */
	const struct acc_replica_seen *w,
		*d;             /* d: the same, or what it lies in, as an optimizer is given it */
	uint64_t in_w, in_d, n; /* from where on, and how many elements */
	uint32_t nrank;         /* that hold the weight, and make a gradient of it */
	int64_t rank[ACC_FIT_TERMS];
	const struct acc_replica_seen *of
		[ACC_FIT_TERMS]; /* the weight; or another one, that is given to the same op call there */
	double c[ACC_FIT_TERMS]; /* it is the sum of theirs, each times this number; */
	uint32_t copies
		[ACC_FIT_TERMS]; /* of those that so many ranks have alike, all of them together */
};

/* Fills t->account: of all weights of which it is known; and t->crossed. 0 or < 0. */
int acc_replicas_account(struct acc_replicas *t, struct acc_err *e);
/* Is it what an optimizer is given? Where there is none of torch, it is what a reduction makes, on its way there. */
bool acc_account_ends(const struct acc_replicas *t, const struct acc_account *a);
/* Is the gradient of this rank in it? */
bool acc_account_has(const struct acc_account *a, uint32_t i);
/* Those of how many ranks? */
uint32_t acc_account_ranks(const struct acc_account *a);
/* Is the gradient of another rank in what this one's optimizer is given for this weight, measured, in this step? */
bool acc_account_joins(const struct acc_replicas *t, int64_t step, const struct acc_replica_seen *w,
	int64_t rank);
/* The number that all have in common that are in it; NAN: they have none. */
double acc_account_factor(const struct acc_account *a);
/* The reduction that put it out, or what it is a number of times, alone or beside others, on the optimizer's rank; NULL:
 * none was recorded. 0 or < 0. */
int acc_account_reduction(struct acc_replicas *t, const struct acc_account *a,
	const struct acc_replica_seen **out, struct acc_err *e);
/* The record of what scaled it last by a number, else joined it, else made it, as far as its way is known; else the reduction
 * that put it out; else *line stays. 0 or < 0. */
int acc_account_line(struct acc_replicas *t, const struct acc_account *a, size_t *line,
	struct acc_err *e);

#endif
