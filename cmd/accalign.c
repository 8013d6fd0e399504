/* Payload is never kept: by the contract it comes behind all other records, so it can be passed
 * on after the pairs, as it is read: in the order of the pairs, as far as both streams are in
 * this order, so that who measures need not keep much of it either. */
#include "acc/align.h"
#include "cli.h"
#include "acc/curve.h"
#include "acc/dump.h"
#include "acc/yaml.h"

#include <errno.h>
#include <fcntl.h>
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

struct input {
	const char *path, *pattern; /* pattern: of a log, or NULL */
	enum acc_side side;
	struct acc_rd *rd;    /* NULL: a dump */
	struct acc_rec *data; /* the payload record at which reading stands */
	uint64_t place, off;  /* of that: which pair it belongs to, and the byte in its tensor */
	struct acc_align *al;
	struct acc_modules *modules; /* or NULL */
	struct acc_maps *rules;      /* for the tags of the device; or NULL */
	struct cli_out *out;
	int64_t first, last; /* steps of what came since the last step record */
	struct acc_rec step; /* the step record at which reading stands; no kind: none */
	struct bench *bench; /* where it is kept, that steps are compared with */
};

/* Is it a regular file that begins as a stream (2) or as gzip (1)? */
static int
looks(const char *path)
{
	uint8_t head[5];
	struct acc_err e = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		cli_die("%s: cannot open:", path);
	int64_t n = acc_file_peek(fd, head, sizeof head, 0, &e);
	close(fd);
	if (n < 0) {
		acc_err_in(&e, path);
		cli_die_err(&e);
	}
	if (n == 0 || !acc_is_stream(head, (size_t)n))
		return 0;
	return head[0] == 0x1f ? 1 : 2;
}

/* Find out what it is. What is neither file nor folder is a pipe, and must be a stream. */
static void
open_input(struct input *in)
{
	struct acc_err e = {0};
	struct stat st = {0};
	int how = 2;
	if (strcmp(in->path, "-") != 0) {
		if (stat(in->path, &st) < 0)
			cli_die("%s: cannot open:", in->path);
		if (S_ISDIR(st.st_mode))
			how = 0;
		else if (S_ISREG(st.st_mode))
			how = looks(in->path);
	}
	if (how > 0)
		in->rd = acc_rd_open(in->path, &e);
	if (in->rd == NULL && how == 2)
		cli_die_err(&e);
}

static int
take_whole(void *arg, struct acc_rec *r)
{
	struct input *in = arg;
	struct acc_err e = {0};
	int rc = acc_rec_is(r, "data") ? acc_fail(&e, ACC_EUNSUP, "payload outside of a stream")
				       : 0;
	if (rc == 0 && in->rules != NULL && acc_rec_is(r, "scalar"))
		rc = acc_maps_tag(in->rules, r, &e);
	if (rc >= 0)
		rc = acc_align_add(in->al, in->side, r, &e);
	if (rc < 0) {
		acc_err_in(&e, in->rd != NULL ? acc_rd_name(in->rd) : in->path);
		cli_die_err(&e);
	}
	if (rc == 0)
		cli_put(in->out, r);
	const int64_t step = acc_get_int(r, "", "step", -1);
	if (step >= 0 && (in->first < 0 || step < in->first))
		in->first = step;
	if (step > in->last)
		in->last = step;
	return 0;
}

static int
take(void *arg, struct acc_rec *r)
{
	struct input *in = arg;
	struct acc_err e = {0};
	if (in->modules == NULL)
		return take_whole(in, r);
	if (acc_modules_add(in->modules, r, &e) < 0) {
		acc_err_in(&e, in->path);
		cli_die_err(&e);
	}
	return 0;
}

/* Behind the last record of a side: what modules there were. */
static void
end_modules(struct input *in)
{
	struct acc_err e = {0};
	uint64_t nowhere;
	if (in->modules == NULL)
		return;
	if (in->data != NULL)
		cli_die("%s: --modules: a stream that holds its tensors; give the dump that it was made of",
			in->path);
	if (acc_modules_end(in->modules, &e) < 0) {
		acc_err_in(&e, in->path);
		cli_die_err(&e);
	}
	if (acc_modules_count(in->modules, &nowhere) == 0 && nowhere > 0)
		cli_die("%s: --modules: no op call says in which module it ran", in->path);
	if (nowhere > 0)
		cli_warn(
			"%s: %llu records of op calls do not say in which module they ran, and are left"
			" out",
			in->path, (unsigned long long)nowhere);
	acc_modules_close(in->modules);
	in->modules = NULL;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	struct input *in = arg;
	cli_warn_err(e);
	cli_status(in->out, e->code == ACC_ENOTE ? 0 : 2);
}

/* The next record of a stream; false at its end, at its payload and behind a step. */
static bool
read_record(struct input *in)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = acc_rd_next(in->rd, &r, &e);
	if (rc < 0)
		cli_die_err(&e);
	if (rc > 0 && acc_rec_is(r, "data"))
		in->data = r;
	if (rc > 0 && acc_rec_is(r, "step") && acc_rec_copy(&in->step, r) < 0)
		cli_nomem();
	if (rc == 0 || in->data != NULL || in->step.kind.n > 0)
		return false;
	take(in, r);
	return true;
}

static void
read_dump(struct input *in, acc_emit_fn *fn)
{
	struct acc_err e = {0};
	struct acc_dump_ctx *c = acc_dump_open(NULL, fn, trouble, in, &e);
	if (c == NULL || (in->pattern != NULL && acc_dump_pattern(c, in->pattern, &e) < 0) ||
		acc_dump_read(c, in->path, NULL, &e) < 0)
		cli_die_err(&e);
	acc_dump_close(c);
}

/* The device, then the bench; two streams in turn, so that whoever writes them need not wait for
 * the other. False: the device is recorded while it is read, and its first step is whole. */
static bool
read_inputs(struct input in[2])
{
	bool more[2] = {in[0].rd != NULL, in[1].rd != NULL};
	if (!more[0])
		read_dump(&in[0], take);
	while (more[0] || more[1])
		for (int s = 0; s < 2; s++)
			more[s] = more[s] && read_record(&in[s]);
	if (in[0].step.kind.n > 0 || in[1].step.kind.n > 0) {
		if (in[0].modules != NULL)
			cli_die("--modules: of a recording that is followed no module is whole");
		if (in[0].step.kind.n == 0 || in[1].rd != NULL)
			cli_die("a recording that is followed is the device, and its bench is a dump"
				" that is named: accdump-read --follow REC | accalign - BENCH");
		return false;
	}
	if (in[1].rd == NULL)
		read_dump(&in[1], take);
	end_modules(&in[0]);
	end_modules(&in[1]);
	return true;
}

/* --- payload --- */

static struct acc_map places; /* of tensors among the pairs; empty where there is no payload */

/* "a SEQ SRC" */
static struct acc_str
tensor_id(const struct acc_rec *r, const char *prefix, enum acc_side side, char buf[96])
{
	struct acc_str src = acc_get_text(r, prefix, "src");
	int n = snprintf(buf, 96, "%c %lld %.*s", side == ACC_A ? 'a' : 'b',
		(long long)acc_get_int(r, prefix, "seq", -1), src.n > 64 ? 64 : (int)src.n, src.p);
	return (struct acc_str){buf, (uint32_t)n};
}

/* Remember which of the records written, the n-th, has which tensors. */
static void
remember(const struct input in[2], const struct acc_rec *r, uint64_t n)
{
	static const char *const prefix[2] = {"a.", "b."};
	char buf[96];
	for (int s = 0; s < 2; s++)
		if (in[s].data != NULL && acc_get(r, prefix[s], "seq") != NULL &&
			acc_map_put(&places, tensor_id(r, prefix[s], in[s].side, buf), n) == NULL)
			cli_nomem();
}

/* Find out where the payload record belongs at which a stream stands. */
static void
place_data(struct input *in)
{
	char buf[96];
	const uint64_t *p = acc_map_get(&places, tensor_id(in->data, "", in->side, buf));
	in->place = p == NULL ? 0 : *p;
	in->off = (uint64_t)acc_get_int(in->data, "", "off", 0);
}

/* On to the next payload record of a stream, or its end; other records are passed on. */
static void
next_data(struct input *in)
{
	static const char *const paired[] = {"tensor", "arg", "scalar", "param", "pair"};
	struct acc_err e = {0};
	int rc;
	const bool stream = cli_is_stream(in->out);
	while ((rc = stream ? acc_rd_next_open(in->rd, &in->data, &e)
			    : acc_rd_next(in->rd, &in->data, &e)) > 0 &&
		!acc_rec_is(in->data, "data")) {
		for (size_t i = 0; i < sizeof paired / sizeof *paired; i++)
			if (acc_rec_is(in->data, paired[i]))
				cli_die("%s: a %s record behind payload", acc_rd_name(in->rd),
					paired[i]);
		cli_put(in->out, in->data);
	}
	if (rc < 0)
		cli_die_err(&e);
	if (rc == 0)
		in->data = NULL;
	else
		place_data(in);
}

/* A payload record with its side, and its bytes last, so that they need not be copied; most of
 * them are still where they came from. */
static void
put_data(struct input *in)
{
	static struct acc_rec out;
	const struct acc_rec *r = in->data;
	int rc = acc_rec_start(&out, r->kind);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		if (!acc_str_is(r->f[i].key, "data") && !acc_str_is(r->f[i].key, "side"))
			rc = acc_rec_push(&out, &r->f[i]);
	if (rc == 0)
		rc = acc_add(&out, "", "side", acc_ctext(in->side == ACC_A ? "a" : "b"));
	const struct acc_val *data = acc_get(r, "", "data");
	if (rc == 0 && data != NULL)
		rc = acc_rec_push(&out, &(struct acc_field){.key = ACC_STR("data"), .v = *data});
	if (rc < 0)
		cli_nomem();
	if (cli_is_stream(in->out))
		cli_pass(in->out, &out, in->rd);
	else
		cli_put(in->out, &out);
}

/* The rest of both streams, what belongs to the earlier pair first. */
static void
pass_data(struct input in[2])
{
	for (int s = 0; s < 2; s++)
		if (in[s].data != NULL)
			place_data(&in[s]);
	while (in[0].data != NULL || in[1].data != NULL) {
		const struct input *a = &in[0], *b = &in[1];
		int s = a->data == NULL ||
			(b->data != NULL &&
				(b->place < a->place || (b->place == a->place && b->off < a->off)));
		put_data(&in[s]);
		next_data(&in[s]);
	}
	for (int s = 0; s < 2; s++)
		if (in[s].rd != NULL)
			cli_status(in[s].out, acc_rd_status(in[s].rd));
	acc_map_release(&places);
}

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
	remember(s->in, r, ++s->n);
	return 0;
}

static int
emit_bytes(void *arg, struct acc_str bytes)
{
	struct sink *s = arg;
	cli_put_bytes(s->out, bytes);
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
		take(bench, r);
	}
	return any;
}

struct job {
	const struct acc_aligner *way;
	struct acc_join join;
	struct acc_maps *rules;
	struct sink sink;
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
follow(struct input in[2], struct job *j, struct known *known)
{
	struct acc_err e = {0};
	struct bench b = {.spool = acc_spool_open(cli_tmpdir(), &e)};
	bool told = false;
	if (b.spool == NULL)
		cli_die_err(&e);
	in[1].bench = &b;
	read_dump(&in[1], keep);
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
		free_known(known);
		*known = (struct known){0};
		in[0].al = in[1].al = start(known);
		in[0].first = in[0].last = -1;
		while (more && read_record(&in[0]))
			;
		more = more && (in[0].first >= 0 || in[0].step.kind.n > 0);
	}
	acc_spool_close(b.spool);
	acc_buf_release(&b.kept);
}

int
main(int argc, char **argv)
{
	struct known known = {0};
	struct job job = {.way = acc_aligners[0]};
	int64_t(*steps)[2] = NULL, (*ranks)[2] = NULL;
	const char *pattern = NULL;
	struct acc_err e = {0};
	bool modules = false;
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;)
		switch (key) {
		case 256:
			job.way = acc_aligner_find(optarg);
			if (job.way == NULL)
				cli_usage("--preset: no way of pairing named '%s'; --list"
					  " shows them",
					optarg);
			break;
		case 257:
			job.join.nsteps = pairs("--steps", optarg, &steps);
			break;
		case 258:
			job.join.nranks = pairs("--ranks", optarg, &ranks);
			break;
		case 'm':
		case 259:
			job.rules = rule(job.rules, key, optarg);
			break;
		case 262:
			modules = true;
			break;
		case 261:
			pattern = optarg;
			break;
		case 260:
			job.sink.path = optarg;
			break;
		default:
			return list();
		}
	if (argc - optind != 2)
		cli_usage("two operands are needed, the device and the bench");
	struct input in[2] = {{.path = argv[optind], .side = ACC_A},
		{.path = argv[optind + 1], .side = ACC_B}};
	if (strcmp(in[0].path, "-") == 0 && strcmp(in[1].path, "-") == 0)
		cli_usage("only one operand can be standard input");
	job.join.steps = (const int64_t(*)[2])steps;
	job.join.ranks = (const int64_t(*)[2])ranks;
	struct acc_align *al = start(&known);
	open_input(&in[0]);
	open_input(&in[1]);
	struct cli_out *out = open_out(in, argc, argv);
	for (int s = 0; s < 2; s++) {
		in[s].al = al;
		in[s].out = out;
		in[s].pattern = pattern;
		in[s].first = in[s].last = -1;
		if (modules && (in[s].modules = acc_modules_open(take_whole, &in[s], &e)) == NULL)
			cli_die_err(&e);
	}
	if (pattern != NULL && in[0].rd != NULL && in[1].rd != NULL)
		cli_usage("--regex: both operands are streams; it is for logs");
	in[0].rules = job.rules;
	job.sink.in = in;
	job.sink.out = out;
	if (job.sink.path != NULL && (job.sink.map = fopen(job.sink.path, "we")) == NULL)
		cli_die("%s: cannot write:", job.sink.path);
	if (!read_inputs(in)) {
		follow(in, &job, &known);
	} else {
		if (cli_is_stream(out) && job.sink.map == NULL && in[0].data == NULL &&
			in[1].data == NULL)
			acc_align_bytes(al, emit_bytes);
		pair(al, &job);
	}
	close_map(&job.sink);
	if (job.rules != NULL)
		acc_maps_report(job.rules, report, out);
	acc_maps_free(job.rules);
	acc_align_close(in[0].al);
	free_known(&known);
	pass_data(in);
	acc_rd_close(in[0].rd);
	acc_rd_close(in[1].rd);
	free(steps);
	free(ranks);
	return cli_finish(out);
}
