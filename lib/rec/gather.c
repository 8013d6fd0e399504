/* A strided tensor in row-major order. */
#include "rec/rec.h"

/* Axes that lie behind one another as one, and those of one element left out: how many stay. */
static uint32_t
merge(uint32_t ndim, const int64_t *shape, const int64_t *stride, int64_t *n, int64_t *by)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < ndim; i++) {
		if (shape[i] == 1)
			continue;
		if (k > 0 && by[k - 1] == stride[i] * shape[i]) {
			n[k - 1] *= shape[i];
			by[k - 1] = stride[i];
		} else {
			n[k] = shape[i];
			by[k++] = stride[i];
		}
	}
	return k;
}

/* n elements, `by` bytes apart. */
static void
pick(uint8_t *to, const uint8_t *from, size_t n, size_t esize, ptrdiff_t by)
{
	switch (esize) {
	case 2:
		for (size_t i = 0; i < n; i++, from += by)
			memcpy(to + 2 * i, from, 2);
		break;
	case 4:
		for (size_t i = 0; i < n; i++, from += by)
			memcpy(to + 4 * i, from, 4);
		break;
	default:
		for (size_t i = 0; i < n; i++, from += by)
			memcpy(to + esize * i, from, esize);
	}
}

void
acc_rec_gather(const uint8_t *data, size_t esize, uint32_t ndim, const int64_t *shape,
	const int64_t *stride, gather_fn *fn, void *arg)
{
	enum { PIECE = 4096 };
	uint8_t piece[PIECE];
	int64_t n[ACC_REC_MAXDIM], by[ACC_REC_MAXDIM], at[ACC_REC_MAXDIM] = {0};
	uint32_t k = merge(ndim, shape, stride, n, by), i;
	const int64_t inner = k == 0 ? 1 : n[k - 1], step = k == 0 ? 1 : by[k - 1];
	const int64_t most = PIECE / (int64_t)esize;
	do {
		for (int64_t done = 0, m; done < inner; done += m) {
			const uint8_t *from = data + (ptrdiff_t)(done * step) * (ptrdiff_t)esize;
			m = inner - done;
			if (step != 1) {
				m = m < most ? m : most;
				pick(piece, from, (size_t)m, esize, (ptrdiff_t)esize * step);
				from = piece;
			}
			fn(arg, from, (size_t)m * esize);
		}
		/* The next of the outer axes. */
		for (i = k > 0 ? k - 1 : 0; i > 0; i--) {
			data += (ptrdiff_t)esize * by[i - 1];
			if (++at[i - 1] < n[i - 1])
				break;
			data -= (ptrdiff_t)esize * by[i - 1] * n[i - 1];
			at[i - 1] = 0;
		}
	} while (i > 0);
}
