/* The whole: gather both sides, look up, judge, write. */
#include "check/check.h"

#include <stdlib.h>

enum { ADOPTED = 4096 };

struct acc_check *
acc_check_open(const struct acc_check_opt *opt, struct acc_err *e)
{
	struct acc_check *ck = calloc(1, sizeof *ck);
	if (ck == NULL)
		acc_nomem(e);
	else
		ck->opt = *opt;
	return ck;
}

void
acc_check_close(struct acc_check *ck)
{
	if (ck == NULL)
		return;
	acc_side_release(&ck->side[0]);
	acc_side_release(&ck->side[1]);
	free(ck->verdict);
	free(ck->remark);
	free(ck->tokens);
	acc_rec_release(&ck->rec);
	acc_arena_release(&ck->mem);
	free(ck);
}

int
acc_check_add(struct acc_check *ck, const struct acc_rec *r, struct acc_err *e)
{
	static const char *const prefix[2] = {"a.", "b."};
	int rc = 0, n = 0;
	if (acc_rec_is(r, "param"))
		return acc_side_add(&ck->side[0], r, "", e) < 0 ? ACC_ENOMEM : 1;
	for (int s = 0; s < 2 && rc == 0 && acc_rec_is(r, "pair"); s++)
		if (acc_str_is(acc_get_text(r, prefix[s], "kind"), "param")) {
			rc = acc_side_add(&ck->side[s], r, prefix[s], e);
			n = 1;
		}
	if (rc == 0 && n == 0 && acc_rec_is(r, "source") && ck->opt.roots != NULL)
		return acc_roots_add(ck->opt.roots, r, e) < 0 ? e->code : 0;
	return rc < 0 ? rc : n > 0 ? 1 : acc_check_tokens(ck, r, e);
}

/* Broken rules by their level, then differences with a row, then those without, then the rest; in
 * the order of the list, which puts first what matters most. */
static int
weight(const struct verdict *v)
{
	if (v->bad)
		return v->level == LEVEL_ERROR ? 0 : 1;
	if (v->differs)
		return v->row != UINT32_MAX ? 2 : 3;
	return v->row != UINT32_MAX ? 4 : 5;
}

static int
by_weight(const void *px, const void *py)
{
	const struct verdict *x = px, *y = py;
	if (weight(x) != weight(y))
		return weight(x) - weight(y);
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	if (x->row != UINT32_MAX)
		return 0;
	const struct param *p = x->p[0] != NULL ? x->p[0] : x->p[1];
	const struct param *q = y->p[0] != NULL ? y->p[0] : y->p[1];
	return p->dialect != q->dialect ? (int)p->dialect - (int)q->dialect
					: acc_str_cmp(p->key, q->key);
}

/* Where one side's words are nobody's and the other's are known, a tracker has the configuration under the
 * same names, perhaps: two that are the same make them the known ones. */
static void
adopt(struct side *s, const struct side *from)
{
	size_t votes[DIALECT_N] = {0};
	enum dialect best = DIALECT_OTHER;
	for (int d = DIALECT_OTHER + 1; d <= DIALECT_HF; d++)
		if (s->has[d])
			return;
	for (size_t i = 0; i < s->n && s->n <= ADOPTED && from->n <= ADOPTED; i++)
		for (size_t k = 0; k < from->n; k++)
			if (s->p[i].dialect == DIALECT_OTHER && from->p[k].dialect <= DIALECT_HF &&
				acc_str_eq(s->p[i].key, from->p[k].key))
				votes[from->p[k].dialect]++;
	for (int d = DIALECT_OTHER + 1; d <= DIALECT_HF; d++)
		if (votes[d] > votes[best] && votes[d] >= 2)
			best = (enum dialect)d;
	if (best == DIALECT_OTHER || votes[DIALECT_OTHER] > 0)
		return;
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i].dialect == DIALECT_OTHER)
			s->p[i].dialect = best;
	s->has[best] = s->few[best] = true;
	s->has[DIALECT_OTHER] = false;
}

int
acc_check_judge(struct acc_check *ck, struct acc_err *e)
{
	int rc = 0;
	for (int s = 0; s < 2; s++)
		adopt(&ck->side[s], &ck->side[1 - s]);
	for (int s = 0; s < 2 && rc == 0; s++)
		rc = acc_side_know(&ck->side[s], ck->opt.list, e);
	if (rc == 0) {
		acc_side_join(ck->side, ck->opt.list);
		rc = acc_check_rows(ck, e);
	}
	if (rc == 0)
		rc = acc_check_rest(ck, e);
	if (rc == 0 && ck->nverdict > 1)
		qsort(ck->verdict, ck->nverdict, sizeof *ck->verdict, by_weight);
	return rc == 0 ? acc_check_conclude(ck, e) : rc;
}

int
acc_check_next(struct acc_check *ck, struct acc_rec **r, struct acc_err *e)
{
	if (ck->next >= ck->nverdict + ck->nremark)
		return 0;
	int rc = ck->next < ck->nverdict ? acc_check_record(ck, &ck->verdict[ck->next])
					 : acc_check_remark_record(&ck->rec, &ck->mem,
						   &ck->remark[ck->next - ck->nverdict]);
	ck->next++;
	*r = &ck->rec;
	return rc < 0 ? acc_rec_fail(e, rc) : 1;
}

size_t
acc_check_params(const struct acc_check *ck)
{
	return ck->side[0].n + ck->side[1].n;
}

const char *
acc_check_nothing(const struct acc_check *ck)
{
	bool one = ck->side[0].n == 0 || ck->side[1].n == 0;
	/* A batch by itself. */
	if (ck->batches > 0)
		return NULL;
	if (ck->side[0].n + ck->side[1].n == 0)
		return "no parameter: is it a configuration that was read?";
	if (ck->judged + ck->compared + ck->nverdict > 0 || ck->status != 0)
		return NULL;
	return one ? "no row of the check-list knows any of these keys: nothing was checked (--rules "
		     "adds rows of your own)"
		   : "no row of the check-list knows any of these keys, and no key is on both sides: "
		     "nothing was compared (--rules adds rows of your own)";
}

int
acc_check_status(const struct acc_check *ck)
{
	return ck->status;
}
