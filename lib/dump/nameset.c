#include "acc/operand.h"

#include <stdlib.h>

int
acc_nameset_add(struct acc_nameset *l, struct acc_str name, struct acc_err *e)
{
	if (!ACC_ROOM(l->v, l->cap, l->n + 1, e))
		return ACC_ENOMEM;
	l->v[l->n] = acc_arena_copy(&l->mem, name.p, name.n);
	return l->v[l->n++] != NULL ? 0 : acc_nomem(e);
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
acc_nameset_sort(struct acc_nameset *l)
{
	size_t n = 0;
	if (l->n == 0)
		return;
	qsort(l->v, l->n, sizeof *l->v, by_bytes);
	for (size_t i = 1; i < l->n; i++)
		if (strcmp(l->v[n], l->v[i]) != 0)
			l->v[++n] = l->v[i];
	l->n = n + 1;
}

bool
acc_nameset_holds(const struct acc_nameset *l, struct acc_str name)
{
	size_t lo = 0, hi = l->n;
	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;
		const size_t n = strlen(l->v[mid]);
		const int d = memcmp(l->v[mid], name.p, n < name.n ? n : name.n);
		if (d == 0 && n == name.n)
			return true;
		if (d < 0 || (d == 0 && n < name.n))
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

size_t
acc_nameset_common(const struct acc_nameset *a, const struct acc_nameset *b)
{
	size_t n = 0;
	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		int d = strcmp(a->v[i], b->v[k]);
		n += d == 0;
		i += d <= 0;
		k += d >= 0;
	}
	return n;
}

bool
acc_nameset_equal(const struct acc_nameset *a, const struct acc_nameset *b)
{
	return a->n == b->n && acc_nameset_common(a, b) == a->n;
}

bool
acc_nameset_numbers(const struct acc_nameset *l)
{
	for (size_t i = 0; i < l->n; i++) {
		const size_t before = strcspn(l->v[i], "0123456789"),
			     n = strspn(l->v[i] + before, "0123456789");
		if (n == 0 || strpbrk(l->v[i] + before + n, "0123456789") != NULL ||
			strncmp(l->v[i], l->v[0], before) != 0)
			return false;
	}
	return l->n > 1;
}

void
acc_nameset_release(struct acc_nameset *l)
{
	free(l->v);
	acc_arena_release(&l->mem);
	*l = (struct acc_nameset){0};
}
