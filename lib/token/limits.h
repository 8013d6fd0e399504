/* limits.h - numbers that decide in lib/token; what they were judged on stands in tests/RESULTS.md */
#ifndef TOKEN_LIMITS_H
#define TOKEN_LIMITS_H

/* How far a root mean square of l may be by rounding, times the unit and the range of logits. */
static const double TOK_NOISE = 6.0;
/* As many times as far as the noise of a second scoring. */
static const double TOK_NOISE_RUN = 2.0;
/* One token, times what all may be by. */
static const double TOK_ONE = 16.0;
/* Two choices are a tie, times the unit and the range of logits. */
static const double TOK_TIE = 24.0;
/* What a few tokens own of the sum of squares where they are the cause, at least. */
static const double TOK_SHARE = 0.75;
/* What a temperature leaves of the sum of squares, at most. */
static const double TOK_FIT = 0.4;
/* What is told by how often an id came before, of the sum of squares, where it is a penalty, at least. */
static const double TOK_SEEN = 0.4;
/* The least share of the probability, as -log, that top-p, top-k or min-p keep. */
static const double TOK_KEPT = 3.0;
/* A part that is at fault is so many times as far off as the rest. */
static const double TOK_APART = 4.0;
/* Where it is within what noise may be, as many times. */
static const double TOK_WITHIN = 32.0;
/* Standard errors of a mean that is not noise. */
static const double TOK_MEAN = 6.0;

#endif
