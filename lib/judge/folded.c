/* Ranks that accfold has made one: a finding speaks of the op call and the rank that were recorded. */
#include "judge/arrived.h"
#include "judge/case.h"
#include "judge/first_bad.h"
#include "judge/traced.h"
#include "acc/say.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

bool
acc_is_folded_side(struct acc_case *c, int side)
{
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		struct acc_rec *r;
		if (c->item[i].kind == ACC_ITEM_TENSOR && c->item[i].sides == 3)
			return acc_case_record(c, &c->item[i], &r, NULL) >= 0 &&
			       acc_get(r, side == ACC_A ? "a." : "b.", "fold") != NULL;
	}
	return false;
}

bool
acc_is_folded(struct acc_case *c)
{
	return acc_is_folded_side(c, ACC_A) || acc_is_folded_side(c, ACC_B);
}

double
acc_of_ranks(struct acc_str fold)
{
	static const char size[] = "Size(";
	int64_t n = 1;
	if (!acc_str_starts(fold, size) ||
		!acc_str_int((struct acc_str){fold.p + sizeof size - 1, fold.n - sizeof size}, &n))
		return 1;
	return (double)n;
}

/* The record that a finding is about, or an output of its op call; NULL where there is none. */
static struct acc_rec *
record_of(struct acc_case *c, const struct acc_finding *f)
{
	struct acc_rec *r;
	int64_t found = -1;
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const struct acc_call *k = it->call == ACC_NOCALL ? NULL : &c->call[it->call];
		if (k == NULL || it->kind != ACC_ITEM_TENSOR || (it->sides & 1) == 0 ||
			k->step != f->step || (c->nranks[ACC_A] > 1 && k->rank != f->rank) ||
			strcmp(acc_call_name(k), f->name) != 0 ||
			acc_case_record(c, it, &r, NULL) < 0)
			continue;
		/* What the bench alone calls may have the name of another of the device's. */
		if (f->rule != NULL && strcmp(f->rule, "scaled-loss") == 0 && f->stack != NULL &&
			!acc_str_is(acc_get_text(r, "a.", "stack"), f->stack))
			continue;
		if (f->io != NULL && f->pos != NULL &&
			acc_str_is(acc_get_text(r, "a.", "io"), f->io) &&
			acc_str_is(acc_get_text(r, "a.", "pos"), f->pos))
			return r;
		found = found < 0 || acc_is_output(it) ? (int64_t)i : found;
	}
	return found < 0 || acc_case_record(c, &c->item[found], &r, NULL) < 0 ? NULL : r;
}

/* Where the bench has several ranks, too: which of the device's are this one. */
static const char *
group_of(struct acc_case *c, const struct acc_finding *f, const struct acc_rec *r)
{
	const struct acc_val *v = acc_get(r, "a.", "fold.group");
	struct acc_which w = {.text = ""};
	if (v == NULL || v->type != ACC_V_INTS)
		return "";
	for (uint32_t i = 0; i < v->n; i++)
		acc_which_add(&c->mem, &w, v->ints[i]);
	acc_which_end(&c->mem, &w);
	return w.text == NULL
		       ? NULL
		       : acc_say(&c->mem, "; rank %lld of the bench is ranks %s of the device",
				 (long long)f->rank, w.text);
}

static const char *
told(struct acc_case *c, struct acc_finding *f, const struct acc_rec *r)
{
	struct acc_str key = acc_get_text(r, "a.", "fold.key"),
		       layout = acc_get_text(r, "a.", "fold");
	struct acc_str by = acc_get_text(r, "a.", "fold.by"), its = acc_get_text(r, "b.", "key");
	f->rank = acc_get_int(r, "a.", "fold.rank", INT64_MIN);
	if (strcmp(f->what, "next") == 0) {
		const char *bench = its.n > 0 ? acc_arena_copy(&c->mem, its.p, its.n) : f->name;
		if (bench == NULL)
			return NULL;
		f->name = key.n > 0 ? acc_arena_copy(&c->mem, key.p, key.n) : f->name;
		return f->rank == INT64_MIN
			       ? acc_say(&c->mem,
					 "next: record %s in full on all ranks, and on the bench",
					 bench)
			       : acc_say(&c->mem,
					 "next: record %.*s of rank %lld in full, and %s of the bench",
					 key.n > 0 ? (int)key.n : (int)strlen(bench),
					 key.n > 0 ? key.p : bench, (long long)f->rank, bench);
	}
	if (!f->bad)
		return "";
	if (key.n > 0) {
		/* Several stages count together otherwise than the bench does, where it takes the batch in parts. */
		const char *bench = its.n == 0 || acc_str_is(its, f->name)
					    ? ""
					    : acc_say(&c->mem, ", the bench as %.*s", ACC_PRS(its));
		f->name = acc_arena_copy(&c->mem, key.p, key.n);
		if (bench == NULL)
			return NULL;
		return f->rank == INT64_MIN ? acc_say(&c->mem, "; its ranks recorded it as %.*s%s",
						      ACC_PRS(key), bench)
					    : acc_say(&c->mem, "; rank %lld recorded it as %.*s%s",
						      (long long)f->rank, ACC_PRS(key), bench);
	}
	if (by.n > 0)
		return acc_say(&c->mem, "; of all ranks together, as %.*s gives it", ACC_PRS(by));
	if (f->rank != INT64_MIN)
		return acc_say(&c->mem, "; it is rank %lld that is off", (long long)f->rank);
	if (acc_str_is(layout, "Unknown()"))
		return "";
	return acc_say(&c->mem, "; of all ranks together, by the layout %.*s", ACC_PRS(layout));
}

/* Where an op call's inputs are parts that are alike by statistics, these may stand in another order: then
 * it is who made them that is wrong. */
static const char *
unordered(struct acc_case *c, const struct acc_finding *f)
{
	struct acc_rec *r;
	if (strcmp(f->what, "culprit") != 0 || f->rule == NULL || strcmp(f->rule, "output") != 0)
		return "";
	for (uint32_t i = 0; i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const struct acc_call *k = it->call == ACC_NOCALL ? NULL : &c->call[it->call];
		if (k == NULL || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it) ||
			it->measure != ACC_BY_STAT || k->step != f->step ||
			strcmp(acc_call_name(k), f->name) != 0 ||
			acc_case_record(c, it, &r, NULL) < 0)
			continue;
		struct acc_str layout = acc_get_text(r, "a.", "fold");
		if (memmem(layout.p, layout.n, "Shard", 5) != NULL)
			return acc_say(&c->mem,
				"; if the parts of its input %.*s stand in another order, which statistics"
				" do not show, it is who made that",
				ACC_PRS(acc_get_text(r, "a.", "pos")));
	}
	return "";
}

struct absent {
	int64_t rank;
};

ACC_ORDER(by_rank, struct absent, rank)

/* Ranks that others hand tensors to, or get them from, and of which there are no records: what they have
 * of the bench was not compared. */
static int
say_absent(struct acc_case *c, struct acc_err *e)
{
	const struct acc_call *by = NULL;
	const char *key = NULL;
	struct acc_ids seen = {0};
	struct absent *absent = NULL;
	size_t cap = 0;
	uint32_t n = 0, lacks = 0;
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		const struct acc_call *k = &c->call[it->call];
		struct acc_rec *r;
		if (it->kind != ACC_ITEM_ARG || !k->talks)
			continue;
		rc = acc_case_record(c, it, &r, e);
		int64_t rank = rc < 0 ? -1
				      : acc_get_int(r, acc_rec_is(r, "pair") ? "a." : "",
						"fold.absent", -1);
		if (rank < 0)
			continue;
		if (acc_ids_get(&seen, (uint64_t)rank + 1) == ACC_NOID) {
			rc = acc_ids_put(&seen, (uint64_t)rank + 1, 1, true, e);
			if (rc == 0 && !ACC_ROOM(absent, cap, (size_t)n + 1, e))
				rc = ACC_ENOMEM;
			else if (rc == 0)
				absent[n++].rank = rank;
		}
		struct acc_str own = by == NULL ? acc_get_text(r, "a.", "fold.key") : acc_str("");
		if (by == NULL)
			key = own.n > 0 ? acc_arena_copy(&c->mem, own.p, own.n) : acc_call_name(k);
		by = by == NULL ? k : by;
	}
	for (uint32_t i = 0; i < c->ncall && by != NULL; i = acc_step(c, i))
		lacks += c->call[i].key[ACC_A] == NULL && !c->call[i].talks;
	acc_ids_release(&seen);
	struct acc_which w = {.text = ""};
	if (n > 0)
		qsort(absent, n, sizeof *absent, by_rank);
	for (uint32_t i = 0; i < n; i++)
		acc_which_add(&c->mem, &w, absent[i].rank);
	acc_which_end(&c->mem, &w);
	free(absent);
	struct acc_finding *f = rc < 0 || by == NULL ? NULL : acc_case_find(c, "missing", e);
	if (rc < 0 || by == NULL)
		return rc;
	if (f == NULL || key == NULL || w.text == NULL)
		return acc_nomem(e);
	f->name = key;
	f->step = by->step;
	f->rule = "ranks";
	f->value = n;
	f->bad = true;
	f->text = acc_say(&c->mem,
		n == 1 ? "rank %s is missing: %s exchanges tensors with it, and nothing of it was recorded; %u op"
			 " call%s of the bench had nothing to be compared with, those of its stage among them"
		       : "ranks %s are missing: %s exchanges tensors with them, and nothing of them was recorded;"
			 " %u op call%s of the bench had nothing to be compared with, those of their stages"
			 " among them",
		w.text, f->name, lacks, lacks == 1 ? "" : "s");
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_folded(struct acc_case *c, struct acc_err *e)
{
	int rc = c->passed > 0 ? say_absent(c, e) : 0;
	if (rc < 0)
		return rc;
	/* Of weights it is said where they are judged. */
	bool folded = c->nfinding > 0 && c->passed > 0 && acc_is_folded(c);
	for (uint32_t i = 0; i < c->nfinding && folded; i++) {
		struct acc_finding *f = &c->finding[i];
		bool known = f->rule != NULL &&
			     (strcmp(f->rule, "reduction") == 0 || strcmp(f->rule, "turned") == 0);
		struct acc_rec *r = known || f->name == NULL || f->rank == INT64_MIN
					    ? NULL
					    : record_of(c, f);
		if (r == NULL || acc_get(r, "a.", "fold") == NULL)
			continue;
		const char *order = unordered(c, f);
		r = record_of(c, f);
		bool anew = strcmp(f->what, "next") == 0;
		const char *group = r == NULL || anew || !f->bad ? "" : group_of(c, f, r);
		const char *text = r == NULL ? NULL : told(c, f, r);
		f->text = text == NULL || order == NULL || group == NULL
				  ? NULL
				  : acc_say(&c->mem, "%s%s%s%s", anew ? "" : f->text, group, text,
					    order);
		if (f->text == NULL || f->name == NULL)
			return acc_nomem(e);
	}
	return 0;
}

/* Gradients that optimizers are given, and those in no layout that is known. */
struct handed {
	uint64_t n, unlaid;
	double largest; /* norm of the bench's in this call */
};

/* The second of an optimizer's lists. More than the largest of them is rounded by, on the bench: a gradient that is zero in
 * exact arithmetic, as of a bias before a softmax, is noise on every rank, and in no layout. */
static int
look_at_gradient(struct acc_case *c, const struct acc_item *it, bool count, struct handed *h,
	struct acc_err *e)
{
	struct acc_rec *r;
	double norm = INFINITY;
	if (it->kind != ACC_ITEM_TENSOR || it->io != ACC_IO_IN)
		return 0;
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	const bool known = acc_side_norm(r, ACC_B, &norm);
	bool gradient = false, unlaid = false;
	for (int side = 0; side < 2; side++) {
		const char *prefix = side == ACC_A ? "a." : "b.";
		const bool is = acc_str_starts(acc_get_text(r, prefix, "pos"), "1.");
		gradient |= is;
		unlaid |= is && acc_str_is(acc_get_text(r, prefix, "fold"), "Unknown()");
	}
	if (!count) {
		h->largest = gradient && known && norm > h->largest ? norm : h->largest;
		return 0;
	}
	h->n += gradient && (it->sides & 1) != 0;
	h->unlaid += unlaid && (!known || norm > acc_item_dtype(it, ACC_B)->eps * h->largest);
	return 0;
}

int
acc_say_unlaid(struct acc_case *c, struct acc_err *e)
{
	struct handed h = {0};
	/* What is bad is an answer, whatever else was not compared. */
	if (c->nothing != NULL || acc_case_status(c) != 0)
		return 0;
	for (uint32_t k = 0; k < c->ncall; k = acc_step(c, k)) {
		const struct acc_call *call = &c->call[k];
		if (!acc_call_steps_on(call, ACC_A) && !acc_call_steps_on(call, ACC_B))
			continue;
		h.largest = 0;
		for (int count = 0; count < 2; count++)
			for (uint32_t i = call->first; i <= call->last; i++)
				if (c->item[i].call == k &&
					look_at_gradient(c, &c->item[i], count != 0, &h, e) < 0)
					return e->code;
	}
	if (h.unlaid == 0)
		return 0;
	c->nothing = acc_say(&c->mem,
		"gradients that optimizers are given were not compared, %llu of %llu: how their parts lie on the ranks is not known;"
		" are they reduced?",
		(unsigned long long)h.unlaid, (unsigned long long)h.n);
	return c->nothing == NULL ? acc_nomem(e) : 0;
}
