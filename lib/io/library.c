#include "io/library.h"

#include <dlfcn.h>
#include <pthread.h>

int
acc_library_load(const char *so, const char *const *names, size_t n, void **functions,
	const char **why, struct acc_err *e)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int rc = 0;
	pthread_mutex_lock(&lock);
	void *p = functions[n - 1] != NULL ? NULL : dlopen(so, RTLD_NOW | RTLD_LOCAL);
	if (functions[n - 1] == NULL && p == NULL) {
		const char *said = dlerror();
		*why = said == NULL ? "?" : said;
		rc = 1;
	}
	/* The last is filled when all are. */
	for (size_t i = 0; p != NULL && i < n && rc == 0; i++) {
		functions[i] = dlsym(p, names[i]);
		if (functions[i] == NULL)
			rc = acc_fail(e, ACC_EUNSUP, "%s lacks %s", so, names[i]);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}
