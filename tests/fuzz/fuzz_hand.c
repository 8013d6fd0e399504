/* Any bytes as a tar, or a zip, of a recording made by hand. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool zip = size >= 2 && memcmp(data, "PK", 2) == 0;
	fuzz_file(zip ? "x.zip" : "x.tar", data, size);
	fuzz_dump("hand", zip ? "x.zip" : "x.tar");
	return 0;
}
