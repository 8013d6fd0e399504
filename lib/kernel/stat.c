/* Statistics as the recorders write them; not as numpy takes them of 16 bits: behaviours ml-dtypes-sum-stays,
 * numpy-norm-f16. */
#include <math.h>
#include <string.h>

#include "acc/kernel.h"
#include "acc/record.h"

/* NaN and infinities go through; of booleans whether any and all; integers have no mean and norm; all
 * four of a 0-d tensor are its element. */
int
acc_stat_put(struct acc_rec *r, enum acc_dtype dtype, uint32_t ndim, uint64_t count,
	const struct acc_one *o)
{
	static const char *const key[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	const char cls = acc_dtype_of(dtype)->cls;
	const double inf = o->posinf > 0 ? INFINITY : -INFINITY;
	const bool finite = o->nan + o->posinf + o->neginf == 0;
	const double v[] = {
		o->nan > 0                           ? NAN
		: o->posinf > 0 || o->n == o->neginf ? inf
						     : o->max,
		o->nan > 0          ? NAN
		: o->neginf > 0     ? -INFINITY
		: o->n == o->posinf ? INFINITY
				    : o->min,
		finite                                           ? acc_sum_mean(&o->sum, count)
		: o->nan > 0 || (o->posinf > 0 && o->neginf > 0) ? NAN
								 : inf,
		finite       ? acc_sum_root(&o->sumsq)
		: o->nan > 0 ? NAN
			     : INFINITY,
	};
	int rc = 0;
	for (int i = 0; i < 4; i++) {
		bool none = count == 0 || (i > 1 && cls != 'F' && !(cls == 'C' && i == 2));
		if (cls == 'B' && !none)
			rc |= acc_add(r, "", key[i], acc_bool(v[i] != 0));
		else if (strchr("IU", cls) != NULL && !none && fabs(v[i]) < 0x1p63)
			rc |= acc_add(r, "", key[i], acc_int((int64_t)v[i]));
		else
			rc |= acc_add(r, "", key[i],
				none ? acc_nil() : acc_f64(ndim == 0 && cls == 'F' ? v[0] : v[i]));
	}
	return rc;
}
