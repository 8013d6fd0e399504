/* job.h - one queued tensor or pair of a meter, and the units of work it is cut into */
#ifndef ACC_PAYLOAD_JOB_H
#define ACC_PAYLOAD_JOB_H

#include "pay.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct acc_side {
	bool present;
	struct acc_str src;
	struct acc_ref ref;
	struct acc_pay *pay; /* NULL until prepared, and where it failed */
	uint64_t count;
	bool check;          /* the container's checksum */
	uint32_t crc;
	XXH3_state_t hash;   /* over the chunks' hashes */
	struct acc_one one;
	float few[ACC_NFEW];
	struct acc_err err;
};

struct acc_measure {
	void *tag;
	char *names; /* what src and file point to */
	struct acc_side a, b;
	bool pair;        /* compared element by element */
	bool serial;      /* read in order by one worker */
	uint64_t units;   /* known when prepared */
	double min_scale;
	bool sampled;
	struct acc_kernel_opt opt;
	struct acc_two two;
};

/* What one chunk gave. */
struct acc_part {
	bool a, b; /* which sides are in it; both of a pair: two */
	size_t na, nb;
	struct acc_one oa, ob;
	struct acc_two two;
	uint32_t ca, cb; /* CRC-32 of the stored bytes, where it is checked */
	struct acc_err ea, eb;
};

/* A worker's memory for the bytes of a chunk of each side. */
struct acc_desk {
	uint8_t *a, *b;
	size_t na, nb;
};
void acc_desk_release(struct acc_desk *d);

/* Fill a zeroed measure. 0 or ACC_ENOMEM. */
int acc_measure_init(struct acc_measure *m, const struct acc_meter_opt *opt, void *tag,
	struct acc_operand a, struct acc_operand b, double min_scale);
/* Is it of the same bytes, seen the same way? Known before they are prepared, and until they are
 * released. Of the same measures keys are the same, and not 0; one of key 0 is like no other. */
uint64_t acc_measure_key(const struct acc_measure *m);
bool acc_measure_same(const struct acc_measure *x, const struct acc_measure *y);
/* Open the files, take the sample, count the units. Failures are the sides'. */
void acc_measure_prepare(struct acc_measure *m, struct acc_roots *r,
	const struct acc_meter_opt *opt);
/* Does it need more memory than a chunk? Known before it is prepared. */
bool acc_measure_heavy(const struct acc_measure *m);
/* Unit u of one that is not serial. */
void acc_measure_unit(struct acc_measure *m, uint64_t u, struct acc_desk *d,
	struct acc_part *part);
/* Units are merged in their order. */
void acc_measure_merge(struct acc_measure *m, const struct acc_part *part);
/* All units, in order; *part is for working. */
void acc_measure_all(struct acc_measure *m, struct acc_desk *d, struct acc_part *part);
/* Bytes of all units that are merged. */
uint64_t acc_measure_bytes(const struct acc_measure *m);
/* After the last merge: check the checksums, close the files. */
void acc_measure_end(struct acc_measure *m);
void acc_measure_reading(struct acc_measure *m, struct acc_reading *out);
/* The files only. */
void acc_measure_close(struct acc_measure *m);
void acc_measure_release(struct acc_measure *m);

#endif
