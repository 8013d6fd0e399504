/* In place of lib/format/xlsxlib.c, lib/io/sqlitelib.c, lib/io/expat.c and lib/io/unzstd.c, which a program that is linked
 * statically cannot have: it loads nothing, and Debian has no static libxlsxwriter. */
#include "format/xlsxlib.h"
#include "io/expat.h"
#include "io/sqlitelib.h"
#include "io/unzstd.h"

#ifdef ACC_HAVE_XLSX
const struct acc_xlsx *
acc_xlsx_load(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP, "a program that is linked statically writes no spreadsheets");
	return NULL;
}
#endif

#ifdef ACC_HAVE_SQLITE
const struct acc_sqlite_lib *
acc_sqlite_load(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP, "a program that is linked statically reads no SQLite database");
	return NULL;
}
#endif

#ifdef ACC_HAVE_EXPAT
const struct acc_expat *
acc_expat_load(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP,
		"a program that is linked statically reads no spreadsheet: give it as CSV");
	return NULL;
}
#endif

#ifdef ACC_HAVE_ZSTD
struct acc_unzstd *
acc_unzstd_open(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP,
		"a program that is linked statically reads nothing compressed by zstd");
	return NULL;
}

int
acc_unzstd_run(struct acc_unzstd *z, const uint8_t *in, size_t *nin, uint8_t *out, size_t *nout,
	struct acc_err *e)
{
	(void)z, (void)in, (void)nin, (void)out, (void)nout;
	return acc_fail(e, ACC_EUNSUP,
		"a program that is linked statically reads nothing compressed by zstd");
}

void
acc_unzstd_close(struct acc_unzstd *z)
{
	(void)z;
}
#endif

typedef int acc_no_loader; /* a file has something */
