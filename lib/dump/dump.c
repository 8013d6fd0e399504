#include "acc/dump.h"

#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/ctx.h"
#include "dump/curve/log.h"
#include "dump/foreign.h"
#include "dump/recognise.h"
#include "io/parse.h"

#define ROW(name) extern const struct acc_dump acc_dump_##name;
#include "dump/table.h"
#undef ROW

const struct acc_dump *const acc_dumps[] = {
#define ROW(name) &acc_dump_##name,
#include "dump/table.h"
#undef ROW
};
const size_t acc_ndumps = sizeof acc_dumps / sizeof *acc_dumps;

static const struct acc_dump *
by_name(const char *name, struct acc_err *e)
{
	for (size_t i = 0; i < acc_ndumps; i++)
		if (strcmp(acc_dumps[i]->name, name) == 0)
			return acc_dumps[i];
	acc_fail(e, ACC_EUSAGE,
		"there is no dump format '%.60s'; accdump-read --list"
		" shows them",
		name);
	return NULL;
}

/* A format that could not look, and would have been surer than the surest, is a failure. */
static int
ask(struct acc_probe *p, const char *but, bool search, const struct acc_dump **best,
	struct acc_err *e)
{
	struct acc_err why = {0}, one;
	int most = 0, failed = 0;
	for (size_t i = 0; i < acc_ndumps; i++) {
		const struct acc_dump *d = acc_dumps[i];
		if (but != NULL && strcmp(d->name, but) == 0)
			continue;
		one = (struct acc_err){0};
		p->e = &one;
		int sure = !search ? d->probe(p) : d->search != NULL ? d->search(p) : 0;
		if (sure > most) {
			*best = d;
			most = sure;
		} else if (sure < failed) {
			why = one;
			failed = sure;
		}
	}
	p->e = NULL;
	return most < -failed ? acc_fail(e, why.code, "%s", why.msg) : 0;
}

/* MindSpore's Dump writes this at its start, and in a folder of each rank. */
static bool
has_metadata(int dirfd)
{
	static const char *const at[] = {".dump_metadata", "rank_0/.dump_metadata"};
	for (size_t i = 0; i < sizeof at / sizeof *at; i++)
		if (acc_dir_has(dirfd, at[i], NULL) > 0)
			return true;
	return false;
}

/* A pattern for a log, tried on more of it than its first bytes. */
static bool
propose(const struct acc_probe *p, struct log_proposal *log)
{
	enum { TRIED = 1 << 18 };
	struct acc_err e = {0};
	bool big, good = false;
	uint8_t *b = acc_utf16_starts(p->head, p->nhead, &big) ? NULL : malloc(TRIED);
	int fd = b == NULL ? -1 : open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int64_t n = fd < 0 ? 0 : acc_file_peek(fd, b, TRIED, 0, &e);
	if (n > 0)
		good = acc_log_propose(b, (size_t)n, log);
	else
		good = acc_log_propose(p->head, p->nhead, log);
	if (fd >= 0)
		close(fd);
	free(b);
	return good;
}

/* What is text may be a log of a program that nobody here knows. */
static int
unknown(const struct acc_probe *p, struct acc_err *e)
{
	struct log_proposal log;
	const struct foreign *f = acc_foreign(p->head, p->nhead);
	if (p->is_dir && acc_dir_has_end(p->dirfd, "", NULL) == 0)
		return acc_fail(e, ACC_EFORMAT, "an empty folder");
	if (p->is_dir && has_metadata(p->dirfd))
		return acc_fail(e, ACC_EFORMAT,
			"a dump of MindSpore without a tensor: in PyNative it writes none on a CPU, nor where no kernel is"
			" chosen; run in GRAPH_MODE, or record by msprobe");
	if (p->is_dir && acc_dir_has_end(p->dirfd, ".npz", NULL) > 0)
		return acc_fail(e, ACC_EFORMAT,
			"unrecognised format: a folder of .npz is not read as one: give one of its files, such as"
			" FOLDER/step_0.npz, on each side");
	if (p->nhead == 0 && !p->is_dir)
		return acc_fail(e, ACC_ETRUNC, "empty: an earlier command failed?");
	if (f != NULL && f->advice != NULL)
		return acc_fail(e, ACC_EFORMAT, "%s is not read: %s", f->what, f->advice);
	if (f != NULL)
		return acc_fail(e, ACC_EFORMAT, "%s is not read", f->what);
	if (p->nhead == 0 || memchr(p->head, '\0', p->nhead) != NULL)
		return acc_fail(e, ACC_EFORMAT, "unrecognised format (see accdump-read --list)");
	if (acc_foreign_results(p->base))
		return acc_fail(e, ACC_EFORMAT, "no configuration, but results of the whole run");
	if (acc_foreign_stacks(p->base, p->head, p->nhead))
		return acc_fail(e, ACC_EFORMAT,
			"a recorder's stacks alone: give the folder of the dump that they belong to");
	if (!propose(p, &log))
		return acc_fail(e, ACC_EFORMAT,
			"unrecognised format (see accdump-read --list); --regex reads a log of any program");
	return acc_fail(e, ACC_EFORMAT,
		"unrecognised format (see accdump-read --list); as a log, --regex '%s' reads %u steps of"
		" its beginning, loss %.6g to %.6g",
		log.pattern, log.lines, log.first, log.last);
}

static int
surest(struct acc_probe *p, const char *but, const struct acc_dump **best, struct acc_err *e)
{
	int rc = ask(p, but, false, best, e);
	if (rc == 0 && *best == NULL)
		rc = ask(p, but, true, best, e);
	if (rc == 0 && *best == NULL)
		rc = unknown(p, e);
	return rc;
}

/* The head of a text in UTF-16, as its readers see it. */
static size_t
narrow(uint8_t *head, size_t n, bool big)
{
	uint8_t part[2 * 64], out[3 * 64];
	size_t at = 0, end = 0, len, used;
	while (at + 1 < n) {
		size_t k = n - at < sizeof part ? n - at : sizeof part;
		memcpy(part, head + at, k);
		used = acc_utf16(part, k, big, false, out, &len);
		/* What is written does not overtake what is read, of text that is mostly ASCII. */
		if (used == 0 || end + len > at + used)
			break;
		memcpy(head + end, out, len);
		at += used;
		end += len;
	}
	return end;
}

/* Fill *p for a path; its dirfd is to be closed. */
static int
look(const char *path, struct acc_probe *p, uint8_t *head, size_t nhead, struct acc_err *e)
{
	struct stat st;
	char copy[PATH_MAX];
	if (strlen(path) >= sizeof copy)
		return acc_fail(e, ACC_ELIMIT, "the path is too long");
	if (stat(path, &st) < 0)
		return acc_fail(e, ACC_EIO, "cannot open:");
	p->path = path;
	p->is_dir = S_ISDIR(st.st_mode);
	const char *slash = strrchr(path, '/');
	p->base = acc_str(slash == NULL || slash[1] == '\0' ? path : slash + 1);
	strcpy(copy, path);
	p->dirfd = acc_dir_open(p->is_dir ? path : dirname(copy), e);
	if (p->dirfd < 0 || p->is_dir)
		return p->dirfd < 0 ? p->dirfd : 0;
	if (!S_ISREG(st.st_mode))
		return 0; /* a FIFO: reading its head would eat it */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int64_t n = fd < 0 ? acc_fail(e, ACC_EIO, "cannot open:")
			   : acc_file_peek(fd, head, nhead, 0, e);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		return (int)n;
	p->head = head;
	p->nhead = (size_t)n;
	bool big;
	if (acc_utf16_starts(head, p->nhead, &big))
		p->nhead = narrow(head, p->nhead, big);
	return 0;
}

const struct acc_dump *
acc_dump_probe_but(const char *path, const char *but, uint8_t *head, size_t *nhead,
	struct acc_err *e)
{
	const struct acc_dump *d = NULL;
	struct acc_probe p = {.dirfd = -1};
	int rc = look(path, &p, head, DUMP_HEAD, e);
	if (rc == 0 && !p.is_dir && p.head == NULL)
		rc = acc_fail(e, ACC_EUSAGE, "neither a file nor a folder");
	if (rc == 0)
		rc = surest(&p, but, &d, e);
	if (p.dirfd >= 0)
		close(p.dirfd);
	*nhead = p.nhead;
	acc_err_in(e, path);
	return rc < 0 ? NULL : d;
}

const struct acc_dump *
acc_dump_probe(const char *path, struct acc_err *e)
{
	uint8_t head[DUMP_HEAD];
	size_t n;
	return acc_dump_probe_but(path, NULL, head, &n, e);
}

int
acc_dump_read(struct acc_dump_ctx *c, const char *path, const char *format, struct acc_err *e)
{
	const struct acc_dump *d = NULL;
	struct acc_probe p = {.dirfd = -1};
	uint8_t head[DUMP_HEAD];
	int rc = 0;
	bool std = strcmp(path, "-") == 0;
	if (c->pattern != NULL && format != NULL && strcmp(format, "log") != 0)
		return acc_fail(e, ACC_EUSAGE,
			"--regex applies to logs only, not to format '%.60s'", format);
	if (c->pattern != NULL)
		format = "log";
	if (c->names != NULL && format != NULL && strcmp(format, "hand") != 0)
		return acc_fail(e, ACC_EUSAGE,
			"a pattern for names is for recordings by hand, not for %.60s", format);
	if (c->names != NULL)
		format = "hand";
	if (!std)
		rc = look(path, &p, head, sizeof head, e);
	if (rc == 0 && format == NULL && !std && !p.is_dir && p.head == NULL)
		format = "acc"; /* a pipe */
	if (rc == 0 && (format != NULL || std)) {
		d = by_name(format != NULL ? format : "acc", e);
		rc = d == NULL ? ACC_EUSAGE : 0;
	} else if (rc == 0) {
		rc = surest(&p, NULL, &d, e);
	}
	if (p.dirfd >= 0)
		close(p.dirfd);
	if (rc == 0 && c->follow && d != &acc_dump_record)
		rc = acc_fail(e, ACC_EUSAGE,
			"only a folder that libaccrec or accrecord records can be followed");
	if (rc == 0)
		rc = d->read(c, path, e);
	if (rc < 0)
		acc_err_in(e, std ? "standard input" : path);
	return rc;
}

int
acc_dump_pattern(struct acc_dump_ctx *c, const char *pattern, struct acc_err *e)
{
	c->pattern = acc_regex_open(pattern, e);
	return c->pattern != NULL ? 0 : e != NULL ? e->code : ACC_EUSAGE;
}

int
acc_dump_names(struct acc_dump_ctx *c, const char *pattern, struct acc_err *e)
{
	static const char *const numbered[] = {"op", "io", "pos", NULL};
	c->names = acc_regex_open_names(pattern, numbered, e);
	return c->names != NULL ? 0 : e != NULL ? e->code : ACC_EUSAGE;
}

struct acc_dump_ctx *
acc_dump_open(const struct acc_select *sel, acc_emit_fn *emit, acc_trouble_fn *trouble, void *arg,
	struct acc_err *e)
{
	struct acc_dump_ctx *c = calloc(1, sizeof *c);
	if (c == NULL) {
		acc_nomem(e);
		return NULL;
	}
	if (sel != NULL)
		c->sel = *sel;
	sel = &c->sel;
	c->selective = sel->nops + sel->nkinds + sel->nios + sel->npasses + sel->nsteps +
				       sel->nranks >
			       0 ||
		       sel->from != NULL || sel->to != NULL;
	c->emit = emit;
	c->trouble = trouble;
	c->arg = arg;
	if (gethostname(c->host, sizeof c->host - 1) < 0)
		strcpy(c->host, "localhost");
	if (acc_dump_src_at(c, acc_str("")) == NULL) {
		acc_nomem(e);
		acc_dump_close(c);
		return NULL;
	}
	return c;
}

void
acc_dump_close(struct acc_dump_ctx *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->nsrc; i++)
		acc_rec_release(&c->src[i].rec);
	for (size_t i = 0; i < c->npending; i++)
		if (c->pending[i] != NULL) {
			acc_rec_release(c->pending[i]);
			free(c->pending[i]);
		}
	free(c->pending);
	free(c->src);
	free(c->log);
	acc_regex_close(c->pattern);
	acc_regex_close(c->names);
	acc_rec_release(&c->rec);
	acc_map_release(&c->src_at);
	acc_map_release(&c->stacks);
	acc_map_release(&c->passed);
	acc_map_release(&c->told);
	acc_arena_release(&c->mem);
	free(c);
}
