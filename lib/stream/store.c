#include "stream/store.h"
#include "acc/file.h"

#include <stdlib.h>
#include <unistd.h>

enum { SEGMENT = 16, MOST_KEYS = 65536, FLUSH = 256 << 10, WINDOW = 64 << 10, PAD = 16, LONG = 255 };

/* Keys that stand together in a record: with their prefix as MessagePack, one behind the other. */
struct store_keys {
	struct acc_str kind;
	uint32_t n, name; /* name: which field that is; n: there is none */
	struct acc_str *key;
	const uint8_t *bytes;
	uint32_t *at; /* where each begins in bytes; n + 1 of them */
};

struct store_value {
	const uint8_t *p;
	uint32_t n;
};

/* One of the record before: where its value stands in the buffer that is written. */
struct place {
	size_t at;
	uint32_t n;
};

struct acc_store {
	int fd;
	struct acc_str prefix;
	struct acc_arena mem;
	struct acc_map by_keys;
	struct store_keys **keys;
	uint32_t nkeys;
	size_t cap_keys;
	struct acc_buf id;       /* to look up keys */
	struct acc_buf raw;      /* a record that did not come as bytes, */
	struct acc_rec raw_rec;
	/* writing */
	struct acc_buf out;
	uint64_t written;
	size_t segment;          /* where the segment begins in out */
	uint32_t inside;         /* records in it */
	uint32_t last;           /* keys of the record before */
	struct place *before;
	size_t cap_before;
	/* reading */
	struct acc_buf in;
	uint64_t in_at, cached;  /* of the window; the segment that is decoded, or UINT64_MAX */
	struct store_value *value;
	size_t cap_value;
	struct {
		const struct store_keys *keys;
		size_t first;
	} rec[SEGMENT];
	uint32_t nrec;
	struct acc_rec whole;    /* of acc_store_rec */
	struct acc_buf whole_bytes;
};

struct acc_store *
acc_store_open(const char *tmpdir, const char *prefix, struct acc_err *e)
{
	struct acc_store *st = calloc(1, sizeof *st);
	if (st == NULL) {
		acc_fail(e, ACC_ENOMEM, "out of memory");
		return NULL;
	}
	st->prefix = acc_str(prefix);
	st->cached = UINT64_MAX;
	st->fd = acc_file_temp(tmpdir, e);
	if (st->fd < 0) {
		acc_err_in(e, tmpdir);
		free(st);
		return NULL;
	}
	return st;
}

void
acc_store_close(struct acc_store *st)
{
	if (st == NULL)
		return;
	close(st->fd);
	acc_arena_release(&st->mem);
	acc_map_release(&st->by_keys);
	acc_rec_release(&st->raw_rec);
	acc_rec_release(&st->whole);
	struct acc_buf *const buf[] = {&st->id, &st->raw, &st->out, &st->in, &st->whole_bytes};
	for (size_t i = 0; i < sizeof buf / sizeof *buf; i++)
		acc_buf_release(buf[i]);
	free(st->keys);
	free(st->before);
	free(st->value);
	free(st);
}

static void *
grow(void *p, size_t *cap, size_t n, size_t size)
{
	if (n <= *cap)
		return p;
	size_t want = n + n / 2 + 16;
	p = realloc(p, want * size);
	if (p != NULL)
		*cap = want;
	return p;
}

/* Are n bytes equal? Most are few: a call would take longer than the comparison. */
static inline bool
equal(const void *p, const void *q, size_t n)
{
	const uint8_t *a = p, *b = q;
	uint64_t u, v, w, x;
	uint32_t s, t, y, z;
	if (n > 16)
		return memcmp(a, b, n) == 0;
	if (n >= 8) {
		memcpy(&u, a, 8);
		memcpy(&v, b, 8);
		memcpy(&w, a + n - 8, 8);
		memcpy(&x, b + n - 8, 8);
		return ((u ^ v) | (w ^ x)) == 0;
	}
	if (n >= 4) {
		memcpy(&s, a, 4);
		memcpy(&t, b, 4);
		memcpy(&y, a + n - 4, 4);
		memcpy(&z, b + n - 4, 4);
		return ((s ^ t) | (y ^ z)) == 0;
	}
	return n == 0 || (a[0] == b[0] && a[n / 2] == b[n / 2] && a[n - 1] == b[n - 1]);
}

/* n bytes; what is short is copied with more behind it than is meant, for which there is room. */
static inline void
copy(uint8_t *to, const void *from, size_t n)
{
	if (n <= PAD)
		memcpy(to, from, PAD);
	else
		memcpy(to, from, n);
}

/* --- keys --- */

static size_t
put_header(uint8_t *p, uint32_t n)
{
	size_t k = n < 32 ? 1 : n < 256 ? 2 : n < 65536 ? 3 : 5;
	p[0] = (uint8_t)(k == 1 ? 0xa0 | n : 0xd7 + k - (k == 5));
	for (size_t i = 1; i < k; i++)
		p[i] = (uint8_t)(n >> 8 * (k - 1 - i));
	return k;
}

/* Make up what is needed of the keys of r. */
static struct store_keys *
new_keys(struct acc_store *st, const struct acc_rec *r)
{
	size_t size = PAD, at = 0;
	for (uint32_t i = 0; i < r->n; i++)
		size += 5 + (size_t)st->prefix.n + r->f[i].key.n;
	struct store_keys *k = acc_alloc(&st->mem, sizeof *k);
	uint8_t *bytes = acc_alloc(&st->mem, size);
	if (k == NULL || bytes == NULL)
		return NULL;
	*k = (struct store_keys){.n = r->n, .name = r->n, .bytes = bytes};
	k->key = acc_alloc(&st->mem, r->n * sizeof *k->key);
	k->at = acc_alloc(&st->mem, ((size_t)r->n + 1) * sizeof *k->at);
	k->kind = (struct acc_str){acc_arena_copy(&st->mem, r->kind.p, r->kind.n), r->kind.n};
	if (k->key == NULL || k->at == NULL || k->kind.p == NULL)
		return NULL;
	for (uint32_t i = 0; i < r->n; i++) {
		struct acc_str key = r->f[i].key;
		k->at[i] = (uint32_t)at;
		at += put_header(bytes + at, st->prefix.n + key.n);
		memcpy(bytes + at, st->prefix.p, st->prefix.n);
		at += st->prefix.n;
		k->key[i] = (struct acc_str){(char *)bytes + at, key.n};
		if (key.n > 0)
			memcpy(bytes + at, key.p, key.n);
		at += key.n;
		if (k->name == r->n && acc_str_is(key, "name"))
			k->name = i;
	}
	k->at[r->n] = (uint32_t)at;
	return k;
}

static bool
has_keys(const struct store_keys *k, const struct acc_rec *r)
{
	if (k->n != r->n || !acc_str_eq(k->kind, r->kind))
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		if (k->key[i].n != r->f[i].key.n || !equal(k->key[i].p, r->f[i].key.p, k->key[i].n))
			return false;
	return true;
}

static int64_t
find_keys(struct acc_store *st, const struct acc_rec *r)
{
	if (st->last < st->nkeys && has_keys(st->keys[st->last], r))
		return st->last;
	st->id.n = 0;
	int rc = acc_buf_add(&st->id, r->kind.p, r->kind.n);
	for (uint32_t i = 0; i < r->n && rc == 0; i++) {
		rc = acc_buf_add(&st->id, &r->f[i].key.n, sizeof r->f[i].key.n);
		if (rc == 0)
			rc = acc_buf_add(&st->id, r->f[i].key.p, r->f[i].key.n);
	}
	uint64_t *at = rc < 0 ? NULL
			      : acc_map_put(&st->by_keys,
					(struct acc_str){(char *)st->id.p, (uint32_t)st->id.n},
					st->nkeys);
	if (at == NULL)
		return ACC_ENOMEM;
	if (*at < st->nkeys)
		return (int64_t)*at;
	if (st->nkeys == MOST_KEYS)
		return ACC_ELIMIT;
	struct store_keys **p = grow(st->keys, &st->cap_keys, (size_t)st->nkeys + 1, sizeof *p);
	if (p == NULL)
		return ACC_ENOMEM;
	st->keys = p;
	p[st->nkeys] = new_keys(st, r);
	return p[st->nkeys] == NULL ? ACC_ENOMEM : (int64_t)st->nkeys++;
}

/* --- writing --- */

static int
flush(struct acc_store *st, struct acc_err *e)
{
	int rc = acc_file_write(st->fd, st->out.p, st->out.n, e);
	if (rc < 0)
		return acc_err_in(e, "temporary file");
	st->written += st->out.n;
	st->out.n = 0;
	return 0;
}

/* A segment: its length, then the number of its records, then these. */
static int
end_segment(struct acc_store *st, struct acc_err *e)
{
	if (st->inside == 0)
		return 0;
	uint32_t head[2] = {(uint32_t)(st->out.n - st->segment), st->inside};
	memcpy(st->out.p + st->segment, head, sizeof head);
	st->inside = 0;
	return st->out.n >= FLUSH ? flush(st, e) : 0;
}

static uint8_t *
put_length(uint8_t *p, uint32_t n)
{
	*p++ = n < LONG ? (uint8_t)n : LONG;
	if (n < LONG)
		return p;
	memcpy(p, &n, sizeof n);
	return p + sizeof n;
}

/* A record: the number of its keys; a bit for each value that is that of the record before; the
 * length and the bytes of each other one. */
static int
put(struct acc_store *st, const struct acc_rec *r, uint32_t keys)
{
	size_t size = sizeof keys + r->n / 8 + 1 + PAD;
	for (uint32_t i = 0; i < r->n; i++)
		size += 5 + (size_t)r->f[i].nraw;
	struct place *b = grow(st->before, &st->cap_before, r->n, sizeof *b);
	if (b == NULL && r->n > 0)
		return ACC_ENOMEM;
	st->before = b;
	if (acc_buf_reserve(&st->out, size) < 0)
		return ACC_ENOMEM;
	const bool like = st->inside > 0 && st->last == keys;
	uint8_t *base = st->out.p, *p = base + st->out.n, *same;
	memcpy(p, &keys, sizeof keys);
	same = p += sizeof keys;
	memset(same, 0, r->n / 8 + 1);
	p += r->n / 8 + 1;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_field *f = &r->f[i];
		if (like && b[i].n == f->nraw && equal(base + b[i].at, f->raw, f->nraw)) {
			same[i / 8] |= (uint8_t)(1U << i % 8);
			continue;
		}
		p = put_length(p, f->nraw);
		b[i] = (struct place){(size_t)(p - base), f->nraw};
		memcpy(p, f->raw, f->nraw);
		p += f->nraw;
	}
	st->out.n = (size_t)(p - base);
	return 0;
}

/* *r, or a record like it with the bytes of every value. */
static int
as_bytes(struct acc_store *st, const struct acc_rec **r, struct acc_err *e)
{
	uint32_t i = 0;
	while (i < (*r)->n && (*r)->f[i].raw != NULL)
		i++;
	if (i == (*r)->n)
		return 0;
	st->raw.n = 0;
	int rc = acc_encode(*r, &st->raw, e);
	int64_t len = rc < 0 ? rc : acc_decode(st->raw.p, st->raw.n, &st->raw_rec, e);
	*r = &st->raw_rec;
	return len < 0 ? (int)len : 0;
}

int64_t
acc_store_keys(struct acc_store *st, const struct acc_rec *r, struct acc_err *e)
{
	int64_t keys = find_keys(st, r);
	return keys >= 0	      ? keys
	       : keys == ACC_ELIMIT ? acc_fail(e, ACC_ELIMIT, "more than %d sets of keys", MOST_KEYS)
				    : acc_fail(e, ACC_ENOMEM, "out of memory");
}

int
acc_store_put(struct acc_store *st, const struct acc_rec *r, uint32_t keys, uint64_t *at,
	struct acc_err *e)
{
	int rc = as_bytes(st, &r, e);
	if (rc == 0 && (st->inside == SEGMENT || st->out.n - st->segment >= FLUSH))
		rc = end_segment(st, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && st->inside == 0) {
		st->segment = st->out.n;
		rc = acc_buf_reserve(&st->out, 8);
		st->out.n += rc == 0 ? 8 : 0;
	}
	if (rc == 0)
		rc = put(st, r, keys);
	if (rc < 0)
		return acc_fail(e, rc, "out of memory");
	*at = (st->written + st->segment) * SEGMENT + st->inside++;
	st->last = keys;
	return 0;
}

/* --- reading --- */

static int
load(struct acc_store *st, uint64_t at, size_t want, struct acc_err *e)
{
	st->cached = UINT64_MAX;
	st->in.n = 0;
	if (want > st->written - at)
		want = (size_t)(st->written - at);
	if (acc_buf_reserve(&st->in, want + PAD) < 0)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	int rc = acc_file_pread(st->fd, st->in.p, want, at, e);
	if (rc < 0)
		return acc_err_in(e, "temporary file");
	st->in.n = want;
	st->in_at = at;
	return 0;
}

/* The bytes of the segment at `at`. */
static int
window(struct acc_store *st, uint64_t at, const uint8_t **p, struct acc_err *e)
{
	for (size_t want = WINDOW;;) {
		uint32_t len = 8;
		if (at >= st->in_at && at < st->in_at + st->in.n) {
			size_t skip = (size_t)(at - st->in_at), have = st->in.n - skip;
			*p = st->in.p + skip;
			if (have >= 8)
				memcpy(&len, *p, sizeof len);
			if (have >= 8 && len <= have)
				return 0;
			if (skip == 0 && (have < want || len < 8))
				return acc_fail(e, ACC_ETRUNC, "the temporary file was cut short");
			want = len > want ? len : want;
		}
		int rc = load(st, at, want, e);
		if (rc < 0)
			return rc;
	}
}

/* Decode the segment at `at`: each value, or where the record before has it. */
static int
decode(struct acc_store *st, uint64_t at, struct acc_err *e)
{
	const uint8_t *p;
	uint32_t keys;
	size_t n = 0;
	int rc = window(st, at, &p, e);
	if (rc < 0)
		return rc;
	memcpy(&st->nrec, p + 4, sizeof st->nrec);
	p += 8;
	for (uint32_t t = 0; t < st->nrec; t++) {
		memcpy(&keys, p, sizeof keys);
		const struct store_keys *k = st->keys[keys];
		const uint8_t *same = p += sizeof keys;
		struct store_value *v = grow(st->value, &st->cap_value, n + k->n, sizeof *v);
		if (v == NULL && n + k->n > 0)
			return acc_fail(e, ACC_ENOMEM, "out of memory");
		st->value = v;
		st->rec[t].keys = k;
		st->rec[t].first = n;
		p += k->n / 8 + 1;
		for (uint32_t i = 0; i < k->n; i++, n++) {
			if (same[i / 8] >> i % 8 & 1) {
				v[n] = v[n - k->n];
				continue;
			}
			uint32_t len = *p++;
			if (len == LONG) {
				memcpy(&len, p, sizeof len);
				p += sizeof len;
			}
			v[n] = (struct store_value){p, len};
			p += len;
		}
	}
	st->cached = at;
	return 0;
}

int
acc_store_get(struct acc_store *st, uint64_t at, struct acc_stored *out, struct acc_err *e)
{
	int rc = end_segment(st, e);
	if (rc == 0 && st->out.n > 0)
		rc = flush(st, e);
	if (rc == 0 && at / SEGMENT >= st->written)
		rc = acc_fail(e, ACC_EUSAGE, "no record at %llu in the temporary file",
			(unsigned long long)at);
	if (rc == 0 && st->cached != at / SEGMENT)
		rc = decode(st, at / SEGMENT, e);
	if (rc < 0)
		return rc;
	const struct store_keys *k = st->rec[at % SEGMENT].keys;
	const struct store_value *v = st->value + st->rec[at % SEGMENT].first;
	*out = (struct acc_stored){.kind = k->kind, .n = k->n, .keys = k, .v = v};
	if (k->name < k->n)
		out->name = (struct acc_str){(const char *)v[k->name].p, v[k->name].n};
	return 0;
}

int
acc_store_append(const struct acc_stored *r, struct acc_buf *out, struct acc_err *e)
{
	const struct store_keys *k = r->keys;
	size_t size = k->at[k->n] + PAD;
	for (uint32_t i = 0; i < k->n; i++)
		size += r->v[i].n;
	if (acc_buf_reserve(out, size) < 0)
		return acc_fail(e, ACC_ENOMEM, "out of memory");
	uint8_t *p = out->p + out->n;
	for (uint32_t i = 0; i < k->n; i++) {
		size_t n = k->at[i + 1] - k->at[i];
		copy(p, k->bytes + k->at[i], n);
		p += n;
		copy(p, r->v[i].p, r->v[i].n);
		p += r->v[i].n;
	}
	out->n = (size_t)(p - out->p);
	return 0;
}

int
acc_store_rec(struct acc_store *st, uint64_t at, struct acc_rec **out, struct acc_err *e)
{
	struct acc_stored s;
	int rc = acc_store_get(st, at, &s, e);
	struct acc_buf *b = &st->whole_bytes;
	b->n = 0;
	if (rc == 0 && acc_buf_reserve(b, 16 + (size_t)s.kind.n) < 0)
		rc = acc_fail(e, ACC_ENOMEM, "out of memory");
	if (rc < 0)
		return rc;
	b->p[b->n++] = 0x92; /* an array of two: kind and map */
	b->n += put_header(b->p + b->n, s.kind.n);
	memcpy(b->p + b->n, s.kind.p, s.kind.n);
	b->n += s.kind.n;
	const uint8_t map[3] = {0xde, (uint8_t)(s.n >> 8), (uint8_t)s.n};
	memcpy(b->p + b->n, map, sizeof map);
	b->n += sizeof map;
	rc = acc_store_append(&s, b, e);
	int64_t len = rc < 0 ? rc : acc_decode(b->p, b->n, &st->whole, e);
	*out = &st->whole;
	return len < 0 ? (int)len : 1;
}
