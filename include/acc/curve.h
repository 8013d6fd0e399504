/* curve.h - do the curves of two runs differ, since when, and is it noise?
 *
 * Pairs of points (pair records of scalars, as accalign makes them) are gathered to curves, one
 * per tag, joined by step; each curve is measured; rules judge the figures; what the stages of
 * training say together becomes findings. The figures are those of accstream(5), curve.
 * Layer lib/curve, on base, io, judge. */
#ifndef ACC_CURVE_H
#define ACC_CURVE_H

#include "acc/judge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rule files of share/curves; the first is the default. */
extern const struct acc_preset acc_curve_presets[];
extern const size_t acc_ncurve_presets;
/* The files of share/names: rules for acc_maps_rename_text. */
extern const struct acc_preset acc_names[];
extern const size_t acc_nnames;
/* The files of share/profiles: lines for acc_profile_read. */
extern const struct acc_preset acc_profiles[];
extern const size_t acc_nprofiles;

/* --- does a difference fluctuate about zero? --- */
enum acc_drift_kind {
	ACC_DRIFT_NONE,   /* as noise about zero would */
	ACC_DRIFT_OFFSET, /* its mean is not zero */
	ACC_DRIFT_TREND,  /* it grows or shrinks steadily */
	ACC_DRIFT_UNKNOWN /* too few values to tell */
};
struct acc_drift {
	enum acc_drift_kind kind;
	double offset, offset_p; /* mean, and the probability of one as far from 0 by chance */
	double offset_se;        /* standard error of the mean */
	double trend_p;          /* of no trend */
	double phi;              /* autocorrelation of neighbouring blocks that was removed */
	double eff;              /* so many independent blocks tell as much */
	uint64_t signs;          /* how often the sign changes */
};
/* n finite differences in the order of steps. The series is averaged in at most 64 blocks,
 * prewhitened with their lag-1 autocorrelation (Andrews and Monahan 1992; corrected for its
 * bias), and cut into 16 groups (8 below 32 values); t tests on the means of the groups
 * (Ibragimov and Mueller 2010), and on how those of the second half differ from those of the
 * first, allow for autocorrelation and for noise whose size changes. Each test at 2 %: together
 * at most one false alarm in 20; tests/bench/curve_drift.c measures that, and the power. Where
 * the blocks are worth too few independent ones to tell, a series in which neither test finds
 * anything is still noise about zero if its sign changes at every fourth value or more often.
 */
void acc_drift_test(const double *d, size_t n, struct acc_drift *out);
/* --- does it keep another level from a point on? --- */
struct acc_change {
	bool told;            /* there are values enough to tell */
	bool found;           /* it does */
	size_t at;            /* the first value of the other level, as best it can be told */
	double t;             /* of the difference of the levels, the largest of all points */
	double before, after; /* the mean on either side; NAN: fewer than 400 values */
	double times,
		even; /* of acc_change_sharp: the least behind it, in parts of the largest before, and of the mean */
};
/* n finite values in the order of steps. They are averaged in at most 256 blocks. An
 * autoregression of order 2, fitted to what the best two levels leave over, is removed; then the t
 * of another level is computed at each block but the first and last tenth, from the means before
 * and after and from the step itself, with a variance of its own on either side (noise shrinks and
 * grows in training). The largest t counts from 4.3 on, which tests/bench/curve_change.c finds by
 * simulation: on 1,000 values, noise of one autoregression exceeds it in at most 2 % of all
 * series. Blocks worth fewer than 10 independent ones (20 below 640 values) tell nothing.
 */
void acc_change_test(const double *d, size_t n, struct acc_change *out);
/* The same where it needs no test: the split behind which all values are to one side and the least of them is the most
 * times the largest before it, out->before, without its sign. At least 1; 1e9 where those before it are 0. Others say
 * how many it takes. room has n places. */
bool acc_change_sharp(const double *d, size_t n, double *room, struct acc_change *out);
/* Probability that Student's t with df degrees of freedom is farther from 0 than t. */
double acc_student_p(double t, double df);

/* --- the whole --- */
struct acc_curves;
struct acc_curve_opt {
	struct acc_rules *rules; /* stays yours */
	const char *rules_name;
};
struct acc_curves *acc_curves_open(const struct acc_curve_opt *opt, struct acc_err *e);
/* Take a pair of the device and the bench (noise = 0) or of the noise-th pair of two runs of the
 * bench (1, 2, ... in order). 1: it is a point of a curve; 0: it is not; < 0. */
int acc_curves_add(struct acc_curves *cs, const struct acc_rec *r, unsigned noise,
	struct acc_err *e);
/* Everything was added: measure, judge, conclude. */
int acc_curves_judge(struct acc_curves *cs, struct acc_err *e);
/* The curve records, then the findings. 1, 0 at the end, < 0. *r is valid until the next. */
int acc_curves_next(struct acc_curves *cs, struct acc_rec **r, struct acc_err *e);
/* What both sides logged of one step. */
struct acc_point {
	int64_t step;
	uint32_t order; /* in which it was read */
	int32_t rank;   /* -1: unknown */
	uint8_t has;    /* bit 0: the device has it, bit 1: the bench */
	double v[2];    /* device, bench */
	double res[2];  /* half a unit of the last digit that was printed; 0: exact */
};
/* The points of a tag, once they were judged, by step; *n of them. NULL: there is no such tag. */
const struct acc_point *acc_curves_points(const struct acc_curves *cs, const char *tag, size_t *n);
/* How far from the bench its own runs let the device be at a step; NAN: they do not tell. */
double acc_curves_band(const struct acc_curves *cs, const char *tag, int64_t step);
/* Curves with a point that both sides have. */
size_t acc_curves_joined(const struct acc_curves *cs);
/* Have both sides no curve that is judged, only times and counters or what is finite at no step of
 * both (*tag is NULL), or only curves
 * that differ and are neither a loss nor a learning rate nor a norm (*tag is the first), which no
 * preset's rule on these is about? Then silence of the rules says nothing. */
bool acc_curves_unjudged(const struct acc_curves *cs, const char **tag);
int acc_curves_status(const struct acc_curves *cs); /* 0 or 1 */
void acc_curves_close(struct acc_curves *cs);

#ifdef __cplusplus
}
#endif

#endif
