/* How a large call is cut: how its tensors lie to the output, and along which dimension. */
#include "replay/cut.h"

enum {
	TARGET = 1 << 14, /* elements of the largest tensor in a part, as far as it can be */
	LARGEST = 1 << 23 /* a part larger than this is none */
};

/* --- copies of the arguments --- */

static struct acc_held *
copy_held(struct acc_cutter *c, struct acc_held *h)
{
	struct acc_held *to = acc_alloc(&c->j->mem, sizeof *to);
	if (to == NULL || c->n == c->cap)
		return NULL;
	*to = *h;
	to->pay = NULL;
	c->list[c->n++] = (struct acc_piece){.from = h, .to = to};
	return to;
}

static int
copy_values(struct acc_cutter *c, const struct acc_value *v, uint32_t n, struct acc_value **out)
{
	struct acc_value *to = acc_alloc(&c->j->mem, n * sizeof *to);
	if (to == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct acc_held *h = NULL;
		to[i] = v[i];
		if (v[i].type == ACC_A_LIST && copy_values(c, v[i].item, v[i].n, &to[i].item) < 0)
			return ACC_ENOMEM;
		if (v[i].type != ACC_A_TENSOR)
			continue;
		if ((h = copy_held(c, (struct acc_held *)(void *)v[i].t)) == NULL)
			return ACC_ENOMEM;
		to[i].t = &h->d;
	}
	*out = to;
	return 0;
}

static int
count(void *arg, struct acc_held *h)
{
	(void)h;
	(*(size_t *)arg)++;
	return 0;
}

static int
copy(struct acc_cutter *c)
{
	struct acc_audit_job *j = c->j;
	acc_each_tensor(j, count, &c->cap);
	c->list = acc_alloc(&j->mem, c->cap * sizeof *c->list);
	if (c->list == NULL)
		return ACC_ENOMEM;
	c->part = *j;
	c->part.mem = (struct acc_arena){0};
	c->part.part = true;
	for (int i = 0; i < 2; i++) {
		const struct acc_pass_of *p = i == 0 ? &j->fwd : &j->bwd;
		struct acc_pass_of *q = i == 0 ? &c->part.fwd : &c->part.bwd;
		if (copy_values(c, p->in, p->nin, &q->in) < 0 ||
			copy_values(c, p->kw, p->nkw, &q->kw) < 0 ||
			copy_values(c, p->out, p->nout, &q->out) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

/* --- how tensors lie to the output --- */

static struct acc_piece *
piece_of(const struct acc_cutter *c, const struct acc_held *h)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].from == h)
			return &c->list[i];
	return NULL;
}

/* Its dimensions against the leading ones of the output: one that is equal is cut, one that is 1
 * or not there is broadcast. */
static bool
lie(const struct acc_cutter *c, struct acc_piece *p, bool left, bool broadcast)
{
	const struct acc_dense *d = &p->from->d;
	uint32_t nd = c->out->ndim;
	int64_t inner = 1;
	if (!left && d->ndim > nd)
		return false;
	p->skip = left ? 0 : nd - d->ndim;
	for (uint32_t e = d->ndim; e-- > 0;) {
		uint32_t o = e + p->skip;
		p->shape[e] = d->shape[e];
		if (o < c->cut.lead) {
			bool same = d->shape[e] == c->out->shape[o];
			if (!same && (d->shape[e] != 1 || !broadcast))
				return false;
			p->step[o] = d->shape[e] == 1 ? 0 : inner;
		}
		if (d->shape[e] < 0 || __builtin_mul_overflow(inner, d->shape[e], &inner))
			return false;
	}
	return broadcast || d->ndim >= c->cut.lead;
}

struct input_pass {
	struct acc_cutter *c;
	struct acc_str name;
	bool good;
};

static int
lie_input(void *arg, struct acc_held *h)
{
	struct input_pass *in = arg;
	struct acc_cutter *c = in->c;
	struct acc_piece *p = piece_of(c, h);
	p->whole = c->cut.whole != NULL && in->name.n > 0 && acc_word_in(c->cut.whole, in->name);
	bool left = c->cut.left != NULL && in->name.n > 0 && acc_word_in(c->cut.left, in->name);
	if (!p->whole)
		in->good &= lie(c, p, left, true);
	else
		memcpy(p->shape, h->d.shape, sizeof p->shape);
	return 0;
}

static int
lie_output(void *arg, struct acc_held *h)
{
	struct input_pass *in = arg;
	in->good &= lie(in->c, piece_of(in->c, h), true, false);
	return 0;
}

/* Gradients lie as what they are of. */
static bool
lie_gradients(struct acc_cutter *c)
{
	struct acc_audit_job *j = c->j;
	struct input_pass out = {c, {"", 0}, true};
	acc_each_held(j->bwd.in, j->bwd.nin, lie_output, &out);
	for (uint32_t i = 0; i < j->bwd.nout && out.good; i++) {
		if (j->bwd.out[i].type != ACC_A_TENSOR)
			continue;
		struct acc_held *g = (struct acc_held *)(void *)j->bwd.out[i].t;
		const struct acc_held *x = acc_gradient_input(&c->t, i, &c->mode);
		struct acc_piece *p = piece_of(c, g), *q = x == NULL ? NULL : piece_of(c, x);
		if (q == NULL)
			return false;
		memcpy(p->step, q->step, sizeof p->step);
		memcpy(p->shape, q->shape, sizeof p->shape);
		p->skip = q->skip;
		p->whole = q->whole;
		p->point = acc_str_is(c->mode, "point") || acc_str_is(c->mode, "linear") ||
			   acc_str_is(c->mode, "flat") || acc_str_is(c->mode, "same");
	}
	return out.good;
}

static bool
lie_all(struct acc_cutter *c)
{
	struct acc_audit_job *j = c->j;
	struct input_pass in = {c, {"", 0}, true};
	for (size_t i = 0; i < c->n; i++)
		memset(c->list[i].step, 0, sizeof c->list[i].step);
	for (uint32_t i = 0; i < j->fwd.nin; i++) {
		acc_sig_mode(c->op, (struct acc_str){"", 0}, i, &in.name);
		acc_each_held(&j->fwd.in[i], 1, lie_input, &in);
	}
	for (uint32_t i = 0; i < j->fwd.nkw; i++) {
		acc_sig_mode(c->op, j->fwd.kw[i].name, 0, &in.name);
		acc_each_held(&j->fwd.kw[i], 1, lie_input, &in);
	}
	acc_each_held(j->fwd.out, j->fwd.nout, lie_output, &in);
	return in.good && (!j->backward || lie_gradients(c));
}

/* --- where to cut --- */

/* Elements of a tensor that one index of dimension dim goes with. */
static size_t
slice(const struct acc_piece *p, uint32_t dim)
{
	size_t n = 1;
	if (p->whole)
		return 0;
	for (uint32_t e = 0; e < p->from->d.ndim; e++)
		n *= e + p->skip > dim ? (size_t)p->from->d.shape[e] : 1;
	return n;
}

static size_t
largest(const struct acc_cutter *c, uint32_t dim)
{
	size_t most = 1;
	for (size_t i = 0; i < c->n; i++) {
		size_t n = slice(&c->list[i], dim);
		most = n > most ? n : most;
	}
	return most;
}

/* --- gradients of what several parts see --- */

struct acc_piece *
acc_cut_gradient(const struct acc_cutter *c, uint32_t k)
{
	const struct acc_pass_of *p = &c->j->bwd;
	for (uint32_t i = 0; i < p->nout; i++)
		if (p->out[i].type == ACC_A_TENSOR && k-- == 0)
			return piece_of(c, (struct acc_held *)(void *)p->out[i].t);
	return NULL;
}

bool
acc_cut_shared(const struct acc_cutter *c, const struct acc_piece *p)
{
	for (uint32_t o = 0; o <= c->dim; o++)
		if (c->out->shape[o] > 1 && p->step[o] == 0)
			return true;
	return false;
}

/* Sums that several parts add to are of single elements. */
static bool
can_share(const struct acc_cutter *c)
{
	for (uint32_t k = 0; c->j->backward && k < c->j->nresult; k++) {
		const struct acc_piece *p = acc_cut_gradient(c, k);
		if (p != NULL && !p->point && acc_cut_shared(c, p))
			return false;
	}
	return true;
}

static bool
choose(struct acc_cutter *c)
{
	while (c->cut.lead > 0 && !lie_all(c))
		c->cut.lead--;
	if (c->cut.lead == 0 || c->out->n == 0)
		return false;
	uint32_t dim = 0;
	while (dim + 1 < c->cut.lead && largest(c, dim) > TARGET)
		dim++;
	size_t each = largest(c, dim);
	int64_t len = c->out->shape[dim];
	if (each > LARGEST)
		return false;
	c->dim = dim;
	c->range = each >= TARGET ? 1 : (int64_t)(TARGET / each);
	c->range = c->range < len ? c->range : len;
	c->along = (size_t)((len + c->range - 1) / c->range);
	c->parts = c->along;
	for (uint32_t d = 0; d < dim; d++)
		c->parts *= (size_t)c->out->shape[d];
	return c->parts > 1 && can_share(c);
}

bool
acc_cut_plan(struct acc_cutter *c)
{
	return copy(c) == 0 && choose(c);
}
