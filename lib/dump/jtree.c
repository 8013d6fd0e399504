#include "dump/jtree.h"

#include <math.h>

enum { DEPTH = 513 }; /* the reader's limit, and the root */

static struct jnode *
node(const struct acc_json_tok *t, struct acc_arena *m)
{
	struct jnode *n = acc_alloc(m, sizeof *n);
	if (n == NULL)
		return NULL;
	*n = (struct jnode){.type = t->type};
	if (t->type == ACC_JSON_STRING) {
		n->s.p = acc_arena_copy(m, t->s.p, t->s.n);
		n->s.n = t->s.n;
		return n->s.p == NULL ? NULL : n;
	}
	if (t->type == ACC_JSON_INT)
		n->i = t->i;
	else if (t->type == ACC_JSON_FLOAT)
		n->f = t->f;
	return n;
}

static bool
opens(enum acc_json_type t)
{
	return t == ACC_JSON_OBJECT || t == ACC_JSON_ARRAY;
}

/* Read on to the end of a container of this depth. */
static int
pass_over(struct acc_json *j, uint32_t depth, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc;
	while ((rc = acc_json_next(j, &t, e)) > 0)
		if ((t.type == ACC_JSON_OBJECT_END || t.type == ACC_JSON_ARRAY_END) &&
			t.depth == depth)
			return 0;
	return rc < 0 ? rc : ACC_ETRUNC;
}

int
acc_jtree_read(struct acc_json *j, const struct acc_json_tok *first, struct acc_arena *m,
	struct jnode **root, struct acc_err *e)
{
	struct jnode *parent[DEPTH], **link[DEPTH];
	struct acc_json_tok t = *first;
	struct acc_str key = {"", 0};
	unsigned depth = 0;
	uint32_t base = first->depth;
	size_t held = m->held;
	*root = NULL;
	struct jnode **at = root;
	int rc;
	for (rc = 1; rc > 0; rc = acc_json_next(j, &t, e)) {
		if (t.type == ACC_JSON_KEY) {
			key = acc_arena_str(m, t.s);
			if (key.p == NULL)
				break;
			continue;
		}
		if (t.type == ACC_JSON_OBJECT_END || t.type == ACC_JSON_ARRAY_END) {
			if (--depth == 0)
				return 0;
			at = link[depth - 1];
			continue;
		}
		if (m->held > held + JTREE_LIMIT) {
			*root = NULL;
			return pass_over(j, base, e);
		}
		struct jnode *n = node(&t, m);
		if (n == NULL)
			break;
		n->key = key;
		*at = n;
		at = &n->next;
		if (depth > 0) {
			parent[depth - 1]->n++;
			link[depth - 1] = at;
		}
		if (opens(t.type)) {
			parent[depth] = n;
			at = link[depth++] = &n->child;
		} else if (depth == 0) {
			return 0;
		}
		key = (struct acc_str){"", 0};
	}
	*root = NULL;
	return rc < 0 ? rc : acc_nomem(e);
}

int
acc_jtree_file(int dirfd, const char *file, const char *name, struct acc_arena *m,
	struct jnode **root, struct acc_err *e)
{
	struct acc_json_tok t;
	*root = NULL;
	int fd = acc_file_beneath(dirfd, acc_str(file), e);
	if (fd < 0)
		return fd;
	struct acc_json *j = acc_json_open(acc_bytes_open(fd, name, false, e), false, e);
	if (j == NULL)
		return e != NULL && e->code != 0 ? e->code : ACC_ENOMEM;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0)
		rc = acc_jtree_read(j, &t, m, root, e);
	if (rc == 0 && *root != NULL)
		rc = acc_json_next(j, &t, e); /* nothing follows */
	acc_json_close(j);
	return rc < 0 ? rc : 0;
}

const struct jnode *
acc_jtree_find(const struct jnode *n, const char *key, size_t len)
{
	const struct jnode *hit = NULL;
	if (n == NULL || n->type != ACC_JSON_OBJECT)
		return NULL;
	for (const struct jnode *c = n->child; c != NULL; c = c->next)
		if (c->key.n == len && (len == 0 || c->key.p[len - 1] == key[len - 1]) &&
			memcmp(c->key.p, key, len) == 0)
			hit = c;
	return hit;
}

struct acc_str
acc_jtree_text(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_STRING ? n->s : (struct acc_str){"", 0};
}

static int
put_string(struct acc_buf *b, struct acc_str s)
{
	int rc = acc_buf_add(b, "\"", 1);
	for (uint32_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		char esc[8] = {'\\', (char)c, '\0'};
		if (c == '\n')
			esc[1] = 'n';
		else if (c == '\t')
			esc[1] = 't';
		else if (c == '\r')
			esc[1] = 'r';
		else if (c < 0x20)
			snprintf(esc, sizeof esc, "\\u%04x", c);
		else if (c != '"' && c != '\\')
			esc[0] = (char)c, esc[1] = '\0';
		rc |= acc_buf_add(b, esc, strlen(esc));
	}
	return rc | acc_buf_add(b, "\"", 1);
}

static int
put_scalar(struct acc_buf *b, const struct jnode *n)
{
	char num[40];
	const char *s = n->type == ACC_JSON_TRUE    ? "true"
			: n->type == ACC_JSON_FALSE ? "false"
						    : "null";
	if (n->type == ACC_JSON_STRING)
		return put_string(b, n->s);
	if (n->type == ACC_JSON_INT) {
		snprintf(num, sizeof num, "%lld", (long long)n->i);
		s = num;
	} else if (n->type == ACC_JSON_FLOAT) {
		acc_f64_repr(n->f, num, sizeof num);
		s = isnan(n->f) ? "NaN" : isinf(n->f) ? n->f < 0 ? "-Infinity" : "Infinity" : num;
	}
	return acc_buf_add(b, s, strlen(s));
}

struct acc_str
acc_jtree_dump(const struct jnode *root, struct acc_arena *m)
{
	const struct jnode *parent[DEPTH], *n = root;
	struct acc_buf b = {0};
	unsigned depth = 0;
	int rc = 0;
	while (rc == 0) {
		if (depth > 0 && parent[depth - 1]->type == ACC_JSON_OBJECT) {
			rc |= put_string(&b, n->key);
			rc |= acc_buf_add(&b, ": ", 2);
		}
		if (opens(n->type)) {
			rc |= acc_buf_add(&b, n->type == ACC_JSON_OBJECT ? "{" : "[", 1);
			if (n->child != NULL) {
				parent[depth++] = n;
				n = n->child;
				continue;
			}
			rc |= acc_buf_add(&b, n->type == ACC_JSON_OBJECT ? "}" : "]", 1);
		} else {
			rc |= put_scalar(&b, n);
		}
		while (depth > 0 && n->next == NULL) {
			n = parent[--depth];
			rc |= acc_buf_add(&b, n->type == ACC_JSON_OBJECT ? "}" : "]", 1);
		}
		if (depth == 0)
			break;
		rc |= acc_buf_add(&b, ", ", 2);
		n = n->next;
	}
	const char *copy = rc == 0 ? acc_arena_copy(m, b.p, b.n) : NULL;
	struct acc_str out = {copy, copy == NULL ? 0 : (uint32_t)b.n};
	acc_buf_release(&b);
	return out;
}

static struct acc_val
value_of(const struct jnode *n, struct acc_arena *m)
{
	switch (n->type) {
	case ACC_JSON_INT:
		return acc_int(n->i);
	case ACC_JSON_FLOAT:
		return acc_f64(n->f);
	case ACC_JSON_TRUE:
		return acc_bool(true);
	case ACC_JSON_FALSE:
		return acc_bool(false);
	case ACC_JSON_NULL:
		return acc_nil();
	case ACC_JSON_STRING:
		return acc_text(n->s);
	default:
		return acc_text(acc_jtree_dump(n, m));
	}
}

int
acc_jtree_arg(struct acc_rec *r, const struct jnode *n, struct acc_arena *m)
{
	static const char *const types[] = {[ACC_JSON_INT] = "int",
		[ACC_JSON_FLOAT] = "float",
		[ACC_JSON_TRUE] = "bool",
		[ACC_JSON_FALSE] = "bool",
		[ACC_JSON_NULL] = "None",
		[ACC_JSON_STRING] = "str",
		[ACC_JSON_ARRAY] = "list",
		[ACC_JSON_OBJECT] = "dict"};
	const int rc = acc_add(r, "", "type", acc_ctext(types[n->type]));
	return rc | acc_add(r, "", "value", value_of(n, m));
}
