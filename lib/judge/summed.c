/* Sums over ranks that accfold has made one: they are blamed for what they make of what is right. */
#include "acc/say.h"
#include "judge/arrived.h"
#include "judge/case.h"
#include "judge/cut.h"
#include "judge/first_bad.h"

#include <math.h>

/* A record of an output of this call in which accfold doubts a sum so; NULL. */
static struct acc_rec *
doubted(struct acc_case *c, uint32_t call, const char *key)
{
	const struct acc_call *k = &c->call[call];
	struct acc_rec *r;
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
			(c->item[i].sides & 1) != 0 && !acc_is_input(&c->item[i]) &&
			acc_case_record(c, &c->item[i], &r, NULL) >= 0 &&
			acc_get(r, "a.", key) != NULL)
			return r;
	return NULL;
}

/* The call that a finding names; ACC_NOCALL. */
static uint32_t
call_of(const struct acc_case *c, const struct acc_finding *f)
{
	for (uint32_t k = 0; k < c->ncall; k++)
		if (c->call[k].step == f->step && strcmp(acc_call_name(&c->call[k]), f->name) == 0)
			return k;
	return ACC_NOCALL;
}

/* The summands of a product, which a communication adds up behind its other calls, went on as they
 * are: what takes them is right. */
static int
blame_lost(struct acc_case *c, struct acc_finding *f, struct acc_err *e)
{
	enum { NEAR = 24 };
	uint32_t call = call_of(c, f);
	for (uint32_t k = call, n = 0; call != ACC_NOCALL && n < NEAR; k--, n++) {
		struct acc_rec *r = doubted(c, k, "fold.lost");
		if (r != NULL) {
			struct acc_str by = acc_get_text(r, "a.", "fold.lost");
			struct acc_str key = acc_get_text(r, "a.", "fold.key");
			const char *name = key.n > 0 ? acc_arena_copy(&c->mem, key.p, key.n)
						     : acc_call_name(&c->call[k]);
			f->rule = "reduction";
			f->io = f->pos = NULL;
			f->rank = INT64_MIN;
			f->name = name;
			f->text = acc_say(&c->mem,
				"%s: each rank has a summand of its output, and nothing adds them up here, as"
				" %.*s does behind another call of this line; so %s",
				name, ACC_PRS(by), f->text);
			return f->text == NULL || name == NULL ? acc_nomem(e) : 0;
		}
		if (k == 0)
			break;
	}
	return 0;
}

/* What the ranks have adds up to the bench's: it is the sum that is wrong. */
static int
blame_sum(struct acc_case *c, struct acc_finding *f, struct acc_err *e)
{
	uint32_t call = call_of(c, f);
	struct acc_rec *r = call == ACC_NOCALL ? NULL : doubted(c, call, "fold.not_sum");
	bool mean = false;
	if (r == NULL && call != ACC_NOCALL) {
		r = doubted(c, call, "fold.undivided");
		mean = r != NULL;
	}
	if (r == NULL)
		return 0;
	struct acc_str by = acc_get_text(r, "a.", mean ? "fold.undivided" : "fold.not_sum");
	f->text = acc_say(&c->mem,
		mean ? "%.*s: gives the sum of what the ranks have, and nothing divides it by their"
		       " number, as the bench's mean is; so %s"
		     : "%.*s: what the ranks have adds up to the bench's, but this does not give their"
		       " sum; so %s",
		ACC_PRS(by), f->text);
	f->name = acc_arena_copy(&c->mem, by.p, by.n);
	f->rule = "reduction";
	f->rank = INT64_MIN;
	f->io = f->pos = NULL;
	return f->text == NULL || f->name == NULL ? acc_nomem(e) : 0;
}

/* Of the device's outputs of backward calls, what ranks reduce, and what the pass goes on with; off: as far as this finding. */
struct reduced {
	uint32_t n, off, others, others_off;
};

static int
count_reduced(struct acc_case *c, const struct acc_finding *f, struct reduced *n, struct acc_err *e)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call == ACC_NOCALL || !c->call[it->call].backward ||
			c->call[it->call].step != f->step || it->kind != ACC_ITEM_TENSOR ||
			it->sides != 3 || !acc_is_output(it) || !acc_is_measured(it))
			continue;
		int rc = acc_case_record(c, it, &r, e);
		if (rc < 0)
			return rc;
		const bool is = acc_get(r, "a.", "fold.by") != NULL, off = it->rms >= f->value / 8;
		n->n += is;
		n->off += is && off;
		n->others += !is;
		n->others_off += !is && off;
	}
	return 0;
}

/* Most gradients that the ranks reduce are off, and none that the backward pass goes on with: not all op calls give a
 * wrong one beside a right one. */
static int
blame_reduction(struct acc_case *c, struct acc_finding *f, struct acc_err *e)
{
	enum { FEW = 4 };
	const uint32_t call = call_of(c, f);
	struct reduced n = {0};
	acc_case_rest(c);
	int rc = call == ACC_NOCALL || !c->call[call].backward ||
				 doubted(c, call, "fold.talk") == NULL
			 ? 1
			 : count_reduced(c, f, &n, e);
	if (rc != 0 || n.n < FEW || 4 * n.off < 3 * n.n || n.others < FEW || n.others_off > 0)
		return rc < 0 ? rc : 0;
	struct acc_rec *r = doubted(c, call, "fold.talk");
	struct acc_str by = acc_get_text(r, "a.", "fold.talk");
	const char *name = acc_arena_copy(&c->mem, by.p, by.n);
	if (name == NULL)
		return acc_nomem(e);
	f->text = acc_say(&c->mem,
		"%s: %u of the %u gradients that the ranks reduce are off, and none of the %u that the backward pass goes"
		" on with: it is how they are reduced, or what scales them behind that; so %s",
		name, n.off, n.n, n.others, f->text);
	f->name = name;
	f->rule = "reduction";
	f->rank = INT64_MIN;
	f->io = f->pos = NULL;
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* A finding of an op call, doubtful unless the caller says that it is bad, without its text. NULL: no memory. */
static struct acc_finding *
of_call(struct acc_case *c, const char *what, uint32_t call, const char *rule, double value,
	struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	struct acc_finding *f = acc_case_find(c, what, e);
	if (f == NULL)
		return NULL;
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->rule = rule;
	f->value = value;
	f->doubtful = true;
	return f;
}

/* Gradients that each rank divides by their number, but that nothing adds up. Where no communication is
 * recorded at all, the recorder may not see them. */
static int
say_apart(struct acc_case *c, struct acc_err *e)
{
	bool talks = false;
	struct acc_rec *r = NULL;
	uint32_t first = ACC_NOCALL, n = 0;
	struct acc_str by = acc_str("");
	acc_case_rest(c);
	for (uint32_t k = 0; k < c->ncall; k = acc_step(c, k)) {
		talks |= c->call[k].talks && c->call[k].key[ACC_A] != NULL;
		r = c->call[k].backward ? doubted(c, k, "fold.apart") : NULL;
		if (r == NULL)
			continue;
		if (n++ == 0) {
			struct acc_str s = acc_get_text(r, "a.", "fold.apart");
			const char *copy = acc_arena_copy(&c->mem, s.p, s.n);
			if (copy == NULL)
				return acc_nomem(e);
			by = acc_str(copy);
			first = k;
		}
	}
	if (n == 0)
		return 0;
	struct acc_finding *f = of_call(c, talks ? "missing" : "warning", first, "reduction", n, e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->bad = talks;
	f->doubtful = !talks;
	f->text = acc_say(&c->mem,
		talks ? "%s: each rank divides its gradient by their number (%.*s), and nothing that is recorded"
			" adds them up: together they are the bench's, but each rank has its own; %u op call%s"
			" (--allow-missing accepts it)"
		      : "%s: each rank divides its gradient by their number (%.*s), and nothing that is recorded"
			" adds them up: together they are the bench's, but each rank has its own; %u op call%s;"
			" no communication is recorded at all, so what adds them up may not be, either",
		f->name, ACC_PRS(by), n, n == 1 ? "" : "s");
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Gradients that are the bench's only by a factor, which nothing that is recorded multiplies by. Where something does, they
 * come to the optimizer as the bench's, and are not counted. */
struct unscaled {
	uint32_t first, n; /* op calls */
	double times;
};

static struct unscaled
find_unscaled(struct acc_case *c, const struct acc_stepped *arrived)
{
	struct unscaled u = {.first = ACC_NOCALL, .times = NAN};
	acc_case_rest(c);
	for (uint32_t k = 0; k < c->ncall; k = acc_step(c, k)) {
		struct acc_rec *r = c->call[k].backward ? doubted(c, k, "fold.unscaled") : NULL;
		double scale = NAN, norm = NAN;
		if (r == NULL || !acc_as_f64(acc_get(r, "a.", "fold.unscaled"), &scale))
			continue;
		acc_side_norm(r, ACC_B, &norm);
		if (acc_has_arrived(arrived, norm, 1 / scale) || u.n++ > 0)
			continue;
		u.first = k;
		u.times = 1 / scale;
	}
	return u;
}

static int
say_unscaled(struct acc_case *c, const struct unscaled *u, struct acc_err *e)
{
	struct acc_finding *f = of_call(c, "warning", u->first, "scale", u->times, e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->limit = 1;
	f->text = acc_say(&c->mem,
		"%s: what the micro-batches add up to is %g times the bench's gradient, as in %u op call%s, and"
		" nothing that is recorded multiplies it by %g: is the loss divided by their number, or"
		" does the optimizer divide?",
		f->name, u->times, u->n, u->n == 1 ? "" : "s", 1 / u->times);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Is the tensor that this finding names so many times the bench's, to 1 % of that? */
static bool
is_times(struct acc_case *c, const struct acc_finding *f, double times)
{
	const uint32_t call = f->io == NULL || f->pos == NULL ? ACC_NOCALL : call_of(c, f);
	struct acc_rec *r;
	for (uint32_t i = call == ACC_NOCALL ? 1 : c->call[call].first;
		call != ACC_NOCALL && i <= c->call[call].last; i++) {
		double off = NAN;
		if (c->item[i].call != call || acc_case_record(c, &c->item[i], &r, NULL) < 0 ||
			strcmp(acc_say_io(&c->item[i]), f->io) != 0 ||
			!acc_str_is(acc_get_text(r, "a.", "pos"), f->pos))
			continue;
		if (!acc_as_f64(acc_get(r, "m.", "rel_l2"), &off))
			acc_as_f64(acc_get(r, "m.", "norm_relerr"), &off);
		return fabs(off - fabs(times - 1)) < 0.01 * times;
	}
	return false;
}

/* The loss: the forward call whose gradient is the first. ACC_NOCALL. */
static uint32_t
loss_of(struct acc_case *c, uint32_t backward)
{
	uint32_t first = 0;
	while (first < backward && !(c->call[first].backward && c->call[first].key[ACC_A] != NULL))
		first++;
	for (uint32_t k = first; k-- > 0;)
		if (!c->call[k].backward && c->call[k].twin == c->call[first].twin)
			return k;
	return ACC_NOCALL;
}

/* What to record of a call that is not to blame any more. */
static void
forget_next(struct acc_case *c)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (strcmp(c->finding[i].what, "next") != 0)
			c->finding[n++] = c->finding[i];
	c->nfinding = n;
}

/* The weights' gradients, or what the optimizer takes, are off by that factor: it is what is wrong. 1: said. */
static int
blame_factor(struct acc_case *c, struct acc_finding *f, const struct unscaled *u, struct acc_err *e)
{
	const uint32_t call = call_of(c, f);
	const uint32_t loss = call == ACC_NOCALL || call <= u->first ? ACC_NOCALL
								     : loss_of(c, u->first);
	if (loss == ACC_NOCALL || !is_times(c, f, u->times))
		return 0;
	const char *stack, *src = acc_say_source(c, &c->call[loss], &stack, e);
	if (src == NULL)
		return acc_nomem(e);
	f->text = acc_say(&c->mem,
		"%s: the gradients of the micro-batches add up to %g times the bench's, as in %u op call%s, and so"
		" does what %s has: is this loss divided by their number?%s%s",
		acc_call_name(&c->call[loss]), u->times, u->n, u->n == 1 ? "" : "s", f->name,
		src[0] != '\0' ? " at " : "", src);
	f->name = acc_call_name(&c->call[loss]);
	f->stack = stack;
	f->rule = "scale";
	f->value = u->times;
	f->limit = 1;
	f->limit_from = NULL;
	f->rank = INT64_MIN;
	f->io = f->pos = NULL;
	return f->text == NULL ? acc_nomem(e) : 1;
}

/* Has this call an output that both sides have, single: of one element, and that no layout explains? */
static bool
unexplained(struct acc_case *c, uint32_t call, bool single)
{
	const struct acc_call *k = &c->call[call];
	struct acc_rec *r;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == call && it->kind == ACC_ITEM_TENSOR && it->sides == 3 &&
			!it->exact && acc_is_output(it) && it->measure == ACC_UNMEASURED &&
			(!single || it->count == 1) && acc_case_record(c, it, &r, NULL) >= 0 &&
			acc_str_is(acc_get_text(r, "a.", "fold"), "Unknown()"))
			return true;
	}
	return false;
}

/* A gradient of a loss that is neither the sum nor the mean of those of the parts, where all that goes in is the same:
 * what each part's loss is divided by. */
static int
blame_share(struct acc_case *c, struct acc_finding *f, uint32_t call, struct acc_err *e)
{
	uint32_t loss = call;
	acc_case_rest(c);
	while (loss > 0 && (c->call[loss].backward || c->call[loss].twin != c->call[call].twin))
		loss--;
	if (!c->call[call].backward || c->call[loss].backward ||
		c->call[loss].twin != c->call[call].twin || !unexplained(c, loss, true))
		return 0;
	f->text = acc_say(&c->mem,
		"%s; its loss is neither the sum nor the mean of those of the parts: is each part's divided by its own"
		" count, and the bench's by that of all (tokens that are masked)?",
		f->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* A loss that the parts' losses are not by any layout. They may count unlike; or it is wrong, and then what
 * is behind it has no layout, either, and is not compared. */
static int
say_loss(struct acc_case *c, struct acc_err *e)
{
	uint32_t first = ACC_NOCALL, behind = 0;
	acc_case_rest(c);
	for (uint32_t k = 0; k < c->ncall; k = acc_step(c, k)) {
		if (first != ACC_NOCALL)
			behind += c->call[k].backward && unexplained(c, k, false);
		else if (!c->call[k].backward && unexplained(c, k, true))
			first = k;
	}
	if (first == ACC_NOCALL || behind == 0)
		return 0;
	struct acc_finding *f = of_call(c, "warning", first, "layout", behind, e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->text = acc_say(&c->mem,
		"%s: the bench's is neither the sum nor the mean of what the parts have, so neither it nor"
		" %u op call%s behind it could be compared: do the parts count unlike (tokens that are"
		" masked)? If not, it is wrong",
		f->name, behind, behind == 1 ? "" : "s");
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Whose batch was put together is said. */
static int
say_batches(struct acc_case *c, struct acc_err *e)
{
	int64_t n = 0;
	const bool device = acc_is_folded_side(c, ACC_A);
	for (uint32_t i = 0; i < c->nitem && n == 0; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind != ACC_ITEM_AUX ||
			acc_case_record(c, &c->item[i], &r, NULL) < 0)
			continue;
		n = acc_rec_is(r, "source") ? acc_get_int(r, "", "fold.batches", 0) : 0;
	}
	struct acc_finding *f = n == 0 ? NULL : acc_case_find(c, "clean", e);
	if (f == NULL)
		return n == 0 ? 0 : acc_nomem(e);
	f->rule = "batches";
	f->value = (double)n;
	f->text = acc_say(&c->mem,
		device ? "the device takes its batch in %lld parts, one after another: they are compared as one"
		       : "the bench takes its batch in %lld parts, one after another: they are compared as one",
		(long long)n);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_sums(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	bool culprit = false, blamed = false;
	int rc = 0;
	if (c->passed == 0 || !acc_is_folded(c))
		return 0;
	struct acc_stepped arrived = {0};
	rc = acc_find_arrived(c, &arrived, e);
	const struct unscaled u = find_unscaled(c, &arrived);
	acc_arrived_free(&arrived);
	for (uint32_t i = 0; i < c->nfinding && rc == 0; i++) {
		struct acc_finding *f = &c->finding[i];
		if (strcmp(f->what, "culprit") != 0 || f->name == NULL)
			continue;
		culprit = true;
		rc = blame_sum(c, f, e);
		if (rc == 0 && (f->rule == NULL || strcmp(f->rule, "reduction") != 0))
			rc = blame_lost(c, f, e);
		if (rc == 0 && (f->rule == NULL || strcmp(f->rule, "reduction") != 0))
			rc = blame_reduction(c, f, e);
		const uint32_t call = rc < 0 ? ACC_NOCALL : call_of(c, f);
		if (call != ACC_NOCALL && (f->rule == NULL || strcmp(f->rule, "reduction") != 0))
			rc = acc_blame_turned(c, f, call, e);
		if (rc == 0 && call != ACC_NOCALL && f->text != NULL)
			rc = blame_share(c, f, call, e);
		if (rc == 0 && u.n > 0) {
			rc = blame_factor(c, f, &u, e);
			blamed |= rc > 0;
		}
		rc = rc < 0 ? rc : 0;
	}
	if (rc == 0 && !culprit)
		rc = say_apart(c, e);
	if (blamed)
		forget_next(c);
	else if (rc == 0 && u.n > 0)
		rc = say_unscaled(c, &u, e);
	rc = rc < 0 ? rc : say_batches(c, e);
	if (rc == 0 && acc_case_status(c) == 0)
		rc = acc_say_cut(s, e);
	return rc < 0 || culprit ? rc : say_loss(c, e);
}
