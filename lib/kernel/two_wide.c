/* Comparing sides that f32 cannot hold: f64, integers, real against complex. Integers are
 * subtracted exactly. */
#include "kernel/two.h"

#include <math.h>
#include <stdlib.h>

struct work {
	double a[ACC_BLOCK], b[ACC_BLOCK], d[ACC_BLOCK];
	/* As codes of the coarser dtype, or as integers, as row->far takes them. */
	uint64_t ca[ACC_BLOCK], cb[ACC_BLOCK], ulp[ACC_BLOCK];
};

/* Components [off, off + n) of one side. */
static void
load(enum acc_dtype t, const uint8_t *p, bool real, size_t off, size_t n, double *out)
{
	const size_t size = acc_dtype_of(t)->size;
	if (!real) {
		acc_wide_load(t, p + off * size, n, out);
		return;
	}
	acc_wide_load(t, p + off / 2 * size, n / 2, out);
	for (size_t i = n / 2; i-- > 0;) {
		out[2 * i] = out[i];
		out[2 * i + 1] = 0;
	}
}

/* Unsigned integers of 64 bits are taken as signed ones, less 2^63: both sides then. */
static bool
shifted(const struct acc_two_job *j)
{
	return j->coarse == ACC_NODTYPE && (j->ta == ACC_U64 || j->tb == ACC_U64);
}

/* Codes of one side's block, whose numbers are x. */
static void
codes(const struct acc_two_job *j, enum acc_dtype t, const uint8_t *p, size_t off, const double *x,
	size_t n, uint64_t *c)
{
	const uint64_t sign = UINT64_C(1) << 63, shift = shifted(j) ? sign : 0;
	p += off * acc_dtype_of(t)->size;
	if (j->coarse == ACC_F64)
		memcpy(c, x, n * sizeof *c);
	else if (j->coarse != ACC_NODTYPE)
		for (size_t i = 0; i < n; i++)
			c[i] = acc_round_code(j->coarse, j->cc, x[i]) | (signbit(x[i]) ? sign : 0);
	else if (t != ACC_U64 && t != ACC_I64)
		for (size_t i = 0; i < n; i++) /* exact in a double */
			c[i] = (uint64_t)(int64_t)x[i] ^ shift;
	else
		memcpy(c, p, n * sizeof *c);
	for (size_t i = 0; (t == ACC_U64 || t == ACC_I64) && shift != 0 && i < n; i++)
		c[i] ^= shift;
}

/* A negative number against one of u64: below what the shifted ones can say. */
static void
below_zero(struct work *w, size_t n, struct acc_ulps *u)
{
	const uint64_t sign = UINT64_C(1) << 63;
	for (size_t i = 0; i < n; i++) {
		if (w->a[i] >= 0 && w->b[i] >= 0)
			continue;
		const uint64_t x = w->ca[i] ^ sign, y = w->cb[i] ^ sign;
		const uint64_t over = w->a[i] < 0 ? y : x, under = w->a[i] < 0 ? -x : -y;
		u->same -= x == y;
		w->ulp[i] = over + under < over ? UINT64_MAX : over + under;
	}
}

/* Distances, and |a - b|: of integers exact before it becomes a double. */
static void
distances(const struct acc_two_job *j, struct work *w, size_t n, struct acc_ulps *u)
{
	const bool integers = j->coarse == ACC_NODTYPE;
	u->same = (uint32_t)j->row->far(w->ca, w->cb, n, !integers, w->ulp);
	if (shifted(j) && j->ta != j->tb)
		below_zero(w, n, u);
	j->row->ulp64(w->ulp, n, u);
	for (size_t i = 0; i < n; i++)
		w->d[i] = fabs(w->a[i] - w->b[i]);
	for (size_t i = 0; integers && i < n; i++)
		if (w->ulp[i] != UINT64_MAX)
			w->d[i] = (double)w->ulp[i];
}

/* Where the largest of all are, if they are in this block. */
static void
largest(const struct acc_two_job *j, const struct work *w, size_t off, size_t n)
{
	struct acc_two *o = j->out;
	for (size_t i = 0; i < n; i++) {
		double d = fabs(w->d[i]), rel = acc_wide_r(w->d[i], w->b[i]);
		double e = acc_wide_e(w->d[i], w->b[i], j->opt->scale);
		uint64_t at = acc_two_job_place(j, off, i * j->per);
		if (d > o->max_absd) {
			o->max_absd = d;
			o->max_absd_at = at;
		}
		if (rel > o->max_rel) {
			o->max_rel = rel;
			o->max_rel_at = at;
		}
		if (e > o->max_e) {
			o->max_e = e;
			o->max_e_at = at;
		}
		if (w->ulp[i] > o->ulp_max) {
			o->ulp_max = w->ulp[i];
			o->ulp_max_at = at;
		}
	}
}

/* The block's sums whose terms are squares and products, and of distances if `apart`, each of numbers times 2^k where they
 * need it; they and the distances are in `w` no more, then. */
static void
sums(struct acc_two_job *j, struct work *w, size_t n, struct acc_blk2 *r, bool apart)
{
	struct acc_two *o = j->out;
	struct acc_blk2 s = *r;
	const int a = acc_scale_of(w->a, n, r->a.sumsq), b = acc_scale_of(w->b, n, r->b.sumsq);
	const int d = r->maxd == 0 ? 0 : acc_scale_of(w->d, n, r->dd);
	for (size_t i = 0; (a | b | d) != 0 && i < n; i++) {
		/* Of opposite signs, their difference may overflow. */
		w->d[i] = isinf(w->d[i]) ? fabs(ldexp(w->a[i], d) - ldexp(w->b[i], d))
					 : ldexp(w->d[i], d);
		w->a[i] = ldexp(w->a[i], a);
		w->b[i] = ldexp(w->b[i], b);
	}
	if ((a | b | d) != 0)
		j->row->wide_two(w->a, w->b, w->d, n, j->opt, &s);
	acc_sum_add_at(&o->dot, s.dot, -a - b);
	acc_sum_add_at(&o->aa, s.a.sumsq, -2 * a);
	acc_sum_add_at(&o->bb, s.b.sumsq, -2 * b);
	if (apart)
		acc_sum_add_at(&o->absd, s.absd, -d);
	acc_sum_add_at(&o->dd, s.dd, -2 * d);
	r->dot = r->a.sumsq = r->b.sumsq = r->absd = r->dd = 0;
}

/* Element i, of one component or two, is not finite: which kind of pair that is. */
static void
add_kind(struct acc_kinds *k, struct work *w, size_t i, unsigned per)
{
	struct acc_kinds one = {0};
	bool finite = true;
	for (size_t c = i * per; c < (i + 1) * per; c++) {
		finite &= isfinite(w->a[c]) && isfinite(w->b[c]);
		acc_kinds_add(&one, w->a[c], w->b[c]);
	}
	if (finite)
		return;
	k->equal += one.diff == 0;
	k->diff += one.diff > 0;
	k->diff_unsigned += one.diff_unsigned > 0;
	k->used--;
	for (size_t c = i * per; c < (i + 1) * per; c++)
		w->a[c] = w->b[c] = 0;
}

/* Complex: n components as elements, by their moduli; the farther component's units in the last place. */
static void
fold(const struct acc_two_job *j, const struct work *w, size_t n, struct work *z,
	struct acc_ulps *u)
{
	u->same = 0;
	for (size_t i = 0; i < n / 2; i++) {
		const size_t x = 2 * i, y = x + 1;
		z->a[i] = acc_modulus(w->a[x], w->a[y]);
		z->b[i] = acc_modulus(w->b[x], w->b[y]);
		z->d[i] = acc_modulus(w->d[x], w->d[y]);
		z->ulp[i] = w->ulp[x] > w->ulp[y] ? w->ulp[x] : w->ulp[y];
		u->same += w->ca[x] == w->cb[x] && w->ca[y] == w->cb[y];
	}
	j->row->ulp64(z->ulp, n / 2, u);
}

/* What is left of a block of them, whose squares and products were summed up as they are. */
static struct work *
by_modulus(struct acc_two_job *j, struct work *w, size_t n, struct acc_ulps *u, struct acc_blk2 *r)
{
	struct work *z = w + 1;
	const size_t m = n / 2, padded = (m + 15) / 16 * 16;
	struct acc_blk2 s = *r;
	fold(j, w, n, z, u);
	for (size_t i = m; i < padded; i++)
		z->a[i] = z->b[i] = z->d[i] = 0;
	sums(j, w, (n + 15) / 16 * 16, &s, false);
	j->row->wide_two(z->a, z->b, z->d, padded, j->opt, r);
	acc_sum_add(&j->out->absd, r->absd);
	r->dot = r->a.sumsq = r->b.sumsq = r->absd = r->dd = 0;
	return z;
}

static void
block(struct acc_two_job *j, struct work *w, size_t off, size_t n)
{
	const size_t per = j->per, elements = n / per;
	struct acc_kinds k = {.used = elements};
	struct acc_ulps u;
	struct acc_blk2 r;
	struct acc_two *o = j->out;
	load(j->ta, j->a, j->real_a, off, n, w->a);
	load(j->tb, j->b, j->real_b, off, n, w->b);
	const bool finite = j->row->finite_pairs(w->a, w->b, n) == n;
	for (size_t i = 0; !finite && i < elements; i++)
		add_kind(&k, w, i, j->per);
	codes(j, j->ta, j->a, off, w->a, n, w->ca);
	codes(j, j->tb, j->b, off, w->b, n, w->cb);
	distances(j, w, n, &u);
	const size_t padded = (n + 15) / 16 * 16;
	for (size_t i = n; i < padded; i++)
		w->a[i] = w->b[i] = w->d[i] = 0;
	j->row->wide_two(w->a, w->b, w->d, padded, j->opt, &r);
	const size_t blank = (elements + 15) / 16 * 16 - k.used;
	if (per == 2)
		w = by_modulus(j, w, n, &u, &r);
	if (r.maxd > o->max_absd || r.maxr > o->max_rel || r.maxe > o->max_e || u.max > o->ulp_max)
		largest(j, w, off, elements);
	if (per == 1)
		sums(j, w, padded, &r, true);
	acc_two_job_add(j, &r, &k, blank);
	acc_two_job_add_ulps(j, &u, &k, elements - k.used);
}

void
acc_two_wide(struct acc_two_job *j, size_t n)
{
	struct work w[2]; /* the second for complex numbers alone */
	for (size_t off = 0; off < n; off += ACC_BLOCK)
		block(j, w, off, n - off < ACC_BLOCK ? n - off : ACC_BLOCK);
}
