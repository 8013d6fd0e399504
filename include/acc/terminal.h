/* terminal.h - texts of unknown origin on a terminal
 *
 * What is not plain (acc_char_plain) is written as '?': names come from files.
 */
#ifndef ACC_TERMINAL_H
#define ACC_TERMINAL_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Columns on the screen: the wide characters of East Asia take two. */
size_t acc_text_width(struct acc_str s);
/* Write s; returns the columns it took. If these are more than most, its middle is replaced by an
 * ellipsis: names of tensors differ at their ends. */
size_t acc_text_put(FILE *out, struct acc_str s, size_t most);
/* Write s, which begins in column `at`, in lines of at most `width` columns, broken at blanks, or
 * between Chinese characters; all
 * lines but the first are indented by `hang`. What has no blank, a path, is not broken. width 0:
 * one line. No line end at the end. */
void acc_text_wrap(FILE *out, struct acc_str s, size_t width, size_t at, size_t hang);

#ifdef __cplusplus
}
#endif

#endif
