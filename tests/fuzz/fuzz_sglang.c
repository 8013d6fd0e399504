/* Any bytes as the pickle of a file of SGLang's dumper. */
#include "dump.h"
#include "torchzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0};
	const char *name = "step=0___rank=1___dump_index=2___name=grad__x___layer_id=3.pt";
	fuzz_torchzip(&b, data, size);
	fuzz_file(name, b.p, b.n);
	fuzz_dump("sglang", name);
	acc_buf_release(&b);
	return 0;
}
