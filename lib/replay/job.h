/* job.h - a call with its tensors, as records say (call.c), and what the tests of it found */
#ifndef REPLAY_JOB_H
#define REPLAY_JOB_H

#include <pthread.h>

#include "acc/replay.h"
#include "acc/stream.h"
#include "kernel/audit.h"

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

#endif
