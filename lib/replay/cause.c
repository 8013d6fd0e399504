/* What an error looks like: the signatures of common faults. */
#include "replay/cause.h"
#include "acc/say.h"
#include "replay/limits.h"

static const char *
scaled(struct acc_arena *mem, const struct acc_dense *rec, const double *ref)
{
	double c = acc_residue_factor(rec, ref, NULL);
	double left = acc_residue(rec, ref, c, NULL), unit = acc_unit(rec->dtype);
	if (rec->n < LIMIT_FACTOR_ELEMENTS || !isfinite(c) || c == 0 ||
		fabs(c - 1) < fmax(LIMIT_FACTOR_NEAR, LIMIT_FACTOR_NEAR_UNITS * unit) ||
		left >= acc_residue_most(rec) ||
		left * LIMIT_CAUSE_SHARE > acc_residue(rec, ref, 1, NULL))
		return NULL;
	if (fabs(c + 1) < LIMIT_FACTOR_NEAR)
		return "the sign is turned round";
	return acc_say(mem,
		fabs(c) > 1 ? "a factor of %.4g too much (a sum for a mean,"
			      " a division that is missing)"
			    : "a factor of %.4g (a scale, or a mean for a sum)",
		c);
}

/* Where the errors are: one element, one row, one column. */
void
acc_spots_add(struct acc_spots *s, const struct acc_dense *rec, const double *ref, size_t first)
{
	size_t len = rec->ndim == 0 ? 1 : (size_t)rec->shape[rec->ndim - 1];
	double unit = acc_unit(rec->dtype), size = 0;
	if (s->seen == 0)
		*s = (struct acc_spots){.len = len, .row = true, .column = true};
	s->seen += rec->n;
	for (size_t i = 0; i < rec->n; i++)
		size += isfinite(ref[i]) ? fabs(ref[i]) / (double)rec->n : 0;
	for (size_t i = 0; i < rec->n; i++) {
		double limit = LIMIT_SPOT * unit * (fabs(ref[i]) + size);
		size_t at = first + i;
		if (isfinite(rec->v[i]) && fabs(rec->v[i] - ref[i]) <= limit)
			continue;
		s->first = s->bad == 0 ? at : s->first;
		s->row &= at / len == s->first / len;
		s->column &= at % len == s->first % len;
		s->bad++;
	}
}

const char *
acc_cause_place(struct acc_arena *mem, const struct acc_spots *s)
{
	if (s->bad == 0 || s->bad * 2 >= s->seen)
		return NULL;
	if (s->bad == 1)
		return acc_say(mem, "one element is wrong: number %zu", s->first);
	if (s->row && s->bad * 2 > s->len)
		return acc_say(mem, "one row is wrong: number %zu", s->first / s->len);
	if (s->column && s->bad * 2 > s->seen / s->len)
		return acc_say(mem, "one column is wrong: number %zu", s->first % s->len);
	return acc_say(mem, "%zu of %zu elements are wrong, the first is number %zu", s->bad,
		s->seen, s->first);
}

const char *
acc_cause_plain(struct acc_arena *mem, const struct acc_dense *rec, const double *ref)
{
	size_t zero = 0, nonzero = 0, full = 0, wild = 0, swallowed = 0;
	double max = acc_max_of(rec->dtype);
	if (!acc_is_float(rec->dtype))
		return NULL;
	for (size_t i = 0; i < rec->n; i++) {
		zero += rec->v[i] == 0;
		nonzero += ref[i] != 0;
		full += fabs(rec->v[i]) == max && !(fabs(ref[i]) <= max);
		wild += !isfinite(rec->v[i]) && fabs(ref[i]) < max;
		swallowed += isfinite(rec->v[i]) && isnan(ref[i]);
	}
	if (zero == rec->n && nonzero > 0)
		return "all zeros";
	if (swallowed > 0 && wild == 0)
		return "NaN is swallowed: it went in, and a number came out";
	if (full > 0)
		return "clamped to the largest number of its dtype";
	if (wild > 0)
		return "NaN or Inf from finite numbers";
	return scaled(mem, rec, ref);
}

const char *
acc_cause_forward(struct acc_trial *t, const struct acc_formed *f, uint32_t k)
{
	const struct acc_dense *rec = &f->rec[k];
	const double *ref = f->ref[k].v;
	const char *s = NULL;
	t->explained = false;
	t->changed.text[0] = '\0';
	/* An optimizer's are as many as its parameters, and alike. */
	if ((k == 0 || strcmp(t->r.op->cls, "optimizer") == 0) && acc_is_float(rec->dtype))
		s = acc_cause_argument(t, k, rec, ref);
	t->explained &= s != NULL;
	s = s != NULL ? s : acc_cause_sum(t, f, k);
	return s != NULL ? s : acc_cause_plain(t->r.mem, rec, ref);
}

bool
acc_cause_rough(const struct acc_dense *rec, const double *ref)
{
	double unit = acc_unit(rec->dtype), off = acc_residue(rec, ref, 1, NULL) * unit;
	return !acc_unit_low(unit) && off > LIMIT_ROUGH_LEAST && off < LIMIT_ROUGH_MOST;
}
