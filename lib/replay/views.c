/* Operators that put elements elsewhere and change nothing: a view says where, and the elements
 * are compared as they are stored. Only what is right is settled here; all else is looked at
 * again, as any other call is. */
#include "replay/views.h"

#include <stdlib.h>

enum { PIECE = 8192 };

struct look {
	struct acc_audit_job *j;
	struct acc_trial t;
	double *a, *b, *mag; /* of PIECE each */
	uint8_t *gathered;
};

/* Elements as they are stored, or as doubles where they were read already. */
static size_t
size_of(const struct acc_held *h)
{
	return h->pay == NULL ? sizeof(double) : acc_dtype_of(h->ref.dtype)->size;
}

static const void *
stored(struct acc_held *h, size_t first, size_t n, void *room)
{
	struct acc_err e = {0};
	const void *got;
	if (h->pay == NULL)
		return h->d.v == NULL ? NULL : h->d.v + first;
	return acc_pay_read(h->pay, first, n, room, &got, &e) < 0 ? NULL : got;
}

/* All of it. */
static const uint8_t *
whole(struct acc_audit_job *j, struct acc_held *h)
{
	struct acc_buf *b = &j->reader->raw;
	size_t size = size_of(h);
	if (h->pay == NULL)
		return (const uint8_t *)h->d.v;
	b->n = 0;
	if (h->d.n > SIZE_MAX / size || acc_buf_reserve(b, h->d.n * size) < 0)
		return NULL;
	for (size_t at = 0, n; at < h->d.n; at += n) {
		n = h->d.n - at < ACC_CHUNK ? h->d.n - at : ACC_CHUNK;
		const void *got = stored(h, at, n, b->p + at * size);
		if (got == NULL)
			return NULL;
		if (got != b->p + at * size)
			memcpy(b->p + at * size, got, n * size);
	}
	return b->p;
}

/* Dimensions that lie one behind the other are one. */
static void
simplify(const struct acc_view *v, struct acc_view *s)
{
	*s = (struct acc_view){.first = v->first};
	for (uint32_t d = 0; d < v->ndim; d++) {
		if (v->shape[d] == 1)
			continue;
		if (s->ndim > 0 && s->stride[s->ndim - 1] == v->stride[d] * v->shape[d]) {
			s->shape[s->ndim - 1] *= v->shape[d];
			s->stride[s->ndim - 1] = v->stride[d];
			continue;
		}
		s->shape[s->ndim] = v->shape[d];
		s->stride[s->ndim++] = v->stride[d];
	}
	if (s->ndim == 0)
		*s = (struct acc_view){.ndim = 1, .shape = {1}, .stride = {1}, .first = v->first};
}

static void
gather_run(const uint8_t *p, int64_t step, size_t n, size_t size, uint8_t *out)
{
	if (step == 1) {
		memcpy(out, p, n * size);
		return;
	}
#define RUN(type) \
	for (size_t i = 0; i < n; i++) \
		memcpy(out + i * sizeof(type), p + (int64_t)i * step * (int64_t)sizeof(type), \
			sizeof(type));
	if (size == 1) {
		RUN(uint8_t)
	} else if (size == 2) {
		RUN(uint16_t)
	} else if (size == 4) {
		RUN(uint32_t)
	} else {
		RUN(uint64_t)
	}
#undef RUN
}

/* Elements [first, first + n) of the view. */
static void
gather(const struct acc_view *v, const uint8_t *p, size_t size, size_t first, size_t n,
	uint8_t *out)
{
	uint32_t last = v->ndim - 1;
	size_t len = (size_t)v->shape[last];
	for (size_t i = first, k; i < first + n; i += k) {
		size_t rest = i / len, col = i % len;
		int64_t at = v->first + (int64_t)col * v->stride[last];
		for (uint32_t d = last; d-- > 0;) {
			at += (int64_t)(rest % (size_t)v->shape[d]) * v->stride[d];
			rest /= (size_t)v->shape[d];
		}
		k = len - col < first + n - i ? len - col : first + n - i;
		gather_run(p + at * (int64_t)size, v->stride[last], k, size,
			out + (i - first) * size);
	}
}

struct errors {
	struct acc_errsum err, coarse;
};

static void
as_doubles(const struct acc_held *h, const void *p, size_t n, double *out)
{
	acc_widen(h->pay == NULL ? ACC_F64 : h->ref.dtype, p, n, out);
}

/* n elements that should be the same; false: they are not, or it must be looked at closer. */
static bool
alike(struct look *l, const struct acc_note *note, const struct acc_ruler *y, struct acc_held *w,
	const void *wp, struct acc_held *p, const void *pp, size_t n, bool exact, struct errors *s)
{
	struct acc_block_err b;
	if (size_of(w) == size_of(p) && w->pay != NULL && p->pay != NULL &&
		w->ref.dtype == p->ref.dtype && memcmp(wp, pp, n * size_of(w)) == 0) {
		s->err.n += n;
		s->coarse.n += n;
		return true;
	}
	if (exact)
		return false;
	/* What is judged is, forward, the output; backward, the gradient of the input. */
	bool rec_is_part = note->of_input != l->j->backward;
	as_doubles(w, wp, n, rec_is_part ? l->b : l->a);
	as_doubles(p, pp, n, rec_is_part ? l->a : l->b);
	for (size_t i = 0; l->j->backward && i < n; i++)
		l->mag[i] = fabs(l->b[i]);
	for (size_t i = 0; i < n; i += ACC_AUDIT_BLOCK) {
		size_t k = n - i < ACC_AUDIT_BLOCK ? n - i : ACC_AUDIT_BLOCK;
		const double *mag = l->j->backward ? l->mag + i : NULL;
		if (!acc_audit_row()->judge(y, l->a + i, l->b + i, mag, NULL, k, &b))
			return false;
		acc_err_merge(&s->err, &(struct acc_errsum){b.sum2, b.max, k, false});
		acc_err_merge(&s->coarse, &(struct acc_errsum){b.coarse2, b.coarse_max, k, false});
	}
	return true;
}

static bool
compare(struct look *l, const struct acc_note *note, struct acc_held *w, struct acc_held *p,
	const struct acc_ruler *y, bool exact, struct errors *s)
{
	struct acc_view v;
	simplify(&note->v, &v);
	bool plain = v.ndim == 1 && v.stride[0] == 1;
	uint8_t *room = l->j->reader->scratch;
	const uint8_t *all = plain ? NULL : whole(l->j, w);
	if (!plain && all == NULL)
		return false;
	for (size_t at = 0, n; at < p->d.n; at += n) {
		n = p->d.n - at < PIECE ? p->d.n - at : PIECE;
		const void *pp = stored(p, at, n, room), *wp = l->gathered;
		if (plain)
			wp = stored(w, (size_t)v.first + at, n, l->gathered);
		else
			gather(&v, all, size_of(w), at, n, l->gathered);
		if (pp == NULL || wp == NULL || !alike(l, note, y, w, wp, p, pp, n, exact, s))
			return false;
	}
	return true;
}

/* --- which tensors are compared --- */

struct search {
	const double *v;
	struct acc_held *found;
};

static int
find(void *arg, struct acc_held *h)
{
	struct search *s = arg;
	if (h->d.v == s->v && s->found == NULL)
		s->found = h;
	return 0;
}

/* The tensor of the forward call, or, of a backward one, its gradient, and whose result that is:
 * of which input, or which output. */
static struct acc_held *
tensor(struct look *l, const double *v, bool input, uint32_t *k)
{
	struct acc_audit_job *j = l->j;
	struct search s = {v, NULL};
	*k = 0;
	if (input && !j->backward) {
		acc_each_held(j->fwd.in, j->fwd.nin, find, &s);
		acc_each_held(j->fwd.kw, j->fwd.nkw, find, &s);
		return s.found;
	}
	for (uint32_t i = 0; !input && i < l->t.nout; i++) {
		if (l->t.out[i].v != (const struct acc_sealed *)(const void *)v)
			continue;
		*k = i;
		if (!j->backward) {
			acc_each_held(j->fwd.out, j->fwd.nout, find, &s);
			return s.found;
		}
		return i < j->bwd.nin && j->bwd.in[i].type == ACC_A_TENSOR
			       ? (struct acc_held *)(void *)j->bwd.in[i].t
			       : NULL;
	}
	for (uint32_t i = 0; input && i < j->bwd.nout; i++) {
		if (j->bwd.out[i].type != ACC_A_TENSOR)
			continue;
		const struct acc_held *x = acc_gradient_input(&l->t, i, NULL);
		if (x != NULL && x->d.v == v)
			return (struct acc_held *)(void *)j->bwd.out[i].t;
		(*k)++;
	}
	return NULL;
}

static size_t
nonzero(struct look *l, struct acc_held *h)
{
	size_t count = 0;
	for (size_t at = 0, n; at < h->d.n; at += n) {
		n = h->d.n - at < PIECE ? h->d.n - at : PIECE;
		const void *p = stored(h, at, n, l->j->reader->scratch);
		if (p == NULL)
			return SIZE_MAX;
		as_doubles(h, p, n, l->a);
		for (size_t i = 0; i < n; i++)
			count += l->a[i] != 0;
	}
	return count;
}

static struct acc_ruler
ruler(const struct look *l, const struct acc_held *w, const struct acc_held *p)
{
	const struct acc_held *rec = l->j->backward ? w : p;
	double unit = acc_unit(rec->d.dtype), other = acc_unit((rec == w ? p : w)->d.dtype);
	if (l->j->backward && other > unit)
		unit = other;
	return (struct acc_ruler){.unit = unit,
		.work = acc_work_unit(unit),
		.coarse = unit,
		.tiny = acc_tiny_of(rec->d.dtype),
		.max = acc_max_of(rec->d.dtype) * (1 - 8 * unit)};
}

static bool
one(struct look *l, const struct acc_note *note, struct errors *sum, size_t *covered)
{
	struct acc_audit_job *j = l->j;
	uint32_t kw, kp;
	struct acc_held *w = tensor(l, note->whole, note->of_input, &kw);
	struct acc_held *p = tensor(l, note->part, !note->of_input, &kp);
	/* The result is the output's; backward, the input's. */
	uint32_t k = note->of_input != j->backward ? kp : kw;
	if (note->whole == NULL || note->part == NULL || w == NULL || p == NULL ||
		k >= j->nresult || p->d.n != acc_view_count(&note->v) ||
		!acc_is_float(w->d.dtype) != !acc_is_float(p->d.dtype))
		return false;
	bool exact = !acc_is_float(p->d.dtype) ||
		     (!j->backward && l->t.r.op->rounding == ACC_EXACT);
	struct acc_ruler y = ruler(l, w, p);
	struct acc_audited *v = &j->result[k];
	covered[k] += p->d.n;
	v->low = acc_is_float(p->d.dtype) && acc_unit_low(y.unit);
	v->cls = l->t.r.op->cls;
	v->backward = j->backward;
	v->rounding = (uint8_t)(acc_is_float(p->d.dtype) || j->backward ? l->t.r.op->rounding
									: ACC_EXACT);
	v->mode = j->backward ? 'o' : 0;
	return compare(l, note, w, p, &y, exact, &sum[k]);
}

/* What the views did not reach: of an output nothing; of a gradient all is zero. */
static bool
rest(struct look *l, const struct acc_notes *notes, const size_t *covered)
{
	struct acc_audit_job *j = l->j;
	const struct acc_pass_of *p = j->backward ? &j->bwd : &j->fwd;
	uint32_t k = 0;
	for (uint32_t i = 0; i < p->nout; i++) {
		if (p->out[i].type != ACC_A_TENSOR)
			continue;
		struct acc_held *h = (struct acc_held *)(void *)p->out[i].t;
		size_t n = 0, m = nonzero(l, h);
		if (covered[k] > h->d.n || k >= j->nresult)
			return false;
		if (covered[k++] == h->d.n)
			continue;
		for (uint32_t q = 0; j->backward && q < notes->n; q++) {
			uint32_t at;
			struct acc_held *g = tensor(l, notes->list[q].part, false, &at);
			size_t more = g == NULL ? SIZE_MAX : nonzero(l, g);
			if (more == SIZE_MAX)
				return false;
			n += more;
		}
		if (!j->backward || n != m)
			return false;
	}
	return k == j->nresult;
}

bool
acc_audit_job_views(struct acc_audit_job *j, const struct acc_op *op)
{
	struct look l = {.j = j};
	struct acc_notes notes = {.n = 0};
	if (!op->views || acc_trial_open(&l.t, j, op) < 0)
		return false;
	struct acc_arena *mem = &j->mem;
	struct acc_dense *out = acc_alloc(mem, l.t.nout * sizeof *out);
	struct errors *sum = acc_alloc(mem, (j->nresult + 1) * sizeof *sum);
	size_t *covered = acc_alloc(mem, (j->nresult + 1) * sizeof *covered);
	l.a = acc_alloc(mem, PIECE * sizeof *l.a);
	l.b = acc_alloc(mem, PIECE * sizeof *l.b);
	l.mag = acc_alloc(mem, PIECE * sizeof *l.mag);
	l.gathered = acc_alloc(mem, PIECE * 8);
	if (out == NULL || sum == NULL || covered == NULL || l.a == NULL || l.b == NULL ||
		l.mag == NULL || l.gathered == NULL)
		return false;
	memset(sum, 0, (j->nresult + 1) * sizeof *sum);
	memset(covered, 0, (j->nresult + 1) * sizeof *covered);
	memcpy(out, l.t.r.rec, l.t.nout * sizeof *out);
	l.t.r.notes = &notes;
	bool good = op->eval(&l.t.r, out) == 0 && notes.n > 0;
	for (uint32_t i = 0; i < notes.n && good; i++)
		good = one(&l, &notes.list[i], sum, covered);
	good = good && rest(&l, &notes, covered);
	for (uint32_t k = 0; k < j->nresult && good; k++)
		good = !acc_far_off(&sum[k].err, j->result[k].low);
	for (uint32_t k = 0; k < j->nresult && good; k++) {
		j->tally[k].err = sum[k].err;
		j->tally[k].coarse = sum[k].coarse;
		j->tally[k].parts = 1;
	}
	return good;
}
