/* Running the expressions of rule files; expr_parse.c compiles them. */
#include "rule/expr_ins.h"

#include <math.h>
#include <stdlib.h>

static bool
is_text(const struct acc_val *v)
{
	return v->type == ACC_V_TEXT;
}

static struct acc_val
undefined(void)
{
	return acc_nil();
}

/* Text as Python's float() takes it: digits, inf, nan. */
static struct acc_val
text_number(struct acc_str s)
{
	char buf[64], *end;
	if (s.n == 0 || s.n >= sizeof buf)
		return undefined();
	memcpy(buf, s.p, s.n);
	buf[s.n] = '\0';
	double x = strtod(buf, &end);
	return *end == '\0' && strpbrk(buf, "xX") == NULL ? acc_f64(x) : undefined();
}

static struct acc_val
part(const struct acc_val *v, double want)
{
	if (!is_text(v) || !(want >= 0))
		return undefined();
	struct acc_str s = v->s;
	for (uint32_t i = 0, start = 0, n = 0; i <= s.n; i++)
		if (i == s.n || s.p[i] == '.') {
			if (n == want)
				return acc_text((struct acc_str){s.p + start, i - start});
			n++;
			start = i + 1;
		}
	return undefined();
}

static struct acc_val
extreme(const struct acc_val *v, uint32_t n, bool smallest)
{
	double best = 0, x;
	bool any = false;
	for (uint32_t i = 0; i < n; i++)
		if (acc_as_f64(&v[i], &x) && !isnan(x) &&
			(!any || (smallest ? x < best : x > best))) {
			best = x;
			any = true;
		}
	return any ? acc_f64(best) : undefined();
}

static struct acc_val
call(enum expr_fn fn, const struct acc_val *v, uint32_t n)
{
	double x = 0;
	bool num = acc_as_f64(&v[0], &x);
	switch (fn) {
	case FN_ABS:
		return num ? acc_f64(fabs(x)) : undefined();
	case FN_MIN:
	case FN_MAX:
		return extreme(v, n, fn == FN_MIN);
	case FN_ISFINITE:
		return acc_bool(num && isfinite(x));
	case FN_ISNAN:
		return acc_bool(num && isnan(x));
	case FN_ISINF:
		return acc_bool(num && isinf(x));
	case FN_DEFINED:
		return acc_bool(v[0].type != ACC_V_NIL);
	case FN_FIRST:
		for (uint32_t i = 0; i < n; i++)
			if (v[i].type != ACC_V_NIL)
				return v[i];
		return undefined();
	case FN_IF:
		return v[0].type == ACC_V_BOOL && v[0].b ? v[1] : n > 2 ? v[2] : undefined();
	case FN_IN:
		for (uint32_t i = 1; i < n; i++)
			if (v[0].type != ACC_V_NIL && acc_val_eq(&v[0], &v[i]))
				return acc_bool(true);
		return acc_bool(false);
	case FN_NUMBER:
		return num ? acc_f64(x) : is_text(&v[0]) ? text_number(v[0].s) : undefined();
	case FN_PERCENT:
		if (is_text(&v[0]) && acc_str_ends(v[0].s, "%")) {
			struct acc_val w = text_number((struct acc_str){v[0].s.p, v[0].s.n - 1});
			return acc_as_f64(&w, &x) ? acc_f64(x / 100) : w;
		}
		return undefined();
	case FN_PART:
		return n > 1 && acc_as_f64(&v[1], &x) ? part(&v[0], x) : undefined();
	case FN_GLOB: {
		char pattern[256];
		if (!is_text(&v[0]) || !is_text(&v[1]) || v[1].s.n >= sizeof pattern)
			return undefined();
		memcpy(pattern, v[1].s.p, v[1].s.n);
		pattern[v[1].s.n] = '\0';
		return acc_bool(acc_glob(pattern, v[0].s));
	}
	case FN_ROUND: {
		char digits[40];
		double want;
		if (!num || n < 2 || !acc_as_f64(&v[1], &want) || !(want >= 1 && want <= 17))
			return undefined();
		snprintf(digits, sizeof digits, "%.*g", (int)want, x);
		return acc_f64(strtod(digits, NULL));
	}
	case FN_FLOOR:
		return num ? acc_f64(floor(x)) : undefined();
	case FN_CEIL:
		return num ? acc_f64(ceil(x)) : undefined();
	case FN_MOD: {
		double by;
		return num && n > 1 && acc_as_f64(&v[1], &by) && by != 0 ? acc_f64(fmod(x, by))
									 : undefined();
	}
	}
	return undefined();
}

static bool
both(const struct acc_val *v, double *x, double *y)
{
	return acc_as_f64(&v[0], x) && acc_as_f64(&v[1], y);
}

static struct acc_val
compare(enum expr_op op, const struct acc_val *v)
{
	double x, y;
	if (v[0].type == ACC_V_NIL || v[1].type == ACC_V_NIL)
		return undefined();
	/* NaN is not equal to itself here, as everywhere but in a stream. */
	bool num = both(v, &x, &y);
	if (op == OP_EQ)
		return acc_bool(num ? x == y : acc_val_eq(&v[0], &v[1]));
	if (op == OP_NE)
		return acc_bool(num ? x != y : !acc_val_eq(&v[0], &v[1]));
	if (!num)
		return undefined();
	return acc_bool(op == OP_LT ? x < y : op == OP_LE ? x <= y : op == OP_GT ? x > y : x >= y);
}

static struct acc_val
arithmetic(enum expr_op op, const struct acc_val *v)
{
	double x, y;
	if (!both(v, &x, &y))
		return undefined();
	return acc_f64(op == OP_ADD ? x + y : op == OP_SUB ? x - y : op == OP_MUL ? x * y : x / y);
}

static bool
truth(const struct acc_val *v)
{
	return v->type == ACC_V_BOOL && v->b;
}

static struct acc_val
run(const struct expr *x, uint32_t from, uint32_t to, const struct expr_table *t, uint32_t row)
{
	struct acc_val st[EXPR_STACK];
	uint32_t n = 0;
	for (uint32_t i = from; i < to; i++) {
		const struct expr_ins *in = &x->ins[i];
		switch (in->op) {
		case OP_CONST:
			st[n++] = in->v;
			break;
		case OP_FIELD:
			st[n++] = t->row[row].v[in->n];
			break;
		case OP_AGG:
			st[n++] = in->v;
			i += in->n;
			break;
		case OP_CALL:
			n -= in->n;
			st[n] = call(in->fn, &st[n], in->n);
			n++;
			break;
		case OP_NOT:
			st[n - 1] = acc_bool(!truth(&st[n - 1]));
			break;
		case OP_AND:
			n--;
			st[n - 1] = acc_bool(truth(&st[n - 1]) && truth(&st[n]));
			break;
		case OP_OR:
			n--;
			st[n - 1] = acc_bool(truth(&st[n - 1]) || truth(&st[n]));
			break;
		case OP_ADD:
		case OP_SUB:
		case OP_MUL:
		case OP_DIV:
			n--;
			st[n - 1] = arithmetic(in->op, &st[n - 1]);
			break;
		default:
			n--;
			st[n - 1] = compare(in->op, &st[n - 1]);
		}
	}
	return n == 0 ? undefined() : st[n - 1];
}

/* The part of the program after an aggregate, for each input or output row. It holds no
 * aggregate itself: the compiler sees to that. */
static struct acc_val
aggregate(const struct expr *x, uint32_t at, const struct expr_table *t)
{
	const struct expr_ins *in = &x->ins[at];
	struct acc_val best = undefined();
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->row[i].output != in->output)
			continue;
		struct acc_val two[2] = {best, run(x, at + 1, at + 1 + in->n, t, i)};
		best = extreme(two, 2, in->smallest);
	}
	return best;
}

void
acc_expr_prepare(struct expr *x, const struct expr_table *t)
{
	for (uint32_t i = 0; x->op && i < x->n; i++)
		if (x->ins[i].op == OP_AGG)
			x->ins[i].v = aggregate(x, i, t);
}

struct acc_val
acc_expr_run(const struct expr *x, const struct expr_table *t, uint32_t row)
{
	return run(x, 0, x->n, t, row);
}

uint32_t
acc_expr_fields(const struct expr *x, uint32_t *out, uint32_t most)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < x->n && n < most; i++)
		if (x->ins[i].op == OP_FIELD)
			out[n++] = x->ins[i].n;
	return n;
}

bool
acc_expr_lacks(const struct expr *x)
{
	for (uint32_t i = 0; i < x->n; i++) {
		const struct expr_ins *p = &x->ins[i];
		if (p->op == OP_OR || p->op == OP_NOT || p->op == OP_AGG ||
			(p->op == OP_CALL &&
				(p->fn == FN_DEFINED || p->fn == FN_FIRST || p->fn == FN_IF)))
			return true;
	}
	return false;
}

bool
acc_expr_true(const struct expr *x, const struct expr_table *t, uint32_t row)
{
	struct acc_val v = acc_expr_run(x, t, row);
	return truth(&v);
}
