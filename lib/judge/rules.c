/* The judge of rule files: the rows of one op call at a time, each rule on each row. */
#include "rule/rules.h"
#include "acc/known.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

enum { MAX_WHYS = 16 };

struct row_verdict {
	const char *why[MAX_WHYS];
	uint32_t nwhy;
	bool warned, failed;  /* by a warning, by an error */
	struct acc_verdict v; /* of the gravest rule, the first of them */
};

/* The rows of the current op call, with the fields that rules name. */
struct group {
	uint32_t call;
	struct acc_arena mem; /* values */
	struct expr_row *row;
	uint32_t *item; /* index in the case */
	struct row_verdict *said;
	uint32_t n;
	size_t row_cap, item_cap, said_cap;
	unsigned mode;
};

/* --- filling the group --- */

static int
keep(struct acc_arena *m, struct acc_val *v)
{
	const void *from = v->type == ACC_V_INTS ? (const void *)v->ints : v->s.p;
	size_t size = v->type == ACC_V_INTS ? v->n * sizeof *v->ints : v->s.n;
	if (v->type == ACC_V_TEXTS || v->type == ACC_V_BIN)
		*v = acc_nil(); /* rules have no use for these */
	if (v->type != ACC_V_INTS && v->type != ACC_V_TEXT)
		return 0;
	void *p = acc_arena_copy(m, from, size);
	if (v->type == ACC_V_INTS)
		v->ints = p;
	else
		v->s.p = p;
	return p == NULL ? ACC_ENOMEM : 0;
}

/* acc_key_says for the innermost loop: keys that differ do so in the last letter mostly. */
static bool
same(struct acc_str said, struct acc_str key)
{
	return said.n > 0 && key.n > 0 && said.p[said.n - 1] == key.p[key.n - 1] &&
	       acc_key_says(said, key);
}

static int
fill(struct acc_rules *rs, struct group *g, struct expr_row *row, const struct acc_rec *r)
{
	uint32_t nf = rs->fields.n;
	row->v = acc_alloc(&g->mem, nf * sizeof *row->v);
	if (row->v == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < nf; i++)
		row->v[i] = acc_nil();
	if (rs->nseen < nf) {
		bool *seen = acc_alloc(&rs->mem, nf * sizeof *seen);
		if (seen == NULL)
			return ACC_ENOMEM;
		memset(seen, 0, nf * sizeof *seen);
		rs->seen = seen;
		rs->nseen = nf;
	}
	int rc = 0;
	for (uint32_t i = 0; i < r->n && rc == 0; i++)
		for (uint32_t j = 0; j < nf; j++)
			if (rc == 0 && same(r->f[i].key, rs->fields.name[j])) {
				row->v[j] = r->f[i].v;
				rs->seen[j] = true;
				rc = keep(&g->mem, &row->v[j]);
			}
	return rc;
}

/* Room for one more row. */
static int
grow(struct group *g, struct acc_err *e)
{
	size_t n = (size_t)g->n + 1;
	if (!ACC_ROOM(g->row, g->row_cap, n, e))
		return ACC_ENOMEM;
	if (!ACC_ROOM(g->item, g->item_cap, n, e))
		return ACC_ENOMEM;
	if (!ACC_ROOM(g->said, g->said_cap, n, e))
		return ACC_ENOMEM;
	return 0;
}

/* --- judging it --- */

static const char *
value_text(struct acc_arena *m, const struct acc_val *v)
{
	char buf[40];
	switch (v->type) {
	case ACC_V_BOOL:
		return v->b ? "True" : "False";
	case ACC_V_INT:
		return acc_say(m, "%lld", (long long)v->i);
	case ACC_V_F64:
		acc_f64_repr(v->f, buf, sizeof buf);
		return acc_say(m, "%s", buf);
	case ACC_V_TEXT:
		return acc_say(m, "%.*s", ACC_PRS(v->s));
	case ACC_V_INTS: {
		const char *s = "[";
		for (uint32_t i = 0; i < v->n && s != NULL; i++)
			s = acc_say(m, "%s%s%lld", s, i > 0 ? ", " : "", (long long)v->ints[i]);
		return s == NULL ? NULL : acc_say(m, "%s]", s);
	}
	default:
		return "-";
	}
}

static const char *
why_text(struct acc_arena *mem, const struct rule *r, const struct expr_table *t, uint32_t row)
{
	if (r->nwhy == 0)
		return r->name;
	/* Most texts are the same on every row. */
	if (r->nwhy == 1 && r->why[0].x.n == 0)
		return r->why[0].lead;
	const char *s = "";
	for (uint32_t i = 0; i < r->nwhy && s != NULL; i++) {
		const char *v = "";
		if (r->why[i].x.n > 0) {
			struct acc_val x = acc_expr_run(&r->why[i].x, t, row);
			v = value_text(mem, &x);
		}
		s = v == NULL ? NULL : acc_say(mem, "%s%s%s", s, r->why[i].lead, v);
	}
	return s;
}

static int
condemn(const struct acc_rules *rs, struct acc_arena *mem, struct group *g, struct rule *r,
	const struct expr_table *t, uint32_t row)
{
	struct row_verdict *said = &g->said[row];
	const char *why = why_text(mem, r, t, row);
	double value = NAN;
	bool error = strcmp(r->level, "error") == 0;
	if (why == NULL)
		return ACC_ENOMEM;
	if (r->value.n > 0) {
		struct acc_val x = acc_expr_run(&r->value, t, row);
		acc_as_f64(&x, &value);
	}
	if (said->nwhy < MAX_WHYS)
		said->why[said->nwhy++] = why;
	if ((error && !said->failed) || (!error && !said->failed && !said->warned)) {
		said->v = (struct acc_verdict){.level = r->level,
			.rule = r->name,
			.value = NAN,
			.limit = r->limit,
			.limit_from = r->from != NULL ? r->from : rs->where};
		said->v.value = value;
	}
	said->failed |= error;
	said->warned |= !error;
	if (r->hits++ == 0) {
		r->first_item = g->item[row];
		r->first_why = why;
		r->first_value = value;
	}
	return 0;
}

static bool
applies(const struct rule *r, const struct group *g, uint32_t row, bool *first_output)
{
	bool output = g->row[row].output;
	switch (r->rows) {
	case ROWS_INPUTS:
		return !output;
	case ROWS_OUTPUTS:
		return output;
	case ROWS_FIRST_OUTPUT: {
		bool first = output && *first_output;
		*first_output &= !output;
		return first;
	}
	default:
		return true;
	}
}

static int
judge_rule(struct acc_rules *rs, struct acc_arena *mem, struct group *g, struct rule *r,
	bool outputs_only)
{
	struct expr_table t = {g->row, g->n};
	bool first_output = true;
	int rc = 0;
	/* A rule that looks at inputs has nothing to say of a call whose inputs do not count. */
	if ((r->modes & g->mode) == 0 || (outputs_only && r->when.op))
		return 0;
	acc_expr_prepare(&r->when, &t);
	acc_expr_prepare(&r->value, &t);
	for (uint32_t i = 0; i < r->nwhy; i++)
		acc_expr_prepare(&r->why[i].x, &t);
	for (uint32_t i = 0; i < g->n && rc == 0; i++)
		if (applies(r, g, i, &first_output) && (!outputs_only || g->row[i].output) &&
			++rs->tried > 0 && ++r->tried > 0 && acc_expr_true(&r->when, &t, i))
			rc = condemn(rs, mem, g, r, &t, i);
	return rc;
}

/* The verdict, with its sentences in mem. */
static int
pronounce(struct row_verdict *said, struct acc_arena *mem, struct acc_err *e)
{
	const char **why = acc_alloc(mem, said->nwhy * sizeof *why);
	if (why == NULL)
		return acc_nomem(e);
	memcpy(why, said->why, said->nwhy * sizeof *why);
	said->v.why = why;
	said->v.nwhy = said->nwhy;
	return 0;
}

int
acc_rules_one(struct acc_rules *rs, const struct acc_rec *r, struct acc_arena *mem,
	struct acc_verdict *v, struct acc_err *e)
{
	uint32_t item = 0;
	struct expr_row row = {.output = true};
	struct row_verdict said = {0};
	struct group g = {.row = &row, .item = &item, .said = &said, .n = 1, .mode = MODE_ANY};
	struct expr_table t = {&row, 1};
	int rc = fill(rs, &g, &row, r);
	if (rc == 0 && !(rs->skip.n > 0 && acc_expr_true(&rs->skip, &t, 0)))
		for (uint32_t i = 0; i < rs->n && rc == 0; i++)
			rc = judge_rule(rs, mem, &g, &rs->rule[i], false);
	acc_arena_release(&g.mem);
	if (rc < 0)
		return acc_nomem(e);
	if (said.nwhy > 0)
		rc = pronounce(&said, mem, e);
	*v = said.v;
	return rc < 0 ? rc : said.nwhy > 0;
}

/* Does a condition on the op call hold for its first record? */
static bool
holds(struct expr *x, const struct expr_table *t)
{
	acc_expr_prepare(x, t);
	return x->n > 0 && acc_expr_true(x, t, 0);
}

/* The op call is complete: judge it, and empty the group. */
static int
flush(struct acc_case *c, struct group *g, struct acc_err *e)
{
	struct acc_rules *rs = c->opt.rules;
	struct expr_table t = {g->row, g->n};
	int rc = 0;
	if (g->mode != 0)
		rs->mode = g->mode;
	g->mode = rs->mode != 0 ? rs->mode : MODE_ANY;
	if (g->n > 0 && !holds(&rs->skip, &t)) {
		bool only = holds(&rs->outputs_only, &t);
		memset(g->said, 0, g->n * sizeof *g->said);
		for (uint32_t i = 0; i < rs->n && rc == 0; i++)
			rc = judge_rule(rs, &c->mem, g, &rs->rule[i], only);
		rc = rc < 0 ? acc_nomem(e) : 0;
		for (uint32_t i = 0; i < g->n && rc == 0; i++) {
			if (g->said[i].nwhy == 0)
				continue;
			rc = pronounce(&g->said[i], &c->mem, e);
			if (rc == 0)
				rc = acc_case_mark(c, &c->item[g->item[i]], &g->said[i].v, e);
		}
	}
	g->n = 0;
	g->mode = 0;
	acc_arena_reset(&g->mem);
	return rc;
}

static int
record(struct acc_case *c, const struct acc_rec *r, struct acc_err *e)
{
	struct group *g = c->state;
	const struct acc_item *it = &c->item[c->nitem - 1];
	if (c->opt.rules == NULL)
		return 0;
	if (g == NULL) {
		g = c->state = calloc(1, sizeof *g);
		if (g == NULL)
			return acc_nomem(e);
	}
	if (it->kind == ACC_ITEM_AUX && c->opt.rules->mode == 0)
		c->opt.rules->mode = acc_rule_mode(acc_get_text(r, "", "task"));
	/* Rows that only the bench has are no rows of the device's table. */
	if (it->call == ACC_NOCALL || !(it->sides & 1))
		return 0;
	int rc = g->n > 0 && g->call != it->call ? flush(c, g, e) : 0;
	if (rc < 0)
		return rc;
	if (grow(g, e) < 0)
		return ACC_ENOMEM;
	unsigned mode = acc_rule_mode(acc_get_text(r, "", "m.mode"));
	if (mode != 0)
		g->mode = mode;
	g->call = it->call;
	g->item[g->n] = c->nitem - 1;
	g->row[g->n].output = it->io == ACC_IO_OUT;
	if (fill(c->opt.rules, g, &g->row[g->n], r) < 0)
		return acc_nomem(e);
	g->n++;
	return 0;
}

/* --- what it comes to --- */

static int
say_rule(struct acc_case *c, const struct rule *r, struct acc_err *e)
{
	const struct acc_item *it = &c->item[r->first_item];
	const struct acc_call *k = &c->call[it->call];
	bool error = strcmp(r->level, "error") == 0;
	const char *stack, *src = acc_say_source(c, k, &stack, e), *where = acc_say_where(c, k);
	struct acc_rec *rec;
	if (src == NULL || where == NULL || acc_case_record(c, it, &rec, e) < 0)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	struct acc_str name = acc_get_text(rec, "", "name");
	struct acc_finding *f = acc_case_find(c, error ? "rule" : "warning", e);
	if (f == NULL)
		return ACC_ENOMEM;
	acc_finding_of(f, k);
	f->rule = r->name;
	f->value = r->hits;
	f->limit_from = c->opt.rules->where;
	f->stack = stack;
	f->bad = error;
	f->doubtful = !error;
	f->text = acc_say(&c->mem, "%s%u record%s, first %.*s: %s%s%s%s", where, r->hits,
		r->hits == 1 ? "" : "s", ACC_PRS(name), r->first_why,
		acc_got(acc_beyond(&c->mem, r->first_value, r->limit, NAN)),
		src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

static int
earlier(const void *pa, const void *pb)
{
	const struct rule *a = pa, *b = pb;
	int errors = (strcmp(b->level, "error") == 0) - (strcmp(a->level, "error") == 0);
	if (errors != 0)
		return errors;
	return (a->first_item > b->first_item) - (a->first_item < b->first_item);
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct acc_rules *rs = c->opt.rules;
	uint32_t hits = 0, rows = 0;
	int rc = c->state != NULL ? flush(c, c->state, e) : 0;
	if (rs->n > 1)
		qsort(rs->rule, rs->n, sizeof *rs->rule, earlier);
	for (uint32_t i = 0; i < rs->n && rc == 0; i++) {
		hits += rs->rule[i].hits;
		if (rs->rule[i].hits > 0)
			rc = say_rule(c, &rs->rule[i], e);
	}
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i))
		rows += c->item[i].call != ACC_NOCALL && (c->item[i].sides & 1);
	struct acc_finding *f = rc == 0 && hits == 0 && rs->tried > 0 ? acc_case_find(c, "clean", e)
								      : NULL;
	if (f != NULL) {
		f->value = rows;
		f->text = acc_say(&c->mem, "no rule of %s is broken in %u records", rs->where,
			rows);
		if (f->text == NULL)
			rc = acc_nomem(e);
	}
	return rc == 0 ? acc_say_rest(c, e) : rc;
}

/* Any record that was a row may have had it: one mark for each field. */
static bool
never_seen(const struct acc_rules *rs, uint32_t field)
{
	return field < rs->nseen && !rs->seen[field] && !acc_key_speaks(rs->fields.name[field]);
}

const char *
acc_rules_blind(const struct acc_rules *rs, struct acc_str *field)
{
	uint32_t f[64];
	for (uint32_t i = 0; i < rs->n; i++) {
		const struct rule *r = &rs->rule[i];
		uint32_t n = acc_expr_fields(&r->when, f, 64), unseen = 0;
		for (uint32_t k = n; k > 0; k--)
			if (never_seen(rs, f[k - 1])) {
				unseen++;
				*field = rs->fields.name[f[k - 1]];
			}
		/* Of several ways to hold one is enough. */
		if (r->tried > 0 && unseen > (acc_expr_lacks(&r->when) ? n - 1 : 0))
			return r->name;
	}
	return NULL;
}

uint64_t
acc_rules_tried(const struct acc_rules *rs)
{
	return rs->tried;
}

static void
release(struct acc_case *c)
{
	struct group *g = c->state;
	if (g == NULL)
		return;
	acc_arena_release(&g->mem);
	free(g->row);
	free(g->item);
	free(g->said);
	free(g);
}

static bool
fits(const struct acc_case *c)
{
	return c->opt.rules != NULL;
}

const struct acc_judge acc_judge_rules = {
	.fits = fits,
	.record = record,
	.judge = judge,
	.release = release,
};
