/* handset.h - the files of a recording made by hand: those of folders, of a tar, of a zip
 *
 * Only .npy, .pt and .pth count, and the manifest. In an archive they are found where they lie;
 * nothing is unpacked.
 */
#ifndef DUMP_HANDSET_H
#define DUMP_HANDSET_H

#include "dump/jtree.h"
#include "acc/zip.h"
#include "dump/ctx.h"
#include "dump/say.h"

enum { HANDSET_FILES = 1000000, HANDSET_DEPTH = 6 };

struct hand_file {
	const char *path; /* in the folder or archive: "fwd/fc1-out.npy" */
	const char *file; /* beneath the root: the same, or the archive */
	/* Where it lies in an archive; off, clen and len are 0 of a file of its own. */
	struct acc_zip_member at;
	bool inside; /* of an archive */
	bool crc;    /* at.crc32 is known */
	/* What its folders say; see acc_handset_place. */
	int64_t step, rank;  /* -1: nothing */
	const char *pass;    /* "", "forward", "backward" */
	const char *io;      /* NULL, "in", "out" */
	struct acc_str stem; /* what is left of the path, in points: "blocks.0.act-out" */
	bool mirrored;       /* of a backward pass whose numbers are those of the modules */
	struct acc_str name; /* the path without steps, ranks and extension */
	/* Of a manifest or a pattern, where they say it: the module and the argument. */
	struct acc_str op, pos;
	/* Of a manifest that says more than one of op, name and module: the call's own name; the module it is in. */
	struct acc_str own, module;
	struct acc_str in;  /* names of what went in, a line each */
	struct acc_str out; /* the name of what the file holds, where that is not the call's */
	const struct jnode *attrs; /* of the operator; NULL: none are said */
	uint64_t line;             /* of the manifest */
};

struct handset {
	struct acc_dump_ctx *c;
	const char *where; /* for messages */
	struct dump_said said;
	struct acc_arena mem;
	struct hand_file *f;
	size_t n, cap;
	const char *order; /* as in struct acc_source */
	struct hand_file manifest;
	bool has_manifest, manifest_lines; /* the latter: JSON Lines, not CSV */
	size_t manifest_folder;            /* bytes of the folder that it is in */
};

/* .npy, .pt, .pth */
bool acc_handset_takes(struct acc_str name);
/* The files below a folder. 0 or < 0. */
int acc_handset_folder(struct handset *s, int dirfd, struct acc_err *e);
/* Those of an archive, which is `file` beneath the root. What cannot be read of it is said. */
int acc_handset_archive(struct handset *s, int fd, const char *file, uint64_t size,
	struct acc_err *e);
/* What the folders of each path say of it, and the order: by step, rank, forward before backward,
 * then by name. */
int acc_handset_place(struct handset *s, struct acc_err *e);
/* Put the files in the order of the manifest, with what it says of each; what it does not name is
 * left out, and counted. < 0 where it cannot be understood. */
int acc_handset_manifest(struct handset *s, int fd, struct acc_err *e);
/* What the context's pattern says of the names; files that it does not match are left out, and
 * counted. < 0 where it matches none. */
int acc_handset_pattern(struct handset *s, struct acc_err *e);
/* The next line of *s; false: there is none. */
bool acc_hand_line(struct acc_str *s, struct acc_str *line);
/* Hand on the attributes of a file's call; m: of one record. 0 or < 0. */
int acc_hand_attrs(struct acc_dump_ctx *c, const struct hand_file *f, struct acc_arena *m,
	struct acc_err *e);
void acc_handset_release(struct handset *s);

/* Does a folder of this name stand for a step, a rank, a pass, or for what went in or came out? */
bool acc_handset_word(struct acc_str name);

#endif
