/* library.h - a shared library that few need, found when it is
 *
 * Every program stands in a pipeline somewhere: one that is copied to a cluster must start where nobody has installed
 * what it may never need. What was built without a library's header, or is linked statically, says so. */
#ifndef ACC_IO_LIBRARY_H
#define ACC_IO_LIBRARY_H

#include "acc/base.h"

/* Fill the functions of these names, once; it is kept. 0; 1: it is not there, and *why says what the loader does of that;
 * < 0: it lacks one of them. */
int acc_library_load(const char *so, const char *const *names, size_t n, void **functions,
	const char **why, struct acc_err *e);

/* Of a list CALLS(X): a struct with a pointer to each. */
#define ACC_LIBRARY_POINTER(name) __typeof__(name) *name;
#define ACC_LIBRARY_NAME(name) #name,
#define ACC_LIBRARY_LOAD(so, CALLS, lib, why, e) \
	acc_library_load((so), (const char *const[]){CALLS(ACC_LIBRARY_NAME)}, \
		sizeof *(lib) / sizeof(void *), (void **)(void *)(lib), (why), (e))

#endif
