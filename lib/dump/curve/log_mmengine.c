/* What OpenMMLab's runners print: a place, then fields that two blanks divide.
 *
 *	... - mmengine - INFO - Epoch(train)  [1][  50/1000]  lr: 1.0000e-02  eta: 0:10:00  loss: 2.1
 *	... - mmengine - INFO - Iter(train) [  50/90000]  lr: 1.0000e-02  loss: 2.1
 *	... - mmengine - INFO - Epoch(val) [1][10/10]    accuracy/top1: 75.5
 */
#include "dump/curve/log_pairs.h"

/* "[1][50/1000]" or "[50/1000]": the steps of earlier epochs count. */
static bool
place(const char **p, const char *end, int64_t *step)
{
	int64_t epoch = 0, n, of, before = 0;
	const char *q = *p;
	if (!acc_log_char(&q, end, '[') || !acc_log_int(&q, end, &n))
		return false;
	if (acc_log_char(&q, end, ']')) {
		epoch = n;
		if (!acc_log_char(&q, end, '[') || !acc_log_int(&q, end, &n))
			return false;
	}
	if (!acc_log_char(&q, end, '/') || !acc_log_int(&q, end, &of) ||
		!acc_log_char(&q, end, ']') ||
		(epoch > 0 && __builtin_mul_overflow(epoch - 1, of, &before)) ||
		__builtin_add_overflow(before, n, step))
		return false;
	*p = q;
	return true;
}

static int
mmengine(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char *const mode[] = {"(train)", "(val)", "(test)"};
	static const char *const prefix[] = {"", "val/", "test/"};
	struct log_pair f[LOG_PAIRS];
	const char *p = NULL, *end = s.p + s.n;
	int64_t step;
	int i = 0;
	while (i < 3 && (p = acc_log_find(s, mode[i])) == NULL)
		i++;
	if (p == NULL)
		return 0;
	p += strlen(mode[i]);
	if (!place(&p, end, &step))
		return 0;
	if (i == 0)
		acc_log_step(g, step);
	int n = acc_log_pairs(acc_log_from(s, p), f, LOG_PAIRS);
	/* An evaluation has places of its own. */
	int rc = acc_log_put_pairs(g, prefix[i], f, n, i > 0 && g->has_step ? g->step : step, e);
	return rc < 0 ? rc : n > 0;
}

const struct log_grammar acc_log_grammar_mmengine = {
	.name = "OpenMMLab's",
	.word = {"(train)", "(val)", "(test)"},
	.trainer = true,
	.line = mmengine,
};
