/* Any bytes as an array among the data of a training step. */
#include "dump.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[128];
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/step_3%s", fuzz_folder(), i == 0 ? "" : "/rank_1");
		mkdir(path, 0700);
	}
	fuzz_file("step_3/rank_1/tokens.npy", data, size);
	fuzz_dump("step_data", ".");
	return 0;
}
