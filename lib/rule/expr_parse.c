/* Compiling the expressions of rule files, by recursive descent of limited depth. */
#include "rule/expr_ins.h"

#include <stdlib.h>

struct parser {
	struct acc_str s;
	uint32_t at;
	struct expr *x;
	struct expr_fields *fields;
	struct acc_arena *mem;
	struct acc_err *e;
	uint32_t depth, stack; /* of the parser; of the values when run */
	bool in_aggregate;
};

static int or_(struct parser *p);

static int
wrong(struct parser *p, const char *what)
{
	return acc_fail_at(p->e, ACC_EFORMAT, p->at, "%s in '%.*s'", what, ACC_PRS(p->s));
}

static int
emit(struct parser *p, struct expr_ins in, int pushes)
{
	struct expr *x = p->x;
	if (!ACC_ROOM(x->ins, x->cap, x->n + 1, p->e))
		return ACC_ENOMEM;
	x->ins[x->n++] = in;
	p->stack = (uint32_t)((int)p->stack + pushes);
	return p->stack > EXPR_STACK ? wrong(p, "too many values at once") : 0;
}

static void
blanks(struct parser *p)
{
	while (p->at < p->s.n && (p->s.p[p->at] == ' ' || p->s.p[p->at] == '\t'))
		p->at++;
}

static bool
word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.';
}

/* Users' own keys begin with x-; no other key has hyphens, and none is called x. */
static bool
is_private(struct acc_str w)
{
	uint32_t from = w.n > 1 && w.p[1] == '.' && (w.p[0] == 'a' || w.p[0] == 'b') ? 2 : 0;
	return w.n > from && w.p[from] == 'x' && (w.n == from + 1 || w.p[from + 1] == '-');
}

/* The next word, without taking it; empty where there is none. */
static struct acc_str
word(struct parser *p)
{
	blanks(p);
	struct acc_str w = {p->s.p + p->at, 0};
	while (p->at + w.n < p->s.n && (word_char(w.p[w.n]) || (w.p[w.n] == '-' && is_private(w))))
		w.n++;
	return w;
}

static bool
take(struct parser *p, const char *token)
{
	struct acc_str rest;
	blanks(p);
	rest = (struct acc_str){p->s.p + p->at, p->s.n - p->at};
	if (word_char(token[0]) ? !acc_str_is(word(p), token) : !acc_str_starts(rest, token))
		return false;
	p->at += (uint32_t)strlen(token);
	return true;
}

static const struct {
	const char *name;
	enum expr_fn fn;
	uint32_t least, most;
} functions[] = {
	{"abs", FN_ABS, 1, 1},
	{"min", FN_MIN, 1, 16},
	{"max", FN_MAX, 1, 16},
	{"isfinite", FN_ISFINITE, 1, 1},
	{"isnan", FN_ISNAN, 1, 1},
	{"isinf", FN_ISINF, 1, 1},
	{"defined", FN_DEFINED, 1, 1},
	{"first", FN_FIRST, 1, 16},
	{"if", FN_IF, 2, 3},
	{"in", FN_IN, 2, 32},
	{"number", FN_NUMBER, 1, 1},
	{"percent", FN_PERCENT, 1, 1},
	{"part", FN_PART, 2, 2},
	{"glob", FN_GLOB, 2, 2},
	{"round", FN_ROUND, 2, 2},
	{"floor", FN_FLOOR, 1, 1},
	{"ceil", FN_CEIL, 1, 1},
	{"mod", FN_MOD, 2, 2},
};

static const struct {
	const char *name;
	bool output, smallest;
} aggregates[] = {
	{"min_in", false, true},
	{"max_in", false, false},
	{"min_out", true, true},
	{"max_out", true, false},
};

/* min_in(x, default): x of every input row, then the default where no row has a number */
static int
aggregate(struct parser *p, size_t which)
{
	if (p->in_aggregate)
		return wrong(p, "an aggregate inside an aggregate");
	p->x->op = p->in_aggregate = true;
	uint32_t at = p->x->n;
	int rc = emit(p,
		(struct expr_ins){.op = OP_AGG,
			.output = aggregates[which].output,
			.smallest = aggregates[which].smallest},
		0);
	if (rc == 0)
		rc = or_(p);
	if (rc < 0)
		return rc;
	p->x->ins[at].n = p->x->n - at - 1;
	p->in_aggregate = false;
	if (take(p, ",")) {
		rc = or_(p);
		if (rc == 0)
			rc = emit(p, (struct expr_ins){.op = OP_CALL, .fn = FN_FIRST, .n = 2}, -1);
		if (rc < 0)
			return rc;
	}
	return take(p, ")") ? 0 : wrong(p, "missing )");
}

static int
function(struct parser *p, struct acc_str name)
{
	for (size_t i = 0; i < sizeof aggregates / sizeof *aggregates; i++)
		if (acc_str_is(name, aggregates[i].name))
			return aggregate(p, i);
	size_t f = 0, nf = sizeof functions / sizeof *functions;
	while (f < nf && !acc_str_is(name, functions[f].name))
		f++;
	if (f == nf)
		return wrong(p, "unknown function");
	uint32_t n = 0;
	do {
		int rc = or_(p);
		if (rc < 0)
			return rc;
		n++;
	} while (take(p, ","));
	if (!take(p, ")"))
		return wrong(p, "missing )");
	if (n < functions[f].least || n > functions[f].most)
		return wrong(p, "wrong number of arguments");
	return emit(p, (struct expr_ins){.op = OP_CALL, .fn = functions[f].fn, .n = n}, 1 - (int)n);
}

static uint32_t
field_of(struct expr_fields *f, struct acc_str name, struct acc_arena *mem)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (acc_str_eq(name, f->name[i]))
			return i;
	if (!ACC_ROOM(f->name, f->cap, f->n + 1, NULL))
		return UINT32_MAX;
	f->name[f->n] = acc_arena_str(mem, name);
	return f->name[f->n].p == NULL ? UINT32_MAX : f->n++;
}

static int
text_or_number(struct parser *p)
{
	struct expr_ins in = {.op = OP_CONST};
	char quote = p->s.p[p->at];
	if (quote == '\'' || quote == '"') {
		const char *start = p->s.p + p->at + 1;
		const char *end = memchr(start, quote, p->s.n - p->at - 1);
		if (end == NULL)
			return wrong(p, "missing quote");
		uint32_t n = (uint32_t)(end - start);
		char *copy = acc_arena_copy(p->mem, start, n);
		if (copy == NULL)
			return acc_nomem(p->e);
		in.v = acc_text((struct acc_str){copy, n});
		p->at += n + 2;
		return emit(p, in, 1);
	}
	/* 1e-5 and 1e+5: strtod needs an end. */
	char buf[64], *end;
	uint32_t n = p->s.n - p->at < sizeof buf - 1 ? p->s.n - p->at : sizeof buf - 1;
	memcpy(buf, p->s.p + p->at, n);
	buf[n] = '\0';
	in.v = acc_f64(strtod(buf, &end));
	if (end == buf)
		return wrong(p, "a value is expected");
	p->at += (uint32_t)(end - buf);
	return emit(p, in, 1);
}

static int
primary(struct parser *p)
{
	if (take(p, "(")) {
		int rc = or_(p);
		return rc < 0 ? rc : take(p, ")") ? 0 : wrong(p, "missing )");
	}
	struct acc_str w = word(p);
	if (w.n == 0 || (w.p[0] >= '0' && w.p[0] <= '9') || w.p[0] == '.') {
		if (p->at == p->s.n)
			return wrong(p, "a value is expected");
		return text_or_number(p);
	}
	if (acc_str_is(w, "and") || acc_str_is(w, "or") || acc_str_is(w, "not"))
		return wrong(p, "a value is expected");
	p->at += w.n;
	if (acc_str_is(w, "true") || acc_str_is(w, "false"))
		return emit(p,
			(struct expr_ins){.op = OP_CONST, .v = acc_bool(acc_str_is(w, "true"))}, 1);
	if (take(p, "("))
		return function(p, w);
	uint32_t field = field_of(p->fields, w, p->mem);
	if (field == UINT32_MAX)
		return acc_nomem(p->e);
	return emit(p, (struct expr_ins){.op = OP_FIELD, .n = field}, 1);
}

static int
unary(struct parser *p)
{
	if (!take(p, "-"))
		return primary(p);
	int rc = emit(p, (struct expr_ins){.op = OP_CONST, .v = acc_f64(0)}, 1);
	if (rc == 0)
		rc = primary(p);
	return rc < 0 ? rc : emit(p, (struct expr_ins){.op = OP_SUB}, -1);
}

struct level {
	const char *token;
	enum expr_op op;
};

/* A row of operands joined by operators of one precedence, the left ones first. */
static int
chain(struct parser *p, int (*operand)(struct parser *), const struct level *l, bool once)
{
	int rc = operand(p);
	while (rc == 0) {
		const struct level *m = l;
		while (m->token != NULL && !take(p, m->token))
			m++;
		if (m->token == NULL)
			return 0;
		rc = operand(p);
		if (rc == 0)
			rc = emit(p, (struct expr_ins){.op = m->op}, -1);
		if (once)
			return rc;
	}
	return rc;
}

static int
product(struct parser *p)
{
	static const struct level l[] = {{"*", OP_MUL}, {"/", OP_DIV}, {NULL, 0}};
	return chain(p, unary, l, false);
}

static int
sum(struct parser *p)
{
	static const struct level l[] = {{"+", OP_ADD}, {"-", OP_SUB}, {NULL, 0}};
	return chain(p, product, l, false);
}

static int
comparison(struct parser *p)
{
	static const struct level l[] = {{"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE},
		{"<", OP_LT}, {">", OP_GT}, {NULL, 0}};
	return chain(p, sum, l, true);
}

static int
not_(struct parser *p)
{
	bool negate = false;
	while (take(p, "not"))
		negate = !negate;
	int rc = comparison(p);
	return rc < 0 || !negate ? rc : emit(p, (struct expr_ins){.op = OP_NOT}, 0);
}

static int
and_(struct parser *p)
{
	static const struct level l[] = {{"and", OP_AND}, {NULL, 0}};
	return chain(p, not_, l, false);
}

static int
or_(struct parser *p)
{
	static const struct level l[] = {{"or", OP_OR}, {NULL, 0}};
	if (++p->depth > EXPR_DEPTH)
		return wrong(p, "too many parentheses");
	int rc = chain(p, and_, l, false);
	p->depth--;
	return rc;
}

int
acc_expr_compile(struct expr *x, struct acc_str text, struct expr_fields *fields,
	struct acc_arena *mem, struct acc_err *e)
{
	struct parser p = {.s = text, .x = x, .fields = fields, .mem = mem, .e = e};
	int rc = or_(&p);
	blanks(&p);
	if (rc == 0 && p.at < text.n)
		rc = wrong(&p, "something is left over");
	return rc;
}

void
acc_expr_release(struct expr *x)
{
	free(x->ins);
	*x = (struct expr){0};
}
