/* Progress bars that carry numbers: tqdm's, and Lightning's.
 *
 *	 45%|####5     | 45/100 [00:10<00:12,  4.44it/s, loss=1.23, lr=1e-05]
 *	Epoch 3:  45%|####5     | 45/100 [00:10<00:12,  4.44it/s, v_num=0, train_loss=1.23]
 *
 * Only of a log where no trainer prints lines: those are what it wants to be read. */
#include "dump/curve/log_pairs.h"
#include "dump/curve/log_place.h"

/* "| 45/100 [": the step within the bar, its length (0: unknown), and what follows. */
static const char *
find_bar(struct acc_str s, int64_t *n, int64_t *of)
{
	const char *end = s.p + s.n, *p = s.p;
	while (p < end && (p = memchr(p, '|', (size_t)(end - p))) != NULL) {
		const char *q = ++p;
		if (!acc_log_int(&q, end, n) || !acc_log_char(&q, end, '/'))
			continue;
		*of = 0;
		if ((acc_log_int(&q, end, of) || acc_log_char(&q, end, '?')) &&
			acc_log_char(&q, end, '['))
			return q;
	}
	return NULL;
}

/* Bars of later epochs go on counting. */
static int64_t
step_of(struct acc_str s, const char *bar, int64_t n, int64_t of)
{
	const char *p = acc_log_find(s, "Epoch ");
	int64_t epoch, before, step;
	if (p == NULL || p > bar || (p += strlen("Epoch "), !acc_log_int(&p, bar, &epoch)) ||
		__builtin_mul_overflow(epoch, of, &before) ||
		__builtin_add_overflow(before, n, &step))
		return n;
	return step;
}

/* The bar of training says nothing before its percentage, and is the longest that does not. What
 * was printed while it stood there is of the step that it shows next: it is drawn again behind. */
static int
training(struct log_reader *g, struct acc_str s, int64_t n, int64_t of, struct acc_err *e)
{
	const char *p = s.p, *end = p + s.n;
	while (p < end && (*p == ' ' || *p == '%' || (*p >= '0' && *p <= '9')))
		p++;
	if (p == end || *p != '|' || of <= 0)
		return 0;
	if (g->dry)
		g->bar.of = of > g->bar.of ? of : g->bar.of;
	if (of != g->bar.of)
		return 0;
	g->bar.waits = false;
	g->bar.seen = true;
	g->bar.n = n;
	return acc_log_let_go(g, n, e);
}

static int
bar(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_pair f[LOG_PAIRS];
	int64_t n, of;
	const char *p = find_bar(s, &n, &of);
	if (p != NULL && training(g, s, n, of, e) < 0)
		return e != NULL ? e->code : ACC_ENOMEM;
	if (g->trainer)
		return 0;
	const char *comma = p == NULL ? NULL : memchr(p, ',', (size_t)(s.p + s.n - p));
	int found = comma == NULL ? 0 : acc_log_pairs(acc_log_from(s, comma), f, LOG_PAIRS);
	if (found == 0)
		return 0;
	/* "validating:  5%|": of the step that training is at, the last of the bar counts. */
	const char *percent = memchr(s.p, '|', s.n), *mode = "";
	if (percent != NULL)
		mode = acc_log_mode((struct acc_str){s.p, (uint32_t)(percent - s.p)});
	const int64_t step = *mode != '\0' && g->has_step ? g->step : step_of(s, p, n, of);
	g->so_far = *mode != '\0';
	if (*mode == '\0')
		acc_log_step(g, step);
	for (int i = 0; i < found; i++) {
		int rc = acc_str_is(f[i].key, "v_num")
				 ? 0
				 : acc_log_put(g, mode, f[i].key, step, &f[i].v, CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	return 1;
}

const struct log_grammar acc_log_grammar_bar = {
	.name = "progress bars",
	.word = {"it/s", "s/it"},
	.line = bar,
};
