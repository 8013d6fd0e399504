/* Large calls in parts: along the leading dimensions of the outputs that the operator does not
 * couple, each part is an ordinary small call, whose tensors are runs of the large ones. What is
 * too dear to be looked at all over is looked at here and there. */
#include "acc/say.h"
#include "replay/cut.h"

enum {
	FEWEST = 8,         /* parts that are looked at in any case */
	FEW = 2,            /* if they are very dear */
	MOST_SUMS = 1 << 23 /* elements of a gradient that all parts add to */
};
/* Nanoseconds that testing may take for each byte of the call's own tensors. */
#define BUDGET_FORWARD 2.5
#define BUDGET_BACKWARD 0.3

/* --- one part --- */

static int
move_to(struct acc_cutter *c, struct acc_piece *p, size_t part)
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
		d->shape[e] = p->whole || o > c->dim ? p->shape[e]
			      : o < c->dim           ? 1
			      : p->step[o] == 0      ? p->shape[e]
						     : len;
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
keep(struct acc_cutter *c, const struct acc_tally *before)
{
	for (uint32_t k = 0; k < c->j->nresult; k++) {
		struct acc_audited *v = &c->j->result[k];
		struct acc_tally *t = &c->j->tally[k];
		if (v->skip != NULL && !t->kept)
			v->skip = acc_arena_copy(&c->j->mem, v->skip, strlen(v->skip));
		if (t->cause != NULL && before[k].cause != t->cause)
			t->cause = acc_say_copy(&c->j->mem, &c->part.mem, t->cause);
		t->kept |= v->skip != NULL;
	}
}

static bool
all_skipped(const struct acc_audit_job *j)
{
	for (uint32_t k = 0; k < j->nresult; k++)
		if (j->result[k].skip == NULL)
			return false;
	return true;
}

static int
test_part(struct acc_cutter *c, size_t part, struct acc_tally *before)
{
	for (size_t i = 0; i < c->n; i++)
		if (move_to(c, &c->list[i], part) < 0)
			return ACC_EIO;
	memcpy(before, c->j->tally, c->j->nresult * sizeof *before);
	c->part.bad = NULL;
	acc_audit_job_test(&c->part, c->op);
	keep(c, before);
	acc_arena_reset(&c->part.mem);
	return 0;
}

/* --- how much of it --- */

static double
cost(const struct acc_cutter *c)
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
	s->bytes += h->data ? (double)h->d.n * (double)acc_dtype_of(h->ref.dtype)->size : 0;
	return 0;
}

/* How many parts are looked at. */
static size_t
affordable(const struct acc_cutter *c)
{
	const struct acc_audit_job *j = c->j;
	const struct acc_pass_of *p = j->backward ? &j->bwd : &j->fwd;
	struct sizes out = {0}, own = {0}, all = {0};
	acc_each_held(j->fwd.out, j->fwd.nout, size, &out);
	acc_each_held(p->in, p->nin, size, &own);
	acc_each_held(p->kw, p->nkw, size, &own);
	acc_each_held(p->out, p->nout, size, &own);
	acc_each_tensor(c->j, size, &all);
	/* A gradient takes two evaluations or three, and its own sums. */
	double evals = j->backward ? 1 + 2 * (double)j->nresult : 1;
	double ns = out.n * (cost(c) * evals + 2 + (j->backward ? 6 * (double)j->nresult : 0)) +
		    all.n;
	double share = (j->backward ? BUDGET_BACKWARD : BUDGET_FORWARD) * own.bytes / ns;
	size_t n = share >= 1 ? c->parts : (size_t)((double)c->parts * share);
	size_t least = cost(c) > 100 ? FEW : FEWEST;
	n = n < least ? least : n;
	return j->reader->all || n > c->parts ? c->parts : n;
}

/* Whether there are any. */
static int
share(struct acc_cutter *c, bool *any)
{
	struct acc_audit_job *j = c->j;
	struct acc_shared *s = acc_alloc(&j->mem, (j->nresult + 1) * sizeof *s);
	*any = false;
	if (s == NULL)
		return ACC_ENOMEM;
	memset(s, 0, (j->nresult + 1) * sizeof *s);
	for (uint32_t k = 0; k < j->nresult; k++) {
		struct acc_piece *p = acc_cut_gradient(c, k);
		if (p == NULL || !acc_cut_shared(c, p))
			continue;
		s[k].on = true;
		if (p->from->d.n > MOST_SUMS)
			j->result[k].skip = "too large to be recomputed";
		else if (acc_sums_start(&c->t.r, p->from->d.n, &s[k].sums) < 0)
			return ACC_ENOMEM;
		*any = true;
	}
	c->part.shared = s;
	return 0;
}

static int
settle(struct acc_cutter *c, uint32_t k)
{
	struct acc_audit_job *j = c->j;
	struct acc_shared *s = &c->part.shared[k];
	struct acc_held *h = acc_cut_gradient(c, k)->from;
	struct acc_dense gin = h->d;
	struct acc_tally *t = &j->tally[k];
	struct acc_adjoint a = s->how;
	a.t = &c->t;
	a.gin = &gin;
	a.held = h;
	a.spots = &t->spots;
	a.first = 0;
	if (h->pay != NULL) {
		gin.v = acc_alloc(&j->mem, gin.n * sizeof *gin.v);
		if (gin.v == NULL || acc_held_read(j, h, 0, gin.n, gin.v) < 0)
			return ACC_EIO;
	}
	acc_adjoint_compare(&a, &s->sums);
	t->err = a.err;
	t->coarse = a.coarse;
	t->left = a.left;
	t->parts = 1;
	t->far = acc_far_off(&a.err, j->result[k].low);
	if (t->far && j->again)
		j->result[k].skip = acc_skip_again;
	t->cause = a.cause;
	j->result[k].part = 1;
	return 0;
}

static int
run(struct acc_cutter *c)
{
	struct acc_audit_job *j = c->j;
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
reason(struct acc_audit_job *j, struct acc_cutter *c)
{
	const char *why = ACC_NOMEM_TEXT;
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i].from->err != NULL)
			why = c->list[i].from->err;
	acc_audit_job_skip(j, why);
}

bool
acc_audit_job_cut(struct acc_audit_job *j, const struct acc_op *op)
{
	struct acc_cutter c = {.j = j, .op = op};
	if (op->cut == NULL || acc_trial_open(&c.t, j, op) < 0 || op->cut(&c.t.r, &c.cut) < 0 ||
		c.cut.lead > c.t.r.rec[0].ndim)
		return false;
	c.out = &c.t.r.rec[0];
	if (!acc_cut_plan(&c))
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
