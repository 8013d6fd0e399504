/* impl_two.h - the comparison of two blocks of floats; part of impl.h */

/* Sums of ND lanes: of the sides and their products, */
struct sides {
	vd x, xx, y, yy, xy;
};

static inline void
products_add(struct sides *m, vd x, vd y)
{
	m->xx = d_muladd(x, x, m->xx);
	m->yy = d_muladd(y, y, m->yy);
	m->xy = d_muladd(x, y, m->xy);
}

/* and of their differences. */
struct differences {
	vd d, dd, max;
};

static inline void
differences_add(struct differences *m, vd x, vd y)
{
	const vd d = d_abs(d_sub(x, y));
	m->d = d_add(m->d, d);
	m->dd = d_add(m->dd, d_mul(d, d)); /* 53 bits squared: not exact */
	m->max = d_max(m->max, d);
}

/* Where the lanes are put, to be folded when all are there. */
struct lanes {
	double x[16], xx[16], y[16], yy[16], xy[16], d[16], dd[16], r[16], ee[16], maxd[16];
	float minx[16], maxx[16], miny[16], maxy[16], maxr[16], maxe[16];
	uint32_t x0, y0, lt1, lt5, in; /* x0, y0: not 0 */
};

static inline void
sides_store(struct lanes *l, size_t g, const struct sides *m)
{
	d_store(l->x + g, m->x);
	d_store(l->xx + g, m->xx);
	d_store(l->y + g, m->y);
	d_store(l->yy + g, m->yy);
	d_store(l->xy + g, m->xy);
}

static inline void
differences_store(struct lanes *l, size_t g, const struct differences *m)
{
	d_store(l->d + g, m->d);
	d_store(l->dd + g, m->dd);
	d_store(l->maxd + g, m->max);
}

/* NF lanes of what is computed in float: r, e, the bounds. */
struct ratios {
	vf rtol, atol, scale;
	vf maxr, maxe;
	vc lt1, lt5, in;
	vd r0, r1, e0, e1; /* sums of the lower and the upper lanes */
};

/* opt NULL: they are not wanted. */
static inline void
ratios_start(struct ratios *t, const struct acc_kernel_opt *opt)
{
	t->rtol = f_set(opt == NULL ? 0 : (float)opt->rtol);
	t->atol = f_set(opt == NULL ? 0 : (float)opt->atol);
	t->scale = f_set(opt == NULL ? 0 : (float)opt->scale);
	t->maxr = t->maxe = f_set(0);
	t->lt1 = t->lt5 = t->in = c_zero();
	t->r0 = t->r1 = t->e0 = t->e1 = d_set(0);
}

/* d = |x - y|; nz: where y is not 0. */
static inline void
ratios_add(struct ratios *t, vf d, vf y, vm nz, vf *r, vf *ee)
{
	const vf ay = f_abs(y);
	const vf e = f_div(d, f_add(ay, t->scale));
	*r = f_keep(nz, f_div(d, ay));
	*ee = f_mul(e, e);
	t->maxr = f_umax(t->maxr, *r);
	t->maxe = f_umax(t->maxe, e);
	t->lt1 = c_add(t->lt1, m_lt(*r, f_set(0.001f)));
	t->lt5 = c_add(t->lt5, m_lt(*r, f_set(0.005f)));
	t->in = c_add(t->in, m_le(d, f_add(t->atol, f_mul(t->rtol, ay))));
}

/* Of four rows of 16, r and e^2 are added in float before they are widened, which is what costs
 * most. */
static inline void
ratios_sum(struct ratios *t, const vf r[4], const vf ee[4])
{
	const vf rs = f_add(f_add(r[0], r[1]), f_add(r[2], r[3]));
	const vf es = f_add(f_add(ee[0], ee[1]), f_add(ee[2], ee[3]));
	t->r0 = d_add(t->r0, d_lo(rs));
	t->r1 = d_add(t->r1, d_hi(rs));
	t->e0 = d_add(t->e0, d_lo(es));
	t->e1 = d_add(t->e1, d_hi(es));
}

static inline void
ratios_store(struct lanes *l, size_t g, const struct ratios *t)
{
	d_store(l->r + g, t->r0);
	d_store(l->r + g + ND, t->r1);
	d_store(l->ee + g, t->e0);
	d_store(l->ee + g + ND, t->e1);
	f_store(l->maxr + g, t->maxr);
	f_store(l->maxe + g, t->maxe);
	l->lt1 += c_sum(t->lt1);
	l->lt5 += c_sum(t->lt5);
	l->in += c_sum(t->in);
}

/* The range of both sides, and the ratios, where opt is not NULL. */
static inline __attribute__((always_inline)) void
ratios(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt, struct lanes *l)
{
	const vf zero = f_set(0);
	for (size_t g = 0; g < 16; g += NF) {
		struct ratios t;
		vf minx = f_load(a + g), maxx = minx, miny = f_load(b + g), maxy = miny;
		vc x0 = c_zero(), y0 = x0;
		ratios_start(&t, opt);
		for (size_t i = g; i < n; i += ACC_QUAD) {
			vf r[4], ee[4];
			/* The next block, while this one keeps the processor busy. */
			for (size_t k = 0; k < ACC_QUAD; k += 16) {
				__builtin_prefetch(a + n + i + k);
				__builtin_prefetch(b + n + i + k);
			}
			UNROLL4 for (size_t k = 0; k < 4; k++)
			{
				const vf x = f_load(a + i + 16 * k), y = f_load(b + i + 16 * k);
				const vm nz = m_ne(y, zero);
				if (opt != NULL)
					ratios_add(&t, f_abs(f_sub(x, y)), y, nz, &r[k], &ee[k]);
				minx = f_min(minx, x);
				maxx = f_max(maxx, x);
				miny = f_min(miny, y);
				maxy = f_max(maxy, y);
				x0 = c_add(x0, m_ne(x, zero));
				y0 = c_add(y0, nz);
			}
			if (opt != NULL)
				ratios_sum(&t, r, ee);
		}
		if (opt != NULL)
			ratios_store(l, g, &t);
		f_store(l->minx + g, minx);
		f_store(l->maxx + g, maxx);
		f_store(l->miny + g, miny);
		f_store(l->maxy + g, maxy);
		l->x0 += c_sum(x0);
		l->y0 += c_sum(y0);
	}
}

static void
moments(const float *a, const float *b, size_t n, struct lanes *l)
{
	for (size_t g = 0; g < 16; g += ND) {
		const vd z = d_set(0);
		struct sides m = {z, z, z, z, z};
		struct differences d = {z, z, z};
		for (size_t i = g; i < n; i += 16) {
			const vd x = d_widen(a + i), y = d_widen(b + i);
			m.x = d_acc(m.x, x);
			m.y = d_acc(m.y, y);
			products_add(&m, x, y);
			differences_add(&d, x, y);
		}
		sides_store(l, g, &m);
		differences_store(l, g, &d);
	}
}

static uint32_t
only_b_zero(const float *a, const float *b, size_t n)
{
	vc c = c_zero();
	for (size_t i = 0; i < n; i += NF)
		c = c_add(c,
			m_andnot(m_ne(f_load(a + i), f_set(0)), m_ne(f_load(b + i), f_set(0))));
	return c_sum(c);
}

/* What `differences` left in the lanes, */
static void
fold_differences(const struct lanes *l, struct acc_blk2 *o)
{
	o->absd = acc_fold(l->d);
	o->dd = acc_fold(l->dd);
	o->maxd = l->maxd[0];
	for (int i = 1; i < 16; i++)
		o->maxd = l->maxd[i] > o->maxd ? l->maxd[i] : o->maxd;
}

/* and `ratios`. */
static void
fold_ratios(const struct lanes *l, struct acc_blk2 *o)
{
	o->rel = acc_fold(l->r);
	o->ee = acc_fold(l->ee);
	o->maxr = max16(l->maxr);
	o->maxe = max16(l->maxe);
	o->lt1 = l->lt1;
	o->lt5 = l->lt5;
}

static void
fold_moments(const struct lanes *l, struct acc_blk2 *o)
{
	o->a.sum = acc_fold(l->x);
	o->a.sumsq = acc_fold(l->xx);
	o->b.sum = acc_fold(l->y);
	o->b.sumsq = acc_fold(l->yy);
	o->dot = acc_fold(l->xy);
}

static inline __attribute__((always_inline)) void
two_floats(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
	struct acc_blk2 *o)
{
	struct lanes l;
	l.x0 = l.y0 = l.lt1 = l.lt5 = l.in = 0;
	moments(a, b, n, &l);
	ratios(a, b, n, opt, &l);
	fold_moments(&l, o);
	fold_differences(&l, o);
	if (opt != NULL)
		fold_ratios(&l, o);
	o->outside = (uint32_t)n - l.in;
	o->a.min = min16(l.minx);
	o->a.max = max16(l.maxx);
	o->b.min = min16(l.miny);
	o->b.max = max16(l.maxy);
	o->a.zero = (uint32_t)n - l.x0;
	o->b.zero = (uint32_t)n - l.y0;
	if (opt != NULL)
		o->b0 = o->b.zero > 0 && o->a.zero < n ? only_b_zero(a, b, n) : 0;
}

static void
two(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt, struct acc_blk2 *o)
{
	two_floats(a, b, n, opt, o);
}

static void
plain(const float *a, const float *b, size_t n, struct acc_blk2 *o)
{
	*o = (struct acc_blk2){.dot = 0};
	two_floats(a, b, n, NULL, o);
}

/* --- a pair's r and e, for find_r and find_e --- */

static inline vf
ratio_r(vf x, vf y)
{
	vf ay = f_abs(y);
	return f_keep(m_ne(ay, f_set(0)), f_div(f_abs(f_sub(x, y)), ay));
}

static inline vf
ratio_e(vf x, vf y, vf scale)
{
	return f_div(f_abs(f_sub(x, y)), f_add(f_abs(y), scale));
}
