/* The text of a check-list, see acccheck(1): lines of a key and its text, a block for each row. */
#include "check/check.h"
#include "io/literal.h"
#include "rule/statements.h"

#include <stdlib.h>

struct reader {
	struct acc_checklist *cl;
	const char *where, *group;
	struct row *row;   /* the current one; NULL before the first */
	struct rule *rule; /* the current one of the row */
	unsigned line;
	struct acc_err *e;
};

static int
wrong(struct reader *rd, const char *what, struct acc_str v)
{
	return acc_fail(rd->e, ACC_EFORMAT, "line %u: %s '%.*s'", rd->line, what,
		v.n > 100 ? 100 : (int)v.n, v.p);
}

static int
compile(struct reader *rd, struct acc_str v, struct expr *x, enum dialect context)
{
	struct acc_err sub = {0};
	int rc = acc_expr_compile(x, v, &rd->cl->fields[context], &rd->cl->mem, &sub);
	if (rc < 0)
		acc_fail(rd->e, rc, "line %u: at character %lu: %s", rd->line,
			(unsigned long)sub.pos + 1, sub.msg);
	else if (x->op)
		return wrong(rd, "no op call is looked at here:", v);
	return rc;
}

static int
keep(struct reader *rd, struct acc_str v, const char **out)
{
	*out = acc_arena_copy(&rd->cl->mem, v.p, v.n);
	return *out == NULL ? acc_nomem(rd->e) : 0;
}

static void
release_row(struct row *r)
{
	for (int d = 0; d < DIALECT_N; d++)
		acc_expr_release(&r->name_in[d]);
	acc_expr_release(&r->relevant);
	for (struct fallback *f = r->fallback; f != NULL; f = f->next)
		acc_expr_release(&f->x);
	for (struct rule *u = r->rule; u != NULL; u = u->next) {
		acc_expr_release(&u->when);
		for (uint32_t i = 0; i < u->nwhy; i++)
			acc_expr_release(&u->why[i].x);
	}
}

uint32_t
acc_checklist_find(const struct acc_checklist *cl, struct acc_str name)
{
	uint32_t i = 0;
	while (i < cl->n && !acc_str_is(name, cl->row[i].name))
		i++;
	return i;
}

static int
new_row(struct reader *rd, struct acc_str name)
{
	struct acc_checklist *cl = rd->cl;
	if (name.n == 0 || memchr(name.p, ' ', name.n) != NULL)
		return wrong(rd, "a row needs a name of one word:", name);
	uint32_t at = acc_checklist_find(cl, name);
	if (!ACC_ROOM(cl->row, cl->cap, at + 1, rd->e))
		return ACC_ENOMEM;
	rd->row = &cl->row[at];
	rd->rule = NULL;
	if (at < cl->n)
		release_row(rd->row);
	cl->n += at == cl->n;
	*rd->row = (struct row){.group = rd->group, .where = rd->where};
	return keep(rd, name, &rd->row->name);
}

/* default megatron [before 0.8] expression */
static int
add_fallback(struct reader *rd, struct acc_str v, bool fixed)
{
	struct acc_str name = acc_first_word(&v);
	enum dialect d = acc_check_dialect_of(name);
	struct fallback **at = &rd->row->fallback, *f = acc_alloc(&rd->cl->mem, sizeof *f);
	if (d == DIALECT_OTHER)
		return wrong(rd, "there is no dialect", name);
	if (f == NULL)
		return acc_nomem(rd->e);
	*f = (struct fallback){.dialect = d, .fixed = fixed};
	while (*at != NULL)
		at = &(*at)->next;
	*at = f;
	if (acc_str_starts(v, "before ")) {
		acc_first_word(&v);
		if (keep(rd, acc_first_word(&v), &f->before) < 0)
			return ACC_ENOMEM;
	}
	return compile(rd, v, &f->x, d);
}

/* error differs [when expression]; error when expression */
static int
add_rule(struct reader *rd, enum level level, struct acc_str v)
{
	struct rule **at = &rd->row->rule, *u = acc_alloc(&rd->cl->mem, sizeof *u);
	if (u == NULL)
		return acc_nomem(rd->e);
	*u = (struct rule){.level = level};
	struct acc_str all = v, first = acc_first_word(&v);
	u->differs = acc_str_is(first, "differs");
	if (u->differs)
		first = acc_first_word(&v);
	if (!acc_str_is(first, "when") && !(u->differs && first.n == 0))
		return wrong(rd, "a rule is 'differs', 'when' and a condition, or both, not", all);
	while (*at != NULL)
		at = &(*at)->next;
	*at = u;
	rd->rule = u;
	return first.n == 0 ? 0 : compile(rd, v, &u->when, DIALECT_OTHER);
}

/* Cut "text {expression} text" up. */
static int
set_why(struct reader *rd, struct acc_str v)
{
	struct rule *u = rd->rule;
	uint32_t parts = 1;
	for (uint32_t i = 0; i < v.n; i++)
		parts += v.p[i] == '{';
	u->why = acc_alloc(&rd->cl->mem, parts * sizeof *u->why);
	if (u->why == NULL)
		return acc_nomem(rd->e);
	memset(u->why, 0, parts * sizeof *u->why);
	while (v.n > 0) {
		const char *open = memchr(v.p, '{', v.n);
		uint32_t lead = open == NULL ? v.n : (uint32_t)(open - v.p);
		struct text_part *t = &u->why[u->nwhy++];
		int rc = keep(rd, (struct acc_str){v.p, lead}, &t->lead);
		if (rc < 0 || open == NULL)
			return rc;
		const char *close = memchr(open, '}', v.n - lead);
		if (close == NULL)
			return wrong(rd, "missing } in", v);
		struct acc_str in = {open + 1, (uint32_t)(close - open) - 1};
		if ((rc = compile(rd, in, &t->x, DIALECT_OTHER)) < 0)
			return rc;
		v.n -= (uint32_t)(close + 1 - v.p);
		v.p = close + 1;
	}
	return 0;
}

/* ignore megatron save load*; compare env HCCL_* */
static int
add_filters(struct reader *rd, bool only, struct acc_str v)
{
	struct acc_str name = acc_first_word(&v);
	enum dialect d = acc_check_dialect_of(name);
	if (d == DIALECT_OTHER && !acc_str_is(name, "other"))
		return wrong(rd, "there is no dialect", name);
	while (v.n > 0) {
		struct filter *f = acc_alloc(&rd->cl->mem, sizeof *f);
		if (f == NULL)
			return acc_nomem(rd->e);
		*f = (struct filter){.dialect = d, .only = only, .next = rd->cl->filter};
		if (keep(rd, acc_first_word(&v), &f->glob) < 0)
			return ACC_ENOMEM;
		rd->cl->filter = f;
	}
	return 0;
}

static int
statement(void *arg, unsigned line, struct acc_str key, struct acc_str v)
{
	struct reader *rd = arg;
	enum dialect d = acc_check_dialect_of(key);
	rd->line = line;
	if (acc_str_is(key, "group"))
		return keep(rd, v, &rd->group);
	if (acc_str_is(key, "param"))
		return new_row(rd, v);
	if (acc_str_is(key, "ignore") || acc_str_is(key, "compare"))
		return add_filters(rd, key.p[0] == 'c', v);
	if (rd->row == NULL)
		return wrong(rd, "before the first row:", key);
	if (d != DIALECT_OTHER && rd->row->name_in[d].n > 0)
		return wrong(rd, "given twice:", key);
	if (d != DIALECT_OTHER)
		return compile(rd, v, &rd->row->name_in[d], d);
	if (acc_str_is(key, "default") || acc_str_is(key, "fixed"))
		return add_fallback(rd, v, key.p[0] == 'f');
	if (acc_str_is(key, "relevant") && rd->row->relevant.n == 0)
		return compile(rd, v, &rd->row->relevant, DIALECT_OTHER);
	for (int i = LEVEL_HINT; i <= LEVEL_ERROR; i++)
		if (acc_str_is(key, acc_check_level[i]))
			return add_rule(rd, (enum level)i, v);
	if (rd->rule == NULL)
		return wrong(rd, "before the first rule of its row, or unknown:", key);
	if (acc_str_is(key, "want"))
		return keep(rd, v, &rd->rule->want);
	if (acc_str_is(key, "why") && rd->rule->why == NULL)
		return set_why(rd, v);
	return wrong(rd, "unknown, or given twice:", key);
}

/* Whoever reads a verdict wants to know why it matters. */
static int
complete(struct reader *rd)
{
	for (uint32_t i = 0; i < rd->cl->n; i++)
		for (const struct rule *u = rd->cl->row[i].rule; u != NULL; u = u->next)
			if (u->nwhy == 0)
				return acc_fail(rd->e, ACC_EFORMAT, "a rule of %s has no 'why'",
					rd->cl->row[i].name);
	return 0;
}

struct acc_checklist *
acc_checklist_new(struct acc_err *e)
{
	struct acc_checklist *cl = calloc(1, sizeof *cl);
	if (cl == NULL)
		acc_nomem(e);
	return cl;
}

int
acc_checklist_add(struct acc_checklist *cl, const char *text, size_t n, const char *where,
	struct acc_err *e)
{
	struct reader rd = {.cl = cl, .group = "", .e = e};
	int rc = n > 1 << 20 ? acc_fail(e, ACC_ELIMIT, "a check-list of %zu bytes", n) : 0;
	if (rc == 0)
		rc = keep(&rd, acc_str(where), &rd.where);
	if (rc == 0)
		rc = acc_each_statement(text, n, statement, &rd);
	if (rc == ACC_ENOMEM)
		acc_nomem(rd.e);
	if (rc == 0)
		rc = complete(&rd);
	if (rc < 0)
		acc_err_in(e, where);
	return rc;
}

void
acc_checklist_free(struct acc_checklist *cl)
{
	if (cl == NULL)
		return;
	for (uint32_t i = 0; i < cl->n; i++)
		release_row(&cl->row[i]);
	for (int d = 0; d < DIALECT_N; d++)
		free(cl->fields[d].name);
	free(cl->row);
	acc_arena_release(&cl->mem);
	free(cl);
}
