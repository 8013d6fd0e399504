/* The findings about what is right: how far everything agrees, ties, and settings that explain what
 * differs. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <math.h>

#include "judge/case.h"

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
	const char *where = acc_got(acc_say_position(c, r, it)), *at = acc_say_where(c, k);
	struct acc_finding *f = at == NULL ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return acc_nomem(e);
	acc_finding_of(f, k);
	f->rule = "tie";
	f->value = s->ties;
	f->doubtful = true;
	f->text = acc_say(acc_mem(s),
		"%s%s: %s %s, but of near-equal values: %s to %.2g; a tie, no fault, and what"
		" follows from it is none (%u output%s so)",
		at, f->name, where, acc_got(acc_how_bad(acc_mem(s), r, it)),
		off >= 0 ? "those that it picks agree" : "its inputs agree",
		off >= 0 ? off : s->tie_given, s->ties, s->ties == 1 ? " is" : "s are");
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Is a product of equal inputs off by that much? Else what all products show came in with these. */
static bool
is_witnessed(const struct acc_case *c, double off)
{
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!acc_multiplies(k) || !acc_given_alike(c, i))
			continue;
		for (uint32_t j = k->first; j <= k->last; j++)
			if (c->item[j].call == i && acc_is_output(&c->item[j]) &&
				acc_is_measured(&c->item[j]) && c->item[j].rms >= off)
				return true;
	}
	return false;
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
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		n += c->item[i].form != ACC_NOFORM;
		form = c->item[i].form != ACC_NOFORM ? c->item[i].form : form;
	}
	const double off = LIMIT_LEARN_SAID * LIMIT_OTHER_FLOOR * acc_unit(ACC_F32);
	if (n == 0 && (culprit != NULL || !(factor > LIMIT_LEARN_SAID) || !is_witnessed(c, off)))
		return 0;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->rule = "products";
	f->doubtful = true;
	f->value = n > 0 ? n : factor * LIMIT_OTHER_FLOOR * acc_unit(ACC_F32);
	f->text =
		n > 0 ? acc_say(acc_mem(s),
				"the device multiplies f32 numbers in %s: operands"
				" with fewer bits explain %u of its results; %s turn it off",
				words[form], n, switches)
		      : acc_say(acc_mem(s),
				"all f32 matrix products and convolutions differ by %.1g or"
				" more: does one side compute them in TF32 or HF32? %s turn it off",
				f->value, switches);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Does one side alone round by another rule than the nearest and even? Nothing is wrong then, either. */
static int
say_roundings(struct scan *s, struct acc_err *e)
{
	static const char *const words[] = {"", "makes zero of numbers below the normal ones",
		"rounds half away from zero", "rounds by chance"};
	struct acc_case *c = s->c;
	for (int how = ACC_FLUSHED; how <= ACC_BY_CHANCE; how++)
		for (int side = 0; side < 2; side++) {
			uint32_t n = 0, first = 0;
			for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
				const struct acc_item *it = &c->item[i];
				if (it->call == ACC_NOCALL || it->round[side] != how ||
					it->round[!side] == how || !(it->rms > 0) ||
					(how == ACC_FLUSHED && !acc_is_flushed(it)))
					continue;
				first = n++ == 0 ? i : first;
			}
			if (n == 0)
				continue;
			const struct acc_call *k = &c->call[c->item[first].call];
			struct acc_finding *f = acc_case_find(c, "clean", e);
			if (f == NULL)
				return e->code;
			acc_finding_of(f, k);
			f->rule = "roundings";
			f->value = n;
			f->doubtful = true;
			f->text = acc_say(acc_mem(s),
				"%s: the %s %s, in %u output%s from here on; no fault", f->name,
				side == ACC_A ? "device" : "bench", words[how], n,
				n == 1 ? "" : "s");
			if (f->text == NULL)
				return acc_nomem(e);
		}
	return 0;
}

/* Weights that are the bench's but for the rounding of a format of few levels; *others: that differ otherwise. */
static uint32_t
count_rounded(const struct scan *s, double limit, uint32_t *others)
{
	const struct acc_case *c = s->c;
	uint32_t n = *others = 0;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (!it->weight || !acc_is_measured(it) || !(acc_item_error(it, false) > limit))
			continue;
		n += it->rounded;
		*others += !it->rounded;
	}
	return n;
}

static double
weights_limit(const struct scan *s)
{
	return LIMIT_WEIGHTS_SAID * fmax(s->weight_unit, s->unit);
}

bool
acc_weights_are_rounded(const struct scan *s)
{
	uint32_t others;
	return s->weights > weights_limit(s) &&
	       count_rounded(s, weights_limit(s), &others) > others;
}

/* What is not one op call's fault: other weights, another kind of arithmetic. */
static int
say_setting(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	int rc = say_products(s, culprit, e);
	if (rc == 0)
		rc = say_roundings(s, e);
	if (rc < 0)
		return rc;
	const double limit = weights_limit(s);
	if (s->weights > limit) {
		uint32_t others;
		const uint32_t n = count_rounded(s, limit, &others);
		struct acc_finding *f = acc_case_find(c, others == 0 ? "clean" : "difference", e);
		if (f == NULL)
			return ACC_ENOMEM;
		f->rule = "weights";
		f->value = s->weights;
		f->limit = limit;
		f->bad = others > 0;
		f->text =
			f->bad ? acc_say(acc_mem(s),
					 "most weights differ (half of them by %.2g or"
					 " more)%s: are these the same checkpoint and step?",
					 f->value,
					 acc_got(acc_beyond(acc_mem(s), f->value, f->limit, NAN)))
			       : acc_say(acc_mem(s),
					 "%u weights are the bench's, rounded to few levels (half of all are off by"
					 " %.2g or more), and limits as wide as that makes them: a bench that has the"
					 " same weights shows more",
					 n, f->value);
		if (f->text == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* What those numbers cannot show. n: tensors by acc_measure; n[ACC_UNMEASURED]: those of them that see no places. */
static const char *
blind(struct acc_arena *m, const uint32_t n[])
{
	if (n[ACC_UNMEASURED] > 0 &&
		n[ACC_UNMEASURED] == n[ACC_BY_STAT] + n[ACC_BY_TENSOR] + n[ACC_BY_SUM])
		return "; by L1 norms or exclusive ors, which do not see elements that change places or signs: that"
		       " they are equal proves little";
	if (n[ACC_BY_STAT] > 0 && n[ACC_BY_TENSOR] == 0 && n[ACC_BY_SUM] == 0)
		return "; by statistics, in which a few wrong elements may not show";
	if ((n[ACC_BY_STAT] > 0) + (n[ACC_BY_TENSOR] > 0) + (n[ACC_BY_SUM] > 0) < 2)
		return "";
	const char *s = acc_say(m, "; %u tensors by elements", n[ACC_BY_TENSOR]);
	if (s != NULL && n[ACC_BY_STAT] > 0)
		s = acc_say(m, "%s, %u by statistics, in which a few wrong elements may not show",
			s, n[ACC_BY_STAT]);
	if (s != NULL && n[ACC_BY_SUM] > 0)
		s = acc_say(m, "%s, %u by checksums, which cannot tell rounding from a fault", s,
			n[ACC_BY_SUM]);
	return s;
}

/* Where nothing of the culprit's own step and rank stands before it. */
static const char *
before(struct scan *s, uint32_t earlier)
{
	if (earlier == 0)
		return "nothing of its rank was compared before it";
	return acc_say(acc_mem(s),
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
	for (uint32_t i = 0; i < end; i = acc_step(c, i)) {
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
			n[ACC_UNMEASURED] += here && it->sides == 3 && it->blind;
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
	/* So that those of many ranks are told apart where they are joined. */
	if (c->nranks[ACC_A] == 1)
		f->rank = c->last_rank[ACC_A];
	if (calls == 0)
		f->text = culprit == NULL  ? "nothing was compared"
			  : elsewhere == 0 ? "nothing was compared before it"
					   : before(s, earlier);
	else if (culprit != NULL)
		f->text = acc_say(acc_mem(s), "%u earlier %s%s%s within tolerance (%u identical)%s",
			calls, noun, plural, s->c->by_names ? " by name" : "", equal,
			acc_got(blind(acc_mem(s), n)));
	else
		f->text = acc_say(acc_mem(s),
			"%u %s%s compared: %snone adds more error than its dtype and kind explain"
			" (%u identical)%s",
			calls, noun, plural, s->bench == ACC_NOCALL ? "" : "on the device, ", equal,
			acc_got(blind(acc_mem(s), n)));
	if (f->text != NULL && s->unread > 0)
		f->text = acc_say(acc_mem(s),
			"%s; %u of those that differ, the farthest below their limits, %s not"
			" recomputed: accaudit recomputes all",
			f->text, s->unread, s->unread == 1 ? "was" : "were");
	if (f->text != NULL && culprit == NULL && s->strayed != ACC_NOCALL)
		f->text = acc_say(acc_mem(s),
			"%s; behind %s, which chooses by values, places may be others, so that statistics"
			" prove nothing there",
			f->text, acc_call_name(&c->call[s->strayed]));
	return f->text == NULL ? acc_nomem(e) : say_setting(s, culprit, e);
}
