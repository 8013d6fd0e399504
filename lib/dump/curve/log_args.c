/* The arguments that a trainer prints when it starts, as parameters:
 *
 *	------------------------ arguments ------------------------
 *	  hidden_size ..................................... 4096
 *	[config.py:904:print]   train_batch_size ............. 32       DeepSpeed
 */
#include "dump/curve/log.h"
#include "dump/config/param.h"

static bool
name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

/* "name ....... value": blanks, at least three dots. A long name has these, too. */
static int
arguments(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	const char *dots = acc_log_find(s, " ...");
	const char *end = s.p + s.n, *p = dots, *v;
	if (dots == NULL)
		return 0;
	while (p > s.p && name_char(p[-1]))
		p--;
	for (v = dots + 1; v < end && *v == '.'; v++)
		;
	if (p == dots || p == s.p || (p[-1] != ' ' && p[-1] != '\t') || v == end || *v != ' ')
		return 0;
	bool deepspeed = memmem(s.p, (size_t)(p - s.p), "[config.py:", 11) != NULL;
	/* Behind something else, it is prose. */
	const char *q = p;
	while (q > s.p && (q[-1] == ' ' || q[-1] == '\t'))
		q--;
	if (q > s.p && q[-1] != ']' && q[-1] != ':')
		return 0;
	if (g->dry)
		return 1;
	struct param a = {.key = {p, (uint32_t)(dots - p)},
		.line = g->line,
		.value = acc_str_trim(acc_log_from(s, v)),
		.dialect = deepspeed ? DIALECT_DEEPSPEED : DIALECT_MEGATRON};
	if (acc_str_is(a.value, "None"))
		a.value.p = NULL;
	g->points++;
	int rc = acc_param_put(g->cv.c, &a, g->cv.file.p, e);
	return rc < 0 ? rc : 1;
}

const struct log_grammar acc_log_grammar_arguments = {
	.name = "arguments",
	.word = {" ..."},
	.aside = true,
	.line = arguments,
};
