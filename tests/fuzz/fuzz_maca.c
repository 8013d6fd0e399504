/* Any bytes as the pickle of a file of MXMACA's recorder. */
#include "dump.h"
#include "torchzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0};
	fuzz_torchzip(&b, data, size);
	fuzz_file("torch.relu.7.fwd.pt", b.p, b.n);
	fuzz_dump("maca", "torch.relu.7.fwd.pt");
	acc_buf_release(&b);
	return 0;
}
