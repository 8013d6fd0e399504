/* What a row's evaluation asks of its arguments. */
#include "replay/impl.h"
#include "acc/say.h"

int
acc_cannot(struct acc_replay *r, const char *why)
{
	if (r->why == NULL)
		r->why = why;
	return ACC_EUNSUP;
}

/* The next word of a signature, without its mode; false at the end. */
static bool
next_word(const char **p, struct acc_str *names, struct acc_str *mode)
{
	while (**p == ' ')
		(*p)++;
	if (**p == '\0')
		return false;
	names->p = *p;
	names->n = (uint32_t)strcspn(*p, " :");
	*p += names->n;
	*mode = (struct acc_str){*p, 0};
	if (**p == ':') {
		mode->p = *p + 1;
		mode->n = (uint32_t)strcspn(*p + 1, " ");
		*p += mode->n + 1;
	}
	return true;
}

/* Is s one of "a|b"? */
static bool
one_of(struct acc_str names, struct acc_str s)
{
	while (names.n > 0) {
		uint32_t n = 0;
		while (n < names.n && names.p[n] != '|')
			n++;
		if (acc_str_eq((struct acc_str){names.p, n}, s))
			return true;
		n += n < names.n;
		names.p += n;
		names.n -= n;
	}
	return false;
}

static struct acc_str
first_of(struct acc_str names)
{
	uint32_t n = 0;
	while (n < names.n && names.p[n] != '|')
		n++;
	return (struct acc_str){names.p, n};
}

struct acc_str
acc_sig_mode(const struct acc_op *op, struct acc_str kw, uint32_t pos, struct acc_str *name)
{
	const char *p = op->sig;
	struct acc_str names, mode;
	for (uint32_t i = 0; next_word(&p, &names, &mode); i++) {
		bool star = names.p[0] == '*';
		if (star) {
			names.p++;
			names.n--;
		}
		if (kw.n > 0 ? one_of(names, kw) : i == pos || (star && i < pos)) {
			*name = first_of(names);
			return mode;
		}
	}
	*name = (struct acc_str){"", 0};
	return *name;
}

/* The signature's word for a name: its position, its other names, whether it takes the rest. */
static bool
look_up(const struct acc_replay *r, const char *name, uint32_t *pos, struct acc_str *names,
	bool *star)
{
	const char *p = r->op->sig;
	struct acc_str mode;
	for (uint32_t i = 0; next_word(&p, names, &mode); i++) {
		*star = names->p[0] == '*';
		if (*star) {
			names->p++;
			names->n--;
		}
		*pos = i;
		if (one_of(*names, acc_str(name)))
			return true;
	}
	return false;
}

static const struct acc_value *
find(const struct acc_replay *r, const char *name, bool *star, uint32_t *pos)
{
	struct acc_str names = {"", 0};
	if (!look_up(r, name, pos, &names, star))
		return NULL;
	for (uint32_t i = 0; i < r->nkw; i++)
		if (one_of(names, r->kw[i].name)) {
			*star = false;
			return &r->kw[i];
		}
	return *pos < r->nin ? &r->in[*pos] : NULL;
}

const struct acc_value *
acc_arg(const struct acc_replay *r, const char *name)
{
	bool star;
	uint32_t pos;
	const struct acc_value *v = find(r, name, &star, &pos);
	return v == NULL || v->type == ACC_A_NONE ? NULL : v;
}

static int
misfit(struct acc_replay *r, const char *name, const char *what)
{
	char *s = acc_say(r->mem, "its argument %s is not %s", name, what);
	return acc_cannot(r, s == NULL ? ACC_NOMEM_TEXT : s);
}

/* A number as any argument may give it. */
static bool
as_number(const struct acc_value *v, double *out, bool *whole)
{
	*whole = true;
	switch (v->type) {
	case ACC_A_INT:
		*out = (double)v->i;
		return true;
	case ACC_A_BOOL:
		*out = v->b;
		return true;
	case ACC_A_FLOAT:
		*out = v->f;
		*whole = false;
		return true;
	case ACC_A_TENSOR:
		if (v->t->n != 1 || v->t->v == NULL)
			return false;
		*out = v->t->v[0];
		*whole = !acc_is_float(v->t->dtype);
		return true;
	default:
		return false;
	}
}

int
acc_arg_int(struct acc_replay *r, const char *name, int64_t *out)
{
	const struct acc_value *v = acc_arg(r, name);
	double f;
	bool whole;
	if (v == NULL)
		return 0;
	if (v->type == ACC_A_INT) {
		*out = v->i;
		return 1;
	}
	if (!as_number(v, &f, &whole) || !whole || fabs(f) > 9e15)
		return misfit(r, name, "an integer");
	*out = (int64_t)f;
	return 1;
}

int
acc_arg_float(struct acc_replay *r, const char *name, double *out)
{
	const struct acc_value *v = acc_arg(r, name);
	bool whole;
	if (v == NULL)
		return 0;
	return as_number(v, out, &whole) ? 1 : misfit(r, name, "a number");
}

int
acc_arg_bool(struct acc_replay *r, const char *name, bool *out)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v == NULL)
		return 0;
	if (v->type != ACC_A_BOOL && v->type != ACC_A_INT)
		return misfit(r, name, "true or false");
	*out = v->type == ACC_A_BOOL ? v->b : v->i != 0;
	return 1;
}

int
acc_arg_text(struct acc_replay *r, const char *name, struct acc_str *out)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v == NULL)
		return 0;
	if (v->type != ACC_A_TEXT)
		return misfit(r, name, "a text");
	*out = v->s;
	return 1;
}

int
acc_arg_tensor(struct acc_replay *r, const char *name, const struct acc_dense **out)
{
	const struct acc_value *v = acc_arg(r, name);
	if (v == NULL)
		return 0;
	if (v->type != ACC_A_TENSOR)
		return misfit(r, name, "a tensor");
	if (v->t->v == NULL)
		return misfit(r, name, "recorded with its data");
	*out = v->t;
	return 1;
}

int
acc_need_tensor(struct acc_replay *r, const char *name, const struct acc_dense **out)
{
	int rc = acc_arg_tensor(r, name, out);
	return rc == 0 ? misfit(r, name, "recorded") : rc;
}

static int
tensor_ints(struct acc_replay *r, const char *name, const struct acc_dense *t, int64_t *out,
	uint32_t max, uint32_t *n)
{
	if (t->n > max)
		return misfit(r, name, "that short");
	for (size_t i = 0; i < t->n; i++)
		out[i] = fabs(t->v[i]) > 9e15 ? 0 : (int64_t)t->v[i];
	*n = (uint32_t)t->n;
	return 1;
}

int
acc_arg_ints(struct acc_replay *r, const char *name, int64_t *out, uint32_t max, uint32_t *n)
{
	bool star, whole;
	uint32_t pos, count = 1;
	double f;
	const struct acc_value *v = find(r, name, &star, &pos);
	*n = 0;
	if (v == NULL || (v->type == ACC_A_NONE && !star))
		return 0;
	/* As ONNX has shapes and axes. */
	if (v != NULL && v->type == ACC_A_TENSOR && v->t->v != NULL && v->t->ndim == 1 &&
		acc_dtype_of(v->t->dtype)->cls == 'I')
		return tensor_ints(r, name, v->t, out, max, n);
	if (v->type == ACC_A_LIST || v->type == ACC_A_SLICE) {
		count = v->n;
		v = v->item;
	} else if (star) {
		count = r->nin - pos;
	}
	if (count > max)
		return misfit(r, name, "that short");
	for (uint32_t i = 0; i < count; i++) {
		if (!as_number(&v[i], &f, &whole) || !whole || fabs(f) > 9e15)
			return misfit(r, name, "made of integers");
		out[i] = v[i].type == ACC_A_INT ? v[i].i : (int64_t)f;
	}
	*n = count;
	return 1;
}

int
acc_arg_dim(struct acc_replay *r, const char *name, uint32_t ndim, int64_t dflt, uint32_t *out)
{
	int64_t d = dflt, n = ndim == 0 ? 1 : ndim;
	int rc = acc_arg_int(r, name, &d);
	if (rc < 0)
		return rc;
	if (d < -n || d >= n)
		return misfit(r, name, "a dimension of its tensor");
	*out = (uint32_t)(d < 0 ? d + n : d);
	return rc;
}

int
acc_out_shape(struct acc_replay *r, const struct acc_dense *out, const int64_t *shape,
	uint32_t ndim)
{
	bool same = out->ndim == ndim;
	for (uint32_t i = 0; same && i < ndim; i++)
		same = out->shape[i] == shape[i];
	return same ? 0
		    : acc_cannot(r,
			      "its recorded output does not have the shape that its inputs give");
}

double *
acc_doubles(struct acc_replay *r, size_t n)
{
	double *p = n > SIZE_MAX / sizeof *p ? NULL : acc_alloc(r->mem, n * sizeof *p);
	if (p == NULL)
		acc_cannot(r, ACC_NOMEM_TEXT);
	return p;
}

bool
acc_broadcast_start(struct acc_broadcast *b, const int64_t *shape, uint32_t ndim,
	const struct acc_dense *const *in, uint32_t nin)
{
	*b = (struct acc_broadcast){.ndim = ndim, .nin = nin};
	if (ndim > ACC_DENSE_DIMS || nin > ACC_BROADCAST_MAX)
		return false;
	if (ndim > 0)
		memcpy(b->shape, shape, ndim * sizeof *shape);
	for (uint32_t k = 0; k < nin; k++) {
		if (in[k]->ndim > ndim)
			return false;
		uint64_t step = 1;
		for (uint32_t d = in[k]->ndim; d-- > 0;) {
			uint32_t to = d + ndim - in[k]->ndim;
			if (in[k]->shape[d] != shape[to] && in[k]->shape[d] != 1)
				return false;
			b->step[k][to] = in[k]->shape[d] == 1 ? 0 : (int64_t)step;
			step *= (uint64_t)in[k]->shape[d];
		}
	}
	return true;
}

/* The shape that inputs are broadcast to; false: they do not fit each other. */
static bool
given_shape(const struct acc_dense *const *in, uint32_t nin, int64_t *shape, uint32_t *ndim)
{
	*ndim = 0;
	for (uint32_t k = 0; k < nin; k++)
		*ndim = in[k]->ndim > *ndim ? in[k]->ndim : *ndim;
	for (uint32_t d = 0; d < *ndim; d++) {
		shape[d] = 1;
		for (uint32_t k = 0; k < nin; k++) {
			uint32_t skip = *ndim - in[k]->ndim;
			int64_t len = d < skip ? 1 : in[k]->shape[d - skip];
			if (len != 1 && shape[d] != 1 && len != shape[d])
				return false;
			shape[d] = len == 1 ? shape[d] : len;
		}
	}
	return true;
}

static bool
same_but_ones(const int64_t *shape, uint32_t ndim, const struct acc_dense *out)
{
	uint32_t i = 0, k = 0;
	for (;; i++, k++) {
		while (i < ndim && shape[i] == 1)
			i++;
		while (k < out->ndim && out->shape[k] == 1)
			k++;
		if (i == ndim || k == out->ndim)
			return i == ndim && k == out->ndim;
		if (shape[i] != out->shape[k])
			return false;
	}
}

int
acc_broadcast_exact(struct acc_replay *r, struct acc_broadcast *b, const struct acc_dense *out,
	const struct acc_dense *const *in, uint32_t nin)
{
	int64_t own[ACC_DENSE_DIMS];
	uint32_t nd = out->ndim;
	bool good = acc_broadcast_start(b, out->shape, out->ndim, in, nin);
	/* A kernel's result may be recorded in another view: the same but for dimensions of 1. */
	if (!good && given_shape(in, nin, own, &nd) && same_but_ones(own, nd, out)) {
		struct acc_dense as_given = *out;
		as_given.ndim = nd;
		memcpy(as_given.shape, own, nd * sizeof *own);
		return acc_broadcast_exact(r, b, &as_given, in, nin);
	}
	uint32_t most = 0;
	for (uint32_t k = 0; k < nin; k++)
		most = in[k]->ndim > most ? in[k]->ndim : most;
	for (uint32_t d = 0; good && d < out->ndim; d++) {
		bool some = out->shape[d] == 1;
		for (uint32_t k = 0; k < nin; k++)
			some |= b->step[k][d] != 0 || (out->shape[d] == 0 && in[k]->n == 0);
		good = some;
	}
	return good && most == out->ndim
		       ? 0
		       : acc_cannot(r,
				 "its recorded output does not have the shape that its inputs give");
}

static void
next(struct acc_broadcast *b, uint32_t ndim)
{
	for (uint32_t d = ndim; d-- > 0;) {
		for (uint32_t k = 0; k < b->nin; k++)
			b->at[k] += (size_t)b->step[k][d];
		if (++b->idx[d] < b->shape[d])
			return;
		for (uint32_t k = 0; k < b->nin; k++)
			b->at[k] -= (size_t)(b->step[k][d] * b->shape[d]);
		b->idx[d] = 0;
	}
}

void
acc_broadcast_next(struct acc_broadcast *b)
{
	next(b, b->ndim);
}

/* Dimensions at the end in which no input is broadcast, or each that is, is so in all of them. */
size_t
acc_broadcast_run(struct acc_broadcast *b)
{
	size_t len = 1;
	for (uint32_t k = 0; k < b->nin; k++)
		b->each[k] = 2; /* not known yet */
	b->lead = b->ndim;
	while (b->lead > 0) {
		uint32_t d = b->lead - 1;
		bool fits = true;
		for (uint32_t k = 0; k < b->nin && b->shape[d] != 1; k++) {
			uint8_t each = b->step[k][d] != 0;
			fits &= b->each[k] == 2 || b->each[k] == each;
		}
		if (!fits)
			break;
		for (uint32_t k = 0; k < b->nin && b->shape[d] != 1; k++)
			b->each[k] = b->step[k][d] != 0;
		len *= (size_t)b->shape[d];
		b->lead = d;
	}
	for (uint32_t k = 0; k < b->nin; k++)
		b->each[k] = b->each[k] == 1;
	return len == 0 ? 1 : len;
}

void
acc_broadcast_skip(struct acc_broadcast *b)
{
	next(b, b->lead);
}
