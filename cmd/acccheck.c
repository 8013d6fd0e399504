#include "acc/check.h"
#include "cli.h"

#include <getopt.h>
#include <stdlib.h>

enum { ALL = 256, APART, RULES, ROOT, PRINT_RULES };

static const struct cli_opt options[] = {
	{ALL, "all", NULL, "show what is equal, and hints, too"},
	{APART, "apart", NULL, "advise against nothing that both sides have alike"},
	{RULES, "rules", "FILE", "rows of your own, beside those of the check-list"},
	{ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW (repeatable)"},
	{PRINT_RULES, "print-rules", NULL, "print the check-list, to see and borrow from it"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "acccheck",
	.synopsis = "[FILE ...]",
	.summary = "Compare the configurations of two runs against the accuracy check-list.",
	.opt = options,
	.notes = "Reads pairs of parameters; writes those that differ or break a rule; findings.\n"
		 "Exit status: 0 no rule is broken, 1 one is, 2 trouble.\n"
		 "  accdump-read npu.yaml npu.env | accalign - gpu_train.sh | acccheck\n",
};

static void
print_and_exit(void)
{
	for (size_t i = 0; i < acc_ncheck_lists; i++)
		fwrite(acc_check_lists[i].text, 1, acc_check_lists[i].n, stdout);
	cli_printed();
}

static void
add_file(struct acc_checklist *cl, const char *path)
{
	struct acc_err e = {0};
	struct acc_buf b = {0};
	cli_text_file(path, &b);
	if (acc_checklist_add(cl, (char *)b.p, b.n, path, &e) < 0)
		cli_die_err(&e);
	acc_buf_release(&b);
}

/* Parameters and tokens are taken; what is neither pair nor payload passes. */
static void
read_pairs(struct acc_check *ck, struct acc_in *in, struct cli_out *out, bool all)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		int taken = acc_check_add(ck, r, &e);
		if (taken < 0)
			cli_die_err(&e);
		bool aside = acc_rec_is(r, "pair") || acc_rec_is(r, "data") ||
			     acc_rec_is(r, "tensor") || acc_rec_is(r, "scalar") ||
			     acc_rec_is(r, "arg");
		if (taken == 0 && (all || !aside))
			cli_put(out, r);
	}
	if (rc < 0)
		cli_die_err(&e);
	cli_status(out, acc_in_status(in));
}

static void
write_result(struct acc_check *ck, struct cli_out *out)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = acc_check_judge(ck, &e);
	while (rc == 0 && (rc = acc_check_next(ck, &r, &e)) > 0) {
		cli_put(out, r);
		rc = 0;
	}
	if (rc < 0)
		cli_die_err(&e);
	const char *why = acc_check_nothing(ck);
	if (why != NULL) {
		cli_warn("%s", why);
		cli_status(out, 2);
	}
	cli_status(out, acc_check_status(ck));
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_checklist *cl = acc_checklist_new(&e);
	struct acc_check_opt opt = {.list = cl, .roots = acc_roots_open(&e)};
	size_t nlog;
	for (size_t i = 0; cl != NULL && i < acc_ncheck_lists; i++)
		if (acc_checklist_add(cl, acc_check_lists[i].text, acc_check_lists[i].n,
			    acc_check_lists[i].name, &e) < 0)
			cli_die_err(&e);
	if (cl == NULL || opt.roots == NULL)
		cli_die_err(&e);
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == RULES)
			add_file(cl, optarg);
		if (key == ROOT && acc_roots_move(opt.roots, optarg, &e) < 0)
			cli_usage("%s", cli_err(&e));
		if (key == PRINT_RULES)
			print_and_exit();
		opt.all |= key == ALL;
		opt.apart |= key == APART;
	}
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	struct acc_check *ck = in == NULL ? NULL : acc_check_open(&opt, &e);
	if (ck == NULL)
		cli_die_err(&e);
	const struct acc_str *log = acc_in_log(in, &nlog);
	struct cli_out *out = cli_out_open(log, nlog, argc, argv);
	read_pairs(ck, in, out, opt.all);
	write_result(ck, out);
	acc_check_close(ck);
	acc_in_close(in);
	acc_roots_close(opt.roots);
	acc_checklist_free(cl);
	return cli_finish(out);
}
