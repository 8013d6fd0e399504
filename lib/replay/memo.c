/* Values of functions of one element in 16 bits, kept from call to call by each thread. */
#include "replay/impl.h"

#include <stdlib.h>

enum { MEMOS = 16, ENTRIES = 1 << 15, KEY = 64 };

struct acc_memo {
	const struct acc_op *op;
	uint8_t key[KEY];
	struct acc_memo_entry *list;
};

struct acc_memos {
	struct acc_memo memo[MEMOS];
	size_t n;
};

struct acc_memos *
acc_memos_new(void)
{
	return calloc(1, sizeof(struct acc_memos));
}

void
acc_memos_free(struct acc_memos *m)
{
	for (size_t i = 0; m != NULL && i < m->n; i++)
		free(m->memo[i].list);
	free(m);
}

struct acc_memo *
acc_memo_get(struct acc_memos *m, const struct acc_op *op, const void *key, size_t n)
{
	struct acc_memo new = {.op = op};
	if (n > KEY)
		return NULL;
	memcpy(new.key, key, n);
	for (size_t i = 0; i < m->n; i++)
		if (m->memo[i].op == op && memcmp(m->memo[i].key, new.key, KEY) == 0)
			return &m->memo[i];
	if (m->n == MEMOS || (new.list = calloc(ENTRIES, sizeof *new.list)) == NULL)
		return NULL;
	for (size_t i = 0; i < ENTRIES; i++)
		new.list[i].code = 1; /* of no number in 16 bits */
	m->memo[m->n] = new;
	return &m->memo[m->n++];
}

/* The sign, and the end of exponent and mantissa: numbers that are not far from each other have
 * places of their own. */
struct acc_memo_entry *
acc_memo_at(struct acc_memo *m, uint32_t code, unsigned shift)
{
	return &m->list[code >> 31 << 14 | (code >> shift & (ENTRIES / 2 - 1))];
}
