/* Any bytes as a statistic.csv, as an order of execution, their lines as names of files; and all
 * of it as a folder. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dump/op/mindspore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct acc_bytes *
bytes(const uint8_t *data, size_t size)
{
	int fd = memfd_create("input", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET) != 0)
		abort();
	return acc_bytes_open(fd, "input", false, NULL);
}

/* A record must be one. */
static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	if (!acc_rec_is(r, "source") &&
		(!acc_str_is(r->f[0].key, "name") || acc_get(r, "", "seq") == NULL ||
			acc_get_text(r, "", "key").n == 0))
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

static bool
within(struct acc_str part, struct acc_str whole)
{
	return part.n == 0 || (part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

/* What a name is taken apart into lies within it. */
static void
name(struct acc_str s)
{
	struct ms_name n;
	for (int all = 0; all < 2; all++)
		if ((all ? acc_ms_name_all : acc_ms_name)(s, &n) &&
			(n.type.n == 0 || n.op.n == 0 || n.time < 0 || (n.slot < 0) != all ||
				!within(n.type, s) || !within(n.op, s) || !within(n.format, s) ||
				!within(n.dtype, s)))
			abort();
	acc_layout_private(s);
}

static void
sheet(const uint8_t *data, size_t size)
{
	struct acc_dump_ctx *c = acc_dump_open(NULL, emit, trouble, NULL, NULL);
	struct ms_sheet s = {0};
	struct dump_said said = {0};
	struct acc_arena m = {0};
	struct acc_err e = {0};
	if (c == NULL)
		abort();
	acc_ms_sheet(&s, bytes(data, size), &m, &said, c, &e);
	for (size_t i = 0; i < s.n; i++)
		if (s.row[i].n.type.n == 0 || s.row[i].n.io == '\0' || s.row[i].n.slot < 0 ||
			s.row[i].ndim > ACC_MAXDIM)
			abort();
	for (uint32_t i = 0; i < s.nkey; i++)
		if (strncmp(s.key[i], "stat.", 5) != 0)
			abort();
	free(s.row);
	acc_arena_release(&m);
	acc_dump_close(c);
}

enum { FILES = 12 };

static void
put(int dir, const char *file, const uint8_t *data, size_t size)
{
	int fd = openat(dir, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && write(fd, data, size) != (ssize_t)size)
		abort();
	if (fd >= 0)
		close(fd);
}

static char root[] = "/dev/shm/accXXXXXX";

static void
leave(void)
{
	rmdir(root);
}

/* The lines are the names of files, and the whole is what stands in each, also in statistic.csv and
 * mapping.csv. */
static void
folder(const uint8_t *data, size_t size)
{
	static bool made;
	char name[FILES][200];
	size_t n = 0;
	struct acc_err e = {0};
	if (!made && (mkdtemp(root) == NULL || atexit(leave) != 0))
		abort();
	made = true;
	int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t at = 0; at < size && n < FILES;) {
		const uint8_t *lf = memchr(data + at, '\n', size - at);
		size_t len = lf == NULL ? size - at : (size_t)(lf - data) - at;
		if (len > 0 && len < sizeof *name && memchr(data + at, '/', len) == NULL &&
			memchr(data + at, 0, len) == NULL && data[at] != '.') {
			memcpy(name[n], data + at, len);
			name[n][len] = '\0';
			put(dir, name[n++], data, size);
		}
		at += len + 1;
	}
	put(dir, "statistic.csv", data, size);
	put(dir, "mapping.csv", data, size);
	struct acc_dump_ctx *c = acc_dump_open(NULL, emit, trouble, NULL, NULL);
	if (c == NULL)
		abort();
	if (acc_dump_read(c, root, "mindspore", &e) < 0 && e.code == 0)
		abort();
	acc_dump_close(c);
	while (n > 0)
		unlinkat(dir, name[--n], 0);
	unlinkat(dir, "statistic.csv", 0);
	unlinkat(dir, "mapping.csv", 0);
	close(dir);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ms_order o = {0};
	struct acc_err e = {0};
	const uint8_t *end = data + size;
	if (acc_ms_order(&o, bytes(data, size), &e) == 0 && o.n > size)
		abort();
	acc_ms_order_release(&o);
	sheet(data, size);
	for (const uint8_t *p = data; p < end;) {
		const uint8_t *lf = memchr(p, '\n', (size_t)(end - p));
		const uint8_t *to = lf == NULL ? end : lf;
		name((struct acc_str){(const char *)p, (uint32_t)(to - p)});
		p = to + 1;
	}
	folder(data, size);
	return 0;
}
