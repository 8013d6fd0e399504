/* impl.h - the parts of an audit; see acc/replay.h for what a row of the table is */
#ifndef ACC_REPLAY_IMPL_H
#define ACC_REPLAY_IMPL_H

#include <math.h>
#include <pthread.h>

#include "acc/replay.h"
#include "acc/stream.h"
#include "kernel/audit.h"

/* The families: each a table that ends with names == NULL. */
#define TABLE(name) extern const struct acc_op acc_ops_##name[];
#include "replay/table.h"
#undef TABLE
extern const struct acc_op acc_op_modulus; /* abs of complex numbers */

/* --- a call with its tensors, as records say (call.c) --- */

/* Elements that may be in no memory: all that can be done with them is to open a window. */
struct acc_sealed;

struct acc_held { /* a tensor of a call; the dense one is first, so that a value can point to it */
	struct acc_dense d;
	struct acc_ref ref;
	struct acc_str src;
	struct acc_pay *pay; /* open: its elements are read where they are needed, and d.v only
			      * stands for it */
	enum acc_dtype as;   /* what its elements are rounded to as they are read; or ACC_NODTYPE */
	size_t line;         /* which record */
	size_t first;        /* of a part of a tensor: the element that its first one is */
	bool data;           /* there is payload to load */
	bool wild;           /* not all that was loaded is finite */
	bool beyond;         /* integers that no double holds */
	struct acc_held *other; /* of an output: the same one of the other side; or NULL */
	char *err;              /* what went wrong in loading */
	bool fault;             /* and the machine is to blame, not that it is not there */
};

struct acc_pass_of { /* in, out of one pass */
	struct acc_value *in, *kw, *out;
	uint32_t nin, nkw, nout, cap_in, cap_kw, cap_out;
};

struct acc_audit_job {
	struct acc_arena mem;
	struct acc_str op;
	bool backward;
	struct acc_pass_of fwd; /* of a forward call, or of the forward call of a backward one */
	struct acc_pass_of bwd; /* in: gradients of the outputs; out: of the inputs */
	size_t at;              /* where its results go */
	uint64_t bytes;         /* of all its tensors, as doubles */
	uint64_t need;          /* of them, at a time */
	struct acc_audited *result; /* one for each output record, see below */
	struct acc_tally *tally;    /* as many: what they come of */
	struct acc_reader *reader;
	bool casts;                /* autocast has cast operands before */
	bool form;                 /* products are formed, however large */
	bool part;                 /* it is a part of a large call: there are many more */
	struct acc_shared *shared; /* of a part of a backward call: as many again, or NULL */
	bool again;                /* a gradient was taken of its gradients before */
	bool shared_only;          /* of this part, no other gradient is tested */
	uint32_t nresult;
	bool unread;     /* a tensor of it could not be read */
	bool fault;      /* for the machine failed */
	bool positional; /* the recorder leaves keywords out */
	bool coarse;     /* its source's kernels are known to be off by more */
	const char *bad; /* the records of the call contradict each other */
};

/* For how many items a list of n has room. */
uint32_t acc_list_room(uint32_t n);
/* Take in one record of the call. 0 or < 0. */
int acc_audit_job_take(struct acc_audit_job *j, const struct acc_rec *r, size_t line,
	bool of_forward, struct acc_err *e);
/* The tensors in a value, nested ones too: calls f for each in order. */
typedef int acc_held_fn(void *arg, struct acc_held *h);
int acc_each_held(const struct acc_value *v, uint32_t n, acc_held_fn *f, void *arg);
/* As such a function: one more, in a uint32_t. */
int acc_count_held(void *arg, struct acc_held *h);

/* --- results --- */

/* A factor that all elements are too large by, less 1, and how large chance may make it (slope.c);
 * limit 0: not looked at. */
struct acc_slope_found {
	double slope, limit;
};

/* Elements that a verdict does not cover; and how many of these are not the other side's. */
struct acc_left {
	uint64_t n, open;
};

/* The argument that a cause is about, NAME=VALUE, or NAME of a tensor; empty: it is about none. */
struct acc_changed {
	char text[48];
};

struct acc_audited { /* of one output record */
	size_t line;
	const char *skip;  /* not audited: why; NULL: audited. A literal or strdup'ed */
	const char *cause; /* NULL: nothing is known; a literal or strdup'ed */
	double rms, max;   /* errors in units of the rounding; INFINITY: NaN or Inf differ */
	struct acc_slope_found slope;
	/* The same for an operator that rounds what it sums up as coarsely as its result. */
	double coarse_rms, coarse_max;
	const char *cls;
	const struct acc_profile *known; /* what kernels of its source are off by; or NULL */
	const struct acc_op *op;         /* NULL: unknown */
	enum acc_dtype dtype;
	unsigned steps;     /* how often it rounds where every step of it does; 1: once */
	uint8_t rounding;   /* enum acc_rounding */
	uint8_t mode;       /* of gradients: in which way they are tested, else 0 */
	bool in_steps;      /* it is several operators: see ACC_IN_STEPS */
	bool tells_steps;   /* see ACC_TELLS_STEPS */
	bool among_low;     /* most of the network is in 16 bits */
	bool learnt;        /* its limits know the other calls */
	bool compared;      /* see struct acc_audit_opt */
	size_t call;        /* which call of the stream */
	bool backward, low; /* low: the coarser dtype has 16 bits or less */
	bool finite;        /* there was a finite element to judge by */
	double limit, limit_max;
	bool unread; /* skipped, because something could not be read */
	bool fault;  /* for the machine failed */
	double part; /* share of the parts that were looked at */
	struct acc_left left;
	bool explained; /* one argument that is another gives all of it: no error, but another function */
	struct acc_changed changed;
	const char *form;  /* of f32 products: the arithmetic that explains it; NULL: none */
	const char *round; /* how it rounds, where not to the nearest; or NULL */
	uint64_t n;        /* elements, or what else was compared */
};

/* Errors as they are collected. */
struct acc_errsum {
	double sum2, max;
	uint64_t n;
	bool broken; /* NaN or Inf where none belongs, or the reverse */
};
void acc_err_add(struct acc_errsum *s, double e);
void acc_err_merge(struct acc_errsum *s, const struct acc_errsum *more);
double acc_err_rms(const struct acc_errsum *s);
double acc_err_max(const struct acc_errsum *s);

/* Some elements of products, computed again in several kinds of arithmetic: squares of what is
 * left (form.c). */
enum { ACC_NFORM = 4 };
struct acc_forms {
	size_t n;
	double plain, off[ACC_NFORM];
};
/* One element: the product of two lines, and what is added to it. */
void acc_form_add(struct acc_forms *f, const double *x, const double *y, size_t n, double alpha,
	double added, double rec);
/* Some of a product in memory. 0 or < 0: out of memory. */
int acc_form_product(struct acc_replay *r, const struct acc_product *p, const double *rec,
	struct acc_forms *f);
void acc_form_merge(struct acc_forms *f, const struct acc_forms *more);
/* "tf32", ...: the one that explains it; or NULL. */
const char *acc_form_of(const struct acc_forms *f);

/* How what was recorded lies beside what is exact (rounding.c): of so many, */
struct acc_rounds {
	size_t n, beyond; /* how many are no neighbour; */
	size_t off;       /* the farther one was taken, */
	size_t outer,
		outer_off;     /* and of these that are within a quarter of a number, how often; */
	size_t ties, away;     /* between two of which the smaller is even; and was not taken; */
	size_t small, flushed; /* not normal; zero, where such a number should be */
	double up, chance;     /* how often more is larger than chance makes it; and its variance */
};
void acc_rounds_add(struct acc_rounds *s, enum acc_dtype t, const double *rec, const double *ref,
	size_t n);
/* "flushed", "half away", "by chance": see audit.round; NULL: as all do. */
const char *acc_rounds_of(const struct acc_rounds *s);

/* Where elements are wrong. */
struct acc_spots {
	size_t bad, first, seen; /* how many of those that were looked at; the first of them */
	size_t len;              /* of a row */
	bool row, column;        /* all are in one */
};
/* An output, as its parts are looked at. */
struct acc_tally {
	struct acc_errsum err, coarse;
	struct acc_forms forms;
	struct acc_slope_found slope; /* of the part where it is most beyond its limit */
	struct acc_left left;
	uint32_t parts, far; /* how many; how many of them are far off */
	const char *cause;   /* what the first of these looks like, wherever it is wrong */
	bool explained;      /* by that, to the rounding */
	struct acc_changed changed;
	bool rough; /* as with 16 bits on the way */
	bool kept;  /* what is said is in the job's own memory */
	struct acc_spots spots;
	struct acc_rounds rounds;
};
/* The call's results, when all of its parts were looked at. */
void acc_audit_job_settle(struct acc_audit_job *j);

/* --- numbers --- */
/* Of what an operator computes with on its way to a result of this unit. */
double acc_work_unit(double unit);
/* So many of these are one of that: what is rounded to its dtype on the way adds itself so often
 * to mag, and r remembers that mag holds such. */
double acc_roundings(struct acc_replay *r, enum acc_dtype t);
/* What the recorder of a mean rounds it by, and that of a norm of n elements, in parts of it. */
double acc_mean_rounding(enum acc_dtype t);
double acc_norm_rounding(enum acc_dtype t, uint64_t n);
/* The smallest number that is not rounded away. */
double acc_tiny_of(enum acc_dtype t);
/* One element rounded to a dtype, as the hardware does to nearest; overflow gives infinity. */
double acc_round_to(enum acc_dtype t, double x);
double acc_max_of(enum acc_dtype t);
/* The size of its largest element that is finite, 1 at least. */
double acc_largest(const struct acc_dense *x);
bool acc_is_float(enum acc_dtype t);
/* The coarsest float dtype among the tensors of a call and this output. */
enum acc_dtype acc_coarsest(const struct acc_pass_of *s, enum acc_dtype t);
/* Uniform in [0, 2^64), from a counter: the same for any number of threads. */
uint64_t acc_mix(uint64_t x);

/* --- what is not a number, and what is left out (left.c) --- */
enum acc_fate {
	ACC_NUMBER, /* both are numbers, to be compared */
	ACC_RIGHT,
	ACC_WRONG,
	ACC_LEFT /* nobody knows */
};
struct acc_range {
	enum acc_dtype dtype;
	bool cast; /* the operator is one */
	double unit;
	double own;    /* the largest number of the result's dtype, */
	double narrow; /* of the narrowest that it was in before, */
	double sums;   /* and of what it is summed up in */
};
struct acc_range acc_range_of(enum acc_dtype own, double unit, double narrow);
/* What was recorded, what it should be, and the size of what is summed up. */
enum acc_fate acc_fate_of(const struct acc_range *g, double rec, double ref, double abs);
/* The same of a result, which may be of any dtype: a whole number wraps, saturates ..., as the library has it. */
enum acc_fate acc_fate_beyond(const struct acc_range *g, double rec, double ref, double abs);
/* Further apart than rounding takes two sides? */
bool acc_differs(double unit, double rec, double other);
/* The other side's elements of one that is in memory; or through a window. NULL: there are none. */
const double *acc_other_values(struct acc_audit_job *j, struct acc_arena *mem,
	const struct acc_held *h);
struct acc_sealed *acc_other_open(struct acc_audit_job *j, const struct acc_held *h);
void acc_left_add(struct acc_left *to, const struct acc_left *more);
void acc_others_shut(struct acc_audit_job *j);

/* --- evaluation --- */
/* The row that evaluates a call, by its name and its arguments; NULL: unknown. */
const struct acc_op *acc_op_of_call(const struct acc_audit_job *j);
/* Shapes are believed as far as there is data of that size; of what there is none, up to here. */
#define ACC_MAX_TABLE ((size_t)1 << 28)
#define ACC_MAX_UNSEEN ((size_t)1 << 24)
/* Evaluate by eval or product. */
int acc_replay_eval(struct acc_replay *r, struct acc_dense *out);
int acc_product_eval(struct acc_replay *r, struct acc_dense *out);
/* i * step for i < n; NULL: acc_cannot was called. */
size_t *acc_offsets(struct acc_replay *r, size_t n, size_t step);
/* The mode of an argument in a row's signature, the word behind the colon; or empty. By keyword,
 * or by position where kw is empty. *name: what the signature calls it, or empty. */
struct acc_str acc_sig_mode(const struct acc_op *op, struct acc_str kw, uint32_t pos,
	struct acc_str *name);

/* P(X <= x) for a normal X: within 2^-52, and 2^-40 of itself (normal.c). */
void acc_normal(const double *x, size_t n, double *out);

/* --- values that are kept (memo.c) --- */
struct acc_memo_entry {
	uint32_t code; /* of the element as f32: whose value it is */
	double v;
};
struct acc_memos;
struct acc_memos *acc_memos_new(void);
void acc_memos_free(struct acc_memos *m);
/* Of an operator with these numbers (n bytes without gaps); NULL: there is no room. */
struct acc_memo *acc_memo_get(struct acc_memos *m, const struct acc_op *op, const void *key,
	size_t n);
/* Where that of an element is, or will be, that has so many bits of 0 at its end. */
struct acc_memo_entry *acc_memo_at(struct acc_memo *m, uint32_t code, unsigned shift);

/* --- elements (load.c) --- */
/* How a thread reads; opening files is serialised by the lock. */
struct acc_reader {
	struct acc_roots *roots;
	pthread_mutex_t *lock;
	void *scratch;         /* for ACC_CHUNK elements */
	struct acc_arena room; /* for the parts of calls */
	struct acc_buf raw;    /* for a tensor as it is stored */
	struct acc_memos *memos;
	bool all; /* look at all of them */
};
/* All tensors of the job, in order. */
int acc_each_tensor(struct acc_audit_job *j, acc_held_fn *f, void *arg);
/* Read the job's tensors. One that cannot be read has err set; < 0: out of memory. */
int acc_audit_job_load(struct acc_audit_job *j);
/* What was rounded as it was read is to be read again, as it was recorded. */
void acc_audit_job_as_recorded(struct acc_audit_job *j);
/* Open them instead, where they can be read at any place and are not small. */
int acc_audit_job_open(struct acc_audit_job *j);
void acc_audit_job_shut(struct acc_audit_job *j);
/* Stored elements as doubles. */
void acc_widen(enum acc_dtype t, const void *p, size_t n, double *out);
/* n elements of one that is open, from `first` on. 0, or < 0 with err set. */
int acc_held_read(struct acc_audit_job *j, struct acc_held *h, size_t first, size_t n, double *out);

/* A view of the elements of a tensor of the job that may be open, as one moves over them. */
struct acc_window {
	struct acc_audit_job *j;
	struct acc_held *held; /* NULL: v is all of it */
	const double *v;
	double *room; /* elements [at, at + n) */
	size_t at, n, cap;
	const char *err;
};
/* By what stands for the tensor, or its elements. 0 or < 0: out of memory. */
int acc_window_open(struct acc_window *w, struct acc_audit_job *j, const double *v);
int acc_window_of(struct acc_window *w, struct acc_audit_job *j, const struct acc_sealed *v);
/* n elements from `at` on, until the next call; NULL: err. */
const double *acc_window_at(struct acc_window *w, size_t at, size_t n);

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
