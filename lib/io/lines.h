/* lines.h - the lines of a text, whatever its length */
#ifndef LIB_IO_LINES_H
#define LIB_IO_LINES_H

#include "acc/file.h"

enum { ACC_LINE_LIMIT = 16 << 20 };

struct acc_lines {
	struct acc_bytes *b; /* borrowed */
	uint64_t no;         /* of the line that was returned last; the first is 1 */
	size_t used;         /* bytes to be consumed with the next call */
	bool too_long;       /* the line was cut off at ACC_LINE_LIMIT */
	bool cut;            /* the input ended before the line did: it may be a part of one */
};

/* The next line, without its line feed, valid until the next call. 1, 0 at the end, < 0. */
int acc_lines_next(struct acc_lines *l, struct acc_str *line, struct acc_err *e);

/* Which lines are worth a closer look: those that hold one of a few words. Only the first
 * four bytes of each word are looked for, so a line that has them may still hold none. */
enum { ACC_SIEVE_WORDS = 32 };
struct acc_sieve {
	uint32_t word[ACC_SIEVE_WORDS];
	int n;
	uint8_t shift[4096]; /* by two bytes: how far the window of four may move on */
};
/* The bit of a word, which is added where it is new; 0 if there is no room. */
uint32_t acc_sieve_add(struct acc_sieve *s, const char *word);
/* The bits of the words in the line. */
uint32_t acc_sieve_find(const struct acc_sieve *s, struct acc_str line);

#endif
