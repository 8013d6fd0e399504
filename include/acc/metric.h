/* metric.h - what a metric is, and the filter that measures records
 *
 * A metric is a formula over the sums of one pass (struct acc_reading), one row in
 * lib/metric/table.h, and an item in accmetric(1). Its name is the key that it writes.
 * Layer lib/metric, on base, io, stream, kernel, payload. */
#ifndef ACC_METRIC_H
#define ACC_METRIC_H

#include "acc/payload.h"
#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a metric is computed from. */
enum acc_metric_of {
	ACC_OF_TENSOR, /* the elements of one tensor: subject.one, .hash */
	ACC_OF_PAIR,   /* the elements of two: subject.r */
	ACC_OF_STATS,  /* the statistics that the recording tools wrote: subject.sa, .sb */
	ACC_OF_VALUE   /* two values or two checksums: subject.equal */
};

/* Statistics of one tensor in the order max, min, mean, norm. */
enum { ACC_NSTAT = 4 };
struct acc_stats {
	bool has[ACC_NSTAT];
	double v[ACC_NSTAT];
};

/* What a metric may look at; what is set depends on `of`. */
struct acc_subject {
	const struct acc_one *one;
	uint64_t hash;
	const struct acc_reading *r;
	const struct acc_ref *shape; /* the tensor whose shape gives coordinates */
	const struct acc_stats *sa, *sb;
	bool equal;
	const void *second;             /* the state of the metric's second pass, if it has one */
	int64_t ints[ACC_ULP_BINS + 1]; /* room for a value that is an array or a text */
	char text[128];
};

/* A second pass over both tensors, for what needs the first pass's results. Metrics that
 * share one share its state. Chunks come in row-major order, as doubles. */
struct acc_second {
	size_t size; /* of the state */
	void (*begin)(void *state, const struct acc_reading *r, const struct acc_ref *a,
		const struct acc_ref *b);
	void (*chunk)(void *state, const double *a, const double *b, size_t n);
	/* Behind the last chunk: 1, all chunks once more; 0, done; or < 0. NULL: done. */
	int (*more)(void *state);
	void (*end)(void *state); /* let go of what it holds; or NULL */
};

struct acc_metric {
	const char *name; /* the key: m.cosine, s.min */
	enum acc_metric_of of;
	const char *unit; /* "" for a plain number */
	const char *help; /* the definition in one line */
	/* The value; nil where it is not defined, and then no field is written. May point into
	 * the subject. */
	struct acc_val (*value)(struct acc_subject *s);
	/* Of a text: its message, see acc/say.h; or NULL. */
	struct acc_val (*said)(struct acc_subject *s);
	/* It needs neither ratios nor units in the last place: see acc_kernel_opt.plain. */
	bool plain;
	const struct acc_second *second; /* NULL: the first pass is enough. Else the metric is
	                                  * computed only when it is asked for. */
};
extern const struct acc_metric *const acc_metrics[];
extern const size_t acc_nmetrics;
/* By name, with or without "m."; NULL if there is none. */
const struct acc_metric *acc_metric_find(const char *name);

/* --- the filter --- */
enum acc_metric_preset {
	ACC_PRESET_NONE,
	ACC_PRESET_MSPROBE,
	ACC_PRESET_MSPROBE83,
	ACC_PRESET_MSPROBE26,
	ACC_PRESET_PTDBG,
	ACC_PRESET_MSACCUCMP
};
/* false if there is none of this name */
bool acc_metric_preset(const char *name, enum acc_metric_preset *out);

struct acc_measurer_opt {
	const struct acc_metric *const *metrics; /* the m.* to write; n = 0: all of one pass */
	size_t n;
	bool also; /* those of one pass as well */
	enum acc_metric_preset preset;
	unsigned threads; /* 0: one per CPU */
	bool no_check;    /* skip containers' checksums */
	/* s.* of weights are of these tensors as they are now: what two with the same s.hash
	 * would give is written without reading both again. */
	bool measured;
	double rtol, atol;  /* of m.outside; < 0: torch.testing's for the coarser dtype */
	const char *tmpdir; /* for payload that comes in the stream, */
	struct acc_in *in;  /* whose data records may then be open; or NULL */
	/* Called some times a second while nothing comes out, where that takes long; or NULL. */
	void (*idle)(void *arg);
};

/* A record, in the order of the input; valid during the call. < 0 stops. */
typedef int acc_measurer_fn(void *arg, struct acc_rec *r);
/* Something could not be read; measuring goes on. */
typedef void acc_measurer_trouble_fn(void *arg, const struct acc_err *e);

struct acc_measurer;
/* `roots` stays the caller's, and must live as long. */
struct acc_measurer *acc_measurer_open(struct acc_roots *roots, const struct acc_measurer_opt *opt,
	acc_measurer_fn *emit, acc_measurer_trouble_fn *trouble, void *arg, struct acc_err *e);
/* Take a record, the last of opt->in if that is there; it may be changed, and may come out at once
 * or later. */
int acc_measurer_put(struct acc_measurer *m, struct acc_rec *r, struct acc_err *e);
/* No more records: what is still waiting comes out. */
int acc_measurer_end(struct acc_measurer *m, struct acc_err *e);
/* Bytes of tensors measured so far (of large ones, parts), and those of tensors that were put and
 * are not finished. */
uint64_t acc_measurer_bytes(struct acc_measurer *m, uint64_t *waiting);
void acc_measurer_close(struct acc_measurer *m);

#ifdef __cplusplus
}
#endif

/* Of so many numbers of a weight the step of which all are multiples, up to 255 times; 0: they are all zero; -1: there
 * is none. Formats of few levels have one scale for so many numbers, or for more. Of 32 numbers that nobody rounded all
 * are near one of 255 sets of multiples once in 10^80. */
enum { ACC_LEVELS_BLOCK = 32 };
double acc_levels_step(const double *v);

#endif
