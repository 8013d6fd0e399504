/* impl_wide.h - in double, for dtypes that f32 cannot hold and blocks that overflow it; part of
 * impl.h. The loops over codes are plain C: compilers make vectors of them. */

static void
wide_one(const double *x, size_t n, struct acc_blk1 *o)
{
	double sum[16], sumsq[16], lo[16], hi[16];
	uint32_t zero = 0;
	for (size_t g = 0; g < 16; g += ND) {
		vd s = d_set(0), q = s, mn = d_load(x + g), mx = mn;
		for (size_t i = g; i < n; i += 16) {
			vd v = d_load(x + i);
			s = d_add(s, v);
			q = d_add(q, d_mul(v, v));
			mn = d_min(mn, v);
			mx = d_max(mx, v);
			zero += dm_count(dm_eq(v, d_set(0)));
		}
		d_store(sum + g, s);
		d_store(sumsq + g, q);
		d_store(lo + g, mn);
		d_store(hi + g, mx);
	}
	*o = (struct acc_blk1){acc_fold(sum), acc_fold(sumsq), lo[0], hi[0], zero};
	for (int i = 1; i < 16; i++) {
		o->min = lo[i] < o->min ? lo[i] : o->min;
		o->max = hi[i] > o->max ? hi[i] : o->max;
	}
}

static void
wide_two(const double *a, const double *b, const double *d, size_t n,
	const struct acc_kernel_opt *opt, struct acc_blk2 *o)
{
	double s[7][16], max[3][16];
	const vd z = d_set(0), rtol = d_set(opt->rtol), atol = d_set(opt->atol);
	const vd scale = d_set(opt->scale);
	*o = (struct acc_blk2){.maxd = 0};
	for (size_t g = 0; g < 16; g += ND) {
		vd s0 = z, s1 = z, s2 = z, s3 = z, s4 = z, s5 = z, s6 = z, md = z, mr = z, me = z;
		for (size_t i = g; i < n; i += 16) {
			vd x = d_load(a + i), y = d_load(b + i), v = d_load(d + i);
			vd ad = d_abs(v), ay = d_abs(y);
			vdm nz = dm_ne(y, z);
			vd r = d_keep(nz, d_div(ad, ay));
			vd e = d_keep(dm_ne(v, z), d_div(ad, d_add(ay, scale)));
			s0 = d_add(s0, d_mul(x, x));
			s1 = d_add(s1, d_mul(y, y));
			s2 = d_add(s2, d_mul(x, y));
			s3 = d_add(s3, ad);
			s4 = d_add(s4, d_mul(v, v));
			s5 = d_add(s5, r);
			s6 = d_add(s6, d_mul(e, e));
			md = d_max(md, ad);
			mr = d_max(mr, r);
			me = d_max(me, e);
			o->b.zero += ND - dm_count(nz);
			o->b0 += dm_count(dm_andnot(dm_ne(x, z), nz));
			o->lt1 += dm_count(dm_lt(r, d_set(0.001)));
			o->lt5 += dm_count(dm_lt(r, d_set(0.005)));
			o->outside += ND - dm_count(dm_le(ad, d_add(atol, d_mul(rtol, ay))));
		}
		d_store(s[0] + g, s0);
		d_store(s[1] + g, s1);
		d_store(s[2] + g, s2);
		d_store(s[3] + g, s3);
		d_store(s[4] + g, s4);
		d_store(s[5] + g, s5);
		d_store(s[6] + g, s6);
		d_store(max[0] + g, md);
		d_store(max[1] + g, mr);
		d_store(max[2] + g, me);
	}
	o->a.sumsq = acc_fold(s[0]);
	o->b.sumsq = acc_fold(s[1]);
	o->dot = acc_fold(s[2]);
	o->absd = acc_fold(s[3]);
	o->dd = acc_fold(s[4]);
	o->rel = acc_fold(s[5]);
	o->ee = acc_fold(s[6]);
	for (int i = 0; i < 16; i++) {
		o->maxd = max[0][i] > o->maxd ? max[0][i] : o->maxd;
		o->maxr = max[1][i] > o->maxr ? max[1][i] : o->maxr;
		o->maxe = max[2][i] > o->maxe ? max[2][i] : o->maxe;
	}
}

static size_t
finite_pairs(const double *a, const double *b, size_t n)
{
	uint64_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += a[i] * 0 + b[i] * 0 == 0;
	return (size_t)count;
}

/* How far apart signed numbers are, or codes of sign and magnitude. */
static size_t
far(const uint64_t *x, const uint64_t *y, size_t n, bool magnitudes, uint64_t *u)
{
	uint64_t same = 0;
	for (size_t i = 0; i < n; i++)
		same += x[i] == y[i];
	if (magnitudes) {
		for (size_t i = 0; i < n; i++) {
			const int64_t mx = (int64_t)(x[i] & INT64_MAX),
				      my = (int64_t)(y[i] & INT64_MAX);
			const uint64_t near = (uint64_t)(mx > my ? mx - my : my - mx);
			u[i] = (int64_t)(x[i] ^ y[i]) < 0 ? (uint64_t)mx + (uint64_t)my : near;
		}
		return (size_t)same;
	}
	for (size_t i = 0; i < n; i++) {
		const uint64_t d = x[i] - y[i];
		u[i] = (int64_t)x[i] < (int64_t)y[i] ? -d : d;
	}
	return (size_t)same;
}

static void
ulp64(const uint64_t *u, size_t n, struct acc_ulps *o)
{
	uint32_t bin[4][ACC_ULP_BINS] = {{0}};
	uint64_t max = 0, any = 0;
	size_t i = 0;
	memset(o->bin, 0, sizeof o->bin);
	for (size_t k = 0; k < n; k++) {
		max = u[k] > max ? u[k] : max;
		any |= u[k];
	}
	o->max = max;
	if (any <= 1) {
		for (size_t k = 0; k < n; k++)
			o->bin[1] += (uint32_t)u[k];
		o->bin[0] = (uint32_t)n - o->bin[1];
		return;
	}
	/* Several counters of each, because the next may be the same again. */
	for (; i < n / 4 * 4; i += 4)
		for (size_t k = 0; k < 4; k++)
			bin[k][u[i + k] == 0 ? 0 : 64 - __builtin_clzll(u[i + k])]++;
	for (; i < n; i++)
		bin[0][u[i] == 0 ? 0 : 64 - __builtin_clzll(u[i])]++;
	for (int k = 0; k < ACC_ULP_BINS; k++)
		o->bin[k] = bin[0][k] + bin[1][k] + bin[2][k] + bin[3][k];
}
