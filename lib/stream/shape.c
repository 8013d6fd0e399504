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
	if (s == NULL || key == NULL || packed == NULL || p == NULL)
		return;
	*s = (struct acc_shape){hash, {p, r->kind.n}, r->n, key, packed, sh->by_n[r->n % 64]};
	p += r->kind.n;
	for (uint32_t i = 0; i < r->n; i++) {
		key[i] = (struct acc_str){p, r->f[i].key.n};
		packed[i] = pack(key[i]);
		p += key[i].n;
	}
	sh->by_n[r->n % 64] = s;
	sh->n++;
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
