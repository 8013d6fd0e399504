/* Where the device's and the bench's records come from, as commands are given it. */
#ifndef FORMAT_SIDES_H
#define FORMAT_SIDES_H

#include "acc/format.h"

enum { ACC_SIDES_SOURCES = 4096 };

/* Zero it to start. Texts are in the arena that each function is given. */
struct acc_sides {
	struct acc_map sources; /* id -> index in root */
	const char *root[ACC_SIDES_SOURCES];
	size_t nroots;
	const char *of[2]; /* the folders of the first bad record's sides, or of the first's */
	bool of_bad;
	struct acc_str of_file[2]; /* their files */
	struct acc_str file[2];    /* of checkpoints: the one file of a side */
	bool files[2];             /* there are several, or a folder is meant */
	struct acc_map
		other; /* the device's key -> the bench's, an index in key, where that differs */
	struct acc_str *key;
	size_t nkeys, cap;
};
int acc_sides_source(struct acc_sides *s, const struct acc_rec *r, struct acc_arena *mem,
	struct acc_err *e);
/* A record of a tensor or argument, or a pair of them; bad ones before others. */
int acc_sides_see(struct acc_sides *s, const struct acc_rec *r, bool bad, struct acc_arena *mem,
	struct acc_err *e);
/* What the bench calls this op call or tensor of the device, if something else; else empty. */
struct acc_str acc_sides_other(const struct acc_sides *s, struct acc_str key);
void acc_sides_release(struct acc_sides *s);
/* Is it one of a checkpoint? */
bool acc_sides_checkpoint(struct acc_sides *s, const struct acc_rec *r, struct acc_arena *mem);
/* What a command is given for both sides, quoted: what the user typed, if opt's log has it; else where the
 * records come from; or DEVICE and BENCH. */
void acc_sides_operands(const struct acc_sides *s, const struct acc_format_opt *opt,
	struct acc_arena *mem, struct acc_str out[2]);
/* As a shell reads it: in single quotes, which end for each one inside. Without memory empty, and mem is lost. */
struct acc_str acc_shell_word(struct acc_str t, struct acc_arena *mem);

#endif
