/* MindSpore's LossMonitor, a line a step or an epoch:
 *
 *	epoch: 1 step: 10, loss is 2.3025851249694824
 *	epoch: 1, step: 10, loss is [2.3025851]
 */
#include "dump/curve/log_place.h"

static int
monitor(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char is[] = "loss is ";
	struct log_place at;
	struct acc_literal v;
	uint32_t n;
	const char *p = acc_log_find(s, is);
	if (p == NULL || !acc_log_place((struct acc_str){s.p, (uint32_t)(p - s.p)}, &at) ||
		!at.has_epoch || !at.has_step)
		return 0;
	struct acc_str rest = acc_str_trim(acc_log_from(s, p + strlen(is)));
	if (rest.n > 0 && *rest.p == '[')
		rest = acc_log_from(rest, rest.p + 1);
	if (!acc_literal(rest, &v, &n))
		return 0;
	int64_t step = acc_log_through(g, &at, false);
	acc_log_step(g, step);
	int rc = acc_log_put(g, "", ACC_STR("loss"), step, &v, CURVE_METRIC, e);
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_monitor = {
	.name = "MindSpore's LossMonitor",
	.word = {"loss is "},
	.trainer = true,
	.line = monitor,
};
