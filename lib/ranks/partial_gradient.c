/* Where a gradient parts that ranks are to have alike: from a weight on to what its op call makes, as long as the ranks have
 * that alike, too. Of its gradient one part, made by an op call that is given it, is another on each rank, and is joined by
 * nothing: what all that are given it, and reductions, make of it is measured, by least squares. */
#include "ranks/asked.h"
#include "ranks/fit.h"
#include "replay/limits.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_ELEMENTS = 4096, MOST_HOPS = 32 };

struct parts { /* of the gradient of what an op call makes */
	const struct acc_replica_seen *y, *g;
	const struct acc_replica_seen *part[ACC_FIT_TERMS];
	const struct acc_seen_call *use[ACC_FIT_TERMS]; /* which was given it; NULL: a reduction */
	uint32_t n;
	bool all;
};

static void
add(struct parts *p, const struct acc_replica_seen *s, const struct acc_seen_call *use)
{
	for (uint32_t i = 0; i < p->n; i++)
		if (p->part[i]->mark == s->mark)
			return;
	p->all &= p->n < ACC_FIT_TERMS;
	if (!p->all)
		return;
	p->part[p->n] = s;
	p->use[p->n++] = use;
}

static void
collect(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_seen_call *back, struct parts *p)
{
	for (const struct acc_seen_call *u = c + 1; u < t->call + t->f->ncall && u != back; u++) {
		const struct acc_seen_call *b = u->k->backward ? NULL : acc_seen_backward(t, u);
		const bool sum = u->reduces && u->amid;
		if (!acc_seen_beside(u, c) || (b == NULL && !sum))
			continue;
		b = sum ? u : b;
		for (uint32_t i = b->first; i < b->first + b->n; i++) {
			const struct acc_replica_seen *s = &t->seen[i],
						      *in = sum || !s->out || s->n != p->y->n
								    ? NULL
								    : acc_seen_input(t, s);
			if (s->out && s->real && s->mark != 0 && s->n == p->y->n &&
				(sum || (in != NULL && in->mark == p->y->mark)))
				add(p, s, sum ? NULL : u);
		}
	}
}

/* The number of each part in it. 1; 0: it is not the sum of them; < 0. */
static int
measure(struct acc_replicas *t, const struct parts *p, double *number, struct acc_err *e)
{
	const size_t n = p->y->n < MOST_ELEMENTS ? (size_t)p->y->n : MOST_ELEMENTS;
	double *x = malloc((size_t)(p->n + 1) * n * sizeof *x), row[ACC_FIT_TERMS];
	struct acc_fit f = {.n = p->n};
	bool known = true;
	int rc = x == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i <= p->n && rc == 0 && known; i++)
		rc = acc_seen_elements(t, i < p->n ? p->part[i] : p->g, 0, n, x + i * n, &known, e);
	for (size_t k = 0; k < n && rc == 0 && known; k++) {
		for (uint32_t i = 0; i < p->n; i++)
			row[i] = x[i * n + k];
		acc_fit_add(&f, row, x[p->n * n + k]);
	}
	free(x);
	if (rc < 0 || !known || !acc_fit_solve(&f))
		return rc;
	for (uint32_t i = 0; i < p->n; i++)
		number[i] = f.c[i];
	return 1;
}

/* A part is another on the other rank. 0 or < 0. */
static int
is_apart(struct acc_replicas *t, const struct acc_replica_seen *s, int64_t rank, bool *is,
	struct acc_err *e)
{
	const struct acc_replica_seen *o = acc_seen_there(t, s, t->call[s->call].k->step, rank);
	struct acc_distance d = {0};
	double near = 0;
	*is = false;
	if (o == NULL || o->mark == s->mark)
		return 0;
	int rc = acc_replicas_distance(t, o, s, &d, e);
	if (rc == 0 && d.known)
		rc = acc_replicas_near(t, s, &near, e);
	*is = rc == 0 && d.known && d.d > near * d.size;
	return rc;
}

/* Of what an op call makes, the first part of its gradient that is another on the other rank, and by which op call; NULL. */
static int
first_part(struct acc_replicas *t, const struct acc_seen_call *c, int64_t rank,
	const struct acc_replica_seen **part, const struct acc_seen_call **use, struct acc_err *e)
{
	const struct acc_seen_call *back = acc_seen_backward(t, c);
	struct parts p = {.y = acc_seen_output(t, c), .all = true};
	double number[ACC_FIT_TERMS], most = 0;
	bool is = false;
	*part = NULL;
	const struct acc_replica_seen *o = p.y == NULL ? NULL
						       : acc_seen_there(t, p.y, c->k->step, rank);
	p.g = back == NULL ? NULL : acc_seen_real(t, back, false);
	if (o == NULL || o->mark != p.y->mark || p.y->mark == 0 || p.g == NULL || p.g->mark == 0 ||
		p.g->n != p.y->n)
		return 0;
	collect(t, c, back, &p);
	int rc = p.n == 0 || !p.all ? 0 : measure(t, &p, number, e);
	if (rc != 1)
		return rc;
	for (uint32_t i = 0; i < p.n; i++)
		most = fmax(most, fabs(number[i]));
	for (uint32_t i = 0; i < p.n && !is; i++) {
		if (p.use[i] == NULL || fabs(number[i]) <= LIMIT_RANKS_NONE * most)
			continue;
		rc = is_apart(t, p.part[i], rank, &is, e);
		if (rc < 0)
			return rc;
		*part = is ? p.part[i] : NULL;
		*use = p.use[i];
	}
	return 0;
}

int
acc_replicas_partial(struct acc_replicas *t, const struct acc_replica_seen *w, int64_t rank,
	const struct acc_replica_seen **found, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[w->call];
	const struct acc_replica_seen *part;
	*found = NULL;
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		int rc = first_part(t, c, rank, &part, &c, e);
		if (rc < 0 || part == NULL)
			return rc;
		*found = part;
	}
	return 0;
}
