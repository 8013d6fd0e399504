/* Passing on: the records that are bad, what they name, and the findings at the end. */
#include "acc/judge.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

struct acc_out {
	uint32_t next, finding;
	struct acc_map wanted; /* ids of sources and stacks */
	struct acc_rec rec;
};

void
acc_out_free(struct acc_out *o)
{
	if (o == NULL)
		return;
	acc_map_release(&o->wanted);
	acc_rec_release(&o->rec);
	free(o);
}

static int
want(struct acc_out *o, struct acc_str id)
{
	return id.n == 0 || acc_map_put(&o->wanted, id, 0) != NULL ? 0 : ACC_ENOMEM;
}

/* What a record names of its side, or of itself. */
static int
want_named(struct acc_out *o, const struct acc_rec *r, const char *prefix)
{
	const struct acc_val *parts = acc_get(r, prefix, "part.src");
	int rc = want(o, acc_get_text(r, prefix, "src"));
	for (uint32_t i = 0; parts != NULL && parts->type == ACC_V_TEXTS && i < parts->n && rc == 0;
		i++)
		rc = want(o, parts->texts[i]);
	return rc == 0 ? want(o, acc_get_text(r, prefix, "stack")) : rc;
}

/* Which sources and stacks do the bad records name, and those that no judge of op calls knows? They stand before them. */
static int
open_out(struct acc_case *c, struct acc_err *e)
{
	static const char *const prefix[] = {"", "a.", "b."};
	struct acc_out *o = c->out = calloc(1, sizeof *c->out);
	if (o == NULL)
		return acc_nomem(e);
	if (c->opt.all)
		return 0;
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].mark == 0 && c->item[i].kind != ACC_ITEM_OTHER)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		for (int p = 0; p < 3 && rc == 0; p++)
			rc = want_named(o, r, prefix[p]);
	}
	for (uint32_t i = 0; i < c->nfinding && rc == 0; i++)
		rc = want(o, acc_str(c->finding[i].stack));
	return rc == ACC_ENOMEM ? acc_nomem(e) : rc;
}

static int
put_verdict(struct acc_rec *r, const struct acc_case *c, const struct acc_verdict *v)
{
	struct acc_str why[16];
	uint32_t n = v->nwhy < 16 ? v->nwhy : 16;
	for (uint32_t i = 0; i < n; i++)
		why[i] = acc_str(v->why[i]);
	int rc = acc_put(r, "", "bad", acc_ctext(v->level));
	rc |= acc_put(r, "", "rule", acc_ctext(v->rule));
	if (!isnan(v->value))
		rc |= acc_put(r, "", "value", acc_f64(v->value));
	if (!isnan(v->limit))
		rc |= acc_put(r, "", "limit", acc_f64(v->limit));
	if (v->limit_from != NULL)
		rc |= acc_put(r, "", "limit_from", acc_ctext(v->limit_from));
	if (n == 1)
		rc |= acc_put_said(r, "", "why", &c->mem, v->why[0]);
	else if (n > 1)
		rc |= acc_put(r, "", "why", acc_texts(why, n));
	return rc < 0 ? ACC_ENOMEM : 0;
}

static int
put_text(struct acc_rec *r, const char *key, const char *s)
{
	return s == NULL ? 0 : acc_add(r, "", key, acc_ctext(s));
}

static int
put_int(struct acc_rec *r, const char *key, int64_t v)
{
	return v == INT64_MIN ? 0 : acc_add(r, "", key, acc_int(v));
}

static int
put_number(struct acc_rec *r, const char *key, double v)
{
	return isnan(v) ? 0 : acc_add(r, "", key, acc_f64(v));
}

static int
put_finding(struct acc_rec *r, const struct acc_case *c, const struct acc_finding *f)
{
	struct acc_str ranked[16];
	uint32_t n = f->nranked < 16 ? f->nranked : 16;
	for (uint32_t i = 0; i < n; i++)
		ranked[i] = acc_str(f->ranked[i]);
	int rc = acc_rec_start(r, ACC_STR("finding"));
	rc |= put_text(r, "name", f->name);
	rc |= put_text(r, "what", f->what);
	rc |= put_text(r, "io", f->io);
	rc |= put_text(r, "pos", f->pos);
	rc |= put_int(r, "step", f->step);
	rc |= put_int(r, "rank", f->rank);
	rc |= put_int(r, "seq", f->seq);
	rc |= put_int(r, "comm", f->comm);
	rc |= put_text(r, "rule", f->rule);
	rc |= put_text(r, "audit.rule", f->audit_rule);
	rc |= put_text(r, "witness", f->witness);
	rc |= put_number(r, "value", f->value);
	rc |= put_number(r, "limit", f->limit);
	rc |= put_text(r, "limit_from", f->limit_from);
	rc |= put_number(r, "confidence", f->confidence);
	if (n > 0)
		rc |= acc_add(r, "", "ranked", acc_texts(ranked, n));
	rc |= put_text(r, "stack", f->stack);
	rc |= put_text(r, "settings.name", f->settings_name);
	rc |= put_text(r, "settings", f->settings);
	rc |= put_text(r, "behaviour", f->behaviour);
	if (f->text != NULL)
		rc |= acc_put_said(r, "", "text", &c->mem, f->text);
	return rc < 0 ? ACC_ENOMEM : 0;
}

static bool
passes(const struct acc_case *c, const struct acc_item *it, const struct acc_rec *r)
{
	switch (it->kind) {
	case ACC_ITEM_FINDING:
		return false; /* said again at the end */
	case ACC_ITEM_AUX:
		return c->opt.all || c->judged_before > 0 ||
		       acc_map_get(&c->out->wanted, acc_get_text(r, "", "id")) != NULL;
	case ACC_ITEM_OTHER:
		return true;
	default:
		return c->opt.all || it->mark != 0 || (c->judged_before > 0 && it->was_bad);
	}
}

int
acc_case_next(struct acc_case *c, struct acc_rec **r, struct acc_err *e)
{
	int rc = c->out == NULL ? open_out(c, e) : 0;
	while (rc == 0 && c->out->next < c->nitem) {
		const struct acc_item *it = &c->item[c->out->next];
		c->out->next = acc_step(c, c->out->next);
		/* Most of a long stream is good: do not even read it. */
		if (!c->opt.all && it->mark == 0 && it->kind >= ACC_ITEM_TENSOR && !it->was_bad)
			continue;
		rc = acc_case_record(c, it, r, e);
		if (rc < 0 || !passes(c, it, *r))
			continue;
		if (it->mark != 0)
			rc = put_verdict(*r, c, &c->verdict[it->mark - 1]);
		return rc < 0 ? acc_rec_fail(e, rc) : 1;
	}
	if (rc < 0)
		return rc;
	if (c->out->finding == c->nfinding)
		return 0;
	rc = put_finding(&c->out->rec, c, &c->finding[c->out->finding++]);
	*r = &c->out->rec;
	return rc < 0 ? acc_rec_fail(e, rc) : 1;
}
