/* Any bytes as a mapping file: as YAML, and as the rules they make; as a key and a value that are
 * written and read back. */
#include "acc/align.h"
#include "acc/yaml.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ASCII without a zero byte, of half of the input. */
static struct acc_str
text(char *out, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (char)((p[i] & 0x7f) == 0 ? 0x7f : p[i] & 0x7f);
	return (struct acc_str){out, (uint32_t)n};
}

/* What is written as a pair is read as it was. */
static void
pair(const uint8_t *data, size_t size)
{
	static char kept[2][4096];
	size_t n = size < sizeof kept[0] ? size / 2 : sizeof kept[0] / 2;
	struct acc_str key = text(kept[0], data, n), value = text(kept[1], data + n, n);
	struct acc_buf b = {0};
	struct acc_arena m = {0};
	struct acc_yaml *y = NULL;
	if (acc_yaml_pair(&b, key, value) < 0 || acc_yaml_parse(b.p, b.n, &m, &y, NULL) < 0)
		abort();
	const struct acc_yaml *k = y->child;
	if (y->kind != ACC_YAML_MAP || k->null || k->next->null || k->next->next != NULL ||
		!acc_str_is(key, k->text) || !acc_str_is(value, k->next->text))
		abort();
	acc_buf_release(&b);
	acc_arena_release(&m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	pair(data, size);
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
