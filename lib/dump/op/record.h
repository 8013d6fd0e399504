/* record.h - what the two ways to read a recording share: as it lies, and while it is written */
#ifndef DUMP_OP_RECORD_H
#define DUMP_OP_RECORD_H

#include "acc/dump.h"

struct record_rank {
	struct acc_dump_ctx *c;
	int dirfd;
	struct acc_source source;
	char text[4][64]; /* framework, device, task, versions */
	char file[128];   /* of elements, that was looked at last */
	struct acc_file_info info;
	char told[128]; /* the one that was said to be missing or short, once for all its tensors */
	bool known;     /* there was a source record */
	struct acc_map stacks; /* whose ids are the rank's own: the hashes that they get here */
	struct acc_map
		named; /* tensors of this step that have a name of their own: which of these */
	struct acc_rec *made;
	size_t nmade, cap;
};

/* "rank12.acc": 12; -1 otherwise. */
int64_t acc_record_rank(const char *name);
/* dirfd, folder: of the recording; name: of the rank's stream. */
void acc_record_start(struct record_rank *k, struct acc_dump_ctx *c, int dirfd, const char *folder,
	const char *name);
void acc_record_end(struct record_rank *k);
/* Hand on a record of that stream. 0 or < 0. */
int acc_record_take(struct record_rank *k, const struct acc_rec *r, struct acc_err *e);
/* Read a recording until all its ranks have ended, or their writers are gone. 0 or < 0. */
int acc_record_follow(struct acc_dump_ctx *c, const char *folder, struct acc_err *e);

#endif
