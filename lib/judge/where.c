/* Where in the culprit's tensor the error sits: measured when it is known who it is, since the tensors
 * are read again for that. */
#include "judge/first_bad.h"

#include <stdlib.h>

#include "acc/metric.h"
#include "judge/case.h"

enum { MOST_KEYS = 16 };

struct seek {
	struct acc_case *c;
	struct acc_rec measured; /* the pair, as it comes out */
};

static int
take(void *arg, struct acc_rec *r)
{
	struct seek *t = arg;
	return acc_rec_is(r, "pair") ? acc_rec_copy(&t->measured, r) : 0;
}

static void
trouble(void *arg, const struct acc_err *e)
{
	const struct acc_judge_opt *opt = &((struct seek *)arg)->c->opt;
	if (opt->trouble != NULL)
		opt->trouble(opt->arg, e);
}

static size_t
choose(const struct acc_metric *rows[MOST_KEYS])
{
	size_t n = 0;
	for (size_t i = 0; i < acc_nmetrics && n < MOST_KEYS; i++)
		if (strncmp(acc_metrics[i]->name, "m.where", 7) == 0)
			rows[n++] = acc_metrics[i];
	return n;
}

static int
give(struct acc_measurer *m, struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r, own = {0};
	int rc = acc_case_record(c, it, &r, e);
	if (rc == 0 && (acc_rec_is(r, "source") || acc_rec_is(r, "pair"))) {
		rc = acc_rec_copy(&own, r);
		rc = rc < 0 ? acc_rec_fail(e, rc) : acc_measurer_put(m, &own, e);
	}
	acc_rec_release(&own);
	return rc;
}

/* What was measured goes into the pair. */
static int
keep(struct seek *t, struct acc_item *it, const struct acc_metric *const *rows, size_t n,
	struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(t->c, it, &r, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct acc_val *v = acc_get(&t->measured, "", rows[i]->name);
		if (v != NULL && (rc = acc_put(r, "", rows[i]->name, *v)) < 0)
			acc_rec_fail(e, rc);
		v = acc_get(&t->measured, rows[i]->name, ".msg");
		if (rc == 0 && v != NULL && (rc = acc_put(r, rows[i]->name, ".msg", *v)) < 0)
			acc_rec_fail(e, rc);
	}
	return rc < 0 ? rc : acc_spool_put(t->c->spool, r, &it->at, e);
}

static int
measure(struct acc_case *c, struct acc_item *it, struct acc_err *e)
{
	const struct acc_metric *rows[MOST_KEYS];
	struct seek t = {.c = c};
	struct acc_measurer_opt how = {.metrics = rows,
		.n = choose(rows),
		.threads = c->opt.threads,
		.no_check = true,
		.rtol = -1,
		.atol = -1,
		.tmpdir = c->opt.tmpdir};
	struct acc_measurer *m = acc_measurer_open(c->opt.where, &how, take, trouble, &t, e);
	int rc = m == NULL ? ACC_ENOMEM : 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i))
		if (c->item[i].kind == ACC_ITEM_AUX)
			rc = give(m, c, &c->item[i], e);
	if (rc == 0)
		rc = give(m, c, it, e);
	if (rc == 0)
		rc = acc_measurer_end(m, e);
	acc_measurer_close(m);
	if (rc == 0)
		rc = keep(&t, it, rows, how.n, e);
	acc_rec_release(&t.measured);
	return rc;
}

int
acc_find_where(struct acc_case *c, uint32_t item, struct acc_err *e)
{
	struct acc_item *it = &c->item[item];
	struct acc_rec *r;
	if (c->opt.where == NULL || it->kind != ACC_ITEM_TENSOR || it->sides != 3 ||
		it->measure != ACC_BY_TENSOR)
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0 || acc_get(r, "", "m.where") != NULL)
		return rc;
	return measure(c, it, e);
}
