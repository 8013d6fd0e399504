/* lists.h - parameters that stand in lists: of calls, and of an optimizer's state in a checkpoint */
#ifndef ALIGN_LISTS_H
#define ALIGN_LISTS_H

#include "align/impl.h"

/* A call, or a group of parameters, and its table: of each list, those that go in first, the item of each parameter. */
struct lists_call {
	uint64_t base;  /* those of one base belong together */
	uint32_t op, n; /* op: ACC_NOMATE, of a checkpoint; n: parameters */
	uint32_t lists, ins;
	uint32_t *item; /* lists * n, or ACC_NOMATE */
	uint32_t first; /* of its parameters, among all of the side */
	bool changed;   /* they were paired anew */
};

struct lists_param {
	uint64_t shape, print; /* print: of its name or content; 0: not known */
	uint32_t call, at;     /* which of its call */
	uint32_t mate;
	uint8_t how;
};

struct lists_side {
	struct acc_half *h;
	const char *prefix;
	struct lists_call *c;
	struct lists_param *p;
	uint32_t nc, np;
	size_t cap;
};

struct lists {
	struct lists_side s[2];
	struct acc_joined *j;
	/* Two items belong together, which have no mates any more. */
	void (*mate)(void *arg, uint32_t a, uint32_t b, enum acc_align_how how);
	void (*part)(void *arg, int side, uint32_t item); /* an item has no mate any more */
	void *arg;
	struct acc_err *e;
};

/* Is it a step of an optimizer, or another that takes lists of tensors? op: its name. */
bool acc_lists_are_taken(struct acc_str op);
/* The next call of this side, with an empty table. NULL without memory. */
struct lists_call *acc_lists_call(struct lists_side *s, uint64_t base, uint32_t n, uint32_t lists,
	struct acc_err *e);
/* When all tables are filled: the parameters, of the shape and content of the first list. 0 or < 0. */
int acc_lists_params(struct lists_side *s, struct acc_err *e);
/* Pair anew what shapes or contents contradict. 0 or < 0. */
int acc_lists_pair(struct lists *l);
void acc_lists_release(struct lists *l);

#endif
