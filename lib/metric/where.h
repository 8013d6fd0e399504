/* where.h - in which part of a tensor an error sits, and what it is there (inside lib/metric)
 *
 * The error of an element is y = d / (|b| + s), as in m.err_rms. Along every axis, and along
 * row-major order, the sums of y^2 are kept by index (where an axis is long, by block of indices).
 * Noise is alike everywhere: its y have one variance. A set of indices is claimed if two variances,
 * one inside and one outside, describe the sums better than one does, by more than it costs to say
 * which set it is (minimum description length: Rissanen, 1978). By Markov's inequality a likelihood
 * ratio of e^t beyond that comes by chance in less than e^-t of all cases. Besides, the slices of the
 * set have to stand out from how unlike the others are (where_fit.c). */
#ifndef ACC_METRIC_WHERE_H
#define ACC_METRIC_WHERE_H

#include "acc/metric.h"

/* WHERE_BINS: of an axis; a longer one lies in blocks, and its first so many indices are kept one by
 * one, too. */
enum { WHERE_BINS = 8192, WHERE_LIST = 4, WHERE_AXES = 6, WHERE_PERIOD = 512, WHERE_FLAT = -1 };

enum where_kind { WHERE_ALL, WHERE_RANGE, WHERE_EVERY, WHERE_SOME };

/* Indices of one axis. */
struct where_set {
	int axis; /* WHERE_FLAT: of row-major order */
	enum where_kind kind;
	int64_t extent;               /* of the axis */
	int64_t lo, hi;               /* RANGE: lo <= i < hi */
	int64_t period, first, width; /* EVERY: (i - first) mod period < width */
	int nlist;
	int64_t list[WHERE_LIST]; /* SOME, rising */
	int64_t unit;             /* of lo and hi: how many indices a bin held */
	double v0, v1;            /* variances outside and inside */
	double cost;              /* nats to say which one it is; */
	double gain;              /* what it gains beyond that */
	double aside;             /* nats by which it stands out from the spread of slices */
};
bool acc_where_in(const struct where_set *s, int64_t i);

struct where_bin {
	double n, s; /* elements that can tell anything; sum of y^2 */
};

/* What inside and outside of a set gains over one variance for all, in nats. n, s: of all. rounding:
 * the least variance that means anything, of one rounding of the coarser dtype. */
double acc_where_gain(double n, double s, double n1, double s1, double rounding);
/* May a set be claimed that holds n1, s1 of n, s? */
bool acc_where_stands_out(double n, double s, double n1, double s1, double rounding);
/* The best set of `extent` indices that lie in bins of `width` each, from index `from` on; its gain is
 * -INFINITY if there is none. n, s: of all. tmp: room for bins, 4 * nbin. */
void acc_where_fit(const struct where_bin *b, size_t nbin, int64_t from, int64_t width,
	double rounding, struct where_bin *tmp, struct where_set *out);

/* Where a RANGE begins and ends that is known by its unit: sums over each index from `from` on. Both
 * ends lie there, or only its beginning or end. */
enum { WHERE_LO = 1, WHERE_HI = 2 };
void acc_where_sharpen(const struct where_bin *b, size_t nbin, int64_t from, int64_t width,
	int ends, struct where_set *s);

/* "every 5th channel of axis 2"; as a slice: "0::5". */
const char *acc_where_name(struct acc_arena *m, const struct where_set *s, uint32_t ndim);
void acc_where_slice(const struct where_set *s, char *buf, size_t size);

/* What the error is there. */
enum where_how {
	WHERE_UNKNOWN,
	WHERE_SCALE,  /* by: the factor */
	WHERE_OFFSET, /* by: what was added */
	WHERE_SIGN,
	WHERE_ZERO,
	WHERE_NAN,
	WHERE_INF,
	WHERE_SHIFT, /* by: how far, along an axis */
	WHERE_SWAP,  /* two indices of an axis are exchanged */
	WHERE_ORDER  /* an axis is in another order */
};
/* Sums over elements; x = b / (|b| + s), z = 1 / (|b| + s). */
struct where_tally {
	double n, s; /* as of a bin */
	double xx, xy, zz, yz, xz;
	double other, x, y;    /* how many are not as the one before; that one */
	double zero, nan, inf; /* how many are so on the device alone */
	double minus;          /* how many are -b, to 1 % */
};
enum where_how acc_where_how(const struct where_tally *t, double *by);
/* The slices of an axis, each as a few sums with signs that are the same for all: are those of the
 * device those of the bench in another order? `each`: elements of a slice. */
enum { WHERE_SIGNS = 4 };
enum where_how acc_where_order(const double (*a)[WHERE_SIGNS], const double (*b)[WHERE_SIGNS],
	size_t n, double each, double *by);
/* "times 1.03"; along: the axis. */
const char *acc_where_how_name(struct acc_arena *m, enum where_how how, double by, int along);
extern const char *const acc_where_hows[]; /* as m.where.how has it */

#endif
