/* Curves in CSV. */
#include "curves.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("csv", NULL, data, size);
	return 0;
}
