#include "audit/spans.h"

#include <stdlib.h>
#include <string.h>

/* What is asked of each record. */
enum { SRC, OP, STEP, RANK, PROC, CALL, KEY, PASS, ASKED };
static const struct acc_str asked[ASKED] = {
	[SRC] = {"src", 3},
	[OP] = {"op", 2},
	[STEP] = {"step", 4},
	[RANK] = {"rank", 4},
	[PROC] = {"proc", 4},
	[CALL] = {"call", 4},
	[KEY] = {"key", 3},
	[PASS] = {"pass", 4},
};

static struct acc_str
text(const struct acc_val *v)
{
	struct acc_str s = {"", 0};
	acc_as_text(v, &s);
	return s;
}

static int64_t
number(const struct acc_val *v, int64_t dflt)
{
	acc_as_int(v, &dflt);
	return dflt;
}

/* What tells calls apart; *shared: how much of it a backward call shares with its forward call. */
static int
key_of(const struct acc_val *const v[ASKED], struct acc_buf *out, size_t *shared)
{
	const struct acc_str src = text(v[SRC]), op = text(v[OP]), key = text(v[KEY]);
	int64_t place[PROC - STEP + 2];
	for (int i = STEP; i <= CALL; i++)
		place[i - STEP] = number(v[i], INT64_MIN);
	*shared = (size_t)src.n + 1 + op.n + 1 + sizeof place;
	if (acc_buf_reserve(out, *shared + key.n) < 0)
		return ACC_ENOMEM;
	acc_buf_add(out, src.p, src.n);
	acc_buf_add(out, "", 1);
	acc_buf_add(out, op.p, op.n);
	acc_buf_add(out, "", 1);
	acc_buf_add(out, place, sizeof place);
	return acc_buf_add(out, key.p, key.n);
}

/* Which span is this forward call in the step before; it is the last one of its call from now on. */
static uint32_t
step_before(struct acc_spans *s, const struct acc_val *const v[ASKED], bool *lost)
{
	const struct acc_str key = text(v[KEY]);
	const int64_t step = number(v[STEP], -1);
	/* Each step of a dump is a source of its own. */
	uint64_t h[3] = {acc_hash(key.p, key.n), (uint64_t)number(v[RANK], -1), (uint64_t)step - 1};
	const uint32_t before = step < 0 ? ACC_NOID : acc_ids_get(&s->sites, acc_hash(h, sizeof h));
	h[2] = (uint64_t)step;
	*lost = acc_ids_put(&s->sites, acc_hash(h, sizeof h), (uint32_t)s->n, true, NULL) < 0;
	return before;
}

static int
start(struct acc_spans *s, uint64_t id, const struct acc_val *const v[ASKED], size_t line,
	bool backward)
{
	bool lost = false;
	struct acc_span *all = acc_grow(s->v, &s->cap, s->n + 1, sizeof *all, NULL);
	if (all == NULL || s->n == ACC_NOID - 1)
		return ACC_ENOMEM;
	s->v = all;
	all[s->n] = (struct acc_span){.first = line,
		.id = id,
		.before = backward ? ACC_NOID : step_before(s, v, &lost),
		.backward = backward,
		.again = backward && acc_ids_get(&s->graphs, id) != ACC_NOID};
	if (lost)
		return ACC_ENOMEM;
	return backward ? (s->n++, 0) : acc_ids_put(&s->forward, id, (uint32_t)s->n++, true, NULL);
}

/* A gradient that has a graph: what is made of it has a gradient in this op call's operands, too. */
static int
note_graph(struct acc_spans *s, uint64_t id, const struct acc_rec *r)
{
	bool wants = false;
	if (!acc_as_bool(acc_get(r, "", "requires_grad"), &wants) || !wants ||
		!acc_str_is(acc_get_text(r, "", "io"), "out"))
		return 0;
	return acc_ids_put(&s->graphs, id, 1, false, NULL);
}

/* MatMul.Gradients_Default_...-op0: a kernel of MindSpore's backward pass is called by what it computes of its own
 * inputs, and is nobody's gradient. */
static bool
is_plain(const struct acc_val *const v[ASKED])
{
	static const char pass[] = ".Gradients";
	const struct acc_str key = text(v[KEY]), op = text(v[OP]);
	return op.n > 0 && key.n > op.n && memcmp(key.p, op.p, op.n) == 0 &&
	       acc_str_starts((struct acc_str){key.p + op.n, key.n - op.n}, pass);
}

int
acc_spans_add(struct acc_spans *s, const struct acc_rec *r, size_t line)
{
	const struct acc_val *v[ASKED];
	if (!acc_rec_is(r, "tensor") && !acc_rec_is(r, "arg"))
		return 0;
	s->pick.key = asked;
	s->pick.n = ASKED;
	if (acc_pick_get(&s->pick, r, v) < 0)
		return ACC_ENOMEM;
	const struct acc_str pass = text(v[PASS]);
	const bool behind = acc_str_is(pass, "backward"), plain = behind && is_plain(v),
		   backward = behind && !plain;
	struct acc_buf key = s->last_key;
	size_t shared = 0;
	if (!behind && !acc_str_is(pass, "forward"))
		return 0;
	key.n = 0;
	int rc = key_of(v, &key, &shared);
	const struct acc_span *last = s->n > 0 ? &s->v[s->n - 1] : NULL;
	const bool same = rc == 0 && last != NULL && key.n == s->key.n &&
			  memcmp(key.p, s->key.p, key.n) == 0 && last->first + last->n == line;
	const uint64_t id = rc == 0 ? acc_hash(key.p, plain ? key.n : shared) : 0;
	s->last_key = s->key;
	s->key = key;
	if (rc == 0 && !same)
		rc = start(s, id, v, line, backward);
	if (rc < 0)
		return ACC_ENOMEM;
	s->v[s->n - 1].n++;
	return backward ? note_graph(s, id, r) : 0;
}

const struct acc_span *
acc_spans_forward(const struct acc_spans *s, const struct acc_span *backward)
{
	const uint32_t i = acc_ids_get(&s->forward, backward->id);
	return i == ACC_NOID ? NULL : &s->v[i];
}

void
acc_spans_release(struct acc_spans *s)
{
	free(s->v);
	acc_ids_release(&s->forward);
	acc_ids_release(&s->sites);
	acc_ids_release(&s->graphs);
	acc_buf_release(&s->key);
	acc_buf_release(&s->last_key);
	acc_pick_release(&s->pick);
}
