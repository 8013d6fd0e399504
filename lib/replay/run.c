/* One call, from its records to its results. */
#include "replay/impl.h"

static int
missing(void *arg, struct acc_held *h)
{
	const char **why = arg;
	if (h->err != NULL)
		*why = h->err;
	else if (h->d.v == NULL && h->d.n > 0)
		*why = "an input was recorded without data";
	else if (h->d.dtype == ACC_NODTYPE || acc_dtypes[h->d.dtype].cls == 'C')
		*why = h->d.dtype == ACC_NODTYPE ? "an input's dtype is unknown" : "complex numbers";
	bool wide = h->d.dtype == ACC_I64 || h->d.dtype == ACC_U64;
	for (size_t i = 0; wide && h->d.v != NULL && i < h->d.n && *why == NULL; i++)
		if (fabs(h->d.v[i]) >= 0x1p53)
			*why = "integers beyond 2^53";
	return *why != NULL;
}

static int
unread(void *arg, struct acc_held *h)
{
	*(bool *)arg |= h->err != NULL;
	return 0;
}

void
acc_job_skip(struct acc_job *j, const char *why)
{
	for (uint32_t k = 0; k < j->nresult; k++)
		j->result[k].skip = why;
}

/* Results refer to their record also where nothing comes of them. */
struct numbering {
	struct acc_job *j;
	uint32_t n;
};

static int
number(void *arg, struct acc_held *h)
{
	struct numbering *n = arg;
	if (n->n < n->j->nresult)
		n->j->result[n->n++].line = h->line;
	return 0;
}

void
acc_job_run(struct acc_job *j)
{
	const struct acc_op *op = acc_op_find(j->op);
	const char *why = j->bad;
	struct acc_trial t;
	const struct acc_pass_of *p = j->backward ? &j->bwd : &j->fwd;
	struct numbering n = {j, 0};
	acc_each_held(p->out, p->nout, number, &n);
	if (why == NULL && op == NULL)
		why = "unknown operator";
	if (why == NULL && j->backward && j->fwd.nout == 0)
		why = "its forward call was not recorded";
	if (why == NULL)
		acc_each_held(j->fwd.in, j->fwd.nin, missing, &why);
	if (why == NULL)
		acc_each_held(j->fwd.kw, j->fwd.nkw, missing, &why);
	if (why == NULL && acc_trial_start(&t, j, op) < 0)
		why = t.r.why;
	acc_each_held(j->fwd.in, j->fwd.nin, unread, &j->unread);
	acc_each_held(j->fwd.kw, j->fwd.nkw, unread, &j->unread);
	acc_each_held(j->fwd.out, j->fwd.nout, unread, &j->unread);
	acc_each_held(j->bwd.in, j->bwd.nin, unread, &j->unread);
	acc_each_held(j->bwd.out, j->bwd.nout, unread, &j->unread);
	if (why != NULL)
		acc_job_skip(j, why);
	else if (j->backward)
		acc_backward(&t);
	else
		acc_forward(&t);
}
