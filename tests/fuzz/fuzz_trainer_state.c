/* Curves in JSON: Hugging Face's trainer_state.json, golden values. */
#include "curves.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as("trainer_state", NULL, data, size);
	read_as("golden", NULL, data, size);
	return 0;
}
