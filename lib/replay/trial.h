/* trial.h - the tests of a call: forward, backward, slopes, causes, large products */
#ifndef REPLAY_TRIAL_H
#define REPLAY_TRIAL_H

#include "replay/job.h"
#include "replay/number.h"
#include "replay/load.h"

/* --- the tests --- */
void acc_audit_job_run(struct acc_audit_job *j);
/* Test a call, or a part of one, whose tensors are loaded: adds to its tallies. */
void acc_audit_job_test(struct acc_audit_job *j, const struct acc_op *op);
/* Nothing of the call is audited. */
void acc_audit_job_skip(struct acc_audit_job *j, const char *why);

/* An output of a call of any size. */
struct acc_outline {
	enum acc_dtype dtype;
	uint32_t ndim;
	const int64_t *shape;
	size_t n, line, first;
	const char *err;
	const struct acc_sealed *v;  /* NULL: recorded without data */
	const struct acc_held *held; /* whose `other` is known */
};
/* The outputs of a call that is in memory: as they were recorded, and as they were evaluated. */
struct acc_formed {
	const struct acc_dense *rec;
	struct acc_dense *ref;
};
/* A run of one test: the replay, and room for it. */
struct acc_trial {
	struct acc_audit_job *j;
	struct acc_replay r;
	struct acc_outline *out; /* forward outputs, in order */
	uint32_t nout;
	const struct acc_formed *formed; /* NULL: it is large, or was not evaluated */
	bool large, explained;           /* explained: an argument that was tried gives output 0 */
	struct acc_changed changed;
	struct acc_product product; /* if large */
};
/* The call as its row sees it. 0, or < 0: see t->r.why. */
int acc_trial_open(struct acc_trial *t, struct acc_audit_job *j, const struct acc_op *op);
/* The product that it is: fills product and large. */
int acc_trial_product(struct acc_trial *t);
/* And what it gives. 0, or < 0: it cannot be evaluated. */
int acc_trial_start(struct acc_trial *t, struct acc_audit_job *j, const struct acc_op *op);
/* Which input the i-th gradient of a backward call is of, and what the row says of it (NULL: not
 * wanted); NULL: none, or nobody knows. */
struct acc_held *acc_gradient_input(struct acc_trial *t, uint32_t i, struct acc_str *mode);
/* A fresh set of outputs to evaluate into; with room for mag if so. NULL: no memory. */
struct acc_dense *acc_trial_outputs(struct acc_trial *t, bool mag);
void acc_forward(struct acc_trial *t);
void acc_backward(struct acc_trial *t);
/* Sums for each element of an input: of what makes its gradient. */
struct acc_sums {
	double *ref, *abs, *sq, *more;
	uint32_t *terms;
	bool *skip;
};
/* 0 or < 0, with acc_cannot. */
int acc_sums_start(struct acc_replay *r, size_t n, struct acc_sums *s);
void acc_sums_add(struct acc_sums *s, size_t i, double term);
struct acc_shared;
/* One gradient of an input against the gradients of the outputs (NULL: zero). */
struct acc_adjoint {
	struct acc_trial *t;
	struct acc_dense *x; /* the input */
	const char *name;    /* what the signature calls it */
	const struct acc_dense *gin;
	const struct acc_held *held; /* what gin is the elements of */
	const struct acc_dense *const *gout;
	double unit, work;             /* of rounding: of the gradients; of what sums them up */
	double max;                    /* beyond it, they may have overflowed on the way */
	struct acc_errsum err, coarse; /* coarse: with the unit for work as well */
	struct acc_slope_found slope;
	struct acc_left left;
	const char *cause;
	struct acc_forms forms;
	struct acc_spots *spots;   /* added to where elements are told apart */
	size_t first;              /* which element of the gradient is its first here */
	struct acc_shared *shared; /* NULL: no other part adds to it */
	bool linear;               /* by point, and linear in it */
	bool flat, same;           /* by point, and the gradient is 0, or that of the output */
	bool exact;      /* NaN and Inf go through it as the operator itself passes them */
	bool one_by_one; /* in 16 bits, terms may be added to a sum in these */
	bool sloped;     /* its slope tells whether it is right */
	double part;     /* share of the rows that were looked at, if so; else 0 */
};
/* The gradient of an input that several parts of a call see: sums that go on from part to part, and how they are
 * compared at last, which each part finds as it is tested. */
struct acc_shared {
	bool on;
	struct acc_sums sums;
	struct acc_adjoint how;
};
/* Where a formula of several op calls is given numbers of 16 and of 32 bits: the unit of the coarser, to which some of
 * these round, though the result be of 32 (log_sigmoid in torch's binary cross entropy of logits); else 0. */
double acc_unit_of_mixed(const struct acc_trial *t);
/* How errors of it are weighed: by its unit, its row and what that says of the input. */
void acc_adjoint_by(struct acc_adjoint *a, struct acc_str mode);
extern const char acc_skip_again[]; /* why a gradient that is far off may be right */
int acc_adjoint_move(struct acc_adjoint *a);
int acc_adjoint_pick(struct acc_adjoint *a);
int acc_adjoint_point(struct acc_adjoint *a);
int acc_adjoint_block(struct acc_adjoint *a, bool whole);
/* In how many windows of a pool an element is, at most; 1: it is no pool. */
double acc_pool_overlap(struct acc_replay *r, const struct acc_dense *out);
/* Why an output that is not what its inputs give k is no fault: a sentence, or NULL. */
const char *acc_exempt(struct acc_trial *t, const struct acc_formed *f, uint32_t k);
/* --- a factor (slope.c) --- */
struct acc_slope_of {
	enum acc_dtype dtype;
	double unit, work;
	size_t n;
	const double *rec, *ref, *more; /* more: what is added up, whose rounding is `work` */
	const bool *skip;               /* or NULL */
};
/* 0, or what acc_cannot returned. */
int acc_slope(struct acc_replay *r, const struct acc_slope_of *s, struct acc_slope_found *out);
/* Is there but one rounding, and nothing that all elements share? Of numbers that the dtype does not hold,
 * nobody knows whether they were rounded. */
bool acc_slope_applies(const struct acc_trial *t);
void acc_slope_keep(struct acc_slope_found *best, const struct acc_slope_found *s);

/* The gradient against the sums. */
void acc_adjoint_compare(struct acc_adjoint *a, const struct acc_sums *s);
/* --- causes (cause.c): a sentence, or NULL --- */
const char *acc_cause_forward(struct acc_trial *t, const struct acc_formed *f, uint32_t k);
const char *acc_cause_plain(struct acc_arena *mem, const struct acc_dense *rec, const double *ref);
/* As far off as 16 bits on the way are, everywhere? */
bool acc_cause_rough(const struct acc_dense *rec, const double *ref);
/* rec's first element is number `first` of its tensor. */
void acc_spots_add(struct acc_spots *s, const struct acc_dense *rec, const double *ref,
	size_t first);
const char *acc_cause_place(struct acc_arena *mem, const struct acc_spots *s);

/* --- large products (freivalds.c) --- */
/* Keys' kernel, by which bicubic interpolation weighs what is x away. */
double acc_cubic(double x);
/* Its operands. */
void acc_product_of(struct acc_product *p, const struct acc_dense *x, const struct acc_dense *y);
/* Is each place the next of the one before it? */
bool acc_neighbours(const size_t *t, size_t n);
bool acc_product_large(const struct acc_product *p, bool streams);
/* Small enough to be formed where it is wrong. */
bool acc_product_formed(const struct acc_product *p);
/* rec: its elements, which are held's. max: beyond it, it may have overflowed. Beside another side, the elements
 * that differ most from that are formed, and those that rounding does not explain are left open. */
int acc_freivalds(struct acc_trial *t, const struct acc_product *p, const struct acc_held *held,
	const struct acc_sealed *rec, double max, double unit, double work, struct acc_errsum *err,
	struct acc_errsum *coarse, struct acc_forms *forms, struct acc_left *left, double *part);
/* The product that the gradient of x (or y) is; 0, or < 0: it is none of the kind. */
int acc_product_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x,
	struct acc_product *q);
int acc_freivalds_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x);
int acc_freivalds_added(struct acc_adjoint *a, struct acc_sums *s);

int acc_adjoint_product(struct acc_adjoint *a);

/* Limits of all results, learnt from all of them (limit.c). 0 or ACC_ENOMEM. */
int acc_limits(struct acc_audited *v, size_t n, const struct acc_audit_opt *opt);
/* Note what is found; and raise the limit of what is known to be further off (profile.c). */
int acc_profile_note(struct acc_profile *p, const struct acc_audited *v);
void acc_profile_raise(const struct acc_profile *p, struct acc_audited *v);
/* So far off that a cause is worth looking for, whatever the other calls are. */
bool acc_far_off(const struct acc_errsum *s, bool low);
bool acc_audited_good(const struct acc_audited *v);

#endif
