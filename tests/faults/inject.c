/* inject LIB NAME PROG SAMPLE COMMAND: run a shell command with a fault in each of PROG's calls.
 *
 * First the command is run as it is, which gives the right answer, and once to count the calls of
 * each kind; then once for each call and each way in which it can fail, or for about SAMPLE of
 * these calls (0: all). The answer must be the same, or exit status 2 with a line on stderr for each
 * process of that name, and some for what is missing because of it.
 * Prints a line for each violation, and the sums. Exit 1 where there is any. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { SECONDS = 30, HUNG = -1 };

struct text {
	char *p;
	size_t n, cap;
};
struct answer {
	struct text out, err;
	int status; /* as a shell says it */
};
struct way {
	const char *kind, *how;
	int may_refuse; /* else the answer must be right */
};

static const struct way ways[] = {
	{"memory", "12", 1},                                        /* ENOMEM */
	{"read", "5", 1},                                           /* EIO */
	{"read", "4", 0},                                           /* EINTR */
	{"read", "short", 0},                                       /* */
	{"write", "28", 1},                                         /* ENOSPC */
	{"write", "4", 0},                                          /* */
	{"write", "short", 0}, {"map", "12", 1}, {"open", "24", 1}, /* EMFILE */
	{"open", "13", 1},                                          /* EACCES */
	{"read", "116", 1}, {"open", "116", 1}, {"stat", "116", 1}, /* ESTALE, as NFS says it */
	{"stat", "5", 1}, {"stat", "13", 1}, {"close", "5", 1}, {"list", "5", 1},
	{"splice", "5", 1}, {"splice", "4", 0}, {"splice", "22", 0}, /* EINVAL: cannot be spliced */
	{"splice", "short", 0}, {"thread", "11", 0}, /* EAGAIN: fewer threads give the same bits */
};

static void
die(const char *what)
{
	perror(what);
	exit(2);
}

static void
add(struct text *t, const char *p, size_t n)
{
	if (t->n + n + 1 > t->cap) {
		t->cap = (t->n + n + 1) * 2;
		t->p = realloc(t->p, t->cap);
		if (t->p == NULL)
			die("inject");
	}
	memcpy(t->p + t->n, p, n);
	t->n += n;
	t->p[t->n] = '\0';
}

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Both pipes until they are closed; 0, or HUNG. */
static int
drain(int fd[2], struct answer *a)
{
	struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
	double end = now() + SECONDS;
	for (int left = 2; left > 0;) {
		char buf[65536];
		double wait = end - now();
		if (wait <= 0)
			return HUNG;
		poll(p, 2, (int)(wait * 1000) + 1);
		for (int i = 0; i < 2; i++) {
			if (p[i].fd < 0 || p[i].revents == 0)
				continue;
			ssize_t n = read(p[i].fd, buf, sizeof buf);
			if (n > 0)
				add(i == 0 ? &a->out : &a->err, buf, (size_t)n);
			else if (n == 0) {
				p[i].fd = -1;
				left--;
			}
		}
	}
	return 0;
}

static void
run(const char *command, struct answer *a)
{
	int out[2], err[2], st;
	pid_t pid;
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t at;
	char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
	a->out.n = a->err.n = 0;
	add(&a->out, "", 0);
	add(&a->err, "", 0);
	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		die("pipe");
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&fa, out[1], 1);
	posix_spawn_file_actions_adddup2(&fa, err[1], 2);
	posix_spawnattr_init(&at);
	posix_spawnattr_setflags(&at, POSIX_SPAWN_SETPGROUP);
	posix_spawnattr_setpgroup(&at, 0);
	if (posix_spawn(&pid, "/bin/sh", &fa, &at, argv, environ) != 0)
		die("sh");
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&at);
	close(out[1]);
	close(err[1]);
	int fd[2] = {out[0], err[0]};
	int hung = drain(fd, a);
	if (hung)
		kill(-pid, SIGKILL);
	close(out[0]);
	close(err[0]);
	while (waitpid(pid, &st, 0) < 0 && errno == EINTR)
		;
	a->status = hung ? HUNG : WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
}

static int
lines(const struct text *t)
{
	int n = 0;
	for (size_t i = 0; i < t->n; i++)
		n += t->p[i] == '\n';
	return n;
}

static int
same(const struct text *a, const struct text *b)
{
	return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

enum { RIGHT, REFUSED, WRONG };

/* What is wrong, or NULL; *verdict. */
static const char *
judge(const struct answer *want, const struct answer *got, const struct way *w, long processes,
	int *verdict)
{
	int more = lines(&got->err) - lines(&want->err);
	*verdict = WRONG;
	if (got->status == HUNG)
		return "it hangs";
	if (got->status > 2)
		return "it crashes";
	if (got->status == want->status && same(&got->out, &want->out) &&
		(got->status < 2 || same(&got->err, &want->err))) {
		*verdict = RIGHT;
		return NULL;
	}
	if (got->status != 2)
		return got->status == want->status ? "other output, and no word of it"
						   : "another exit status";
	if (!w->may_refuse)
		return "it is refused";
	/* A dump that is trouble by itself may be refused at once, in place of its own troubles. */
	if (more < 1 && (want->err.n == 0 || lines(&got->err) == 0))
		return "refused without a word";
	/* One in each process that met a fault, and some of what is missing because of it. */
	if (more > processes + 10)
		return "too many words";
	*verdict = REFUSED;
	return NULL;
}

/* The most calls of a process; how many processes there were. */
static long
counted(const char *counts, const char *kind, long *processes)
{
	char name[32];
	long n, most = 0;
	FILE *f = fopen(counts, "r");
	*processes = 0;
	while (f != NULL && fscanf(f, "%31s %ld", name, &n) == 2)
		if (strcmp(name, kind) == 0) {
			most = n > most ? n : most;
			++*processes;
		}
	if (f != NULL)
		fclose(f);
	return most;
}

int
main(int argc, char **argv)
{
	struct answer want = {0}, got = {0};
	long sum[3] = {0};
	char fault[64], counts[] = "/tmp/inject-XXXXXX";
	if (argc != 6)
		return 2;
	const char *lib = argv[1], *name = argv[2], *prog = argv[3], *command = argv[5];
	long sample = atol(argv[4]);
	int fd = mkstemp(counts);
	if (fd < 0)
		die("mkstemp");
	close(fd);
	run(command, &want);
	/* One that is used wrongly, or gives nothing, tries nothing. */
	if (want.status == 2 && want.err.p != NULL &&
		(strstr(want.err.p, "usage: ") != NULL || want.out.n == 0)) {
		printf("%s: it does nothing as it is: %s\n", name, want.err.p);
		return 1;
	}
	setenv("LD_PRELOAD", lib, 1);
	setenv("FAULT_PROG", prog, 1);
	setenv("FAULT_COUNTS", counts, 1);
	run(command, &got);
	unsetenv("FAULT_COUNTS");
	if (want.status > 2 || got.status != want.status || !same(&want.out, &got.out)) {
		printf("%s: it does not work as it is: %d, %d: %s\n", name, want.status, got.status,
			want.err.p);
		return 1;
	}
	long calls = 0, any;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		calls += counted(counts, ways[i].kind, &any);
	if (calls == 0) {
		printf("%s: %s makes no call in it\n", name, prog);
		return 1;
	}
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		long processes, n = counted(counts, ways[i].kind, &processes),
				step = sample > 0 && n > sample ? sample : n;
		for (long k = 0; k < step; k++) {
			int verdict;
			/* Those of a sample are spread evenly, and the last is among them. */
			long at = n - k * n / step;
			snprintf(fault, sizeof fault, "%s:%ld:%s", ways[i].kind, at, ways[i].how);
			setenv("FAULT", fault, 1);
			run(command, &got);
			const char *why = judge(&want, &got, &ways[i], processes, &verdict);
			sum[verdict]++;
			if (why != NULL) {
				got.err.p[strcspn(got.err.p, "\n")] = '\0';
				printf("%s: %s (status %d, not %d; %.150s)\n"
				       "\tLD_PRELOAD=%s FAULT_PROG=%s FAULT=%s sh -c '%s'\n",
					name, why, got.status, want.status, got.err.p, lib, prog,
					fault, command);
			}
		}
	}
	unlink(counts);
	printf("%s: %ld injections, %ld right, %ld refused, %ld violations\n", name,
		sum[RIGHT] + sum[REFUSED] + sum[WRONG], sum[RIGHT], sum[REFUSED], sum[WRONG]);
	return sum[WRONG] > 0;
}
