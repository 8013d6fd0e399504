#include "fmt_rows.h"
#include "acc/say.h"
#include "cli.h"
#include "fmt_ranks.h"

static struct rows_wanted want = {.behind = UINT64_MAX};

static struct {
	uint64_t rows, left;
	bool said;
} top;

static struct {
	uint64_t rows, records; /* rows: of several ranks one may stand for their records */
	bool said;
	char culprit[100];
} behind;

void
rows_want(const struct rows_wanted *w)
{
	want = *w;
}

void
rows_begin(void)
{
	top.rows = top.left = behind.rows = behind.records = 0;
	top.said = behind.said = false;
	behind.culprit[0] = '\0';
}

/* Is this a row behind the first one of the op call that accfirstbad names? */
static bool
is_behind(const struct acc_rec *r)
{
	static const char *const rules[] = {"output", "input", "argument", "audit"};
	struct acc_str bad = acc_get_text(r, "", "bad"), rule = acc_get_text(r, "", "rule");
	bool judged = false;
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		judged |= acc_str_is(rule, rules[i]);
	if (!judged)
		return false;
	if (behind.culprit[0] == '\0' && acc_str_is(bad, "error")) {
		struct acc_str key = acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "key");
		if (key.n == 0)
			key = ACC_STR("the culprit");
		snprintf(behind.culprit, sizeof behind.culprit, "%.*s", ACC_PRS(key));
	}
	return behind.culprit[0] != '\0' && acc_str_is(bad, "warning");
}

static int
say(const struct acc_format *f, void *state, const struct acc_arena *m, const char *text,
	struct acc_err *e)
{
	static struct acc_rec r;
	if (acc_rec_start(&r, ACC_STR("finding")) < 0 ||
		acc_add(&r, "", "what", acc_ctext("other")) < 0 ||
		acc_put_said(&r, "", "text", m, text) < 0)
		cli_nomem();
	return cli_show(f, state, &r, e);
}

/* A row, which stands for n records. */
static int
put_one(const struct acc_format *f, void *state, const struct acc_rec *r, uint64_t n,
	struct acc_err *e)
{
	bool pair = acc_rec_is(r, "pair") || acc_rec_is(r, "tensor");
	if (pair && want.counted && is_behind(r)) {
		behind.records += n;
		if (++behind.rows > want.behind)
			return 0;
	}
	if (pair && want.top > 0 && top.rows++ >= want.top) {
		top.left++;
		return 0;
	}
	return cli_show(f, state, r, e);
}

struct table {
	const struct acc_format *f;
	void *state;
};

static int
put_joined(void *arg, const struct acc_rec *r, uint64_t n, struct acc_err *e)
{
	const struct table *t = arg;
	return put_one(t->f, t->state, r, n, e);
}

static int
put_ranks(const struct acc_format *f, void *state, struct acc_err *e)
{
	struct table t = {f, state};
	return ranks_put(put_joined, &t, e);
}

int
rows_left(const struct acc_format *f, void *state, struct acc_err *e)
{
	struct acc_arena mem = {0};
	int rc = put_ranks(f, state, e);
	if (rc >= 0 && want.counted && behind.rows > 0 && !behind.said) {
		behind.said = true;
		const char *text = acc_say(&mem,
			"%llu record%s behind %s add%s error, too, as consequences do",
			(unsigned long long)behind.records, behind.records == 1 ? "" : "s",
			behind.culprit, behind.records == 1 ? "s" : "");
		if (text != NULL && behind.rows > want.behind)
			text = acc_say(&mem,
				"%s; the first %llu are shown (--consequences=all, and other"
				" formats, show the rest)",
				text, (unsigned long long)want.behind);
		rc = say(f, state, &mem, text, e);
	}
	if (rc >= 0 && top.left > 0 && !top.said) {
		top.said = true;
		rc = say(f, state, &mem,
			acc_say(&mem,
				"%llu more row%s not shown (--top, and other formats, show them)",
				(unsigned long long)top.left, top.left == 1 ? " is" : "s are"),
			e);
	}
	acc_arena_release(&mem);
	return rc;
}

int
rows_put(const struct acc_format *f, void *state, const struct acc_rec *r, struct acc_err *e)
{
	static const char kinds[] = "pair tensor arg call";
	if (want.bad && acc_word_in(kinds, r->kind) && acc_get(r, "", "bad") == NULL)
		return 0;
	if (want.joins && ranks_take(r))
		return 0;
	int rc = 0;
	if (acc_rec_is(r, "finding"))
		rc = rows_left(f, state, e);
	else if (want.joins && acc_word_in(kinds, r->kind)) {
		want.joins = false;
		rc = put_ranks(f, state, e);
	}
	return rc < 0 ? rc : put_one(f, state, r, 1, e);
}
