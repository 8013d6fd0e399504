/* prim_base.h - primitives as GNU C vectors of 16 bytes: SSE2, NEON, or whatever there is */
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
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
	return (uint32_t)-(c[0] + c[1] + c[2] + c[3]);
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
#define dm_count(m) (uint32_t)-((m)[0] + (m)[1])

#define d_set(x) ((vd){(x), (x)})
#define d_add(a, b) ((a) + (b))
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
