/* Op calls that are alike: of one line of code, given tensors of the same shapes. */
#include "ranks/graph.h"
#include "base/order.h"

#include <stdlib.h>

/* The line of a call; of a backward call, whose stack is that of all, its forward call's. 0: unknown. */
static uint64_t
line_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	const struct acc_seen_call *fwd = c->k->backward ? acc_replicas_call(t, c->k->step,
								   c->k->rank, c->k->twin)
							 : c;
	return fwd == NULL || fwd->line == 0 ? 0 : fwd->line + c->k->backward;
}

/* A line of code and what its call is given: one line may call an operator for several things. */
static uint64_t
form_of(const struct acc_replicas *t, const struct acc_seen_call *c, uint64_t line)
{
	uint64_t id[3] = {line, c->n, 0};
	for (uint32_t j = 0; j < c->n; j++)
		id[2] += acc_mix(t->seen[c->first + j].shape ^ t->seen[c->first + j].pos);
	return acc_hash(id, sizeof id);
}

ACC_ORDER_2(by_form, struct acc_seen_like, form, call)

int
acc_seen_likes_of(const struct acc_replicas *t, int64_t rank, struct acc_seen_likes *out,
	struct acc_err *e)
{
	for (uint32_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		const uint64_t line = c->k->step != t->step[0] ? 0 : line_of(t, c);
		if (line == 0)
			continue;
		if (!ACC_ROOM(out->like, out->cap, out->n + 1, e))
			return ACC_ENOMEM;
		out->like[out->n++] = (struct acc_seen_like){form_of(t, c, line), i};
	}
	if (out->n > 1)
		qsort(out->like, out->n, sizeof *out->like, by_form);
	return 0;
}

size_t
acc_seen_likes_end(const struct acc_seen_likes *all, size_t i)
{
	const uint64_t form = all->like[i].form;
	while (i < all->n && all->like[i].form == form)
		i++;
	return i;
}
