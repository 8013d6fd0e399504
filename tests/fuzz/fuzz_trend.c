/* Any bytes as msprobe's .trend.db. */
#include "curves.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("trend.db", NULL, data, size);
	return 0;
}
