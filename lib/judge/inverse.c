/* A mask that says which to take, and one that says which to leave out, as of tril and triu, eq and ne: of two
 * operators either may be what the other's program wants, and what is made with it tells. */
#include "judge/first_bad.h"

int
acc_forgive_inverses(struct acc_case *c, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		/* No element is further than 1 from the bench's, and on average they are that far. */
		if (it->kind != ACC_ITEM_TENSOR || it->sides != 3 || it->measure != ACC_BY_TENSOR ||
			it->count < 2 || it->max_abs != 1 || it->rmse != 1 || !(it->b_max <= 1))
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		if (acc_op_same(acc_get_text(r, "a.", "op"), acc_get_text(r, "b.", "op")))
			continue;
		it->measure = ACC_UNMEASURED;
		it->apart = true;
	}
	return 0;
}
