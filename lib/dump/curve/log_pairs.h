/* log_pairs.h - names and numbers in a line, whoever wrote it */
#ifndef DUMP_LOG_PAIRS_H
#define DUMP_LOG_PAIRS_H

#include "dump/curve/log.h"

enum { LOG_PAIRS = 256 };

struct log_pair {
	struct acc_str key; /* one to three words */
	struct acc_literal v;
	const char *value, *end; /* of the number */
};

/* A number at p that is not part of something else (a time, a size, a fraction): its end, or
 * NULL. */
const char *acc_log_number(const char *p, const char *end, struct acc_literal *v);
/* The first `max` pairs of s; how many. */
int acc_log_pairs(struct acc_str s, struct log_pair *out, int max);
/* train_loss, Loss; 训练损失 */
bool acc_log_is_loss(struct acc_str name);
/* "loss" of "train loss" */
struct acc_str acc_log_last_word(struct acc_str key);
/* Is it one of these words, whatever its case? */
bool acc_log_is(struct acc_str s, const char *const *words, size_t n);
#define ACC_LOG_IS(s, words) acc_log_is(s, words, sizeof(words) / sizeof *(words))
/* Each pair a point of this step. 0 or < 0. */
int acc_log_put_pairs(struct log_reader *g, const char *prefix, const struct log_pair *f, int n,
	int64_t step, struct acc_err *e);

#endif
