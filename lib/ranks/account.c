/* Of whose gradients those are made that optimizers are given: each is fitted, by least squares, as a sum of what the
 * backward calls of all ranks make that hold its weight. So all that lies between is measured, recorded or not. */
#include "replay/limits.h"
#include "base/order.h"
#include "ranks/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_ELEMENTS = 4096,
	FEW_ELEMENTS = 8,
	START = 4,
	MOST_FLAT = 1 << 20,
	MOST_SEARCHED = 1 << 28 /* elements, where weights are looked for */
};

struct use { /* of a weight, by an op call of the first step */
	uint64_t mark;
	int64_t rank;
	const struct acc_replica_seen *w, *g; /* g: what that call's backward one makes; NULL */
	bool flat; /* one number everywhere: it is found by nothing else than the whole of it */
};

struct account {
	struct acc_replicas *t;
	struct use *use; /* by mark, rank and gradient */
	size_t n, cap, cap_out, cap_crossed;
	uint32_t *late; /* products that no backward call made, in or behind the backward pass */
	size_t nlate, cap_late;
	double *x;             /* MOST_ELEMENTS of each rank, of the optimizer's, and of one call */
	double *flat, *weight; /* MOST_FLAT of each */
	int64_t left;          /* of what may be searched */
};

ACC_ORDER_3(by_weight, struct use, mark, rank, g)

/* Where several weights of a rank begin as the same, as those of norms do, the sum of their gradients explains none. */
static int
collect(struct account *m, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		const struct acc_seen_call *c = &t->call[s->call];
		bool flat = true;
		if (!s->leaf || s->mark == 0 || s->n < FEW_ELEMENTS || c->k->step != t->step[0] ||
			c->k->backward || c->k->talks || c->behind || c->optimizer)
			continue;
		int rc = acc_replicas_flat(t, s, &flat, e);
		if (rc < 0)
			return rc;
		if (!ACC_ROOM(m->use, m->cap, m->n + 1, e))
			return ACC_ENOMEM;
		m->use[m->n++] = (struct use){s->mark, c->k->rank, s,
			acc_seen_gradient(t, c->k->step, c->k->rank, s), flat};
	}
	if (m->n > 1)
		qsort(m->use, m->n, sizeof *m->use, by_weight);
	return 0;
}

/* What a function of its own, whose backward pass leaves a gradient for later, has made of it then: products. */
static int
collect_late(struct account *m, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	for (uint32_t i = 0; i < t->nseen; i++) {
		const struct acc_seen_call *c = &t->call[t->seen[i].call];
		if (!t->seen[i].out || !t->seen[i].real || t->seen[i].wants ||
			t->seen[i].n < FEW_ELEMENTS || c->k->step != t->step[0] || c->k->backward ||
			!(c->amid || c->behind) || c->info == NULL ||
			c->info->cls != ACC_OP_CONTRACT)
			continue;
		if (!ACC_ROOM(m->late, m->cap_late, m->nlate + 1, e))
			return ACC_ENOMEM;
		m->late[m->nlate++] = i;
	}
	return 0;
}

/* Behind the uses of this weight on this rank. */
static size_t
end_of(const struct account *m, size_t i)
{
	size_t k = i;
	while (k < m->n && m->use[k].mark == m->use[i].mark && m->use[k].rank == m->use[i].rank)
		k++;
	return k;
}

/* The first use of this weight, of whatever rank; m->n: there is none. */
static size_t
first_of(const struct account *m, uint64_t mark)
{
	size_t lo = 0;
	ACC_LOWER(lo, m->n, m->use[lo].mark < mark);
	return lo < m->n && m->use[lo].mark == mark ? lo : m->n;
}

/* That of this rank, from there on. */
static size_t
use_of(const struct account *m, size_t first, int64_t rank)
{
	size_t i = first;
	while (i < m->n && m->use[i].mark == m->use[first].mark && m->use[i].rank != rank)
		i = end_of(m, i);
	return i < m->n && m->use[i].mark == m->use[first].mark ? i : m->n;
}

static bool
too_many(const struct account *m, size_t first)
{
	uint32_t n = 0;
	for (size_t i = first;
		i < m->n && m->use[i].mark == m->use[first].mark && n <= ACC_FIT_TERMS;
		i = end_of(m, i))
		n++;
	return n > ACC_FIT_TERMS;
}

/* --- the numbers --- */

static int
has_low(struct acc_replicas *t, const struct acc_replica_seen *s, bool *low, struct acc_err *e)
{
	struct acc_fleet_tensor x = {0};
	struct acc_rec *r;
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	if (rc == 0 && acc_fleet_tensor(r, s->line, &x) < 0)
		return acc_nomem(e);
	*low = x.dtype == ACC_BF16 || x.dtype == ACC_F16;
	return rc;
}

/* Adds the part of a tensor. 1; 0: it is not known, or of another shape; < 0. */
static int
add(struct account *m, const struct acc_replica_seen *g, const struct acc_account *a, double *out,
	struct acc_err *e)
{
	double *x = m->x + (size_t)(ACC_FIT_TERMS + 1) * MOST_ELEMENTS;
	bool known = false;
	int rc = g->shape != a->w->shape ? 0
					 : acc_seen_elements(m->t, g, a->in_w, a->n, x, &known, e);
	for (uint64_t k = 0; k < a->n && known; k++)
		out[k] += x[k];
	return rc < 0 ? rc : known;
}

/* The part of what these uses together make of a rank's gradient; late: and of what was left for later. 1; 0: it is not known,
 * or zero; < 0. */
static int
own_gradient(struct account *m, size_t from, size_t end, const struct acc_account *a, bool late,
	double *out, struct acc_err *e)
{
	double size = 0;
	int rc = 1;
	memset(out, 0, a->n * sizeof *out);
	for (size_t i = from; i < end && rc == 1; i++) {
		const struct acc_replica_seen *g = m->use[i].g;
		if (g != NULL &&
			(i == from ||
				g != m->use[i - 1].g)) /* not computed again, nor once for both */
			rc = add(m, g, a, out, e);
	}
	for (size_t i = 0; i < m->nlate && rc >= 0 && late; i++) {
		const struct acc_replica_seen *g = &m->t->seen[m->late[i]];
		const int late_rc = m->t->call[g->call].k->rank == m->use[from].rank
					    ? add(m, g, a, out, e)
					    : 0;
		rc = late_rc < 0 ? late_rc : rc;
	}
	if (rc != 1)
		return rc;
	for (uint64_t k = 0; k < a->n; k++)
		size += out[k] * out[k];
	return size > 0 && isfinite(size);
}

static bool
is_same(const double *a, const double *b, uint64_t n)
{
	double dd = 0, aa = 0;
	for (uint64_t k = 0; k < n; k++) {
		dd += (a[k] - b[k]) * (a[k] - b[k]);
		aa += a[k] * a[k];
	}
	return dd <= 1e-6 * aa;
}

/* What the ranks' gradients are, which a sum is fitted to. */
enum terms { OF_WEIGHT, AND_LATE, AND_OTHERS };

/* One of them: those that are the same are one term. 0 or < 0. */
static int
add_term(struct account *m, size_t i, size_t end, enum terms which, struct acc_account *a,
	uint32_t *term, struct acc_fit *f, struct acc_err *e)
{
	double *x = m->x + (size_t)f->n * MOST_ELEMENTS;
	uint32_t k = 0;
	int rc = a->nrank == ACC_FIT_TERMS ? 0
					   : own_gradient(m, i, end, a, which == AND_LATE, x, e);
	if (rc != 1)
		return rc;
	while (k < f->n && !is_same(m->x + (size_t)k * MOST_ELEMENTS, x, a->n))
		k++;
	f->n += k == f->n;
	a->rank[a->nrank] = m->use[i].rank;
	a->of[a->nrank] = m->use[i].w;
	term[a->nrank++] = k;
	return 0;
}

/* Is one of these uses that of another weight, on another rank, where a's is? Before a gradient is known that moved it. */
static bool
is_in_place_of(const struct account *m, size_t i, size_t end, const struct acc_account *a)
{
	const struct acc_seen_call *c = &m->t->call[a->w->call];
	bool is = false;
	for (size_t k = i; k < end && m->use[i].mark != a->w->mark && !is && !c->amid; k++)
		is = m->use[k].rank != c->k->rank &&
		     m->t->call[m->use[k].w->call].k->key == c->k->key &&
		     m->use[k].w->pos == a->w->pos && m->use[k].w->shape == a->w->shape;
	return is;
}

/* The gradients of all ranks. 0 or < 0. */
static int
terms_of(struct account *m, size_t first, enum terms which, struct acc_account *a, uint32_t *term,
	struct acc_fit *f, struct acc_err *e)
{
	int rc = 0;
	for (size_t i = first, end; i < m->n && m->use[i].mark == a->w->mark && rc == 0; i = end) {
		end = end_of(m, i);
		rc = add_term(m, i, end, which, a, term, f, e);
	}
	for (size_t i = 0, end; i < m->n && rc == 0 && which == AND_OTHERS; i = end) {
		end = end_of(m, i);
		if (is_in_place_of(m, i, end, a))
			rc = add_term(m, i, end, which, a, term, f, e);
	}
	return rc;
}

/* Fits it. 1; 0: it is not made of these; < 0. */
static int
solve(struct account *m, size_t first, enum terms which, struct acc_account *a, struct acc_err *e)
{
	struct acc_fit f = {0};
	uint32_t term[ACC_FIT_TERMS], copies[ACC_FIT_TERMS] = {0};
	double row[ACC_FIT_TERMS], *d = m->x + (size_t)ACC_FIT_TERMS * MOST_ELEMENTS;
	bool known = false, low = false;
	a->n = a->n < MOST_ELEMENTS ? a->n : MOST_ELEMENTS;
	int rc = acc_seen_elements(m->t, a->d, a->in_d, a->n, d, &known, e);
	if (rc == 0 && known)
		rc = has_low(m->t, a->w, &low, e);
	if (rc < 0 || !known)
		return rc;
	a->nrank = 0;
	rc = terms_of(m, first, which, a, term, &f, e);
	if (rc < 0 || f.n == 0 || a->n < (uint64_t)FEW_ELEMENTS * f.n)
		return rc;
	f.rest = low ? LIMIT_RANKS_LOW_SUM : 0;
	for (uint64_t k = 0; k < a->n; k++) {
		for (uint32_t i = 0; i < f.n; i++)
			row[i] = m->x[(size_t)i * MOST_ELEMENTS + k];
		acc_fit_add(&f, row, d[k]);
	}
	if (!acc_fit_solve(&f))
		return 0;
	for (uint32_t i = 0; i < a->nrank; i++)
		copies[term[i]]++;
	for (uint32_t i = 0; i < a->nrank; i++) {
		a->c[i] = f.c[term[i]];
		a->copies[i] = copies[term[i]];
	}
	return 1;
}

static double
largest(const struct acc_account *a)
{
	double most = 0;
	for (uint32_t i = 0; i < a->nrank; i++)
		most = fmax(most, fabs(a->c[i]));
	return most;
}

bool
acc_account_ends(const struct acc_replicas *t, const struct acc_account *a)
{
	return !a->d->out && t->call[a->d->call].optimizer;
}

bool
acc_account_has(const struct acc_account *a, uint32_t i)
{
	return fabs(a->c[i]) > LIMIT_RANKS_NONE * largest(a);
}

uint32_t
acc_account_ranks(const struct acc_account *a)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->nrank; i++)
		n += acc_account_has(a, i);
	return n;
}

bool
acc_account_joins(const struct acc_replicas *t, int64_t step, const struct acc_replica_seen *w,
	int64_t rank)
{
	for (size_t i = 0; i < t->naccount && w != NULL && step == t->step[0]; i++) {
		const struct acc_account *a = &t->account[i];
		if (!acc_account_ends(t, a) || a->w->mark != w->mark ||
			t->call[a->d->call].k->rank != t->call[w->call].k->rank)
			continue;
		for (uint32_t r = 0; r < a->nrank; r++)
			if (a->rank[r] == rank && acc_account_has(a, r))
				return true;
	}
	return false;
}

double
acc_account_factor(const struct acc_account *a)
{
	double sum = 0;
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->nrank; i++)
		if (acc_account_has(a, i)) {
			sum += a->c[i];
			n++;
		}
	for (uint32_t i = 0; i < a->nrank; i++)
		if (acc_account_has(a, i) &&
			fabs(a->c[i] * n - sum) > LIMIT_REPLICA_UNEVEN * fabs(sum))
			return NAN;
	return n == 0 ? NAN : sum / n;
}

/* --- where a weight lies --- */

static bool
near(const double *a, const double *b, size_t n, double off)
{
	for (size_t i = 0; i < n; i++)
		if (!(fabs(a[i] - b[i]) <= off * fabs(b[i])))
			return false;
	return true;
}

/* Where n elements begin in others, each off by at most so much of it; SIZE_MAX: nowhere. */
static size_t
find(const double *in, size_t nin, const double *x, size_t n, double off)
{
	for (size_t i = 0; i + n <= nin; i++)
		if (near(in + i, x, n, off))
			return i;
	return SIZE_MAX;
}

/* The part of a weight that lies in what an optimizer updates, of which m->flat holds all. 1; 0: none; < 0. */
static int
part_of(struct account *m, const struct acc_replica_seen *p, struct acc_account *a,
	struct acc_err *e)
{
	const struct acc_replica_seen *w = a->w;
	bool known = false, low[2] = {false, false};
	m->left -= (int64_t)(w->n + MOST_ELEMENTS);
	if (w->n > MOST_FLAT || m->left < 0)
		return 0;
	int rc = acc_seen_elements(m->t, w, 0, w->n, m->weight, &known, e);
	if (rc == 0 && known)
		rc = has_low(m->t, w, &low[0], e);
	if (rc == 0 && known)
		rc = has_low(m->t, p, &low[1], e);
	if (rc < 0 || !known)
		return rc;
	const double off = low[0] && !low[1] ? LIMIT_RANKS_LOW : 0;
	size_t at = find(m->flat, p->n, m->weight, START, off);
	if (at != SIZE_MAX)
		a->in_d = at;
	else if ((at = find(m->weight, w->n, m->flat, START, off)) != SIZE_MAX)
		a->in_w = at;
	else
		return 0;
	const uint64_t of_w = w->n - a->in_w, of_d = p->n - a->in_d;
	a->n = of_w < of_d ? of_w : of_d;
	return a->n >= FEW_ELEMENTS && near(m->flat + a->in_d, m->weight + a->in_w, a->n, off);
}

static int
keep(struct acc_account **all, size_t *cap, size_t *n, const struct acc_account *a,
	struct acc_err *e)
{
	void *p = acc_grow(*all, cap, *n + 1, sizeof *a, e);
	if (p == NULL)
		return ACC_ENOMEM;
	*all = p;
	(*all)[(*n)++] = *a;
	return 0;
}

static int
note(struct account *m, size_t first, struct acc_account *a, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	if (too_many(m, first))
		return 0;
	int rc = solve(m, first, OF_WEIGHT, a, e);
	if (rc == 0 && m->nlate > 0)
		rc = solve(m, first, AND_LATE, a, e);
	if (rc != 0)
		return rc < 0 ? rc : keep(&t->account, &m->cap_out, &t->naccount, a, e);
	rc = solve(m, first, AND_OTHERS, a, e);
	return rc != 1 ? rc : keep(&t->crossed, &m->cap_crossed, &t->ncrossed, a, e);
}

/* What an optimizer updates, and the gradient that it is given for it. */
static int
updated(struct account *m, const struct acc_replica_seen *p, const struct acc_replica_seen *d,
	struct acc_err *e)
{
	const int64_t rank = m->t->call[p->call].k->rank;
	size_t first = first_of(m, p->mark);
	const size_t own = first == m->n ? m->n : use_of(m, first, rank);
	double x[START];
	bool known = false;
	int rc = p->n < FEW_ELEMENTS ? 0 : acc_seen_elements(m->t, d, 0, START, x, &known, e);
	if (rc < 0 || !known)
		return rc;
	if (own < m->n)
		return note(m, first, &(struct acc_account){.w = m->use[own].w, .d = d, .n = p->n},
			e);
	if (p->n > MOST_FLAT || m->left < 0)
		return 0;
	rc = acc_seen_elements(m->t, p, 0, p->n, m->flat, &known, e);
	if (rc < 0 || !known)
		return rc;
	for (size_t i = 0, end; i < m->n && rc == 0 && m->left >= 0; i = end) {
		struct acc_account a = {.w = m->use[i].w, .d = d};
		first = i == 0 || m->use[i].mark != m->use[i - 1].mark ? i : first;
		end = end_of(m, i);
		if (m->use[i].rank != rank || m->use[i].flat)
			continue;
		rc = part_of(m, p, &a, e);
		if (rc == 1)
			rc = note(m, first, &a, e);
	}
	return rc;
}

/* Where the gradient that a rank makes lies in what it gives to a reduction, of which m->flat holds all: by elements one behind
 * the other that are large enough to be told, after they were summed up. SIZE_MAX: nowhere. */
static int
place_of(struct account *m, const struct acc_replica_seen *in, size_t i, size_t end, size_t *at,
	struct acc_err *e)
{
	struct acc_account a = {.w = m->use[i].w, .n = m->use[i].w->n};
	double size = 0;
	size_t k = 0, large = 0;
	a.n = a.n < MOST_ELEMENTS ? a.n : MOST_ELEMENTS;
	*at = SIZE_MAX;
	int rc = own_gradient(m, i, end, &a, false, m->weight, e);
	if (rc != 1)
		return rc;
	for (uint64_t j = 0; j < a.n; j++)
		size += m->weight[j] * m->weight[j];
	while (k < a.n && large < START)
		large = fabs(m->weight[k++]) > LIMIT_RANKS_SMALL * sqrt(size / (double)a.n)
				? large + 1
				: 0;
	const size_t found = large < START ? SIZE_MAX
					   : find(m->flat, in->n, m->weight + k - START, START,
						     LIMIT_RANKS_ROUNDED);
	if (found != SIZE_MAX && found + START >= k && found + START - k + a.w->n <= in->n)
		*at = found + START - k;
	return 0;
}

/* What a reduction makes of as many elements: of one weight, or of several behind each other. */
static int
reduced(struct account *m, const struct acc_replica_seen *in, const struct acc_replica_seen *out,
	struct acc_err *e)
{
	const int64_t rank = m->t->call[in->call].k->rank;
	size_t first = 0;
	bool known = false;
	int rc = acc_seen_elements(m->t, in, 0, in->n, m->flat, &known, e);
	if (rc < 0 || !known)
		return rc;
	for (size_t i = 0, end; i < m->n && rc == 0; i = end) {
		struct acc_account a = {.w = m->use[i].w, .d = out, .n = m->use[i].w->n};
		first = i == 0 || m->use[i].mark != m->use[i - 1].mark ? i : first;
		end = end_of(m, i);
		if (m->use[i].rank != rank || m->use[i].flat || a.n > in->n)
			continue;
		size_t at = 0;
		m->left -= (int64_t)(in->n + MOST_ELEMENTS);
		if (a.n < in->n && m->left >= 0)
			rc = place_of(m, in, i, end, &at, e);
		else if (a.n < in->n)
			at = SIZE_MAX;
		/* A rank gets one part of as many as there are: the fit tells which. */
		for (uint64_t from = 0; rc == 0 && at != SIZE_MAX && from < in->n; from += out->n) {
			struct acc_account part = a;
			const uint64_t lo = from > at ? from : at,
				       hi = from + out->n < at + a.n ? from + out->n : at + a.n;
			part.in_w = lo - at;
			part.in_d = lo - from;
			part.n = hi > lo ? hi - lo : 0;
			if (part.n >= FEW_ELEMENTS)
				rc = note(m, first, &part, e);
		}
	}
	return rc;
}

/* Where no optimizer of torch is given gradients: what reductions make of them. */
static int
by_reductions(struct account *m, struct acc_err *e)
{
	struct acc_replicas *t = m->t;
	int rc = 0;
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		const struct acc_replica_seen *in = NULL, *out = acc_seen_real(t, c, true);
		for (uint32_t k = c->first; k < c->first + c->n;
			k++) /* what is filled is smaller */
			if (!t->seen[k].out && t->seen[k].real &&
				(in == NULL || t->seen[k].n > in->n))
				in = &t->seen[k];
		if (c->reduces && !c->picks && !c->elsewhere && c->k->step == t->step[0] &&
			in != NULL && out != NULL && in->n >= FEW_ELEMENTS && in->n <= MOST_FLAT &&
			in->n % out->n == 0 && (c->amid || c->behind))
			rc = reduced(m, in, out, e);
	}
	return rc;
}

int
acc_replicas_account(struct acc_replicas *t, struct acc_err *e)
{
	struct account m = {.t = t,
		.left = MOST_SEARCHED,
		.x = malloc((size_t)(ACC_FIT_TERMS + 2) * MOST_ELEMENTS * sizeof *m.x),
		.flat = malloc((size_t)MOST_FLAT * sizeof *m.flat),
		.weight = malloc((size_t)MOST_FLAT * sizeof *m.weight)};
	int rc = m.x == NULL || m.flat == NULL || m.weight == NULL ? acc_nomem(e) : 0;
	if (rc == 0 && t->nstep > 0)
		rc = collect(&m, e);
	if (rc == 0 && t->nstep > 0)
		rc = collect_late(&m, e);
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		struct acc_optimizer_lists l;
		if (!c->optimizer || c->k->step != t->step[0])
			continue;
		rc = acc_seen_lists(t, c, &l, e);
		const bool lists = rc == 1;
		rc = rc < 0 ? rc : 0;
		for (uint32_t k = 0; lists && k < l.n[0] && rc == 0; k++)
			rc = updated(&m, &t->seen[l.first[0] + k], &t->seen[l.first[1] + k], e);
	}
	if (rc == 0 && t->naccount == 0)
		rc = by_reductions(&m, e);
	free(m.x);
	free(m.flat);
	free(m.weight);
	free(m.use);
	free(m.late);
	return rc;
}
