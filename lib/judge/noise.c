/* What differs between two runs of the bench itself: known noise, tensor by tensor. */
#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/limits.h"
#include "judge/picked.h"

struct acc_noise {
	struct acc_picked picked;
	struct acc_map of; /* (step, rank, bench's name) -> e as two floats */
	uint64_t n;
	struct acc_buf key;
};

struct acc_noise *
acc_noise_new(struct acc_err *e)
{
	struct acc_noise *n = calloc(1, sizeof *n);
	if (n == NULL)
		acc_nomem(e);
	return n;
}

void
acc_noise_free(struct acc_noise *n)
{
	if (n == NULL)
		return;
	acc_map_release(&n->of);
	acc_picked_release(&n->picked);
	acc_buf_release(&n->key);
	free(n);
}

/* The bench's tensor of a pair: which run of an op call, which place in it. */
static bool
key_of(struct acc_noise *n, const struct acc_rec *r, struct acc_str *key)
{
	int64_t where[2] = {acc_get_int(r, "b.", "step", -1), acc_get_int(r, "b.", "rank", -1)};
	struct acc_str name = acc_get_text(r, "b.", "name");
	n->key.n = 0;
	if (name.n == 0 || acc_buf_add(&n->key, where, sizeof where) < 0 ||
		acc_buf_add(&n->key, name.p, name.n) < 0)
		return false;
	*key = (struct acc_str){(const char *)n->key.p, (uint32_t)n->key.n};
	return true;
}

int
acc_noise_add(struct acc_noise *n, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_item it = {0};
	struct acc_str key;
	if (!acc_rec_is(r, "pair"))
		return 0;
	if (acc_picked_get(&n->picked, r) < 0)
		return acc_nomem(e);
	acc_item_measure(&it, &n->picked);
	if (it.sides != 3 || it.measure == ACC_UNMEASURED || it.kind != ACC_ITEM_TENSOR ||
		!key_of(n, r, &key))
		return 0;
	float both[2] = {it.rms, it.max};
	uint64_t bits;
	memcpy(&bits, both, sizeof bits);
	n->n++;
	return acc_map_put(&n->of, key, bits) != NULL ? 0 : acc_nomem(e);
}

uint64_t
acc_noise_count(const struct acc_noise *n)
{
	return n->n;
}

void
acc_noise_get(struct acc_noise *n, const struct acc_rec *r, struct acc_item *it)
{
	struct acc_str key;
	it->noise_rms = it->noise_max = NAN;
	uint64_t *bits = n != NULL && key_of(n, r, &key) ? acc_map_get(&n->of, key) : NULL;
	if (bits == NULL)
		return;
	float both[2];
	memcpy(both, bits, sizeof both);
	it->noise_rms = both[0];
	it->noise_max = both[1];
}

/* Another device has more noise than a second run of one: how much more, by those of the
 * tensors where it is least, so that a fault does not count. */
double
acc_noise_ratio(const struct acc_case *c)
{
	float *r = c->opt.noise == NULL ? NULL : malloc((c->nitem + 1) * sizeof *r);
	uint32_t n = 0;
	for (uint32_t i = 0; r != NULL && i < c->nitem; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (it->kind == ACC_ITEM_TENSOR && it->noise_rms > 0 && it->rms > 0 &&
			isfinite(it->noise_rms) && isfinite(it->rms) && !it->exact)
			r[n++] = it->rms / it->noise_rms;
	}
	if (n > 1)
		qsort(r, n, sizeof *r, acc_by_float);
	double quarter = n == 0 ? 1 : r[n / LIMIT_NOISE_TAIL];
	free(r);
	return fmin(LIMIT_NOISE_MOST, fmax(1, quarter));
}
