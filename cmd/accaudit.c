#include "cli.h"
#include "acc/payload.h"
#include "acc/ranks.h"
#include "acc/replay.h"

#include <getopt.h>
#include <stdlib.h>

enum { OPT_ROOT = 256, LIMITS, LIST_RULES, NO_RULE, DOUBT, PROFILE, NEW_PROFILE };

static const struct cli_opt options[] = {
	{'a', "all", NULL, "look at every part of large calls, which takes long"},
	{'l', "list", NULL, "list the operators that can be audited"},
	{LIMITS, "limits", NULL, "list the numbers that decide, with their sources"},
	{LIST_RULES, "list-rules", NULL, "list the rules over ranks"},
	{NO_RULE, "no-rule", "ID", "switch this rule over ranks off (repeatable)"},
	{DOUBT, "doubt", "ID", "doubt only what this rule accuses (repeatable)"},
	{PROFILE, "profile", "FILE", "limits by what a framework is off by"},
	{NEW_PROFILE, "write-profile", "FILE", "write that, of a run that is right"},
	{'j', "threads", "N", "threads (default: one per CPU)"},
	{OPT_ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW (repeatable)"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accaudit",
	.synopsis = "[FILE ...]",
	.summary = "Recompute each operator from its recorded inputs: add audit.* to its outputs.",
	.opt = options,
	.notes = "Example: accdump-read npu_dump | accaudit | accfirstbad\n",
};

static struct cli_out *out;
static struct acc_roots *roots; // reachable when an option ends the program

/* What came of it. */
static struct {
	uint64_t audited, skipped;
	char why[200]; /* of the first that was not audited */
} seen;

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	struct acc_str why = acc_get_text(r, "", "audit.skip");
	seen.audited += acc_get(r, "", "audit.ok") != NULL;
	if (why.n > 0 && seen.skipped++ == 0)
		snprintf(seen.why, sizeof seen.why, "%.*s", ACC_PRS(why));
	cli_put(out, r);
	return 0;
}

/* Of nothing that was recomputed nothing is right. */
static void
say_nothing(void)
{
	if (seen.audited > 0)
		return;
	if (seen.skipped == 0)
		cli_warn(
			"nothing was audited: no output of an op call with a pass and its arguments"
			" (pass, io: accstream(5)) is in the stream");
	else
		cli_warn("nothing was audited: of %llu outputs none could be, the first since: %s",
			(unsigned long long)seen.skipped, seen.why);
	cli_status(out, 2);
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	cli_warn_err(e);
	cli_status(out, 2);
}

/* What was noted, for --profile. */
static void
write_profile(const struct acc_profile *p, const char *path)
{
	struct acc_buf b = {0};
	FILE *f = fopen(path, "we");
	bool good = f != NULL &&
		    fputs("# operator, pass, dtype, largest error (rms, one element), outputs\n",
			    f) >= 0;
	if (acc_profile_text(p, &b) < 0)
		cli_nomem();
	good = good && fwrite(b.p, 1, b.n, f) == b.n;
	if (f == NULL || fclose(f) != 0 || !good)
		cli_die("%s: cannot write:", path);
	acc_buf_release(&b);
}

/* For all records, or, where they come as they are recorded, for those of a step. */
static struct acc_audit *
start(const struct acc_audit_opt *opt)
{
	struct acc_err e = {0};
	struct acc_audit *a = acc_audit_open(roots, opt, emit, trouble, NULL, &e);
	if (a == NULL)
		cli_die_err(&e);
	return a;
}

static void
list(void)
{
	const struct acc_op *op;
	struct acc_buf names = {0};
	for (size_t i = 0; (op = acc_op_row(i)) != NULL; i++, names.n = 0) {
		if (acc_op_all_names(op, &names) < 0 || acc_buf_add(&names, "", 1) < 0)
			cli_nomem();
		cli_item(op->cls, 12, (const char *)names.p);
	}
	acc_buf_release(&names);
	cli_printed();
}

static void
list_rules(void)
{
	cli_rules(acc_rank_rules, acc_nrank_rules);
	cli_printed();
}

static struct {
	uint8_t *use; /* of each rule over ranks */
	struct acc_profile *usual;
	const char *written; /* the profile, or NULL */
} asked;

static void
option(struct acc_audit_opt *opt, int key)
{
	struct acc_err e = {0};
	if (key == 'a')
		opt->all = true;
	else if (key == 'l')
		list();
	else if (key == LIMITS)
		cli_limits(acc_audit_limits, acc_naudit_limits);
	else if (key == LIST_RULES)
		list_rules();
	else if (key == NO_RULE || key == DOUBT)
		cli_rule_use(&asked.use, key == DOUBT, optarg, "accaudit");
	else if (key == PROFILE)
		cli_profile(&asked.usual, optarg);
	else if (key == NEW_PROFILE)
		asked.written = optarg;
	else if (key == 'j')
		opt->threads = (unsigned)cli_int("-j", optarg, 1, 1024);
	else if (key == OPT_ROOT && acc_roots_move(roots, optarg, &e) < 0)
		cli_usage("--root: %s", cli_err(&e));
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_audit_opt opt = {0};
	roots = acc_roots_open(&e);
	if (roots == NULL)
		cli_die_err(&e);
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		option(&opt, key);
	opt.tmpdir = cli_tmpdir();
	opt.rule_use = asked.use;
	opt.usual = asked.usual;
	opt.learn = asked.written == NULL ? NULL : acc_profile_new(&e);
	if (asked.written != NULL && opt.learn == NULL)
		cli_die_err(&e);
	struct acc_in *in = cli_in_open(argc, argv, &out);
	struct acc_audit *a = start(&opt);
	struct acc_rec *r;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		const bool step = acc_rec_is(r, "step");
		if ((step ? acc_audit_end(a, &e) : acc_audit_put(a, r, &e)) < 0)
			cli_die_err(&e);
		if (step) {
			cli_put_step(out, r);
			acc_audit_close(a);
			a = start(&opt);
		}
	}
	if (rc < 0 || acc_audit_end(a, &e) < 0)
		cli_die_err(&e);
	cli_status(out, acc_in_status(in));
	if (acc_in_status(in) != 2)
		say_nothing();
	if (asked.written != NULL)
		write_profile(opt.learn, asked.written);
	acc_profile_free(opt.learn);
	acc_profile_free(asked.usual);
	acc_audit_close(a);
	acc_roots_close(roots);
	acc_in_close(in);
	free(asked.use);
	return cli_finish(out);
}
