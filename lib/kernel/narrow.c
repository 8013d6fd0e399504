/* Comparing two sides that both fit f32: the rows do the work, one block at a time. */
#include "kernel/two.h"

#include <float.h>
#include <math.h>

struct work {
	_Alignas(64) float abuf[ACC_BLOCK], bbuf[ACC_BLOCK], x[ACC_BLOCK], y[ACC_BLOCK];
	_Alignas(64) uint16_t xc[ACC_BLOCK], yc[ACC_BLOCK];
	size_t off, n;      /* the block: components of the chunk */
	size_t padded;      /* n, or the next multiple of ACC_QUAD if the block is odd */
	bool odd;           /* something in it is not finite, or it is no such multiple */
	const float *a, *b; /* as compared: zeros in place of what is not used */
	struct acc_kinds kinds;
};

/* A maximum, the block in which it is first, and how it was computed there. */
struct peak {
	double max;
	size_t off;
	bool odd, f32;
};

static double
largest(enum acc_dtype t)
{
	return acc_dtype_of(t)->max;
}

static void
find_block(struct work *w, size_t off, size_t n)
{
	w->off = off;
	w->n = w->padded = n - off < ACC_BLOCK ? n - off : ACC_BLOCK;
	w->odd = false;
	w->kinds = (struct acc_kinds){.used = w->n};
}

/* Its numbers as floats. */
static void
view(const struct acc_two_job *j, struct work *w)
{
	w->a = acc_narrow_view(j->row, j->ta, j->ca, j->a + w->off * acc_dtype_of(j->ta)->size,
		w->n, w->abuf);
	w->b = acc_narrow_view(j->row, j->tb, j->cb, j->b + w->off * acc_dtype_of(j->tb)->size,
		w->n, w->bbuf);
}

/* Put zeros in place of what is not to be compared. */
static void
sort_out(const struct acc_two_job *j, struct work *w)
{
	uint64_t bad[ACC_BLOCK / 64];
	struct acc_blk1 range;
	w->padded = acc_pad_block(&w->a, w->n, w->abuf);
	acc_pad_block(&w->b, w->n, w->bbuf);
	w->kinds = (struct acc_kinds){0};
	w->kinds.used = j->row->clean(w->a, w->b, w->padded, w->x, w->y, bad, &range);
	for (size_t i = acc_next_bit(bad, 0, w->n); i < w->n; i = acc_next_bit(bad, i + 1, w->n))
		acc_kinds_add(&w->kinds, (double)w->a[i], (double)w->b[i]);
	w->a = w->x;
	w->b = w->y;
	w->odd = w->kinds.used < w->padded;
}

/* r and e where f32 is too narrow for them. */
static void
ratios_in_double(const struct acc_two_job *j, struct work *w, struct acc_blk2 *r)
{
	double a[ACC_BLOCK], b[ACC_BLOCK], d[ACC_BLOCK];
	struct acc_blk2 wide;
	if (!w->odd)
		view(j, w);
	for (size_t i = 0; i < w->padded; i++) {
		a[i] = (double)w->a[i];
		b[i] = (double)w->b[i];
		d[i] = a[i] - b[i];
	}
	j->row->wide_two(a, b, d, w->padded, j->opt, &wide);
	r->rel = wide.rel;
	r->ee = wide.ee;
	r->maxr = wide.maxr;
	r->maxe = wide.maxe;
	r->b0 = wide.b0;
	r->lt1 = wide.lt1;
	r->lt5 = wide.lt5;
	r->outside = wide.outside;
}

/* Did f32 hold the block's r and e, e^2, and sums of four of them? */
static bool
fits(const struct acc_blk2 *r, float scale)
{
	double bmax = -r->b.min > r->b.max ? -r->b.min : r->b.max;
	return scale > 0 && isfinite(scale) && isfinite((float)bmax + scale) && r->maxr < 0x1p125 &&
	       r->maxe < 0x1p62 && !(r->maxe > 0 && r->maxe < 0x1p-60);
}

static void
rise(struct peak *p, double max, const struct work *w, bool f32)
{
	if (max > p->max)
		*p = (struct peak){max, w->off, w->odd, f32};
}

/* The peak's block again, as it was compared. */
static void
return_to(const struct acc_two_job *j, struct work *w, const struct peak *p, size_t n)
{
	find_block(w, p->off, n);
	view(j, w);
	if (p->odd)
		sort_out(j, w);
}

/* The first element of the peak's block at which it is. */
static uint64_t
locate(const struct acc_two_job *j, struct work *w, const struct peak *p, char what, size_t n)
{
	size_t i = 0;
	const double s = j->opt->scale;
	if (p->max == 0)
		return 0;
	return_to(j, w, p, n);
	if (what == 'd') {
		i = j->row->find_d(w->a, w->b, w->padded, p->max);
	} else if (p->f32) {
		float max = (float)p->max;
		i = what == 'r' ? j->row->find_r(w->a, w->b, w->padded, max)
				: j->row->find_e(w->a, w->b, w->padded, (float)s, max);
	} else {
		for (; i < w->n; i++) {
			double a = (double)w->a[i], b = (double)w->b[i];
			if (p->max ==
				(what == 'r' ? acc_wide_r(a - b, b) : acc_wide_e(a - b, b, s)))
				break;
		}
	}
	return acc_two_job_place(j, p->off, i);
}

/* Codes in the coarser dtype of 16 or 8 bits: the bytes themselves where they are of that dtype,
 * and 0 for what is not compared. Of any alignment. */
static const void *
codes(const struct acc_two_job *j, const struct work *w, enum acc_dtype t, const uint8_t *p,
	const float *x, uint16_t *out)
{
	p += w->off * acc_dtype_of(t)->size;
	if (t != j->coarse) {
		for (size_t i = 0; i < w->padded; i++) {
			uint64_t c = acc_round_code(j->coarse, j->cc, (double)x[i]);
			out[i] = (uint16_t)(c | (signbit(x[i]) ? 0x8000 : 0));
		}
		return out;
	}
	if (acc_is_8bit(t))
		for (size_t i = 0; i < w->n; i++)
			out[i] = j->cc->code[p[i]];
	else if (w->odd)
		memcpy(out, p, 2 * w->n);
	else
		return p;
	if (!w->odd)
		return out;
	memset(out + w->n, 0, 2 * (w->padded - w->n));
	for (size_t i = 0; i < w->n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof bits);
		out[i] = bits == 0 ? 0 : out[i];
	}
	return out;
}

static uint64_t
distance(uint32_t x, uint32_t y, uint32_t sign)
{
	uint32_t mx = x & (sign - 1), my = y & (sign - 1);
	return (x ^ y) & sign ? mx + my : mx > my ? mx - my : my - mx;
}

static void
ulps(const struct acc_two_job *j, struct work *w, struct acc_ulps *u)
{
	if (j->coarse == ACC_F32) {
		j->row->ulp32(w->a, w->b, w->padded, u);
		return;
	}
	const void *x = codes(j, w, j->ta, j->a, w->a, w->xc);
	const void *y = codes(j, w, j->tb, j->b, w->b, w->yc);
	j->row->ulp16(x, y, w->padded, u);
}

/* The same of a block of two 8-bit floats of one dtype, in which all is finite: most have many
 * elements in common, so the rest is moved together first. */
static void
ulps_8bit(const struct acc_two_job *j, struct work *w, struct acc_ulps *u)
{
	const uint8_t *a = j->a + w->off, *b = j->b + w->off;
	size_t n = 0;
	for (size_t i = 0; i < w->n; i += 8) {
		uint64_t x, y;
		memcpy(&x, a + i, sizeof x);
		memcpy(&y, b + i, sizeof y);
		for (x ^= y; x != 0;) {
			const unsigned k = (unsigned)__builtin_ctzll(x) / 8;
			w->xc[n] = j->ca->code[a[i + k]];
			w->yc[n++] = j->ca->code[b[i + k]];
			x &= ~(UINT64_C(0xff) << 8 * k);
		}
	}
	const size_t padded = n == 0 ? ACC_QUAD : (n + ACC_QUAD - 1) / ACC_QUAD * ACC_QUAD;
	memset(w->xc + n, 0, (padded - n) * sizeof *w->xc);
	memset(w->yc + n, 0, (padded - n) * sizeof *w->yc);
	j->row->ulp16(w->xc, w->yc, padded, u);
	u->same += (uint32_t)(w->n - padded);
	u->bin[0] += (uint32_t)(w->n - padded);
}

static uint64_t
locate_ulp(const struct acc_two_job *j, struct work *w, const struct peak *p, size_t n)
{
	const bool f32 = j->coarse == ACC_F32;
	if (p->max == 0)
		return 0;
	return_to(j, w, p, n);
	const uint8_t *a = (const uint8_t *)w->a, *b = (const uint8_t *)w->b;
	if (!f32) {
		a = codes(j, w, j->ta, j->a, w->a, w->xc);
		b = codes(j, w, j->tb, j->b, w->b, w->yc);
	}
	size_t i = 0;
	for (; i < w->n; i++) {
		uint32_t x, y;
		uint16_t u, v;
		uint64_t d;
		if (f32) {
			memcpy(&x, a + i * sizeof x, sizeof x);
			memcpy(&y, b + i * sizeof y, sizeof y);
			d = distance(x, y, 1u << 31);
		} else {
			memcpy(&u, a + i * sizeof u, sizeof u);
			memcpy(&v, b + i * sizeof v, sizeof v);
			d = distance(u, v, 1u << 15);
		}
		if (p->max == (double)d)
			break;
	}
	return acc_two_job_place(j, p->off, i);
}

/* A block in which not everything is finite, or the last of a tensor. */
static void
odd_block(struct acc_two_job *j, struct work *w, struct acc_blk2 *r, struct acc_ulps *u)
{
	if (j->oa != NULL) {
		acc_one_odd_block(j->row, j->oa, &r->a, w->a, w->n, largest(j->ta));
		acc_one_odd_block(j->row, j->ob, &r->b, w->b, w->n, largest(j->tb));
	}
	sort_out(j, w);
	if (j->opt->plain) {
		j->row->plain(w->a, w->b, w->padded, r);
		return;
	}
	j->row->two(w->a, w->b, w->padded, j->opt, r);
	ulps(j, w, u);
}

/* 8-bit floats in a dtype of 16 bits that holds them; n is a multiple of 8. Eight are read at once
 * and four written: the processor can do more of what is in between. */
static const uint16_t *
halves(const struct acc_codes *c, const uint8_t *p, size_t n, uint16_t *out)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t v;
		memcpy(&v, p + i, sizeof v);
		for (int k = 0; k < 8; k += 4) {
			uint64_t w = (uint64_t)c->half[v & 255] |
				     (uint64_t)c->half[v >> 8 & 255] << 16 |
				     (uint64_t)c->half[v >> 16 & 255] << 32 |
				     (uint64_t)c->half[v >> 24 & 255] << 48;
			memcpy(out + i + k, &w, sizeof w);
			v >>= 32;
		}
	}
	return out;
}

/* The rows' loops, if all is finite. */
static bool
even_block(const struct acc_two_job *j, struct work *w, struct acc_blk2 *r, struct acc_ulps *u)
{
	const bool narrow = j->ta == j->tb && acc_is_8bit(j->ta);
	const enum acc_dtype t = j->ta != j->tb ? ACC_NODTYPE : narrow ? j->ca->wider : j->ta;
	const bool half = t == ACC_F16 || t == ACC_BF16;
	const size_t size = narrow ? 1 : 2;
	if (half) {
		const void *a = j->a + w->off * size, *b = j->b + w->off * size;
		if (narrow) {
			a = halves(j->ca, a, w->n, w->xc);
			b = halves(j->cb, b, w->n, w->yc);
		}
		if (j->opt->plain)
			(t == ACC_F16 ? j->row->plain_f16 : j->row->plain_bf16)(a, b, w->n, r);
		else
			(t == ACC_F16 ? j->row->two_f16 : j->row->two_bf16)(a, b, w->n, j->opt, r,
				u);
	} else {
		view(j, w);
		if (j->opt->plain)
			j->row->plain(w->a, w->b, w->n, r);
		else
			j->row->two(w->a, w->b, w->n, j->opt, r);
	}
	if (!isfinite(r->a.sumsq) || !isfinite(r->b.sumsq))
		return false;
	if (j->opt->plain)
		return true;
	if (narrow)
		ulps_8bit(j, w, u);
	else if (!half)
		ulps(j, w, u);
	return true;
}

/* The sides' statistics of a block in which all is finite. */
static void
count_sides(struct acc_two_job *j, struct work *w, const struct acc_blk2 *r)
{
	const double la = largest(j->ta), lb = largest(j->tb);
	const bool sat_a = acc_saturates(&r->a, la), sat_b = acc_saturates(&r->b, lb);
	acc_one_block(j->oa, &r->a, w->n);
	acc_one_block(j->ob, &r->b, w->n);
	if (!sat_a && !sat_b)
		return;
	view(j, w);
	if (sat_a)
		acc_one_saturated(j->oa, w->a, w->n, la);
	if (sat_b)
		acc_one_saturated(j->ob, w->b, w->n, lb);
}

/* One block's sums. */
static void
block(struct acc_two_job *j, struct work *w, bool *odd, struct acc_blk2 *r, struct acc_ulps *u)
{
	if (*odd || w->n % ACC_QUAD != 0 || !even_block(j, w, r, u)) {
		view(j, w);
		w->odd = true;
		odd_block(j, w, r, u);
		*odd = w->kinds.used < w->n;
	} else if (j->oa != NULL) {
		count_sides(j, w, r);
	}
}

void
acc_two_narrow(struct acc_two_job *j, size_t n)
{
	struct work w;
	struct peak d = {0}, rel = {0}, e = {0}, ulp = {0};
	_Alignas(64) unsigned char ha[ACC_HASHING], hb[ACC_HASHING];
	const size_t sa = acc_dtype_of(j->ta)->size, sb = acc_dtype_of(j->tb)->size;
	const float scale = (float)j->opt->scale;
	bool odd = false; /* as the last one, probably */
	/* Else the sides are hashed where they are measured, or not at all. */
	const bool hashed = j->oa != NULL && !j->opt->plain;
	j->row->hash_start(ha);
	j->row->hash_start(hb);
	for (size_t off = 0; off < n; off += ACC_BLOCK) {
		struct acc_blk2 r;
		struct acc_ulps u;
		find_block(&w, off, n);
		if (hashed) {
			j->row->hash_add(ha, j->a + off * sa, w.n * sa);
			j->row->hash_add(hb, j->b + off * sb, w.n * sb);
		}
		block(j, &w, &odd, &r, &u);
		const bool f32 = j->opt->plain || fits(&r, scale);
		if (!f32)
			ratios_in_double(j, &w, &r);
		acc_two_job_add(j, &r, &w.kinds, w.padded - w.kinds.used);
		rise(&d, r.maxd, &w, true);
		if (j->opt->plain)
			continue;
		acc_two_job_add_ulps(j, &u, &w.kinds, w.padded - w.kinds.used);
		rise(&rel, r.maxr, &w, f32);
		rise(&e, r.maxe, &w, f32);
		rise(&ulp, (double)u.max, &w, true);
	}
	if (j->oa != NULL) {
		j->oa->hash = hashed ? j->row->hash_end(ha) : 0;
		j->ob->hash = hashed ? j->row->hash_end(hb) : 0;
	}
	struct acc_two *o = j->out;
	o->max_absd = d.max;
	o->max_absd_at = locate(j, &w, &d, 'd', n);
	o->max_rel = rel.max;
	o->max_rel_at = locate(j, &w, &rel, 'r', n);
	o->max_e = e.max;
	o->max_e_at = locate(j, &w, &e, 'e', n);
	o->ulp_max = (uint64_t)ulp.max;
	o->ulp_max_at = locate_ulp(j, &w, &ulp, n);
}
