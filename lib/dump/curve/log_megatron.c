/* What Megatron-LM, Megatron-DeepSpeed and MindSpeed print: fields between bars.
 *
 *	 iteration        3/    1000 | consumed samples:         3072 | lm loss: 4.424266E+01 |
 *	 validation loss at iteration 100 | lm loss value: 9.082474E+00 | lm loss PPL: 8.8E+03 |
 *	time (ms) | forward-compute: 349.79 | backward-compute: 263.45
 *	[Rank 0] (after 10 iterations) memory (MB) | allocated: 1674.3 | max allocated: 5663.8
 */
#include "dump/curve/log.h"

/* "iteration 3/ 1000 |": the step, and what follows. */
static bool
find_iteration(struct acc_str s, int64_t *step, struct acc_str *rest)
{
	const char *end = s.p + s.n, *p;
	int64_t of;
	while ((p = acc_log_find(s, "iteration")) != NULL) {
		p += strlen("iteration");
		s = acc_log_from(s, p);
		if (!acc_log_of(&p, end, step, &of) || !acc_log_char(&p, end, '|'))
			continue;
		*rest = acc_log_from(s, p);
		return true;
	}
	return false;
}

/* A loss that is NaN is not printed; only how many of the iterations were such is. */
static int
nan_loss(struct log_reader *g, int64_t step, struct acc_err *e)
{
	const struct acc_literal nan = {.v = NAN};
	struct acc_str key = acc_str(g->loss_key[0] != '\0' ? g->loss_key : "lm loss");
	return acc_log_put(g, "", key, step, &nan, CURVE_METRIC, e);
}

static int
megatron(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct acc_str rest, key, text;
	int64_t step;
	bool loss = false, is_nan = false;
	if (!find_iteration(s, &step, &rest))
		return 0;
	acc_log_step(g, step);
	while (acc_log_part(&rest, '|', &key, &text)) {
		struct acc_literal v;
		if (key.n == 0 || !acc_literal_all(text, &v))
			continue;
		if (acc_str_is(key, "lm loss") || acc_str_is(key, "lm-loss")) {
			loss = true;
			snprintf(g->loss_key, sizeof g->loss_key, "%.*s", ACC_PRS(key));
		}
		if (acc_str_is(key, "number of nan iterations"))
			is_nan = v.v > 0;
		int rc = acc_log_put(g, "", key, step, &v, CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	int rc = is_nan && !loss ? nan_loss(g, step, e) : 0;
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_megatron = {
	.name = "Megatron's iterations",
	.word = {"iteration"},
	.trainer = true,
	.line = megatron,
};

static int
validation(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *p = acc_log_find(s, "validation loss at ");
	const char *end = s.p + s.n, *bar;
	if (p == NULL)
		p = acc_log_find(s, "test loss at ");
	if (p == NULL || (bar = memchr(p, '|', (size_t)(end - p))) == NULL)
		return 0;
	struct acc_str head = {p, (uint32_t)(bar - p)}, rest = acc_log_from(s, bar + 1);
	struct acc_str key, text;
	const char *prefix = acc_log_find(head, "test") != NULL ? "test " : "validation ";
	int64_t step = g->step;
	const char *at = acc_log_find(head, "iteration");
	bool known = g->has_step;
	if (at != NULL) {
		at += strlen("iteration");
		known = acc_log_int(&at, bar, &step) || known;
	}
	while (known && acc_log_part(&rest, '|', &key, &text)) {
		struct acc_literal v;
		if (key.n == 0 || !acc_literal_all(text, &v))
			continue;
		if (acc_str_ends(key, " value"))
			key.n -= (uint32_t)strlen(" value");
		int rc = acc_log_put(g, prefix, key, step, &v, CURVE_METRIC, e);
		if (rc < 0)
			return rc;
	}
	return 1;
}

const struct log_grammar acc_log_grammar_validation = {
	.name = "Megatron's validation",
	.word = {"validation", "test loss at"},
	.line = validation,
};

static int
timers(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char head[] = "time (ms) |";
	const char *p = acc_log_find(s, head);
	if (p == NULL)
		return 0;
	s = acc_log_from(s, p + strlen(head));
	int rc = g->has_step ? acc_log_bars(g, s, "time/", g->step, CURVE_TIME, e) : 0;
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_timers = {
	.name = "Megatron's timers",
	.word = {"time (ms)"},
	.line = timers,
};

static int
memory(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char head[] = "(after ", tail[] = " iterations) memory (MB) |";
	char prefix[48] = "memory/";
	const char *end = s.p + s.n, *p = acc_log_find(s, head);
	const char *rank = acc_log_find(s, "[Rank ");
	int64_t step, r;
	if (p == NULL)
		return 0;
	p += strlen(head);
	if (!acc_log_int(&p, end, &step) || !acc_str_starts(acc_log_from(s, p), tail))
		return 0;
	if (rank != NULL && (rank += strlen("[Rank ")) < p && acc_log_int(&rank, p, &r))
		snprintf(prefix, sizeof prefix, "memory/rank%lld/", (long long)r);
	s = acc_log_from(s, p + strlen(tail));
	int rc = acc_log_bars(g, s, prefix, step, CURVE_COUNT, e);
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_memory = {
	.name = "Megatron's memory",
	.word = {"iterations) memory"},
	.line = memory,
};
