/* Where a tensor comes from, by the identity of its values: the latest earlier output, of the
 * same pass, that has them. The bench's side tells, since the device's may be wrong. */
#include "judge/first_bad.h"

#include <math.h>

/* Values in a pass of a step and rank. */
static uint64_t
pass_key(uint32_t segment, bool backward, uint64_t id)
{
	return acc_id_with(id, (uint64_t)segment << 1 | backward);
}

static uint64_t
made_key(const struct acc_call *k, uint64_t id)
{
	return pass_key(k->segment, k->backward || k->grad, id);
}

/* Steps are connected by what one writes: weights, and what their optimizer keeps. */
static uint64_t
kept_key(const struct acc_call *k, uint64_t id)
{
	return acc_id_with(id, (uint64_t)k->rank);
}

/* Does what this call makes outlive its step, as far as is seen? What is written in place may, and what is made behind
 * the gradients. */
static bool
outlives(const struct scan *s, const struct acc_call *k)
{
	return !k->backward && !k->grad && !k->module && (k->writes || s->nrecent[true] > 0);
}

/* What clips gradients, and optimizers, are recorded as forward calls, and take what the backward
 * calls of their step have made: a gradient may have the values of a weight. */
uint32_t
acc_maker(const struct scan *s, int side, const struct acc_call *k, uint64_t id)
{
	if (id == 0)
		return ACC_NOCALL;
	const uint32_t at = acc_ids_get(&s->made[side], made_key(k, id));
	if (k->backward || k->grad)
		return at;
	const uint32_t back = acc_ids_get(&s->made[side], pass_key(k->segment, true, id));
	if (at != ACC_NOCALL || back != ACC_NOCALL)
		return at == ACC_NOCALL || (back != ACC_NOCALL && back > at) ? back : at;
	const uint32_t kept = acc_ids_get(&s->kept[side], kept_key(k, id));
	return kept == ACC_NOCALL || s->c->call[s->c->item[kept].call].segment == k->segment
		       ? ACC_NOCALL
		       : kept;
}

int
acc_remember(struct scan *s, const struct acc_call *k, uint32_t item, bool replace)
{
	int rc = 0;
	for (int side = s->learning ? ACC_B : ACC_A; side < 2 && rc == 0; side++) {
		uint64_t id = s->c->item[item].id[side];
		if (id == 0)
			continue;
		rc = acc_ids_put(&s->made[side], made_key(k, id), item, replace, NULL);
		if (rc == 0 && !acc_is_input(&s->c->item[item]) && outlives(s, k))
			rc = acc_ids_put(&s->kept[side], kept_key(k, id), item, true, NULL);
	}
	return rc;
}

void
acc_remember_soon(const struct scan *s, const struct acc_call *k)
{
	for (uint32_t i = k->first; i <= k->last && i < k->first + 16; i++)
		for (int side = s->learning ? ACC_B : ACC_A; side < 2; side++)
			acc_ids_fetch(&s->made[side], made_key(k, s->c->item[i].id[side]));
}

/* Who asks for a shape gives none. */
static bool
gives_tensor(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
			acc_is_output(&c->item[i]))
			return true;
	return false;
}

/* The first call of a device-only stretch whose last call is this one: one of them replaced
 * what the bench does otherwise. Not one that only moves elements, where another computes. */
static uint32_t
stretch(const struct acc_case *c, uint32_t call)
{
	const uint32_t last = call;
	while (call > 0 && c->call[call - 1].key[ACC_B] == NULL &&
		c->call[call - 1].segment == c->call[call].segment &&
		c->call[call - 1].backward == c->call[call].backward)
		call--;
	for (uint32_t i = call; i <= last; i++)
		if (c->call[i].cls != ACC_OP_MOVE && c->call[i].cls != ACC_OP_ALLOC &&
			gives_tensor(c, i))
			return i;
	return last;
}

static bool
takes(const struct acc_case *c, uint32_t call, uint64_t id)
{
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == call && c->item[i].kind == ACC_ITEM_TENSOR &&
			acc_is_input(&c->item[i]) && c->item[i].id[ACC_A] == id)
			return true;
	return false;
}

/* Who is to blame for a bad input whose maker is fine: an op that overwrote it in place has
 * put its own output there. */
uint32_t
acc_overwriter(const struct scan *s, uint32_t call, const struct acc_item *it)
{
	const struct acc_case *c = s->c;
	/* Zeros are made in many places. */
	uint32_t q = it->a_flat ? ACC_NOCALL : acc_maker(s, ACC_A, &c->call[call], it->id[ACC_A]);
	if (q == ACC_NOCALL)
		return call;
	uint32_t other = c->item[q].call;
	const struct acc_call *k = &c->call[other];
	if (k->key[ACC_B] == NULL) {
		/* Who only hands on what nobody made, as what the recorder does not know did, is not to blame. */
		const uint32_t first = stretch(c, other);
		return c->call[first].cls == ACC_OP_MOVE && takes(c, first, it->id[ACC_A]) ? call
											   : first;
	}
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == other && acc_is_input(&c->item[i]) && other != call &&
			c->item[i].id[ACC_B] == it->id[ACC_B])
			return other;
	return call;
}

/* A chain of such calls is not followed further than this. */
enum { MAX_DEPTH = 12 };

static void
hide(const struct scan *s, uint32_t call, unsigned depth, struct hidden *out)
{
	const struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	for (uint32_t i = k->first; i <= k->last && depth < MAX_DEPTH; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call != call || it->kind != ACC_ITEM_TENSOR || !acc_is_input(it))
			continue;
		uint32_t p = acc_maker(s, ACC_A, k, it->id[ACC_A]);
		out->unmade |= p == ACC_NOCALL && depth == 0 && !acc_is_measured(it);
		if (p == ACC_NOCALL || c->item[p].call >= call || acc_is_input(&c->item[p]) ||
			(acc_is_measured(&c->item[p]) && !c->item[p].loose))
			continue;
		bool known = c->item[p].audit[ACC_A] <= 1 || out->n == MAX_HIDDEN;
		for (unsigned h = 0; h < out->n; h++)
			known |= out->call[h] == c->item[p].call;
		out->accused |= acc_accused(&c->item[p]);
		if (!known)
			out->call[out->n++] = c->item[p].call;
		hide(s, c->item[p].call, depth + 1, out);
	}
}

void
acc_hidden(const struct scan *s, uint32_t call, struct hidden *out)
{
	*out = (struct hidden){.n = 0};
	hide(s, call, 0, out);
}

/* The same values on the device, and on the bench, in both records? */
bool
acc_same_pair(const struct acc_item *x, const struct acc_item *y)
{
	return x->id[ACC_A] == y->id[ACC_A] && x->id[ACC_B] == y->id[ACC_B];
}

/* The input of this call that the bench hands on unchanged as this output, or NULL. */
const struct acc_item *
acc_passed_through(const struct acc_case *c, uint32_t call, const struct acc_item *out)
{
	const struct acc_call *k = &c->call[call];
	/* Calls with thousands of tensors are optimizers, which hand nothing on. */
	if (k->items > LIMIT_PASSED_TENSORS)
		return NULL;
	for (uint32_t i = k->first; i <= k->last && out->id[ACC_B] != 0; i++)
		if (c->item[i].call == call && acc_is_input(&c->item[i]) &&
			c->item[i].kind != ACC_ITEM_BUFFER && acc_is_measured(&c->item[i]) &&
			c->item[i].id[ACC_B] == out->id[ACC_B])
			return &c->item[i];
	return NULL;
}

/* A module hands on what an op in it made, and so do the gradients of parameters. A small gradient whose maker is not
 * recorded, or is no pair, may be zero in exact arithmetic, as of a bias before a norm: it tells nothing. */
bool
acc_handed_on(const struct scan *s, uint32_t call, const struct acc_item *it)
{
	const struct acc_call *k = &s->c->call[call];
	if (!k->module && !k->grad)
		return false;
	uint32_t p = acc_maker(s, ACC_B, k, it->id[ACC_B]);
	if (p != ACC_NOCALL && (s->c->item[p].sides == 3 || !s->two))
		return acc_same_pair(it, &s->c->item[p]);
	return k->grad && it->ndim <= 1 && !isinf(it->rms);
}
