/* recorder.h - what differs between the programs that record op calls
 *
 * A recorder is a row in lib/op/recorder.c, found by the `format` of the source record: names alone
 * do not tell who wrote them.
 */
#ifndef ACC_RECORDER_H
#define ACC_RECORDER_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Op calls to record again. */
struct acc_again {
	const char *first, *last; /* keys, as the recorder wrote them */
	const char *end;          /* the op call after the last; NULL: none */
	bool range;               /* all from the first to the last; else these two */
	bool statistics;          /* in place of tensors */
	bool overflow;            /* so far only what overflows was recorded: no longer so */
	const char *level;        /* of msprobe: L1, mix */
	int64_t step, rank;       /* INT64_MIN: unknown */
};

struct acc_recorder {
	const char *format;
	bool positional; /* it leaves keywords out */
	bool risks;      /* op calls of low risk are recorded only where that is asked for */
	/* Its own words for what to record again: "" where it has none, NULL: out of memory. */
	const char *(*again)(struct acc_arena *m, const struct acc_again *g);
};

/* The whole settings file for it, with where to record to, beside root; *name: what the recorder calls such a file.
 * "": it has none; NULL: out of memory. */
const char *acc_recorder_settings(const struct acc_recorder *by, struct acc_arena *m,
	const struct acc_again *g, const char *root, const char **name);

/* By the format of a source record. One without a format is taken for msprobe's, whose names the
 * stream has; of what is no recorder of op calls, nothing is known. Never NULL. */
const struct acc_recorder *acc_recorder_of(struct acc_str format);

/* Is it what a framework, not the user, calls a module around the model (DDP's `module`)? */
bool acc_is_wrapper(struct acc_str name);

#ifdef __cplusplus
}
#endif

#endif
