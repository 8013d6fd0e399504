/* From a measured record to the few numbers that a judge compares.
 *
 * The error e = |a - b| / (|b| + s) comes from accmetric (m.err_rms, m.err_max) where it saw
 * the elements. Of statistics it is the largest over max, min, mean and norm, where the root
 * mean square of the tensor is part of the scale of max, min and mean: those may be near zero
 * though the tensor is not. Checksums are equal (0) or not (infinite). */
#include "judge/first_bad.h"
#include "judge/picked.h"

#include <math.h>

static enum acc_io
io_of(const struct acc_val *v)
{
	static const char *const names[] = {"", "in", "kw", "param", "out", "grad"};
	struct acc_str s;
	if (acc_as_text(v, &s))
		for (int i = ACC_IO_IN; i <= ACC_IO_GRAD; i++)
			if (acc_str_is(s, names[i]))
				return (enum acc_io)i;
	return ACC_IO_NONE;
}

static enum acc_dtype
dtype_of(const struct acc_val *v)
{
	struct acc_str s;
	return acc_as_text(v, &s) ? acc_dtype_find(s) : ACC_NODTYPE;
}

/* Of a side's tensor, as its operator computed it: some recorders keep bf16 in files of f32. */
static enum acc_dtype
computed_in(const struct acc_val *const *v)
{
	enum acc_dtype t = dtype_of(v[DTYPE]), raw = dtype_of(v[RAW]);
	bool floats = t != ACC_NODTYPE && raw != ACC_NODTYPE && acc_dtype_of(t)->cls == 'F' &&
		      acc_dtype_of(raw)->cls == 'F';
	return floats && acc_dtype_of(raw)->eps > acc_dtype_of(t)->eps ? raw : t;
}

static bool
empty(const struct acc_val *shape)
{
	uint64_t n;
	return shape != NULL && shape->type == ACC_V_INTS && acc_count(shape->ints, shape->n, &n) &&
	       n == 0;
}

/* What the values are, by the strongest evidence that there is. A checksum may have been taken late, see late.c. */
static uint64_t
identity(const struct acc_val *const *v, enum acc_dtype t)
{
	struct {
		uint64_t how, dtype, n;
		double stat[4];
	} k = {.dtype = (uint64_t)t};
	static const enum picked_side texts[] = {S_HASH, CRC32, MD5, XOR};
	const bool known = !isnan(acc_picked_f64(v[MAX])) && !isnan(acc_picked_f64(v[NORM]));
	struct acc_str s;
	for (size_t i = 0; i < (known ? 1 : sizeof texts / sizeof *texts); i++)
		if (acc_as_text(v[texts[i]], &s) && s.n > 0) {
			k.how = acc_hash(s.p, s.n);
			return acc_hash(&k, sizeof k) | 1;
		}
	k.n = acc_picked_count(v[SHAPE]);
	for (int i = 0; i < 4; i++)
		k.stat[i] = acc_picked_f64(v[MAX + i]) + 0.0; /* -0.0 is 0.0 here */
	return known ? acc_hash(&k, sizeof k) | 1 : 0;
}

static bool
is_exact(enum acc_dtype t)
{
	return t != ACC_NODTYPE && strchr("IUB", acc_dtype_of(t)->cls) != NULL;
}

/* A recorder may leave out the views and transpositions between two calls. What comes out of them has the extremes
 * and the norm of what went in, the latter but for the order in which it was summed. */
static uint64_t
in_any_order(const struct acc_val *const *v, enum acc_dtype t)
{
	enum { DIGITS = 30 }; /* bits of the norm; the rest may be rounding of up to 2^20 sums */
	int scale;
	const double norm = frexp(acc_picked_f64(v[S_NORM]), &scale);
	const struct {
		uint64_t dtype, n;
		double low, high, norm;
	} k = {(uint64_t)t, acc_picked_count(v[SHAPE]), acc_picked_f64(v[S_MIN]) + 0.0,
		acc_picked_f64(v[S_MAX]) + 0.0, ldexp(rint(ldexp(norm, DIGITS)), scale - DIGITS)};
	return k.n > 1 && !is_exact(t) && isfinite(k.low) && isfinite(k.high) && isfinite(k.norm) &&
			       k.low != k.high
		       ? acc_hash(&k, sizeof k) | 1
		       : 0;
}

static bool
is_bool(int t)
{
	return t != ACC_NODTYPE && acc_dtype_of(t)->cls == 'B';
}

static bool
text_eq(const struct acc_val *a, const struct acc_val *b)
{
	return a != NULL && b != NULL && a->type == ACC_V_TEXT && acc_val_eq(a, b);
}

/* See acc_item.slope. The differences of squares are of doubles, and those of sums of many. */
static void
regress(struct acc_item *it, const struct acc_picked *f)
{
	double a = acc_picked_f64(f->side[ACC_A][S_NORM]),
	       b = acc_picked_f64(f->side[ACC_B][S_NORM]);
	double d = it->rmse * sqrt((double)it->count);
	if (!(b > 0) || !isfinite(a) || !isfinite(b) || !isfinite(d))
		return;
	/* Who keeps no more digits than f32 has may keep fewer, and their difference is lost. */
	if (a == (float)a && b == (float)b && a != b)
		return;
	double slope = ((a - b) * (a + b) - d * d) / (2 * b * b);
	it->slope = (float)fabs(slope);
	it->rest = (float)sqrt(fmax(0, d * d / (b * b) - slope * slope));
	it->few = (float)(it->b_max / b);
}

static void
by_tensor(struct acc_item *it, const struct acc_picked *f)
{
	const struct acc_val *const *m = f->own;
	it->measure = ACC_BY_TENSOR;
	it->rmse = (float)acc_picked_f64(m[M_RMSE]);
	it->max_abs = (float)acc_picked_f64(m[M_MAX_ABS]);
	it->max_rel = (float)acc_picked_f64(m[M_MAX_REL]);
	double nonfinite = acc_picked_f64(m[M_NONFINITE]), same = acc_picked_f64(m[M_SAME]);
	if (text_eq(f->side[ACC_A][S_HASH], f->side[ACC_B][S_HASH]) &&
		it->dtype[ACC_A] == it->dtype[ACC_B]) {
		it->rms = it->max = 0;
	} else if (nonfinite > 0) {
		it->nonfinite = true;
		it->rms = it->max = INFINITY;
	} else if (it->exact) {
		bool differ = same < 1 || it->max_abs > 0;
		it->rms = !differ ? 0 : same < 1 ? (float)(1 - same) : 1;
		it->max = differ ? 1 : 0;
	} else {
		it->rms = (float)acc_picked_f64(m[M_ERR_RMS]);
		it->max = (float)acc_picked_f64(m[M_ERR_MAX]);
		/* A single 0 has no size that an error could be relative to. */
		if (it->ndim == 0 && it->b_max == 0 && isfinite(it->max_abs))
			it->rms = it->max = it->max_abs;
		if (it->max_abs <= acc_item_cast(it))
			it->left = fminf(it->rms, (float)acc_unit(ACC_F16));
		/* A measured NaN is never good. */
		if (isnan(it->rms))
			it->rms = INFINITY;
		if (isnan(it->max))
			it->max = it->rms;
		regress(it, f);
	}
}

/* Statistics hold no count of saturated elements, but a maximum. */
static bool
full(const struct acc_val *const *v, double nsat, int dtype)
{
	if (dtype == ACC_NODTYPE || !(acc_dtype_of(dtype)->max > 0))
		return false;
	if (v[S_SAT] != NULL)
		return nsat > 0;
	return fabs(acc_picked_f64(v[MAX])) == acc_dtype_of(dtype)->max ||
	       fabs(acc_picked_f64(v[MIN])) == acc_dtype_of(dtype)->max;
}

static void
overflow_flags(struct acc_item *it, const struct acc_picked *f)
{
	double n[2][4] = {{0}};
	for (int s = 0; s < 2; s++) {
		for (int i = 0; i < 4; i++) {
			double x = acc_picked_f64(f->side[s][S_NAN + i]);
			n[s][i] = isnan(x) ? 0 : x;
		}
		for (int i = MAX; i <= MIN; i++) {
			const struct acc_val *v = f->side[s][i];
			if (f->side[s][S_NAN] != NULL || !acc_picked_is_f64(v))
				continue;
			n[s][0] += isnan(acc_picked_f64(v));
			n[s][1] += isinf(acc_picked_f64(v)) != 0;
		}
	}
	it->a_nan = n[ACC_A][0] > 0;
	it->a_inf = n[ACC_A][1] + n[ACC_A][2] > 0;
	it->a_known = it->exact || f->side[ACC_A][S_NAN] != NULL ||
		      (acc_picked_is_f64(f->side[ACC_A][MAX]) &&
			      acc_picked_is_f64(f->side[ACC_A][MIN]));
	bool b_inf = n[ACC_B][1] + n[ACC_B][2] > 0, b_nan = n[ACC_B][0] > 0;
	it->b_overflow = (b_inf || b_nan) && !it->a_nan && !it->a_inf;
	bool sat = full(f->side[ACC_A], n[ACC_A][3], it->dtype[ACC_A]);
	it->saturated = it->b_overflow && sat;
	it->a_full = sat && (it->dtype[ACC_A] == ACC_F16 || it->dtype[ACC_A] == ACC_BF16);
}

/* "npu:0": the two sides run on different devices, that is the point. */
static bool
names_device(const struct acc_val *v)
{
	static const char *const devices[] = {"*npu*", "*cuda*", "*cpu*", "*gpu*"};
	struct acc_str s;
	if (!acc_as_text(v, &s))
		return false;
	for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
		if (acc_glob(devices[i], s))
			return true;
	return false;
}

/* Of ranks that are one of several of the other side's: is it a number that so many ranks multiply, or one
 * that is each side's own, as numbers of ranks are? */
static bool
of_ranks(const struct acc_val *fold, double x, double y)
{
	struct acc_str s = acc_picked_text(fold);
	const double ranks = acc_of_ranks(s);
	if (acc_str_is(s, "Own()"))
		return true;
	if (!(ranks > 1) || !isfinite(x) || !isfinite(y) || !(fmin(x, y) > 0))
		return false;
	const double n = fmax(x, y) / fmin(x, y);
	return n <= ranks && n == floor(n) && fmod(ranks, n) == 0;
}

/* The same of a list, such as a shape: of each number that is not the other side's. */
static bool
list_of_ranks(const struct acc_val *fold, const struct acc_val *a, const struct acc_val *b)
{
	bool equal = a != NULL && b != NULL && a->type == ACC_V_INTS && b->type == ACC_V_INTS &&
		     a->n == b->n;
	for (uint32_t i = 0; equal && i < a->n; i++)
		equal = a->ints[i] == b->ints[i] ||
			of_ranks(fold, (double)a->ints[i], (double)b->ints[i]);
	return equal;
}

static void
argument(struct acc_item *it, const struct acc_picked *f)
{
	const struct acc_val *a = f->side[ACC_A][VALUE], *b = f->side[ACC_B][VALUE];
	double x = acc_picked_f64(a), y = acc_picked_f64(b);
	it->a_known = true;
	it->a_nan = acc_picked_is_f64(a) && isnan(x);
	it->a_inf = acc_picked_is_f64(a) && isinf(x);
	it->a_full = acc_picked_is_f64(a) && (fabs(x) == acc_dtype_of(ACC_F16)->max ||
						     fabs(x) >= acc_dtype_of(ACC_BF16)->max);
	if (it->sides != 3)
		return;
	bool equal = false;
	if (!acc_as_bool(f->own[M_EQUAL], &equal)) {
		if (a == NULL || b == NULL)
			return;
		equal = acc_val_eq(a, b);
	}
	equal |= names_device(a) && names_device(b);
	for (int s = 0; s < 2; s++)
		equal |= of_ranks(f->side[s][FOLD], x, y) || list_of_ranks(f->side[s][FOLD], a, b);
	it->measure = ACC_BY_VALUE;
	it->rms = equal ? 0 : INFINITY;
	if (!equal && acc_picked_is_f64(a) && acc_picked_is_f64(b) && isfinite(x) && isfinite(y) &&
		(a->type == ACC_V_F64 || b->type == ACC_V_F64))
		it->rms = y == 0 ? INFINITY : (float)(fabs(x - y) / fabs(y));
	it->max = it->rms;
}

float
acc_audit_excess(const struct acc_val *err, const struct acc_val *err_max,
	const struct acc_val *limit, const struct acc_val *limit_max, const struct acc_val *slope,
	const struct acc_val *limit_slope)
{
	double rms = acc_picked_f64(err) / acc_picked_f64(limit),
	       max = acc_picked_f64(err_max) / acc_picked_f64(limit_max);
	double factor = slope == NULL || limit_slope == NULL
				? 0
				: acc_picked_f64(slope) / acc_picked_f64(limit_slope);
	if (factor > 1)
		max = fmax(max, LIMIT_MARGIN * factor);
	return isnan(rms) || isnan(max) ? NAN : (float)(rms > max ? rms : max);
}

void
acc_item_own(struct acc_item *it, const struct acc_val *err, const struct acc_val *err_max)
{
	double unit = acc_unit((enum acc_dtype)it->dtype[ACC_A]);
	it->own_rms = (float)(acc_picked_f64(err) * unit);
	it->own_max = (float)(acc_picked_f64(err_max) * unit);
}

void
acc_item_how(struct acc_item *it, int side, const struct acc_val *form, const struct acc_val *round)
{
	static const char *const forms[] = {"", "tf32", "hf32", "bf16"};
	static const char *const rounds[] = {"", "flushed", "half away", "by chance"};
	const struct acc_str f = acc_picked_text(form), r = acc_picked_text(round);
	for (uint8_t i = 1; i < 4; i++) {
		if (acc_str_is(f, forms[i]))
			it->form = side == ACC_A ? i : ACC_NOFORM;
		if (acc_str_is(r, rounds[i]))
			it->round[side] = i;
	}
}

void
acc_item_open(struct acc_item *it, const struct acc_val *left, const struct acc_val *open,
	bool beside)
{
	it->open = acc_picked_f64(open) > 0 ||
		   (!beside && acc_picked_f64(left) > 0 && it->nonfinite);
}

static void
audited(struct acc_item *it, int side, const struct acc_val *const *v)
{
	bool tried = v[AUDIT_OK] != NULL || v[AUDIT_SKIP] != NULL;
	it->audited |= (uint8_t)(tried << side);
	it->audit[side] = acc_audit_excess(v[AUDIT_ERR], v[AUDIT_MAX], v[AUDIT_LIMIT],
		v[AUDIT_LIMIT_MAX], v[AUDIT_SLOPE], v[AUDIT_LIMIT_SLOPE]);
	it->doubted |= v[AUDIT_DOUBT] != NULL;
	if (side == ACC_A)
		acc_item_own(it, v[AUDIT_ERR], v[AUDIT_MAX]);
}

/* Are all statistics equal that the recorder wrote? Of integers these are the extremes. */
static bool
statistics_equal(const struct acc_val *const *a, const struct acc_val *const *b)
{
	bool equal = acc_picked_is_f64(a[MAX]) && acc_picked_is_f64(a[MIN]);
	for (int i = MAX; i <= NORM; i++) {
		const double x = acc_picked_f64(a[i]), y = acc_picked_f64(b[i]);
		equal &= acc_picked_is_f64(a[i]) == acc_picked_is_f64(b[i]) &&
			 (x == y || (isnan(x) && isnan(y)));
	}
	return equal;
}

static void
tensors(struct acc_item *it, const struct acc_picked *f)
{
	const struct acc_val *shape = f->side[f->has[ACC_A] ? ACC_A : ACC_B][SHAPE];
	if (shape != NULL && shape->type == ACC_V_INTS && shape->n < 255)
		it->ndim = (uint8_t)shape->n;
	const int64_t last = shape != NULL && shape->type == ACC_V_INTS && shape->n > 0
				     ? shape->ints[shape->n - 1]
				     : 1;
	it->row = last > 0 && last <= UINT32_MAX ? (uint32_t)last : 1;
	overflow_flags(it, f);
	for (int s = 0; s < 2; s++)
		audited(it, s, f->side[s]);
	for (int s = 0; s < 2; s++)
		acc_item_how(it, s, f->side[s][AUDIT_FORM], f->side[s][AUDIT_ROUND]);
	for (int s = 0; s < 2; s++)
		if (f->has[s] && f->tensor[s])
			it->id[s] = identity(f->side[s], it->dtype[s]);
	if (f->has[ACC_A] && f->tensor[ACC_A])
		it->turned = in_any_order(f->side[ACC_A], it->dtype[ACC_A]);
	double norm = acc_picked_f64(f->side[ACC_B][S_NORM]);
	it->count = acc_picked_count(f->side[ACC_B][SHAPE]);
	if (it->count > 0 && isfinite(norm))
		it->b_rms = (float)(norm / sqrt((double)it->count));
	int low = f->side[ACC_A][S_MIN] != NULL ? S_MIN : MIN, high = low == MIN ? MAX : S_MAX;
	it->a_flat = acc_picked_is_f64(f->side[ACC_A][low]) &&
		     acc_picked_is_f64(f->side[ACC_A][high]) &&
		     acc_picked_f64(f->side[ACC_A][low]) == acc_picked_f64(f->side[ACC_A][high]);
	it->b_max = (float)fmax(fabs(acc_picked_f64(f->side[ACC_B][S_MIN])),
		fabs(acc_picked_f64(f->side[ACC_B][S_MAX])));
	if (it->sides != 3 || !f->tensor[ACC_A] || !f->tensor[ACC_B])
		return;
	bool equal;
	if (empty(f->side[ACC_A][SHAPE]) && empty(f->side[ACC_B][SHAPE])) {
		it->measure = ACC_BY_TENSOR; /* no element differs */
		it->rms = it->max = 0;
		return;
	}
	/* Numbers only: under a preset a metric may be a text that says why it is none. */
	if (acc_picked_is_f64(f->own[M_ERR_RMS]) || acc_picked_is_f64(f->own[M_NONFINITE]))
		by_tensor(it, f);
	else if (acc_as_bool(f->own[M_EQUAL], &equal) && !equal &&
		 statistics_equal(f->side[ACC_A], f->side[ACC_B])) {
		acc_item_by_statistics(it, f);
		it->late = true;
	} else if (acc_as_bool(f->own[M_EQUAL], &equal)) {
		it->measure = ACC_BY_SUM;
		it->rms = it->max = equal ? 0 : INFINITY;
		it->blind = f->side[ACC_A][CRC32] == NULL && f->side[ACC_A][MD5] == NULL &&
			    f->side[ACC_A][XOR] != NULL;
	} else
		acc_item_by_statistics(it, f);
	const struct acc_val *open = f->side[ACC_A][AUDIT_OPEN];
	acc_item_open(it, f->side[ACC_A][AUDIT_LEFT], open, open != NULL);
	/* What one side hides by bools, the other does by adding minus infinity: unless the numbers are
	 * the same, they are no two values of one thing. */
	if ((is_bool(it->dtype[ACC_A]) != is_bool(it->dtype[ACC_B])) && !(it->rms == 0)) {
		it->other_form = true;
		it->measure = ACC_UNMEASURED;
		it->rms = it->max = NAN;
		it->nonfinite = it->b_overflow = it->saturated = false;
	}
}

void
acc_item_measure(struct acc_item *it, const struct acc_picked *f)
{
	struct acc_str note = acc_picked_text(f->own[NOTE]);
	it->sides = (uint8_t)(f->has[ACC_A] | f->has[ACC_B] << 1);
	it->stat_abs = it->rms = it->left = it->max = it->rmse = it->max_abs = it->max_rel =
		it->b_rms = it->b_max = it->slope = it->rest = it->few = it->mean_off = NAN;
	it->audit[ACC_A] = it->audit[ACC_B] = it->own_rms = it->own_max = NAN;
	it->ndim = 255;
	it->broken = f->side[ACC_A][ERR] != NULL || f->side[ACC_B][ERR] != NULL ||
		     f->own[ERROR] != NULL;
	it->was_bad = f->own[BAD] != NULL;
	for (int s = 0; s < 2; s++) {
		it->dtype[s] = (int8_t)(f->has[s] ? computed_in(f->side[s]) : ACC_NODTYPE);
		if (f->has[s] && it->io == ACC_IO_NONE)
			it->io = io_of(f->side[s][IO]);
	}
	for (uint32_t i = 0; i < note.n; i++) {
		struct acc_str rest = {note.p + i, note.n - i};
		if (i == 0 || note.p[i - 1] == ',') {
			it->note_dtype |= acc_str_starts(rest, "dtype");
			it->note_shape |= acc_str_starts(rest, "shape");
		}
	}
	struct acc_str layout = acc_picked_text(f->own[M_LAYOUT]);
	if (memmem(layout.p, layout.n, "part(", 5) != NULL)
		it->part = layout.p[0] == 'a' ? 1 : 2;
	it->permuted = !it->note_shape && memmem(layout.p, layout.n, "permute", 7) != NULL;
	if (acc_picked_is_f64(f->own[M_REACH]))
		it->rounded = acc_is_rounded(acc_picked_f64(f->own[M_REACH]),
			acc_picked_f64(f->own[M_REACH_RMS]), acc_picked_f64(f->own[M_REACH_ALONG]),
			LIMIT_REACH);
	bool tensor = f->tensor[ACC_A] || f->tensor[ACC_B];
	it->kind = tensor ? ACC_ITEM_TENSOR : ACC_ITEM_ARG;
	it->exact = (!f->has[ACC_A] || is_exact(it->dtype[ACC_A])) &&
		    (!f->has[ACC_B] || is_exact(it->dtype[ACC_B]));
	if (tensor)
		tensors(it, f);
	else
		argument(it, f);
}
