/* The table of judges, and the way of a case: records come, then one of them judges it. */
#include "judge/accept.h"
#include "judge/case.h"
#include "judge/picked.h"

#include <stdlib.h>

#define ROW(name) &acc_judge_##name,
static const struct acc_judge *const judges[] = {
#include "judge/table.h"
};
#undef ROW
enum { NJUDGES = sizeof judges / sizeof *judges };

struct acc_case *
acc_case_open(const struct acc_judge_opt *opt, struct acc_err *e)
{
	struct acc_case *c = calloc(1, sizeof *c);
	if (c == NULL) {
		acc_nomem(e);
		return NULL;
	}
	c->opt = *opt;
	/* Of one rank and step so much stays in memory, what is known of 50,000 op calls and more. */
	c->items = (struct acc_spill){.dir = opt->tmpdir, .keep = 48 << 20};
	c->calls = (struct acc_spill){.dir = opt->tmpdir, .keep = 8 << 20};
	c->picked = calloc(1, sizeof *c->picked);
	if (c->picked == NULL)
		acc_nomem(e);
	else
		c->spool = acc_spool_open(opt->tmpdir, e);
	if (c->spool == NULL) {
		free(c->picked);
		free(c);
		return NULL;
	}
	return c;
}

void
acc_case_close(struct acc_case *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < NJUDGES; i++)
		if (judges[i]->release != NULL)
			judges[i]->release(c);
	acc_out_free(c->out);
	acc_spool_close(c->spool);
	acc_sources_free(c->sources);
	acc_picked_release(c->picked);
	free(c->picked);
	acc_arena_release(&c->mem);
	acc_ids_release(&c->ranks[ACC_A]);
	acc_ids_release(&c->ranks[ACC_B]);
	acc_spill_release(&c->items);
	acc_spill_release(&c->calls);
	acc_ids_release(&c->ops);
	free(c->op);
	free(c->verdict);
	free(c->finding);
	free(c);
}

static int
count_rank(struct acc_case *c, int side, struct acc_err *e)
{
	int64_t rank = acc_picked_int(c->picked->side[side][RANK], INT64_MIN);
	if (rank == INT64_MIN || (c->nranks[side] > 0 && rank == c->last_rank[side]))
		return 0;
	c->last_rank[side] = rank;
	uint64_t id = acc_hash(&rank, sizeof rank);
	if (acc_ids_get(&c->ranks[side], id) != ACC_NOID)
		return 0;
	return acc_ids_put(&c->ranks[side], id, c->nranks[side]++, false, e);
}

int
acc_case_add(struct acc_case *c, const struct acc_rec *r, struct acc_err *e)
{
	/* Payload is of no use to who reads only what is bad. */
	if (acc_rec_is(r, "data") && !c->opt.all)
		return 0;
	int rc = c->settles ? acc_case_settle(c, e) : 0;
	struct acc_item *it = rc < 0 ? NULL : acc_case_item(c, e);
	if (it == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	rc = acc_spool_put(c->spool, r, &it->at, e);
	if (rc < 0)
		return rc;
	c->by_names |= acc_rec_is(r, "source") && acc_str_is(acc_get_text(r, "", "order"), "names");
	if (acc_rec_is(r, "source"))
		c->overflow_dump |= acc_str_starts(acc_get_text(r, "", "task"), "overflow");
	if (acc_rec_is(r, "source") || acc_rec_is(r, "stack"))
		it->kind = ACC_ITEM_AUX;
	else if (acc_rec_is(r, "finding")) {
		it->kind = ACC_ITEM_FINDING;
		c->judged_before += acc_is_judged(r);
	} else if (acc_rec_is(r, "pair") || acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")) {
		if (acc_picked_get(c->picked, r) < 0)
			return acc_nomem(e);
		acc_item_measure(it, c->picked);
		acc_noise_get(c->opt.noise, r, it);
		c->pairs += c->picked->is_pair;
		for (int s = 0; s < 2 && rc == 0; s++)
			rc = count_rank(c, s, e);
		for (int s = 0; s < 2; s++) {
			const struct acc_val *const *v = c->picked->side[s];
			if (v[AUDIT_OK] != NULL || v[AUDIT_SKIP] != NULL)
				acc_coverage_add(&c->cover[s], r,
					!c->picked->is_pair ? ""
					: s == ACC_A        ? "a."
							    : "b.");
		}
		c->late |= it->late;
		c->audited += !isnan(it->audit[ACC_A]) || !isnan(it->audit[ACC_B]) || it->doubted;
		c->measured += it->measure != ACC_UNMEASURED && it->kind == ACC_ITEM_TENSOR;
		if (rc == 0)
			rc = acc_into_call(c, it, e);
	}
	for (size_t i = 0; i < NJUDGES && rc == 0; i++)
		if (judges[i]->record != NULL)
			rc = judges[i]->record(c, r, e);
	return rc;
}

int
acc_case_judge(struct acc_case *c, struct acc_err *e)
{
	/* Results of earlier judges, joined: their verdicts stand, there is nothing to add. */
	if (c->judged_before > 0)
		return acc_join(c, e);
	size_t i = 0;
	int rc = acc_settle_late(c, e);
	while (!judges[i]->fits(c))
		i++; /* the last one always does */
	if (rc == 0)
		rc = judges[i]->judge(c, e);
	if (rc == 0)
		rc = acc_say_accepted(c, e);
	if (rc == 0)
		rc = acc_say_before(c, e);
	if (rc == 0)
		rc = acc_explain(c, e);
	if (rc == 0)
		rc = acc_take_findings(c, e);
	/* What a sentence lacks would not be seen: see acc_got. */
	return rc == 0 && c->mem.lost ? acc_nomem(e) : rc;
}
