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

#define d_set(x) ((vd){(x), (x)})
#define d_add(a, b) ((a) + (b))
#define d_sub(a, b) ((a) - (b))
#define d_mul(a, b) ((a) * (b))
#define d_muladd(a, b, c) ((a) * (b) + (c))
