/* shell_impl.h - between shell.c, shell_expand.c and shell_test.c */
#ifndef LIB_IO_SHELL_IMPL_H
#define LIB_IO_SHELL_IMPL_H

#include "io/shell.h"

enum { SHELL_DEPTH = 16, SHELL_WORDS = 65536, SHELL_WORK = 64 << 20 };

/* What is known of a condition. */
enum tri { NO, YES, UNKNOWN };

struct shell_words {
	struct acc_shell_word *w;
	uint32_t n;
	size_t cap;
};

struct shell_var {
	struct acc_str name;
	struct acc_shell_word *w; /* in mem */
	uint32_t n;
	bool array, exported;
};

struct shell {
	struct acc_arena mem;
	struct shell_var *var;
	uint32_t nvar;
	size_t var_cap;
	uint64_t work; /* bytes made by expansion so far */
	struct acc_err *e;
};

/* Text as it stands in the script. */
struct shell_raw {
	const char *p;
	uint32_t n, line;
};

struct shell_var *acc_shell_find(struct shell *sh, struct acc_str name);
/* Bytes of a name at the start of s. */
uint32_t acc_shell_name(struct acc_str s);
/* Behind what begins at p: a string in quotes, ${...}, $(...), `...`; p + 1 for anything else.
 * NULL where its end is missing. Counts lines. */
const char *acc_shell_skip(const char *p, const char *end, uint32_t *line);
/* A raw word to words. split: unquoted values fall apart at blanks. */
int acc_shell_expand(struct shell *sh, struct shell_raw raw, bool split, struct shell_words *out);
/* The value of $((text)); false where it is not known. */
bool acc_shell_arithmetic(struct shell *sh, struct acc_str text, int64_t *v);
/* The words between [ and ], or [[ and ]]. */
enum tri acc_shell_test(const struct acc_shell_word *w, uint32_t n);
static inline enum tri
shell_not(enum tri t)
{
	return t == UNKNOWN ? UNKNOWN : t == YES ? NO : YES;
}

#endif
