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
/* Of numbers that are not negative: more units can do this. */
#define f_umax(a, b) \
	_mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)))
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
#define dm_count(m) (uint32_t) _mm_popcnt_u32(m)
#define d_set(x) _mm512_set1_pd(x)
#define d_widen(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define d_lo(v) _mm512_cvtps_pd(_mm512_castps512_ps256(v))
#define d_hi(v) _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))
#define d_store(p, v) _mm512_storeu_pd(p, v)
#define d_abs(a) _mm512_abs_pd(a)
#define d_max(a, b) _mm512_max_pd(a, b)
#define d_add(a, b) _mm512_add_pd(a, b)
/* a + b by the units that multiply, which have less to do. */
#define d_acc(a, b) d_muladd(b, d_set(1), a)
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
#define i_gt(a, b) _mm512_cmpgt_epi32_mask(a, b)
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
#define h_count_eq(c, a, b) \
	_mm512_mask_sub_epi16(c, _mm512_cmpeq_epi16_mask(a, b), c, _mm512_set1_epi16(1))

/* Bit k of byte j of each lane of `bytes` bytes: count[8 j + k] += weight each. */
static inline void
i_positions(vi v, uint32_t bytes, uint32_t weight, uint32_t *count)
{
	const uint64_t pick = bytes == 2 ? 0x5555555555555555 : 0x1111111111111111;
	for (int k = 7; k >= 0; k--) {
		uint64_t m = _mm512_movepi8_mask(v);
		for (uint32_t j = 0; j < bytes; j++)
			count[8 * j + (uint32_t)k] += weight *
						      (uint32_t)_mm_popcnt_u64(m >> j & pick);
		v = _mm512_add_epi8(v, v);
	}
}

/* 16 codes, each in the upper half of its lane. */
static inline vf
f_bf16(const void *p)
{
	const __m512i up = _mm512_set_epi32(15 << 16, 14 << 16, 13 << 16, 12 << 16, 11 << 16,
		10 << 16, 9 << 16, 8 << 16, 7 << 16, 6 << 16, 5 << 16, 4 << 16, 3 << 16, 2 << 16,
		1 << 16, 0);
	const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256(p));
	return _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, up, v));
}
#define f_f16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
static inline void
d_f16(const void *p, vd *lo, vd *hi)
{
	const __m128i *q = p;
	*lo = _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(q)));
	*hi = _mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128(q + 1)));
}

static inline void
d_bf16(const void *p, vd *lo, vd *hi)
{
	const __m128i *q = p;
	const __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128(q));
	const __m256i w = _mm256_cvtepu16_epi32(_mm_loadu_si128(q + 1));
	*lo = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(v, 16)));
	*hi = _mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(w, 16)));
}

/* The lower and the upper half of lanes. */
#define f_low_bf16(v) _mm512_castsi512_ps(_mm512_slli_epi32(v, 16))
#define f_high_bf16(v) _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(~0xffff)))
#define f_low_f16(v) _mm512_cvtph_ps(_mm512_cvtepi32_epi16(v))
#define f_high_f16(v) _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)))
#define h_smax(a, b) _mm512_max_epi16(a, b)
typedef uint32_t vn;
#define n_zero() 0u
#define n_add_zeros(c, v) ((c) + (uint32_t)_mm_popcnt_u32(_mm512_testn_epi16_mask(v, v)))
#define n_sum(c) (c)

#define HAVE_H_DIFFER
static inline size_t
h_differ(uint32_t *to, vi x, vi y)
{
	const __m512i low = _mm512_set_epi32(0x2f000f, 0x2e000e, 0x2d000d, 0x2c000c, 0x2b000b,
		0x2a000a, 0x290009, 0x280008, 0x270007, 0x260006, 0x250005, 0x240004, 0x230003,
		0x220002, 0x210001, 0x200000);
	const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
	const __mmask32 m = _mm512_cmpneq_epi16_mask(x, y);
	const size_t n = (size_t)_mm_popcnt_u32(m & 0xffff);
	const __m512i u = _mm512_permutex2var_epi16(x, low, y);
	const __m512i v = _mm512_permutex2var_epi16(x, high, y);
	i_store(to, _mm512_maskz_compress_epi32((__mmask16)m, u));
	i_store(to + n, _mm512_maskz_compress_epi32((__mmask16)(m >> 16), v));
	return n + (size_t)_mm_popcnt_u32(m >> 16);
}
