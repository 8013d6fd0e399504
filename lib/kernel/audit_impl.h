/* audit_impl.h - the loops of audit.h; included once by each instruction set, with AUDIT_ROW.
 *
 * Vectors are the compiler's, as wide as the machine's. */
#include "kernel/audit.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define WIDTH 8
#elif defined(__AVX__)
#define WIDTH 4
#else
#define WIDTH 2
#endif
enum { W = WIDTH, K = 16 / WIDTH }; /* K vectors are the 16 lanes */
#define VECTOR(type, name) \
	typedef type name __attribute__((vector_size(sizeof(type) * WIDTH), aligned(sizeof(type)), \
		may_alias))
VECTOR(double, vd);
VECTOR(int64_t, vi);
VECTOR(float, vf);
VECTOR(uint32_t, vu);
VECTOR(uint16_t, vh);

#define AT(p) (*(const vd *)(const void *)(p))
#define PUT(p) (*(vd *)(void *)(p))
#define ALL(x) ((vd){0} + (x))
#define ABS(x) ((vd)((vi)(x)&INT64_MAX))
/* Where m (a comparison's result): x, else y. */
#define PICK(m, x, y) ((vd)(((vi)(x) & (m)) | ((vi)(y) & ~(m))))
#define LANES for (int k = 0; k < K; k++)

static double
fold(const vd a[K])
{
	double l[16];
	memcpy(l, a, sizeof l);
	for (int h = 8; h > 0; h /= 2)
		for (int i = 0; i < h; i++)
			l[i] += l[i + h];
	return l[0];
}

static bool
any(const vi a[K])
{
	int64_t l[16], x = 0;
	memcpy(l, a, sizeof l);
	for (int i = 0; i < 16; i++)
		x |= l[i];
	return x != 0;
}

static double
most(const vd a[K])
{
	double l[16], x;
	memcpy(l, a, sizeof l);
	x = l[0];
	for (int i = 1; i < 16; i++)
		x = l[i] > x ? l[i] : x;
	return x;
}

/* The last elements with zeros behind them. */
static const double *
rest(const double *p, size_t n, double buf[16])
{
	for (size_t i = 0; i < 16; i++)
		buf[i] = i < n ? p[i] : 0;
	return buf;
}

/* --- loading --- */

static void
bf16(const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	size_t i = 0;
	for (; i + W <= n; i += W) {
		vu x = __builtin_convertvector(*(const vh *)(const void *)(b + 2 * i), vu) << 16;
		PUT(out + i) = __builtin_convertvector((vf)x, vd);
	}
	for (; i < n; i++) {
		uint16_t h;
		uint32_t u;
		float f;
		memcpy(&h, b + 2 * i, sizeof h);
		u = (uint32_t)h << 16;
		memcpy(&f, &u, sizeof f);
		out[i] = f;
	}
}

static double
one_f16(uint16_t h)
{
	int e = h >> 10 & 31, m = h & 1023;
	double x = e == 0    ? m * 0x1p-24
		   : e == 31 ? (m == 0 ? INFINITY : NAN)
			     : ldexp(1024 + m, e - 25);
	return h & 0x8000 ? -x : x;
}

/* Exponent and mantissa in their place of an f32, times 2^112: right also where it is subnormal. */
static void
f16(const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	size_t i = 0;
	for (; i + W <= n; i += W) {
		vu x = __builtin_convertvector(*(const vh *)(const void *)(b + 2 * i), vu);
		vu wild = (vu)((x & 0x7c00) == 0x7c00);
		vf f = (vf)((x & 0x7fff) << 13) * 0x1p112F;
		vu r = ((vu)f | (wild & 0x7f800000)) | (x & 0x8000) << 16;
		PUT(out + i) = __builtin_convertvector((vf)r, vd);
	}
	for (; i < n; i++) {
		uint16_t h;
		memcpy(&h, b + 2 * i, sizeof h);
		out[i] = one_f16(h);
	}
}

static void
f32(const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	size_t i = 0;
	for (; i + W <= n; i += W)
		PUT(out + i) = __builtin_convertvector(*(const vf *)(const void *)(b + 4 * i), vd);
	for (; i < n; i++) {
		float f;
		memcpy(&f, b + 4 * i, sizeof f);
		out[i] = f;
	}
}

/* --- errors --- */

struct errors {
	vd sum[K], csum[K], top[K], ctop[K];
	vi wild[K];
};

static inline void
judge16(const struct acc_ruler *y, const double *rec, const double *ref, const double *mag,
	const double *more, struct errors *s)
{
	LANES
	{
		vd r = AT(rec + k * W), f = AT(ref + k * W), m = AT(mag + k * W);
		vd af = ABS(f), d = ABS(r - f), den = y->unit * af + y->tiny + AT(more + k * W);
		vd e = d / (den + y->work * m), c = d / (den + y->coarse * m);
		s->wild[k] |= ~(vi)(af <= y->max) | ~(vi)(ABS(r) <= y->max);
		s->sum[k] += e * e;
		s->csum[k] += c * c;
		s->top[k] = PICK((vi)(e > s->top[k]), e, s->top[k]);
		s->ctop[k] = PICK((vi)(c > s->ctop[k]), c, s->ctop[k]);
	}
}

static bool
judge(const struct acc_ruler *y, const double *rec, const double *ref, const double *mag,
	const double *more, size_t n, struct acc_block_err *out)
{
	struct errors s = {0};
	double br[16], bf[16], bm[16], bo[16], none[16] = {0};
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		judge16(y, rec + i, ref + i, mag == NULL ? none : mag + i,
			more == NULL ? none : more + i, &s);
	if (i < n)
		judge16(y, rest(rec + i, n - i, br), rest(ref + i, n - i, bf),
			mag == NULL ? none : rest(mag + i, n - i, bm),
			more == NULL ? none : rest(more + i, n - i, bo), &s);
	*out = (struct acc_block_err){fold(s.sum), most(s.top), fold(s.csum), most(s.ctop)};
	return !any(s.wild);
}

static void
slope(const struct acc_slope *s, size_t n)
{
	const double *x = s->x, *up = s->up, *down = s->down, *f = s->f, *fup = s->fup, *g = s->g;
	const double *fdown = s->fdown, kink = s->kink, saves = s->saves;
	double *ref = s->ref, *more = s->more, *skip = s->skip;
	for (size_t i = 0; down == NULL && i < n; i++) {
		double h = up[i] - x[i], noise = 0x1p-51 * (fabs(f[i]) + fabs(fup[i])) / h;
		ref[i] = g[i] * ((fup[i] - f[i]) / h);
		more[i] = fabs(g[i]) * noise + saves * fabs(g[i]);
		skip[i] = 0;
	}
	for (size_t i = 0; down != NULL && i < n; i++) {
		double hp = up[i] - x[i], hm = x[i] - down[i], h = hp < hm ? hp : hm;
		double u = (fup[i] - f[i]) / hp, d = (f[i] - fdown[i]) / hm;
		double noise = 0x1p-51 * fabs(f[i]) / h, au = fabs(u), ad = fabs(d);
		ref[i] = g[i] * ((fup[i] - fdown[i]) / (hp + hm));
		more[i] = fabs(g[i]) * noise + saves * fabs(g[i]);
		skip[i] = fabs(u - d) > kink * (au > ad ? au : ad) + 4 * noise ? 1 : 0;
	}
}

/* --- products --- */

static void
dot(const double *x, const double *y, size_t n, double *total, double *abs)
{
	vd s[K] = {0}, a[K] = {0};
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		LANES
		{
			vd p = AT(x + i + k * W) * AT(y + i + k * W);
			s[k] += p;
			a[k] += ABS(p);
		}
	*total += fold(s);
	*abs += fold(a);
	for (; i < n; i++) {
		double p = x[i] * y[i];
		*total += p;
		*abs += fabs(p);
	}
}

static void
line(const double *a, size_t n, const struct acc_line *l, double *result)
{
	vd s[K] = {0}, t[K] = {0};
	const double p = l->p, q = l->q, *u = l->u, *w = l->w;
	double *to = l->to, *to2 = l->to2;
	size_t i = 0;
#define LINE(DOT, F, ADD, G) \
	for (; i + 16 <= n; i += 16) \
		LANES \
		{ \
			size_t at = i + (size_t)k * W; \
			vd x = AT(a + at); \
			if (DOT) { \
				s[k] += x * AT(u + at); \
				t[k] += F(x) * AT(w + at); \
			} \
			if (ADD) { \
				PUT(to + at) = AT(to + at) + p * x; \
				PUT(to2 + at) = AT(to2 + at) + q * G(x); \
			} \
		}
#define SQ(x) ((x) * (x))
	if (u != NULL && to != NULL && l->dot_square && l->add_square) {
		LINE(true, SQ, true, SQ)
	} else if (u != NULL && to != NULL && l->dot_square) {
		LINE(true, SQ, true, ABS)
	} else if (u != NULL && to != NULL && l->add_square) {
		LINE(true, ABS, true, SQ)
	} else if (u != NULL && l->dot_square) {
		LINE(true, SQ, false, ABS)
	} else if (u != NULL) {
		LINE(true, ABS, false, SQ)
	} else if (l->add_square) {
		LINE(false, ABS, true, SQ)
	} else {
		LINE(false, SQ, true, ABS)
	}
	if (u != NULL) {
		result[0] += fold(s);
		result[1] += fold(t);
	}
	for (; i < n; i++) {
		double sq = a[i] * a[i], ab = fabs(a[i]);
		if (u != NULL) {
			result[0] += a[i] * u[i];
			result[1] += (l->dot_square ? sq : ab) * w[i];
		}
		if (to != NULL) {
			to[i] += p * a[i];
			to2[i] += q * (l->add_square ? sq : ab);
		}
	}
#undef LINE
#undef SQ
}

/* --- elements --- */

static void
binary(enum acc_audit_binary which, const double *x, size_t xs, const double *y, size_t ys,
	size_t n, double *out)
{
#define EACH(OP) \
	if (xs == 1 && ys == 1) { \
		for (size_t i = 0; i < n; i++) \
			out[i] = x[i] OP y[i]; \
	} else if (xs == 1) { \
		for (size_t i = 0; i < n; i++) \
			out[i] = x[i] OP * y; \
	} else { \
		for (size_t i = 0; i < n; i++) \
			out[i] = *x OP y[i * ys]; \
	}
	switch (which) {
	case ACC_AUDIT_ADD:
		EACH(+)
		break;
	case ACC_AUDIT_SUB:
		EACH(-)
		break;
	case ACC_AUDIT_MUL:
		EACH(*)
		break;
	default:
		EACH(/)
	}
#undef EACH
}

/* e^x = 2^k e^r with |r| <= ln 2 / 2, whose series ends below 2^-60; 2^k in two steps, so that
 * what is subnormal is rounded once. */
static inline void
exp16(const double *x, double less, double *out)
{
	static const double c[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
		1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5};
	const vd shift = ALL(0x1.8p52), hi = ALL(720.0), lo = ALL(-760.0);
	LANES
	{
		vd t = AT(x + k * W) - less, from = t;
		t = PICK((vi)(t > hi), hi, t);
		t = PICK((vi)(t < lo), lo, t);
		vd n = (t * 0x1.71547652b82fep0 + shift) - shift;
		vd r = (t - n * 0x1.62e42feep-1) - n * 0x1.a39ef35793c76p-33;
		vd p = ALL(1.0 / 6227020800);
		for (size_t j = 0; j < sizeof c / sizeof *c; j++)
			p = p * r + c[j];
		p = (p * (r * r) + r) + 1.0;
		vi whole = (vi)(n + shift) - (vi)shift, half = whole >> 1;
		vd y = p * (vd)((half + 1023) << 52) * (vd)((whole - half + 1023) << 52);
		PUT(out + k * W) = PICK((vi)(ABS(from) <= ALL(INFINITY)), y, from);
	}
}

static void
exps(const double *x, double less, size_t n, double *out)
{
	double buf[16];
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		exp16(x + i, less, out + i);
	if (i == n)
		return;
	exp16(rest(x + i, n - i, buf), less, buf);
	memcpy(out + i, buf, (n - i) * sizeof *out);
}

static double
top(const double *x, size_t n)
{
	vd m[K];
	vi nan[K] = {0};
	double all = -INFINITY;
	bool none = true;
	size_t i = 0;
	LANES m[k] = ALL(-INFINITY);
	for (; i + 16 <= n; i += 16)
		LANES
		{
			vd v = AT(x + i + k * W);
			m[k] = PICK((vi)(v > m[k]), v, m[k]);
			nan[k] |= (vi)(v != v); /* NOLINT(misc-redundant-expression): of NaN only */
		}
	none = !any(nan);
	all = most(m);
	for (; i < n; i++) {
		all = x[i] > all ? x[i] : all;
		none &= !isnan(x[i]);
	}
	return none ? all : NAN;
}

static void
part(double *y, const double *x, double upto, double total, size_t n, double *mag)
{
	for (size_t i = 0; i < n; i++)
		y[i] /= total;
	if (mag == NULL)
		return;
	for (size_t i = 0; i < n; i++) {
		double d = fabs(x[i] - upto);
		mag[i] = d < INFINITY ? y[i] * d : mag[i];
	}
}

static void
affine(const double *x, size_t n, const struct acc_affine *f, double *out, double *mag)
{
	static const double one = 1, zero = 0;
	const double *w = f->w == NULL ? &one : f->w, *b = f->b == NULL ? &zero : f->b;
	size_t ws = f->each && f->w != NULL, bs = f->each && f->b != NULL;
	const double mean = f->mean, scale = f->scale, size = f->size;
	if (ws == 1 && bs == 1)
		for (size_t i = 0; i < n; i++)
			out[i] = (x[i] - mean) * scale * w[i] + b[i];
	else if (ws == 1)
		for (size_t i = 0; i < n; i++)
			out[i] = (x[i] - mean) * scale * w[i] + *b;
	else
		for (size_t i = 0; i < n; i++)
			out[i] = (x[i] - mean) * scale * *w + b[i * bs];
	if (mag == NULL)
		return;
	if (ws == 1 && bs == 1)
		for (size_t i = 0; i < n; i++)
			mag[i] = (fabs(x[i]) + size) * scale * fabs(w[i]) + fabs(b[i]);
	else if (ws == 1)
		for (size_t i = 0; i < n; i++)
			mag[i] = (fabs(x[i]) + size) * scale * fabs(w[i]) + fabs(*b);
	else
		for (size_t i = 0; i < n; i++)
			mag[i] = (fabs(x[i]) + size) * scale * fabs(*w) + fabs(b[i * bs]);
}

static double
sum(const double *x, size_t n, double *abs)
{
	vd s[K] = {0}, a[K] = {0};
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		LANES
		{
			vd p = AT(x + i + k * W);
			s[k] += p;
			a[k] += ABS(p);
		}
	double all = fold(s);
	*abs = fold(a);
	for (; i < n; i++) {
		all += x[i];
		*abs += fabs(x[i]);
	}
	return all;
}

static double
squares(const double *x, double less, size_t n)
{
	vd s[K] = {0};
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		LANES
		{
			vd p = AT(x + i + k * W) - less;
			s[k] += p * p;
		}
	double all = fold(s);
	for (; i < n; i++)
		all += (x[i] - less) * (x[i] - less);
	return all;
}

static bool
all_finite(const double *x, size_t n)
{
	vi wild[K] = {0};
	size_t i = 0;
	for (; i + 16 <= n; i += 16)
		LANES wild[k] |= ~(vi)(ABS(AT(x + i + k * W)) < ALL(INFINITY));
	bool good = !any(wild);
	for (; i < n; i++)
		good &= fabs(x[i]) < INFINITY;
	return good;
}

const struct acc_audit_row AUDIT_ROW = {bf16, f16, f32, judge, slope, dot, line, binary, exps, top,
	part, affine, sum, squares, all_finite};
