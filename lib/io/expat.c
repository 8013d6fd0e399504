#include "io/expat.h"

#ifdef ACC_HAVE_EXPAT
#include <dlfcn.h>

const struct acc_expat *
acc_expat_load(struct acc_err *e)
{
	static struct acc_expat lib;
	static bool loaded;
	static const char name[] = "libexpat.so.1";
	if (loaded)
		return &lib;
	void *so = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (so == NULL) {
		acc_fail(e, ACC_EUNSUP,
			"a spreadsheet needs %s, which is not here (Debian: libexpat1): give it as CSV",
			name);
		return NULL;
	}
#define X(f) \
	*(void **)&lib.f = dlsym(so, #f); \
	if (lib.f == NULL) { \
		acc_fail(e, ACC_EUNSUP, "%s lacks " #f, name); \
		return NULL; \
	}
	ACC_EXPAT_CALLS(X)
#undef X
	loaded = true;
	return &lib;
}
#endif
