/* figures.h - what is measured of a pair of curves */
#ifndef CURVE_FIGURES_H
#define CURVE_FIGURES_H

#include "acc/curve.h"

/* The figures of a pair of curves. Steps are INT64_MIN and numbers NAN where there is none. */
struct figures {
	uint64_t n;          /* steps that both have, with finite values or not */
	uint64_t only[2];    /* steps that one side has alone */
	int64_t begin, end;  /* first and last of the n */
	int64_t interval[2]; /* usual distance of the steps of each side */
	double res;          /* largest difference that printing alone may make */
	uint64_t apart;      /* steps that differ by more */
	int64_t first;       /* the first of them */
	int64_t beyond;      /* the first that differs by more than the tolerance */
	int64_t stays;       /* from here on, all do */
	double max_abs, max_rel, mean_abs, mean_rel;
	double most_rel;             /* all but 1 % of the steps (at least 1, at most 50) */
	double late_abs;             /* largest of the second half */
	int64_t at;                  /* step of max_abs */
	double begin_abs, begin_rel; /* of the first step */
	double a_begin, b_begin;
	double level; /* mean |bench| */
	struct acc_drift drift;
	int64_t change;    /* from here on it keeps another level */
	double change_rel; /* mean relative difference from there on */
	double change_t;
	int64_t parted; /* of a split of the steps, the first behind it: those are all off to one side, */
	uint64_t parted_steps;   /* as many on either side at least, */
	double parted_times;     /* the least by so many times the largest before, */
	double parted_even;      /* and in parts of their mean, */
	double parted_rel;       /* which is this, relative */
	double slope;            /* of the difference, by least squares, each step */
	double final, final_rel; /* mean difference of the last tenth */
	uint64_t nonfinite;      /* steps at which NaN or Inf differ */
	int64_t odd;             /* the first of them */
	uint64_t neither;        /* steps at which both are NaN or infinite: not compared */
	int64_t lost;       /* from here on none is compared: INT64_MIN where the last ones are */
	int64_t nan[2];     /* first step of each side that is not finite */
	uint64_t spikes[2]; /* of one side alone */
	int64_t spike[2];   /* the largest */
	int shift;          /* 1: the device has the bench's next value; -1: the last */
	bool constant[2];   /* the same value at all steps */
};

/* The largest difference of the bench's runs in each of nb equal parts of the steps from begin
 * to end; NAN where they have none. */
enum { BAND_PARTS = 40 };
struct band {
	int64_t begin, end;
	size_t nb;
	double max[BAND_PARTS];
};

/* The spread of the bench: largest figures of the noise runs, by size. */
struct noise {
	struct band band;
	unsigned runs; /* that have this tag */
	double mean_abs, max_abs, mean_rel, outside;
	int64_t parts; /* from where on the device is outside, INT64_MIN: it is not for two steps in a row */
	bool inside;
};

#endif
