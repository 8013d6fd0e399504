/* A reduction that one side leaves out, at the end of what was recorded: gradients that are not
 * summed over the ranks, or summed and not divided by their number. Nothing behind it differs,
 * since nothing was recorded behind it. */
#include "acc/judge.h"
#include "acc/say.h"

#include <math.h>
#include <stdlib.h>

#include "judge/first_bad.h"
#include "judge/case.h"
#include "judge/limits.h"
#include "judge/order.h"

struct lost {
	struct scan *s;
	struct acc_case *c;
	struct acc_ids taken[2];  /* values that calls of a side take: the last such call */
	struct acc_ids summed[2]; /* values that communications of both sides give */
	uint32_t n[2], first[2];  /* calls that only this side has, whose result nothing takes */
	bool divides[2];
	uint32_t talks[2];   /* communications that only this side has */
	uint32_t of_both[2]; /* of n: those that scale a sum that both sides have */
	bool folded[2];
	uint32_t scaled; /* sums that both sides scale */
};

static bool
in(const struct acc_item *it)
{
	return it->io == ACC_IO_IN || it->io == ACC_IO_KW || it->io == ACC_IO_PARAM;
}

/* What the calls of one step and rank take, from call `from`; *to: the first behind them. */
static int
learn(struct lost *t, uint32_t from, uint32_t *to, struct acc_err *e)
{
	const struct acc_case *c = t->c;
	uint32_t k = from;
	int rc = 0;
	acc_case_rest(c);
	for (int s = 0; s < 2; s++) {
		acc_ids_clear(&t->taken[s]);
		acc_ids_clear(&t->summed[s]);
	}
	for (; k < c->ncall && c->call[k].segment == c->call[from].segment; k++)
		for (uint32_t i = c->call[k].first; i <= c->call[k].last && rc == 0; i++) {
			const struct acc_item *it = &c->item[i];
			bool both = c->call[k].talks && it->sides == 3;
			if (it->call != k || it->kind != ACC_ITEM_TENSOR || !(in(it) || both))
				continue;
			for (int s = 0; s < 2 && rc == 0; s++)
				if (it->id[s] != 0)
					rc = acc_ids_put(in(it) ? &t->taken[s] : &t->summed[s],
						it->id[s], k, true, e);
		}
	*to = k;
	return rc;
}

/* Does this call of one side divide by the number of ranks, or multiply by one over it? 1, 0, < 0 */
static int
averages(struct acc_case *c, uint32_t call, int side, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++) {
		struct acc_rec *r;
		double v = NAN;
		if (c->item[i].call != call || c->item[i].kind != ACC_ITEM_ARG)
			continue;
		int rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc < 0)
			return rc;
		const char *prefix = side == ACC_A ? "a." : "b.";
		const double n = c->nranks[side] * acc_of_ranks(acc_get_text(r, prefix, "fold"));
		acc_as_f64(acc_get(r, prefix, "value"), &v);
		if (v == n || fabs(v * n - 1) < LIMIT_ONE_OVER)
			return 1;
	}
	return 0;
}

/* Is what it makes taken by no later call of its side, and what it takes the same on both? */
static bool
ends(const struct lost *t, uint32_t call, int side)
{
	const struct acc_case *c = t->c;
	const struct acc_call *k = &c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || in(it) || it->id[side] == 0)
			continue;
		uint32_t by = acc_ids_get(&t->taken[side], it->id[side]);
		if (by != ACC_NOID && by > call)
			return false;
		any = true;
	}
	return any;
}

bool
acc_only_scales(const struct acc_call *k)
{
	static const char *const scales[] = {"Tensor.div", "Tensor.mul", "Torch.div", "Torch.mul",
		"Tensor.__truediv__", "Tensor.__mul__", "Tensor.__itruediv__", "Tensor.__imul__"};
	for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
		if (acc_str_starts(acc_str(acc_call_name(k)), scales[i]))
			return true;
	return false;
}

/* Does it take what a communication gives that both sides have? */
static bool
takes_sum(const struct lost *t, uint32_t call, int side)
{
	const struct acc_case *c = t->c;
	bool does = false;
	for (uint32_t i = c->call[call].first; i <= c->call[call].last; i++) {
		const struct acc_item *it = &c->item[i];
		does |= it->call == call && it->kind == ACC_ITEM_TENSOR && in(it) &&
			it->id[side] != 0 && acc_ids_get(&t->summed[side], it->id[side]) < call;
	}
	return does;
}

static int
look(struct lost *t, uint32_t call, struct acc_err *e)
{
	const struct acc_call *k = &t->c->call[call];
	int side = k->key[ACC_A] == NULL ? ACC_B : ACC_A, rc = 1;
	bool talks = acc_is_communication(k), scale = !talks && acc_only_scales(k);
	t->talks[side] += talks;
	if (acc_may_lack(t->c, acc_call_name(k)) || !ends(t, call, side))
		return 0;
	if (!talks && !scale)
		return 0;
	if (scale)
		rc = averages(t->c, call, side, e);
	if (rc <= 0)
		return rc;
	bool of_both = scale && takes_sum(t, call, side);
	/* Ranks that are one of the other side's communicate among themselves, too. */
	if (t->folded[side] && !of_both)
		return 0;
	t->of_both[side] += of_both;
	if (t->n[side]++ == 0)
		t->first[side] = call;
	t->divides[side] |= scale;
	return 0;
}

static int
say(struct lost *t, int side, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	struct acc_case *c = t->c;
	const struct acc_call *k = &c->call[t->first[side]];
	const char *where = acc_say_where(c, k), *stack, *src = acc_say_source(c, k, &stack, e);
	if (src == NULL || where == NULL)
		return acc_nomem(e);
	struct acc_finding *f = acc_witness_find(t->s, ACC_WITNESS_lost_reduction, "missing",
		"reduction", e);
	if (f == NULL)
		return e->code;
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->value = t->n[side];
	f->stack = stack;
	f->text = acc_say(&c->mem,
		"%s%s: only the %s %s here%s%s, and nothing takes the result: %u such call%s that the %s"
		" lacks, so its values end %s (--allow-missing accepts it)",
		where, f->name, whose[side],
		t->divides[side] ? "divides by the number of ranks" : "communicates",
		src[0] != '\0' ? ", at " : "", src, t->n[side], t->n[side] == 1 ? "" : "s",
		whose[!side], t->divides[side] ? "as sums, not as means" : "unreduced");
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_lost(struct scan *s, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct lost t = {.s = s,
		.c = c,
		.folded = {acc_is_folded_side(c, ACC_A), acc_is_folded_side(c, ACC_B)}};
	struct acc_recorded how;
	uint32_t both = ACC_NOCALL;
	if (c->nranks[ACC_A] < 2 || c->nranks[ACC_A] != c->nranks[ACC_B])
		return 0;
	int rc = 0;
	for (uint32_t i = 0, end = 0; i < c->ncall && rc == 0; i++) {
		const struct acc_call *k = &c->call[i];
		if (i == end)
			rc = learn(&t, i, &end, e);
		if (rc < 0)
			break;
		if (k->key[ACC_A] != NULL && k->key[ACC_B] != NULL) {
			both = i;
			t.scaled += acc_only_scales(k) && takes_sum(&t, i, ACC_B);
		} else if (!k->missing) {
			rc = look(&t, i, e);
		}
	}
	for (int side = 0; side < 2; side++) {
		acc_ids_release(&t.taken[side]);
		acc_ids_release(&t.summed[side]);
	}
	if (rc < 0 || both == ACC_NOCALL || t.n[ACC_A] + t.n[ACC_B] == 0)
		return rc;
	rc = acc_recorded(c, &c->call[both], &how, e);
	for (int side = 0; side < 2 && rc == 0 && how.alike && how.ordered; side++) {
		/* A side that communicates in its own way may reduce in it, too; but not ranks that do so
		 * because they are one of the other side's, where a sum of both is divided. */
		bool own = t.talks[!side] > 0 && !(t.folded[!side] && t.of_both[side] == t.n[side]);
		/* Where ranks are one of several of the other side's, some have weights of their own. */
		if (t.n[side] > 0 && !own && !(t.scaled > 0 && t.folded[!side]))
			rc = say(&t, side, e);
	}
	return rc;
}
