/* Training logs: by their grammars, and by a pattern. */
#include "curves.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("log", NULL, data, size);
	read_as("log", "(?<run>\\w+)? ?(?<step>[0-9]+)?.* (?<tag>[a-z_]+): (?<value>\\S+)", data,
		size);
	return 0;
}
