/* The Makefile gives this file, and no other, the flags of its instruction set. */
typedef int acc_not_empty; /* elsewhere than on x86-64 */

#if defined(__x86_64__)
#include <stdbool.h>
#include <string.h>

#include "kernel/prim_avx512.h"

static bool
usable(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("fma");
}

#define ROW_NAME "avx512"
#define ROW acc_row_avx512
#define ROW_AUDIT acc_audit_avx512
#define ROW_USABLE usable
#include "kernel/impl.h"
#endif
