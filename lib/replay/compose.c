#include "replay/compose.h"

#include "replay/impl.h"

int
acc_compose(struct acc_replay *r, const struct acc_part *p, struct acc_dense *out)
{
	struct acc_replay sub = {.op = acc_op_find(acc_str(p->name)),
		.name = acc_str(p->name),
		.info = acc_op_info_of(acc_str(p->name)),
		.in = p->in,
		.kw = p->kw,
		.nin = p->nin,
		.nkw = p->nkw,
		.nrec = p->nout,
		.gradient = r->gradient,
		.mem = r->mem};
	struct acc_dense *none = NULL;
	if (sub.op == NULL)
		return acc_cannot(r, "unknown operator");
	sub.rec = p->rec;
	if (p->rec == NULL) {
		none = acc_alloc(r->mem, p->nout * sizeof *none);
		for (uint32_t k = 0; none != NULL && k < p->nout; k++) {
			none[k] = out[k];
			none[k].v = none[k].mag = NULL;
		}
		sub.rec = none;
	}
	if (sub.rec == NULL)
		return acc_cannot(r, ACC_NOMEM_TEXT);
	int rc = acc_replay_eval(&sub, out);
	r->rounds |= sub.rounds;
	return rc < 0 ? acc_cannot(r, sub.why) : 0;
}

int
acc_between(struct acc_replay *r, enum acc_dtype t, const int64_t *shape, uint32_t ndim, bool mag,
	struct acc_dense *out)
{
	*out = (struct acc_dense){.dtype = t, .ndim = ndim, .n = 1};
	for (uint32_t d = 0; d < ndim; d++) {
		out->shape[d] = shape[d];
		out->n *= (size_t)shape[d];
	}
	out->v = acc_doubles(r, out->n);
	out->mag = mag ? acc_doubles(r, out->n) : NULL;
	for (size_t i = 0; out->mag != NULL && i < out->n; i++)
		out->mag[i] = 0;
	return out->v == NULL || (mag && out->mag == NULL) ? ACC_EUNSUP : 0;
}

struct acc_value
acc_of_tensor(const struct acc_dense *d)
{
	/* Evaluations do not write to their arguments. */
	return (struct acc_value){.type = ACC_A_TENSOR, .t = (struct acc_dense *)(uintptr_t)d};
}

struct acc_value
acc_of_float(double x)
{
	return (struct acc_value){.type = ACC_A_FLOAT, .f = x};
}

struct acc_value
acc_of_int(int64_t x)
{
	return (struct acc_value){.type = ACC_A_INT, .i = x};
}

struct acc_value
acc_named(const char *name, struct acc_value v)
{
	v.name = acc_str(name);
	return v;
}

uint32_t
acc_arg_count(const struct acc_replay *r, const char *name)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v == NULL)
		return 0;
	return v->type == ACC_A_LIST ? v->n : v->type == ACC_A_TENSOR ? 1 : 0;
}

int
acc_arg_item(struct acc_replay *r, const char *name, uint32_t k, const struct acc_dense **out)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v != NULL && v->type == ACC_A_LIST)
		v = k < v->n ? &v->item[k] : NULL;
	else if (k > 0)
		v = NULL;
	if (v == NULL || v->type == ACC_A_NONE)
		return 0;
	if (v->type != ACC_A_TENSOR || v->t->v == NULL)
		return acc_cannot(r, "its tensors were not recorded");
	*out = v->t;
	return 1;
}
