/* Where a tensor comes from, by the identity of its values: the latest earlier output, of the
 * same pass, that has them. The bench's side tells, since the device's may be wrong. */
#include "first_bad.h"

#include <math.h>

/* Values in a pass of a step and rank. */
static uint64_t
made_key(const struct acc_call *k, uint64_t id)
{
	return acc_id_with(id, (uint64_t)k->segment << 1 | (k->backward || k->grad));
}

uint32_t
acc_maker(const struct scan *s, int side, const struct acc_call *k, uint64_t id)
{
	return id == 0 ? ACC_NOCALL : acc_ids_get(&s->made[side], made_key(k, id));
}

int
acc_remember(struct scan *s, const struct acc_call *k, uint32_t item, bool replace)
{
	int rc = 0;
	for (int side = s->learning ? ACC_B : ACC_A; side < 2 && rc == 0; side++) {
		uint64_t id = s->c->item[item].id[side];
		if (id != 0)
			rc = acc_ids_put(&s->made[side], made_key(k, id), item, replace, NULL);
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

bool
acc_is_input(const struct acc_item *it)
{
	return it->io == ACC_IO_IN || it->io == ACC_IO_KW || it->io == ACC_IO_PARAM;
}

bool
acc_is_measured(const struct acc_item *it)
{
	return it->sides == 3 && it->measure != ACC_UNMEASURED;
}

/* The first call of a device-only stretch whose last call is this one: one of them replaced
 * what the bench does otherwise. */
static uint32_t
stretch(const struct acc_case *c, uint32_t call)
{
	while (call > 0 && c->call[call - 1].key[ACC_B] == NULL &&
		c->call[call - 1].segment == c->call[call].segment &&
		c->call[call - 1].backward == c->call[call].backward)
		call--;
	return call;
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
	if (k->key[ACC_B] == NULL)
		return stretch(c, other);
	for (uint32_t i = k->first; i <= k->last; i++)
		if (c->item[i].call == other && acc_is_input(&c->item[i]) && other != call &&
			c->item[i].id[ACC_B] == it->id[ACC_B])
			return other;
	return call;
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
	if (k->items > 512)
		return NULL;
	for (uint32_t i = k->first; i <= k->last && out->id[ACC_B] != 0; i++)
		if (c->item[i].call == call && acc_is_input(&c->item[i]) && acc_is_measured(&c->item[i]) &&
			c->item[i].id[ACC_B] == out->id[ACC_B])
			return &c->item[i];
	return NULL;
}

/* A module hands on what an op in it made, and so do the gradients of parameters. A small gradient
 * whose maker is not recorded may be zero in exact arithmetic: it tells nothing. */
bool
acc_handed_on(const struct scan *s, uint32_t call, const struct acc_item *it)
{
	const struct acc_call *k = &s->c->call[call];
	if (!k->module && !k->grad)
		return false;
	uint32_t p = acc_maker(s, ACC_B, k, it->id[ACC_B]);
	return p != ACC_NOCALL ? acc_same_pair(it, &s->c->item[p])
			       : k->grad && it->ndim <= 1 && !isinf(it->rms);
}
