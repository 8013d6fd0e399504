/* curves.h - what the fuzz targets of curves and parameters share: a file that holds the input, read as a dump
 * of one format; each record must be one */
#ifndef FUZZ_CURVES_H
#define FUZZ_CURVES_H

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "acc/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
emit(void *arg, struct acc_rec *r)
{
	struct acc_map *seen = arg;
	double v;
	if (acc_rec_is(r, "source"))
		return acc_map_put(seen, acc_get_text(r, "", "id"), 1) == NULL ? ACC_ENOMEM : 0;
	if (acc_rec_is(r, "param")) {
		const struct acc_val *text = acc_get(r, "", "value");
		if (acc_get_text(r, "", "where").n == 0 || acc_get(r, "", "seq") == NULL ||
			acc_get(r, "", "key") == NULL || text == NULL ||
			(text->type != ACC_V_TEXT && text->type != ACC_V_NIL))
			abort();
		return 0;
	}
	struct acc_str cls = acc_get_text(r, "", "class");
	const struct acc_val *res = acc_get(r, "", "res");
	if (!acc_rec_is(r, "scalar") || acc_get_text(r, "", "tag").n == 0 ||
		!acc_as_f64(acc_get(r, "", "value"), &v) || acc_get(r, "", "seq") == NULL ||
		acc_map_get(seen, acc_get_text(r, "", "src")) == NULL ||
		acc_get_text(r, "", "where").n == 0 || acc_get(r, "", "run") == NULL ||
		!acc_word_in("metric time count monitor", cls))
		abort();
	if (res != NULL && (!acc_as_f64(res, &v) || !(v > 0) || isinf(v)))
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

/* In memory, where that can be had. */
static char path[] = "/dev/shm/fuzz-XXXXXX";

static void
remove_file(void)
{
	unlink(path);
}

static void
read_as(const char *format, const char *pattern, const void *data, size_t size)
{
	static int fd = -1;
	struct acc_map seen = {0};
	struct acc_err e = {0};
	if (fd < 0) {
		if (access("/dev/shm", W_OK) != 0)
			strcpy(path, "/tmp/fuzz-XXXXXX");
		fd = mkstemp(path);
		atexit(remove_file);
	}
	if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct acc_dump_ctx *c = acc_dump_open(NULL, emit, trouble, &seen, NULL);
	if (c == NULL || (pattern != NULL && acc_dump_pattern(c, pattern, NULL) < 0))
		abort();
	if (acc_dump_read(c, path, format, &e) < 0 && e.code == 0)
		abort();
	acc_dump_close(c);
	acc_map_release(&seen);
}

#endif
