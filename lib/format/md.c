/* A Markdown table, as issue trackers show it. */
#include "format/cells.h"

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	putc('|', out);
	for (size_t i = 0; i < n; i++) {
		putc(' ', out);
		for (uint32_t k = 0; k < cell[i].n; k++) {
			char c = cell[i].p[k];
			/* What would end the cell, or be taken for markup. */
			if (c == '|' || c == '\\' || c == '*' || c == '_' || c == '`' || c == '<')
				putc('\\', out);
			if (c == '\n')
				fputs("<br>", out);
			else
				putc((unsigned char)c < 0x20 ? ' ' : c, out);
		}
		fputs(" |", out);
	}
	putc('\n', out);
}

static void
rule(FILE *out, size_t n)
{
	putc('|', out);
	for (size_t i = 0; i < n; i++)
		fputs("---|", out);
	putc('\n', out);
}

static const struct acc_delim delim = {row, rule};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	return acc_delim_begin(state, &delim, out, opt, e);
}

const struct acc_format acc_format_md = {
	.name = "md",
	.help = "a Markdown table",
	.begin = begin,
	.record = acc_delim_record,
	.end = acc_delim_end,
	.release = acc_delim_release,
};
