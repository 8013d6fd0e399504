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
		/* The loader says of what it lacks: the library, or a handle or memory for it. */
		const char *why = dlerror();
		acc_fail(e, ACC_EUNSUP, "spreadsheets need %s (Debian: %s): %s", name,
			"libxlsxwriter" LXW_SOVERSION, why == NULL ? "?" : why);
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
