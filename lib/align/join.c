/* Which step and rank of the device belongs to which of the bench. */
#include "align/impl.h"
#include "base/order.h"

#include <inttypes.h>
#include <stdlib.h>

/* Groups of one side, sorted by step, then ranks, processes, unknown. */
struct list {
	struct acc_group **g;
	uint32_t n;
};

static int
cmp_group(const void *x, const void *y)
{
	const struct acc_group_id *p = &(*(struct acc_group *const *)x)->id;
	const struct acc_group_id *q = &(*(struct acc_group *const *)y)->id;
	if (p->step != q->step)
		return p->step < q->step ? -1 : 1;
	if (p->kind != q->kind)
		return p->kind < q->kind ? -1 : 1;
	return (p->who > q->who) - (p->who < q->who);
}

static int
sort(struct acc_half *h, struct list *l, struct acc_err *e)
{
	l->g = malloc(((size_t)h->ngroup + 1) * sizeof(struct acc_group *));
	if (l->g == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < h->ngroup; i++)
		if (h->group[i].id.kind != WHO_GLOBAL)
			l->g[l->n++] = &h->group[i];
	if (l->n > 0)
		qsort(l->g, l->n, sizeof(struct acc_group *), cmp_group);
	return 0;
}

static void
mate(struct acc_align *al, struct acc_group *a, struct acc_group *b)
{
	a->mate = (uint32_t)(b - al->h[ACC_B].group);
	b->mate = (uint32_t)(a - al->h[ACC_A].group);
}

static bool
has(const struct list *l, bool steps, int64_t v)
{
	for (uint32_t i = 0; i < l->n; i++) {
		const struct acc_group_id *id = &l->g[i]->id;
		if (steps ? id->step == v : id->who == v && id->kind != WHO_UNKNOWN)
			return true;
	}
	return false;
}

/* What the user joins must exist, and each only once. */
static int
check(const struct list l[2], bool steps, const int64_t (*p)[2], size_t n, struct acc_err *e)
{
	static const char *const side[2] = {"device", "bench"};
	const char *what = steps ? "step" : "rank";
	for (size_t i = 0; i < n; i++)
		for (int s = 0; s < 2; s++) {
			if (!has(&l[s], steps, p[i][s]))
				return acc_fail(e, ACC_EUSAGE, "--%ss: the %s has no %s %" PRId64,
					what, side[s], what, p[i][s]);
			for (size_t k = 0; k < i; k++)
				if (p[k][s] == p[i][s])
					return acc_fail(e, ACC_EUSAGE,
						"--%ss: %s %" PRId64 " of the %s is given twice",
						what, what, p[i][s], side[s]);
		}
	return 0;
}

/* Is it the user who says where step v of side s goes? */
static bool
step_listed(const struct acc_join *u, int s, int64_t v, int64_t *other)
{
	for (size_t i = 0; i < u->nsteps; i++)
		if (u->steps[i][s] == v) {
			*other = u->steps[i][1 - s];
			return true;
		}
	return false;
}

/* Still to be paired, and not kept for what the user says? */
static bool
is_free(const struct acc_join *u, int s, const struct acc_group *g)
{
	for (size_t i = 0; i < u->nranks; i++)
		if (u->ranks[i][s] == g->id.who && g->id.kind != WHO_UNKNOWN)
			return false;
	return g->mate == ACC_NOMATE;
}

/* The groups of the step that begins at `from`. */
static struct list
step_at(const struct list *l, uint32_t from)
{
	struct list r = {l->g + from, 1};
	while (from + r.n < l->n && r.g[r.n]->id.step == r.g[0]->id.step)
		r.n++;
	return r;
}

static struct list
step_find(const struct list *l, int64_t step)
{
	uint32_t lo = 0;
	ACC_LOWER(lo, l->n, l->g[lo]->id.step < step);
	if (lo < l->n && l->g[lo]->id.step == step)
		return step_at(l, lo);
	return (struct list){NULL, 0};
}

static struct acc_group *
who_find(const struct list *l, int64_t who)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->g[i]->id.who == who && l->g[i]->id.kind != WHO_UNKNOWN)
			return l->g[i];
	return NULL;
}

/* How much of l is free, and whether that is processes only. */
static uint32_t
count_free(const struct list *l, const struct acc_join *u, int s, bool *procs)
{
	uint32_t n = 0;
	*procs = true;
	for (uint32_t i = 0; i < l->n; i++)
		if (is_free(u, s, l->g[i])) {
			n++;
			*procs = *procs && l->g[i]->id.kind == WHO_PROC;
		}
	return n;
}

/* Pair what is free, in order; on both sides it is as much. */
static void
in_order(struct acc_align *al, const struct list *a, const struct list *b, const struct acc_join *u)
{
	for (uint32_t i = 0, k = 0; i < a->n; i++) {
		if (!is_free(u, 0, a->g[i]))
			continue;
		while (!is_free(u, 1, b->g[k]))
			k++;
		mate(al, a->g[i], b->g[k]);
	}
}

static void
join_ranks(struct acc_align *al, const struct list *a, const struct list *b,
	const struct acc_join *u)
{
	for (size_t i = 0; i < u->nranks; i++) {
		struct acc_group *x = who_find(a, u->ranks[i][0]);
		struct acc_group *y = who_find(b, u->ranks[i][1]);
		if (x != NULL && y != NULL)
			mate(al, x, y);
	}
	for (uint32_t i = 0, k = 0; i < a->n && k < b->n;) {
		const struct acc_group_id *x = &a->g[i]->id, *y = &b->g[k]->id;
		int c = x->kind != y->kind ? (x->kind < y->kind ? -1 : 1)
					   : (x->who > y->who) - (x->who < y->who);
		if (c == 0 && is_free(u, 0, a->g[i]) && is_free(u, 1, b->g[k]))
			mate(al, a->g[i], b->g[k]);
		i += c <= 0;
		k += c >= 0;
	}
	/* Process numbers differ from run to run, but their order is that of the start. One of
	 * each pairs whatever it is called. */
	bool pa, pb;
	uint32_t na = count_free(a, u, 0, &pa), nb = count_free(b, u, 1, &pb);
	if (na == nb && (pa || pb || (a->n == 1 && b->n == 1)))
		in_order(al, a, b, u);
}

int
acc_join_groups(struct acc_align *al, const struct acc_join *u, struct acc_err *e)
{
	struct list l[2] = {{0}};
	int rc = sort(&al->h[ACC_A], &l[0], e);
	if (rc == 0)
		rc = sort(&al->h[ACC_B], &l[1], e);
	if (rc == 0)
		rc = check(l, true, u->steps, u->nsteps, e);
	if (rc == 0)
		rc = check(l, false, u->ranks, u->nranks, e);
	bool one = l[0].n > 0 && l[1].n > 0 && step_at(&l[0], 0).n == l[0].n &&
		   step_at(&l[1], 0).n == l[1].n;
	for (uint32_t i = 0; i < l[0].n && rc == 0;) {
		struct list a = step_at(&l[0], i), b = {NULL, 0};
		int64_t step = a.g[0]->id.step, other;
		if (step_listed(u, 0, step, &other))
			b = step_find(&l[1], other);
		else if (one)
			b = l[1];
		else if (!step_listed(u, 1, step, &other))
			b = step_find(&l[1], step);
		if (b.n > 0)
			join_ranks(al, &a, &b, u);
		i += a.n;
	}
	/* Curves and parameters belong to no step. */
	for (uint32_t i = 0; i < al->h[ACC_A].ngroup; i++)
		for (uint32_t k = 0; k < al->h[ACC_B].ngroup; k++)
			if (al->h[ACC_A].group[i].id.kind == WHO_GLOBAL &&
				al->h[ACC_B].group[k].id.kind == WHO_GLOBAL)
				mate(al, &al->h[ACC_A].group[i], &al->h[ACC_B].group[k]);
	free(l[0].g);
	free(l[1].g);
	return rc;
}
