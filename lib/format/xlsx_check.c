/* Is a spreadsheet whole? libxlsxwriter does not look whether what it puts into temporary files arrives
 * there: on a full disk it leaves sheets that end early, and says nothing. So what it wrote is read
 * once more: each part ends with the tag that it began with, a sheet has all its rows, and each part is named
 * where parts are listed, which it leaves out, too, where memory runs out. */
#include "acc/file.h"
#include "acc/inflate.h"
#include "acc/zip.h"
#include "format/xlsx.h"

#ifdef ACC_HAVE_XLSX

#include <stdlib.h>

enum { CHUNK = 65536, TAIL = 80 };
enum {
	TAG_ROWS,
	TAG_CELLS,
	TAG_OVERRIDES,
	TAG_RELATIONS,
	TAG_SHEETS,
	TAG_COMMENTS,
	TAG_SHAPES,
	TAG_PANES,
	NTAGS
};
static const char *const tags[NTAGS] = {[TAG_ROWS] = "<row ",
	[TAG_CELLS] = "<c r=",
	[TAG_OVERRIDES] = "<Override ",
	[TAG_RELATIONS] = "<Relationship ",
	[TAG_SHEETS] = "<sheet ",
	[TAG_COMMENTS] = "<comment ",
	[TAG_SHAPES] = "<v:shape ",
	[TAG_PANES] = "<selection pane="};

struct scan {
	uint8_t in[CHUNK], out[CHUNK + TAIL];
	char root[64];     /* the first element's name; "" until it is known */
	size_t ntail;      /* the last bytes that were seen */
	uint64_t rows;     /* of this part */
	uint64_t n[NTAGS]; /* of all parts */
};

/* "<?xml ...?>", then "<NAME ". */
static void
find_root(struct scan *s, const char *p, size_t n)
{
	const char *end = p + n, *at = p;
	while (at + 1 < end && (at[0] != '<' || at[1] == '?'))
		at++;
	size_t k = 0;
	for (at++; at < end && k + 1 < sizeof s->root && strchr(" >/\r\n", *at) == NULL; at++)
		s->root[k++] = *at;
	s->root[k] = '\0';
}

/* Tags that end in what is new: of one that began before, too, and none is seen twice. */
static uint64_t
count(const struct scan *s, size_t all, const char *tag)
{
	const size_t len = strlen(tag), from = s->ntail > len - 1 ? s->ntail - (len - 1) : 0;
	const char *p = (const char *)s->out;
	uint64_t n = 0;
	for (const char *at = p + from; (at = memmem(at, (size_t)(p + all - at), tag, len)) != NULL;
		at++)
		n++;
	return n;
}

/* n bytes at out + ntail are new; those before them are the last of what was seen before. */
static void
look(struct scan *s, size_t n)
{
	const size_t all = s->ntail + n;
	const char *p = (const char *)s->out;
	if (s->root[0] == '\0')
		find_root(s, p + s->ntail, n);
	const uint64_t before = s->n[TAG_ROWS];
	for (int i = 0; i < NTAGS; i++)
		s->n[i] += count(s, all, tags[i]);
	s->rows += s->n[TAG_ROWS] - before;
	s->ntail = all < TAIL ? all : TAIL;
	memmove(s->out, p + all - s->ntail, s->ntail);
}

static bool
is_closed(struct scan *s)
{
	char want[80];
	while (s->ntail > 0 && strchr(" \r\n", s->out[s->ntail - 1]) != NULL)
		s->ntail--;
	const size_t n = (size_t)snprintf(want, sizeof want, "</%s>", s->root);
	const char *p = (const char *)s->out + s->ntail;
	return s->root[0] != '\0' &&
	       ((s->ntail >= n && memcmp(p - n, want, n) == 0) ||
		       (s->ntail >= 2 && memcmp(p - 2, "/>", 2) == 0 && s->rows == 0));
}

static int
scan(int fd, const struct acc_zip_member *m, struct scan *s, struct acc_err *e)
{
	struct acc_inflate *z = m->enc == ACC_DEFLATE ? acc_inflate_open(ACC_INFLATE_RAW, e) : NULL;
	int rc = m->enc == ACC_DEFLATE && z == NULL ? ACC_ENOMEM : 0;
	s->root[0] = '\0';
	s->ntail = s->rows = 0;
	for (uint64_t at = 0; rc == 0 && at < m->clen;) {
		const size_t most = m->clen - at < CHUNK ? (size_t)(m->clen - at) : CHUNK;
		rc = acc_file_pread(fd, s->in, most, m->off + at, e);
		for (size_t used = 0; rc == 0 && used < most;) {
			size_t nin = most - used, nout = CHUNK;
			if (z != NULL)
				rc = acc_inflate_run(z, s->in + used, &nin, s->out + s->ntail,
					&nout, e);
			else
				memcpy(s->out + s->ntail, s->in, nout = nin);
			used += nin;
			look(s, nout);
			if (rc == 0 && nin == 0 && nout == 0)
				rc = ACC_EFORMAT;
		}
		at += most;
		rc = rc > 0 ? 0 : rc;
	}
	acc_inflate_close(z);
	return rc;
}

/* Of "xl/worksheets/sheet3.xml" 3; 0: it is none. */
static unsigned
sheet_number(struct acc_str name)
{
	static const char front[] = "xl/worksheets/sheet";
	const size_t n = sizeof front - 1;
	char buf[64];
	if (!acc_str_starts(name, front) || name.n >= sizeof buf)
		return 0;
	memcpy(buf, name.p, name.n);
	buf[name.n] = '\0';
	return (unsigned)strtoul(buf + n, NULL, 10);
}

/* Each part of the archive is something to one other, has its type, and each sheet a name. */
static bool
is_listed(const struct xlsx_book *b, const struct scan *s, const struct acc_zip *z)
{
	uint64_t parts = 0, drawn = 0;
	for (size_t i = 0; i < z->n; i++) {
		const struct acc_str name = z->m[i].name;
		parts += !acc_str_is(name, "[Content_Types].xml") && !acc_str_ends(name, ".rels");
		drawn += acc_str_ends(name, ".vml"); /* the type of all */
	}
	return s->n[TAG_RELATIONS] == parts && s->n[TAG_OVERRIDES] + drawn == parts &&
	       s->n[TAG_SHEETS] == (uint64_t)b->nsheets + 1 &&
	       s->n[TAG_PANES] == (uint64_t)b->nsheets * (b->opt.no_header ? 1 : 3) &&
	       s->n[TAG_COMMENTS] == s->n[TAG_SHAPES] && s->n[TAG_CELLS] == b->cells;
}

int
acc_xlsx_check(const struct xlsx_book *b, struct acc_err *e)
{
	struct acc_file_info info;
	struct acc_arena mem = {0};
	struct acc_zip z = {0};
	struct scan *s = calloc(1, sizeof *s);
	size_t sheets = 0;
	int rc = s == NULL ? acc_nomem(e) : acc_file_stat(b->fd, &info, e);
	if (rc == 0)
		rc = acc_zip_read(b->fd, 0, info.size, &z, &mem, e);
	for (size_t i = 0; rc == 0 && i < z.n; i++) {
		const unsigned number = sheet_number(z.m[i].name);
		rc = scan(b->fd, &z.m[i], s, e);
		bool whole = rc == 0 && is_closed(s);
		/* The first is the findings'. */
		if (whole && number > 1)
			whole = number - 2 < b->nsheets && s->rows == b->sheet[number - 2].filled;
		sheets += number > 1;
		if (rc == 0 && !whole)
			rc = ACC_ETRUNC;
	}
	if (rc == 0 && (sheets != b->nsheets || !is_listed(b, s, &z)))
		rc = ACC_ETRUNC;
	free(s);
	acc_arena_release(&mem);
	if (rc == 0)
		return 0;
	return acc_fail(e, rc,
		"the spreadsheet is not whole: is the disk of temporary files full?");
}

#endif
