/* xlsx.h - the rows of a spreadsheet's first sheet, as pandas, Excel and LibreOffice write it
 *
 * A zip of XML: the sheet is inflated and parsed piece by piece, only its table of strings is kept. A document
 * type, and with it entities, is refused.
 */
#ifndef LIB_IO_XLSX_H
#define LIB_IO_XLSX_H

#include "acc/base.h"

/* A row: n cells as text, an empty one where nothing stands; valid until fn returns. 0, or < 0: stop. */
typedef int acc_xlsx_fn(void *arg, const struct acc_str *cell, size_t n, uint64_t row,
	struct acc_err *e);
/* fd stays the caller's. 0, < 0, or what fn returned. */
int acc_xlsx_read(int fd, acc_xlsx_fn *fn, void *arg, struct acc_err *e);

#endif
