/* Any bytes as the .zarray of an array of Orbax', and as its chunk. */
#include "dump.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[512];
	snprintf(path, sizeof path, "%s/w", fuzz_folder());
	mkdir(path, 0700);
	fuzz_file("_METADATA", "{}", 2);
	fuzz_file("_sharding", "{}", 2);
	fuzz_file("w/.zarray", data, size);
	fuzz_file("w/0", data, size);
	fuzz_file("w/0.0", data, size);
	fuzz_dump("orbax", "");
	return 0;
}
