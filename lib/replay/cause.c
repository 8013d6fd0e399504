/* What an error looks like: the signatures of common faults. */
#include "replay/impl.h"

/* Root mean square of d = rec - (scale ref + shift), in units of rounding. */
static double
distance(const struct acc_dense *rec, const double *ref, double scale, const double *shift)
{
	double unit = acc_unit_of(rec->dtype), sum = 0, size = 0;
	for (size_t i = 0; i < rec->n; i++) {
		double y = scale * ref[i] + (shift == NULL ? 0 : shift[i]);
		sum += (rec->v[i] - y) * (rec->v[i] - y);
		size += y * y;
	}
	return size > 0 && isfinite(sum) ? sqrt(sum / size) / unit : INFINITY;
}

/* Nearer than this, it is what was computed. */
static bool
near(const struct acc_dense *rec, double by)
{
	return by < (acc_unit_of(rec->dtype) > 0x1p-20 ? 6 : 200);
}

static const char *
scaled(struct acc_arena *mem, const struct acc_dense *rec, const double *ref)
{
	double xy = 0, yy = 0;
	for (size_t i = 0; i < rec->n; i++) {
		xy += rec->v[i] * ref[i];
		yy += ref[i] * ref[i];
	}
	double c = xy / yy;
	if (rec->n < 3 || !(yy > 0) || !isfinite(c) || c == 0 || fabs(c - 1) < 1e-3 ||
		!near(rec, distance(rec, ref, c, NULL)))
		return NULL;
	if (fabs(c + 1) < 1e-3)
		return "the sign is turned round";
	return acc_arena_printf(mem, fabs(c) > 1 ? "a factor of %.4g too much (a sum for a mean,"
		" a division that is missing)" : "a factor of %.4g (a scale, or a mean for a sum)", c);
}

/* Where the errors are: one element, one row, one column. */
static const char *
place(struct acc_arena *mem, const struct acc_dense *rec, const double *ref)
{
	size_t len = rec->ndim == 0 ? 1 : (size_t)rec->shape[rec->ndim - 1], bad = 0, first = 0;
	bool row = true, column = true;
	double unit = acc_unit_of(rec->dtype), size = 0;
	for (size_t i = 0; i < rec->n; i++)
		size += isfinite(ref[i]) ? fabs(ref[i]) / (double)rec->n : 0;
	for (size_t i = 0; i < rec->n; i++) {
		double limit = 64 * unit * (fabs(ref[i]) + size);
		if (isfinite(rec->v[i]) && fabs(rec->v[i] - ref[i]) <= limit)
			continue;
		first = bad == 0 ? i : first;
		row &= i / len == first / len;
		column &= i % len == first % len;
		bad++;
	}
	if (bad == 0 || bad * 2 >= rec->n)
		return NULL;
	if (bad == 1)
		return acc_arena_printf(mem, "one element is wrong: number %zu", first);
	if (row && bad * 2 > len)
		return acc_arena_printf(mem, "one row is wrong: number %zu", first / len);
	if (column && bad * 2 > rec->n / len)
		return acc_arena_printf(mem, "one column is wrong: number %zu", first % len);
	return acc_arena_printf(mem, "%zu of %zu elements are wrong, the first is number %zu", bad,
		rec->n, first);
}

const char *
acc_cause_plain(struct acc_arena *mem, const struct acc_dense *rec, const double *ref)
{
	size_t zero = 0, nonzero = 0, full = 0, wild = 0;
	double max = acc_max_of(rec->dtype);
	if (!acc_is_float(rec->dtype))
		return place(mem, rec, ref);
	for (size_t i = 0; i < rec->n; i++) {
		zero += rec->v[i] == 0;
		nonzero += ref[i] != 0;
		full += fabs(rec->v[i]) == max && !(fabs(ref[i]) <= max);
		wild += !isfinite(rec->v[i]) && fabs(ref[i]) < max;
	}
	if (zero == rec->n && nonzero > 0)
		return "all zeros";
	if (full > 0)
		return "clamped to the largest number of its dtype";
	if (wild > 0)
		return "NaN or Inf from finite numbers";
	const char *s = scaled(mem, rec, ref);
	return s != NULL ? s : place(mem, rec, ref);
}

/* Evaluate with one argument changed: is that what was recorded? */
static bool
matches(struct acc_trial *t, const char *name, struct acc_value v, const struct acc_dense *rec)
{
	struct acc_replay *r = &t->r;
	struct acc_value *old = r->kw, *kw = acc_alloc(r->mem, (r->nkw + 1) * sizeof *kw);
	struct acc_dense *out = acc_trial_outputs(t, false);
	if (kw == NULL || out == NULL)
		return false;
	v.name = acc_str(name);
	kw[0] = v;
	if (r->nkw > 0)
		memcpy(kw + 1, old, r->nkw * sizeof *kw);
	r->kw = kw;
	r->nkw++;
	bool good = acc_replay_eval(r, out) == 0 && near(rec, distance(rec, out[0].v, 1, NULL));
	r->kw = old;
	r->nkw--;
	r->why = NULL;
	return good;
}

static bool
has(const struct acc_replay *r, const char *name)
{
	const char *p = strstr(r->op->sig, name);
	return p != NULL && (p == r->op->sig || p[-1] == ' ' || p[-1] == '|');
}

static bool
transposed(struct acc_trial *t, const char *name, const struct acc_dense *rec)
{
	const struct acc_value *v = has(&t->r, name) ? acc_arg(&t->r, name) : NULL;
	if (v == NULL || v->type != ACC_A_TENSOR || v->t->ndim < 2)
		return false;
	struct acc_dense d = *v->t;
	size_t n = (size_t)d.shape[d.ndim - 1];
	if (d.shape[d.ndim - 2] != d.shape[d.ndim - 1] || (d.v = acc_doubles(&t->r, d.n)) == NULL)
		return false;
	for (size_t i = 0; i < d.n; i++)
		d.v[i] = v->t->v[i / (n * n) * n * n + i % n * n + i / n % n];
	return matches(t, name, (struct acc_value){.type = ACC_A_TENSOR, .t = &d}, rec);
}

/* A mask whose edge lies one column further. */
static bool
shifted(struct acc_trial *t, int by, const struct acc_dense *rec)
{
	const struct acc_value *v = has(&t->r, "mask") ? acc_arg(&t->r, "mask") : NULL;
	if (v == NULL || v->type != ACC_A_TENSOR || v->t->ndim == 0 || v->t->n == 0)
		return false;
	struct acc_dense d = *v->t;
	int64_t n = d.shape[d.ndim - 1];
	if ((d.v = acc_doubles(&t->r, d.n)) == NULL)
		return false;
	for (int64_t i = 0; i < (int64_t)d.n; i++) {
		int64_t c = i % n + by;
		d.v[i] = v->t->v[c < 0 || c >= n ? i : i + by];
	}
	return matches(t, "mask", (struct acc_value){.type = ACC_A_TENSOR, .t = &d}, rec);
}

static const char *
by_argument(struct acc_trial *t, const struct acc_dense *rec)
{
	static const double eps[] = {1e-5, 1e-6, 1e-12, 1e-8, 1e-3, 1e-2};
	static const struct {
		const char *value, *text;
	} gelu[] = {{"tanh", "the tanh form of gelu in place of erf"},
		{"none", "the erf form of gelu in place of tanh"}};
	struct acc_replay *r = &t->r;
	for (size_t i = 0; has(r, "approximate") && i < 2; i++)
		if (matches(t, "approximate",
			    (struct acc_value){.type = ACC_A_TEXT, .s = acc_str(gelu[i].value)}, rec))
			return gelu[i].text;
	for (size_t i = 0; has(r, "eps") && i < sizeof eps / sizeof *eps; i++)
		if (matches(t, "eps", (struct acc_value){.type = ACC_A_FLOAT, .f = eps[i]}, rec))
			return acc_arena_printf(r->mem, "as if eps were %g", eps[i]);
	if (has(r, "bias") && acc_arg(r, "bias") != NULL &&
		matches(t, "bias", (struct acc_value){.type = ACC_A_NONE}, rec))
		return "the bias is missing";
	if (transposed(t, "weight", rec) || transposed(t, "mat2", rec))
		return "the second operand is transposed";
	for (int by = -1; has(r, "diagonal") && by <= 1; by += 2) {
		int64_t d = 0;
		if (acc_arg_int(r, "diagonal", &d) >= 0 && matches(t, "diagonal",
			    (struct acc_value){.type = ACC_A_INT, .i = d + by}, rec))
			return "the mask is off by one";
	}
	if (shifted(t, 1, rec) || shifted(t, -1, rec))
		return "the mask is off by one";
	for (int64_t d = -1; has(r, "dim") && d >= -(int64_t)rec->ndim; d--)
		if (matches(t, "dim", (struct acc_value){.type = ACC_A_INT, .i = d}, rec))
			return acc_arena_printf(r->mem, "along dimension %lld", (long long)d);
	return NULL;
}

const char *
acc_cause_forward(struct acc_trial *t, uint32_t k)
{
	const struct acc_dense *rec = &t->out[k]->d;
	const double *ref = t->ref[k].v;
	const char *s = NULL;
	if (t->large)
		return NULL;
	if (k == 0 && acc_is_float(rec->dtype))
		s = by_argument(t, rec);
	if (s == NULL)
		s = acc_cause_plain(t->r.mem, rec, ref);
	if (s != NULL || acc_unit_of(rec->dtype) > 0x1p-20)
		return s;
	/* As far off as 16 bits on the way are, everywhere. */
	double off = distance(rec, ref, 1, NULL) * acc_unit_of(rec->dtype);
	return off > 0x1p-14 && off < 0x1p-7 ? "computed in 16 bits on the way (of its terms, its"
		" sums or its input)" : NULL;
}
