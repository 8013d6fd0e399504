#include "acc/file.h"
#include "cli.h"
#include "acc/check.h"
#include "acc/say.h"
#include "acc/plot.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOISE = 256, ROOT, HEAT };

static const struct cli_opt options[] = {
	{'o', "output", "FILE", "draw to FILE: .svg, .png or .pdf; else characters"},
	{'t', "tag", "GLOB[,..]", "curves to draw (default: the loss, and what differs)"},
	{'m', "metrics", "NAME[,..]", "metrics, at most 4 (default: 1 - cosine, rel_l2)"},
	{'H', "histogram", "GLOB", "the errors of the pair of this name"},
	{HEAT, "heat", "GLOB", "where in the tensor of this name the errors sit"},
	{NOISE, "noise", "FILE", "pairs of two runs of the bench: their spread"},
	{ROOT, "root", "OLD=NEW", "look for files of folder OLD in NEW (repeatable)"},
	{0, NULL, NULL, NULL},
};

static const struct cli cli = {
	.prog = "accplot",
	.synopsis = "[FILE ...]",
	.summary = "Draw a stream: curves of two runs, metrics of pairs, errors of a tensor.",
	.opt = options,
	.notes = "gnuplot draws: apt-get install gnuplot-nox\n"
		 "  accdump-read npu.log | accalign - gpu.log | accplot -o loss.png\n"
		 "  accalign NPU GPU | accmetric | accfirstbad --all | accplot -o ops.svg\n",
};

static enum acc_plot_to
kind_of(const char *path)
{
	static const struct {
		const char *end;
		enum acc_plot_to to;
	} kinds[] = {{".svg", ACC_PLOT_SVG}, {".png", ACC_PLOT_PNG}, {".pdf", ACC_PLOT_PDF}};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (acc_str_ends(acc_str(path), kinds[i].end))
			return kinds[i].to;
	cli_usage("-o %s: the name must end in .svg, .png or .pdf", path);
}

static void
read_noise(struct acc_plot *p, const char *path, unsigned number)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	struct acc_rd *rd = acc_rd_open(path, &e);
	if (rd == NULL)
		cli_die_err(&e);
	while ((rc = acc_rd_next(rd, &r, &e)) > 0)
		if ((rc = acc_plot_add(p, r, number, &e)) < 0)
			break;
	if (rc < 0)
		cli_die_err(&e);
	acc_rd_close(rd);
}

/* gnuplot, drawing to fd what it is told through the pipe that is returned. It is started before
 * anything is read, so that nobody waits for the message that it is missing; without the user's
 * own settings. */
static int
start(int fd, pid_t *pid)
{
	static char name[] = "gnuplot", defaults[] = "-d", input[] = "-";
	char *const argv[] = {name, defaults, input, NULL};
	posix_spawn_file_actions_t fa;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		cli_die("pipe:");
	if (posix_spawn_file_actions_init(&fa) != 0 ||
		posix_spawn_file_actions_adddup2(&fa, ends[0], STDIN_FILENO) != 0 ||
		posix_spawn_file_actions_adddup2(&fa, fd, STDOUT_FILENO) != 0)
		cli_nomem();
	errno = posix_spawnp(pid, name, &fa, NULL, argv, environ);
	if (errno == ENOENT)
		cli_die("gnuplot is not installed, and it draws: apt-get install gnuplot-nox");
	if (errno != 0)
		cli_die("gnuplot:");
	posix_spawn_file_actions_destroy(&fa);
	close(ends[0]);
	return ends[1];
}

/* A file for the script, with a buffer of its own: a stream to memory loses what it has no memory
 * for, and says nothing. */
static FILE *
open_script(int *fd)
{
	static char buf[65536];
	*fd = memfd_create("script", MFD_CLOEXEC);
	if (*fd < 0)
		cli_die("memfd_create:");
	int own = fcntl(*fd, F_DUPFD_CLOEXEC, 0);
	FILE *f = own < 0 ? NULL : fdopen(own, "w");
	if (f == NULL)
		cli_die("a file for the script:");
	setvbuf(f, buf, _IOFBF, sizeof buf);
	return f;
}

/* The script goes to gnuplot; then the picture is complete, or there is none. */
static void
finish(int gnuplot, pid_t pid, int script)
{
	static char buf[65536];
	struct acc_err e = {0};
	uint64_t at = 0;
	int64_t n;
	int status, rc = 0;
	/* If gnuplot died, its status tells more than a signal. */
	signal(SIGPIPE, SIG_IGN);
	while (rc == 0 && (n = acc_file_peek(script, buf, sizeof buf, at, &e)) != 0) {
		if (n < 0)
			cli_die_err(&e);
		rc = acc_file_write(gnuplot, buf, (size_t)n, &e);
		at += (uint64_t)n;
	}
	bool gone = rc < 0 && errno == EPIPE;
	if (rc < 0 && !gone)
		cli_die_err(&e);
	close(gnuplot);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			cli_die("gnuplot:");
	if (gone || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		cli_die("gnuplot failed, see above: is it older than 5.2?");
}

static void
copy(int from, const char *path)
{
	static char buf[65536];
	struct acc_err e = {0};
	FILE *to = path == NULL ? stdout : fopen(path, "w");
	uint64_t at = 0;
	int64_t n;
	if (to == NULL)
		cli_die("%s: %s", path, strerror(errno));
	while ((n = acc_file_peek(from, buf, sizeof buf, at, &e)) > 0) {
		/* gnuplot begins a page of characters with a form feed. */
		bool skip = at == 0 && path == NULL && buf[0] == '\f';
		fwrite(buf + skip, 1, (size_t)n - skip, to);
		at += (uint64_t)n;
	}
	if (n < 0)
		cli_die_err(&e);
	if (ferror(to) || fclose(to) != 0)
		cli_die("%s: %s", path == NULL ? "standard output" : path, strerror(errno));
}

static int
add_point(void *arg, struct acc_rec *r, struct acc_err *e)
{
	return acc_plot_add(arg, r, 0, e);
}

/* What the check-list knows of the two configurations, if there are any. */
static struct acc_check *
open_check(struct acc_checklist *cl)
{
	struct acc_err e = {0};
	const struct acc_check_opt opt = {.list = cl};
	struct acc_check *ck = cl == NULL ? NULL : acc_check_open(&opt, &e);
	for (size_t i = 0; ck != NULL && i < acc_ncheck_lists; i++)
		if (acc_checklist_add(cl, acc_check_lists[i].text, acc_check_lists[i].n,
			    acc_check_lists[i].name, &e) < 0)
			cli_die_err(&e);
	if (ck == NULL)
		cli_die_err(&e);
	return ck;
}

/* Before a run: the learning rates that configurations give. */
static void
draw_rates(struct acc_plot *p, struct acc_check *ck)
{
	static const char *const side[] = {"device", "bench"};
	struct acc_err e = {0};
	const char *why[2];
	int rc = acc_check_judge(ck, &e);
	if (rc == 0)
		rc = acc_check_rates(ck, add_point, p, why, &e);
	if (rc < 0)
		cli_die_err(&e);
	for (int s = 0; s < 2; s++)
		if (why[s] != NULL && why[s][0] != '\0')
			cli_die("%s: no learning rates can be drawn: %s", acc_tr(side[s]),
				acc_tr(why[s]));
}

static void
read_all(struct acc_plot *p, struct acc_in *in, const char *const *noise, size_t nnoise)
{
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc;
	struct acc_checklist *cl = acc_checklist_new(&e);
	struct acc_check *ck = open_check(cl);
	bool other = false;
	while ((rc = acc_in_next(in, &r, &e)) > 0) {
		const bool param = acc_rec_is(r, "param") ||
				   acc_str_is(acc_get_text(r, "a.", "kind"), "param") ||
				   acc_str_is(acc_get_text(r, "b.", "kind"), "param");
		other |= !param && (acc_rec_is(r, "pair") || acc_rec_is(r, "scalar"));
		rc = param ? acc_check_add(ck, r, &e) : acc_plot_add(p, r, 0, &e);
		if (rc < 0)
			break;
	}
	/* A log that tells its settings shows its own. */
	if (rc == 0 && !other && acc_check_params(ck) > 0)
		draw_rates(p, ck);
	acc_check_close(ck);
	acc_checklist_free(cl);
	if (rc < 0)
		cli_die_err(&e);
	for (size_t i = 0; i < nnoise; i++)
		read_noise(p, noise[i], (unsigned)i + 1);
}

static void
size_of_terminal(struct acc_plot_opt *opt)
{
	struct winsize ws;
	opt->width = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) != 0 || ws.ws_col == 0)
		return;
	opt->width = ws.ws_col < 40 ? 40 : ws.ws_col;
	opt->height = ws.ws_row < 21 ? 20 : ws.ws_row - 1;
}

/* What the command line holds beside the options of the picture. */
struct given {
	const char *path, **noise, **tags, **metrics;
	size_t nnoise;
};

static void
take_options(int argc, char **argv, struct given *g, struct acc_plot_opt *opt)
{
	struct acc_err e = {0};
	for (int key; (key = cli_getopt(argc, argv, &cli)) != -1;) {
		if (key == 'o') {
			g->path = optarg;
			opt->to = kind_of(optarg);
		} else if (key == 't') {
			cli_list(optarg, &g->tags, &opt->ntags);
		} else if (key == 'm') {
			cli_list(optarg, &g->metrics, &opt->nmetrics);
		} else if (key == 'H') {
			opt->histogram = optarg;
		} else if (key == HEAT) {
			opt->heat = optarg;
		} else if (key == ROOT) {
			if (acc_roots_move(opt->roots, optarg, &e) < 0)
				cli_usage("%s", cli_err(&e));
		} else {
			cli_append(&g->noise, &g->nnoise, optarg);
		}
	}
	if (opt->heat != NULL && opt->histogram != NULL)
		cli_usage("only one of --heat and --histogram");
	opt->tags = g->tags;
	opt->metrics = g->metrics;
}

int
main(int argc, char **argv)
{
	struct acc_err e = {0};
	struct acc_plot_opt opt = {.to = ACC_PLOT_TEXT};
	struct given g = {0};
	pid_t pid;
	int script;
	opt.roots = acc_roots_open(&e);
	if (opt.roots == NULL)
		cli_die_err(&e);
	take_options(argc, argv, &g, &opt);
	size_of_terminal(&opt);
	int picture = memfd_create("picture", MFD_CLOEXEC);
	if (picture < 0)
		cli_die("memfd_create:");
	int gnuplot = start(picture, &pid);
	FILE *lines = open_script(&script);
	struct acc_in *in = acc_in_open(argv + optind, (size_t)(argc - optind), &e);
	struct acc_plot *p = in == NULL ? NULL : acc_plot_open(&opt, &e);
	if (p == NULL)
		cli_die_err(&e);
	read_all(p, in, g.noise, g.nnoise);
	if (acc_plot_draw(p, lines, &e) < 0)
		cli_die_err(&e);
	bool bad = ferror(lines) != 0;
	if (fclose(lines) != 0 || bad)
		cli_die("the script for gnuplot: cannot write:");
	finish(gnuplot, pid, script);
	copy(picture, g.path);
	/* That something is bad is said by the picture; that it is not whole, by the status. */
	int status = acc_in_status(in) == 2 ? 2 : 0;
	acc_plot_close(p);
	acc_in_close(in);
	acc_roots_close(opt.roots);
	close(script);
	close(picture);
	free(g.noise);
	free(g.tags);
	free(g.metrics);
	return status;
}
