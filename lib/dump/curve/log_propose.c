/* A pattern for the log of a program that nobody here knows, which is tried before it is advised. */
#include "dump/curve/limits.h"
#include "dump/curve/log_pairs.h"
#include "io/regex.h"

enum { LINES_TRIED = 20000 };

/* As the reader has them: a carriage return ends a line, and a bar. */
static bool
next(struct acc_str *rest, struct acc_str *line)
{
	uint32_t n = 0;
	struct acc_str behind;
	if (rest->n == 0)
		return false;
	while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
		n++;
	*line = (struct acc_str){rest->p, n};
	acc_log_after_bar(line, &behind);
	n = behind.n > 0 ? line->n : n + (n < rest->n);
	*rest = acc_log_from(*rest, rest->p + n);
	return true;
}

/* The first number of the line that is called a loss. */
static const struct log_pair *
loss_of(const struct log_pair *f, int n)
{
	for (int i = 0; i < n; i++) {
		struct acc_str w = acc_log_last_word(f[i].key);
		if (acc_log_is_loss(w) && !f[i].v.integer)
			return &f[i];
	}
	return NULL;
}

/* Does the pattern read what it should? */
static bool
tried(struct log_proposal *try, struct acc_str text)
{
	struct acc_err e = {0};
	struct acc_regex *re = acc_regex_open(try->pattern, &e);
	struct acc_str line;
	double before = 0;
	unsigned losses = 0;
	bool good = re != NULL;
	try->lines = 0;
	for (unsigned k = 0; good && k < LINES_TRIED && next(&text, &line); k++) {
		struct log_pair f[LOG_PAIRS];
		struct acc_literal step, loss;
		losses += loss_of(f, acc_log_pairs(line, f, LOG_PAIRS)) != NULL;
		int rc = acc_regex_find(re, line, &e);
		if (rc <= 0) {
			good = rc == 0;
			continue;
		}
		good = acc_literal_all(acc_regex_group(re, line, 0), &step) &&
		       acc_literal_all(acc_regex_group(re, line, 1), &loss) && step.integer &&
		       (try->lines == 0 || step.v > before);
		before = step.v;
		try->first = try->lines++ == 0 ? loss.v : try->first;
		try->last = loss.v;
	}
	acc_regex_close(re);
	return good && try->lines >= LOG_LINES_ENOUGH &&
	       try->lines >= losses - losses / LOG_LINES_MISSED;
}

/* "[100/2000]": the integer that a slash divides from the same number in all lines. */
static bool
by_fraction(struct acc_str line, const struct log_pair *loss, struct acc_str text,
	struct log_proposal *out)
{
	const char *p = line.p, *end = loss->key.p;
	int64_t n, of;
	for (const char *q; p < end; p++) {
		if (*p < '0' || *p > '9' || (p > line.p && p[-1] >= '0' && p[-1] <= '9'))
			continue;
		q = p;
		if (!acc_log_of(&q, end, &n, &of))
			continue;
		snprintf(out->pattern, sizeof out->pattern,
			"\\b(?<step>\\d+) */ *%lld\\b.*?\\b%.*s[^-+.\\w]+(?<loss>[-+.\\w]+)",
			(long long)of, ACC_PRS(acc_log_last_word(loss->key)));
		if (tried(out, text))
			return true;
	}
	return false;
}

/* An integer with a name, which rises: but what results are of is no step. */
static bool
by_name(const struct log_pair *f, int n, const struct log_pair *loss, struct acc_str text,
	struct log_proposal *out)
{
	static const char *const things[] = {"subject", "fold", "seed", "class", "sample", "layer",
		"head", "image", "file", "rank", "gpu", "case", "patient", "model", "run"};
	for (int i = 0; i < n; i++) {
		struct acc_str w = acc_log_last_word(f[i].key), l = acc_log_last_word(loss->key);
		if (!f[i].v.integer || w.n + l.n > 80 || ACC_LOG_IS(w, things))
			continue;
		snprintf(out->pattern, sizeof out->pattern,
			&f[i] < loss
				? "\\b%.*s[^-+.\\w]+(?<step>\\d+)\\b.*?\\b%.*s[^-+.\\w]+(?<loss>[-+.\\w]+)"
				: "(?=.*\\b%.*s[^-+.\\w]+(?<step>\\d+)\\b).*?\\b%.*s[^-+.\\w]+(?<loss>[-+.\\w]+)",
			ACC_PRS(w), ACC_PRS(l));
		if (tried(out, text))
			return true;
	}
	return false;
}

bool
acc_log_propose(const uint8_t *bytes, size_t size, struct log_proposal *out)
{
	/* The last line may have been cut off. */
	const uint8_t *nl = size == 0 ? NULL : memrchr(bytes, '\n', size);
	const size_t whole = nl == NULL ? 0 : (size_t)(nl + 1 - bytes);
	const struct acc_str text = {(const char *)bytes,
		whole > UINT32_MAX ? UINT32_MAX : (uint32_t)whole};
	struct acc_str rest = text, line;
	for (int k = 0; k < LINES_TRIED && next(&rest, &line); k++) {
		struct log_pair f[LOG_PAIRS];
		int n = acc_log_pairs(line, f, LOG_PAIRS);
		const struct log_pair *loss = loss_of(f, n);
		/* The first line that has one tells what the others are like. */
		if (loss != NULL)
			return by_fraction(line, loss, text, out) || by_name(f, n, loss, text, out);
	}
	return false;
}
