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

/* min, max and the number of zeros. */
static void
range(const float *x, size_t n, struct acc_blk1 *o)
{
	float lo[16], hi[16];
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
	o->min = min16(lo);
	o->max = max16(hi);
}

static void
one(const float *x, size_t n, struct acc_blk1 *o)
{
	double sum[16], sumsq[16], sumabs[16];
	for (size_t g = 0; g < 16; g += ND) {
		vd s = d_set(0), q = s, t = s;
		for (size_t i = g; i < n; i += 16) {
			vd v = d_widen(x + i);
			s = d_add(s, v);
			q = d_muladd(v, v, q);
			t = d_add(t, d_abs(v));
		}
		d_store(sum + g, s);
		d_store(sumsq + g, q);
		d_store(sumabs + g, t);
	}
	o->sum = acc_fold(sum);
	o->sumsq = acc_fold(sumsq);
	o->sumabs = acc_fold(sumabs);
	range(x, n, o);
}

/* What is summed in double from both sides. */
static void
moments(const float *a, const float *b, size_t n, struct acc_blk2 *o)
{
	double s[10][16], maxd[16];
	for (size_t g = 0; g < 16; g += ND) {
		vd z = d_set(0), s0 = z, s1 = z, s2 = z, s3 = z, s4 = z, s5 = z, s6 = z, s7 = z,
		   s8 = z, s9 = z, mx = z;
		for (size_t i = g; i < n; i += 16) {
			vd x = d_widen(a + i), y = d_widen(b + i), d = d_sub(x, y);
			vd ad = d_abs(d);
			s0 = d_add(s0, x);
			s1 = d_muladd(x, x, s1);
			s2 = d_add(s2, d_abs(x));
			s3 = d_add(s3, y);
			s4 = d_muladd(y, y, s4);
			s5 = d_add(s5, d_abs(y));
			s6 = d_muladd(x, y, s6);
			s7 = d_add(s7, d);
			s8 = d_add(s8, ad);
			s9 = d_add(s9, d_mul(d, d)); /* 53 bits squared: not exact */
			mx = d_max(mx, ad);
		}
		d_store(s[0] + g, s0);
		d_store(s[1] + g, s1);
		d_store(s[2] + g, s2);
		d_store(s[3] + g, s3);
		d_store(s[4] + g, s4);
		d_store(s[5] + g, s5);
		d_store(s[6] + g, s6);
		d_store(s[7] + g, s7);
		d_store(s[8] + g, s8);
		d_store(s[9] + g, s9);
		d_store(maxd + g, mx);
	}
	o->a.sum = acc_fold(s[0]);
	o->a.sumsq = acc_fold(s[1]);
	o->a.sumabs = acc_fold(s[2]);
	o->b.sum = acc_fold(s[3]);
	o->b.sumsq = acc_fold(s[4]);
	o->b.sumabs = acc_fold(s[5]);
	o->dot = acc_fold(s[6]);
	o->d = acc_fold(s[7]);
	o->absd = acc_fold(s[8]);
	o->dd = acc_fold(s[9]);
	o->maxd = maxd[0];
	for (int i = 1; i < 16; i++)
		o->maxd = maxd[i] > o->maxd ? maxd[i] : o->maxd;
}

/* What is computed in float: r, e, the bounds. */
static void
ratios(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o)
{
	double rel[16], relrel[16], ee[16];
	float maxr[16], maxe[16];
	vf rtol = f_set((float)opt->rtol), atol = f_set((float)opt->atol);
	vf scale = f_set((float)opt->scale);
	o->b0 = o->lt1 = o->lt5 = o->outside = 0;
	for (size_t g = 0; g < 16; g += NF) {
		vd z = d_set(0), r0 = z, r1 = z, q0 = z, q1 = z, e0 = z, e1 = z;
		vf mr = f_set(0), me = mr;
		vc b0 = c_zero(), lt1 = b0, lt5 = b0, in = b0;
		for (size_t i = g; i < n; i += 16) {
			vf x = f_load(a + i), y = f_load(b + i);
			vf ad = f_abs(f_sub(x, y)), ay = f_abs(y);
			vm nz = m_ne(ay, f_set(0));
			vf r = f_keep(nz, f_div(ad, ay)), e = f_div(ad, f_add(ay, scale));
			mr = f_max(mr, r);
			me = f_max(me, e);
			b0 = c_add(b0, m_andnot(m_ne(x, f_set(0)), nz));
			lt1 = c_add(lt1, m_lt(r, f_set(0.001f)));
			lt5 = c_add(lt5, m_lt(r, f_set(0.005f)));
			in = c_add(in, m_le(ad, f_add(atol, f_mul(rtol, ay))));
			vd rl = d_lo(r), rh = d_hi(r), el = d_lo(e), eh = d_hi(e);
			r0 = d_add(r0, rl);
			r1 = d_add(r1, rh);
			q0 = d_muladd(rl, rl, q0);
			q1 = d_muladd(rh, rh, q1);
			e0 = d_muladd(el, el, e0);
			e1 = d_muladd(eh, eh, e1);
		}
		d_store(rel + g, r0);
		d_store(rel + g + ND, r1);
		d_store(relrel + g, q0);
		d_store(relrel + g + ND, q1);
		d_store(ee + g, e0);
		d_store(ee + g + ND, e1);
		f_store(maxr + g, mr);
		f_store(maxe + g, me);
		o->b0 += c_sum(b0);
		o->lt1 += c_sum(lt1);
		o->lt5 += c_sum(lt5);
		o->outside += c_sum(in);
	}
	o->outside = (uint32_t)n - o->outside;
	o->rel = acc_fold(rel);
	o->relrel = acc_fold(relrel);
	o->ee = acc_fold(ee);
	o->maxr = max16(maxr);
	o->maxe = max16(maxe);
}

static void
two(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o)
{
	moments(a, b, n, o);
	range(a, n, &o->a);
	range(b, n, &o->b);
	ratios(a, b, n, opt, o);
}

static void
ulp32(const void *a, const void *b, size_t n, struct acc_ulps *o)
{
	uint32_t u[ACC_BLOCK], same = 0, max = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t x, y;
		memcpy(&x, (const char *)a + 4 * i, 4);
		memcpy(&y, (const char *)b + 4 * i, 4);
		uint32_t mx = x & 0x7fffffff, my = y & 0x7fffffff;
		uint32_t far = mx + my, near = mx > my ? mx - my : my - mx;
		u[i] = (x ^ y) >> 31 ? far : near;
		same += x == y;
		max = u[i] > max ? u[i] : max;
	}
	o->same = same;
	o->max = max;
	memset(o->bin, 0, sizeof o->bin);
	for (size_t i = 0; i < n; i++)
		o->bin[u[i] == 0 ? 0 : 32 - __builtin_clz(u[i])]++;
}

static void
ulp16(const uint16_t *a, const uint16_t *b, size_t n, struct acc_ulps *o)
{
	uint16_t u[ACC_BLOCK], max = 0;
	uint32_t same = 0;
	for (size_t i = 0; i < n; i++) {
		uint16_t x = a[i], y = b[i];
		uint16_t mx = x & 0x7fff, my = y & 0x7fff;
		uint16_t far = (uint16_t)(mx + my), near = (uint16_t)(mx > my ? mx - my : my - mx);
		u[i] = (x ^ y) >> 15 ? far : near;
		same += x == y;
		max = u[i] > max ? u[i] : max;
	}
	o->same = same;
	o->max = max;
	memset(o->bin, 0, sizeof o->bin);
	for (size_t i = 0; i < n; i++)
		o->bin[u[i] == 0 ? 0 : 32 - __builtin_clz(u[i])]++;
}

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

const struct acc_row ROW = {ROW_NAME, ROW_USABLE, one, two, ulp32, ulp16, f16, bf16, hash};
