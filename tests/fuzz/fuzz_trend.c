/* Any bytes as a x.trend.db. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.trend.db", data, size);
	fuzz_dump("trend.db", "x.trend.db");
	return 0;
}
