#include "acc/record.h"

#include <math.h>
#include <stdlib.h>

int
acc_rec_start(struct acc_rec *r, struct acc_str kind)
{
	r->n = 0;
	r->shape = 0;
	acc_arena_reset(&r->mem);
	const char *p = acc_arena_copy(&r->mem, kind.p, kind.n);
	r->kind = (struct acc_str){p == NULL ? "" : p, p == NULL ? 0 : kind.n};
	r->lost = p == NULL;
	return p == NULL ? ACC_ENOMEM : 0;
}

void
acc_rec_release(struct acc_rec *r)
{
	free(r->f);
	acc_arena_release(&r->mem);
	*r = (struct acc_rec){0};
}

struct acc_val
acc_nil(void)
{
	return (struct acc_val){.type = ACC_V_NIL};
}

struct acc_val
acc_bool(bool b)
{
	return (struct acc_val){.type = ACC_V_BOOL, .b = b};
}

struct acc_val
acc_int(int64_t i)
{
	return (struct acc_val){.type = ACC_V_INT, .i = i};
}

struct acc_val
acc_uint(uint64_t u)
{
	if (u <= INT64_MAX)
		return acc_int((int64_t)u);
	return (struct acc_val){.type = ACC_V_UINT, .u = u};
}

struct acc_val
acc_f64(double f)
{
	return (struct acc_val){.type = ACC_V_F64, .f = f};
}

struct acc_val
acc_text(struct acc_str s)
{
	return (struct acc_val){.type = ACC_V_TEXT, .s = s};
}

struct acc_val
acc_ctext(const char *s)
{
	return acc_text(acc_str_made(s));
}

struct acc_val
acc_ints(const int64_t *p, uint32_t n)
{
	return (struct acc_val){.type = ACC_V_INTS, .n = n, .ints = p};
}

struct acc_val
acc_texts(const struct acc_str *p, uint32_t n)
{
	return (struct acc_val){.type = ACC_V_TEXTS, .n = n, .texts = p};
}

/* Is this the key of one side, a.x or b.x? */
static bool
is_sided(struct acc_str key)
{
	return key.n > 2 && (key.p[0] == 'a' || key.p[0] == 'b') && key.p[1] == '.';
}

bool
acc_key_says(struct acc_str said, struct acc_str key)
{
	return acc_str_eq(said, key) ||
	       (said.n == key.n + 1 && acc_is_shared(said) && is_sided(key) &&
		       memcmp(said.p + 3, key.p + 2, key.n - 2) == 0);
}

/* Of n bytes, most often few: a call would take longer. */
static inline bool
same(const char *p, const char *q, uint32_t n)
{
	uint64_t u, v, w, x;
	uint32_t s, t, y, z;
	if (n > 16)
		return memcmp(p, q, n) == 0;
	if (n >= 8) {
		memcpy(&u, p, sizeof u);
		memcpy(&v, q, sizeof v);
		memcpy(&w, p + n - 8, sizeof w);
		memcpy(&x, q + n - 8, sizeof x);
		return ((u ^ v) | (w ^ x)) == 0;
	}
	if (n >= 4) {
		memcpy(&s, p, sizeof s);
		memcpy(&t, q, sizeof t);
		memcpy(&y, p + n - 4, sizeof y);
		memcpy(&z, q + n - 4, sizeof z);
		return ((s ^ t) | (y ^ z)) == 0;
	}
	return n == 0 || (p[0] == q[0] && p[n / 2] == q[n / 2] && p[n - 1] == q[n - 1]);
}

/* The field under prefix + key, or what both sides say under it, or r->n. */
static uint32_t
search(const struct acc_rec *r, struct acc_str prefix, struct acc_str key)
{
	const uint32_t np = prefix.n, nk = key.n, n = np + nk;
	/* Length and last byte tell most keys apart without a call. */
	const char last = nk > 0 ? key.p[nk - 1] : np > 0 ? prefix.p[np - 1] : '\0';
	const char *whole = np > 0 ? prefix.p : key.p;
	const bool sided = n > 2 && (np == 0 || np == 2) && (whole[0] == 'a' || whole[0] == 'b') &&
			   whole[1] == '.';
	const uint32_t skip = np > 0 ? 0 : 2;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_str k = r->f[i].key;
		if (k.n == n && (n == 0 || k.p[n - 1] == last) && same(k.p, prefix.p, np) &&
			same(k.p + np, key.p, nk))
			return i;
		if (sided && k.n == n + 1 && k.p[n] == last && acc_is_shared(k) &&
			memcmp(k.p + 3, key.p + skip, nk - skip) == 0)
			return i;
	}
	return r->n;
}

/* Where a key stands in records of a shape: whoever asks, asks the same of many. */
struct place {
	uint64_t shape; /* 0: none */
	uint32_t n, at; /* fields of such a record; where it stands, or n */
	uint8_t nk,
		np; /* bytes of the key, and of the prefix, as they stand in text one after the other */
	char text[30];
};
enum { PLACES = 512 }; /* in pairs, so that two that are asked in turn have room */

static inline bool
is_asked(const struct place *p, const struct acc_rec *r, struct acc_str prefix, struct acc_str key)
{
	return p->shape == r->shape && p->n == r->n && p->nk == key.n && p->np == prefix.n &&
	       same(p->text, key.p, key.n) && same(p->text + key.n, prefix.p, prefix.n);
}

static __attribute__((noinline)) void
learn(struct place *p, const struct acc_rec *r, struct acc_str prefix, struct acc_str key)
{
	*p = (struct place){r->shape, r->n, search(r, prefix, key), (uint8_t)key.n,
		(uint8_t)prefix.n, ""};
	memcpy(p->text, key.p, key.n);
	memcpy(p->text + key.n, prefix.p, prefix.n);
}

static struct acc_field *
find(const struct acc_rec *r, struct acc_str prefix, struct acc_str key)
{
	static _Thread_local struct place places[PLACES];
	if (r->shape == 0 || key.n == 0 || prefix.n + key.n > sizeof places->text) {
		const uint32_t at = search(r, prefix, key);
		return at < r->n ? &r->f[at] : NULL;
	}
	/* Which is where it is asked, mostly: of a literal, whose place in memory tells it from others. */
	const uint64_t hash = (r->shape ^ (uintptr_t)key.p ^ (uintptr_t)prefix.p << 20) *
			      UINT64_C(0x9e3779b97f4a7c15);
	struct place *p = &places[hash >> 56 << 1];
	if (!is_asked(p, r, prefix, key)) {
		if (!is_asked(p + 1, r, prefix, key)) {
			p[1] = p[0];
			learn(p, r, prefix, key);
		} else {
			p++;
		}
	}
	return p->at < r->n ? &r->f[p->at] : NULL;
}

/* Is f shared, but only the key of one side was asked for? */
static bool
found_shared(const struct acc_field *f, const char *prefix, const char *key)
{
	return acc_is_shared(f->key) && strlen(prefix) + strlen(key) + 1 == f->key.n;
}

/* A copy of what v points to, so that it lives as long as the record. */
static int
own(struct acc_arena *m, struct acc_val *v)
{
	if (v->type == ACC_V_TEXT || v->type == ACC_V_BIN) {
		v->s.p = v->s.p == NULL ? NULL : acc_arena_copy(m, v->s.p, v->s.n);
		return v->s.p == NULL ? ACC_ENOMEM : 0;
	}
	if (v->type == ACC_V_INTS) {
		size_t size = v->n * sizeof *v->ints;
		int64_t *p = acc_alloc(m, size);
		if (p != NULL && size > 0)
			memcpy(p, v->ints, size);
		v->ints = p;
		return p == NULL ? ACC_ENOMEM : 0;
	}
	if (v->type == ACC_V_TEXTS) {
		struct acc_str *p = acc_alloc(m, v->n * sizeof *p);
		if (p == NULL)
			return ACC_ENOMEM;
		for (uint32_t i = 0; i < v->n; i++) {
			p[i].n = v->texts[i].n;
			p[i].p = v->texts[i].p == NULL ? NULL
						       : acc_arena_copy(m, v->texts[i].p, p[i].n);
			if (p[i].p == NULL)
				return ACC_ENOMEM;
		}
		v->texts = p;
	}
	return 0;
}

static int
lose(struct acc_rec *r)
{
	r->lost = true;
	return ACC_ENOMEM;
}

int
acc_rec_fail(struct acc_err *e, int rc)
{
	return acc_fail(e, rc, rc == ACC_ELIMIT ? "a record has too many fields" : ACC_NOMEM_TEXT);
}

struct acc_field *
acc_rec_room(struct acc_rec *r, uint32_t n)
{
	r->shape = 0;
	if (r->f == NULL || r->cap - r->n < n) {
		/* The first time all that most records need. */
		size_t want = (size_t)r->n + n;
		struct acc_field *f = acc_grow(r->f, &r->cap, want < 64 ? 64 : want, sizeof *f,
			NULL);
		if (f == NULL) {
			r->lost = true;
			return NULL;
		}
		r->f = f;
	}
	return r->f + r->n;
}

/* A new field, not counted yet. */
static struct acc_field *
more(struct acc_rec *r)
{
	struct acc_field *f = acc_rec_room(r, 1);
	if (f != NULL)
		*f = (struct acc_field){0};
	return f;
}

static int
join(struct acc_arena *m, const char *prefix, struct acc_str key, struct acc_str *out)
{
	size_t np = strlen(prefix);
	char *p = acc_alloc(m, np + key.n + 1);
	if (p == NULL)
		return ACC_ENOMEM;
	memcpy(p, prefix, np);
	memcpy(p + np, key.p, key.n);
	p[np + key.n] = '\0';
	*out = (struct acc_str){p, (uint32_t)(np + key.n)};
	return 0;
}

int
acc_rec_push(struct acc_rec *r, const struct acc_field *f)
{
	if (r->n >= ACC_MAX_FIELDS)
		return ACC_ELIMIT;
	struct acc_field *slot = acc_rec_room(r, 1);
	if (slot == NULL || (f->raw == NULL && f->v.type == ACC_V_TEXT && f->v.s.p == NULL))
		return lose(r);
	/* Member by member: who made it has just written them one by one, and the whole would have to wait for that. */
	slot->key.p = f->key.p;
	slot->key.n = f->key.n;
	slot->v.type = f->v.type;
	slot->v.n = f->v.n;
	slot->v.s.p = f->v.s.p;
	slot->v.s.n = f->v.s.n;
	slot->raw = f->raw;
	slot->nraw = f->nraw;
	r->n++;
	return 0;
}

int
acc_add(struct acc_rec *r, const char *prefix, const char *key, struct acc_val v)
{
	if (r->n >= ACC_MAX_FIELDS)
		return ACC_ELIMIT;
	struct acc_field *f = more(r);
	if (f == NULL || join(&r->mem, prefix, acc_str(key), &f->key) < 0 || own(&r->mem, &v) < 0)
		return lose(r);
	f->v = v;
	r->n++;
	return 0;
}

/* A shared field is now the other side's alone. */
static int
leave_to_other(struct acc_rec *r, struct acc_field *f, const char *prefix, const char *key)
{
	const bool device = (prefix[0] != '\0' ? prefix : key)[0] == 'a';
	r->shape = 0;
	if (!device)
		return join(&r->mem, "a.", (struct acc_str){f->key.p + 3, f->key.n - 3}, &f->key);
	f->key = (struct acc_str){f->key.p + 1, f->key.n - 1};
	return 0;
}

int
acc_put(struct acc_rec *r, const char *prefix, const char *key, struct acc_val v)
{
	struct acc_field *f = find(r, acc_str(prefix), acc_str(key));
	if (f != NULL && found_shared(f, prefix, key)) {
		if (leave_to_other(r, f, prefix, key) < 0)
			return lose(r);
		f = NULL;
	}
	if (f == NULL)
		return acc_add(r, prefix, key, v);
	if (own(&r->mem, &v) < 0)
		return lose(r);
	f->v = v;
	f->raw = NULL;
	return 0;
}

int
acc_rec_append(struct acc_rec *r, const char *prefix, const struct acc_rec *src)
{
	if (src->n > ACC_MAX_FIELDS - r->n)
		return ACC_ELIMIT;
	struct acc_field *f = src->lost ? NULL : acc_rec_room(r, src->n);
	if (f == NULL)
		return lose(r);
	if (src->n > 0)
		memcpy(f, src->f, src->n * sizeof *f);
	for (uint32_t i = 0; i < src->n && prefix[0] != '\0'; i++)
		if (join(&r->mem, prefix, src->f[i].key, &f[i].key) < 0)
			return lose(r);
	r->n += src->n;
	return 0;
}

int
acc_rec_copy(struct acc_rec *dst, const struct acc_rec *src)
{
	int rc = acc_rec_start(dst, src->kind);
	if (src->lost)
		rc = lose(dst);
	for (uint32_t i = 0; i < src->n && rc == 0; i++) {
		struct acc_field *f = more(dst);
		struct acc_val v = src->f[i].v;
		if (f == NULL || join(&dst->mem, "", src->f[i].key, &f->key) < 0 ||
			own(&dst->mem, &v) < 0)
			return lose(dst);
		f->v = v;
		dst->n++;
	}
	dst->shape = src->shape;
	return rc;
}

/* Where the next field stands that only the bench has, from f[i] on. */
static uint32_t
next_of_bench(const struct acc_field *f, uint32_t n, uint32_t i)
{
	while (i < n && (acc_is_shared(f[i].key) || f[i].key.p[0] != 'b'))
		i++;
	return i;
}

/* Fields of the sides, n together: into `to` the device's, then the bench's, in the order of the device's
 * where that has the same. *keys: room for the device's, which moves on. How many they are. */
static uint32_t
spread(const struct acc_field *f, uint32_t n, char **keys, struct acc_field *to)
{
	struct acc_field *out = to;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_str key = f[i].key;
		if (!acc_is_shared(key) && key.p[0] == 'b')
			continue;
		*out++ = f[i];
		if (acc_is_shared(key)) {
			char *p = *keys;
			p[0] = 'a';
			memcpy(p + 1, key.p + 2, key.n - 2);
			out[-1].key = (struct acc_str){p, key.n - 1};
			*keys += key.n - 1;
		}
	}
	uint32_t own = next_of_bench(f, n, 0);
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_str key = f[i].key;
		if (acc_is_shared(key)) {
			*out++ = f[i];
			out[-1].key = (struct acc_str){key.p + 1, key.n - 1};
		} else if (own < n && key.p[0] == 'a' && f[own].key.n == key.n &&
			   memcmp(f[own].key.p + 1, key.p + 1, key.n - 1) == 0) {
			*out++ = f[own];
			own = next_of_bench(f, n, own + 1);
		}
	}
	for (; own < n; own = next_of_bench(f, n, own + 1))
		*out++ = f[own];
	return (uint32_t)(out - to);
}

int
acc_rec_split(struct acc_rec *r)
{
	const uint64_t shape = r->shape;
	const uint32_t n = r->n;
	uint32_t shared = 0;
	size_t size = 0;
	if (!acc_rec_is(r, "pair"))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (acc_is_shared(r->f[i].key)) {
			shared++;
			size += r->f[i].key.n - 1;
		}
	if (shared == 0)
		return 0;
	if (shared > ACC_MAX_FIELDS - n)
		return ACC_ELIMIT;
	struct acc_field *old = acc_alloc(&r->mem, n * sizeof *old);
	char *keys = acc_alloc(&r->mem, size);
	if (old == NULL || keys == NULL || acc_rec_room(r, shared) == NULL)
		return lose(r);
	memcpy(old, r->f, n * sizeof *old);
	r->n = 0;
	for (uint32_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && (acc_is_shared(old[end].key) || is_sided(old[end].key));)
			end++;
		if (end == i)
			r->f[r->n++] = old[end++];
		else
			r->n += spread(old + i, end - i, &keys, r->f + r->n);
	}
	/* The keys of all that had this shape are those now. */
	r->shape = shape == 0 ? 0 : acc_hash(&shape, sizeof shape);
	return 0;
}

void
acc_del(struct acc_rec *r, const char *prefix, const char *key)
{
	struct acc_field *f = find(r, acc_str(prefix), acc_str(key));
	if (f == NULL)
		return;
	if (found_shared(f, prefix, key)) {
		if (leave_to_other(r, f, prefix, key) < 0)
			lose(r);
		return;
	}
	size_t after = (size_t)(r->f + r->n - f) - 1;
	memmove(f, f + 1, after * sizeof *f);
	r->n--;
	r->shape = 0;
}

const struct acc_val *
acc_get_str(const struct acc_rec *r, struct acc_str prefix, struct acc_str key)
{
	const struct acc_field *f = find(r, prefix, key);
	return f == NULL ? NULL : &f->v;
}

bool
acc_as_bool(const struct acc_val *v, bool *out)
{
	if (v == NULL || v->type != ACC_V_BOOL)
		return false;
	*out = v->b;
	return true;
}

bool
acc_as_int(const struct acc_val *v, int64_t *out)
{
	if (v == NULL || v->type != ACC_V_INT)
		return false;
	*out = v->i;
	return true;
}

bool
acc_as_f64(const struct acc_val *v, double *out)
{
	if (v == NULL)
		return false;
	if (v->type == ACC_V_F64)
		*out = v->f;
	else if (v->type == ACC_V_INT)
		*out = (double)v->i;
	else if (v->type == ACC_V_UINT)
		*out = (double)v->u;
	else
		return false;
	return true;
}

bool
acc_as_text(const struct acc_val *v, struct acc_str *out)
{
	if (v == NULL || v->type != ACC_V_TEXT)
		return false;
	*out = v->s;
	return true;
}

static bool
number(const struct acc_val *v)
{
	return v->type == ACC_V_INT || v->type == ACC_V_UINT || v->type == ACC_V_F64;
}

bool
acc_val_eq(const struct acc_val *a, const struct acc_val *b)
{
	if (number(a) && number(b)) {
		if (a->type != ACC_V_F64 && b->type != ACC_V_F64)
			return a->type == b->type && a->i == b->i;
		double x = 0, y = 0;
		acc_as_f64(a, &x);
		acc_as_f64(b, &y);
		return x == y || (isnan(x) && isnan(y));
	}
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case ACC_V_BOOL:
		return a->b == b->b;
	case ACC_V_TEXT:
	case ACC_V_BIN:
		return acc_str_eq(a->s, b->s);
	case ACC_V_INTS:
		return a->n == b->n &&
		       (a->n == 0 || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0);
	case ACC_V_TEXTS:
		for (uint32_t i = 0; a->n == b->n && i < a->n; i++)
			if (!acc_str_eq(a->texts[i], b->texts[i]))
				return false;
		return a->n == b->n;
	default:
		return true;
	}
}
