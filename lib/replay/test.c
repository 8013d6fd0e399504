/* The test of a call whose tensors are in memory, if these can be computed with. */
#include "kernel/row.h"
#include "replay/impl.h"

static const struct acc_dense *
first_output(const struct acc_audit_job *j)
{
	const struct acc_value *out = j->fwd.nout > 0 ? &j->fwd.out[0] : NULL;
	return out != NULL && out->type == ACC_A_TENSOR ? out->t : NULL;
}

/* Whole numbers that no double holds: what moves, compares or picks them is as right with their 53 leading bits; where
 * the result is of a float dtype, they are cast to it first. A cast to other whole numbers keeps the bits that are lost. */
static bool
takes_any(const struct acc_audit_job *j, const struct acc_op *op)
{
	const struct acc_dense *out = first_output(j);
	if (j->backward || out == NULL)
		return false;
	static const char *const cls[] = {"move", "reduce", "compare", "activation"};
	bool picks = acc_word_in(op->names, acc_str("clamp")) ||
		     acc_word_in(op->names, acc_str("maximum")) ||
		     acc_word_in(op->names, acc_str("minimum"));
	for (size_t i = 0; i < sizeof cls / sizeof *cls; i++)
		picks |= strcmp(op->cls, cls[i]) == 0;
	return acc_is_float(out->dtype) || (op->rounding == ACC_EXACT && picks);
}

static int
to_result(void *arg, struct acc_held *h)
{
	const struct acc_dense *out = arg;
	for (size_t i = 0; h->beyond && acc_is_float(out->dtype) && h->d.v != NULL &&
			   h->pay == NULL && i < h->d.n;
		i++)
		h->d.v[i] = acc_round_to(out->dtype, h->d.v[i]);
	return 0;
}

struct lack {
	const char *why;
	bool any; /* see above */
};

static int
missing(void *arg, struct acc_held *h)
{
	struct lack *l = arg;
	const char **why = &l->why;
	if (h->err != NULL)
		*why = h->err;
	else if (h->d.v == NULL && h->d.n > 0)
		*why = "an input was recorded without data";
	else if (h->d.dtype == ACC_NODTYPE || acc_dtype_of(h->d.dtype)->cls == 'C')
		*why = h->d.dtype == ACC_NODTYPE ? "an input's dtype is unknown"
						 : "complex numbers";
	else if (h->beyond && !l->any)
		*why = "integers beyond 2^53";
	return *why != NULL;
}

/* See ACC_COMPLEX. A gradient of complex numbers is along their parts, as that of real ones is. */
static int
to_parts(void *arg, struct acc_held *h)
{
	struct acc_dense *d = &h->d;
	(void)arg;
	if (d->z == NULL || d->ndim == ACC_DENSE_DIMS)
		return 0;
	d->dtype = acc_component(d->dtype);
	d->shape[d->ndim++] = 2;
	d->n *= 2;
	d->v = d->z;
	d->z = NULL;
	return 0;
}

void
acc_audit_job_test(struct acc_audit_job *j, const struct acc_op *op)
{
	struct acc_trial t;
	struct lack lack = {j->bad, takes_any(j, op)};
	if ((op->flags & ACC_COMPLEX) != 0)
		acc_each_tensor(j, to_parts, NULL);
	if (lack.why == NULL && j->backward && j->fwd.nout == 0)
		lack.why = "its forward call was not recorded";
	if (lack.why == NULL)
		acc_each_held(j->fwd.in, j->fwd.nin, missing, &lack);
	if (lack.why == NULL)
		acc_each_held(j->fwd.kw, j->fwd.nkw, missing, &lack);
	const char *why = lack.why;
	if (why == NULL && lack.any) {
		acc_each_held(j->fwd.in, j->fwd.nin, to_result, (void *)(uintptr_t)first_output(j));
		acc_each_held(j->fwd.kw, j->fwd.nkw, to_result, (void *)(uintptr_t)first_output(j));
	}
	if (why == NULL && acc_trial_start(&t, j, op) < 0)
		why = t.r.why;
	if (why != NULL)
		acc_audit_job_skip(j, why);
	else if (j->backward)
		acc_backward(&t);
	else
		acc_forward(&t);
}
