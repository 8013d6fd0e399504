/* columns.h - records as blocks of JSON, by columns, for a page that reads them
 *
 * A block is an object of up to ACC_BLOCK_ROWS records:
 *	"n"	how many records
 *	"s"	texts that no block before had; all texts are numbered in their order, from 0
 *	"k"	for each key that occurs one of
 *		  [v, ...]               a value a record; null: the record lacks it
 *		  {"c":v}                all have this value
 *		  {"i":[n, ...],"v":[...]}  the records, counted from the one before, and their values
 *		  {"r":"key"}            the same as that key, which stands before
 *		where a value is a number, true or false; a text is [its number].  A key whose values are all
 *		texts has {"t":1} and the numbers alone: {"t":1,"v":...}, where v is as above.
 *	"o"	records that are no rows, as objects: sources, findings; of stacks, the frames as numbers
 * Numbers have 9 digits: a float32 reads back the same. Hashes are numbers, equal where they are.
 */
#ifndef ACC_FORMAT_COLUMNS_H
#define ACC_FORMAT_COLUMNS_H

#include "acc/record.h"

enum { ACC_BLOCK_ROWS = 1024 };

struct acc_json_blocks;
/* out stays the caller's; in tmpdir (NULL: /tmp) lie parts of the next block. NULL on failure. */
struct acc_json_blocks *acc_blocks_open(FILE *out, const char *tmpdir, struct acc_err *e);
/* Take a record; now and then a block is written, as a script element of
 * a page. Sticky failures of out show when it is closed. 0 or < 0. */
int acc_blocks_put(struct acc_json_blocks *b, const struct acc_rec *r, struct acc_err *e);
/* Write what is left. 0 or < 0. */
int acc_blocks_flush(struct acc_json_blocks *b, struct acc_err *e);
void acc_blocks_close(struct acc_json_blocks *b);

#endif
