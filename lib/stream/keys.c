#include "stream/keys.h"
#include "stream/codec.h"

#include <stdlib.h>

/* No more fields are looked at for a twin: a side has far fewer. */
enum { REACH = 256 };

/* The field of a record that most often has the value of field i, and stands before it. */
static uint32_t
twin_of(const struct store_keys *k, uint32_t i)
{
	struct acc_str key = k->key[i];
	if (key.n < 3 || key.p[1] != '.' || (key.p[0] != 'a' && key.p[0] != 'b'))
		return i;
	const uint32_t from = i < REACH ? 0 : i - REACH;
	for (uint32_t j = i; j-- > from;) { /* of several, the last: see put() */
		struct acc_str other = k->key[j];
		const uint32_t skip = key.p[0] == 'b' ? 2 : 0;
		if (other.n + 2 == key.n + skip && (skip == 0 || memcmp(other.p, "a.", 2) == 0) &&
			memcmp(other.p + skip, key.p + 2, key.n - 2) == 0)
			return j;
	}
	return i;
}

static int
number_keys(struct acc_keys *t, struct store_keys *k)
{
	k->slot = acc_alloc(&t->mem, k->n * sizeof *k->slot);
	k->twin = acc_alloc(&t->mem, k->n * sizeof *k->twin);
	if (k->slot == NULL || k->twin == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < k->n; i++) {
		uint64_t *slot = acc_map_put(&t->slots, k->key[i], t->slots.n);
		if (slot == NULL)
			return ACC_ENOMEM;
		k->slot[i] = (uint32_t)*slot;
		k->twin[i] = twin_of(k, i);
	}
	return 0;
}

/* The keys of r with this prefix, and without it in key[]. NULL: no memory. */
static struct acc_str *
spell(struct acc_keys *t, const struct acc_rec *r, struct acc_str prefix, struct acc_str *key)
{
	size_t size = 0;
	for (uint32_t i = 0; i < r->n; i++)
		size += (size_t)prefix.n + r->f[i].key.n;
	char *p = acc_alloc(&t->mem, size);
	struct acc_str *out = acc_alloc(&t->mem, r->n * sizeof *out);
	if (p == NULL || out == NULL)
		return NULL;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct acc_str k = r->f[i].key;
		memcpy(p, prefix.p, prefix.n);
		key[i] = (struct acc_str){p + prefix.n, k.n};
		out[i] = (struct acc_str){p, prefix.n + k.n};
		if (k.n > 0)
			memcpy(p + prefix.n, k.p, k.n);
		p += out[i].n;
	}
	return out;
}

/* Make up what is needed of the keys of r. */
static struct store_keys *
new_keys(struct acc_keys *t, const struct acc_rec *r)
{
	struct store_keys *k = acc_alloc(&t->mem, sizeof *k);
	if (k == NULL)
		return NULL;
	*k = (struct store_keys){.n = r->n, .name = r->n};
	k->key = acc_alloc(&t->mem, r->n * sizeof *k->key);
	k->same = acc_alloc(&t->mem, r->n * sizeof *k->same);
	k->kind = acc_arena_str(&t->mem, r->kind);
	k->shape = acc_hash(t->id.p, t->id.n);
	if (k->key == NULL || k->same == NULL || k->kind.p == NULL ||
		(k->shared = spell(t, r, ACC_STR("ab."), k->key)) == NULL ||
		(k->own = spell(t, r, t->prefix, k->key)) == NULL)
		return NULL;
	for (uint32_t i = r->n; i-- > 0;)
		if (acc_str_is(r->f[i].key, "name"))
			k->name = i;
	return number_keys(t, k) < 0 ? NULL : k;
}

static bool
has_keys(const struct store_keys *k, const struct acc_rec *r)
{
	if (k->n != r->n || !acc_str_eq(k->kind, r->kind))
		return false;
	for (uint32_t i = 0; i < r->n; i++)
		if (!acc_key_same(k->key[i], r->f[i].key))
			return false;
	return true;
}

/* Of a record whose shape is not known, or new, which must have each key once. */
static int64_t
look_up(struct acc_keys *t, const struct acc_rec *r, struct acc_err *e)
{
	t->id.n = 0;
	int rc = acc_buf_add(&t->id, &r->kind.n, sizeof r->kind.n);
	if (rc == 0)
		rc = acc_buf_add(&t->id, r->kind.p, r->kind.n);
	for (uint32_t i = 0; i < r->n && rc == 0; i++) {
		rc = acc_buf_add(&t->id, &r->f[i].key.n, sizeof r->f[i].key.n);
		if (rc == 0)
			rc = acc_buf_add(&t->id, r->f[i].key.p, r->f[i].key.n);
	}
	const struct acc_str id = {(char *)t->id.p, (uint32_t)t->id.n};
	uint64_t *at = rc < 0 ? NULL : acc_map_get(&t->by_keys, id);
	if (at != NULL && *at < t->n)
		return (int64_t)*at;
	if (rc == 0 && t->n == KEYS_MOST)
		return ACC_ELIMIT;
	/* Before it gets a number: what is refused has none. */
	if (rc == 0 && acc_rec_once(r, e) < 0)
		return ACC_EFORMAT;
	at = rc < 0 ? NULL : acc_map_put(&t->by_keys, id, t->n);
	if (at == NULL)
		return ACC_ENOMEM;
	*at = t->n;
	if (!ACC_ROOM(t->v, t->cap, (size_t)t->n + 1, NULL))
		return ACC_ENOMEM;
	t->v[t->n] = new_keys(t, r);
	return t->v[t->n] == NULL ? ACC_ENOMEM : (int64_t)t->n++;
}

int64_t
acc_keys_find(struct acc_keys *t, const struct acc_rec *r, struct acc_err *e)
{
	uint32_t known = r->shape == 0 ? ACC_NOID : acc_ids_get(&t->by_shape, r->shape);
	if (known != ACC_NOID && t->v[known]->n == r->n)
		return known;
	if (r->shape == 0 && t->last < t->n && has_keys(t->v[t->last], r))
		return t->last;
	int64_t keys = look_up(t, r, e);
	if (keys >= 0)
		t->last = (uint32_t)keys;
	if (keys >= 0 && r->shape != 0 &&
		acc_ids_put(&t->by_shape, r->shape, (uint32_t)keys, true, NULL) < 0)
		return ACC_ENOMEM;
	return keys;
}

void
acc_keys_release(struct acc_keys *t)
{
	acc_arena_release(&t->mem);
	acc_ids_release(&t->by_shape);
	acc_map_release(&t->by_keys);
	acc_map_release(&t->slots);
	acc_buf_release(&t->id);
	free(t->v);
}
