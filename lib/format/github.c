/* Workflow commands of GitHub Actions: each finding is an annotation, at its line of code where a stack
 * is known. Other records are none. */
#include "acc/format.h"
#include "format/opcalls.h"

#include <stdlib.h>

struct state {
	ACC_FORMAT_STATE;
	struct acc_stacks stacks;
};

/* As a command's data, or as one of its properties, wants it: a line end would begin another command. */
static void
escaped(FILE *out, struct acc_str s, bool property)
{
	while (s.n > 0) {
		int32_t code;
		const uint32_t len = acc_char(s, &code);
		if (code == '%' || code == '\n' || code == '\r' ||
			(property && (code == ':' || code == ',')))
			fprintf(out, "%%%02X", (unsigned)code);
		else if (acc_char_plain(code))
			fwrite(s.p, 1, len, out);
		else
			putc('?', out);
		s = (struct acc_str){s.p + len, s.n - len};
	}
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	const struct acc_str what = acc_get_text(r, "", "what"), name = acc_get_text(r, "", "name");
	struct acc_frame f;
	int64_t line;
	int rc = acc_stacks_see(&s->stacks, r, e);
	if (rc < 0 || !acc_rec_is(r, "finding"))
		return rc;
	const char *command = acc_accuses(what)                        ? "error"
			      : acc_word_in("warning unmatched", what) ? "warning"
								       : "notice";
	fprintf(s->out, "::%s ", command);
	if (acc_frame_own(&s->stacks, acc_get_text(r, "", "stack"), &f) &&
		acc_str_int(f.line, &line)) {
		fputs("file=", s->out);
		escaped(s->out, f.file, true);
		fprintf(s->out, ",line=%lld,", (long long)line);
	}
	fputs("title=acctools ", s->out);
	escaped(s->out, what, true);
	if (name.n > 0) {
		putc(' ', s->out);
		escaped(s->out, name, true);
	}
	fputs("::", s->out);
	escaped(s->out, acc_get_text(r, "", "text"), false);
	putc('\n', s->out);
	return 0;
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	(void)e;
	if (status > 1)
		fputs("::error title=acctools trouble::not all could be compared: see what was said on standard"
		      " error\n",
			s->out);
	return 0;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_stacks_release(&s->stacks);
}

const struct acc_format acc_format_github = {
	.name = "github",
	.help = "annotations for GitHub Actions, one a finding",
	.size = sizeof(struct state),
	.record = record,
	.end = end,
	.release = release,
};
