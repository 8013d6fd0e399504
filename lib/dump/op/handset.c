#include "dump/op/handset.h"

#include <stdlib.h>
#include <unistd.h>

#include "acc/file.h"
#include "dump/folders.h"
#include "io/tar.h"

#define MANIFEST "manifest.csv"
#define MANIFEST_LINES "manifest.jsonl"

bool
acc_handset_takes(struct acc_str name)
{
	return acc_str_ends(name, ".npy") || acc_str_ends(name, ".pt") ||
	       acc_str_ends(name, ".pth");
}

static bool
is_manifest(struct acc_str name)
{
	return acc_str_is(name, MANIFEST) || acc_str_is(name, MANIFEST_LINES);
}

static struct acc_str
last_of(struct acc_str path)
{
	const char *slash = path.n == 0 ? NULL : memrchr(path.p, '/', path.n);
	return slash == NULL ? path
			     : (struct acc_str){slash + 1, path.n - (uint32_t)(slash + 1 - path.p)};
}

/* Keep a file, whose path stays. */
static int
keep(struct handset *s, const struct hand_file *f, struct acc_err *e)
{
	struct acc_str path = acc_str(f->path), last = last_of(path);
	if (is_manifest(last)) {
		const bool lines = acc_str_is(last, MANIFEST_LINES);
		/* The outermost counts; beside each other, the CSV. */
		const size_t folder = path.n - last.n, had = s->manifest_folder;
		if (!s->has_manifest || folder < had || (folder == had && !lines)) {
			s->manifest = *f;
			s->manifest_folder = folder;
			s->manifest_lines = lines;
		}
		s->has_manifest = true;
		return 0;
	}
	/* What begins with a point is hidden; so are macOS's copies of names. */
	if (!acc_handset_takes(last) || last.p[0] == '.' || acc_str_starts(path, "__MACOSX/"))
		return 0;
	if (s->n == HANDSET_FILES)
		return acc_fail(e, ACC_ELIMIT, "more than %d files", HANDSET_FILES);
	if (!ACC_ROOM(s->f, s->cap, s->n + 1, e))
		return ACC_ENOMEM;
	s->f[s->n++] = *f;
	return 0;
}

/* --- folders --- */

static int
list_folder(struct handset *s, struct folders *w, const struct folder *d, int fd, struct acc_err *e)
{
	const char **names;
	int64_t n = acc_dir_list(fd, &names, &s->mem, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct acc_str name = acc_str(names[i]);
		if (acc_handset_takes(name) || is_manifest(name)) {
			struct hand_file f = {.path = names[i]};
			if (d->depth > 0)
				f.path = acc_arena_printf(&s->mem, "%s/%s", d->path + 2, names[i]);
			f.file = f.path;
			rc = f.path == NULL ? acc_nomem(e) : keep(s, &f, e);
		} else if (d->depth < HANDSET_DEPTH && name.p[0] != '.') {
			rc = acc_folders_add(w, d, names[i], NULL, e);
		}
	}
	return rc;
}

int
acc_handset_folder(struct handset *s, int dirfd, struct acc_err *e)
{
	struct folders w = {.root = dirfd, .limit = HANDSET_FILES};
	struct folder d;
	int fd, rc = acc_folders_add(&w, NULL, NULL, NULL, e);
	while (rc == 0 && (rc = acc_folders_next(&w, &d, &fd, e)) > 0) {
		rc = list_folder(s, &w, &d, fd, e);
		close(fd);
	}
	if (rc == 0)
		rc = acc_folders_missed(&w, e);
	acc_folders_release(&w);
	return rc;
}

/* --- archives --- */

/* A path of an archive without what says nothing; NULL, and said, where it leads out. */
static const char *
inner_path(struct handset *s, struct acc_str name)
{
	struct acc_err bad = {0};
	while (acc_str_starts(name, "./"))
		name = (struct acc_str){name.p + 2, name.n - 2};
	char *p = acc_arena_copy(&s->mem, name.p, name.n);
	if (p == NULL)
		return NULL;
	bool out = p[0] == '/' || strlen(p) != name.n;
	for (const char *c = p; c != NULL && !out; c = strchr(c, '/')) {
		c += *c == '/';
		out = strncmp(c, "..", 2) == 0 && (c[2] == '/' || c[2] == '\0');
	}
	if (!out)
		return p;
	acc_fail(&bad, ACC_EREFUSED, "a path that leads out of the archive: %.120s", p);
	acc_err_in(&bad, s->where);
	acc_dump_say(&s->said, s->c, &bad);
	return NULL;
}

/* Take a member; what is wrong with it is said. */
static int
take(struct handset *s, const char *file, const struct acc_zip_member *m, bool crc,
	struct acc_err *e)
{
	struct acc_str last = last_of(m->name);
	if (!acc_handset_takes(last) && !is_manifest(last))
		return 0;
	struct hand_file f = {.path = inner_path(s, m->name),
		.file = file,
		.at = *m,
		.inside = true,
		.crc = crc};
	if (f.path == NULL)
		return s->mem.lost ? acc_nomem(e) : 0;
	return keep(s, &f, e);
}

static int
list_zip(struct handset *s, int fd, const char *file, uint64_t size, struct acc_err *e)
{
	struct acc_zip z = {0};
	int rc = acc_zip_read(fd, 0, size, &z, &s->mem, e);
	for (size_t i = 0; i < z.n && rc == 0; i++)
		rc = take(s, file, &z.m[i], true, e);
	return rc;
}

/* A link in a tar is no file, and what it points to may lie anywhere. */
static void
say_no_file(struct handset *s, const struct acc_tar_member *m)
{
	struct acc_err bad = {0};
	acc_fail_at(&bad, ACC_EUNSUP, m->off, "%.120s is no file, but %s: left out", m->name.p,
		m->type == '1' || m->type == '2' ? "a link" : "of a kind that is not read");
	acc_err_in(&bad, s->where);
	acc_dump_say(&s->said, s->c, &bad);
}

static int
list_tar(struct handset *s, int fd, const char *file, uint64_t size, struct acc_err *e)
{
	struct acc_tar t = {.fd = fd, .size = size};
	struct acc_tar_member m;
	struct acc_err bad = {0};
	int rc;
	while ((rc = acc_tar_next(&t, &m, &s->mem, &bad)) > 0) {
		const struct acc_zip_member at = {.name = m.name,
			.off = m.off,
			.clen = m.len,
			.len = m.len,
			.enc = ACC_STORED};
		if (m.type == '5' || !acc_handset_takes(last_of(m.name)))
			m.type = '0';
		if (m.type != '0')
			say_no_file(s, &m);
		else if ((rc = take(s, file, &at, false, e)) < 0)
			return rc;
	}
	if (rc == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc < 0) { /* what stands before is whole */
		acc_err_in(&bad, s->where);
		acc_dump_say(&s->said, s->c, &bad);
	}
	return 0;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct hand_file *)a)->path, ((const struct hand_file *)b)->path);
}

/* A tar that was written to again has both; nothing tells which is meant. */
static int
refuse_twice(struct handset *s, struct acc_err *e)
{
	if (s->n > 0)
		qsort(s->f, s->n, sizeof *s->f, by_path);
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(s->f[i - 1].path, s->f[i].path) == 0)
			return acc_fail(e, ACC_EFORMAT, "two members are named %.150s",
				s->f[i].path);
	return 0;
}

int
acc_handset_archive(struct handset *s, int fd, const char *file, uint64_t size, struct acc_err *e)
{
	uint8_t head[BUFSIZ];
	int64_t n = acc_file_peek(fd, head, sizeof head, 0, e);
	int rc = n < 0 ? (int)n : 0;
	if (rc == 0 && n >= 2 && memcmp(head, "\x1f\x8b", 2) == 0)
		return acc_fail(e, ACC_EUNSUP, "a compressed tar: unpack it first (tar -xzf)");
	if (rc == 0)
		rc = n >= 2 && memcmp(head, "PK", 2) == 0 ? list_zip(s, fd, file, size, e)
							  : list_tar(s, fd, file, size, e);
	return rc < 0 ? rc : refuse_twice(s, e);
}

void
acc_handset_release(struct handset *s)
{
	acc_dump_say_rest(&s->said, s->c, s->where);
	acc_arena_release(&s->mem);
	free(s->f);
}
