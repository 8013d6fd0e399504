#include "rec/few.h"

#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"

static double
rank(double v)
{
	return isnan(v) ? INFINITY : isinf(v) ? 0x1.fffffffffffffp1023 : fabs(v);
}

/* Of equal ones the first counts. */
static void
insert(struct few *f, double v, uint64_t at)
{
	uint32_t i = f->nworst < FEW ? f->nworst++ : FEW - 1;
	for (; i > 0 && rank(v) > rank(f->worst[i - 1]); i--) {
		f->worst[i] = f->worst[i - 1];
		f->at[i] = f->at[i - 1];
	}
	f->worst[i] = v;
	f->at[i] = at;
}

void
acc_few_take(struct few *f, enum acc_dtype dtype, const void *p, size_t n, double *scratch)
{
	acc_kernel_load(dtype, p, n, scratch);
	for (size_t i = 0; i < n; i++) {
		const double v = scratch[i];
		if (f->seen + i < FEW)
			f->first[f->seen + i] = v;
		if (f->nworst < FEW || rank(v) > rank(f->worst[FEW - 1]))
			insert(f, v, f->seen + i);
	}
	f->seen += n;
}

/* Numbers as text, for a record holds no array of floats; enough digits to read back the same double. */
static int
put(struct acc_rec *r, const char *key, const double *v, uint32_t n)
{
	char text[FEW][32];
	struct acc_str s[FEW];
	for (uint32_t i = 0; i < n; i++) {
		for (int digits = 6; digits <= 17; digits++) {
			snprintf(text[i], sizeof text[i], "%.*g", digits, v[i]);
			if (strtod(text[i], NULL) == v[i])
				break;
		}
		s[i] = acc_str(isnan(v[i]) ? "nan" : text[i]);
	}
	return acc_add(r, "", key, acc_texts(s, n));
}

int
acc_few_put(const struct few *f, struct acc_rec *r)
{
	int64_t at[FEW];
	for (uint32_t i = 0; i < f->nworst; i++)
		at[i] = (int64_t)f->at[i];
	int rc = put(r, "stat.first", f->first, f->nworst);
	rc |= put(r, "stat.worst", f->worst, f->nworst);
	return rc | acc_add(r, "", "stat.worst.at", acc_ints(at, f->nworst));
}
