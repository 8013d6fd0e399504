#include "fmt_ranks.h"
#include "cli.h"
#include "acc/stream.h"
#include "base/order.h"

#include <stdlib.h>

struct taken {
	uint32_t group;
	int64_t rank;
};

static struct {
	struct acc_spool *spool;
	struct acc_ids seen; /* what is said, to a group */
	uint64_t *at;        /* of each group the first record */
	uint32_t n;
	size_t cap;
	struct taken *taken;
	size_t ntaken, taken_cap;
} all;

/* Numbers differ with the rank: what the row is of, and what it is called. */
static uint64_t
gist(const struct acc_rec *r)
{
	static const char *const keys[] = {"a.name", "b.name", "name", "bad", "rule", "a.dtype",
		"dtype"};
	uint64_t h = (uint64_t)acc_get_int(r, "", "step", acc_get_int(r, "a.", "step", -1));
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		struct acc_str s = acc_get_text(r, "", keys[i]);
		const uint64_t id[2] = {h, acc_hash(s.p, s.n)};
		h = acc_hash(id, sizeof id);
	}
	return h;
}

bool
ranks_take(const struct acc_rec *r)
{
	struct acc_err e = {0};
	const bool pair = acc_rec_is(r, "pair");
	const int64_t rank = acc_get_int(r, pair ? "a." : "", "rank", -1);
	if (!(pair || acc_rec_is(r, "tensor")) || rank < 0 || acc_get(r, "", "bad") == NULL)
		return false;
	const uint64_t id = gist(r);
	uint32_t group = acc_ids_get(&all.seen, id);
	if (all.spool == NULL && (all.spool = acc_spool_open(cli_tmpdir(), &e)) == NULL)
		cli_die_err(&e);
	if (group == ACC_NOID) {
		if (!ACC_ROOM(all.at, all.cap, all.n + (size_t)1, &e))
			cli_nomem();
		group = all.n++;
		if (acc_ids_put(&all.seen, id, group, false, &e) < 0 ||
			acc_spool_put(all.spool, r, &all.at[group], &e) < 0)
			cli_die_err(&e);
	}
	if (!ACC_ROOM(all.taken, all.taken_cap, all.ntaken + 1, &e))
		cli_nomem();
	all.taken[all.ntaken++] = (struct taken){group, rank};
	return true;
}

ACC_ORDER_2(by_group, struct taken, group, rank)

int
ranks_put(int (*put)(void *arg, const struct acc_rec *r, uint64_t n, struct acc_err *e), void *arg,
	struct acc_err *e)
{
	struct acc_arena mem = {0};
	int rc = 0;
	if (all.ntaken > 0)
		qsort(all.taken, all.ntaken, sizeof *all.taken, by_group);
	for (size_t i = 0, end = 0; i < all.ntaken && rc >= 0; i = end) {
		const struct taken *t = &all.taken[i];
		struct acc_which w = {.text = ""};
		for (; end < all.ntaken && all.taken[end].group == t->group; end++)
			if (end == i || all.taken[end].rank != all.taken[end - 1].rank)
				acc_which_add(&mem, &w, all.taken[end].rank);
		acc_which_end(&mem, &w);
		struct acc_rec *r;
		rc = acc_spool_get(all.spool, all.at[t->group], &r, e);
		const char *side = rc < 0 ? "" : acc_rec_is(r, "pair") ? "a." : "";
		if (rc >= 0 && w.n > 1 &&
			(w.text == NULL || acc_put(r, side, "rank", acc_ctext(w.text)) < 0))
			cli_nomem();
		rc = rc < 0 ? rc : put(arg, r, end - i, e);
		acc_arena_reset(&mem);
	}
	acc_arena_release(&mem);
	acc_ids_clear(&all.seen);
	all.n = 0;
	all.ntaken = 0;
	return rc;
}
