#include "kernel/row.h"

#include <math.h>
#include <pthread.h>

enum acc_dtype
acc_component(enum acc_dtype t)
{
	return t == ACC_C32    ? ACC_F16
	       : t == ACC_BC32 ? ACC_BF16
	       : t == ACC_C64  ? ACC_F32
	       : t == ACC_C128 ? ACC_F64
			       : t;
}

bool
acc_is_narrow(enum acc_dtype t)
{
	const struct acc_dtype_info *d = acc_dtype_of(t);
	return d->cls != 'C' && (d->size <= 2 || t == ACC_F32);
}

bool
acc_is_8bit(enum acc_dtype t)
{
	return acc_dtype_of(t)->size == 1 && acc_dtype_of(t)->cls == 'F';
}

static void
make_codes(enum acc_dtype t, struct acc_codes *c)
{
	c->n = 0;
	c->wider = t == ACC_F8E8M0 ? ACC_BF16 : ACC_F16;
	for (int i = 0; i < 256; i++) {
		uint8_t byte = (uint8_t)i;
		float v = (float)acc_load_f64(t, &byte);
		c->value[i] = v;
		if (!isfinite(v) || signbit(v))
			continue;
		/* Most formats count upwards; HiFloat8 does not. */
		size_t at = c->n;
		while (at > 0 && c->magnitude[at - 1] > v)
			at--;
		if (at > 0 && c->magnitude[at - 1] == v)
			continue;
		memmove(c->magnitude + at + 1, c->magnitude + at, (c->n - at) * sizeof v);
		c->magnitude[at] = v;
		c->n++;
	}
	for (int i = 0; i < 256; i++) {
		float v = c->value[i];
		uint16_t rank = isfinite(v) ? (uint16_t)acc_round_code(t, c, v) : 0;
		const uint16_t sign = signbit(v) ? 0x8000 : 0;
		c->code[i] = rank | sign;
		uint64_t half = isnan(v)   ? 0x7fff
				: isinf(v) ? 0x7c00
					   : acc_round_code(c->wider, NULL, v);
		c->half[i] = (uint16_t)half | sign;
	}
}

/* Made when the first is asked for, and never again. */
static struct acc_codes made[ACC_NDTYPE];

static void
make_all(void)
{
	for (int t = 0; t < ACC_NDTYPE; t++)
		if (acc_is_8bit((enum acc_dtype)t))
			make_codes((enum acc_dtype)t, &made[t]);
}

const struct acc_codes *
acc_codes_of(enum acc_dtype t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	if (!acc_is_8bit(t))
		return NULL;
	pthread_once(&once, make_all);
	return &made[t];
}

void
acc_narrow_load(const struct acc_row *row, enum acc_dtype t, const struct acc_codes *codes,
	const void *p, size_t n, float *out)
{
	const uint8_t *b = p;
#define EACH(type, expr) \
	for (size_t i = 0; i < n; i++) { \
		type v; \
		memcpy(&v, b + i * sizeof v, sizeof v); \
		out[i] = expr; \
	} \
	break
	switch (t) {
	case ACC_F32:
		memcpy(out, p, n * sizeof *out);
		break;
	case ACC_F16:
		row->f16(p, out, n);
		break;
	case ACC_BF16:
		row->bf16(p, out, n);
		break;
	case ACC_I16:
		EACH(int16_t, v);
	case ACC_U16:
		EACH(uint16_t, v);
	case ACC_I8:
		EACH(int8_t, v);
	case ACC_U8:
		EACH(uint8_t, v);
	case ACC_BOOL:
		EACH(uint8_t, v != 0);
	default:
		EACH(uint8_t, codes->value[v]);
	}
}

const float *
acc_narrow_view(const struct acc_row *row, enum acc_dtype t, const struct acc_codes *codes,
	const void *p, size_t n, float *buf)
{
	if (t == ACC_F32 && (uintptr_t)p % _Alignof(float) == 0)
		return p;
	acc_narrow_load(row, t, codes, p, n, buf);
	return buf;
}

void
acc_wide_load(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	switch (t) {
	case ACC_F64:
		memcpy(out, p, n * sizeof *out);
		break;
	case ACC_F32:
		EACH(float, (double)v);
	case ACC_I64:
		EACH(int64_t, (double)v);
	case ACC_U64:
		EACH(uint64_t, (double)v);
	case ACC_I32:
		EACH(int32_t, v);
	case ACC_U32:
		EACH(uint32_t, v);
	case ACC_I16:
		EACH(int16_t, v);
	case ACC_U16:
		EACH(uint16_t, v);
	case ACC_I8:
		EACH(int8_t, v);
	case ACC_U8:
		EACH(uint8_t, v);
	case ACC_BOOL:
		EACH(uint8_t, v != 0);
	default:
		for (size_t i = 0; i < n; i++)
			out[i] = acc_load_f64(t, b + i * acc_dtype_of(t)->size);
	}
#undef EACH
}

/* Among the magnitudes of an 8-bit format, in which neighbours of even rank win ties. */
static uint64_t
nearest(const struct acc_codes *c, double x)
{
	size_t lo = 0, hi = c->n - 1;
	if (x > (double)c->magnitude[hi]) {
		double beyond = 2 * (double)c->magnitude[hi] - (double)c->magnitude[hi - 1];
		double half = ((double)c->magnitude[hi] + beyond) / 2;
		return hi + (x > half || (x == half && hi % 2 == 1));
	}
	while (hi - lo > 1) {
		size_t mid = (lo + hi) / 2;
		if ((double)c->magnitude[mid] <= x)
			lo = mid;
		else
			hi = mid;
	}
	double below = x - (double)c->magnitude[lo], above = (double)c->magnitude[hi] - x;
	return above < below || (above == below && lo % 2 == 1) ? hi : lo;
}

uint64_t
acc_round_code(enum acc_dtype t, const struct acc_codes *codes, double x)
{
	x = fabs(x);
	if (t == ACC_F64) {
		uint64_t bits;
		memcpy(&bits, &x, sizeof bits);
		return bits;
	}
	if (acc_is_8bit(t))
		return nearest(codes, x);
	int mb = t == ACC_F32 ? 23 : t == ACC_F16 ? 10 : 7, eb = t == ACC_F16 ? 5 : 8;
	int emin = 2 - (1 << (eb - 1)), exp;
	uint64_t inf = ((UINT64_C(1) << eb) - 1) << mb;
	if (x == 0)
		return 0;
	frexp(x, &exp);
	exp = exp - 1 < emin ? emin : exp - 1;
	if (exp > 1 - emin)
		return inf;
	/* The mantissa with its leading one, rounded; a carry goes into the exponent. */
	return ((uint64_t)(exp - emin) << mb) + (uint64_t)rint(ldexp(x, mb - exp));
}
