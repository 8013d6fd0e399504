/* diff_run.h - a pipeline of programs: a tree, since some read two streams */
#ifndef ACC_DIFF_RUN_H
#define ACC_DIFF_RUN_H

#include "diff.h"

#include <sys/types.h>

enum { RUN_SILENT = -1, RUN_OWN = -2 }; /* for err */
struct prog {
	struct words argv; /* the program's name first */
	struct prog *in;   /* what writes its standard input; NULL: accdiff's own, or from */
	int from;          /* a file that is its standard input, where `in` is NULL; -1: none */
	struct prog *side; /* what writes /dev/fd/N of it, or NULL */
	int side_fd;       /* that N */
	int file, file_fd; /* a file that is /dev/fd/N, and that N; -1: none */
	int err;           /* where its standard error goes, or a RUN_ constant */
	pid_t pid;
	int status;         /* as a shell says it, once it has run */
	struct prog *older; /* of all that were made: they live until the end */
};

/* All live until the end of accdiff. */
struct prog *prog_new(const char *name, struct prog *in);
void prog_add(struct prog *p, const char *word);
void prog_add_all(struct prog *p, const struct words *w);
/* "NAME=VALUE", or "NAME" and "VALUE" as two words; nothing where value is NULL. */
void prog_add_set(struct prog *p, const char *name, const char *value);
void prog_add_two(struct prog *p, const char *name, const char *value);

/* The programs of the tree that ends in p, its output into out (1: accdiff's own): all are waited
 * for. The last one's status. */
int prog_run(struct prog *p, int out);
/* The same of a function, in a process of its own, which may end by cli_die. */
int prog_call(int (*fn)(void *arg), void *arg);
/* The line of a shell that is the same; file_by: what writes the file of one of them, or NULL. */
void prog_print(const struct prog *p, const struct prog *file_by);

/* Signals that end accdiff end what it runs, too; from now on. */
void prog_signals(void);
/* An unlinked file for what a program says: no name, so that nothing can be left. */
int prog_memory(void);
/* All of a file, terminated; lives until the end. */
char *prog_read(int fd);

#endif
