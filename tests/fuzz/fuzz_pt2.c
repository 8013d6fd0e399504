/* Any bytes as what a .pt2 says of its weights, beside a storage of 24 bytes. */
#include "dump.h"
#include "torchzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0}, dir = {0};
	fuzz_zip_member(&b, &dir, "m/data/weights/weight_0", "abcdefghijklmnopqrstuvwx", 24);
	fuzz_zip_member(&b, &dir, "m/data/weights/model_weights_config.json", data, size);
	fuzz_zip_end(&b, &dir, 2);
	fuzz_file("x.pt2", b.p, b.n);
	fuzz_dump("pt2", "x.pt2");
	acc_buf_release(&b);
	acc_buf_release(&dir);
	return 0;
}
