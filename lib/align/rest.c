/* What is known of both sides leaves memory while it is not looked at. */
#include "align/impl.h"

void
acc_align_rest(const struct acc_align *al)
{
	for (int s = 0; s < 2; s++) {
		acc_spill_rest(&al->h[s].op);
		acc_spill_rest(&al->h[s].item);
	}
}

void
acc_align_turn(const struct acc_align *al, uint32_t *turns)
{
	/* What fits in so many bytes stays: to map it again takes longer. */
	enum { REST = 1 << 11, SMALL = 64 << 20 };
	size_t size = 0;
	if (++*turns % REST != 0)
		return;
	for (int s = 0; s < 2; s++)
		size += al->h[s].ix.nitem * sizeof *al->h[s].ix.item +
			al->h[s].ix.nop * sizeof *al->h[s].ix.op;
	if (size > SMALL)
		acc_align_rest(al);
}
