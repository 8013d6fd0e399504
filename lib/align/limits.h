/* limits.h - numbers that decide in lib/align, and their sources */
#ifndef ALIGN_LIMITS_H
#define ALIGN_LIMITS_H

/* Two losses, of their size, are one number up to here: 170 roundings of 2^-24, all of one sign, as the sum of f32 makes
 * them of a thousand terms at random signs with six deviations (6 root 1000 = 190). */
static const float LIMIT_SAME_LOSS = 1e-5F;
/* Values that were cast to bf16 are off by a relative 2^-9 at most. */
static const double LIMIT_CAST = 0x1p-9;

#endif
