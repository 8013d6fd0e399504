/* Op calls with the same name pair, and in them what stands in the same place. */
#include "align/impl.h"

#include <stdlib.h>

static uint64_t
position(const struct acc_align_item *it)
{
	return it->position;
}

static uint64_t
name_of(const struct acc_align_call *op)
{
	const uint64_t id[2] = {op->base, (uint64_t)op->call};
	return acc_hash(id, sizeof id);
}

/* Of an operator whose calls are not numbered by the forward pass: how many there are on each
 * side, and whether some have paired by number. */
struct tally {
	uint32_t n[2];
	bool paired;
};

static int
count(struct acc_map *at, struct tally *t, const struct acc_index *ix, const uint32_t *op,
	uint32_t n, int side, struct acc_err *e)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		const struct acc_str key = {(const char *)&o->base, sizeof o->base};
		if (o->pass == ACC_PASS_OTHER)
			continue;
		uint64_t *tally_of = acc_map_put(at, key, at->n);
		if (tally_of == NULL)
			return acc_nomem(e);
		t[*tally_of].n[side]++;
		t[*tally_of].paired |= o->mate != ACC_NOMATE;
	}
	return 0;
}

/* Those whose operator has no number in common on the two sides, but as many calls. */
static uint32_t
select_calls(const struct acc_map *at, const struct tally *t, const struct acc_index *ix,
	const uint32_t *op, uint32_t n, uint32_t *out, uint64_t *id)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		const struct acc_str key = {(const char *)&o->base, sizeof o->base};
		const uint64_t *p = o->pass == ACC_PASS_OTHER ? NULL : acc_map_get(at, key);
		if (p == NULL || t[*p].paired || t[*p].n[0] != t[*p].n[1])
			continue;
		id[k] = o->base;
		out[k++] = op[i];
	}
	return k;
}

/* Gradients of parameters are not numbered in older dumps, and in newer ones by the step in
 * which they were made; recomputation renumbers backward calls. So where no number is the same
 * on both sides, order counts. */
static int
by_order(struct acc_joined *j, uint64_t *id, struct acc_err *e)
{
	struct acc_map at = {0};
	size_t n = (size_t)j->na + j->nb + 1;
	struct tally *t = calloc(n, sizeof *t);
	uint32_t *op = malloc(n * sizeof *op);
	int rc = t == NULL || op == NULL ? acc_nomem(e) : 0;
	if (rc == 0)
		rc = count(&at, t, j->a, j->aop, j->na, 0, e);
	if (rc == 0)
		rc = count(&at, t, j->b, j->bop, j->nb, 1, e);
	if (rc == 0) {
		struct acc_joined k = *j;
		k.aop = op;
		k.bop = op + j->na;
		k.na = select_calls(&at, t, j->a, j->aop, j->na, op, id);
		k.nb = select_calls(&at, t, j->b, j->bop, j->nb, op + j->na, id + j->na);
		rc = acc_mate_calls(&k, id, id + j->na, position, "order", 0.9, e);
	}
	acc_map_release(&at);
	free(t);
	free(op);
	return rc;
}

static int
pair(struct acc_joined *j, struct acc_err *e)
{
	uint64_t *id = malloc(((size_t)j->na + j->nb + 1) * sizeof *id);
	if (id == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < j->na; i++)
		id[i] = name_of(&j->a->op[j->aop[i]]);
	for (uint32_t i = 0; i < j->nb; i++)
		id[j->na + i] = name_of(&j->b->op[j->bop[i]]);
	int rc = acc_mate_calls(j, id, id + j->na, position, "name", 1, e);
	if (rc == 0)
		rc = by_order(j, id, e);
	free(id);
	return rc;
}

const struct acc_aligner acc_aligner_name = {
	.name = "name",
	.help = "the same operator, pass and call number; in it the same place",
	.pair = pair,
	.loose = true,
};
