/* A Markdown table, as issue trackers show it. */
#include "format/cells.h"

static void
put(FILE *out, struct acc_str c)
{
	while (c.n > 0) {
		int32_t code;
		uint32_t n = acc_char(c, &code);
		/* What would end the cell, or be taken for markup; of a link, its middle. */
		if (code > 0 && code < 0x80 && strchr("|\\*_`<~", code) != NULL)
			putc('\\', out);
		if (code == ']' && c.n > 1 && c.p[1] == '(')
			putc('\\', out);
		if (code == '\n')
			fputs("<br>", out);
		else if (acc_char_plain(code))
			fwrite(c.p, 1, n, out);
		else
			putc('?', out);
		c = (struct acc_str){c.p + n, c.n - n};
	}
}

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	putc('|', out);
	for (size_t i = 0; i < n; i++) {
		putc(' ', out);
		put(out, cell[i]);
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

static const struct acc_style style = {row, rule, put};

static int
begin(void *state, struct acc_err *e)
{
	struct acc_table *t = state;
	t->opt.color = false;
	t->opt.width = 0;
	return acc_table_begin(t, &style, e);
}

const struct acc_format acc_format_md = {
	.name = "md",
	.for_people = true,
	.help = "a Markdown table, then the findings as sentences",
	.size = sizeof(struct acc_table),
	.begin = begin,
	.record = acc_table_record,
	.end = acc_table_end,
	.release = acc_table_release,
};
