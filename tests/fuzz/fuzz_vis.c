/* Any bytes as a x.vis.db. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.vis.db", data, size);
	fuzz_dump("vis.db", "x.vis.db");
	return 0;
}
