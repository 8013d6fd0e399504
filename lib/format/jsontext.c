/* JSON of values and records, for the formats that hold it. */
#include "format/jsontext.h"

#include "format/cells.h"

#include <math.h>

/* How many bytes at the start of s stand in a string as they are. */
static uint32_t
plain_run(struct acc_str s, bool in_page)
{
	uint32_t run = acc_plain_run(s, '"', '\\');
	const char *tag = in_page ? memchr(s.p, '<', run) : NULL;
	return tag == NULL ? run : (uint32_t)(tag - s.p);
}

void
acc_json_string(FILE *out, struct acc_str s, bool in_page)
{
	putc('"', out);
	while (s.n > 0) {
		int32_t code;
		uint32_t run = plain_run(s, in_page);
		fwrite(s.p, 1, run, out);
		s = (struct acc_str){s.p + run, s.n - run};
		if (s.n == 0)
			break;
		uint32_t len = acc_char(s, &code);
		if (code < 0) /* a byte that is no UTF-8 */
			fputs("\\ufffd", out);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (char)code);
		else if (code == '<') /* ends no script, begins no comment */
			fputs(in_page ? "\\u003c" : "<", out);
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

void
acc_json_value(FILE *out, const struct acc_val *v, bool in_page)
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
		acc_json_string(out, v->s, in_page);
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
				acc_json_string(out, v->texts[i], in_page);
			else
				fprintf(out, "%lld", (long long)v->ints[i]);
		}
		putc(']', out);
	}
}

void
acc_json_record(FILE *out, const struct acc_rec *r, bool in_page)
{
	fputs("{\"kind\":", out);
	acc_json_string(out, r->kind, in_page);
	for (uint32_t i = 0; i < r->n; i++) {
		putc(',', out);
		acc_json_string(out, r->f[i].key, in_page);
		putc(':', out);
		acc_json_value(out, &r->f[i].v, in_page);
	}
	putc('}', out);
}
