/* csv.h - a streaming reader for CSV (RFC 4180), as spreadsheets, pandas and browsers write it
 *
 * Comma; LF, CRLF or CR; fields perhaps in double quotes, which may hold commas, line breaks
 * and doubled quotes. A byte order mark is skipped, and so are empty lines. A record has at
 * most 16 MiB and 65,536 fields.
 */
#ifndef LIB_IO_CSV_H
#define LIB_IO_CSV_H

#include "acc/file.h"

struct acc_csv;
/* Takes over `b`: closed with the reader, also where opening fails; a NULL `b` gives NULL. */
struct acc_csv *acc_csv_open(struct acc_bytes *b, struct acc_err *e);
/* 1: a record of *n fields, valid until the next call; 0: the end; < 0: ACC_ETRUNC where the
 * input ends inside quotes, ACC_EFORMAT for text behind a closing quote, ACC_ELIMIT. */
int acc_csv_next(struct acc_csv *c, const struct acc_str **field, size_t *n, struct acc_err *e);
/* What divides fields, if it is no comma. Before the first record. */
void acc_csv_separator(struct acc_csv *c, char sep);
/* The line on which the record began; the first is 1. */
uint64_t acc_csv_line(const struct acc_csv *c);
/* Did the input end before the record's line did? Then it may have been cut off. */
bool acc_csv_cut(const struct acc_csv *c);
void acc_csv_close(struct acc_csv *c);

#endif
