/* Distance in units of the last place of the coarser of the two dtypes: how many numbers of
 * that dtype lie between. For integers it is |a - b|. */
#include "acc/metric.h"

static struct acc_val
ulp_max(struct acc_subject *s)
{
	return acc_uint(s->r->two.ulp_max);
}

static struct acc_val
ulp_hist(struct acc_subject *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < ACC_ULP_BINS; i++) {
		s->ints[i] = (int64_t)s->r->two.ulp[i];
		if (s->ints[i] != 0)
			n = i + 1;
	}
	return acc_ints(s->ints, n);
}

const struct acc_metric acc_metric_ulp_max = {
	.name = "m.ulp_max",
	.of = ACC_OF_PAIR,
	.unit = "ulp",
	.help = "largest distance in units of the last place of the coarser dtype",
	.value = ulp_max,
};
const struct acc_metric acc_metric_ulp_hist = {
	.name = "m.ulp_hist",
	.of = ACC_OF_PAIR,
	.unit = "elements",
	.help = "count of elements at distance 0, 1, 2-3, 4-7, 8-15, ... ulp; no trailing zeros",
	.value = ulp_hist,
};
