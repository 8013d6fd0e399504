/* Comparing sides that f32 cannot hold: f64, integers, real against complex. Integers are
 * subtracted exactly. */
#include "two.h"

#include <math.h>
#include <stdlib.h>

struct work {
	double a[ACC_BLOCK], b[ACC_BLOCK], d[ACC_BLOCK];
	/* As codes of the coarser dtype, or as integers: magnitude and sign. */
	uint64_t ma[ACC_BLOCK], mb[ACC_BLOCK], ulp[ACC_BLOCK];
	bool na[ACC_BLOCK], nb[ACC_BLOCK];
	bool integers;
};

/* Components [off, off + n) of one side. */
static void
load(enum acc_dtype t, const uint8_t *p, bool real, size_t off, size_t n, double *out)
{
	const size_t size = acc_dtypes[t].size;
	if (!real) {
		acc_wide_load(t, p + off * size, n, out);
		return;
	}
	acc_wide_load(t, p + off / 2 * size, n / 2, out);
	for (size_t i = n / 2; i-- > 0;) {
		out[2 * i] = out[i];
		out[2 * i + 1] = 0;
	}
}

/* Magnitudes and signs of one side's block, whose numbers are x. */
static void
codes(const struct acc_job *j, enum acc_dtype t, const uint8_t *p, size_t off, const double *x,
	size_t n, uint64_t *m, bool *neg)
{
	p += off * acc_dtypes[t].size;
	if (j->coarse == ACC_F64) {
		memcpy(m, x, n * sizeof *m);
		for (size_t i = 0; i < n; i++) {
			neg[i] = m[i] >> 63;
			m[i] &= INT64_MAX;
		}
	} else if (j->coarse != ACC_NODTYPE) {
		for (size_t i = 0; i < n; i++) {
			m[i] = acc_round_code(j->coarse, j->cc, x[i]);
			neg[i] = signbit(x[i]);
		}
	} else if (t == ACC_U64) {
		memcpy(m, p, n * sizeof *m);
		memset(neg, 0, n);
	} else if (t == ACC_I64) {
		memcpy(m, p, n * sizeof *m);
		for (size_t i = 0; i < n; i++) {
			neg[i] = m[i] >> 63;
			m[i] = neg[i] ? 0 - m[i] : m[i];
		}
	} else { /* exact in a double */
		for (size_t i = 0; i < n; i++) {
			neg[i] = x[i] < 0;
			m[i] = (uint64_t)(int64_t)fabs(x[i]);
		}
	}
}

static void
distances(struct work *w, size_t n, struct acc_ulps *u)
{
	uint64_t any = 0, max = 0;
	uint32_t same = 0;
	*u = (struct acc_ulps){0};
	for (size_t i = 0; i < n; i++) {
		uint64_t x = w->ma[i], y = w->mb[i];
		uint64_t near = x > y ? x - y : y - x, far = x + y;
		far = far < x ? UINT64_MAX : far; /* i64 against u64 */
		uint64_t d = w->na[i] == w->nb[i] ? near : far;
		w->ulp[i] = d;
		same += (x == y) & (w->na[i] == w->nb[i]);
		max = d > max ? d : max;
		any |= d;
	}
	u->same = same;
	u->max = max;
	if (any <= 1) {
		uint32_t ones = 0;
		for (size_t i = 0; i < n; i++)
			ones += (uint32_t)w->ulp[i];
		u->bin[0] = (uint32_t)n - ones;
		u->bin[1] = ones;
		return;
	}
	for (size_t i = 0; i < n; i++)
		u->bin[w->ulp[i] == 0 ? 0 : 64 - __builtin_clzll(w->ulp[i])]++;
}

/* a - b, exact before it becomes a double. */
static double
difference(const struct work *w, size_t i)
{
	if (!w->integers || w->ulp[i] == UINT64_MAX)
		return w->a[i] - w->b[i];
	bool less = w->na[i] != w->nb[i] ? w->na[i]
					 : (w->ma[i] < w->mb[i]) != w->na[i];
	double d = (double)w->ulp[i];
	return less ? -d : d;
}

static void
block(struct acc_job *j, struct work *w, size_t off, size_t n)
{
	struct acc_kinds k = {0};
	struct acc_ulps u;
	struct acc_blk2 r;
	struct acc_two *o = j->out;
	load(j->ta, j->a, j->real_a, off, n, w->a);
	load(j->tb, j->b, j->real_b, off, n, w->b);
	for (size_t i = 0; i < n; i++)
		k.used += w->a[i] * 0 + w->b[i] * 0 == 0; /* both finite */
	for (size_t i = 0; k.used < n && i < n; i++)
		if (!isfinite(w->a[i]) || !isfinite(w->b[i])) {
			acc_kinds_add(&k, w->a[i], w->b[i]);
			w->a[i] = w->b[i] = 0;
		}
	codes(j, j->ta, j->a, off, w->a, n, w->ma, w->na);
	codes(j, j->tb, j->b, off, w->b, n, w->mb, w->nb);
	distances(w, n, &u);
	const size_t padded = (n + 15) / 16 * 16;
	for (size_t i = 0; i < n; i++)
		w->d[i] = difference(w, i);
	for (size_t i = n; i < padded; i++)
		w->a[i] = w->b[i] = w->d[i] = 0;
	j->row->wide_two(w->a, w->b, w->d, padded, j->opt, &r);
	acc_job_add(j, &r, &k, padded - k.used);
	acc_job_add_ulps(j, &u, &k, n - k.used);
	if (!(r.maxd > o->max_absd || r.maxr > o->max_rel || r.maxe > o->max_e ||
		u.max > o->ulp_max))
		return;
	for (size_t i = 0; i < n; i++) {
		double d = fabs(w->d[i]), rel = acc_wide_r(w->d[i], w->b[i]);
		double e = acc_wide_e(w->d[i], w->b[i], j->opt->scale);
		uint64_t at = acc_job_place(j, off, i);
		if (d > o->max_absd) {
			o->max_absd = d;
			o->max_absd_at = at;
		}
		if (rel > o->max_rel) {
			o->max_rel = rel;
			o->max_rel_at = at;
		}
		if (e > o->max_e) {
			o->max_e = e;
			o->max_e_at = at;
		}
		if (w->ulp[i] > o->ulp_max) {
			o->ulp_max = w->ulp[i];
			o->ulp_max_at = at;
		}
	}
}

void
acc_two_wide(struct acc_job *j, size_t n)
{
	struct work w;
	w.integers = j->coarse == ACC_NODTYPE;
	for (size_t off = 0; off < n; off += ACC_BLOCK)
		block(j, &w, off, n - off < ACC_BLOCK ? n - off : ACC_BLOCK);
}
