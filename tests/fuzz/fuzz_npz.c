/* Any bytes as a .npz. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.npz", data, size);
	fuzz_dump("npz", "x.npz");
	return 0;
}
