/* impl_codes.h - the comparison of two blocks of f16 or bf16; part of impl.h
 *
 * Two runs in such a dtype have many elements in common, bit by bit. So the sums of the sides are
 * taken over all of them, in lanes of 16 bits what can be; divisions and all that is of
 * differences only over the pairs that differ, which are moved together first. */
static inline void
sides_add(enum code t, struct sides *lo, struct sides *hi, const void *p, const void *q)
{
	vd x, xh, y, yh;
	if (t == BF16) {
		d_bf16(p, &x, &xh);
		d_bf16(q, &y, &yh);
	} else {
		d_f16(p, &x, &xh);
		d_f16(q, &y, &yh);
	}
	lo->x = d_add(lo->x, x);
	lo->y = d_add(lo->y, y);
	products_add(lo, x, y);
	hi->x = d_add(hi->x, xh);
	hi->y = d_add(hi->y, yh);
	products_add(hi, xh, yh);
}

/* n codes as floats, any n, any alignment. */
static inline __attribute__((always_inline)) void
widen(enum code t, const void *p, float *x, size_t n)
{
	const char *h = p;
	size_t i = 0;
	for (; i + NF <= n; i += NF) {
		__builtin_prefetch(h + 2 * (i + n)); /* the next block */
		f_store(x + i, load(t, h + 2 * i));
	}
	if (i < n) {
		uint16_t last[NF] = {0};
		float y[NF];
		memcpy(last, h + 2 * i, 2 * (n - i));
		f_store(y, load(t, last));
		memcpy(x + i, y, (n - i) * sizeof *x);
	}
}

static void
bf16(const void *p, float *x, size_t n)
{
	widen(BF16, p, x, n);
}

static void
f16(const void *p, float *x, size_t n)
{
	widen(F16, p, x, n);
}

/* --- all pairs --- */

/* The largest of 16-bit lanes, as unsigned and as signed numbers. */
static uint16_t
largest_u(vi v)
{
	uint16_t h[2 * NF], m = 0;
	i_store(h, v);
	for (int i = 0; i < 2 * NF; i++)
		m = h[i] > m ? h[i] : m;
	return m;
}

static uint16_t
largest_s(vi v)
{
	int16_t h[2 * NF], m = INT16_MIN;
	i_store(h, v);
	for (int i = 0; i < 2 * NF; i++)
		m = h[i] > m ? h[i] : m;
	return (uint16_t)m;
}

/* Of sign and magnitude the largest as a signed number is the largest if any is positive, the
 * largest as an unsigned one the smallest if any is negative. Else turn them round. */
static void
code_range(const char *p, size_t n, vi smax, vi umax, uint16_t *min, uint16_t *max)
{
	const vi ones = h_set(0xffff);
	*max = largest_s(smax);
	*min = largest_u(umax);
	if (*max < 0x8000 && *min >= 0x8000)
		return;
	vi m = i_xor(i_load(p), ones);
	for (size_t i = 0; i < n; i += 2 * NF) {
		const vi v = i_xor(i_load(p + 2 * i), ones);
		m = *max >= 0x8000 ? h_umax(m, v) : h_smax(m, v);
	}
	if (*max >= 0x8000)
		*max = (uint16_t)~largest_u(m);
	else
		*min = (uint16_t)~largest_s(m);
}

static double
code_value(enum code t, uint16_t code)
{
	uint16_t h[NF] = {code};
	float x[NF];
	f_store(x, load(t, h));
	return (double)x[0] + 0.0; /* not -0 */
}

#ifndef HAVE_H_DIFFER
/* The pairs of x and y that differ, one behind the other: x below, y above. Their number; may
 * write on behind them, 2 NF in all. */
static inline size_t
h_differ(uint32_t *to, vi x, vi y)
{
	uint16_t a[2 * NF], b[2 * NF];
	size_t n = 0;
	i_store(a, x);
	i_store(b, y);
	for (int k = 0; k < 2 * NF; k++) {
		to[n] = a[k] | (uint32_t)b[k] << 16;
		n += a[k] != b[k];
	}
	return n;
}
#endif

/* In lanes of 16 bits: ranges, zeros, and the pairs that differ. */
struct codes {
	vi smaxa, umaxa, smaxb, umaxb;
	vn zeroa, zerob;
	uint32_t *differ;
};

static inline void
codes_add(struct codes *c, const char *a, const char *b)
{
	const vi mask = h_set(0x7fff), x = i_load(a), y = i_load(b);
	c->smaxa = h_smax(c->smaxa, x);
	c->umaxa = h_umax(c->umaxa, x);
	c->smaxb = h_smax(c->smaxb, y);
	c->umaxb = h_umax(c->umaxb, y);
	c->zeroa = n_add_zeros(c->zeroa, i_and(x, mask));
	c->zerob = n_add_zeros(c->zerob, i_and(y, mask));
	c->differ += h_differ(c->differ, x, y);
}

/* What is of the sides, and the pairs that differ: returns their number. With registers for all
 * of it, one loop does it, in which the units that add wait less for those that move. */
static inline __attribute__((always_inline)) size_t
code_sides(enum code t, const char *a, const char *b, size_t n, struct acc_blk2 *o,
	uint32_t *differ)
{
	const bool at_once = NF == 16;
	const vi x = i_load(a), y = i_load(b);
	struct codes c = {x, x, y, y, n_zero(), n_zero(), differ};
	struct lanes l;
	for (size_t g = 0; g < 16; g += NF) {
		const vd z = d_set(0);
		struct sides lo = {z, z, z, z, z}, hi = lo;
		for (size_t i = g; i < n; i += 32) {
			/* The next block, while this one keeps the processor busy. */
			__builtin_prefetch(a + 2 * (n + i));
			__builtin_prefetch(b + 2 * (n + i));
			sides_add(t, &lo, &hi, a + 2 * i, b + 2 * i);
			sides_add(t, &lo, &hi, a + 2 * i + 32, b + 2 * i + 32);
			if (at_once)
				codes_add(&c, a + 2 * i, b + 2 * i);
		}
		sides_store(&l, g, &lo);
		sides_store(&l, g + ND, &hi);
	}
	for (size_t i = 0; !at_once && i < n; i += 2 * NF)
		codes_add(&c, a + 2 * i, b + 2 * i);
	fold_moments(&l, o);
	uint16_t min[2], max[2];
	code_range(a, n, c.smaxa, c.umaxa, &min[0], &max[0]);
	code_range(b, n, c.smaxb, c.umaxb, &min[1], &max[1]);
	o->a.min = code_value(t, min[0]);
	o->a.max = code_value(t, max[0]);
	o->b.min = code_value(t, min[1]);
	o->b.max = code_value(t, max[1]);
	o->a.zero = n_sum(c.zeroa);
	o->b.zero = n_sum(c.zerob);
	return (size_t)(c.differ - differ);
}

/* --- pairs that differ --- */

static inline vf
low(enum code t, vi v)
{
	return t == BF16 ? f_low_bf16(v) : f_low_f16(v);
}

static inline vf
high(enum code t, vi v)
{
	return t == BF16 ? f_high_bf16(v) : f_high_f16(v);
}

/* The distance from the number of this magnitude, and from all above it, to the next. */
static float
code_step(enum code t, uint32_t magnitude)
{
	const uint32_t bits = t == BF16 ? 7 : 10, exp = magnitude >> bits;
	return ldexpf(1, (int)(exp > 0 ? exp : 1) - (t == BF16 ? 127 : 15) - (int)bits);
}

/* d and its sums, where a float does not hold every d exactly. */
static inline __attribute__((always_inline)) void
wide_differences(enum code t, const uint32_t *w, size_t n, struct lanes *l)
{
	for (size_t g = 0; g < 16; g += NF) {
		const vd z = d_set(0);
		struct differences lo = {z, z, z}, hi = lo;
		for (size_t i = g; i < n; i += 16) {
			const vi v = i_load(w + i);
			const vf x = low(t, v), y = high(t, v);
			differences_add(&lo, d_lo(x), d_lo(y));
			differences_add(&hi, d_hi(x), d_hi(y));
		}
		differences_store(l, g, &lo);
		differences_store(l, g + ND, &hi);
	}
}

/* All that is of differences but the distances; where opt is NULL, but the ratios, too. d is computed as a float: it is a multiple of the
 * step of the smallest number, hence exact if it is less than 2^24 of these. */
static inline __attribute__((always_inline)) void
code_differences(enum code t, const uint32_t *w, size_t n, const struct acc_kernel_opt *opt,
	struct lanes *l, struct acc_blk2 *o)
{
	const vf zero = f_set(0);
	const vi mask = i_set(0x7fff7fff);
	float maxd[16];
	vc x0y = c_zero();
	vi least = i_zero(); /* minus the least magnitude that is not 0 */
	for (size_t g = 0; g < 16; g += NF) {
		vd d0 = d_set(0), d1 = d0, dd0 = d0, dd1 = d0;
		vf max = zero;
		struct ratios s;
		ratios_start(&s, opt);
		for (size_t i = g; i < n; i += ACC_QUAD) {
			vf r[4], ee[4];
			UNROLL4 for (size_t k = 0; k < 4; k++)
			{
				const vi v = i_load(w + i + 16 * k);
				const vf x = low(t, v), y = high(t, v), d = f_abs(f_sub(x, y));
				const vd lo = d_lo(d), hi = d_hi(d);
				least = h_umax(least, h_sub(i_zero(), i_and(v, mask)));
				if (opt != NULL) {
					const vm nz = m_ne(y, zero);
					x0y = c_add(x0y, m_andnot(m_ne(x, zero), nz));
					ratios_add(&s, d, y, nz, &r[k], &ee[k]);
				}
				max = f_umax(max, d);
				d0 = d_add(d0, lo);
				d1 = d_add(d1, hi);
				dd0 = d_muladd(lo, lo, dd0);
				dd1 = d_muladd(hi, hi, dd1);
			}
			if (opt != NULL)
				ratios_sum(&s, r, ee);
		}
		if (opt != NULL)
			ratios_store(l, g, &s);
		d_store(l->d + g, d0);
		d_store(l->d + g + ND, d1);
		d_store(l->dd + g, dd0);
		d_store(l->dd + g + ND, dd1);
		f_store(maxd + g, max);
	}
	o->b0 = c_sum(x0y);
	for (int i = 0; i < 16; i++)
		l->maxd[i] = (double)maxd[i];
	const uint16_t turned = largest_u(least);
	if (n > 0 &&
		!(max16(maxd) < 0x1p24 * (double)code_step(t, turned == 0 ? 0 : 0x10000u - turned)))
		wide_differences(t, w, n, l);
	fold_differences(l, o);
	if (opt != NULL)
		fold_ratios(l, o);
}

/* n: a multiple of ACC_QUAD, of which `used` count. */
static void
code_ulps(const uint32_t *w, size_t n, size_t used, struct acc_ulps *o)
{
	_Alignas(64) uint32_t u[ACC_BLOCK];
	const vi mask = i_set(0x7fff);
	vi max = i_zero();
	for (size_t i = 0; i < n; i += NF) {
		const vi v = i_load(w + i), h = i_srl(v, 16);
		const vi mx = i_and(v, mask), my = i_and(h, mask);
		const vi sign = i_sll(i_xor(v, h), 16);
		const vi d = i_add_where(sign, i_abs(i_sub(mx, my)), mx, my);
		max = i_umax(max, d);
		i_store(u + i, d);
	}
	ulp_counts(u, n, used, max, o);
}

static inline __attribute__((always_inline)) void
two_codes(enum code t, const void *a, const void *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o, struct acc_ulps *u)
{
	_Alignas(64) uint32_t differ[ACC_BLOCK + 2 * NF + ACC_QUAD];
	struct lanes l;
	const size_t nd = code_sides(t, a, b, n, o, differ);
	if (!isfinite(o->a.sumsq) || !isfinite(o->b.sumsq))
		return;
	const size_t padded = (nd + ACC_QUAD - 1) / ACC_QUAD * ACC_QUAD;
	memset(differ + nd, 0, (padded - nd) * sizeof *differ);
	l.lt1 = l.lt5 = l.in = 0;
	code_differences(t, differ, padded, opt, &l, o);
	if (opt == NULL)
		return;
	/* What is equal, and the padding, is below every limit. */
	o->lt1 += (uint32_t)(n - padded);
	o->lt5 += (uint32_t)(n - padded);
	o->outside = (uint32_t)padded - l.in;
	code_ulps(differ, padded, nd, u);
	u->same = (uint32_t)(n - nd);
	u->bin[0] += (uint32_t)(n - nd);
}

static void
plain_bf16(const void *a, const void *b, size_t n, struct acc_blk2 *o)
{
	*o = (struct acc_blk2){.dot = 0};
	two_codes(BF16, a, b, n, NULL, o, NULL);
}

static void
plain_f16(const void *a, const void *b, size_t n, struct acc_blk2 *o)
{
	*o = (struct acc_blk2){.dot = 0};
	two_codes(F16, a, b, n, NULL, o, NULL);
}

static void
two_bf16(const void *a, const void *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o, struct acc_ulps *u)
{
	two_codes(BF16, a, b, n, opt, o, u);
}

static void
two_f16(const void *a, const void *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o, struct acc_ulps *u)
{
	two_codes(F16, a, b, n, opt, o, u);
}
