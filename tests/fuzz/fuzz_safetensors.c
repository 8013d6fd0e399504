/* Any bytes as a file of safetensors, beside what says how weights in few bits, and adapters, are meant. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char adapter[] = "{\"lora_alpha\": 8}",
			  config[] = "{\"quantization_config\": {\"weight_block_size\": [24, 48]}}";
	static bool beside;
	if (!beside) {
		fuzz_file("adapter_config.json", adapter, sizeof adapter - 1);
		fuzz_file("config.json", config, sizeof config - 1);
		beside = true;
	}
	fuzz_file("x.safetensors", data, size);
	fuzz_dump("safetensors", "x.safetensors");
	return 0;
}
