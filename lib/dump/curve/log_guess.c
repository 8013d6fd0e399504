/* A guess: lines with a step and numbers that have names, of programs that nobody here knows.
 *
 *	Step 1: loss 9.0, time 0.3s
 *	[INFO] loss=1.25 lr=1e-05 global_step=10
 *	iter 20/100 | train loss 3.4 | val loss 3.5
 *	Epoch: [0][10/100]  Time 0.10 (0.12)  Loss 6.91 (6.93)
 *	Train Epoch: 1 [640/60000 (1%)]	Loss: 2.30
 */
#include "dump/curve/log_pairs.h"

static const char *const step_words[] = {"step", "steps", "global_step", "global-step",
	"globalstep", "train_step", "training_step", "_step", "iter", "iters", "iteration", "it",
	"update", "updates", "num_updates"};
static const char *const epoch_words[] = {"epoch", "ep"};

struct place {
	int64_t step;
	struct acc_str word;
	const char *value; /* where the number stands */
};

static bool
letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* What stands between a word and its number. */
static const char *
gap(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == ':' || *p == '=' || *p == '[' ||
				  *p == '\'' || *p == '"' || *p == '#'))
		p++;
	return p;
}

/* An integer behind `p`, which ends a word: "12", "12/100", "[12/100]". Of an epoch, also how far
 * it is: "0 [640/60000" and "[0][10/100]". */
static bool
count(const char *p, const char *end, bool epoch, struct place *at)
{
	int64_t n, of, k, before, sum;
	const char *v = gap(p, end), *q = v;
	if (v == p || !acc_log_int(&q, end, &n) || (q < end && (letter(*q) || *q == '.')))
		return false;
	if (epoch) {
		const char *r = q;
		acc_log_char(&r, end, ']');
		if (acc_log_char(&r, end, '[') && acc_log_of(&r, end, &k, &of) &&
			!__builtin_mul_overflow(n, of, &before) &&
			!__builtin_add_overflow(before, k, &sum))
			n = sum;
	}
	at->step = n;
	at->value = v;
	return true;
}

/* The first step that the line names; where it names none, its epoch. */
static bool
find_place(struct acc_str s, struct place *at)
{
	const char *p = s.p, *end = p + s.n, *q;
	bool found = false;
	for (; p < end; p = q) {
		for (q = p; q < end && (letter(*q) || *q == '_' || *q == '-'); q++)
			;
		struct acc_str w = {p, (uint32_t)(q - p)};
		struct place one = {.word = w};
		bool begins = p == s.p || (p[-1] != '/' && p[-1] != '.');
		if (w.n == 0)
			q++;
		else if (begins && ACC_LOG_IS(w, step_words) && count(q, end, false, &one))
			return *at = one, true;
		else if (!found && begins && ACC_LOG_IS(w, epoch_words) &&
			 count(q, end, true, &one))
			*at = one, found = true;
	}
	return found;
}

static int
line(struct log_reader *g, struct acc_str s, struct acc_err *e)
{
	struct log_pair f[LOG_PAIRS];
	struct place at = {.step = 0};
	int n = find_place(s, &at) ? acc_log_pairs(s, f, LOG_PAIRS) : 0, put = 0;
	for (int i = 0; i < n; i++) {
		struct acc_str word = acc_log_last_word(f[i].key);
		if (f[i].value == at.value || ACC_LOG_IS(word, epoch_words) ||
			(f[i].v.integer && ACC_LOG_IS(word, step_words)))
			continue;
		if (put++ == 0)
			acc_log_step(g, at.step);
		int rc = acc_log_put(g, "", f[i].key, at.step, &f[i].v, CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	if (put > 0 && g->guess.step[0] == '\0')
		snprintf(g->guess.step, sizeof g->guess.step, "%.*s", ACC_PRS(at.word));
	return put > 0;
}

const struct log_grammar acc_log_grammar_guess = {
	.name = "lines with a step",
	.guess = 2,
	.line = line,
};

/* --- where not even that is so --- */

/* A name for a group of a pattern. */
static void
group_name(struct acc_str key, char *buf, size_t size)
{
	size_t n = 0;
	for (uint32_t i = 0; i < key.n && n + 1 < size; i++)
		if (letter(key.p[i]) || key.p[i] == '_')
			buf[n++] = key.p[i];
	snprintf(buf + n, size - n, "%s", n == 0 ? "value" : "");
}

void
acc_log_propose(const uint8_t *text, size_t n, char *buf, size_t size)
{
	struct acc_str rest = {(const char *)text, (uint32_t)n};
	struct log_pair f[8];
	char name[24];
	snprintf(buf, size, "step (?<step>\\d+).*loss (?<loss>[-+.\\deE]+)");
	for (const char *nl; (nl = memchr(rest.p, '\n', rest.n)) != NULL;
		rest = acc_log_from(rest, nl + 1)) {
		struct acc_str s = {rest.p, (uint32_t)(nl - rest.p)};
		int k = acc_log_pairs(s, f, 8), best = -1, first = -1;
		for (int i = 0; i < k; i++) {
			struct acc_str w = acc_log_last_word(f[i].key);
			if (w.n >= 20)
				continue;
			bool whole = f[i].v.integer;
			if (whole && first < 0)
				first = i;
			else if (best < 0 || acc_str_ends(w, "loss"))
				best = i;
		}
		if (best < 0)
			continue;
		struct acc_str w = acc_log_last_word(f[best].key);
		group_name(w, name, sizeof name);
		int at = 0;
		if (first >= 0 && first < best) {
			struct acc_str step = acc_log_last_word(f[first].key);
			at = snprintf(buf, size, "%.*s\\W+(?<step>\\d+).*", ACC_PRS(step));
		}
		snprintf(buf + at, size - (size_t)at, "%.*s\\W+(?<%s>[-+.\\d][-+.\\deE]*)",
			ACC_PRS(w), name);
		return;
	}
}
