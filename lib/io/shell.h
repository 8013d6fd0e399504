/* shell.h - what a shell script would run, as far as its text tells: nothing is executed
 *
 * Variables, arrays, quotes, $NAME, ${NAME:-default}, ${ARRAY[@]}, $((arithmetic)), if and case
 * over known values, continued lines and here documents are followed. What only a run can tell
 * (commands in $(...), files, arguments, variables set elsewhere) is unknown: it stays in the
 * text as it is written, and the word is `open`. Of an if whose condition is unknown the first
 * branch is read, and its commands are `maybe`; of such a case, and such a loop, nothing. The
 * bodies of functions and for loops are read once, where they stand.
 */
#ifndef LIB_IO_SHELL_H
#define LIB_IO_SHELL_H

#include "acc/base.h"

struct acc_shell_word {
	struct acc_str s; /* quotes removed */
	uint32_t line;    /* where it was written: in the array, not where that is used */
	bool open;        /* part of it is unknown */
	bool maybe;       /* it was put where it is by a command that is perhaps not reached */
	bool quoted;      /* part of it stood in quotes where it is used */
};

struct acc_shell_hooks {
	/* A simple command with its words, and the variables set for it alone before them. Words
	 * are valid during the call. 0, or < 0: stop. */
	int (*command)(void *arg, const struct acc_shell_word *w, uint32_t n, bool maybe);
	/* A variable that is handed to what is run: by export, or before a command. */
	int (*variable)(void *arg, struct acc_str name, const struct acc_shell_word *value,
		bool maybe);
	/* After the end, each variable or array that is set, by words; in order. May be NULL. */
	int (*left)(void *arg, struct acc_str name, const struct acc_shell_word *w, uint32_t n);
	/* A command with options that is perhaps reached, and is not read. May be NULL. */
	int (*passed)(void *arg, uint32_t line);
	void *arg;
};

/* 0, what a hook returned, or < 0: ACC_ELIMIT where it grows beyond measure; ACC_EFORMAT where a
 * quote is not closed. Limits: 16 MiB of text, 64 nested blocks, 65,536 words a command. */
int acc_shell_read(const char *text, size_t n, const struct acc_shell_hooks *h, struct acc_err *e);

/* Does a text hold more than one command? Of bash -c TEXT such a word is handed on as it is; what one command says is
 * handed on as words of that around it. */
bool acc_shell_several(struct acc_str text);

#endif
