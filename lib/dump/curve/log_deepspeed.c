/* What DeepSpeed prints beside its trainer.
 *
 *	step=10, skipped=2, lr=[0.0001], mom=[[0.9, 0.999]]
 *	epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=357.3, MemAllocated=1.64GB
 *	0/10, RunningAvgSamplesPerSec=357.3, CurrSamplesPerSec=358.4
 *	steps: 10 loss: 2.1234 iter time (s): 1.234 samples/sec: 12.345
 *	OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 4, reducing to 2
 *	Grad overflow on iteration 5
 */
#include "dump/curve/log.h"

/* Where a trainer prints its own, these would be a second curve of the same name. */
static const char *
prefix_of(const struct log_reader *g)
{
	return g->trainer ? "deepspeed/" : "";
}

/* Behind "key=" in s: a number, perhaps the first of a list. */
static bool
after(struct acc_str s, const char *key, struct acc_literal *v)
{
	uint32_t n;
	const char *p = acc_log_find(s, key);
	if (p == NULL)
		return false;
	s = acc_str_trim(acc_log_from(s, p + strlen(key)));
	while (s.n > 0 && s.p[0] == '[')
		s = acc_str_trim((struct acc_str){s.p + 1, s.n - 1});
	return acc_literal(s, v, &n);
}

static int
put(struct log_reader *g, struct acc_str s, const char *find, const char *tag, int64_t step,
	enum curve_class cls, struct acc_err *e)
{
	struct acc_literal v;
	if (!after(s, find, &v))
		return 0;
	if (strchr(find, '[') != NULL)
		v.res = 0; /* as Python shows a float: exactly */
	return acc_log_put(g, prefix_of(g), acc_str(tag), step, &v, cls, e);
}

static int
optimizer(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *p = acc_log_find(s, "step="), *end = s.p + s.n;
	int64_t step;
	if (p == NULL || (p > s.p && p[-1] != ' '))
		return 0;
	p += strlen("step=");
	if (!acc_log_int(&p, end, &step) || !acc_str_starts(acc_log_from(s, p), ", skipped="))
		return 0;
	s = acc_log_from(s, p);
	int rc = put(g, s, "skipped=", "skipped", step, CURVE_COUNT, e);
	if (rc == 0)
		rc = put(g, s, "lr=[", "lr", step, CURVE_METRIC, e);
	if (!g->trainer && rc == 0)
		acc_log_step(g, step);
	return rc < 0 ? rc : 1;
}

static int
speed(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	static const char *const keys[] = {"RunningAvgSamplesPerSec", "CurrSamplesPerSec",
		"MemAllocated", "MaxMemAllocated"};
	const char *p = acc_log_find(s, ", RunningAvgSamplesPerSec="), *q = p;
	char find[40];
	int64_t step;
	int rc = 0;
	if (p == NULL)
		return 0;
	while (q > s.p && q[-1] >= '0' && q[-1] <= '9')
		q--;
	if (q == s.p || (q[-1] != '/' && q[-1] != '=') || !acc_log_int(&q, p, &step))
		return 0;
	s = acc_log_from(s, p);
	for (int i = 0; i < 4 && rc == 0; i++) {
		snprintf(find, sizeof find, " %s=", keys[i]);
		rc = put(g, s, find, keys[i], step, i < 2 ? CURVE_TIME : CURVE_COUNT, e);
	}
	return rc < 0 ? rc : 1;
}

static int
pipeline(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *p = acc_log_find(s, "steps: "), *end = s.p + s.n;
	int64_t step;
	if (p == NULL)
		return 0;
	p += strlen("steps: ");
	if (!acc_log_int(&p, end, &step) || !acc_str_starts(acc_log_from(s, p), " loss: "))
		return 0;
	s = acc_log_from(s, p);
	if (!g->trainer)
		acc_log_step(g, step);
	int rc = put(g, s, " loss: ", "loss", step, CURVE_METRIC, e);
	if (rc == 0)
		rc = put(g, s, " iter time (s): ", "iter time", step, CURVE_TIME, e);
	if (rc == 0)
		rc = put(g, s, " samples/sec: ", "samples per second", step, CURVE_TIME, e);
	return rc < 0 ? rc : 1;
}

/* The step that overflows is the one that runs: that after the last printed. */
static int
overflow(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const struct acc_literal one = {.v = 1, .integer = true, .i = 1};
	struct acc_literal scale;
	int64_t step = g->has_step && g->step < INT64_MAX ? g->step + 1 : 1;
	const char *p = acc_log_find(s, "Grad overflow on iteration"), *end = s.p + s.n;
	if (p != NULL) {
		p += strlen("Grad overflow on iteration");
		if (!acc_log_int(&p, end, &step))
			return 0;
	} else if (acc_log_find(s, "OVERFLOW! Rank ") == NULL &&
		   acc_log_find(s, "Gradient overflow.  Skipping step") == NULL) {
		return 0;
	}
	int rc = acc_log_put(g, "", ACC_STR("overflow"), step, &one, CURVE_COUNT, e);
	if (rc == 0 &&
		(after(s, "reducing to ", &scale) || after(s, "reducing loss scale to ", &scale)))
		rc = acc_log_put(g, prefix_of(g), ACC_STR("loss scale"), step, &scale, CURVE_METRIC,
			e);
	return rc < 0 ? rc : 1;
}

static int
deepspeed(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	int rc = optimizer(g, s, e);
	if (rc == 0)
		rc = speed(g, s, e);
	if (rc == 0)
		rc = pipeline(g, s, e);
	return rc == 0 ? overflow(g, s, e) : rc;
}

const struct log_grammar acc_log_grammar_deepspeed = {
	.name = "DeepSpeed",
	.word = {"step", "SamplesPerSec", "OVERFLOW! ", "overflow"},
	.line = deepspeed,
};
