/* xlsxlib.h - libxlsxwriter, found when a spreadsheet is written: Debian has it as a shared library alone */
#ifndef ACC_FORMAT_XLSXLIB_H
#define ACC_FORMAT_XLSXLIB_H

#include "io/library.h"

#if !defined(ACC_NO_XLSX) && defined(__has_include)
#if __has_include(<xlsxwriter.h>)
#define ACC_HAVE_XLSX 1
#include <xlsxwriter.h>
#endif
#endif

#ifdef ACC_HAVE_XLSX
/* clang-format off */
#define ACC_XLSX_CALLS(X) \
	X(workbook_new_opt) X(workbook_add_worksheet) X(workbook_add_format) X(workbook_close) \
	X(workbook_set_properties) \
	X(lxw_strerror) X(format_set_bold) X(format_set_bg_color) X(format_set_font_color) \
	X(format_set_num_format) X(format_set_text_wrap) X(format_set_align) X(format_set_font_size) \
	X(format_set_bottom) X(worksheet_write_number) X(worksheet_write_string) \
	X(worksheet_write_boolean) X(worksheet_write_url_opt) X(worksheet_write_comment_opt) \
	X(worksheet_set_column_opt) X(worksheet_freeze_panes) X(worksheet_autofilter) \
	X(worksheet_set_row) X(worksheet_set_landscape) X(worksheet_fit_to_pages) \
	X(worksheet_repeat_rows) X(worksheet_repeat_columns)
/* clang-format on */
struct acc_xlsx {
	ACC_XLSX_CALLS(ACC_LIBRARY_POINTER)
};
/* Loaded once, and kept. NULL where it is not there: *e says why. */
const struct acc_xlsx *acc_xlsx_load(struct acc_err *e);
#endif

#endif
