/* Any bytes as a checkpoint of MindSpore: contents lie in their values, one behind the other. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "io/msckpt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_msckpt_value v;
	struct acc_err e = {0};
	uint64_t at = 0;
	int fd = memfd_create("input", MFD_CLOEXEC), rc;
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	struct acc_msckpt c = {.fd = fd};
	acc_msckpt_is(data, size);
	if (acc_msckpt_end(fd, size, &c.end, &e) < 0 || c.end > size)
		abort();
	while ((rc = acc_msckpt_next(&c, &v, &e)) > 0) {
		if (v.at != at || v.end <= v.at || v.end > size || v.ndim > ACC_MAXDIM ||
			v.tag.n == 0)
			abort();
		if (!v.map && (v.off < v.at || v.off > v.end || v.len > v.end - v.off))
			abort();
		for (uint32_t i = 0; i < v.ndim; i++)
			if (v.shape[i] < 0)
				abort();
		at = v.end;
	}
	if ((rc == 0) != (e.code == 0) || (rc == 0 && at != c.end))
		abort();
	acc_msckpt_release(&c);
	close(fd);
	return 0;
}
