/* cause.h - what an error looks like: sentences of cause*.c, by attempts (try.c) and what they leave (residue.c) */
#ifndef ACC_REPLAY_CAUSE_H
#define ACC_REPLAY_CAUSE_H

#include "replay/impl.h"

/* Root mean square of rec - (scale ref + shift), in units of rounding; shift may be NULL. */
double acc_residue(const struct acc_dense *rec, const double *ref, double scale,
	const double *shift);
/* Nearer than this, it is what was computed. */
double acc_residue_most(const struct acc_dense *rec);
/* The factor that brings ref nearest to rec - shift. */
double acc_residue_factor(const struct acc_dense *rec, const double *ref, const double *shift);

/* Which argument, changed in a usual way, gives what was recorded of output k: a sentence, or
 * NULL. ref: what the arguments give as they are. */
const char *acc_cause_argument(struct acc_trial *t, uint32_t k, const struct acc_dense *rec,
	const double *ref);

/* --- to try an argument --- */
struct attempt {
	struct acc_trial *t;
	uint32_t k;                  /* the output */
	const struct acc_dense *rec; /* as it was recorded */
	const double *ref;           /* what the arguments give as they are */
	double most;                 /* a residue that convinces: far below that of ref */
};

/* What is tried is what the cause is about; v NULL: no argument that has a name. */
void acc_try_note(const struct attempt *a, const struct acc_value *v);
/* The output with other arguments: the first n of `with`, by name; NULL: they do not fit. */
const double *acc_try_with(const struct attempt *a, const struct acc_value *args, uint32_t n);
/* Is it what was recorded? */
bool acc_try_equals(const struct attempt *a, const double *v);
/* Is that with this argument? */
bool acc_try(const struct attempt *a, const char *name, struct acc_value v);
bool acc_try_number(const struct attempt *a, const char *name, double x);
/* Does the row know an argument of this name? Was it given: its value, or NULL. */
bool acc_try_has(const struct acc_replay *r, const char *name);
const struct acc_value *acc_try_given(const struct acc_replay *r, const char *name);
/* Is it one of these operators, by the first name of its row of the catalogue? */
bool acc_try_is(const struct acc_replay *r, const char *names);

/* The values that are usual for an argument, by AUDIT_USUAL, *n of them. */
const double *acc_usual_values(const char *name, size_t *n);
/* The first of them with which it is what was recorded; NAN: none. */
double acc_try_usual(const struct attempt *a, const char *name);

/* The value of an argument in which the result is linear: a sentence, or NULL. */
const char *acc_try_solved(const struct attempt *a, const char *name);

/* A sentence, or NULL: of a number that torch has a default for, whatever it was. */
const char *acc_cause_number(const struct attempt *a);
/* A sentence, or NULL: of terms that a sum lacks, of a variance. */
const char *acc_cause_sum(struct acc_trial *t, const struct acc_formed *f, uint32_t k);
/* A sentence, or NULL: of an optimizer's step; of the order of gates. */
const char *acc_cause_step(const struct attempt *a);
const char *acc_cause_gates(const struct attempt *a);

#endif
