#include "stream/store.h"
#include "stream/codec.h"
#include "stream/keys.h"
#include "acc/file.h"

#include <stdlib.h>
#include <unistd.h>

enum { SEGMENT = 32, FLUSH = 256 << 10, WINDOW = 64 << 10, JUMP = 8 << 10, LONG = 255 };

struct store_value {
	const uint8_t *p;
	uint32_t n;
};

/* The last value under a key: where it stands in the buffer that is written, in which segment. */
struct field_at {
	size_t at;
	uint32_t n;
	uint32_t segment;
};

/* How a value is kept: as bytes; as that of the last record with this key, or of the twin. */
enum { BYTES, BEFORE, TWIN };

struct acc_store {
	int fd;
	struct acc_keys keys;
	struct acc_buf raw; /* a record that did not come as bytes, */
	struct acc_rec raw_rec;
	/* writing */
	struct acc_buf out;
	uint64_t written;
	size_t segment;          /* where the segment begins in out */
	uint32_t inside;         /* records in it */
	uint32_t nsegment;       /* segments so far */
	struct field_at *before; /* by slot */
	size_t cap_before;
	struct reading {
		struct acc_buf in;
		uint64_t in_at,
			cached; /* of the window; the segment that is decoded, or UINT64_MAX */
		struct store_value *value, *latest; /* latest: by slot */
		size_t cap_value, cap_latest;
		struct {
			struct store_keys *keys;
			size_t first;
		} rec[SEGMENT];
		uint32_t nrec, done; /* records of the segment, and how many are decoded: */
		size_t nvalue;       /* all values of these */
		const uint8_t *p;    /* behind which the next one stands */
	} way[2];      /* a backward call is read beside its forward call, which lies far from it */
	unsigned last; /* of the ways */
	struct acc_rec whole; /* of acc_store_rec */
};

struct acc_store *
acc_store_open(const char *tmpdir, const char *prefix, struct acc_err *e)
{
	struct acc_store *st = calloc(1, sizeof *st);
	if (st == NULL) {
		acc_nomem(e);
		return NULL;
	}
	st->keys.prefix = acc_str(prefix);
	st->way[0].cached = st->way[1].cached = UINT64_MAX;
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
	acc_keys_release(&st->keys);
	acc_rec_release(&st->raw_rec);
	acc_rec_release(&st->whole);
	struct acc_buf *const buf[] = {&st->raw, &st->out, &st->way[0].in, &st->way[1].in};
	for (size_t i = 0; i < sizeof buf / sizeof *buf; i++)
		acc_buf_release(buf[i]);
	free(st->before);
	for (int i = 0; i < 2; i++) {
		free(st->way[i].value);
		free(st->way[i].latest);
	}
	free(st);
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

/* A record: the number of its keys; how each value is kept, in two bits; the length and the bytes
 * of those that are kept as bytes. */
static int
put(struct acc_store *st, const struct acc_rec *r, size_t nraw, uint32_t keys)
{
	const struct store_keys *k = st->keys.v[keys];
	const size_t size = sizeof keys + r->n / 4 + 1 + nraw + KEYS_PAD;
	const size_t had = st->cap_before;
	struct field_at *before = acc_grow(st->before, &st->cap_before, st->keys.slots.n,
		sizeof *before, NULL);
	if (before == NULL && st->keys.slots.n > 0)
		return ACC_ENOMEM;
	if (st->cap_before > had)
		memset(before + had, 0, (st->cap_before - had) * sizeof *before);
	st->before = before;
	if (acc_buf_reserve(&st->out, size) < 0)
		return ACC_ENOMEM;
	uint8_t *base = st->out.p, *p = base + st->out.n, *how;
	memcpy(p, &keys, sizeof keys);
	how = p += sizeof keys;
	memset(how, 0, r->n / 4 + 1);
	p += r->n / 4 + 1;
	const uint32_t segment = st->nsegment;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_field *f = &r->f[i];
		struct field_at *b = &before[k->slot[i]];
		if (b->segment == segment && b->n == f->nraw &&
			acc_bytes_same(base + b->at, f->raw, f->nraw)) {
			how[i / 4] |= (uint8_t)(BEFORE << i % 4 * 2);
			continue;
		}
		const struct acc_field *twin = &r->f[k->twin[i]];
		if (twin != f && twin->nraw == f->nraw &&
			acc_bytes_same(twin->raw, f->raw, f->nraw)) {
			how[i / 4] |= (uint8_t)(TWIN << i % 4 * 2);
			*b = before[k->slot[k->twin[i]]];
			continue;
		}
		p = put_length(p, f->nraw);
		*b = (struct field_at){(size_t)(p - base), f->nraw, st->nsegment};
		acc_bytes_copy(p, f->raw, f->nraw);
		p += f->nraw;
	}
	st->out.n = (size_t)(p - base);
	return 0;
}

/* How many bytes the values of a record take at most; 0: one is no bytes yet. */
static size_t
raw_size(const struct acc_rec *r)
{
	size_t n = 1;
	for (uint32_t i = 0; i < r->n; i++) {
		if (r->f[i].raw == NULL)
			return 0;
		n += 5 + (size_t)r->f[i].nraw;
	}
	return n;
}

/* *r, or a record like it with the bytes of every value, at most *nraw. */
static int
as_bytes(struct acc_store *st, const struct acc_rec **r, size_t *nraw, struct acc_err *e)
{
	*nraw = raw_size(*r);
	if (*nraw > 0)
		return 0;
	st->raw.n = 0;
	int rc = acc_encode(*r, &st->raw, e);
	int64_t len = rc < 0 ? rc
			     : acc_decode_open(st->raw.p, st->raw.n, &st->raw_rec, NULL, NULL, e);
	*r = &st->raw_rec;
	*nraw = raw_size(*r);
	return len < 0 ? (int)len : 0;
}

int64_t
acc_store_keys(struct acc_store *st, const struct acc_rec *r, struct acc_err *e)
{
	int64_t keys = acc_keys_find(&st->keys, r, e);
	return keys >= 0 || keys == ACC_EFORMAT ? keys
	       : keys == ACC_ELIMIT
		       ? acc_fail(e, ACC_ELIMIT, "more than %d sets of keys", KEYS_MOST)
		       : acc_nomem(e);
}

int
acc_store_put(struct acc_store *st, const struct acc_rec *r, uint32_t keys, uint64_t *at,
	struct acc_err *e)
{
	size_t nraw;
	int rc = as_bytes(st, &r, &nraw, e);
	if (rc == 0 && (st->inside == SEGMENT || st->out.n - st->segment >= FLUSH))
		rc = end_segment(st, e);
	if (rc < 0)
		return rc;
	if (rc == 0 && st->inside == 0) {
		st->segment = st->out.n;
		st->nsegment++;
		rc = acc_buf_reserve(&st->out, 8);
		st->out.n += rc == 0 ? 8 : 0;
	}
	if (rc == 0)
		rc = put(st, r, nraw, keys);
	if (rc < 0)
		return acc_nomem(e);
	*at = (st->written + st->segment) * SEGMENT + st->inside++;
	return 0;
}

/* --- reading --- */

static int
load(struct acc_store *st, struct reading *w, uint64_t at, size_t want, struct acc_err *e)
{
	w->cached = UINT64_MAX;
	w->in.n = 0;
	if (want > st->written - at)
		want = (size_t)(st->written - at);
	if (acc_buf_reserve(&w->in, want + KEYS_PAD) < 0)
		return acc_nomem(e);
	int rc = acc_file_pread(st->fd, w->in.p, want, at, e);
	if (rc < 0) {
		acc_err_in(e, "temporary file");
		return rc;
	}
	w->in.n = want;
	w->in_at = at;
	return 0;
}

/* The bytes of the segment at `at`. */
static int
window(struct acc_store *st, struct reading *w, uint64_t at, const uint8_t **p, struct acc_err *e)
{
	/* Who goes back from record to record is given what lies before, too. */
	const bool back = at < w->in_at && w->in_at - at < WINDOW / 2;
	uint64_t from = !back ? at : at < WINDOW / 2 ? 0 : at - WINDOW / 2;
	/* Who jumps is given little more than the segment. */
	const bool on = back || (at >= w->in_at && at <= w->in_at + w->in.n);
	for (size_t want = on ? WINDOW : JUMP;;) {
		uint32_t len = 8;
		if (at >= w->in_at && at < w->in_at + w->in.n) {
			size_t skip = (size_t)(at - w->in_at), have = w->in.n - skip;
			*p = w->in.p + skip;
			if (have >= 8)
				memcpy(&len, *p, sizeof len);
			if (have >= 8 && len <= have)
				return 0;
			if (skip == 0 && (have < want || len < 8))
				return acc_fail(e, ACC_ETRUNC, "the temporary file was cut short");
			want = len > want ? len : want;
			from = at;
		}
		int rc = load(st, w, from, want, e);
		if (rc < 0)
			return rc;
	}
}

/* The values of one record, which begins at p. What is behind it. */
static const uint8_t *
decode_one(const struct store_keys *k, const uint8_t *p, struct store_value *latest,
	struct store_value *v)
{
	const uint8_t *how = p;
	p += k->n / 4 + 1;
	for (uint32_t i = 0; i < k->n; i++) {
		const unsigned h = how[i / 4] >> i % 4 * 2 & 3;
		struct store_value *before = &latest[k->slot[i]];
		if (h == BYTES) {
			uint32_t len = *p++;
			if (len == LONG) {
				memcpy(&len, p, sizeof len);
				p += sizeof len;
			}
			*before = (struct store_value){p, len};
			p += len;
		} else if (h == TWIN) {
			*before = v[k->twin[i]];
		}
		v[i] = *before;
	}
	return p;
}

/* The segment at `at` is what is decoded now. */
static int
begin(struct acc_store *st, struct reading *w, uint64_t at, struct acc_err *e)
{
	const uint8_t *p;
	int rc = window(st, w, at, &p, e);
	if (rc < 0)
		return rc;
	struct store_value *latest = acc_grow(w->latest, &w->cap_latest, st->keys.slots.n,
		sizeof *latest, e);
	if (latest == NULL && st->keys.slots.n > 0)
		return ACC_ENOMEM;
	w->latest = latest;
	memcpy(&w->nrec, p + 4, sizeof w->nrec);
	w->p = p + 8;
	w->done = 0;
	w->nvalue = 0;
	w->cached = at;
	return 0;
}

/* Decode the records of the segment up to number `last`: whoever jumps wants few of them. */
static int
decode(struct acc_store *st, struct reading *w, uint32_t last, struct acc_err *e)
{
	uint32_t keys;
	for (; w->done <= last && w->done < w->nrec; w->done++) {
		memcpy(&keys, w->p, sizeof keys);
		struct store_keys *k = st->keys.v[keys];
		/* One more, so that there are some even where no record has a key. */
		struct store_value *v = acc_grow(w->value, &w->cap_value, w->nvalue + k->n + 1,
			sizeof *v, e);
		if (v == NULL)
			return ACC_ENOMEM;
		w->value = v;
		w->rec[w->done].keys = k;
		w->rec[w->done].first = w->nvalue;
		w->p = decode_one(k, w->p + sizeof keys, w->latest, v + w->nvalue);
		w->nvalue += k->n;
	}
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
	if (rc == 0 && st->way[st->last].cached != at / SEGMENT) {
		st->last = !st->last;
		if (st->way[st->last].cached != at / SEGMENT)
			rc = begin(st, &st->way[st->last], at / SEGMENT, e);
	}
	struct reading *w = &st->way[st->last];
	if (rc == 0 && w->done <= at % SEGMENT)
		rc = decode(st, w, (uint32_t)(at % SEGMENT), e);
	if (rc < 0)
		return rc;
	struct store_keys *k = w->rec[at % SEGMENT].keys;
	const struct store_value *v = w->value + w->rec[at % SEGMENT].first;
	*out = (struct acc_stored){.kind = k->kind, .n = k->n, .keys = k, .v = v};
	if (k->name < k->n)
		out->name = (struct acc_str){(const char *)v[k->name].p, v[k->name].n};
	return 0;
}

/* Member by member: a whole that is put together elsewhere has to be waited for before it can be copied. */
static inline void
set(struct acc_field *f, struct acc_str key, const struct store_value *v)
{
	f->key.p = key.p;
	f->key.n = key.n;
	f->v.type = ACC_V_NIL;
	f->v.n = 0;
	f->raw = v->p;
	f->nraw = v->n;
}

/* Room for n more. */
static int
room(struct acc_rec *out, uint64_t n, struct acc_field **f)
{
	if (n > ACC_MAX_FIELDS - out->n)
		return ACC_ELIMIT;
	*f = acc_rec_room(out, (uint32_t)n);
	return *f == NULL ? ACC_ENOMEM : 0;
}

int
acc_store_push(const struct acc_stored *r, struct acc_rec *out)
{
	struct acc_field *f;
	int rc = room(out, r->n, &f);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		set(&f[i], r->keys->own[i], &r->v[i]);
	out->n += rc == 0 ? r->n : 0;
	return rc;
}

uint64_t
acc_stored_shape(const struct acc_stored *r)
{
	return r->keys->shape;
}

/* Which of b's fields has the key of each of a's. */
static void
find_same(struct store_keys *a, const struct store_keys *b)
{
	for (uint32_t i = 0; i < a->n; i++) {
		uint32_t j = i < b->n && acc_key_same(a->key[i], b->key[i]) ? i : 0;
		while (j < b->n && !acc_key_same(a->key[i], b->key[j]))
			j++;
		a->same[i] = j < b->n ? j : ACC_NOID;
	}
	a->other = b;
}

int
acc_store_push_pair(const struct acc_stored *a, const struct acc_stored *b, struct acc_rec *out,
	uint64_t *which)
{
	uint8_t shared[ACC_MAX_FIELDS], bits[ACC_MAX_FIELDS / 8 + 1];
	struct store_keys *k = a->keys;
	struct acc_field *f;
	int rc = room(out, (uint64_t)a->n + b->n, &f);
	if (rc < 0)
		return rc;
	if (k->other != b->keys)
		find_same(k, b->keys);
	memset(shared, 0, b->n);
	memset(bits, 0, a->n / 8 + 1);
	struct acc_field *to = f;
	for (uint32_t i = 0; i < a->n; i++) {
		const uint32_t j = k->same[i];
		const bool alike = j != ACC_NOID && !shared[j] && a->v[i].n == b->v[j].n &&
				   acc_bytes_same(a->v[i].p, b->v[j].p, a->v[i].n);
		if (alike) {
			shared[j] = 1;
			bits[i / 8] |= (uint8_t)(1 << i % 8);
		}
		set(to++, alike ? k->shared[i] : k->own[i], &a->v[i]);
	}
	for (uint32_t j = 0; j < b->n; j++)
		if (!shared[j])
			set(to++, b->keys->own[j], &b->v[j]);
	out->n += (uint32_t)(to - f);
	*which = acc_hash(bits, a->n / 8 + 1);
	return 0;
}

int
acc_store_rec(struct acc_store *st, uint64_t at, struct acc_rec **out, struct acc_err *e)
{
	struct acc_stored s;
	struct acc_rec *r = &st->whole;
	int rc = acc_store_get(st, at, &s, e);
	if (rc < 0)
		return rc;
	rc = acc_rec_start(r, s.kind);
	if (rc == 0)
		rc = acc_store_push(&s, r);
	if (rc < 0)
		return acc_rec_fail(e, rc);
	rc = acc_raw_values(r, e);
	r->shape = acc_stored_shape(&s);
	*out = r;
	return rc < 0 ? rc : 1;
}
