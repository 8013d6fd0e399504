/* replace.h - what the files of lib/replace share */
#ifndef REPLACE_REPLACE_H
#define REPLACE_REPLACE_H

#include "acc/replace.h"

/* An output of the device, and the bench's in its place. */
struct feed {
	const char *key, *name; /* its call; what it is called, as the engine says it */
	const char *file;       /* NULL: it cannot be fed */
	struct acc_str src;     /* the bench's source */
	struct acc_ref ref;     /* the bench's, so that row-major order is the device's */
	uint32_t ndim;          /* the device's */
	const int64_t *shape;
	enum acc_dtype dtype;
	const char *layout; /* as m.layout, or "" */
	bool direct;        /* its elements look as if they lay as the bench's */
	int64_t seq;        /* the device's; of the bench alone, the bench's */
	int64_t bench;      /* the bench's of a pair */
	uint64_t bytes;     /* once it is written */
};

/* Both in the order in which they run. Between two pairs, where what is left of the device and of the bench are as many
 * of the same shapes, one behind the other, they belong together: they get a file in m. */
void acc_replace_fill(struct feed *v, size_t n, const struct feed *bench, size_t nbench,
	struct acc_arena *m);
/* The bench's reference so that row-major order is the device's, as f->layout says; ACC_EUNSUP: there is no such. */
int acc_replace_lay(struct feed *f, struct acc_err *e);
/* An order of axes that leads from the bench's shape to the device's, as another output had it (its m.layout). */
bool acc_replace_lay_like(struct feed *f, const char *layout);
/* NAME.npy, in m; NULL: no memory, or it would be longer than a file's name may be. */
const char *acc_replace_file(struct acc_arena *m, const char *name);
/* Write it into a folder, where no such file may be. 0 or < 0. */
int acc_replace_write(struct acc_roots *roots, struct feed *f, int dirfd, struct acc_err *e);

#endif
