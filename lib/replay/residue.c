/* How far what was recorded is from what it should be, in all. */
#include "replay/cause.h"
#include "replay/limits.h"

double
acc_residue(const struct acc_dense *rec, const double *ref, double scale, const double *shift)
{
	double unit = acc_unit(rec->dtype), sum = 0, size = 0;
	for (size_t i = 0; i < rec->n; i++) {
		double y = scale * ref[i] + (shift == NULL ? 0 : shift[i]);
		sum += (rec->v[i] - y) * (rec->v[i] - y);
		size += y * y;
	}
	return size > 0 && isfinite(sum) ? sqrt(sum / size) / unit : INFINITY;
}

double
acc_residue_most(const struct acc_dense *rec)
{
	return acc_unit_low(acc_unit(rec->dtype)) ? LIMIT_CAUSE_LEFT_LOW : LIMIT_CAUSE_LEFT;
}

double
acc_residue_factor(const struct acc_dense *rec, const double *ref, const double *shift)
{
	double xy = 0, yy = 0;
	for (size_t i = 0; i < rec->n; i++) {
		xy += (rec->v[i] - (shift == NULL ? 0 : shift[i])) * ref[i];
		yy += ref[i] * ref[i];
	}
	return xy / yy;
}
