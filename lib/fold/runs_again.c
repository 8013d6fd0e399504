/* A network that is run again before anything goes back, as for the second view of an image, or for all micro-batches
 * first: one forward run that is several.
 *
 * Where a call takes a weight that one before it took, the calls from there on are compared with those from the first
 * on, operator by operator and weight by weight. Of all distances the one counts at which most calls repeat others, and
 * of those the least: a cell that is called for each token is a smaller repetition within that of the network. */
#include "fold/impl.h"

#include <stdlib.h>

struct again {
	uint32_t from, period, times; /* of a run's plain calls; times 0: none repeat */
};

/* The identity of the first weight of a call, with its operator; 0: it takes none that can be told from others. */
static uint64_t
weight_of(const struct fold_side *s, const struct fold_call *k)
{
	bool first = true;
	for (uint32_t i = 0; i < k->n && k->weighs; i++) {
		const struct fold_item *it = &s->item[k->first + i];
		const uint64_t id[2] = {k->op, it->tensor ? acc_fold_stat_id(&it->stat) : 0};
		if (!first && it->tensor && !it->output && id[1] != 0)
			return acc_hash(id, sizeof id);
		first &= !it->tensor;
	}
	return 0;
}

/* Do two plain calls of a run do the same with the same weights? */
static bool
repeats(const struct fold_side *s, const struct fold_runs *t, uint32_t i, uint32_t j)
{
	const struct fold_run a = {.plain = i, .nplain = 1}, b = {.plain = j, .nplain = 1};
	return s->call[t->plain[i]].op == s->call[t->plain[j]].op &&
	       acc_fold_same_weights(s, t, &a, &b);
}

/* What repeats at this distance around one call that does. */
static struct again
at_distance(const struct fold_side *s, const struct fold_runs *t, const struct fold_run *r,
	uint32_t call, uint32_t period)
{
	const uint32_t end = r->plain + r->nplain;
	uint32_t from = call, to = call;
	while (from > r->plain && repeats(s, t, from - 1, from - 1 + period))
		from--;
	while (to + period < end && repeats(s, t, to, to + period))
		to++;
	return (struct again){from - r->plain, period,
		to - from >= period ? (to - from) / period + 1 : 0};
}

static struct again
find_again(const struct fold_side *s, const struct fold_runs *t, const struct fold_run *r,
	struct acc_err *e, int *rc)
{
	enum { MOST = 256 }; /* distances that are tried */
	struct acc_ids seen = {0};
	struct again best = {0};
	uint32_t first = ACC_NOID, tries = 0;
	uint64_t again = 0;
	for (uint32_t i = r->plain; i < r->plain + r->nplain && *rc == 0 && tries < MOST; i++) {
		const uint64_t id = weight_of(s, &s->call[t->plain[i]]);
		const uint32_t before = id == 0 ? ACC_NOID : acc_ids_get(&seen, id);
		if (id != 0 && before == ACC_NOID)
			*rc = acc_ids_put(&seen, id, i, false, e);
		if (before == ACC_NOID || (first != ACC_NOID && id != again))
			continue;
		again = id;
		first = before;
		const struct again x = at_distance(s, t, r, first, i - first);
		best = x.times * x.period > best.times * best.period ? x : best;
		tries++;
	}
	acc_ids_release(&seen);
	return best;
}

/* The n plain calls from the nth of a run on, as a run; up to its end if it is the last of these. */
static struct fold_run
part_of(const struct fold_side *s, const struct fold_runs *t, const struct fold_run *r,
	uint32_t from, uint32_t n)
{
	struct fold_run x = {.plain = r->plain + from, .nplain = n};
	x.first = from == 0 ? r->first : t->plain[x.plain];
	x.n = (from + n == r->nplain ? r->first + r->n : t->plain[x.plain + n]) - x.first;
	x.ops = acc_fold_ops_of(s, t, &x);
	return x;
}

int
acc_fold_split_again(const struct fold_side *s, struct fold_runs *t, struct acc_err *e)
{
	struct fold_runs all = {.n = 0};
	int rc = 0;
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		const struct fold_run *r = &t->run[i];
		const struct again x = r->back || r->hands ? (struct again){0}
							   : find_again(s, t, r, e, &rc);
		const uint32_t end = x.from + x.times * x.period;
		if (rc < 0 || !ACC_ROOM(all.run, all.cap, (size_t)all.n + x.times + 3, e)) {
			rc = ACC_ENOMEM;
			break;
		}
		struct fold_run *to = all.run;
		if (x.from > 0)
			to[all.n++] = part_of(s, t, r, 0, x.from);
		for (uint32_t k = 0; k < x.times; k++)
			to[all.n++] = part_of(s, t, r, x.from + k * x.period, x.period);
		if (x.times == 0)
			to[all.n++] = *r;
		else if (end < r->nplain)
			to[all.n++] = part_of(s, t, r, end, r->nplain - end);
	}
	if (rc < 0) {
		free(all.run);
		return rc;
	}
	free(t->run);
	t->run = all.run;
	t->n = all.n;
	t->cap = all.cap;
	return 0;
}
