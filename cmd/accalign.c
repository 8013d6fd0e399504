/* Pairs the records of two inputs, and passes their payload on. */
#include "acc/align.h"
#include "align_input.h"
#include "acc/curve.h"
#include "acc/yaml.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_opt options[] = {
	{256, "preset", "NAME", "way of pairing: see --list"},
	{257, "steps", "A=B,...", "step A of the device belongs to step B of the bench"},
	{258, "ranks", "A=B,...", "rank A of the device belongs to rank B of the bench"},
	{'m', "map", "FILE", "a mapping file of msprobe: data, API, cell or layer"},
	{259, "rename", "RULE", "rename modules: OLD=NEW, s/REGEX/TEXT/, @FILE"},
	{262, "modules", NULL, "pair modules' calls, in place of op calls"},
	{261, "regex", "PATTERN", "read logs by a pattern with named groups"},
	{260, "write-map", "FILE", "write the pairs as a data mapping file"},
	{'l', "list", NULL, "list the ways of pairing"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accalign",
	.synopsis = "DEVICE BENCH",
	.summary = "Say which record of the device belongs to which of the bench.",
	.opt = options,
	.notes = "DEVICE and BENCH are streams or dumps; one of them may be - (standard input).\n",
};

/* "1=2,3=4" */
static size_t
pairs(const char *opt, const char *arg, int64_t (**out)[2])
{
	size_t n = 0;
	free(*out);
	*out = calloc(strlen(arg) + 1, sizeof **out);
	if (*out == NULL)
		cli_nomem();
	for (const char *p = arg; p != NULL; n++) {
		const char *eq = strchr(p, '='), *end = strchrnul(p, ',');
		struct acc_str a = {p, 0}, b = {p, 0};
		if (eq != NULL && eq < end) {
			a.n = (uint32_t)(eq - p);
			b = (struct acc_str){eq + 1, (uint32_t)(end - eq - 1)};
		}
		if (!acc_str_int(a, &(*out)[n][0]) || !acc_str_int(b, &(*out)[n][1]))
			cli_usage("%s: '%s' is not of the form A=B, as in 0=1,2=3", opt, arg);
		p = *end == '\0' ? NULL : end + 1;
	}
	return n;
}

static int
list(void)
{
	for (size_t i = 0; i < acc_naligners; i++)
		cli_item(acc_aligners[i]->name, 12, acc_aligners[i]->help);
	return fflush(stdout) == 0 && close(STDOUT_FILENO) == 0 ? 0 : 2;
}

/* The command lines of both inputs, the device's first. */
static struct cli_out *
open_out(const struct input in[2], int argc, char **argv)
{
	const struct acc_val *log[2] = {NULL, NULL};
	size_t n = 0;
	for (int s = 0; s < 2; s++)
		if (in[s].rd != NULL && (log[s] = acc_rd_log(in[s].rd)) != NULL)
			n += log[s]->n;
	struct acc_str *all = calloc(n + 1, sizeof *all);
	if (all == NULL)
		cli_nomem();
	n = 0;
	for (int s = 0; s < 2; s++)
		for (uint32_t i = 0; log[s] != NULL && i < log[s]->n; i++)
			all[n++] = log[s]->texts[i];
	struct cli_out *out = cli_out_open(all, n, argc, argv);
	free(all);
	return out;
}

/* The output, and the mapping file that is written beside it. */
struct sink {
	const struct input *in;
	struct cli_out *out;
	uint64_t n; /* records written */
	const char *path;
	FILE *map;
	struct acc_buf line;
};

static void
write_row(struct sink *s, const struct acc_rec *r)
{
	struct acc_str a = acc_get_text(r, "a.", "name"), b = acc_get_text(r, "b.", "name");
	s->line.n = 0;
	if (!acc_rec_is(r, "pair") || a.n == 0)
		return;
	if (b.n == 0 && acc_buf_add(&s->line, "# ", 2) < 0)
		cli_nomem();
	if (acc_yaml_pair(&s->line, a, b) < 0)
		cli_nomem();
	if (fwrite(s->line.p, 1, s->line.n, s->map) != s->line.n)
		cli_die("%s: cannot write:", s->path);
}

static int
emit(void *arg, const struct acc_rec *r)
{
	struct sink *s = arg;
	if (s->map != NULL)
		write_row(s, r);
	cli_put(s->out, r);
	align_remember(s->in, r, ++s->n);
	return 0;
}

static int
emit_raw(void *arg, const struct acc_rec *r)
{
	struct sink *s = arg;
	cli_put(s->out, r);
	s->n++;
	return 0;
}

/* A rule that does nothing is most often a slip of the pen. */
static int
report(void *arg, const char *rule, const char *text)
{
	struct acc_rec r = {0};
	cli_warn("%s", text);
	if (acc_rec_start(&r, ACC_STR("finding")) < 0 ||
		acc_add(&r, "", "what", acc_ctext("unmatched")) < 0 ||
		acc_add(&r, "", "name", acc_ctext(rule)) < 0 ||
		acc_add(&r, "", "rule", acc_ctext("map")) < 0 ||
		acc_add(&r, "", "text", acc_ctext(text)) < 0)
		cli_nomem();
	cli_put(arg, &r);
	acc_rec_release(&r);
	return 0;
}

static void
close_map(struct sink *s)
{
	acc_buf_release(&s->line);
	if (s->map != NULL && fclose(s->map) != 0)
		cli_die("%s: cannot write:", s->path);
}

/* @NAME of share/names, unless there is such a file. 1: it was. */
static int
installed(struct acc_maps *ru, const char *name, struct acc_err *e)
{
	struct stat st;
	for (size_t i = 0; name[0] == '@' && i < acc_nnames; i++) {
		size_t n = strlen(acc_names[i].name);
		if (strncmp(name + 1, acc_names[i].name, n) == 0 &&
			(name[n + 1] == '\0' || strcmp(name + n + 1, ".names") == 0) &&
			stat(name + 1, &st) != 0 && acc_file_absent(errno)) {
			int rc = acc_maps_rename_text(ru, acc_names[i].text, acc_names[i].n,
				name + 1, e);
			return rc < 0 ? rc : 1;
		}
	}
	return 0;
}

static int
rename_by(struct acc_maps *ru, const char *arg, struct acc_err *e)
{
	int rc = installed(ru, arg, e);
	return rc != 0 ? rc : acc_maps_rename(ru, arg, e);
}

static struct acc_maps *
rule(struct acc_maps *ru, int key, const char *arg)
{
	struct acc_err e = {0};
	if (ru == NULL)
		ru = acc_maps_new(&e);
	if (ru == NULL || (key == 'm' ? acc_maps_map(ru, arg, &e) : rename_by(ru, arg, &e)) < 0)
		cli_die_err(&e);
	return ru;
}

/* What the names of known programs mean: the files of share/names; packed-1-..., packed-2-... are
 * applied in that order to what is left. */
struct known {
	struct acc_maps **table, **packed;
	size_t n, npacked;
};

static void
read_known(struct known *k, struct acc_align *al)
{
	struct acc_err e = {0};
	k->table = calloc(2 * acc_nnames + 1, sizeof *k->table);
	if (k->table == NULL)
		cli_nomem();
	k->packed = k->table + acc_nnames;
	for (size_t i = 0; i < acc_nnames; i++) {
		struct acc_maps *ru = acc_maps_new(&e);
		if (ru == NULL || acc_maps_rename_text(ru, acc_names[i].text, acc_names[i].n,
					  acc_names[i].name, &e) < 0)
			cli_die_err(&e);
		if (strncmp(acc_names[i].name, "packed", 6) == 0)
			k->packed[k->npacked++] = ru;
		else
			k->table[k->n++] = ru;
	}
	acc_align_known(al, k->table, k->n, k->packed, k->npacked);
}

static void
free_known(struct known *k)
{
	for (size_t i = 0; i < k->n; i++)
		acc_maps_free(k->table[i]);
	for (size_t i = 0; i < k->npacked; i++)
		acc_maps_free(k->packed[i]);
	free(k->table);
}

/* --- step by step, while the device is recorded --- */

/* The bench, which is read once. */
struct bench {
	struct acc_spool *spool;
	struct acc_buf kept; /* of struct kept */
};

struct kept {
	uint64_t at;
	int64_t step; /* -1: none, as that of sources and stacks */
};

static int
keep(void *arg, struct acc_rec *r)
{
	struct bench *b = ((struct input *)arg)->bench;
	struct acc_err e = {0};
	struct kept k = {.step = acc_get_int(r, "", "step", -1)};
	if (acc_spool_put(b->spool, r, &k.at, &e) < 0)
		cli_die_err(&e);
	if (acc_buf_add(&b->kept, &k, sizeof k) < 0)
		cli_nomem();
	return 0;
}

/* Does this step of the bench belong to one of the device that is there? */
static bool
belongs(const struct input *device, const struct acc_join *join, int64_t step)
{
	for (size_t i = 0; i < join->nsteps; i++)
		if (join->steps[i][1] == step && join->steps[i][0] >= device->first &&
			join->steps[i][0] <= device->last)
			return true;
	return step < 0 || (join->nsteps == 0 && step >= device->first && step <= device->last);
}

/* What the bench has of these steps; false: nothing. */
static bool
add_bench(struct input *bench, const struct input *device, const struct acc_join *join)
{
	struct bench *b = bench->bench;
	const struct kept *k = (const struct kept *)(const void *)b->kept.p;
	struct acc_err e = {0};
	struct acc_rec *r;
	bool any = false;
	for (size_t i = 0; i < b->kept.n / sizeof *k; i++) {
		if (!belongs(device, join, k[i].step))
			continue;
		if (acc_spool_get(b->spool, k[i].at, &r, &e) < 0)
			cli_die_err(&e);
		any |= !acc_rec_is(r, "source") && !acc_rec_is(r, "stack");
		align_take(bench, r);
	}
	return any;
}

struct job {
	const struct acc_aligner *way;
	struct acc_join join;
	struct acc_maps *rules;
	struct sink sink;
	const char *pattern;
	bool modules;
	int64_t (*steps)[2], (*ranks)[2];
	struct known known;
};

static void
pair(struct acc_align *al, struct job *j)
{
	struct acc_err e = {0};
	if (acc_align_run(al, j->way, &j->join, j->rules, emit, &j->sink, &e) < 0)
		cli_die_err(&e);
}

static struct acc_align *
start(struct known *known)
{
	struct acc_err e = {0};
	struct acc_align *al = acc_align_open(cli_tmpdir(), &e);
	if (al == NULL)
		cli_die_err(&e);
	read_known(known, al);
	return al;
}

/* Each step is paired when it is whole. */
static void
follow(struct input in[2], struct job *j)
{
	struct acc_err e = {0};
	struct bench b = {.spool = acc_spool_open(cli_tmpdir(), &e)};
	bool told = false;
	if (b.spool == NULL)
		cli_die_err(&e);
	in[1].bench = &b;
	align_read_dump(&in[1], keep);
	for (bool more = true; more;) {
		if (add_bench(&in[1], &in[0], &j->join)) {
			pair(in[0].al, j);
		} else if (in[0].first >= 0 && !told) {
			cli_warn("step %lld: the bench has no such step: not compared, as all such",
				(long long)in[0].first);
			told = true;
		}
		more = in[0].step.kind.n > 0;
		if (more)
			cli_put_step(in[0].out, &in[0].step);
		acc_rec_release(&in[0].step);
		in[0].step = (struct acc_rec){0};
		acc_align_close(in[0].al);
		free_known(&j->known);
		j->known = (struct known){0};
		in[0].al = in[1].al = start(&j->known);
		in[0].first = in[0].last = -1;
		while (more && align_read_record(&in[0]))
			;
		more = more && (in[0].first >= 0 || in[0].step.kind.n > 0);
	}
	acc_spool_close(b.spool);
	acc_buf_release(&b.kept);
}

static void
option(struct job *j, int key)
{
	switch (key) {
	case 256:
		j->way = acc_aligner_find(optarg);
		if (j->way == NULL)
			cli_usage("--preset: no way of pairing named '%s'; --list shows them",
				optarg);
		break;
	case 257:
		j->join.nsteps = pairs("--steps", optarg, &j->steps);
		break;
	case 258:
		j->join.nranks = pairs("--ranks", optarg, &j->ranks);
		break;
	case 'm':
	case 259:
		j->rules = rule(j->rules, key, optarg);
		break;
	case 262:
		j->modules = true;
		break;
	case 261:
		j->pattern = optarg;
		break;
	case 260:
		j->sink.path = optarg;
	}
}

/* Both inputs, and where what is said of them goes. */
static void
open_all(struct input in[2], struct job *j, int argc, char **argv)
{
	struct acc_err e = {0};
	if (strcmp(in[0].path, "-") == 0 && strcmp(in[1].path, "-") == 0)
		cli_usage("only one operand can be standard input");
	j->join.steps = (const int64_t(*)[2])j->steps;
	j->join.ranks = (const int64_t(*)[2])j->ranks;
	in[0].al = in[1].al = start(&j->known);
	align_open(&in[0]);
	align_open(&in[1]);
	in[0].rules = j->rules;
	j->sink.in = in;
	j->sink.out = open_out(in, argc, argv);
	for (int s = 0; s < 2; s++) {
		in[s].out = j->sink.out;
		in[s].pattern = j->pattern;
		in[s].first = in[s].last = -1;
		if (j->modules &&
			(in[s].modules = acc_modules_open(align_take_whole, &in[s], &e)) == NULL)
			cli_die_err(&e);
	}
	if (j->pattern != NULL && in[0].rd != NULL && in[1].rd != NULL)
		cli_usage("--regex: both operands are streams; it is for logs");
	if (j->sink.path != NULL && (j->sink.map = fopen(j->sink.path, "we")) == NULL)
		cli_die("%s: cannot write:", j->sink.path);
}

int
main(int argc, char **argv)
{
	struct job job = {.way = acc_aligners[0]};
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == 'l')
			return list();
		option(&job, key);
	}
	if (argc - optind != 2)
		cli_usage("two operands are needed, the device and the bench");
	struct input in[2] = {{.path = argv[optind], .side = ACC_A},
		{.path = argv[optind + 1], .side = ACC_B}};
	open_all(in, &job, argc, argv);
	struct cli_out *out = job.sink.out;
	if (!align_read(in)) {
		follow(in, &job);
	} else {
		if (cli_is_stream(out) && job.sink.map == NULL && in[0].data == NULL &&
			in[1].data == NULL)
			acc_align_raw(in[0].al, emit_raw);
		pair(in[0].al, &job);
	}
	close_map(&job.sink);
	if (job.rules != NULL)
		acc_maps_report(job.rules, report, out);
	acc_maps_free(job.rules);
	acc_align_close(in[0].al);
	free_known(&job.known);
	align_pass_data(in);
	acc_rd_close(in[0].rd);
	acc_rd_close(in[1].rd);
	free(job.steps);
	free(job.ranks);
	return cli_finish(out);
}
