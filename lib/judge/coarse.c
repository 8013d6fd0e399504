/* Functions that a tool is known to compute by a formula of its own, whose rounding has a size that the relative one of its
 * results does not tell: what two sides differ by within it is no fault. A row each, with where the law comes from.
 *
 * ONNX Runtime's MLAS (onnxruntime/core/mlas/lib/logistic.cpp, the coefficients of Eigen): sigmoid is p(x) / q(x) + 1/2, with x
 * held within 18. The quotient, up to 1/2, has the rounding of two polynomials and a division, the sum one more: four
 * units of 2^-24, whatever is left of it near 0; silu is that times x. Gelu is x / 2 (1 + erf), elu exp - 1 as they are
 * written: the sum of 1 and what is next to -1 keeps the rounding of 1. tests/tools/onnx_cpu.py holds them to it, with the
 * version.
 *
 * MindSpore 2.10 on a CPU: log is that of an exponent, a multiple of log 2, and of a mantissa, a polynomial, added in
 * float32: next to 1, where one cancels the other, the absolute error of both stays; log1p is log(1 + x) as it is
 * written; tanh ends where exp does. Measured over 400,000 numbers a range: log 8 units of 2^-24 between 0.3 and 1, 73 at 1e-6,
 * log2 13 and 62, log1p 5, tanh 1,690. tests/tools/mindspore_cpu.py holds them to it. What msprobe records of MindSpore does
 * not say on what device: there, too. */
#include "judge/case.h"
#include "judge/first_bad.h"

#include "acc/behaviour.h"
#include "acc/say.h"

#include <math.h>

#define U 0x1p-24 /* half a unit in the last place of 1, in float32 */

static const struct law {
	const char *behaviour, *op;
	double all, each, out; /* absolute, by the largest input, and by the largest output */
	double slope; /* the largest of the function; 0: that of a logarithm, of what is relative */
} laws[] = {
	{"ort-sigmoid-coarse", "sigmoid", 4 * U, 0, 0, 0.25},
	{"ort-sigmoid-coarse", "silu", 0, 4 * U, 0, 1.1},
	{"ort-one-plus-erf", "gelu", 0, 3 * U, 0, 1.13},
	{"ort-one-plus-erf", "elu", 3 * U, 0, 0, 1},
	{"ms-coarse-functions", "log", 6 * U, 0, 7 * U, 0},
	{"ms-coarse-functions", "log2", 7 * U, 0, 8 * U, 0},
	{"ms-coarse-functions", "log1p", 2 * U, 0, 3 * U, 1},
	{"ms-coarse-functions", "tanh", 1800 * U, 0, 0, 1},
};

/* What the op call was given: its largest number, NaN where it is not known; and the largest difference of the sides, and of
 * itself, infinite where that is not. */
static double
given(const struct acc_case *c, uint32_t call, double *off, double *part)
{
	const struct acc_call *k = &c->call[call];
	double most = 0;
	*off = *part = 0;
	for (uint32_t i = k->first; i < k->inputs; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || !acc_is_input(it) || it->kind != ACC_ITEM_TENSOR)
			continue;
		const bool equal = it->sides == 3 && it->rms == 0 && !it->nonfinite;
		if (it->sides != 3 || (it->measure != ACC_BY_TENSOR && !equal))
			*off = *part = INFINITY;
		most = isnan(it->b_max) || isnan(most) ? NAN : fmax(most, it->b_max);
		*off = fmax(*off, equal ? 0 : it->max_abs);
		*part = fmax(*part, equal ? 0 : isnan(it->max_rel) ? INFINITY : it->max_rel);
	}
	return most;
}

/* The law that an output is within, on whatever side its tool is; NULL: none. */
static int
lawful(struct acc_case *c, const struct acc_item *it, const struct acc_behaviour **by,
	struct acc_err *e)
{
	struct acc_rec *r;
	double off, part;
	*by = NULL;
	if (it->call == ACC_NOCALL || !acc_is_output(it) || it->kind != ACC_ITEM_TENSOR ||
		it->sides != 3 || it->nonfinite || it->measure != ACC_BY_TENSOR || !(it->rms > 0) ||
		c->call[it->call].backward || c->call[it->call].grad)
		return 0;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	/* What is asked of a source takes the record's place. */
	const uint64_t family[] = {acc_op_family(acc_get_text(r, "a.", "op")),
		acc_op_family(acc_get_text(r, "b.", "op"))};
	const double most = given(c, it->call, &off, &part);
	for (size_t i = 0; i < sizeof laws / sizeof *laws; i++) {
		const uint64_t want = acc_op_family(acc_str(laws[i].op));
		const struct acc_behaviour *b = acc_behaviour(acc_str(laws[i].behaviour));
		if (b == NULL || (family[0] != want && family[1] != want) ||
			!(it->max_abs <= laws[i].all +
						 (laws[i].each > 0 ? laws[i].each * most : 0) +
						 (laws[i].out > 0 ? laws[i].out * it->b_max : 0) +
						 (laws[i].slope > 0 ? laws[i].slope * off : part)))
			continue;
		const int fits = acc_is_of(c, it, b, e);
		if (fits < 0)
			return fits;
		if (fits > 0) {
			*by = b;
			return 0;
		}
	}
	return 0;
}

int
acc_know_laws(struct acc_case *c, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_behaviour *by;
		struct acc_item *it = &c->item[i];
		if (lawful(c, it, &by, e) < 0)
			return e->code;
		if (by == NULL)
			continue;
		it->lawful = true;
		it->audit[ACC_A] = it->audit[ACC_B] = NAN;
		it->audited = 3;
	}
	return 0;
}

int
acc_say_laws(struct acc_case *c, struct acc_err *e)
{
	uint32_t n = 0, first = 0;
	const struct acc_behaviour *by;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		first = c->item[i].lawful && n == 0 ? i : first;
		n += c->item[i].lawful;
	}
	if (n == 0 || lawful(c, &c->item[first], &by, e) < 0 || by == NULL)
		return n == 0 ? 0 : e->code;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "law";
	f->value = n;
	f->name = acc_call_name(&c->call[c->item[first].call]);
	f->behaviour = by->id;
	f->text = acc_say(&c->mem,
		"%u output%s %s within what the formula of one side rounds to, first %s: known of %s %s: %s (%s)",
		n, n == 1 ? "" : "s", n == 1 ? "is" : "are", f->name, by->tool, by->versions,
		by->what, by->id);
	return f->text == NULL ? acc_nomem(e) : 0;
}
