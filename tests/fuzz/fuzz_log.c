/* Training logs: by their grammars, and by a pattern; the pattern that is proposed. */
#include "curves.h"
#include "dump/curve/log.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("log", NULL, data, size);
	read_as("log", "(?<run>\\w+)? ?(?<step>[0-9]+)?.* (?<tag>[a-z_]+): (?<value>\\S+)", data,
		size);
	struct log_proposal try;
	acc_log_propose(data, size < 4096 ? size : 4096, &try);
	return 0;
}
