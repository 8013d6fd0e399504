/* A folder of files, read as a dump of the format named, or of what it looks like ("?"), all of it
 * or what is at the path:
 *
 *	FORMAT[ PATH]\n
 *	@@NAME\n        a file in folders; its bytes up to the next such line
 *	@@NAME%\n       a zip with right checksums, that of torch.save or of .npz, whose members are
 *	@@%MEMBER\n     those that follow
 *
 * tests/fuzz/seeds makes such seeds of the fixtures. */
#include "dump.h"
#include "torchzip.h"

#include <errno.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES = 64, DEPTH = 7, MADE = FILES * (DEPTH + 1), NAME = 250 };

/* What was made in the folder, to be removed from the last to the first. */
static char made[MADE][NAME];
static size_t nmade;

static bool
remember(const char *name)
{
	if (nmade == MADE)
		return false;
	snprintf(made[nmade++], NAME, "%s", name);
	return true;
}

static const char *
full(const char *name)
{
	static char path[NAME + 80];
	snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
	return path;
}

static void
empty(void)
{
	while (nmade > 0)
		if (remove(full(made[--nmade])) != 0 && errno != ENOENT)
			abort();
}

/* The folders of a name, each made and remembered once; false: there is no such file. */
static bool
folders(char *name)
{
	for (char *p = name; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(full(name), 0700) == 0) {
			if (!remember(name))
				abort(); /* each file has room for its own */
		} else if (errno != EEXIST) {
			return false;
		}
		*p = '/';
	}
	return true;
}

/* A name that is not deep and stays in its own: nothing empty, and nothing like "..". */
static bool
fit(const uint8_t *p, size_t n, char *out)
{
	unsigned depth = 0;
	if (n == 0 || n >= NAME || memchr(p, '\0', n) != NULL || p[n - 1] == '/')
		return false;
	memcpy(out, p, n);
	out[n] = '\0';
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || out[i - 1] == '/';
		depth += out[i] == '/';
		if (first && (out[i] == '/' || (out[i] == '.' && i + 1 < n && out[i + 1] == '.') ||
				     (out[i] == '.' && (i + 1 == n || out[i + 1] == '/'))))
			return false;
	}
	return depth <= DEPTH;
}

/* One entry: what stands in the line behind "@@", and the bytes below. */
struct entry {
	const uint8_t *name, *p;
	size_t nname, n;
};

static bool
next(const uint8_t **at, const uint8_t *end, struct entry *e)
{
	const uint8_t *p = memmem(*at, (size_t)(end - *at), "@@", 2), *nl;
	if (p == NULL)
		return false;
	nl = memchr(p, '\n', (size_t)(end - p));
	e->name = p + 2;
	e->nname = (size_t)((nl == NULL ? end : nl) - e->name);
	e->p = nl == NULL ? end : nl + 1;
	*at = memmem(e->p, (size_t)(end - e->p), "\n@@", 3);
	*at = *at == NULL ? end : *at;
	e->n = (size_t)(*at - e->p);
	return true;
}

/* The archive that is being written, if its name is not empty. */
struct archive {
	char name[NAME];
	struct acc_buf zip, dir;
	size_t members;
};

static void
finish(struct archive *a)
{
	if (a->name[0] == '\0')
		return;
	fuzz_zip_end(&a->zip, &a->dir, a->members);
	fuzz_file(a->name, a->zip.p, a->zip.n);
	a->name[0] = '\0';
	a->zip.n = a->members = 0;
}

static void
put(const struct entry *e, struct archive *a)
{
	char name[NAME];
	if (e->nname > 0 && e->name[0] == '%') {
		if (a->name[0] != '\0' && fit(e->name + 1, e->nname - 1, name)) {
			fuzz_zip_member(&a->zip, &a->dir, name, e->p, e->n);
			a->members++;
		}
		return;
	}
	finish(a);
	bool opens = e->nname > 1 && e->name[e->nname - 1] == '%';
	if (!fit(e->name, e->nname - opens, name) || !folders(name) ||
		access(full(name), F_OK) == 0 || !remember(name))
		return;
	if (opens)
		memcpy(a->name, name, NAME);
	else
		fuzz_file(name, e->p, e->n);
}

static void
unpack(const uint8_t *at, const uint8_t *end)
{
	struct archive a = {0};
	struct entry e;
	for (int i = 0; i < FILES && next(&at, end, &e); i++)
		put(&e, &a);
	finish(&a);
	acc_buf_release(&a.zip);
	acc_buf_release(&a.dir);
}

/* What a format reads is known; what "?" passes on may be a stream, which says anything. */
static int
emit(void *arg, struct acc_rec *r)
{
	return acc_rec_is(r, "scalar") || acc_rec_is(r, "param") ? 0 : fuzz_emit(arg, r);
}

static int
pass(void *arg, struct acc_rec *r)
{
	(void)arg;
	(void)r;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char head[NAME], path[NAME] = ".";
	struct acc_err e = {0};
	const uint8_t *nl = memchr(data, '\n', size < sizeof head ? size : sizeof head);
	if (nl == NULL)
		return 0;
	memcpy(head, data, (size_t)(nl - data));
	head[nl - data] = '\0';
	char *blank = strchr(head, ' ');
	if (blank != NULL) {
		*blank = '\0';
		if (!fit((uint8_t *)blank + 1, strlen(blank + 1), path))
			return 0;
	}
	bool guess = strcmp(head, "?") == 0, known = guess;
	for (size_t i = 0; i < acc_ndumps; i++)
		known |= strcmp(acc_dumps[i]->name, head) == 0 && strcmp(head, "acc") != 0;
	if (!known)
		return 0;
	unpack(nl, data + size);
	struct fuzz_out out = {.roots = acc_roots_open(NULL)};
	struct acc_dump_ctx *c = acc_dump_open(NULL, guess ? pass : emit, fuzz_trouble, &out, NULL);
	if (c == NULL || out.roots == NULL)
		abort();
	if (acc_dump_read(c, full(path), guess ? NULL : head, &e) != e.code)
		abort(); /* a failure that says nothing */
	acc_dump_close(c);
	acc_roots_close(out.roots);
	empty();
	return 0;
}
