/* The op calls of a forward pass, with the statistics of their tensors: see parting.h. */
#include "judge/parting.h"
#include "base/order.h"
#include "judge/limits.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const char *const prefix[2] = {"a.", "b."};

static uint64_t
elements(const struct acc_rec *r, int side)
{
	const struct acc_val *v = acc_get(r, prefix[side], "shape");
	uint64_t n = 1;
	if (v == NULL || v->type != ACC_V_INTS)
		return 0;
	for (uint32_t i = 0; i < v->n; i++)
		n *= v->ints[i] < 0 ? 0 : (uint64_t)v->ints[i];
	return n;
}

static uint32_t
axes(const struct acc_rec *r, int side)
{
	const struct acc_val *v = acc_get(r, prefix[side], "shape");
	return v == NULL || v->type != ACC_V_INTS ? 0 : v->n;
}

static bool
is_float(int dtype)
{
	return dtype != ACC_NODTYPE && acc_unit((enum acc_dtype)dtype) > 0;
}

static int64_t
place(const struct acc_rec *r, int side)
{
	int64_t seq = INT64_MAX;
	acc_as_int(acc_get(r, prefix[side], "seq"), &seq);
	return seq;
}

/* The step of this name, a new one where there is none. */
static int
step_of(struct parting *part, struct acc_ids *known, uint32_t call, const struct acc_rec *r,
	int side, uint32_t *out, struct acc_err *e)
{
	struct part_side *d = &part->side[side];
	const int64_t seq = place(r, side);
	const struct acc_str key = acc_get_text(r, prefix[side], "key"),
			     op = acc_get_text(r, prefix[side], "op");
	const uint64_t id = acc_hash(key.p, key.n);
	*out = acc_ids_get(known, id);
	if (*out != ACC_NOID) {
		if (seq < d->step[*out].seq)
			d->step[*out].seq = seq;
		return 0;
	}
	if (!ACC_ROOM(d->step, d->step_cap, (size_t)d->nstep + 1, e))
		return ACC_ENOMEM;
	*out = d->nstep++;
	d->step[*out] = (struct part_step){.name = acc_arena_copy(&part->c->mem, key.p, key.n),
		.key = id,
		.family = acc_op_family(op),
		.call = call,
		.seq = seq,
		.cls = (uint8_t)acc_op_class(op)};
	if (d->step[*out].name == NULL)
		return acc_nomem(e);
	return acc_ids_put(known, id, *out, false, e);
}

static int
take(struct parting *p, uint32_t i, const struct acc_rec *r, int side, uint32_t step,
	struct acc_err *e)
{
	const struct acc_item *it = &p->c->item[i];
	struct part_side *d = &p->side[side];
	struct part_value v = {.id = it->id[side],
		.count = elements(r, side),
		.rms = it->sides == 3 && !it->note_shape ? it->rms : NAN,
		.paired = acc_is_measured(it),
		.off = INFINITY,
		.unit = acc_unit((enum acc_dtype)it->dtype[side]),
		.wide = 1,
		.item = i,
		.step = step,
		.naxes = axes(r, side),
		.maker = ACC_NOCALL,
		.out = acc_is_output(it),
		.weight = it->weight};
	/* What a second run of the bench shows of this very tensor. */
	if (it->noise_rms > 0 && !it->exact) {
		v.noise = p->ratio * it->noise_rms;
		v.wide = side == ACC_B ? fmax(1, it->noise_rms / p->may) : 1;
	}
	acc_stat_read(r, prefix[side], ACC_STAT_MEASURED, v.stat);
	v.real = is_float(it->dtype[side]) && v.count > 0 &&
		 (v.count == 1 || v.stat[ACC_STAT_MAX] != v.stat[ACC_STAT_MIN]);
	v.real &= acc_stat_finite(v.stat) && v.stat[ACC_STAT_NORM] > 0;
	if (!ACC_ROOM(d->value, d->value_cap, (size_t)d->nvalue + 1, e))
		return ACC_ENOMEM;
	d->value[d->nvalue++] = v;
	return 0;
}

static bool
is_forward(const struct acc_call *k, int side)
{
	return k->keyed && k->key[side] != NULL && !k->module && !k->grad && !k->backward;
}

/* Where the backward pass of a side begins, among the calls from..to, and which forward calls are part of it. */
static int
find_turn(struct acc_case *c, uint32_t from, uint32_t to, int64_t turn[2], struct acc_ids back[2],
	struct acc_err *e)
{
	for (uint32_t i = from; i < to; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		struct acc_rec *r;
		if (!k->backward || !k->keyed)
			continue;
		if (acc_case_record(c, &c->item[k->first], &r, e) < 0)
			return e->code;
		for (int s = 0; s < 2; s++) {
			const int64_t at = place(r, s);
			turn[s] = at < turn[s] ? at : turn[s];
			if (k->key[s] != NULL && acc_ids_put(&back[s], k->twin, i, true, e) < 0)
				return e->code;
		}
	}
	return 0;
}

static int
read_item(struct parting *p, uint32_t i, const int64_t turn[2], struct acc_ids known[2],
	struct acc_err *e)
{
	struct acc_case *c = p->c;
	const struct acc_item *it = &c->item[i];
	const uint32_t call = it->call;
	struct acc_rec *r;
	int rc = acc_case_record(c, it, &r, e);
	for (int s = 0; s < 2 && rc == 0; s++) {
		const struct acc_call *k = &c->call[call];
		uint32_t step;
		if ((it->sides & 1 << s) == 0 || !is_forward(k, s) || place(r, s) > turn[s])
			continue;
		rc = step_of(p, &known[s], call, r, s, &step, e);
		if (rc == 0)
			rc = take(p, i, r, s, step, e);
	}
	return rc;
}

ACC_ORDER_2(by_seq, struct part_step, seq, key)

ACC_ORDER_3(by_step, struct part_value, step, out, item)

/* Steps in the order in which they ran, each with its values behind one another. */
static int
put_in_order(struct part_side *d, struct acc_err *e)
{
	struct acc_ids at = {0};
	uint64_t *key = malloc((d->nstep + (size_t)1) * sizeof *key);
	int rc = key == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < d->nstep && rc == 0; i++)
		key[i] = d->step[i].key;
	if (d->nstep > 1)
		qsort(d->step, d->nstep, sizeof *d->step, by_seq);
	for (uint32_t i = 0; i < d->nstep && rc == 0; i++)
		rc = acc_ids_put(&at, d->step[i].key, i, false, e);
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++)
		d->value[i].step = acc_ids_get(&at, key[d->value[i].step]);
	if (d->nvalue > 1)
		qsort(d->value, d->nvalue, sizeof *d->value, by_step);
	for (uint32_t i = d->nvalue; i-- > 0;) {
		struct part_step *s = &d->step[d->value[i].step];
		s->value = i;
		s->n++;
	}
	acc_ids_release(&at);
	free(key);
	return rc;
}

bool
acc_part_computes(const struct parting *p, int side, uint32_t step)
{
	const uint8_t cls = p->side[side].step[step].cls;
	return cls != ACC_OP_MOVE && cls != ACC_OP_ALLOC;
}

/* Does what it gives hold nothing that was computed on the way? Weights may be moved, and one alone may be scaled or
 * cast. */
static bool
moves_leaves(const struct parting *p, int side, uint32_t step)
{
	const struct part_side *d = &p->side[side];
	const struct part_step *s = &d->step[step];
	uint32_t n = 0;
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		if (!d->value[i].out && d->value[i].count > 1) {
			if (!d->value[i].leaf)
				return false;
			n++;
		}
	return n > 0 && (s->cls == ACC_OP_MOVE || n == 1);
}

/* What a step gave has these values. Zeros and the like may be made in many places: then nobody is known to. */
static int
made_by(struct acc_ids *made, const struct part_value *v, struct acc_err *e)
{
	const bool flat = v->count > 1 && v->stat[ACC_STAT_MAX] == v->stat[ACC_STAT_MIN];
	const bool known = flat && acc_ids_get(made, v->id) != ACC_NOID;
	return acc_ids_put(made, v->id, known ? ACC_NOID : v->step, true, e);
}

/* Step m gave what another takes by this identity. */
static void
mark_taken(struct part_side *d, uint32_t m, uint64_t id)
{
	const struct part_step *s = &d->step[m];
	for (uint32_t i = s->value; i < s->value + s->n; i++)
		d->value[i].taken |= d->value[i].out && d->value[i].id == id;
}

/* Who gave the values of each input: the last step before that did. */
static int
find_makers(struct parting *p, int side, struct acc_err *e)
{
	struct part_side *d = &p->side[side];
	struct acc_ids made = {0};
	int rc = 0;
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++) {
		struct part_value *v = &d->value[i];
		const uint32_t m = v->id == 0 || v->out ? ACC_NOID : acc_ids_get(&made, v->id);
		if (v->out && v->id != 0) {
			rc = made_by(&made, v, e);
		} else if (!v->out) {
			v->maker = m == ACC_NOID || m >= v->step ? ACC_NOCALL : m;
			v->leaf = v->maker == ACC_NOCALL || moves_leaves(p, side, v->maker);
			if (v->maker != ACC_NOCALL)
				mark_taken(d, v->maker, v->id);
		}
	}
	acc_ids_release(&made);
	return rc;
}

/* Of numbers, how large what they are made of is: a loss may be the small rest of terms that cancel, as where gains are
 * centred, and then be noise. */
static void
find_terms(const struct acc_case *c, struct part_side *d)
{
	for (uint32_t i = 0; i < d->nstep; i++) {
		const struct part_step *s = &d->step[i];
		double terms = 0;
		for (uint32_t j = s->value; j < s->value + s->n; j++) {
			struct part_value *v = &d->value[j];
			if (v->out || !v->real) {
				v->terms = v->out && v->count == 1 ? terms : 0;
				continue;
			}
			if (v->count > 1 && c->call[s->call].sums != ACC_NO_SUM)
				terms = fmax(terms,
					v->stat[ACC_STAT_NORM] / sqrt((double)v->count));
			for (uint32_t k = 0;
				v->count == 1 && v->maker != ACC_NOCALL && k < d->step[v->maker].n;
				k++)
				v->terms = fmax(v->terms,
					d->value[d->step[v->maker].value + k].terms);
			terms = fmax(terms, v->terms);
		}
	}
}

double
acc_part_off(const struct part_value *x, const struct part_value *y)
{
	if (x->count != y->count || !x->real || !y->real)
		return INFINITY;
	double apart[ACC_STATS];
	acc_stat_apart(x->stat, y->stat, (double)y->count, apart);
	if (x->count == 1) /* msprobe leaves out the minus of a loss */
		return apart[ACC_STAT_NORM] *
		       fmin(1, y->stat[ACC_STAT_NORM] / fmin(x->terms, y->terms));
	/* Where scores are hidden from a softmax, all but the largest say no more than how many. */
	const double high = fmax(fabs(y->stat[ACC_STAT_MAX]), FLT_MIN);
	if (y->stat[ACC_STAT_MIN] <= -LIMIT_HIDDEN && high < LIMIT_HIDDEN)
		apart[ACC_STAT_MAX] = fabs(x->stat[ACC_STAT_MAX] - y->stat[ACC_STAT_MAX]) / high;
	/* Of single elements more is chance. */
	return fmax(fmax(apart[ACC_STAT_NORM], apart[ACC_STAT_MEAN]),
		       fmax(apart[ACC_STAT_MAX], apart[ACC_STAT_MIN]) / 2) /
	       fmax(x->wide, y->wide);
}

/* A value by what it is looked for: apart from it, for the sake of the processor's cache. */
struct by_norm {
	uint64_t count;
	double norm;
	const struct part_value *v;
};

static int
compare(const struct by_norm *p, const struct by_norm *q)
{
	return p->count != q->count ? (p->count > q->count) - (p->count < q->count)
				    : (p->norm > q->norm) - (p->norm < q->norm);
}

static int
by_norm(const void *x, const void *y)
{
	return compare(x, y);
}

/* How far the norms alone are apart, at least; INFINITY: of another size, or further than may be. */
static double
norms_apart(const struct part_value *x, const struct by_norm *y, double may, double widest)
{
	const double off = fabs(x->stat[ACC_STAT_NORM] - y->norm) / fmax(y->norm, x->terms) /
			   widest;
	return x->count == y->count && off <= 2 * may ? off : INFINITY;
}

/* Of each value of a side the nearest of the other: from the nearest norm on, until the norms alone are further
 * apart than what was found. Of thousands that have one norm some would do, if any. */
static void
nearest(struct part_side *d, const struct by_norm *of, uint32_t n, double may)
{
	enum { MOST = 1 << 12 };
	double widest = 1;
	for (uint32_t i = 0; i < n; i++)
		widest = fmax(widest, of[i].v->wide);
	for (uint32_t i = 0; i < d->nvalue; i++)
		widest = fmax(widest, d->value[i].wide);
	for (uint32_t i = 0; i < d->nvalue; i++) {
		struct part_value *v = &d->value[i];
		const struct by_norm key = {v->count, v->stat[ACC_STAT_NORM], v};
		uint32_t lo = 0;
		if (!v->real)
			continue;
		ACC_LOWER(lo, n, compare(&of[lo], &key) < 0);
		v->met = (lo < n && of[lo].count == v->count) ||
			 (lo > 0 && of[lo - 1].count == v->count);
		for (uint32_t k = lo;
			k < n && k - lo < MOST && norms_apart(v, &of[k], may, widest) < v->off; k++)
			v->off = fmin(v->off, acc_part_off(v, of[k].v));
		for (uint32_t k = lo;
			k > 0 && lo - k < MOST && norms_apart(v, &of[k - 1], may, widest) < v->off;
			k--)
			v->off = fmin(v->off, acc_part_off(v, of[k - 1].v));
	}
}

/* Masks and indices have no nearest: the same elements are there, or they are not. */
static int
find_twins(struct part_side *d, const struct part_side *other, struct acc_err *e)
{
	struct acc_ids of = {0};
	int rc = 0;
	for (uint32_t i = 0; i < other->nvalue && rc == 0; i++)
		if (!other->value[i].real && other->value[i].id != 0)
			rc = acc_ids_put(&of, other->value[i].id, i, false, e);
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++) {
		struct part_value *v = &d->value[i];
		v->twin = !v->real && v->id != 0 && v->count > 1 &&
			  acc_ids_get(&of, v->id) != ACC_NOID;
	}
	acc_ids_release(&of);
	return rc;
}

/* The last step before that computed as many numbers, or what they may have been cut from, or anything: ACC_NOCALL:
 * none of those near did. */
static uint32_t
may_be_made_by(const struct parting *p, int side, uint32_t step, uint64_t count)
{
	const struct part_side *d = &p->side[side];
	enum { NEAR = 256 };
	uint32_t cut = ACC_NOCALL, any = ACC_NOCALL;
	for (uint32_t i = step; i-- > 0 && step - i <= NEAR;)
		for (uint32_t j = d->step[i].value; j < d->step[i].value + d->step[i].n; j++) {
			const struct part_value *v = &d->value[j];
			if (!v->out || !v->real || v->count == 1 || moves_leaves(p, side, i))
				continue;
			if (v->count == count)
				return i;
			if (cut == ACC_NOCALL && v->count % count == 0)
				cut = i;
			any = any == ACC_NOCALL ? i : any;
		}
	return cut != ACC_NOCALL ? cut : any;
}

/* May this input, which nobody gave, be a weight? A product takes it last, as a matrix or a vector, a sum or a factor as
 * a vector for all rows of what is computed. */
static bool
may_be_weight(const struct part_side *d, const struct part_value *v)
{
	const struct part_step *s = &d->step[v->step];
	const bool product = s->cls == ACC_OP_CONTRACT;
	uint32_t most = 0, last = 0;
	if (!product && s->cls != ACC_OP_ADD && s->cls != ACC_OP_MUL)
		return false;
	for (uint32_t i = s->value; i < s->value + s->n && !d->value[i].out; i++) {
		most = d->value[i].naxes > most ? d->value[i].naxes : most;
		last = i;
	}
	return v->naxes < most ? v->naxes <= (product ? 2 : 1)
			       : product && v->naxes == 2 && v == &d->value[last];
}

/* Data have the same values on both sides, and weights are known by the operator that takes them. What nobody gave,
 * and the other side does not have, was computed by what the recorder left out, as views and functions that it does
 * not know. */
static int
bridge(const struct parting *p, int side, struct acc_err *e)
{
	const struct part_side *d = &p->side[side];
	struct acc_ids known = {0};
	int rc = 0;
	for (uint32_t i = 0; i < d->nvalue && rc == 0; i++) {
		struct part_value *v = &d->value[i];
		if (v->out || !v->real || v->count == 1 || v->maker != ACC_NOCALL ||
			v->off <= p->may || v->id == 0)
			continue;
		v->weight |= may_be_weight(d, v);
		if (v->weight)
			continue;
		uint32_t m = acc_ids_get(&known, v->id);
		if (m == ACC_NOID) {
			m = may_be_made_by(p, side, v->step, v->count);
			if (m != ACC_NOCALL)
				rc = acc_ids_put(&known, v->id, m, false, e);
		}
		v->maker = m;
		v->bridged = m != ACC_NOCALL;
		v->leaf = !v->bridged;
	}
	acc_ids_release(&known);
	return rc;
}

/* What is handed on is as far off as it was where it was made, whoever was compared in the second run. */
static int
spread_noise(struct part_side *b, struct acc_err *e)
{
	struct acc_ids of = {0};
	int rc = 0;
	for (uint32_t i = 0; i < b->nvalue && rc == 0; i++)
		if (b->value[i].wide > 1 && b->value[i].id != 0)
			rc = acc_ids_put(&of, b->value[i].id, i, false, e);
	for (uint32_t i = 0; i < b->nvalue && of.n > 0; i++) {
		struct part_value *v = &b->value[i];
		const uint32_t from = v->wide > 1 || v->id == 0 ? ACC_NOID
								: acc_ids_get(&of, v->id);
		if (from != ACC_NOID)
			v->wide = b->value[from].wide;
	}
	acc_ids_release(&of);
	return rc;
}

static int
match(struct parting *p, struct acc_err *e)
{
	int rc = spread_noise(&p->side[ACC_B], e);
	for (int s = 0; s < 2 && rc == 0; s++) {
		rc = find_twins(&p->side[s], &p->side[!s], e);
		if (rc < 0)
			return rc;
		const struct part_side *d = &p->side[!s];
		struct by_norm *of = malloc((d->nvalue + (size_t)1) * sizeof *of);
		uint32_t n = 0;
		if (of == NULL)
			return acc_nomem(e);
		for (uint32_t i = 0; i < d->nvalue; i++)
			if (d->value[i].real)
				of[n++] = (struct by_norm){d->value[i].count,
					d->value[i].stat[ACC_STAT_NORM], &d->value[i]};
		qsort(of, n, sizeof *of, by_norm);
		nearest(&p->side[s], of, n, p->may);
		free(of);
	}
	for (int s = 0; s < 2 && rc == 0; s++)
		rc = acc_part_match_parts(p, s, e);
	for (int s = 0; s < 2 && rc == 0; s++)
		rc = bridge(p, s, e);
	return rc;
}

int
acc_part_read(struct parting *p, uint32_t call, struct acc_err *e)
{
	int64_t turn[2] = {INT64_MAX - 1, INT64_MAX - 1};
	struct acc_ids known[2] = {{0}}, back[2] = {{0}};
	struct acc_case *c = p->c;
	const uint32_t segment = c->call[call].segment;
	uint32_t from = call, to = call;
	while (from > 0 && c->call[from - 1].segment == segment)
		from--;
	while (to < c->ncall && c->call[to].segment == segment)
		to++;
	int rc = find_turn(c, from, to, turn, back, e);
	const uint32_t end = c->call[to - 1].last;
	for (uint32_t i = c->call[from].first; i <= end && rc == 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->call == ACC_NOCALL || it->kind != ACC_ITEM_TENSOR ||
			c->call[it->call].segment != segment || c->call[it->call].backward)
			continue;
		rc = read_item(p, i, turn, known, e);
	}
	for (int s = 0; s < 2; s++) {
		acc_ids_release(&known[s]);
		for (uint32_t i = 0; i < p->side[s].nstep; i++)
			p->side[s].step[i].gradient =
				acc_ids_get(&back[s], c->call[p->side[s].step[i].call].twin) !=
				ACC_NOID;
		acc_ids_release(&back[s]);
		if (rc == 0)
			rc = put_in_order(&p->side[s], e);
		if (rc == 0)
			rc = find_makers(p, s, e);
		if (rc == 0)
			find_terms(c, &p->side[s]);
	}
	return rc < 0 ? rc : match(p, e);
}
