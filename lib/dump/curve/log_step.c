/* A step and what follows it, in a line: torchtitan and those who print as it does, and verl.
 *
 *	step:  1  loss:  8.13090  grad_norm:  1.5555  memory: 1.20GiB(3.00%)  tps: 1,234  mfu: 2.5%
 *	step:1 - actor/pg_loss:0.345 - actor/grad_norm:0.0056
 */
#include "dump/curve/log_place.h"

/* "step: 12" at the beginning of a word: what stands behind it, or NULL. */
static const char *
find_step(struct acc_str s, int64_t *step)
{
	static const char word[] = "step:";
	const char *end = s.p + s.n, *p = s.p;
	while ((p = acc_log_find(acc_log_from(s, p), word)) != NULL) {
		bool begins = p == s.p || p[-1] == ' ' || p[-1] == '\t' || p[-1] == ')';
		p += strlen(word);
		if (begins && acc_log_int(&p, end, step) && p < end && (*p == ' ' || *p == '\t'))
			return p;
	}
	return NULL;
}

static int
step_line(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_pair f[LOG_PAIRS];
	int64_t step;
	const char *p = find_step(s, &step);
	struct log_place at;
	/* "epoch:[ 1/25 ] train step:100": of its epoch, as other programs count. */
	if (p != NULL && acc_log_place((struct acc_str){s.p, (uint32_t)(p - s.p)}, &at) &&
		at.has_epoch)
		return 0;
	int n = p == NULL ? 0 : acc_log_pairs(acc_log_from(s, p), f, LOG_PAIRS), loss = 0;
	for (int i = 0; i < n; i++) {
		const char *slash = memchr(f[i].key.p, '/', f[i].key.n);
		loss += slash != NULL || acc_str_is(f[i].key, "loss");
	}
	if (loss == 0)
		return 0;
	/* Behaviour torchtitan-validate-lines: "validate step:  4  loss:  9.5" */
	const char *before = acc_log_find(s, "step:"), *mode = "";
	if (before != NULL)
		mode = acc_log_mode((struct acc_str){s.p, (uint32_t)(before - s.p)});
	if (*mode == '\0')
		acc_log_step(g, step);
	for (int i = 0; i < n; i++) {
		/* verl's timing_s/step, timing_per_token_ms/gen */
		bool timed = acc_str_starts(f[i].key, "timing_");
		int rc = acc_log_put(g, mode, f[i].key, step, &f[i].v,
			timed ? CURVE_TIME : CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	return 1;
}

const struct log_grammar acc_log_grammar_step = {
	.name = "steps",
	.word = {"step:"},
	.trainer = true,
	.line = step_line,
};
