/* In place of lib/format/xlsxlib.c, lib/io/sqlitelib.c and lib/io/expat.c, which a program that is linked
 * statically cannot have: it loads nothing, and Debian has no static libxlsxwriter. */
#include "format/xlsxlib.h"
#include "io/expat.h"
#include "io/sqlitelib.h"

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

typedef int acc_no_loader; /* a file has something */
