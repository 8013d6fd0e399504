#include "replace_run.h"
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t reader; /* accdiff */
static volatile pid_t running;
static volatile sig_atomic_t ended_by;

static int
wait_for(pid_t pid)
{
	int st = 0;
	while (waitpid(pid, &st, 0) < 0)
		if (errno != EINTR)
			cli_die("a process cannot be waited for:");
	return WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

/* --- the pairs --- */

/* accdiff beside this program, where it was called by a path, as accdiff finds its own. */
static const char *
beside(const char *argv0, char path[PATH_MAX])
{
	const char *slash = strrchr(argv0, '/');
	struct stat st;
	if (slash == NULL ||
		snprintf(path, PATH_MAX, "%.*s/accdiff", (int)(slash - argv0), argv0) >= PATH_MAX ||
		stat(path, &st) < 0)
		return "accdiff";
	return path;
}

static int
start_reading(const char *argv0, char *const *operand)
{
	char path[PATH_MAX];
	const char *program = beside(argv0, path);
	int fd[2];
	if (pipe2(fd, O_CLOEXEC) < 0)
		cli_die("no pipe can be made:");
	reader = fork();
	if (reader < 0)
		cli_die("no process can be started:");
	if (reader == 0) {
		if (dup2(fd[1], STDOUT_FILENO) >= 0)
			execlp(program, program, "-f", "stream", "--", operand[0], operand[1],
				(char *)NULL);
		cli_warn("%s: cannot be run:", program);
		_exit(127);
	}
	close(fd[1]);
	return fd[0];
}

/* A folder itself, or where a file lies. */
static void
allow(struct acc_roots *roots, const char *operand)
{
	struct acc_err e = {0};
	struct stat st;
	char *path = realpath(operand, NULL);
	if (path == NULL || stat(path, &st) < 0)
		cli_die("%s:", operand);
	if (!S_ISDIR(st.st_mode))
		*strrchr(path, '/') = '\0';
	if (acc_roots_allow(roots, path[0] == '\0' ? "/" : path, &e) < 0)
		cli_die_err(&e);
	free(path);
}

struct acc_in *
replace_open(const char *argv0, char *const *operand, int n, struct acc_roots *roots,
	const char *const *root, size_t nroot)
{
	struct acc_err e = {0};
	char pipe_name[32];
	char *one[2] = {pipe_name, NULL};
	acc_roots_foreign(roots, true);
	if (acc_roots_allow_all(roots, root, nroot, n == 1 ? operand : one + 1, &e) < 0)
		cli_die_err(&e);
	for (int i = 0; n == 2 && i < n; i++)
		allow(roots, operand[i]);
	if (n == 2)
		snprintf(pipe_name, sizeof pipe_name, "/dev/fd/%d", start_reading(argv0, operand));
	struct acc_in *in = n == 2 ? acc_in_open(one, 1, &e) : acc_in_open(operand, (size_t)n, &e);
	if (in == NULL && n == 2)
		wait_for(reader); /* it has said why */
	if (in == NULL)
		cli_die_err(&e);
	return in;
}

void
replace_wait(void)
{
	const int status = reader == 0 ? 0 : wait_for(reader);
	if (status > 1)
		cli_warn("accdiff ended with status %d: what it could not compare cannot be fed",
			status);
}

static void
add(struct acc_buf *b, const char *s, size_t n)
{
	if (acc_buf_add(b, s, n) < 0)
		cli_nomem();
}

const char *
replace_quoted(struct acc_arena *m, char *const *word, int n)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_./=+:,@%-";
	struct acc_buf b = {0};
	for (int i = 0; i < n; i++) {
		const char *s = word[i];
		const bool as_it_is = s[0] != '\0' && s[strspn(s, plain)] == '\0';
		add(&b, " ", i > 0);
		add(&b, "'", !as_it_is);
		for (; *s != '\0'; s++)
			if (*s == '\'')
				add(&b, "'\\''", 4);
			else
				add(&b, s, 1);
		add(&b, "'", !as_it_is);
	}
	const char *all = acc_arena_copy(m, b.p, b.n);
	if (all == NULL)
		cli_nomem();
	acc_buf_release(&b);
	return all;
}

/* --- the user's command --- */

static void
on_signal(int sig)
{
	ended_by = sig;
	if (running > 0)
		kill(running, SIGTERM);
}

static void
catch_signals(void)
{
	static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
	static bool caught;
	for (size_t i = 0; !caught && i < sizeof ends / sizeof *ends; i++) {
		struct sigaction old, sa = {.sa_handler = on_signal};
		sigemptyset(&sa.sa_mask);
		/* What is ignored stays so, as nohup has it. */
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(ends[i], &sa, NULL);
	}
	caught = true;
}

int
replace_run(const char *command, const char *folder)
{
	sigset_t all, old;
	catch_signals();
	if (setenv("ACC_FEED", folder, 1) < 0)
		cli_nomem();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	const pid_t pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
		const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		/* Standard output is for what this program finds. */
		if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
			dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	running = pid;
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		cli_die("no process can be started:");
	const int status = wait_for(pid);
	running = 0;
	if (ended_by != 0)
		exit(ended_by == SIGINT ? 130 : 2);
	return status;
}
