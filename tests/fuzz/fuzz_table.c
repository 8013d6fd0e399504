/* Any bytes as a compare_result.csv. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("compare_result.csv", data, size);
	fuzz_dump("msprobe-table", "compare_result.csv");
	return 0;
}
