#include "pay.h"

#include <math.h>

size_t
acc_sample_runs(uint64_t count)
{
	return count == 0 ? 0 : count <= ACC_SAMPLE ? 1 : 64;
}

uint64_t
acc_sample_run(uint64_t count, size_t i, size_t *n)
{
	if (count <= ACC_SAMPLE) {
		*n = (size_t)count;
		return 0;
	}
	*n = 64;
	uint64_t room = count - 64;
	return room / 63 * i + room % 63 * i / 63;
}

/* Quickselect (Hoare's, as Wirth gives it). */
static double
rank(double *x, ptrdiff_t n, ptrdiff_t k)
{
	ptrdiff_t lo = 0, hi = n - 1;
	while (lo < hi) {
		double pivot = x[k];
		ptrdiff_t i = lo, j = hi;
		while (i <= j) {
			while (x[i] < pivot)
				i++;
			while (pivot < x[j])
				j--;
			if (i <= j) {
				double t = x[i];
				x[i++] = x[j];
				x[j--] = t;
			}
		}
		if (j < k)
			lo = i;
		if (k < i)
			hi = j;
	}
	return x[k];
}

double
acc_median(double *x, size_t n)
{
	size_t m = 0;
	for (size_t i = 0; i < n; i++)
		if (x[i] > 0 && isfinite(x[i]))
			x[m++] = x[i];
	return m == 0 ? 0 : rank(x, (ptrdiff_t)m, (ptrdiff_t)(m - 1) / 2);
}
