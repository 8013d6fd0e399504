/* Names of files and folders, from any bytes, around a checkpoint of Megatron: what is read is
 * what is there, whatever it is called. */
#include "dump.h"
#include "torchzip.h"

#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A name of at most 30 bytes that stays in its folder. */
static size_t
name(const uint8_t *p, size_t n, char *out)
{
	size_t k = 0;
	while (k < n && k < 30 && p[k] != '\n') {
		out[k] = p[k] == '/' || p[k] == '\0' || (k == 0 && p[k] == '.') ? '_' : (char)p[k];
		k++;
	}
	out[k] = '\0';
	return k < n ? k + 1 : k;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char list[] = "(lp0\nI1\na.";
	char folder[32], file[32], path[256], dir[128];
	struct acc_buf b = {0};
	size_t at = name(data, size, folder);
	name(data + at, size - at, file);
	if (folder[0] == '\0' || file[0] == '\0')
		return 0;
	fuzz_torchzip(&b, list, sizeof list - 1);
	snprintf(dir, sizeof dir, "%s/%s", fuzz_folder(), folder);
	snprintf(path, sizeof path, "%s/%s", folder, file);
	if (mkdir(dir, 0700) == 0) {
		fuzz_file(path, b.p, b.n);
		fuzz_dump("megatron", ".");
		snprintf(path, sizeof path, "%s/%s", dir, file);
		unlink(path);
		rmdir(dir);
	}
	acc_buf_release(&b);
	return 0;
}
