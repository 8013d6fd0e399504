/* compose.h - an operator that is made of others: evaluating a row with arguments of one's own */
#ifndef ACC_REPLAY_COMPOSE_H
#define ACC_REPLAY_COMPOSE_H

#include "acc/replay.h"

/* Evaluate operator `name` with these arguments and keywords into out[0..nout), whose shapes are
 * checked; what was recorded of out stands in rec (NULL: nothing). < 0 with acc_cannot. */
struct acc_part {
	const char *name;
	struct acc_value *in, *kw;
	uint32_t nin, nkw;
	const struct acc_dense *rec;
	uint32_t nout;
};
int acc_compose(struct acc_replay *r, const struct acc_part *p, struct acc_dense *out);

/* A tensor for what lies between: contents not initialised. < 0 with acc_cannot. */
int acc_between(struct acc_replay *r, enum acc_dtype t, const int64_t *shape, uint32_t ndim,
	bool mag, struct acc_dense *out);

struct acc_value acc_of_tensor(const struct acc_dense *d);
struct acc_value acc_of_float(double x);
struct acc_value acc_of_int(int64_t x);
/* As a keyword. */
struct acc_value acc_named(const char *name, struct acc_value v);

/* The k-th tensor of an argument that is a list of tensors, or one tensor (k = 0): with data.
 * 1, 0: there is none, or < 0 with acc_cannot. */
int acc_arg_item(struct acc_replay *r, const char *name, uint32_t k, const struct acc_dense **out);
/* How many tensors an argument is; 0: it is no list and no tensor. */
uint32_t acc_arg_count(const struct acc_replay *r, const char *name);

#endif
