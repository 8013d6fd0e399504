/* Any bytes as the data.pkl of a torch file: what is passed on is a valid reference. */
#include "acc/file.h"
#include "acc/torch.h"

#include "torchzip.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	uint64_t size = *(const uint64_t *)arg;
	if ((l->ref != NULL || l->err != NULL) == (l->value_type != NULL))
		abort();
	if (l->err != NULL && l->err->code == 0)
		abort();
	if (l->ref == NULL || l->err != NULL)
		return 0;
	if (l->ref->off > size || l->ref->clen > size - l->ref->off ||
		acc_ref_check(l->ref, NULL) < 0)
		abort();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_buf b = {0};
	fuzz_torchzip(&b, data, size);
	int fd = memfd_create("torch", MFD_CLOEXEC);
	if (fd < 0 || acc_file_write(fd, b.p, b.n, NULL) < 0)
		abort();
	uint64_t n = b.n;
	struct acc_err e = {0};
	int rc = acc_torch_read(fd, 0, n, leaf, &n, &e);
	if (rc != e.code)
		abort();
	/* The zip around it is right. */
	if (strncmp(e.msg, "member", 6) == 0 || strncmp(e.msg, "the zip", 7) == 0)
		abort();
	close(fd);
	acc_buf_release(&b);
	return 0;
}
