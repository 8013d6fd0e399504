/* A call and what it should give: its outputs as they were recorded, and computed again. */
#include "replay/impl.h"

struct gather {
	struct acc_held **list;
	uint32_t n, cap;
};

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
		o[i] = t->r.rec[i];
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
acc_trial_open(struct acc_trial *t, struct acc_audit_job *j, const struct acc_op *op)
{
	const struct acc_pass_of *p = &j->fwd;
	uint32_t n = 0;
	*t = (struct acc_trial){.j = j,
		.r = {.op = op,
			.in = p->in,
			.kw = p->kw,
			.nin = p->nin,
			.nkw = p->nkw,
			.mem = &j->mem,
			.memos = j->reader->memos,
			.info = acc_op_info_of(j->op),
			.name = acc_op_name(j->op),
			.module = acc_op_is_module(j->op) || acc_str_starts(j->op, "Primitive.") ||
				  acc_str_starts(j->op, "torch.nn.")}};
	acc_each_held(p->out, p->nout, acc_count_held, &n);
	struct gather g = {acc_alloc(&j->mem, n * sizeof(struct acc_held *)), 0, n};
	struct acc_dense *rec = acc_alloc(&j->mem, n * sizeof *rec);
	struct acc_outline *out = acc_alloc(&j->mem, n * sizeof *out);
	if (g.list == NULL || rec == NULL || out == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	acc_each_held(p->out, p->nout, collect, &g);
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_held *h = g.list[i];
		rec[i] = h->d;
		out[i] = (struct acc_outline){h->d.dtype, h->d.ndim, rec[i].shape, h->d.n, h->line,
			h->first, h->err, (const struct acc_sealed *)(const void *)h->d.v, h};
	}
	t->out = out;
	t->nout = n;
	t->r.rec = rec;
	t->r.nrec = n;
	if (n == 0)
		return acc_cannot(&t->r, "no output was recorded");
	for (uint32_t i = 0; i < n; i++) {
		/* Of a record that does not hold together the shape is known, and no element: room is made for none. */
		uint64_t whole = 0;
		if (rec[i].v == NULL &&
			(rec[i].n > ACC_MAX_UNSEEN ||
				!acc_count(rec[i].shape, rec[i].ndim, &whole) || whole != rec[i].n))
			return acc_cannot(&t->r, "its output was recorded without data");
	}
	return 0;
}

int
acc_trial_product(struct acc_trial *t)
{
	t->product = (struct acc_product){.alpha = 1, .beta = 1};
	int rc = t->r.op->product(&t->r, &t->r.rec[0], &t->product);
	t->large = rc == 0 && !t->j->form && acc_product_large(&t->product, t->r.op->streams);
	return rc;
}

int
acc_trial_start(struct acc_trial *t, struct acc_audit_job *j, const struct acc_op *op)
{
	if (acc_trial_open(t, j, op) < 0 || (op->product != NULL && acc_trial_product(t) < 0))
		return ACC_EUNSUP;
	if (t->large)
		return 0;
	struct acc_formed *f = acc_alloc(t->r.mem, sizeof *f);
	if (f == NULL || (f->ref = acc_trial_outputs(t, true)) == NULL)
		return acc_cannot(&t->r, ACC_NOMEM_TEXT);
	f->rec = t->r.rec;
	t->formed = f;
	return acc_replay_eval(&t->r, f->ref);
}
