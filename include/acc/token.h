/* token.h - does the engine that generates compute what the trainer trains?
 *
 * Pairs of samples (as accalign makes them), or samples that hold the log-probabilities of both, are taken
 * one after the other. Ids come first: log-probabilities are compared where all ids before are the same. In
 * memory stays a summary of each sample; sums are in double, in the order of the samples.
 *
 * Throughout, l is the trainer's log-probability of a token minus the rollout's.
 * Layer lib/token, on base. */
#ifndef ACC_TOKEN_H
#define ACC_TOKEN_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What two engines that compute the same may differ by. */
struct acc_token_preset {
	const char *name, *help;
	double unit; /* rounding of a logit, relative to the range of logits; 0: bit for bit */
};
extern const struct acc_token_preset acc_token_presets[]; /* the first is the default */
extern const size_t acc_ntoken_presets;
/* The numbers that decide, for `--limits`. */
extern const struct acc_limit acc_token_limits[];
extern const size_t acc_ntoken_limits;
/* The named causes. */
struct acc_token_cause {
	const char *name, *what;
};
extern const struct acc_token_cause acc_token_causes[];
extern const size_t acc_ntoken_causes;

/* What points of curves are of. */
enum acc_token_by {
	ACC_TOKEN_NONE,
	ACC_TOKEN_STEP,
	ACC_TOKEN_POSITION,
	ACC_TOKEN_SAMPLE,
	ACC_TOKEN_VALUE
};
struct acc_token_opt {
	const struct acc_token_preset *preset;
	bool all; /* all samples are told, not the worst ten alone */
	enum acc_token_by
		by; /* and the metrics of each step, position or sample, as points of curves */
};

struct acc_tokens;
struct acc_tokens *acc_tokens_open(const struct acc_token_opt *opt, struct acc_err *e);
/* Take a pair of samples, or a sample with two columns; `noise`: of a second scoring. 1: taken; 0: it is
 * neither; < 0. */
int acc_tokens_add(struct acc_tokens *t, const struct acc_rec *r, bool noise, struct acc_err *e);
/* Everything was added. 0 or < 0. */
int acc_tokens_judge(struct acc_tokens *t, struct acc_err *e);
/* Samples, points, findings, one after the other; valid until the next call. 1, 0 behind the last, < 0. */
int acc_tokens_next(struct acc_tokens *t, struct acc_rec **out, struct acc_err *e);
/* 0: noise, or the same; 1: a difference; 2: nothing could be judged, or not all of it. */
int acc_tokens_status(const struct acc_tokens *t);
void acc_tokens_close(struct acc_tokens *t);

#ifdef __cplusplus
}
#endif

#endif
