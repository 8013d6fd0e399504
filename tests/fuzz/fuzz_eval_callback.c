/* Any bytes as what llama-eval-callback prints. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.txt", data, size);
	fuzz_dump("eval_callback", "x.txt");
	return 0;
}
