/* The norms of all weights, printed as one list without their names.
 *
 *	print torch local norm:
 *	[tensor(0.1234, device='cuda:0'), tensor(3.1e+02, device='cuda:0')]
 *
 *	local_norm:
 *	Tensor(shape=[3], dtype=Float32, value=
 *	[ 1.25000000e-01  3.00000000e+00
 *	  5.00000000e-01])
 *
 * They belong to the step that runs: it is printed later, each list is one step. */
#include "dump/curve/log.h"

enum { STRANGE = 64, LINES = 1 << 20 };

void
acc_log_array_end(struct log_reader *g)
{
	struct log_array *a = &g->array;
	if (a->open && !g->dry)
		acc_log_trouble(g, "the list of norms that line %llu announces %s",
			(unsigned long long)a->announced,
			a->depth == 0 ? "does not follow" : "has no end");
	a->open = false;
}

int
acc_log_array_start(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	s = acc_str_trim(s);
	if (s.n > 0 && s.p[0] != '[' && !acc_str_starts(s, "Tensor("))
		return 0;
	acc_log_array_end(g);
	g->lists++;
	g->array = (struct log_array){.open = true,
		.announced = g->line,
		.has_step = g->has_step || g->dry || g->step >= 0};
	if (__builtin_add_overflow(g->step, g->lists, &g->array.step))
		g->array.step = INT64_MAX;
	int rc = s.n > 0 ? acc_log_array_line(g, s, e) : 0;
	return rc < 0 ? rc : 1;
}

/* Words that stand between the numbers of such a list: their length, 0 if there is none. */
static uint32_t
filler(const char *p, const char *end)
{
	static const char *const words[] = {"Tensor(", "tensor(", "Parameter(", "shape=[",
		"value=", "dtype=", "device='", "grad_fn=<", "array("};
	static const char ends[] = {0, 0, 0, ']', 0, ',', '\'', '>', 0};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);
		if ((size_t)(end - p) < n || memcmp(p, words[i], n) != 0)
			continue;
		const char *q = p + n;
		while (ends[i] != 0 && q < end && *q != ends[i] && *q != ')')
			q++;
		if (ends[i] != 0 && q < end && *q == ends[i])
			q++;
		return (uint32_t)(q - p);
	}
	return 0;
}

/* Go through a line; with `put`, hand on its numbers. 1, 0: it is something else, < 0. */
static int
walk(struct log_reader *g, struct acc_str s, struct log_array *a, bool put, struct acc_err *e)
{
	const char *p = s.p, *end = s.p + s.n;
	while (p < end && a->open) {
		struct acc_literal v;
		uint32_t n = filler(p, end);
		if (n > 0) {
			p += n;
		} else if (strchr(" \t,()", *p) != NULL && *p != '\0') {
			p++;
		} else if (*p == '[' || *p == ']') {
			a->depth += *p == '[' ? 1 : -1;
			if (a->depth < 0 || a->depth > 8)
				return 0;
			a->open = a->depth > 0;
			p++;
		} else if (a->depth > 0 && acc_literal(acc_log_from(s, p), &v, &n)) {
			char tag[16];
			snprintf(tag, sizeof tag, "%u", a->n++);
			int rc = !put || !a->has_step ? 0
						      : acc_log_put(g, "local_norm/", acc_str(tag),
								a->step, &v, CURVE_METRIC, e);
			if (rc < 0)
				return rc;
			p += n;
		} else {
			return 0;
		}
	}
	return 1;
}

int
acc_log_array_line(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_array *a = &g->array, trial = *a;
	if (acc_str_trim(s).n == 0)
		return 1;
	/* Other processes write between the lines; nothing of theirs may be taken for a norm. */
	int rc = walk(g, s, &trial, false, e);
	if (rc == 0) {
		if (++a->strange > STRANGE)
			acc_log_array_end(g);
		return 0;
	}
	rc = walk(g, s, a, !g->dry, e);
	if (++a->lines > LINES)
		acc_log_array_end(g);
	return rc;
}
