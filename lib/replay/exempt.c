/* Why an output may be right although it is not what the recorded inputs give. */
#include "replay/compose.h"
#include "replay/impl.h"

/* Is the call one that writes to its first argument? */
static bool
writes(struct acc_trial *t)
{
	bool inplace = false;
	if (acc_op_in_place(t->j->op))
		return true;
	const char *why = t->r.why;
	int rc = strstr(t->r.op->sig, " inplace") == NULL
			 ? 0
			 : acc_arg_bool(&t->r, "inplace", &inplace);
	t->r.why = why;
	return rc > 0 && inplace;
}

static bool
same(const struct acc_value *v, uint32_t k, const struct acc_dense *out)
{
	if (v != NULL && v->type == ACC_A_LIST)
		v = k < v->n ? &v->item[k] : NULL;
	if (v == NULL || v->type != ACC_A_TENSOR)
		return false;
	const struct acc_dense *x = v->t;
	return x->n == out->n && x->dtype == out->dtype && x->v != NULL && out->v != NULL &&
	       x->n > 0 && memcmp(x->v, out->v, x->n * sizeof *x->v) == 0;
}

/* Where the recorder saved the input after the call, it is the output, and tells nothing. */
static bool
overwritten(struct acc_trial *t, const struct acc_dense *out, uint32_t k)
{
	const struct acc_replay *r = &t->r;
	bool found = r->nin > 0 && same(&r->in[0], k, out);
	for (uint32_t i = 0; i < r->nkw && !found; i++) {
		struct acc_str name = r->kw[i].name;
		found = (acc_str_is(name, "out") || acc_str_is(name, "input") ||
				acc_str_is(name, "self")) &&
			same(&r->kw[i], k, out);
	}
	return found && writes(t);
}

/* What the catalogue says of it. */
static bool
is(const struct acc_trial *t, enum acc_op_flag flag)
{
	return t->r.info != NULL && (t->r.info->flags & flag) != 0;
}

/* Are there arguments that were not recorded, because they may have been keywords? */
static bool
left_out(const struct acc_trial *t)
{
	uint32_t words = 1;
	for (const char *p = t->r.op->sig; *p != '\0'; p++)
		words += *p == ' ';
	return t->j->positional && t->r.nkw == 0 && t->r.nin < words && is(t, ACC_OP_KEYWORDS);
}

static int
squares(void *arg, struct acc_held *h)
{
	double *sum = arg;
	for (size_t i = 0;
		acc_is_float(h->d.dtype) && h->d.v != NULL && h->pay == NULL && i < h->d.n; i++)
		*sum += isfinite(h->d.v[i]) ? h->d.v[i] * h->d.v[i] : 0;
	return 0;
}

/* Does a variance, or a length, overflow on the way, in f32 or what is wider? */
static bool
squares_overflow(const struct acc_trial *t)
{
	double sum = 0;
	if (strcmp(t->r.op->cls, "norm") != 0 || t->nout == 0)
		return false;
	acc_each_held(t->j->fwd.in, t->j->fwd.nin, squares, &sum);
	return !(sum < fmax(acc_max_of(ACC_F32), acc_max_of(t->out[0].dtype)) / 4);
}

const char *
acc_exempt(struct acc_trial *t, const struct acc_formed *f, uint32_t k)
{
	if (overwritten(t, &f->rec[k], k))
		return "it works in place, and its input was recorded after it";
	if (t->r.module && is(t, ACC_OP_NUMBERS))
		return "module hyperparameters were not recorded, and the defaults do not reproduce the output";
	if (left_out(t))
		return "keywords were not recorded, and without them its output is another";
	if (squares_overflow(t))
		return "squares of its input are no numbers of its dtype";
	return NULL;
}
