/* Any bytes as an ETDump of ExecuTorch, with a small debug buffer beside it. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t buffer[8192];
	fuzz_file("x.etdp", data, size);
	fuzz_file("x.bin", buffer, sizeof buffer);
	fuzz_dump("etdump", "x.etdp");
	return 0;
}
