/* The only user of libyaml. */
#include "acc/yaml.h"

#include <yaml.h>

/* A node takes a hundred bytes where its text may have one: so many are no configuration any more. */
enum { DEPTH = 64, LONGEST = 64 << 20, ANCHORS = 4096, NODES = 1 << 19 };

struct anchor {
	const char *name;
	struct acc_yaml *node;
	struct anchor *before;
};

struct build {
	struct acc_arena *m;
	struct acc_err *e;
	struct acc_yaml *root;
	struct {
		struct acc_yaml *node, *last;
	} at[DEPTH];
	int depth;
	bool aliases;          /* are read */
	struct anchor *anchor; /* the last one */
	int nanchor, nnode;
};

static bool
is_null(const yaml_event_t *ev)
{
	const char *s = (const char *)ev->data.scalar.value;
	return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (s[0] == '\0' || strcmp(s, "~") == 0 || strcmp(s, "null") == 0);
}

/* What an alias stands for. */
static struct acc_yaml *
find(struct build *b, const yaml_event_t *ev)
{
	const char *name = (const char *)ev->data.alias.anchor;
	unsigned line = (unsigned)ev->start_mark.line + 1;
	struct anchor *a = b->anchor;
	while (a != NULL && strcmp(a->name, name) != 0)
		a = a->before;
	for (int i = 0; a != NULL && i < b->depth; i++)
		if (b->at[i].node == a->node) {
			acc_fail(b->e, ACC_EUNSUP, "line %u: *%.60s stands for what it is in", line,
				name);
			return NULL;
		}
	if (a == NULL)
		acc_fail(b->e, ACC_EFORMAT, "line %u: no anchor &%.60s before it", line, name);
	return a == NULL ? NULL : a->node;
}

static int
note(struct build *b, const yaml_char_t *name, struct acc_yaml *y)
{
	struct anchor *a = name == NULL ? NULL : acc_alloc(b->m, sizeof *a);
	if (name == NULL)
		return 0;
	if (b->nanchor++ == ANCHORS)
		return acc_fail(b->e, ACC_ELIMIT, "line %u: more than %d anchors", y->line,
			ANCHORS);
	if (a != NULL)
		a->name = acc_arena_copy(b->m, name, strlen((const char *)name));
	if (a == NULL || a->name == NULL)
		return acc_nomem(b->e);
	a->node = y;
	a->before = b->anchor;
	b->anchor = a;
	return 0;
}

static int
add(struct build *b, const yaml_event_t *ev, enum acc_yaml_kind kind, const yaml_char_t *name)
{
	if (b->nnode++ == NODES)
		return acc_fail(b->e, ACC_ELIMIT, "line %zu: more than %d keys and values",
			(size_t)ev->start_mark.line + 1, NODES);
	struct acc_yaml *y = acc_alloc(b->m, sizeof *y);
	if (y == NULL)
		return acc_nomem(b->e);
	*y = (struct acc_yaml){.kind = kind, .line = (uint32_t)ev->start_mark.line + 1};
	if (name != NULL && !b->aliases)
		return acc_fail(b->e, ACC_EUNSUP, "line %u: anchors and aliases are not read",
			y->line);
	if (kind == ACC_YAML_ALIAS && (y->child = find(b, ev)) == NULL)
		return ACC_EFORMAT;
	if (kind != ACC_YAML_ALIAS && note(b, name, y) < 0)
		return ACC_ELIMIT;
	if (kind == ACC_YAML_SCALAR) {
		y->text = acc_arena_copy(b->m, ev->data.scalar.value, ev->data.scalar.length);
		if (y->text == NULL)
			return acc_nomem(b->e);
		if (strlen(y->text) != ev->data.scalar.length)
			return acc_fail(b->e, ACC_EFORMAT, "line %u: a zero byte", y->line);
		y->null = is_null(ev);
	}
	if (b->depth == 0) {
		b->root = y;
	} else {
		struct acc_yaml *last = b->at[b->depth - 1].last;
		if (last == NULL)
			b->at[b->depth - 1].node->child = y;
		else
			last->next = y;
		b->at[b->depth - 1].last = y;
	}
	if (kind == ACC_YAML_SCALAR || kind == ACC_YAML_ALIAS)
		return 0;
	if (b->depth == DEPTH)
		return acc_fail(b->e, ACC_ELIMIT, "line %u: deeper than %d levels", y->line, DEPTH);
	b->at[b->depth].node = y;
	b->at[b->depth++].last = NULL;
	return 0;
}

/* 1: go on; 0: the end of the first document. */
static int
event(struct build *b, const yaml_event_t *ev)
{
	int rc = 0;
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		rc = add(b, ev, ACC_YAML_SCALAR, ev->data.scalar.anchor);
		break;
	case YAML_SEQUENCE_START_EVENT:
		rc = add(b, ev, ACC_YAML_LIST, ev->data.sequence_start.anchor);
		break;
	case YAML_MAPPING_START_EVENT:
		rc = add(b, ev, ACC_YAML_MAP, ev->data.mapping_start.anchor);
		break;
	case YAML_ALIAS_EVENT:
		rc = add(b, ev, ACC_YAML_ALIAS, ev->data.alias.anchor);
		break;
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		break;
	case YAML_DOCUMENT_END_EVENT:
	case YAML_STREAM_END_EVENT:
		return 0;
	default:
		break;
	}
	return rc < 0 ? rc : 1;
}

/* From the file, or of n bytes where there is none. */
static int
parse(FILE *f, const void *text, size_t n, struct build *b)
{
	yaml_parser_t p;
	yaml_event_t ev;
	int rc = 1;
	if (!yaml_parser_initialize(&p))
		return acc_nomem(b->e);
	if (f != NULL)
		yaml_parser_set_input_file(&p, f);
	else
		yaml_parser_set_input_string(&p, n == 0 ? (const yaml_char_t *)"" : text, n);
	while (rc > 0) {
		if (!yaml_parser_parse(&p, &ev)) {
			rc = acc_fail(b->e, ACC_EFORMAT, "line %zu: %s",
				(size_t)p.problem_mark.line + 1,
				p.problem == NULL ? "no YAML" : p.problem);
			break;
		}
		rc = event(b, &ev);
		if (rc > 0 && p.offset > LONGEST)
			rc = acc_fail(b->e, ACC_ELIMIT, "longer than %d bytes", LONGEST);
		yaml_event_delete(&ev);
	}
	yaml_parser_delete(&p);
	return rc;
}

int
acc_yaml_read(const char *path, struct acc_arena *m, struct acc_yaml **out, struct acc_err *e)
{
	struct build b = {.m = m, .e = e};
	FILE *f = fopen(path, "rbe");
	int rc = f == NULL ? acc_fail(e, ACC_EIO, "cannot open:") : parse(f, NULL, 0, &b);
	if (f != NULL)
		fclose(f);
	*out = b.root;
	if (rc < 0)
		acc_err_in(e, path);
	return rc < 0 ? rc : 0;
}

int
acc_yaml_parse(const void *text, size_t n, struct acc_arena *m, struct acc_yaml **out,
	struct acc_err *e)
{
	struct build b = {.m = m, .e = e, .aliases = true};
	int rc = parse(NULL, text, n, &b);
	*out = b.root;
	return rc < 0 ? rc : 0;
}

const struct acc_yaml *
acc_yaml_get(const struct acc_yaml *y, const char *key)
{
	if (y == NULL || y->kind != ACC_YAML_MAP)
		return NULL;
	for (const struct acc_yaml *k = y->child; k != NULL && k->next != NULL; k = k->next->next)
		if (k->kind == ACC_YAML_SCALAR && strcmp(k->text, key) == 0)
			return k->next;
	return NULL;
}

/* Names as recorders write them need no quotes; words that may be true, off or null do. */
static bool
plain(struct acc_str s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint32_t words = 0;
	for (uint32_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\0')
			return false;
		if (strchr(letters, s.p[i]) != NULL)
			words++;
		else if (strchr("0123456789_.", s.p[i]) == NULL)
			return false;
	}
	return s.n > 0 && strchr(letters, s.p[0]) != NULL && (words < s.n || s.n > 5);
}

static int
quote(struct acc_buf *out, struct acc_str s)
{
	char hex[8];
	int rc = acc_buf_add(out, "\"", 1);
	for (uint32_t i = 0; i < s.n && rc == 0; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '"' || c == '\\') {
			const char esc[2] = {'\\', (char)c};
			rc = acc_buf_add(out, esc, 2);
		} else if (c < 0x20 || c == 0x7f) {
			snprintf(hex, sizeof hex, "\\x%02x", c);
			rc = acc_buf_add(out, hex, 4);
		} else {
			rc = acc_buf_add(out, &s.p[i], 1);
		}
	}
	return rc < 0 ? rc : acc_buf_add(out, "\"", 1);
}

int
acc_yaml_pair(struct acc_buf *out, struct acc_str key, struct acc_str value)
{
	enum {
		SIMPLE = 1024 / 4
	}; /* YAML 1.2, 7.4: longer, a key has its mark; quoted, \xNN is four */
	const bool simple = key.n < SIMPLE;
	int rc = simple ? 0 : acc_buf_add(out, "? ", 2);
	if (rc == 0)
		rc = plain(key) ? acc_buf_add(out, key.p, key.n) : quote(out, key);
	if (rc == 0)
		rc = acc_buf_add(out, simple ? ": " : "\n: ", simple ? 2 : 3);
	if (rc == 0)
		rc = plain(value) ? acc_buf_add(out, value.p, value.n) : quote(out, value);
	return rc < 0 ? rc : acc_buf_add(out, "\n", 1);
}
