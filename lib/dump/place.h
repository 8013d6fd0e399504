/* place.h - the folders of a dump that hold its parts: step0/rank0, rank0/step0, ... */
#ifndef DUMP_PLACE_H
#define DUMP_PLACE_H

#include "acc/dump.h"

struct place {
	const char *path;         /* beneath the folder that was named; "." is that folder */
	int64_t step, rank, proc; /* -1: unknown */
	int depth;
	bool rank_level; /* where a part is expected */
};

/* How a format arranges its folders. */
struct place_rule {
	/* Does a folder of this name belong to a dump? Notes in *p what it stands for. */
	bool (*level)(const char *name, struct place *p);
	/* Is a part of the dump in it? Then nothing below is. 1, 0, or < 0: it cannot be told. */
	int (*holds)(int dirfd, struct acc_err *e);
	int depth;        /* of folders in folders */
	const char *part; /* what that part is, for "there is no ..." */
};

typedef int place_fn(void *arg, int dirfd, const struct place *p, struct acc_err *e);

/* Call fn for each folder, from `first` down, that holds a part, and for each that should:
 * 0, or what it returned other than 0. Links are followed that stay beneath root; where others
 * were met, or folders that cannot be opened, that is a failure in the end. */
int acc_dump_each_place(int root, const struct place *first, const struct place_rule *rule,
	place_fn *fn, void *arg, struct acc_err *e);
/* Is there a part below this folder? > 0: yes; < 0: ACC_EREFUSED, links out of it were met, or
 * another failure. */
int acc_dump_has_place(int dirfd, const struct place_rule *rule, struct acc_err *e);
/* What a probe answers that has looked: `sure` where it found something (> 0), 0 where it did not,
 * and where the machine failed (< 0), that it could not be told. */
int acc_dump_sure(int found, int sure);
/* The same of whether there is a part. */
int acc_dump_probe_places(const struct acc_probe *p, const struct place_rule *rule, int sure);
/* Reads a part: the folder dir, or (not NULL) the one file of it that the user named. */
typedef int part_fn(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e);
/* Read what the user named: all parts below a folder, none of which is a failure, or a file. */
int acc_dump_read_places(struct acc_dump_ctx *c, const char *path, const struct place_rule *rule,
	part_fn *fn, struct acc_err *e);
/* The path without slashes at its end, in buf of PATH_MAX bytes. */
void acc_dump_trim(const char *path, char *buf);
/* The place that a path itself is, from the names of its last folders. 0 or < 0. */
int acc_dump_place_of(const char *path, const struct place_rule *rule, struct place *p,
	struct acc_err *e);
/* "step12" with word "step": 12; -1 if it is something else. */
int64_t acc_dump_place_number(const char *name, const char *word);
/* A file that the user named: where it really lies, for it may be a link into another folder.
 * buf (of PATH_MAX bytes) becomes its folder, *file its name there, within buf. */
int acc_dump_real(const char *path, char *buf, const char **file, struct acc_err *e);
/* The same, and its descriptor; < 0. */
int acc_dump_open_file(const char *path, char *buf, const char **file, struct acc_err *e);
/* A folder that the user named, or that which holds the file that they named: the descriptor; its
 * path in buf of PATH_MAX bytes, and *file within it, or NULL. < 0. */
int acc_dump_open_place(const char *path, char *buf, const char **file, struct acc_err *e);

#endif
