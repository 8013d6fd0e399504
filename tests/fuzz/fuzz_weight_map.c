/* Any bytes as the index of a set of files, of which one is there. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char one[] = "\x3d\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"U8\",\"shape\":[1],"
				  "\"data_offsets\":[0,1]}}        x";
	fuzz_file("a", one, sizeof one - 1);
	fuzz_file("model.safetensors.index.json", data, size);
	fuzz_dump("safetensors", "model.safetensors.index.json");
	return 0;
}
