/* measurer.h - the filter that measures records, inside lib/metric */
#ifndef ACC_METRIC_MEASURER_H
#define ACC_METRIC_MEASURER_H

#include "metric/layout.h"
#include "metric/side.h"

struct inlined;

enum { RING = 256, MAX_HELD = 8 << 20, KEEP_HELD = 32 << 10, MAX_SECOND = 4 };
/* Bytes of tensors that came in the stream and wait on disk for being measured. */
enum { MAX_WAITING = 256 << 20 };

/* A second pass over a pair. */
struct second {
	const struct acc_measurer *m;
	struct acc_reading got; /* by the first */
	void *state[MAX_SECOND];
	bool over[MAX_SECOND]; /* it needs no more passes */
	int rc;
};

/* What an earlier run measured of a tensor in which all is finite. */
struct known {
	bool is;
	uint64_t hash, zero, sat;
	double min, max, mean, norm;
	struct acc_str chunks; /* s.chunks; borrowed from the record; empty: unknown */
};

/* Differences as parts of how far a format's rounding may have moved an element. */
struct reach {
	bool is;
	double max, sum, n; /* sum: of squares */
	/* Of differences: times the bench's value, squared, and both squared; and of its values, squared. */
	double cross, square, noise, values;
};

struct slot {
	struct acc_rec rec;
	size_t held;
	bool done;
	bool gradient; /* an incoming gradient of the backward call `call` */
	uint64_t call; /* a backward call, by a hash; 0: none */
	bool few;      /* it may be a gradient: a few elements are wanted */
	uint64_t bytes;
	double scale;     /* its lower bound, as the pool takes it */
	struct side a, b; /* a alone in a tensor record */
	/* Measured in another layout than row-major; its side's ref is then so viewed. */
	bool laid;
	struct layout layout;
	struct acc_reading *direct; /* what row-major order gave; NULL: it cannot be */
	struct second *second;      /* while it runs */
	struct reach reach;         /* once it has */
	struct known known;         /* of the side that was measured before */
	char hashing;               /* 'a' or 'b', while that side's content is hashed alone */
	bool checked;               /* then, what is hashed was checked when it was measured */
	bool equal;                 /* by the hash: known is of both */
	bool preset;                /* measured as another tool does: */
	struct preset_in in;
};

struct acc_measurer {
	struct acc_roots *roots;
	struct acc_pool *pool;
	struct acc_measurer_opt opt;
	acc_measurer_fn *emit;
	acc_measurer_trouble_fn *trouble;
	void *arg;

	/* By what they are of, those that are written, in the order of acc_metrics. */
	struct {
		const struct acc_metric **v;
		size_t n;
	} rows[ACC_OF_VALUE + 1];
	const struct acc_second *second[MAX_SECOND]; /* those that the chosen ones need */
	int nsecond;

	struct slot slot[RING];
	size_t head, n, held;
	struct slot now; /* the record that was put; its rec is borrowed */

	struct side_keys keys;
	struct acc_ids clean;  /* shapes of records that hold neither m.* nor s.* */
	struct acc_map source; /* id of a source: its task, and MINDSPORE */
	bool seen_payload, seen_md5;
	struct inlined *inlined; /* once a tensor's payload may come in the stream */

	struct { /* of the latest backward call */
		uint64_t call, n;
		double rms;
	} gradient;
	bool plain; /* only what acc_kernel_opt says of that is measured */
	bool back;  /* there was a backward call in this step of the bench: */
	int64_t back_step;

	struct acc_reading reading; /* large, therefore here */
	struct acc_subject subject;
	uint64_t queued, bytes; /* of tensors, handed to the pool and come back */
};

enum { MINDSPORE = 16 }; /* beside the task in acc_measurer.source */

/* Learn a source. */
int acc_measurer_learn(struct acc_measurer *m, const struct acc_rec *r);
/* Both sides of a pair; of a tensor, as the first. 0 or ACC_ENOMEM. */
int acc_measurer_read(struct acc_measurer *m, const struct acc_rec *r, struct side *a,
	struct side *b);
/* Forget what an earlier run has measured: m.*, and s.* of the sides that are measured now. */
int acc_measurer_strip(struct acc_measurer *m, struct acc_rec *r, const struct side *a,
	const struct side *b);
/* Everything is known: fill in the slot's record. got is NULL where nothing had to be read. */
int acc_measurer_fill(struct acc_measurer *m, struct slot *s, struct acc_reading *got);
/* Begin a second pass of what m->reading is the first: 1, or 0 where none is due. */
int acc_second_begin(struct acc_measurer *m, struct slot *s);
void acc_second_end(struct slot *s);
/* Is one of the two quantized, and are they not the same? Then their differences are measured, by a thread of the
 * pool. 0 or < 0. */
bool acc_reach_due(const struct slot *s, const struct acc_reading *got);
int acc_reach_measure(const struct acc_measurer *m, struct slot *s, struct acc_err *ea,
	struct acc_err *eb);
int acc_reach_put(struct acc_rec *r, const struct reach *x);
/* Which rank's part of a folded tensor holds the element that is furthest off: fold.rank. 0 or < 0. */
int acc_measurer_part(const struct acc_measurer *m, struct slot *s, const struct acc_reading *got);
/* Are the two of different numbers of elements? */
bool acc_measurer_unequal(const struct slot *s);
/* Is it a weight, of floats, whose bytes are there? */
bool acc_measured_weight(const struct side *s);
/* Before the record is stripped: what is known of its sides. */
void acc_measured_read(const struct acc_measurer *m, const struct acc_rec *r, const struct side *a,
	const struct side *b, struct known known[2]);
/* What is known of a pair that is to be measured may settle it: s->equal, or s->hashing. */
void acc_measured_settle(const struct acc_measurer *m, struct slot *s, const struct known known[2]);
/* s.chunks of a tensor. 0 or < 0. */
int acc_measured_put_chunks(struct acc_rec *r, const struct acc_reading *got);
/* That side's content was hashed: is it that of the other? s->equal. */
void acc_measured_hashed(struct slot *s, const struct acc_reading *got);
/* What measuring both would have given. */
void acc_measured_reading(const struct acc_measurer *m, const struct slot *s,
	struct acc_reading *out);
/* s.* of a side. 0 or < 0. */
int acc_measured_put(struct acc_rec *r, const char *prefix, const struct known *k);
/* Measure a pair as another tool does, in three steps. 1: there is something to measure. The second
 * may be done by another thread; it touches nothing but the slot. */
int acc_measurer_preset_begin(struct acc_measurer *m, struct slot *s);
void acc_measurer_preset_run(void *slot);
int acc_measurer_preset_end(struct acc_measurer *m, struct slot *s);

#endif
