/* Lines of a log that have a place and numbers, and are none of a curve: what they tell is a text. */
#include "dump/curve/log_pairs.h"
#include "dump/curve/log_place.h"

/* Does it tell of something that came to pass then, as "Early stopping triggered at epoch 45", and heads nothing? */
bool
acc_log_tells(struct acc_str s)
{
	static const char *const words[] = {"topping", "topped", "est model", "est epoch",
		"est result", "est score", "aving", "aved", "oading", "oaded", "esum", "onverged"};
	bool found = false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		found = found || acc_log_find(s, words[i]) != NULL;
	return found;
}

/* Does a line tell of an epoch that was, as "Loaded the model from epoch 5", "Saved the best one at epoch 5 with loss
 * 0.3"? TensorFlow's estimators tell an evaluation so. */
bool
acc_log_looks_back(struct acc_str s, const struct log_place *at)
{
	static const char *const kept[] = {"aved ", "aving ", "est model ", "opping "};
	struct acc_str before = {s.p, at->parts > 0 ? (uint32_t)(at->part[0].p - s.p) : 0};
	bool found = acc_str_is(acc_log_last_word(acc_str_trim(before)), "from");
	for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
		found = found || acc_log_find(before, kept[i]) != NULL;
	return found && acc_log_find(before, "Saving dict for") == NULL;
}

static bool
has_loss(const struct log_pair *f, int n)
{
	bool found = false;
	for (int i = 0; i < n; i++)
		found = found || acc_log_is_loss(f[i].key);
	return found;
}

/* How many words of at least two letters? */
static unsigned
words_of(const char *p, const char *end)
{
	unsigned n = 0, letters = 0;
	for (; p <= end; p++) {
		const bool is = p < end && (*p | 0x20) >= 'a' && (*p | 0x20) <= 'z';
		n += !is && letters > 1;
		letters = is ? letters + 1 : 0;
	}
	return n;
}

/* A text that was printed among the lines, as rollouts are: "**Step 1:** Find the price", "Step 2: She has 3 more of
 * them". Or an amount, and nothing else: "slow: 40.0s, steps=138". */
bool
acc_log_is_prose(struct acc_str s, const struct log_place *at, const struct log_pair *f, int n)
{
	enum { SENTENCE = 4 };
	static const char *const amounts[] = {"steps", "iters", "updates"};
	if (at->parts != 1 || !at->has_step || at->has_epoch || at->of > 0 || has_loss(f, n))
		return false;
	const char *p = at->part[0].p, *end = s.p + s.n;
	if (p - s.p > 1 && p[-1] == '*' && p[-2] == '*' &&
		acc_log_find(acc_log_from(s, p), "**") != NULL)
		return true;
	if (n == 0 && ACC_LOG_IS(at->word, amounts))
		return true;
	unsigned words = 0;
	p += at->part[0].n;
	for (int i = 0; i <= n; i++) {
		const char *stop = i < n ? f[i].key.p : end;
		words += stop > p ? words_of(p, stop) : 0;
		if (i < n && (f[i].value[-1] == '=' || memchr(f[i].key.p + f[i].key.n, ':',
							       (size_t)(f[i].value - f[i].key.p) -
								       f[i].key.n) != NULL))
			return false;
		p = i < n && f[i].end > p ? f[i].end : p;
	}
	return words >= SENTENCE;
}
