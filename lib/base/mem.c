#include "acc/base.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

struct acc_chunk {
	struct acc_chunk *next;
	size_t used, size;
	max_align_t data[];
};

void *
acc_alloc(struct acc_arena *m, size_t n)
{
	const size_t align = _Alignof(max_align_t);
	if (n > SIZE_MAX / 2) {
		m->lost = true;
		return NULL;
	}
	n = (n + align - 1) / align * align;
	if (m->head == NULL || m->head->size - m->head->used < n) {
		/* Doubling, so that a long life costs few chunks and a reset keeps half of it. */
		size_t size = m->head == NULL ? 1024 : m->head->size * 2;
		if (size > (1 << 20))
			size = 1 << 20;
		if (size < n)
			size = n;
		struct acc_chunk *c = malloc(sizeof *c + size);
		if (c == NULL) {
			m->lost = true;
			return NULL;
		}
		c->next = m->head;
		c->used = 0;
		c->size = size;
		m->head = c;
		m->held += size;
	}
	void *p = (char *)m->head->data + m->head->used;
	m->head->used += n;
	return p;
}

char *
acc_arena_copy(struct acc_arena *m, const void *p, size_t n)
{
	char *q = acc_alloc(m, n + 1);
	if (q == NULL)
		return NULL;
	if (n > 0)
		memcpy(q, p, n);
	q[n] = '\0';
	return q;
}

struct acc_str
acc_arena_str(struct acc_arena *m, struct acc_str s)
{
	const char *p = acc_arena_copy(m, s.p, s.n);
	return (struct acc_str){p, p == NULL ? 0 : s.n};
}

char *
acc_arena_printf(struct acc_arena *m, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = n < 0 ? NULL : acc_alloc(m, (size_t)n + 1);
	if (p != NULL)
		vsnprintf(p, (size_t)n + 1, fmt, again);
	va_end(again);
	return p;
}

void
acc_arena_reset(struct acc_arena *m)
{
	m->lost = false;
	m->said = NULL;
	if (m->head == NULL)
		return;
	struct acc_chunk *keep = m->head;
	for (struct acc_chunk *c = m->head->next; c != NULL; c = c->next)
		if (c->size > keep->size)
			keep = c;
	for (struct acc_chunk *c = m->head, *next; c != NULL; c = next) {
		next = c->next;
		if (c != keep) {
			m->held -= c->size;
			free(c);
		}
	}
	keep->next = NULL;
	keep->used = 0;
	m->head = keep;
}

void
acc_arena_release(struct acc_arena *m)
{
	for (struct acc_chunk *c = m->head, *next; c != NULL; c = next) {
		next = c->next;
		free(c);
	}
	m->head = NULL;
	m->held = 0;
	m->lost = false;
	m->said = NULL;
}

void
acc_large_pages(void *p, size_t size)
{
	enum { PAGE = 2 << 20 };
	const size_t before = (size_t)(-(uintptr_t)p % PAGE);
	if (size >= before + PAGE)
		(void)madvise((char *)p + before, (size - before) / PAGE * PAGE, MADV_HUGEPAGE);
}

void *
acc_grow(void *p, size_t *cap, size_t n, size_t size, struct acc_err *e)
{
	if (n <= *cap)
		return p;
	size_t want = *cap < 16 ? 16 : *cap, half = SIZE_MAX / 4 / size;
	while (want < n && want <= half)
		want *= 2;
	void *q = want < n || want > half * 2 ? NULL : realloc(p, want * size);
	if (q == NULL)
		acc_nomem(e);
	else
		*cap = want;
	return q;
}

bool
acc_room(void *array, size_t *cap, size_t n, size_t size, struct acc_err *e)
{
	void *p;
	memcpy(&p, array, sizeof p);
	p = acc_grow(p, cap, n, size, e);
	if (p != NULL)
		memcpy(array, &p, sizeof p);
	return p != NULL;
}

int
acc_by_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int
acc_by_float(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

int
acc_buf_reserve(struct acc_buf *b, size_t more)
{
	if (b->cap - b->n >= more)
		return 0;
	if (more > SIZE_MAX / 2 - b->n)
		return ACC_ENOMEM;
	size_t cap = b->cap < 4096 ? 4096 : b->cap;
	while (cap - b->n < more)
		cap *= 2;
	uint8_t *p = realloc(b->p, cap);
	if (p == NULL)
		return ACC_ENOMEM;
	b->p = p;
	b->cap = cap;
	return 0;
}

int
acc_buf_add(struct acc_buf *b, const void *p, size_t n)
{
	int rc = acc_buf_reserve(b, n);
	if (rc < 0)
		return rc;
	if (n > 0)
		memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

void
acc_buf_release(struct acc_buf *b)
{
	free(b->p);
	*b = (struct acc_buf){0};
}

struct acc_map_slot {
	const char *key; /* NULL: empty */
	uint32_t n, hash;
	uint64_t value;
};

static struct acc_map_slot *
find(const struct acc_map *m, struct acc_str key, uint64_t hash)
{
	size_t mask = m->cap - 1;
	for (size_t i = hash & mask;; i = (i + 1) & mask) {
		struct acc_map_slot *s = &m->slot[i];
		if (s->key == NULL)
			return s;
		if (s->hash == (uint32_t)(hash >> 32) && s->n == key.n &&
			memcmp(s->key, key.p, key.n) == 0)
			return s;
	}
}

uint64_t *
acc_map_get(const struct acc_map *m, struct acc_str key)
{
	if (m->cap == 0)
		return NULL;
	struct acc_map_slot *s = find(m, key, acc_hash(key.p, key.n));
	return s->key == NULL ? NULL : &s->value;
}

static int
grow(struct acc_map *m)
{
	size_t cap = m->cap == 0 ? 64 : m->cap * 2;
	struct acc_map big = {.cap = cap, .n = m->n, .keys = m->keys};
	big.slot = calloc(cap, sizeof *big.slot);
	if (big.slot == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < m->cap; i++) {
		const struct acc_map_slot *s = &m->slot[i];
		if (s->key != NULL) {
			struct acc_str k = {s->key, s->n};
			*find(&big, k, acc_hash(k.p, k.n)) = *s;
		}
	}
	free(m->slot);
	*m = big;
	return 0;
}

uint64_t *
acc_map_put(struct acc_map *m, struct acc_str key, uint64_t init)
{
	if ((m->n + 1) * 4 > m->cap * 3 && grow(m) < 0)
		return NULL;
	uint64_t hash = acc_hash(key.p, key.n);
	struct acc_map_slot *s = find(m, key, hash);
	if (s->key == NULL) {
		const char *copy = acc_arena_copy(&m->keys, key.p, key.n);
		if (copy == NULL)
			return NULL;
		*s = (struct acc_map_slot){copy, key.n, (uint32_t)(hash >> 32), init};
		m->n++;
	}
	return &s->value;
}

void
acc_map_release(struct acc_map *m)
{
	free(m->slot);
	acc_arena_release(&m->keys);
	*m = (struct acc_map){0};
}

uint64_t
acc_hash(const void *p, size_t n)
{
	return XXH3_64bits(n > 0 ? p : "", n);
}

void
acc_hex16(uint64_t h, char out[17])
{
	snprintf(out, 17, "%016llx", (unsigned long long)h);
}
