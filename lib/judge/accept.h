/* accept.h - findings that are accepted, or explained by what tools are known to do */
#ifndef JUDGE_ACCEPT_H
#define JUDGE_ACCEPT_H

#include "acc/judge.h"

/* --- accept.c --- */
/* Is a finding of this item ignored, or in the baseline and not worse? 1, 0, < 0. */
int acc_accepted(struct acc_case *c, const struct acc_item *it, struct acc_err *e);
/* The same of an output of one dump that fails the audit, whose limits are multiplied, too. */
int acc_accepted_alone(struct acc_case *c, const struct acc_item *it, struct acc_err *e);
/* Findings that say what was accepted, by what. */
int acc_say_accepted(struct acc_case *c, struct acc_err *e);
/* A finding rests on a behaviour of share/behaviours: behind its text, and in its `behaviour`. */
int acc_rests_on(struct acc_case *c, struct acc_finding *f, const char *id, struct acc_err *e);
/* Has a source of either side this under this key (framework, format)? 1, 0, < 0. */
int acc_has_source(struct acc_case *c, const char *key, const char *value, struct acc_err *e);
/* What tools are known to do that can explain what is accused. */
int acc_explain(struct acc_case *c, struct acc_err *e);
/* What the source of a side says under each of these keys, of which the last is NULL; empty: nothing. */
enum { ACC_SAYS = 128 };
int acc_source_says(struct acc_case *c, struct acc_str src, const char *const key[],
	char *const out[], struct acc_err *e);

#endif
