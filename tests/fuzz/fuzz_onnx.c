/* Any bytes as a .onnx. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_file("x.onnx", data, size);
	fuzz_dump("onnx", "x.onnx");
	return 0;
}
