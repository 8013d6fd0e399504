/* A log of whatever program, by the user's pattern: each named group is a curve, but
 *
 *	step        the step; without it the lines that match are counted, from 1
 *	tag, value  a name and its number: one curve for each name
 *	run         the run */
#include "dump/curve/log.h"
#include "io/regex.h"

int
acc_log_pattern(struct log_reader *g, struct acc_regex *re, struct acc_str s, struct acc_err *e)
{
	struct acc_str group[256], tag = {NULL, 0}, run = g->cv.run;
	struct acc_err bad = {0};
	size_t n = acc_regex_names(re) < 256 ? acc_regex_names(re) : 256;
	int rc = acc_regex_find(re, s, &bad);
	if (rc < 0)
		acc_log_trouble(g, "%s", bad.msg);
	if (rc <= 0)
		return rc == ACC_ENOMEM ? acc_nomem(e) : 0;
	struct acc_literal step = {.integer = true, .i = ++g->ordinal};
	g->counted = true;
	for (size_t i = 0; i < n; i++) {
		struct acc_str name = acc_regex_name(re, i);
		group[i] = acc_regex_group(re, s, i);
		if (group[i].p == NULL)
			continue;
		if (acc_str_is(name, "step") &&
			(!acc_literal_all(group[i], &step) || !step.integer)) {
			acc_log_trouble(g, "the step '%.*s' is no integer",
				group[i].n < 40 ? (int)group[i].n : 40, group[i].p);
			return 1;
		}
		if (acc_str_is(name, "step"))
			g->counted = false;
		if (acc_str_is(name, "tag"))
			tag = group[i];
		if (acc_str_is(name, "run"))
			g->cv.run = group[i];
	}
	rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct acc_str name = acc_regex_name(re, i);
		struct acc_literal v;
		if (group[i].p == NULL || acc_str_is(name, "step") || acc_str_is(name, "tag") ||
			acc_str_is(name, "run"))
			continue;
		if (acc_str_is(name, "value") && tag.n > 0)
			name = tag;
		if (acc_literal_all(group[i], &v))
			rc = acc_log_put(g, "", name, step.i, &v, CURVE_GUESS, e);
		else
			acc_log_trouble(g, "left out %.*s: '%.*s' is no number",
				name.n < 40 ? (int)name.n : 40, name.p,
				group[i].n < 40 ? (int)group[i].n : 40, group[i].p);
	}
	g->cv.run = run;
	return rc < 0 ? rc : 1;
}
