#include "stream/keylist.h"
#include "stream/codec.h"

#include <stdlib.h>

bool
acc_keylist_may(struct acc_str kind)
{
	return !acc_str_is(kind, "acc") && !acc_str_is(kind, "end") && !acc_str_is(kind, "data");
}

/* What is kept under a key, the same in all lists. */
static struct acc_last *
last_of(struct acc_keylists *ls, struct acc_str key)
{
	uint64_t *at = acc_map_put(&ls->numbers, key, ls->nlast);
	if (at == NULL || *at < ls->nlast)
		return at == NULL ? NULL : ls->last[*at];
	struct acc_last *l = acc_alloc(&ls->mem, sizeof *l);
	if (l == NULL || !ACC_ROOM(ls->last, ls->cap_last, (size_t)ls->nlast + 1, NULL))
		return NULL;
	*l = (struct acc_last){.have = false, .n = KEYLISTS_NONE};
	ls->last[ls->nlast++] = l;
	return l;
}

static bool
is_name_of_side(struct acc_str key)
{
	return acc_key_sides(&key) != 0 && acc_str_is(key, "name");
}

/* A key that says where payload is stands once for each side. */
static void
note_place(struct acc_keylist *k, struct acc_str key, uint32_t i)
{
	const enum acc_under h = (enum acc_under)k->holds[i];
	const unsigned sides = acc_key_sides(&key);
	for (unsigned s = 0; s < 3; s++) {
		struct acc_keylist_place *at = &k->place[s];
		if (s == 0 ? sides == 0 : (sides & s) != 0)
			*(h == ACC_UNDER_SOURCE      ? &at->src
				: h == ACC_UNDER_SEQ ? &at->seq
						     : &at->file) = i;
	}
}

static int
fill(struct acc_keylists *ls, struct acc_keylist *k, const struct acc_rec *r)
{
	struct acc_last *name = NULL;
	struct acc_str *key = acc_alloc(&ls->mem, r->n * sizeof *key);
	k->last = acc_alloc(&ls->mem, r->n * sizeof(struct acc_last *));
	k->same = acc_alloc(&ls->mem, r->n);
	k->holds = acc_alloc(&ls->mem, r->n);
	for (unsigned i = 0; i < 3; i++)
		k->place[i] = (struct acc_keylist_place){KEYLISTS_KEYS, KEYLISTS_KEYS,
			KEYLISTS_KEYS};
	k->kind = acc_arena_str(&ls->mem, r->kind);
	k->key = key;
	if (key == NULL || k->last == NULL || k->same == NULL || k->holds == NULL ||
		k->kind.p == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < r->n; i++) {
		key[i] = acc_arena_str(&ls->mem, r->f[i].key);
		if (key[i].p == NULL)
			return ACC_ENOMEM;
		k->same[i] = name != NULL && is_name_of_side(key[i]);
		k->last[i] = k->same[i] ? name : last_of(ls, key[i]);
		if (k->last[i] == NULL)
			return ACC_ENOMEM;
		if (acc_str_is(key[i], "name"))
			name = k->last[i];
		k->holds[i] = (uint8_t)acc_key_under(key[i]);
		if (acc_under_place((enum acc_under)k->holds[i]))
			note_place(k, key[i], i);
	}
	k->comes = acc_came_keeps(k->kind);
	return 0;
}

struct acc_keylist *
acc_keylist_new(struct acc_keylists *ls, const struct acc_rec *r, uint64_t shape, int *rc)
{
	*rc = 0;
	if (ls->n == KEYLISTS_MOST || r->n > KEYLISTS_KEYS - ls->keys || !acc_keylist_may(r->kind))
		return NULL;
	struct acc_keylist *k = acc_alloc(&ls->mem, sizeof *k);
	*rc = ACC_ENOMEM;
	if (k == NULL || !ACC_ROOM(ls->v, ls->cap, (size_t)ls->n + 1, NULL))
		return NULL;
	*k = (struct acc_keylist){.n = r->n, .number = ls->n, .shape = shape};
	if (fill(ls, k, r) < 0 || acc_ids_put(&ls->by_shape, shape, ls->n, true, NULL) < 0)
		return NULL;
	*rc = 0;
	ls->keys += r->n;
	ls->v[ls->n++] = k;
	return k;
}

void
acc_keylists_release(struct acc_keylists *ls)
{
	for (uint32_t i = 0; i < ls->nlast; i++)
		acc_arena_release(&ls->last[i]->mem);
	acc_arena_release(&ls->mem);
	acc_map_release(&ls->numbers);
	acc_ids_release(&ls->by_shape);
	free(ls->last);
	free(ls->v);
	*ls = (struct acc_keylists){0};
}
