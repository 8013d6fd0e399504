/* JSON Lines: an object a line, strict JSON, `kind` first. Numbers that are not finite are the
 * strings "NaN", "Infinity", "-Infinity". */
#include "format/cells.h"
#include "format/jsontext.h"

#include <stdlib.h>

static int
begin(void *state, struct acc_err *e)
{
	const struct acc_format_state *s = state;
	return s->opt.preset == NULL ? 0
				     : acc_fail(e, ACC_EUSAGE,
					       "the columns of %s are those of a table; JSON Lines"
					       " has keys",
					       s->opt.preset);
}

static void
field(FILE *out, struct acc_str key, const struct acc_val *v)
{
	putc(',', out);
	acc_json_string(out, key, false);
	putc(':', out);
	acc_json_value(out, v, false);
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_format_state *s = state;
	const struct acc_format_opt *opt = &s->opt;
	if (opt->ncolumns > 0 && !acc_is_row(r))
		return 0;
	if (opt->ncolumns == 0) {
		acc_json_record(s->out, r, false);
		putc('\n', s->out);
		return ferror(s->out) ? acc_fail(e, ACC_EIO, "standard output:") : 0;
	}
	fputs("{\"kind\":", s->out);
	acc_json_string(s->out, r->kind, false);
	for (size_t i = 0; i < opt->ncolumns; i++) {
		const struct acc_val *v = acc_get(r, "", opt->columns[i]);
		if (v != NULL) /* a record's kind is none of its fields */
			field(s->out, acc_str(opt->columns[i]), v);
	}
	fputs("}\n", s->out);
	return ferror(s->out) ? acc_fail(e, ACC_EIO, "standard output:") : 0;
}

const struct acc_format acc_format_json = {
	.name = "json",
	.help = "JSON Lines, an object a record",
	.all_keys = true,
	.size = sizeof(struct acc_format_state),
	.begin = begin,
	.record = record,
};
