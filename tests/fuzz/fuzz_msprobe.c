/* A dump.json, and the same bytes as stack.json and construct.json. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/op/msprobe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct acc_bytes *
bytes(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return acc_bytes_open(fd, "input", false, NULL);
}

/* A record must be one: its name first, its source known before. */
static int
emit(void *arg, struct acc_rec *r)
{
	bool *source = arg;
	*source |= acc_rec_is(r, "source");
	if (acc_rec_is(r, "tensor") || acc_rec_is(r, "arg"))
		if (!*source || !acc_str_is(r->f[0].key, "name") || acc_get(r, "", "seq") == NULL)
			abort();
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	if (e->code == 0)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const globs[] = {"*.0.*"};
	struct acc_select sel = {.ops = globs, .nops = size & 1, .to = size & 2 ? "*" : NULL};
	bool source = false;
	struct acc_dump_ctx *c = acc_dump_open(&sel, emit, trouble, &source, NULL);
	struct msprobe m = {.c = c,
		.dir = "/",
		.file = "dump.json",
		.dirfd = -1,
		.step = -1,
		.rank = -1,
		.proc = -1};
	struct acc_err e = {0};
	if (c == NULL)
		abort();
	acc_msprobe_stacks(&m.maps, bytes(data, size), NULL);
	acc_msprobe_parents(&m.maps, bytes(data, size), NULL);
	acc_msprobe_json(&m, bytes(data, size), &e);
	acc_msprobe_release(&m);
	acc_dump_close(c);
	return 0;
}
