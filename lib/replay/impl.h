/* impl.h - the parts of an audit; see acc/replay.h for what a row of the table is */
#ifndef ACC_REPLAY_IMPL_H
#define ACC_REPLAY_IMPL_H

#include <math.h>
#include <pthread.h>

#include "acc/replay.h"
#include "acc/stream.h"

/* The families: each a table that ends with names == NULL. */
#define TABLE(name) extern const struct acc_op acc_ops_##name[];
#include "replay/table.h"
#undef TABLE

/* --- a call with its tensors, as records say (call.c) --- */

struct acc_held { /* a tensor of a call; the dense one is first, so that a value can point to it */
	struct acc_dense d;
	struct acc_ref ref;
	struct acc_str src;
	size_t line;      /* which record */
	bool data;        /* there is payload to load */
	char *err;        /* what went wrong in loading */
};

struct acc_pass_of { /* in, out of one pass */
	struct acc_value *in, *kw, *out;
	uint32_t nin, nkw, nout, cap_in, cap_kw, cap_out;
};

struct acc_job {
	struct acc_arena mem;
	struct acc_str op;
	bool backward;
	struct acc_pass_of fwd;  /* of a forward call, or of the forward call of a backward one */
	struct acc_pass_of bwd;  /* in: gradients of the outputs; out: of the inputs */
	size_t at;               /* where its results go */
	uint64_t bytes;          /* that loading it will need, roughly */
	struct acc_audited *result; /* one for each output record, see below */
	uint32_t nresult;
	bool unread;             /* a tensor of it could not be read */
	const char *bad;         /* the records of the call contradict each other */
};

/* For how many items a list of n has room. */
uint32_t acc_list_room(uint32_t n);
/* Take in one record of the call. 0 or < 0. */
int acc_job_take(struct acc_job *j, const struct acc_rec *r, size_t line, bool of_forward,
	struct acc_err *e);
/* The tensors in a value, nested ones too: calls f for each in order. */
typedef int acc_held_fn(void *arg, struct acc_held *h);
int acc_each_held(const struct acc_value *v, uint32_t n, acc_held_fn *f, void *arg);

/* --- results --- */

struct acc_audited { /* of one output record */
	size_t line;
	const char *skip;   /* not audited: why; NULL: audited. A literal or strdup'ed */
	const char *cause;  /* NULL: nothing is known; a literal or strdup'ed */
	double rms, max;    /* errors in units of the rounding; INFINITY: NaN or Inf differ */
	/* The same for an operator that rounds what it sums up as coarsely as its result. */
	double coarse_rms, coarse_max;
	const char *cls;
	uint8_t rounding;   /* enum acc_rounding */
	uint8_t mode;       /* of gradients: in which way they are tested, else 0 */
	bool learnt;        /* its limits know the other calls */
	size_t call;        /* which call of the stream */
	bool backward, low; /* low: the coarser dtype has 16 bits or less */
	bool finite;        /* there was a finite element to judge by */
	double limit, limit_max;
	bool unread;        /* skipped, because something could not be read */
	double part;        /* share of the elements that were looked at */
};

/* Errors as they are collected. */
struct acc_errsum {
	double sum2, max;
	uint64_t n;
	size_t at;       /* of max */
	bool broken;     /* NaN or Inf where none belongs, or the reverse */
};
void acc_err_add(struct acc_errsum *s, double e, size_t at);
double acc_err_rms(const struct acc_errsum *s);
double acc_err_max(const struct acc_errsum *s);

/* --- numbers --- */
/* Unit of rounding error of a dtype, and the smallest number that is not rounded away. */
double acc_unit_of(enum acc_dtype t);
/* Of what an operator computes with on its way to a result of this unit. */
double acc_work_unit(double unit);
double acc_tiny_of(enum acc_dtype t);
/* One element rounded to a dtype, as the hardware does to nearest; overflow gives infinity. */
double acc_round_to(enum acc_dtype t, double x);
double acc_max_of(enum acc_dtype t);
bool acc_is_float(enum acc_dtype t);
/* The coarsest float dtype among the tensors of a call and this output. */
enum acc_dtype acc_coarsest(const struct acc_pass_of *s, enum acc_dtype t);
/* Uniform in [0, 2^64), from a counter: the same for any number of threads. */
uint64_t acc_mix(uint64_t x);

/* --- evaluation --- */
/* Shapes are believed as far as there is data of that size; of what there is none, up to here. */
#define ACC_MAX_TABLE ((size_t)1 << 28)
#define ACC_MAX_UNSEEN ((size_t)1 << 24)
/* Evaluate by eval or product. */
int acc_replay_eval(struct acc_replay *r, struct acc_dense *out);
int acc_product_eval(struct acc_replay *r, struct acc_dense *out);
/* i * step for i < n; NULL: acc_cannot was called. */
size_t *acc_offsets(struct acc_replay *r, size_t n, size_t step);
/* Is name a word of the row's list? */
bool acc_word_in(const char *words, struct acc_str name);
/* The name as rows have it, into buf. */
struct acc_str acc_op_name(struct acc_str op, char *buf, size_t size);
/* The mode of an argument in a row's signature, the word behind the colon; or empty. By keyword,
 * or by position where kw is empty. *name: what the signature calls it, or empty. */
struct acc_str acc_sig_mode(const struct acc_op *op, struct acc_str kw, uint32_t pos,
	struct acc_str *name);

/* --- the tests --- */
/* Read the job's tensors; opening files is serialised by the lock. A tensor that cannot be read
 * has err set; < 0: out of memory. */
int acc_job_load(struct acc_job *j, struct acc_roots *roots, pthread_mutex_t *lock,
	struct acc_err *e);
void acc_job_run(struct acc_job *j);
/* Nothing of the call is audited. */
void acc_job_skip(struct acc_job *j, const char *why);

/* A run of one test: the replay, and room for it. */
struct acc_trial {
	struct acc_job *j;
	struct acc_replay r;
	struct acc_held **out;     /* forward outputs, in order */
	uint32_t nout;
	struct acc_dense *ref;     /* what was evaluated, of each; of a large product nothing */
	bool large;
	struct acc_product product; /* if so */
};
/* 0, or < 0: it cannot be evaluated, see t->r.why. */
int acc_trial_start(struct acc_trial *t, struct acc_job *j, const struct acc_op *op);
/* A fresh set of outputs to evaluate into; with room for mag if so. NULL: no memory. */
struct acc_dense *acc_trial_outputs(struct acc_trial *t, bool mag);
void acc_forward(struct acc_trial *t);
void acc_backward(struct acc_trial *t);
/* One gradient of an input against the gradients of the outputs (NULL: zero). */
struct acc_adjoint {
	struct acc_trial *t;
	struct acc_dense *x;            /* the input */
	const char *name;               /* what the signature calls it */
	const struct acc_dense *gin;
	const struct acc_dense *const *gout;
	double unit, work;              /* of rounding: of the gradients; of what sums them up */
	struct acc_errsum err, coarse;  /* coarse: with the unit for work as well */
	size_t skipped;                 /* elements not looked at, for a kink */
	const char *cause;
};
int acc_adjoint_move(struct acc_adjoint *a);
int acc_adjoint_pick(struct acc_adjoint *a);
int acc_adjoint_point(struct acc_adjoint *a);
int acc_adjoint_block(struct acc_adjoint *a, bool whole);
/* Why an output k that is not what its inputs give is no fault: a sentence, or NULL. */
const char *acc_excuse(struct acc_trial *t, uint32_t k);
/* --- causes (cause.c): a sentence, or NULL --- */
const char *acc_cause_forward(struct acc_trial *t, uint32_t k);
const char *acc_cause_plain(struct acc_arena *mem, const struct acc_dense *rec, const double *ref);

/* --- large products (freivalds.c) --- */
bool acc_product_large(const struct acc_product *p);
int acc_freivalds(struct acc_replay *r, const struct acc_product *p, const struct acc_dense *rec,
	double unit, double work, struct acc_errsum *err, struct acc_errsum *coarse);
int acc_freivalds_gradient(struct acc_adjoint *a, const struct acc_product *p, bool of_x);

int acc_adjoint_product(struct acc_adjoint *a);

/* Limits of all results, learnt from all of them (limit.c). 0 or ACC_ENOMEM. */
int acc_limits(struct acc_audited *v, size_t n);
/* So far off that a cause is worth looking for, whatever the other calls are. */
bool acc_far_off(const struct acc_errsum *s, bool low);
bool acc_audited_good(const struct acc_audited *v);

#endif
