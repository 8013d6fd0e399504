/* What is alike and as often on both sides belongs together, in order. Keys from the most to the
 * least that can be said. */
#include "align/seq.h"

#include <stdlib.h>

enum key { KEY_SITE, KEY_SITE_FAMILY, KEY_SITE_ONLY, KEY_LEAF, KEY_SCOPE, NKEY };

/* 0: nothing can be said of this call in this way. */
static uint64_t
key_of(const struct seq *s, const struct acc_sites *sites, const struct call *c, enum key k)
{
	uint64_t id[6] = {k, c->out, 0};
	bool sited = c->site != ACC_NOMATE;
	(void)s;
	switch (k) {
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

static int
cmp(const void *x, const void *y)
{
	const struct keyed *p = x, *q = y;
	if (p->key != q->key)
		return p->key < q->key ? -1 : 1;
	return (p->call > q->call) - (p->call < q->call);
}

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

/* Pair a group. Its order can be another on the two sides, but values tell. */
static void
pair_group(struct seq *s, const struct keyed *p, const struct keyed *q, uint32_t n, enum key k)
{
	bool weak = k >= KEY_LEAF;
	if (weak && n > 1 && k != KEY_SCOPE)
		return;
	for (uint32_t i = 0; i < n; i++) {
		int v = acc_seq_score(s, p[i].call, q[i].call);
		if (v > (weak ? SEQ_SURE : SEQ_ACCEPT))
			acc_seq_mate(s, p[i].call, q[i].call, k < KEY_LEAF ? SEQ_SOURCE : SEQ_WEIGHTS);
	}
}

static void
round_of(struct seq *s, enum key k, struct keyed *p, struct keyed *q)
{
	uint32_t n = list(s, s->j->a->sites, s->a, s->na, s->ma, k, p);
	uint32_t m = list(s, s->j->b->sites, s->b, s->nb, s->mb, k, q);
	for (uint32_t i = 0, t = 0; i < n && t < m;) {
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
				pair_group(s, &p[i], &q[t], ni, k);
			i += ni;
			t += nt;
		}
	}
}

int
acc_seq_anchors(struct seq *s)
{
	struct keyed *p = malloc(((size_t)s->na + s->nb + 1) * sizeof *p);
	if (p == NULL)
		return acc_fail(s->e, ACC_ENOMEM, "out of memory");
	for (int k = 0; k < KEY_SCOPE; k++)
		round_of(s, k, p, p + s->na);
	free(p);
	return 0;
}
