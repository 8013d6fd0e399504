#include "format/columns.h"

#include "format/aside.h"
#include "format/cells.h"
#include "format/jsontext.h"

#include <math.h>
#include <stdlib.h>

/* One key of a block: the values of those records that have it. */
struct column {
	struct acc_str key;
	struct acc_buf text; /* of the values, one behind the other */
	struct value {
		uint32_t row, end; /* of its text */
	} * v;
	size_t n, cap;
	bool texts; /* all of them are */
};

struct acc_json_blocks {
	FILE *out;
	struct acc_map numbers[2]; /* of texts, of hashes */
	struct acc_map by_key;     /* -> index in column */
	struct column *column;
	size_t ncolumns, cap;
	struct acc_arena keys;
	uint32_t rows, objects;
	/* "s" and "o" of the next block */
	FILE *texts, *other;
	uint32_t ntexts;
	struct acc_arena mem; /* of one value */
};

struct acc_json_blocks *
acc_blocks_open(FILE *out, const char *tmpdir, struct acc_err *e)
{
	struct acc_json_blocks *b = calloc(1, sizeof *b);
	if (b == NULL) {
		acc_nomem(e);
		return NULL;
	}
	b->out = out;
	b->texts = acc_aside_open(tmpdir, e);
	b->other = b->texts == NULL ? NULL : acc_aside_open(tmpdir, e);
	if (b->other == NULL) {
		acc_blocks_close(b);
		return NULL;
	}
	return b;
}

void
acc_blocks_close(struct acc_json_blocks *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->ncolumns; i++) {
		acc_buf_release(&b->column[i].text);
		free(b->column[i].v);
	}
	free(b->column);
	if (b->texts != NULL)
		fclose(b->texts);
	if (b->other != NULL)
		fclose(b->other);
	acc_map_release(&b->numbers[0]);
	acc_map_release(&b->numbers[1]);
	acc_map_release(&b->by_key);
	acc_arena_release(&b->keys);
	acc_arena_release(&b->mem);
	free(b);
}

/* What says where and how bytes lie helps nobody who looks at a page. */
static bool
is_storage(struct acc_str key)
{
	if (acc_str_starts(key, "a.") || acc_str_starts(key, "b."))
		key = (struct acc_str){key.p + 2, key.n - 2};
	return acc_str_starts(key, "part.") ||
	       acc_word_in("off len clen enc crc32 fsize mtime s.few", key);
}

/* The number of a text, which the block brings if it is new. -1: memory ran out. */
static int64_t
number_of(struct acc_json_blocks *b, struct acc_str s)
{
	const size_t before = b->numbers[0].n;
	const uint64_t *at = acc_map_put(&b->numbers[0], s, before);
	if (at == NULL)
		return -1;
	if (b->numbers[0].n > before) {
		if (b->ntexts++ > 0)
			putc(',', b->texts);
		acc_json_string(b->texts, s, true);
	}
	return (int64_t)*at;
}

static struct column *
column_of(struct acc_json_blocks *b, struct acc_str key, struct acc_err *e)
{
	uint64_t *at = acc_map_put(&b->by_key, key, b->ncolumns);
	if (at == NULL)
		goto nomem;
	if (*at < b->ncolumns)
		return &b->column[*at];
	struct column *p = acc_grow(b->column, &b->cap, b->ncolumns + 1, sizeof *p, NULL);
	char *copy = acc_arena_copy(&b->keys, key.p, key.n);
	if (p != NULL)
		b->column = p;
	if (p == NULL || copy == NULL)
		goto nomem;
	p[b->ncolumns] = (struct column){.key = {copy, key.n}, .texts = true};
	return &p[b->ncolumns++];
nomem:
	acc_nomem(e);
	return NULL;
}

/* A value as it stands in a block: numbers as they are, all else as the text of a cell. */
static int
put_value(struct acc_json_blocks *b, struct column *c, const struct acc_val *v, struct acc_err *e)
{
	char text[48];
	struct acc_str s;
	int64_t id = 0;
	bool number = v->type == ACC_V_INT || v->type == ACC_V_UINT ||
		      (v->type == ACC_V_F64 && isfinite(v->f));
	/* A key twice, which no reader lets pass: a row has one value. */
	if (c->n > 0 && c->v[c->n - 1].row == b->rows)
		return 0;
	if (!ACC_ROOM(c->v, c->cap, c->n + 1, NULL))
		return acc_nomem(e);
	if (v->type == ACC_V_TEXT && acc_str_ends(c->key, "s.hash")) {
		uint64_t *at = acc_map_put(&b->numbers[1], v->s, b->numbers[1].n);
		id = at == NULL ? -1 : (int64_t)*at;
		snprintf(text, sizeof text, "%lld", (long long)id);
		c->texts = false;
	} else if (v->type == ACC_V_BOOL) {
		snprintf(text, sizeof text, "%s", v->b ? "true" : "false");
		c->texts = false;
	} else if (number && v->type == ACC_V_F64) {
		snprintf(text, sizeof text, "%.9g", v->f);
		c->texts = false;
	} else if (number) {
		s = acc_cell_text(v, &b->mem);
		snprintf(text, sizeof text, "%.*s", ACC_PRS(s));
		c->texts = false;
	} else {
		s = v->type == ACC_V_NIL ? ACC_STR("null") : acc_cell_text(v, &b->mem);
		id = number_of(b, s);
		snprintf(text, sizeof text, "[%lld]", (long long)id);
	}
	const bool lost = b->mem.lost;
	acc_arena_reset(&b->mem);
	if (lost || id < 0 || acc_buf_add(&c->text, text, strlen(text)) < 0)
		return acc_nomem(e);
	c->v[c->n++] = (struct value){b->rows, (uint32_t)c->text.n};
	return 0;
}

static int
row(struct acc_json_blocks *b, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val kind = acc_text(r->kind);
	struct column *c = column_of(b, ACC_STR("kind"), e);
	int rc = c == NULL ? ACC_ENOMEM : put_value(b, c, &kind, e);
	for (uint32_t i = 0; rc == 0 && i < r->n; i++) {
		if (is_storage(r->f[i].key) || acc_str_is(r->f[i].key, "kind"))
			continue;
		c = column_of(b, r->f[i].key, e);
		rc = c == NULL ? ACC_ENOMEM : put_value(b, c, &r->f[i].v, e);
	}
	return rc == 0 && ++b->rows == ACC_BLOCK_ROWS ? acc_blocks_flush(b, e) : rc;
}

/* Frames of many stacks are the same. */
static int
stack(struct acc_json_blocks *b, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val *v = acc_get(r, "", "frames");
	fputs("{\"kind\":\"stack\",\"id\":", b->other);
	acc_json_string(b->other, acc_get_text(r, "", "id"), true);
	fputs(",\"frames\":[", b->other);
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_TEXTS && i < v->n; i++) {
		int64_t id = number_of(b, v->texts[i]);
		if (id < 0)
			return acc_nomem(e);
		fprintf(b->other, "%s%lld", i > 0 ? "," : "", (long long)id);
	}
	fputs("]}", b->other);
	return 0;
}

int
acc_blocks_put(struct acc_json_blocks *b, const struct acc_rec *r, struct acc_err *e)
{
	if (acc_rec_is(r, "data"))
		return 0;
	if (acc_is_row(r) && !acc_rec_is(r, "finding"))
		return row(b, r, e);
	if (b->objects++ > 0)
		putc(',', b->other);
	if (acc_rec_is(r, "stack"))
		return stack(b, r, e);
	acc_json_record(b->other, r, true);
	return 0;
}

static bool
same_text(const struct column *a, size_t i, const struct column *b, size_t k)
{
	const uint32_t from = i == 0 ? 0 : a->v[i - 1].end, at = k == 0 ? 0 : b->v[k - 1].end;
	const uint32_t n = a->v[i].end - from;
	return n == b->v[k].end - at && memcmp(a->text.p + from, b->text.p + at, n) == 0;
}

static bool
same_column(const struct column *a, const struct column *b)
{
	bool same = a->n == b->n;
	for (size_t i = 0; same && i < a->n; i++)
		same = a->v[i].row == b->v[i].row && same_text(a, i, b, i);
	return same;
}

/* What both sides, and the pair itself, say alike stands once: of b.x it may be a.x, of a.name name. */
static const struct column *
twin(const struct acc_json_blocks *b, const struct column *c)
{
	char key[256];
	if (c->key.n < 3 || c->key.n >= sizeof key || c->key.p[1] != '.' ||
		(c->key.p[0] != 'a' && c->key.p[0] != 'b'))
		return NULL;
	memcpy(key, c->key.p, c->key.n);
	key[0] = 'a';
	struct acc_str other = {key, c->key.n};
	if (c->key.p[0] == 'a')
		other = (struct acc_str){key + 2, c->key.n - 2};
	const uint64_t *at = acc_map_get(&b->by_key, other);
	return at != NULL && &b->column[*at] < c && same_column(c, &b->column[*at])
		       ? &b->column[*at]
		       : NULL;
}

/* Its text; where all of a column are texts the brackets say nothing. */
static void
put_text(FILE *out, const struct column *c, size_t i)
{
	const uint32_t from = (i == 0 ? 0 : c->v[i - 1].end) + c->texts;
	fwrite(c->text.p + from, 1, c->v[i].end - from - c->texts, out);
}

static void
put_values(FILE *out, const struct column *c, uint32_t rows)
{
	bool same = c->n == rows;
	for (size_t i = 1; same && i < c->n; i++)
		same = same_text(c, 0, c, i);
	if (same) {
		fputs("{\"c\":", out);
		put_text(out, c, 0);
		putc('}', out);
		return;
	}
	const bool sparse = c->n < rows / 3;
	fputs(sparse ? "{\"i\":[" : "[", out);
	for (size_t i = 0; sparse && i < c->n; i++)
		fprintf(out, "%s%u", i > 0 ? "," : "",
			(unsigned)(c->v[i].row - (i > 0 ? c->v[i - 1].row : 0)));
	fputs(sparse ? "],\"v\":[" : "", out);
	/* Bounded by what there is, whatever the rows of the values are. */
	const size_t n = sparse ? c->n : rows;
	for (size_t i = 0, at = 0; at < n; at++) {
		if (at > 0)
			putc(',', out);
		if (i < c->n && (sparse || c->v[i].row == at))
			put_text(out, c, i++);
		else
			fputs("null", out);
	}
	fputs(sparse ? "]}" : "]", out);
}

static void
put_column(const struct acc_json_blocks *b, const struct column *c)
{
	const struct column *other = twin(b, c);
	acc_json_string(b->out, c->key, true);
	putc(':', b->out);
	if (other != NULL) {
		fputs("{\"r\":", b->out);
		acc_json_string(b->out, other->key, true);
		putc('}', b->out);
	} else if (c->texts) {
		fputs("{\"t\":1,\"v\":", b->out);
		put_values(b->out, c, b->rows);
		putc('}', b->out);
	} else {
		put_values(b->out, c, b->rows);
	}
}

int
acc_blocks_flush(struct acc_json_blocks *b, struct acc_err *e)
{
	bool first = true;
	if (b->rows == 0 && b->objects == 0)
		return 0;
	fprintf(b->out, "<script type=\"application/json\" class=\"data\">{\"n\":%u,\"s\":[",
		(unsigned)b->rows);
	int rc = acc_aside_put(b->texts, b->out, e);
	fputs("],\"k\":{", b->out);
	for (size_t i = 0; i < b->ncolumns; i++) {
		struct column *c = &b->column[i];
		if (c->n == 0)
			continue;
		if (!first)
			putc(',', b->out);
		first = false;
		put_column(b, c);
	}
	fputs("},\"o\":[", b->out);
	rc = rc == 0 ? acc_aside_put(b->other, b->out, e) : rc;
	fputs("]}</script>\n", b->out);
	for (size_t i = 0; i < b->ncolumns; i++) {
		b->column[i].n = b->column[i].text.n = 0;
		b->column[i].texts = true;
	}
	b->rows = b->objects = b->ntexts = 0;
	return rc < 0 ? rc : ferror(b->out) ? acc_fail(e, ACC_EIO, "cannot write:") : 0;
}
