#include "diff_pair.h"
#include "cli.h"

#include <stdlib.h>

struct named {
	const struct acc_held_part *part;
	const char *shape, *base; /* the base of the shape */
	const struct named *with;
};
struct list {
	struct named *v;
	size_t n;
	struct acc_arena mem;
};

static int
by_name(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	/* What a run ends with is behind its checkpoints. */
	const bool last[2] = {strcmp(a->part->name, ".") == 0, strcmp(b->part->name, ".") == 0};
	const int d = last[0] != last[1] ? last[0] - last[1]
					 : acc_natural_cmp(a->part->name, b->part->name);
	return d != 0 ? d : strcmp(a->part->form, b->part->form);
}

static void
list_of(struct list *l, const struct acc_holding *held, enum acc_holds what)
{
	l->v = calloc(held->n + 1, sizeof *l->v);
	if (l->v == NULL)
		cli_nomem();
	for (size_t i = 0; i < held->n; i++) {
		if (held->part[i].holds != what)
			continue;
		struct named *n = &l->v[l->n++];
		n->part = &held->part[i];
		n->shape = acc_held_shape(&l->mem, n->part->name);
		if (n->shape == NULL)
			cli_nomem();
		const char *slash = strrchr(n->shape, '/');
		n->base = slash == NULL ? n->shape : slash + 1;
	}
	qsort(l->v, l->n, sizeof *l->v, by_name);
}

/* checkpoint-20 and checkpoint-40: the same but for the numbers that are no ids. */
static bool
of_other_steps(const struct named *a, const struct named *b)
{
	const char *p = a->shape, *q = b->shape;
	static const char digits[] = "0123456789";
	while (*p != '\0' && *q != '\0') {
		const size_t n = strspn(p, digits), m = strspn(q, digits);
		if ((n > 0) != (m > 0) || (n == 0 && *p != *q))
			return false;
		p += n > 0 ? n : 1;
		q += n > 0 ? m : 1;
	}
	return *p == *q && strcmp(a->shape, b->shape) != 0;
}

static bool
may_pair(const struct named *a, const struct named *b)
{
	const enum acc_holds what = a->part->holds;
	return what <= ACC_HOLDS_SAMPLES || !of_other_steps(a, b);
}

/* Of runs of one id, as "mlruns/1/441d22a8d425439eb89aea491ffb04cc/metrics", or of one name. */
static bool
same_run(const struct named *a, const struct named *b)
{
	const char *x = a->part->name, *y = b->part->name, *p = strrchr(x, '/'),
		   *q = strrchr(y, '/');
	if (strcmp(a->base, b->base) != 0)
		return false;
	if (a->part->run != NULL && b->part->run != NULL && strcmp(a->part->run, b->part->run) == 0)
		return true;
	if (p == NULL || q == NULL)
		return false;
	const char *i = p, *k = q;
	while (i > x && i[-1] != '/')
		i--;
	while (k > y && k[-1] != '/')
		k--;
	/* An id is 32 hexadecimal digits. */
	return p - i == 32 && q - k == 32 && memcmp(i, k, 32) == 0 &&
	       strspn(i, "0123456789abcdef") == 32;
}

enum by { NAME, RUN, SHAPE, BASE, FORM, LEFT, NBY };

static bool
same(const struct named *a, const struct named *b, enum by by)
{
	switch (by) {
	case NAME:
		return strcmp(a->part->name, b->part->name) == 0 && a->part->form == b->part->form;
	case RUN:
		return same_run(a, b);
	case SHAPE:
		return strcmp(a->shape, b->shape) == 0;
	case BASE:
		return strcmp(a->base, b->base) == 0;
	case FORM: /* a side that is one thing has no name there */
		return (a->part->name[0] == '\0' || b->part->name[0] == '\0') &&
		       strcmp(a->part->form, b->part->form) == 0;
	default:
		return true;
	}
}

/* The one of the list that is left and the same; NULL: none, or several. */
static struct named *
only(const struct list *l, const struct named *like, enum by by)
{
	struct named *found = NULL;
	for (size_t i = 0; i < l->n; i++) {
		if (l->v[i].with != NULL || !same(&l->v[i], like, by))
			continue;
		if (found != NULL)
			return NULL;
		found = &l->v[i];
	}
	return found;
}

static void
add(struct acc_buf *to, const struct named *a, const struct named *b)
{
	const struct couple c = {a == NULL ? NULL : a->part, b == NULL ? NULL : b->part};
	if (acc_buf_add(to, &c, sizeof c) < 0)
		cli_nomem();
}

/* Both are sorted, so that the same names are found in one pass. */
static void
pair_names(struct list l[2])
{
	for (size_t i = 0, k = 0; i < l[0].n && k < l[1].n;) {
		const int d = by_name(&l[0].v[i], &l[1].v[k]);
		if (d == 0) {
			l[0].v[i].with = &l[1].v[k];
			l[1].v[k].with = &l[0].v[i];
		}
		i += d <= 0;
		k += d >= 0;
	}
}

/* Of very many names that differ nobody can tell what belongs together. */
enum { MANY = 4096 };

void
pair_up(const struct acc_holding held[2], enum acc_holds what, struct acc_buf *couples,
	struct acc_buf *alone)
{
	struct list l[2] = {{0}, {0}};
	for (int s = 0; s < 2; s++)
		list_of(&l[s], &held[s], what);
	pair_names(l);
	for (enum by by = RUN; by < NBY && l[0].n + l[1].n < MANY; by++)
		for (size_t i = 0; i < l[0].n; i++) {
			struct named *a = &l[0].v[i], *b;
			if (a->with != NULL || (b = only(&l[1], a, by)) == NULL ||
				only(&l[0], b, by) != a || !may_pair(a, b))
				continue;
			a->with = b;
			b->with = a;
		}
	for (size_t i = 0; i < l[0].n; i++)
		add(l[0].v[i].with != NULL ? couples : alone, &l[0].v[i], l[0].v[i].with);
	for (size_t i = 0; i < l[1].n; i++)
		if (l[1].v[i].with == NULL)
			add(alone, NULL, &l[1].v[i]);
	for (int s = 0; s < 2; s++) {
		free(l[s].v);
		acc_arena_release(&l[s].mem);
	}
}
