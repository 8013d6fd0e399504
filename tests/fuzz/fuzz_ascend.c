/* Any bytes as a file of Ascend's DumpData: what is accepted lies within the file, and what is
 * decoded from a private format, within what is stored. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/op/tiled.h"
#include "io/dumpdata.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
decode(const struct acc_dumpdata_tensor *t)
{
	const char *format = acc_dumpdata_format_name(t->format);
	struct dump_tiled tiled = {.format = format,
		.ndim = t->ndim,
		.shape = t->shape,
		.norigin = t->norigin,
		.origin = t->origin,
		.groups = t->groups};
	struct acc_ref ref = {.dtype = ACC_U8};
	if (t->norigin > ACC_MAXDIM)
		abort();
	if (format == NULL || !acc_tiled_is(acc_str(format)) ||
		!acc_count(t->shape, t->ndim, &ref.len) || ref.len > INT64_MAX)
		return;
	if (t->has_order)
		tiled.order = acc_dumpdata_format_name(t->order);
	if (acc_tiled_ref(&tiled, &ref) != NULL && acc_ref_check(&ref, NULL) < 0)
		abort();
}

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
			decode(t);
		}
	else if (e.code == 0)
		abort();
	close(fd);
	acc_arena_release(&m);
	return 0;
}
