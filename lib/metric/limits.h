/* limits.h - numbers that decide where in a tensor an error is, and of what kind, and their sources */
#ifndef METRIC_LIMITS_H
#define METRIC_LIMITS_H

/* Nats; a ratio of likelihoods of e^7 comes by chance in less than one of 1,000 tensors. */
static const double LIMIT_CHANCE = 7;
/* A fault counts if its rms is 3 times the noise or more, as on the bench of networks. */
static const double LIMIT_CONTRAST = 9;
/* What holds most of a tensor is not where the error is, it is what the rest is spared. */
static const double LIMIT_WHERE_MOST = 1.5;
/* A quarter of a run that has less than this part of its variance is no part of it: a factor leaves
 * small numbers as good as they are, but not a quarter of all. */
static const double LIMIT_UNEVEN = 0.01;
/* Outside only noise is left: what is said holds for so much of the squared error, or for most of it
 * where it stands out by as much again. */
static const double LIMIT_WHERE_SHARE = 0.9, LIMIT_MOSTLY = 0.5, LIMIT_FAR = 100;
/* Below this part of the variance of all, all is alike: nothing differs there. */
static const double LIMIT_ALIKE = 1e-10;
/* A list says something of slices that are rare: at most one of so many. Where each of them either is as
 * on the bench or is not, as after a rounding to 16 bits, a longer one is what comes by chance. */
enum { LIMIT_RARE = 8 };
/* So much of the squared error is explained: that of a fault of 3 times the noise. Rounding toward
 * zero, the most regular of roundings, is 3/4 a factor. */
static const double LIMIT_EXPLAINED = 0.9;
/* What is known beforehand of the logarithms of slices' squared errors: degrees of freedom, and their standard
 * deviation. See where_fit.c for what it was measured on. */
static const double LIMIT_KNOWN = 2, LIMIT_SPREAD = 0.38;

#endif
