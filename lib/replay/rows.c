/* Embedding: rows of a table that is too large to be looked at as doubles. All of them are compared
 * as they are stored; only what is right is settled here. */
#include "replay/views.h"

#include <stdlib.h>

struct rows {
	struct acc_audit_job *j;
	struct acc_trial t;
	const struct acc_dense *ids;
	struct acc_held *table, *out; /* or their gradients */
	size_t len, n;                /* of a row; rows of the table */
	int64_t padding;
	size_t *order; /* tokens by their rows */
	const uint8_t *stored;
};

static int
by_row(const void *a, const void *b, void *ids)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const double *v = ids;
	return v[x] != v[y] ? (v[x] > v[y]) - (v[x] < v[y]) : (x > y) - (x < y);
}

static struct acc_held *
held(const struct acc_value *v, uint32_t n, uint32_t i)
{
	return i < n && v[i].type == ACC_A_TENSOR ? (struct acc_held *)(void *)v[i].t : NULL;
}

static bool
prepare(struct rows *r)
{
	struct acc_replay *p = &r->t.r;
	struct acc_audit_job *j = r->j;
	const struct acc_dense *w, *ids;
	bool by_freq = false;
	r->padding = -1;
	if (acc_need_tensor(p, "input", &ids) < 0 || acc_need_tensor(p, "weight", &w) < 0 ||
		acc_arg_int(p, "padding_idx", &r->padding) < 0 ||
		acc_arg_bool(p, "scale_grad_by_freq", &by_freq) < 0 || by_freq ||
		acc_arg(p, "max_norm") != NULL || r->t.nout != 1)
		return false;
	if (acc_is_float(ids->dtype) && !acc_is_float(w->dtype)) { /* as ATen has them */
		const struct acc_dense *other = ids;
		ids = w;
		w = other;
	}
	if (w->ndim != 2)
		return false;
	r->len = (size_t)w->shape[1];
	r->n = (size_t)w->shape[0];
	struct acc_held *h = (struct acc_held *)(uintptr_t)(const void *)ids;
	if (h->pay != NULL) {
		double *v = acc_alloc(&j->mem, ids->n * sizeof *v);
		if (v == NULL || acc_held_read(j, h, 0, ids->n, v) < 0)
			return false;
		acc_pay_close(h->pay);
		h->pay = NULL;
		h->d.v = v;
	}
	r->ids = ids;
	r->table = (struct acc_held *)(uintptr_t)(const void *)w;
	r->out = held(r->j->fwd.out, r->j->fwd.nout, 0);
	for (uint32_t i = 0; j->backward && i < j->bwd.nout; i++) {
		struct acc_held *g = held(j->bwd.out, j->bwd.nout, i);
		if (g != NULL && acc_gradient_input(&r->t, i, NULL) != r->table)
			return false;
		r->table = g != NULL ? g : r->table;
	}
	if (j->backward)
		r->out = held(j->bwd.in, j->bwd.nin, 0);
	if (j->nresult != 1 || r->out == NULL || r->out->pay == NULL || r->table->pay == NULL ||
		r->len == 0 || r->len > ACC_CHUNK || r->table->d.n != r->n * r->len ||
		r->out->d.n != ids->n * r->len)
		return false;
	for (size_t i = 0; i < ids->n; i++)
		if (!(ids->v[i] >= 0 && ids->v[i] < (double)r->n))
			return false;
	return true;
}

/* Row `row` of a tensor as it is stored. */
static const void *
row_of(struct acc_held *h, size_t row, size_t len, void *room)
{
	struct acc_err e = {0};
	const void *got;
	return acc_pay_read(h->pay, row * len, len, room, &got, &e) < 0 ? NULL : got;
}

static bool
forward(struct rows *r)
{
	size_t size = acc_dtype_of(r->out->ref.dtype)->size;
	uint8_t *a = r->j->reader->scratch, *b = a + (size_t)ACC_CHUNK * 8;
	if (size > 8 || r->out->ref.dtype != r->table->ref.dtype)
		return false;
	for (size_t i = 0; i < r->ids->n; i++) {
		const void *x = row_of(r->out, i, r->len, a);
		const void *y = row_of(r->table, (size_t)r->ids->v[i], r->len, b);
		if (x == NULL || y == NULL || memcmp(x, y, r->len * size) != 0)
			return false;
	}
	r->j->tally[0].err.n = r->j->tally[0].coarse.n = r->out->d.n;
	return true;
}

static bool
is_zero(const uint8_t *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* The sums of the rows of the output's gradient for one row of the table. */
static bool
sum_rows(struct rows *r, const struct acc_sums *s, size_t row, size_t *next, double *v)
{
	for (size_t k = 0; k < r->len; k++) {
		s->ref[k] = s->abs[k] = s->sq[k] = s->more[k] = 0;
		s->terms[k] = 0;
		s->skip[k] = false;
	}
	for (; *next < r->ids->n && r->ids->v[r->order[*next]] == (double)row; (*next)++) {
		if (acc_held_read(r->j, r->out, r->order[*next] * r->len, r->len, v) < 0)
			return false;
		for (size_t k = 0; k < r->len && (int64_t)row != r->padding; k++) {
			s->ref[k] += v[k];
			s->abs[k] += fabs(v[k]);
			s->sq[k] += v[k] * v[k];
			s->terms[k]++;
		}
	}
	return true;
}

static bool
backward(struct rows *r)
{
	struct acc_audit_job *j = r->j;
	struct acc_held *g = r->table;
	struct acc_audited *v = &j->result[0];
	size_t size = acc_dtype_of(g->ref.dtype)->size, next = 0;
	double *x = acc_doubles(&r->t.r, r->len), *y = acc_doubles(&r->t.r, r->len);
	struct acc_sums s;
	struct acc_dense gin = g->d;
	struct acc_spots spots = {0};
	struct acc_adjoint a = {.t = &r->t,
		.gin = &gin,
		.spots = &spots,
		.unit = fmax(acc_unit(g->d.dtype), acc_unit(r->out->d.dtype)),
		.max = acc_max_of(g->d.dtype)};
	r->order = acc_alloc(&j->mem, r->ids->n * sizeof *r->order);
	if (x == NULL || y == NULL || r->order == NULL || acc_sums_start(&r->t.r, r->len, &s) < 0)
		return false;
	for (size_t i = 0; i < r->ids->n; i++)
		r->order[i] = i;
	qsort_r(r->order, r->ids->n, sizeof *r->order, by_row, r->ids->v);
	acc_adjoint_by(&a, ACC_STR("move"));
	gin.v = x;
	gin.n = r->len;
	v->low = acc_unit_low(a.unit);
	v->mode = 'o';
	v->backward = true;
	v->cls = r->t.r.op->cls;
	v->rounding = (uint8_t)r->t.r.op->rounding;
	size_t each = ACC_CHUNK / r->len;
	for (size_t at = 0, n; at < r->n; at += n) {
		struct acc_err e = {0};
		const void *got;
		n = r->n - at < each ? r->n - at : each;
		if (acc_pay_read(g->pay, at * r->len, n * r->len, j->reader->scratch, &got, &e) < 0)
			return false;
		/* Reading the other gradient takes the same room. */
		uint8_t *p = j->reader->scratch;
		memmove(p + (size_t)ACC_CHUNK * 8, got, n * r->len * size);
		p += (size_t)ACC_CHUNK * 8;
		for (size_t row = at; row < at + n; row++, p += r->len * size) {
			bool used = next < r->ids->n && r->ids->v[r->order[next]] == (double)row;
			if (!used && is_zero(p, r->len * size))
				continue;
			acc_widen(g->ref.dtype, p, r->len, x);
			if (!sum_rows(r, &s, row, &next, y))
				return false;
			acc_adjoint_compare(&a, &s);
		}
	}
	j->tally[0].err = a.err;
	j->tally[0].coarse = a.coarse;
	j->tally[0].left = a.left;
	return !acc_far_off(&a.err, v->low);
}

bool
acc_audit_job_rows(struct acc_audit_job *j, const struct acc_op *op)
{
	struct rows r = {.j = j};
	if (!op->rows || acc_trial_open(&r.t, j, op) < 0 || !prepare(&r))
		return false;
	j->result[0].cls = op->cls;
	if (!(j->backward ? backward(&r) : forward(&r))) {
		j->tally[0] = (struct acc_tally){0};
		return false;
	}
	j->tally[0].parts = 1;
	return true;
}
