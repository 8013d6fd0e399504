/* dump.h - some bytes as a file of a dump: what is passed on must be readable */
#ifndef FUZZ_DUMP_H
#define FUZZ_DUMP_H

#include "acc/dump.h"
#include "acc/payload.h"
#include "acc/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static char fuzz_dir[64];

static void
fuzz_clean(void)
{
	char cmd[128];
	snprintf(cmd, sizeof cmd, "rm -rf '%s'", fuzz_dir);
	if (fuzz_dir[0] != '\0' && system(cmd) != 0)
		perror(fuzz_dir);
}

/* A folder of this process, in memory where there is such a file system. */
static const char *
fuzz_folder(void)
{
	if (fuzz_dir[0] != '\0')
		return fuzz_dir;
	strcpy(fuzz_dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/accXXXXXX" : "/tmp/accXXXXXX");
	if (mkdtemp(fuzz_dir) == NULL || atexit(fuzz_clean) != 0)
		abort();
	return fuzz_dir;
}

__attribute__((unused)) static void
fuzz_file(const char *name, const void *p, size_t n)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, p, n) != (ssize_t)n)
		abort();
	close(fd);
}

struct fuzz_out {
	bool source;
	struct acc_roots *roots;
};

/* Read what a record refers to, in its order, if it is not long. */
static void
fuzz_payload(struct fuzz_out *out, const struct acc_rec *r)
{
	static uint64_t buf[ACC_CHUNK * 2];
	struct acc_ref ref;
	const void *p;
	struct acc_err e = {0};
	int rc = acc_ref_get(r, "", &ref, &e);
	if (rc < 0)
		abort(); /* it was passed on as readable */
	if (rc == 0)
		return;
	struct acc_pay *pay = acc_pay_open(out->roots, acc_get_text(r, "", "src"), &ref, NULL);
	if (pay == NULL)
		return;
	uint64_t n = acc_pay_count(pay);
	for (uint64_t at = 0, k; at < n && at < 4 * ACC_CHUNK; at += k) {
		k = n - at < ACC_CHUNK ? n - at : ACC_CHUNK;
		if (acc_pay_read(pay, at, (size_t)k, buf, &p, NULL) < 0)
			break;
	}
	acc_pay_close(pay);
}

static int
fuzz_emit(void *arg, struct acc_rec *r)
{
	struct fuzz_out *out = arg;
	if (acc_rec_is(r, "source")) {
		out->source = true;
		return acc_roots_add(out->roots, r, NULL);
	}
	if (acc_rec_is(r, "stack"))
		return 0;
	if (!out->source || !acc_str_is(r->f[0].key, "name") ||
		(acc_get(r, "", "seq") == NULL && acc_get(r, "a.", "seq") == NULL &&
			acc_get(r, "b.", "seq") == NULL))
		abort();
	if (acc_rec_is(r, "tensor") && acc_get(r, "", "err") == NULL)
		fuzz_payload(out, r);
	return 0;
}

static void
fuzz_trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	if (e->code == 0)
		abort();
}

/* Read a file or folder of the folder as a dump of this format; names: a pattern of its files' names,
 * or NULL. */
__attribute__((unused)) static int
fuzz_dump_names(const char *format, const char *name, const char *names)
{
	char path[512];
	struct fuzz_out out = {.roots = acc_roots_open(NULL)};
	struct acc_err e = {0};
	snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
	struct acc_dump_ctx *c = acc_dump_open(NULL, fuzz_emit, fuzz_trouble, &out, NULL);
	if (c == NULL || out.roots == NULL || (names != NULL && acc_dump_names(c, names, NULL) < 0))
		abort();
	int rc = acc_dump_read(c, path, format, &e);
	if (rc != e.code)
		abort(); /* a failure that says nothing */
	acc_dump_close(c);
	acc_roots_close(out.roots);
	return rc;
}

__attribute__((unused)) static int
fuzz_dump(const char *format, const char *name)
{
	return fuzz_dump_names(format, name, NULL);
}

#endif
