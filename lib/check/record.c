/* Parameters and findings as records, see accstream(5). */
#include "acc/say.h"
#include "check/check.h"

static const char *const prefix[2] = {"a.", "b."};

static int
put(struct acc_rec *r, const char *side, const char *key, const char *v)
{
	return v == NULL ? 0 : acc_add(r, side, key, acc_ctext(v));
}

/* A row of the list, on one side. */
static int
put_known(struct acc_rec *r, const char *side, const struct known *k)
{
	if (k->v.type == ACC_V_NIL && k->open == NULL)
		return 0;
	int rc = put(r, side, "kind", "param");
	rc |= put(r, side, "key", k->key);
	rc |= put(r, side, "value", k->open != NULL ? k->open : k->text);
	rc |= put(r, side, "where", k->where);
	rc |= put(r, side, "given", k->given);
	return k->maybe ? rc | acc_add(r, side, "maybe", acc_bool(true)) : rc;
}

/* A key without a row. */
static int
put_param(struct acc_rec *r, const char *side, const struct param *p)
{
	if (p == NULL)
		return 0;
	int rc = put(r, side, "kind", "param");
	rc |= acc_add(r, side, "key", acc_text(p->key));
	rc |= acc_add(r, side, "value", p->text.p == NULL ? acc_nil() : acc_text(p->text));
	rc |= acc_add(r, side, "where", acc_text(p->where));
	return p->maybe ? rc | acc_add(r, side, "maybe", acc_bool(true)) : rc;
}

static int
put_verdict(struct acc_rec *r, const struct acc_arena *mem, const struct verdict *v,
	const char *where)
{
	struct acc_str why[8];
	int rc = 0;
	if (v->bad) {
		rc |= put(r, "", "bad", acc_check_level[v->level]);
		rc |= put(r, "", "rule", v->rule);
		rc |= put(r, "", "limit", v->want);
		rc |= put(r, "", "limit_from", where);
	}
	for (uint32_t i = 0; i < v->nwhy; i++)
		why[i] = acc_str(v->why[i]);
	if (v->nwhy == 1)
		rc |= acc_put_said(r, "", "why", mem, v->why[0]);
	else if (v->nwhy > 1)
		rc |= acc_add(r, "", "why", acc_texts(why, v->nwhy));
	return rc;
}

int
acc_check_record(struct acc_check *ck, const struct verdict *v)
{
	const struct row *row = v->row == UINT32_MAX ? NULL : &ck->opt.list->row[v->row];
	struct acc_rec *r = &ck->rec;
	const struct param *p = v->p[0] != NULL ? v->p[0] : v->p[1];
	int rc = acc_rec_start(r, ACC_STR("pair"));
	rc |= row != NULL ? put(r, "", "name", row->name)
			  : acc_add(r, "", "name", acc_text(p->key));
	if (row != NULL)
		rc |= put(r, "", "group", row->group);
	rc |= put(r, "", "how", "check");
	if (v->differs)
		rc |= put(r, "", "note", "value");
	for (int s = 0; s < 2; s++)
		rc |= row != NULL ? put_known(r, prefix[s], &ck->side[s].known[v->row])
				  : put_param(r, prefix[s], v->p[s]);
	rc |= put_verdict(r, &ck->mem, v, row == NULL ? NULL : row->where);
	return rc < 0 ? ACC_ENOMEM : 0;
}

int
acc_check_remark_record(struct acc_rec *r, const struct acc_arena *mem, const struct remark *m)
{
	int rc = acc_rec_start(r, ACC_STR("finding"));
	rc |= put(r, "", "name", m->name);
	rc |= put(r, "", "what", m->what);
	rc |= put(r, "", "rule", m->rule);
	rc |= put(r, "", "limit_from", m->limit_from);
	if (m->summed)
		rc |= acc_add(r, "", "value", acc_f64(m->value));
	if (m->text != NULL)
		rc |= acc_put_said(r, "", "text", mem, m->text);
	return rc < 0 ? ACC_ENOMEM : 0;
}
