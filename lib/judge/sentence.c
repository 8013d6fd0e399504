/* Sentences about a suspect, for somebody who is tired. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"
#include "judge/order.h"

static const char *
coordinates(struct acc_arena *m, const struct acc_rec *r)
{
	const struct acc_val *v = acc_get(r, "", "m.worst");
	const char *s = "";
	if (v == NULL || v->type != ACC_V_INTS || v->n == 0)
		return s;
	for (uint32_t i = 0; i < v->n && i < 16; i++)
		s = acc_arena_printf(m, "%s%s%lld", acc_got(s), i == 0 ? "" : ", ",
			(long long)v->ints[i]);
	return acc_say(m, ", worst at [%s]", acc_got(s));
}

/* ", where: every 5th channel of axis 2, times 1.03" */
static const char *
structure(struct acc_arena *m, const struct acc_rec *r)
{
	const char *s = acc_got_said(m, r, "", "m.where");
	return s == NULL ? "" : acc_got(acc_say(m, ", where: %s", s));
}

/* "5,600 eps of f32", in the sense of finfo(dtype).eps. */
static const char *
in_eps(struct acc_arena *m, double e, enum acc_dtype t)
{
	char digits[32], out[48];
	if (t == ACC_NODTYPE || !(acc_dtype_of(t)->eps > 0))
		return "";
	double n = e / acc_dtype_of(t)->eps;
	if (n < 10)
		return acc_say(m, ", %.2g eps of %s", n, acc_dtype_of(t)->name);
	if (n >= 1e12)
		return "";
	snprintf(digits, sizeof digits, "%.0f", n);
	size_t len = strlen(digits), j = 0;
	for (size_t i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			out[j++] = ',';
		out[j++] = digits[i];
	}
	out[j] = '\0';
	return acc_say(m, ", %s eps of %s", out, acc_dtype_of(t)->name);
}

static enum acc_dtype
coarser(const struct acc_item *it)
{
	enum acc_dtype a = (enum acc_dtype)it->dtype[0], b = (enum acc_dtype)it->dtype[1];
	return acc_unit(a) >= acc_unit(b) ? a : b;
}

static bool
all_zero(const struct acc_rec *r, const char *prefix)
{
	double norm = NAN;
	acc_as_f64(acc_get(r, prefix, "s.norm"), &norm);
	if (isnan(norm))
		acc_as_f64(acc_get(r, prefix, "stat.norm"), &norm);
	return norm == 0;
}

static const char *
nonfinite_text(struct acc_arena *m, const struct acc_rec *r, const struct acc_item *it)
{
	enum acc_dtype t = (enum acc_dtype)it->dtype[ACC_A];
	if (it->saturated)
		return acc_say(m,
			"is saturated at %g on the device where the bench has Inf"
			" or NaN (saturation mode; INF_NAN_MODE_ENABLE=1, for MindSpore"
			" MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE, keeps them)",
			acc_dtype_of(t)->max);
	if (it->b_overflow)
		return "has NaN or Inf on the bench and is finite on the device (saturation mode?"
		       " see INF_NAN_MODE_ENABLE)";
	if (acc_overflows(it))
		return acc_say(m,
			"has Inf on the device: the bench's largest, %.3g, is more than %s holds, %g",
			it->b_max, acc_dtype_of(t)->name, acc_dtype_of(t)->max);
	double n = NAN;
	acc_as_f64(acc_get(r, "", "m.nonfinite"), &n);
	const char *what = it->a_nan ? "has NaN" : it->a_inf ? "has Inf" : "has NaN or Inf";
	if (isnan(n))
		return acc_say(m, "%s on the device, not on the bench", what);
	return acc_say(m, "%s on the device; NaN or Inf differ at %.0f places%s", what, n,
		structure(m, r));
}

/* "[2, 3]" */
static const char *
shape_text(struct acc_arena *m, const struct acc_rec *r, const char *side)
{
	const struct acc_val *v = acc_get(r, side, "shape");
	const char *s = "[";
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_INTS && i < v->n && i < 16; i++)
		s = acc_arena_printf(m, "%s%s%lld", acc_got(s), i == 0 ? "" : ", ",
			(long long)v->ints[i]);
	return acc_arena_printf(m, "%s]", acc_got(s));
}

/* How bad: "is off by up to ..." */
const char *
acc_how_bad(struct acc_arena *m, const struct acc_rec *r, const struct acc_item *it)
{
	if (it->nonfinite)
		return nonfinite_text(m, r, it);
	if (it->note_shape && it->measure == ACC_UNMEASURED)
		return acc_say(m, "has a different shape: %s, on the bench %s",
			acc_got(shape_text(m, r, "a.")), acc_got(shape_text(m, r, "b.")));
	if (it->measure == ACC_BY_SUM)
		return "has a different checksum";
	if (it->exact)
		return it->measure == ACC_BY_TENSOR && it->rms < 1
			       ? acc_say(m, "differs in %.3g %% of its elements%s%s", 100 * it->rms,
					 acc_got(coordinates(m, r)), structure(m, r))
			       : "differs, though its dtype is exact";
	const char *eps = acc_got(in_eps(m, it->rms, coarser(it)));
	const char *zero = all_zero(r, "a.") && !all_zero(r, "b.") ? "is all zeros on the device, "
								   : "";
	if (it->measure == ACC_BY_STAT)
		return acc_say(m, "%shas statistics off by up to %.2g of the bench's%s", zero,
			it->rms, eps);
	return acc_say(m, "%sis off by up to %.2g of the bench's values (rms %.2g%s)%s%s", zero,
		it->max, it->rms, eps, acc_got(coordinates(m, r)), structure(m, r));
}

static const char *
fed(struct scan *s, const struct suspect *x)
{
	enum acc_dtype t = coarser(&s->c->item[x->item]);
	if (x->unseen)
		return "not all of its inputs could be compared";
	if (x->bare)
		return "no tensor that went in was recorded";
	if (x->alone)
		return "nothing that went in could be compared";
	if (isinf(x->cause))
		return "its inputs have other shapes, or values that are not finite, than on the bench";
	if (x->inner && x->cause == 0)
		return "its inputs, or what they were made of, agree exactly";
	if (x->inner)
		return acc_say(acc_mem(s), "its inputs, or what they were made of, agree to %.2g%s",
			x->cause, acc_got(in_eps(acc_mem(s), x->cause, t)));
	if (x->cause == 0 && s->c->item[x->item].blind)
		return "its inputs have equal hashes, which see neither places nor signs";
	if (x->cause == 0)
		return s->c->item[x->item].measure == ACC_BY_SUM ? "its inputs are equal"
		       : s->c->item[x->item].measure == ACC_BY_STAT
			       ? "its inputs have equal statistics"
			       : "its inputs agree exactly";
	return acc_say(acc_mem(s), "its inputs agree to %.2g%s", x->cause,
		acc_got(in_eps(acc_mem(s), x->cause, t)));
}

static const char *
factor(struct scan *s, const struct suspect *x)
{
	return x->slope ? acc_say(acc_mem(s), "all elements by a factor that is off by %.2g; ",
				  x->value)
			: "";
}

/* All elements are one number of few digits, on the bench: ones, a half, a scale of the loss. */
static bool
is_plain(const struct acc_item *it)
{
	int exponent;
	const double digits = 256 * frexp((double)it->b_max, &exponent);
	return fabsf(it->b_max - it->b_rms) <= 1e-6F * it->b_max && digits == rint(digits);
}

/* The sentence about an input that is bad without a bad op before it. */
static const char *
input_text(struct scan *s, const struct suspect *x, const char *where, const char *bad)
{
	const struct acc_case *c = s->c;
	const char *name = acc_call_name(&c->call[x->call]);
	const char *blamed = acc_call_name(&c->call[x->blame]);
	if (x->blame != x->call && c->call[x->blame].key[ACC_B] == NULL)
		return acc_say(acc_mem(s),
			"%s: only the device has this op call, so it was not compared, but %s of"
			" %s, which comes from it, %s",
			blamed, where, name, bad);
	if (x->blame != x->call)
		return acc_say(acc_mem(s), "%s: wrote its output over its own input: %s of %s %s",
			blamed, where, name, bad);
	/* Of a plain number nobody is the producer: others make it, too. */
	const struct acc_call *made = x->producer == ACC_NOCALL || is_plain(&c->item[x->item])
					      ? NULL
					      : &c->call[c->item[x->producer].call];
	if (made != NULL && made->key[ACC_A] == NULL)
		return acc_say(acc_mem(s),
			"%s: got a different tensor: %s %s; on the bench it comes from %s, which the"
			" device does not call%s",
			name, where, bad, acc_call_name(made),
			acc_is_communication(made) ? " (a lost reduction or exchange)" : "");
	if (made != NULL && x->other != NULL && made->key[ACC_B] != NULL)
		return acc_say(acc_mem(s),
			"%s: got a different tensor: %s %s; on the bench it comes from %s, on the device from %s",
			name, where, bad, made->key[ACC_B], x->other);
	if (made != NULL && !acc_is_measured(&c->item[x->producer]))
		return acc_say(acc_mem(s),
			"%s: got a different tensor: %s %s; it comes from %s, whose output was not compared",
			name, where, bad, acc_call_name(made));
	if (made != NULL)
		return acc_say(acc_mem(s),
			"%s: got a different tensor: %s %s, though the output of %s that it comes from agrees",
			name, where, bad, acc_call_name(made));
	if (x->sum != NULL)
		return acc_say(acc_mem(s),
			"%s: %s %s, and should equal the sum of the gradients from %s (it does on the"
			" bench)",
			name, where, bad, x->sum);
	return acc_say(acc_mem(s), "%s: %s %s, and no compared op call produced it: %s", name,
		where, bad,
		x->weight ? "a weight is not the same"
			  : "other data, a constant (computed on the other processor?), or an op"
			    " that is not recorded");
}

/* "; its class is A on the device and B on the bench", of a module at one place of two classes; or "". */
static const char *
classes(struct scan *s, const struct acc_call *k, const struct acc_rec *r)
{
	const struct acc_str a = acc_op_name(acc_get_text(r, "a.", "op")),
			     b = acc_op_name(acc_get_text(r, "b.", "op"));
	if (!k->module || a.n == 0 || b.n == 0 || acc_str_eq(a, b))
		return "";
	return acc_got(acc_say(acc_mem(s),
		"; its class is %.*s on the device and %.*s on the bench", ACC_PRS(a), ACC_PRS(b)));
}

/* text, and whether the device's value is what its framework has by default; of an argument that torch has, too. */
static const char *
or_default(struct scan *s, const struct suspect *x, const struct acc_rec *r, const char *text,
	struct acc_err *e)
{
	const char *of = s->c->item[x->item].sides == 3 ? "b." : "a.";
	const struct acc_val *v = acc_get(r, "a.", "value");
	const struct acc_str op = acc_arena_str(acc_mem(s), acc_get_text(r, of, "op")),
			     pos = acc_arena_str(acc_mem(s), acc_get_text(r, of, "pos"));
	if (v == NULL || text == NULL)
		return text;
	struct acc_val own = *v;
	if (own.type == ACC_V_TEXT)
		own.s = acc_arena_str(acc_mem(s), own.s);
	if (op.p == NULL || pos.p == NULL || (own.type == ACC_V_TEXT && own.s.p == NULL))
		return NULL;
	return own.type == ACC_V_INTS ? text : acc_say_default(s, x->call, op, pos, &own, text, e);
}

/* "input 4 (eps)": what the function calls an argument that was given by its place. Operands have no name that says more. */
static const char *
argument(struct scan *s, const struct suspect *x, const struct acc_rec *r, const char *where)
{
	const struct acc_item *it = &s->c->item[x->item];
	const char *of = it->sides == 3 ? "b." : it->sides == 1 ? "a." : "b.";
	const struct acc_str pos = acc_get_text(r, of, "pos"),
			     name = acc_default_name(acc_get_text(r, of, "op"), pos);
	if (x->role != ROLE_ARG || it->kind != ACC_ITEM_ARG || it->io != ACC_IO_IN || name.n == 0 ||
		acc_str_eq(name, pos) || acc_word_in("input other x self value exponent", name))
		return where;
	return acc_got(acc_say(acc_mem(s), "%s (%.*s)", where, ACC_PRS(name)));
}

const char *
acc_sentence(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	struct acc_rec *r;
	const struct acc_item *it = &s->c->item[x->item];
	const struct acc_call *k = &s->c->call[x->call];
	if (acc_case_record(s->c, it, &r, e) < 0)
		return NULL;
	const char *where = acc_got(acc_say_position(s->c, r, it)), *text;
	const char *class = classes(s, k, r);
	where = argument(s, x, r, where);
	double number;
	int rc;
	if (x->audit) {
		const char *off = acc_is_measured(it)
					  ? acc_say(acc_mem(s), "%s; %s; ",
						    acc_got(acc_how_bad(acc_mem(s), r, it)),
						    acc_got(fed(s, x)))
					  : "";
		text = acc_audit_text(s->c, it, ACC_A, acc_is_measured(it), e);
		text = text == NULL ? NULL
				    : acc_say(acc_mem(s), "%s: %s %s%s", acc_call_name(k), where,
					      acc_got(off), text);
	} else if (x->role == ROLE_ARG && it->sides == 1 &&
		   (rc = acc_bench_argument(s, x->call, r, &number)) != 0) {
		/* Reading the bench's has moved the record on. */
		if (rc < 0 || acc_case_record(s->c, it, &r, e) < 0)
			return NULL;
		text = or_default(s, x, r,
			acc_say(acc_mem(s), "%s: %s is %s on the device and %.9g on the bench",
				acc_call_name(k), where,
				acc_got(acc_say_value(acc_mem(s), acc_get(r, "a.", "value"))),
				number),
			e);
	} else if (acc_case_record(s->c, it, &r, e) < 0) {
		return NULL;
	} else if (x->role == ROLE_ARG && it->sides != 3)
		text = or_default(s, x, r,
			acc_say(acc_mem(s),
				x->witness == ACC_WITNESS_quiet_argument
					? "%s: %s is %s on the device and not given on the bench"
				: it->sides == 1
					? "%s: %s is %s on the device and not given on the bench; what both make is"
					  " right for what they are given"
					: "%s: %s is %s on the bench and not given on the device; what both make is"
					  " right for what they are given",
				acc_call_name(k), where,
				acc_got(acc_say_value(acc_mem(s),
					acc_get(r, it->sides == 1 ? "a." : "b.", "value")))),
			e);
	else if (x->role == ROLE_ARG)
		text = or_default(s, x, r,
			acc_say(acc_mem(s), "%s: %s is %s on the device and %s on the bench",
				acc_call_name(k), where,
				acc_got(acc_say_value(acc_mem(s), acc_get(r, "a.", "value"))),
				acc_got(acc_say_value(acc_mem(s), acc_get(r, "b.", "value")))),
			e);
	else if (x->role == ROLE_IN || x->blame != x->call)
		text = input_text(s, x, where, acc_got(acc_how_bad(acc_mem(s), r, it)));
	else if (!k->keyed)
		text = acc_say(acc_mem(s), "%s %s", acc_call_name(k),
			acc_got(acc_how_bad(acc_mem(s), r, it)));
	else
		text = acc_say(acc_mem(s), "%s: %s %s; %s%s", acc_call_name(k), where,
			acc_got(acc_how_bad(acc_mem(s), r, it)), acc_got(factor(s, x)),
			acc_got(fed(s, x)));
	const char *open = text == NULL ? NULL : acc_audit_open_question(s, x, e);
	text = open == NULL ? NULL : acc_say(acc_mem(s), "%s%s%s", text, class, open);
	if (text != NULL && k->cls == ACC_OP_RANDOM && x->blame == x->call)
		text = acc_say(acc_mem(s),
			"%s; it draws random numbers: are the seed and"
			" the mode (train, eval) the same on both sides?",
			text);
	if (text != NULL && it->measure == ACC_BY_SUM)
		text = acc_say(acc_mem(s), "%s; checksums cannot tell rounding from a fault", text);
	return text == NULL ? acc_nomem(e), NULL : text;
}
