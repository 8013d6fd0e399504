/* shell_impl.h - between the files shell*.c */
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

/* --- a script as it is read (shell_words.c) --- */
enum { SHELL_BLOCKS = 64, SHELL_HEREDOCS = 8 };

enum block_kind { BLOCK_IF, BLOCK_LOOP, BLOCK_CASE, BLOCK_GROUP };

struct shell_block {
	enum block_kind kind;
	enum tri outer;                /* was what is around it reached? */
	enum tri taken;                /* of the branches so far: was one? */
	bool unsure;                   /* is what is not read here perhaps reached? */
	struct acc_shell_word subject; /* of a case */
	bool arm;                      /* of a case: a pattern has been read, its commands follow */
};

struct shell_reader {
	struct shell sh;
	const struct acc_shell_hooks *h;
	const char *p, *end;
	uint32_t line;
	struct shell_block block[SHELL_BLOCKS];
	int depth;
	enum tri live;   /* is what is read reached? UNKNOWN: perhaps */
	enum tri result; /* of the last condition */
	enum tri gate;   /* of the commands behind && and ||: are they reached? */
	bool asking;     /* a condition of if, elif or while is being read, */
	bool doubt;      /* a part of which is unknown */
	struct shell_raw
		here[SHELL_HEREDOCS]; /* ends of here documents that begin with the next line */
	bool here_tab[SHELL_HEREDOCS];
	int nhere;
	struct shell_raw *word; /* of the command, as they stand */
	uint32_t nword;
	size_t word_cap;
};

/* "line N: what" */
int acc_shell_wrong(struct shell_reader *rd, const char *what);
/* Behind the here documents that began before this line. */
void acc_shell_here(struct shell_reader *rd);
/* Blanks, comments and continued lines. */
void acc_shell_blanks(struct shell_reader *rd);
/* The word at p; n = 0 where there is none. */
int acc_shell_raw_word(struct shell_reader *rd, struct shell_raw *w);
/* Does a word end before it? */
bool acc_shell_ends(char c);
/* Does it stand there as this text? */
bool acc_shell_is(struct shell_raw w, const char *text);
/* One more word of the command. */
int acc_shell_keep(struct shell_reader *rd, struct shell_raw w);
/* > file, 2>&1, <<EOF: nothing of it is of use. */
int acc_shell_redirect(struct shell_reader *rd);
/* NAME=, NAME+=: the bytes before the value, or 0. */
uint32_t acc_shell_assignment(struct shell_raw w, struct acc_str *name, bool *append);
/* A variable's words; append: behind those that it has. */
int acc_shell_set(struct shell_reader *rd, struct acc_str name, const struct shell_words *w,
	bool array, bool append);
/* NAME=VALUE */
int acc_shell_assign(struct shell_reader *rd, struct shell_raw w, bool exported);
/* NAME=( words ), over lines. p stands behind the bracket. */
int acc_shell_array(struct shell_reader *rd, struct shell_raw head);
/* Hand on what a variable is now. */
int acc_shell_export(struct shell_reader *rd, struct acc_str name);

#endif
