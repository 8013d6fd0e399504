/* Any bytes as a tensor file of ATB: what is accepted lies within the file. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/atb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_ref ref;
	struct acc_atb a;
	struct acc_err e = {0};
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	acc_atb_is(data, size);
	if (acc_atb_read(fd, &ref, &a, &e) == 0) {
		if (ref.off > size || ref.len != size - ref.off || acc_ref_check(&ref, NULL) < 0)
			abort();
	} else if (e.code == 0) {
		abort();
	}
	close(fd);
	return 0;
}
