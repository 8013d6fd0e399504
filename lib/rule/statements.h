/* statements.h - texts of lines "key text": rule files, check-lists */
#ifndef LIB_RULE_STATEMENTS_H
#define LIB_RULE_STATEMENTS_H

#include "io/literal.h"

/* `line`: the number of the line where it begins. 0 goes on; anything else ends the reading. */
typedef int acc_statement_fn(void *arg, unsigned line, struct acc_str key, struct acc_str text);

/* Call f for each line of n bytes of text that is neither empty nor a comment (#). A line that
 * ends in a backslash goes on in the next. Both strings are trimmed and last for the call. 0, what
 * f returned, or ACC_ENOMEM. */
int acc_each_statement(const char *text, size_t n, acc_statement_fn *f, void *arg);
/* Cut the first word off: it is returned, *s is the rest, both without blanks around. */
struct acc_str acc_first_word(struct acc_str *s);

#endif
