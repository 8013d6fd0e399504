#include "beside.h"
#include "cli.h"
#include "expect.h"
#include "acc/say.h"
#include "acc/judge.h"
#include "acc/ranks.h"

#include <getopt.h>
#include <stdlib.h>

enum {
	ALL = 256,
	ALLOW,
	IGNORE,
	BASELINE,
	WRITE_BASELINE,
	BEFORE,
	NEXT,
	SCALE,
	PROFILE,
	EXPECT_RANKS,
	STRICT,
	NOISE,
	NO_AUDIT,
	WHERE,
	ROOT,
	OVERFLOWS,
	PRESET,
	RULES,
	PRINT_RULES,
	LIMITS,
	LIST_RULES,
	NO_RULE,
	DOUBT
};

static const struct cli_opt options[] = {
	{'l', "list", NULL, "list the presets"},
	{LIMITS, "limits", NULL, "list the numbers that decide, with their sources"},
	{LIST_RULES, "list-rules", NULL, "list what it, and accaudit over ranks, accuses by"},
	{PRESET, "preset", "NAME", "judge by the rules of this preset"},
	{RULES, "rules", "FILE", "judge by the rules of this file"},
	{PRINT_RULES, "print-rules", "NAME", "print a preset's rules, to be edited"},
	{NOISE, "noise", "FILE", "measured pairs of a second bench run: noise"},
	{NO_AUDIT, "no-audit", NULL, "judge without recomputing what is suspected"},
	{WHERE, "where", NULL, "say where in the culprit's tensor the error sits"},
	{'j', "threads", "N", "threads that recompute (default: one per CPU)"},
	{ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW (repeatable)"},
	{OVERFLOWS, "overflows", "N", "of one dump: the first N overflows; 0: all"},
	{ALLOW, "allow-missing", "GLOB", "one side may lack these (repeatable)"},
	{EXPECT_RANKS, "expect-ranks", "N", "trouble if the device lacks one of ranks 0 to N-1"},
	{IGNORE, "ignore", "GLOB[=REASON]", "accuse no op call or weight of this name"},
	{BASELINE, "baseline", "FILE", "accept what is in FILE and not worse by now"},
	{WRITE_BASELINE, "write-baseline", "FILE", "write what was found, for --baseline"},
	{NEXT, "next", "FILE", "write the recorder's settings for what to record next"},
	{BEFORE, "before", "FILE", "the judged dump before a change: what it mended"},
	{SCALE, "scale", "X", "multiply the limits by X, 1 or more"},
	{PROFILE, "profile", "FILE", "limits of what is recomputed: see accaudit(1)"},
	{NO_RULE, "no-rule", "ID", "switch this rule off, see --list-rules (repeatable)"},
	{DOUBT, "doubt", "ID", "doubt only what this rule accuses (repeatable)"},
	{ALL, "all", NULL, "pass on good records, too"},
	{STRICT, "strict", NULL, "exit 1 also for what is unmatched or a warning"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accfirstbad",
	.synopsis = "[FILE ...]",
	.summary = "Name the first operator call that went wrong.",
	.opt = options,
	.notes = "Reads measured pairs, or tensors of one dump; writes bad ones and findings.\n"
		 "Exit status: 0 clean, 1 something is bad, 2 trouble.\n"
		 "  accdump-read NPU | accalign - GPU | accmetric | accfirstbad\n",
};

static const struct acc_preset *
preset(const char *name)
{
	const struct acc_preset *p = acc_preset_find(name);
	if (p == NULL)
		cli_usage("no preset '%s'; --list shows them", name);
	return p;
}

static void
list(void)
{
	for (size_t i = 0; i < acc_npresets; i++)
		cli_item(acc_presets[i].name, 12, acc_presets[i].help);
	cli_printed();
}

static struct acc_roots *roots; // reachable when an option ends the program
static const char *baseline;    // the file to write, or NULL
static struct acc_profile *usual;
static const char *settings; // the same, of what to record next

/* What the input is like, for what is to be said of the whole. */
struct seen {
	bool side[2], both; /* sides that any pair has; a pair with both */
	bool tensors;
	const char *other_judge; /* who judges such records, if not this program */
	const char *level;       /* "step" or "rank": a pair has another on the two sides */
	long long of[2];         /* which these are, of the first such pair */
};

static void
compare_level(struct seen *n, const struct acc_rec *r, const char *level)
{
	int64_t a = acc_get_int(r, "a.", level, INT64_MIN),
		b = acc_get_int(r, "b.", level, INT64_MIN);
	if (n->level != NULL || a == b || a == INT64_MIN || b == INT64_MIN)
		return;
	n->level = level;
	n->of[0] = a;
	n->of[1] = b;
}

static void
look(struct seen *n, const struct acc_rec *r)
{
	bool pair = acc_rec_is(r, "pair");
	/* The first ones tell; there may be millions. */
	if (n->tensors && (n->both || !pair))
		return;
	struct acc_str kind[2] = {acc_get_text(r, "a.", "kind"), acc_get_text(r, "b.", "kind")};
	for (int s = 0; s < (pair ? 2 : 1); s++) {
		struct acc_str k = pair ? kind[s] : r->kind;
		n->side[s] |= pair && k.n > 0;
		n->tensors |= acc_str_is(k, "tensor") || acc_str_is(k, "arg");
		if (acc_str_is(k, "scalar"))
			n->other_judge = "these are curves of logs: acccurve judges them"
					 " (accalign ... | acccurve)";
		else if (acc_str_is(k, "param") && n->other_judge == NULL)
			n->other_judge = "these are configurations: acccheck judges them"
					 " (accalign ... | acccheck)";
	}
	if (kind[0].n == 0 || kind[1].n == 0)
		return;
	n->both = true;
	if (acc_str_is(kind[0], "scalar") || acc_str_is(kind[0], "param"))
		return;
	compare_level(n, r, "step");
	compare_level(n, r, "rank");
}

/* Where each side has one step, these are compared whatever they are: that may be a mistake. */
static void
say_level(const struct seen *n, struct cli_out *out)
{
	struct acc_rec r = {0};
	struct acc_arena mem = {0};
	if (n->level == NULL)
		return;
	const char *text = acc_say(&mem,
		"%s %lld of the device was compared with %s %lld of the bench", n->level, n->of[0],
		n->level, n->of[1]);
	if (acc_rec_start(&r, ACC_STR("finding")) < 0 ||
		acc_add(&r, "", "what", acc_ctext("other")) < 0 ||
		acc_add(&r, "", "rule", acc_ctext(n->level)) < 0 ||
		acc_put_said(&r, "", "text", &mem, text) < 0)
		cli_nomem();
	cli_put(out, &r);
	acc_rec_release(&r);
	acc_arena_release(&mem);
}

struct hurt { /* suspects that could not be recomputed */
	struct cli_out *out;
	const struct acc_in *in;
	bool said;
};

/* One is enough; where an earlier command had trouble, it said so itself. */
static void
trouble(void *arg, const struct acc_err *e)
{
	struct hurt *h = arg;
	if (!h->said && acc_in_status(h->in) < 2)
		cli_warn_err(e);
	h->said = true;
	cli_status(h->out, 2);
}

/* What is known and accepted; made when it is first asked for. */
static struct acc_accept *
accept_by(struct acc_accept *a, int key)
{
	struct acc_err e = {0};
	struct acc_buf b = {0};
	char *end;
	if (a == NULL && (a = acc_accept_new(&e)) == NULL)
		cli_die_err(&e);
	int rc = key == IGNORE ? acc_accept_ignore(a, optarg, &e) : 0;
	if (key == SCALE) {
		double scale = strtod(optarg, &end);
		if (end == optarg || *end != '\0' || !(scale >= 1 && scale <= 1e9))
			cli_usage("--scale: '%s' is not a number from 1 on", optarg);
		acc_accept_scale(a, scale);
	}
	if (key == BASELINE) {
		cli_text_file(optarg, &b);
		rc = acc_accept_baseline(a, (char *)b.p, b.n, optarg, &e);
		acc_buf_release(&b);
	}
	if (rc == ACC_EUSAGE)
		cli_usage("--ignore: %s", cli_err(&e));
	if (rc < 0)
		cli_die_err(&e);
	return a;
}

/* What was found, for --baseline; judged at the end, so this can fail only then. */
static void
write_baseline(struct acc_case *c, const char *path)
{
	struct acc_buf line = {0};
	struct acc_err e = {0};
	FILE *f = fopen(path, "we");
	bool good = f != NULL && fputs("# name, step, rank, how far off (rms, relative); "
				       "the rest is for people\n",
					 f) >= 0;
	for (uint32_t i = 0; i < c->nitem && good; i++) {
		int rc = c->item[i].mark == 0 || c->item[i].call == ACC_NOCALL
				 ? 0
				 : acc_accept_line(c, &c->item[i], &line, &e);
		if (rc < 0)
			cli_die_err(&e);
		good = rc == 0 || fwrite(line.p, 1, line.n, f) == line.n;
	}
	if (f == NULL || fclose(f) != 0 || !good)
		cli_die("%s: cannot write:", path);
	acc_buf_release(&line);
}

/* The first of what is to be recorded again: the recorder's own file for it. */
static void
write_settings(const struct acc_case *c, const char *path)
{
	const char *text = NULL;
	for (uint32_t i = 0; i < c->nfinding && text == NULL; i++)
		text = c->finding[i].settings;
	if (text == NULL) {
		cli_warn("--next: nothing is to be recorded again: %s is not written", path);
		return;
	}
	FILE *f = fopen(path, "we");
	bool good = f != NULL && fputs(text, f) >= 0;
	if (f == NULL || fclose(f) != 0 || !good)
		cli_die("%s: cannot write:", path);
}

static void
note_rank(struct expected *x, const struct acc_rec *r)
{
	const bool pair = acc_rec_is(r, "pair");
	/* A judge of one rank says "clean" of it, or how far it is. */
	const bool judged = acc_rec_is(r, "finding") &&
			    acc_str_is(acc_get_text(r, "", "what"), "clean");
	if (x->n == 0 || !(pair || judged || acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")))
		return;
	expect_came(x, acc_get_int(r, pair ? "a." : "", "rank", -1));
}

/* Rules over ranks, and of the judge, that the user switched off, or has doubt only. */
static struct {
	uint8_t *use;
	uint64_t silent[256], demoted[256];
	struct acc_witness_use witness;
	struct acc_arena mem;
} left;

static void
say_left(struct cli_out *out)
{
	struct acc_rec r = {0};
	const struct acc_witness_use *w = &left.witness;
	const char *text[2] = {acc_rules_said(&left.mem, acc_rank_rules, acc_nrank_rules, left.use,
				       left.silent, left.demoted),
		acc_rules_said(&left.mem, acc_witnesses, acc_nwitnesses, w->use, w->silent,
			w->demoted)};
	for (int i = 0; i < 2; i++) {
		if (text[i] != NULL && text[i][0] == '\0')
			continue;
		const char *said = text[i] == NULL ? NULL
				   : i == 0 ? acc_say(&left.mem, "rules over ranks: %s", text[i])
					    : acc_say(&left.mem, "rules of the judge: %s", text[i]);
		if (said == NULL || acc_rec_start(&r, ACC_STR("finding")) < 0 ||
			acc_add(&r, "", "what", acc_ctext("audit")) < 0 ||
			acc_add(&r, "", "rule", acc_ctext("rules")) < 0 ||
			acc_put_said(&r, "", "text", &left.mem, said) < 0)
			cli_nomem();
		cli_put(out, &r);
	}
	acc_rec_release(&r);
	acc_arena_release(&left.mem);
	free(left.use);
}

static void
list_rules(void)
{
	cli_rules(acc_witnesses, acc_nwitnesses);
	cli_rules(acc_rank_rules, acc_nrank_rules);
	cli_printed();
}

static struct acc_case *
open_case(const struct acc_judge_opt *opt)
{
	struct acc_err e = {0};
	struct acc_case *c = acc_case_open(opt, &e);
	if (c == NULL)
		cli_die_err(&e);
	return c;
}

static void
judge(struct acc_case *c, struct acc_in *in, struct cli_out *out, struct seen *n)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = acc_case_judge(c, &e);
	/* Of a side that could not be read, everything is missing: that says nothing. Nor does what
	 * this program thinks of others' records. */
	bool unread = n->side[0] != n->side[1] && acc_in_status(in) == 2;
	bool foreign = n->other_judge != NULL && !n->tensors;
	while (rc == 0 && (rc = acc_case_next(c, &r, &e)) > 0) {
		bool finding = acc_rec_is(r, "finding");
		bool unmatched = acc_str_is(acc_get_text(r, "", "what"), "unmatched");
		if (!finding || !(foreign || (unread && unmatched)))
			cli_put(out, r);
		rc = 0;
	}
	if (rc < 0)
		cli_die_err(&e);
	if (c->judged_before == 0)
		say_level(n, out);
	cli_status(out, acc_case_status(c));
}

/* All records, or, where they come as they are recorded, those of a step: what is behind the last step
 * record, and judged, is left. */
static struct acc_case *
run(const struct acc_judge_opt *opt, struct acc_in *in, struct cli_out *out, struct seen *n,
	struct expected *ranks)
{
	struct acc_case *c = open_case(opt);
	struct acc_err e = {0};
	struct acc_rec *r;
	bool steps = false, empty = true;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		if (acc_rec_is(r, "step")) {
			if (baseline != NULL)
				cli_die("--write-baseline: not of a recording that is followed");
			c->opt.one_step = steps = true;
			if (!empty)
				judge(c, in, out, n);
			cli_put_step(out, r);
			acc_case_close(c);
			c = open_case(opt);
			empty = true;
			continue;
		}
		empty = false;
		look(n, r);
		note_rank(ranks, r);
		if (left.use != NULL &&
			acc_rank_rules_use(r, left.use, &left.mem, left.silent, left.demoted) < 0)
			cli_nomem();
		if (acc_case_add(c, r, &e) < 0)
			cli_die_err(&e);
	}
	if (rc < 0)
		cli_die_err(&e);
	c->opt.one_step = steps;
	if (!steps || !empty)
		judge(c, in, out, n);
	return c;
}

/* A rule of one's own that can never have held is no proof that all is well. */
static void
say_blind(const struct acc_case *c, const struct acc_in *in, struct cli_out *out)
{
	struct acc_str field;
	const char *rule = acc_rules_blind(c->opt.rules, &field);
	if (rule == NULL || acc_in_status(in) == 2)
		return;
	cli_warn("rule %s: no record has a field '%.*s': nothing was judged by it", rule,
		ACC_PRS(field));
	cli_status(out, 2);
}

/* Why nothing could be judged; NULL: something was, or it was said before. */
static const char *
why_nothing(const struct acc_case *c, const struct acc_in *in, const struct seen *n)
{
	if (c->judged_before == 0 && c->measured > 0 && c->opt.rules != NULL &&
		acc_rules_tried(c->opt.rules) == 0)
		return "no rule applies to any record: these rules are for dumps of another kind"
		       " (their mode), such as tensor";
	if (c->nothing != NULL)
		return c->nothing;
	if (c->measured > 0 || c->judged_before > 0 || acc_in_status(in) == 2)
		return NULL;
	if (!n->tensors && n->other_judge != NULL)
		return n->other_judge;
	if (c->pairs == 0)
		return NULL;
	return n->both ? "no pair was measured: is accmetric missing from the pipe?"
		       : "no record could be paired: are these dumps of the same program, and of the"
			 " same step? (accalign --steps, --rename, --map)";
}

static void
switch_rule(struct acc_judge_opt *opt, bool doubt)
{
	if (cli_witness_use(&left.witness, doubt, optarg))
		opt->witness = &left.witness;
	else
		cli_rule_use(&left.use, doubt, optarg, "accfirstbad");
}

/* What the options ask for. */
static struct {
	struct acc_judge_opt opt;
	struct expected ranks;
	const char **allow;
	size_t allow_cap;
	bool no_audit, own; /* own: rules of the user */
} asked = {.opt = {.overflows = ACC_OVERFLOWS}};

static void
rules_of(int key)
{
	if (asked.opt.rules != NULL)
		cli_usage("only one of --preset and --rules");
	if (key == RULES) {
		asked.opt.rules = cli_rules_file(optarg);
		asked.own = true;
		return;
	}
	const struct acc_preset *p = preset(optarg);
	asked.opt.rules = cli_rules_text(p->text, p->n, p->name);
}

static void
print_rules(void)
{
	const struct acc_preset *p = preset(optarg);
	fwrite(p->text, 1, p->n, stdout);
	cli_printed();
}

static void
option(int key)
{
	struct acc_err e = {0};
	struct acc_judge_opt *opt = &asked.opt;
	if (key == 'l')
		list();
	if (key == LIMITS)
		cli_limits(acc_judge_limits, acc_njudge_limits);
	if (key == LIST_RULES)
		list_rules();
	if (key == NO_RULE || key == DOUBT)
		switch_rule(opt, key == DOUBT);
	if (key == PRESET || key == RULES)
		rules_of(key);
	if (key == PRINT_RULES)
		print_rules();
	if (key == NOISE) {
		acc_noise_free(opt->noise);
		opt->noise = beside_noise(optarg);
	}
	if (key == OVERFLOWS)
		opt->overflows = (uint32_t)cli_int("--overflows", optarg, 0, ACC_OVERFLOWS - 1);
	if (key == 'j')
		opt->threads = (unsigned)cli_int("-j", optarg, 1, 1024);
	if (key == ROOT && acc_roots_move(roots, optarg, &e) < 0)
		cli_usage("--root: %s", cli_err(&e));
	if (key == ALLOW) {
		if (!ACC_ROOM(asked.allow, asked.allow_cap, opt->nallow + 1, &e))
			cli_nomem();
		asked.allow[opt->nallow++] = optarg;
	}
	if (key == IGNORE || key == BASELINE || key == SCALE)
		opt->accept = accept_by(opt->accept, key);
	if (key == PROFILE)
		cli_profile(&usual, optarg);
	if (key == EXPECT_RANKS)
		expect_open(&asked.ranks, optarg);
	if (key == WRITE_BASELINE)
		baseline = optarg;
	if (key == NEXT)
		settings = optarg;
	if (key == WHERE)
		opt->where = roots;
	if (key == BEFORE) {
		acc_before_free(opt->before);
		opt->before = beside_before(optarg);
	}
	asked.no_audit |= key == NO_AUDIT;
	opt->all |= key == ALL;
	opt->strict |= key == STRICT;
}

/* What rules and presets exclude. */
static void
refuse(const struct acc_judge_opt *opt)
{
	if (opt->noise != NULL && opt->rules != NULL)
		cli_usage("--noise cannot be combined with --preset or --rules");
	if (opt->before != NULL && opt->rules != NULL)
		cli_usage("--before cannot be combined with --preset or --rules");
	if ((opt->accept != NULL || baseline != NULL) && opt->rules != NULL)
		cli_usage(
			"--ignore, --baseline and --scale cannot be combined with --preset or --rules");
	if (opt->where != NULL && opt->rules != NULL)
		cli_usage("--where cannot be combined with --preset or --rules");
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_judge_opt *opt = &asked.opt;
	opt->tmpdir = cli_tmpdir();
	roots = acc_roots_open(&e);
	if (roots == NULL)
		cli_die_err(&e);
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		option(key);
	refuse(opt);
	opt->roots = asked.no_audit ? NULL : roots;
	opt->usual = usual;
	opt->allow = asked.allow;
	struct cli_out *out;
	struct acc_in *in = cli_in_open(argc, argv, &out);
	struct hurt hurt = {out, in, false};
	opt->trouble = trouble;
	opt->arg = &hurt;
	struct seen seen = {.level = NULL};
	struct acc_case *c = run(opt, in, out, &seen, &asked.ranks);
	expect_say(&asked.ranks, out);
	say_left(out);
	if (baseline != NULL)
		write_baseline(c, baseline);
	if (settings != NULL)
		write_settings(c, settings);
	const char *why = why_nothing(c, in, &seen);
	if (why != NULL) {
		cli_warn("%s", why);
		cli_status(out, 2);
	}
	if (asked.own)
		say_blind(c, in, out);
	/* Of findings that are judged again here, the status is that of the last judge. */
	cli_status(out, acc_in_status(in) == 1 && c->relieved ? 0 : acc_in_status(in));
	acc_case_close(c);
	acc_in_close(in);
	acc_rules_free(opt->rules);
	acc_noise_free(opt->noise);
	acc_accept_free(opt->accept);
	acc_before_free(opt->before);
	acc_roots_close(roots);
	free(asked.allow);
	expect_close(&asked.ranks);
	return cli_finish(out);
}
