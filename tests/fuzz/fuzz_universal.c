/* Any bytes as the pickle of a parameter's file of a universal checkpoint, and of its model states. */
#include "dump.h"
#include "torchzip.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0};
	char path[512];
	snprintf(path, sizeof path, "%s/zero", fuzz_folder());
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/zero/w", fuzz_folder());
	mkdir(path, 0700);
	fuzz_torchzip(&b, (const char *)data, size);
	fuzz_file("zero/w/fp32.pt", b.p, b.n);
	fuzz_file("zero_pp_rank_0_mp_rank_00_model_states.pt", b.p, b.n);
	fuzz_dump("universal", "");
	acc_buf_release(&b);
	return 0;
}
