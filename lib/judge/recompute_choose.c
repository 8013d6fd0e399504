/* Which op calls are recomputed: suspects with the nearest of their kind, from which the audit learns what is
 * usual, and others where that leaves doubt, as far as the time goes. */
#include "judge/recompute.h"

#include <stdlib.h>

#include "judge/limits.h"

/* The forward call of a backward one, or ACC_NOID. */
static uint32_t
forward_of(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	return k->backward ? acc_ids_get(&t->forward, acc_id_with(k->twin, k->segment)) : ACC_NOID;
}

void
acc_recompute_want(struct acc_recompute *t, uint32_t call, uint8_t as)
{
	const uint32_t f = forward_of(t, call);
	t->state[call] |= as;
	if (f != ACC_NOID)
		t->state[f] |= FORWARD;
}

static bool
is_peer(const struct acc_recompute *t, uint32_t call, uint32_t other, bool close)
{
	const struct acc_call *k = &t->c->call[call], *o = &t->c->call[other];
	if (t->cls[other] != t->cls[call] || (t->state[other] & (SUSPECT | ACCUSED)) != 0 ||
		o->key[ACC_A] == NULL || o->key[ACC_B] == NULL)
		return false;
	bool alike = o->backward == k->backward &&
		     acc_unit_low(acc_call_unit(t->c, o)) == acc_unit_low(acc_call_unit(t->c, k));
	return alike == close;
}

/* The nearest calls from which the audit can learn what is usual: of its class, pass and precision;
 * where these are few, also others of its class, which tell what precision is usual. */
static void
want_peers(struct acc_recompute *t, uint32_t call)
{
	uint32_t found = 0, n = t->c->ncall;
	for (int close = 1; close >= 0 && t->cls[call] != 0; close--)
		for (uint32_t d = 1; d < n && found < LIMIT_AUDIT_PEERS; d++) {
			uint32_t at[2] = {call >= d ? call - d : n, n - call > d ? call + d : n};
			for (int i = 0; i < 2; i++) {
				if (at[i] == n || !is_peer(t, call, at[i], close))
					continue;
				acc_recompute_want(t, at[i], PEER);
				found++;
			}
		}
}

static bool
is_due(const struct acc_recompute *t, const struct suspect *x)
{
	return x->role == ROLE_OUT && t->cls[x->call] != 0 && (t->state[x->call] & DONE) == 0;
}

/* Is any of its outputs not the bench's, bit for bit? Else nothing that is wrong comes from it. */
static bool
differs(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	bool any = false;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &t->c->item[i];
		any |= it->call == call && it->kind == ACC_ITEM_TENSOR && acc_is_output(it) &&
		       !(it->rms == 0 && it->max == 0);
	}
	return any;
}

/* Of the same operator, pass, rank and step, and not recomputed? */
static bool
is_sibling(const struct acc_recompute *t, uint32_t call, uint32_t other)
{
	const struct acc_call *k = &t->c->call[call], *o = &t->c->call[other];
	return k->op_id == o->op_id && k->backward == o->backward && k->segment == o->segment &&
	       t->cls[call] != 0 && (t->state[call] & (DONE | SUSPECT)) == 0 && differs(t, call);
}

uint32_t
acc_recompute_choose(struct acc_recompute *t, const struct scan *s, uint32_t chosen)
{
	uint32_t n = 0, all = 0,
		 before = chosen == ACC_NOCALL ? ACC_NOCALL : s->suspect[chosen].call;
	bool any = chosen != ACC_NOCALL && is_due(t, &s->suspect[chosen]);
	for (uint32_t i = 0; i < s->nsuspect; i++) {
		const struct suspect *x = &s->suspect[i];
		t->state[x->call] |= x->role == ROLE_OUT ? ACCUSED : 0;
		any |= (x->first || x->guess) && is_due(t, x);
	}
	for (uint32_t i = 0; i < s->nsuspect && any && t->done + all < LIMIT_AUDIT_MOST; i++) {
		const struct suspect *x = &s->suspect[i];
		bool due = is_due(t, x) && (t->state[x->call] & SUSPECT) == 0;
		if (!due || !(x->first || x->guess || (i >= chosen && n < LIMIT_AUDIT_BATCH)))
			continue;
		acc_recompute_want(t, x->call, SUSPECT);
		for (unsigned h = 0; h < x->hidden.n; h++)
			if (t->cls[x->hidden.call[h]] != 0)
				acc_recompute_want(t, x->hidden.call[h], SUSPECT);
		all++;
		n += !x->first;
	}
	/* Where an operator is not what its inputs give, earlier calls of it may be no better. */
	for (uint32_t i = 0; before != ACC_NOCALL && s->suspect[chosen].audit && i < before;
		i = acc_step(t->c, i))
		if (is_sibling(t, i, before) && t->done + all < LIMIT_AUDIT_MOST) {
			acc_recompute_want(t, i, SUSPECT);
			all++;
		}
	for (uint32_t i = 0; i < t->c->ncall && all > 0; i++)
		if ((t->state[i] & SUSPECT) != 0)
			want_peers(t, i);
	return all;
}

/* The first few suspects of a class get peers: the others of it are peers of each other. */
static void
want_some_peers(struct acc_recompute *t)
{
	uint32_t of[MAX_CLASSES] = {0};
	for (uint32_t i = 0; i < t->c->ncall; i++)
		if ((t->state[i] & SUSPECT) != 0 && of[t->cls[i]]++ < LIMIT_AUDIT_PEERS)
			want_peers(t, i);
}

/* Bytes of the device's tensors that a call took and made. */
static uint64_t
bytes_of(const struct acc_recompute *t, uint32_t call)
{
	const struct acc_call *k = &t->c->call[call];
	uint64_t n = 0;
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &t->c->item[i];
		if (it->call == call && it->kind == ACC_ITEM_TENSOR && (it->sides & 1) != 0)
			n += it->count * acc_item_dtype(it, ACC_A)->size;
	}
	return n;
}

struct rest {
	uint32_t call;
	float near;
	uint64_t bytes;
};

static int
by_nearness(const void *pa, const void *pb)
{
	const struct rest *a = pa, *b = pb;
	if (a->near != b->near)
		return a->near > b->near ? -1 : 1;
	return (a->call > b->call) - (a->call < b->call);
}

/* How many bytes may be recomputed where doubt is left. */
static uint64_t
room_of(const struct acc_recompute *t)
{
	const uint64_t least = (uint64_t)LIMIT_AUDIT_REST << 20;
	uint64_t all = 0;
	for (uint32_t i = 0; i < t->c->ncall; i = acc_step(t->c, i))
		all += bytes_of(t, i);
	return all / LIMIT_AUDIT_SHARE > least ? all / LIMIT_AUDIT_SHARE : least;
}

int64_t
acc_recompute_choose_rest(struct acc_recompute *t, struct scan *s, uint32_t before, bool every,
	struct acc_err *e)
{
	const uint32_t n = t->c->ncall;
	struct rest *v = malloc((n + 1) * sizeof *v);
	uint32_t m = 0, k = 0;
	if (v == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < n && i < before; i = acc_step(t->c, i)) {
		const struct acc_call *o = &t->c->call[i];
		if (t->cls[i] == 0 || (t->state[i] & DONE) != 0 || !(every || s->near[i] > 0) ||
			o->key[ACC_A] == NULL || o->key[ACC_B] == NULL || !differs(t, i))
			continue;
		const uint32_t f = forward_of(t, i);
		const uint64_t bytes = bytes_of(t, i) + (f == ACC_NOID ? 0 : bytes_of(t, f));
		v[m++] = (struct rest){i, s->near[i], bytes};
	}
	if (m > 0)
		qsort(v, m, sizeof *v, by_nearness);
	if (m > 0 && t->room == UINT64_MAX)
		t->room = room_of(t);
	for (uint32_t i = 0; i < m; i++) {
		if (v[i].bytes > t->room)
			continue;
		t->room -= v[i].bytes;
		acc_recompute_want(t, v[i].call, SUSPECT);
		k++;
	}
	s->unread = m - k;
	free(v);
	return k;
}

uint32_t
acc_recompute_choose_failed(struct acc_recompute *t)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < t->c->ncall; i++) {
		if ((t->state[i] & FAILED) == 0)
			continue;
		t->state[i] = 0;
		acc_recompute_want(t, i, SUSPECT);
		all++;
	}
	want_some_peers(t);
	return all;
}
