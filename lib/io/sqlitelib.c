#include "io/sqlitelib.h"

#ifdef ACC_HAVE_SQLITE
#include <dlfcn.h>

const struct acc_sqlite_lib *
acc_sqlite_load(struct acc_err *e)
{
	static struct acc_sqlite_lib lib;
	static bool loaded;
	static const char name[] = "libsqlite3.so.0";
	if (loaded)
		return &lib;
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (so == NULL) {
		acc_fail(e, ACC_EUNSUP,
			"an SQLite database needs %s, which is not here (Debian: libsqlite3-0)",
			name);
		return NULL;
	}
#define X(f) \
	*(void **)&lib.f = dlsym(so, #f); \
	if (lib.f == NULL) { \
		acc_fail(e, ACC_EUNSUP, "%s lacks " #f, name); \
		return NULL; \
	}
	ACC_SQLITE_CALLS(X)
#undef X
	loaded = true;
	return &lib;
}
#endif
