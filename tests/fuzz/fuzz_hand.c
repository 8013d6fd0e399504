/* Any bytes as a tar, or a zip, of a recording made by hand; the same by a pattern of names, with
 * words that are not known and with known ones. */
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
		size % 2 == 0
			? "(?<op>[a-z]+[0-9]*)[-._/](?<io>[a-z]+)?(?<pos>[0-9])?(_s(?<step>\\w+))?"
			: "(?<op>[a-z]+[0-9]*)[-._](?<io>in|out|grad)([.](?<pos>[0-9]))?");
	return 0;
}
