/* Weights under names that nothing is known of: what the names of pairs have in common holds for the
 * others, too, and casts doubt on pairs of the same content that it contradicts. */
#include "align/loose.h"
#include "base/order.h"

#include <stdlib.h>

/* The templates of two names, and by how much the numbers of the second are larger. */
struct pattern {
	uint64_t a, b, shift;
	struct acc_str name; /* the template of b, or of one that has it */
	int32_t by[LOOSE_INDICES];
	uint32_t n; /* numbers; LOOSE_INDICES + 1: not as many on both sides */
	uint32_t votes, of_a, of_b, of_both; /* votes of this; of all with its a, its b, both */
	uint32_t best; /* of the first with its a: where that with the most of_both stands */
};

/* Which numbers of a template are not the same in all its names; the others are words. */
struct slots {
	struct acc_ids at;
	struct slot {
		int32_t first[LOOSE_INDICES];
		bool varies[LOOSE_INDICES];
	} * v;
	uint32_t n;
	size_t cap;
};

struct patterns {
	struct slots slots[2];
	struct pattern *v; /* by a, then by votes, the most first */
	uint32_t n;
	struct pattern all; /* what the numbers of most pairs have in common; votes 0: nothing */
};

static int
add_slots(struct loosely *l, struct slots *t, const struct loose *x, struct acc_buf *buf)
{
	struct loose_index at;
	struct acc_str s = acc_loose_template(l, buf, x->path, &at);
	uint64_t h = acc_hash(s.p, s.n);
	uint32_t k = acc_ids_get(&t->at, h);
	if (k == ACC_NOID) {
		if (!ACC_ROOM(t->v, t->cap, (size_t)t->n + 1, l->e))
			return ACC_ENOMEM;
		struct slot *v = t->v;
		k = t->n++;
		v[k] = (struct slot){.varies = {false}};
		memcpy(v[k].first, at.v, sizeof at.v);
		return acc_ids_put(&t->at, h, k, false, l->e);
	}
	for (uint32_t d = 0; d < at.n; d++)
		t->v[k].varies[d] |= t->v[k].first[d] != at.v[d];
	return 0;
}

static int
find_slots(struct loosely *l, struct patterns *ps, struct acc_buf *buf)
{
	int rc = 0;
	for (int s = 0; s < 2; s++) {
		for (uint32_t i = 0; i < l->npair && rc == 0; i++)
			rc = add_slots(l, &ps->slots[s], &l->pair[i][s], buf);
		for (uint32_t i = 0; i < l->s[s].n && rc == 0; i++)
			rc = add_slots(l, &ps->slots[s], &l->s[s].v[i], buf);
	}
	return rc;
}

static void
release(struct patterns *ps)
{
	for (int s = 0; s < 2; s++) {
		acc_ids_release(&ps->slots[s].at);
		free(ps->slots[s].v);
	}
	free(ps->v);
}

/* The template of a name with those of its numbers that are words left in it. */
static struct acc_str template(struct loosely *l, const struct patterns *ps, int side,
	struct acc_str path, struct acc_buf *buf, struct loose_index *at)
{
	struct acc_str s = acc_loose_template(l, buf, path, at);
	uint32_t k = acc_ids_get(&ps->slots[side].at, acc_hash(s.p, s.n)), n = 0;
	const struct slot *t = k == ACC_NOID ? NULL : &ps->slots[side].v[k];
	struct acc_buf out = {0};
	int rc = 0;
	for (uint32_t i = 0, d = 0; i < s.n && rc == 0; i++) {
		bool number = s.p[i] == '#' && d < at->n;
		if (number && t != NULL && !t->varies[d]) {
			char text[16];
			int len = snprintf(text, sizeof text, "%d", at->v[d++]);
			rc = acc_buf_add(&out, text, (size_t)len);
			continue;
		}
		if (number)
			at->v[n++] = at->v[d++];
		rc = acc_buf_add(&out, s.p + i, 1);
	}
	at->n = n;
	struct acc_buf swap = *buf;
	*buf = out;
	acc_buf_release(&swap);
	l->failed |= rc < 0;
	return rc < 0 ? (struct acc_str){"", 0}
		      : (struct acc_str){(const char *)buf->p, (uint32_t)buf->n};
}

static int
describe(struct loosely *l, const struct patterns *ps, const struct loose *x, const struct loose *y,
	struct acc_buf *buf, struct pattern *p)
{
	struct loose_index i, k;
	*p = (struct pattern){.votes = 1};
	struct acc_str s = template(l, ps, 0, x->path, buf, &i);
	p->a = acc_hash(s.p, s.n);
	s = template(l, ps, 1, y->path, buf, &k);
	p->b = acc_hash(s.p, s.n);
	char *name = acc_arena_copy(&l->mem, s.p, s.n);
	if (name == NULL)
		return acc_nomem(l->e);
	p->name = (struct acc_str){name, s.n};
	p->n = i.n == k.n ? i.n : LOOSE_INDICES + 1;
	for (uint32_t d = 0; d < i.n && i.n == k.n; d++)
		p->by[d] = k.v[d] - i.v[d];
	p->shift = acc_hash_pair(acc_hash(p->by, sizeof p->by), p->n);
	return 0;
}

ACC_ORDER_3(cmp_pattern, struct pattern, a, b, shift)

static int
cmp_votes(const void *x, const void *y)
{
	const struct pattern *p = x, *q = y;
	if (p->a != q->a)
		return p->a < q->a ? -1 : 1;
	if (p->votes != q->votes)
		return p->votes > q->votes ? -1 : 1;
	return cmp_pattern(x, y);
}

ACC_ORDER(cmp_shift, struct pattern, shift)

ACC_ORDER(cmp_b, struct pattern, b)

/* What most pairs' numbers do, whatever the names. */
static void
vote_on_numbers(struct patterns *ps)
{
	uint32_t total = 0;
	if (ps->n > 0)
		qsort(ps->v, ps->n, sizeof *ps->v, cmp_shift);
	for (uint32_t i = 0; i < ps->n;) {
		uint32_t votes = 0, k = i;
		for (; k < ps->n && ps->v[k].shift == ps->v[i].shift; k++)
			votes += ps->v[k].votes;
		bool any = ps->v[i].n > 0 && ps->v[i].n <= LOOSE_INDICES;
		total += any ? votes : 0;
		if (any && votes > ps->all.votes) {
			ps->all = ps->v[i];
			ps->all.votes = votes;
		}
		i = k;
	}
	/* Three of four, and of four at least. */
	if (ps->all.votes < 4 || ps->all.votes * 4 < total * 3)
		ps->all.votes = 0;
}

/* From the pairs that there are, and those that content proposes. */
static int
learn(struct loosely *l, const struct loose_matching *mt, struct patterns *ps, struct acc_buf *buf)
{
	uint32_t n = 0;
	int rc = 0;
	ps->v = calloc((size_t)l->npair + l->s[0].n + 1, sizeof *ps->v);
	if (ps->v == NULL)
		return acc_nomem(l->e);
	rc = find_slots(l, ps, buf);
	for (uint32_t i = 0; i < l->npair && rc == 0; i++)
		rc = describe(l, ps, &l->pair[i][0], &l->pair[i][1], buf, &ps->v[n++]);
	for (uint32_t i = 0; i < l->s[0].n && mt != NULL && rc == 0; i++)
		if (mt->to[i] != ACC_NOMATE)
			rc = describe(l, ps, &l->s[0].v[i], &l->s[1].v[mt->to[i]], buf,
				&ps->v[n++]);
	if (n > 0)
		qsort(ps->v, n, sizeof *ps->v, cmp_pattern);
	for (uint32_t i = 0; i < n; i++) {
		struct pattern *last = &ps->v[ps->n > 0 ? ps->n - 1 : 0];
		if (ps->n > 0 && cmp_pattern(last, &ps->v[i]) == 0)
			last->votes++;
		else
			ps->v[ps->n++] = ps->v[i];
	}
	for (uint32_t i = 0, k; i < ps->n; i = k) {
		uint32_t votes = 0;
		for (k = i; k < ps->n && ps->v[k].a == ps->v[i].a && ps->v[k].b == ps->v[i].b; k++)
			votes += ps->v[k].votes;
		for (k = i; k < ps->n && ps->v[k].a == ps->v[i].a && ps->v[k].b == ps->v[i].b; k++)
			ps->v[k].of_both = votes;
	}
	vote_on_numbers(ps);
	if (ps->n > 0)
		qsort(ps->v, ps->n, sizeof *ps->v, cmp_b);
	for (uint32_t i = 0, k; i < ps->n; i = k) {
		uint32_t votes = 0;
		for (k = i; k < ps->n && ps->v[k].b == ps->v[i].b; k++)
			votes += ps->v[k].votes;
		for (k = i; k < ps->n && ps->v[k].b == ps->v[i].b; k++)
			ps->v[k].of_b = votes;
	}
	if (ps->n > 0)
		qsort(ps->v, ps->n, sizeof *ps->v, cmp_votes);
	for (uint32_t i = 0, k; i < ps->n; i = k) {
		uint32_t votes = 0, best = i;
		for (k = i; k < ps->n && ps->v[k].a == ps->v[i].a; k++) {
			votes += ps->v[k].votes;
			if (ps->v[k].of_both > ps->v[best].of_both)
				best = k;
		}
		ps->v[i].best = best;
		for (k = i; k < ps->n && ps->v[k].a == ps->v[i].a; k++)
			ps->v[k].of_a = votes;
	}
	return rc;
}

/* The template that most partners of template a have, and how their numbers compare: true if it may be
 * relied on. `sure`: more than half of what either side says. */
static bool
rule_of(const struct patterns *ps, uint64_t a, bool sure, struct pattern *out)
{
	uint32_t lo = 0;
	ACC_LOWER(lo, ps->n, ps->v[lo].a < a);
	if (lo == ps->n || ps->v[lo].a != a)
		return false;
	*out = ps->v[lo];
	if (out->n <= LOOSE_INDICES && out->votes >= 2 && out->votes * 2 > out->of_a &&
		out->votes * 2 > out->of_b)
		return true;
	/* By the names alone, and the numbers as everywhere. */
	struct pattern best = ps->v[ps->v[lo].best];
	best.votes = best.of_both;
	*out = best;
	if (ps->all.votes > 0 && (best.n == ps->all.n || best.n > LOOSE_INDICES))
		memcpy(out->by, ps->all.by, sizeof out->by);
	bool numbers = ps->all.votes > 0 && best.n == ps->all.n;
	if (sure)
		return numbers && best.votes >= 2 && best.votes * 2 > best.of_a &&
		       best.votes * 2 > best.of_b;
	return best.n == 0 || numbers || (best.n <= LOOSE_INDICES && ps->v[lo].votes >= 2);
}

/* The name that x has on the other side, into out; its hash, or 0. */
static uint64_t
predict(struct loosely *l, const struct patterns *ps, const struct loose *x, bool sure,
	struct acc_buf *out)
{
	struct loose_index at;
	struct pattern p;
	struct acc_str t = template(l, ps, 0, x->path, out, &at);
	if (!rule_of(ps, acc_hash(t.p, t.n), sure, &p) || p.n != at.n)
		return 0;
	int rc = 0;
	out->n = 0;
	for (uint32_t i = 0, d = 0; i < p.name.n && rc == 0; i++) {
		char number[24];
		int n = 0;
		bool word = p.name.p[i] != '#' || d >= at.n;
		if (!word)
			n = snprintf(number, sizeof number, "%lld", (long long)at.v[d] + p.by[d]);
		d += !word;
		rc = word ? acc_buf_add(out, p.name.p + i, 1) : acc_buf_add(out, number, (size_t)n);
	}
	l->failed |= rc < 0;
	return rc < 0 ? 0 : acc_hash(out->p, out->n);
}

/* Names of the bench, by their hashes, to their places. */
static int
places(struct loosely *l, struct acc_ids *at)
{
	int rc = 0;
	for (uint32_t i = 0; i < l->s[1].n && rc == 0; i++) {
		const struct acc_str *s = &l->s[1].v[i].path;
		rc = acc_ids_put(at, acc_hash(s->p, s->n), i, false, l->e);
	}
	return rc;
}

/* Content that stands under the name of something else is no pair: where most names agree on what they
 * mean, two weights were exchanged. */
int
acc_loose_doubt(struct loosely *l, struct loose_matching *mt)
{
	struct acc_buf buf = {0};
	struct patterns ps = {0};
	struct acc_ids at = {0};
	int rc = learn(l, mt, &ps, &buf);
	if (rc == 0)
		rc = places(l, &at);
	for (uint32_t i = 0; i < l->s[0].n && rc == 0; i++) {
		const struct loose *x = &l->s[0].v[i];
		uint64_t name = mt->to[i] == ACC_NOMATE ? 0 : predict(l, &ps, x, true, &buf);
		uint32_t k = name == 0 ? ACC_NOID : acc_ids_get(&at, name);
		if (k == ACC_NOID || k == mt->to[i] || !acc_loose_fits(x, &l->s[1].v[k]))
			continue;
		mt->from[mt->to[i]] = ACC_NOMATE;
		mt->to[i] = ACC_NOMATE;
	}
	acc_ids_release(&at);
	release(&ps);
	acc_buf_release(&buf);
	return rc;
}

/* What has no partner by content belongs to what the names of the others say. */
int
acc_loose_pattern(struct loosely *l)
{
	struct acc_buf buf = {0};
	struct patterns ps = {0};
	struct acc_ids at = {0};
	int rc = learn(l, NULL, &ps, &buf);
	if (rc == 0)
		rc = places(l, &at);
	for (uint32_t i = 0; i < l->s[0].n && rc == 0; i++) {
		const struct loose *x = &l->s[0].v[i];
		uint64_t name = predict(l, &ps, x, false, &buf);
		uint32_t k = name == 0 ? ACC_NOID : acc_ids_get(&at, name);
		const struct loose *y = k == ACC_NOID ? NULL : &l->s[1].v[k];
		if (y != NULL && l->j->b->item[y->item].mate == ACC_NOMATE && acc_loose_fits(x, y))
			acc_loose_mate(l, x, y, ACC_HOW_PATTERN);
	}
	acc_ids_release(&at);
	release(&ps);
	acc_buf_release(&buf);
	acc_loose_shrink(&l->s[0]);
	acc_loose_shrink(&l->s[1]);
	return rc;
}
