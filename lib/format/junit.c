/* JUnit XML, as CI servers read it: a suite for each step and rank, a case for each op call; findings that
 * accuse and name no op call are cases, too. */
#include "acc/format.h"
#include "format/aside.h"
#include "format/opcalls.h"
#include "format/xml.h"

#include <stdlib.h>

struct state {
	ACC_FORMAT_STATE;
	struct acc_opcalls ops;
	/* Findings about no op call, as XML. */
	FILE *others;
	uint32_t cases, failed;
};

static int
begin(void *state, struct acc_err *e)
{
	struct state *s = state;
	s->others = acc_aside_open(s->opt.tmpdir, e);
	return s->others == NULL ? ACC_EIO : 0;
}

static void
attribute(FILE *out, const char *name, struct acc_str value)
{
	fprintf(out, " %s=\"", name);
	acc_xml(out, value);
	putc('"', out);
}

static void
failure(FILE *out, struct acc_str type, struct acc_str text)
{
	fputs("<failure", out);
	attribute(out, "type", type);
	attribute(out, "message", text.n > 0 ? text : type);
	fputs("/>", out);
}

static void
other(struct state *s, const struct acc_rec *r)
{
	const struct acc_str what = acc_get_text(r, "", "what"), name = acc_get_text(r, "", "name");
	const bool bad = acc_accuses(what);
	if (!bad && !acc_str_is(what, "clean"))
		return;
	if (bad && acc_map_get(&s->ops.by_key, name) != NULL)
		return; /* its op call fails */
	fputs("    <testcase classname=\"finding\"", s->others);
	attribute(s->others, "name", name.n > 0 ? name : what);
	fputs(">", s->others);
	if (bad)
		failure(s->others, what, acc_get_text(r, "", "text"));
	else {
		fputs("<system-out>", s->others);
		acc_xml(s->others, acc_get_text(r, "", "text"));
		fputs("</system-out>", s->others);
	}
	fputs("</testcase>\n", s->others);
	s->cases++;
	s->failed += bad;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	int rc = acc_opcalls_add(&s->ops, r, e);
	if (rc == 0 && acc_rec_is(r, "finding"))
		other(s, r);
	return rc;
}

static void
test_case(const struct state *s, const struct acc_opcall *c)
{
	fputs("    <testcase", s->out);
	attribute(s->out, "classname", c->scope.n > 0 ? c->scope : c->pass);
	attribute(s->out, "name", c->key);
	if (c->grade <= ACC_FINE) {
		fputs(c->grade == ACC_UNJUDGED ? "><skipped/></testcase>\n" : "/>\n", s->out);
		return;
	}
	putc('>', s->out);
	/* What follows from the culprit fails nothing by itself. */
	if (c->grade == ACC_ERROR)
		failure(s->out, ACC_STR("error"), c->why);
	else {
		fputs("<system-out>warning: ", s->out);
		acc_xml(s->out, c->why);
		fputs("</system-out>", s->out);
	}
	struct acc_frame f;
	if (acc_frame_own(&s->ops.stacks, c->stack, &f)) {
		fputs("<system-err>", s->out);
		acc_xml(s->out, f.file);
		putc(':', s->out);
		acc_xml(s->out, f.line);
		fputs(": ", s->out);
		acc_xml(s->out, f.code);
		fputs("</system-err>", s->out);
	}
	fputs("</testcase>\n", s->out);
}

static void
suite(const struct state *s, uint32_t place)
{
	uint32_t n = 0, failed = 0, skipped = 0;
	for (size_t i = 0; i < s->ops.n; i++) {
		const struct acc_opcall *c = &s->ops.v[i];
		n += c->place == place;
		failed += c->place == place && c->grade == ACC_ERROR;
		skipped += c->place == place && c->grade == ACC_UNJUDGED;
	}
	const char *name = s->ops.place[place].name;
	fputs("  <testsuite", s->out);
	attribute(s->out, "name", name[0] != '\0' ? acc_str(name) : ACC_STR("op calls"));
	fprintf(s->out, " tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\">\n", (unsigned)n,
		(unsigned)failed, (unsigned)skipped);
	for (size_t i = 0; i < s->ops.n; i++)
		if (s->ops.v[i].place == place)
			test_case(s, &s->ops.v[i]);
	fputs("  </testsuite>\n", s->out);
}

static int
end(void *state, int status, struct acc_err *e)
{
	struct state *s = state;
	int rc = 0;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"acctools\">\n",
		s->out);
	for (uint32_t p = 0; p < s->ops.nplaces; p++)
		suite(s, p);
	/* Trouble is no success, whatever was found. */
	const bool trouble = status > 1;
	if (s->cases > 0 || trouble) {
		fprintf(s->out,
			"  <testsuite name=\"findings\" tests=\"%u\" failures=\"%u\" errors=\"%d\" skipped=\"0\">\n",
			(unsigned)s->cases + trouble, (unsigned)s->failed, trouble);
		rc = acc_aside_put(s->others, s->out, e);
		if (trouble)
			fputs("    <testcase classname=\"finding\" name=\"trouble\"><error message=\"not all could be"
			      " compared: see standard error\"/></testcase>\n",
				s->out);
		fputs("  </testsuite>\n", s->out);
	}
	fputs("</testsuites>\n", s->out);
	return rc;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_opcalls_release(&s->ops);
	if (s->others != NULL)
		fclose(s->others);
}

const struct acc_format acc_format_junit = {
	.name = "junit",
	.help = "JUnit XML, for CI servers",
	.all_keys = true,
	.size = sizeof(struct state),
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
