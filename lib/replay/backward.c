/* Backward: which gradient is of which input, and the test that the structure allows. */
#include "replay/impl.h"

struct input {
	struct acc_held *h;
	struct acc_str name, mode; /* by the signature */
	uint32_t pos;              /* which positional argument; UINT32_MAX: a keyword */
};

struct inputs {
	struct acc_arena *mem;
	struct input *list;
	uint32_t n, cap;
	struct acc_str name, mode;
	uint32_t pos;
};

static int
add(void *arg, struct acc_held *h)
{
	struct inputs *in = arg;
	if (in->n < in->cap)
		in->list[in->n++] = (struct input){h, in->name, in->mode, in->pos};
	return 0;
}

/* The tensors among the inputs of the forward call, in order. */
static bool
list_inputs(struct acc_trial *t, struct inputs *in)
{
	const struct acc_replay *r = &t->r;
	uint32_t n = 0;
	acc_each_held(r->in, r->nin, acc_count_held, &n);
	acc_each_held(r->kw, r->nkw, acc_count_held, &n);
	*in = (struct inputs){.mem = r->mem,
		.cap = n,
		.list = acc_alloc(r->mem, n * sizeof *in->list)};
	if (in->list == NULL)
		return false;
	for (uint32_t i = 0; i < r->nin; i++) {
		in->mode = acc_sig_mode(r->op, (struct acc_str){"", 0}, i, &in->name);
		in->pos = i;
		acc_each_held(&r->in[i], 1, add, in);
	}
	for (uint32_t i = 0; i < r->nkw; i++) {
		in->mode = acc_sig_mode(r->op, r->kw[i].name, 0, &in->name);
		in->pos = UINT32_MAX;
		acc_each_held(&r->kw[i], 1, add, in);
	}
	return true;
}

static bool
is_shape(const struct acc_dense *a, uint32_t ndim, const int64_t *shape)
{
	return a->ndim == ndim && (ndim == 0 || memcmp(a->shape, shape, ndim * sizeof *shape) == 0);
}

static bool
same_shape(const struct acc_dense *a, const struct acc_dense *b)
{
	return is_shape(a, b->ndim, b->shape);
}

/* Recorders number gradients by the tensors among the inputs, or by the arguments. Whichever
 * fits all of them. */
static struct input *
input_of(const struct inputs *in, uint32_t at, bool by_pos)
{
	if (!by_pos)
		return at < in->n ? &in->list[at] : NULL;
	for (uint32_t i = 0; i < in->n; i++)
		if (in->list[i].pos == at)
			return &in->list[i];
	return NULL;
}

static bool
fits(const struct inputs *in, const struct acc_pass_of *p, bool by_pos)
{
	for (uint32_t i = 0; i < p->nout; i++) {
		if (p->out[i].type != ACC_A_TENSOR)
			continue;
		const struct input *x = input_of(in, i, by_pos);
		if (x == NULL || !same_shape(&x->h->d, p->out[i].t) || !acc_is_float(x->h->d.dtype))
			return false;
	}
	return true;
}

struct acc_held *
acc_gradient_input(struct acc_trial *t, uint32_t i, struct acc_str *mode)
{
	struct inputs in;
	if (!list_inputs(t, &in))
		return NULL;
	bool by_pos = !fits(&in, &t->j->bwd, false);
	if (by_pos && !fits(&in, &t->j->bwd, true))
		return NULL;
	const struct input *x = input_of(&in, i, by_pos);
	if (x != NULL && mode != NULL)
		*mode = x->mode;
	return x == NULL ? NULL : x->h;
}

/* The gradients of the outputs, in order; NULL where none came. false: they do not fit. */
static bool
list_gradients(struct acc_trial *t, const struct acc_dense **g, const char **why)
{
	const struct acc_pass_of *p = &t->j->bwd;
	bool any = false;
	for (uint32_t k = 0; k < t->nout; k++) {
		g[k] = NULL;
		if (k >= p->nin || p->in[k].type != ACC_A_TENSOR)
			continue;
		g[k] = p->in[k].t;
		if (!is_shape(g[k], t->out[k].ndim, t->out[k].shape)) {
			*why = "a gradient does not have the shape of its output";
			return false;
		}
		if (g[k]->v == NULL) {
			*why = "a gradient was recorded without data";
			return false;
		}
		any = true;
	}
	if (!any) {
		/* What is written to a view is used, and differentiated, through what it is a view of. */
		*why = "no gradient of what it gave was recorded";
		return false;
	}
	for (uint32_t k = t->nout; k < p->nin; k++)
		if (p->in[k].type != ACC_A_NONE) {
			*why = "more gradients than outputs";
			return false;
		}
	return true;
}

/* Of a quotient that is rounded to a whole number, the gradient is 0 in any library. */
static bool
is_rounded(struct acc_trial *t)
{
	struct acc_str mode;
	const char *why = t->r.why;
	const bool rounded = strstr(t->r.op->sig, "rounding_mode") != NULL &&
			     acc_arg_text(&t->r, "rounding_mode", &mode) > 0 && mode.n > 0;
	t->r.why = why;
	return rounded;
}

void
acc_adjoint_by(struct acc_adjoint *a, struct acc_str mode)
{
	const struct acc_op *op = a->t->r.op;
	a->linear = acc_str_is(mode, "linear");
	a->exact = a->linear || acc_str_is(mode, "move") || acc_str_is(mode, "pick") ||
		   acc_str_is(mode, "prod");
	a->sloped = acc_str_is(mode, "prod") && acc_slope_applies(a->t);
	a->one_by_one = acc_unit_low(a->unit) && (op->flags & ACC_GATHERS) != 0 &&
			(a->linear || strcmp(op->cls, "norm") != 0);
	a->flat = acc_str_is(mode, "flat") || is_rounded(a->t);
	a->same = acc_str_is(mode, "same");
	a->work = acc_work_unit(a->unit);
}

static int
test(struct acc_adjoint *a, struct acc_str mode)
{
	acc_adjoint_by(a, mode);
	const bool point = acc_str_is(mode, "point") || a->linear || a->flat || a->same;
	if (a->shared != NULL && !point)
		return acc_cannot(&a->t->r, "too large to be recomputed");
	if (acc_str_is(mode, "move"))
		return acc_adjoint_move(a);
	if (acc_str_is(mode, "pick"))
		return acc_adjoint_pick(a);
	if (point)
		return acc_adjoint_point(a);
	if (acc_str_is(mode, "block") || acc_str_is(mode, "any"))
		return acc_adjoint_block(a, acc_str_is(mode, "any"));
	if (acc_str_is(mode, "prod"))
		return acc_adjoint_product(a);
	return acc_cannot(&a->t->r, "the gradient of this argument is not known");
}

static double
coarser(double unit, const struct acc_dense *d)
{
	return fmax(unit, acc_unit(d->dtype));
}

/* Recorders hang on to the node that made an output. Where an operator handed its input on as it
 * is, that is the node of an operator before it; and of cross entropy it is its last step, whose
 * gradient has one element a row. Then the gradient is right, but of something else. */
static const char *
of_another(const struct acc_trial *t, const struct acc_formed *f, const struct acc_adjoint *a)
{
	const struct acc_dense *x = a->x, *y = &f->rec[0];
	if (acc_str_is(t->r.name, "cross_entropy") && x->ndim > 0) {
		size_t some = 0, rows = x->n / (size_t)(x->shape[x->ndim - 1] + (x->n == 0));
		for (size_t i = 0; i < x->n; i++)
			some += a->gin->v[i] != 0;
		return some > 0 && some <= rows ? "its gradient is that of its last step" : NULL;
	}
	bool hands_on = t->r.info != NULL && (t->r.info->flags & ACC_OP_HANDS_ON) != 0;
	bool same = hands_on && x->n == y->n && x->dtype == y->dtype && y->v != NULL;
	for (size_t i = 0; same && i < x->n; i++)
		same = x->v[i] == y->v[i];
	return same ? "it handed its input on: its gradient may be that of another operator" : NULL;
}

/* Was the same tensor given as another argument, too, for which no gradient came? Then this one is that of
 * both: of attention(x, x, x) autograd knows one sum. */
static bool
is_of_several(const struct acc_pass_of *p, const struct inputs *in, const struct input *x,
	bool by_pos)
{
	const struct acc_dense *a = &x->h->d;
	for (const struct input *o = in->list; o < in->list + in->n; o++) {
		const struct acc_dense *b = &o->h->d;
		const uint32_t at = by_pos ? o->pos : (uint32_t)(o - in->list);
		if (o == x || a->dtype != b->dtype || !same_shape(a, b) || a->v == NULL ||
			b->v == NULL || (at < p->nout && p->out[at].type == ACC_A_TENSOR))
			continue;
		size_t i = 0;
		while (i < a->n && a->v[i] == b->v[i])
			i++;
		if (i == a->n)
			return true;
	}
	return false;
}

/* Did the forward call put out what is not finite? */
static bool
overflowed(const struct acc_trial *t, const struct acc_formed *f)
{
	bool wild = false;
	for (uint32_t i = 0; i < t->nout && !wild; i++)
		wild = f->rec[i].v != NULL && !acc_audit_row()->finite(f->rec[i].v, f->rec[i].n);
	return wild;
}

/* Is any of it Inf where a wider dtype would hold it? */
static bool
beyond(const struct acc_trial *t, const struct acc_formed *f)
{
	for (uint32_t k = 0; k < t->nout; k++)
		for (size_t i = 0; f->rec[k].v != NULL && i < f->rec[k].n; i++)
			if (isinf(f->rec[k].v[i]) && isfinite(f->ref[k].v[i]))
				return true;
	return false;
}

/* Why a gradient that is far off may be right, where the elements of its call are there to tell. */
static const char *
excused(struct acc_trial *t, const struct acc_formed *f, const struct inputs *in,
	const struct input *x, bool by_pos, const struct acc_adjoint *a)
{
	const bool by_rows = acc_str_is(x->mode, "block") || acc_str_is(x->mode, "any");
	const char *why = of_another(t, f, a);
	if (why == NULL && is_of_several(&t->j->bwd, in, x, by_pos))
		why = "the same tensor is another argument, too: its gradient is that of both";
	if (why == NULL && ((a->err.broken && overflowed(t, f)) || (by_rows && beyond(t, f))))
		why = "its forward call overflowed, and so may its gradient";
	if (why == NULL && t->nout > 0)
		why = acc_exempt(t, f, 0);
	return why;
}

/* Of a product without a bias the node has the turned weight, and who hooks nodes records its gradient (behaviour
 * msprobe-square-weight-turned). Where the shape does not tell, is it right turned back? Then *a is what that gave. */
static bool
is_turned(const struct acc_adjoint *fresh, struct acc_str mode, struct acc_adjoint *a)
{
	const struct acc_dense *g = fresh->gin;
	if (!acc_str_is(fresh->t->r.name, "linear") || fresh->t->large || fresh->shared != NULL ||
		g->ndim != 2 || g->shape[0] != g->shape[1] || strcmp(fresh->name, "weight") != 0)
		return false;
	struct acc_dense *back = acc_alloc(fresh->t->r.mem, sizeof *back);
	double *v = acc_alloc(fresh->t->r.mem, g->n * sizeof *v);
	if (back == NULL || v == NULL)
		return false;
	const size_t side = (size_t)g->shape[0];
	for (size_t i = 0; i < g->n; i++)
		v[i] = g->v[i % side * side + i / side];
	*back = *g;
	back->v = v;
	struct acc_adjoint again = *fresh;
	again.gin = back;
	if (test(&again, mode) < 0 || acc_far_off(&again.err, acc_unit_low(again.unit)))
		return false;
	*a = again;
	return true;
}

/* msprobe writes the gradients of a primitive of MindSpore from the last to the first. Where shapes fit either way, is this one
 * that of the input at the other end? Then *a is what that gave. */
static bool
is_reversed(const struct acc_adjoint *fresh, const struct inputs *in, const struct input *x,
	struct acc_adjoint *a)
{
	struct acc_trial *t = fresh->t;
	const uint32_t at = (uint32_t)(x - in->list), n = t->j->bwd.nout;
	if (!acc_str_starts(t->j->op, "Primitive.") || n < 2 || at >= n || n - 1 - at >= in->n ||
		n - 1 - at == at || t->large || fresh->shared != NULL)
		return false;
	const struct input *y = &in->list[n - 1 - at];
	if (!same_shape(&x->h->d, &y->h->d))
		return false;
	struct acc_adjoint again = *fresh;
	again.x = &y->h->d;
	again.name = acc_arena_copy(t->r.mem, y->name.p, y->name.n);
	if (again.name == NULL || test(&again, y->mode) < 0 ||
		acc_far_off(&again.err, acc_unit_low(again.unit)))
		return false;
	*a = again;
	return true;
}

const char acc_skip_again[] = "a gradient of its gradients was taken, too: it is that of both";

static void
one(struct acc_trial *t, const struct inputs *in, const struct input *x, bool by_pos,
	struct acc_held *gin, const struct acc_dense *const *g, struct acc_audited *v,
	struct acc_tally *tally)
{
	char *name = acc_arena_copy(t->r.mem, x->name.p, x->name.n);
	struct acc_adjoint a = {.t = t,
		.x = &x->h->d,
		.name = name,
		.gin = &gin->d,
		.held = gin,
		.gout = g,
		.spots = &tally->spots,
		.first = gin->first};
	a.unit = fmax(coarser(acc_unit(gin->d.dtype), a.x), acc_unit_of_mixed(t));
	a.max = acc_max_of(gin->d.dtype);
	for (uint32_t k = 0; k < t->nout; k++)
		if (g[k] != NULL) {
			a.unit = coarser(a.unit, g[k]);
			/* Under autocast they are computed in its dtype, and cast at last. */
			a.max = fmin(a.max, acc_max_of(g[k]->dtype));
		}
	if (t->j->shared != NULL && t->j->shared[tally - t->j->tally].on)
		a.shared = &t->j->shared[tally - t->j->tally];
	const struct acc_adjoint fresh = a;
	t->r.why = NULL;
	/* mOve, pOint, bLock, aNy, pRod */
	v->mode = acc_str_is(x->mode, "linear") || acc_str_is(x->mode, "flat") ||
				  acc_str_is(x->mode, "same")
			  ? 'o'
		  : x->mode.n > 1 ? (uint8_t)x->mode.p[1]
				  : 0;
	v->low = acc_unit_low(a.unit);
	v->rounding = (uint8_t)t->r.op->rounding;
	if (gin->d.v == NULL)
		v->skip = gin->err != NULL ? gin->err : "recorded without data";
	else if (name == NULL)
		v->skip = ACC_NOMEM_TEXT;
	else if (test(&a, x->mode) < 0)
		v->skip = t->r.why;
	bool far = v->skip == NULL && acc_far_off(&a.err, v->low) &&
		   !is_turned(&fresh, x->mode, &a) && (by_pos || !is_reversed(&fresh, in, x, &a));
	if (far && t->j->again)
		v->skip = acc_skip_again;
	else if (far && t->formed != NULL)
		v->skip = excused(t, t->formed, in, x, by_pos, &a);
	if (a.part > 0)
		v->part = a.part;
	acc_slope_keep(&tally->slope, &a.slope);
	acc_err_merge(&tally->err, &a.err);
	acc_err_merge(&tally->coarse, &a.coarse);
	acc_form_merge(&tally->forms, &a.forms);
	acc_left_add(&tally->left, &a.left);
	tally->parts++;
	tally->far += far;
	if (far && tally->far == 1)
		tally->cause = a.cause;
}

void
acc_backward(struct acc_trial *t)
{
	struct acc_audit_job *j = t->j;
	struct inputs in;
	const char *why = NULL;
	const struct acc_dense **g = acc_alloc(t->r.mem, t->nout * sizeof *g);
	if (g == NULL || !list_inputs(t, &in)) {
		acc_audit_job_skip(j, ACC_NOMEM_TEXT);
		return;
	}
	bool by_pos = !fits(&in, &j->bwd, false);
	if (t->r.op->flags & ACC_NO_BACKWARD)
		why = "its gradient is not known";
	else if (by_pos && !fits(&in, &j->bwd, true))
		why = "its gradients have other shapes than its inputs";
	if (why != NULL || !list_gradients(t, g, &why)) {
		acc_audit_job_skip(j, why);
		return;
	}
	for (uint32_t i = 0, k = 0; i < j->bwd.nout && k < j->nresult; i++) {
		if (j->bwd.out[i].type != ACC_A_TENSOR)
			continue;
		struct acc_audited *v = &j->result[k++];
		struct acc_held *h = (struct acc_held *)(void *)j->bwd.out[i].t;
		v->line = h->line;
		v->backward = true;
		v->cls = t->r.op->cls;
		v->steps = acc_op_steps(j->op);
		v->tells_steps = (t->r.op->flags & ACC_TELLS_STEPS) != 0;
		if (v->skip == NULL && !(j->shared_only && !j->shared[k - 1].on))
			one(t, &in, input_of(&in, i, by_pos), by_pos, h, g, v, &j->tally[k - 1]);
	}
}
