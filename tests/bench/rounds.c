/* Runs commands in turn, several rounds of them, and says how long each took.
 *
 *	rounds [-n ROUNDS] [-b COMMAND] [-x] COMMAND ...
 *
 * One line a command, tab-separated: seconds (median); seconds as a multiple of the first
 * command's of the same round (median of these ratios, so that whatever else the machine does
 * bears on both); CPU seconds (median); peak memory of any of its processes in MB (largest).
 * COMMAND is for /bin/sh; -x: a program and its arguments, run without a shell. -b: run before
 * each, and not timed. Status 2 of a command is trouble and ends all.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAXCMD = 64, MAXROUND = 101, MAXARG = 16 };

struct result {
	double s[MAXROUND], ratio[MAXROUND], cpu[MAXROUND], mb;
};

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
seconds(struct timeval t)
{
	return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

static void
start(const char *cmd, int plain)
{
	char copy[4096], *arg[MAXARG + 1] = {NULL};
	if (!plain) {
		execl("/bin/sh", "sh", "-c", cmd, (char *)NULL);
		_exit(127);
	}
	snprintf(copy, sizeof copy, "%s", cmd);
	int n = 0;
	for (char *p = strtok(copy, " "); p != NULL && n < MAXARG; p = strtok(NULL, " "))
		arg[n++] = p;
	if (freopen("/dev/null", "w", stdout) != NULL)
		execv(arg[0], arg);
	_exit(127);
}

static double
run(const char *cmd, int plain, double *cpu, double *mb)
{
	struct rusage ru;
	int st;
	double begin = now();
	/* vfork: the child takes nothing of this process with it, and starts at once. */
	pid_t pid = plain ? vfork() : fork();
	if (pid == 0)
		start(cmd, plain);
	if (pid < 0 || wait4(pid, &st, 0, &ru) < 0) {
		perror(cmd);
		exit(2);
	}
	double s = now() - begin;
	if (!WIFEXITED(st) || WEXITSTATUS(st) >= 2) {
		fprintf(stderr, "rounds: failed: %s\n", cmd);
		exit(2);
	}
	*cpu = seconds(ru.ru_utime) + seconds(ru.ru_stime);
	*mb = (double)ru.ru_maxrss / 1024; /* of the largest, of all that were waited for */
	return s;
}

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double
median(double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

int
main(int argc, char **argv)
{
	static struct result result[MAXCMD];
	const char *before = NULL;
	int rounds = 5, plain = 0;
	for (int c; (c = getopt(argc, argv, "n:b:x")) != -1;) {
		if (c == 'n')
			rounds = atoi(optarg);
		else if (c == 'b')
			before = optarg;
		else
			plain = c == 'x';
	}
	int n = argc - optind;
	if (n < 1 || n > MAXCMD || rounds < 1 || rounds > MAXROUND) {
		fputs("usage: rounds [-n ROUNDS] [-b COMMAND] [-x] COMMAND ...\n", stderr);
		return 2;
	}
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < n; i++) {
			struct result *x = &result[i];
			double mb, unused;
			if (before != NULL)
				run(before, 0, &unused, &unused);
			x->s[r] = run(argv[optind + i], plain, &x->cpu[r], &mb);
			x->ratio[r] = x->s[r] / result[0].s[r];
			x->mb = mb > x->mb ? mb : x->mb;
		}
	for (int i = 0; i < n; i++)
		printf("%.6f\t%.3f\t%.6f\t%.1f\n", median(result[i].s, rounds),
			median(result[i].ratio, rounds), median(result[i].cpu, rounds),
			result[i].mb);
	return 0;
}
