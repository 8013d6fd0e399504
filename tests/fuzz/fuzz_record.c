/* Any bytes as the stream of a recording's rank. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t elements[4096 + 96] = {1, 2, 3};
	fuzz_file("rank0.acc", data, size);
	fuzz_file("rank0.step0.data", elements, sizeof elements);
	fuzz_dump("record", ".");
	return 0;
}
