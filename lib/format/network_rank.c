/* Ranks and steps in their order, and which stages of a pipeline ranks are. */
#include "format/network.h"

#include "acc/say.h"
#include "base/order.h"

#include <stdlib.h>

struct valued {
	int64_t value;
	uint32_t number;
};

ACC_ORDER(by_value, struct valued, value)

int
acc_network_sort(struct acc_net_axis *x, struct acc_err *e)
{
	struct valued *v = malloc((x->n + 1) * sizeof *v);
	x->sorted = malloc((x->n + 1) * sizeof *x->sorted);
	if (v == NULL || x->sorted == NULL) {
		free(v);
		return acc_nomem(e);
	}
	for (size_t i = 0; i < x->n; i++)
		v[i] = (struct valued){x->v[i], (uint32_t)i};
	qsort(v, x->n, sizeof *v, by_value);
	for (size_t i = 0; i < x->n; i++)
		x->sorted[i] = v[i].number;
	free(v);
	return 0;
}

uint32_t
acc_network_rank(const struct acc_network *n, int64_t rank)
{
	return acc_ids_get(&n->rank.at, acc_hash(&rank, sizeof rank));
}

/* One more than that of the rank it hears from; 0 where a rank sends first. */
static uint32_t
stage_of(const struct acc_network *n, uint32_t rank)
{
	uint32_t stage = 0;
	while (rank < n->peers_cap && n->peer[rank].known && n->peer[rank].from != INT64_MIN &&
		stage < n->rank.n) {
		rank = acc_network_rank(n, n->peer[rank].from);
		stage++;
		if (rank == ACC_NOID)
			break;
	}
	return stage < n->rank.n ? stage : 0;
}

int
acc_network_stages(struct acc_network *n, struct acc_err *e)
{
	n->stage = acc_alloc(&n->mem, (n->rank.n + 1) * sizeof *n->stage);
	if (n->stage == NULL)
		return acc_nomem(e);
	n->nstages = 1;
	for (uint32_t i = 0; i < n->rank.n; i++) {
		n->stage[i] = stage_of(n, i);
		if (n->stage[i] >= n->nstages)
			n->nstages = n->stage[i] + 1;
	}
	return 0;
}

void
acc_network_ranks(const struct acc_network *n, uint32_t node, char *buf, size_t size)
{
	const uint8_t *on = n->on + node * n->on_bytes;
	size_t at = 0, count = 0;
	char list[200] = "";
	for (size_t i = 0; i < n->rank.n; i++) {
		size_t to = i;
		if (!(on[i / 8] >> i % 8 & 1) || n->rank.v[n->rank.sorted[i]] == INT64_MIN)
			continue;
		while (to + 1 < n->rank.n && (on[(to + 1) / 8] >> (to + 1) % 8 & 1) &&
			n->rank.v[n->rank.sorted[to + 1]] == n->rank.v[n->rank.sorted[to]] + 1)
			to++;
		count += to - i + 1;
		if (at < sizeof list)
			at += (size_t)snprintf(list + at, sizeof list - at, "%s%lld",
				at > 0 ? "," : "", (long long)n->rank.v[n->rank.sorted[i]]);
		if (to > i && at < sizeof list)
			at += (size_t)snprintf(list + at, sizeof list - at, "-%lld",
				(long long)n->rank.v[n->rank.sorted[to]]);
		i = to;
	}
	snprintf(buf, size, "%s%s",
		count == 0   ? ""
		: count == 1 ? acc_tr("rank ")
			     : acc_tr("ranks "),
		list);
}
