/* Any bytes as a file of torch.save: without zip, and the zip around its pickle. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.pt", data, size);
	fuzz_dump("pt", "x.pt");
	return 0;
}
