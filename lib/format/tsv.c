/* Tab-separated values for cut and awk: a tab, line end or backslash in a value is written as
 * \t, \n, \r or \\, so that a line is a row and a tab is a border. */
#include "format/cells.h"

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			putc('\t', out);
		for (uint32_t k = 0; k < cell[i].n; k++) {
			char c = cell[i].p[k];
			const char *as = c == '\t' ? "\\t" : c == '\n' ? "\\n" : c == '\r' ? "\\r"
						       : c == '\\'   ? "\\\\" : NULL;
			if (as != NULL)
				fputs(as, out);
			else
				putc(c, out);
		}
	}
	putc('\n', out);
}

static const struct acc_delim delim = {row, NULL};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	return acc_delim_begin(state, &delim, out, opt, e);
}

const struct acc_format acc_format_tsv = {
	.name = "tsv",
	.help = "tab-separated values",
	.begin = begin,
	.record = acc_delim_record,
	.end = acc_delim_end,
	.release = acc_delim_release,
};
