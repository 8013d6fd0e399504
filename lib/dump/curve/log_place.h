/* log_place.h - where in training a line stands: its epoch and step, train or evaluation
 *
 * Many programs count steps anew in each epoch. Such steps are counted through, so that each is
 * another: by the length of an epoch where the line says it ("[Epoch 2/4][Iter: 3/30]"), else by
 * what was logged before.
 */
#ifndef DUMP_LOG_PLACE_H
#define DUMP_LOG_PLACE_H

#include "dump/curve/log_pairs.h"

struct log_place {
	bool has_step, has_epoch;
	bool anew;    /* the step is one of the epoch's, by its form */
	bool episode; /* the epoch is an episode, or the step is where the line names no other */
	bool global;  /* it says of its step that it is the run's */
	int64_t step, of; /* of: steps in all, as printed behind the step; 0: not said */
	int64_t epoch;
	struct acc_str word;    /* what the log calls a step, or its epoch */
	struct acc_str part[2]; /* where it says so: no curves */
	int parts;
};

/* The place that a line names: its first step, with its epoch where it names that, too. False:
 * none. */
bool acc_log_place(struct acc_str s, struct log_place *at);
/* Its step, counted through; of evaluations, the last step of training if there was one. Remembers
 * where the log is. */
int64_t acc_log_through(struct log_reader *g, const struct log_place *at, bool evaluates);
/* The step of a place that has both, counted through. */
int64_t acc_count_through(struct log_count *c, const struct log_place *at);
/* Is it a count of steps? */
bool acc_log_is_step(const struct log_pair *f);
/* "val/" or "test/" if words before the line's numbers say that it evaluates; else "". */
const char *acc_log_mode(struct acc_str s);
/* log_prose.c: what has a place and is no line of training. It tells of an epoch that was; it tells what came to pass,
 * and heads nothing; it is a text, or an amount. */
bool acc_log_looks_back(struct acc_str s, const struct log_place *at);
bool acc_log_tells(struct acc_str s);
bool acc_log_is_prose(struct acc_str s, const struct log_place *at, const struct log_pair *f,
	int n);
/* log_behind.c: a line with these numbers, and whether it names a place. After all lines: what is left are the names of
 * those that are of the place behind them. Is such a line? Keep its numbers until the place comes. */
void acc_log_note_behind(struct log_behind *b, const struct log_pair *f, int n, bool found);
void acc_log_end_behind(struct log_behind *b);
bool acc_log_is_behind(const struct log_behind *b, const struct log_pair *f, int n);
int acc_log_hold_pairs(struct log_reader *g, const char *mode, const struct log_pair *f, int n,
	struct acc_err *e);
/* "[rank3]:" and "[default3]:", as torchrun puts before each line of a process: *rank, and the
 * rest of the line. */
bool acc_log_rank(struct acc_str *s, int64_t *rank);

#endif
