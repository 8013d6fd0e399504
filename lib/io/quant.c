#include "io/quant.h"

#include <math.h>

static float
half(const uint8_t *p)
{
	return (float)acc_load_f64(ACC_F16, p);
}

/* How far the rounding of a scale to f16 moves it. */
static float
scale_rounding(float d)
{
	return fmaxf(fabsf(d) * 0x1p-11F, 0x1p-25F);
}

/* Rounded to the nearest of a grid a value lies within half a step; where the largest magnitude is at the
 * longer end of the grid (Q4_0, Q5_0: -8 of -8 to 7), one of the other sign up to a whole one. What the rounding of the
 * step itself does counts as often as an element has steps. */
static void
even(float step, int most, float *reach)
{
	for (int i = 0; i < 32 && reach != NULL; i++)
		reach[i] = fabsf(step) + scale_rounding(step) * (float)most;
}

static void
q8_0(const uint8_t *b, float *v, float *reach)
{
	const float d = half(b);
	for (int i = 0; i < 32; i++)
		v[i] = d * (float)(int8_t)b[2 + i];
	even(d, 127, reach);
}

/* Of 32 elements: the four low bits of the first half are low nibbles, those of the second high ones; the
 * fifth bits, where there are any, stand together. */
static void
nibbles(const uint8_t *low, const uint8_t *high, float d, int zero, float m, float *v, float *reach)
{
	uint32_t fifth = 0;
	for (int i = 0; high != NULL && i < 4; i++)
		fifth |= (uint32_t)high[i] << 8 * i;
	for (int i = 0; i < 32; i++) {
		const int q = (i < 16 ? low[i] & 15 : low[i - 16] >> 4) | (int)(fifth >> i & 1)
										  << 4;
		v[i] = zero > 0 ? d * (float)(q - zero) : d * (float)q + m;
	}
	even(d, 31, reach);
}

static void
q4_0(const uint8_t *b, float *v, float *reach)
{
	nibbles(b + 2, NULL, half(b), 8, 0, v, reach);
}

static void
q4_1(const uint8_t *b, float *v, float *reach)
{
	nibbles(b + 4, NULL, half(b), 0, half(b + 2), v, reach);
}

static void
q5_0(const uint8_t *b, float *v, float *reach)
{
	nibbles(b + 6, b + 2, half(b), 16, 0, v, reach);
}

static void
q5_1(const uint8_t *b, float *v, float *reach)
{
	nibbles(b + 8, b + 4, half(b), 0, half(b + 2), v, reach);
}

/* Scale and minimum j of eight, of six bits each, in twelve bytes. */
static void
scale_min(const uint8_t *q, int j, int *scale, int *min)
{
	if (j < 4) {
		*scale = q[j] & 63;
		*min = q[j + 4] & 63;
	} else {
		*scale = (q[j + 4] & 15) | q[j - 4] >> 6 << 4;
		*min = q[j + 4] >> 4 | q[j] >> 6 << 4;
	}
}

/* Eight times 32 elements, with a scale and a minimum each. The search for these may leave an element
 * more than half a step outside the grid; and they were themselves rounded, to multiples of d and min,
 * of which the one counts as often as the element has steps. */
static void
q45_k(const uint8_t *b, const uint8_t *high, const uint8_t *low, int most, float *v, float *reach)
{
	const float d = half(b), dmin = half(b + 2);
	for (int j = 0; j < 8; j++) {
		int scale, min;
		scale_min(b + 4, j, &scale, &min);
		for (int i = 0; i < 32; i++) {
			const uint8_t byte = low[j / 2 * 32 + i];
			int q = j % 2 == 0 ? byte & 15 : byte >> 4;
			if (high != NULL)
				q |= (high[i] >> j & 1) << 4;
			v[j * 32 + i] = d * (float)scale * (float)q - dmin * (float)min;
			if (reach != NULL)
				reach[j * 32 + i] = fabsf(d) * (float)scale +
						    (0.5F * fabsf(d) + 63 * scale_rounding(d)) *
							    (float)most +
						    0.5F * fabsf(dmin) + 63 * scale_rounding(dmin);
		}
	}
}

static void
q4_k(const uint8_t *b, float *v, float *reach)
{
	q45_k(b, NULL, b + 16, 15, v, reach);
}

static void
q5_k(const uint8_t *b, float *v, float *reach)
{
	q45_k(b, b + 16, b + 48, 31, v, reach);
}

/* Sixteen times 16 elements of six bits with a scale of eight; low nibbles, then the high two bits. */
static void
q6_k(const uint8_t *b, float *v, float *reach)
{
	const float d = half(b + 208);
	for (int i = 0; i < 256; i++) {
		const int part = i / 128, in = i % 128, k = in / 32, l = in % 32;
		const uint8_t low = b[part * 64 + k % 2 * 32 + l], high = b[128 + part * 32 + l];
		const int q = ((k < 2 ? low & 15 : low >> 4) | (high >> 2 * k & 3) << 4) - 32;
		const float scale = (float)(int8_t)b[192 + part * 8 + in / 16];
		v[i] = d * scale * (float)q;
		if (reach != NULL)
			reach[i] = fabsf(d) * (fabsf(scale) + 16) + 32 * 128 * scale_rounding(d);
	}
}

/* Floats of 4 bits, twice what they are, and a power of two for 32 of them, half of what it is. */
static void
mxfp4(const uint8_t *b, float *v, float *reach)
{
	static const float twice[8] = {0, 1, 2, 3, 4, 6, 8, 12}, gap[8] = {1, 1, 1, 1, 2, 2, 4, 4};
	const float scale = ldexpf(1, b[0] - 128);
	for (int i = 0; i < 32; i++) {
		const uint8_t code = i < 16 ? b[1 + i] & 15 : b[1 + i - 16] >> 4;
		v[i] = (code & 8 ? -scale : scale) * twice[code & 7];
		/* The power is that of the largest one, which is less than 16: it is cut to 12. */
		if (reach != NULL)
			reach[i] = scale * gap[code & 7];
	}
}

static const struct acc_quant quants[] = {
	{"Q4_0", 2, 32, 18, q4_0},
	{"Q4_1", 3, 32, 20, q4_1},
	{"Q5_0", 6, 32, 22, q5_0},
	{"Q5_1", 7, 32, 24, q5_1},
	{"Q8_0", 8, 32, 34, q8_0},
	{"Q4_K", 12, 256, 144, q4_k},
	{"Q5_K", 13, 256, 176, q5_k},
	{"Q6_K", 14, 256, 210, q6_k},
	{"MXFP4", 39, 32, 17, mxfp4},
};
_Static_assert(sizeof quants / sizeof *quants == ACC_NENC - ACC_Q4_0, "a row for each");

const struct acc_quant *
acc_quant_of(enum acc_enc enc)
{
	return enc >= ACC_Q4_0 && enc < ACC_NENC ? &quants[enc - ACC_Q4_0] : NULL;
}

enum acc_enc
acc_quant_type(uint32_t type)
{
	for (int i = ACC_Q4_0; i < ACC_NENC; i++)
		if (quants[i - ACC_Q4_0].type == type)
			return (enum acc_enc)i;
	return ACC_STORED;
}

enum acc_enc
acc_quant_named(struct acc_str name)
{
	for (int i = ACC_Q4_0; i < ACC_NENC; i++)
		if (acc_str_is(name, quants[i - ACC_Q4_0].name))
			return (enum acc_enc)i;
	return ACC_STORED;
}
