/* JSON Lines: an object a line, strict JSON, `kind` first. Numbers that are not finite are the
 * strings "NaN", "Infinity", "-Infinity". */
#include "format/cells.h"

#include <math.h>
#include <stdlib.h>

struct state {
	FILE *out;
	struct acc_format_opt opt;
};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	if (opt->preset != NULL)
		return acc_fail(e, ACC_EUSAGE,
			"the columns of %s are those of a table; JSON Lines"
			" has keys",
			opt->preset);
	struct state *s = calloc(1, sizeof *s);
	if (s == NULL)
		return acc_nomem(e);
	s->out = out;
	s->opt = *opt;
	*state = s;
	return 0;
}

static void
string(FILE *out, struct acc_str s)
{
	putc('"', out);
	while (s.n > 0) {
		int32_t code;
		uint32_t run = acc_plain_run(s, '"', '\\');
		fwrite(s.p, 1, run, out);
		s = (struct acc_str){s.p + run, s.n - run};
		if (s.n == 0)
			break;
		uint32_t len = acc_char(s, &code);
		if (code < 0) /* a byte that is no UTF-8 */
			fputs("\\ufffd", out);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (code == '\n')
			fputs("\\n", out);
		else if (!acc_char_plain(code))
			fprintf(out, "\\u%04x", (unsigned)code);
		else
			fwrite(s.p, 1, len, out);
		s = (struct acc_str){s.p + len, s.n - len};
	}
	putc('"', out);
}

static void
real(FILE *out, double v)
{
	char buf[40];
	if (isnan(v))
		fputs("\"NaN\"", out);
	else if (isinf(v))
		fputs(v < 0 ? "\"-Infinity\"" : "\"Infinity\"", out);
	else {
		acc_f64_repr(v, buf, sizeof buf);
		fputs(buf, out);
	}
}

static void
value(FILE *out, const struct acc_val *v)
{
	switch (v->type) {
	case ACC_V_NIL:
		fputs("null", out);
		break;
	case ACC_V_BOOL:
		fputs(v->b ? "true" : "false", out);
		break;
	case ACC_V_INT:
		fprintf(out, "%lld", (long long)v->i);
		break;
	case ACC_V_UINT:
		fprintf(out, "%llu", (unsigned long long)v->u);
		break;
	case ACC_V_F64:
		real(out, v->f);
		break;
	case ACC_V_TEXT:
		string(out, v->s);
		break;
	case ACC_V_BIN: /* payload is for programs, not for people: its length */
		fprintf(out, "\"%u bytes\"", v->s.n);
		break;
	case ACC_V_INTS:
	case ACC_V_TEXTS:
		putc('[', out);
		for (uint32_t i = 0; i < v->n; i++) {
			if (i > 0)
				putc(',', out);
			if (v->type == ACC_V_TEXTS)
				string(out, v->texts[i]);
			else
				fprintf(out, "%lld", (long long)v->ints[i]);
		}
		putc(']', out);
	}
}

static void
field(FILE *out, struct acc_str key, const struct acc_val *v)
{
	putc(',', out);
	string(out, key);
	putc(':', out);
	value(out, v);
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	const struct acc_format_opt *opt = &s->opt;
	if (opt->ncolumns > 0 && !acc_is_row(r))
		return 0;
	fputs("{\"kind\":", s->out);
	string(s->out, r->kind);
	for (size_t i = 0; i < opt->ncolumns; i++) {
		const struct acc_val *v = acc_get(r, "", opt->columns[i]);
		if (v != NULL) /* a record's kind is none of its fields */
			field(s->out, acc_str(opt->columns[i]), v);
	}
	for (uint32_t i = 0; opt->ncolumns == 0 && i < r->n; i++)
		field(s->out, r->f[i].key, &r->f[i].v);
	fputs("}\n", s->out);
	return ferror(s->out) ? acc_fail(e, ACC_EIO, "standard output:") : 0;
}

static int
end(void *state, int status, struct acc_err *e)
{
	(void)state;
	(void)status;
	(void)e;
	return 0;
}

const struct acc_format acc_format_json = {
	.name = "json",
	.help = "JSON Lines, an object a record",
	.all_keys = true,
	.begin = begin,
	.record = record,
	.end = end,
	.release = free,
};
