#include "fmt_files.h"
#include "cli.h"
#include "acc/file.h"

#include "acc/say.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 8 };

static struct file {
	const struct acc_format *format;
	const char *path;
	char *place;  /* where it shall be, links followed; NULL: no regular file, as it is */
	char *beside; /* what is written until then; NULL: nothing is */
	FILE *out;
	void *state;
} file[MOST];
static size_t nfiles;

void
files_add(const struct acc_format *f, const char *path)
{
	if (nfiles == MOST)
		cli_usage("no more than %d files at once", MOST);
	file[nfiles++] = (struct file){.format = f, .path = path};
}

bool
files_any(void)
{
	return nfiles > 0;
}

static void
drop(void)
{
	for (size_t i = 0; i < nfiles; i++)
		if (file[i].beside != NULL)
			unlink(file[i].beside);
}

static void
interrupted(int sig)
{
	drop();
	signal(sig, SIG_DFL);
	raise(sig);
}

/* libxlsxwriter does not look at all of its memory: where there is none it crashes. */
static char crash[256];
static volatile sig_atomic_t errors = STDERR_FILENO; /* where it is said */

static void
crashed(int sig)
{
	(void)sig;
	drop();
	if (write((int)errors, crash, strlen(crash)) < 0)
		_exit(2);
	_exit(2);
}

void
files_guard(const struct acc_format *f)
{
	bool foreign = strcmp(f->name, "xlsx") == 0;
	for (size_t i = 0; i < nfiles; i++)
		foreign = foreign || strcmp(file[i].format->name, "xlsx") == 0;
	if (!foreign)
		return;
	snprintf(crash, sizeof crash, "accfmt: %s\n",
		acc_tr("the library that writes spreadsheets has crashed: is there too little memory?"));
	signal(SIGSEGV, crashed);
	signal(SIGBUS, crashed);
	signal(SIGABRT, crashed);
}

static _Noreturn void
die(struct file *f, struct acc_err *e)
{
	acc_err_in(e, f->path);
	cli_die_err(e);
}

/* A new file in the folder of the old, with the rights that any new file has. */
static void
open_beside(struct file *f)
{
	const size_t n = strlen(f->place);
	char *name = malloc(n + 8);
	if (name == NULL)
		cli_nomem();
	memcpy(name, f->place, n);
	memcpy(name + n, ".XXXXXX", 8);
	int fd = mkstemp(name);
	if (fd < 0)
		cli_die("%s: cannot create:", f->path);
	f->beside = name;
	const mode_t mask = umask(0);
	umask(mask);
	f->out = fchmod(fd, 0666 & ~mask) == 0 ? fdopen(fd, "wb") : NULL;
	if (f->out == NULL)
		cli_die("%s: cannot create:", f->path);
}

static void
open_one(struct file *f)
{
	struct stat st;
	const bool there = stat(f->path, &st) == 0;
	if (there && S_ISDIR(st.st_mode))
		cli_die("%s: is a folder", f->path);
	if (there && !S_ISREG(st.st_mode)) {
		f->out = fopen(f->path, "wb");
		if (f->out == NULL)
			cli_die("%s: cannot open:", f->path);
		return;
	}
	f->place = there ? realpath(f->path, NULL) : strdup(f->path);
	if (f->place == NULL)
		cli_die("%s: cannot open:", f->path);
	open_beside(f);
}

void
files_begin(const struct acc_format_opt *opt)
{
	static const int sigs[] = {SIGHUP, SIGINT, SIGPIPE, SIGTERM};
	struct acc_format_opt own = *opt;
	own.color = false;
	own.width = 0;
	if (nfiles == 0)
		return;
	if (atexit(drop) != 0)
		cli_nomem();
	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++)
		if (signal(sigs[i], interrupted) == SIG_IGN)
			signal(sigs[i], SIG_IGN);
	for (size_t i = 0; i < nfiles; i++) {
		struct acc_err e = {0};
		open_one(&file[i]);
		if (acc_format_open(file[i].format, &file[i].state, file[i].out, &own, &e) < 0)
			die(&file[i], &e);
	}
}

void
files_put(const struct acc_rec *r)
{
	for (size_t i = 0; i < nfiles; i++) {
		struct acc_err e = {0};
		if (cli_show(file[i].format, file[i].state, r, &e) < 0)
			die(&file[i], &e);
	}
}

/* Does it tell there of memory that it did not get? It goes on without, and returns nothing of it. */
static bool
lacked(int fd)
{
	char text[4096];
	struct acc_err e = {0};
	int64_t n = acc_file_peek(fd, text, sizeof text - 1, 0, &e);
	text[n > 0 ? n : 0] = '\0';
	return n < 0 || strstr(text, "Memory allocation failed") != NULL;
}

/* What stands on the program's standard error is its own: the library behind spreadsheets writes there,
 * too, in words of its own. */
static int
end_foreign(const struct acc_format *f, void *state, int status, struct acc_err *e)
{
	fflush(stderr);
	const int aside = acc_file_temp(cli_tmpdir(), e);
	const int kept = aside < 0 ? -1 : dup(STDERR_FILENO);
	if (aside >= 0 && kept < 0) {
		acc_fail(e, ACC_EIO, "cannot write the spreadsheet:");
		close(aside);
	}
	if (kept < 0)
		return ACC_EIO;
	errors = kept;
	dup2(aside, STDERR_FILENO);
	int rc = acc_format_end(f, state, status, e);
	dup2(kept, STDERR_FILENO);
	errors = STDERR_FILENO;
	rc = rc == 0 && lacked(aside) ? acc_nomem(e) : rc;
	close(kept);
	close(aside);
	return rc;
}

int
files_end_one(const struct acc_format *f, void *state, int status, struct acc_err *e)
{
	return strcmp(f->name, "xlsx") == 0 ? end_foreign(f, state, status, e)
					    : acc_format_end(f, state, status, e);
}

static void
close_one(struct file *f, int status)
{
	struct acc_err e = {0};
	if (files_end_one(f->format, f->state, status, &e) < 0)
		die(f, &e);
	acc_format_close(f->format, f->state);
	if (fflush(f->out) != 0 || ferror(f->out))
		cli_die("%s: cannot write:", f->path);
	if (fclose(f->out) != 0)
		cli_die("%s: cannot write:", f->path);
}

void
files_end(int status)
{
	for (size_t i = 0; i < nfiles; i++)
		close_one(&file[i], status);
	for (size_t i = 0; i < nfiles; i++) {
		if (file[i].beside == NULL)
			continue;
		if (rename(file[i].beside, file[i].place) != 0)
			cli_die("%s: cannot write:", file[i].path);
		free(file[i].beside);
		file[i].beside = NULL;
		free(file[i].place);
	}
	nfiles = 0;
}
