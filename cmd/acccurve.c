#include "cli.h"
#include "acc/align.h"
#include "acc/curve.h"
#include "acc/dump.h"

#include <getopt.h>
#include <stdlib.h>

enum { ALL = 256, NOISE, PRESET, RULES, PRINT_RULES, REGEX };

static const struct cli_opt options[] = {
	{'l', "list", NULL, "list the presets"},
	{PRESET, "preset", "NAME", "judge by the rules of this preset (guide)"},
	{RULES, "rules", "FILE", "judge by the rules of this file"},
	{PRINT_RULES, "print-rules", "NAME", "print a preset's rules, to be edited"},
	{NOISE, "noise", "FILE", "pairs of two runs of the bench: their spread is fine"},
	{REGEX, "regex", "PATTERN", "read two logs by a pattern with named groups"},
	{ALL, "all", NULL, "pass on the points, too"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "acccurve",
	.synopsis = "[FILE ...] | --regex=PATTERN DEVICE BENCH",
	.summary = "Say whether curves of two runs differ, since when, and whether it is noise.",
	.opt = options,
	.notes = "Reads pairs of points; writes a record for each curve and findings.\n"
		 "Exit status: 0 inside the limits, 1 outside, 2 trouble.\n"
		 "  accdump-read npu.log | accalign - gpu.log | acccurve\n",
};

static const struct acc_preset *
preset(const char *name)
{
	for (size_t i = 0; i < acc_ncurve_presets; i++)
		if (strcmp(acc_curve_presets[i].name, name) == 0)
			return &acc_curve_presets[i];
	cli_usage("no preset '%s'; --list shows them", name);
}

static void
list(void)
{
	for (size_t i = 0; i < acc_ncurve_presets; i++)
		cli_item(acc_curve_presets[i].name, 12, acc_curve_presets[i].help);
	cli_printed();
}

/* Of a pair, or of a record that belongs to none. How many points it was. */
static uint64_t
take(struct acc_curves *cs, struct acc_rec *r, struct cli_out *out, bool all)
{
	struct acc_err e = {0};
	int taken = acc_curves_add(cs, r, 0, &e);
	if (taken < 0)
		cli_die_err(&e);
	if (all || (!acc_rec_is(r, "pair") && !acc_rec_is(r, "data")))
		cli_put(out, r);
	return (uint64_t)taken;
}

/* Two logs that are read here, by a pattern. */
struct logs {
	struct acc_curves *cs;
	struct cli_out *out;
	struct acc_align *al;
	enum acc_side side;
	bool all;
	uint64_t points;
};

static int
take_point(void *arg, struct acc_rec *r)
{
	struct logs *l = arg;
	struct acc_err e = {0};
	int rc = acc_align_add(l->al, l->side, r, &e);
	if (rc < 0)
		cli_die_err(&e);
	if (rc == 0)
		cli_put(l->out, r);
	return 0;
}

static int
take_pair(void *arg, const struct acc_rec *r)
{
	struct logs *l = arg;
	struct acc_rec copy = *r;
	l->points += take(l->cs, &copy, l->out, l->all);
	return 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	struct logs *l = arg;
	cli_warn_err(e);
	cli_status(l->out, e->code == ACC_ENOTE ? 0 : 2);
}

static uint64_t
read_logs(struct acc_curves *cs, char **path, const char *pattern, struct cli_out *out, bool all)
{
	struct acc_err e = {0};
	const struct acc_join join = {0};
	struct logs l = {.cs = cs, .out = out, .all = all};
	l.al = acc_align_open(cli_tmpdir(), &e);
	if (l.al == NULL)
		cli_die_err(&e);
	for (int s = 0; s < 2; s++) {
		l.side = s == 0 ? ACC_A : ACC_B;
		struct acc_dump_ctx *c = acc_dump_open(NULL, take_point, trouble, &l, &e);
		if (c == NULL || acc_dump_pattern(c, pattern, &e) < 0 ||
			acc_dump_read(c, path[s], NULL, &e) < 0)
			cli_die_err(&e);
		acc_dump_close(c);
	}
	if (acc_align_run(l.al, acc_aligners[0], &join, NULL, take_pair, &l, &e) < 0)
		cli_die_err(&e);
	acc_align_close(l.al);
	return l.points;
}

/* Pairs become points; what is neither pair nor payload passes. How many points there were. */
static uint64_t
read_pairs(struct acc_curves *cs, struct acc_in *in, struct cli_out *out, bool all)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0)
		n += take(cs, r, out, all);
	if (rc < 0)
		cli_die_err(&e);
	cli_status(out, acc_in_status(in));
	return n;
}

static void
read_noise(struct acc_curves *cs, const char *path, unsigned number, struct cli_out *out)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0;
	int rc;
	struct acc_rd *rd = acc_rd_open(path, &e);
	if (rd == NULL)
		cli_die_err(&e);
	while ((rc = acc_rd_next(rd, &r, &e)) > 0) {
		if ((rc = acc_curves_add(cs, r, number, &e)) < 0)
			break;
		n += (uint64_t)rc;
	}
	if (rc < 0)
		cli_die_err(&e);
	if (n == 0)
		cli_die("%s: no pair of points in it: make it with accalign", path);
	if (acc_rd_status(rd) == 2)
		cli_status(out, 2);
	acc_rd_close(rd);
}

/* That no rule is broken says nothing where no rule is about these curves. */
static void
say_unjudged(struct acc_curves *cs, const char *preset, struct cli_out *out)
{
	const char *tag;
	if (!acc_curves_unjudged(cs, &tag))
		return;
	if (tag == NULL)
		cli_warn("only times and counters are on both sides, or what is finite at no step "
			 "of both: nothing was judged");
	else
		cli_warn(
			"%s differs, but no rule of %s is about it: nothing was judged (--preset exact "
			"and --rules judge any curve)",
			tag, preset);
	cli_status(out, 2);
}

static void
write_result(struct acc_curves *cs, uint64_t points, const char *preset, struct cli_out *out)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = acc_curves_judge(cs, &e);
	while (rc == 0 && (rc = acc_curves_next(cs, &r, &e)) > 0) {
		cli_put(out, r);
		rc = 0;
	}
	if (rc < 0)
		cli_die_err(&e);
	if (acc_curves_joined(cs) == 0) {
		cli_warn("no curve has a step on both sides: %s",
			points == 0 ? "is accalign missing from the pipe?"
				    : "do names differ (accalign --rename), or the steps?");
		cli_status(out, 2);
	}
	/* What rules of somebody's own are about, they know. */
	if (preset != NULL)
		say_unjudged(cs, preset, out);
	cli_status(out, acc_curves_status(cs));
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_curve_opt opt = {.rules = NULL};
	const char **noise = NULL, *pattern = NULL;
	size_t nnoise = 0, nlog = 0;
	bool all = false, own = false; /* own: rules of the user */
	const struct acc_preset *p;
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
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
			opt.rules = cli_rules_text(p->text, p->n, p->name);
		}
		if (key == RULES)
			opt.rules = cli_rules_file(optarg);
		if (key == PRESET || key == RULES)
			opt.rules_name = optarg;
		if (key == NOISE) {
			cli_append(&noise, &nnoise, optarg);
		}
		if (key == REGEX)
			pattern = optarg;
		all |= key == ALL;
		own |= key == RULES;
	}
	if (pattern != NULL && argc - optind != 2)
		cli_usage("--regex: two logs are needed, the device's and the bench's");
	if (opt.rules == NULL) {
		p = &acc_curve_presets[0];
		opt.rules = cli_rules_text(p->text, p->n, p->name);
		opt.rules_name = p->name;
	}
	struct acc_in *in = NULL;
	struct acc_curves *cs = acc_curves_open(&opt, &e);
	if (cs != NULL && pattern == NULL)
		in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (cs == NULL || (in == NULL && pattern == NULL))
		cli_die_err(&e);
	const struct acc_str *log = in == NULL ? NULL : acc_in_log(in, &nlog);
	struct cli_out *out = cli_out_open(log, nlog, argc, argv);
	uint64_t points = in == NULL ? read_logs(cs, argv + optind, pattern, out, all)
				     : read_pairs(cs, in, out, all);
	for (size_t i = 0; i < nnoise; i++)
		read_noise(cs, noise[i], (unsigned)i + 1, out);
	write_result(cs, points, own ? NULL : opt.rules_name, out);
	acc_curves_close(cs);
	acc_in_close(in);
	acc_rules_free(opt.rules);
	free(noise);
	return cli_finish(out);
}
