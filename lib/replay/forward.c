/* Forward: what was recorded against what the inputs give. */
#include "replay/impl.h"

struct gather {
	struct acc_held **list;
	uint32_t n, cap;
};

static int
count(void *arg, struct acc_held *h)
{
	(void)h;
	(*(uint32_t *)arg)++;
	return 0;
}

static int
collect(void *arg, struct acc_held *h)
{
	struct gather *g = arg;
	g->list[g->n++] = h;
	return 0;
}

struct acc_dense *
acc_trial_outputs(struct acc_trial *t, bool mag)
{
	struct acc_dense *o = acc_alloc(t->r.mem, t->nout * sizeof *o);
	for (uint32_t i = 0; o != NULL && i < t->nout; i++) {
		o[i] = t->out[i]->d;
		o[i].v = acc_alloc(t->r.mem, o[i].n * sizeof *o[i].v);
		o[i].mag = mag ? acc_alloc(t->r.mem, o[i].n * sizeof *o[i].mag) : NULL;
		if (o[i].v == NULL || (mag && o[i].mag == NULL))
			return NULL;
		for (size_t k = 0; mag && k < o[i].n; k++)
			o[i].mag[k] = 0;
	}
	return o;
}

int
acc_replay_eval(struct acc_replay *r, struct acc_dense *out)
{
	return r->op->product != NULL ? acc_product_eval(r, out) : r->op->eval(r, out);
}

int
acc_trial_start(struct acc_trial *t, struct acc_job *j, const struct acc_op *op)
{
	const struct acc_pass_of *p = &j->fwd;
	char *name = acc_alloc(&j->mem, 128);
	uint32_t n = 0;
	*t = (struct acc_trial){.j = j, .r = {.op = op, .in = p->in, .kw = p->kw, .nin = p->nin,
		.nkw = p->nkw, .mem = &j->mem, .module = acc_str_starts(j->op, "Module.") ||
			acc_str_starts(j->op, "Cell.") ||
			acc_str_starts(j->op, "Primitive.")}};
	if (name == NULL)
		return acc_cannot(&t->r, "out of memory");
	t->r.name = acc_op_name(j->op, name, 128);
	acc_each_held(p->out, p->nout, count, &n);
	struct gather g = {acc_alloc(&j->mem, n * sizeof(struct acc_held *)), 0, n};
	struct acc_dense *rec = acc_alloc(&j->mem, n * sizeof *rec);
	if (g.list == NULL || rec == NULL)
		return acc_cannot(&t->r, "out of memory");
	acc_each_held(p->out, p->nout, collect, &g);
	for (uint32_t i = 0; i < n; i++)
		rec[i] = g.list[i]->d;
	t->out = g.list;
	t->nout = n;
	t->r.rec = rec;
	t->r.nrec = n;
	if (n == 0)
		return acc_cannot(&t->r, "no output was recorded");
	for (uint32_t i = 0; i < n; i++)
		if (rec[i].v == NULL && rec[i].n > ACC_MAX_UNSEEN)
			return acc_cannot(&t->r, "its output was recorded without data");
	t->ref = acc_trial_outputs(t, true);
	if (t->ref == NULL)
		return acc_cannot(&t->r, "out of memory");
	if (op->product == NULL)
		return op->eval(&t->r, t->ref);
	t->product.alpha = 1;
	int rc = op->product(&t->r, &t->ref[0], &t->product);
	t->large = rc == 0 && acc_product_large(&t->product);
	return rc < 0 || t->large ? rc : acc_product_eval(&t->r, t->ref);
}

static int
any_wild(void *arg, struct acc_held *h)
{
	bool *wild = arg;
	for (size_t i = 0; h->d.v != NULL && !*wild && i < h->d.n; i++)
		*wild = !isfinite(h->d.v[i]);
	return 0;
}

static int
any_as_fine(void *arg, struct acc_held *h)
{
	enum acc_dtype *t = arg;
	if (acc_is_float(h->d.dtype) && acc_unit_of(h->d.dtype) >= acc_unit_of(*t))
		*t = ACC_NODTYPE;
	return 0;
}

struct yardstick {
	enum acc_dtype t;
	bool exact, wild; /* no error is right; inputs are not finite */
	double unit, work, tiny, max;
};

/* INFINITY: NaN, Inf or saturation where it does not belong. < 0: nothing to compare. */
static double
error(const struct yardstick *y, double rec, double ref, double mag)
{
	if (isfinite(ref) && acc_is_float(y->t) && fabs(ref) > y->max) {
		/* On the verge of overflow, both are right. */
		if (fabs(ref) <= y->max * (1 + 8 * y->unit) && fabs(rec) == y->max)
			return 0;
		ref = copysign(INFINITY, ref);
	}
	if (!isfinite(ref) || !isfinite(rec)) {
		if (isnan(ref) ? isnan(rec) : rec == ref)
			return -1;
		if (isinf(rec) && fabs(ref) >= y->max * (1 - 8 * y->unit))
			return 0;
		return y->wild && !isfinite(ref) ? -1 : INFINITY;
	}
	double d = fabs(rec - ref);
	if (!acc_is_float(y->t))
		return d;
	double den = y->unit * fabs(ref) + y->work * mag + y->tiny;
	if (!y->exact)
		return d / den;
	return rec == acc_round_to(y->t, ref) ? 0 : fmax(1, d / den);
}

static void
judge(struct acc_trial *t, uint32_t k, bool wild, struct acc_audited *v)
{
	const struct acc_dense *rec = &t->out[k]->d, *ref = &t->ref[k];
	struct acc_errsum s = {0}, coarse = {0};
	enum acc_dtype in = rec->dtype;
	/* Where all inputs are finer than the output, they may have been rounded first. */
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, any_as_fine, &in);
	double unit = acc_unit_of(rec->dtype);
	struct yardstick y = {.t = rec->dtype, .exact = t->r.op->rounding == ACC_EXACT,
		.wild = wild, .unit = unit, .tiny = acc_tiny_of(rec->dtype),
		.max = acc_max_of(rec->dtype),
		.work = in == ACC_NODTYPE ? acc_work_unit(unit) : unit};
	struct yardstick low = y;
	low.work = unit;
	if (rec->v == NULL) {
		v->skip = t->out[k]->err != NULL ? t->out[k]->err : "recorded without data";
		return;
	}
	if (t->large && acc_freivalds(&t->r, &t->product, rec, y.unit, y.work, &s, &coarse) < 0) {
		v->skip = t->r.why;
		return;
	}
	for (size_t i = 0; i < rec->n && !t->large; i++) {
		double e = error(&y, rec->v[i], ref->v[i], ref->mag[i]);
		if (e < 0)
			continue;
		acc_err_add(&s, e, i);
		acc_err_add(&coarse, error(&low, rec->v[i], ref->v[i], ref->mag[i]), i);
	}
	if (acc_far_off(&s, unit > 0x1p-20))
		v->cause = acc_cause_forward(t, k);
	v->rms = acc_err_rms(&s);
	v->max = acc_err_max(&s);
	v->coarse_rms = acc_err_rms(&coarse);
	v->coarse_max = acc_err_max(&coarse);
	v->finite = s.n > 0;
	v->low = acc_is_float(rec->dtype) && unit > 0x1p-20;
	v->rounding = (uint8_t)(acc_is_float(rec->dtype) ? t->r.op->rounding : ACC_EXACT);
}

void
acc_forward(struct acc_trial *t)
{
	bool wild = false;
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, any_wild, &wild);
	acc_each_held(t->j->fwd.kw, t->j->fwd.nkw, any_wild, &wild);
	for (uint32_t k = 0; k < t->nout; k++) {
		struct acc_audited *v = &t->j->result[k];
		v->line = t->out[k]->line;
		v->cls = t->r.op->cls;
		judge(t, k, wild, v);
		if (v->skip == NULL && v->max > 0.5)
			v->skip = acc_excuse(t, k);
	}
}
