/* order.h - what stands where in flat parameters that do not say it (inside lib/fold) */
#ifndef FOLD_ORDER_H
#define FOLD_ORDER_H

#include "fold/weights.h"

enum { SAMPLES = 16, ENOUGH = 12, NUMBERS = 4, MOST_PLACES = 1 << 12 };

/* A weight of the reference. */
struct known {
	struct fold_part part; /* its record, name and shape */
	int64_t count, at;     /* at: where it stands in the flat parameter; -1: not found */
	uint32_t unit;
	uint64_t role; /* hash of the name without its numbers */
	int64_t number[NUMBERS];
	double sample[SAMPLES];
	enum acc_dtype dtype;
	bool constant; /* all samples are the same: its elements say nothing */
};

/* One wrapped module. */
struct unit {
	struct acc_str prefix; /* as the reference has it: "model.layers.0." */
	uint32_t first, n;     /* its parts in order->flat */
	int64_t count;
	const char *why; /* why it is not understood; NULL */
	bool lost;       /* for its elements are in no known order */
};

/* What follows what: of two roles, and how much larger the numbers are. */
struct next {
	uint64_t from, to;
	int64_t step[NUMBERS];
	uint32_t votes;
};

struct order {
	struct acc_fold *f;
	struct fold_weights *t;
	const struct fold_part **flat; /* by unit and place */
	uint32_t nflat;
	struct unit *unit;
	uint32_t nunit;
	struct known *known;
	uint32_t nknown;
	struct next *next;
	uint32_t nnext;
	size_t cap;
	struct acc_map by_name;
	struct fold_source *source; /* of the unit that is looked at */
	int64_t align;              /* each weight begins at a multiple of it, in elements */
	struct fold_parts out;
	struct fold_cuts cuts;
};

/* --- order_place.c --- */
/* Which element the i-th sample of so many is. */
uint64_t acc_order_sample_at(int64_t count, int i);
/* One element. False: it cannot be read. */
bool acc_order_take(struct fold_source *s, uint64_t at, double *out);
/* Of a unit whose elements are at hand, 0 or < 0: what is found by elements; what follows what there; and
 * what is not found, by that. */
int acc_order_by_elements(struct order *o, uint32_t unit, struct acc_err *e);
int acc_order_learn(struct order *o, uint32_t unit, struct acc_err *e);
int acc_order_complete(struct order *o, uint32_t unit, struct acc_err *e);
/* 1: all of it is found; 0; or < 0. */
int acc_order_full(struct order *o, uint32_t unit, struct acc_err *e);

#endif
