/* A value as a tree in one go, where all of it is in the reader's buffer and nothing in it is out of the
 * ordinary: no escapes, ASCII alone, numbers of usual length. Whatever is in doubt is left to the reader of
 * tokens, which knows what is wrong, and where: NULL says so below. No loop has a bound: a zero ends every
 * token. */
#include <math.h>

#include "dump/jtree.h"
#include "io/ahead.h"
#include "io/parse.h"

enum { DEEP = 32, ROOM = 32, TEXT = 1 << 16 };

struct plain {
	struct acc_arena *m;
	struct jnode *room;
	unsigned left;
	size_t most; /* bytes of m */
};

static struct jnode *
node(struct plain *w)
{
	if (w->left == 0) {
		w->room = w->m->held > w->most ? NULL : acc_alloc(w->m, ROOM * sizeof *w->room);
		if (w->room == NULL)
			return NULL;
		w->left = ROOM;
	}
	w->left--;
	return w->room++;
}

/* The string whose quote is at p. */
static inline const uint8_t *
text(const uint8_t *p, struct acc_str *s)
{
	uint64_t seen = 0;
	size_t n = acc_run(p + 1, &seen);
	*s = (struct acc_str){(const char *)p + 1, (uint32_t)n};
	return p[1 + n] == '"' && n < TEXT && (seen & ACC_EACH(0x80)) == 0 ? p + n + 2 : NULL;
}

static const uint8_t *
number(const uint8_t *p, struct jnode *n)
{
	const bool negative = *p == '-';
	const uint8_t *first = p + negative, *q = first;
	uint64_t v = 0;
	for (; *q >= '0' && *q <= '9' && q - first < 18; q++)
		v = v * 10 + (uint64_t)(*q - '0');
	if (q > first && *q != '.' && (*q | 0x20) != 'e' && !(*q >= '0' && *q <= '9')) {
		n->type = ACC_JSON_INT;
		n->i = negative ? -(int64_t)v : (int64_t)v;
		return *first == '0' && q - first > 1 ? NULL : q;
	}
	struct acc_number f;
	if (*q == '.' && q > first && (*first != '0' || q - first == 1)) {
		const uint8_t *after = q + 1, *end = acc_digits(after, &v);
		const size_t ndigits = (size_t)(end - first) - 1;
		/* As nearly all are: no exponent, and digits that fit 64 bits. */
		if (end > after && ndigits <= 19 && (*end | 0x20) != 'e') {
			f = (struct acc_number){.w = v,
				.digits = ndigits,
				.exp10 = -(int)(end - after),
				.negative = negative,
				.real = true};
			n->type = ACC_JSON_FLOAT;
			n->f = acc_number_f64(&f, p, (size_t)(end - p));
			return end;
		}
	}
	q = acc_number_scan(p, &f);
	if (f.bad != NULL || !f.real || q - p > ACC_NUMBER_LIMIT)
		return NULL;
	n->type = ACC_JSON_FLOAT;
	n->f = acc_number_f64(&f, p, (size_t)(q - p));
	return q;
}

static const uint8_t *
word(const uint8_t *p, const char *w, struct jnode *n, enum acc_json_type type)
{
	const size_t len = strlen(w);
	n->type = type;
	return memcmp(p, w, len) == 0 ? p + len
				      : NULL; /* of at most as many bytes as zeros follow */
}

static const uint8_t *members(struct plain *w, const uint8_t *p, struct jnode *n, unsigned depth);

static const uint8_t *
value(struct plain *w, const uint8_t *p, struct jnode *n, unsigned depth)
{
	n->n = 0;
	switch (*p) {
	case '"':
		n->type = ACC_JSON_STRING;
		return text(p, &n->s);
	case '{':
	case '[':
		return depth == DEEP ? NULL : members(w, p, n, depth);
	case 't':
		return word(p, "true", n, ACC_JSON_TRUE);
	case 'f':
		return word(p, "false", n, ACC_JSON_FALSE);
	case 'n':
		return word(p, "null", n, ACC_JSON_NULL);
	case 'N':
		n->f = (double)NAN;
		return word(p, "NaN", n, ACC_JSON_FLOAT);
	case 'I':
		n->f = (double)INFINITY;
		return word(p, "Infinity", n, ACC_JSON_FLOAT);
	case '-':
		if (p[1] != 'I')
			return number(p, n);
		n->f = -(double)INFINITY;
		return word(p, "-Infinity", n, ACC_JSON_FLOAT);
	default:
		return number(p, n);
	}
}

/* What is in the object or array that begins at p. */
static const uint8_t *
members(struct plain *w, const uint8_t *p, struct jnode *n, unsigned depth)
{
	const bool object = *p == '{';
	const uint8_t closer = object ? '}' : ']';
	struct jnode **at = &n->child;
	n->type = object ? ACC_JSON_OBJECT : ACC_JSON_ARRAY;
	n->child = NULL;
	p = acc_white(p + 1);
	if (*p == closer)
		return p + 1;
	for (;; p = acc_white(p + 1)) {
		struct jnode *c = node(w);
		if (c == NULL)
			return NULL;
		c->key = (struct acc_str){"", 0};
		c->next = NULL;
		if (object) {
			p = *p == '"' ? text(p, &c->key) : NULL;
			if (p == NULL || *(p = acc_white(p)) != ':')
				return NULL;
			p = acc_white(p + 1);
		}
		p = value(w, p, c, depth + 1);
		if (p == NULL)
			return NULL;
		*at = c;
		at = &c->next;
		n->n++;
		p = acc_white(p);
		if (*p == closer)
			return p + 1;
		if (*p != ',')
			return NULL;
	}
}

struct jnode *
acc_jtree_plain(struct acc_json *j, struct acc_arena *m)
{
	const uint8_t *p = acc_json_ahead(j);
	struct plain w = {.m = m, .most = m->held + JTREE_LIMIT};
	struct jnode *root = p == NULL ? NULL : node(&w);
	if (root == NULL)
		return NULL;
	root->key = (struct acc_str){"", 0};
	root->next = NULL;
	p = value(&w, p, root, 0);
	if (p == NULL)
		return NULL;
	acc_json_took(j, p);
	return root;
}
