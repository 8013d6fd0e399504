/* Curves that the tests of Megatron-LM and MindSpeed compare with, as JSON.
 *
 *	{"lm loss": {"start_step": 1, "end_step": 50, "step_interval": 5,
 *		"values": {"1": 10.84081, "5": "nan", ...}}, "num-zeros": {...}}
 *	{"lm loss": {"start_step": 0, "step_interval": 5, "values": [10.84081, ...]}}
 *	{"lm loss": [12.04083, 11.97698, ...], "grad norm": [...], "time info": [...]}
 */
#include "dump/curve/curve.h"
#include "dump/jtree.h"

static bool
mentions(const struct acc_probe *p, const char *word)
{
	return memmem(p->head, p->nhead, word, strlen(word)) != NULL;
}

static int
probe(const struct acc_probe *p)
{
	size_t i = 0;
	while (i < p->nhead && p->head[i] != '\0' && strchr(" \t\r\n", p->head[i]) != NULL)
		i++;
	if (p->is_dir || i == p->nhead || p->head[i] != '{')
		return 0;
	if (mentions(p, "\"start_step\"") && mentions(p, "\"values\""))
		return 90;
	return mentions(p, "\"lm loss\"") && mentions(p, "[") ? 70 : 0;
}

/* Half a unit of the last of `decimals` decimals, if the number has no more. */
static double
by_decimals(double v, int decimals)
{
	char text[32];
	acc_f64_repr(v, text, sizeof text);
	const char *point = strchr(text, '.');
	if (!isfinite(v) || point == NULL || strchr(text, 'e') != NULL ||
		(int)strlen(point) - 1 > decimals)
		return 0;
	return 0.5 * pow(10, -decimals);
}

/* Golden values are rounded to five decimals. Those of MindSpeed are what Megatron's log
 * printed: a norm with three decimals, a loss with seven digits. */
static double
resolution(struct acc_str tag, double v, bool golden)
{
	if (golden || v == 0 || !isfinite(v))
		return golden ? by_decimals(v, 5) : 0;
	if (acc_str_ends(tag, "norm"))
		return by_decimals(v, 3);
	if (acc_str_ends(tag, "loss"))
		return 0.5 * pow(10, floor(log10(fabs(v))) - 6);
	return 0;
}

struct series {
	struct curves *cv;
	struct acc_str tag;
	int64_t start, interval;
	bool golden;
};

static int
put(const struct series *s, const struct jnode *n, int64_t step, struct acc_err *e)
{
	struct curve_point p = {.tag = s->tag,
		.step = step,
		.has_step = true,
		.cls = CURVE_GUESS,
		.at = (uint64_t)step};
	if (!acc_curve_number(n, &p.value))
		return 0;
	p.res = resolution(s->tag, p.value, s->golden);
	return acc_curve_put(s->cv, &p, e);
}

/* "values" by step, or one after another. */
static int
put_values(const struct series *s, const struct jnode *values, struct acc_err *e)
{
	int64_t step = s->start;
	int rc = 0;
	for (const struct jnode *n = values->child; n != NULL && rc == 0; n = n->next) {
		if (values->type == ACC_JSON_OBJECT && !acc_str_int(n->key, &step))
			continue;
		rc = step < 0 ? 0 : put(s, n, step, e);
		if (values->type == ACC_JSON_ARRAY &&
			__builtin_add_overflow(step, s->interval, &step))
			break;
	}
	return rc;
}

static int64_t
whole(const struct jnode *n, const char *key, int64_t dflt)
{
	const struct jnode *v = jtree_get(n, key);
	return v != NULL && v->type == ACC_JSON_INT ? v->i : dflt;
}

/* One metric; 1: it was a curve. */
static int
put_metric(struct curves *cv, struct acc_str tag, const struct jnode *n, struct acc_err *e)
{
	struct series s = {.cv = cv, .tag = tag, .start = 1, .interval = 1};
	const struct jnode *values = n;
	if (n->type == ACC_JSON_OBJECT) {
		values = jtree_get(n, "values");
		if (values == NULL ||
			(values->type != ACC_JSON_OBJECT && values->type != ACC_JSON_ARRAY))
			return 0;
		s.start = whole(n, "start_step", 1);
		s.interval = whole(n, "step_interval", 1);
		s.golden = true;
	} else if (n->type != ACC_JSON_ARRAY) {
		return 0; /* a margin */
	}
	int rc = put_values(&s, values, e);
	return rc < 0 ? rc : 1;
}

static int
top(struct curves *cv, struct acc_json *j, struct acc_err *e)
{
	struct acc_arena m = {0};
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e), found = 0;
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail_at(e, ACC_EFORMAT, t.pos, "no golden values: it is no object");
	while (rc > 0 && (rc = acc_json_next(j, &t, e)) > 0) {
		struct jnode *n;
		if (t.type != ACC_JSON_KEY)
			continue;
		acc_arena_reset(&m);
		struct acc_str tag = acc_arena_str(&m, t.s);
		rc = tag.p == NULL ? acc_nomem(e) : acc_json_next(j, &t, e);
		if (rc <= 0 || (rc = acc_jtree_read(j, &t, &m, &n, e)) < 0)
			break;
		if (n == NULL) {
			rc = acc_fail_at(e, ACC_ELIMIT, t.pos, "a curve of more than 64 MiB");
			break;
		}
		rc = put_metric(cv, tag, n, e);
		found += rc > 0;
		rc = rc < 0 ? rc : 1;
	}
	acc_arena_release(&m);
	if (rc < 0)
		return rc;
	return found > 0 ? 0 : acc_fail(e, ACC_EFORMAT, "no golden values: it holds no curve");
}

static int
read_golden(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct curve_file f;
	struct curves cv = {0};
	int rc = acc_curve_begin(&cv, &f, c, path, "golden", "pytorch", e);
	if (rc < 0)
		return rc;
	struct acc_json *j = acc_json_open(f.b, false, e);
	rc = j == NULL ? ACC_ENOMEM : top(&cv, j, e);
	acc_json_close(j);
	acc_curves_release(&cv);
	return rc;
}

const struct acc_dump acc_dump_golden = {
	.name = "golden",
	.help = "golden values of Megatron's tests, baselines of MindSpeed's",
	.probe = probe,
	.read = read_golden,
};
