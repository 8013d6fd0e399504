#include "io/unzstd.h"
#include "io/library.h"

#ifdef ACC_HAVE_ZSTD
#include <zstd.h>

enum { WINDOW_LOG = 23 };

#define CALLS(X) \
	X(ZSTD_createDStream) \
	X(ZSTD_freeDStream) \
	X(ZSTD_decompressStream) X(ZSTD_DCtx_setParameter) X(ZSTD_isError) X(ZSTD_getErrorName)
static struct {
	CALLS(ACC_LIBRARY_POINTER)
} lib;

struct acc_unzstd *
acc_unzstd_open(struct acc_err *e)
{
	const char *why;
	int rc = ACC_LIBRARY_LOAD("libzstd.so.1", CALLS, &lib, &why, e);
	if (rc > 0)
		acc_fail(e, ACC_EUNSUP,
			"it needs libzstd.so.1, which is not here (Debian: libzstd1)");
	if (rc != 0)
		return NULL;
	ZSTD_DStream *z = lib.ZSTD_createDStream();
	if (z == NULL ||
		lib.ZSTD_isError(lib.ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, WINDOW_LOG))) {
		lib.ZSTD_freeDStream(z);
		acc_nomem(e);
		return NULL;
	}
	return (struct acc_unzstd *)(void *)z;
}

int
acc_unzstd_run(struct acc_unzstd *z, const uint8_t *in, size_t *nin, uint8_t *out, size_t *nout,
	struct acc_err *e)
{
	ZSTD_inBuffer from = {in, *nin, 0};
	ZSTD_outBuffer to = {out, *nout, 0};
	const size_t rc = lib.ZSTD_decompressStream((ZSTD_DStream *)(void *)z, &to, &from);
	*nin = from.pos;
	*nout = to.pos;
	if (lib.ZSTD_isError(rc))
		return acc_fail(e, ACC_EFORMAT, "corrupt compressed data: zstd: %s",
			lib.ZSTD_getErrorName(rc));
	return rc == 0 ? 1 : 0;
}

void
acc_unzstd_close(struct acc_unzstd *z)
{
	if (z != NULL)
		lib.ZSTD_freeDStream((ZSTD_DStream *)(void *)z);
}
#else
struct acc_unzstd *
acc_unzstd_open(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP, "this program has no libzstd");
	return NULL;
}

int
acc_unzstd_run(struct acc_unzstd *z, const uint8_t *in, size_t *nin, uint8_t *out, size_t *nout,
	struct acc_err *e)
{
	(void)z, (void)in, (void)nin, (void)out, (void)nout;
	return acc_fail(e, ACC_EUNSUP, "this program has no libzstd");
}

void
acc_unzstd_close(struct acc_unzstd *z)
{
	(void)z;
}
#endif
