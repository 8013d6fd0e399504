/* folders.h - a walk over folders in folders, breadth first
 *
 * The caller names what is worth a look; what is no folder is passed over. A link is followed
 * where it stays beneath the root, after all real folders, and not to one that has been visited;
 * others, folders that cannot be opened and those that are too deep are kept as a failure for the end.
 */
#ifndef DUMP_FOLDERS_H
#define DUMP_FOLDERS_H

#include "acc/base.h"

struct folder {
	const char *path; /* beneath the root: ".", "./rank_0" */
	int depth;        /* of "." it is 0 */
	const void *what; /* the caller's */
};

/* Zero it to start, but for root and limit. */
struct folders {
	int root;                    /* borrowed */
	size_t limit;                /* of folders; 0: 65,536 */
	struct acc_buf queue, links; /* of struct folder */
	size_t at, links_at;
	struct acc_map seen; /* device and inode */
	struct acc_arena mem;
	struct acc_err missed; /* the first that was not entered, */
	size_t nmissed;        /* of how many */
};

/* Queue a folder of `parent`; NULL: the root itself. `what` is not copied. 0 or < 0. */
int acc_folders_add(struct folders *w, const struct folder *parent, const char *name,
	const void *what, struct acc_err *e);
/* 1: the next folder, open as *fd, which the caller closes; 0: that was all; < 0. */
int acc_folders_next(struct folders *w, struct folder *f, int *fd, struct acc_err *e);
/* Keep the failure to look into a folder for the end, as those to enter one are kept. */
void acc_folders_miss(struct folders *w, const struct folder *f, const struct acc_err *why);
/* 0, or a failure where some could not be entered: that of the machine before that of a link. */
int acc_folders_missed(const struct folders *w, struct acc_err *e);
void acc_folders_release(struct folders *w);

#endif
