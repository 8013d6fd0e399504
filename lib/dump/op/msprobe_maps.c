/* stack.json: { "KEY": [FRAME, ...] } until May 2025, { "0": [[KEY, ...], [FRAME, ...]] } since.
 * construct.json: { KEY: PARENT }, for Megatron { KEY: [PARENT, MICRO_STEP] }. */
#include "dump/op/msprobe.h"

#include <stdlib.h>

#include "dump/ctx.h"

static size_t
slot(const struct hmap *m, uint64_t hash)
{
	size_t i = hash & (m->cap - 1);
	while (m->hash[i] != 0 && m->hash[i] != hash)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static int
grow(struct hmap *m)
{
	struct hmap big = {.n = m->n, .cap = m->cap == 0 ? 64 : m->cap * 2};
	big.hash = calloc(big.cap, sizeof *big.hash);
	big.val = calloc(big.cap, sizeof *big.val);
	if (big.hash == NULL || big.val == NULL) {
		acc_hmap_release(&big);
		return ACC_ENOMEM;
	}
	for (size_t i = 0; i < m->cap; i++)
		if (m->hash[i] != 0) {
			size_t k = slot(&big, m->hash[i]);
			big.hash[k] = m->hash[i];
			big.val[k] = m->val[i];
		}
	acc_hmap_release(m);
	*m = big;
	return 0;
}

uint32_t *
acc_hmap_put(struct hmap *m, uint64_t hash, uint32_t init, bool *added)
{
	hash += hash == 0;
	if ((m->n + 1) * 4 > m->cap * 3 && grow(m) < 0)
		return NULL;
	size_t i = slot(m, hash);
	if (added != NULL)
		*added = m->hash[i] == 0;
	if (m->hash[i] == 0) {
		m->hash[i] = hash;
		m->val[i] = init;
		m->n++;
	}
	return &m->val[i];
}

static const uint32_t *
get(const struct hmap *m, uint64_t hash)
{
	hash += hash == 0;
	if (m->cap == 0)
		return NULL;
	size_t i = slot(m, hash);
	return m->hash[i] == 0 ? NULL : &m->val[i];
}

void
acc_hmap_release(struct hmap *m)
{
	free(m->hash);
	free(m->val);
	*m = (struct hmap){0};
}

/* The number of a text, or < 0. */
static int64_t
intern(struct texts *t, struct acc_str s)
{
	size_t n = t->at.n;
	uint64_t *at = acc_map_put(&t->at, s, n);
	if (at == NULL || *at < n)
		return at == NULL ? ACC_ENOMEM : (int64_t)*at;
	struct acc_str *p = n >= UINT32_MAX ? NULL
					    : acc_grow(t->p, &t->cap, n + 1, sizeof *p, NULL);
	if (p == NULL)
		return ACC_ENOMEM;
	t->p = p;
	const char *copy = acc_arena_copy(&t->mem, s.p, s.n);
	if (copy == NULL)
		return ACC_ENOMEM;
	t->p[n] = (struct acc_str){copy, s.n};
	return (int64_t)n;
}

static void
texts_release(struct texts *t)
{
	acc_map_release(&t->at);
	free(t->p);
	acc_arena_release(&t->mem);
}

static int
wrong(struct acc_err *e, const struct acc_json_tok *t, const char *wanted)
{
	return acc_fail_at(e, ACC_EFORMAT, t->pos, "expected %s", wanted);
}

/* The stack of the frames from `first` on: an older one if it is the same. Its index or < 0. */
static int64_t
stack_done(struct msprobe_maps *m, size_t first)
{
	size_t n = m->nframe - first;
	uint64_t h = n == 0 ? 0 : acc_hash(m->frame + first, n * sizeof *m->frame);
	bool added;
	const uint32_t *at = acc_hmap_put(&m->same, h, (uint32_t)m->nstack, &added);
	if (at == NULL)
		return ACC_ENOMEM;
	if (!added) {
		m->nframe = first;
		return *at;
	}
	if (n > UINT32_MAX || first > UINT32_MAX)
		return ACC_ENOMEM;
	if (!ACC_ROOM(m->stack, m->cap_stack, m->nstack + 1, NULL))
		return ACC_ENOMEM;
	m->stack[m->nstack] = (struct msprobe_stack){.first = (uint32_t)first, .n = (uint32_t)n};
	return (int64_t)m->nstack++;
}

/* Strings until the end of an array, of which *t is the first token. */
static int
frames(struct msprobe_maps *m, struct acc_json *j, struct acc_json_tok *t, struct acc_err *e)
{
	for (int rc = 1; rc > 0; rc = acc_json_next(j, t, e)) {
		if (t->type == ACC_JSON_ARRAY_END)
			return 0;
		if (t->type != ACC_JSON_STRING)
			return wrong(e, t, "a stack frame, which is a string");
		int64_t i = intern(&m->frames, t->s);
		uint32_t *p = i < 0 ? NULL
				    : acc_grow(m->frame, &m->cap_frame, m->nframe + 1, sizeof *p,
					      NULL);
		if (p == NULL)
			return acc_nomem(e);
		m->frame = p;
		m->frame[m->nframe++] = (uint32_t)i;
	}
	return e != NULL ? e->code : ACC_EFORMAT;
}

/* The new form's [[KEY, ...], [FRAME, ...]], of which the second '[' has been read. */
static int
group(struct msprobe_maps *m, struct acc_json *j, struct acc_buf *keys, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc;
	keys->n = 0;
	while ((rc = acc_json_next(j, &t, e)) > 0 && t.type == ACC_JSON_STRING) {
		uint64_t h = acc_hash(t.s.p, t.s.n);
		if (acc_buf_add(keys, &h, sizeof h) < 0)
			return acc_nomem(e);
	}
	if (rc > 0 && t.type != ACC_JSON_ARRAY_END)
		return wrong(e, &t, "the key of an op call");
	if (rc > 0)
		rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type != ACC_JSON_ARRAY)
		return wrong(e, &t, "a list of stack frames");
	if (rc > 0)
		rc = acc_json_next(j, &t, e);
	size_t first = m->nframe;
	if (rc <= 0 || (rc = frames(m, j, &t, e)) < 0)
		return rc < 0 ? rc : ACC_ETRUNC;
	int64_t at = stack_done(m, first);
	for (size_t i = 0; at >= 0 && i < keys->n; i += sizeof(uint64_t)) {
		uint64_t h;
		memcpy(&h, keys->p + i, sizeof h);
		if (acc_hmap_put(&m->stack_of, h, (uint32_t)at, NULL) == NULL)
			at = ACC_ENOMEM;
	}
	if (at < 0)
		return acc_nomem(e);
	rc = acc_json_next(j, &t, e);
	return rc > 0 && t.type != ACC_JSON_ARRAY_END ? wrong(e, &t, "the end of a group") : rc;
}

/* The value of one key of stack.json. */
static int
stack_entry(struct msprobe_maps *m, struct acc_json *j, uint64_t key, struct acc_buf *keys,
	struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type == ACC_JSON_NULL)
		return 0;
	if (rc > 0 && t.type != ACC_JSON_ARRAY)
		return wrong(e, &t, "a list of stack frames");
	if (rc > 0)
		rc = acc_json_next(j, &t, e);
	if (rc <= 0)
		return rc < 0 ? rc : ACC_ETRUNC;
	if (t.type == ACC_JSON_ARRAY)
		return group(m, j, keys, e);
	size_t first = m->nframe;
	rc = frames(m, j, &t, e);
	if (rc < 0 || m->nframe == first)
		return rc;
	int64_t at = stack_done(m, first);
	if (at < 0 || acc_hmap_put(&m->stack_of, key, (uint32_t)at, NULL) == NULL)
		return acc_nomem(e);
	return 0;
}

/* The value of one key of construct.json. */
static int
parent_entry(struct msprobe_maps *m, struct acc_json *j, uint64_t key, struct acc_buf *unused,
	struct acc_err *e)
{
	(void)unused;
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e);
	bool list = rc > 0 && t.type == ACC_JSON_ARRAY;
	if (list)
		rc = acc_json_next(j, &t, e);
	if (rc <= 0)
		return rc < 0 ? rc : ACC_ETRUNC;
	if (t.type == ACC_JSON_STRING && t.s.n > 0) {
		int64_t i = intern(&m->parents, t.s);
		if (i < 0 || acc_hmap_put(&m->parent_of, key, (uint32_t)i, NULL) == NULL)
			return acc_nomem(e);
	}
	if (t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY)
		rc = acc_json_skip(j, e);
	while (list && rc >= 0 && t.type != ACC_JSON_ARRAY_END) {
		rc = acc_json_next(j, &t, e);
		if (rc > 0 && (t.type == ACC_JSON_OBJECT || t.type == ACC_JSON_ARRAY))
			rc = acc_json_skip(j, e);
	}
	return rc;
}

typedef int entry_fn(struct msprobe_maps *m, struct acc_json *j, uint64_t key, struct acc_buf *keys,
	struct acc_err *e);

static int
entries(struct msprobe_maps *m, struct acc_bytes *b, entry_fn *fn, struct acc_err *e)
{
	struct acc_json *j = acc_json_open(b, false, e);
	struct acc_buf keys = {0};
	struct acc_json_tok t;
	if (j == NULL)
		return e != NULL ? e->code : ACC_ENOMEM;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		rc = wrong(e, &t, "an object");
	while (rc >= 0 && (rc = acc_json_next(j, &t, e)) > 0 && t.type == ACC_JSON_KEY)
		rc = fn(m, j, acc_hash(t.s.p, t.s.n), &keys, e);
	if (rc > 0)
		rc = acc_json_next(j, &t, e);
	acc_buf_release(&keys);
	acc_json_close(j);
	return rc;
}

int
acc_msprobe_stacks(struct msprobe_maps *m, struct acc_bytes *b, struct acc_err *e)
{
	return entries(m, b, stack_entry, e);
}

int
acc_msprobe_parents(struct msprobe_maps *m, struct acc_bytes *b, struct acc_err *e)
{
	return entries(m, b, parent_entry, e);
}

struct acc_str
acc_msprobe_parent(const struct msprobe_maps *m, struct acc_str key)
{
	const uint32_t *at = get(&m->parent_of, acc_hash(key.p, key.n));
	return at == NULL ? (struct acc_str){"", 0} : m->parents.p[*at];
}

struct msprobe_stack *
acc_msprobe_stack(const struct msprobe_maps *m, struct acc_str key)
{
	const uint32_t *at = get(&m->stack_of, acc_hash(key.p, key.n));
	return at == NULL ? NULL : &m->stack[*at];
}

struct acc_str
acc_msprobe_stack_id(struct msprobe_maps *m, struct msprobe_stack *s, struct acc_dump_ctx *c)
{
	if (s->id.n > 0)
		return s->id;
	struct acc_str *list = calloc(s->n + 1, sizeof *list);
	if (list == NULL) {
		c->lost = true;
		return (struct acc_str){"", 0};
	}
	for (uint32_t i = 0; i < s->n; i++)
		list[i] = m->frames.p[m->frame[s->first + i]];
	s->id = acc_dump_stack(c, list, s->n);
	free(list);
	return s->id;
}

void
acc_msprobe_maps_release(struct msprobe_maps *m)
{
	acc_hmap_release(&m->stack_of);
	acc_hmap_release(&m->parent_of);
	acc_hmap_release(&m->same);
	texts_release(&m->frames);
	texts_release(&m->parents);
	free(m->stack);
	free(m->frame);
	*m = (struct msprobe_maps){0};
}
