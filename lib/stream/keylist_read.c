/* Lists of keys, and records by them, from their bytes. */
#include "stream/codec.h"
#include "stream/item.h"
#include "stream/keylist.h"

/* The value of n bytes at q becomes the last under its key. What it points to moves with them. */
static inline struct acc_words
keep_last(struct acc_last *last, const uint8_t *q, uint32_t n, struct acc_words w)
{
	last->have = n <= KEYLISTS_VALUE;
	if (!last->have)
		return w;
	acc_bytes_copy(last->raw, q, n);
	const uint32_t type = acc_first(w.head);
	if (type == ACC_V_TEXT || type == ACC_V_BIN)
		w.a = w.a - (uintptr_t)q + (uintptr_t)last->raw;
	acc_words_put(&last->v, w);
	last->n = n;
	return w;
}

/* It becomes field g of a record, and the last under its key unless `keep` is false. Where its bytes are then. */
static inline const uint8_t *
put_value(struct acc_field *g, struct acc_last *last, bool keep, const uint8_t *q, uint32_t n,
	struct acc_words w)
{
	if (keep)
		w = keep_last(last, q, n, w);
	q = keep && last->have ? last->raw : q;
	acc_words_put(&g->v, w);
	g->raw = q;
	g->nraw = n;
	return q;
}

/* A value of another form than the commonest. */
static int
take_other(struct acc_cursor *c, struct acc_field *g, struct acc_last *last, bool keep,
	struct acc_arena *m)
{
	const uint8_t *q = c->p + c->at;
	struct acc_val v = {.type = ACC_V_NIL};
	struct acc_words w;
	const int rc = acc_take_value(c, &v, NULL);
	if (rc <= 0)
		return rc;
	const uint32_t n = (uint32_t)(c->p + c->at - q);
	const bool array = v.type == ACC_V_INTS || v.type == ACC_V_TEXTS;
	memcpy(&w, &v, sizeof w);
	q = put_value(g, last, keep, q, n, w);
	if (!array)
		return 1;
	/* Its elements stand as long as the bytes. */
	const bool kept = keep && last->have;
	struct acc_cursor own = {.p = q, .n = n, .e = c->e};
	if (kept)
		acc_arena_reset(&last->mem);
	if (acc_take_value(&own, &g->v, kept ? &last->mem : m) <= 0)
		return ACC_ENOMEM;
	if (kept)
		last->v = g->v;
	return 1;
}

/* The value that stands here: see put_value. */
static inline int
take_value(struct acc_cursor *c, struct acc_field *g, struct acc_last *last, bool keep,
	struct acc_arena *m)
{
	enum { MOST = 2 + KEYLISTS_VALUE };
	const uint8_t *q = c->p + c->at;
	struct acc_words w;
	/* So much can be read, and most values are short. */
	const uint32_t n = c->n - c->at > MOST ? acc_common_words(q, &w) : 0;
	if (n == 0)
		return take_other(c, g, last, keep, m);
	c->at += n;
	if (!keep || n > KEYLISTS_VALUE) {
		put_value(g, last, keep, q, n, w);
		return 1;
	}
	acc_last_copy(last, q, n);
	w.a += acc_first(w.head) == ACC_V_TEXT ? (uintptr_t)last->raw - (uintptr_t)q : 0;
	last->have = true;
	last->n = n;
	acc_words_put(&last->v, w);
	acc_words_put(&g->v, w);
	g->raw = last->raw;
	g->nraw = n;
	return 1;
}

/* n values of a record of list k. */
static int
take_values(struct acc_cursor *c, const struct acc_keylist *k, const uint8_t *there,
	struct acc_rec *r)
{
	const uint32_t n = k->n;
	struct acc_last *const *lasts = k->last;
	const struct acc_str *key = k->key;
	struct acc_field *f = acc_rec_room(r, n);
	if (f == NULL)
		return acc_nomem(c->e);
	for (uint32_t i = 0, bits = 0; i < n; i++, bits >>= 1, f++) {
		struct acc_last *last = lasts[i];
		if (i % 8 == 0)
			bits = there[i / 8];
		f->key = key[i];
		if ((bits & 1) != 0) {
			const int rc = take_value(c, f, last, !k->same[i], &r->mem);
			if (rc <= 0)
				return rc;
		} else if (last->have) {
			f->v = last->v;
			f->raw = last->raw;
			f->nraw = last->n;
		} else {
			return acc_fail_at(c->e, ACC_EFORMAT, c->at,
				"a record leaves out its '%.*s', which no record before it has",
				ACC_PRS(k->key[i]));
		}
	}
	r->n = n;
	return 1;
}

static int
take_list(struct acc_cursor *c, uint64_t kind, struct acc_rec *r)
{
	struct acc_packed it;
	struct acc_str name;
	int rc = acc_take_bytes(c, kind, &name);
	if (rc <= 0 || (rc = acc_take(c, &it)) <= 0)
		return rc;
	if (it.type != ARRAY)
		return acc_fail_at(c->e, ACC_EFORMAT, c->at, "a list of keys is none");
	if (it.u > ACC_MAX_FIELDS)
		return acc_fail_at(c->e, ACC_ELIMIT, c->at, "record of more than %d fields",
			ACC_MAX_FIELDS);
	struct acc_field *f = NULL;
	if (acc_rec_start(r, name) < 0 || (f = acc_rec_room(r, (uint32_t)it.u)) == NULL)
		return acc_nomem(c->e);
	for (uint32_t i = 0; i < it.u; i++) {
		f[i] = (struct acc_field){.raw = NULL};
		rc = acc_take_text(c, &f[i].key, "a key");
		if (rc <= 0)
			return rc;
		r->n++;
	}
	return c->at > ACC_MAX_RECORD ? acc_too_long(c) : 1;
}

static int
new_list(struct acc_keylists *ls, struct acc_rec *r, struct acc_shapes *sh, uint64_t number,
	struct acc_err *e)
{
	int rc;
	if (number != ls->n)
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"a list of keys is not the next: were records lost?");
	if (!acc_keylist_may(r->kind))
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"a list of keys for '%.*s' records, which have none", ACC_PRS(r->kind));
	if (acc_rec_once(r, e) < 0)
		return ACC_EFORMAT;
	const uint64_t shape = acc_shape_new(sh, r);
	if (shape == 0)
		return acc_nomem(e);
	if (acc_keylist_new(ls, r, shape, &rc) == NULL)
		return rc < 0 ? acc_nomem(e)
			      : acc_fail_at(e, ACC_ELIMIT, 0,
					"more than %d lists of keys, or %d keys in them",
					KEYLISTS_MOST, KEYLISTS_KEYS);
	return 0;
}

static bool
bits_right(const uint8_t *there, uint32_t n, uint64_t values)
{
	return acc_bytes_ones(there, (n + 7) / 8) == values &&
	       (n % 8 == 0 || there[n / 8] >> n % 8 == 0);
}

/* How a record by a list begins where its numbers are small, as most are: how many values come, the list's number, how
 * many bytes of bits. Its length; 0: it begins otherwise. */
enum { BEGIN = 7 };
static inline uint32_t
common_begin(const uint8_t *p, uint64_t *values, uint64_t *number, uint64_t *bits)
{
	uint32_t at = (p[0] & 0xf0) == 0x90 ? 1 : 3;
	*values = at == 1 ? p[0] & 0x0f : (uint64_t)p[1] << 8 | p[2];
	if ((at == 3 && p[0] != 0xdc) || *values < 2)
		return 0;
	*number = p[at];
	if (p[at] >= 0x80 && p[at] != 0xcc)
		return 0;
	if (p[at] == 0xcc)
		*number = p[++at];
	*bits = p[at + 2];
	return p[at + 1] == 0xc4 ? at + 3 : 0;
}

int64_t
acc_decode_listed(const void *buf, size_t len, struct acc_rec *r, struct acc_keylists *ls,
	struct acc_shapes *sh, struct acc_err *e)
{
	struct acc_cursor c = {.p = buf, .n = len, .e = e};
	struct acc_packed all, number, it;
	struct acc_str there = {0};
	int rc;
	ls->now = NULL;
	if (len >= BEGIN && (c.at = common_begin(buf, &all.u, &number.u, &it.u)) > 0)
		goto listed;
	if ((rc = acc_take(&c, &all)) <= 0 || (rc = acc_take(&c, &number)) <= 0)
		return rc;
	if (number.type != INTEGER || number.negative)
		return acc_fail_at(e, ACC_EFORMAT, 0, "not a record: neither a kind nor a list");
	if ((rc = acc_take(&c, &it)) <= 0)
		return rc;
	if (all.u == 3 && it.type == STRING) {
		rc = take_list(&c, it.u, r);
		if (rc <= 0)
			return rc;
		rc = new_list(ls, r, sh, number.u, e);
		return rc < 0 ? rc : (int64_t)c.at;
	}
	if (it.type != BINARY || all.u < 2)
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"not a record: nothing says which of its values are there");
listed:
	if (number.u >= ls->n)
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"a record of a list of keys that has not come: were records lost?");
	const struct acc_keylist *k = ls->v[number.u];
	if ((rc = acc_take_bytes(&c, it.u, &there)) <= 0)
		return rc;
	if (it.u != (k->n + 7) / 8 || !bits_right((const uint8_t *)there.p, k->n, all.u - 2))
		return acc_fail_at(e, ACC_EFORMAT, 0,
			"a record has other values than its list has keys");
	if (c.n - c.at < all.u - 2)
		return 0;
	acc_arena_reset(&r->mem);
	r->kind = k->kind;
	r->n = 0;
	r->lost = false;
	rc = take_values(&c, k, (const uint8_t *)there.p, r);
	if (rc <= 0)
		return rc;
	if (c.at > ACC_MAX_RECORD)
		return acc_too_long(&c);
	r->shape = k->shape;
	ls->now = k;
	ls->there = (const uint8_t *)there.p;
	return (int64_t)c.at;
}
