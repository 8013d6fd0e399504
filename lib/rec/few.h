/* few.h - the first elements of a tensor, and those of the largest magnitude */
#ifndef REC_FEW_H
#define REC_FEW_H

#include "acc/record.h"
#include "acc/tensor.h"

enum { FEW = 8 };

struct few {
	uint64_t seen; /* elements so far */
	uint32_t nworst;
	double first[FEW];
	double worst[FEW]; /* the largest first; NaN before infinities before all others */
	uint64_t at[FEW];  /* where these are, row-major */
};

/* The next n elements; scratch has room for n doubles. Zero it for each tensor. */
void acc_few_take(struct few *f, enum acc_dtype dtype, const void *p, size_t n, double *scratch);
/* stat.first, stat.worst and stat.worst.at. 0 or ACC_ENOMEM. */
int acc_few_put(const struct few *f, struct acc_rec *r);

#endif
