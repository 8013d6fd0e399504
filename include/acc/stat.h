/* stat.h - the four statistics of a tensor, and what they say of each other
 *
 * The largest element, the smallest, the mean and the 2-norm: what recorders write of a tensor (stat.max ...) and
 * accmetric measures (s.max ...). Those of a whole follow from those of its parts; those of two that should be one
 * may be so far apart as who wrote them rounded.
 * Layer lib/stat, on base. */
#ifndef ACC_STAT_H
#define ACC_STAT_H

#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ACC_STAT_MAX, ACC_STAT_MIN, ACC_STAT_MEAN, ACC_STAT_NORM, ACC_STATS };

enum acc_stat_from {
	ACC_STAT_RECORDED, /* by the recorder */
	ACC_STAT_MEASURED, /* by accmetric; what it did not measure, as recorded */
};

/* Those of one side ("a.", "b.", "") of a record; a boolean counts as 0 or 1. Which are known, a bit each; of the others
 * v is NAN. */
enum { ACC_STAT_ALL = (1 << ACC_STATS) - 1 };
uint8_t acc_stat_read(const struct acc_rec *r, const char *side, enum acc_stat_from from,
	double v[ACC_STATS]);
bool acc_stat_finite(const double v[ACC_STATS]); /* all four */

/* The root mean square of `count` elements, as large as one is: 0 of none. */
double acc_stat_rms(const double v[ACC_STATS], double count);

/* Of parts, as they come; starts as all 0. What is not a number stays so. */
struct acc_stat_parts {
	double max, min, sum, square, count;
};
void acc_stat_add(struct acc_stat_parts *p, const double v[ACC_STATS], double count);
/* What the parts are together. */
void acc_stat_whole(const struct acc_stat_parts *p, double v[ACC_STATS]);

/* How far a is from b, which has `count` elements: each in parts of what it is made of, the extremes of the larger of
 * b's, the mean of the root mean square, the norm of itself. */
void acc_stat_apart(const double a[ACC_STATS], const double b[ACC_STATS], double count,
	double apart[ACC_STATS]);

#ifdef __cplusplus
}
#endif
#endif
