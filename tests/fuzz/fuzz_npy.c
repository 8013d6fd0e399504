/* Any bytes as the header of a .npy file: what is accepted lies within its own bounds. */
#include "acc/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_ref r = {0};
	struct acc_str descr = {0};
	struct acc_arena m = {0};
	int64_t n = acc_npy_header(data, size, &r, &descr, &m, NULL);
	if (n > (int64_t)size || (n > 0 && (r.off != (uint64_t)n || acc_ref_check(&r, NULL) < 0)))
		abort();
	acc_arena_release(&m);
	return 0;
}
