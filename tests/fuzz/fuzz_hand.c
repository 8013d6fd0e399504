/* Any bytes as a tar, or a zip, of a recording made by hand; the same by a pattern of names. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool zip = size >= 2 && memcmp(data, "PK", 2) == 0;
	const char *name = zip ? "x.zip" : "x.tar";
	fuzz_file(name, data, size);
	fuzz_dump("hand", name);
	fuzz_dump_names("hand", name,
		"(?<op>[a-z]+[0-9]*)[-._/](?<io>[a-z]+)?(?<pos>[0-9])?(_s(?<step>\\w+))?");
	return 0;
}
