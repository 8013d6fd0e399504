#include "io/sqlitelib.h"

#ifdef ACC_HAVE_SQLITE
const struct acc_sqlite_lib *
acc_sqlite_load(struct acc_err *e)
{
	static struct acc_sqlite_lib lib;
	static const char name[] = "libsqlite3.so.0";
	const char *why;
	int rc = ACC_LIBRARY_LOAD(name, ACC_SQLITE_CALLS, &lib, &why, e);
	if (rc > 0)
		acc_fail(e, ACC_EUNSUP,
			"an SQLite database needs %s, which is not here (Debian: libsqlite3-0)",
			name);
	return rc == 0 ? &lib : NULL;
}
#endif
