/* order.h - what qsort asks, by the members of what is sorted, from the least, and where in it one belongs
 *
 * ACC_ORDER(by_size, struct row, size) is by_size(), ACC_ORDER_2 and _3 go on with the next members where
 * those before are equal; ACC_ORDER_OF orders pointers to what has the member. NaN has no place.
 *
 * ACC_LOWER(at, n, v[at].size < size) looks from `at` on, below n: `at` becomes the first for which that is not so. */
#ifndef BASE_ORDER_H
#define BASE_ORDER_H

#define ACC_COMPARE(p, q) (((p) > (q)) - ((p) < (q)))

#define ACC_ORDER_AS(name, type, value) \
	static int name(const void *x, const void *y) \
	{ \
		const type *p = x, *q = y; \
		return value; \
	}
#define ACC_ORDER(name, type, m) ACC_ORDER_AS(name, type, ACC_COMPARE(p->m, q->m))
#define ACC_ORDER_2(name, type, m, n) \
	ACC_ORDER_AS(name, type, 2 * ACC_COMPARE(p->m, q->m) + ACC_COMPARE(p->n, q->n))
#define ACC_ORDER_OF(name, type, m) \
	static int name(const void *x, const void *y) \
	{ \
		const type *p = *(const type *const *)x, *q = *(const type *const *)y; \
		return ACC_COMPARE(p->m, q->m); \
	}
#define ACC_ORDER_3(name, type, m, n, o) \
	ACC_ORDER_AS(name, type, \
		4 * ACC_COMPARE(p->m, q->m) + 2 * ACC_COMPARE(p->n, q->n) + \
			ACC_COMPARE(p->o, q->o))

#define ACC_LOWER(at, end, before) \
	do { \
		size_t lower_ = (at), upper_ = (end); \
		while (lower_ < upper_) { \
			at = lower_ + (upper_ - lower_) / 2; \
			if (before) \
				lower_ = at + 1; \
			else \
				upper_ = at; \
		} \
		at = lower_; \
	} while (0)

#endif
