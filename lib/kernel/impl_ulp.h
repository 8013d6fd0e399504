/* impl_ulp.h - distances in units of the last place, and their histogram; part of impl.h
 *
 * All bits below the highest one of a distance are set, too; then bit p says that it is at
 * least 2^p, and counting each bit position over all lanes gives the histogram. Positions are
 * counted by carry-save adders (Harley and Seal): vectors c[j] of weight 2^j. */
enum { NIB = NF * 4, NWEIGHT = 10 };

/* h, l: carry and sum of three bits; l may be one of them. */
#define CSA(h, l, a, b, c) \
	do { \
		vi x_ = (a), y_ = (b), z_ = (c); \
		h = i_majority(x_, y_, z_); \
		l = i_parity(x_, y_, z_); \
	} while (0)

#ifndef HAVE_SMEAR32
/* v with every bit below its highest one set, in lanes of 32 or 16 bits. */
static inline vi
smear32(vi v)
{
	v = i_or(v, i_srl(v, 1));
	v = i_or(v, i_srl(v, 2));
	v = i_or(v, i_srl(v, 4));
	v = i_or(v, i_srl(v, 8));
	return i_or(v, i_srl(v, 16));
}
#endif

static inline vi
smear16(vi v)
{
	v = i_or(v, h_srl(v, 1));
	v = i_or(v, h_srl(v, 2));
	v = i_or(v, h_srl(v, 4));
	return i_or(v, h_srl(v, 8));
}

/* Where the histogram takes its vectors from: u32 whose values need 32 bits; u32 that fit 16,
 * two vectors as one; u16. */
enum source { WIDE, PACKED, HALF };

static inline vi
distances(enum source s, const char *u, size_t bytes, size_t i)
{
	if (s == WIDE)
		return smear32(i_load(u + i * NIB));
	if (s == HALF)
		return smear16(i_load(u + i * NIB));
	vi lo = i_load(u + i * NIB), hi = i_load(u + bytes / 2 + i * NIB);
#ifdef HAVE_SMEAR32
	return i_or(smear32(lo), i_sll(smear32(hi), 16));
#else
	return smear16(i_or(lo, i_sll(hi, 16)));
#endif
}

/* count[p]: how many are at least 2^p. `bytes` is a multiple of 32 vectors. */
static inline void
positions(enum source s, const char *u, size_t bytes, uint32_t count[32])
{
	const size_t n = (s == PACKED ? bytes / 2 : bytes) / NIB;
	vi c[NWEIGHT], one = i_zero(), two_ = one, four = one, eight = one;
	for (int k = 0; k < NWEIGHT; k++)
		c[k] = i_zero();
	for (size_t i = 0; i < n; i += 16) {
		vi t1, t2, f1, f2, e1, e2, up;
#define U(k) distances(s, u, bytes, i + (k))
		CSA(t1, one, one, U(0), U(1));
		CSA(t2, one, one, U(2), U(3));
		CSA(f1, two_, two_, t1, t2);
		CSA(t1, one, one, U(4), U(5));
		CSA(t2, one, one, U(6), U(7));
		CSA(f2, two_, two_, t1, t2);
		CSA(e1, four, four, f1, f2);
		CSA(t1, one, one, U(8), U(9));
		CSA(t2, one, one, U(10), U(11));
		CSA(f1, two_, two_, t1, t2);
		CSA(t1, one, one, U(12), U(13));
		CSA(t2, one, one, U(14), U(15));
		CSA(f2, two_, two_, t1, t2);
		CSA(e2, four, four, f1, f2);
		CSA(up, eight, eight, e1, e2);
#undef U
		for (int k = 4; k < NWEIGHT; k++) {
			vi carry = i_and(c[k], up);
			c[k] = i_xor(c[k], up);
			up = carry;
		}
	}
	c[0] = one;
	c[1] = two_;
	c[2] = four;
	c[3] = eight;
	memset(count, 0, 32 * sizeof *count);
	/* The last weight that occurs is that of n. */
	for (int k = 0; k < NWEIGHT && n >> k > 0; k++)
		i_positions(c[k], s == WIDE ? 4 : 2, 1u << k, count);
}

static void
histogram(enum source s, const void *u, size_t bytes, size_t n, struct acc_ulps *o)
{
	uint32_t count[33];
	memset(o->bin, 0, sizeof o->bin);
	if (s == WIDE)
		positions(WIDE, u, bytes, count);
	else if (s == PACKED)
		positions(PACKED, u, bytes, count);
	else
		positions(HALF, u, bytes, count);
	count[32] = 0;
	o->bin[0] = (uint32_t)n - count[0];
	for (int p = 0; p < 32; p++)
		o->bin[p + 1] = count[p] - count[p + 1];
}

/* The same for distances below 2^FEW: no more comparisons than there are powers of two. */
enum { FEW = 4 };
static void
few(const uint32_t *u, size_t n, size_t used, struct acc_ulps *o)
{
	uint32_t count[FEW + 1] = {(uint32_t)used};
	memset(o->bin, 0, sizeof o->bin);
	for (int p = 0; p < FEW && o->max >> p > 0; p++) {
		const vi least = i_set((1u << p) - 1);
		vc c = c_zero();
		for (size_t i = 0; i < n; i += NF)
			c = c_add(c, i_gt(i_load(u + i), least));
		count[p + 1] = c_sum(c);
	}
	for (int p = 0; p < FEW; p++)
		o->bin[p] = count[p] - count[p + 1];
	o->bin[FEW] = count[FEW];
}

/* What n distances, of which `used` count, give: their largest and the histogram. There is room
 * for a block of them. */
static void
ulp_counts(uint32_t *u, size_t n, size_t used, vi max, struct acc_ulps *o)
{
	uint32_t lane[NF];
	/* Padded with zeros to what the histogram takes at a time. */
	const size_t padded = (n + 511) / 512 * 512;
	memset(u + n, 0, (padded - n) * sizeof *u);
	o->max = 0;
	i_store(lane, max);
	for (int i = 0; i < NF; i++)
		o->max = lane[i] > o->max ? lane[i] : o->max;
	if (o->max < 1 << FEW)
		few(u, n, used, o);
	else
		histogram(o->max < 65536 ? PACKED : WIDE, u, padded * sizeof *u, used, o);
}

static void
ulp32(const void *a, const void *b, size_t n, struct acc_ulps *o)
{
	_Alignas(64) uint32_t u[ACC_BLOCK];
	const vi mask = i_set(0x7fffffff);
	vi max = i_zero();
	vc same = c_zero();
	for (size_t i = 0; i < n; i += NF) {
		vi x = i_load((const char *)a + 4 * i), y = i_load((const char *)b + 4 * i);
		vi mx = i_and(x, mask), my = i_and(y, mask);
		vi d = i_add_where(i_xor(x, y), i_abs(i_sub(mx, my)), mx, my);
		same = c_add(same, i_eq(x, y));
		max = i_umax(max, d);
		i_store(u + i, d);
	}
	o->same = c_sum(same);
	ulp_counts(u, n, n, max, o);
}

static void
ulp16(const void *a, const void *b, size_t n, struct acc_ulps *o)
{
	_Alignas(64) uint16_t x16[2 * NF] = {0}, y16[2 * NF] = {0};
	_Alignas(64) uint16_t u[ACC_BLOCK], lane[2 * NF];
	const size_t padded = (n + 511) / 512 * 512;
	const vi mask = h_set(0x7fff);
	vi max = i_zero(), same = max;
	for (size_t i = 0; i < n; i += 2 * NF) {
		const char *p = (const char *)a + 2 * i, *q = (const char *)b + 2 * i;
		if (n - i < 2 * NF) { /* half a vector */
			memcpy(x16, p, 2 * (n - i));
			memcpy(y16, q, 2 * (n - i));
			p = (const char *)x16;
			q = (const char *)y16;
		}
		vi x = i_load(p), y = i_load(q);
		vi mx = i_and(x, mask), my = i_and(y, mask);
		vi d = h_add_where(i_xor(x, y), h_abs(h_sub(mx, my)), mx, my);
		same = h_count_eq(same, x, y);
		max = h_umax(max, d);
		i_store(u + i, d);
	}
	memset(u + n, 0, (padded - n) * sizeof *u);
	/* What filled up the last vector was equal. */
	o->same = (uint32_t)n - (uint32_t)((n + 2 * NF - 1) / (2 * NF) * (2 * NF));
	i_store(lane, same);
	for (int k = 0; k < 2 * NF; k++)
		o->same -= (uint32_t)(int16_t)lane[k];
	o->max = 0;
	i_store(lane, max);
	for (int k = 0; k < 2 * NF; k++)
		o->max = lane[k] > o->max ? lane[k] : o->max;
	histogram(HALF, u, padded * sizeof *u, n, o);
}
