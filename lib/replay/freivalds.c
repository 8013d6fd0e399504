/* Products too large to be formed again: Freivalds' check, and some elements.
 *
 * For random signs r, (x y) r = x (y r): as cheap as reading the two. It is made for rows and for
 * columns, so that a single bad element shows in both; what it cannot see in the rounding noise of
 * a long row, the elements that are formed one by one may: those where some rows and some columns
 * cross. Each matrix is read in order, line by line, as it lies. */
#include "replay/matrix.h"
#include "replay/limits.h"

#include <stdlib.h>

enum { SAMPLES = 4096, MOST = 256, SOME = 256, CHOSEN = 64 };
/* Multiplications. What is not read as it is checked is in memory already. */
#define LARGE 0x1p22
#define LARGE_LOADED 0x1p24
/* If such a one is wrong, it is formed after all: to say what it looks like. */
#define FORMED 0x1p26

static double
work_of(const struct acc_product *p)
{
	return (double)p->nb * (double)p->m * (double)p->n * (double)p->nk;
}

bool
acc_product_large(const struct acc_product *p, bool streams)
{
	return work_of(p) > (streams ? LARGE : LARGE_LOADED);
}

bool
acc_product_formed(const struct acc_product *p)
{
	return work_of(p) <= FORMED;
}

/* --- the check --- */

struct ruler {
	double unit, work;
	double max; /* of what it is computed in */
	struct acc_range range;
	struct acc_errsum *err, *coarse;
	struct acc_forms *forms; /* NULL: not wanted */
};

static void
count(const struct ruler *u, double d, double size, double terms)
{
	if (!isfinite(terms))
		return;
	size = isfinite(size) ? size : 0;
	acc_err_add(u->err, d / (u->unit * size + u->work * terms + 0x1p-126));
	acc_err_add(u->coarse, d / (u->unit * (size + terms) + 0x1p-126));
}

/* Vectors along the three indices, of one batch. */
struct check {
	const struct acc_product *p;
	bool gradient;               /* of rows only, which is half as dear */
	bool some;                   /* of a quarter of them */
	struct matrix x, y, o, bias; /* [i, k], [k, j], [i, j], [i, j] */
	size_t *ii, *jj, nii, njj;   /* what is formed: where these rows and columns cross */
	double *si, *sj, *ones;
	double *yr, *ysize, *xr, *xsize; /* over k */
	double *left_i, *sq_i, *right_i, *terms_i, *left_j, *sq_j, *right_j, *terms_j;
	double *bias_i, *bias_j, *none; /* of the bias */
	double *xi, *yj, *oi, *bi;      /* the rows of x, o and bias; the columns of y */
};

static void
signs(double *s, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		s[i] = acc_mix(seed + i) & 1 ? 1 : -1;
}

/* About `want` of n, evenly spread, and not more than MOST. */
static size_t *
spread(struct acc_replay *r, size_t n, size_t want, size_t *count_of)
{
	want = want < MOST ? want : MOST;
	size_t k = n < want ? n : want, *at = acc_offsets(r, k, 0);
	for (size_t i = 0; at != NULL && i < k; i++)
		at[i] = k == n ? i : (size_t)((double)(2 * i + 1) * (double)n / (double)(2 * k));
	*count_of = k;
	return at;
}

static int
check_start(struct acc_trial *t, const struct acc_product *p, const struct acc_sealed *rec,
	struct check *c)
{
	struct acc_replay *r = &t->r;
	size_t m = p->m, n = p->n, nk = p->nk, most = m > n ? m : n, side = 1;
	*c = (struct check){.p = p};
	while ((side + 1) * (side + 1) * p->nb <= (t->j->backward ? SAMPLES / 4 : SAMPLES))
		side++;
	c->ii = spread(r, m, n < side ? SAMPLES / p->nb / n : side, &c->nii);
	c->jj = spread(r, n, m < side ? SAMPLES / p->nb / m : side, &c->njj);
	double **over_m[] = {&c->si, &c->left_i, &c->sq_i, &c->right_i, &c->terms_i, &c->bias_i};
	double **over_n[] = {&c->sj, &c->left_j, &c->sq_j, &c->right_j, &c->terms_j, &c->bias_j};
	double **over_k[] = {&c->yr, &c->ysize, &c->xr, &c->xsize};
	bool good = c->ii != NULL && c->jj != NULL;
	for (int i = 0; i < 6; i++)
		good = good && (*over_m[i] = acc_doubles(r, m)) != NULL &&
		       (*over_n[i] = acc_doubles(r, n)) != NULL;
	for (int i = 0; i < 4; i++)
		good = good && (*over_k[i] = acc_doubles(r, nk)) != NULL;
	if (!good || (c->ones = acc_doubles(r, most)) == NULL ||
		(c->none = acc_doubles(r, most)) == NULL ||
		(c->xi = acc_doubles(r, c->nii * nk)) == NULL ||
		(c->yj = acc_doubles(r, c->njj * nk)) == NULL ||
		(c->oi = acc_doubles(r, c->nii * n)) == NULL ||
		(c->bi = acc_doubles(r, c->nii * n)) == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	for (size_t i = 0; i < most; i++)
		c->ones[i] = 1;
	acc_zero(c->bias_i, m);
	acc_zero(c->bias_j, n);
	acc_zero(c->bi, c->nii * n);
	if (acc_matrix(t, acc_as_sealed(p->x), p->xm, m, p->xk, nk, &c->x) < 0 ||
		acc_matrix(t, acc_as_sealed(p->y), p->yk, nk, p->yn, n, &c->y) < 0 ||
		acc_matrix(t, rec, p->om, m, p->on, n, &c->o) < 0 ||
		(p->bias != NULL &&
			acc_matrix(t, acc_as_sealed(p->bias), p->bm, m, p->bn, n, &c->bias) < 0))
		return ACC_EUNSUP;
	return 0;
}

/* The sums of the bias, with the signs; of one that is the same in all rows its line tells. */
static int
bias(struct acc_trial *t, struct check *c, size_t b)
{
	const struct acc_product *p = c->p;
	bool same = p->m > 0 && p->bm[p->m - 1] == 0 && acc_neighbours(p->bn, p->n);
	struct matrix_request w = {.vb = c->sj,
		.wb = c->ones,
		.ra = c->bias_i,
		.ra2 = c->none,
		.va = c->si,
		.wa = c->ones,
		.rb = c->bias_j,
		.rb2 = c->none,
		.ia = c->ii,
		.nia = c->nii,
		.keep_a = c->bi};
	if (!same)
		return acc_matrix_pass(t, &c->bias, p->bb[b], &w);
	const double *v = acc_window_at(&c->bias.w, p->bb[b] + p->bn[0], p->n);
	if (v == NULL)
		return acc_cannot(&t->r, c->bias.w.err);
	double sum = 0, all = 0;
	for (size_t j = 0; j < p->n; j++)
		sum += v[j] * c->sj[j];
	for (size_t i = 0; i < p->m; i++) {
		c->bias_i[i] = sum;
		all += c->si[i];
	}
	for (size_t j = 0; j < p->n; j++)
		c->bias_j[j] = v[j] * all;
	for (size_t i = 0; i < c->nii; i++)
		memcpy(c->bi + i * p->n, v, p->n * sizeof *v);
	return 0;
}

static void
compare(const struct check *c, const struct ruler *u, size_t n, const double *left,
	const double *sq, const double *right, const double *terms, const double *added)
{
	double alpha = c->p->alpha, beta = c->p->beta;
	for (size_t i = 0; i < n; i++) {
		double l = c->p->bias == NULL ? left[i] : left[i] - beta * added[i];
		/* NaN and Inf belong nowhere where nothing is large; else it overflows, or may. */
		if (!isfinite(l))
			l = fabs(alpha) * terms[i] < u->max / 4 ? INFINITY : NAN;
		if (!isnan(l) && isfinite(right[i]))
			count(u, fabs(l - alpha * right[i]), sqrt(sq[i]), fabs(alpha) * terms[i]);
	}
}

/* One element that was formed. */
static void
sample(const struct ruler *u, double rec, double ref, double abs)
{
	enum acc_fate f = acc_fate_of(&u->range, rec, ref, abs);
	if (f == ACC_LEFT || (f == ACC_RIGHT && !isfinite(ref)))
		return;
	if (f == ACC_NUMBER) {
		count(u, fabs(rec - ref), fabs(ref), abs);
		return;
	}
	acc_err_add(u->err, f == ACC_WRONG ? INFINITY : 0);
	acc_err_add(u->coarse, f == ACC_WRONG ? INFINITY : 0);
}

/* The elements where the rows and columns that were kept cross. */
static void
samples(const struct check *c, const struct ruler *u)
{
	const struct acc_product *p = c->p;
	size_t every = c->nii * c->njj / LIMIT_FORM_SAMPLES + 1;
	for (size_t i = 0; i < c->nii; i++)
		for (size_t j = 0; j < c->njj; j++) {
			double sum = 0, abs = 0, rec = c->oi[i * p->n + c->jj[j]];
			acc_audit_row()->dot(c->xi + i * p->nk, c->yj + j * p->nk, p->nk, &sum,
				&abs);
			double add = p->bias == NULL ? 0 : p->beta * c->bi[i * p->n + c->jj[j]];
			double ref = p->alpha * sum + add;
			if (u->forms != NULL && (i * c->njj + j) % every == 0)
				acc_form_add(u->forms, c->xi + i * p->nk, c->yj + j * p->nk, p->nk,
					p->alpha, add, rec);
			sample(u, rec, ref, fabs(p->alpha) * abs);
		}
}

static int
batch(struct acc_trial *t, struct check *c, size_t b, const struct ruler *u)
{
	const struct acc_product *p = c->p;
	struct matrix_request y1 = {.vb = c->sj,
		.wb = c->ones,
		.ra = c->yr,
		.ra2 = c->ysize,
		.fsquare = true,
		.ib = c->jj,
		.nib = c->njj,
		.keep_b = c->yj};
	struct matrix_request x = {.vb = c->yr,
		.wb = c->ysize,
		.ra = c->right_i,
		.ra2 = c->terms_i,
		.va = c->si,
		.wa = c->ones,
		.rb = c->xr,
		.rb2 = c->xsize,
		.gsquare = true,
		.ia = c->ii,
		.nia = c->nii,
		.keep_a = c->xi};
	struct matrix_request y2 = {.va = c->xr,
		.wa = c->xsize,
		.rb = c->right_j,
		.rb2 = c->terms_j};
	struct matrix_request o = {.vb = c->sj,
		.wb = c->ones,
		.ra = c->left_i,
		.ra2 = c->sq_i,
		.va = c->si,
		.wa = c->ones,
		.rb = c->left_j,
		.rb2 = c->sq_j,
		.fsquare = true,
		.gsquare = true,
		.ia = c->ii,
		.nia = c->nii,
		.keep_a = c->oi};
	if (c->gradient) {
		x.some = o.some = c->some;
		x.va = o.va = NULL;
		x.wa = o.wa = NULL;
		x.rb = o.rb = NULL;
		x.rb2 = o.rb2 = NULL;
	}
	signs(c->si, p->m, b * 977);
	signs(c->sj, p->n, b * 977 + 1);
	if (acc_matrix_pass(t, &c->y, p->yb[b], &y1) < 0)
		return ACC_EUNSUP;
	for (size_t k = 0; k < p->nk; k++)
		c->ysize[k] = sqrt(c->ysize[k]);
	if (acc_matrix_pass(t, &c->x, p->xb[b], &x) < 0)
		return ACC_EUNSUP;
	for (size_t k = 0; k < p->nk && !c->gradient; k++)
		c->xsize[k] = sqrt(c->xsize[k]);
	if ((!c->gradient && acc_matrix_pass(t, &c->y, p->yb[b], &y2) < 0) ||
		acc_matrix_pass(t, &c->o, p->ob[b], &o) < 0 ||
		(p->bias != NULL && bias(t, c, b) < 0))
		return ACC_EUNSUP;
	compare(c, u, p->m, c->left_i, c->sq_i, c->right_i, c->terms_i, c->bias_i);
	if (!c->gradient)
		compare(c, u, p->n, c->left_j, c->sq_j, c->right_j, c->terms_j, c->bias_j);
	samples(c, u);
	return 0;
}

/* --- those that differ most from the other side --- */

struct chosen {
	double by; /* how far apart the sides are; INFINITY: one is not a number */
	size_t b, i, j;
};

struct choice {
	struct chosen list[CHOSEN];
	size_t n, least; /* which of them is apart the least */
};

static void
choose(struct choice *c, const struct chosen *x)
{
	if (!(x->by > 0) || (c->n == CHOSEN && x->by <= c->list[c->least].by))
		return;
	c->list[c->n < CHOSEN ? c->n++ : c->least] = *x;
	for (size_t i = 0; i < c->n; i++)
		c->least = i == 0 || c->list[i].by < c->list[c->least].by ? i : c->least;
}

static double
apart(double x, double y)
{
	return isnan(x) && isnan(y)         ? 0
	       : isfinite(x) && isfinite(y) ? fabs(x - y)
	       : x == y                     ? 0
					    : INFINITY;
}

static int
choose_all(struct acc_trial *t, struct check *c, struct matrix *other, struct choice *out)
{
	const struct acc_product *p = c->p;
	struct matrix *o = &c->o;
	const bool turned = o->turned;
	const size_t lines = turned ? o->nb : o->na, n = turned ? o->na : o->nb;
	const size_t *tl = turned ? o->tb : o->ta, *tn = turned ? o->ta : o->tb;
	for (size_t b = 0; b < p->nb; b++)
		for (size_t l = 0; l < lines; l++) {
			const size_t at = p->ob[b] + tl[l] + tn[0];
			const double *x = acc_window_at(&o->w, at, n);
			const double *y = acc_window_at(&other->w, at, n);
			if (x == NULL || y == NULL)
				return acc_cannot(&t->r, x == NULL ? o->w.err : other->w.err);
			for (size_t k = 0; k < n; k++)
				if (x[k] != y[k])
					choose(out, &(struct chosen){apart(x[k], y[k]), b,
							    turned ? k : l, turned ? l : k});
		}
	return 0;
}

static int
by_size(const void *a, const void *b)
{
	const size_t x = *(const size_t *)a, y = *(const size_t *)b;
	return (x > y) - (x < y);
}

/* Each number once, rising. */
static size_t
unique(size_t *v, size_t n)
{
	size_t k = 0;
	qsort(v, n, sizeof *v, by_size);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || v[i] != v[k - 1])
			v[k++] = v[i];
	return k;
}

static size_t
place(const size_t *v, size_t n, size_t x)
{
	size_t i = 0;
	while (i < n && v[i] != x)
		i++;
	return i;
}

/* One that is far worse than those that nobody chose is no rounding, though its limit may be wide. */
static int
form(struct acc_trial *t, struct check *c, const struct choice *all, size_t b,
	const struct ruler *u, double usual, struct acc_left *left)
{
	const struct acc_product *p = c->p;
	size_t ii[CHOSEN], jj[CHOSEN], n = 0;
	for (size_t k = 0; k < all->n; k++)
		if (all->list[k].b == b) {
			ii[n] = all->list[k].i;
			jj[n++] = all->list[k].j;
		}
	const size_t nii = unique(ii, n), njj = unique(jj, n);
	double *x = acc_doubles(&t->r, nii * p->nk), *y = acc_doubles(&t->r, njj * p->nk);
	struct matrix_request wx = {.ia = ii, .nia = nii, .keep_a = x};
	struct matrix_request wy = {.ib = jj, .nib = njj, .keep_b = y};
	if (x == NULL || y == NULL || acc_matrix_pass(t, &c->x, p->xb[b], &wx) < 0 ||
		acc_matrix_pass(t, &c->y, p->yb[b], &wy) < 0)
		return ACC_EUNSUP;
	for (size_t k = 0; k < all->n; k++) {
		const struct chosen *s = &all->list[k];
		if (s->b != b)
			continue;
		double sum = 0, abs = 0, add = 0;
		const double *rec = acc_window_at(&c->o.w, p->ob[b] + p->om[s->i] + p->on[s->j], 1);
		const double *bias = p->bias == NULL
					     ? &add
					     : acc_window_at(&c->bias.w,
						       p->bb[b] + p->bm[s->i] + p->bn[s->j], 1);
		if (rec == NULL || bias == NULL)
			return acc_cannot(&t->r, "one of its tensors could not be read");
		add = p->bias == NULL ? 0 : p->beta * *bias;
		acc_audit_row()->dot(x + place(ii, nii, s->i) * p->nk,
			y + place(jj, njj, s->j) * p->nk, p->nk, &sum, &abs);
		struct acc_errsum one = {0}, coarse = {0};
		struct ruler own = *u;
		own.err = &one;
		own.coarse = &coarse;
		sample(&own, *rec, p->alpha * sum + add, fabs(p->alpha) * abs);
		u->err->max = fmax(u->err->max, one.max);
		u->err->broken |= one.broken;
		u->coarse->max = fmax(u->coarse->max, coarse.max);
		u->coarse->broken |= coarse.broken;
		left->open += one.n == 0 || acc_err_max(&one) > usual;
	}
	return 0;
}

static int
beside(struct acc_trial *t, struct check *c, const struct acc_held *held, const struct ruler *u,
	struct acc_left *left)
{
	struct acc_sealed *other = acc_other_open(t->j, held);
	struct choice all = {.n = 0};
	struct matrix m;
	const double usual = LIMIT_STANDS_OUT * fmax(1, acc_err_max(u->err));
	if (other == NULL || c->o.apart)
		return 0;
	if (acc_matrix(t, other, c->p->om, c->p->m, c->p->on, c->p->n, &m) < 0)
		return ACC_EUNSUP;
	m.w.held = held->other;
	int rc = choose_all(t, c, &m, &all);
	for (size_t b = 0; b < c->p->nb && rc == 0 && all.n > 0; b++) {
		bool any = false;
		for (size_t k = 0; k < all.n; k++)
			any |= all.list[k].b == b;
		if (any)
			rc = form(t, c, &all, b, u, usual, left);
	}
	left->n -= all.n < left->n ? all.n : left->n;
	return rc;
}

int
acc_freivalds(struct acc_trial *t, const struct acc_product *p, const struct acc_held *held,
	const struct acc_sealed *rec, double max, double unit, double work, struct acc_errsum *err,
	struct acc_errsum *coarse, struct acc_forms *forms, struct acc_left *left, double *part)
{
	const enum acc_dtype dtype = held->d.dtype;
	struct ruler u = {unit, work, max, acc_range_of(dtype, unit, max), err, coarse,
		dtype == ACC_F32 ? forms : NULL};
	struct check c;
	if (p->nb == 0 || p->m == 0 || p->n == 0 || p->nk == 0)
		return acc_cannot(&t->r, "a product of empty tensors");
	int rc = check_start(t, p, rec, &c);
	c.gradient = t->j->backward;
	c.some = c.gradient && !t->j->reader->all && p->m >= SOME && p->alpha != 0 && !c.x.turned &&
		 !c.x.apart && !c.o.turned && !c.o.apart;
	if (rc == 0 && c.some)
		*part = 0.25;
	for (size_t b = 0; b < p->nb && rc == 0; b++)
		rc = batch(t, &c, b, &u);
	left->n += p->nb * (p->m * p->n - c.nii * c.njj);
	return rc == 0 ? beside(t, &c, held, &u, left) : rc;
}
