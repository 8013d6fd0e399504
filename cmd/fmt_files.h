/* fmt_files.h - the files that accfmt writes beside what it prints */
#ifndef ACC_FMT_FILES_H
#define ACC_FMT_FILES_H

#include "acc/format.h"

/* Write all records in this format to this file, too. */
void files_add(const struct acc_format *f, const char *path);
bool files_any(void);
/* Each file is written beside its place, and takes that once it is whole: none is there by half, and
 * an older one stays until then. All of these end the program where they fail. */
/* What is printed, or a file, is a spreadsheet: where the library that writes it crashes, that is said in a
 * line, exit status 2, and no file is left. */
void files_guard(const struct acc_format *f);
void files_begin(const struct acc_format_opt *opt);
void files_put(const struct acc_rec *r);
void files_end(int status);
/* A format's end, in which nothing but this program writes to standard error. 0 or < 0. */
int files_end_one(const struct acc_format *f, void *state, int status, struct acc_err *e);

#endif
