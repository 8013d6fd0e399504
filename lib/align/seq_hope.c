/* Which of the free calls can have a partner among those of the other side at all: where nothing is alike,
 * the band would be filled for nothing. The others cost what they did before. */
#include "align/seq.h"

#include <stdlib.h>

/* What acc_seq_score asks first. */
static uint64_t
kind(const struct seq *s, const struct call *c)
{
	return s->loose ? c->family : acc_hash_pair(c->family, c->dims);
}

/* What a list of calls has. */
struct kinds {
	struct acc_ids out, kind;
};

static int
gather(const struct seq *s, const struct call *c, const uint32_t *x, uint32_t n, struct kinds *t)
{
	int rc = 0;
	for (uint32_t i = 0; i < n && rc >= 0; i++) {
		rc = acc_ids_put(&t->out, c[x[i]].out, 0, false, s->e);
		if (rc >= 0)
			rc = acc_ids_put(&t->kind, kind(s, &c[x[i]]), 0, false, s->e);
	}
	return rc < 0 ? rc : 0;
}

static int
leave(const struct seq *s, const struct call *c, uint32_t *x, uint32_t *n,
	const struct kinds *other, struct seq_hopeless *h)
{
	uint32_t k = 0;
	h->before = malloc(((size_t)*n + 1) * sizeof *h->before);
	if (h->before == NULL)
		return acc_nomem(s->e);
	h->before[0] = 0;
	for (uint32_t i = 0; i < *n; i++) {
		const struct call *one = &c[x[i]];
		if (acc_ids_get(&other->out, one->out) == ACC_NOID &&
			acc_ids_get(&other->kind, kind(s, one)) == ACC_NOID)
			continue;
		h->before[k + 1] = i - k;
		x[k++] = x[i];
	}
	h->all = *n - k;
	*n = k;
	return 0;
}

int
acc_seq_hope(const struct seq *s, uint32_t *x, uint32_t *n, uint32_t *y, uint32_t *m,
	struct seq_hopeless h[2])
{
	struct kinds of[2] = {0};
	int rc = gather(s, s->a, x, *n, &of[0]);
	if (rc == 0)
		rc = gather(s, s->b, y, *m, &of[1]);
	if (rc == 0)
		rc = leave(s, s->a, x, n, &of[1], &h[0]);
	if (rc == 0)
		rc = leave(s, s->b, y, m, &of[0], &h[1]);
	for (int i = 0; i < 2; i++) {
		acc_ids_release(&of[i].out);
		acc_ids_release(&of[i].kind);
	}
	return rc;
}
