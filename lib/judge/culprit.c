/* Sentences about a suspect, for somebody who is tired. */
#include "judge/first_bad.h"

#include <math.h>

#include "judge/case.h"

static struct acc_arena *
mem(const struct scan *s)
{
	return &s->c->mem;
}

/* What a failed acc_arena_printf in a chain of them leaves: printed, never dereferenced. */
static const char *
got(const char *s)
{
	return s == NULL ? "" : s;
}

static const char *
coordinates(struct acc_arena *m, const struct acc_rec *r)
{
	const struct acc_val *v = acc_get(r, "", "m.worst");
	const char *s = "";
	if (v == NULL || v->type != ACC_V_INTS || v->n == 0)
		return s;
	for (uint32_t i = 0; i < v->n && i < 16; i++)
		s = acc_arena_printf(m, "%s%s%lld", got(s), i == 0 ? "" : ", ",
			(long long)v->ints[i]);
	return acc_arena_printf(m, ", worst at [%s]", got(s));
}

/* "5,600 eps of f32", in the sense of finfo(dtype).eps. */
static const char *
in_eps(struct acc_arena *m, double e, enum acc_dtype t)
{
	char digits[32], out[48];
	if (t == ACC_NODTYPE || !(acc_dtypes[t].eps > 0))
		return "";
	double n = e / acc_dtypes[t].eps;
	if (n < 10)
		return acc_arena_printf(m, ", %.2g eps of %s", n, acc_dtypes[t].name);
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
	return acc_arena_printf(m, ", %s eps of %s", out, acc_dtypes[t].name);
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
		return acc_arena_printf(m,
			"is saturated at %g on the device where the bench has Inf"
			" or NaN (saturation mode; INF_NAN_MODE_ENABLE=1, for MindSpore"
			" MS_ASCEND_CHECK_OVERFLOW_MODE=INFNAN_MODE, keeps them)",
			acc_dtypes[t].max);
	if (it->b_overflow)
		return "has NaN or Inf on the bench and is finite on the device (saturation mode?"
		       " see INF_NAN_MODE_ENABLE)";
	double n = NAN;
	acc_as_f64(acc_get(r, "", "m.nonfinite"), &n);
	const char *what = it->a_nan ? "has NaN" : it->a_inf ? "has Inf" : "has NaN or Inf";
	if (isnan(n))
		return acc_arena_printf(m, "%s on the device, not on the bench", what);
	return acc_arena_printf(m, "%s on the device; NaN or Inf differ at %.0f places", what, n);
}

/* "[2, 3]" */
static const char *
shape_text(struct acc_arena *m, const struct acc_rec *r, const char *side)
{
	const struct acc_val *v = acc_get(r, side, "shape");
	const char *s = "[";
	for (uint32_t i = 0; v != NULL && v->type == ACC_V_INTS && i < v->n && i < 16; i++)
		s = acc_arena_printf(m, "%s%s%lld", got(s), i == 0 ? "" : ", ",
			(long long)v->ints[i]);
	return acc_arena_printf(m, "%s]", got(s));
}

/* How bad: "is off by up to ..." */
static const char *
how_bad(struct acc_arena *m, const struct acc_rec *r, const struct acc_item *it)
{
	if (it->nonfinite)
		return nonfinite_text(m, r, it);
	if (it->note_shape && it->measure == ACC_UNMEASURED)
		return acc_arena_printf(m, "has another shape: %s, on the bench %s",
			got(shape_text(m, r, "a.")), got(shape_text(m, r, "b.")));
	if (it->measure == ACC_BY_SUM)
		return "has another checksum";
	if (it->exact)
		return it->measure == ACC_BY_TENSOR && it->rms < 1
			       ? acc_arena_printf(m, "differs in %.3g %% of its elements%s",
					 100 * it->rms, got(coordinates(m, r)))
			       : "differs, though its dtype is exact";
	const char *eps = got(in_eps(m, it->rms, coarser(it)));
	const char *zero = all_zero(r, "a.") && !all_zero(r, "b.") ? "is all zeros on the device, "
								   : "";
	if (it->measure == ACC_BY_STAT)
		return acc_arena_printf(m, "%shas statistics off by up to %.2g of the bench's%s",
			zero, it->rms, eps);
	return acc_arena_printf(m, "%sis off by up to %.2g of the bench's values (rms %.2g%s)%s",
		zero, it->max, it->rms, eps, got(coordinates(m, r)));
}

static const char *
fed(struct scan *s, const struct suspect *x)
{
	enum acc_dtype t = coarser(&s->c->item[x->item]);
	if (x->unseen)
		return "not all of its inputs could be compared";
	if (x->cause == 0)
		return s->c->item[x->item].measure == ACC_BY_SUM ? "what it was given is equal"
		       : s->c->item[x->item].measure == ACC_BY_STAT
			       ? "what it was given has equal statistics"
			       : "what it was given agrees exactly";
	return acc_arena_printf(mem(s), "what it was given agrees to %.2g%s", x->cause,
		got(in_eps(mem(s), x->cause, t)));
}

static const char *
value_text(struct acc_arena *m, const struct acc_val *v)
{
	char buf[40];
	if (v == NULL || v->type == ACC_V_NIL)
		return "None";
	if (v->type == ACC_V_BOOL)
		return v->b ? "True" : "False";
	if (v->type == ACC_V_INT)
		return acc_arena_printf(m, "%lld", (long long)v->i);
	if (v->type == ACC_V_TEXT)
		return acc_arena_printf(m, "'%.*s'", v->s.n < 60 ? (int)v->s.n : 60, v->s.p);
	if (v->type != ACC_V_F64)
		return "another list";
	acc_f64_repr(v->f, buf, sizeof buf);
	return acc_arena_printf(m, "%s", buf);
}

/* The sentence about an input that is bad without a bad op before it. */
static const char *
input_text(struct scan *s, const struct suspect *x, const char *where, const char *bad)
{
	const struct acc_case *c = s->c;
	const char *name = acc_call_name(&c->call[x->call]);
	const char *blamed = acc_call_name(&c->call[x->blame]);
	if (x->blame != x->call && c->call[x->blame].key[ACC_B] == NULL)
		return acc_arena_printf(mem(s),
			"%s: only the device has this op call, so it was not compared, but %s of"
			" %s, which comes from it, %s",
			blamed, where, name, bad);
	if (x->blame != x->call)
		return acc_arena_printf(mem(s),
			"%s: wrote its output over its own input: %s of %s %s", blamed, where, name,
			bad);
	const struct acc_call *made = x->producer == ACC_NOCALL
					      ? NULL
					      : &c->call[c->item[x->producer].call];
	if (made != NULL && made->key[ACC_A] == NULL)
		return acc_arena_printf(mem(s),
			"%s: was given another tensor: %s %s; on the bench %s makes it, which the"
			" device does not call%s",
			name, where, bad, acc_call_name(made),
			acc_is_communication(made) ? " (a lost reduction or exchange)" : "");
	if (made != NULL)
		return acc_arena_printf(mem(s),
			"%s: was given another tensor: %s %s, though %s, which makes it, agrees",
			name, where, bad, acc_call_name(made));
	if (x->sum != NULL)
		return acc_arena_printf(mem(s),
			"%s: %s %s, and is not the sum of what %s give%s on the"
			" device, as it is on the bench",
			name, where, bad, x->sum, strstr(x->sum, " and ") != NULL ? "" : "s");
	return acc_arena_printf(mem(s), "%s: %s %s, and no op that was compared makes it: %s", name,
		where, bad,
		c->item[x->item].weight
			? "a weight is not the same"
			: "other data, a constant (computed on another processor?), or an op"
			  " that is not recorded");
}

static const char *
sentence(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	struct acc_rec *r;
	const struct acc_item *it = &s->c->item[x->item];
	const struct acc_call *k = &s->c->call[x->call];
	if (acc_case_record(s->c, it, &r, e) < 0)
		return NULL;
	const char *where = got(acc_say_position(s->c, r, it)), *text;
	if (x->audit) {
		const char *off = acc_is_measured(it)
					  ? acc_arena_printf(mem(s), "%s; %s; ",
						    got(how_bad(mem(s), r, it)), got(fed(s, x)))
					  : "";
		text = acc_audit_text(s->c, it, ACC_A, acc_is_measured(it), e);
		text = text == NULL ? NULL
				    : acc_arena_printf(mem(s), "%s: %s %s%s", acc_call_name(k),
					      where, got(off), text);
	} else if (x->role == ROLE_ARG)
		text = acc_arena_printf(mem(s), "%s: %s is %s on the device and %s on the bench",
			acc_call_name(k), where, got(value_text(mem(s), acc_get(r, "a.", "value"))),
			got(value_text(mem(s), acc_get(r, "b.", "value"))));
	else if (x->role == ROLE_IN || x->blame != x->call)
		text = input_text(s, x, where, got(how_bad(mem(s), r, it)));
	else if (!k->keyed)
		text = acc_arena_printf(mem(s), "%s %s", acc_call_name(k),
			got(how_bad(mem(s), r, it)));
	else
		text = acc_arena_printf(mem(s), "%s: %s %s; %s", acc_call_name(k), where,
			got(how_bad(mem(s), r, it)), got(fed(s, x)));
	const char *open = text == NULL ? NULL : acc_audit_open_question(s, x, e);
	text = open == NULL ? NULL : acc_arena_printf(mem(s), "%s%s", text, open);
	if (text != NULL && k->cls == ACC_OP_RANDOM && x->blame == x->call)
		text = acc_arena_printf(mem(s),
			"%s; it draws random numbers: are the seed and"
			" the mode (train, eval) the same on both sides?",
			text);
	if (text != NULL && it->measure == ACC_BY_SUM)
		text = acc_arena_printf(mem(s), "%s; checksums cannot tell rounding from a fault",
			text);
	return text == NULL ? acc_nomem(e), NULL : text;
}

static int
ranked(struct scan *s, uint32_t chosen, struct acc_finding *f)
{
	const char **list = acc_alloc(mem(s), 5 * sizeof *list);
	if (list == NULL)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < s->nsuspect && f->nranked < 5; i++) {
		const char *name = acc_call_name(&s->c->call[s->suspect[i].blame]);
		bool known = i == chosen || strcmp(name, f->name) == 0;
		for (uint32_t j = 0; j < f->nranked; j++)
			known |= strcmp(name, list[j]) == 0;
		if (!known && s->suspect[i].margin >= LIMIT_NAMED)
			list[f->nranked++] = name;
	}
	f->ranked = list;
	return 0;
}

/* How many verdicts of this kind, and this far beyond the limit, are right: see limits.h. */
static double
confidence(const struct scan *s, const struct suspect *x, bool sums)
{
	const struct acc_item *it = &s->c->item[x->item];
	const struct acc_call *k = &s->c->call[x->blame];
	if (isinf(x->value) || x->value <= 0 || x->role == ROLE_ARG)
		return sums ? 0.5 : 1;
	bool made = x->producer != ACC_NOCALL || it->weight || x->sum != NULL;
	bool guess = (x->role == ROLE_IN && (!made || it->measure == ACC_BY_STAT)) ||
		     (x->unseen && !x->audit) || sums ||
		     (k->cls == ACC_OP_RANDOM && x->role == ROLE_OUT) ||
		     (x->role == ROLE_OUT && it->audit[ACC_A] > 1 && !x->audit);
	double wrong = x->audit ? LIMIT_WRONG_AUDIT : guess ? LIMIT_WRONG_GUESS : LIMIT_WRONG;
	double sure = 1 - fmin(1, wrong * x->limit / x->value);
	return sums ? sure / 2 : sure;
}

/* "; else A or B" */
static const char *
others(struct scan *s, const struct acc_finding *f)
{
	return f->nranked == 0 ? ""
	       : f->nranked == 1
		       ? acc_arena_printf(mem(s), "; else %s", f->ranked[0])
		       : acc_arena_printf(mem(s), "; else %s or %s", f->ranked[0], f->ranked[1]);
}

/* What its error looks like, in mem; "" where nobody knows. NULL: failure. */
static const char *
cause_text(struct scan *s, const struct acc_item *it, struct acc_err *e)
{
	struct acc_rec *r;
	if (acc_case_record(s->c, it, &r, e) < 0)
		return NULL;
	struct acc_str cause = acc_get_text(r, acc_rec_is(r, "pair") ? "a." : "", "audit.cause");
	return acc_arena_copy(mem(s), cause.p, cause.n);
}

/* In how many calls of its operator one cause explains the audit's error, if it does in all that were
 * recomputed, two at least: then it is a setting. 0: it is this call's own; < 0: failure. */
static int64_t
configured(struct scan *s, const struct suspect *x, struct acc_err *e)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[x->call];
	const char *cause = x->audit ? cause_text(s, &c->item[x->item], e) : "", *other;
	int64_t n = 0;
	if (cause == NULL)
		return -1;
	for (uint32_t i = 0; i < c->nitem && cause[0] != '\0'; i++) {
		const struct acc_item *it = &c->item[i];
		const struct acc_item *own = &c->item[x->item];
		if (it->call == ACC_NOCALL || c->call[it->call].op_id != k->op_id ||
			c->call[it->call].backward != k->backward || acc_is_input(it) ||
			it->exact != own->exact || isnan(it->audit[ACC_A]) ||
			(it != own && it->call == x->call))
			continue;
		other = acc_accused(it) ? cause_text(s, it, e) : "";
		if (other == NULL)
			return -1;
		if (strcmp(cause, other) != 0)
			return 0;
		n++;
	}
	return n > 1 ? n : 0;
}

int
acc_say_culprit(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	const struct suspect *x = &s->suspect[chosen];
	struct acc_case *c = s->c;
	const struct acc_item *it = &c->item[x->item];
	const struct acc_call *k = &c->call[x->blame];
	const char *stack, *src = acc_say_source(c, k, &stack, e);
	const char *text = sentence(s, x, e), *where = acc_say_where(c, k);
	struct acc_rec *r;
	int64_t all = text == NULL ? 0 : configured(s, x, e);
	if (src == NULL || text == NULL || where == NULL || all < 0)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	if (all > 0)
		text = acc_arena_printf(mem(s),
			"%s; so are all %lld calls of this operator that were recomputed: a setting"
			" or another formula, not one call's fault",
			text, (long long)all);
	bool sums = it->measure == ACC_BY_SUM || !k->keyed;
	struct acc_finding *f = acc_case_find(c, sums ? "difference" : "culprit", e);
	if (f == NULL)
		return ACC_ENOMEM;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str pos = acc_get_text(r, "a.", "pos");
	f->name = acc_call_name(k);
	f->io = acc_say_io(it);
	f->pos = acc_arena_copy(mem(s), pos.p, pos.n);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->comm = acc_layer(s->ranks, c, x->call);
	f->rule = all > 0               ? "configuration"
		  : x->audit            ? "audit"
		  : x->role == ROLE_ARG ? "argument"
		  : x->role == ROLE_IN  ? "input"
					: "output";
	f->value = x->value;
	f->limit = it->measure == ACC_BY_SUM ? 0 : x->limit;
	f->limit_from = it->measure == ACC_BY_SUM ? "equal inputs" : x->from;
	f->confidence = confidence(s, x, sums);
	f->stack = stack;
	f->bad = true;
	if (ranked(s, chosen, f) < 0)
		return acc_nomem(e);
	const char *other = sums || f->confidence >= LIMIT_SURE ? "" : got(others(s, f));
	const char *beyond = got(acc_say_beyond(c, f));
	f->text = acc_arena_printf(mem(s), "%s%s%s%s%s%s%s", where,
		!sums && f->confidence < LIMIT_SURE ? "probably " : "", text, beyond, other,
		src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_unsure(struct scan *s, uint32_t first, struct acc_err *e)
{
	const struct suspect *x = &s->suspect[first];
	const struct acc_call *k = &s->c->call[x->blame];
	const char *text = sentence(s, x, e), *where = acc_say_where(s->c, k);
	if (text == NULL || where == NULL)
		return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
	struct acc_finding *f = acc_case_find(s->c, "warning", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->rule = "unsure";
	f->value = x->value;
	f->limit = x->limit;
	f->limit_from = x->from;
	f->doubtful = true;
	f->text = acc_arena_printf(mem(s),
		"%s%s; this is beyond its limit by too little to tell it from noise", where, text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_ties(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	if (s->ties == 0 || (culprit != NULL && c->item[s->tie].call >= culprit->call))
		return 0;
	const struct acc_item *it = &c->item[s->tie];
	const struct acc_call *k = &c->call[it->call];
	double off = -1;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == it->call && !acc_is_input(&c->item[i]) &&
			!c->item[i].exact && acc_is_measured(&c->item[i]))
			off = fmax(off, c->item[i].rms);
	struct acc_rec *r;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const char *where = got(acc_say_position(c, r, it)), *at = acc_say_where(c, k);
	struct acc_finding *f = at == NULL ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return acc_nomem(e);
	f->name = acc_call_name(k);
	f->rule = "tie";
	f->step = k->step;
	f->rank = k->rank;
	f->seq = k->seq;
	f->value = s->ties;
	f->doubtful = true;
	f->text = acc_arena_printf(mem(s),
		"%s%s: %s %s, but of near-equal values: %s to %.2g; a tie, no fault, and what"
		" follows from it is none (%u output%s so)",
		at, f->name, where, got(how_bad(mem(s), r, it)),
		off >= 0 ? "those that it picks agree" : "what it was given agrees",
		off >= 0 ? off : s->tie_given, s->ties, s->ties == 1 ? " is" : "s are");
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Does the device multiply f32 numbers in fewer bits? accaudit tells by the form of the errors; else
 * all products that show it do. Nothing is wrong, but it explains what differs. */
static int
say_products(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	static const char *const words[] = {"", "TF32", "HF32", "bf16"};
	static const char switches[] =
		"torch.backends.cuda.matmul.allow_tf32 and"
		" torch.backends.cudnn.allow_tf32, torch_npu's torch.npu.matmul.allow_hf32 and"
		" torch.npu.conv.allow_hf32, MindSpore's matmul_allow_hf32 and conv_allow_hf32 in"
		" ascend_config";
	struct acc_case *c = s->c;
	const struct acc_call products = {.cls = ACC_OP_CONTRACT};
	double factor = acc_learned(s, &products, acc_unit(ACC_F32));
	uint32_t n = 0, form = ACC_NOFORM;
	for (uint32_t i = 0; i < c->nitem; i++) {
		n += c->item[i].form != ACC_NOFORM;
		form = c->item[i].form != ACC_NOFORM ? c->item[i].form : form;
	}
	if (n == 0 && (culprit != NULL || !(factor > LIMIT_LEARN_SAID)))
		return 0;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "products";
	f->doubtful = true;
	f->value = n > 0 ? n : factor * LIMIT_OTHER_FLOOR * acc_unit(ACC_F32);
	f->text =
		n > 0 ? acc_arena_printf(mem(s),
				"the device multiplies f32 numbers in %s: operands"
				" with fewer bits explain %u of its results; %s turn it off",
				words[form], n, switches)
		      : acc_arena_printf(mem(s),
				"all f32 matrix products and convolutions differ by %.1g or"
				" more: does one side compute them in TF32 or HF32? %s turn it off",
				f->value, switches);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* What is not one op call's fault: other weights, another kind of arithmetic. */
static int
say_setting(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	int rc = say_products(s, culprit, e);
	if (rc < 0)
		return rc;
	if (s->weights > LIMIT_WEIGHTS_SAID * s->unit) {
		struct acc_finding *f = acc_case_find(c, "difference", e);
		if (f == NULL)
			return ACC_ENOMEM;
		f->rule = "weights";
		f->value = s->weights;
		f->limit = LIMIT_WEIGHTS_SAID * s->unit;
		f->bad = true;
		f->text = acc_arena_printf(mem(s),
			"most weights differ (half of them by %.2g or"
			" more): are these the same checkpoint and step?",
			f->value);
		if (f->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* What those numbers cannot show. n: tensors by acc_measure. */
static const char *
blind(struct acc_arena *m, const uint32_t n[])
{
	if (n[ACC_BY_STAT] > 0 && n[ACC_BY_TENSOR] == 0 && n[ACC_BY_SUM] == 0)
		return "; by statistics, which do not show a few elements";
	if ((n[ACC_BY_STAT] > 0) + (n[ACC_BY_TENSOR] > 0) + (n[ACC_BY_SUM] > 0) < 2)
		return "";
	const char *s = acc_arena_printf(m, "; %u tensors by elements", n[ACC_BY_TENSOR]);
	if (s != NULL && n[ACC_BY_STAT] > 0)
		s = acc_arena_printf(m, "%s, %u by statistics, which do not show a few elements", s,
			n[ACC_BY_STAT]);
	if (s != NULL && n[ACC_BY_SUM] > 0)
		s = acc_arena_printf(m,
			"%s, %u by checksums, which do not tell rounding from a fault", s,
			n[ACC_BY_SUM]);
	return s;
}

/* Where nothing of the culprit's own step and rank stands before it. */
static const char *
before(struct scan *s, uint32_t earlier)
{
	if (earlier == 0)
		return "nothing of its rank was compared before it";
	return acc_arena_printf(mem(s),
		"nothing of its step was compared before it, but %u op call%s of earlier steps",
		earlier, earlier == 1 ? "" : "s");
}

/* How far everything agrees: up to the culprit, or all of it. */
int
acc_say_clean(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	uint32_t end = culprit == NULL ? c->ncall : culprit->call, calls = 0, equal = 0;
	uint32_t n[ACC_BY_VALUE + 1] = {0};
	uint32_t segment = culprit == NULL ? 0 : c->call[culprit->call].segment;
	uint32_t earlier = 0, elsewhere = 0; /* compared, of earlier steps; of other ranks */
	for (uint32_t i = 0; i < end; i++) {
		const struct acc_call *k = &c->call[i];
		bool compared = false, same = true, here = culprit == NULL || k->segment == segment;
		for (uint32_t j = k->first; j <= k->last; j++) {
			const struct acc_item *it = &c->item[j];
			if (it->call != i || it->kind != ACC_ITEM_TENSOR ||
				it->measure == ACC_UNMEASURED)
				continue;
			compared = true;
			same &= it->rms == 0;
			n[it->measure] += here && it->sides == 3;
		}
		elsewhere += compared && !here;
		earlier += compared && !here && k->step != c->call[culprit->call].step;
		calls += compared && here;
		equal += compared && here && same;
	}
	const char *noun = c->ncall > 0 && c->call[0].keyed ? "op call" : "tensor";
	const char *plural = calls == 1 ? "" : "s";
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->value = calls;
	if (calls == 0)
		f->text = culprit == NULL  ? "nothing was compared"
			  : elsewhere == 0 ? "nothing was compared before it"
					   : before(s, earlier);
	else if (culprit != NULL)
		f->text = acc_arena_printf(mem(s),
			"clean %s: %u %s%s (%u without any difference)%s",
			s->c->by_names ? "before it by name" : "before it", calls, noun, plural,
			equal, got(blind(mem(s), n)));
	else
		f->text = acc_arena_printf(mem(s),
			"%u %s%s compared: %snone adds more error than its dtype and kind explain"
			" (%u without any difference)%s",
			calls, noun, plural, s->bench == ACC_NOCALL ? "" : "on the device, ", equal,
			got(blind(mem(s), n)));
	return f->text == NULL ? acc_nomem(e) : say_setting(s, culprit, e);
}

int
acc_mark_suspects(struct scan *s, uint32_t chosen, struct acc_err *e)
{
	struct acc_case *c = s->c;
	static const char *const rules[] = {"output", "input", "argument"};
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		const struct suspect *x = &s->suspect[i];
		struct acc_item *it = &c->item[x->item];
		if (it->mark != 0)
			continue;
		const char **why = acc_alloc(mem(s), sizeof *why);
		const char *text = sentence(s, x, e);
		if (why == NULL)
			return acc_nomem(e);
		if (text == NULL)
			return e == NULL || e->code == 0 ? ACC_ENOMEM : e->code;
		*why = text;
		bool guilty = chosen != ACC_NOCALL && x->call == s->suspect[chosen].call;
		struct acc_verdict v = {.level = guilty ? "error" : "warning",
			.rule = rules[x->role],
			.limit_from = x->from,
			.value = x->value,
			.limit = x->limit,
			.why = why,
			.nwhy = 1};
		int rc = acc_case_mark(c, it, &v, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}
