/* Large calls in parts: along the leading dimensions of the outputs that the operator does not
 * couple, each part is an ordinary small call, whose tensors are runs of the large ones. What is
 * too dear to be looked at all over is looked at here and there. */
#include "replay/cut.h"

#include <stdlib.h>

enum {
	TARGET = 1 << 14,    /* elements of the largest tensor in a part, as far as it can be */
	LARGEST = 1 << 23,   /* a part larger than this is none */
	FEWEST = 8,          /* parts that are looked at in any case */
	FEW = 2              /* if they are very dear */
};
/* Nanoseconds that testing may take for each byte of the call's own tensors. */
#define BUDGET_FORWARD 2.5
#define BUDGET_BACKWARD 0.4

/* A tensor of the call, and the run of it that a part sees. */
struct piece {
	struct acc_held *from, *to;
	int64_t step[ACC_DENSE_DIMS];  /* elements from one index of an output's dimension to the next */
	int64_t shape[ACC_DENSE_DIMS]; /* its own, as parts have it before dimension `dim` */
	uint32_t skip;                 /* how many of the output's dimensions it lacks in front */
	bool whole;
	bool point;                    /* a gradient that is told element by element */
	size_t at, n;                  /* what room holds */
	double *room;
	size_t cap;
};

struct cutter {
	struct acc_job *j, part;
	struct acc_trial t;            /* of the whole */
	const struct acc_op *op;
	struct acc_cut cut;
	struct acc_str mode;
	const struct acc_dense *out;   /* the first output */
	struct piece *list;
	size_t n, cap;
	uint32_t dim;                  /* along which it is cut, one index of each before it at a time */
	int64_t range;                 /* how many indices of dim are a part */
	size_t parts, along;           /* all; those of one set of indices before dim */
	bool failed;
};

/* --- copies of the arguments --- */

static struct acc_held *
copy_held(struct cutter *c, struct acc_held *h)
{
	struct acc_held *to = acc_alloc(&c->j->mem, sizeof *to);
	if (to == NULL || c->n == c->cap)
		return NULL;
	*to = *h;
	to->pay = NULL;
	c->list[c->n++] = (struct piece){.from = h, .to = to};
	return to;
}

static int
copy_values(struct cutter *c, const struct acc_value *v, uint32_t n, struct acc_value **out)
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
copy(struct cutter *c)
{
	struct acc_job *j = c->j;
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

static struct piece *
piece_of(const struct cutter *c, const struct acc_held *h)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].from == h)
			return &c->list[i];
	return NULL;
}

/* Its dimensions against the leading ones of the output: one that is equal is cut, one that is 1
 * or not there is broadcast. */
static bool
lie(const struct cutter *c, struct piece *p, bool left, bool broadcast)
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
		inner *= d->shape[e];
	}
	return broadcast || d->ndim >= c->cut.lead;
}

struct input_pass {
	struct cutter *c;
	struct acc_str name;
	bool good;
};

static int
lie_input(void *arg, struct acc_held *h)
{
	struct input_pass *in = arg;
	struct cutter *c = in->c;
	struct piece *p = piece_of(c, h);
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
lie_gradients(struct cutter *c)
{
	struct acc_job *j = c->j;
	struct input_pass out = {c, {"", 0}, true};
	acc_each_held(j->bwd.in, j->bwd.nin, lie_output, &out);
	for (uint32_t i = 0; i < j->bwd.nout && out.good; i++) {
		if (j->bwd.out[i].type != ACC_A_TENSOR)
			continue;
		struct acc_held *g = (struct acc_held *)(void *)j->bwd.out[i].t;
		const struct acc_held *x = acc_gradient_input(&c->t, i, &c->mode);
		struct piece *p = piece_of(c, g), *q = x == NULL ? NULL : piece_of(c, x);
		if (q == NULL)
			return false;
		memcpy(p->step, q->step, sizeof p->step);
		memcpy(p->shape, q->shape, sizeof p->shape);
		p->skip = q->skip;
		p->whole = q->whole;
		p->point = acc_str_is(c->mode, "point") || acc_str_is(c->mode, "linear");
	}
	return out.good;
}

static bool
lie_all(struct cutter *c)
{
	struct acc_job *j = c->j;
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
slice(const struct piece *p, uint32_t dim)
{
	size_t n = 1;
	if (p->whole)
		return 0;
	for (uint32_t e = 0; e < p->from->d.ndim; e++)
		n *= e + p->skip > dim ? (size_t)p->from->d.shape[e] : 1;
	return n;
}

static size_t
largest(const struct cutter *c, uint32_t dim)
{
	size_t most = 1;
	for (size_t i = 0; i < c->n; i++) {
		size_t n = slice(&c->list[i], dim);
		most = n > most ? n : most;
	}
	return most;
}

/* --- gradients of what several parts see --- */

static struct piece *
gradient(const struct cutter *c, uint32_t k)
{
	const struct acc_pass_of *p = &c->j->bwd;
	for (uint32_t i = 0; i < p->nout; i++)
		if (p->out[i].type == ACC_A_TENSOR && k-- == 0)
			return piece_of(c, (struct acc_held *)(void *)p->out[i].t);
	return NULL;
}

static bool
is_shared(const struct cutter *c, const struct piece *p)
{
	for (uint32_t o = 0; o <= c->dim; o++)
		if (c->out->shape[o] > 1 && p->step[o] == 0)
			return true;
	return false;
}

/* Sums that several parts add to are of single elements. */
static bool
can_share(const struct cutter *c)
{
	for (uint32_t k = 0; c->j->backward && k < c->j->nresult; k++) {
		const struct piece *p = gradient(c, k);
		if (p != NULL && !p->point && is_shared(c, p))
			return false;
	}
	return true;
}

static bool
choose(struct cutter *c)
{
	while (c->cut.lead > 0 && !lie_all(c))
		c->cut.lead--;
	if (c->cut.lead == 0)
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

/* --- one part --- */

static int
place(struct cutter *c, struct piece *p, size_t part)
{
	struct acc_dense *d = &p->to->d;
	size_t rest = part / c->along, at = 0, n = 1;
	int64_t from = (int64_t)(part % c->along) * c->range, len = c->out->shape[c->dim] - from;
	len = len < c->range ? len : c->range;
	if (!p->whole) {
		at = (size_t)(from * p->step[c->dim]);
		for (uint32_t o = c->dim; o-- > 0;) {
			at += rest % (size_t)c->out->shape[o] * (size_t)p->step[o];
			rest /= (size_t)c->out->shape[o];
		}
	}
	for (uint32_t e = 0; e < d->ndim; e++) {
		uint32_t o = e + p->skip;
		d->shape[e] = p->whole || o > c->dim ? p->shape[e] : o < c->dim ? 1 :
			p->step[o] == 0 ? p->shape[e] : len;
		n *= (size_t)d->shape[e];
	}
	d->n = n;
	p->to->first = at;
	if (p->from->pay == NULL) {
		d->v = p->from->d.v == NULL ? NULL : p->from->d.v + at;
		return 0;
	}
	if (p->room != NULL && p->at == at && p->n == n)
		return 0;
	if (n > p->cap) {
		p->room = acc_alloc(&c->j->mem, n * sizeof *p->room);
		p->cap = n;
	}
	p->at = at;
	p->n = n;
	d->v = p->room;
	if (p->room == NULL)
		return ACC_ENOMEM;
	p->from->wild = p->from->beyond = false;
	int rc = acc_held_read(c->j, p->from, at, n, p->room);
	p->to->wild = p->from->wild;
	p->to->beyond = p->from->beyond;
	return rc;
}

/* What a part says outlives its memory. */
static void
keep(struct cutter *c, const struct acc_tally *before)
{
	for (uint32_t k = 0; k < c->j->nresult; k++) {
		struct acc_audited *v = &c->j->result[k];
		struct acc_tally *t = &c->j->tally[k];
		if (v->skip != NULL && !t->kept)
			v->skip = acc_arena_copy(&c->j->mem, v->skip, strlen(v->skip));
		if (t->cause != NULL && before[k].cause != t->cause)
			t->cause = acc_arena_copy(&c->j->mem, t->cause, strlen(t->cause));
		t->kept |= v->skip != NULL;
	}
}

static bool
all_skipped(const struct acc_job *j)
{
	for (uint32_t k = 0; k < j->nresult; k++)
		if (j->result[k].skip == NULL)
			return false;
	return true;
}

static int
test_part(struct cutter *c, size_t part, struct acc_tally *before)
{
	for (size_t i = 0; i < c->n; i++)
		if (place(c, &c->list[i], part) < 0)
			return ACC_EIO;
	memcpy(before, c->j->tally, c->j->nresult * sizeof *before);
	c->part.bad = NULL;
	acc_job_test(&c->part, c->op);
	keep(c, before);
	acc_arena_reset(&c->part.mem);
	return 0;
}

/* --- how much of it --- */

static double
cost(const struct cutter *c)
{
	static const struct {
		const char *cls;
		double each;
	} table[] = {{"arithmetic", 1}, {"move", 2}, {"cast", 1}, {"norm", 3}, {"softmax", 4},
		{"reduce", 2}, {"activation", 4}, {"function", 8}};
	for (size_t i = 0; i < sizeof table / sizeof *table && c->cut.work == 0; i++)
		if (strcmp(table[i].cls, c->op->cls) == 0)
			return table[i].each;
	return c->cut.work > 0 ? c->cut.work : 10;
}

struct sizes {
	double n, bytes;
};

static int
size(void *arg, struct acc_held *h)
{
	struct sizes *s = arg;
	s->n += (double)h->d.n;
	s->bytes += h->data ? (double)h->d.n * (double)acc_dtypes[h->ref.dtype].size : 0;
	return 0;
}

/* How many parts are looked at. */
static size_t
affordable(const struct cutter *c)
{
	const struct acc_job *j = c->j;
	const struct acc_pass_of *p = j->backward ? &j->bwd : &j->fwd;
	struct sizes out = {0}, own = {0}, all = {0};
	acc_each_held(j->fwd.out, j->fwd.nout, size, &out);
	acc_each_held(p->in, p->nin, size, &own);
	acc_each_held(p->kw, p->nkw, size, &own);
	acc_each_held(p->out, p->nout, size, &own);
	acc_each_tensor(c->j, size, &all);
	/* A gradient takes two evaluations or three, and its own sums. */
	double evals = j->backward ? 1 + 2 * (double)j->nresult : 1;
	double ns = out.n * (cost(c) * evals + 2 + (j->backward ? 6 * (double)j->nresult : 0)) + all.n;
	double share = (j->backward ? BUDGET_BACKWARD : BUDGET_FORWARD) * own.bytes / ns;
	size_t n = share >= 1 ? c->parts : (size_t)((double)c->parts * share);
	size_t least = cost(c) > 100 ? FEW : FEWEST;
	n = n < least ? least : n;
	return j->reader->all || n > c->parts ? c->parts : n;
}

/* Whether there are any. */
static int
share(struct cutter *c, bool *any)
{
	struct acc_job *j = c->j;
	struct acc_shared *s = acc_alloc(&j->mem, (j->nresult + 1) * sizeof *s);
	*any = false;
	if (s == NULL)
		return ACC_ENOMEM;
	memset(s, 0, (j->nresult + 1) * sizeof *s);
	for (uint32_t k = 0; k < j->nresult; k++) {
		struct piece *p = gradient(c, k);
		if (p == NULL || !is_shared(c, p))
			continue;
		s[k].on = true;
		if (p->from->d.n > LARGEST)
			j->result[k].skip = "too large to be recomputed";
		else if (acc_sums_start(&c->t.r, p->from->d.n, &s[k].sums) < 0)
			return ACC_ENOMEM;
		*any = true;
	}
	c->part.shared = s;
	return 0;
}

static int
settle(struct cutter *c, uint32_t k)
{
	struct acc_job *j = c->j;
	struct acc_shared *s = &c->part.shared[k];
	struct acc_held *h = gradient(c, k)->from;
	struct acc_dense gin = h->d;
	struct acc_tally *t = &j->tally[k];
	struct acc_adjoint a = {.t = &c->t, .gin = &gin, .unit = s->unit, .work = s->work,
		.spots = &t->spots};
	if (h->pay != NULL) {
		gin.v = acc_alloc(&j->mem, gin.n * sizeof *gin.v);
		if (gin.v == NULL || acc_held_read(j, h, 0, gin.n, gin.v) < 0)
			return ACC_EIO;
	}
	acc_adjoint_compare(&a, &s->sums);
	t->err = a.err;
	t->coarse = a.coarse;
	t->skipped = a.skipped;
	t->parts = 1;
	t->far = acc_far_off(&a.err, j->result[k].low);
	t->cause = a.cause;
	j->result[k].part = 1;
	return 0;
}

static int
run(struct cutter *c)
{
	struct acc_job *j = c->j;
	struct acc_tally *before = acc_alloc(&j->mem, (j->nresult + 1) * sizeof *before);
	bool shared = false;
	if (before == NULL || (j->backward && share(c, &shared) < 0))
		return ACC_ENOMEM;
	size_t some = affordable(c), next = 0;
	int rc = 0;
	c->part.mem = j->reader->room;
	for (size_t k = 0; k < c->parts && rc == 0 && !all_skipped(j); k++) {
		bool look = some == c->parts || k == next * (c->parts - 1) / (some - 1);
		next += look;
		c->part.shared_only = !look;
		if (look || shared)
			rc = test_part(c, k, before);
	}
	j->reader->room = c->part.mem;
	for (uint32_t k = 0; k < j->nresult && rc == 0; k++) {
		j->result[k].part = (double)some / (double)c->parts;
		if (shared && c->part.shared[k].on && j->result[k].skip == NULL)
			rc = settle(c, k);
	}
	return rc;
}

static void
reason(struct acc_job *j, struct cutter *c)
{
	const char *why = "out of memory";
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].from->err != NULL)
			why = c->list[i].from->err;
	acc_job_skip(j, why);
}

bool
acc_job_cut(struct acc_job *j, const struct acc_op *op)
{
	struct cutter c = {.j = j, .op = op};
	if (op->cut == NULL || acc_trial_open(&c.t, j, op) < 0 || op->cut(&c.t.r, &c.cut) < 0 ||
		c.cut.lead > c.t.r.rec[0].ndim || copy(&c) < 0)
		return false;
	c.out = &c.t.r.rec[0];
	if (!choose(&c))
		return false;
	if (run(&c) < 0)
		reason(j, &c);
	return true;
}

/* --- what rows of the table say --- */

int
acc_cut_point(struct acc_replay *r, struct acc_cut *c)
{
	c->lead = r->rec[0].ndim;
	return 0;
}
