#include "stream/codec.h"

/* A stream has a few dozen. */
enum { MOST_BYTES = 1 << 20, MOST_SHAPES = 1024 };

static bool
fits(const struct acc_shape *s, const struct acc_shape *like, const struct acc_field *f, uint32_t n)
{
	if (s->n != like->n || !acc_key_same(s->kind, like->kind))
		return false;
	for (uint32_t i = n; i-- > 0;) /* they differ where the other one has failed, most likely */
		if (!acc_key_same(s->key[i], f[i].key))
			return false;
	return true;
}

const struct acc_shape *
acc_shape_first(const struct acc_shapes *sh, struct acc_str kind, uint32_t n)
{
	const struct acc_shape *s = sh->by_n[n % 64];
	while (s != NULL && (s->n != n || !acc_key_same(s->kind, kind)))
		s = s->next;
	return s;
}

const struct acc_shape *
acc_shape_next(const struct acc_shape *like, const struct acc_field *f, uint32_t n)
{
	const struct acc_shape *s = like->next;
	while (s != NULL && !fits(s, like, f, n))
		s = s->next;
	return s;
}

/* All kinds and keys as one string: lengths, then bytes. */
static int
spell(struct acc_buf *b, const struct acc_rec *r)
{
	b->n = 0;
	int rc = acc_buf_add(b, &r->kind.n, sizeof r->kind.n);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		rc = acc_buf_add(b, &r->f[i].key.n, sizeof r->f[i].key.n);
	if (rc == 0)
		rc = acc_buf_add(b, r->kind.p, r->kind.n);
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		rc = acc_buf_add(b, r->f[i].key.p, r->f[i].key.n);
	return rc;
}

static struct acc_shape_key
pack(struct acc_str key)
{
	uint8_t b[32] = {0};
	if (key.n >= sizeof b)
		return (struct acc_shape_key){.head = 1};
	b[0] = (uint8_t)(0xa0 | key.n);
	if (key.n > 0)
		memcpy(b + 1, key.p, key.n);
	struct acc_shape_key k = {.head = acc_load8(b), .mask = UINT64_MAX, .n = key.n};
	if (key.n < 8) {
		uint8_t m[8] = {0};
		memset(m, 0xff, (size_t)key.n + 1 < sizeof m ? (size_t)key.n + 1 : sizeof m);
		k.mask = acc_load8(m);
	} else {
		k.tail = acc_load8(b + key.n - 7);
	}
	return k;
}

static void
keep(struct acc_shapes *sh, const struct acc_rec *r, uint64_t hash)
{
	struct acc_shape *s = acc_alloc(&sh->mem, sizeof *s);
	struct acc_str *key = acc_alloc(&sh->mem, r->n * sizeof *key);
	struct acc_shape_key *packed = acc_alloc(&sh->mem, r->n * sizeof *packed);
	const size_t lengths = (1 + (size_t)r->n) * sizeof r->kind.n;
	const char *p = acc_arena_copy(&sh->mem, sh->id.p + lengths, sh->id.n - lengths);
	uint8_t *holds = acc_alloc(&sh->mem, (size_t)r->n + 1);
	if (s == NULL || key == NULL || packed == NULL || p == NULL || holds == NULL)
		return;
	*s = (struct acc_shape){hash, {p, r->kind.n}, r->n, key, packed, holds,
		sh->by_n[r->n % 64]};
	p += r->kind.n;
	for (uint32_t i = 0; i < r->n; i++) {
		key[i] = (struct acc_str){p, r->f[i].key.n};
		packed[i] = pack(key[i]);
		holds[i] = (uint8_t)acc_key_under(key[i]);
		p += key[i].n;
	}
	sh->by_n[r->n % 64] = s;
	sh->n++;
}

unsigned
acc_key_sides(struct acc_str *key)
{
	const bool shared = acc_is_shared(*key);
	const bool one = !shared && key->n > 2 && (key->p[0] == 'a' || key->p[0] == 'b') &&
			 key->p[1] == '.';
	const unsigned sides = shared ? 3 : !one ? 0 : key->p[0] == 'a' ? 1 : 2;
	const uint32_t skip = shared ? 3 : one ? 2 : 0;
	*key = (struct acc_str){key->p + skip, key->n - skip};
	return sides;
}

static bool
say_the_same(struct acc_str a, struct acc_str b)
{
	const unsigned x = acc_key_sides(&a), y = acc_key_sides(&b);
	return (x == y || (x & y) != 0) && acc_key_same(a, b);
}

int
acc_rec_once(const struct acc_rec *r, struct acc_err *e)
{
	enum { FEW = 16, SLOTS = 2 * ACC_MAX_FIELDS };
	uint16_t slot[SLOTS]; /* 1 + the field there; 0: free */
	uint32_t size = 2 * FEW;
	while (size < 2 * r->n && size < SLOTS)
		size *= 2;
	memset(slot, 0, size * sizeof *slot);
	for (uint32_t i = 0; i < r->n && i < ACC_MAX_FIELDS; i++) {
		struct acc_str key = r->f[i].key;
		acc_key_sides(&key);
		uint32_t at = (uint32_t)acc_hash(key.p, key.n) & (size - 1);
		for (; slot[at] != 0; at = (at + 1) & (size - 1))
			if (say_the_same(r->f[slot[at] - 1].key, r->f[i].key))
				return acc_fail(e, ACC_EFORMAT, "a record has the key '%.*s' twice",
					ACC_PRS(r->f[i].key));
		slot[at] = (uint16_t)(i + 1);
	}
	return 0;
}

int
acc_shape_check(struct acc_shapes *sh, const struct acc_rec *r, uint64_t *hash, struct acc_err *e)
{
	const struct acc_shape *like = acc_shape_first(sh, r->kind, r->n);
	for (uint32_t i = 0; like != NULL && i < r->n; i++)
		if (!acc_key_same(like->key[i], r->f[i].key))
			like = acc_shape_next(like, r->f, i + 1);
	if (like == NULL && acc_rec_once(r, e) < 0)
		return ACC_EFORMAT;
	*hash = like != NULL ? like->hash : acc_shape_new(sh, r);
	return 0;
}

uint64_t
acc_shape_new(struct acc_shapes *sh, const struct acc_rec *r)
{
	if (spell(&sh->id, r) < 0)
		return 0;
	uint64_t hash = acc_hash(sh->id.p, sh->id.n);
	if (sh->n < MOST_SHAPES &&
		sh->mem.held + sh->id.n + r->n * sizeof(struct acc_str) < MOST_BYTES)
		keep(sh, r, hash);
	return hash;
}

void
acc_shapes_release(struct acc_shapes *sh)
{
	acc_arena_release(&sh->mem);
	acc_buf_release(&sh->id);
	*sh = (struct acc_shapes){0};
}
