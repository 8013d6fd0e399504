/* One stage of a pipeline against the whole network: what the other stages have was not compared, and that
 * is no clean run. It shows in tensors that one side alone hands to other ranks, or gets from them, of which
 * there are no records, where the other side has op calls that nothing of it was compared with. */
#include "acc/judge.h"
#include "acc/op.h"
#include "acc/say.h"

#include <stdlib.h>

#include "judge/case.h"

struct stage {
	int64_t *peer; /* the ranks that calls of this side name, in order */
	uint32_t n;
	size_t cap;
	const struct acc_call *first; /* of the calls that hand on */
	bool both;                    /* the other side has such calls, too */
	uint32_t lacks;               /* forward op calls that the other side alone has */
};

/* Does a side hand something on in this call? What arrives may be paired with what the other computes. */
static bool
hands(const struct acc_call *k, int side)
{
	return k->hands && k->key[side] != NULL &&
	       (k->key[!side] == NULL || side == ACC_A ||
		       acc_str_starts(acc_str(k->key[side]), "Distributed."));
}

static int
add_peer(struct stage *s, int64_t rank, struct acc_err *e)
{
	uint32_t at = 0;
	while (at < s->n && s->peer[at] < rank)
		at++;
	if (at < s->n && s->peer[at] == rank)
		return 0;
	if (!ACC_ROOM(s->peer, s->cap, (size_t)s->n + 1, e))
		return ACC_ENOMEM;
	int64_t *p = s->peer;
	memmove(p + at + 1, p + at, (s->n - at) * sizeof *p);
	p[at] = rank;
	s->n++;
	return 0;
}

/* The ranks that a call's arguments name. */
static int
add_peers(struct acc_case *c, struct stage *s, uint32_t call, int side, struct acc_err *e)
{
	const char *prefix = side == ACC_A ? "a." : "b.";
	const struct acc_call *k = &c->call[call];
	int rc = 0;
	for (uint32_t i = k->first; i <= k->last && rc == 0; i++) {
		struct acc_rec *r;
		int64_t rank = -1;
		if (c->item[i].call != call || c->item[i].kind != ACC_ITEM_ARG)
			continue;
		rc = acc_case_record(c, &c->item[i], &r, e);
		if (rc == 0 && acc_word_in("1 dst src", acc_get_text(r, prefix, "pos")) &&
			acc_as_int(acc_get(r, prefix, "value"), &rank) && rank >= 0)
			rc = add_peer(s, rank, e);
	}
	return rc;
}

/* What this side hands on, and what the other has besides. */
static int
look(struct acc_case *c, int side, struct stage *s, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i)) {
		const struct acc_call *k = &c->call[i];
		s->both |= hands(k, !side);
		if (k->key[side] == NULL)
			s->lacks += !k->talks && !k->backward && !k->grad && !k->module &&
				    !acc_may_lack(c, k->key[!side]);
		if (!hands(k, side) || acc_may_lack(c, k->key[side]))
			continue;
		s->first = s->first == NULL ? k : s->first;
		rc = add_peers(c, s, i, side, e);
	}
	return rc;
}

/* Leave those of which this side has records. */
static void
leave_absent(const struct acc_case *c, int side, struct stage *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n; i++)
		if (acc_ids_get(&c->ranks[side], acc_hash(&s->peer[i], sizeof s->peer[i])) ==
			ACC_NOID)
			s->peer[n++] = s->peer[i];
	s->n = n;
}

static int
say(struct acc_case *c, int side, const struct stage *s, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	struct acc_which w = {.text = ""};
	struct acc_finding *f = acc_case_find(c, "missing", e);
	const char **list = f == NULL ? NULL : acc_alloc(&c->mem, (s->n + 1) * sizeof *list);
	if (list == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < s->n; i++) {
		list[i] = acc_arena_printf(&c->mem, "%lld", (long long)s->peer[i]);
		if (list[i] == NULL)
			return acc_nomem(e);
		acc_which_add(&c->mem, &w, s->peer[i]);
	}
	acc_which_end(&c->mem, &w);
	f->name = s->first->key[side];
	f->step = s->first->step;
	f->rank = s->first->rank;
	f->rule = "stage";
	f->value = s->lacks;
	f->ranked = list;
	f->nranked = s->n;
	f->bad = true;
	c->stage = true;
	f->text =
		w.text == NULL
			? NULL
			: acc_say(&c->mem,
				  "the %s is one stage of several: %s exchanges tensors with %s%s,"
				  " of which it has no records; %u forward op call%s of the %s had nothing"
				  " to be compared with",
				  whose[side], f->name,
				  s->n == 0   ? "other ranks"
				  : s->n == 1 ? "rank "
					      : "ranks ",
				  w.text, s->lacks, s->lacks == 1 ? "" : "s", whose[!side]);
	return f->text == NULL ? acc_nomem(e) : 0;
}

int
acc_say_stage(struct acc_case *c, struct acc_err *e)
{
	int rc = 0;
	/* Of ranks that accfold made one, see say_absent of folded.c. */
	for (int side = ACC_A; side <= ACC_B && rc == 0 && !acc_is_folded(c); side++) {
		struct stage s = {0};
		rc = look(c, side, &s, e);
		const bool named = s.n > 0;
		leave_absent(c, side, &s);
		if (rc == 0 && s.first != NULL && !s.both && s.lacks > 0 && (s.n > 0 || !named))
			rc = say(c, side, &s, e);
		free(s.peer);
	}
	return rc;
}
