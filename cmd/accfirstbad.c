#include "acc/cli.h"
#include "acc/judge.h"

#include <getopt.h>
#include <stdlib.h>

enum { ALL = 256, STRICT, NOISE, OVERFLOWS, PRESET, RULES, PRINT_RULES };

static const struct cli_opt options[] = {
	{'l', "list", NULL, "list the presets"},
	{PRESET, "preset", "NAME", "judge by the rules of this preset"},
	{RULES, "rules", "FILE", "judge by the rules of this file"},
	{PRINT_RULES, "print-rules", "NAME", "print a preset's rules, to be edited"},
	{NOISE, "noise", "FILE", "measured pairs of a second bench run: noise"},
	{OVERFLOWS, "overflows", "N", "of one dump: the first N overflows (1; 0: all)"},
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

static struct acc_rules *
parse(const char *text, size_t n, const char *where)
{
	struct acc_err e = {0};
	struct acc_rules *rs = acc_rules_parse(text, n, where, &e);
	if (rs == NULL)
		cli_die_err(&e);
	return rs;
}

static struct acc_rules *
parse_file(const char *path)
{
	struct acc_buf b = {0};
	cli_text_file(path, &b);
	struct acc_rules *rs = parse((char *)b.p, b.n, path);
	acc_buf_release(&b);
	return rs;
}

static struct acc_noise *
noise(char *path)
{
	struct acc_err e = {0};
	struct acc_noise *n = acc_noise_new(&e);
	struct acc_in *in = n == NULL ? NULL : acc_in_open(&path, 1, &e);
	struct acc_rec *r;
	int rc = in == NULL ? -1 : 1;
	while (rc > 0 && (rc = acc_in_next(in, &r, &e)) > 0)
		if (acc_noise_add(n, r, &e) < 0)
			rc = -1;
	if (rc < 0)
		cli_die_err(&e);
	if (acc_in_status(in) == 2)
		cli_die("%s: an earlier command failed", path);
	if (acc_noise_count(n) == 0)
		cli_die("%s: no pair was measured: is accmetric missing from its pipe?", path);
	acc_in_close(in);
	return n;
}

/* Who judges such pairs, if not this program; NULL: it does. */
static const char *
other_judge(const struct acc_rec *r)
{
	struct acc_str a = acc_get_text(r, "", "a.kind"), b = acc_get_text(r, "", "b.kind");
	if (acc_str_is(a, "scalar") || acc_str_is(b, "scalar"))
		return "these are curves of logs: acccurve judges them (accalign ... | acccurve)";
	if (acc_str_is(a, "param") || acc_str_is(b, "param"))
		return "these are configurations: acccheck judges them (accalign ... | acccheck)";
	return NULL;
}

/* What to say where nothing was measured. */
static const char *
run(struct acc_case *c, struct acc_in *in, struct cli_out *out)
{
	const char *hint = NULL, *other;
	bool side[2] = {false, false}, both = false;
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		bool a = acc_get(r, "a.", "kind") != NULL, b = acc_get(r, "b.", "kind") != NULL;
		side[0] |= a;
		side[1] |= b;
		both |= a && b;
		if ((other = other_judge(r)) != NULL)
			hint = other;
		if (acc_case_add(c, r, &e) < 0)
			cli_die_err(&e);
	}
	if (rc == 0)
		rc = acc_case_judge(c, &e);
	/* Of a side that could not be read, everything is missing: that says nothing. Nor does what
	 * this program thinks of others' records. */
	bool unread = side[0] != side[1] && acc_in_status(in) == 2;
	bool foreign = hint != NULL && c->measured == 0;
	while (rc == 0 && (rc = acc_case_next(c, &r, &e)) > 0) {
		bool finding = acc_rec_is(r, "finding");
		bool lonely = acc_str_is(acc_get_text(r, "", "what"), "unmatched");
		if (!finding || !(foreign || (unread && lonely)))
			cli_put(out, r);
		rc = 0;
	}
	if (rc < 0)
		cli_die_err(&e);
	return hint != NULL ? hint
	       : both	    ? "no pair was measured: is accmetric missing from the pipe?"
			    : "no record has a partner: are these dumps of the same program, and of the"
			      " same step? (accalign --steps, --rename, --map)";
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_judge_opt opt = {.tmpdir = cli_tmpdir(), .overflows = 1};
	const struct acc_preset *p;
	int key;
	while ((key = cli_getopt(argc, argv, &cli)) != -1) {
		if (key == 'l')
			list();
		if ((key == PRESET || key == RULES) && opt.rules != NULL)
			cli_usage("only one of --preset and --rules");
		if (key == PRESET || key == PRINT_RULES) {
			p = preset(optarg);
			if (key == PRINT_RULES) {
				fwrite(p->text, 1, p->n, stdout);
				cli_printed();
			}
			opt.rules = parse(p->text, p->n, p->name);
		}
		if (key == RULES)
			opt.rules = parse_file(optarg);
		if (key == NOISE) {
			acc_noise_free(opt.noise);
			opt.noise = noise(optarg);
		}
		if (key == OVERFLOWS)
			opt.overflows = (uint32_t)cli_int("--overflows", optarg, 0, UINT32_MAX);
		opt.all |= key == ALL;
		opt.strict |= key == STRICT;
	}
	if (opt.noise != NULL && opt.rules != NULL)
		cli_usage("--noise is of no use to rules");
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	size_t nlog;
	const struct acc_str *log = acc_in_log(in, &nlog);
	struct cli_out *out = cli_out_open(log, nlog, argc, argv);
	struct acc_case *c = acc_case_open(&opt, &e);
	if (c == NULL)
		cli_die_err(&e);
	const char *hint = run(c, in, out);
	/* What failed earlier has said why. */
	if (c->pairs > 0 && c->measured == 0 && c->judged_before == 0 && acc_in_status(in) < 2) {
		cli_warn("%s", hint);
		cli_status(out, 2);
	}
	cli_status(out, acc_case_status(c));
	cli_status(out, acc_in_status(in));
	acc_case_close(c);
	acc_in_close(in);
	acc_rules_free(opt.rules);
	acc_noise_free(opt.noise);
	return cli_finish(out);
}
