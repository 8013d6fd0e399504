/* impl.h - the loops over a block, once for every instruction set
 *
 * The including file defines ROW (the name of its acc_row), ROW_NAME, ROW_USABLE, ROW_AUDIT (the
 * name of its acc_audit_row), and from a header of primitives: NF lanes of float in `vf` (and as
 * many 32-bit lanes in `vi`), ND = NF / 2 lanes of double in `vd`, masks over vf in `vm`, counters
 * in `vc`. Lane i of 16 is worked on in pass i / NF (or i / ND), so the same additions happen
 * whatever the width.
 *
 * muladd(a, b, c) = a * b + c may be fused: it is used only where the product is exact.
 */
#include "kernel/audit.h"
#include "kernel/row.h"

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

/* Lanes side by side, as many as registers hold sums of: one after another, each waits for its last addition.
 * ACROSS: as floats. */
enum { ABREAST = 16 / ND < 4 ? 16 / ND : 4, ACROSS = ABREAST * ND / NF };

enum code { BF16, F16, F32 };

static inline vf
load(enum code t, const void *p)
{
	return t == BF16 ? f_bf16(p) : t == F16 ? f_f16(p) : f_load((const float *)p);
}

/* Of n numbers of this dtype. */
static inline __attribute__((always_inline)) void
one_of(enum code t, const void *p, size_t n, struct acc_blk1 *o)
{
	const size_t size = t == F32 ? 4 : 2;
	const char *x = p;
	double sum[16], sumsq[16];
	float lo[16], hi[16];
	o->zero = 0;
	for (size_t g = 0; g < 16; g += ABREAST * ND) {
		vd s[ABREAST], q[ABREAST];
		vf mn[ACROSS], mx[ACROSS];
		vc zero[ACROSS];
		for (size_t k = 0; k < ABREAST; k++)
			s[k] = q[k] = d_set(0);
		for (size_t k = 0; k < ACROSS; k++) {
			mn[k] = mx[k] = load(t, x + (g + k * NF) * size);
			zero[k] = c_zero();
		}
		for (size_t i = g; i < n; i += 16) {
			if (t != F32)
				__builtin_prefetch(x + 2 * (i + n)); /* the next block */
			UNROLL4 for (size_t k = 0; k < ACROSS; k++)
			{
				const char *at = x + (i + k * NF) * size;
				const vf v = load(t, at);
				const vd l = t == F32 ? d_widen((const float *)at) : d_lo(v);
				const vd h = t == F32 ? d_widen((const float *)at + ND) : d_hi(v);
				s[2 * k] = d_add(s[2 * k], l);
				q[2 * k] = d_muladd(l, l, q[2 * k]);
				s[2 * k + 1] = d_add(s[2 * k + 1], h);
				q[2 * k + 1] = d_muladd(h, h, q[2 * k + 1]);
				mn[k] = f_min(mn[k], v);
				mx[k] = f_max(mx[k], v);
				zero[k] = c_add(zero[k], m_eq(v, f_set(0)));
			}
		}
		for (size_t k = 0; k < ABREAST; k++) {
			d_store(sum + g + k * ND, s[k]);
			d_store(sumsq + g + k * ND, q[k]);
		}
		for (size_t k = 0; k < ACROSS; k++) {
			f_store(lo + g + k * NF, mn[k]);
			f_store(hi + g + k * NF, mx[k]);
			o->zero += c_sum(zero[k]);
		}
	}
	o->sum = acc_fold(sum);
	o->sumsq = acc_fold(sumsq);
	o->min = min16(lo);
	o->max = max16(hi);
}

static void
one(const float *x, size_t n, struct acc_blk1 *o)
{
	one_of(F32, x, n, o);
}

static void
one_f16(const void *p, size_t n, struct acc_blk1 *o)
{
	one_of(F16, p, n, o);
}

static void
one_bf16(const void *p, size_t n, struct acc_blk1 *o)
{
	one_of(BF16, p, n, o);
}

#include "kernel/impl_two.h"

#include "kernel/impl_wide.h"

static size_t
clean(const float *a, const float *b, size_t n, float *x, float *y, uint64_t bad[ACC_BLOCK / 64],
	struct acc_blk1 *range)
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

#include "kernel/impl_ulp.h"

#include "kernel/impl_codes.h"

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

const struct acc_row ROW = {ROW_NAME, ROW_USABLE, one, one_f16, one_bf16, two, two_f16, two_bf16,
	plain, plain_f16, plain_bf16, ulp32, ulp16, f16, bf16, hash, hash_start, hash_add, hash_end,
	clean, wide_one, wide_two, finite_pairs, far, ulp64, find_d, find_r, find_e, &ROW_AUDIT};
