/* Any bytes as a .msgpack. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.msgpack", data, size);
	fuzz_dump("flax", "x.msgpack");
	return 0;
}
