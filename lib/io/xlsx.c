#include "io/xlsx.h"

#include <stdlib.h>

#include "acc/file.h"
#include "acc/inflate.h"
#include "acc/zip.h"
#include "io/crc.h"
#include "io/expat.h"

#ifdef ACC_HAVE_EXPAT

/* Excel's own limits: 16,384 columns, 32,767 characters a cell. */
enum { COLUMNS = 16384, TEXT = 32767 * 4, STRINGS = 256 << 20, PIECE = 1 << 16 };

struct sheet {
	const struct acc_expat *lib;
	XML_Parser x;
	acc_xlsx_fn *fn;
	void *arg;
	struct acc_err *e;
	int rc;
	/* of strings: where each ends in text */
	struct acc_buf text, ends;
	/* of the row */
	struct acc_buf cells;  /* the texts, one after another */
	struct acc_buf places; /* struct place */
	struct acc_buf row;    /* struct acc_str */
	struct acc_buf word;   /* what stands in an element */
	uint64_t number;       /* of the row, from 1 */
	size_t column;         /* of the cell */
	char type; /* s: in the table, b: boolean, i: the text itself; 0: as it stands */
	bool takes, phonetic;
};

struct cell {
	uint32_t column, n;
	size_t at;
};

static void
stop(struct sheet *s, int rc)
{
	s->rc = rc;
	s->lib->XML_StopParser(s->x, XML_FALSE);
}

static void
limit(struct sheet *s, const char *what)
{
	stop(s, acc_fail(s->e, ACC_ELIMIT, "row %llu: %s", (unsigned long long)s->number, what));
}

/* An element's name without its namespace's prefix. */
static bool
is(const char *name, const char *what)
{
	const char *colon = strrchr(name, ':');
	return strcmp(colon == NULL ? name : colon + 1, what) == 0;
}

static const char *
attribute(const char **a, const char *name)
{
	for (; *a != NULL; a += 2)
		if (strcmp(a[0], name) == 0)
			return a[1];
	return NULL;
}

/* "AB12": 28; 0 where it is none. */
static size_t
column_of(const char *r)
{
	size_t n = 0;
	for (; r != NULL && *r >= 'A' && *r <= 'Z' && n <= COLUMNS; r++)
		n = n * 26 + (size_t)(*r - 'A') + 1;
	return n;
}

static void
doctype(void *arg, const char *name, const char *sysid, const char *pubid, int internal)
{
	struct sheet *s = arg;
	(void)name;
	(void)sysid;
	(void)pubid;
	(void)internal;
	stop(s, acc_fail(s->e, ACC_EREFUSED, "refused: a document type in a spreadsheet"));
}

static void
characters(void *arg, const char *p, int n)
{
	struct sheet *s = arg;
	if (!s->takes || s->phonetic || s->rc != 0)
		return;
	if (s->word.n + (size_t)n > TEXT)
		limit(s, "a text of more than 32,767 characters");
	else if (acc_buf_add(&s->word, p, (size_t)n) < 0)
		stop(s, acc_nomem(s->e));
}

/* --- the table of strings: <si><t>text</t></si>, or in pieces, <si><r><t>.. --- */

static void
string_starts(void *arg, const char *name, const char **a)
{
	struct sheet *s = arg;
	(void)a;
	if (is(name, "si"))
		s->word.n = 0;
	s->phonetic = s->phonetic || is(name, "rPh");
	s->takes = is(name, "t");
}

static void
string_ends(void *arg, const char *name)
{
	struct sheet *s = arg;
	s->takes = false;
	if (is(name, "rPh"))
		s->phonetic = false;
	if (!is(name, "si") || s->rc != 0)
		return;
	if (s->text.n + s->word.n > STRINGS)
		limit(s, "more than 256 MiB of texts");
	else if (acc_buf_add(&s->text, s->word.p, s->word.n) < 0 ||
		 acc_buf_add(&s->ends, &s->text.n, sizeof s->text.n) < 0)
		stop(s, acc_nomem(s->e));
}

/* --- the sheet: <row r="1"><c r="A1" t="s"><v>0</v></c> --- */

static void
cell_starts(void *arg, const char *name, const char **a)
{
	struct sheet *s = arg;
	if (is(name, "row")) {
		s->number++;
		s->column = 0;
		s->cells.n = s->places.n = 0;
	} else if (is(name, "c")) {
		const char *t = attribute(a, "t");
		const size_t at = column_of(attribute(a, "r"));
		s->column = at > 0 ? at : s->column + 1;
		s->type = t == NULL ? 0 : t[0];
		s->type = t != NULL && strcmp(t, "str") == 0 ? 0 : s->type;
		s->word.n = 0;
		if (s->column > COLUMNS)
			limit(s, "more than 16,384 columns");
	}
	s->phonetic = s->phonetic || is(name, "rPh");
	s->takes = is(name, "v") || is(name, "t");
}

/* The text of a cell that names one of the table. */
static struct acc_str
of_table(struct sheet *s)
{
	int64_t i;
	const size_t *ends = (const size_t *)(const void *)s->ends.p;
	const struct acc_str n = {(const char *)s->word.p, (uint32_t)s->word.n};
	if (!acc_str_int(n, &i) || i < 0 || (uint64_t)i >= s->ends.n / sizeof *ends) {
		stop(s, acc_fail(s->e, ACC_EFORMAT,
				"row %llu: a text that the table of texts has not",
				(unsigned long long)s->number));
		return acc_str("");
	}
	const size_t from = i == 0 ? 0 : ends[i - 1];
	/* Before the first that is not empty there is no text yet. */
	if (ends[i] == from)
		return acc_str("");
	return (struct acc_str){(const char *)s->text.p + from, (uint32_t)(ends[i] - from)};
}

static void
end_cell(struct sheet *s)
{
	struct acc_str v = {(const char *)s->word.p, (uint32_t)s->word.n};
	if (v.n == 0)
		return;
	if (s->type == 's')
		v = of_table(s);
	else if (s->type == 'b')
		v = acc_str(acc_str_is(v, "0") ? "False" : "True");
	const struct cell c = {(uint32_t)s->column, v.n, s->cells.n};
	if (acc_buf_add(&s->cells, v.p, v.n) < 0 || acc_buf_add(&s->places, &c, sizeof c) < 0)
		stop(s, acc_nomem(s->e));
}

static void
end_row(struct sheet *s)
{
	const struct cell *c = (const struct cell *)(const void *)s->places.p;
	const size_t have = s->places.n / sizeof *c;
	size_t n = 0;
	for (size_t i = 0; i < have; i++)
		n = c[i].column > n ? c[i].column : n;
	s->row.n = 0;
	if (n == 0)
		return;
	if (acc_buf_reserve(&s->row, n * sizeof(struct acc_str)) < 0) {
		stop(s, acc_nomem(s->e));
		return;
	}
	struct acc_str *row = (struct acc_str *)(void *)s->row.p;
	for (size_t i = 0; i < n; i++)
		row[i] = acc_str("");
	for (size_t i = 0; i < have; i++)
		row[c[i].column - 1] = (struct acc_str){(const char *)s->cells.p + c[i].at, c[i].n};
	int rc = s->fn(s->arg, row, n, s->number, s->e);
	if (rc != 0)
		stop(s, rc);
}

static void
cell_ends(void *arg, const char *name)
{
	struct sheet *s = arg;
	s->takes = false;
	if (is(name, "rPh"))
		s->phonetic = false;
	if (s->rc != 0)
		return;
	if (is(name, "c"))
		end_cell(s);
	else if (is(name, "row"))
		end_row(s);
}

/* --- a member of the zip, piece by piece --- */

static int
parse(struct sheet *s, const uint8_t *p, size_t n, bool last)
{
	if (s->lib->XML_Parse(s->x, (const char *)p, (int)n, last) != XML_STATUS_ERROR)
		return 0;
	if (s->rc != 0)
		return s->rc;
	const enum XML_Error code = s->lib->XML_GetErrorCode(s->x);
	return code == XML_ERROR_NO_MEMORY
		       ? acc_nomem(s->e)
		       : acc_fail(s->e, ACC_EFORMAT, "the spreadsheet's XML: %s",
				 s->lib->XML_ErrorString(code));
}

static int
pieces(struct sheet *s, int fd, const struct acc_zip_member *m)
{
	struct acc_inflate *z = m->enc == ACC_STORED ? NULL
						     : acc_inflate_open(ACC_INFLATE_RAW, s->e);
	uint8_t *in = malloc(2 * PIECE), *out = in + PIECE;
	uint64_t at = 0, len = 0;
	uint32_t crc = 0;
	int rc = in == NULL ? acc_nomem(s->e) : 0;
	bool ended = false;
	if (rc == 0 && z == NULL && m->enc != ACC_STORED)
		rc = ACC_ENOMEM;
	while (rc == 0 && !ended) {
		size_t n = m->clen - at < PIECE ? (size_t)(m->clen - at) : PIECE, used = 0;
		if (n == 0 && z != NULL) {
			rc = acc_fail(s->e, ACC_ETRUNC, "%.*s is cut off", ACC_PRS(m->name));
			break;
		}
		rc = acc_file_pread(fd, in, n, m->off + at, s->e);
		at += n;
		ended = z == NULL && at == m->clen;
		if (rc == 0 && z == NULL) {
			crc = acc_crc32(crc, in, n);
			len += n;
			rc = parse(s, in, n, false);
		}
		for (bool full = z != NULL; rc == 0 && full && !ended;) {
			size_t nin = n - used, nout = PIECE;
			int state = acc_inflate_run(z, in + used, &nin, out, &nout, s->e);
			used += nin;
			len += nout;
			full = nout == PIECE || used < n;
			ended = state > 0;
			if (state < 0 || len > m->len || (nin == 0 && nout == 0 && used < n))
				rc = acc_fail(s->e, ACC_EFORMAT, "%.*s is damaged",
					ACC_PRS(m->name));
			crc = acc_crc32(crc, out, nout);
			if (rc == 0)
				rc = parse(s, out, nout, false);
		}
	}
	if (rc == 0 && (len != m->len || (!m->unsummed && !acc_crc_is(crc, m->crc32))))
		rc = acc_fail(s->e, ACC_EFORMAT, "%.*s is damaged: its checksum is another",
			ACC_PRS(m->name));
	if (rc == 0)
		rc = parse(s, in, 0, true);
	free(in);
	acc_inflate_close(z);
	return rc;
}

static int
member(struct sheet *s, int fd, const struct acc_zip_member *m, XML_StartElementHandler starts,
	XML_EndElementHandler ends)
{
	s->x = s->lib->XML_ParserCreate(NULL);
	if (s->x == NULL)
		return acc_nomem(s->e);
	s->lib->XML_SetUserData(s->x, s);
	s->lib->XML_SetElementHandler(s->x, starts, ends);
	s->lib->XML_SetCharacterDataHandler(s->x, characters);
	s->lib->XML_SetStartDoctypeDeclHandler(s->x, doctype);
	int rc = pieces(s, fd, m);
	s->lib->XML_ParserFree(s->x);
	return rc;
}

int
acc_xlsx_read(int fd, acc_xlsx_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_file_info info;
	struct acc_arena mem = {0};
	struct acc_zip z;
	struct sheet s = {.lib = acc_expat_load(e), .fn = fn, .arg = arg, .e = e};
	if (s.lib == NULL)
		return e != NULL ? e->code : ACC_EUNSUP;
	int rc = acc_file_stat(fd, &info, e);
	if (rc == 0)
		rc = acc_zip_read(fd, 0, info.size, &z, &mem, e);
	if (rc >= 0) {
		const struct acc_zip_member *t = acc_zip_find(&z, ACC_STR("xl/sharedStrings.xml")),
					    *m = acc_zip_find(&z,
						    ACC_STR("xl/worksheets/sheet1.xml"));
		rc = m == NULL ? acc_fail(e, ACC_EFORMAT,
					 "no spreadsheet: there is no xl/worksheets/sheet1.xml")
			       : 0;
		if (rc == 0 && t != NULL)
			rc = member(&s, fd, t, string_starts, string_ends);
		if (rc == 0)
			rc = member(&s, fd, m, cell_starts, cell_ends);
	}
	acc_buf_release(&s.text);
	acc_buf_release(&s.ends);
	acc_buf_release(&s.cells);
	acc_buf_release(&s.places);
	acc_buf_release(&s.row);
	acc_buf_release(&s.word);
	acc_arena_release(&mem);
	return rc;
}

#else

int
acc_xlsx_read(int fd, acc_xlsx_fn *fn, void *arg, struct acc_err *e)
{
	(void)fd;
	(void)fn;
	(void)arg;
	return acc_fail(e, ACC_EUNSUP,
		"a spreadsheet is not read by what was built without libexpat1-dev");
}

#endif
