/* JSON Lines: an object a line, strict JSON, `kind` first. Numbers that are not finite are the
 * strings "NaN", "Infinity", "-Infinity". */
#include "acc/format.h"

#include <math.h>
#include <stdlib.h>

struct state {
	FILE *out;
};

static int
begin(void **state, FILE *out, const struct acc_format_opt *opt, struct acc_err *e)
{
	(void)opt;
	struct state *s = calloc(1, sizeof *s);
	if (s == NULL)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	s->out = out;
	*state = s;
	return 0;
}

/* Length of the UTF-8 sequence at p, 0 if it is none. */
static uint32_t
utf8(const unsigned char *p, uint32_t n)
{
	uint32_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3
									: p[0] < 0xf5 ? 4 : 0;
	if (len > n)
		return 0;
	for (uint32_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

static void
string(FILE *out, struct acc_str s)
{
	putc('"', out);
	for (uint32_t i = 0; i < s.n;) {
		const unsigned char *p = (const unsigned char *)s.p + i;
		uint32_t len = utf8(p, s.n - i);
		if (len == 0) /* a byte that is no UTF-8 */
			fputs("\\ufffd", out);
		else if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p == '\n')
			fputs("\\n", out);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\u%04x", *p);
		else
			fwrite(p, 1, len, out);
		i += len == 0 ? 1 : len;
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

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	(void)e;
	fputs("{\"kind\":", s->out);
	string(s->out, r->kind);
	for (uint32_t i = 0; i < r->n; i++) {
		putc(',', s->out);
		string(s->out, r->f[i].key);
		putc(':', s->out);
		value(s->out, &r->f[i].v);
	}
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
	.begin = begin,
	.record = record,
	.end = end,
	.release = free,
};
