/* The way back from a tensor to the communication that it came by. */
#include "ranks/back.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 6 };

static void
add_maker(struct acc_back *b, const struct acc_replicas *t, const struct acc_replica_seen *s,
	unsigned hops)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, s);
	const struct acc_seen_call *c = acc_seen_caller(t, made);
	if (c == NULL)
		return;
	for (unsigned i = 0; i < b->n; i++)
		if (b->call[i] == c)
			return;
	for (unsigned i = 0; i < b->ntalk; i++)
		if (b->talk[i] == c)
			return;
	if (b->n == ACC_BACK_MOST || b->ntalk == ACC_BACK_MOST || hops > MOST_HOPS) {
		b->lost = true;
	} else if (c->k->talks) {
		b->talk[b->ntalk++] = c;
	} else {
		b->hops[b->n] = hops;
		b->by[b->n] = made;
		b->call[b->n++] = c;
	}
}

bool
acc_seen_joins_parts(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	bool came = false;
	for (uint32_t j = c->first; j < c->first + c->n && !came; j++) {
		const struct acc_seen_call *from =
			t->seen[j].out ? NULL : acc_seen_caller(t, acc_seen_maker(t, &t->seen[j]));
		came = from != NULL && from->k->talks;
	}
	return came && c->info != NULL && c->info->cls == ACC_OP_MOVE;
}

void
acc_go_back(struct acc_back *b, const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const bool number = s->n == 1;
	*b = (struct acc_back){.n = 0};
	add_maker(b, t, s, 0);
	for (unsigned i = 0; i < b->n; i++) {
		const struct acc_seen_call *c = b->call[i], *from;
		const bool parts = acc_seen_joins_parts(t, c);
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (t->seen[j].out || !t->seen[j].real ||
				(number ? t->seen[j].n != 1 : t->seen[j].n < 2))
				continue;
			from = parts ? acc_seen_caller(t, acc_seen_maker(t, &t->seen[j])) : NULL;
			if (!parts || (from != NULL && from->k->talks))
				add_maker(b, t, &t->seen[j], b->hops[i] + 1);
		}
	}
}

bool
acc_seen_exchanged(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	struct acc_back b;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		if (t->seen[j].out || t->seen[j].leaf || t->seen[j].n < 2)
			continue;
		acc_go_back(&b, t, &t->seen[j]);
		for (unsigned i = 0; i < b.ntalk; i++)
			if (b.talk[i]->exchanges || b.talk[i]->gathers)
				return true;
	}
	return false;
}

bool
acc_seen_summed(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g)
{
	struct acc_back b;
	for (uint32_t j = c->first; j < c->first + c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[j];
		if (s->out || s->leaf || s->n < 2 || !s->wants)
			continue;
		acc_go_back(&b, t, s);
		for (unsigned i = 0; i < b.ntalk; i++)
			if (b.talk[i]->reduces && !b.talk[i]->scatters &&
				acc_seen_among(t, b.talk[i], g))
				return true;
	}
	return false;
}

/* The first real tensor, or number, that a call is given or puts out; NULL: none. */
static const struct acc_replica_seen *
first_real(const struct acc_replicas *t, const struct acc_seen_call *c, bool out)
{
	const struct acc_replica_seen *s = acc_seen_real(t, c, out);
	for (uint32_t i = c->first; i < c->first + c->n && s == NULL; i++)
		if (t->seen[i].out == out && t->seen[i].real)
			s = &t->seen[i];
	return s;
}

const struct acc_replica_seen *
acc_seen_made_for_sum(const struct acc_replicas *t, const struct acc_seen_call *sum)
{
	const struct acc_replica_seen *in = first_real(t, sum, false),
				      *made = in == NULL ? NULL : acc_seen_maker(t, in);
	const struct acc_seen_call *c = acc_seen_caller(t, made);
	return c == NULL || c->k->talks || c->line == 0 ? NULL : made;
}
