/* Any bytes as a .h5. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.h5", data, size);
	fuzz_dump("hdf5", "x.h5");
	return 0;
}
