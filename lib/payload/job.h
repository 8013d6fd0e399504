/* job.h - one queued tensor or pair of a pool, and the units of work it is cut into */
#ifndef ACC_PAYLOAD_JOB_H
#define ACC_PAYLOAD_JOB_H

#include "payload/pay.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct acc_job_side {
	bool present;
	struct acc_str src;
	struct acc_ref ref;
	struct acc_pay *pay; /* NULL until prepared, and where it failed */
	uint64_t count;
	bool check;                     /* the container's checksum */
	bool hash_only, no_check, keep; /* keep: the chunks' hashes */
	bool read;                      /* its bytes, all of them, are in the worker's memory */
	uint64_t *chunks;
	uint64_t nchunks;
	uint32_t crc;
	XXH3_state_t hash; /* over the chunks' hashes */
	struct acc_one one;
	float few[ACC_NFEW];
	struct acc_err err;
};

struct acc_job {
	void *tag;
	struct acc_arena names; /* what src and ref point to */
	struct acc_job_side a, b;
	bool pair;      /* compared element by element */
	bool serial;    /* read in order by one worker */
	uint64_t units; /* known when prepared */
	double min_scale;
	bool sampled;
	struct acc_kernel_opt opt;
	struct acc_two two;
};

/* What one chunk gave. */
struct acc_job_part {
	bool a, b; /* which sides are in it; both of a pair: two */
	size_t na, nb;
	struct acc_one oa, ob;
	struct acc_two two;
	uint32_t ca, cb; /* CRC-32 of the stored bytes, where it is checked */
	struct acc_err ea, eb;
};

/* A worker's memory for the bytes of a chunk of each side, and for a sample. */
struct acc_job_buffers {
	uint8_t *a, *b;
	size_t na, nb;
	double *sample;
};
void acc_job_buffers_release(struct acc_job_buffers *d);

/* Fill a zeroed measure. 0 or ACC_ENOMEM. */
int acc_job_init(struct acc_job *m, const struct acc_pool_opt *opt, void *tag, struct acc_operand a,
	struct acc_operand b, double min_scale);
/* Is it of the same bytes, seen the same way? Known before they are prepared, and until they are
 * released. Of the same measures keys are the same, and not 0; one of key 0 is like no other. */
uint64_t acc_job_key(const struct acc_job *m);
bool acc_job_same(const struct acc_job *x, const struct acc_job *y);
/* Open the files, take the sample, count the units. Failures are the sides'. One of a single unit is then done with
 * the same memory, which may hold b's bytes already. */
void acc_job_prepare(struct acc_job *m, struct acc_roots *r, const struct acc_pool_opt *opt,
	struct acc_job_buffers *d);
/* Does it need more memory than a chunk? Known before it is prepared. */
bool acc_job_heavy(const struct acc_job *m);
/* Unit u of one that is not serial. */
void acc_job_unit(struct acc_job *m, uint64_t u, struct acc_job_buffers *d,
	struct acc_job_part *part);
/* Units are merged in their order. */
void acc_job_merge(struct acc_job *m, const struct acc_job_part *part);
/* All units, in order; *part is for working. */
void acc_job_all(struct acc_job *m, struct acc_job_buffers *d, struct acc_job_part *part);
/* Bytes of all units that are merged. */
uint64_t acc_job_bytes(const struct acc_job *m);
/* After the last merge: check the checksums, close the files. */
void acc_job_end(struct acc_job *m);
void acc_job_reading(struct acc_job *m, struct acc_reading *out);
/* The files only. */
void acc_job_close(struct acc_job *m);
void acc_job_release(struct acc_job *m);

#endif
