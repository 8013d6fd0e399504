/* One page for a browser, whole in itself: the frame and the style, then the records as blocks of
 * JSON (columns.h), then the script that shows them; all from share/report. Nothing is fetched, and
 * nothing of a record is ever read as HTML. Tokens of samples are text behind them, which needs no script. */
#include "acc/judge.h"
#include "format/columns.h"
#include "acc/format.h"
#include "acc/say.h"
#include "format/aside.h"
#include "format/jsontext.h"
#include "format/network.h"
#include "format/shown.h"

#include <stdlib.h>

/* share/report, as the Makefile has it in. */
extern const struct acc_preset acc_report[];
extern const size_t acc_nreport;

/* More would make a page that no browser opens: of what is not bad the first are in it. The network
 * tells of all. */
enum { MOST_ROWS = 300000, MOST_SAMPLES = 100 };

struct state {
	ACC_FORMAT_STATE;
	struct acc_json_blocks *blocks;
	struct acc_network net;
	uint64_t rows, left;
	FILE *shown; /* tokens of samples, as HTML; NULL: of none */
	unsigned nshown;
};

/* A file of share/report, by its name without what follows the dot. */
static void
part(FILE *out, const char *name)
{
	for (size_t i = 0; i < acc_nreport; i++)
		if (strcmp(acc_report[i].name, name) == 0)
			fwrite(acc_report[i].text, 1, acc_report[i].n, out);
}

/* What the page says, by what it would say in English. */
static void
page_words(FILE *out)
{
	const char *word, *translation;
	for (size_t i = 0; acc_page_word(i, &word, &translation); i++) {
		fputs(i == 0 ? ",\"words\":{" : ",", out);
		acc_json_string(out, acc_str(word), true);
		putc(':', out);
		acc_json_string(out, acc_str(translation), true);
	}
	if (acc_page_word(0, &word, &translation))
		putc('}', out);
}

static int
begin(void *state, struct acc_err *e)
{
	struct state *s = state;
	FILE *out = s->out;
	s->blocks = acc_blocks_open(out, s->opt.tmpdir, e);
	if (s->blocks == NULL)
		return ACC_EIO;
	part(out, "head");
	fputs("<style>\n", out);
	part(out, "style");
	fputs("</style>\n</head>\n", out);
	part(out, "body");
	fprintf(out,
		"<script type=\"application/json\" id=\"about\">{\"version\":\"%s\",\"columns\":[",
		ACC_VERSION);
	for (size_t i = 0; i < s->opt.ncolumns; i++) {
		if (i > 0)
			putc(',', out);
		acc_json_string(out, acc_str(s->opt.columns[i]), true);
	}
	putc(']', out);
	page_words(out);
	fputs("}</script>\n", out);
	return 0;
}

static int
show(struct state *s, const struct acc_rec *r, struct acc_err *e)
{
	if (!acc_has_shown(r) || s->nshown == MOST_SAMPLES)
		return 0;
	if (s->shown == NULL && (s->shown = acc_aside_open(s->opt.tmpdir, e)) == NULL)
		return ACC_EIO;
	s->nshown++;
	acc_shown_html(s->shown, r);
	return 0;
}

/* What was shown, as a part of the page. */
static int
put_shown(struct state *s, struct acc_err *e)
{
	if (s->shown == NULL)
		return 0;
	fprintf(s->out,
		"<section id=\"tokens-part\">\n<h2>%s</h2>\n<p class=\"tokens\"><span class=\"m4\">%s</span> "
		"<span class=\"p4\">%s</span></p>\n",
		acc_tr("Tokens of the worst samples"), acc_tr("the trainer is below the rollout"),
		acc_tr("the trainer is above the rollout"));
	const int rc = acc_aside_put(s->shown, s->out, e);
	fputs("</section>\n", s->out);
	return rc;
}

static int
record(void *state, const struct acc_rec *r, struct acc_err *e)
{
	struct state *s = state;
	int rc = acc_network_add(&s->net, r, e);
	rc = rc < 0 ? rc : show(s, r, e);
	if (rc < 0)
		return rc;
	if (acc_word_in("pair tensor arg call scalar", r->kind) && s->rows++ >= MOST_ROWS &&
		acc_opcall_grade(r) < ACC_WARNING) {
		s->left++;
		return 0;
	}
	return acc_blocks_put(s->blocks, r, e);
}

static int
end(void *state, int status, struct acc_err *e)
{
	static const char *const scripts[] = {"words", "data", "model", "network", "view", "strip",
		"tree", "map", "table", "detail", "curves", "page"};
	struct state *s = state;
	int rc = acc_blocks_flush(s->blocks, e);
	rc = rc < 0 ? rc : put_shown(s, e);
	rc = rc < 0 ? rc : acc_network_join(&s->net, e);
	fputs("<script type=\"application/json\" id=\"network\">", s->out);
	rc = rc < 0 ? rc : acc_network_json(&s->net, s->out, e);
	fprintf(s->out,
		"</script>\n<script type=\"application/json\" id=\"end\">{\"status\":%d,\"left\":%llu}"
		"</script>\n<script>\n",
		status, (unsigned long long)s->left);
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		part(s->out, scripts[i]);
	fputs("</script>\n</body>\n</html>\n", s->out);
	return rc;
}

static void
release(void *state)
{
	struct state *s = state;
	acc_blocks_close(s->blocks);
	acc_network_release(&s->net);
	if (s->shown != NULL)
		fclose(s->shown);
}

const struct acc_format acc_format_html = {
	.name = "html",
	.for_people = true,
	.help = "a page for a browser, whole in itself",
	.all_keys = true,
	.file = true,
	.size = sizeof(struct state),
	.begin = begin,
	.record = record,
	.end = end,
	.release = release,
};
