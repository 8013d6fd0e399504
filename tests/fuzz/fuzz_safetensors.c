/* Any bytes as a file of safetensors. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.safetensors", data, size);
	fuzz_dump("safetensors", "x.safetensors");
	return 0;
}
