/* Arguments of calls of two programs that begin a stretch and do the same: which of them differs, or, of a window whose kernel
 * does not say by how much it moves, what the shapes say of that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "acc/say.h"
#include "judge/parting.h"

#include "judge/case.h"

uint32_t
acc_part_first_step(const struct parting *p, int side)
{
	uint32_t i = 0;
	while (i < p->side[side].nstep &&
		!(p->side[side].step[i].in && acc_part_computes(p, side, i)))
		i++;
	return i < p->side[side].nstep ? i : ACC_NOCALL;
}

/* Arguments of a call: numbers, axes as they are counted from the front. */
struct arg {
	struct acc_str name;
	double v[ACC_MAXDIM];
	uint32_t n;
};
enum { ARGS = 16 };

static bool
read_value(const struct acc_val *v, bool axis, uint32_t ndim, struct arg *out)
{
	out->n = v->type == ACC_V_INTS ? v->n : 1;
	if (out->n > ACC_MAXDIM || (v->type != ACC_V_INTS && !acc_as_f64(v, &out->v[0])))
		return false;
	for (uint32_t i = 0; i < out->n; i++) {
		out->v[i] = v->type == ACC_V_INTS ? (double)v->ints[i] : out->v[0];
		out->v[i] += axis && out->v[i] < 0 ? ndim : 0;
	}
	return v->type != ACC_V_BOOL;
}

/* Those of a step, with torch's names. < 0, or how many. */
static int
read_args(struct scan *s, const struct parting *p, int side, uint32_t step, struct arg *out,
	struct acc_str *op, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const char *of = side == ACC_A ? "a." : "b.";
	const struct acc_str key = acc_str(p->side[side].step[step].name);
	const uint32_t call = p->side[side].step[step].call;
	uint32_t ndim = 0;
	int n = 0;
	for (uint32_t i = c->call[call].first; i < c->nitem && n < ARGS; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call == ACC_NOCALL || c->call[it->call].segment != c->call[call].segment ||
			(it->sides & 1 << side) == 0 || !acc_is_input(it))
			continue;
		if (c->call[it->call].key[side] == NULL ||
			strcmp(c->call[it->call].key[side], c->call[call].key[side]) != 0)
			continue;
		if (acc_case_record(c, it, &r, e) < 0)
			return e->code;
		if (!acc_str_eq(acc_get_text(r, of, "key"), key)) /* another of several in one */
			continue;
		const struct acc_val *v = acc_get(r, of, "value"), *shape = acc_get(r, of, "shape");
		if (op->n == 0)
			*op = acc_arena_str(acc_mem(s), acc_get_text(r, of, "op"));
		if (op->p == NULL)
			return acc_nomem(e);
		if (it->kind != ACC_ITEM_ARG && ndim == 0 && shape != NULL &&
			shape->type == ACC_V_INTS)
			ndim = shape->n;
		/* A tensor of one number, as the slope that a layer learns. */
		struct acc_val one = acc_f64(NAN);
		if (it->kind != ACC_ITEM_ARG && it->sides == 3 && it->count == 1 &&
			it->rms > p->may &&
			(acc_as_f64(acc_get(r, of, "s.max"), &one.f) ||
				acc_as_f64(acc_get(r, of, "stat.max"), &one.f)))
			v = &one;
		else if (it->kind != ACC_ITEM_ARG || v == NULL)
			continue;
		/* An element of a list: dim is 1, 2. */
		struct acc_str pos = acc_get_text(r, of, "pos");
		const char *dot = pos.n == 0 ? NULL : memchr(pos.p, '.', pos.n);
		if (dot != NULL)
			pos.n = (uint32_t)(dot - pos.p);
		const struct acc_str name = acc_arena_str(acc_mem(s), acc_default_name(*op, pos));
		if (name.p == NULL)
			return acc_nomem(e);
		if (!read_value(v, acc_str_is(name, "dim"), ndim, &out[n]))
			continue;
		if (n > 0 && dot != NULL && acc_str_eq(out[n - 1].name, name) &&
			out[n - 1].n < ACC_MAXDIM && out[n].n == 1)
			out[n - 1].v[out[n - 1].n++] = out[n].v[0];
		else
			out[n++].name = name;
	}
	return n;
}

/* One number stands for as many as there are axes. */
static bool
same(struct arg *x, struct arg *y)
{
	qsort(x->v, x->n, sizeof *x->v, acc_by_double);
	qsort(y->v, y->n, sizeof *y->v, acc_by_double);
	bool same = x->n == y->n || (x->n == 1 && y->n > 0) || (y->n == 1 && x->n > 0);
	for (uint32_t i = 0; i < x->n || i < y->n; i++) {
		const double a = x->v[x->n == 1 ? 0 : i], b = y->v[y->n == 1 ? 0 : i];
		if (!same)
			break;
		same = fabs(a - b) <= 0x1p-23 * fabs(b);
	}
	return same;
}

/* The shape of the first floats that a step takes, or gives: how many axes; 0: none is known. < 0. */
static int
shape_of(struct scan *s, const struct parting *p, int side, uint32_t step, bool out, int64_t *shape,
	struct acc_err *e)
{
	const struct part_side *d = &p->side[side];
	for (uint32_t i = d->step[step].value; i < d->step[step].value + d->step[step].n; i++) {
		struct acc_rec *r;
		if (d->value[i].out != out || !d->value[i].real)
			continue;
		if (acc_case_record(s->c, &s->c->item[d->value[i].item], &r, e) < 0)
			return e->code;
		const struct acc_val *v = acc_get(r, side == ACC_A ? "a." : "b.", "shape");
		if (v == NULL || v->type != ACC_V_INTS || v->n > ACC_MAXDIM)
			return 0;
		memcpy(shape, v->ints, v->n * sizeof *shape);
		return (int)v->n;
	}
	return 0;
}

/* What a window of the bench's size gives that moves by one, and the bench's by more: a kernel does not say by how much. */
static int
compare_strides(struct scan *s, const struct parting *p, uint32_t x, uint32_t y,
	const struct arg *window, struct acc_str op, const char **text, struct acc_err *e)
{
	int64_t in[ACC_MAXDIM], out[ACC_MAXDIM], bench[ACC_MAXDIM];
	const int n = shape_of(s, p, ACC_A, x, false, in, e);
	int rc = n <= 2 ? n : shape_of(s, p, ACC_A, x, true, out, e);
	bool valid = rc == n, padded = rc == n, fewer = true;
	if (n > 2 && rc == n)
		rc = shape_of(s, p, ACC_B, y, true, bench, e);
	if (rc < 0 || n <= 2 || rc != n || (window->n != 1 && (int)window->n != n - 2))
		return rc < 0 ? rc : 0;
	for (int i = 2; i < n; i++) {
		const double w = window->v[window->n == 1 ? 0 : i - 2];
		valid &= (double)out[i] == (double)in[i] - w + 1;
		padded &= out[i] == in[i];
		fewer &= bench[i] < out[i];
	}
	if (!fewer || (!valid && !padded))
		return 0;
	const struct acc_val one = acc_ctext("1");
	const char *own = acc_say(acc_mem(s), "; what %s gives is as if its stride were 1",
		p->side[ACC_A].step[x].name);
	*text = own == NULL ? NULL
			    : acc_say_default(s, p->side[ACC_A].step[x].call, op, ACC_STR("stride"),
				      &one, own, e);
	return *text == NULL ? acc_nomem(e) : 0;
}

static const char *
numbers(struct acc_arena *m, const struct arg *x)
{
	const char *t = "";
	for (uint32_t i = 0; i < x->n && t != NULL; i++)
		t = acc_arena_printf(m, "%s%s%.9g", t, i > 0 ? ", " : "", x->v[i]);
	return acc_got(t);
}

/* Do these steps call the same operator, with another argument? */
static int
compare_args(struct scan *s, const struct parting *p, uint32_t x, uint32_t y, const char **text,
	struct acc_err *e)
{
	struct arg a[ARGS], b[ARGS];
	struct acc_str op[2] = {{"", 0}, {"", 0}};
	const int n = read_args(s, p, ACC_A, x, a, &op[0], e),
		  m = n < 0 ? n : read_args(s, p, ACC_B, y, b, &op[1], e);
	if (m < 0 || op[0].n == 0 || op[1].n == 0 || acc_op_family(op[0]) != acc_op_family(op[1]))
		return m < 0 ? m : 0;
	for (int i = 0; i < n; i++)
		for (int k = 0; k < m && *text == NULL; k++) {
			if (!acc_str_eq(a[i].name, b[k].name) || same(&a[i], &b[k]))
				continue;
			*text = acc_say(acc_mem(s), "; %s of %s is %s, of %s it is %s", a[i].name.p,
				p->side[ACC_A].step[x].name, numbers(acc_mem(s), &a[i]),
				p->side[ACC_B].step[y].name, numbers(acc_mem(s), &b[k]));
			if (*text == NULL)
				return acc_nomem(e);
		}
	for (int k = 0; k < m && *text == NULL; k++)
		if (acc_str_is(b[k].name, "kernel_size")) {
			const int rc = compare_strides(s, p, x, y, &b[k], op[1], text, e);
			if (rc < 0)
				return rc;
		}
	return 0;
}

/* May a step be the one with another argument? That is the first; or of a layer the function that it calls, which gives
 * the same. */
static bool
is_first(const struct parting *p, int side, uint32_t step)
{
	const struct part_side *d = &p->side[side];
	const uint32_t first = acc_part_first_step(p, side);
	bool same = first == step;
	if (first == ACC_NOCALL || d->step[step].family != d->step[first].family)
		return same;
	for (uint32_t i = 0; i < d->step[step].n && !same; i++)
		for (uint32_t k = 0; k < d->step[first].n && !same; k++) {
			const struct part_value *v = &d->value[d->step[step].value + i],
						*w = &d->value[d->step[first].value + k];
			same = v->out && w->out && v->id != 0 && v->id == w->id;
		}
	return same;
}

int
acc_part_compare_first(struct scan *s, const struct parting *p, uint32_t *step, const char **text,
	struct acc_err *e)
{
	const bool named = p->lacks != ACC_NOCALL && p->alike;
	int rc = 0;
	for (uint32_t x = 0; x < p->side[ACC_A].nstep && rc == 0 && *text == NULL; x++)
		for (uint32_t y = 0; y < p->side[ACC_B].nstep && rc == 0 && *text == NULL; y++) {
			if (named ? x != p->named || y != p->lacks
				  : !is_first(p, ACC_A, x) || !is_first(p, ACC_B, y) ||
						p->side[ACC_A].step[x].family !=
							p->side[ACC_B].step[y].family)
				continue;
			rc = compare_args(s, p, x, y, text, e);
			*step = *text != NULL ? x : *step;
		}
	return rc;
}
