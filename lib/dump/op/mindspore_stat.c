/* statistic.csv, of all generations: columns are known by their names, in any order. From 2.3.1
 * on, each row ends in a comma, so that it has one field more than the head. */

#include "dump/op/mindspore.h"
#include "io/csv.h"
#include "io/literal.h"

enum { TYPE, NAME, TASK, STREAM, TIME, IO, SLOT, SIZE, DTYPE, FORMAT, SHAPE, NFIELD, NONE = 255 };

static const struct {
	const char *name;
	int field;
} fields[] = {
	{"Op Type", TYPE},
	{"Op Name", NAME},
	{"Task ID", TASK},
	{"Stream ID", STREAM},
	{"Timestamp", TIME},
	{"IO", IO},
	{"Input/Output", IO},
	{"Slot", SLOT},
	{"Index", SLOT},
	{"Data Size", SIZE},
	{"Data Type", DTYPE},
	{"Format", FORMAT},
	{"Shape", SHAPE},
};

/* "Negative Zero Count" counts what is below 0, "Positive Zero Count" what is above. */
static const struct {
	const char *name, *key;
} stats[] = {
	{"Max Value", "stat.max"},
	{"Min Value", "stat.min"},
	{"Avg Value", "stat.mean"},
	{"L2Norm Value", "stat.norm"},
	{"l2norm", "stat.norm"},
	{"Count", "stat.count"},
	{"Negative Zero Count", "stat.negative"},
	{"Positive Zero Count", "stat.positive"},
	{"NaN Count", "stat.nan"},
	{"Nan Count", "stat.nan"},
	{"Negative Inf Count", "stat.neginf"},
	{"Positive Inf Count", "stat.posinf"},
	{"Zero Count", "stat.zero"},
	{"MD5", "stat.md5"},
	{"MD5 Value", "stat.md5"},
	{"SHA1", "stat.sha1"},
};

/* What each column is: a field, NFIELD + the number of a statistic, or NONE. */
struct head {
	uint8_t *what;
	size_t n;
	int shape;  /* its column, which may be cut up by commas */
	bool comma; /* rows end in one */
};

bool
acc_ms_is_sheet(const uint8_t *p, size_t n)
{
	static const char head[] = "Op Type,Op Name,Task ID,";
	if (n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0) {
		p += 3;
		n -= 3;
	}
	return n >= sizeof head - 1 && memcmp(p, head, sizeof head - 1) == 0;
}

static uint8_t
column(struct ms_sheet *s, struct acc_str name)
{
	name = acc_str_trim(name);
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (acc_str_is(name, fields[i].name))
			return (uint8_t)fields[i].field;
	for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
		if (!acc_str_is(name, stats[i].name))
			continue;
		for (uint32_t k = 0; k < s->nkey; k++)
			if (strcmp(s->key[k], stats[i].key) == 0)
				return NONE; /* a column twice */
		s->key[s->nkey] = stats[i].key;
		bool sum = strcmp(stats[i].key, "stat.md5") == 0 ||
			   strcmp(stats[i].key, "stat.sha1") == 0;
		s->sums |= sum;
		s->others |= !sum;
		return (uint8_t)(NFIELD + s->nkey++);
	}
	return NONE;
}

static const char *
name_of(int field)
{
	size_t i = 0;
	while (fields[i].field != field)
		i++;
	return fields[i].name;
}

static int
head(struct ms_sheet *s, struct head *h, const struct acc_str *f, size_t n, struct acc_arena *m,
	struct acc_err *e)
{
	bool has[NFIELD] = {false};
	const struct acc_str *unknown = NULL;
	if (n > 64)
		return acc_fail(e, ACC_EFORMAT, "no statistics of MindSpore: %zu columns", n);
	h->what = acc_alloc(m, n);
	if (h->what == NULL)
		return acc_nomem(e);
	h->n = n;
	h->shape = -1;
	for (size_t i = 0; i < n; i++) {
		h->what[i] = column(s, f[i]);
		if (h->what[i] < NFIELD)
			has[h->what[i]] = true;
		if (h->what[i] == SHAPE)
			h->shape = (int)i;
		unknown = h->what[i] == NONE && f[i].n > 0 && unknown == NULL ? &f[i] : unknown;
	}
	/* All releases have these. */
	for (int i = 0; i < NFIELD; i++)
		if (!has[i] && i != FORMAT)
			return acc_fail(e, ACC_EFORMAT,
				"no statistics of MindSpore: there is no column "
				"'%s'",
				name_of(i));
	if (s->nkey == 0 && unknown != NULL)
		return acc_fail(e, ACC_EFORMAT,
			"no column of statistics has a name that is known; the first that has "
			"another: '%.*s'",
			unknown->n < 60 ? (int)unknown->n : 60, unknown->p);
	return 0;
}

static struct acc_str
keep(struct acc_str s, struct acc_arena *m)
{
	s = acc_str_trim(s);
	char *p = acc_arena_copy(m, s.p, s.n);
	return (struct acc_str){p == NULL ? "" : p, p == NULL ? 0 : s.n};
}

/* What one row's shape is made of. */
struct dims {
	int64_t d[ACC_MAXDIM];
	uint32_t n;
};

/* (2,3) with any brackets and separators, or a piece of it; a scalar has no number in it. */
static bool
shape(struct dims *d, struct acc_str s)
{
	for (uint32_t i = 0; i < s.n;) {
		uint32_t n = 0;
		while (i + n < s.n && s.p[i + n] >= '0' && s.p[i + n] <= '9')
			n++;
		if (n == 0) {
			if (strchr("()[]{} ,x\t", s.p[i]) == NULL || s.p[i] == '\0')
				return false;
			i++;
			continue;
		}
		if (d->n == ACC_MAXDIM || !acc_str_int((struct acc_str){s.p + i, n}, &d->d[d->n++]))
			return false;
		i += n;
	}
	return true;
}

/* A number as it was printed, with six digits; nil for null. */
static struct ms_value
value(struct acc_str s, const char *key, enum acc_dtype t, struct acc_arena *m)
{
	struct acc_literal lit;
	s = acc_str_trim(s);
	char cls = t == ACC_NODTYPE ? 'F' : acc_dtype_of(t)->cls;
	bool extreme = strcmp(key, "stat.max") == 0 || strcmp(key, "stat.min") == 0;
	bool count = !extreme && strcmp(key, "stat.mean") != 0 && strcmp(key, "stat.norm") != 0;
	if (acc_str_is(s, "null") || acc_str_is(s, "None"))
		return (struct ms_value){.type = ACC_V_NIL};
	if (acc_str_is(s, "True") || acc_str_is(s, "False"))
		return (struct ms_value){.type = ACC_V_BOOL, .i = s.p[0] == 'T'};
	if (strcmp(key, "stat.md5") == 0 || strcmp(key, "stat.sha1") == 0)
		return (struct ms_value){.type = s.n == 0 ? ACC_V_BIN : ACC_V_TEXT,
			.text = s.n == 0 ? NULL : keep(s, m).p};
	if (!acc_literal_all(s, &lit))
		return (struct ms_value){.type = ACC_V_BIN}; /* nothing, N/A */
	if (extreme && cls == 'B' && lit.integer)
		return (struct ms_value){.type = ACC_V_BOOL, .i = lit.i != 0};
	if (lit.integer && (count || (extreme && (cls == 'I' || cls == 'U'))))
		return (struct ms_value){.type = ACC_V_INT, .i = lit.i};
	return (struct ms_value){.type = ACC_V_F64, .f = lit.v};
}

static bool
number(struct acc_str s, int64_t *v)
{
	return acc_str_int(acc_str_trim(s), v) && *v >= 0;
}

static bool
small(struct acc_str s, int32_t *v)
{
	int64_t n;
	if (!number(s, &n) || n > INT32_MAX)
		return false;
	*v = (int32_t)n;
	return true;
}

/* An operator's rows follow one another: its name is kept once. */
static struct acc_str
share(struct acc_str s, const struct acc_str *before, struct acc_arena *m)
{
	return before != NULL && acc_str_eq(s, *before) ? *before : keep(s, m);
}

/* One cell that is no statistic. */
static bool
field(const struct ms_sheet *sheet, struct ms_row *r, int what, struct acc_str s,
	struct acc_arena *m)
{
	const struct ms_row *before = sheet->n > 0 ? &sheet->row[sheet->n - 1] : NULL;
	int64_t size;
	switch (what) {
	case TYPE:
		r->n.type = share(s, before == NULL ? NULL : &before->n.type, m);
		return r->n.type.n > 0;
	case NAME:
		r->n.op = share(s, before == NULL ? NULL : &before->n.op, m);
		return r->n.op.n > 0;
	case TASK:
		small(s, &r->n.task);
		return true;
	case STREAM:
		small(s, &r->n.stream);
		return true;
	case TIME:
		number(s, &r->n.time);
		return true;
	case IO:
		s = acc_str_trim(s);
		r->n.io = acc_str_is(s, "input") ? 'i' : acc_str_is(s, "output") ? 'o' : '\0';
		return r->n.io != '\0';
	case SLOT:
		return small(s, &r->n.slot);
	case SIZE:
		r->empty = number(s, &size) && size == 0;
		return true;
	case DTYPE:
		r->n.dtype = share(s, before == NULL ? NULL : &before->n.dtype, m);
		return true;
	default:
		r->n.format = share(s, before == NULL ? NULL : &before->n.format, m);
		return true;
	}
}

/* Cells that a shape takes up beyond its own: without quotes it is cut up by its commas, up to the
 * bracket that closes it. */
static size_t
cut_up(const struct acc_str *f, size_t n)
{
	struct acc_str s = acc_str_trim(f[0]);
	if (s.n == 0 || strchr("([", s.p[0]) == NULL)
		return 0;
	for (size_t i = 0; i < n && i < ACC_MAXDIM; i++) {
		s = acc_str_trim(f[i]);
		if (s.n > 0 && strchr(")]", s.p[s.n - 1]) != NULL)
			return i;
	}
	return 0;
}

/* The cells that say which tensor it is. */
static bool
locate(const struct ms_sheet *s, struct ms_row *r, const struct head *h, const struct acc_str *f,
	size_t more, struct acc_arena *m)
{
	struct dims d = {.n = 0};
	for (size_t i = 0; i < h->n; i++) {
		size_t k = (int)i > h->shape ? i + more : i;
		if (h->what[i] < NFIELD && h->what[i] != SHAPE && !field(s, r, h->what[i], f[k], m))
			return false;
		for (size_t j = 0; h->what[i] == SHAPE && j <= more; j++)
			if (!shape(&d, f[i + j]))
				return false;
	}
	const struct ms_row *before = s->n > 0 ? &s->row[s->n - 1] : NULL;
	r->ndim = (uint8_t)d.n;
	if (before != NULL && before->ndim == d.n &&
		memcmp(before->shape, d.d, d.n * sizeof *d.d) == 0)
		r->shape = before->shape;
	else
		r->shape = (const int64_t *)(void *)acc_arena_copy(m, d.d, d.n * sizeof *d.d);
	return r->shape != NULL;
}

static bool
row(struct ms_sheet *s, struct ms_row *r, struct head *h, const struct acc_str *f, size_t n,
	struct acc_arena *m)
{
	*r = (struct ms_row){.n = {.task = -1,
				     .stream = -1,
				     .time = -1,
				     .slot = -1,
				     .format = {"", 0},
				     .dtype = {"", 0}}};
	if (n < h->n)
		return false;
	size_t shaped = (size_t)h->shape, more = cut_up(f + shaped, n - shaped);
	/* A comma at the end of a row stands at the end of each. */
	size_t ends = n - more - h->n;
	if (n < h->n + more || ends > 1 || (ends == 1 && f[n - 1].n > 0) ||
		(s->n > 0 && h->comma != (ends == 1)) || !locate(s, r, h, f, more, m))
		return false;
	/* Where there is none, an empty cell at the end means that one is missing before it. */
	if (ends == 0 && f[n - 1].n == 0 && !r->empty)
		return false;
	h->comma = ends == 1;
	r->val = acc_alloc(m, s->nkey * sizeof *r->val);
	if (r->val == NULL)
		return false;
	enum acc_dtype t = acc_dtype_find(r->n.dtype);
	for (size_t i = 0; i < h->n; i++) {
		int what = h->what[i] - NFIELD;
		if (h->what[i] != NONE && what >= 0)
			r->val[what] = value(f[i > shaped ? i + more : i], s->key[what], t, m);
	}
	return true;
}

static int
add(struct ms_sheet *s, const struct ms_row *r, struct acc_err *e)
{
	if (!ACC_ROOM(s->row, s->cap, s->n + 1, e))
		return ACC_ENOMEM;
	s->row[s->n++] = *r;
	return 0;
}

int
acc_ms_sheet(struct ms_sheet *s, struct acc_bytes *b, struct acc_arena *m, struct dump_said *said,
	struct acc_dump_ctx *c, struct acc_err *e)
{
	struct head h = {0};
	const struct acc_str *f;
	size_t n;
	char name[4096];
	struct acc_csv *csv = acc_csv_open(b, e);
	if (csv == NULL)
		return e != NULL && e->code != 0 ? e->code : ACC_EFORMAT;
	snprintf(name, sizeof name, "%s", acc_bytes_name(b));
	int rc = acc_csv_next(csv, &f, &n, e);
	if (rc == 0)
		rc = acc_fail(e, ACC_ETRUNC, "empty: a sheet of statistics has a line of titles");
	else if (rc > 0)
		rc = head(s, &h, f, n, m, e);
	while (rc == 0 && (rc = acc_csv_next(csv, &f, &n, e)) > 0) {
		struct ms_row r;
		bool cut = acc_csv_cut(csv);
		if (!cut && row(s, &r, &h, f, n, m)) {
			rc = add(s, &r, e);
			continue;
		}
		struct acc_err bad = {0};
		acc_fail(&bad, cut ? ACC_ETRUNC : ACC_EFORMAT, "line %llu is left out: %s",
			(unsigned long long)acc_csv_line(csv),
			cut ? "the file ends in it" : "it is no row of statistics");
		acc_err_in(&bad, name);
		acc_dump_say(said, c, &bad);
		rc = 0;
	}
	acc_csv_close(csv);
	return rc;
}
