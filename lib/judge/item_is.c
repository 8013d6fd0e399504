/* What an item is, by what was measured of it. */
#include "judge/first_bad.h"

#include <math.h>

double
acc_item_unit(const struct acc_item *it)
{
	return fmax(acc_unit((enum acc_dtype)it->dtype[ACC_A]),
		acc_unit((enum acc_dtype)it->dtype[ACC_B]));
}

bool
acc_accused(const struct acc_item *it)
{
	/* Where both fail, the test is to blame: the bench is trusted. */
	return it->audit[ACC_A] > 1 && !(it->audit[ACC_B] > 1);
}

/* The limits of recomputation have room for the roughest kernels. Where the device's is near that, and the bench's is
 * not, how far they are apart decides, unless operands of fewer bits explain that. */
static bool
is_rough(const struct acc_item *it)
{
	/* Of a dtype with fewer bits the device's may be near its limit, and the bench's, in f32, at none. */
	return it->dtype[ACC_A] == ACC_F32 && it->dtype[ACC_B] == ACC_F32 &&
	       it->form == ACC_NOFORM && it->audit[ACC_A] > LIMIT_ACQUIT &&
	       it->audit[ACC_A] > LIMIT_ACQUIT_BENCH * it->audit[ACC_B];
}

bool
acc_acquitted(const struct acc_item *it)
{
	return it->audit[ACC_A] <= 1 && !it->open && !is_rough(it);
}

bool
acc_bench_wrong(const struct acc_item *it)
{
	return it->audit[ACC_A] <= 1 && it->audit[ACC_B] > 1;
}

bool
acc_is_flushed(const struct acc_item *it)
{
	return (it->round[ACC_A] == ACC_FLUSHED) != (it->round[ACC_B] == ACC_FLUSHED) &&
	       it->max_abs < 0x1p-126;
}

bool
acc_is_input(const struct acc_item *it)
{
	return it->io == ACC_IO_IN || it->io == ACC_IO_KW || it->io == ACC_IO_PARAM;
}

bool
acc_is_measured(const struct acc_item *it)
{
	return it->sides == 3 && it->measure != ACC_UNMEASURED;
}

bool
acc_call_steps_on(const struct acc_call *k, int side)
{
	static const char before[] = "Functional.";
	const size_t n = sizeof before - 1;
	const char *key = k->key[side];
	if (key == NULL || strncmp(key, before, n) != 0 || k->backward)
		return false;
	return acc_word_in("adam adamw sgd rmsprop adagrad adamax nadam radam adadelta asgd rprop",
		(struct acc_str){key + n, (uint32_t)strcspn(key + n, ".")});
}

bool
acc_call_steps(const struct acc_call *k)
{
	return acc_call_steps_on(k, ACC_B);
}
