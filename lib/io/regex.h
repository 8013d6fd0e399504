/* regex.h - Perl's regular expressions; lib/io/regex.c is the only user of libpcre2 */
#ifndef LIB_IO_REGEX_H
#define LIB_IO_REGEX_H

#include "acc/base.h"

struct acc_regex;
/* NULL: not a pattern; *e names the place in it. Bytes, not characters, are matched. */
struct acc_regex *acc_regex_open(const char *pattern, struct acc_err *e);
/* The same for a pattern whose groups are known by their numbers; it may have none. */
struct acc_regex *acc_regex_open_plain(const char *pattern, struct acc_err *e);
/* The same; where no group has a name, the first groups are called by these, NULL at their end. */
struct acc_regex *acc_regex_open_names(const char *pattern, const char *const *names,
	struct acc_err *e);
void acc_regex_close(struct acc_regex *r);
/* The named groups, in the order in which they stand in the pattern. */
size_t acc_regex_names(const struct acc_regex *r);
struct acc_str acc_regex_name(const struct acc_regex *r, size_t i);
/* Find the first match: 1, 0 if there is none; < 0: it would take too long (ACC_ELIMIT). */
int acc_regex_find(struct acc_regex *r, struct acc_str s, struct acc_err *e);
/* The same at byte `at` of s or behind it; what stands before is seen by ^, \b and lookbehinds. */
int acc_regex_find_from(struct acc_regex *r, struct acc_str s, size_t at, struct acc_err *e);
/* What the i-th named group matched; p is NULL where it took no part. In s. */
struct acc_str acc_regex_group(const struct acc_regex *r, struct acc_str s, size_t i);
/* What the group of a number matched, 0 being the whole; p is NULL where it took no part. */
struct acc_str acc_regex_number(const struct acc_regex *r, struct acc_str s, uint32_t number);

#endif
