#include "format/xlsxlib.h"

#ifdef ACC_HAVE_XLSX
#include <dlfcn.h>

const struct acc_xlsx *
acc_xlsx_load(struct acc_err *e)
{
	static struct acc_xlsx lib;
	static bool loaded;
	static const char name[] = "libxlsxwriter.so." LXW_SOVERSION;
	if (loaded)
		return &lib;
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (so == NULL) {
		acc_fail(e, ACC_EUNSUP,
			"spreadsheets need %s, which is not here (Debian: libxlsxwriter" LXW_SOVERSION
			")",
			name);
		return NULL;
	}
#define X(f) \
	*(void **)&lib.f = dlsym(so, #f); \
	if (lib.f == NULL) { \
		acc_fail(e, ACC_EUNSUP, "%s lacks " #f, name); \
		return NULL; \
	}
	ACC_XLSX_CALLS(X)
#undef X
	loaded = true;
	return &lib;
}
#endif
