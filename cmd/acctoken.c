#include "cli.h"
#include "acc/token.h"

#include <getopt.h>
#include <stdlib.h>

enum { ALL = 256, NOISE, PRESET, LIMITS, CURVES, BY, CAUSES };

static const struct cli_opt options[] = {
	{PRESET, "preset", "NAME", "what the two may differ by (bf16)"},
	{NOISE, "noise", "FILE", "pairs of a second scoring: their spread is fine"},
	{ALL, "all", NULL, "tell of all samples, not the worst ten alone"},
	{CURVES, "curves", NULL, "and of each step, as points of curves"},
	{BY, "by", "WHAT", "the same by step, position, sample or value"},
	{'l', "list", NULL, "list the presets"},
	{CAUSES, "causes", NULL, "list the causes that have a name"},
	{LIMITS, "limits", NULL, "print the limits"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "acctoken",
	.synopsis = "[FILE ...]",
	.summary = "Say whether the engine that generates computes what the trainer trains.",
	.opt = options,
	.notes = "Reads pairs of samples, or samples with two columns of log-probabilities.\n"
		 "Exit status: 0 noise, 1 a difference, 2 trouble.\n"
		 "  accdump-read rollout.jsonl | accalign - trainer.pt | acctoken\n",
};

static const struct acc_token_preset *
preset(const char *name)
{
	for (size_t i = 0; i < acc_ntoken_presets; i++)
		if (strcmp(acc_token_presets[i].name, name) == 0)
			return &acc_token_presets[i];
	cli_usage("no preset '%s'; --list shows them", name);
}

static enum acc_token_by
by(const char *name)
{
	static const char *const names[] = {"step", "position", "sample", "value"};
	for (int i = 0; i < 4; i++)
		if (strcmp(names[i], name) == 0)
			return (enum acc_token_by)(ACC_TOKEN_STEP + i);
	cli_usage("--by=%s: step, position, sample or value", name);
}

static void
list(void)
{
	for (size_t i = 0; i < acc_ntoken_presets; i++)
		cli_item(acc_token_presets[i].name, 12, acc_token_presets[i].help);
	cli_printed();
}

static void
causes(void)
{
	for (size_t i = 0; i < acc_ntoken_causes; i++)
		cli_item(acc_token_causes[i].name, 14, acc_token_causes[i].what);
	cli_printed();
}

/* How many samples there were. */
static uint64_t
read_samples(struct acc_tokens *t, struct acc_in *in, struct cli_out *out)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		const int taken = acc_tokens_add(t, r, false, &e);
		if (taken < 0)
			cli_die_err(&e);
		n += (uint64_t)taken;
		if (taken == 0 && !acc_rec_is(r, "pair") && !acc_rec_is(r, "data"))
			cli_put(out, r);
	}
	if (rc < 0)
		cli_die_err(&e);
	cli_status(out, acc_in_status(in));
	return n;
}

static void
read_noise(struct acc_tokens *t, const char *path, struct cli_out *out)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	uint64_t n = 0;
	int rc;
	struct acc_rd *rd = acc_rd_open(path, &e);
	if (rd == NULL)
		cli_die_err(&e);
	while ((rc = acc_rd_next(rd, &r, &e)) > 0) {
		const int taken = acc_tokens_add(t, r, true, &e);
		if (taken < 0)
			cli_die_err(&e);
		n += (uint64_t)taken;
	}
	if (rc < 0)
		cli_die_err(&e);
	if (n == 0)
		cli_die("%s: no pair of samples in it: make it with accalign", path);
	if (acc_rd_status(rd) == 2)
		cli_status(out, 2);
	acc_rd_close(rd);
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_token_opt opt = {.preset = &acc_token_presets[0]};
	const char *noise = NULL;
	size_t nlog = 0;
	struct acc_rec *r;
	int rc;
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == 'l')
			list();
		if (key == CAUSES)
			causes();
		if (key == LIMITS) {
			cli_limits(acc_token_limits, acc_ntoken_limits);
			cli_printed();
		}
		if (key == PRESET)
			opt.preset = preset(optarg);
		if (key == NOISE)
			noise = optarg;
		opt.all |= key == ALL;
		if (key == CURVES)
			opt.by = ACC_TOKEN_STEP;
		if (key == BY)
			opt.by = by(optarg);
	}
	struct acc_tokens *t = acc_tokens_open(&opt, &e);
	struct acc_in *in = t == NULL ? NULL
				      : acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	if (in == NULL)
		cli_die_err(&e);
	const struct acc_str *log = acc_in_log(in, &nlog);
	struct cli_out *out = cli_out_open(log, nlog, argc, argv);
	const uint64_t n = read_samples(t, in, out);
	if (noise != NULL)
		read_noise(t, noise, out);
	if (acc_tokens_judge(t, &e) < 0)
		cli_die_err(&e);
	while ((rc = acc_tokens_next(t, &r, &e)) > 0)
		cli_put(out, r);
	if (rc < 0)
		cli_die_err(&e);
	cli_status(out, acc_tokens_status(t));
	if (acc_tokens_status(t) == 2)
		cli_warn("nothing was judged: %s",
			n == 0 ? "no samples came: is accalign missing from the pipe?"
			       : "no sample has the log-probabilities of both sides, or a partner");
	acc_tokens_close(t);
	acc_in_close(in);
	return cli_finish(out);
}
