/* Sides that are laid out over ranks in another way: a tensor of one is a part of the other's, or
 * lies on another rank, so that numbers of one op call are not those of the other side's.
 *
 * What shows it: shapes that differ along one axis by a whole factor, and communication that one
 * side lacks. A batch or a network of another size has the first, but communicates alike; a run in
 * one process that calls all_reduce has the second, but equal shapes. */
#include "acc/judge.h"
#include "acc/say.h"

#include <stdlib.h>

#include "judge/case.h"
#include "judge/limits.h"
#include "judge/order.h"

/* Forward tensors that both sides have, and how many are split: weights, and others by axis. */
struct split {
	uint64_t tensors, weights, batch, sequence, other;
	uint64_t talks[2];          /* communications that only this side has */
	uint64_t handed;            /* of them sends and receipts */
	uint64_t talked;            /* communications that both have */
	bool hands[2];              /* this side hands tensors from rank to rank */
	uint64_t calls[2], matched; /* forward, but communications */
	uint64_t turned;            /* of them, those of as many elements, in another shape */
	uint64_t weighing[2];       /* forward calls of this side that take a weight */
	uint64_t brings
		[2]; /* communications that this side alone has before any gradient, or exchanges */
	uint64_t factor;
	int64_t first; /* the first item that is split, -1: none */
	bool device;   /* whose parts they are */
};

/* The axis along which one shape is k times the other, k > 1; -1: not so. */
static int
split_axis(const struct acc_val *a, const struct acc_val *b, uint64_t *k, bool *device)
{
	int axis = -1;
	if (a == NULL || b == NULL || a->type != ACC_V_INTS || b->type != ACC_V_INTS ||
		a->n != b->n)
		return -1;
	for (uint32_t i = 0; i < a->n; i++) {
		int64_t x = a->ints[i], y = b->ints[i];
		if (x == y)
			continue;
		int64_t big = x > y ? x : y, small = x > y ? y : x;
		if (axis >= 0 || small <= 0 || big % small != 0)
			return -1;
		axis = (int)i;
		*k = (uint64_t)(big / small);
		*device = x < y;
	}
	return axis;
}

/* Two axes, along one of which the one side has k times as much and along the other the other side, as a batch that
 * is split by samples has against one that is split by tokens: the first of them; -1. */
static int
two_axes(const struct acc_val *a, const struct acc_val *b, uint64_t *k, bool *device)
{
	int axis[2] = {-1, -1};
	uint64_t by[2] = {0, 0};
	if (a == NULL || b == NULL || a->type != ACC_V_INTS || b->type != ACC_V_INTS ||
		a->n != b->n)
		return -1;
	for (uint32_t i = 0; i < a->n; i++) {
		int64_t x = a->ints[i], y = b->ints[i];
		int side = x > y;
		if (x == y)
			continue;
		if (x <= 0 || y <= 0 || axis[side] >= 0 || (x > y ? x % y : y % x) != 0)
			return -1;
		axis[side] = (int)i;
		by[side] = (uint64_t)(x > y ? x / y : y / x);
	}
	if (axis[0] < 0 || axis[1] < 0 || by[0] != by[1])
		return -1;
	*k = by[0];
	*device = axis[0] < axis[1];
	return axis[0] < axis[1] ? axis[0] : axis[1];
}

/* Of a part that was found in the whole: the axis. */
static int
part_axis(const struct acc_rec *r, const struct acc_item *it, uint64_t *k, bool *device)
{
	struct acc_str layout = acc_get_text(r, "", "m.layout");
	const char *p = it->part == 0 ? NULL : memmem(layout.p, layout.n, "part(", 5);
	uint64_t big = 0;
	const struct acc_val *v = acc_get(r, it->part == 1 ? "a." : "b.", "len"),
			     *w = acc_get(r, it->part == 1 ? "b." : "a.", "len");
	if (p == NULL || v == NULL || w == NULL)
		return -1;
	*device = it->part == 2;
	int64_t whole = acc_get_int(r, it->part == 1 ? "a." : "b.", "len", 0),
		part = acc_get_int(r, it->part == 1 ? "b." : "a.", "len", 0);
	big = part > 0 ? (uint64_t)(whole / part) : 0;
	if (big < 2)
		return -1;
	*k = big;
	return (int)strtol(p + 5, NULL, 10);
}

static int
look(struct acc_case *c, uint32_t item, struct split *s, struct acc_err *e)
{
	const struct acc_item *it = &c->item[item];
	struct acc_rec *r;
	uint64_t k = 0;
	bool device = false;
	s->tensors++;
	if (!it->note_shape && it->part == 0)
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	const struct acc_val *a = acc_get(r, "a.", "shape"), *b = acc_get(r, "b.", "shape");
	int axis = split_axis(a, b, &k, &device);
	if (axis < 0) {
		axis = two_axes(a, b, &k, &device);
		s->turned += axis >= 0;
	}
	axis = axis < 0 ? part_axis(r, it, &k, &device) : axis;
	if (axis < 0)
		return 0;
	if (s->first < 0) {
		s->first = item;
		s->device = device;
	}
	s->factor = k > s->factor ? k : s->factor;
	if (it->weight)
		s->weights++;
	else if (axis == 0)
		s->batch++;
	else if (axis == 1)
		s->sequence++;
	else
		s->other++;
	return 0;
}

/* What arrives may be paired with what the other side computes itself. */
static bool
talk_alike(const struct acc_call *k)
{
	static const char space[] = "Distributed.";
	return acc_str_starts(acc_str(k->key[ACC_B]), space) ||
	       !acc_str_starts(acc_str(k->key[ACC_A]), space);
}

/* Does each rank give each other one something else, as tokens to where their experts are? */
static bool
exchanges(const struct acc_call *k)
{
	const struct acc_str key = acc_str(k->key[ACC_A] != NULL ? k->key[ACC_A] : k->key[ACC_B]);
	return memmem(key.p, key.n, "all_to_all", 10) != NULL ||
	       memmem(key.p, key.n, "AlltoAll", 8) != NULL;
}

static void
communicates(struct split *s, const struct acc_call *k, bool matched, bool before)
{
	const int side = k->key[ACC_A] == NULL ? ACC_B : ACC_A;
	for (int i = 0; i < 2; i++)
		s->brings[i] += k->key[i] != NULL && before && exchanges(k);
	if (matched && talk_alike(k)) {
		s->talked++;
		return;
	}
	s->talks[side]++;
	s->handed += k->hands;
}

/* Does it take a weight? */
static bool
weighs(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t n = k->first; n <= k->last; n++)
		if (c->item[n].call == call && c->item[n].weight)
			return true;
	return false;
}

/* Experts over the ranks against all, or more, of them on each: who brings tokens to where their experts are calls
 * fewer. */
static bool
has_experts(const struct split *s)
{
	for (int side = 0; side < 2; side++) {
		const double own = (double)s->weighing[side], all = (double)s->weighing[!side];
		if (s->brings[side] > 0 && all - own > LIMIT_EXPERTS_SHARE * all)
			return true;
	}
	return false;
}

static int
count(struct acc_case *c, struct split *s, struct acc_err *e)
{
	*s = (struct split){.first = -1};
	int rc = 0;
	bool any = false;
	for (uint32_t i = 0, end; i < c->ncall && rc == 0; i = end) {
		/* A rank that one side alone has says nothing of what the calls of the others do. */
		bool both = false, before = true;
		acc_case_rest(c);
		for (end = i; end < c->ncall && c->call[end].segment == c->call[i].segment; end++)
			both |= c->call[end].key[ACC_A] != NULL && c->call[end].key[ACC_B] != NULL;
		any |= both;
		for (uint32_t j = i; j < end && both && rc == 0; j++) {
			const struct acc_call *k = &c->call[j];
			bool matched = k->key[ACC_A] != NULL && k->key[ACC_B] != NULL;
			s->hands[ACC_A] |= k->hands && k->key[ACC_A] != NULL;
			s->hands[ACC_B] |= k->hands && k->key[ACC_B] != NULL &&
					   (!matched || talk_alike(k));
			before &= !k->backward;
			if (acc_is_communication(k))
				communicates(s, k, matched, before);
			else if (!k->backward) {
				const bool weight = weighs(c, j);
				s->weighing[ACC_A] += weight && k->key[ACC_A] != NULL;
				s->weighing[ACC_B] += weight && k->key[ACC_B] != NULL;
				s->calls[ACC_A] += k->key[ACC_A] != NULL;
				s->calls[ACC_B] += k->key[ACC_B] != NULL;
				s->matched += matched;
			}
			/* What optimizers are given is parts on a stage, or where each rank keeps a part, of what is
			 * laid out alike otherwise. */
			for (uint32_t n = k->first; n <= k->last && matched && before && rc == 0;
				n++)
				if (c->item[n].call == j && c->item[n].sides == 3 &&
					c->item[n].kind == ACC_ITEM_TENSOR && c->item[n].ndim > 0)
					rc = look(c, n, s, e);
		}
	}
	return rc < 0 ? rc : any;
}

/* The kind of parallelism, as far as the shapes show it. */
static const char *
kind_of(const struct split *s)
{
	uint64_t all = s->batch + s->sequence + s->other;
	if (s->weights > 0)
		return "tensor parallelism";
	if (s->handed > 0 && s->handed * 2 >= s->talks[ACC_A] + s->talks[ACC_B])
		return "pipeline parallelism";
	if (all > 0 && 2 * s->batch > all)
		return "data parallelism (or sequence parallelism, where tokens are the first axis)";
	if (all > 0 && 2 * s->sequence > all)
		return "context or sequence parallelism";
	return NULL;
}

static const char *
ranks_of(struct acc_case *c, int side)
{
	static const char *const whose[] = {"the device has ", "the bench "};
	uint32_t n = c->nranks[side] > 0 ? c->nranks[side] : 1;
	return acc_say(&c->mem, "%s%u rank%s", whose[side], n, n == 1 ? "" : "s");
}

static const char *
example(struct acc_case *c, const struct split *s, struct acc_err *e)
{
	struct acc_rec *r;
	if (s->first < 0)
		return "";
	if (acc_case_record(c, &c->item[s->first], &r, e) < 0)
		return NULL;
	struct acc_str name = acc_get_text(r, "", "name");
	uint64_t all = s->weights + s->batch + s->sequence + s->other;
	return acc_say(&c->mem,
		" (%llu of %llu forward tensors that both have are split, first %.*s, %llu to one)",
		(unsigned long long)all, (unsigned long long)s->tensors, ACC_PRS(name),
		(unsigned long long)s->factor);
}

static int
say(struct acc_case *c, const struct split *s, struct acc_err *e)
{
	const char *kind = kind_of(s), *a = ranks_of(c, ACC_A), *b = ranks_of(c, ACC_B);
	const char *shown = example(c, s, e);
	bool device = s->first >= 0 ? s->device
				    : c->nranks[ACC_A] > c->nranks[ACC_B] ||
					      s->talks[ACC_A] > s->talks[ACC_B];
	struct acc_finding *f = acc_case_find(c, "unmatched", e);
	if (f == NULL || a == NULL || b == NULL || shown == NULL)
		return acc_nomem(e);
	f->rule = "ranks";
	f->value = (double)(c->nranks[!device] > 0 ? c->nranks[device ? ACC_A : ACC_B] : 1);
	f->doubtful = true;
	f->text = acc_say(&c->mem,
		"%s, %s: the %s is sharded%s%s%s%s; a tensor of one rank is not that of the other"
		" side, so no op call was judged%s",
		a, b, device ? "device" : "bench", kind != NULL ? " by " : "",
		kind != NULL ? kind : "", kind != NULL ? ", as far as the shapes show" : "", shown,
		s->handed > 0 && s->first < 0
			? " (a stage alone can be compared: give the folder of its rank)"
			: "");
	c->nothing = "the two sides are laid out over ranks in different ways: nothing was judged";
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_sharded(struct acc_case *c, struct acc_err *e)
{
	struct split s;
	if (c->nranks[ACC_A] == 0 && c->nranks[ACC_B] == 0)
		return 0;
	int rc = count(c, &s, e);
	if (rc <= 0)
		return rc;
	const bool several = c->nranks[ACC_A] > 1 && c->nranks[ACC_B] > 1;
	uint64_t split = s.weights + s.batch + s.sequence + s.other - (several ? 0 : s.turned);
	/* Any two of them; each alone has other causes. */
	int signs = c->nranks[ACC_A] != c->nranks[ACC_B];
	signs += (double)split > LIMIT_SPLIT_SHARE * (double)s.tensors;
	/* No batch and no network of another size has as many elements, but one that is written otherwise. */
	signs += several && (double)s.turned > LIMIT_SPLIT_SHARE * (double)s.tensors;
	/* Stages of a pipeline against ranks that each do all. */
	if (s.hands[ACC_A] != s.hands[ACC_B] && several) {
		uint64_t all = s.calls[s.hands[ACC_A] ? ACC_B : ACC_A];
		signs += (double)(all - s.matched) > LIMIT_STAGES_SHARE * (double)all ? 2 : 0;
	}
	signs += several && has_experts(&s) ? 2 : 0;
	signs += s.handed > 0 || s.talks[ACC_A] + s.talks[ACC_B] > s.talked;
	if (signs < 2)
		return 0;
	rc = say(c, &s, e);
	return rc < 0 ? rc : 1;
}
