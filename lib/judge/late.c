/* Checksums that were taken late. A recorder that hashes a tensor of the CPU in a thread of its own hashes what stands
 * there by then: where something has written to it meanwhile, often the new content, and in two runs of one program
 * not the same. Its statistics were taken at once. So of what is written to in place, equal statistics are what is
 * known, and another checksum is no evidence (behaviour msprobe-late-checksums). */
#include "judge/case.h"

#include <math.h>

/* May something have written to what this item shows, after it was recorded? What a call writes to it takes and gives;
 * what ranks exchange arrives there; gradients of weights are added up in the first of them. */
static bool
is_written(const struct acc_case *c, const struct acc_item *it)
{
	const struct acc_call *k = it->call == ACC_NOCALL ? NULL : &c->call[it->call];
	return k != NULL && it->kind != ACC_ITEM_ARG &&
	       (k->writes || k->inplace || k->talks || (k->backward && acc_is_output(it)));
}

int
acc_settle_late(struct acc_case *c, struct acc_err *e)
{
	struct acc_ids written = {0};
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && c->late && rc == 0; i = acc_step(c, i))
		if (c->item[i].id[ACC_A] != 0 && is_written(c, &c->item[i]))
			rc = acc_ids_put(&written, c->item[i].id[ACC_A], i, false, e);
	for (uint32_t i = 0; i < c->nitem && c->late && rc == 0; i = acc_step(c, i)) {
		struct acc_item *it = &c->item[i];
		if (!it->late || acc_ids_get(&written, it->id[ACC_A]) != ACC_NOID)
			continue;
		it->measure = ACC_BY_SUM;
		it->rms = it->max = INFINITY;
		it->left = it->slope = it->rest = it->stat_abs = it->mean_off = NAN;
	}
	acc_ids_release(&written);
	return rc;
}
