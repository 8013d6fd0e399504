/* Numbers by hash. */
#include "acc/base.h"

#include <stdlib.h>

static struct acc_id *
find(const struct acc_ids *t, uint64_t id)
{
	size_t i = (id ^ id >> 32) & (t->cap - 1);
	while (t->slot[i].used && t->slot[i].id != id)
		i = (i + 1) & (t->cap - 1);
	return &t->slot[i];
}

static int
grow(struct acc_ids *t, struct acc_err *e)
{
	struct acc_ids more = {.cap = t->cap == 0 ? 256 : t->cap * 2, .n = t->n};
	more.slot = calloc(more.cap, sizeof *more.slot);
	if (more.slot == NULL)
		return acc_nomem(e);
	acc_large_pages(more.slot, more.cap * sizeof *more.slot);
	for (size_t i = 0; i < t->cap; i++)
		if (t->slot[i].used)
			*find(&more, t->slot[i].id) = t->slot[i];
	free(t->slot);
	*t = more;
	return 0;
}

int
acc_ids_put(struct acc_ids *t, uint64_t id, uint32_t v, bool replace, struct acc_err *e)
{
	if (t->n * 2 >= t->cap && grow(t, e) < 0)
		return ACC_ENOMEM;
	struct acc_id *s = find(t, id);
	if (s->used && !replace)
		return 0;
	t->n += !s->used;
	*s = (struct acc_id){.id = id, .v = v, .used = true};
	return 0;
}

uint32_t
acc_ids_get(const struct acc_ids *t, uint64_t id)
{
	const struct acc_id *s = t->cap == 0 ? NULL : find(t, id);
	return s == NULL || !s->used ? ACC_NOID : s->v;
}

void
acc_ids_fetch(const struct acc_ids *t, uint64_t id)
{
	if (t->cap > 0)
		__builtin_prefetch(&t->slot[(id ^ id >> 32) & (t->cap - 1)]);
}

void
acc_ids_clear(struct acc_ids *t)
{
	if (t->cap > 0)
		memset(t->slot, 0, t->cap * sizeof *t->slot);
	t->n = 0;
}

void
acc_ids_release(struct acc_ids *t)
{
	free(t->slot);
	*t = (struct acc_ids){0};
}
