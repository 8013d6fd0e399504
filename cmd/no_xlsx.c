/* In place of lib/format/xlsxlib.c, which a program that is linked statically cannot have: it loads
 * nothing, and Debian has no static libxlsxwriter. */
#include "format/xlsxlib.h"

#ifdef ACC_HAVE_XLSX
const struct acc_xlsx *
acc_xlsx_load(struct acc_err *e)
{
	acc_fail(e, ACC_EUNSUP, "a program that is linked statically writes no spreadsheets");
	return NULL;
}
#else
typedef int acc_no_xlsx; /* a file has something */
#endif
