/* prim_base.h - primitives as GNU C vectors of 16 bytes: SSE2, NEON, or whatever there is */
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>

#include "kernel/together.h"
#endif

enum { NF = 4, ND = 2 };
typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef int64_t vl __attribute__((vector_size(16)));
typedef vi vm, vc;

static inline vf
f_load(const float *p)
{
	vf v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void
f_store(float *p, vf v)
{
	memcpy(p, &v, sizeof v);
}

static inline vf
f_set(float x)
{
	return (vf){x, x, x, x};
}

static inline vf
f_abs(vf a)
{
	return (vf)((vi)a & (vi){INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX});
}

/* NaN in one operand: either result. */
static inline vf
f_min(vf a, vf b)
{
#if defined(__SSE2__)
	return _mm_min_ps(a, b);
#elif defined(__ARM_NEON)
	return vminq_f32(a, b);
#else
	vi m = a < b;
	return (vf)(((vi)a & m) | ((vi)b & ~m));
#endif
}

static inline vf
f_max(vf a, vf b)
{
#if defined(__SSE2__)
	return _mm_max_ps(a, b);
#elif defined(__ARM_NEON)
	return vmaxq_f32(a, b);
#else
	vi m = a > b;
	return (vf)(((vi)a & m) | ((vi)b & ~m));
#endif
}

#define f_umax(a, b) f_max(a, b)
#define f_add(a, b) ((a) + (b))
#define f_sub(a, b) ((a) - (b))
#define f_mul(a, b) ((a) * (b))
#define f_div(a, b) ((a) / (b))
#define m_eq(a, b) ((vi)((a) == (b)))
#define m_ne(a, b) ((vi)((a) != (b)))
#define m_lt(a, b) ((vi)((a) < (b)))
#define m_le(a, b) ((vi)((a) <= (b)))
#define m_andnot(a, b) ((a) & ~(b)) /* a and not b */
#define f_keep(m, v) ((vf)((vi)(v) & (m)))

#define f_pick(m, a, b) ((vf)(((vi)(a) & (m)) | ((vi)(b) & ~(m))))

static inline uint32_t
m_bits(vm m)
{
	return (uint32_t)((m[0] & 1) | (m[1] & 2) | (m[2] & 4) | (m[3] & 8));
}

/* Counters hold minus the count. */
#define c_zero() ((vc){0, 0, 0, 0})
#define c_add(c, m) ((c) + (m))
static inline uint32_t
c_sum(vc c)
{
	return (uint32_t) - (c[0] + c[1] + c[2] + c[3]);
}

static inline vd
d_widen(const float *p)
{
	return (vd){(double)p[0], (double)p[1]};
}

static inline vd
d_lo(vf v)
{
#if defined(__SSE2__)
	return _mm_cvtps_pd(v);
#elif defined(__ARM_NEON) && defined(__aarch64__)
	return vcvt_f64_f32(vget_low_f32(v));
#else
	return (vd){(double)v[0], (double)v[1]};
#endif
}

static inline vd
d_hi(vf v)
{
#if defined(__SSE2__)
	return _mm_cvtps_pd(_mm_movehl_ps(v, v));
#elif defined(__ARM_NEON) && defined(__aarch64__)
	return vcvt_high_f64_f32(v);
#else
	return (vd){(double)v[2], (double)v[3]};
#endif
}

static inline void
d_store(double *p, vd v)
{
	memcpy(p, &v, sizeof v);
}

static inline vd
d_abs(vd a)
{
	return (vd)((vl)a & (vl){INT64_MAX, INT64_MAX});
}

static inline vd
d_max(vd a, vd b)
{
#if defined(__SSE2__)
	return _mm_max_pd(a, b);
#elif defined(__ARM_NEON) && defined(__aarch64__)
	return vmaxq_f64(a, b);
#else
	vl m = a > b;
	return (vd)(((vl)a & m) | ((vl)b & ~m));
#endif
}

static inline vd
d_load(const double *p)
{
	vd v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline vd
d_min(vd a, vd b)
{
#if defined(__SSE2__)
	return _mm_min_pd(a, b);
#elif defined(__ARM_NEON) && defined(__aarch64__)
	return vminq_f64(a, b);
#else
	vl m = a < b;
	return (vd)(((vl)a & m) | ((vl)b & ~m));
#endif
}

#define d_div(a, b) ((a) / (b))
#define d_keep(m, v) ((vd)((vl)(v) & (m)))
typedef vl vdm;
#define dm_eq(a, b) ((vl)((a) == (b)))
#define dm_ne(a, b) ((vl)((a) != (b)))
#define dm_lt(a, b) ((vl)((a) < (b)))
#define dm_le(a, b) ((vl)((a) <= (b)))
#define dm_andnot(a, b) ((a) & ~(b))
#define dm_count(m) (uint32_t) - ((m)[0] + (m)[1])

#define d_set(x) ((vd){(x), (x)})
#define d_add(a, b) ((a) + (b))
#define d_acc(a, b) ((a) + (b))
#define d_sub(a, b) ((a) - (b))
#define d_mul(a, b) ((a) * (b))
#define d_muladd(a, b, c) ((a) * (b) + (c))

/* 32-bit lanes (i_), 16-bit lanes (h_). */
typedef uint32_t vu __attribute__((vector_size(16)));
typedef int16_t vh __attribute__((vector_size(16)));
typedef uint16_t vuh __attribute__((vector_size(16)));

static inline vi
i_load(const void *p)
{
	vi v;
	memcpy(&v, p, sizeof v);
	return v;
}

static inline void
i_store(void *p, vi v)
{
	memcpy(p, &v, sizeof v);
}

#define i_zero() ((vi){0, 0, 0, 0})
#define i_and(a, b) ((a) & (b))
#define i_or(a, b) ((a) | (b))
#define i_xor(a, b) ((a) ^ (b))
#define i_set(x) ((vi)(vu){(x), (x), (x), (x)})
#define i_add(a, b) ((vi)((vu)(a) + (vu)(b)))
#define i_sub(a, b) ((vi)((vu)(a) - (vu)(b)))
#define i_srl(a, k) ((vi)((vu)(a) >> (k)))
#define i_sll(a, k) ((vi)((vu)(a) << (k)))
static inline vi
i_abs(vi a)
{
	vi m = a >> 31;
	return (vi)((vu)(a ^ m) - (vu)m);
}
/* where the sign of s is set a + b, else v */
static inline vi
i_add_where(vi s, vi v, vi a, vi b)
{
	vi m = s >> 31;
	return (i_add(a, b) & m) | (v & ~m);
}
#define i_majority(a, b, c) (((a) & (b)) | (((a) ^ (b)) & (c)))
#define i_parity(a, b, c) ((a) ^ (b) ^ (c))
#define i_eq(a, b) ((vi)((a) == (b)))
#define i_gt(a, b) ((vi)((a) > (b)))
static inline vi
i_umax(vi a, vi b)
{
	vi m = (vi)((vu)a > (vu)b);
	return (a & m) | (b & ~m);
}
static inline vi
h_umax(vi a, vi b)
{
	vi m = (vi)((vuh)a > (vuh)b);
	return (a & m) | (b & ~m);
}
#define h_set(x) ((vi)(vuh){(x), (x), (x), (x), (x), (x), (x), (x)})
#define h_add(a, b) ((vi)((vuh)(a) + (vuh)(b)))
#define h_sub(a, b) ((vi)((vuh)(a) - (vuh)(b)))
#define h_srl(a, k) ((vi)((vuh)(a) >> (k)))
static inline vi
h_abs(vi a)
{
	vi m = (vi)((vh)a >> 15);
	return h_sub(a ^ m, m);
}
static inline vi
h_add_where(vi s, vi v, vi a, vi b)
{
	vi m = (vi)((vh)s >> 15);
	return (h_add(a, b) & m) | (v & ~m);
}
#define h_count_eq(c, a, b) ((vi)((vuh)(c) + (vuh)(vh)((vh)(a) == (vh)(b))))

/* Bit k of byte j of each lane of `bytes` bytes: count[8 j + k] += weight each. */
static inline void
i_positions(vi v, uint32_t bytes, uint32_t weight, uint32_t *count)
{
	uint64_t w[2];
	memcpy(w, &v, sizeof w);
	for (int k = 0; k < 8; k++) {
		/* Bit k of each byte, summed over the lanes; no byte overflows. */
		uint64_t s = (w[0] >> k & 0x0101010101010101) + (w[1] >> k & 0x0101010101010101);
		s += s >> 32;
		if (bytes == 2)
			s += s >> 16;
		for (uint32_t j = 0; j < bytes; j++)
			count[8 * j + (uint32_t)k] += weight * (uint32_t)(s >> 8 * j & 0xff);
	}
}

static inline vi
codes4(const void *p)
{
#if defined(__SSE2__)
	return (vi)_mm_unpacklo_epi16(_mm_loadl_epi64(p), _mm_setzero_si128());
#else
	uint16_t h[4];
	memcpy(h, p, sizeof h);
	return (vi){h[0], h[1], h[2], h[3]};
#endif
}

static inline vf
f_bf16(const void *p)
{
	return (vf)i_sll(codes4(p), 16);
}

/* Shift the exponent and mantissa into place; a subnormal is a normal minus its leading one. */
static inline vf
f_low_f16(vi h)
{
	const vi w = i_sll(i_and(h, i_set(0x7fff)), 13), exp = i_and(w, i_set(0x0f800000));
	const vi top = exp == i_set(0x0f800000), none = exp == i_zero();
	vi bits = i_add(w, i_set(0x38000000));
	bits = i_add(bits, i_and(top, i_set(0x38000000)));
	bits = i_add(bits, i_and(none, i_set(0x00800000)));
	const vf f = (vf)bits - (vf)i_and(none, (vi)f_set(0x1p-14f));
	return (vf)i_or((vi)f, i_sll(i_and(h, i_set(0x8000)), 16));
}

#if defined(__ARM_NEON) && defined(__aarch64__)
#define f_f16(p) ((vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)(p)))))
#else
#define f_f16(p) f_low_f16(codes4(p))
#endif

static inline void
d_f16(const void *p, vd *lo, vd *hi)
{
	const vf v = f_f16(p);
	*lo = d_lo(v);
	*hi = d_hi(v);
}

static inline void
d_bf16(const void *p, vd *lo, vd *hi)
{
	const vf v = f_bf16(p);
	*lo = d_lo(v);
	*hi = d_hi(v);
}

/* The lower and the upper half of lanes. */
#define f_low_bf16(v) ((vf)i_sll(v, 16))
#define f_high_bf16(v) ((vf)i_and(v, i_set(0xffff0000)))
#define f_high_f16(v) f_low_f16(i_srl(v, 16))

static inline vi
h_smax(vi a, vi b)
{
	vi m = (vi)((vh)a > (vh)b);
	return (a & m) | (b & ~m);
}

/* Counters of 16-bit lanes hold minus the count. */
typedef vh vn;
#define n_zero() ((vh)i_zero())
#define n_add_zeros(c, v) ((c) + ((vh)(v) == 0))
static inline uint32_t
n_sum(vn c)
{
	int n = 0;
	for (int i = 0; i < 8; i++)
		n -= c[i];
	return (uint32_t)n;
}

#if defined(__ARM_NEON) && defined(__aarch64__)
#define HAVE_H_DIFFER
static inline size_t
h_differ(uint32_t *to, vi x, vi y)
{
	static const uint8_t bit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
	const uint16x8_t a = (uint16x8_t)x, b = (uint16x8_t)y;
	const unsigned m = vaddv_u8(vand_u8(vmovn_u16(vmvnq_u16(vceqq_u16(a, b))), vld1_u8(bit)));
	const size_t n = (size_t)__builtin_popcount(m & 15);
	const uint8x16_t u = vreinterpretq_u8_u16(vzip1q_u16(a, b));
	const uint8x16_t v = vreinterpretq_u8_u16(vzip2q_u16(a, b));
	vst1q_u8((uint8_t *)to, vqtbl1q_u8(u, vld1q_u8(acc_together[m & 15])));
	vst1q_u8((uint8_t *)(to + n), vqtbl1q_u8(v, vld1q_u8(acc_together[m >> 4])));
	return n + (size_t)__builtin_popcount(m >> 4);
}
#endif
