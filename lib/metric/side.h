/* side.h - one side of a record that is to be measured (inside lib/metric) */
#ifndef ACC_METRIC_SIDE_H
#define ACC_METRIC_SIDE_H

#include "acc/metric.h"
#include "acc/stream.h"

enum side_task { TASK_UNKNOWN, TASK_TENSOR, TASK_STATS, TASK_MD5 };
enum side_kind { SIDE_ABSENT, SIDE_TENSOR, SIDE_ARG, SIDE_OTHER };

struct side {
	const char *prefix; /* "a.", "b.", or "" in a tensor record */
	enum side_kind kind;
	struct acc_str src;
	enum side_task task; /* of its source */
	bool mindspore;
	bool weight;  /* it belongs to no op call */
	bool payload; /* ref is usable */
	struct acc_ref ref;
	struct acc_err err; /* code != 0: the reference is broken */
	/* What a tensor's record holds besides, borrowed from it. */
	struct acc_str layout; /* empty: not said */
	bool has_shape, has_file, has_data_name, has_err, has_crc32;
	struct acc_stats stats; /* stat.max, min, mean, norm as numbers, */
	int nstats, nulls;      /* how many of them, and how many fields are null */
	const char *sum_key;    /* of the recorded checksum: stat.crc32, ...; NULL: none */
	struct acc_str sum;
};

/* Where a side's fields stand, by prefix. Zero it to start. */
struct side_keys {
	struct acc_pick none, a, b;
};
/* Read off a record; the source's task and framework are left to the caller. */
void acc_side_get(struct side_keys *keys, const struct acc_rec *r, const char *prefix,
	enum side_kind kind, struct side *s);
void acc_side_keys_release(struct side_keys *keys);
/* Elements of a tensor by its shape; false where the record has no shape. */
bool acc_side_count(const struct side *s, uint64_t *n);

/* The statistics of a measured tensor as msprobe would have recorded them: mean and norm
 * rounded to the tensor's own dtype; all four the element itself for a 0-d tensor. */
void acc_side_stats_of(const struct acc_one *one, const struct acc_ref *ref, struct acc_stats *out);

/* A checksum: its key (stat.crc32, ...) and text. A payload's own CRC-32, where its container
 * has one for exactly these bytes, counts as stat.crc32 (text is then put into buf). */
const char *acc_side_checksum(const struct side *s, struct acc_str *text, char buf[9]);

/* Walk both payloads (of equal element count) in row-major order, chunk by chunk, as doubles;
 * check: containers' checksums, where they cover just these bytes. 0, or < 0 with the error of
 * the side that failed. */
typedef void acc_side_chunk_fn(void *arg, const double *a, const double *b, size_t n);
int acc_side_walk(struct acc_roots *roots, const struct side *a, const struct side *b, bool check,
	acc_side_chunk_fn *fn, void *arg, struct acc_err *err_a, struct acc_err *err_b);

/* v rounded to a floating dtype (f16, bf16, f32, f64; others: f32). */
double acc_side_round(enum acc_dtype t, double v);

/* Add the metrics of a preset that follows another tool digit by digit. `a` is there; `b` may
 * be absent. err_a, err_b: what could not be read. 0 or < 0 (out of memory, record full). */
struct preset_in {
	struct acc_roots *roots;
	struct acc_rec *r;
	const struct side *a, *b;
	enum acc_metric_preset preset;
	enum side_task mode; /* TASK_TENSOR, TASK_STATS or TASK_MD5 */
	bool check;          /* containers' checksums */
	struct acc_err *err_a, *err_b;
	int rc; /* what came of it */
};
int acc_preset_msprobe(const struct preset_in *in, bool accuracy);
int acc_preset_msprobe_statistics(const struct preset_in *in);
int acc_preset_msprobe_checksums(const struct preset_in *in);
int acc_preset_ptdbg(const struct preset_in *in);
/* "Yes", "No", ... of the cosine and MaxAbsErr in the record; `none` where neither is a
 * number. */
const char *acc_preset_accuracy(const struct acc_rec *r, const char *none);

/* str(value) as Python prints it, into buf (cut off if it does not fit). */
struct acc_str acc_side_pystr(const struct acc_val *v, char *buf, size_t size);

#endif
