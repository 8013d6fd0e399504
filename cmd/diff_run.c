#include "diff_run.h"
#include "acc/file.h"
#include "cli.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64 }; /* programs at a time */

static volatile pid_t running[MOST];

static struct prog *programs; /* the last that was made */

struct prog *
prog_new(const char *name, struct prog *in)
{
	struct prog *p = calloc(1, sizeof *p);
	if (p == NULL)
		cli_nomem();
	p->in = in;
	p->from = p->file = -1;
	p->err = RUN_SILENT;
	prog_add(p, name);
	p->older = programs;
	programs = p;
	return p;
}

void
prog_add(struct prog *p, const char *word)
{
	cli_append(&p->argv.v, &p->argv.n, word);
}

void
prog_add_all(struct prog *p, const struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		prog_add(p, w->v[i]);
}

void
prog_add_set(struct prog *p, const char *name, const char *value)
{
	if (value != NULL)
		prog_add(p, diff_text("%s=%s", name, value));
}

void
prog_add_two(struct prog *p, const char *name, const char *value)
{
	if (value == NULL)
		return;
	prog_add(p, name);
	prog_add(p, value);
}

/* --- running --- */

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};

static volatile sig_atomic_t forked; /* this is not the process that the user started */

static void
on_signal(int sig)
{
	for (size_t i = 0; i < MOST; i++)
		if (running[i] > 0)
			kill(running[i], SIGTERM);
	if (!forked)
		_exit(sig == SIGINT ? 130 : 2);
	/* Status 2 would mean that why was said: the parent sees the signal, and says it. */
	signal(sig, SIG_DFL);
	raise(sig);
}

void
prog_signals(void)
{
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		struct sigaction old, sa = {.sa_handler = on_signal};
		sigemptyset(&sa.sa_mask);
		/* What is ignored stays so, as nohup has it. */
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(ends[i], &sa, NULL);
	}
}

/* fork, with the child noted before a signal can come. */
static pid_t
start(void)
{
	sigset_t all, old;
	sigfillset(&all);
	if (fflush(stdout) != 0)
		cli_die("standard output:");
	sigprocmask(SIG_BLOCK, &all, &old);
	pid_t pid = fork();
	if (pid < 0)
		cli_die("no process can be started:");
	if (pid == 0)
		forked = 1;
	for (size_t i = 0; i < MOST; i++) {
		if (pid == 0) {
			running[i] = 0; /* they are not its own */
		} else if (running[i] == 0) {
			running[i] = pid;
			break;
		}
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* As a shell says it. */
static int
wait_for(pid_t pid)
{
	int st = 0;
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			cli_die("a process cannot be waited for:");
	for (size_t i = 0; i < MOST; i++)
		if (running[i] == pid)
			running[i] = 0;
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static void
new_pipe(int fd[2])
{
	if (pipe2(fd, O_CLOEXEC) < 0)
		cli_die("no pipe can be made:");
}

/* No descriptor that a program of a pipeline is told by its number is this or above: diff_plan.c. */
enum { BEHIND_NUMBERS = 8 };

/* In the child: what is open becomes descriptor `to` of the program. */
static bool
becomes(int fd, int to)
{
	return fd == to ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, to) >= 0;
}

static _Noreturn void
run_child(const struct prog *p, int in, int side, int out)
{
	int null = p->err == RUN_SILENT ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
	bool ok = p->err == RUN_OWN || becomes(p->err == RUN_SILENT ? null : p->err, STDERR_FILENO);
	/* First away from the numbers: one's number may be what another is to become. */
	int high = side < 0 ? -1 : fcntl(side, F_DUPFD_CLOEXEC, BEHIND_NUMBERS);
	int file = p->file < 0 ? -1 : fcntl(p->file, F_DUPFD_CLOEXEC, BEHIND_NUMBERS);
	ok = ok && (in < 0 || becomes(in, STDIN_FILENO)) && becomes(out, STDOUT_FILENO) &&
	     (side < 0 || (high >= 0 && becomes(high, p->side_fd))) &&
	     (p->file < 0 || (file >= 0 && becomes(file, p->file_fd)));
	if (ok)
		execvp(p->argv.v[0], (char *const *)p->argv.v);
	cli_warn("%s: cannot be run:", p->argv.v[0]);
	_exit(127);
}

static void
spawn(struct prog *p, int out)
{
	int in[2] = {p->from, -1}, side[2] = {-1, -1};
	if (p->side != NULL) {
		new_pipe(side);
		spawn(p->side, side[1]);
		close(side[1]);
	}
	if (p->in != NULL) {
		new_pipe(in);
		spawn(p->in, in[1]);
		close(in[1]);
	}
	prog_add(p, NULL);
	p->pid = start();
	if (p->pid == 0)
		run_child(p, in[0], side[0], out);
	if (p->in != NULL)
		close(in[0]);
	if (p->side != NULL)
		close(side[0]);
}

static void
wait_all(struct prog *p)
{
	if (p->side != NULL)
		wait_all(p->side);
	if (p->in != NULL)
		wait_all(p->in);
	p->status = wait_for(p->pid);
}

int
prog_run(struct prog *p, int out)
{
	spawn(p, out);
	wait_all(p);
	return p->status;
}

int
prog_call(int (*fn)(void *arg), void *arg)
{
	pid_t pid = start();
	if (pid > 0)
		return wait_for(pid);
	int status = fn(arg);
	if (fflush(stdout) != 0 || ferror(stdout))
		cli_die("standard output:");
	exit(status);
}

int
prog_memory(void)
{
	int fd = memfd_create("accdiff", MFD_CLOEXEC);
	if (fd < 0)
		cli_die("no file in memory for what programs say:");
	/* What one program writes another opens by its number: without these names "no such file" would be said of it. */
	struct stat st;
	if (stat(diff_text("/dev/fd/%d", fd), &st) < 0 && acc_file_absent(errno))
		cli_die("there is no /dev/fd, by which its programs read from one another: is /proc mounted?");
	return fd;
}

char *
prog_read(int fd)
{
	struct acc_buf b = {0};
	struct acc_err e = {0};
	int64_t n = 1;
	while (n > 0) {
		if (acc_buf_reserve(&b, 65536) < 0)
			cli_nomem();
		n = acc_file_peek(fd, b.p + b.n, 65535, b.n, &e);
		if (n < 0)
			cli_die_err(&e);
		b.n += (size_t)n;
	}
	b.p[b.n] = '\0';
	return (char *)b.p;
}

/* --- printing --- */

static bool
reads_own(const struct prog *p)
{
	return (p->in == NULL && strcmp(p->argv.v[p->argv.n - 1], "-") == 0) ||
	       (p->in != NULL && reads_own(p->in)) || (p->side != NULL && reads_own(p->side));
}

static void
print_tree(const struct prog *p)
{
	if (p->side != NULL) {
		print_tree(p->side);
		fputs(" | { ", stdout);
	}
	if (p->in != NULL) {
		print_tree(p->in);
		fputs(" | ", stdout);
	}
	fputs(p->argv.v[0], stdout);
	if (cli_lang_option() != NULL)
		printf(" --lang=%s", cli_lang_option());
	for (size_t i = 1; i < p->argv.n; i++)
		printf(" %s", diff_quoted(p->argv.v[i]));
	if (p->in == NULL && reads_own(p))
		fputs(" <&9", stdout);
	if (p->side != NULL)
		printf("; } %d<&0", p->side_fd);
}

void
prog_print(const struct prog *p, const struct prog *file_by)
{
	/* What is inside of a pipe has another standard input. */
	const bool own = reads_own(p);
	int fd = -1;
	for (const struct prog *q = p; q != NULL; q = q->in)
		fd = q->file_fd > 0 ? q->file_fd : fd;
	fputs(own ? "{ " : "", stdout);
	if (file_by != NULL) {
		print_tree(file_by);
		fputs(" | { ", stdout);
	}
	print_tree(p);
	if (file_by != NULL)
		printf("; } %d<&0", fd);
	fputs(own ? "; } 9<&0\n" : "\n", stdout);
}
