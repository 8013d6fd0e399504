/* payload.h - the bytes behind a tensor reference, safely
 *
 * A checksum of the container is checked by the pool, while reading, where the tensor is the
 * whole of what it covers in order; not for views of a storage.
 *
 * A stream is as untrusted as a dump: files are opened beneath their source's root only,
 * regular files only, and offset, length and strides are checked against the file as it is
 * now; a file whose size or time differs from the record's, or is not in it, is said, not measured
 * (of a source that was relocated, only the size counts). A file that changes meanwhile is an error: behind
 * every chunk its size and times are looked at again.
 * Layer lib/payload, on base, io, stream, kernel. */
#ifndef ACC_PAYLOAD_H
#define ACC_PAYLOAD_H

#include "acc/kernel.h"
#include "acc/record.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- where files are --- */
struct acc_roots;
struct acc_roots *acc_roots_open(struct acc_err *e);
/* A relocation: a root that starts with OLD is looked for at NEW instead. */
int acc_roots_move(struct acc_roots *r, const char *old_new, struct acc_err *e);
/* Learn a source record (its id and root). The folder is opened at first use. */
int acc_roots_add(struct acc_roots *r, const struct acc_rec *source, struct acc_err *e);
/* A source that is one open file, whatever its tensors say in `file`: payload that came in a
 * stream. fd is read at any place, and stays the caller's. */
int acc_roots_add_fd(struct acc_roots *r, const char *id, int fd, struct acc_err *e);
/* From now on, sources that are added are those of a stream that somebody else made (or not). Who
 * copies bytes out of their files reads only what lies beneath a folder that is allowed: else a
 * stream could have any file copied. */
void acc_roots_foreign(struct acc_roots *r, bool foreign);
int acc_roots_allow(struct acc_roots *r, const char *folder, struct acc_err *e);
/* n folders, and of the operands (NULL behind the last) that are regular files, such as streams that
 * were kept, their own. */
int acc_roots_allow_all(struct acc_roots *r, const char *const *folder, size_t n,
	char *const *operand, struct acc_err *e);
void acc_roots_close(struct acc_roots *r);

/* --- one tensor, chunk by chunk, in row-major order --- */
struct acc_pay;
struct acc_pay *acc_pay_open(struct acc_roots *r, struct acc_str src, const struct acc_ref *ref,
	struct acc_err *e);
uint64_t acc_pay_count(const struct acc_pay *p);
/* Elements [first, first + n), n <= ACC_CHUNK, in native byte order; into `scratch` (n
 * elements) or in place: *out. Any order where acc_pay_random, else rising without gaps. */
int acc_pay_read(struct acc_pay *p, uint64_t first, size_t n, void *scratch, const void **out,
	struct acc_err *e);
bool acc_pay_random(const struct acc_pay *p);
/* A few elements from anywhere, in native order; not where the storage is compressed. */
int acc_pay_peek(struct acc_pay *p, uint64_t first, size_t n, void *out, struct acc_err *e);
/* The same of n elements, each at its place. */
int acc_pay_peek_each(struct acc_pay *p, const uint64_t *at, size_t n, void *out,
	struct acc_err *e);
bool acc_pay_can_peek(const struct acc_pay *p);
void acc_pay_close(struct acc_pay *p);

/* --- payload that travels in the stream --- */
struct acc_inline;
struct acc_inline *acc_inline_open(const char *tmpdir, struct acc_err *e);
/* A record on its way out: sources are learnt; of a tensor in a file the reference is kept,
 * and taken out of the record, whose payload then is row-major. */
int acc_inline_take(struct acc_inline *in, struct acc_rec *r, struct acc_err *e);
/* The same, but of a tensor statistics (acc_stat_put) come in the place of the reference. 0, or < 0: where
 * it cannot be read, the record stays without both. */
int acc_inline_statistics(struct acc_inline *in, struct acc_rec *r, struct acc_err *e);
/* Its sources, for acc_roots_foreign and acc_roots_allow. */
struct acc_roots *acc_inline_roots(struct acc_inline *in);
/* The data records of the tensors that were taken, in their order. `emit` gets each, `trouble`
 * what cannot be read, which ends that tensor only. 0, or < 0 from emit. */
int acc_inline_data(struct acc_inline *in, int (*emit)(void *arg, struct acc_rec *r),
	void (*trouble)(void *arg, const struct acc_err *e), void *arg, struct acc_err *e);
void acc_inline_close(struct acc_inline *in);

/* --- measuring many tensors and pairs with threads, results in order --- */
struct acc_pool;
struct acc_pool_opt {
	unsigned threads; /* 0: one per CPU that this process may run on, at most 16 */
	bool no_check;    /* skip containers' checksums */
	/* Map large files instead of reading them: a fifth less work. While such a pool is open,
	 * SIGBUS is handled (a file that shrinks raises it); faults that are not the pool's go
	 * to the handler that was there before. */
	bool map;
	double rtol, atol; /* of acc_two.outside; < 0: torch.testing's for the coarser dtype */
	bool plain;        /* see acc_kernel_opt; there is no scale then */
};
struct acc_operand { /* one side; NULL ref: absent */
	struct acc_str src;
	const struct acc_ref *ref;
	/* Of one tensor alone: */
	bool hash_only; /* of its acc_one, n alone is wanted */
	bool no_check;  /* nor its container's checksums */
	bool chunks;    /* acc_reading.chunks are wanted */
};
/* A few elements, the same of every tensor with as many elements: what can be told of sums of
 * tensors without reading them again. The i-th of the smaller of count and ACC_NFEW stands at
 * acc_few_at(count, i), in row-major order. */
enum { ACC_NFEW = 32 };
uint64_t acc_few_at(uint64_t count, unsigned i);
struct acc_reading {
	void *tag;
	struct acc_err err_a, err_b; /* code != 0: that side could not be read, and why */
	bool has_a, has_b, has_two;  /* which results are there */
	struct acc_one a, b;
	uint64_t hash_a, hash_b; /* content hash, see s.hash in accstream(5); 0: of a plain pair */
	/* What hash_a is of: until the next result is taken; none of what was measured lately. */
	const uint64_t *chunks;
	size_t nchunks;
	struct acc_two two;
	float few_a[ACC_NFEW], few_b[ACC_NFEW]; /* of tensors of real numbers */
	/* The s that e was measured with: the larger of min_scale and the median of the finite
	 * |b| that are not 0, in a sample of b: all of up to 4,096 elements, else 64 runs of 64
	 * at equal distances. */
	double scale;
	bool sampled; /* there was such a |b| */
	double rtol, atol;
};
struct acc_pool *acc_pool_open(struct acc_roots *r, const struct acc_pool_opt *opt,
	struct acc_err *e);
/* The tolerances that a pair of these dtypes is measured with; ACC_NODTYPE: that side is absent. */
void acc_pool_tolerances(const struct acc_pool_opt *opt, enum acc_dtype a, enum acc_dtype b,
	double *rtol, double *atol);
/* Queue a pair (compared element by element if both have the same number of elements), or one
 * tensor (the other ref NULL). refs are copied. min_scale: lower bound for the scale s. 0: it is
 * queued; 1: it is not, because ACC_METER_QUEUE are: take a result first; < 0: failure. A side
 * that cannot be read is no failure here, but of its reading. */
enum { ACC_METER_QUEUE = 256 };
int acc_pool_add(struct acc_pool *m, void *tag, struct acc_operand a, struct acc_operand b,
	double min_scale, struct acc_err *e);
/* Queue work of another kind, that a thread of the pool does; the result has only the tag. */
int acc_pool_add_task(struct acc_pool *m, void (*task)(void *tag), void *tag, struct acc_err *e);
/* The oldest result. 1: *out filled; 0: nothing is queued, or (wait false) not finished yet. */
int acc_pool_take(struct acc_pool *m, bool wait, struct acc_reading *out);
/* Wait until there is a result to take, or nothing is queued, at most so long: false, neither. */
bool acc_pool_wait(struct acc_pool *m, double seconds);
/* Bytes that were read for large tensors whose result is not taken yet. */
uint64_t acc_pool_bytes(struct acc_pool *m);
void acc_pool_close(struct acc_pool *m);

#ifdef __cplusplus
}
#endif

#endif
