/* prim_avx2.h - primitives of 32 bytes */
#include <immintrin.h>
#include <stdint.h>

#include "kernel/together.h"

enum { NF = 8, ND = 4 };
typedef __m256 vf, vm;
typedef __m256d vd;
typedef __m256i vi, vc;

#define f_load(p) _mm256_loadu_ps(p)
#define f_store(p, v) _mm256_storeu_ps(p, v)
#define f_set(x) _mm256_set1_ps(x)
#define f_abs(a) _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a)
#define f_min(a, b) _mm256_min_ps(a, b)
#define f_max(a, b) _mm256_max_ps(a, b)
/* Of numbers that are not negative: more units can do this. */
#define f_umax(a, b) \
	_mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)))
#define f_add(a, b) _mm256_add_ps(a, b)
#define f_sub(a, b) _mm256_sub_ps(a, b)
#define f_mul(a, b) _mm256_mul_ps(a, b)
#define f_div(a, b) _mm256_div_ps(a, b)
#define m_eq(a, b) _mm256_cmp_ps(a, b, _CMP_EQ_OQ)
#define m_ne(a, b) _mm256_cmp_ps(a, b, _CMP_NEQ_UQ)
#define m_lt(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define m_le(a, b) _mm256_cmp_ps(a, b, _CMP_LE_OQ)
#define m_andnot(a, b) _mm256_andnot_ps(b, a)
#define f_keep(m, v) _mm256_and_ps(m, v)

#define f_pick(m, a, b) _mm256_blendv_ps(b, a, m)
#define m_bits(m) (uint32_t) _mm256_movemask_ps(m)

/* Counters hold minus the count. */
#define c_zero() _mm256_setzero_si256()
#define c_add(c, m) _mm256_add_epi32(c, _mm256_castps_si256(m))
static inline uint32_t
c_sum(vc c)
{
	int32_t v[8];
	_mm256_storeu_si256((__m256i *)v, c);
	return (uint32_t) - (v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]);
}

#define d_load(p) _mm256_loadu_pd(p)
#define d_min(a, b) _mm256_min_pd(a, b)
#define d_div(a, b) _mm256_div_pd(a, b)
#define d_keep(m, v) _mm256_and_pd(m, v)
typedef __m256d vdm;
#define dm_eq(a, b) _mm256_cmp_pd(a, b, _CMP_EQ_OQ)
#define dm_ne(a, b) _mm256_cmp_pd(a, b, _CMP_NEQ_UQ)
#define dm_lt(a, b) _mm256_cmp_pd(a, b, _CMP_LT_OQ)
#define dm_le(a, b) _mm256_cmp_pd(a, b, _CMP_LE_OQ)
#define dm_andnot(a, b) _mm256_andnot_pd(b, a)
#define dm_count(m) (uint32_t) _mm_popcnt_u32((uint32_t)_mm256_movemask_pd(m))
#define d_set(x) _mm256_set1_pd(x)
#define d_widen(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define d_lo(v) _mm256_cvtps_pd(_mm256_castps256_ps128(v))
#define d_hi(v) _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))
#define d_store(p, v) _mm256_storeu_pd(p, v)
#define d_abs(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define d_max(a, b) _mm256_max_pd(a, b)
#define d_add(a, b) _mm256_add_pd(a, b)
/* a + b by the units that multiply, which have less to do. */
#define d_acc(a, b) d_muladd(b, d_set(1), a)
#define d_sub(a, b) _mm256_sub_pd(a, b)
#define d_mul(a, b) _mm256_mul_pd(a, b)
#define d_muladd(a, b, c) _mm256_fmadd_pd(a, b, c)

/* 32-bit lanes (i_), 16-bit lanes (h_). */
#define i_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define i_store(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define i_zero() _mm256_setzero_si256()
#define i_and(a, b) _mm256_and_si256(a, b)
#define i_or(a, b) _mm256_or_si256(a, b)
#define i_xor(a, b) _mm256_xor_si256(a, b)
#define i_set(x) _mm256_set1_epi32((int)(x))
#define i_add(a, b) _mm256_add_epi32(a, b)
#define i_sub(a, b) _mm256_sub_epi32(a, b)
#define i_srl(a, k) _mm256_srli_epi32(a, k)
#define i_sll(a, k) _mm256_slli_epi32(a, k)
#define i_abs(a) _mm256_abs_epi32(a)
/* where the sign of s is set a + b, else v */
#define i_add_where(s, v, a, b) \
	_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(v), \
		_mm256_castsi256_ps(_mm256_add_epi32(a, b)), _mm256_castsi256_ps(s)))
#define i_majority(a, b, c) i_or(i_and(a, b), i_and(i_xor(a, b), c))
#define i_parity(a, b, c) i_xor(i_xor(a, b), c)
#define i_eq(a, b) _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))
#define i_gt(a, b) _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b))
#define i_umax(a, b) _mm256_max_epu32(a, b)
#define h_umax(a, b) _mm256_max_epu16(a, b)
#define h_set(x) _mm256_set1_epi16((short)(x))
#define h_add(a, b) _mm256_add_epi16(a, b)
#define h_sub(a, b) _mm256_sub_epi16(a, b)
#define h_srl(a, k) _mm256_srli_epi16(a, k)
#define h_abs(a) _mm256_abs_epi16(a)
static inline vi
h_add_where(vi s, vi v, vi a, vi b)
{
	return _mm256_blendv_epi8(v, _mm256_add_epi16(a, b), _mm256_srai_epi16(s, 15));
}
/* at most ACC_BLOCK / 16 a lane: no overflow */
#define h_count_eq(c, a, b) _mm256_add_epi16(c, _mm256_cmpeq_epi16(a, b))

/* Bit k of byte j of each lane of `bytes` bytes: count[8 j + k] += weight each. */
static inline void
i_positions(vi v, uint32_t bytes, uint32_t weight, uint32_t *count)
{
	const uint32_t pick = bytes == 2 ? 0x55555555 : 0x11111111;
	for (int k = 7; k >= 0; k--) {
		uint32_t m = (uint32_t)_mm256_movemask_epi8(v);
		for (uint32_t j = 0; j < bytes; j++)
			count[8 * j + (uint32_t)k] += weight *
						      (uint32_t)_mm_popcnt_u32(m >> j & pick);
		v = _mm256_add_epi8(v, v);
	}
}

#define f_bf16(p) \
	_mm256_castsi256_ps(_mm256_slli_epi32( \
		_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p))), 16))
#define f_f16(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
static inline void
d_f16(const void *p, vd *lo, vd *hi)
{
	*lo = _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64(p)));
	*hi = _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const void *)((const char *)p + 8))));
}

static inline void
d_bf16(const void *p, vd *lo, vd *hi)
{
	const __m128i v = _mm_loadu_si128(p), z = _mm_setzero_si128();
	*lo = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpacklo_epi16(z, v)));
	*hi = _mm256_cvtps_pd(_mm_castsi128_ps(_mm_unpackhi_epi16(z, v)));
}

/* The lower and the upper half of lanes. */
#define f_low_bf16(v) _mm256_castsi256_ps(_mm256_slli_epi32(v, 16))
#define f_high_bf16(v) _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(~0xffff)))
static inline vf
f_high_f16(vi v)
{
	v = _mm256_srli_epi32(v, 16);
	v = _mm256_permute4x64_epi64(_mm256_packus_epi32(v, v), 0x08);
	return _mm256_cvtph_ps(_mm256_castsi256_si128(v));
}
#define f_low_f16(v) f_high_f16(_mm256_slli_epi32(v, 16))
#define h_smax(a, b) _mm256_max_epi16(a, b)
/* Counters of 16-bit lanes hold minus the count. */
typedef __m256i vn;
#define n_zero() _mm256_setzero_si256()
#define n_add_zeros(c, v) _mm256_add_epi16(c, _mm256_cmpeq_epi16(v, _mm256_setzero_si256()))
static inline uint32_t
n_sum(vn c)
{
	int16_t v[16];
	int n = 0;
	i_store(v, c);
	for (int i = 0; i < 16; i++)
		n -= v[i];
	return (uint32_t)n;
}

#define HAVE_H_DIFFER
/* Four pairs at a time: a byte shuffle for every set of four. */
static inline size_t
differ4(uint32_t *to, __m128i w, unsigned m)
{
	_mm_storeu_si128((__m128i *)to,
		_mm_shuffle_epi8(w, _mm_load_si128((const __m128i *)acc_together[m])));
	return (size_t)_mm_popcnt_u32(m);
}

static inline size_t
h_differ(uint32_t *to, vi x, vi y)
{
	const __m256i eq = _mm256_cmpeq_epi16(x, y);
	const unsigned m = ~(unsigned)_mm_movemask_epi8(
		_mm_packs_epi16(_mm256_castsi256_si128(eq), _mm256_extracti128_si256(eq, 1)));
	/* Pairs 0 to 3 and 8 to 11; 4 to 7 and 12 to 15. */
	const __m256i u = _mm256_unpacklo_epi16(x, y), v = _mm256_unpackhi_epi16(x, y);
	size_t n = differ4(to, _mm256_castsi256_si128(u), m & 15);
	n += differ4(to + n, _mm256_castsi256_si128(v), m >> 4 & 15);
	n += differ4(to + n, _mm256_extracti128_si256(u, 1), m >> 8 & 15);
	return n + differ4(to + n, _mm256_extracti128_si256(v, 1), m >> 12 & 15);
}
