/* Op calls from a stream: arguments, places, shapes; evaluated from what data the stream brings. */
#include <stdlib.h>

#include "acc/replay.h"
#include "acc/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	(void)r;
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_err e = {0};
	struct acc_audit_opt opt = {.threads = 1, .tmpdir = "/tmp"};
	struct acc_roots *roots = acc_roots_open(&e);
	struct acc_audit *a = acc_audit_open(roots, &opt, emit, trouble, NULL, &e);
	struct acc_rec r = {0};
	int64_t n = 1;
	for (size_t at = 0; a != NULL && at < size && n > 0; at += (size_t)n) {
		n = acc_decode(data + at, size - at, &r, &e);
		if (n > 0 && acc_audit_put(a, &r, &e) < 0)
			break;
	}
	if (a != NULL)
		acc_audit_end(a, &e);
	acc_rec_release(&r);
	acc_audit_close(a);
	acc_roots_close(roots);
	return 0;
}
