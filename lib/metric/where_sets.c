/* Which sets of elements the sums along axes propose, and where exactly these begin and end. */
#include "metric/limits.h"
#include "metric/where_state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
by_gain(const void *x, const void *y)
{
	double a = ((const struct where_set *)x)->gain, b = ((const struct where_set *)y)->gain;
	return (a < b) - (a > b);
}

static void
propose(struct where *w, const struct where_set *set, int n)
{
	struct proposal *p = &w->proposal[w->nproposal];
	double aside = 0;
	/* One of several axes is enough: their sums are of the same elements. */
	for (int i = 0; i < n; i++)
		aside = set[i].aside > aside ? set[i].aside : aside;
	if (aside < LIMIT_CHANCE)
		return;
	w->nproposal++;
	*p = (struct proposal){.n = n};
	memcpy(p->set, set, (size_t)n * sizeof *set);
	for (int i = 0; i < n; i++)
		p->cost += set[i].cost;
	/* Rows and columns say more than a run of elements that is the same. */
	p->cost += n == 1 && set->axis == WHERE_FLAT && set->kind != WHERE_EVERY ? 10 : 0;
	p->cost -= (n - 1) * log(w->all.n); /* there are two variances, however many axes */
}

/* Sets of one axis each, the best first. 0 or < 0. */
int
acc_where_sets(struct where *w)
{
	struct where_bin *tmp = calloc(4 * (size_t)WHERE_BINS, sizeof *tmp);
	if (tmp == NULL)
		return ACC_ENOMEM;
	for (int i = 0; i < w->ntrack; i++) {
		const struct track *t = &w->track[i];
		struct where_set *s = &w->set[w->nset];
		*s = (struct where_set){.axis = t->axis, .extent = t->extent};
		acc_where_fit(t->bin, t->nbin, t->from, t->width, w->rounding, tmp, s);
		w->nset += s->gain > 0;
	}
	free(tmp);
	qsort(w->set, (size_t)w->nset, sizeof *w->set, by_gain);
	return 0;
}

static bool
add_edge(struct where *w, int set, int64_t from, int64_t to, int ends)
{
	const struct where_set *s = &w->set[set];
	struct track *t = &w->edge[w->nedge];
	int64_t width = 1;
	from = from > 0 ? from : 0;
	while ((to - from + width - 1) / width > WHERE_BINS)
		width *= 2;
	*t = (struct track){.axis = s->axis, .extent = s->extent, .from = from, .width = width};
	t->stride = 1;
	for (int i = 0; i < w->ntrack; i++)
		if (w->track[i].axis == s->axis)
			t->stride = w->track[i].stride;
	t->nbin = (size_t)((to - from + width - 1) / width);
	t->bin = calloc(t->nbin, sizeof *t->bin);
	w->edge_of[w->nedge].set = set;
	w->edge_of[w->nedge++].ends = ends;
	return t->bin != NULL;
}

/* Look closer at the ends of ranges that lie in blocks. 1: another pass is due for that. */
int
acc_where_edges(struct where *w)
{
	bool good = true;
	for (int i = 0; i < w->nset && good; i++) {
		const struct where_set *s = &w->set[i];
		const int64_t u = s->unit, lo = s->lo, hi = s->hi;
		if (s->kind != WHERE_RANGE || u <= 1)
			continue;
		if (hi - lo <= 2 * u)
			good = add_edge(w, i, lo - u, hi + u, WHERE_LO | WHERE_HI);
		else
			good = add_edge(w, i, lo - u, lo + u, WHERE_LO) &&
			       add_edge(w, i, hi - u, hi + u, WHERE_HI);
	}
	return !good ? ACC_ENOMEM : w->nedge > 0;
}

void
acc_where_take_edges(struct where *w)
{
	for (int i = 0; i < w->nedge; i++) {
		const struct track *t = &w->edge[i];
		acc_where_sharpen(t->bin, t->nbin, t->from, t->width, w->edge_of[i].ends,
			&w->set[w->edge_of[i].set]);
	}
}

/* What the sets are proposed to be: one alone, or several of different axes. */
void
acc_where_propose(struct where *w)
{
	struct where_set both[WHERE_AXES];
	int m = 0;
	for (int i = 0; i < w->nset; i++) {
		bool other = w->set[i].axis == WHERE_FLAT;
		for (int k = 0; k < m; k++)
			other |= both[k].axis == w->set[i].axis;
		propose(w, &w->set[i], 1);
		if (other || m == WHERE_AXES)
			continue;
		both[m++] = w->set[i];
		if (m > 1)
			propose(w, both, m);
	}
}
