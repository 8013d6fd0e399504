/* What the files that judge weights share. */
#ifndef JUDGE_WEIGHTS_H
#define JUDGE_WEIGHTS_H

#include "judge/case.h"

/* Pairs whose values agree, and whose layout does not fit that of the others. */
struct acc_odd {
	struct acc_laid *v;
	uint32_t n;
	size_t cap;
	bool found;
};

/* A pair with the same values. 0 or < 0. */
int acc_odd_add(struct acc_odd *o, const struct acc_case *c, uint32_t item, const struct acc_rec *r,
	struct acc_err *e);
/* After all: which of them are wrong; marks them. */
int acc_odd_find(struct acc_odd *o, struct acc_case *c, struct acc_err *e);
/* The findings. */
int acc_odd_say(struct acc_odd *o, struct acc_case *c, struct acc_err *e);
void acc_odd_release(struct acc_odd *o);

/* weights_ranks.c: weights that accfold has put together. */
/* Copies of a weight that are not the same on all ranks: of each side how many, and the first. */
struct acc_copies {
	uint64_t n[2];
	const char *name[2], *text[2]; /* text: which ranks */
	int64_t rank[2];
	uint64_t last[2]; /* hash of the name that was counted last */
};
int acc_weights_copies(struct acc_copies *t, struct acc_case *c, uint32_t item, struct acc_err *e);
int acc_weights_say_copies(const struct acc_copies *t, struct acc_case *c, struct acc_err *e);
/* Of how many ranks the sides are put together, behind *text. */
int acc_weights_mesh(struct acc_case *c, const char **text, struct acc_err *e);
/* Whose part of this pair is off, behind *text; and *rank of the device, if it is known. */
int acc_weights_rank(struct acc_case *c, uint32_t item, int64_t *rank, const char **text,
	struct acc_err *e);

#endif
