/* Rule files, see accfirstbad(1): lines of a key and its text, a block for each rule. */
#include "rule/statements.h"
#include "rule/rules.h"
#include "acc/known.h"

#include <math.h>
#include <stdlib.h>

struct reader {
	struct acc_rules *rs;
	struct rule *rule; /* the current one; NULL before the first */
	unsigned line;
	struct acc_err *e;
};

static int
wrong(struct reader *rd, const char *what, struct acc_str v)
{
	return acc_fail(rd->e, ACC_EFORMAT, "line %u: %s '%.*s'", rd->line, what, ACC_PRS(v));
}

/* Of the fields from number i on: a rule about a key that nobody writes would never be broken. */
static int
check_keys(struct reader *rd, uint32_t i)
{
	const struct expr_fields *f = &rd->rs->fields;
	struct acc_err sub = {0};
	while (i < f->n && acc_key_check(f->name[i], &sub) == 0)
		i++;
	if (i == f->n)
		return 0;
	return acc_fail(rd->e, ACC_EFORMAT, "line %u: %s%s: %s", rd->line,
		rd->rule != NULL ? "rule " : "skip, outputs-only",
		rd->rule != NULL ? rd->rule->name : "", sub.msg);
}

static int
compile(struct reader *rd, struct acc_str v, struct expr *x)
{
	struct acc_err sub = {0};
	if (x->n > 0)
		return wrong(rd, "given twice:", v);
	uint32_t before = rd->rs->fields.n;
	int rc = acc_expr_compile(x, v, &rd->rs->fields, &rd->rs->mem, &sub);
	if (rc < 0)
		return acc_fail(rd->e, rc, "line %u: at character %lu: %s", rd->line,
			(unsigned long)sub.pos + 1, sub.msg);
	return check_keys(rd, before);
}

static int
new_rule(struct reader *rd, struct acc_str name)
{
	struct acc_rules *rs = rd->rs;
	if (!ACC_ROOM(rs->rule, rs->cap, rs->n + 1, rd->e))
		return ACC_ENOMEM;
	rd->rule = &rs->rule[rs->n];
	*rd->rule = (struct rule){.level = "error", .modes = MODE_ANY, .limit = NAN};
	rd->rule->name = acc_arena_copy(&rs->mem, name.p, name.n);
	if (rd->rule->name == NULL)
		return acc_nomem(rd->e);
	rs->n++;
	return name.n > 0 ? 0 : wrong(rd, "a rule needs a name", name);
}

static int
set_level(struct reader *rd, struct acc_str v)
{
	static const char *const levels[] = {"error", "warning"};
	for (int i = 0; i < 2; i++)
		if (acc_str_is(v, levels[i])) {
			rd->rule->level = levels[i];
			return 0;
		}
	return wrong(rd, "the level is error or warning, not", v);
}

static int
set_rows(struct reader *rd, struct acc_str v)
{
	static const char *const names[] = {"all", "inputs", "outputs", "first-output"};
	for (int i = ROWS_ALL; i <= ROWS_FIRST_OUTPUT; i++)
		if (acc_str_is(v, names[i])) {
			rd->rule->rows = (enum rule_rows)i;
			return 0;
		}
	return wrong(rd, "rows are all, inputs, outputs or first-output, not", v);
}

unsigned
acc_rule_mode(struct acc_str s)
{
	return acc_str_is(s, "tensor")       ? MODE_TENSOR
	       : acc_str_is(s, "statistics") ? MODE_STATISTICS
	       : acc_str_is(s, "md5")        ? MODE_MD5
					     : 0;
}

static int
set_modes(struct reader *rd, struct acc_str v)
{
	rd->rule->modes = 0;
	for (uint32_t i = 0, start = 0; i <= v.n; i++) {
		if (i < v.n && v.p[i] != ' ' && v.p[i] != ',')
			continue;
		struct acc_str one = {v.p + start, i - start};
		start = i + 1;
		if (one.n > 0 && acc_rule_mode(one) == 0)
			return wrong(rd, "modes are tensor, statistics and md5, not", one);
		rd->rule->modes |= acc_rule_mode(one);
	}
	return 0;
}

static int
set_limit(struct reader *rd, struct acc_str v)
{
	char buf[64], *end;
	snprintf(buf, sizeof buf, "%.*s", ACC_PRS(v));
	rd->rule->limit = strtod(buf, &end);
	return end != buf && *end == '\0' ? 0 : wrong(rd, "the limit is no number:", v);
}

static int
set_from(struct reader *rd, struct acc_str v)
{
	rd->rule->from = acc_arena_copy(&rd->rs->mem, v.p, v.n);
	return rd->rule->from != NULL ? 0 : acc_nomem(rd->e);
}

/* Cut "text {expression} text" up. */
static int
set_why(struct reader *rd, struct acc_str v)
{
	struct rule *r = rd->rule;
	uint32_t parts = 1;
	for (uint32_t i = 0; i < v.n; i++)
		parts += v.p[i] == '{';
	if (r->why != NULL)
		return wrong(rd, "given twice:", v);
	r->why = acc_alloc(&rd->rs->mem, parts * sizeof *r->why);
	if (r->why == NULL)
		return acc_nomem(rd->e);
	memset(r->why, 0, parts * sizeof *r->why);
	while (v.n > 0) {
		const char *open = memchr(v.p, '{', v.n);
		uint32_t lead = open == NULL ? v.n : (uint32_t)(open - v.p);
		struct rule_text *t = &r->why[r->nwhy++];
		t->lead = acc_arena_copy(&rd->rs->mem, v.p, lead);
		if (t->lead == NULL)
			return acc_nomem(rd->e);
		if (open == NULL)
			return 0;
		const char *close = memchr(open, '}', v.n - lead);
		if (close == NULL)
			return wrong(rd, "missing } in", v);
		int rc = compile(rd, (struct acc_str){open + 1, (uint32_t)(close - open) - 1},
			&t->x);
		if (rc < 0)
			return rc;
		v.n -= (uint32_t)(close + 1 - v.p);
		v.p = close + 1;
	}
	return 0;
}

static int
statement(void *arg, unsigned line, struct acc_str key, struct acc_str v)
{
	struct reader *rd = arg;
	rd->line = line;
	static const struct {
		const char *key;
		int (*set)(struct reader *, struct acc_str);
	} keys[] = {{"level", set_level}, {"rows", set_rows}, {"mode", set_modes},
		{"limit", set_limit}, {"from", set_from}, {"why", set_why}};
	if (acc_str_is(key, "rule"))
		return new_rule(rd, v);
	if (acc_str_is(key, "skip"))
		return compile(rd, v, &rd->rs->skip);
	if (acc_str_is(key, "outputs-only"))
		return compile(rd, v, &rd->rs->outputs_only);
	if (rd->rule == NULL)
		return wrong(rd, "before the first rule:", key);
	if (acc_str_is(key, "when"))
		return compile(rd, v, &rd->rule->when);
	if (acc_str_is(key, "value"))
		return compile(rd, v, &rd->rule->value);
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (acc_str_is(key, keys[i].key))
			return keys[i].set(rd, v);
	return wrong(rd, "unknown key", key);
}

struct acc_rules *
acc_rules_parse(const char *text, size_t n, const char *where, struct acc_err *e)
{
	struct acc_rules *rs = calloc(1, sizeof *rs);
	struct reader rd = {.rs = rs, .e = e};
	int rc = rs == NULL || n > 1 << 20 ? acc_fail(e, ACC_ELIMIT, "a rule file of %zu bytes", n)
					   : 0;
	if (rc == 0)
		rc = acc_each_statement(text, n, statement, &rd);
	if (rc == ACC_ENOMEM)
		acc_nomem(rd.e);
	for (uint32_t i = 0; rc == 0 && i < rs->n; i++)
		if (rs->rule[i].when.n == 0)
			rc = acc_fail(e, ACC_EFORMAT, "rule %s has no 'when'", rs->rule[i].name);
	if (rc == 0 && rs->n == 0)
		rc = acc_fail(e, ACC_EFORMAT, "no rule in it");
	if (rc == 0) {
		rs->where = acc_arena_copy(&rs->mem, where, strlen(where));
		if (rs->where == NULL)
			rc = acc_nomem(rd.e);
	}
	if (rc < 0) {
		acc_err_in(e, where);
		acc_rules_free(rs);
		return NULL;
	}
	return rs;
}

void
acc_rules_free(struct acc_rules *rs)
{
	if (rs == NULL)
		return;
	for (uint32_t i = 0; i < rs->n; i++) {
		acc_expr_release(&rs->rule[i].when);
		acc_expr_release(&rs->rule[i].value);
		for (uint32_t j = 0; j < rs->rule[i].nwhy; j++)
			acc_expr_release(&rs->rule[i].why[j].x);
	}
	acc_expr_release(&rs->skip);
	acc_expr_release(&rs->outputs_only);
	free(rs->rule);
	free(rs->fields.name);
	acc_arena_release(&rs->mem);
	free(rs);
}

const struct acc_preset *
acc_preset_find(const char *name)
{
	for (size_t i = 0; i < acc_npresets; i++)
		if (strcmp(acc_presets[i].name, name) == 0)
			return &acc_presets[i];
	return NULL;
}
