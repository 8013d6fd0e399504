/* The bench's call, recomputed with what the device gives in place of its output: what the audit takes that for, an
 * argument that is another by default, say, is what the device does otherwise. Where several kernels make up one call
 * of the bench, the whole of them is asked so. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "acc/say.h"
#include "acc/stream.h"
#include "judge/parting.h"
#include "judge/recompute.h"

struct asked {
	struct acc_arena *mem;
	const char *cause, *changed, *op;
	bool lost; /* no memory */
};

static int
take(void *arg, struct acc_rec *r)
{
	struct asked *a = arg;
	const struct acc_val *good = acc_get(r, "", "audit.ok");
	const struct acc_str cause = acc_get_text(r, "", "audit.cause"),
			     changed = acc_get_text(r, "", "audit.changed"),
			     op = acc_get_text(r, "", "op");
	/* Where elements are wrong, or by what factor, is no argument. */
	if (!acc_str_is(acc_get_text(r, "", "io"), "out") || good == NULL || good->b ||
		changed.n == 0 || a->cause != NULL)
		return 0;
	a->cause = acc_arena_copy(a->mem, cause.p, cause.n);
	a->changed = acc_arena_copy(a->mem, changed.p, changed.n);
	a->op = acc_arena_copy(a->mem, op.p, op.n);
	a->lost = a->cause == NULL || a->changed == NULL || a->op == NULL;
	return 0;
}

static void
quiet(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
}

/* Sequences that are batched have the steps first, or the batch: where the device's elements of the bench's shape are. */
static int
put_turned(struct acc_rec *one, const struct acc_rec *pair)
{
	const struct acc_val *a = acc_get(pair, "a.", "shape"), *b = acc_get(one, "", "shape");
	int64_t stride[ACC_MAXDIM], step = 1;
	if (a == NULL || b == NULL || a->type != ACC_V_INTS || b->type != ACC_V_INTS ||
		a->n != b->n || a->n < 2 || a->n > ACC_MAXDIM || a->ints[0] == a->ints[1] ||
		a->ints[0] != b->ints[1] || a->ints[1] != b->ints[0])
		return 0;
	for (uint32_t d = a->n; d-- > 0; step *= a->ints[d])
		stride[d < 2 ? 1 - d : d] = step;
	return acc_put(one, "", "stride", acc_ints(stride, a->n));
}

/* The device's elements in place of the bench's, in its shape. */
static int
put_device(struct acc_rec *one, const struct acc_rec *pair)
{
#define X(name, key) key,
	static const char *const keys[] = {ACC_REF_KEYS(X)};
#undef X
	uint32_t n = 0;
	int rc = 0;
	for (uint32_t i = 0; i < one->n; i++) {
		bool ref = false;
		for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
			ref |= k != ACC_REF_SHAPE && acc_str_is(one->f[i].key, keys[k]);
		if (!ref)
			one->f[n++] = one->f[i];
	}
	one->n = n;
	for (size_t i = 0; i < sizeof keys / sizeof *keys && rc == 0; i++) {
		const struct acc_val *v = acc_get(pair, "a.", keys[i]);
		if (v != NULL && i != ACC_REF_SHAPE)
			rc = acc_put(one, "", keys[i], *v);
	}
	const struct acc_val *src = acc_get(pair, "a.", "src");
	if (rc == 0)
		rc = put_turned(one, pair);
	return rc == 0 && src != NULL ? acc_put(one, "placed.", "src", *src) : rc;
}

/* An output of the bench, and the device's tensor that stands for it where they are no pair. */
struct stand_in {
	uint32_t bench, device;
};

/* The record that stands in t->one, with that tensor. */
static int
give_stand_in(struct acc_recompute *t, uint32_t device, struct acc_err *e)
{
	struct acc_item *it = &t->c->item[device];
	struct acc_rec own = {0}, *r;
	int rc = acc_rec_copy(&own, &t->one) < 0 ? acc_nomem(e) : acc_case_record(t->c, it, &r, e);
	if (rc == 0 && put_device(&own, r) < 0)
		rc = acc_nomem(e);
	if (rc == 0)
		rc = acc_audit_put(t->audit, &own, e);
	acc_rec_release(&own);
	return rc;
}

static int
give(struct acc_recompute *t, uint32_t item, const struct stand_in *in, struct acc_err *e)
{
	struct acc_item *it = &t->c->item[item];
	struct acc_rec *r;
	int rc = acc_case_record(t->c, it, &r, e);
	if (rc == 0 && acc_recompute_split(r, "b.", &t->one) < 0)
		rc = acc_nomem(e);
	if (rc == 0 && item == in->bench)
		return give_stand_in(t, in->device, e);
	if (rc == 0 && in->bench == ACC_NOCALL && it->kind == ACC_ITEM_TENSOR && it->sides == 3 &&
		acc_is_output(it) && acc_get(r, "a.", "stride") == NULL &&
		acc_get(r, "b.", "stride") == NULL && put_device(&t->one, r) < 0)
		rc = acc_nomem(e);
	return rc == 0 ? acc_audit_put(t->audit, &t->one, e) : rc;
}

/* Is it of the same call of the bench? */
static bool
is_of(const struct acc_call *k, const struct acc_call *whole)
{
	return k->segment == whole->segment && k->key[ACC_B] != NULL &&
	       strcmp(k->key[ACC_B], whole->key[ACC_B]) == 0;
}

/* Within a call no source may begin. */
static int
give_sources(struct acc_recompute *t, uint32_t item, struct acc_err *e)
{
	struct acc_case *c = t->c;
	struct acc_item *it = &c->item[item];
	struct acc_rec *r;
	int rc = 0;
	for (int s = 0; s < 2 && rc == 0; s++) {
		rc = acc_case_record(c, it, &r, e);
		if (rc == 0 && (it->sides & 1 << s) != 0)
			rc = acc_recompute_source(t, acc_get_text(r, s == 0 ? "a." : "b.", "src"),
				e);
	}
	return rc;
}

static int
give_all(struct acc_recompute *t, uint32_t call, const struct stand_in *in, struct acc_err *e)
{
	struct acc_case *c = t->c;
	int rc = in->device == ACC_NOCALL ? 0 : give_sources(t, in->device, e);
	/* What comes out stands behind what goes in. */
	for (uint32_t n = 0; n < 3 * c->nitem && rc == 0; n++) {
		const uint32_t i = n % c->nitem;
		const struct acc_item *it = &c->item[i];
		if (n >= c->nitem && acc_is_input(it) != (n < 2 * c->nitem))
			continue;
		if (it->call != ACC_NOCALL && (it->sides & 2) != 0 && (it->part & 2) == 0 &&
			(it->kind == ACC_ITEM_TENSOR || it->kind == ACC_ITEM_ARG) &&
			is_of(&c->call[it->call], &c->call[call]))
			rc = n < c->nitem ? give_sources(t, i, e) : give(t, i, in, e);
	}
	return rc;
}

int
acc_substitute_with(struct scan *s, uint32_t call, uint32_t bench, uint32_t device,
	const char **cause, struct acc_err *e)
{
	const struct stand_in in = {bench, device};
	struct asked a = {.mem = acc_mem(s)};
	const struct acc_judge_opt *opt = &s->c->opt;
	struct acc_audit_opt how = {.threads = opt->threads,
		.tmpdir = opt->tmpdir,
		.room = (uint64_t)LIMIT_AUDIT_ROOM << 20,
		.compared = true};
	const struct acc_call *k = &s->c->call[call];
	*cause = "";
	if (opt->roots == NULL || k->backward || k->key[ACC_B] == NULL)
		return 0;
	struct acc_recompute *t = acc_recompute_open(s, e);
	if (t == NULL)
		return ACC_ENOMEM;
	t->nfed = t->back = 0;
	acc_ids_clear(&t->sourced);
	t->audit = acc_audit_open(opt->roots, &how, take, quiet, &a, e);
	int rc = t->audit == NULL ? ACC_ENOMEM : give_all(t, call, &in, e);
	if (rc == 0)
		rc = acc_audit_end(t->audit, e);
	acc_audit_close(t->audit);
	t->audit = NULL;
	if (rc == 0 && a.lost)
		rc = acc_nomem(e);
	*cause = "";
	if (rc < 0 || a.cause == NULL)
		return rc;
	const char *cut = strchr(a.changed, '=');
	const struct acc_val value = acc_ctext(cut == NULL ? "" : cut + 1);
	*cause = cut == NULL ? a.cause
			     : acc_say_default(s, call, acc_str(a.op),
				       (struct acc_str){a.changed, (uint32_t)(cut - a.changed)},
				       &value, a.cause, e);
	return *cause == NULL ? acc_nomem(e) : 0;
}

int
acc_substitute(struct scan *s, uint32_t call, const char **cause, struct acc_err *e)
{
	struct acc_recorded how;
	const int rc = acc_recorded(s->c, &s->c->call[call], &how, e);
	*cause = "";
	return rc < 0 || how.framework
		       ? rc
		       : acc_substitute_with(s, call, ACC_NOCALL, ACC_NOCALL, cause, e);
}

/* One value of the bench's in the stretch: is it, with one thing changed, one of the device's there? */
static int
ask(struct scan *s, const struct parting *p, const struct part_value *y, uint32_t *asked,
	uint32_t *step_of, const char **text, struct acc_err *e)
{
	enum { MOST = 24 };
	const struct part_side *a = &p->side[ACC_A];
	const uint32_t call = p->side[ACC_B].step[y->step].call;
	int rc = 0;
	for (uint32_t i = 0; i < a->nvalue && rc == 0 && *text == NULL && *asked < MOST; i++) {
		const struct part_value *x = &a->value[i];
		const struct part_step *step = &a->step[x->step];
		const char *cause;
		if (!step->in || !x->out || !x->real || x->count != y->count)
			continue;
		++*asked;
		rc = acc_substitute_with(s, call, y->item, x->item, &cause, e);
		*step_of = rc == 0 && cause[0] != '\0' ? x->step : *step_of;
		if (rc == 0 && cause[0] != '\0')
			*text = acc_say(acc_mem(s),
				"; %s gives what %s does if one thing is changed: %s",
				p->side[ACC_B].step[y->step].name, step->name, cause);
		if (rc == 0 && cause[0] != '\0' && *text == NULL)
			rc = acc_nomem(e);
	}
	return rc;
}

/* The last number that a side gives in the stretch; NULL: none. */
static const struct part_value *
last_number(const struct part_side *d)
{
	for (uint32_t i = d->nvalue; i-- > 0;)
		if (d->step[d->value[i].step].in && d->value[i].out && d->value[i].real &&
			d->value[i].count == 1)
			return &d->value[i];
	return NULL;
}

/* Losses: of numbers only the two that the stretch ends in, since one may be another by chance. */
static int
ask_number(struct scan *s, const struct parting *p, uint32_t *step_of, const char **text,
	struct acc_err *e)
{
	const struct part_value *x = last_number(&p->side[ACC_A]),
				*y = last_number(&p->side[ACC_B]);
	const char *cause;
	if (x == NULL || y == NULL)
		return 0;
	const struct part_step *step = &p->side[ACC_B].step[y->step];
	int rc = acc_substitute_with(s, step->call, y->item, x->item, &cause, e);
	if (rc < 0 || cause[0] == '\0')
		return rc;
	*step_of = x->step;
	*text = acc_say(acc_mem(s), "; %s gives what %s does if one thing is changed: %s",
		step->name, p->side[ACC_A].step[x->step].name, cause);
	return *text == NULL ? acc_nomem(e) : 0;
}

int
acc_substitute_within(struct scan *s, const struct parting *p, uint32_t *step, bool *leads,
	const char **text, struct acc_err *e)
{
	const struct part_side *b = &p->side[ACC_B];
	uint32_t asked = 0;
	int rc;
	*text = NULL;
	*leads = false;
	*step = ACC_NOCALL;
	rc = acc_part_compare_first(s, p, step, text, e);
	for (uint32_t i = 0; i < b->nvalue && rc == 0 && *text == NULL; i++) {
		const struct part_value *y = &b->value[i];
		if (b->step[y->step].in && y->out && y->real && y->count > 1)
			rc = ask(s, p, y, &asked, step, text, e);
		/* What the device seems to lack may be what the changed call is. */
		*leads = rc == 0 && *text != NULL &&
			 y->step == (p->lacks != ACC_NOCALL ? p->lacks
							    : acc_part_first_step(p, ACC_B));
	}
	if (rc == 0 && *text == NULL)
		rc = ask_number(s, p, step, text, e);
	*text = *text == NULL ? "" : *text;
	return rc;
}

/* Where several kernels make up a call of the bench: does each tensor that this takes agree with one that they take? */
static bool
whole_is_given_alike(const struct acc_case *c, uint32_t call)
{
	bool any = false;
	for (uint32_t i = 0; i < c->nitem && c->call[call].key[ACC_B] != NULL; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->call == ACC_NOCALL || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
			(it->sides & 2) == 0 || !is_of(&c->call[it->call], &c->call[call]))
			continue;
		if (!acc_is_measured(it) || !(it->rms <= LIMIT_SAME_INPUT * acc_item_unit(it)))
			return false;
		any = true;
	}
	return any;
}

/* Is what such a call gives the last kernel's, and another? */
static bool
is_other_whole(const struct scan *s, const struct suspect *x)
{
	const struct acc_item *it = &s->c->item[x->item];
	return !it->apart && !it->exact && acc_call_is_fused(s->c, x->call) &&
	       it->rms > LIMIT_OTHER_OUTPUT * acc_item_unit(it) &&
	       whole_is_given_alike(s->c, x->call);
}

/* What is taken for computed otherwise, because what follows agrees again, or since what goes into its kernels was not
 * all compared, is another function all the same where one argument explains it to the rounding. */
int
acc_substitute_apart(struct scan *s, uint32_t *chosen, struct acc_err *e)
{
	enum { MOST = 16 };
	uint32_t asked = 0, last = ACC_NOCALL;
	int rc = 0;
	for (uint32_t i = 0; i < s->nsuspect && rc == 0 && asked < MOST; i++) {
		struct suspect *x = &s->suspect[i];
		const char *cause;
		if (x->role != ROLE_OUT || x->call == last || s->c->item[x->item].sides != 3)
			continue;
		if (!(s->c->item[x->item].apart && acc_given_alike(s->c, x->call)) &&
			!is_other_whole(s, x))
			continue;
		last = x->call;
		asked++;
		rc = acc_substitute(s, x->call, &cause, e);
		if (rc < 0 || cause[0] == '\0')
			continue;
		x->guess = false;
		x->margin = LIMIT_CERTAIN;
		x->value = s->c->item[x->item].rms;
		x->limit = LIMIT_OTHER_OUTPUT * acc_item_unit(&s->c->item[x->item]);
		*chosen = i;
		break;
	}
	return rc;
}

/* Of the device's calls that make up this one of the bench, the one that sums up products: what a bias that is right
 * is added to. */
uint32_t
acc_inner_product(const struct scan *s, const struct suspect *x)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[x->call];
	if (x->role != ROLE_OUT || x->blame != x->call || x->audit || k->backward ||
		k->key[ACC_B] == NULL || acc_multiplies(k) || !acc_acquitted(&c->item[x->item]))
		return ACC_NOCALL;
	for (uint32_t i = 0; i < x->call; i = acc_step(c, i))
		if (c->call[i].key[ACC_A] != NULL && is_of(&c->call[i], k) &&
			acc_multiplies(&c->call[i]) && !acc_accused(&c->item[x->item]))
			return i;
	return ACC_NOCALL;
}
