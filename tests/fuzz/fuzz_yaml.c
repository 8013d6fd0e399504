/* Any bytes as a mapping file: no crash; as YAML, and as the rules they make. */
#include "acc/align.h"
#include "acc/yaml.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct acc_maps *maps = acc_maps_new(NULL);
	if (fd < 0 || maps == NULL || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	acc_maps_map(maps, path, NULL);
	snprintf(path, sizeof path, "@/proc/self/fd/%d", fd);
	lseek(fd, 0, SEEK_SET);
	acc_maps_rename(maps, path, NULL);
	acc_maps_free(maps);
	close(fd);
	return 0;
}
