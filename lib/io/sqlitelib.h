/* sqlitelib.h - libsqlite3, found when a database is read */
#ifndef LIB_IO_SQLITELIB_H
#define LIB_IO_SQLITELIB_H

#include "io/library.h"

#if !defined(ACC_NO_SQLITE) && defined(__has_include)
#if __has_include(<sqlite3.h>)
#define ACC_HAVE_SQLITE 1
#include <sqlite3.h>
#endif
#endif

#ifdef ACC_HAVE_SQLITE
/* clang-format off */
#define ACC_SQLITE_CALLS(X) \
	X(sqlite3_open_v2) X(sqlite3_close) X(sqlite3_limit) X(sqlite3_db_config) \
	X(sqlite3_set_authorizer) X(sqlite3_exec) X(sqlite3_prepare_v2) X(sqlite3_step) X(sqlite3_finalize) \
	X(sqlite3_column_count) X(sqlite3_column_type) X(sqlite3_column_int64) X(sqlite3_column_double) \
	X(sqlite3_column_blob) X(sqlite3_column_text) X(sqlite3_column_bytes) X(sqlite3_errstr) \
	X(sqlite3_progress_handler)
/* clang-format on */
struct acc_sqlite_lib {
	ACC_SQLITE_CALLS(ACC_LIBRARY_POINTER)
};
/* Loaded once, and kept. NULL where it is not there: *e says why. */
const struct acc_sqlite_lib *acc_sqlite_load(struct acc_err *e);
#endif

#endif
