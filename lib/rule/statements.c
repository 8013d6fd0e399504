#include "rule/statements.h"

struct acc_str
acc_first_word(struct acc_str *s)
{
	*s = s->n == 0 ? ACC_STR("") : acc_str_trim(*s);
	struct acc_str w = {s->p, 0};
	while (w.n < s->n && s->p[w.n] != ' ' && s->p[w.n] != '\t')
		w.n++;
	*s = acc_str_trim((struct acc_str){s->p + w.n, s->n - w.n});
	return w;
}

int
acc_each_statement(const char *text, size_t n, acc_statement_fn *f, void *arg)
{
	struct acc_buf joined = {0};
	unsigned at = 0, first = 0;
	int rc = 0;
	for (size_t i = 0, start = 0; i <= n && rc == 0; i++) {
		if (i < n && text[i] != '\n')
			continue;
		size_t len = i - start;
		bool more = len > 0 && text[i - 1] == '\\' && i < n;
		at++;
		if (joined.n == 0)
			first = at;
		rc = acc_buf_add(&joined, text + start, len - more);
		start = i + 1;
		if (rc < 0 || more)
			continue;
		struct acc_str s = {(char *)joined.p, (uint32_t)joined.n};
		struct acc_str key = acc_first_word(&s);
		joined.n = 0;
		if (key.n > 0 && key.p[0] != '#')
			rc = f(arg, first, key, s);
	}
	acc_buf_release(&joined);
	return rc;
}
