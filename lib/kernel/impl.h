/* impl.h - the loops over a block, once for every instruction set
 *
 * The including file defines ROW (the name of its acc_row), ROW_NAME, ROW_USABLE, and from a
 * header of primitives: NF lanes of float in `vf` (and as many 32-bit lanes in `vi`), ND =
 * NF / 2 lanes of double in `vd`, masks over vf in `vm`, counters in `vc`. Lane i of 16 is
 * worked on in pass i / NF (or i / ND), so the same additions happen whatever the width.
 *
 * muladd(a, b, c) = a * b + c may be fused: it is used only where the product is exact.
 */
#include "row.h"

#include <math.h>

#ifdef __clang__
#define UNROLL4 _Pragma("unroll 4")
#else
#define UNROLL4 _Pragma("GCC unroll 4")
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

static double
min16(const float *x)
{
	float m = x[0];
	for (int i = 1; i < 16; i++)
		m = x[i] < m ? x[i] : m;
	return (double)m + 0.0; /* not -0 */
}

static double
max16(const float *x)
{
	float m = x[0];
	for (int i = 1; i < 16; i++)
		m = x[i] > m ? x[i] : m;
	return (double)m + 0.0;
}

static void
one(const float *x, size_t n, struct acc_blk1 *o)
{
	double sum[16], sumsq[16];
	float lo[16], hi[16];
	for (size_t g = 0; g < 16; g += ND) {
		vd s = d_set(0), q = s;
		for (size_t i = g; i < n; i += 16) {
			vd v = d_widen(x + i);
			s = d_add(s, v);
			q = d_muladd(v, v, q);
		}
		d_store(sum + g, s);
		d_store(sumsq + g, q);
	}
	o->zero = 0;
	for (size_t g = 0; g < 16; g += NF) {
		vf mn = f_load(x + g), mx = mn;
		vc zero = c_zero();
		for (size_t i = g; i < n; i += 16) {
			vf v = f_load(x + i);
			mn = f_min(mn, v);
			mx = f_max(mx, v);
			zero = c_add(zero, m_eq(v, f_set(0)));
		}
		f_store(lo + g, mn);
		f_store(hi + g, mx);
		o->zero += c_sum(zero);
	}
	o->sum = acc_fold(sum);
	o->sumsq = acc_fold(sumsq);
	o->min = min16(lo);
	o->max = max16(hi);
}

/* What is summed in double. */
static void
moments(const float *a, const float *b, size_t n, struct acc_blk2 *o)
{
	double s[7][16], maxd[16];
	for (size_t g = 0; g < 16; g += ND) {
		vd z = d_set(0), s0 = z, s1 = z, s2 = z, s3 = z, s4 = z, s5 = z, s6 = z, mx = z;
		for (size_t i = g; i < n; i += 16) {
			vd x = d_widen(a + i), y = d_widen(b + i), d = d_abs(d_sub(x, y));
			s0 = d_add(s0, x);
			s1 = d_muladd(x, x, s1);
			s2 = d_add(s2, y);
			s3 = d_muladd(y, y, s3);
			s4 = d_muladd(x, y, s4);
			s5 = d_add(s5, d);
			s6 = d_add(s6, d_mul(d, d)); /* 53 bits squared: not exact */
			mx = d_max(mx, d);
		}
		d_store(s[0] + g, s0);
		d_store(s[1] + g, s1);
		d_store(s[2] + g, s2);
		d_store(s[3] + g, s3);
		d_store(s[4] + g, s4);
		d_store(s[5] + g, s5);
		d_store(s[6] + g, s6);
		d_store(maxd + g, mx);
	}
	o->a.sum = acc_fold(s[0]);
	o->a.sumsq = acc_fold(s[1]);
	o->b.sum = acc_fold(s[2]);
	o->b.sumsq = acc_fold(s[3]);
	o->dot = acc_fold(s[4]);
	o->absd = acc_fold(s[5]);
	o->dd = acc_fold(s[6]);
	o->maxd = maxd[0];
	for (int i = 1; i < 16; i++)
		o->maxd = maxd[i] > o->maxd ? maxd[i] : o->maxd;
}

static inline vf
ratio_r(vf x, vf y)
{
	vf ay = f_abs(y);
	return f_keep(m_ne(ay, f_set(0)), f_div(f_abs(f_sub(x, y)), ay));
}

static inline vf
ratio_e(vf x, vf y, vf scale)
{
	return f_div(f_abs(f_sub(x, y)), f_add(f_abs(y), scale));
}

/* What is computed in float: the range of both sides, r, e, the bounds. Of four rows of 16, r
 * and e^2 are added in float before they are widened, which is what costs most. */
static void
ratios(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o)
{
	double rel[16], ee[16];
	float maxr[16], maxe[16], lo[16], hi[16], lob[16], hib[16];
	const vf rtol = f_set((float)opt->rtol), atol = f_set((float)opt->atol);
	const vf scale = f_set((float)opt->scale);
	uint32_t na = 0, nb = 0, in_ = 0;
	o->lt1 = o->lt5 = 0;
	for (size_t g = 0; g < 16; g += NF) {
		vd r0 = d_set(0), r1 = r0, e0 = r0, e1 = r0;
		vf mr = f_set(0), me = mr, mna = f_load(a + g), mxa = mna, mnb = f_load(b + g), mxb = mnb;
		vc ca = c_zero(), cb = ca, lt1 = ca, lt5 = ca, in = ca;
		for (size_t i = g; i < n; i += ACC_QUAD) {
			vf r[4], e[4];
			/* The next block, while this one keeps the processor busy. */
			for (size_t k = 0; k < ACC_QUAD; k += 16) {
				__builtin_prefetch(a + n + i + k);
				__builtin_prefetch(b + n + i + k);
			}
			UNROLL4 for (size_t k = 0; k < 4; k++) {
				vf x = f_load(a + i + 16 * k), y = f_load(b + i + 16 * k);
				vf ay = f_abs(y), d = f_abs(f_sub(x, y));
				vm nz = m_ne(y, f_set(0));
				r[k] = f_keep(nz, f_div(d, ay));
				e[k] = f_div(d, f_add(ay, scale));
				mna = f_min(mna, x);
				mxa = f_max(mxa, x);
				mnb = f_min(mnb, y);
				mxb = f_max(mxb, y);
				mr = f_max(mr, r[k]);
				me = f_max(me, e[k]);
				ca = c_add(ca, m_ne(x, f_set(0)));
				cb = c_add(cb, nz);
				lt1 = c_add(lt1, m_lt(r[k], f_set(0.001f)));
				lt5 = c_add(lt5, m_lt(r[k], f_set(0.005f)));
				in = c_add(in, m_le(d, f_add(atol, f_mul(rtol, ay))));
				e[k] = f_mul(e[k], e[k]);
			}
			vf rs = f_add(f_add(r[0], r[1]), f_add(r[2], r[3]));
			vf es = f_add(f_add(e[0], e[1]), f_add(e[2], e[3]));
			r0 = d_add(r0, d_lo(rs));
			r1 = d_add(r1, d_hi(rs));
			e0 = d_add(e0, d_lo(es));
			e1 = d_add(e1, d_hi(es));
		}
		d_store(rel + g, r0);
		d_store(rel + g + ND, r1);
		d_store(ee + g, e0);
		d_store(ee + g + ND, e1);
		f_store(maxr + g, mr);
		f_store(maxe + g, me);
		f_store(lo + g, mna);
		f_store(hi + g, mxa);
		f_store(lob + g, mnb);
		f_store(hib + g, mxb);
		na += c_sum(ca);
		nb += c_sum(cb);
		o->lt1 += c_sum(lt1);
		o->lt5 += c_sum(lt5);
		in_ += c_sum(in);
	}
	o->a.zero = (uint32_t)n - na;
	o->b.zero = (uint32_t)n - nb;
	o->outside = (uint32_t)n - in_;
	o->a.min = min16(lo);
	o->a.max = max16(hi);
	o->b.min = min16(lob);
	o->b.max = max16(hib);
	o->rel = acc_fold(rel);
	o->ee = acc_fold(ee);
	o->maxr = max16(maxr);
	o->maxe = max16(maxe);
}

/* --- in double, for dtypes that f32 cannot hold and blocks that overflow it --- */

static void
wide_one(const double *x, size_t n, struct acc_blk1 *o)
{
	double sum[16], sumsq[16], lo[16], hi[16];
	uint32_t zero = 0;
	for (size_t g = 0; g < 16; g += ND) {
		vd s = d_set(0), q = s, mn = d_load(x + g), mx = mn;
		for (size_t i = g; i < n; i += 16) {
			vd v = d_load(x + i);
			s = d_add(s, v);
			q = d_add(q, d_mul(v, v));
			mn = d_min(mn, v);
			mx = d_max(mx, v);
			zero += dm_count(dm_eq(v, d_set(0)));
		}
		d_store(sum + g, s);
		d_store(sumsq + g, q);
		d_store(lo + g, mn);
		d_store(hi + g, mx);
	}
	*o = (struct acc_blk1){acc_fold(sum), acc_fold(sumsq), lo[0], hi[0], zero};
	for (int i = 1; i < 16; i++) {
		o->min = lo[i] < o->min ? lo[i] : o->min;
		o->max = hi[i] > o->max ? hi[i] : o->max;
	}
}

static void
wide_two(const double *a, const double *b, const double *d, size_t n,
	const struct acc_kernel_opt *opt, struct acc_blk2 *o)
{
	double s[7][16], max[3][16];
	const vd z = d_set(0), rtol = d_set(opt->rtol), atol = d_set(opt->atol);
	const vd scale = d_set(opt->scale);
	*o = (struct acc_blk2){.maxd = 0};
	for (size_t g = 0; g < 16; g += ND) {
		vd s0 = z, s1 = z, s2 = z, s3 = z, s4 = z, s5 = z, s6 = z, md = z, mr = z, me = z;
		for (size_t i = g; i < n; i += 16) {
			vd x = d_load(a + i), y = d_load(b + i), v = d_load(d + i);
			vd ad = d_abs(v), ay = d_abs(y);
			vdm nz = dm_ne(y, z);
			vd r = d_keep(nz, d_div(ad, ay));
			vd e = d_keep(dm_ne(v, z), d_div(ad, d_add(ay, scale)));
			s0 = d_add(s0, d_mul(x, x));
			s1 = d_add(s1, d_mul(y, y));
			s2 = d_add(s2, d_mul(x, y));
			s3 = d_add(s3, ad);
			s4 = d_add(s4, d_mul(v, v));
			s5 = d_add(s5, r);
			s6 = d_add(s6, d_mul(e, e));
			md = d_max(md, ad);
			mr = d_max(mr, r);
			me = d_max(me, e);
			o->b.zero += ND - dm_count(nz);
			o->b0 += dm_count(dm_andnot(dm_ne(x, z), nz));
			o->lt1 += dm_count(dm_lt(r, d_set(0.001)));
			o->lt5 += dm_count(dm_lt(r, d_set(0.005)));
			o->outside += ND - dm_count(dm_le(ad, d_add(atol, d_mul(rtol, ay))));
		}
		d_store(s[0] + g, s0);
		d_store(s[1] + g, s1);
		d_store(s[2] + g, s2);
		d_store(s[3] + g, s3);
		d_store(s[4] + g, s4);
		d_store(s[5] + g, s5);
		d_store(s[6] + g, s6);
		d_store(max[0] + g, md);
		d_store(max[1] + g, mr);
		d_store(max[2] + g, me);
	}
	o->a.sumsq = acc_fold(s[0]);
	o->b.sumsq = acc_fold(s[1]);
	o->dot = acc_fold(s[2]);
	o->absd = acc_fold(s[3]);
	o->dd = acc_fold(s[4]);
	o->rel = acc_fold(s[5]);
	o->ee = acc_fold(s[6]);
	for (int i = 0; i < 16; i++) {
		o->maxd = max[0][i] > o->maxd ? max[0][i] : o->maxd;
		o->maxr = max[1][i] > o->maxr ? max[1][i] : o->maxr;
		o->maxe = max[2][i] > o->maxe ? max[2][i] : o->maxe;
	}
}

static uint32_t
only_b_zero(const float *a, const float *b, size_t n)
{
	vc c = c_zero();
	for (size_t i = 0; i < n; i += NF)
		c = c_add(c, m_andnot(m_ne(f_load(a + i), f_set(0)),
				     m_ne(f_load(b + i), f_set(0))));
	return c_sum(c);
}

static void
two(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o)
{
	moments(a, b, n, o);
	ratios(a, b, n, opt, o);
	o->b0 = o->b.zero > 0 && o->a.zero < n ? only_b_zero(a, b, n) : 0;
}

static size_t
clean(const float *a, const float *b, size_t n, float *x, float *y,
	uint64_t bad[ACC_BLOCK / 64], struct acc_blk1 *range)
{
	float lo[16], hi[16];
	const vf zero = f_set(0), inf = f_set(INFINITY), minf = f_set(-INFINITY);
	vf mn = inf, mx = minf;
	size_t used = 0;
	for (size_t i = 0; i < n; i += 64) {
		uint64_t good = 0;
		for (size_t k = 0; k < 64; k += NF) {
			vf v = f_load(a + i + k), w = f_load(b + i + k);
			/* 0 times what is not finite is NaN. */
			vm m = m_eq(f_add(f_mul(v, zero), f_mul(w, zero)), zero);
			f_store(x + i + k, f_keep(m, v));
			f_store(y + i + k, f_keep(m, w));
			mn = f_min(mn, f_pick(m, v, inf));
			mx = f_max(mx, f_pick(m, v, minf));
			good |= (uint64_t)m_bits(m) << k;
		}
		bad[i / 64] = ~good;
		used += (size_t)__builtin_popcountll(good);
	}
	for (size_t g = 0; g < 16; g += NF) {
		f_store(lo + g, mn);
		f_store(hi + g, mx);
	}
	range->min = min16(lo);
	range->max = max16(hi);
	return used;
}

/* --- where something is --- */

static size_t
lane(vm m)
{
	size_t k = 0;
	for (uint32_t bits = m_bits(m); (bits >> k & 1) == 0;)
		k++;
	return k;
}

static size_t
find_d(const float *a, const float *b, size_t n, double max)
{
	const vd want = d_set(max);
	double d[ND];
	for (size_t i = 0; i < n; i += ND) {
		vd v = d_abs(d_sub(d_widen(a + i), d_widen(b + i)));
		if (dm_count(dm_eq(v, want)) == 0)
			continue;
		d_store(d, v);
		for (size_t k = 0; k < ND; k++)
			if (d[k] == max)
				return i + k;
	}
	return n;
}

static size_t
find_r(const float *a, const float *b, size_t n, float max)
{
	for (size_t i = 0; i < n; i += NF) {
		vm m = m_eq(ratio_r(f_load(a + i), f_load(b + i)), f_set(max));
		if (m_bits(m) != 0)
			return i + lane(m);
	}
	return n;
}

static size_t
find_e(const float *a, const float *b, size_t n, float scale, float max)
{
	for (size_t i = 0; i < n; i += NF) {
		vm m = m_eq(ratio_e(f_load(a + i), f_load(b + i), f_set(scale)), f_set(max));
		if (m_bits(m) != 0)
			return i + lane(m);
	}
	return n;
}

#include "impl_ulp.h"

#ifndef HAVE_BF16
static void
bf16(const void *p, float *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h;
		memcpy(&h, (const char *)p + 2 * i, 2);
		uint32_t w = (uint32_t)h << 16;
		memcpy(&x[i], &w, 4);
	}
}

#endif

#ifndef HAVE_F16
/* Shift the exponent and mantissa into place; a subnormal is a normal minus its leading one. */
static void
f16(const void *p, float *x, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint16_t h;
		memcpy(&h, (const char *)p + 2 * i, 2);
		uint32_t sign = (uint32_t)(h & 0x8000) << 16, w = (uint32_t)(h & 0x7fff) << 13;
		uint32_t exp = w & 0x0f800000, bits = w + 0x38000000;
		bits += exp == 0x0f800000 ? 0x38000000 : 0;
		bits += exp == 0 ? 0x00800000 : 0;
		float f, magic = 0x1p-14f;
		memcpy(&f, &bits, 4);
		f -= exp == 0 ? magic : 0;
		memcpy(&bits, &f, 4);
		bits |= sign;
		memcpy(&x[i], &bits, 4);
	}
}
#endif

static uint64_t
hash(const void *p, size_t n)
{
	return XXH3_64bits(p, n);
}

_Static_assert(sizeof(XXH3_state_t) <= ACC_HASHING, "a larger state");

static void
hash_start(void *state)
{
	XXH3_INITSTATE((XXH3_state_t *)state);
	XXH3_64bits_reset(state);
}

static void
hash_add(void *state, const void *p, size_t n)
{
	XXH3_64bits_update(state, p, n);
}

static uint64_t
hash_end(void *state)
{
	return XXH3_64bits_digest(state);
}

const struct acc_row ROW = {ROW_NAME, ROW_USABLE, one, two, ulp32, ulp16, f16, bf16, hash,
	hash_start, hash_add, hash_end,
	clean, wide_one, wide_two, find_d, find_r, find_e};
