/* Names that the table of families does not know: an operator whose calls belong, wherever that
 * is known, to those of one other operator, is taken to be that operator under another name. */
#include "align/seq.h"
#include "base/order.h"

#include <stdlib.h>

struct votes {
	uint64_t name, other;
	uint32_t n;
};

ACC_ORDER_2(cmp, struct votes, name, other)

/* One entry for each two names that stand together in v[n], sorted. */
static uint32_t
count(struct votes *v, uint32_t n)
{
	uint32_t m = 0;
	qsort(v, n, sizeof *v, cmp);
	for (uint32_t i = 0; i < n; i++)
		if (m > 0 && cmp(&v[m - 1], &v[i]) == 0)
			v[m - 1].n++;
		else
			v[m++] = v[i];
	return m;
}

/* Each vote is of a name of these calls, and of one of the other side. */
static int
learn(struct votes *v, uint32_t n, struct call *c, uint32_t calls, struct acc_err *e)
{
	struct acc_map alias = {0};
	int rc = 0;
	n = count(v, n);
	for (uint32_t i = 0, all = 0, best = 0; i < n && rc == 0; i++) {
		best = all == 0 || v[i].n > v[best].n ? i : best;
		all += v[i].n;
		if (i + 1 < n && v[i + 1].name == v[i].name)
			continue;
		if (v[best].n * 3 > all * 2 && v[best].name != v[best].other &&
			acc_map_put(&alias, (struct acc_str){(char *)&v[best].name, sizeof v->name},
				v[best].other) == NULL)
			rc = acc_nomem(e);
		all = 0;
	}
	for (uint32_t i = 0; i < calls && rc == 0; i++) {
		const struct acc_str name = {(char *)&c[i].name, sizeof c[i].name};
		const uint64_t *other = acc_map_get(&alias, name);
		c[i].alias = other == NULL ? 0 : *other;
	}
	acc_map_release(&alias);
	return rc;
}

int
acc_seq_learn(struct seq *s)
{
	struct votes *v = malloc(((size_t)s->na + 1) * sizeof *v);
	int rc = v == NULL ? acc_nomem(s->e) : 0;
	for (int back = 0; back < 2 && rc == 0; back++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < s->na; i++) {
			if (s->ma[i] == ACC_NOMATE)
				continue;
			uint64_t a = s->a[i].name, b = s->b[s->ma[i]].name;
			v[n++] = back ? (struct votes){b, a, 1} : (struct votes){a, b, 1};
		}
		rc = learn(v, n, back ? s->b : s->a, back ? s->nb : s->na, s->e);
	}
	free(v);
	return rc;
}
