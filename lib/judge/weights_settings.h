/* weights_settings.h - parameters of optimizers, and the settings that checkpoints have of them */
#ifndef JUDGE_WEIGHTS_SETTINGS_H
#define JUDGE_WEIGHTS_SETTINGS_H

#include "judge/weights.h"

#define ACC_NOPARAM UINT32_MAX

struct acc_setting {
	struct acc_str key;
	const char *value;
};

struct acc_params {
	struct acc_str before, id; /* of its name: optimizer. and 0 */
	int64_t rank;              /* -1: none */
	struct acc_setting *set;
	const char *decay; /* of its weights, or NULL */
	uint32_t nset, nparam;
	size_t cap;
};

struct acc_param {
	struct acc_str id; /* a number, or its name */
	uint32_t group, at,
		mate;   /* at: which of its group; mate: of the other side's, or ACC_NOPARAM */
	uint64_t shape; /* of its state; 0: unknown */
	uint32_t ndim;
	bool differs;
};

struct acc_optim {
	struct acc_params *g;
	struct acc_param *p;
	uint32_t ng, np;
	size_t capg, capp;
	struct acc_ids groups, params;
	struct acc_ids names,
		weights; /* what is known of names: of a place in a group, of a shape */
	const char **name;
	uint32_t nname;
	size_t capn;
};

struct acc_settings {
	struct acc_weights *t;
	struct acc_arena *m;
	struct acc_optim s[2];
	uint32_t paired;
	uint64_t differ;
	const char *first, *text; /* text: of those that differ the first few */
};

/* A number that is no name. */
bool acc_is_number(struct acc_str s);
/* A key of two numbers. */
uint64_t acc_numbered(uint64_t a, uint64_t b);
uint64_t acc_optim_hash(int64_t rank, struct acc_str before, struct acc_str id);
/* Read what the pairs say of both sides' optimizers, and pair their parameters. 0 or < 0. */
int acc_settings_read(struct acc_settings *s, struct acc_err *e);
void acc_settings_release(struct acc_settings *s);

#endif
