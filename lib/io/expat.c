#include "io/expat.h"

#ifdef ACC_HAVE_EXPAT
const struct acc_expat *
acc_expat_load(struct acc_err *e)
{
	static struct acc_expat lib;
	static const char name[] = "libexpat.so.1";
	const char *why;
	int rc = ACC_LIBRARY_LOAD(name, ACC_EXPAT_CALLS, &lib, &why, e);
	if (rc > 0)
		acc_fail(e, ACC_EUNSUP,
			"a spreadsheet needs %s, which is not here (Debian: libexpat1): give it as CSV",
			name);
	return rc == 0 ? &lib : NULL;
}
#endif
