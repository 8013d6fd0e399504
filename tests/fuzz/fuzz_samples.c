/* Any bytes as samples of a rollout: JSON, torch.save, .npz. */
#include "dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const forms[][2] = {{"samples_json", "x.jsonl"}, {"samples_pt", "x.pt"},
		{"samples_npz", "x.npz"}};
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		fuzz_file(forms[i][1], data, size);
		fuzz_dump(forms[i][0], forms[i][1]);
	}
	return 0;
}
