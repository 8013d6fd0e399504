/* How much of two programs of one network could be compared, and how it ends: what agrees where little was
 * compared says little. */
#include "acc/say.h"
#include "judge/first_bad.h"
#include "judge/parting.h"
#include "judge/root.h"

#include <math.h>

#include "judge/case.h"

struct extent {
	uint32_t calls, compared; /* op calls of the device */
	uint32_t apart;           /* tensors */
	uint32_t last;            /* the last forward call that was compared, or ACC_NOCALL */
	uint32_t behind;    /* forward calls of the device after it, before anything is backward */
	uint32_t benchs;    /* and of the bench */
	double error;       /* of what that one gives, */
	double by_elements; /* and of that what was compared by elements; -1: nothing */
	double into;        /* and by elements of what went into it; -1: nothing */
	bool whole; /* it is one call on both sides, and all tensors that went in were compared */
	double noise; /* of what that one gives, as a second run of the bench shows it; 0: nothing did */
	double head_noise; /* the same of head */
	uint32_t forward;  /* forward calls of the device */
	uint32_t given;    /* tensors that went in, of all that were compared */
	uint32_t head;     /* the last that takes a weight which both sides have, or ACC_NOCALL */
	double head_error; /* of what that one gives, where it was compared by elements; or -1 */
	uint32_t anchors,
		met; /* forward calls of such weights; of them, whose outputs were compared */
	double anchor_error; /* the worst of those */
	uint32_t grads;      /* gradients of parameters that were compared */
	double grad_error;   /* the worst of those */
	uint32_t alone[2];   /* op calls of one side */
};

/* Does a call take a weight that is the same on both sides? Then it is its partner, whatever else it takes. */
static bool
has_weight(const struct acc_case *c, uint32_t call, bool by_elements)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == call && it->weight && it->count > 1 &&
			(by_elements ? it->measure == ACC_BY_TENSOR : acc_is_measured(it)) &&
			it->rms <= LIMIT_SAME_INPUT * acc_item_unit(it))
			return true;
	}
	return false;
}

static void
look(const struct scan *s, uint32_t call, bool back, struct extent *x)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	bool compared = false;
	double error = -1, by_elements = -1, into = -1, noise = 0;
	bool whole = true;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR)
			continue;
		x->apart += it->apart;
		compared |= acc_is_measured(it);
		whole &= !it->loose && (acc_is_output(it) || acc_is_measured(it));
		x->given += acc_is_measured(it) && !acc_is_output(it);
		if (acc_is_output(it) && acc_is_measured(it) && !it->exact)
			error = fmax(error, it->rms);
		if (acc_is_output(it) && it->noise_rms > 0 && !it->exact)
			noise = fmax(noise, LIMIT_MARGIN * s->noise * it->noise_rms);
		if (acc_is_output(it) && it->measure == ACC_BY_TENSOR && !it->exact &&
			it->count > 1)
			by_elements = fmax(by_elements, it->rms);
		if (acc_is_input(it) && it->measure == ACC_BY_TENSOR && !it->exact && it->count > 1)
			into = fmax(into, it->rms);
	}
	x->calls++;
	x->compared += compared;
	if (k->backward || back)
		return;
	x->behind++;
	x->forward++;
	if (k->key[ACC_B] != NULL && has_weight(c, call, true)) {
		x->head = call;
		x->head_error = by_elements;
		x->head_noise = noise;
	}
	if (k->key[ACC_B] != NULL && has_weight(c, call, false)) {
		x->anchors++;
		x->met += error >= 0;
		x->anchor_error = fmax(x->anchor_error, error);
	}
	if (error < 0)
		return;
	x->last = call;
	x->error = error;
	x->by_elements = by_elements;
	x->into = into;
	x->whole = whole;
	x->noise = noise;
	x->behind = x->benchs = 0;
}

static void
look_grad(const struct acc_case *c, uint32_t call, struct extent *x)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		/* Of a bias before a norm nothing but rounding is left: see acc_handed_on. */
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_measured(it) ||
			(it->ndim <= 1 && it->rms > LIMIT_HEALED))
			continue;
		x->grads++;
		x->grad_error = fmax(x->grad_error, it->rms);
	}
}

/* What must agree however a network is written, and does. */
static const char *
anchors_text(struct acc_arena *m, const struct extent *x)
{
	const char *s = acc_say(m,
		"; equal up to rewriting: the outputs of %u of the %u op call%s that take%s a weight of both sides"
		" agree (within %.2g)",
		x->met, x->anchors, x->anchors == 1 ? "" : "s", x->anchors == 1 ? "s" : "",
		x->anchor_error);
	if (s != NULL && x->grads > 0)
		s = acc_say(m, "%s, the gradient%s of %u parameter%s (within %.2g)", s,
			x->grads == 1 ? "" : "s", x->grads, x->grads == 1 ? "" : "s",
			x->grad_error);
	if (s != NULL && x->alone[ACC_A] + x->alone[ACC_B] > 0)
		s = acc_say(m,
			"%s; %u op call%s of the device and %u of the bench are written otherwise",
			s, x->alone[ACC_A], x->alone[ACC_A] == 1 ? "" : "s", x->alone[ACC_B]);
	return s;
}

static const char *
end_text(const struct acc_case *c, struct acc_arena *m, const struct extent *x)
{
	if (x->last == ACC_NOCALL)
		return acc_say(m, "; no output of the forward pass was compared");
	const char *name = acc_call_name(&c->call[x->last]);
	if (x->behind == 0)
		return acc_say(m, "; the forward pass ends in %s, which is off by %.2g", name,
			x->error);
	return acc_say(m,
		"; the last forward output that was compared, of %s, is off by %.2g; behind it the device has"
		" %u more op call%s",
		name, x->error, x->behind, x->behind == 1 ? "" : "s");
}

double
acc_end_limit(double unit, uint32_t calls)
{
	if (!acc_unit_low(unit))
		return LIMIT_PROGRAM_HEAD;
	return fmin(LIMIT_HEALED, LIMIT_MARGIN * LIMIT_STEP_U * unit * sqrt((double)calls));
}

/* The first op call of which nothing agrees that it gives, nor anything behind that, though all does that goes in;
 * ACC_NOCALL: none is known. */
static int
first_lost(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct parting p;
	*call = ACC_NOCALL;
	int rc = acc_part_find(s, ACC_NOCALL, &p, e);
	if (rc == 0 && p.fed)
		rc = acc_part_begins(&p, call, e);
	acc_part_release(&p);
	return rc;
}

/* The first op call of the forward pass whose output, compared by elements, is further off than it may end. */
static uint32_t
first_off(const struct scan *s, uint32_t end, double limit)
{
	const struct acc_case *c = s->c;
	for (uint32_t i = 0; i < end; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!k->keyed || k->module || k->grad || k->backward ||
			k->segment != c->call[end].segment)
			continue;
		for (uint32_t j = k->first; j <= k->last; j++) {
			const struct acc_item *it = &c->item[j];
			if (it->call == i && acc_is_output(it) && it->measure == ACC_BY_TENSOR &&
				!it->exact && it->count > 1 && it->rms > limit)
				return i;
		}
	}
	return ACC_NOCALL;
}

/* Where the forward pass parts that ends too far off; ACC_NOCALL: nothing tells. *cause: what the bench's call
 * would give as the device does, with one thing changed; "": nothing. */
static int
find_beginning(struct scan *s, uint32_t end, double limit, uint32_t *call, const char **cause,
	struct acc_err *e)
{
	const uint32_t off = s->coarse || acc_unit_low(s->unit) ? ACC_NOCALL
								: first_off(s, end, limit);
	const int rc = first_lost(s, call, e);
	*cause = "";
	if (rc < 0 || off == ACC_NOCALL || (*call != ACC_NOCALL && *call < off))
		return rc;
	*call = off;
	return acc_substitute(s, off, cause, e);
}

/* In f32 it is off by no more than what rounding left before it explains. */
static int
limit_of(struct scan *s, const struct extent *x, double *limit, struct acc_err *e)
{
	const uint32_t end = x->head != ACC_NOCALL ? x->head : x->last;
	double noise = 0;
	*limit = s->coarse && !acc_unit_low(s->unit) ? LIMIT_PROGRAM_END
						     : acc_end_limit(s->unit, x->forward);
	if (end == ACC_NOCALL || s->coarse || acc_unit_low(s->unit))
		return 0;
	const int rc = acc_noise_before(s->c, end, &noise, e);
	*limit = fmin(*limit, LIMIT_JUMP * noise);
	return rc;
}

/* A sum that is divided behind it ends alike. */
static bool
is_cleared(const struct scan *s, uint32_t call)
{
	return s->cleared != NULL && s->cleared[call];
}

/* What agrees where it was compared, but ends elsewhere, is not the same network. A loss tells little: of weights
 * that nobody trained all have nearly the same one. What the last weight gives tells, by elements. */
static int
say_end(struct scan *s, struct extent *x, struct acc_err *e)
{
	double limit;
	if (limit_of(s, x, &limit, e) < 0)
		return e->code;
	/* Where results alone are recorded, as engines give arrays, or hardly a weight, as hooks of modules save none, the
	 * end of either side tells as much. */
	const bool ends = (x->given == 0 ||
				  (x->whole && x->anchors * LIMIT_PROGRAM_LEAST < x->compared)) &&
			  x->last != ACC_NOCALL && (x->behind == 0 || x->benchs == 0);
	if (x->head != ACC_NOCALL && x->head_error > fmax(limit, x->head_noise)) {
		x->last = x->head;
		x->error = x->head_error;
	} else if (ends && x->by_elements > fmax(limit, x->noise) && !is_cleared(s, x->last)) {
		x->error = x->by_elements;
	} else if (fmin(x->into, x->error) > fmax(limit, x->noise) && !is_cleared(s, x->last)) {
		; /* neither what the end is made of agrees, nor the number that it is */
	} else {
		limit = acc_unit_low(s->unit) ? LIMIT_HEALED
			: s->coarse           ? LIMIT_PROGRAM_END
					      : LIMIT_PROGRAM_HEAD;
		if (x->last == ACC_NOCALL || !(x->error > fmax(limit, x->noise)) || x->apart == 0 ||
			is_cleared(s, x->last))
			return 0;
	}
	uint32_t begins;
	const char *cause;
	if (find_beginning(s, x->last, limit, &begins, &cause, e) < 0)
		return e->code;
	const char *end = acc_call_name(&s->c->call[x->last]), *stack = NULL, *src = "";
	const struct acc_call *k = &s->c->call[begins != ACC_NOCALL ? begins : x->last];
	if (begins != ACC_NOCALL)
		src = acc_say_source(s->c, k, &stack, e);
	if (src == NULL)
		return acc_nomem(e);
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_program_end, "difference",
		"program", e);
	if (f == NULL)
		return e->code;
	f->name = acc_call_name(k);
	f->stack = stack;
	f->step = k->step;
	f->rank = k->rank;
	f->value = x->error;
	f->limit = limit;
	f->text =
		begins == ACC_NOCALL
			? acc_say(acc_mem(s),
				  "the results at the end of the forward pass differ: %s is off by %.2g of the bench's "
				  "values, and no op call that was compared adds it; two programs of one network end "
				  "within %.2g",
				  end, x->error, limit)
			: acc_say(acc_mem(s),
				  "%s: here the forward pass parts: the numbers that go in are the bench's, and those that"
				  " it gives are not, or stand in another order; it ends in %s, off by %.2g of the"
				  " bench's values, where two programs of one network end within %.2g%s%s",
				  f->name, end, x->error, limit, src[0] != '\0' ? "; at " : "",
				  src);
	if (f->text != NULL && cause[0] != '\0')
		f->text = acc_say(acc_mem(s),
			"%s; the bench's call gives the same if one thing is changed: %s", f->text,
			cause);
	return f->text == NULL ? acc_nomem(e) : 0;
}

static bool
is_accused(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].bad)
			return true;
	return false;
}

static int
say_extent(struct scan *s, const struct extent *x, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct acc_finding *f = acc_case_find(c, "unmatched", e);
	if (f == NULL)
		return ACC_ENOMEM;
	const char *end = culprit == NULL ? end_text(c, acc_mem(s), x) : "";
	const char *equal = culprit == NULL && !is_accused(c) && x->met > 0
				    ? anchors_text(acc_mem(s), x)
				    : "";
	const char *apart =
		x->apart == 0 ? ""
			      : acc_say(acc_mem(s),
					"; what follows agrees again behind %u tensor%s, taken for"
					" computed otherwise",
					x->apart, x->apart == 1 ? "" : "s");
	f->rule = "program";
	f->value = x->compared;
	f->doubtful = true;
	f->text =
		end == NULL || apart == NULL || equal == NULL
			? NULL
			: acc_say(acc_mem(s),
				  "two programs of one network: %u of the device's %u op calls were compared%s%s%s",
				  x->compared, x->calls, equal, apart, end);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_programs(struct scan *s, const struct suspect *culprit, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct extent x = {.last = ACC_NOCALL, .head = ACC_NOCALL, .head_error = -1, .into = -1};
	bool back = false;
	uint32_t bench = 0; /* its op calls: kernels are many for one */
	if (!s->two)
		return 0;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		bench += k->keyed && !k->module && !k->grad && k->key[ACC_B] != NULL;
		back = (back && i > 0 && k->segment == c->call[i - 1].segment) || k->backward;
		for (int side = 0; side < 2; side++)
			x.alone[side] += k->keyed && !k->module && !k->grad &&
					 k->key[!side] == NULL;
		if (k->grad)
			look_grad(c, i, &x);
		else if (k->keyed && !k->module && k->key[ACC_A] != NULL)
			look(s, i, back, &x);
		else if (k->keyed && !k->module && !back)
			x.benchs++;
	}
	int rc = is_accused(c) ? 0 : say_end(s, &x, e);
	if (rc == 0 && culprit == NULL && !is_accused(c))
		rc = acc_say_root(s, e);
	if (rc == 0 && culprit == NULL && !is_accused(c))
		rc = acc_part_say_other_end(s, e);
	if (rc == 0 && (x.apart > 0 || x.met > 0))
		rc = say_extent(s, &x, culprit, e);
	if (rc == 0 && !is_accused(c) && x.alone[ACC_A] > 0 && x.alone[ACC_B] > 0 &&
		/* What the device does behind all that the bench recorded is nothing to compare. */
		(x.last == ACC_NOCALL || (x.behind > 0 && x.benchs > 0)) &&
		(x.met == 0 || (x.compared * LIMIT_PROGRAM_LEAST < x.calls &&
				       x.compared * LIMIT_PROGRAM_LEAST < bench)))
		c->nothing = "too few op calls were compared to call the rest clean";
	return rc;
}
