#include "cli.h"
#include "acc/judge.h"
#include "acc/ranks.h"
#include "acc/say.h"
#include "acc/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { MAXOPT = 64, KEY_HELP = 'h', KEY_VERSION = 'V', KEY_LANG = 255 };

static const struct cli *self;
static const char *lang_option;

/* Where 0, 1 or 2 is closed, as cron and daemons leave them, the next file that is opened gets its
 * number: a page is then closed as "standard output", a message goes into a table. So /dev/null
 * takes the number, the wrong way round: reading 0, or writing 1, fails as it does when closed.
 * A constructor, since no program may open anything before. */
__attribute__((constructor)) static void
hold_standard(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
			open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
			/* 2 may be what is closed. */
			fputs("a standard descriptor is closed, and /dev/null cannot be opened\n",
				stderr);
			_exit(2);
		}
}

const char *
cli_prog(void)
{
	return self == NULL ? "acctools" : self->prog;
}

const char *
cli_lang_option(void)
{
	return lang_option;
}

__attribute__((format(printf, 1, 0))) static void
line(const char *fmt, va_list ap)
{
	struct acc_err e = {0};
	acc_fail_v(&e, ACC_EUSAGE, fmt, ap);
	cli_warn_err(&e);
}

void
cli_warn_err(const struct acc_err *e)
{
	fflush(stdout);
	fprintf(stderr, "%s: %s\n", cli_prog(), cli_err(e));
}

const char *
cli_err(const struct acc_err *e)
{
	static char text[1024];
	acc_err_said(e, text, sizeof text);
	return text;
}

void
cli_warn(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	line(fmt, ap);
	va_end(ap);
}

void
cli_die(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	line(fmt, ap);
	va_end(ap);
	exit(2);
}

void
cli_die_err(const struct acc_err *e)
{
	cli_warn_err(e);
	exit(2);
}

void
cli_nomem(void)
{
	cli_die(ACC_NOMEM_TEXT);
}

static _Noreturn void
where_help(void)
{
	fprintf(stderr, acc_tr("usage: %s [option ...] %s\nTry '%s --help'.\n"), self->prog,
		self->synopsis, self->prog);
	exit(2);
}

void
cli_usage(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	line(fmt, ap);
	va_end(ap);
	where_help();
}

static void
help_line(const struct cli_opt *o)
{
	char left[64];
	int n = 0;
	if (o->key < KEY_LANG)
		n = snprintf(left, sizeof left, "-%c", o->key);
	if (o->name != NULL)
		n += snprintf(left + n, sizeof left - (size_t)n, "%s--%s", n > 0 ? ", " : "    ",
			o->name);
	if (o->arg != NULL)
		snprintf(left + n, sizeof left - (size_t)n, "%s%s", o->name != NULL ? "=" : " ",
			o->arg);
	if (strlen(left) > 25)
		printf("  %s\n  %-24s %s\n", left, "", acc_tr(o->help));
	else
		printf("  %-24s %s\n", left, acc_tr(o->help));
}

/* Options without a help of their own, which stand for what the line before says. */
static const struct cli_opt *
help_run(const struct cli_opt *o)
{
	int at = 0;
	for (; o->key != 0 && o->help == NULL; o++) {
		const bool last = o[1].key == 0 || o[1].help != NULL;
		const int n = (int)strlen(o->name) + (last ? 2 : 3);
		if (at == 0 || at + n + 1 > 78)
			at = printf("%s     ", at == 0 ? "" : "\n") - (at > 0);
		at += printf(" --%s%s", o->name, last ? "" : ",");
	}
	putchar('\n');
	return o;
}

static const struct cli_opt common[] = {
	{KEY_LANG, "lang", "LANG", "messages in en or zh (default: the locale's)"},
	{KEY_HELP, "help", NULL, "print this help"},
	{KEY_VERSION, "version", NULL, "print the version"},
	{0, NULL, NULL, NULL},
};

static void
help(void)
{
	printf(acc_tr("usage: %s [option ...] %s\n%s\n\n"), self->prog, self->synopsis,
		acc_tr(self->summary));
	for (const struct cli_opt *o = self->opt; o->key != 0;)
		if (o->help != NULL)
			help_line(o++);
		else
			o = help_run(o);
	for (const struct cli_opt *o = common; o->key != 0; o++)
		help_line(o);
	if (self->notes != NULL)
		printf("\n%s", acc_tr(self->notes));
	cli_printed();
}

static void
tables(char *s, struct option *l)
{
	const struct cli_opt *const table[] = {self->opt, common};
	size_t nl = 0;
	for (int t = 0; t < 2; t++)
		for (const struct cli_opt *o = table[t]; o->key != 0 && nl < MAXOPT; o++) {
			if (o->key < KEY_LANG) {
				*s++ = (char)o->key;
				if (o->arg != NULL)
					*s++ = ':';
			}
			if (o->name != NULL)
				l[nl++] = (struct option){o->name,
					o->arg != NULL ? required_argument : no_argument, NULL,
					o->key};
		}
	*s = '\0';
	l[nl] = (struct option){0};
}

/* Does a locale, or an entry of LANGUAGE, name a language that there is? Then it is used. */
static bool
use(const char *name, size_t n)
{
	char lang[32];
	if (n == 0 || n >= sizeof lang)
		return false;
	memcpy(lang, name, n);
	lang[n] = '\0';
	return acc_lang_use(lang);
}

/* As gettext: the locale is that of LC_ALL, else LC_MESSAGES, else LANG; where it is not C, LANGUAGE
 * is a list that goes before it. What is written is UTF-8, so the locale must be. */
static void
by_locale(void)
{
	static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
	const char *locale = NULL, *list = getenv("LANGUAGE");
	for (size_t i = 0; i < 3 && locale == NULL; i++) {
		const char *v = getenv(names[i]);
		locale = v != NULL && v[0] != '\0' ? v : NULL;
	}
	if (locale == NULL ||
		(strcasestr(locale, "utf-8") == NULL && strcasestr(locale, "utf8") == NULL))
		return;
	for (const char *p = list; p != NULL && *p != '\0'; p += *p == ':') {
		const size_t n = strcspn(p, ":");
		if (use(p, n))
			return;
		p += n;
	}
	use(locale, strlen(locale));
}

void
cli_language(int argc, char **argv)
{
	static bool done;
	const char *lang = getenv("ACC_LANG");
	if (done)
		return;
	done = true;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strncmp(argv[i], "--lang=", 7) == 0)
			lang = argv[i] + 7;
		else if (strcmp(argv[i], "--lang") == 0 && i + 1 < argc)
			lang = argv[++i];
	if (lang == NULL || !acc_lang_use(lang))
		by_locale();
}

/* getopt's own messages are the C library's, which knows Chinese only where a locale is installed. */
static _Noreturn void
wrong_option(char **argv)
{
	char name[3] = {'-', (char)optopt, '\0'};
	const struct cli_opt *known = NULL, *const table[] = {self->opt, common};
	for (int t = 0; t < 2; t++)
		for (const struct cli_opt *o = table[t]; optopt != 0 && o->key != 0; o++)
			known = o->key == optopt ? o : known;
	if (opterr == 0 && known != NULL)
		cli_usage("option '%s' needs an argument, or takes none", argv[optind - 1]);
	if (opterr == 0)
		cli_usage("'%s' is no option, or begins several",
			optopt != 0 ? name : argv[optind - 1]);
	where_help();
}

int
cli_getopt(int argc, char **argv, const struct cli *c)
{
	static char shorts[2 * MAXOPT + 4];
	static struct option longs[MAXOPT + 1];
	static char name[64];
	if (self == NULL) {
		self = c;
		cli_language(argc, argv);
		opterr = strcmp(acc_lang(), "en") == 0;
		tables(shorts, longs);
		/* getopt's own messages begin with argv[0]: name the program, not its path. */
		snprintf(name, sizeof name, "%s", c->prog);
		argv[0] = name;
	}
	int key = getopt_long(argc, argv, shorts, longs, NULL);
	if (key == KEY_LANG && acc_lang_use(optarg)) {
		/* What this program runs speaks the same. */
		lang_option = optarg;
		if (setenv("ACC_LANG", optarg, 1) < 0)
			cli_nomem();
		return cli_getopt(argc, argv, c);
	}
	if (key == KEY_LANG)
		cli_usage("--lang: there is no '%s', but en and zh", optarg);
	if (key == KEY_HELP)
		help();
	if (key == KEY_VERSION) {
		printf("%s (acctools) %s\n", self->prog, ACC_VERSION);
		cli_printed();
	}
	if (key == '?')
		wrong_option(argv);
	return key;
}

int64_t
cli_int(const char *opt, const char *arg, int64_t lo, int64_t hi)
{
	int64_t v;
	if (!acc_str_int(acc_str(arg), &v) || v < lo || v > hi)
		cli_usage("%s: '%s' is not a whole number from %lld to %lld", opt, arg,
			(long long)lo, (long long)hi);
	return v;
}

double
cli_f64(const char *opt, const char *arg)
{
	char *end;
	double v = strtod(arg, &end);
	if (end == arg || *end != '\0')
		cli_usage("%s: '%s' is not a number", opt, arg);
	return v;
}

void
cli_append(const char ***list, size_t *n, const char *s)
{
	size_t cap = *n;
	const char **p = acc_grow(*list, &cap, *n + 1, sizeof *p, NULL);
	if (p == NULL)
		cli_nomem();
	*list = p;
	p[(*n)++] = s;
}

/* A whole number without a sign, that fits; what follows it, or NULL. */
static const char *
whole(const char *p, int64_t *v)
{
	char *end;
	errno = 0;
	*v = isdigit((unsigned char)*p) ? strtoll(p, &end, 10) : -1;
	return *v < 0 || errno == ERANGE ? NULL : end;
}

/* "2" or "2-4", then a comma or the end: where that is, or NULL. */
static const char *
range(const char *p, int64_t *lo, int64_t *hi)
{
	enum { MOST = 1000000 };
	const char *end = whole(p, lo);
	*hi = *lo;
	if (end != NULL && *end == '-')
		end = whole(end + 1, hi);
	return end == NULL || *hi < *lo || *hi - *lo > MOST || (*end != ',' && *end != '\0') ? NULL
											     : end;
}

size_t
cli_ints(const char *opt, const char *arg, int64_t **out)
{
	size_t n = 0, cap = 0;
	const char *p = arg;
	*out = NULL;
	do {
		int64_t lo, hi;
		const char *end = range(p, &lo, &hi);
		if (end == NULL)
			cli_usage("%s: '%s' is not a list such as 0,2-4", opt, arg);
		/* Counted from 0, since hi may be the largest number there is. */
		for (int64_t i = 0; i <= hi - lo; i++) {
			if (!ACC_ROOM(*out, cap, n + 1, NULL))
				cli_nomem();
			int64_t *more = *out;
			more[n++] = lo + i;
		}
		p = end;
	} while (*p++ == ',');
	return n;
}

void
cli_list(const char *arg, const char ***out, size_t *n)
{
	static struct acc_arena kept; /* options live as long as the program */
	char *copy = acc_arena_copy(&kept, arg, strlen(arg));
	if (copy == NULL)
		cli_nomem();
	for (char *save, *s = strtok_r(copy, ",", &save); s != NULL;
		s = strtok_r(NULL, ",", &save)) {
		cli_append(out, n, s);
	}
}

void
cli_text_file(const char *path, struct acc_buf *b)
{
	enum { MAX = 1 << 20 };
	FILE *f = fopen(path, "r");
	size_t got = 1;
	if (f == NULL)
		cli_die("%s:", path);
	while (got > 0 && b->n <= MAX) {
		if (acc_buf_reserve(b, 65536) < 0)
			cli_nomem();
		got = fread(b->p + b->n, 1, 65536, f);
		b->n += got;
	}
	if (ferror(f))
		cli_die("%s: cannot be read:", path);
	if (b->n > MAX)
		cli_die("%s: larger than 1 MiB", path);
	fclose(f);
}

_Noreturn void
cli_printed(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		cli_die("standard output:");
	exit(0);
}

const char *
cli_tmpdir(void)
{
	const char *dir = getenv("TMPDIR");
	return dir != NULL && dir[0] != '\0' ? dir : "/tmp";
}

void
cli_terminal(struct acc_format_opt *opt)
{
	struct winsize ws;
	const char *plain = getenv("NO_COLOR");
	if (!isatty(STDOUT_FILENO))
		return;
	opt->color = plain == NULL || plain[0] == '\0';
	opt->width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
}

void
cli_item(const char *name, int width, const char *text)
{
	struct acc_format_opt opt = {0};
	cli_terminal(&opt);
	int at = printf("%-*s ", width, name);
	acc_text_wrap(stdout, acc_str(acc_tr(text)), (size_t)opt.width, (size_t)at,
		(size_t)width + 1);
	putchar('\n');
}
