/* What accalign left without a partner, since its values are others: behind a fault that is most. A run can only be
 * convicted by what it was fed, so each that is not fed is a way past it. */
#include "replace/replace.h"

/* Do those in a gap belong together? Of either as many, of the same shapes in their order. */
static bool
is_one_gap(const struct feed *v, size_t n, const struct feed *bench, size_t nbench)
{
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		const struct feed *b = &bench[k++];
		if (k > nbench || v[i].ndim != b->ref.ndim || v[i].dtype != b->ref.dtype ||
			(v[i].ndim > 0 && memcmp(v[i].shape, b->ref.shape,
						  v[i].ndim * sizeof *v[i].shape) != 0))
			return false;
	}
	return k == nbench;
}

void
acc_replace_fill(struct feed *v, size_t n, const struct feed *bench, size_t nbench,
	struct acc_arena *m)
{
	int64_t from = -1;
	for (size_t i = 0, k = 0; i < n;) {
		size_t end = i;
		while (end < n && v[end].file == NULL)
			end++;
		const int64_t to = end < n ? v[end].bench : INT64_MAX;
		while (k < nbench && bench[k].seq <= from)
			k++;
		size_t last = k;
		while (last < nbench && bench[last].seq < to)
			last++;
		if (to > from && is_one_gap(v + i, end - i, bench + k, last - k))
			for (; i < end; i++, k++) {
				v[i].src = bench[k].src;
				v[i].ref = bench[k].ref;
				v[i].file = acc_replace_file(m, v[i].name);
			}
		from = to;
		i = end + 1;
	}
}
