/* Configurations, whatever the input is: YAML, JSON, a shell script, an environment, packages, a
 * script in Python; assignments in Python and TOML are one grammar, which the name of a file chooses. */
#include "curves.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const formats[] = {"yaml", "json", "shell", "env", "pip", "python",
		"training_args", "toml"};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		read_as(formats[i], NULL, data, size);
	return 0;
}
