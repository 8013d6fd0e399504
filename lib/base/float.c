/* Any element as a double. Exact for every float format up to 64 bits. Small formats are
 * decoded from their definitions: IEEE 754 half, bfloat16, the OCP 8-bit formats (OFP8,
 * MX scale and the elements of 6 and 4 bits), the *fnuz variants (bias one higher, or 11, no infinities, NaN at
 * 0x80), those of IEEE style that ml_dtypes has, and HiFloat8 (a prefix code that says how many exponent bits follow). */
#include "acc/tensor.h"

#include <math.h>

/* sign, `eb` exponent bits, `mb` mantissa bits, IEEE style subnormals, no special codes. */
static double
small(uint32_t bits, int eb, int mb, int bias)
{
	int mant = (int)(bits & ((1u << mb) - 1)), e = (int)(bits >> mb & ((1u << eb) - 1));
	double v = e == 0 ? ldexp(mant, 1 - bias - mb) : ldexp(mant + (1 << mb), e - bias - mb);
	return bits >> (eb + mb) & 1 ? -v : v;
}

static double
ieee(uint32_t bits, int eb, int mb)
{
	uint32_t top = (1u << eb) - 1, mant = bits & ((1u << mb) - 1);
	if ((bits >> mb & top) != top)
		return small(bits, eb, mb, (1 << (eb - 1)) - 1);
	if (mant != 0)
		return NAN;
	return bits >> (eb + mb) & 1 ? -INFINITY : INFINITY;
}

static double
hif8(uint32_t x)
{
	double sign = x & 0x80 ? -1 : 1;
	uint32_t low = x & 0x7f;
	if (low == 0)
		return x == 0 ? 0 : NAN;
	if (low == 0x6f)
		return sign * INFINITY;
	if (low < 8)
		return sign * ldexp(1, (int)low - 23);
	/* The dot field: 11, 10, 01, 001, 0001 for 4, 3, 2, 1, 0 exponent bits. */
	int d = low >> 5 != 0 ? (int)(low >> 5) + 1 : low >> 4 != 0 ? 1 : 0;
	int m = d == 4 ? 1 : d == 3 ? 2 : 3;
	int mant = (int)(low & ((1u << m) - 1)), exp = 0;
	if (d > 0) {
		int field = (int)(low >> m & ((1u << d) - 1)), half = 1 << (d - 1);
		int magnitude = half + (field & (half - 1));
		exp = field & half ? -magnitude : magnitude;
	}
	return sign * ldexp(mant + (1 << m), exp - m);
}

static double
f8(enum acc_dtype t, uint8_t x)
{
	switch (t) {
	case ACC_F8E4M3:
		return (x & 0x7f) == 0x7f ? NAN : small(x, 4, 3, 7);
	case ACC_F8E5M2:
		return ieee(x, 5, 2);
	case ACC_F8E4M3FNUZ:
		return x == 0x80 ? NAN : small(x, 4, 3, 8);
	case ACC_F8E5M2FNUZ:
		return x == 0x80 ? NAN : small(x, 5, 2, 16);
	case ACC_F8E8M0:
		return x == 0xff ? NAN : ldexp(1, x - 127);
	case ACC_F8E4M3IEEE:
		return ieee(x, 4, 3);
	case ACC_F8E3M4:
		return ieee(x, 3, 4);
	case ACC_F8E4M3B11FNUZ:
		return x == 0x80 ? NAN : small(x, 4, 3, 11);
	/* Those of fewer bits are the low ones of a byte. */
	case ACC_F6E2M3:
		return small(x, 2, 3, 1);
	case ACC_F6E3M2:
		return small(x, 3, 2, 3);
	case ACC_F4E2M1:
		return small(x, 2, 1, 1);
	default:
		return hif8(x);
	}
}

double
acc_load_f64(enum acc_dtype t, const void *p)
{
#define AS(type) \
	do { \
		type v; \
		memcpy(&v, p, sizeof v); \
		return (double)v; \
	} while (0)
	uint16_t h;
	uint32_t w;
	float f;
	switch (t) {
	case ACC_F64:
	case ACC_C128:
		AS(double);
	case ACC_F32:
	case ACC_C64:
		AS(float);
	case ACC_F16:
	case ACC_C32:
		memcpy(&h, p, sizeof h);
		return ieee(h, 5, 10);
	case ACC_BF16:
	case ACC_BC32:
		memcpy(&h, p, sizeof h);
		w = (uint32_t)h << 16;
		memcpy(&f, &w, sizeof f);
		return f;
	case ACC_I64:
		AS(int64_t);
	case ACC_I32:
		AS(int32_t);
	case ACC_I16:
		AS(int16_t);
	case ACC_I8:
		AS(int8_t);
	case ACC_U64:
		AS(uint64_t);
	case ACC_U32:
		AS(uint32_t);
	case ACC_U16:
		AS(uint16_t);
	case ACC_U8:
		AS(uint8_t);
	case ACC_BOOL:
		return *(const uint8_t *)p != 0;
	default:
		return f8(t, *(const uint8_t *)p);
	}
#undef AS
}
