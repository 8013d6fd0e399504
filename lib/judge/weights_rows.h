/* What a name says of the order of the rows behind it: each program has its own for the same weight. */
#ifndef JUDGE_WEIGHTS_ROWS_H
#define JUDGE_WEIGHTS_ROWS_H

#include "acc/base.h"

enum acc_rows {
	ACC_ROWS_ANY,    /* the name says nothing */
	ACC_ROWS_PLAIN,  /* as they are */
	ACC_ROWS_HALVES, /* of a head, the first of each rotary pair, then the second of each */
	ACC_ROWS_PAIRS,  /* of a head, rotary pairs side by side */
	ACC_ROWS_BLOCKS, /* q, k and v, or gate and up, one behind the other */
	ACC_ROWS_GROUPS  /* of each group of queries these, their key, their value */
};

/* A name of a dialect: its rows, and which part of a packed weight it is (q, k, v: 0, 1, 2; gate, up: 0, 1; -1:
 * none). */
struct acc_named_rows {
	const char *dialect; /* NULL: of none that is known */
	enum acc_rows rows;
	int part;
};
/* Of which rows a file of llama.cpp's has q and k, by its architecture. */
enum acc_llama_cpp { ACC_GGUF_NONE, ACC_GGUF_PAIRS, ACC_GGUF_HALVES };
enum acc_llama_cpp acc_llama_cpp_of(struct acc_str framework);
struct acc_named_rows acc_rows_of(struct acc_str name, enum acc_llama_cpp file);

/* m.layout, taken apart. */
struct acc_laid_out {
	char side; /* 'a' or 'b'; 0: as it is */
	uint32_t nview;
	int64_t view[8];
	uint32_t nparts; /* 2: of a part a part */
	int64_t axis, start, len;
	int64_t second; /* where the part of a part begins */
	uint32_t nperm;
	int64_t perm[8];
	bool grouped; /* by group() or ungroup() */
};
struct acc_laid_out acc_layout_parse(struct acc_str text);
/* The axis of the view that is the heads', of rotary pairs: 0; 1, where what is viewed is transposed. */
uint32_t acc_laid_head(const struct acc_laid_out *l);
/* Is it heads of q, k and v one behind the other, with the rows of each in another order? */
bool acc_laid_stacked(const struct acc_laid_out *l);

/* Of two tensors of the same shape, this one: do they hold the same in the order of the axes backwards? Where that
 * is not their own order, one was written as its memory lay. */
bool acc_laid_backwards(const struct acc_laid_out *l, const int64_t *shape, uint32_t n);

/* Is it right that tensors of these names, on the device and the bench, have the same values in this layout? 1;
 * 0: a name has other rows, whose place is *which (0, 1); -1: nothing says so. Of a part, whether it is in order
 * with the others is not asked here. */
int acc_rows_fit(const struct acc_named_rows name[2], const struct acc_laid_out *l, int *which);

/* A weight of one expert: "experts.3.w1", 3; -1: it is none. And which half of what packs gate and up it is. */
struct acc_expert {
	int64_t number;
	int half; /* 0: gate; 1: up; -1: neither */
};
struct acc_expert acc_expert_of(struct acc_str name);

#endif
