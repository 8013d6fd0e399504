/* limits.h - numbers that decide in lib/curve, and their sources */
#ifndef CURVE_LIMITS_H
#define CURVE_LIMITS_H

/* What rounding of sums in float32 leaves of a ratio: 170 roundings of 2^-24, as lib/align/limits.h has it. */
static const double LIMIT_RATIO_ROUNDING = 1e-5;
/* What of a factor's distance from 1 may be noise: the guide's 1 %, of the mean relative error of a loss. */
static const double LIMIT_RATIO_NOISE = 0.01;
/* Below this it is no factor, but a difference: the guide's 0.5 %, of the first step. */
static const double LIMIT_FACTOR_LEAST = 0.005;
/* A ratio that is the same at so many points: where later steps start from other weights, each of the others agrees
 * with the first by chance no more often than its tolerance, below the least factor, is of 1: 0.005^3 of four is 1e-7. */
enum { LIMIT_FACTOR_POINTS = 4 };
/* A whole number at the first step alone: a ratio n is within its tolerance of one by chance in 2 n tol of cases. */
static const double LIMIT_WHOLE_CHANCE = 0.01;
/* Fractions of denominators up to q cover q^2 tol of all numbers, of which no more than this may be one by chance;
 * with the 32 beyond which nobody accumulates by a number that is no power of two. */
static const double LIMIT_FRACTION_CHANCE = 0.02;
enum { LIMIT_DENOMINATOR = 32 };
/* Norms whose squares the other side prints: in ascending order the same by 2 % (1 % of a norm, the guide's, is 2 % of
 * its square) at each of four, by chance 0.04^4 = 3e-6 where values are within a factor of two. */
static const double LIMIT_SQUARE_ALIKE = 0.02;
enum { LIMIT_SQUARES = 4 };
/* What tells stages apart: a norm of the first step, the guide's 1 %. */
static const double LIMIT_NORM_AGREES = 0.01;
/* Of what size a gap is a rule's, see share/curves/guide.rules. */
static const double LIMIT_GAP_TOLD = 0.001;
/* A vocabulary of 1,000 words to one of 300,000. */
static const double LIMIT_LEAST_WORDS = 6.9, LIMIT_MOST_WORDS = 12.7;
/* One run of the bench is a small sample: what is allowed is half as much again; and the share of the steps that may
 * leave that. */
static const double LIMIT_NOISE_SLACK = 1.5, LIMIT_NOISE_LEAVE = 0.05;
/* Of noise that carries on from step to step no more is told. */
static const double LIMIT_PHI = 0.98;
/* Of the largest t over all points: tests/bench/curve_change.c prints how often noise exceeds it. */
static const double LIMIT_CHANGE = 4.3;
/* Blocks that are worth fewer independent ones tell nothing: the limit above holds no more. Of short series more of
 * them are needed. */
static const double LIMIT_CHANGE_BLOCKS = 10, LIMIT_CHANGE_BLOCKS_SHORT = 20;
/* Of each of the two tests of a drift: tests/bench/curve_drift.c prints their errors. */
static const double LIMIT_DRIFT_LEVEL = 0.02;
/* Fewer independent blocks tell nothing; the fewer values there are, the worse phi is known. */
static const double LIMIT_DRIFT_BLOCKS = 6, LIMIT_DRIFT_BLOCKS_SHORT = 10;
/* Times the usual distance from the values around; and in units of the middle half of these, for on a steep curve or
 * at its turn all are far from each other. */
static const double LIMIT_SPIKE = 8, LIMIT_SPIKE_WIDE = 3;

#endif
