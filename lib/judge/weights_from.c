/* Arrays that agree up to an index of an axis, as those of a decode loop do up to a position: from where on each of them
 * does not. */
#include "acc/say.h"
#include "judge/first_bad.h"
#include "judge/weights.h"

#include <stdlib.h>

struct from {
	const char *name;
	int64_t index, axis;
};

static int
by_index(const void *x, const void *y)
{
	const struct from *p = x, *q = y;
	return p->index != q->index ? (p->index > q->index) - (p->index < q->index)
				    : strcmp(p->name, q->name);
}

/* 1: from where on; 0: it is not so; < 0. */
static int
look(struct acc_weights *t, uint32_t item, struct from *f, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_find_where(t->c, item, e);
	if (rc == 0)
		rc = acc_case_record(t->c, &t->c->item[item], &r, e);
	if (rc < 0)
		return rc;
	const struct acc_val *set = acc_get(r, "", "m.where.set"),
			     *axis = acc_get(r, "", "m.where.axis");
	if (set == NULL || axis == NULL || set->type != ACC_V_TEXTS || axis->type != ACC_V_INTS ||
		set->n != 1 || axis->n != 1 || axis->ints[0] < 0)
		return 0;
	struct acc_str s = set->texts[0];
	if (s.n < 2 || s.p[s.n - 1] != ':')
		return 0;
	s.n--;
	if (!acc_str_int(s, &f->index))
		return 0;
	f->axis = axis->ints[0];
	rc = acc_weights_name(t, item, &f->name, NULL, NULL, e);
	return rc < 0 ? rc : 1;
}

int
acc_weights_from(struct acc_weights *t, const char **text, struct acc_err *e)
{
	struct from v[ACC_NRANKED];
	uint32_t n = 0;
	/* Of a checkpoint many differ, and a place in one is said. */
	if (t->c->opt.where == NULL || t->other.n < 2 || t->other.n > ACC_NRANKED)
		return 0;
	for (uint32_t i = 0; i < t->nworst; i++) {
		const struct acc_item *it = &t->c->item[t->worst[i]];
		int rc = it->io != ACC_IO_OUT || it->measure != ACC_BY_TENSOR
				 ? 0
				 : look(t, t->worst[i], &v[n], e);
		if (rc < 0)
			return rc;
		n += rc > 0;
	}
	qsort(v, n, sizeof *v, by_index);
	for (uint32_t i = 0; i < n && *text != NULL; i++)
		*text = acc_say(&t->c->mem,
			i == 0 ? "%s; they agree in front of index %lld of axis %lld (%s)"
			       : "%s, %lld of axis %lld (%s)",
			*text, (long long)v[i].index, (long long)v[i].axis, v[i].name);
	return *text == NULL ? acc_nomem(e) : 0;
}
