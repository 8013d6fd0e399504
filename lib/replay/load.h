/* load.h - evaluation; values that are kept (memo.c); elements, as a whole or by a window (load.c) */
#ifndef REPLAY_LOAD_H
#define REPLAY_LOAD_H

#include "replay/job.h"
#include "replay/number.h"

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

#endif
