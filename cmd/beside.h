/* beside.h - streams that are read beside the input: --noise, --before */
#ifndef BESIDE_H
#define BESIDE_H

#include "acc/judge.h"

/* What two runs of the bench differ by; the end of the program where it cannot be read. */
struct acc_noise *beside_noise(char *path);
/* What was judged before a change, the same. */
struct acc_before *beside_before(char *path);

#endif
