/* What is done about the culprit until its cause is mended, as the vendors' accounts of ports do it. Only
 * where its kind is known: a fix that does not fit costs a run. */
#include "judge/accept.h"
#include "judge/first_bad.h"
#include "acc/say.h"

#include "judge/case.h"
#include "judge/order.h"

/* Operators that give the same as another, whose kernel is another one. */
static const struct {
	const char *op, *form;
} forms[] = {
	{"*.__getitem__.*", "index_select in place of the index"},
	{"*.einsum.*", "matmul in place of einsum"},
	{"*.index_select.*", "an index in place of index_select"},
	{"*.gather.*", "an index in place of gather"},
	{"*.embedding.*", "index_select in place of embedding"},
	{"*.linear.*", "matmul and an addition in place of linear"},
	{"*.scaled_dot_product_attention.*", "matmul and softmax in place of the fused attention"},
};

static const char *
form_of(const struct acc_call *k)
{
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (acc_glob(forms[i].op, acc_str(acc_call_name(k))))
			return forms[i].form;
	return "its formula written out";
}

static bool
drops(const struct acc_call *k)
{
	return k->cls == ACC_OP_RANDOM && acc_glob("*dropout*", acc_str(acc_call_name(k)));
}

/* A table, a scale, a mask: no op call made it, and it is no weight and no gradient. */
static bool
is_constant(const struct suspect *x, const struct acc_item *it, const struct acc_call *k)
{
	return x->role == ROLE_IN && x->producer == ACC_NOCALL && x->sum == NULL && !it->weight &&
	       !it->exact && !it->state && !k->backward && !k->module && x->blame == x->call;
}

/* The recomputation says that the device's is wrong, and the bench's is not. */
static bool
is_kernel(const struct suspect *x, const struct acc_item *it, const struct acc_call *k)
{
	return x->audit && acc_accused(it) && it->audit[ACC_B] <= 1 && !it->nonfinite &&
	       !it->doubted && !k->module && !acc_is_communication(k) && it->form == ACC_NOFORM;
}

static int
say(struct acc_case *c, uint32_t call, const char *text, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	const char *where = acc_say_where(c, k);
	struct acc_finding *f = where == NULL ? NULL : acc_case_find(c, "next", e);
	if (f == NULL)
		return acc_nomem(e);
	f->name = acc_call_name(k);
	f->rule = "fix";
	f->step = k->step;
	f->rank = k->rank;
	f->text = text == NULL ? NULL
			       : acc_say(&c->mem, "next: %s%s: %s", where, f->name, acc_got(text));
	return f->text == NULL ? acc_nomem(e) : 0;
}

static const char constant[] =
	"where it is a constant, compute it on both sides in double and cast it, or on the device:"
	" processors give other last digits";

int
acc_is_node(struct acc_case *c, const struct acc_item *it, struct acc_err *e)
{
	static const char *const key[] = {"framework", NULL};
	char src[64], framework[ACC_SAYS] = "";
	struct acc_rec *r;
	if ((it->sides & 1) == 0)
		return 0;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	if (!acc_rec_is(r, "pair") || acc_get(r, "a.", "call") != NULL)
		return 0;
	snprintf(src, sizeof src, "%.*s", ACC_PRS(acc_get_text(r, "a.", "src")));
	if (acc_source_says(c, acc_str(src), key, (char *[]){framework}, e) < 0)
		return e->code;
	return framework[0] != '\0' && strcmp(framework, "pytorch") != 0 &&
	       strcmp(framework, "mindspore") != 0;
}

/* What went into arrays is not known, and an engine has no recorder to be told: runs tell. */
static const char feed[] =
	"accreplace --run=CMD DEVICE BENCH puts the bench's tensors into the device's runs, whose ends then"
	" tell which call is wrong";

static int
say_fix(struct scan *s, uint32_t chosen, bool configured, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct suspect *x = &s->suspect[chosen];
	const struct acc_item *it = &c->item[x->item];
	const struct acc_call *k = &c->call[x->blame];
	if (!k->keyed || it->measure == ACC_BY_SUM)
		return 0;
	if (drops(k) && x->blame == x->call)
		return say(c, x->blame,
			"no two devices draw the same numbers: to compare, set its p to 0 on both sides",
			e);
	if (is_constant(x, it, k))
		return say(c, x->blame, constant, e);
	const int node = k->backward ? 0 : acc_is_node(c, it, e);
	if (node < 0)
		return node;
	if (node > 0 || (it->array && !k->backward))
		return say(c, x->blame, feed, e);
	if (is_kernel(x, it, k) && !configured)
		return say(c, x->blame,
			acc_say(&c->mem,
				"until its kernel is right, use another: %s; accdiff --before=OLD, which is"
				" this dump, then says what that mended",
				acc_got(form_of(k))),
			e);
	return 0;
}

int
acc_say_fixes(struct scan *s, uint32_t chosen, uint32_t first, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const uint32_t n = c->nfinding;
	bool configured = false;
	int rc = 0;
	for (uint32_t i = first; i < n; i++)
		configured |= c->finding[i].rule != NULL &&
			      strcmp(c->finding[i].rule, "configuration") == 0;
	if (chosen != ACC_NOCALL)
		rc = say_fix(s, chosen, configured, e);
	for (uint32_t i = first; i < n && rc == 0; i++)
		if (c->finding[i].rule != NULL && strcmp(c->finding[i].rule, "constant") == 0)
			for (uint32_t k = 0; k < c->ncall; k = acc_step(c, k))
				if (acc_call_name(&c->call[k]) == c->finding[i].name &&
					c->call[k].step == c->finding[i].step &&
					c->call[k].rank == c->finding[i].rank)
					return say(c, k, constant, e);
	return rc;
}
