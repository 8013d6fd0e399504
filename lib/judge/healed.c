/* Two programs of one network may differ in between, where a sum is taken before it is divided or a weight
 * lies in another order, and agree again behind it. Pairs of such tensors are none: they are not compared.
 *
 * The device's values are followed, from the last call to the first. On each way that they take, the least
 * error of an output tells whether the two sides come together there; of all ways the worst counts, and a way
 * that ends in an output that differs comes together nowhere. */
#include "judge/first_bad.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"

/* A forward call behind the first backward one is no part of the forward pass: it computes again, or steps. */
enum phase { FORWARD, BACKWARD, BEHIND };

struct way {
	float error;    /* see above, of ways that end in what was compared; -1: there is none */
	float number;   /* the same of single numbers, which tell where nothing else does */
	float open;     /* of ways that end in calls that were not compared; -1: there is none */
	uint32_t reach; /* the last call on it */
};

struct healing {
	struct acc_case *c;
	struct acc_ids
		taker; /* (id, segment, phase) -> the first input with these values on the device */
	struct acc_ids made;   /* values that calls of the device gave */
	struct acc_ids weight; /* of the bench */
	struct acc_ids twin;   /* forward calls some of whose tensors are no pairs */
	uint32_t *next;        /* of each such input the next one, or ACC_NOCALL */
	struct way *way;       /* behind each call, with what comes out of it */
	uint8_t *phase;        /* of each call */
	float *noise;          /* and what agrees there is off by */
	double unit;
};

static uint64_t
values(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	return acc_id_with(it->turned != 0 ? it->turned : it->id[ACC_A],
		(uint64_t)h->c->call[call].segment << 2 | h->phase[call]);
}

static bool
is_op(const struct acc_call *k)
{
	return !k->grad && !k->module;
}

/* Do its values say where they come from? Zeros are made in many places. */
static bool
is_traced(const struct acc_item *it)
{
	return it->id[ACC_A] != 0 && !(it->a_flat && it->count > 1);
}

static void
find_phases(struct healing *h)
{
	const struct acc_case *c = h->c;
	bool back = false;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		back = (back && i > 0 && k->segment == c->call[i - 1].segment) || k->backward;
		h->phase[i] = k->backward ? BACKWARD : back ? BEHIND : FORWARD;
	}
}

static int
index_takers(struct healing *h, struct acc_err *e)
{
	const struct acc_case *c = h->c;
	int rc = 0;
	/* From the last one on: the first is found first. */
	for (uint32_t i = c->nitem; i-- > 0 && rc == 0;) {
		const struct acc_item *it = &c->item[i];
		h->next[i] = ACC_NOCALL;
		if (it->call != ACC_NOCALL && it->kind == ACC_ITEM_TENSOR && acc_is_output(it) &&
			it->id[ACC_A] != 0)
			rc = acc_ids_put(&h->made, it->id[ACC_A], i, false, e);
		if (it->weight && it->id[ACC_B] != 0 && rc == 0)
			rc = acc_ids_put(&h->weight, it->id[ACC_B], i, false, e);
		if (it->call == ACC_NOCALL || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
			!is_traced(it) || !is_op(&c->call[it->call]))
			continue;
		const uint64_t id = values(h, it->call, it);
		h->next[i] = acc_ids_get(&h->taker, id);
		rc = acc_ids_put(&h->taker, id, i, true, e);
	}
	return rc;
}

static double
error_of(const struct acc_item *it)
{
	return it->exact ? it->rms > 0 : fmin(1, it->rms);
}

static void
worse(struct way *w, const struct way *other)
{
	w->error = fmaxf(w->error, other->error);
	w->number = fmaxf(w->number, other->number);
	w->open = fmaxf(w->open, other->open);
	w->reach = other->reach > w->reach ? other->reach : w->reach;
}

static void
least(float *x, float e)
{
	*x = *x < 0 || e < *x ? e : *x;
}

/* The way behind a call that takes some values. As its input they may agree with others of the bench. */
static struct way
taken(const struct healing *h, const struct acc_item *it)
{
	struct way w = h->way[it->call];
	if (!acc_is_measured(it) || it->exact)
		return w;
	const float e = (float)error_of(it);
	float *closed = it->count == 1 ? &w.number : &w.error;
	if (w.error >= 0 || w.number >= 0 || w.open < 0)
		least(closed, e);
	if (w.open >= 0)
		least(&w.open, e);
	return w;
}

/* Where the values of an output go. false: nowhere. */
static bool
behind(const struct healing *h, uint32_t call, const struct acc_item *it, struct way *w)
{
	const struct acc_case *c = h->c;
	bool any = false;
	*w = (struct way){-1, -1, -1, call};
	uint32_t i = is_traced(it) ? acc_ids_get(&h->taker, values(h, call, it)) : ACC_NOCALL;
	for (; i != ACC_NOCALL; i = h->next[i])
		if (c->item[i].call > call) {
			const struct way one = taken(h, &c->item[i]);
			worse(w, &one);
			any = true;
		}
	return any;
}

/* Does a call only hand on what it was given? */
static bool
is_view(const struct acc_case *c, uint32_t call, const struct acc_item *out)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && acc_is_input(&c->item[i]) && out->id[ACC_A] != 0 &&
			c->item[i].id[ACC_A] == out->id[ACC_A])
			return true;
	return false;
}

/* The errors of outputs next to a call in its pass, from the call `from` on, backwards or forwards. */
static unsigned
errors(const struct healing *h, uint32_t call, uint32_t from, int step, float *e, unsigned most)
{
	const struct acc_case *c = h->c;
	unsigned n = 0;
	for (uint32_t i = from;
		n < most && i < c->ncall && c->call[i].segment == c->call[call].segment;
		i += (uint32_t)step) {
		const struct acc_call *k = &c->call[i];
		for (uint32_t j = k->first; j <= k->last && n < most && is_op(k); j++) {
			const struct acc_item *it = &c->item[j];
			if (it->call == i && it->kind == ACC_ITEM_TENSOR && acc_is_output(it) &&
				acc_is_measured(it) && !it->exact && h->phase[i] == h->phase[call])
				e[n++] = it->rms;
		}
	}
	qsort(e, n, sizeof *e, acc_by_float);
	return n;
}

double
acc_given_off(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	double off = 0;
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		/* Statistics that one side alone has are those that a norm writes. */
		if (it->state && it->sides != 3)
			continue;
		if (!acc_is_measured(it) || isnan(it->rms))
			return INFINITY;
		off = fmax(off, it->rms / acc_item_unit(it));
		any = true;
	}
	return any ? off : INFINITY;
}

bool
acc_given_alike(const struct acc_case *c, uint32_t call)
{
	return acc_given_off(c, call) <= LIMIT_SAME_INPUT;
}

bool
acc_differs_by_itself(const struct scan *s, uint32_t call)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	const double given = fmax(1, acc_given_off(c, call) / LIMIT_SAME_INPUT);
	bool differs = false;
	if (!s->two || k->backward || acc_unit_low(s->unit))
		return false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		differs |= it->call == call && acc_is_output(it) &&
			   (it->apart || acc_is_measured(it)) && !it->exact &&
			   (it->count > 1 || given <= 1) &&
			   it->rms > given * LIMIT_OTHER_OUTPUT * acc_item_unit(it);
	}
	return differs;
}

/* Do elements tell what is behind a weight, as of a factor that is multiplied into it? In 16 bits, what an older
 * weight is off by may be lost among the noise. */
static bool
shows(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	return h->way[call].error >= 0 && (!acc_unit_low(h->unit) || it->rms > LIMIT_HEALED);
}

/* Weights are what a program starts from, and nothing behind them makes them others, unless the bench has the same
 * one in another call, or elements show it; nor constants of which no more is known than how far they are off. */
static bool
is_start(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	return acc_is_input(it) && h->phase[call] == FORWARD &&
	       ((it->weight && !shows(h, call, it) &&
			acc_ids_get(&h->weight, it->id[ACC_A]) == ACC_NOID) ||
		       (!it->weight && !it->a_known && !it->exact && it->id[ACC_A] != 0 &&
			       !it->ordered && acc_ids_get(&h->made, it->id[ACC_A]) == ACC_NOID));
}

/* What all products of equal inputs show is how the device multiplies. */
static double
mode_of(const struct healing *h)
{
	const struct acc_case *c = h->c;
	double least = INFINITY;
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (!is_op(k) || k->key[ACC_A] == NULL || k->key[ACC_B] == NULL ||
			!acc_multiplies(k) || h->phase[i] != FORWARD || !acc_given_alike(c, i))
			continue;
		for (uint32_t j = k->first; j <= k->last; j++) {
			const struct acc_item *it = &c->item[j];
			if (it->call != i || it->kind != ACC_ITEM_TENSOR || !acc_is_output(it) ||
				!acc_is_measured(it) || it->exact || it->count < 2)
				continue;
			least = fmin(least, it->rms);
			n++;
		}
	}
	return n >= LIMIT_LEARN_CALLS && least <= LIMIT_TF32 ? least : 0;
}

/* The last errors, in turn and by size. */
struct recent {
	float e[LIMIT_RECENT], sorted[LIMIT_RECENT];
	unsigned n;
};

static void
add_recent(struct recent *r, float e)
{
	unsigned have = r->n < LIMIT_RECENT ? r->n : LIMIT_RECENT, at = have;
	if (have == LIMIT_RECENT) { /* in the place of the oldest */
		const float old = r->e[r->n % LIMIT_RECENT];
		for (at = 0; r->sorted[at] != old; at++)
			;
		have--;
		memmove(&r->sorted[at], &r->sorted[at + 1], (have - at) * sizeof *r->sorted);
	}
	for (at = have; at > 0 && r->sorted[at - 1] > e; at--)
		r->sorted[at] = r->sorted[at - 1];
	r->sorted[at] = e;
	r->e[r->n++ % LIMIT_RECENT] = e;
}

static float
median(const struct recent *r)
{
	return r->sorted[((r->n < LIMIT_RECENT ? r->n : LIMIT_RECENT) - 1) / 2];
}

/* What agrees differs by noise: of what came before in its pass, the median, where no jump is counted, nor in 16 bits what
 * is off by too much to agree. */
static void
find_noise(struct healing *h)
{
	const struct acc_case *c = h->c;
	struct recent r = {.n = 0};
	double m = 0;
	const double mode = mode_of(h);
	for (uint32_t i = 0; i < c->ncall; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		if (i == 0 || k->segment != c->call[i - 1].segment ||
			h->phase[i] != h->phase[i - 1]) {
			/* The backward pass begins with the errors that the forward one ends with. */
			const bool on = i > 0 && k->segment == c->call[i - 1].segment && r.n > 0;
			r.n = 0;
			m = on ? m : 0;
			if (on)
				add_recent(&r, (float)m);
		}
		h->noise[i] = (float)m;
		for (uint32_t j = k->first; j <= k->last && is_op(k); j++) {
			const struct acc_item *it = &c->item[j];
			const double unit = fmax(h->unit, acc_item_unit(it));
			if (it->call != i || it->kind != ACC_ITEM_TENSOR || !acc_is_output(it) ||
				!acc_is_measured(it) || it->exact ||
				!(it->rms <=
					fmin(LIMIT_HEALED,
						LIMIT_JUMP * fmax(fmax(m, mode),
								     LIMIT_OTHER_FLOOR * unit))))
				continue;
			add_recent(&r, it->rms);
			m = median(&r);
		}
	}
}

/* What still agrees there. */
static double
usual(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	const double unit = fmax(h->unit, acc_item_unit(it));
	const double floor = acc_unit_low(unit) ? LIMIT_OTHER_FLOOR_16 : LIMIT_OTHER_FLOOR;
	return LIMIT_MARGIN * (floor * unit + h->noise[call]);
}

/* Gradients of what several calls take are added up without a call. So one that nobody takes says that an
 * error lasts only where it is its own call's: what that was given agrees. */
static bool
ends(const struct healing *h, uint32_t call)
{
	const struct acc_case *c = h->c;
	const struct acc_call *k = &c->call[call];
	bool any = h->phase[call] != BACKWARD;
	for (uint32_t i = k->first; i <= k->last && h->phase[call] == BACKWARD; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		/* Statistics that one side alone has are those that a norm writes. */
		if (it->state && it->sides != 3)
			continue;
		if (!acc_is_measured(it) || error_of(it) > usual(h, call, it))
			return false;
		any = true;
	}
	return any;
}

static void
add_output(const struct healing *h, uint32_t call, const struct acc_item *it, struct way *sum)
{
	struct way w;
	const bool goes = behind(h, call, it, &w);
	const bool end = !goes && acc_is_measured(it) && ends(h, call);
	if (!goes && !end)
		w.open = 1;
	/* Of integers that differ, what they choose may be the same. */
	const bool choice = goes && it->exact && it->rms > 0;
	if (acc_is_measured(it) && !choice && !(goes && is_view(h->c, call, it))) {
		const float e = (float)error_of(it);
		if (end || w.error >= 0 || w.number >= 0)
			least(it->count == 1 ? &w.number : &w.error, e);
		if (w.open >= 0 && it->count > 1)
			least(&w.open, e);
	}
	worse(sum, &w);
}

static int
find_ways(struct healing *h, struct acc_err *e)
{
	const struct acc_case *c = h->c;
	struct acc_ids gives = {0}; /* calls of the device by name: where what they give stands */
	int rc = 0;
	for (uint32_t call = c->ncall; call-- > 0 && rc == 0;) {
		const struct acc_call *k = &c->call[call];
		const uint64_t name = k->key[ACC_A] == NULL
					      ? 0
					      : acc_id_with(acc_hash(k->key[ACC_A],
								    strlen(k->key[ACC_A])),
							k->segment);
		bool any = false;
		h->way[call] = (struct way){-1, -1, -1, call};
		for (uint32_t i = k->first; i <= k->last && is_op(k); i++) {
			const struct acc_item *it = &c->item[i];
			if (it->call == call && it->kind == ACC_ITEM_TENSOR && acc_is_output(it) &&
				it->sides != 2) {
				add_output(h, call, it, &h->way[call]);
				any = true;
			}
		}
		/* One against several: what it takes, and gives, belongs to different ones of these. */
		if (name != 0 && any)
			rc = acc_ids_put(&gives, name, call, true, e);
		else if (name != 0 && acc_ids_get(&gives, name) != ACC_NOID)
			h->way[call] = h->way[acc_ids_get(&gives, name)];
	}
	acc_ids_release(&gives);
	return rc;
}

/* Outputs that come next. */
enum { NEXT = 4 };

/* What an optimizer writes is there in the next step, whatever the weights of this one are by it. */
static bool
is_state(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	return !acc_is_input(it) && h->phase[call] == BEHIND && h->c->call[call].writes;
}

/* Do the two sides come together behind this tensor? */
static bool
heals(const struct healing *h, uint32_t call, const struct acc_item *it)
{
	const double may = fmin(LIMIT_HEALED * error_of(it), usual(h, call, it));
	struct way w = h->way[call];
	if (!acc_is_input(it) && !behind(h, call, it, &w) && ends(h, call))
		return false;
	const float worst = w.error >= 0 ? w.error : w.number;
	if (worst >= 0 || (w.open >= 0 && w.open <= may))
		return worst <= may;
	/* They end in calls that were not recorded, as those of an extension: what comes behind tells. */
	float e[LIMIT_RECENT];
	const bool back = h->phase[call] == BACKWARD;
	const unsigned n = errors(h, call, w.reach + 1, 1, e, back ? LIMIT_RECENT : NEXT);
	return n > 0 ? e[(n - 1) / 2] <= may : back;
}

/* And of gradients: those of tensors that are no pairs are none either. */
static int
heal_call(struct healing *h, uint32_t call, struct acc_err *e)
{
	struct acc_case *c = h->c;
	const struct acc_call *k = &c->call[call];
	const bool back = k->backward && acc_ids_get(&h->twin, k->twin) != ACC_NOID;
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_measured(it) ||
			!(it->rms > 0))
			continue;
		if (it->measure == ACC_BY_STAT || error_of(it) <= usual(h, call, it) ||
			is_start(h, call, it) || is_state(h, call, it))
			continue;
		it->apart = back || heals(h, call, it);
		any |= it->apart;
	}
	return any && !k->backward ? acc_ids_put(&h->twin, k->twin, call, true, e) : 0;
}

int
acc_heal(struct acc_case *c, struct acc_err *e)
{
	struct healing h = {.c = c, .unit = acc_network_unit(c)};
	h.next = malloc((c->nitem + (size_t)1) * sizeof *h.next);
	h.way = malloc((c->ncall + (size_t)1) * sizeof *h.way);
	h.phase = malloc(c->ncall + (size_t)1);
	h.noise = malloc((c->ncall + (size_t)1) * sizeof *h.noise);
	int rc = h.next == NULL || h.way == NULL || h.phase == NULL || h.noise == NULL
			 ? acc_nomem(e)
			 : 0;
	if (rc == 0) {
		find_phases(&h);
		find_noise(&h);
		rc = index_takers(&h, e);
	}
	if (rc == 0)
		rc = find_ways(&h, e);
	if (rc == 0) {
		for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i))
			if (is_op(&c->call[i]))
				rc = heal_call(&h, i, e);
	}
	acc_ids_release(&h.taker);
	acc_ids_release(&h.made);
	acc_ids_release(&h.twin);
	acc_ids_release(&h.weight);
	free(h.next);
	free(h.way);
	free(h.phase);
	free(h.noise);
	return rc;
}

int
acc_noise_before(struct acc_case *c, uint32_t call, double *noise, struct acc_err *e)
{
	struct healing h = {.c = c, .unit = acc_network_unit(c)};
	h.phase = malloc(c->ncall + (size_t)1);
	h.noise = malloc((c->ncall + (size_t)1) * sizeof *h.noise);
	if (h.phase != NULL && h.noise != NULL) {
		find_phases(&h);
		find_noise(&h);
		*noise = fmax(fmax(h.noise[call], mode_of(&h)), LIMIT_OTHER_FLOOR * h.unit);
	}
	const int rc = h.phase == NULL || h.noise == NULL ? acc_nomem(e) : 0;
	free(h.phase);
	free(h.noise);
	return rc;
}

void
acc_heal_settle(struct acc_case *c, bool apart, bool talks)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const uint32_t call = c->item[i].call;
		c->item[i].apart &= apart &&
				    (!talks || (call != ACC_NOCALL && c->call[call].talks));
		if (c->item[i].apart)
			c->item[i].measure = ACC_UNMEASURED;
	}
}
