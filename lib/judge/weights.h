/* What the files that judge weights share. */
#ifndef JUDGE_WEIGHTS_H
#define JUDGE_WEIGHTS_H

#include "judge/case.h"

/* Pairs whose values agree, and whose layout does not fit that of the others. */
/* In which order nearly all matrices are whose shapes tell. */
enum acc_usual { ACC_USUAL_NONE, ACC_USUAL_STRAIGHT, ACC_USUAL_TURNED };

struct acc_odd {
	enum acc_usual usual;
	bool megatron; /* a source is Megatron's */
	struct acc_laid *v;
	uint32_t n;
	size_t cap;
	bool found;
	struct acc_ids
		other; /* names of those whose values do not agree: what they are parts of is no less */
	struct acc_ids
		llama_cpp; /* sources that are llama.cpp's, of an architecture: enum acc_llama_cpp */
};

/* Before all others: what sources say. 0 or < 0. */
int acc_odd_sources(struct acc_odd *o, struct acc_case *c, struct acc_err *e);

/* A pair with the same values. 0 or < 0. */
int acc_odd_add(struct acc_odd *o, const struct acc_case *c, uint32_t item, const struct acc_rec *r,
	struct acc_err *e);
/* A pair whose values do not agree. 0 or < 0. */
int acc_odd_other(struct acc_odd *o, const struct acc_rec *r, struct acc_err *e);
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

/* Some of the tensors: how many, and the first. */
struct acc_some {
	uint64_t n;
	uint32_t first;
};

enum { ACC_NRANKED = 8 };

/* Columns that were multiplied, and nothing makes up for it; or were not, and something does. */
enum acc_scaled_how { ACC_SCALED_ALONE, ACC_UNSCALED };

struct acc_weights {
	struct acc_case *c;
	bool unseen; /* some are not compared, and statistics say nothing of them */
	struct acc_some same, cast, quantized, merged, near, inside, other, apart,
		unknown; /* each pair is one of these */
	struct acc_some only[2], renamed, guessed, laid, dtype;
	struct acc_some moments;    /* of an optimizer, of the other dtype */
	bool still;                 /* one that is not zero is the same on both sides */
	struct acc_some emptied;    /* of the quantized ones: little is left of it */
	struct acc_some scaled;     /* columns that were multiplied, and what makes up for it */
	struct acc_ids folded;      /* items that are */
	struct acc_ids columns;     /* items that are wrong in it: enum acc_scaled_how */
	const char *fold_of, *fold; /* the first of them, and into what it is folded */
	struct acc_odd odd;
	struct acc_copies copies;
	uint64_t turned, straight;   /* square ones of other order; not square ones of the same */
	uint64_t convention;         /* not square ones of other order */
	uint32_t worst[ACC_NRANKED]; /* items, the worst first */
	uint32_t nworst;
};

void acc_some_add(struct acc_some *s, uint32_t i);
/* The names of a pair, and its layout; any may be NULL. Of what one side has alone, *a is its name. */
int acc_weights_name(struct acc_weights *t, uint32_t i, const char **a, const char **b,
	const char **layout, struct acc_err *e);

/* weights_cause.c: what a weight with other values holds, behind *text. 0 or < 0. */
int acc_weights_cause(struct acc_weights *t, uint32_t first, const char **text, struct acc_err *e);
/* Where the sources are, for those who read elements. 0 or < 0. */
int acc_weights_roots(struct acc_case *c, struct acc_err *e);
/* weights_from.c: from which index of an axis on arrays differ, behind *text. 0 or < 0. */
int acc_weights_from(struct acc_weights *t, const char **text, struct acc_err *e);
/* weights_scaled.c: before all others, which weights in few bits have multiplied columns that what comes before them
 * makes up for. 0 or < 0. */
int acc_weights_scaled(struct acc_weights *t, struct acc_err *e);
int acc_weights_say_scaled(struct acc_weights *t, struct acc_err *e);
/* By how many steps one side's optimizer is further, in all weights, behind *text. 0 or < 0. */
int acc_weights_step(struct acc_weights *t, const char **text, struct acc_err *e);
/* weights_adapter.c: is one side a weight with an adapter, and is the other so but for another factor? Behind *text.
 * 1; 0; < 0. */
int acc_weights_adapter(struct acc_weights *t, const struct acc_rec *r, const char **text,
	struct acc_err *e);
/* weights_lost.c: findings of what one side lacks, by no name and no content; and of what a checkpoint lacks that
 * is otherwise whole. */
int acc_weights_strangers(struct acc_weights *t, struct acc_err *e);
int acc_weights_lost(struct acc_weights *t, struct acc_err *e);
/* weights_settings.c: the optimizer's. */
int acc_weights_settings(struct acc_weights *t, struct acc_err *e);

#endif
