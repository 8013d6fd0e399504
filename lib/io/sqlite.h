/* sqlite.h - an SQLite database that nobody vouches for, read and never written
 *
 * What is opened is one regular file, as it lies there: read only, without journals and locks, without
 * extensions, triggers, views and virtual tables. A query reads a table; no more rows and bytes come out of it
 * than a file of that size can hold, so that a tree whose pages are used many times ends. */
#ifndef LIB_IO_SQLITE_H
#define LIB_IO_SQLITE_H

#include "acc/record.h"

/* Are these the first bytes of a database? */
bool acc_is_sqlite(const uint8_t *head, size_t n);
/* That file of a folder, opened; < 0 also where a program that writes has left some of it in a file beside. */
int acc_sqlite_file(int dirfd, const char *name, struct acc_err *e);
struct acc_sqlite;
/* fd: the file, which stays the caller's and open. NULL: *e says why; ACC_EUNSUP where the library is not here. */
struct acc_sqlite *acc_sqlite_open(int fd, struct acc_err *e);
void acc_sqlite_close(struct acc_sqlite *s);
/* Has it a table with these columns (separated by blanks)? 1, 0 or < 0. */
int acc_sqlite_has(struct acc_sqlite *s, const char *table, const char *columns, struct acc_err *e);
/* A query: SELECT ... FROM a table, without functions, or PRAGMA table_info(TABLE), whose second column is a name.
 * Several may be open at once, all closed before the database. */
struct acc_query;
struct acc_query *acc_sqlite_query(struct acc_sqlite *s, const char *sql, struct acc_err *e);
/* 1: a row; 0: the end; < 0: ACC_EFORMAT where the file is damaged, ACC_ELIMIT where it cannot be right. */
int acc_query_next(struct acc_query *r, struct acc_err *e);
/* Of the row: NIL, INT, F64, TEXT or BIN, borrowed until the next row. The first is 0. */
struct acc_val acc_query_value(struct acc_query *r, int column);
void acc_query_close(struct acc_query *r);

#endif
