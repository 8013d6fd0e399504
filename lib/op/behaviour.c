/* The table of share/behaviours, asked. */
#include "acc/behaviour.h"
#include "acc/op.h"

const struct acc_behaviour *
acc_behaviour(struct acc_str id)
{
	for (size_t i = 0; i < acc_nbehaviours; i++)
		if (acc_str_is(id, acc_behaviours[i].id))
			return &acc_behaviours[i];
	return NULL;
}

/* One of the words between commas; of operators, one of a family. */
static bool
is_among(struct acc_str list, struct acc_str word, bool op)
{
	for (size_t at = 0, end; at < list.n; at = end + 1) {
		end = at;
		while (end < list.n && list.p[end] != ',')
			end++;
		const struct acc_str one = {list.p + at, end - at};
		if (op ? acc_op_family(one) == acc_op_family(word) : acc_str_eq(one, word))
			return true;
	}
	return false;
}

bool
acc_behaviour_fits(const struct acc_behaviour *b, const struct acc_behaviour_seen *seen)
{
	if (b->when[0] == '-')
		return false;
	for (const char *p = b->when; *p != '\0';) {
		const size_t n = strcspn(p, " "), k = strcspn(p, "=");
		const struct acc_str key = {p, (uint32_t)k},
				     list = {p + k + 1, (uint32_t)(n - k - 1)};
		const bool fits = acc_str_is(key, "op") ? is_among(list, seen->op[0], true) ||
								  is_among(list, seen->op[1], true)
				  : acc_str_is(key, "framework")
					  ? is_among(list, seen->framework, false)
				  : acc_str_is(key, "with") ? seen->nan
				  : acc_str_is(key, "by")   ? seen->checksum
							    : is_among(list, seen->dtype, false);
		if (!fits)
			return false;
		p += n + (p[n] == ' ');
	}
	return true;
}
