/* Any bytes as a .json of Polygraphy's. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.json", data, size);
	fuzz_dump("polygraphy", "x.json");
	return 0;
}
