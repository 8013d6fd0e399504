/* Any bytes as a file of Ascend's DumpData: what is accepted lies within the file. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/dumpdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_dumpdata d;
	struct acc_arena m = {0};
	struct acc_err e = {0};
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	acc_dumpdata_is(data, size);
	if (acc_dumpdata_read(fd, &d, &m, &e) == 0)
		for (size_t i = 0; i < d.n; i++) {
			const struct acc_dumpdata_tensor *t = &d.t[i];
			if (t->off > size || t->len > size - t->off || t->ndim > ACC_MAXDIM ||
				t->index > i)
				abort();
			acc_dumpdata_type_name(t->type);
			acc_dumpdata_format_name(t->format);
			acc_dumpdata_dtype(t->type);
		}
	else if (e.code == 0)
		abort();
	close(fd);
	acc_arena_release(&m);
	return 0;
}
