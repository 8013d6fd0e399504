/* Comparing two sides that both fit f32: the rows do the work, one block at a time. */
#include "two.h"

#include <float.h>
#include <math.h>

struct work {
	_Alignas(64) float abuf[ACC_BLOCK], bbuf[ACC_BLOCK], x[ACC_BLOCK], y[ACC_BLOCK];
	_Alignas(64) uint16_t xc[ACC_BLOCK], yc[ACC_BLOCK];
	size_t off, n;      /* the block: components of the chunk */
	size_t padded;      /* n, or the next multiple of 16 if the block is odd */
	bool odd;           /* something in it is not finite, or it is no multiple of 16 */
	const float *a, *b; /* as compared: zeros in place of what is not used */
	struct acc_kinds kinds;
};

static double
largest(enum acc_dtype t)
{
	return acc_dtypes[t].max;
}

/* Where the largest of something is first; `value` is as the block computed it, for i. */
#define FIRST(w, value, max)                                                             \
	size_t i = 0;                                                                    \
	while (i < (w)->n && (value) != (max))                                           \
		i++;                                                                     \
	return i

static size_t
first_d(const struct work *w, double max)
{
	FIRST(w, fabs((double)w->a[i] - (double)w->b[i]), max);
}

static size_t
first_r(const struct work *w, double max, bool f32)
{
	if (f32) {
		float m = (float)max;
		FIRST(w, w->b[i] == 0 ? 0 : fabsf(w->a[i] - w->b[i]) / fabsf(w->b[i]), m);
	}
	FIRST(w, acc_wide_r((double)w->a[i] - (double)w->b[i], (double)w->b[i]), max);
}

static size_t
first_e(const struct work *w, double max, double scale, bool f32)
{
	if (f32) {
		float m = (float)max, s = (float)scale;
		FIRST(w, fabsf(w->a[i] - w->b[i]) / (fabsf(w->b[i]) + s), m);
	}
	FIRST(w, acc_wide_e((double)w->a[i] - (double)w->b[i], (double)w->b[i], scale), max);
}

/* r and e where f32 is too narrow for them. */
static void
ratios_in_double(const struct work *w, const struct acc_kernel_opt *opt, struct acc_blk2 *r)
{
	double a[ACC_BLOCK], b[ACC_BLOCK], d[ACC_BLOCK];
	struct acc_blk2 wide;
	for (size_t i = 0; i < w->padded; i++) {
		a[i] = (double)w->a[i];
		b[i] = (double)w->b[i];
		d[i] = a[i] - b[i];
	}
	acc_wide_two(a, b, d, w->padded, opt, &wide);
	r->rel = wide.rel;
	r->relrel = wide.relrel;
	r->ee = wide.ee;
	r->maxr = wide.maxr;
	r->maxe = wide.maxe;
	r->b0 = wide.b0;
	r->lt1 = wide.lt1;
	r->lt5 = wide.lt5;
	r->outside = wide.outside;
}

/* The numbers of a block, compared. */
static void
compare(struct acc_job *j, struct work *w, struct acc_blk2 *r, bool done)
{
	struct acc_two *o = j->out;
	const struct acc_kernel_opt *opt = j->opt;
	const size_t zeros = w->padded - w->kinds.used;
	const float scale = (float)opt->scale;
	bool f32 = scale > 0 && isfinite(scale);
	if (!done)
		j->row->two(w->a, w->b, w->padded, opt, r);
	double bmax = -r->b.min > r->b.max ? -r->b.min : r->b.max;
	if (!f32 || isinf((float)bmax + scale) || isinf(r->maxr) || isinf(r->maxe)) {
		f32 = false;
		ratios_in_double(w, opt, r);
	}
	acc_job_add(j, r, &w->kinds, zeros);
	if (r->maxd > o->max_absd) {
		o->max_absd = r->maxd;
		o->max_absd_at = acc_job_place(j, w->off, first_d(w, r->maxd));
	}
	if (r->maxr > o->max_rel) {
		o->max_rel = r->maxr;
		o->max_rel_at = acc_job_place(j, w->off, first_r(w, r->maxr, f32));
	}
	if (r->maxe > o->max_e) {
		o->max_e = r->maxe;
		o->max_e_at = acc_job_place(j, w->off, first_e(w, r->maxe, opt->scale, f32));
	}
	if (r->b0 > 0)
		for (size_t i = 0; i < w->n; i++)
			acc_job_at_zero(j, (double)w->a[i], (double)w->b[i]);
}

/* Codes in the coarser dtype of 16 or 8 bits: from the bytes where they are of that dtype. */
static void
codes(const struct acc_job *j, const struct work *w, enum acc_dtype t, const uint8_t *p,
	const float *x, uint16_t *out)
{
	p += w->off * acc_dtypes[t].size;
	if (t == j->coarse && !w->odd && !acc_is_8bit(t)) {
		memcpy(out, p, 2 * w->n);
		return;
	}
	if (t == j->coarse && !w->odd) {
		for (size_t i = 0; i < w->n; i++)
			out[i] = j->cc->code[p[i]];
		return;
	}
	for (size_t i = 0; i < w->padded; i++) {
		uint64_t c = acc_round_code(j->coarse, j->cc, (double)x[i]);
		out[i] = (uint16_t)(c | (signbit(x[i]) ? 0x8000 : 0));
	}
}

static uint64_t
distance(uint32_t x, uint32_t y, uint32_t sign)
{
	uint32_t mx = x & (sign - 1), my = y & (sign - 1);
	return (x ^ y) & sign ? mx + my : mx > my ? mx - my : my - mx;
}

static void
ulps(struct acc_job *j, struct work *w)
{
	struct acc_ulps u;
	struct acc_two *o = j->out;
	const bool f32 = j->coarse == ACC_F32;
	if (f32) {
		j->row->ulp32(w->a, w->b, w->padded, &u);
	} else {
		codes(j, w, j->ta, j->a, w->a, w->xc);
		codes(j, w, j->tb, j->b, w->b, w->yc);
		j->row->ulp16(w->xc, w->yc, w->padded, &u);
	}
	acc_job_add_ulps(j, &u, &w->kinds, w->padded - w->kinds.used);
	if (u.max <= o->ulp_max)
		return;
	o->ulp_max = u.max;
	for (size_t i = 0; i < w->n; i++) {
		uint32_t x, y;
		memcpy(&x, &w->a[i], sizeof x);
		memcpy(&y, &w->b[i], sizeof y);
		if (u.max == (f32 ? distance(x, y, 1u << 31)
				  : distance(w->xc[i], w->yc[i], 1u << 15))) {
			o->ulp_max_at = acc_job_place(j, w->off, i);
			return;
		}
	}
}

/* The sides' own statistics of a block that is not plainly finite, and the pairs to compare. */
static void
sort_out(struct acc_job *j, struct work *w)
{
	struct acc_blk1 r;
	if (j->oa != NULL) {
		acc_one_odd_block(j->row, j->oa, &r, w->a, w->n, largest(j->ta));
		acc_one_odd_block(j->row, j->ob, &r, w->b, w->n, largest(j->tb));
	}
	w->kinds = (struct acc_kinds){0};
	for (size_t i = 0; i < w->n; i++) {
		bool use = isfinite(w->a[i]) && isfinite(w->b[i]);
		w->kinds.used += use;
		if (!use)
			acc_kinds_add(&w->kinds, (double)w->a[i], (double)w->b[i]);
		w->x[i] = use ? w->a[i] : 0;
		w->y[i] = use ? w->b[i] : 0;
	}
	w->padded = (w->n + 15) / 16 * 16;
	memset(w->x + w->n, 0, (w->padded - w->n) * sizeof *w->x);
	memset(w->y + w->n, 0, (w->padded - w->n) * sizeof *w->y);
	w->a = w->x;
	w->b = w->y;
	w->odd = true;
}

void
acc_two_narrow(struct acc_job *j, size_t n)
{
	struct work w;
	const size_t sa = acc_dtypes[j->ta].size, sb = acc_dtypes[j->tb].size;
	bool odd = false; /* as the last one, probably */
	for (w.off = 0; w.off < n; w.off += ACC_BLOCK) {
		struct acc_blk2 r;
		w.n = w.padded = n - w.off < ACC_BLOCK ? n - w.off : ACC_BLOCK;
		w.a = acc_narrow_view(j->row, j->ta, j->ca, j->a + w.off * sa, w.n, w.abuf);
		w.b = acc_narrow_view(j->row, j->tb, j->cb, j->b + w.off * sb, w.n, w.bbuf);
		w.odd = odd || w.n % 16 != 0;
		if (!w.odd) {
			j->row->two(w.a, w.b, w.n, j->opt, &r);
			w.odd = !isfinite(r.a.sumsq) || !isfinite(r.b.sumsq);
		}
		if (w.odd) {
			sort_out(j, &w);
			compare(j, &w, &r, false);
			odd = w.kinds.used < w.n;
		} else {
			w.kinds = (struct acc_kinds){.used = w.n};
			if (j->oa != NULL) {
				acc_one_block(j->oa, &r.a, w.a, w.n, largest(j->ta));
				acc_one_block(j->ob, &r.b, w.b, w.n, largest(j->tb));
			}
			compare(j, &w, &r, true);
		}
		ulps(j, &w);
	}
}
