/* NaN and infinities that both sides have in the same places. Nothing compares them, so that they are
 * no difference; but where the loss is one, nothing that follows from it was compared, either. */
#include "judge/case.h"
#include "acc/say.h"

/* Does item i hold some of them, on both sides? */
static bool
neither(const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && it->sides == 3 && !it->nonfinite && !it->exact &&
	       it->measure != ACC_UNMEASURED && (it->a_nan || it->a_inf);
}

/* One number that a forward call made. */
static bool
is_scalar(const struct acc_case *c, const struct acc_item *it)
{
	return it->kind == ACC_ITEM_TENSOR && it->sides == 3 && it->count == 1 && !it->exact &&
	       it->call != ACC_NOCALL && !c->call[it->call].backward &&
	       (it->io == ACC_IO_OUT || it->io == ACC_IO_NONE);
}

/* By its name: a loss of a framework, of a module, or a tensor that is called so. */
static int
named_loss(struct acc_case *c, const struct acc_item *it, bool *yes, struct acc_err *e)
{
	static const char *const names[] = {"*loss*", "*Loss*", "*cross_entropy*", "*CrossEntropy*",
		"*kl_div*", "*KLDiv*"};
	struct acc_rec *r;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	struct acc_str op = acc_get_text(r, "a.", "op");
	op = op.n > 0 ? op : acc_get_text(r, "a.", "name");
	*yes = false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		*yes |= acc_glob(names[i], op);
	return 0;
}

/* The calls of one step and rank. */
struct scene {
	uint32_t first, end; /* calls */
	uint64_t back; /* twin of the first backward call: what it begins with is the loss's */
	bool backward; /* there is one */
	uint32_t last; /* the last item that is a scalar of a forward call, or ACC_NOCALL */
};

static struct scene
scene_at(const struct acc_case *c, uint32_t first)
{
	struct scene s = {.first = first, .end = first, .last = ACC_NOCALL};
	for (; s.end < c->ncall && c->call[s.end].segment == c->call[first].segment; s.end++) {
		const struct acc_call *k = &c->call[s.end];
		if (k->backward && !s.backward)
			s.back = k->twin;
		s.backward |= k->backward;
		for (uint32_t i = k->first; k->items > 0 && !k->backward && i <= k->last; i++)
			if (c->item[i].call == s.end && acc_is_output(&c->item[i]))
				s.last = is_scalar(c, &c->item[i]) ? i : ACC_NOCALL;
	}
	return s;
}

/* The loss of a step and rank that is NaN or infinite on both sides, as an item; ACC_NOCALL: none.
 * It is called so, or the backward pass begins with it, or, where there is none, all ends in it. */
static int
lost_loss(struct acc_case *c, const struct scene *s, uint32_t *item, struct acc_err *e)
{
	*item = ACC_NOCALL;
	for (uint32_t j = s->first; j < s->end; j++) {
		const struct acc_call *k = &c->call[j];
		for (uint32_t i = k->first; k->items > 0 && i <= k->last; i++) {
			const struct acc_item *it = &c->item[i];
			bool yes = (s->backward && k->keyed && k->twin == s->back) ||
				   (!s->backward && i == s->last);
			if (it->call != j || !neither(it) || !is_scalar(c, it))
				continue;
			if (!yes && named_loss(c, it, &yes, e) < 0)
				return e->code;
			if (yes) {
				*item = i;
				return 0;
			}
		}
	}
	return 0;
}

/* The first output of the step and rank that holds what the loss does. */
static const struct acc_item *
origin(const struct acc_case *c, const struct scene *s, const struct acc_item *loss)
{
	for (uint32_t j = s->first; j < s->end; j++) {
		const struct acc_call *k = &c->call[j];
		for (uint32_t i = k->first; k->items > 0 && i <= k->last; i++) {
			const struct acc_item *it = &c->item[i];
			if (it->call == j && neither(it) && acc_is_output(it) &&
				(loss->a_nan ? it->a_nan : it->a_inf))
				return it;
		}
	}
	return loss;
}

static int
say_loss(struct acc_case *c, uint32_t first, uint32_t steps, struct acc_err *e)
{
	const struct scene s = scene_at(c, first);
	uint32_t item;
	if (lost_loss(c, &s, &item, e) < 0)
		return e->code;
	const struct acc_item *it = &c->item[item], *from = origin(c, &s, it);
	const struct acc_call *k = &c->call[it->call];
	struct acc_rec *r;
	if (acc_case_record(c, it, &r, e) < 0)
		return e->code;
	const char *where = acc_say_where(c, k), *place = acc_say_position(c, r, it);
	const char *harmless = acc_harmless(c, it->call, e);
	if (harmless == NULL)
		return e->code;
	struct acc_finding *f = acc_case_find(c, "overflow", e);
	if (where == NULL || place == NULL || f == NULL)
		return acc_nomem(e);
	acc_finding_of(f, k);
	f->rule = "loss";
	f->value = steps;
	f->bad = harmless[0] == '\0';
	f->text = acc_say(&c->mem,
		"%s%s: %s, the loss, is %s on both sides%s: nothing that follows from it is compared by "
		"numbers there%s%s%s",
		where, f->name, place, it->a_nan ? "NaN" : "infinite",
		steps > 1 ? acc_got(acc_say(&c->mem,
				    ", here and at all later steps that were recorded (%u in all)",
				    steps))
			  : "",
		from == it ? ""
			   : acc_got(acc_say(&c->mem, "; the first output that holds one is of %s",
				     acc_call_name(&c->call[from->call]))),
		harmless[0] == '\0' ? "" : "; ", harmless);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Of each rank the steps from which on the loss is lost to the last; the first of all is said. */
static int
say_lost(struct acc_case *c, struct acc_err *e)
{
	struct acc_map run = {0}; /* rank -> 1 + first call of its run, or 0; and how many steps */
	uint32_t best = ACC_NOCALL, steps = 0;
	int rc = 0;
	for (uint32_t j = 0; j < c->ncall && rc == 0;) {
		acc_case_rest(c);
		const struct scene s = scene_at(c, j);
		uint32_t item;
		rc = lost_loss(c, &s, &item, e);
		const struct acc_str key = {(const char *)&c->call[j].rank, sizeof c->call[j].rank};
		uint64_t *at = rc < 0 ? NULL : acc_map_put(&run, key, 0);
		if (rc == 0 && at == NULL)
			rc = acc_nomem(e);
		if (rc == 0)
			*at = item == ACC_NOCALL ? 0
			      : *at == 0         ? (uint64_t)1 << 32 | j
						 : *at + ((uint64_t)1 << 32);
		j = s.end;
	}
	acc_case_rest(c);
	for (uint32_t j = 0; j < c->ncall && rc == 0; j++) {
		const struct acc_str key = {(const char *)&c->call[j].rank, sizeof c->call[j].rank};
		if (j > 0 && c->call[j].segment == c->call[j - 1].segment)
			continue;
		const uint64_t *at = acc_map_get(&run, key);
		if (at == NULL || *at == 0 || (best != ACC_NOCALL && (uint32_t)*at >= best))
			continue;
		best = (uint32_t)*at;
		steps = (uint32_t)(*at >> 32);
	}
	acc_map_release(&run);
	return rc < 0 || best == ACC_NOCALL ? rc : say_loss(c, best, steps, e);
}

/* How many tensors hold some, where none is a difference: a mask is such. Of weights, each. */
static int
say_count(struct acc_case *c, bool weights, struct acc_err *e)
{
	uint32_t n = 0, first = ACC_NOCALL;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const bool yes = neither(&c->item[i]) && (weights || acc_is_output(&c->item[i]));
		n += yes;
		first = yes && first == ACC_NOCALL ? i : first;
	}
	if (n == 0)
		return 0;
	struct acc_rec *r;
	struct acc_finding *f = acc_case_find(c, "clean", e);
	if (f == NULL || (weights && acc_case_record(c, &c->item[first], &r, e) < 0))
		return e->code;
	f->rule = "neither";
	f->value = n;
	if (weights)
		f->name = acc_arena_str(&c->mem, acc_get_text(r, "a.", "name")).p;
	else if (c->item[first].call != ACC_NOCALL)
		f->name = acc_call_name(&c->call[c->item[first].call]);
	f->text =
		weights ? acc_say(&c->mem,
				  "%u tensor%s hold%s NaN or infinities on both sides, first %s: these elements are"
				  " not compared by numbers",
				  n, n == 1 ? "" : "s", n == 1 ? "s" : "", acc_got(f->name))
			: acc_say(&c->mem,
				  "%u output%s hold%s NaN or infinities on both sides, first %s: these elements are"
				  " not compared by numbers",
				  n, n == 1 ? "" : "s", n == 1 ? "s" : "", acc_got(f->name));
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_neither(struct acc_case *c, bool weights, struct acc_err *e)
{
	const int rc = weights ? 0 : say_lost(c, e);
	return rc < 0 ? rc : say_count(c, weights, e);
}
