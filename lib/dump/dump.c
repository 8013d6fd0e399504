#include "acc/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/ctx.h"

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

static const struct acc_dump *
ask(const struct acc_probe *p, bool search)
{
	const struct acc_dump *best = NULL;
	int most = 0;
	for (size_t i = 0; i < acc_ndumps; i++) {
		const struct acc_dump *d = acc_dumps[i];
		int sure = !search ? d->probe(p) : d->search != NULL ? d->search(p) : 0;
		if (sure > most) {
			best = d;
			most = sure;
		}
	}
	return best;
}

static const struct acc_dump *
surest(const struct acc_probe *p, struct acc_err *e)
{
	const struct acc_dump *best = ask(p, false);
	if (best == NULL)
		best = ask(p, true);
	if (best != NULL)
		return best;
	acc_fail(e, ACC_EFORMAT, "no dump: nothing of what accdump-read --list shows");
	return NULL;
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
	ssize_t n = fd < 0 ? -1 : pread(fd, head, nhead, 0);
	int saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	if (n < 0)
		return acc_fail(e, ACC_EIO, "cannot read:");
	p->head = head;
	p->nhead = (size_t)n;
	return 0;
}

int
acc_dump_read(struct acc_dump_ctx *c, const char *path, const char *format, struct acc_err *e)
{
	const struct acc_dump *d = NULL;
	struct acc_probe p = {.dirfd = -1};
	uint8_t head[4096];
	int rc = 0;
	bool std = strcmp(path, "-") == 0;
	if (c->pattern != NULL && format != NULL && strcmp(format, "log") != 0)
		return acc_fail(e, ACC_EUSAGE, "a pattern is for logs, not for %.60s", format);
	if (c->pattern != NULL)
		format = "log";
	if (!std)
		rc = look(path, &p, head, sizeof head, e);
	if (rc == 0 && format == NULL && !std && !p.is_dir && p.head == NULL)
		format = "acc"; /* a pipe */
	if (rc == 0)
		d = format != NULL || std ? by_name(format != NULL ? format : "acc", e)
					  : surest(&p, e);
	if (p.dirfd >= 0)
		close(p.dirfd);
	if (d != NULL)
		rc = d->read(c, path, e);
	else if (rc == 0)
		rc = e != NULL ? e->code : ACC_EFORMAT;
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
	acc_rec_release(&c->rec);
	acc_map_release(&c->src_at);
	acc_map_release(&c->stacks);
	acc_map_release(&c->passed);
	acc_arena_release(&c->mem);
	free(c);
}

uint64_t
acc_dump_count(const struct acc_dump_ctx *c)
{
	return c->count;
}

void
acc_dump_note(struct acc_dump_ctx *c, const char *where, const char *fmt, ...)
{
	struct acc_err e = {.code = ACC_ENOTE};
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e.msg, sizeof e.msg, fmt, ap);
	va_end(ap);
	acc_err_in(&e, where);
	c->trouble(c->arg, &e);
}

void
acc_dump_trouble(struct acc_dump_ctx *c, struct acc_err *e)
{
	c->trouble(c->arg, e);
	*e = (struct acc_err){0};
}
