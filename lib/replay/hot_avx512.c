/* The Makefile gives this file the flags of its instruction set. */
typedef int acc_not_empty; /* elsewhere than on x86-64 */

#if defined(__x86_64__)
#include <stdbool.h>

static bool
usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
		__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

#define HOT acc_hot_avx512
#define USABLE usable
#include "hot_impl.h"
#endif
