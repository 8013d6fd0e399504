/* limits.h - numbers that decide what a factor between two losses is, and their sources */
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

#endif
