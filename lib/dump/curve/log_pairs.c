/* "name: number", "name=number" and "name number" in a line of whoever wrote it. */
#include "dump/curve/log_pairs.h"

enum { WORDS = 3 }; /* of a name, as in "train loss" */

static bool
letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

/* A character of Chinese at p: its bytes; 0: none. */
static uint32_t
ideograph(const char *p, const char *end)
{
	const unsigned char c = (unsigned char)*p;
	return c >= 0xe4 && c <= 0xe9 && end - p > 2 ? 3 : 0;
}

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
word_char(char c)
{
	return letter(c) || digit(c) || (c != '\0' && strchr("_/.@-", c) != NULL);
}

const char *
acc_log_number(const char *p, const char *end, struct acc_literal *v)
{
	uint32_t n;
	if (p >= end || !acc_literal((struct acc_str){p, (uint32_t)(end - p)}, v, &n))
		return NULL;
	const char *q = p + n;
	/* Of 1.2GiB, 3/100, 10:30 and 1,234 it is a part. The point of a sentence is none. */
	if (q < end && *q == '.' && q + 1 < end && q[1] != ' ')
		return NULL;
	/* 18.33dB */
	const char *unit = end - q > 1 && q[0] == 'd' && q[1] == 'B' ? q + 2 : q;
	if (unit < end && *unit != '.' && (word_char(*unit) || *unit == ':'))
		return NULL;
	if (end - q > 3 && *q == ',' && digit(q[1]) && digit(q[2]) && digit(q[3]))
		return NULL;
	return q;
}

/* A word in front of a name belongs to it ("train loss", "top1 acc", "PU Loss"), but not a level such as INFO. */
static bool
belongs(struct acc_str word)
{
	static const char *const levels[] = {"INFO", "DEBUG", "WARNING", "WARN", "ERROR",
		"CRITICAL", "FATAL", "TRACE", "NOTICE", "SUCCESS", "AM", "PM", "UTC", "GMT", "CST"};
	bool small = false;
	uint32_t n = word.n;
	while (n > 1 && digit(word.p[n - 1]))
		n--;
	for (uint32_t i = 0; i < n; i++) {
		const bool wide = (unsigned char)word.p[i] >= 0x80;
		small = small || wide || (word.p[i] >= 'a' && word.p[i] <= 'z');
		if (!letter(word.p[i]) && word.p[i] != '_' && !wide)
			return false;
	}
	return small || !ACC_LOG_IS(word, levels);
}

/* "top 5 acc: 0.39" and "head 2 loss: 1.1": behind the number that tells such things apart, where another word and a
 * sign follow that; else NULL. In "epoch 2 loss: 1.1" it is no part of the name. */
static const char *
counted_word(struct acc_str w, const char *end)
{
	static const char *const things[] = {"top", "head", "layer", "task", "class", "level",
		"scale"};
	const char *p = w.p + w.n;
	if (p + 1 >= end || *p != ' ' || !digit(p[1]) || !ACC_LOG_IS(w, things))
		return NULL;
	for (p++; p < end && digit(*p); p++)
		;
	const char *q = p;
	if (q + 1 >= end || *q != ' ' || !letter(q[1]))
		return NULL;
	for (q++; q < end && (letter(*q) || *q == '_'); q++)
		;
	return q + 1 < end && (*q == ':' || *q == '=') ? p : NULL;
}

/* "Avg reward (last 1000): -5": behind a remark in brackets that a sign follows, else p. */
static const char *
behind_remark(const char *p, const char *end)
{
	const char *q = p;
	while (q < end && *q == ' ')
		q++;
	if (q == end || *q != '(')
		return p;
	while (q < end && *q != ')' && q - p < 32)
		q++;
	return end - q > 1 && *q == ')' && (q[1] == ':' || q[1] == '=') ? q + 1 : p;
}

/* What stands between a name and its value: blanks, quotes, a bracket, one of : and =. */
static const char *
marks(const char *p, const char *end)
{
	bool sign = false, bracket = false;
	for (; p < end; p++) {
		bool one = (!sign && (*p == ':' || *p == '=')) || (!bracket && *p == '[');
		if (!one && *p != ' ' && *p != '\t' && *p != '\'' && *p != '"')
			break;
		sign = sign || *p == ':' || *p == '=';
		bracket = bracket || *p == '[';
	}
	return p;
}

/* "Val acc is 86" names an acc, "loss so far is 2.3" a loss. */
static bool
is_filler(struct acc_str w)
{
	static const char *const fillers[] = {"is", "was", "so", "far", "now", "to"};
	return ACC_LOG_IS(w, fillers);
}

static struct acc_str
without_fillers(struct acc_str key)
{
	struct acc_str w = acc_log_last_word(key);
	while (w.n < key.n && is_filler(w)) {
		key = acc_str_trim((struct acc_str){key.p, key.n - w.n});
		w = acc_log_last_word(key);
	}
	return key;
}

int
acc_log_pairs(struct acc_str s, struct log_pair *out, int max)
{
	const char *p = s.p, *end = p + s.n, *name = NULL;
	int n = 0, words = 0;
	while (p < end && n < max) {
		if (!letter(*p) && *p != '_' && ideograph(p, end) == 0) {
			/* One blank joins the words of a name; all else divides them. */
			if (*p != ' ' || (p + 1 < end && p[1] == ' '))
				name = NULL;
			/* Of a date, a path or a number no letter begins a name. */
			if (digit(*p))
				while (p < end && word_char(*p))
					p++;
			else
				p++;
			continue;
		}
		const char *q = p, *stop;
		for (uint32_t k; q < end && (k = word_char(*q) ? 1 : ideograph(q, end)) > 0; q += k)
			;
		for (stop = q; stop > p && (stop[-1] == '-' || stop[-1] == '.'); stop--)
			;
		const char *number = counted_word((struct acc_str){p, (uint32_t)(q - p)}, end),
			   *v = marks(q < end && (*q == ':' || *q == '=')
					      ? q
					      : behind_remark(stop, end),
				   end);
		const char *after = v > stop && number == NULL ? acc_log_number(v, end, &out[n].v)
							       : NULL;
		const bool filler = is_filler((struct acc_str){p, (uint32_t)(q - p)});
		if (name == NULL || (words == WORDS && !filler)) {
			name = p;
			words = 0;
		}
		words += !filler;
		if (after != NULL) {
			out[n].key = without_fillers(
				(struct acc_str){name, (uint32_t)(stop - name)});
			out[n].value = v;
			out[n].end = after;
			n++;
		} else if (number == NULL && v > stop && v < end && digit(*v)) {
			for (after = v; after < end &&
					(word_char(*after) || (*after == ',' && after + 1 < end &&
								      digit(after[1])));
				after++)
				;
		}
		if (after != NULL || !belongs((struct acc_str){p, (uint32_t)(q - p)}))
			name = NULL;
		p = after != NULL ? after : number != NULL && name != NULL ? number : q;
	}
	return n;
}

bool
acc_log_is_loss(struct acc_str name)
{
	return (name.n >= 4 && strncasecmp(name.p + name.n - 4, "loss", 4) == 0) ||
	       acc_str_ends(name, "损失");
}

struct acc_str
acc_log_last_word(struct acc_str key)
{
	const char *p = key.n == 0 ? NULL : memrchr(key.p, ' ', key.n);
	return p == NULL ? key : acc_log_from(key, p + 1);
}

bool
acc_log_is(struct acc_str s, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strlen(words[i]) == s.n && strncasecmp(words[i], s.p, s.n) == 0)
			return true;
	return false;
}

int
acc_log_put_pairs(struct log_reader *g, const char *prefix, const struct log_pair *f, int n,
	int64_t step, struct acc_err *e)
{
	for (int i = 0; i < n; i++) {
		int rc = acc_log_put(g, prefix, f[i].key, step, &f[i].v, CURVE_GUESS, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
