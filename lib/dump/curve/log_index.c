/* A guess: a number that counts, and metrics behind it.
 *
 *	[0]	train-rmse:0.48	eval-rmse:0.49           XGBoost, LightGBM
 *	0:	learn: 0.6	test: 0.65	total: 10ms        CatBoost
 *	1: 2.3, 2.4 avg loss, 0.001 rate, 1.2 seconds      Darknet
 *	I0601 10:00:00.1 1 x.py:48] [100] loss=2.9, acc=0.1    JAX's CLU
 *	0m 24s (5000 6%) 3.5270                            PyTorch's tutorials
 */
#include "dump/curve/log_pairs.h"

enum { PARTS = 64 };

/* "name: number", and "number name"; 0.48+0.01 of a mean and its spread is the mean. */
static bool
part(struct acc_str s, struct log_pair *out)
{
	uint32_t n;
	s = acc_str_trim(s);
	const char *end = s.p + s.n, *sign = s.n == 0 ? NULL : memrchr(s.p, ':', s.n);
	if (sign == NULL && s.n > 0)
		sign = memchr(s.p, '=', s.n);
	if (sign == s.p)
		return false;
	struct acc_str value = acc_str_trim(sign == NULL ? s : acc_log_from(s, sign + 1));
	if (!acc_literal(value, &out->v, &n))
		return false;
	const char *rest = value.p + n;
	out->key = acc_str_trim(sign == NULL ? acc_log_from(s, rest)
					     : (struct acc_str){s.p, (uint32_t)(sign - s.p)});
	return out->key.n == 0 ? sign == NULL && rest == end
	       : sign == NULL  ? *rest == ' '
			       : rest == end || *rest == '+' || *rest == ' ';
}

/* The parts of what stands behind the count; 0: it is something else. */
static int
parts(struct acc_str s, struct log_pair *f, bool all)
{
	int n = 0, strange = 0;
	while (s.n > 0 && n < PARTS) {
		const char *end = s.p + s.n, *q = s.p;
		while (q < end && *q != '\t' && !(*q == ',' && q + 1 < end && q[1] == ' '))
			q++;
		if (part((struct acc_str){s.p, (uint32_t)(q - s.p)}, &f[n]))
			n++;
		else if (q > s.p && n == 0)
			return 0;
		else
			strange += q > s.p;
		s = q == end ? (struct acc_str){end, 0} : acc_log_from(s, q + 1);
	}
	return all && strange > 0 ? 0 : n;
}

/* "(5000 6%) 3.5270": a step, how far that is, the loss. */
static int
percent(struct acc_str s, int64_t *step, struct log_pair *f)
{
	const char *p = s.p, *end = p + s.n;
	int64_t n;
	uint32_t len;
	while (p < end && (p = memchr(p, '(', (size_t)(end - p))) != NULL) {
		const char *q = ++p;
		if (!acc_log_int(&q, end, step) || q == end || *q != ' ' ||
			!acc_log_int(&q, end, &n) || !acc_log_char(&q, end, '%') ||
			!acc_log_char(&q, end, ')'))
			continue;
		const struct acc_str rest = acc_str_trim(acc_log_from(s, q));
		f->key = (struct acc_str){q, 0};
		return acc_literal(rest, &f->v, &len) && len == rest.n && !f->v.integer ? 1 : 0;
	}
	return 0;
}

/* The count of the line, and its parts; 0: none. */
static int
counted(struct acc_str s, int64_t *step, struct log_pair *f)
{
	const char *p = s.p, *end = p + s.n;
	int n;
	if (acc_log_int(&p, end, step) && p + 1 < end && *p == ':' && (p[1] == ' ' || p[1] == '\t'))
		return parts(acc_log_from(s, p + 1), f, false);
	for (p = s.p; p < end && (p = memchr(p, '[', (size_t)(end - p))) != NULL;) {
		const char *q = ++p;
		if (acc_log_int(&q, end, step) && q < end && *q == ']' && q + 1 < end &&
			(q[1] == ' ' || q[1] == '\t') &&
			(n = parts(acc_log_from(s, q + 2), f, true)) > 0)
			return n;
	}
	return percent(s, step, f);
}

static int
line(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_pair f[PARTS];
	int64_t step;
	int n = s.n == 0 ? 0 : counted(s, &step, f);
	if (n == 0)
		return 0;
	acc_log_step(g, step);
	snprintf(g->guess.step, sizeof g->guess.step, "number in front");
	for (int i = 0; i < n; i++)
		if (f[i].key.n == 0)
			f[i].key = ACC_STR("loss");
	int rc = acc_log_put_pairs(g, "", f, n, step, e);
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_index = {
	.name = "lines with a number in front",
	.guess = 3,
	.line = line,
};
