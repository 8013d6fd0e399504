/* What is alike and as often on both sides belongs together, in order. Keys from the most to the
 * least that can be said. */
#include "align/seq.h"
#include "base/order.h"

#include <stdlib.h>

enum key { KEY_LINE, KEY_SITE, KEY_SITE_FAMILY, KEY_SITE_ONLY, KEY_LEAF, KEY_SCOPE, NKEY };

/* 0: nothing can be said of this call in this way. */
static uint64_t
key_of(const struct seq *s, const struct acc_sites *sites, const struct call *c, enum key k)
{
	uint64_t id[6] = {k, c->out, 0};
	bool sited = c->site != ACC_NOMATE;
	(void)s;
	switch (k) {
	case KEY_LINE: /* whatever the shapes */
		if (!sited)
			return 0;
		id[1] = c->name;
		id[2] = acc_site_hash(sites, c->site);
		id[3] = c->scope;
		break;
	case KEY_SITE:
	case KEY_SITE_FAMILY:
	case KEY_SITE_ONLY:
		if (!sited)
			return 0;
		id[2] = acc_site_hash(sites, c->site);
		id[3] = c->scope;
		id[4] = c->in;
		id[5] = k == KEY_SITE ? c->name : k == KEY_SITE_FAMILY ? c->family : 0;
		break;
	case KEY_LEAF:
		if (c->leaf == 0)
			return 0;
		id[2] = c->leaf;
		id[3] = c->in;
		id[4] = c->family;
		break;
	default:
		if (c->scope == 0)
			return 0;
		id[2] = c->scope;
		id[3] = c->in;
		id[4] = c->family;
		break;
	}
	return acc_hash(id, sizeof id) | 1;
}

struct keyed {
	uint64_t key;
	uint32_t call;
};

ACC_ORDER_2(cmp, struct keyed, key, call)

static uint32_t
list(const struct seq *s, const struct acc_sites *sites, const struct call *c, uint32_t n,
	const uint32_t *mate, enum key k, struct keyed *out)
{
	uint32_t m = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t key = mate[i] != ACC_NOMATE ? 0 : key_of(s, sites, &c[i], k);
		if (key != 0)
			out[m++] = (struct keyed){key, i};
	}
	qsort(out, m, sizeof *out, cmp);
	return m;
}

/* A group that both sides have: p[0..n) and q[0..n). */
typedef int group_fn(struct seq *s, const struct keyed *p, const struct keyed *q, uint32_t n,
	enum key k, void *arg);

/* Each group that is as large on both sides, of those calls that are free. 0 or < 0. */
static int
each_group(struct seq *s, enum key k, struct keyed *p, group_fn *f, void *arg)
{
	struct keyed *q = p + s->na;
	uint32_t n = list(s, s->j->a->sites, s->a, s->na, s->ma, k, p);
	uint32_t m = list(s, s->j->b->sites, s->b, s->nb, s->mb, k, q);
	int rc = 0;
	for (uint32_t i = 0, t = 0; i < n && t < m && rc == 0;) {
		uint32_t ni = 1, nt = 1;
		while (i + ni < n && p[i + ni].key == p[i].key)
			ni++;
		while (t + nt < m && q[t + nt].key == q[t].key)
			nt++;
		if (p[i].key < q[t].key) {
			i += ni;
		} else if (p[i].key > q[t].key) {
			t += nt;
		} else {
			if (ni == nt)
				rc = f(s, &p[i], &q[t], ni, k, arg);
			i += ni;
			t += nt;
		}
	}
	return rc;
}

static void
pair_two(struct seq *s, uint32_t x, uint32_t y, enum key k)
{
	if (acc_seq_score(s, x, y) > (k >= KEY_LEAF ? SEQ_SURE : SEQ_ACCEPT))
		acc_seq_mate(s, x, y, k < KEY_LEAF ? SEQ_SOURCE : SEQ_WEIGHTS);
}

/* Are their values known, and others? */
static bool
is_other(const struct call *x, const struct call *y)
{
	enum { NEAR = 15 };
	return acc_seq_findable(x) && acc_seq_findable(y) && acc_seq_value(x, y) < NEAR;
}

/* Those of a group that have other values than what stands at their place on the other side, but those of
 * another there, and of it alone: what stands in another order, such as weights that each stage of a pipeline
 * makes for itself. */
static int
pair_moved(struct seq *s, const struct keyed *p, const struct keyed *q, uint32_t n, enum key k)
{
	enum { SAME = 20 };
	uint32_t most = 0, m = 0;
	for (uint32_t i = 0; i < n; i++)
		most += is_other(&s->a[p[i].call], &s->b[q[i].call]);
	if (most == 0)
		return 0;
	struct seq_open *v = malloc(2 * (size_t)most * sizeof *v), *w = v == NULL ? NULL : v + most;
	if (v == NULL)
		return acc_nomem(s->e);
	for (uint32_t i = 0; i < n; i++) {
		const struct call *x = &s->a[p[i].call], *y = &s->b[q[i].call];
		if (!is_other(x, y))
			continue;
		v[m] = (struct seq_open){x->count, x->like[ACC_LIKE_RMS], p[i].call};
		w[m++] = (struct seq_open){y->count, y->like[ACC_LIKE_RMS], q[i].call};
	}
	acc_seq_by_size(v, m);
	acc_seq_by_size(w, m);
	for (uint32_t i = 0; i < m; i++) {
		const uint32_t x = v[i].call, y = acc_seq_nearest(&s->a[x], s->b, w, m, SAME);
		if (y != ACC_NOMATE && acc_seq_nearest(&s->b[y], s->a, v, m, SAME) == x)
			pair_two(s, x, y, k);
	}
	free(v);
	return 0;
}

/* Pair a group. Its order can be another on the two sides, but values tell; what they do not tell goes in
 * order. */
static int
pair_group(struct seq *s, const struct keyed *p, const struct keyed *q, uint32_t n, enum key k,
	void *arg)
{
	(void)arg;
	if (k >= KEY_LEAF && n > 1 && k != KEY_SCOPE)
		return 0;
	const int rc = n > 1 ? pair_moved(s, p, q, n, k) : 0;
	if (acc_seq_is_uncounted(s, s->j->a, &s->a[p[0].call]))
		return rc;
	for (uint32_t i = 0, t = 0; i < n && t < n && rc == 0; i++, t++) {
		while (i < n && s->ma[p[i].call] != ACC_NOMATE)
			i++;
		while (t < n && s->mb[q[t].call] != ACC_NOMATE)
			t++;
		if (i < n && t < n)
			pair_two(s, p[i].call, q[t].call, k);
	}
	return rc;
}

/* --- shapes that hang on numbers ---
 *
 * How many tokens an expert gets, how many places a mask has: of what one line calls as often on
 * both sides, the n-th is the n-th, whatever its shapes, unless a weight or the origin of an input
 * says otherwise. The same shapes in another order may as well be calls in another order: then one
 * of these must speak for it. Such groups wait until the others are paired, and then go in the
 * order of the device, so that the origins of most inputs are known. */

#define WAITS (ACC_NOMATE - 1)

struct waiting {
	uint32_t first, at, n; /* the first call of a; of waits.call: n of a, then n of b */
};

struct waits {
	struct waiting *v;
	uint32_t *call;
	uint32_t n, ncall;
};

static int
hold(struct seq *s, const struct keyed *p, const struct keyed *q, uint32_t n, enum key k, void *arg)
{
	struct waits *w = arg;
	bool alike = true;
	(void)k;
	for (uint32_t i = 0; i < n; i++)
		alike &= s->a[p[i].call].out == s->b[q[i].call].out &&
			 s->a[p[i].call].in == s->b[q[i].call].in;
	if (alike)
		return 0;
	w->v[w->n++] = (struct waiting){p[0].call, w->ncall, n};
	for (uint32_t i = 0; i < n; i++) {
		s->ma[p[i].call] = s->mb[q[i].call] = WAITS;
		w->call[w->ncall + i] = p[i].call;
		w->call[w->ncall + n + i] = q[i].call;
	}
	w->ncall += 2 * n;
	return 0;
}

static void
let_go(struct seq *s, const struct waits *w)
{
	for (uint32_t g = 0; g < w->n; g++)
		for (uint32_t i = 0; i < w->v[g].n; i++) {
			s->ma[w->call[w->v[g].at + i]] = ACC_NOMATE;
			s->mb[w->call[w->v[g].at + w->v[g].n + i]] = ACC_NOMATE;
		}
}

/* Has another of these calls the weights of x, and y has others? In another dtype all have. */
static bool
elsewhere(const struct seq *s, const struct call *x, const struct call *y, const uint32_t *q,
	uint32_t n)
{
	for (uint32_t i = 0; i < n && x->leaf != 0 && x->leaf != y->leaf; i++)
		if (s->b[q[i]].leaf == x->leaf)
			return true;
	return false;
}

/* Is the n-th the n-th? */
static bool
in_order(const struct seq *s, const uint32_t *p, const uint32_t *q, uint32_t n)
{
	uint64_t shapes = 0;
	bool spoken = false;
	for (uint32_t i = 0; i < n; i++) {
		const struct call *x = &s->a[p[i]], *y = &s->b[q[i]];
		int flow = acc_seq_flow(s, p[i], q[i]);
		bool other = x->out != y->out || x->in != y->in;
		if (flow < 0 || elsewhere(s, x, y, q, n))
			return false;
		spoken |= other && (flow > 0 || (x->leaf != 0 && x->leaf == y->leaf));
		shapes += acc_hash_pair(x->out, x->in) - acc_hash_pair(y->out, y->in);
	}
	return spoken || shapes != 0;
}

ACC_ORDER(by_first, struct waiting, first)

static void
pair_waiting(struct seq *s, struct waits *w)
{
	if (w->n > 1)
		qsort(w->v, w->n, sizeof *w->v, by_first);
	for (uint32_t g = 0; g < w->n; g++) {
		const struct waiting *v = &w->v[g];
		const uint32_t *p = &w->call[v->at], *q = p + v->n;
		bool paired = in_order(s, p, q, v->n);
		for (uint32_t i = 0; i < v->n && paired; i++)
			acc_seq_mate(s, p[i], q[i], SEQ_SOURCE);
	}
}

/* All that is free, from the most to the least that can be said. */
static int
rounds(struct seq *s, struct keyed *p)
{
	int rc = 0;
	for (int k = KEY_SITE; k < KEY_SCOPE && rc == 0; k++)
		rc = each_group(s, k, p, pair_group, NULL);
	return rc;
}

int
acc_seq_anchors(struct seq *s)
{
	size_t n = (size_t)s->na + s->nb + 1;
	struct keyed *p = malloc(n * sizeof *p);
	struct waits w = {.v = malloc(n * sizeof *w.v), .call = malloc(n * sizeof *w.call)};
	int rc = p == NULL || w.v == NULL || w.call == NULL ? acc_nomem(s->e) : 0;
	if (rc == 0 && s->values)
		rc = acc_seq_value_anchors(s);
	else if (rc == 0) {
		rc = acc_seq_numbered(s);
		each_group(s, KEY_LINE, p, hold, &w);
		rc = rc < 0 ? rc : rounds(s, p);
		let_go(s, &w);
		pair_waiting(s, &w);
		if (rc == 0 && w.n > 0)
			rc = rounds(s, p);
	}
	free(p);
	free(w.v);
	free(w.call);
	return rc;
}
