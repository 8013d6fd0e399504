/* Any bytes as a .gguf. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.gguf", data, size);
	fuzz_dump("gguf", "x.gguf");
	return 0;
}
