/* prim_avx2.h - primitives of 32 bytes */
#include <immintrin.h>
#include <stdint.h>

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
#define m_bits(m) (uint32_t)_mm256_movemask_ps(m)

/* Counters hold minus the count. */
#define c_zero() _mm256_setzero_si256()
#define c_add(c, m) _mm256_add_epi32(c, _mm256_castps_si256(m))
static inline uint32_t
c_sum(vc c)
{
	int32_t v[8];
	_mm256_storeu_si256((__m256i *)v, c);
	return (uint32_t)-(v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7]);
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
#define dm_count(m) (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_pd(m))
#define d_set(x) _mm256_set1_pd(x)
#define d_widen(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define d_lo(v) _mm256_cvtps_pd(_mm256_castps256_ps128(v))
#define d_hi(v) _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))
#define d_store(p, v) _mm256_storeu_pd(p, v)
#define d_abs(a) _mm256_andnot_pd(_mm256_set1_pd(-0.0), a)
#define d_max(a, b) _mm256_max_pd(a, b)
#define d_add(a, b) _mm256_add_pd(a, b)
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
#define i_add_where(s, v, a, b)                                                          \
	_mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(v),                     \
		_mm256_castsi256_ps(_mm256_add_epi32(a, b)), _mm256_castsi256_ps(s)))
#define i_majority(a, b, c) i_or(i_and(a, b), i_and(i_xor(a, b), c))
#define i_parity(a, b, c) i_xor(i_xor(a, b), c)
#define i_eq(a, b) _mm256_castsi256_ps(_mm256_cmpeq_epi32(a, b))
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
			count[8 * j + (uint32_t)k] +=
				weight * (uint32_t)_mm_popcnt_u32(m >> j & pick);
		v = _mm256_add_epi8(v, v);
	}
}

#define HAVE_BF16
static void
bf16(const void *p, float *x, size_t n)
{
	const char *h = p;
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		__builtin_prefetch(h + 2 * (i + n)); /* the next block */
		__m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(h + 2 * i)));
		_mm256_storeu_si256((__m256i *)(x + i), _mm256_slli_epi32(w, 16));
	}
	for (; i < n; i++) {
		uint32_t w = 0;
		memcpy((char *)&w + 2, h + 2 * i, 2);
		memcpy(x + i, &w, 4);
	}
}

#define HAVE_F16
static void
f16(const void *p, float *x, size_t n)
{
	const char *h = p;
	size_t i = 0;
	for (; i + 8 <= n; i += 8) {
		__builtin_prefetch(h + 2 * (i + n)); /* the next block */
		_mm256_storeu_ps(x + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(h + 2 * i))));
	}
	for (; i < n; i++) {
		uint16_t w;
		memcpy(&w, h + 2 * i, 2);
		x[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(w)));
	}
}
