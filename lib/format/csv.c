/* RFC 4180 but for the line end: a line feed alone, as msprobe writes. */
#include "format/cells.h"

static bool
needs_quotes(struct acc_str c)
{
	for (uint32_t k = 0; k < c.n; k++)
		if (c.p[k] == ',' || c.p[k] == '"' || c.p[k] == '\n' || c.p[k] == '\r')
			return true;
	return false;
}

static void
put(FILE *out, struct acc_str c, bool inert, bool terminal)
{
	if (c.n == 0)
		return;
	uint32_t run = acc_plain_run(c, ',', '"');
	const bool quote = run < c.n && needs_quotes(c);
	if (quote)
		putc('"', out);
	if (inert)
		putc('\'', out);
	while (true) {
		int32_t code;
		fwrite(c.p, 1, run, out);
		c = (struct acc_str){c.p + run, c.n - run};
		if (c.n == 0)
			break;
		uint32_t n = acc_char(c, &code);
		if (code == '"')
			putc('"', out);
		if (terminal && !acc_char_plain(code))
			putc('?', out);
		else
			fwrite(c.p, 1, n, out);
		c = (struct acc_str){c.p + n, c.n - n};
		run = acc_plain_run(c, '"', '"');
	}
	if (quote)
		putc('"', out);
}

/* How a row is written: for whom. */
struct manner {
	bool terminal; /* it must not obey a value; a file gets it as it is */
	bool exact;    /* no quote before what a spreadsheet would run as a formula */
};

static void
write_row(FILE *out, const struct acc_str *cell, size_t n, struct manner how)
{
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			putc(',', out);
		put(out, cell[i], !how.exact && acc_cell_acts(cell[i]), how.terminal);
	}
	putc('\n', out);
}

static void
row(FILE *out, const struct acc_str *cell, size_t n)
{
	write_row(out, cell, n, (struct manner){false, false});
}

static void
row_shown(FILE *out, const struct acc_str *cell, size_t n)
{
	write_row(out, cell, n, (struct manner){true, false});
}

/* The tables of other tools, byte by byte. */
static void
row_exact(FILE *out, const struct acc_str *cell, size_t n)
{
	write_row(out, cell, n, (struct manner){false, true});
}

static void
row_exact_shown(FILE *out, const struct acc_str *cell, size_t n)
{
	write_row(out, cell, n, (struct manner){true, true});
}

static int
begin(void *state, struct acc_err *e)
{
	acc_row_fn *const fn[2][2] = {{row, row_shown}, {row_exact, row_exact_shown}};
	struct acc_delim *d = state;
	return acc_delim_begin(d, fn[d->opt.preset != NULL][d->opt.width > 0], e);
}

const struct acc_format acc_format_csv = {
	.name = "csv",
	.help = "comma-separated values, quoted where needed",
	.size = sizeof(struct acc_delim),
	.begin = begin,
	.record = acc_delim_record,
	.release = acc_delim_release,
};
