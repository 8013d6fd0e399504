/* A .pkl of ptdbg_ascend, and its lines as names of arguments. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/op/ptdbg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct acc_bytes *
bytes(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return acc_bytes_open(fd, "input", false, NULL);
}

/* A record must be one: its name first, its source and its stack known before. */
static int
emit(void *arg, struct acc_rec *r)
{
	struct acc_map *seen = arg;
	if (acc_rec_is(r, "source") || acc_rec_is(r, "stack"))
		return acc_map_put(seen, acc_get_text(r, "", "id"), 1) == NULL ? ACC_ENOMEM : 0;
	struct acc_str stack = acc_get_text(r, "", "stack");
	if (!acc_str_is(r->f[0].key, "name") || acc_get(r, "", "seq") == NULL ||
		acc_map_get(seen, acc_get_text(r, "", "src")) == NULL ||
		(stack.n > 0 && acc_map_get(seen, stack) == NULL) ||
		acc_get_text(r, "", "key").n == 0)
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

/* The parts of a name are parts of it. */
static void
name(const uint8_t *data, size_t size)
{
	struct acc_arena m = {0};
	struct argname a;
	struct acc_str s = {(const char *)data, (uint32_t)(size < 4096 ? size : 4096)};
	if (acc_dump_argname(s, &m, &a) < 0)
		abort();
	struct acc_str key = acc_dump_argname_find(s);
	if (!acc_str_eq(key, a.key) || a.key.n > s.n || a.op.n > a.key.n || a.io[0] == '\0')
		abort();
	acc_arena_release(&m);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const globs[] = {"*_0_*"};
	struct acc_select sel = {.ops = globs, .nops = size & 1, .to = size & 2 ? "*" : NULL};
	struct acc_map seen = {0};
	struct acc_dump_ctx *c = acc_dump_open(&sel, emit, trouble, &seen, NULL);
	struct ptdbg p = {.c = c,
		.dir = "/",
		.file = "dump.pkl",
		.dirfd = -1,
		.step = -1,
		.rank = -1,
		.proc = -1};
	struct acc_err e = {0};
	if (c == NULL)
		abort();
	acc_ptdbg_pkl(&p, bytes(data, size), &e);
	acc_ptdbg_release(&p);
	acc_dump_close(c);
	acc_map_release(&seen);
	name(data, size);
	return 0;
}
