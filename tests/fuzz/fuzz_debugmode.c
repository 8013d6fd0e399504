/* Any bytes as a log of torch's DebugMode, text or JSON. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.txt", data, size);
	fuzz_dump("debugmode", "x.txt");
	return 0;
}
