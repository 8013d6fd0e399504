/* cut.h - large calls in parts */
#ifndef ACC_REPLAY_CUT_H
#define ACC_REPLAY_CUT_H

#include "replay/impl.h"

/* A tensor of the call, and the run of it that a part sees. */
struct acc_piece {
	struct acc_held *from, *to;
	int64_t step
		[ACC_DENSE_DIMS]; /* elements from one index of an output's dimension to the next */
	int64_t shape[ACC_DENSE_DIMS]; /* its own, as parts have it before dimension `dim` */
	uint32_t skip;                 /* how many of the output's dimensions it lacks in front */
	bool whole;
	bool point;   /* a gradient that is told element by element */
	size_t at, n; /* what room holds */
	double *room;
	size_t cap;
};

struct acc_cutter {
	struct acc_audit_job *j, part;
	struct acc_trial t; /* of the whole */
	const struct acc_op *op;
	struct acc_cut cut;
	struct acc_str mode;
	const struct acc_dense *out; /* the first output */
	struct acc_piece *list;
	size_t n, cap;
	uint32_t dim;        /* along which it is cut, one index of each before it at a time */
	int64_t range;       /* how many indices of dim are a part */
	size_t parts, along; /* all; those of one set of indices before dim */
};

/* Copy the arguments for parts, and find how to cut them (cut_plan.c). false: it cannot be cut. */
bool acc_cut_plan(struct acc_cutter *c);
/* The k-th gradient of a backward call; NULL: there is none. Do several parts see it? */
struct acc_piece *acc_cut_gradient(const struct acc_cutter *c, uint32_t k);
bool acc_cut_shared(const struct acc_cutter *c, const struct acc_piece *p);

/* Test a call whose tensors are open in parts. false: it cannot be cut, and nothing was done. */
bool acc_audit_job_cut(struct acc_audit_job *j, const struct acc_op *op);

#endif
