/* What is kept of a case: its items and op calls, in memory as long as they are judged, and what was found. */
#include "judge/case.h"

/* What is counted here is counted in 32 bits. */
static void *
room(struct acc_spill *s, size_t n, size_t size, struct acc_err *e)
{
	if (n < UINT32_MAX)
		return acc_spill_room(s, n, size, e);
	acc_nomem(e);
	return NULL;
}

void
acc_case_rest(const struct acc_case *c)
{
	acc_spill_rest(&c->items);
	acc_spill_rest(&c->calls);
}

struct acc_item *
acc_case_item(struct acc_case *c, struct acc_err *e)
{
	void *p = room(&c->items, (size_t)c->nitem + 1, sizeof *c->item, e);
	if (p == NULL)
		return NULL;
	c->item = p;
	c->item[c->nitem] = (struct acc_item){.line = c->nitem, .call = ACC_NOCALL};
	return &c->item[c->nitem++];
}

struct acc_call *
acc_case_call(struct acc_case *c, struct acc_err *e)
{
	void *p = room(&c->calls, (size_t)c->ncall + 1, sizeof *c->call, e);
	if (p == NULL)
		return NULL;
	c->call = p;
	c->call[c->ncall] = (struct acc_call){0};
	return &c->call[c->ncall++];
}

int
acc_case_settle(struct acc_case *c, struct acc_err *e)
{
	int rc = acc_spill_settle(&c->items, e);
	if (rc == 0)
		rc = acc_spill_settle(&c->calls, e);
	c->item = c->items.p;
	c->call = c->calls.p;
	c->settles = false;
	return rc;
}

int
acc_case_record(struct acc_case *c, const struct acc_item *it, struct acc_rec **r,
	struct acc_err *e)
{
	int rc = acc_spool_get(c->spool, it->at, r, e);
	/* Who takes no error takes a failure for "it says nothing": the whole judgement is lost. */
	c->mem.lost |= rc < 0 && e == NULL;
	return rc < 0 ? rc : 0;
}

int
acc_case_mark(struct acc_case *c, struct acc_item *it, const struct acc_verdict *v,
	struct acc_err *e)
{
	if (!ACC_ROOM(c->verdict, c->verdict_cap, (size_t)c->nverdict + 1, e))
		return ACC_ENOMEM;
	c->verdict[c->nverdict++] = *v;
	it->mark = c->nverdict;
	return 0;
}

struct acc_finding *
acc_case_find(struct acc_case *c, const char *what, struct acc_err *e)
{
	if (!ACC_ROOM(c->finding, c->finding_cap, (size_t)c->nfinding + 1, e))
		return NULL;
	struct acc_finding *f = &c->finding[c->nfinding++];
	*f = (struct acc_finding){.what = what};
	f->step = f->rank = f->seq = f->comm = INT64_MIN;
	f->value = f->limit = f->confidence = NAN;
	return f;
}

int
acc_case_status(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].bad || (c->opt.strict && c->finding[i].doubtful))
			return 1;
	return 0;
}
