/* The pieces of a tokenizer, by their numbers. */
#include "acc/vocabulary.h"
#include "acc/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "dump/jtree.h"

enum { MOST_PIECES = 1 << 24, CODES = 0x144 };

struct acc_vocabulary {
	struct acc_arena mem;
	struct acc_str *piece; /* p NULL: no token has this number */
	size_t n, cap;
	bool bytes;             /* characters stand for bytes, as GPT-2 has it */
	int16_t byte_of[CODES]; /* what they stand for; -1: nothing */
};

/* Printable bytes stand for themselves, the others for the characters from 256 on. */
static void
learn_bytes(struct acc_vocabulary *v)
{
	int next = 256;
	for (int i = 0; i < CODES; i++)
		v->byte_of[i] = -1;
	for (int i = 0; i < 256; i++) {
		const bool own = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
		v->byte_of[own ? i : next++] = (int16_t)i;
	}
}

static int
put(struct acc_vocabulary *v, int64_t id, struct acc_str text, struct acc_err *e)
{
	static const char space[] = "\xc4\xa0"; /* U+0120, the byte of a blank */
	if (id < 0 || id >= MOST_PIECES)
		return acc_fail(e, ACC_EFORMAT, "a token has the number %lld", (long long)id);
	if (!ACC_ROOM(v->piece, v->cap, (size_t)id + 1, e))
		return ACC_ENOMEM;
	for (; v->n <= (size_t)id; v->n++)
		v->piece[v->n] = (struct acc_str){NULL, 0};
	v->piece[id] = (struct acc_str){acc_arena_copy(&v->mem, text.p, text.n), text.n};
	v->bytes |= memmem(text.p, text.n, space, 2) != NULL;
	return v->piece[id].p == NULL ? acc_nomem(e) : 0;
}

/* {"the": 5}, or [["the", -3.2], ...] */
static int
take_pieces(struct acc_vocabulary *v, const struct jnode *vocab, struct acc_err *e)
{
	int64_t at = 0;
	int rc = 0;
	for (const struct jnode *c = vocab->child; c != NULL && rc == 0; c = c->next, at++) {
		if (vocab->type == ACC_JSON_OBJECT && c->type == ACC_JSON_INT)
			rc = put(v, c->i, c->key, e);
		else if (vocab->type == ACC_JSON_ARRAY && c->type == ACC_JSON_ARRAY && c->n > 0)
			rc = put(v, at, acc_jtree_text(c->child), e);
		else
			rc = acc_fail(e, ACC_EFORMAT,
				"no vocabulary: tokens and numbers are wanted");
	}
	return rc;
}

static int
take_json(struct acc_vocabulary *v, const struct jnode *root, struct acc_err *e)
{
	const struct jnode *model = jtree_get(root, "model"),
			   *added = jtree_get(root, "added_tokens");
	const struct jnode *vocab = model == NULL ? root : jtree_get(model, "vocab");
	if (vocab == NULL || (vocab->type != ACC_JSON_OBJECT && vocab->type != ACC_JSON_ARRAY))
		return acc_fail(e, ACC_EFORMAT, "no vocabulary: model.vocab is not there");
	int rc = take_pieces(v, vocab, e);
	for (const struct jnode *c = added == NULL ? NULL : added->child; c != NULL && rc == 0;
		c = c->next) {
		const struct jnode *id = jtree_get(c, "id"), *content = jtree_get(c, "content");
		if (id != NULL && id->type == ACC_JSON_INT && content != NULL)
			rc = put(v, id->i, acc_jtree_text(content), e);
	}
	return rc;
}

/* A token a line, as BERT's vocab.txt. */
static int
take_lines(struct acc_vocabulary *v, struct acc_bytes *b, struct acc_err *e)
{
	struct acc_buf all = {0};
	const uint8_t *p;
	size_t n;
	int rc;
	do {
		n = acc_bytes_peek(b, &p);
		rc = all.n + n > JTREE_LIMIT
			     ? acc_fail(e, ACC_ELIMIT, "a vocabulary of more than 256 MB")
		     : acc_buf_add(&all, p, n) < 0 ? acc_nomem(e)
						   : 0;
		acc_bytes_skip(b, n);
	} while (rc == 0 && (rc = acc_bytes_more(b, &p, &n, e)) > 0);
	int64_t at = 0;
	for (size_t from = 0; from < all.n && rc == 0;) {
		const char *s = (const char *)all.p + from, *nl = memchr(s, '\n', all.n - from);
		const size_t k = nl == NULL ? all.n - from : (size_t)(nl - s);
		struct acc_str line = {s, (uint32_t)k};
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		rc = put(v, at++, line, e);
		from += k + 1;
	}
	acc_buf_release(&all);
	return rc;
}

static bool
begins_json(const struct acc_bytes *b)
{
	const uint8_t *p;
	size_t n = acc_bytes_peek(b, &p), i = 0;
	while (i < n && strchr(" \t\r\n", p[i]) != NULL)
		i++;
	return i < n && p[i] == '{';
}

static int
read_file(struct acc_vocabulary *v, int fd, const char *path, struct acc_err *e)
{
	struct acc_json_tok t;
	struct jnode *root = NULL;
	const uint8_t *p;
	size_t n;
	struct acc_bytes *b = acc_bytes_open(fd, path, true, e);
	int rc = b == NULL ? -1 : 0;
	/* Looking for gzip may have read all of it. */
	if (rc == 0 && acc_bytes_peek(b, &p) == 0)
		rc = acc_bytes_more(b, &p, &n, e);
	if (rc < 0 || !begins_json(b)) {
		rc = rc < 0 ? rc : take_lines(v, b, e);
		acc_bytes_close(b);
		return rc;
	}
	struct acc_arena mem = {0};
	struct acc_json *j = acc_json_open(b, false, e);
	rc = j == NULL ? -1 : acc_json_next(j, &t, e);
	if (rc > 0)
		rc = acc_jtree_read(j, &t, &mem, &root, e);
	if (rc == 0 && root == NULL)
		rc = acc_fail(e, ACC_ELIMIT, "a vocabulary of more than 256 MB");
	if (rc == 0)
		rc = take_json(v, root, e);
	acc_json_close(j);
	acc_arena_release(&mem);
	return rc;
}

struct acc_vocabulary *
acc_vocabulary_open(const char *path, struct acc_err *e)
{
	struct acc_vocabulary *v = calloc(1, sizeof *v);
	if (v == NULL) {
		acc_nomem(e);
		return NULL;
	}
	learn_bytes(v);
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? acc_fail(e, ACC_EIO, "cannot open:") : read_file(v, fd, path, e);
	if (rc == 0 && v->n == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no vocabulary: it has no token");
	if (rc == 0)
		return v;
	acc_err_in(e, path);
	acc_vocabulary_close(v);
	return NULL;
}

/* One character of a piece, as what it stands for. */
static int
add_char(const struct acc_vocabulary *v, struct acc_str s, uint32_t n, int32_t code,
	struct acc_buf *out)
{
	if (v->bytes && code >= 0 && code < CODES && v->byte_of[code] >= 0) {
		const uint8_t byte = (uint8_t)v->byte_of[code];
		return acc_buf_add(out, &byte, 1);
	}
	return code == 0x2581 ? acc_buf_add(out, " ", 1) : acc_buf_add(out, s.p, n);
}

bool
acc_vocabulary_add(const struct acc_vocabulary *v, int64_t id, struct acc_buf *out)
{
	if (id < 0 || (uint64_t)id >= v->n || v->piece[id].p == NULL)
		return false;
	struct acc_str s = v->piece[id];
	/* SentencePiece's single bytes, "<0x0A>". */
	if (s.n == 6 && memcmp(s.p, "<0x", 3) == 0 && s.p[5] == '>' &&
		isxdigit((unsigned char)s.p[3]) && isxdigit((unsigned char)s.p[4])) {
		const char digits[] = {s.p[3], s.p[4], '\0'};
		const uint8_t one = (uint8_t)strtoul(digits, NULL, 16);
		return acc_buf_add(out, &one, 1) == 0;
	}
	int rc = 0;
	for (uint32_t n; s.n > 0 && rc == 0; s = (struct acc_str){s.p + n, s.n - n}) {
		int32_t code;
		n = acc_char(s, &code);
		rc = add_char(v, s, n, code, out);
	}
	return rc == 0;
}

void
acc_vocabulary_close(struct acc_vocabulary *v)
{
	if (v == NULL)
		return;
	acc_arena_release(&v->mem);
	free(v->piece);
	free(v);
}
