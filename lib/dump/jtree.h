/* jtree.h - one JSON value as a tree: for values that are small beside their file */
#ifndef DUMP_JTREE_H
#define DUMP_JTREE_H

#include "acc/json.h"
#include "acc/record.h"

struct jnode {
	enum acc_json_type type; /* ACC_JSON_OBJECT, _ARRAY, or a scalar's */
	uint32_t n;              /* children */
	struct acc_str key;      /* in an object */
	struct jnode *next;      /* the next child of the same parent */
	union {
		struct jnode *child; /* the first */
		struct acc_str s;
		int64_t i;
		double f;
	};
};

enum { JTREE_LIMIT = 256 << 20 };

/* The value that begins with token t, to its end, in m. A value that takes more than
 * JTREE_LIMIT bytes is read to its end and is *root = NULL, which is no failure. 0 or < 0. */
int acc_jtree_read(struct acc_json *j, const struct acc_json_tok *t, struct acc_arena *m,
	struct jnode **root, struct acc_err *e);
/* After KEY its value, where that is fast: NULL, else the reader stands before it still. Texts stand in the
 * reader's buffer, and are gone when the next token is asked for. */
struct jnode *acc_jtree_plain(struct acc_json *j, struct acc_arena *m);
/* A whole small file beneath dirfd; `name` is for messages. As above; of an empty file *root is
 * NULL. */
int acc_jtree_file(int dirfd, const char *file, const char *name, struct acc_arena *m,
	struct jnode **root, struct acc_err *e);
/* The last child of this name, as Python keeps it; NULL if there is none, or n no object. */
const struct jnode *acc_jtree_find(const struct jnode *n, const char *key, size_t len);
static inline const struct jnode *
jtree_get(const struct jnode *n, const char *key)
{
	return acc_jtree_find(n, key, strlen(key)); /* known when it is compiled */
}
/* A string's text, or an empty string. */
struct acc_str acc_jtree_text(const struct jnode *n);
/* As json.dumps writes it (but names that are not ASCII stay as they are), in m; NULL: no memory. */
struct acc_str acc_jtree_dump(const struct jnode *n, struct acc_arena *m);
/* A value as the type and value of an arg record; m: of its text. 0 or < 0. */
int acc_jtree_arg(struct acc_rec *r, const struct jnode *n, struct acc_arena *m);

#endif
