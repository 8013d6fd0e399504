/* prim_avx512.h - primitives of 64 bytes: AVX-512 F, BW, CD, DQ */
#include <immintrin.h>
#include <stdint.h>

enum { NF = 16, ND = 8 };
typedef __m512 vf;
typedef __m512d vd;
typedef __m512i vi;
typedef __mmask16 vm;
typedef uint32_t vc;

#define f_load(p) _mm512_loadu_ps(p)
#define f_store(p, v) _mm512_storeu_ps(p, v)
#define f_set(x) _mm512_set1_ps(x)
#define f_abs(a) _mm512_abs_ps(a)
#define f_min(a, b) _mm512_min_ps(a, b)
#define f_max(a, b) _mm512_max_ps(a, b)
#define f_add(a, b) _mm512_add_ps(a, b)
#define f_sub(a, b) _mm512_sub_ps(a, b)
#define f_mul(a, b) _mm512_mul_ps(a, b)
#define f_div(a, b) _mm512_div_ps(a, b)
#define m_eq(a, b) _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define m_ne(a, b) _mm512_cmp_ps_mask(a, b, _CMP_NEQ_UQ)
#define m_lt(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define m_le(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)
#define m_andnot(a, b) ((vm)((a) & ~(b)))
#define f_keep(m, v) _mm512_maskz_mov_ps(m, v)

#define f_pick(m, a, b) _mm512_mask_mov_ps(b, m, a)
#define m_bits(m) (uint32_t)(m)

#define c_zero() 0u
#define c_add(c, m) ((c) + (uint32_t)_mm_popcnt_u32(m))
#define c_sum(c) (c)

#define d_load(p) _mm512_loadu_pd(p)
#define d_min(a, b) _mm512_min_pd(a, b)
#define d_div(a, b) _mm512_div_pd(a, b)
#define d_keep(m, v) _mm512_maskz_mov_pd(m, v)
typedef __mmask8 vdm;
#define dm_eq(a, b) _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define dm_ne(a, b) _mm512_cmp_pd_mask(a, b, _CMP_NEQ_UQ)
#define dm_lt(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ)
#define dm_le(a, b) _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ)
#define dm_andnot(a, b) ((vdm)((a) & ~(b)))
#define dm_count(m) (uint32_t)_mm_popcnt_u32(m)
#define d_set(x) _mm512_set1_pd(x)
#define d_widen(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define d_lo(v) _mm512_cvtps_pd(_mm512_castps512_ps256(v))
#define d_hi(v) _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))
#define d_store(p, v) _mm512_storeu_pd(p, v)
#define d_abs(a) _mm512_abs_pd(a)
#define d_max(a, b) _mm512_max_pd(a, b)
#define d_add(a, b) _mm512_add_pd(a, b)
#define d_sub(a, b) _mm512_sub_pd(a, b)
#define d_mul(a, b) _mm512_mul_pd(a, b)
#define d_muladd(a, b, c) _mm512_fmadd_pd(a, b, c)

#define i_load(p) _mm512_loadu_si512(p)
#define i_store(p, v) _mm512_storeu_si512(p, v)
#define i_zero() _mm512_setzero_si512()
#define i_and(a, b) _mm512_and_si512(a, b)
#define i_or(a, b) _mm512_or_si512(a, b)
#define i_xor(a, b) _mm512_xor_si512(a, b)
#define i_set(x) _mm512_set1_epi32((int)(x))
#define i_add(a, b) _mm512_add_epi32(a, b)
#define i_sub(a, b) _mm512_sub_epi32(a, b)
#define i_srl(a, k) _mm512_srli_epi32(a, k)
#define i_sll(a, k) _mm512_slli_epi32(a, k)
#define i_abs(a) _mm512_abs_epi32(a)
/* where the sign of s is set a + b, else v */
#define i_add_where(s, v, a, b) _mm512_mask_add_epi32(v, _mm512_movepi32_mask(s), a, b)
#define i_majority(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0xe8)
#define i_parity(a, b, c) _mm512_ternarylogic_epi32(a, b, c, 0x96)
#define i_eq(a, b) _mm512_cmpeq_epi32_mask(a, b)
#define HAVE_SMEAR32
#define smear32(v) _mm512_srlv_epi32(_mm512_set1_epi32(-1), _mm512_lzcnt_epi32(v))
#define i_umax(a, b) _mm512_max_epu32(a, b)
#define h_umax(a, b) _mm512_max_epu16(a, b)
#define h_set(x) _mm512_set1_epi16((short)(x))
#define h_add(a, b) _mm512_add_epi16(a, b)
#define h_sub(a, b) _mm512_sub_epi16(a, b)
#define h_srl(a, k) _mm512_srli_epi16(a, k)
#define h_abs(a) _mm512_abs_epi16(a)
#define h_add_where(s, v, a, b) _mm512_mask_add_epi16(v, _mm512_movepi16_mask(s), a, b)
#define h_count_eq(c, a, b)                                                              \
	_mm512_mask_sub_epi16(c, _mm512_cmpeq_epi16_mask(a, b), c, _mm512_set1_epi16(1))

/* Bit k of byte j of each lane of `bytes` bytes: count[8 j + k] += weight each. */
static inline void
i_positions(vi v, uint32_t bytes, uint32_t weight, uint32_t *count)
{
	const uint64_t pick = bytes == 2 ? 0x5555555555555555 : 0x1111111111111111;
	for (int k = 7; k >= 0; k--) {
		uint64_t m = _mm512_movepi8_mask(v);
		for (uint32_t j = 0; j < bytes; j++)
			count[8 * j + (uint32_t)k] +=
				weight * (uint32_t)_mm_popcnt_u64(m >> j & pick);
		v = _mm512_add_epi8(v, v);
	}
}

#define HAVE_BF16
static void
bf16(const void *p, float *x, size_t n)
{
	const char *h = p;
	size_t i = 0;
	for (; i + 16 <= n; i += 16) {
		__builtin_prefetch(h + 2 * (i + n)); /* the next block */
		__m512i w = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(h + 2 * i)));
		_mm512_storeu_si512(x + i, _mm512_slli_epi32(w, 16));
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
	for (; i + 16 <= n; i += 16) {
		__builtin_prefetch(h + 2 * (i + n)); /* the next block */
		_mm512_storeu_ps(x + i,
			_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(h + 2 * i))));
	}
	for (; i < n; i++) {
		uint16_t w;
		memcpy(&w, h + 2 * i, 2);
		x[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(w)));
	}
}
