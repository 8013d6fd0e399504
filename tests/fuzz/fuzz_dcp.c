/* Any bytes as the .metadata of a distributed checkpoint, whose one file holds a tensor. */
#include "dump.h"
#include "torchzip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char tensor[] = "\x80\2ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
				     "ctorch\nFloatStorage\nX\1\0\0\0"
				     "0X\3\0\0\0cpuK\x10tQK\0K\2\x85K\1\x85\x89"
				     "ccollections\nOrderedDict\n)RtR.";
	struct acc_buf b = {0};
	fuzz_torchzip(&b, tensor, sizeof tensor - 1);
	fuzz_file("__0_0.distcp", b.p, b.n);
	fuzz_file(".metadata", data, size);
	fuzz_dump("dcp", ".metadata");
	acc_buf_release(&b);
	return 0;
}
