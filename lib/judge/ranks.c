/* Several ranks: on which of them did it begin?
 *
 * Ranks run side by side and have no clock in common, but communication orders them: what
 * happens on one rank before a collective is before all that happens on the others after it.
 * Each communication gets a layer, one more than what came before it on any rank that takes
 * part; an op call has the layer of the last communication before it on its rank. */
#include "judge/first_bad.h"
#include "acc/say.h"

#include <stdlib.h>

#include "judge/case.h"
#include "judge/order.h"
#include "base/order.h"

struct event {
	uint32_t call, layer;
	uint64_t id;   /* the same on all ranks that take part */
	uint32_t next; /* the next event of this id, round to the first; the last one found first */
	bool first;    /* of its rank and step */
};

struct acc_ranks {
	struct event *event;
	uint32_t n;
	size_t cap;
};

bool
acc_is_communication(const struct acc_call *k)
{
	return k->talks;
}

/* The rank that a call sends to or receives from, and its group, as far as it was recorded. */
struct partners {
	int64_t peer; /* -1: unknown */
	uint64_t group;
	bool sends, receives;
};

static int
read_partners(struct acc_case *c, const struct acc_call *k, struct partners *p, struct acc_err *e)
{
	static const char space[] = "Distributed.";
	struct acc_str op = acc_str(acc_call_name(k));
	const uint32_t skip = acc_str_starts(op, space) ? sizeof space - 1 : 0;
	op = (struct acc_str){op.p + skip, op.n - skip};
	*p = (struct partners){.peer = -1};
	p->sends = acc_str_starts(op, "send.") || acc_str_starts(op, "isend.");
	p->receives = acc_str_starts(op, "recv.") || acc_str_starts(op, "irecv.");
	for (uint32_t i = k->first; i <= k->last; i++) {
		const struct acc_item *it = &c->item[i];
		struct acc_rec *r;
		if (it->call != (uint32_t)(k - c->call) || it->kind != ACC_ITEM_ARG)
			continue;
		int rc = acc_case_record(c, it, &r, e);
		if (rc < 0)
			return rc;
		const char *prefix = acc_rec_is(r, "pair") ? it->sides & 1 ? "a." : "b." : "";
		const struct acc_val *v = acc_get(r, prefix, "value");
		struct acc_str type = acc_get_text(r, prefix, "type");
		struct acc_str pos = acc_get_text(r, prefix, "pos");
		if (acc_str_ends(type, "ProcessGroup") && v != NULL && v->type == ACC_V_INTS)
			p->group = acc_hash(v->ints, v->n * sizeof *v->ints);
		else if (acc_str_is(pos, "1") || acc_str_is(pos, "dst") || acc_str_is(pos, "src"))
			p->peer = acc_get_int(r, prefix, "value", p->peer);
	}
	return 0;
}

static int
add(struct acc_ranks *t, struct acc_case *c, struct acc_map *seen, uint32_t call, struct acc_err *e)
{
	const struct acc_call *k = &c->call[call];
	struct partners p;
	int rc = read_partners(c, k, &p, e);
	if (rc < 0)
		return rc;
	if (!ACC_ROOM(t->event, t->cap, t->n + 1, e))
		return ACC_ENOMEM;
	uint64_t id[6] = {(uint64_t)k->step, k->backward, k->op_id, p.group, 0, 0};
	if (p.sends || p.receives) {
		id[2] = 0;
		id[3] = (uint64_t)(p.sends ? k->rank : p.peer);
		id[4] = (uint64_t)(p.sends ? p.peer : k->rank);
	}
	/* Which of the communications of this kind it is on its rank. */
	uint64_t own[2] = {acc_hash(id, sizeof id), k->segment};
	struct acc_str key = {(char *)own, sizeof own};
	uint64_t *n = acc_map_get(seen, key);
	id[5] = n == NULL ? 0 : *n + 1;
	uint64_t *v = acc_map_put(seen, key, id[5]);
	if (v == NULL)
		return acc_nomem(e);
	*v = id[5];
	bool alone = (p.sends || p.receives) && p.peer < 0;
	const struct event *last = t->n == 0 ? NULL : &t->event[t->n - 1];
	t->event[t->n] = (struct event){.call = call, .id = alone ? call : acc_hash(id, sizeof id)};
	t->event[t->n++].first = last == NULL || c->call[last->call].segment != k->segment;
	return 0;
}

/* Layers rise until each is above the one before it and equal on all ranks that take part. */
static int
settle(struct acc_ranks *t, struct acc_err *e)
{
	struct acc_map layer = {0};
	bool moved = true;
	for (uint32_t pass = 0; moved && pass <= t->n; pass++) {
		moved = false;
		for (uint32_t i = 0; i < t->n; i++) {
			struct event *v = &t->event[i];
			struct acc_str key = {(char *)&v->id, sizeof v->id};
			uint32_t least = v->first ? 1 : t->event[i - 1].layer + 1;
			uint64_t *all = acc_map_put(&layer, key, least);
			if (all == NULL) {
				acc_map_release(&layer);
				return acc_nomem(e);
			}
			if (*all < least)
				*all = least;
			moved |= v->layer != *all;
			v->layer = (uint32_t)*all;
			/* What was recorded may contradict itself; no layer is above their number. */
			if (v->layer > t->n)
				v->layer = t->n;
		}
	}
	acc_map_release(&layer);
	return 0;
}

/* The events of one id become a ring. */
static int
join(struct acc_ranks *t, struct acc_err *e)
{
	struct acc_ids last = {0};
	int rc = 0;
	for (uint32_t i = 0; i < t->n && rc == 0; i++) {
		uint32_t before = acc_ids_get(&last, t->event[i].id);
		t->event[i].next = before == ACC_NOID ? i : t->event[before].next;
		if (before != ACC_NOID)
			t->event[before].next = i;
		rc = acc_ids_put(&last, t->event[i].id, i, true, e);
	}
	acc_ids_release(&last);
	return rc;
}

struct acc_ranks *
acc_ranks_open(struct acc_case *c, struct acc_err *e)
{
	struct acc_ranks *t = calloc(1, sizeof *t);
	struct acc_map seen = {0};
	int rc = t == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i++)
		if (acc_is_communication(&c->call[i]) && c->call[i].key[ACC_A] != NULL)
			rc = add(t, c, &seen, i, e);
	if (rc == 0)
		rc = settle(t, e);
	if (rc == 0)
		rc = join(t, e);
	acc_map_release(&seen);
	if (rc == 0)
		return t;
	acc_ranks_close(t);
	return NULL;
}

void
acc_ranks_close(struct acc_ranks *t)
{
	if (t == NULL)
		return;
	free(t->event);
	free(t);
}

/* The number of events up to this call. */
static uint32_t
events_to(const struct acc_ranks *t, uint32_t call)
{
	uint32_t lo = 0;
	ACC_LOWER(lo, t->n, t->event[lo].call <= call);
	return lo;
}

uint32_t
acc_partner(const struct acc_ranks *t, uint32_t call, uint32_t after)
{
	uint32_t own = t == NULL ? 0 : events_to(t, call), at = t == NULL ? 0 : events_to(t, after);
	if (own == 0 || at == 0 || t->event[own - 1].call != call)
		return ACC_NOCALL;
	uint32_t next = t->event[at - 1].next;
	return next == own - 1 ? ACC_NOCALL : t->event[next].call;
}

uint32_t
acc_layer(const struct acc_ranks *t, const struct acc_case *c, uint32_t call)
{
	uint32_t lo = events_to(t, call);
	return lo > 0 && c->call[t->event[lo - 1].call].segment == c->call[call].segment
		       ? t->event[lo - 1].layer
		       : 0;
}

bool
acc_before(const struct acc_ranks *t, const struct acc_case *c, uint32_t call, uint32_t other)
{
	const struct acc_call *x = &c->call[call], *y = &c->call[other];
	if (x->segment == y->segment)
		return call < other;
	if (x->step != y->step)
		return x->step < y->step;
	uint32_t lx = acc_layer(t, c, call), ly = acc_layer(t, c, other);
	if (lx != ly)
		return lx < ly;
	bool cx = acc_is_communication(x), cy = acc_is_communication(y);
	return cx != cy ? cx : x->seq < y->seq;
}

int
acc_say_ranks(struct acc_case *c, const struct acc_ranks *t, uint32_t culprit,
	const uint32_t *first, uint32_t n, const char *verb, struct acc_err *e)
{
	const struct acc_call *k = &c->call[culprit];
	struct acc_which same = {.text = ""}, got = {.text = ""};
	const char *through = NULL, *own = NULL;
	uint32_t nown = 0, layer = acc_layer(t, c, culprit);
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_call *x = &c->call[first[i]];
		/* Arrays of one process may stand in several segments, those without a partner in one of their own. */
		if (x->segment == k->segment || x->step != k->step || x->rank == k->rank)
			continue;
		if (acc_is_communication(x) || acc_layer(t, c, first[i]) > layer) {
			if (got.n == 0)
				through = acc_call_name(x);
			acc_which_add(&c->mem, &got, x->rank);
		} else if (strcmp(acc_call_name(x), acc_call_name(k)) == 0) {
			acc_which_add(&c->mem, &same, x->rank);
		} else if (nown++ < 4) {
			own = acc_say(&c->mem, "%s%srank %lld at %s", own == NULL ? "" : own,
				own == NULL ? "" : ", ", (long long)x->rank, acc_call_name(x));
		}
		if (nown > 0 && own == NULL)
			return acc_nomem(e);
	}
	acc_which_end(&c->mem, &same);
	acc_which_end(&c->mem, &got);
	if (got.text == NULL || same.text == NULL)
		return acc_nomem(e);
	const char *text[3] = {same.n == 0 ? NULL
					   : acc_say(&c->mem,
						     "the same op call is the first that"
						     " %s on rank%s %s, too",
						     verb, same.n == 1 ? "" : "s", same.text),
		nown == 0 ? NULL
			  : acc_say(&c->mem,
				    "no communication is between that and"
				    " what %s first on %u more rank%s: %s",
				    verb, nown, nown == 1 ? "" : "s", own),
		got.n == 0
			? NULL
			: acc_say(&c->mem,
				  "rank%s %s receive%s it through"
				  " communication, first at %s",
				  got.n == 1 ? "" : "s", got.text, got.n == 1 ? "s" : "", through)};
	static const char *const rules[3] = {"same", "also", "received"};
	const uint32_t counts[3] = {same.n, nown, got.n};
	for (int i = 0; i < 3; i++) {
		if (counts[i] == 0)
			continue;
		struct acc_finding *f = text[i] == NULL ? NULL : acc_case_find(c, "ranks", e);
		if (f == NULL)
			return acc_nomem(e);
		f->rule = rules[i];
		f->value = counts[i];
		f->step = k->step;
		f->name = i == 2 ? through : NULL;
		f->text = text[i];
	}
	return 0;
}
