/* Tab-separated values for cut and awk: a tab, line end or backslash in a value is written as
 * \t, \n, \r or \\, so that a line is a row and a tab is a border; other characters that a terminal
 * would obey, and bytes that are no UTF-8, byte by byte as \xHH. */
#include "format/cells.h"

static void
put(FILE *out, struct acc_str c)
{
	while (c.n > 0) {
		int32_t code;
		uint32_t run = acc_plain_run(c, '\\', '\\');
		fwrite(c.p, 1, run, out);
		c = (struct acc_str){c.p + run, c.n - run};
		if (c.n == 0)
			break;
		uint32_t n = acc_char(c, &code);
		const char *as = code == '\t'   ? "\\t"
				 : code == '\n' ? "\\n"
				 : code == '\r' ? "\\r"
				 : code == '\\' ? "\\\\"
						: NULL;
		if (as != NULL)
			fputs(as, out);
		else if (acc_char_plain(code))
			fwrite(c.p, 1, n, out);
		else
			for (uint32_t k = 0; k < n; k++)
				fprintf(out, "\\x%02x", (unsigned char)c.p[k]);
		c = (struct acc_str){c.p + n, c.n - n};
	}
}

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			putc('\t', out);
		put(out, cell[i]);
	}
	putc('\n', out);
}

static int
begin(void *state, struct acc_err *e)
{
	return acc_delim_begin(state, row, e);
}

const struct acc_format acc_format_tsv = {
	.name = "tsv",
	.help = "tab-separated values",
	.size = sizeof(struct acc_delim),
	.begin = begin,
	.record = acc_delim_record,
	.release = acc_delim_release,
};
