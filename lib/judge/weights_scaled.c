/* Weights in few bits whose columns were multiplied before they were rounded, by factors that what comes before was
 * divided by, as AWQ and SmoothQuant do. The model is the same where a norm (or the rows of a matrix) has just these
 * factors less; else the columns are wrong. */
#include "judge/weights.h"
#include "acc/payload.h"
#include "acc/say.h"
#include "io/grid.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "judge/limits.h"

/* Whose rows may have the factors of whose columns less: nothing but products lies between. */
static const struct {
	const char *from, *to;
} folds[] = {{"up_proj", "down_proj"}, {"v_proj", "o_proj"}, {"w3", "w2"}, {"wv", "wo"}};
enum { NFOLDS = sizeof folds / sizeof *folds };

/* A pair that differs: a vector, or a matrix of which one side is in few bits. */
struct odd {
	uint32_t item, by; /* by: of what has its factors less; NOBODY */
	const char *name;
	struct acc_str parent, module; /* of it: "model.layers.0.mlp.", "up_proj" */
	uint64_t layer;                /* the name up to its first number */
	int64_t rows, cols;            /* 1 row: a vector */
	uint8_t side;                  /* of what is in few bits; of a vector unknown */
	bool fits, off;                /* off: by more than its format's rounding */
	bool lone; /* of one side alone: what an activation is divided by (act.scales of AWQ) */
	double *rows_by; /* what its rows are multiplied by, where they are; or NULL */
};
#define NOBODY UINT32_MAX

struct scaling {
	struct acc_weights *t;
	struct acc_odd_list {
		struct odd *v;
		uint32_t n;
		size_t cap;
	} list;
	struct acc_ids at; /* of a name: its place in the list */
};

/* --- names --- */

static struct odd
named(const char *name)
{
	struct odd o = {.name = name, .by = NOBODY};
	const struct acc_str s = acc_str(name);
	uint32_t end = s.n, from;
	const char *dot = s.n == 0 ? NULL : memrchr(s.p, '.', s.n);
	end = dot == NULL ? 0 : (uint32_t)(dot - s.p);
	for (from = end; from > 0 && s.p[from - 1] != '.';)
		from--;
	o.parent = (struct acc_str){s.p, from};
	o.module = (struct acc_str){s.p + from, end - from};
	uint32_t i = 0;
	while (i < s.n && !(isdigit((unsigned char)s.p[i]) && i > 0 && s.p[i - 1] == '.'))
		i++;
	while (i < s.n && isdigit((unsigned char)s.p[i]))
		i++;
	o.layer = acc_hash(s.p, i < s.n ? i : 0);
	return o;
}

static bool
is_fold(const struct odd *o, int k, bool to)
{
	return acc_str_is(o->module, to ? folds[k].to : folds[k].from);
}

/* Does it take what another matrix gives, and not what the norm does? */
static bool
takes_matrix(const struct odd *o)
{
	for (int k = 0; k < NFOLDS; k++)
		if (is_fold(o, k, true))
			return true;
	return false;
}

/* --- reading --- */

enum { QUANT, PLAIN, REACH, NPAY };

struct read {
	struct acc_pay *pay[NPAY];
	enum acc_dtype dtype[NPAY];
	double *value[NPAY];
	uint8_t *raw;
	uint64_t n;
};

static void
close_all(struct read *x)
{
	for (int i = 0; i < NPAY; i++) {
		acc_pay_close(x->pay[i]);
		free(x->value[i]);
	}
	free(x->raw);
}

/* 1; 0: one cannot be read, which whoever measured it said; < 0. */
static int
open_all(struct read *x, struct acc_case *c, const struct odd *o, struct acc_err *e)
{
	static const char *const prefix[] = {"a.", "b."};
	struct acc_rec *r;
	struct acc_err own = {0};
	*x = (struct read){.raw = malloc((size_t)ACC_CHUNK * 16)};
	int rc = acc_case_record(c, &c->item[o->item], &r, e);
	if (rc < 0)
		return rc;
	for (int i = 0; i < (o->rows > 1 ? NPAY : o->lone ? PLAIN : REACH); i++) {
		const char *of = prefix[i == PLAIN ? !o->side : o->side];
		struct acc_ref ref;
		if (acc_ref_get(r, of, &ref, &own) <= 0 || acc_dtype_of(ref.dtype)->cls != 'F')
			return 0;
		ref.reach = i == REACH;
		x->dtype[i] = ref.dtype;
		x->pay[i] = acc_pay_open(c->opt.where, acc_get_text(r, of, "src"), &ref, &own);
		x->value[i] = malloc(ACC_CHUNK * sizeof(double));
		if (x->raw == NULL || x->value[i] == NULL || own.code == ACC_ENOMEM)
			return acc_nomem(e);
		if (x->pay[i] == NULL)
			return 0;
	}
	x->n = acc_pay_count(x->pay[QUANT]);
	return x->n == (uint64_t)(o->rows * o->cols) &&
	       (o->lone || x->n == acc_pay_count(x->pay[PLAIN]));
}

/* 1: k elements from `at` on, of all; 0: they cannot be read. */
static int
load(struct read *x, uint64_t at, size_t k)
{
	for (int i = 0; i < NPAY; i++) {
		const void *p;
		if (x->pay[i] == NULL)
			continue;
		if (acc_pay_read(x->pay[i], at, k, x->raw, &p, NULL) < 0)
			return 0;
		acc_kernel_load(x->dtype[i], p, k, x->value[i]);
	}
	return 1;
}

/* The quotients of a vector, plain by the other: what columns behind it must have more. NULL: none, or no memory. */
static double *
quotients(struct acc_case *c, struct odd *o, int side, struct acc_err *e)
{
	struct read x;
	double *q = NULL;
	if (o->lone && o->side != side)
		return NULL;
	o->side = (uint8_t)side;
	int rc = open_all(&x, c, o, e);
	if (rc > 0 && (q = malloc(x.n * sizeof *q)) == NULL)
		rc = acc_nomem(e);
	for (uint64_t at = 0, k; rc > 0 && at < x.n; at += k) {
		k = x.n - at < ACC_CHUNK ? x.n - at : ACC_CHUNK;
		rc = load(&x, at, (size_t)k);
		for (uint64_t i = 0; i < k && rc > 0; i++) {
			q[at + i] = o->lone ? x.value[QUANT][i]
					    : x.value[PLAIN][i] / x.value[QUANT][i];
			if (!(q[at + i] > 0) || isinf(q[at + i]))
				rc = 0;
		}
	}
	close_all(&x);
	if (rc > 0)
		return q;
	free(q);
	return NULL;
}

/* What was cut off at the end of a grid says nothing of a factor; small values say little. */
static bool
says_nothing(double quant, double far)
{
	return far >= fabs(quant);
}

/* Least squares of each row, or column, of what the columns leave: what it is multiplied by. */
static int
fit(struct read *x, const struct odd *o, const double *by, bool columns, double *out)
{
	const int64_t n = columns ? o->cols : o->rows;
	double *squares = calloc((size_t)n, sizeof *squares);
	int rc = squares != NULL;
	memset(out, 0, (size_t)n * sizeof *out);
	for (uint64_t at = 0, k; rc > 0 && at < x->n; at += k) {
		k = x->n - at < ACC_CHUNK ? x->n - at : ACC_CHUNK;
		rc = load(x, at, (size_t)k);
		for (uint64_t i = 0; i < k && rc > 0; i++) {
			const uint64_t row = (at + i) / (uint64_t)o->cols,
				       col = (at + i) % (uint64_t)o->cols, to = columns ? col : row;
			const double v = x->value[PLAIN][i] * (by == NULL ? 1 : by[col]);
			if (says_nothing(x->value[QUANT][i], x->value[REACH][i]))
				continue;
			out[to] += v * x->value[QUANT][i];
			squares[to] += v * v;
		}
	}
	for (int64_t i = 0; i < n && rc > 0; i++) {
		out[i] = squares[i] > 0 ? out[i] / squares[i] : 1;
		rc = out[i] > 0;
	}
	free(squares);
	return rc;
}

/* Sums of each column, of what is left and what was there. */
struct sums {
	double cross, squares, noise;
};

static void
add_sums(struct sums *c, double quant, double plain, double far)
{
	if (says_nothing(quant, far))
		return;
	c->cross += (quant - plain) * plain;
	c->squares += plain * plain;
	c->noise += far * far * plain * plain;
}

/* Is no column off by a factor of its own, beyond what the rounding of its elements adds up to? */
static bool
is_even(const struct sums *c, int64_t n, double errors, double unit)
{
	for (int64_t j = 0; j < n; j++)
		if (fabs(c[j].cross) > errors * sqrt(c[j].noise) + unit * c[j].squares)
			return false;
	return true;
}

/* Is it the plain one with its columns, and rows, multiplied, within the rounding of its format? errors: how many
 * standard errors of a column its factor may be off. */
static int
within(struct read *x, const struct odd *o, const double *by, const double *rows, double limit,
	double errors)
{
	const double unit = acc_dtype_of(x->dtype[PLAIN])->eps + 0x1p-10; /* of a norm of 16 bits */
	struct sums *sums = calloc((size_t)o->cols, sizeof *sums);
	double max = 0, sum = 0;
	int rc = sums != NULL;
	for (uint64_t at = 0, k; rc > 0 && at < x->n; at += k) {
		k = x->n - at < ACC_CHUNK ? x->n - at : ACC_CHUNK;
		rc = load(x, at, (size_t)k);
		for (uint64_t i = 0; i < k && rc > 0; i++) {
			const uint64_t row = (at + i) / (uint64_t)o->cols,
				       col = (at + i) % (uint64_t)o->cols;
			const double v = x->value[PLAIN][i] * (by == NULL ? 1 : by[col]) *
					 (rows == NULL ? 1 : rows[row]);
			const double d = fabs(x->value[QUANT][i] - v),
				     far = x->value[REACH][i] + unit * fabs(v),
				     off = d == 0 ? 0 : d / far;
			max = off > max || isnan(off) ? off : max;
			sum += off * off;
			add_sums(&sums[col], x->value[QUANT][i], v, far);
		}
	}
	const double rms = sqrt(sum / (double)x->n);
	const bool even = rc > 0 && is_even(sums, o->cols, errors * rms, unit);
	free(sums);
	return even && max <= limit && rms <= LIMIT_REACH_RMS;
}

/* --- who has whose factors --- */

/* Does matrix o fit with these columns; and if its rows may be multiplied, by what? 1; 0; < 0. */
static int
fits(struct scaling *s, struct odd *o, const double *by, double errors, struct acc_err *e)
{
	struct acc_case *c = s->t->c;
	struct acc_rec *r;
	struct read x;
	bool from = false;
	for (int k = 0; k < NFOLDS; k++)
		from |= is_fold(o, k, false);
	int rc = acc_case_record(c, &c->item[o->item], &r, e);
	if (rc < 0)
		return rc;
	const double limit = acc_grid_carries(
				     acc_get_text(r, o->side == 0 ? "a." : "b.", "dtype.raw"))
				     ? LIMIT_REACH_CARRIED
				     : LIMIT_REACH;
	rc = open_all(&x, c, o, e);
	if (rc > 0 && (rc = within(&x, o, by, NULL, limit, errors)) == 0 && from) {
		double *rows = acc_alloc(&c->mem, (size_t)o->rows * sizeof *rows);
		if (rows == NULL)
			rc = acc_nomem(e);
		else if (fit(&x, o, by, false, rows) > 0 &&
			 within(&x, o, by, rows, limit, errors) > 0) {
			o->rows_by = rows;
			rc = 1;
		}
	}
	close_all(&x);
	return rc;
}

/* The norms of its layer, of the right length: whose quotients are its columns? */
static int
by_norm(struct scaling *s, struct odd *o, const struct acc_ids *layers, struct acc_err *e)
{
	enum { TRIES = 32 };
	const struct acc_odd_list *l = &s->list;
	uint32_t i = acc_ids_get(layers, o->layer);
	int rc = 0;
	for (int tries = 0; i < l->n && l->v[i].layer == o->layer && tries < TRIES && rc == 0;
		i++) {
		/* A norm that was cast has no factors. */
		if (l->v[i].rows != 1 || l->v[i].cols != o->cols || !l->v[i].off ||
			(l->v[i].lone && !acc_str_eq(l->v[i].parent, o->parent)))
			continue;
		tries++;
		double *q = quotients(s->t->c, &l->v[i], o->side, e);
		rc = q == NULL ? (e != NULL && e->code < 0 ? e->code : 0)
			       : fits(s, o, q, LIMIT_FOLDED, e);
		free(q);
		if (rc > 0) {
			o->fits = true;
			o->by = i;
		}
	}
	/* Its rows alone: what it takes was left as it is. */
	if (rc == 0 && !takes_matrix(o) && (rc = fits(s, o, NULL, LIMIT_FOLDED, e)) > 0)
		o->fits = true;
	return rc < 0 ? rc : 0;
}

/* A matrix before it, whose rows have the factors of its columns less. */
static int
by_matrix(struct scaling *s, struct odd *o, struct acc_err *e)
{
	for (int k = 0; k < NFOLDS; k++) {
		if (!is_fold(o, k, true))
			continue;
		const char *name = acc_say(&s->t->c->mem, "%.*s%s", ACC_PRS(o->parent),
			folds[k].from);
		const uint32_t i = name == NULL ? ACC_NOID
						: acc_ids_get(&s->at, acc_hash(name, strlen(name)));
		if (name == NULL)
			return acc_nomem(e);
		if (i == ACC_NOID || s->list.v[i].rows_by == NULL || s->list.v[i].rows != o->cols)
			continue;
		double *q = acc_alloc(&s->t->c->mem, (size_t)o->cols * sizeof *q);
		if (q == NULL)
			return acc_nomem(e);
		for (int64_t j = 0; j < o->cols; j++)
			q[j] = 1 / s->list.v[i].rows_by[j];
		/* The rows' factors have errors of their own. */
		int rc = fits(s, o, q, 2 * LIMIT_FOLDED, e);
		if (rc < 0)
			return rc;
		o->fits = rc > 0;
		o->by = rc > 0 ? i : o->by;
	}
	return 0;
}

static int
cmp_layer(const void *x, const void *y)
{
	const struct odd *p = x, *q = y;
	return p->layer != q->layer ? (p->layer > q->layer) - (p->layer < q->layer)
				    : (p->item > q->item) - (p->item < q->item);
}

/* What one pair is to it. */
static int
collect(struct scaling *s, uint32_t i, bool *any, struct acc_err *e)
{
	struct acc_case *c = s->t->c;
	const struct acc_item *it = &c->item[i];
	struct acc_rec *r;
	const bool lone = it->sides != 3;
	if (it->kind != ACC_ITEM_TENSOR || it->note_shape || it->ndim < 1 || it->ndim > 2 ||
		(lone ? it->ndim != 1 : it->measure != ACC_BY_TENSOR || it->rms == 0))
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	const char *const one = it->sides & 1 ? "a." : "b.";
	if (lone && !acc_str_ends(acc_get_text(r, "", "name"), ".scales"))
		return 0;
	const struct acc_val *v = acc_get(r, lone ? one : "b.", "shape");
	const bool few[2] = {acc_grid_named(acc_get_text(r, "a.", "dtype.raw")),
		acc_grid_named(acc_get_text(r, "b.", "dtype.raw"))};
	const struct acc_str text = acc_get_text(r, "", "name");
	if (v == NULL || v->type != ACC_V_INTS || (it->ndim == 2) != (few[0] != few[1]) ||
		acc_get_text(r, "", "m.layout").n > 0)
		return 0;
	const char *name = acc_arena_copy(&c->mem, text.p, text.n);
	struct odd *o = acc_grow(s->list.v, &s->list.cap, (size_t)s->list.n + 1, sizeof *o, e);
	if (name == NULL || o == NULL)
		return acc_nomem(e);
	s->list.v = o;
	o += s->list.n++;
	*o = named(name);
	o->item = i;
	o->lone = lone;
	o->side = lone ? !(it->sides & 1) : few[1];
	o->rows = it->ndim == 2 ? v->ints[0] : 1;
	o->cols = v->ints[it->ndim - 1];
	double far = 0, along = 0;
	acc_as_f64(acc_get(r, "", "m.reach"), &far);
	acc_as_f64(acc_get(r, "", "m.reach.along"), &along);
	o->off = it->ndim == 2 ? !(far <= LIMIT_REACH) || along > LIMIT_REACH_ALONG ||
					 along < LIMIT_REACH_CUT
			       : lone || it->rms > acc_dtype_of(ACC_BF16)->eps;
	*any |= o->off && it->ndim == 2;
	return 0;
}

/* What shares its parent, and its input, must have the same factors; if it has none it is wrong, though it is the
 * bench's. */
static int
check_siblings(struct scaling *s, struct acc_err *e)
{
	struct acc_odd_list *l = &s->list;
	struct acc_case *c = s->t->c;
	struct acc_ids parents = {0};
	int rc = 0;
	for (uint32_t i = 0; i < l->n && rc == 0; i++)
		if (l->v[i].by != NOBODY && l->v[l->v[i].by].rows == 1)
			rc = acc_ids_put(&parents, acc_hash(l->v[i].parent.p, l->v[i].parent.n), i,
				false, e);
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_TENSOR || c->item[i].sides != 3 ||
			c->item[i].ndim != 2)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc < 0)
			break;
		const struct acc_str text = acc_get_text(r, "", "name");
		const struct acc_val *v = acc_get(r, "b.", "shape");
		const char *name = acc_arena_copy(&c->mem, text.p, text.n);
		if (name == NULL) {
			rc = acc_nomem(e);
			break;
		}
		const struct odd o = named(name);
		const uint32_t k = acc_ids_get(&parents, acc_hash(o.parent.p, o.parent.n));
		if (k == ACC_NOID || takes_matrix(&o) || v == NULL || v->type != ACC_V_INTS ||
			v->ints[1] != l->v[k].cols)
			continue;
		const struct acc_str path = {name, o.parent.n + o.module.n};
		const uint32_t own = acc_ids_get(&s->at, acc_hash(path.p, path.n));
		if (own == ACC_NOID || (l->v[own].by != l->v[k].by && !l->v[own].off))
			rc = acc_ids_put(&s->t->columns, i, ACC_UNSCALED, false, e);
	}
	acc_ids_release(&parents);
	return rc;
}

/* Rows are right where the columns make up for them. */
static int
settle(struct scaling *s, struct acc_err *e)
{
	struct acc_odd_list *l = &s->list;
	bool *undone = calloc((size_t)l->n + 1, sizeof *undone);
	if (undone == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i].by != NOBODY && l->v[i].fits)
			undone[l->v[i].by] = true;
	for (uint32_t i = 0; i < l->n; i++)
		l->v[i].fits &= l->v[i].rows_by == NULL || undone[i];
	free(undone);
	return 0;
}

/* Its columns are multiplied by anything: so much is to be said of it. */
static int
look_alone(struct scaling *s, const struct odd *o, struct acc_err *e)
{
	struct acc_weights *t = s->t;
	struct read x;
	double *by = malloc((size_t)o->cols * sizeof *by);
	int rc = by == NULL ? acc_nomem(e) : open_all(&x, t->c, o, e);
	if (by == NULL)
		return rc;
	if (rc > 0)
		rc = fit(&x, o, NULL, true, by) > 0 &&
		     within(&x, o, by, NULL, LIMIT_REACH, LIMIT_FOLDED) > 0;
	close_all(&x);
	free(by);
	return rc > 0 ? acc_ids_put(&t->columns, o->item, ACC_SCALED_ALONE, false, e) : rc;
}

static int
find(struct scaling *s, struct acc_err *e)
{
	struct acc_odd_list *l = &s->list;
	struct acc_ids layers = {0};
	int rc = 0;
	qsort(l->v, l->n, sizeof *l->v, cmp_layer);
	for (uint32_t i = 0; i < l->n && rc == 0; i++) {
		const struct odd *o = &l->v[i];
		rc = acc_ids_put(&layers, o->layer, i, false, e);
		if (rc == 0 && o->rows > 1)
			rc = acc_ids_put(&s->at, acc_hash(o->name, o->parent.n + o->module.n), i,
				false, e);
		l->v[i].fits = o->rows == 1;
	}
	for (uint32_t i = 0; i < l->n && rc == 0; i++)
		if (l->v[i].rows > 1 && !takes_matrix(&l->v[i]))
			rc = by_norm(s, &l->v[i], &layers, e);
	for (uint32_t i = 0; i < l->n && rc == 0; i++)
		if (l->v[i].rows > 1 && takes_matrix(&l->v[i]))
			rc = by_matrix(s, &l->v[i], e);
	if (rc == 0)
		rc = check_siblings(s, e);
	if (rc == 0)
		rc = settle(s, e);
	for (uint32_t i = 0; i < l->n && rc == 0; i++)
		if (l->v[i].rows > 1 && l->v[i].off && !l->v[i].fits)
			rc = look_alone(s, &l->v[i], e);
	acc_ids_release(&layers);
	return rc;
}

int
acc_weights_scaled(struct acc_weights *t, struct acc_err *e)
{
	struct scaling s = {.t = t};
	bool any = false;
	int rc = t->c->opt.where == NULL ? 0 : acc_weights_roots(t->c, e);
	for (uint32_t i = 0; i < t->c->nitem && rc == 0 && t->c->opt.where != NULL;
		i = acc_step(t->c, i))
		rc = collect(&s, i, &any, e);
	if (rc == 0 && any)
		rc = find(&s, e);
	for (uint32_t i = 0; i < s.list.n && rc == 0 && any; i++) {
		const struct odd *o = &s.list.v[i], *by = o->by == NOBODY ? NULL : &s.list.v[o->by];
		if (by == NULL || !o->fits || (!o->off && !by->off))
			continue;
		/* The columns, and what undoes them. */
		rc = acc_ids_put(&t->folded, o->item, o->by, false, e);
		if (rc == 0)
			rc = acc_ids_put(&t->folded, by->item, o->by, false, e);
		if (t->fold == NULL || strcmp(o->name, t->fold_of) < 0) {
			t->fold_of = o->name;
			t->fold = by->name;
		}
	}
	free(s.list.v);
	acc_ids_release(&s.at);
	return rc;
}

int
acc_weights_say_scaled(struct acc_weights *t, struct acc_err *e)
{
	if (t->scaled.n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(t->c, "unmatched", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->name = t->fold_of;
	f->rule = "scaled";
	f->value = (double)t->scaled.n;
	f->doubtful = true;
	f->text = acc_say(&t->c->mem,
		"columns scaled before they were rounded, and folded into what comes before: %llu tensors,"
		" first %s, folded into %s",
		(unsigned long long)t->scaled.n, t->fold_of, t->fold);
	return f->text == NULL ? acc_nomem(e) : 0;
}
