/* An operator's family, by a table of names. */
#include "align/impl.h"

#include <ctype.h>

static const char *const families[] = {
#define FAMILY(names) names,
#include "align/family.h"
#undef FAMILY
};

/* The name as the table writes it, into buf: "Tensor.__iadd__" and "Primitive.norm.RmsNorm"
 * are iadd and rmsnorm. */
static struct acc_str
reduce(struct acc_str op, char *buf, size_t size)
{
	for (uint32_t i = op.n; i-- > 0;)
		if (op.p[i] == '.') {
			op = (struct acc_str){op.p + i + 1, op.n - i - 1};
			break;
		}
	uint32_t n = 0;
	for (; n < op.n && n < size; n++)
		buf[n] = (char)tolower((unsigned char)op.p[n]);
	struct acc_str s = {buf, n};
	while (s.n > 1 && s.p[0] == '_')
		s = (struct acc_str){s.p + 1, s.n - 1};
	while (s.n > 1 && s.p[s.n - 1] == '_')
		s.n--;
	if (acc_str_starts(s, "npu_") && s.n > 4)
		s = (struct acc_str){s.p + 4, s.n - 4};
	return s;
}

/* Is s one of the words of a row? */
static bool
names(const char *row, struct acc_str s)
{
	while (*row != '\0') {
		size_t n = strcspn(row, " ");
		if (n == s.n && memcmp(row, s.p, n) == 0)
			return true;
		row += n + (row[n] == ' ');
	}
	return false;
}

uint64_t
acc_family(struct acc_str op)
{
	char buf[128];
	struct acc_str s = reduce(op, buf, sizeof buf);
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (names(families[i], s))
			return acc_hash(families[i], strlen(families[i]));
	return acc_hash(s.p, s.n);
}
