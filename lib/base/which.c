/* Ranks as ranges. */
#include "acc/base.h"

void
acc_which_end(struct acc_arena *m, struct acc_which *w)
{
	enum { MOST = 8 };
	if (w->n == 0 || w->text == NULL || ++w->ranges > MOST + 1)
		return;
	const char *comma = w->ranges == 1 ? "" : ", ";
	w->text = w->ranges > MOST ? acc_arena_printf(m, "%s, ...", w->text)
		  : w->from == w->to
			  ? acc_arena_printf(m, "%s%s%lld", w->text, comma, (long long)w->to)
			  : acc_arena_printf(m, "%s%s%lld-%lld", w->text, comma, (long long)w->from,
				    (long long)w->to);
}

void
acc_which_add(struct acc_arena *m, struct acc_which *w, int64_t rank)
{
	if (w->n == 0 || rank != w->to + 1) {
		acc_which_end(m, w);
		w->from = rank;
	}
	w->to = rank;
	w->n++;
}
