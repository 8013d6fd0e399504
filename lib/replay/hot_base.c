/* The loops for any machine, and which one runs. */
#include <stdatomic.h>
#include <stdbool.h>

static bool
always(void)
{
	return true;
}

#define HOT acc_hot_base
#define USABLE always
#include "hot_impl.h"

/* Chosen at the first call, to the same value whoever comes first. */
static _Atomic(const struct acc_hot *) chosen;

const struct acc_hot *
acc_hot(void)
{
	const struct acc_hot *h = atomic_load_explicit(&chosen, memory_order_acquire);
	if (h != NULL)
		return h;
	h = &acc_hot_base;
#if defined(__x86_64__)
	h = acc_hot_avx512.usable() ? &acc_hot_avx512 : acc_hot_avx2.usable() ? &acc_hot_avx2 : h;
#endif
	atomic_store_explicit(&chosen, h, memory_order_release);
	return h;
}
