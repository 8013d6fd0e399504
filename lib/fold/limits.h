/* limits.h - numbers that decide in lib/fold, and their sources */
#ifndef FOLD_LIMITS_H
#define FOLD_LIMITS_H

/* What all ranks have is equal but for noise; what is mostly alike, as where a mask has one large number, is
 * less so: by this share of the noise. */
#define FOLD_COPIES (1.0 / 64)

/* Elements further off than this share of the whole's root mean square are not noise: parts in another
 * order are off by sqrt(2 q), where q is the share of elements that stand elsewhere, and what a sum lacks
 * by all it is. Less than half of the digits of a dtype (an item's tol) is never asked. */
#define FOLD_NOISE (1.0 / 32)

#endif
