/* The directory of a zip, and its members: what is found lies in the file. */
#include "acc/file.h"
#include "acc/zip.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_arena m = {0};
	struct acc_zip z;
	int fd = memfd_create("zip", MFD_CLOEXEC);
	if (fd < 0 || acc_file_write(fd, data, size, NULL) < 0)
		abort();
	if (acc_zip_read(fd, 0, size, &z, &m, NULL) == 0) {
		uint64_t sum = 0;
		for (size_t i = 0; i < z.n; i++) {
			const struct acc_zip_member *zm = &z.m[i];
			const uint8_t *p;
			if (zm->off > size || zm->clen > size - zm->off)
				abort();
			sum += zm->clen;
			if (acc_zip_find(&z, zm->name) != zm)
				abort();
			acc_zip_load(fd, zm, 1 << 16, &m, &p, NULL);
		}
		if (sum > size)
			abort();
	}
	acc_arena_release(&m);
	close(fd);
	return 0;
}
