#include "format/xlsxlib.h"

#ifdef ACC_HAVE_XLSX
const struct acc_xlsx *
acc_xlsx_load(struct acc_err *e)
{
	static struct acc_xlsx lib;
	static const char name[] = "libxlsxwriter.so." LXW_SOVERSION;
	const char *why; /* the library is missing, or a handle or memory for it */
	int rc = ACC_LIBRARY_LOAD(name, ACC_XLSX_CALLS, &lib, &why, e);
	if (rc > 0)
		acc_fail(e, ACC_EUNSUP, "spreadsheets need %s (Debian: %s): %s", name,
			"libxlsxwriter" LXW_SOVERSION, why);
	return rc == 0 ? &lib : NULL;
}
#endif
