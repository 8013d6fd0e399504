/* What the names of tables of curves, and of their columns, say. */
#include <string.h>

#include "dump/curve/curve_csv.h"

/* "run-RUN-tag-TAG.csv", as TensorBoard's page names what it saves. */
void
acc_csv_from_name(struct acc_str stem, struct column *c)
{
	static const char mid[] = "-tag-";
	const size_t n = sizeof mid - 1;
	const char *end = stem.p + stem.n;
	const char *p = acc_str_starts(stem, "run-") ? memmem(stem.p, stem.n, mid, n) : NULL;
	c->tag = stem;
	if (p == NULL || p + n == end)
		return;
	c->run = (struct acc_str){stem.p + 4, (uint32_t)(p - stem.p) - 4};
	c->tag = (struct acc_str){p + n, (uint32_t)(end - p - n)};
}

/* "run - metric", as W&B's page names its columns. The columns of least and largest value of
 * what it drew as one point say nothing new. */
void
acc_csv_from_wandb(struct column *c)
{
	struct acc_str t = c->tag;
	if (acc_str_ends(t, "__MIN") || acc_str_ends(t, "__MAX"))
		c->leave = true;
	for (uint32_t i = t.n; i > 3; i--) {
		if (memcmp(t.p + i - 3, " - ", 3) != 0)
			continue;
		c->run = (struct acc_str){t.p, i - 3};
		c->tag = (struct acc_str){t.p + i, t.n - i};
		if (c->tag.n > 0 && c->tag.p[0] == '_')
			c->leave = true;
		return;
	}
}

/* What a file of the monitor is about: grad_reduced_0-99.csv, module_rank3.csv */
struct acc_str
acc_csv_kind(struct acc_str stem)
{
	const char *rank = stem.n == 0 ? NULL : memmem(stem.p, stem.n, "rank", 4);
	while (stem.n > 0 && strchr("0123456789-_", stem.p[stem.n - 1]) != NULL)
		stem.n--;
	if (acc_str_ends(stem, "_step")) /* weight_grad_step0-99.csv, of its second version */
		stem.n -= 5;
	if (rank == NULL)
		return stem;
	struct acc_str after = {rank + 4, 0};
	if (stem.p + stem.n > after.p)
		after.n = (uint32_t)(stem.p + stem.n - after.p);
	while (after.n > 0 && strchr("0123456789-_", after.p[0]) != NULL) {
		after.p++;
		after.n--;
	}
	stem.n = (uint32_t)(rank - stem.p);
	while (stem.n > 0 && stem.p[stem.n - 1] == '_')
		stem.n--;
	return stem.n > 0 ? stem : after;
}

/* What divides the names in a file's first line: of spreadsheets where the comma is the point a
 * semicolon. */
char
acc_csv_divides(const char *p, const char *end)
{
	const char *nl = p == end ? NULL : memchr(p, '\n', (size_t)(end - p));
	const size_t n = (size_t)((nl == NULL ? end : nl) - p);
	return n == 0 || memchr(p, ',', n) != NULL ? ','
	       : memchr(p, ';', n) != NULL         ? ';'
	       : memchr(p, '\t', n) != NULL        ? '\t'
						   : ',';
}

unsigned
acc_csv_falls(const char *head, const char *end, int column)
{
	const char sep = acc_csv_divides(head, end);
	unsigned fell = 0;
	bool any = false;
	double before = 0;
	for (const char *p = head, *nl;
		p < end && (nl = memchr(p, '\n', (size_t)(end - p))) != NULL; p = nl + 1) {
		struct acc_literal v;
		const char *q = p, *stop;
		for (int k = 0; k < column && q != NULL; k++)
			q = (q = memchr(q, sep, (size_t)(nl - q))) == NULL ? NULL : q + 1;
		if (q == NULL)
			continue;
		stop = memchr(q, sep, (size_t)(nl - q));
		const struct acc_str cell = {q, (uint32_t)((stop == NULL ? nl : stop) - q)};
		if (!acc_literal_all(acc_str_trim(cell), &v))
			continue;
		fell += any && v.v < before;
		any = true;
		before = v.v;
	}
	return fell;
}

bool
acc_csv_numbers(const char *head, const char *end, size_t n)
{
	enum { ENOUGH = 3 };
	const char sep = acc_csv_divides(head, end);
	const char *p = memchr(head, '\n', (size_t)(end - head)), *nl;
	size_t rows = 0;
	for (; p != NULL && rows < ENOUGH &&
		(nl = memchr(p + 1, '\n', (size_t)(end - p) - 1)) != NULL;
		p = nl, rows++) {
		size_t k = 0;
		for (const char *q = p + 1, *stop; q <= nl; q = stop + 1, k++) {
			struct acc_literal v;
			stop = memchr(q, sep, (size_t)(nl - q));
			stop = stop == NULL ? nl : stop;
			const struct acc_str cell = acc_str_trim(
				(struct acc_str){q, (uint32_t)(stop - q)});
			if (cell.n > 0 && !acc_literal_all(cell, &v))
				return false;
		}
		if (k != n)
			return false;
	}
	return rows == ENOUGH;
}
