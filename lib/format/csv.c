/* RFC 4180 but for the line end: a line feed alone, as msprobe writes. */
#include "format/cells.h"

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct acc_str c = cell[i];
		bool quote = false;
		for (uint32_t k = 0; k < c.n && !quote; k++)
			quote = c.p[k] == ',' || c.p[k] == '"' || c.p[k] == '\n' || c.p[k] == '\r';
		if (i > 0)
			putc(',', out);
		if (!quote) {
			fwrite(c.p, 1, c.n, out);
			continue;
		}
		putc('"', out);
		for (uint32_t k = 0; k < c.n; k++) {
			if (c.p[k] == '"')
				putc('"', out);
			putc(c.p[k], out);
		}
		putc('"', out);
	}
	putc('\n', out);
}

static const struct acc_delim delim = {row, NULL};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	return acc_delim_begin(state, &delim, out, opt, e);
}

const struct acc_format acc_format_csv = {
	.name = "csv",
	.help = "comma-separated values, quoted where needed",
	.begin = begin,
	.record = acc_delim_record,
	.end = acc_delim_end,
	.release = acc_delim_release,
};
