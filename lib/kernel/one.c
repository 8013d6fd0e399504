/* One side's statistics, block by block. */
#include "kernel/one.h"

#include <math.h>
#include <stdlib.h>

void
acc_one_block(struct acc_one *o, const struct acc_blk1 *r, size_t n)
{
	o->n += n;
	o->zero += r->zero;
	o->min = r->min < o->min ? r->min : o->min;
	o->max = r->max > o->max ? r->max : o->max;
	acc_sum_add(&o->sum, r->sum);
	acc_sum_add(&o->sumsq, r->sumsq);
}

bool
acc_saturates(const struct acc_blk1 *r, double largest)
{
	return largest > 0 && (r->max == largest || r->min == -largest);
}

void
acc_one_saturated(struct acc_one *o, const float *x, size_t n, double largest)
{
	for (size_t i = 0; i < n; i++)
		o->sat += fabs((double)x[i]) == largest;
}

size_t
acc_pad_block(const float **x, size_t n, float *buf)
{
	const size_t padded = (n + ACC_QUAD - 1) / ACC_QUAD * ACC_QUAD;
	if (padded > n) {
		if (*x != buf)
			memcpy(buf, *x, n * sizeof *buf);
		for (size_t i = n; i < padded; i++)
			buf[i] = NAN;
		*x = buf;
	}
	return padded;
}

size_t
acc_next_bit(const uint64_t *bits, size_t from, size_t n)
{
	for (size_t w = from / 64; w * 64 < n; w++) {
		uint64_t b = bits[w];
		if (w == from / 64)
			b &= ~UINT64_C(0) << from % 64;
		if (b != 0)
			return w * 64 + (size_t)__builtin_ctzll(b);
	}
	return n;
}

size_t
acc_one_odd_block(const struct acc_row *row, struct acc_one *o, struct acc_blk1 *r, const float *x,
	size_t n, double largest)
{
	_Alignas(64) float buf[ACC_BLOCK], y[ACC_BLOCK];
	uint64_t bad[ACC_BLOCK / 64];
	struct acc_blk1 range;
	const size_t padded = acc_pad_block(&x, n, buf);
	const size_t finite = row->clean(x, x, padded, y, y, bad, &range);
	for (size_t i = acc_next_bit(bad, 0, n); i < n; i = acc_next_bit(bad, i + 1, n)) {
		o->nan += isnan(x[i]) != 0;
		o->posinf += x[i] > 0;
		o->neginf += x[i] < 0;
	}
	row->one(y, padded, r);
	r->zero -= (uint32_t)(padded - finite);
	r->min = range.min;
	r->max = range.max;
	acc_one_block(o, r, n);
	if (acc_saturates(r, largest))
		acc_one_saturated(o, y, n, largest);
	return finite;
}

/* f64, wide integers: doubles, which may overflow when squared. */
static void
wide_block(const struct acc_row *row, struct acc_one *o, double *x, size_t n, double largest)
{
	struct acc_blk1 r, scaled;
	const size_t padded = (n + 15) / 16 * 16;
	const size_t finite = row->finite_pairs(x, x, n);
	for (size_t i = n; i < padded; i++)
		x[i] = 0;
	double lo = INFINITY, hi = -INFINITY;
	for (size_t i = 0; finite < padded && i < n; i++) {
		if (isfinite(x[i])) {
			lo = x[i] < lo ? x[i] : lo;
			hi = x[i] > hi ? x[i] : hi;
			continue;
		}
		o->nan += isnan(x[i]) != 0;
		o->posinf += x[i] > 0;
		o->neginf += x[i] < 0;
		x[i] = 0;
	}
	row->wide_one(x, padded, &r);
	r.zero -= (uint32_t)(padded - finite);
	r.min = (finite < padded ? lo : r.min) + 0.0; /* not -0 */
	r.max = (finite < padded ? hi : r.max) + 0.0;
	if (acc_saturates(&r, largest))
		for (size_t i = 0; i < n; i++)
			o->sat += fabs(x[i]) == largest;
	const int k = acc_scale_of(x, n, r.sumsq);
	scaled = r;
	for (size_t i = 0; k != 0 && i < n; i++)
		x[i] = ldexp(x[i], k);
	if (k != 0)
		row->wide_one(x, padded, &scaled);
	acc_sum_add_at(&o->sum, scaled.sum, -k);
	acc_sum_add_at(&o->sumsq, scaled.sumsq, -2 * k);
	r.sum = r.sumsq = 0;
	acc_one_block(o, &r, n);
}

double
acc_modulus(double re, double im)
{
	double x = fabs(re), y = fabs(im), big = x > y ? x : y;
	if (isinf(x) || isinf(y))
		return INFINITY;
	if (big > 0x1p500)
		return sqrt((x * 0x1p-600) * (x * 0x1p-600) + (y * 0x1p-600) * (y * 0x1p-600)) *
		       0x1p600;
	if (big < 0x1p-500)
		return sqrt((x * 0x1p600) * (x * 0x1p600) + (y * 0x1p600) * (y * 0x1p600)) *
		       0x1p-600;
	return sqrt(x * x + y * y);
}

void
acc_kernel_abs(enum acc_dtype t, const void *p, size_t n, double *out)
{
	const uint8_t *b = p;
	const size_t size = acc_dtype_of(t)->size;
	double x[2 * 256];
	for (size_t off = 0; off < n; off += 256) {
		size_t m = n - off < 256 ? n - off : 256;
		bool complex = acc_dtype_of(t)->cls == 'C';
		acc_wide_load(acc_component(t), b + off * size, complex ? 2 * m : m, x);
		for (size_t i = 0; i < m; i++)
			out[off + i] = complex ? acc_modulus(x[2 * i], x[2 * i + 1]) : fabs(x[i]);
	}
}

static void
wide_one(const struct acc_row *row, enum acc_dtype t, const uint8_t *p, size_t n,
	struct acc_one *out)
{
	double x[2 * ACC_BLOCK];
	const bool complex = acc_dtype_of(t)->cls == 'C';
	const double largest = acc_dtype_of(t)->cls == 'F' ? acc_dtype_of(t)->max : 0;
	for (size_t off = 0; off < n; off += ACC_BLOCK) {
		size_t m = n - off < ACC_BLOCK ? n - off : ACC_BLOCK;
		acc_wide_load(acc_component(t), p + off * acc_dtype_of(t)->size,
			complex ? 2 * m : m, x);
		for (size_t i = 0; complex && i < m; i++)
			x[i] = acc_modulus(x[2 * i], x[2 * i + 1]);
		wide_block(row, out, x, m, largest);
	}
}

/* False: not all of it is finite. */
static bool
even_block(const struct acc_row *row, enum acc_dtype t, const struct acc_codes *codes,
	const uint8_t *p, size_t n, float *buf, struct acc_blk1 *r)
{
	if (t == ACC_BF16)
		row->one_bf16(p, n, r);
	else if (t == ACC_F16)
		row->one_f16(p, n, r);
	else
		row->one(acc_narrow_view(row, t, codes, p, n, buf), n, r);
	return isfinite(r->sumsq);
}

void
acc_one_run(const struct acc_row *row, enum acc_dtype t, const void *p, size_t n,
	struct acc_one *out)
{
	acc_one_init(out);
	if (!acc_is_narrow(t)) {
		wide_one(row, t, p, n, out);
		out->hash = row->hash(p, n * acc_dtype_of(t)->size);
		return;
	}
	_Alignas(64) float buf[ACC_BLOCK];
	const struct acc_codes *codes = acc_codes_of(t);
	struct acc_blk1 r;
	const uint8_t *b = p;
	const size_t size = acc_dtype_of(t)->size;
	const double largest = acc_dtype_of(t)->cls == 'F' ? acc_dtype_of(t)->max : 0;
	_Alignas(64) unsigned char hash[ACC_HASHING];
	bool odd = false;
	row->hash_start(hash);
	for (size_t off = 0; off < n; off += ACC_BLOCK) {
		size_t m = n - off < ACC_BLOCK ? n - off : ACC_BLOCK;
		row->hash_add(hash, b + off * size, m * size);
		const bool even = !odd && m % ACC_QUAD == 0 &&
				  even_block(row, t, codes, b + off * size, m, buf, &r);
		if (even) {
			acc_one_block(out, &r, m);
			if (!acc_saturates(&r, largest))
				continue;
		}
		const float *x = acc_narrow_view(row, t, codes, b + off * size, m, buf);
		if (even)
			acc_one_saturated(out, x, m, largest);
		else
			odd = acc_one_odd_block(row, out, &r, x, m, largest) < m;
	}
	out->hash = row->hash_end(hash);
}
