#include "align/impl.h"
#include "align/sample.h"

#include <stdlib.h>

#define ROW(name) extern const struct acc_aligner acc_aligner_##name;
#include "align/table.h"
#undef ROW

const struct acc_aligner *const acc_aligners[] = {
#define ROW(name) &acc_aligner_##name,
#include "align/table.h"
#undef ROW
};
const size_t acc_naligners = sizeof acc_aligners / sizeof *acc_aligners;

const struct acc_aligner *
acc_aligner_find(const char *name)
{
	for (size_t i = 0; i < acc_naligners; i++)
		if (strcmp(acc_aligners[i]->name, name) == 0)
			return acc_aligners[i];
	return NULL;
}

struct acc_align *
acc_align_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_align *al = calloc(1, sizeof *al);
	if (al == NULL || (al->scratch = calloc(1, sizeof *al->scratch)) == NULL) {
		free(al);
		acc_nomem(e);
		return NULL;
	}
	al->samples = acc_samples_open(tmpdir, e);
	if (al->samples == NULL) {
		acc_align_close(al);
		return NULL;
	}
	for (int s = 0; s < 2; s++) {
		struct acc_half *h = &al->h[s];
		/* Of one rank and step so much stays in memory: of 50,000 op calls and more. */
		h->op = (struct acc_spill){.dir = tmpdir, .keep = 8 << 20};
		h->item = (struct acc_spill){.dir = tmpdir, .keep = 28 << 20};
		h->store = acc_store_open(tmpdir, s == ACC_A ? "a." : "b.", e);
		h->ix.sites = h->sites = h->store == NULL ? NULL : acc_sites_new(e);
		if (h->sites == NULL) {
			acc_align_close(al);
			return NULL;
		}
	}
	return al;
}

void
acc_align_close(struct acc_align *al)
{
	if (al == NULL)
		return;
	for (int s = 0; s < 2; s++) {
		struct acc_half *h = &al->h[s];
		acc_store_close(h->store);
		acc_buf_release(&h->key);
		acc_map_release(&h->groups);
		acc_names_release(&h->names);
		acc_sites_free(h->sites);
		free(h->fields);
		acc_spill_release(&h->op);
		acc_spill_release(&h->item);
		free(h->group);
		free(h->byop);
	}
	acc_scratch_free(al->scratch);
	acc_samples_close(al->samples);
	free(al);
}

void
acc_align_known(struct acc_align *al, struct acc_maps *const *table, size_t n,
	struct acc_maps *const *packed, size_t npacked)
{
	al->known = (struct acc_known_names){table, packed, n, npacked};
}

void
acc_align_raw(struct acc_align *al, acc_align_fn *fn)
{
	al->raw = fn;
}

/* List the op calls of each group, in order. */
static int
list_ops(struct acc_half *h, struct acc_err *e)
{
	enum { REST = 1 << 14 };
	h->byop = malloc(((size_t)h->ix.nop + 1) * sizeof *h->byop);
	if (h->byop == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < h->ix.nop; i++) {
		if (i % REST == 0)
			acc_spill_rest(&h->op);
		h->group[h->ix.op[i].group].nop++;
	}
	uint32_t at = 0;
	for (uint32_t g = 0; g < h->ngroup; g++) {
		h->group[g].first = at;
		at += h->group[g].nop;
		h->group[g].nop = 0;
	}
	for (uint32_t i = 0; i < h->ix.nop; i++) {
		if (i % REST == 0)
			acc_spill_rest(&h->op);
		struct acc_group *g = &h->group[h->ix.op[i].group];
		h->byop[g->first + g->nop++] = i;
	}
	return 0;
}

/* Do these points come from several ranks? */
static bool
several_ranks(const struct acc_index *ix, const uint32_t *op, uint32_t n)
{
	uint64_t first = 0;
	bool several = false;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t rank = ix->op[op[i]].scope;
		first = first == 0 ? rank : first;
		several = several || (rank != 0 && rank != first);
	}
	return several;
}

static void
tell_ranks(struct acc_index *ix, const uint32_t *op, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct acc_align_call *o = &ix->op[op[i]];
		const uint64_t id[2] = {o->base, o->scope};
		o->base = o->scope == 0 ? o->base : acc_hash(id, sizeof id);
	}
}

/* Curves and parameters have no op calls to reason about. Where both sides have several ranks,
 * each pairs with its own: their lines come in any order. Of several points of a step, as a
 * restarted run writes them, the last counts: so the lists are gone through from their ends. */
static int
pair_points(const struct acc_joined *forward, struct acc_err *e)
{
	struct acc_joined j = *forward;
	uint32_t *op = malloc(((size_t)j.na + j.nb + 1) * sizeof *op);
	if (op == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < j.na; i++)
		op[i] = forward->aop[j.na - 1 - i];
	for (uint32_t i = 0; i < j.nb; i++)
		op[j.na + i] = forward->bop[j.nb - 1 - i];
	j.aop = op;
	j.bop = op + j.na;
	if (several_ranks(j.a, j.aop, j.na) && several_ranks(j.b, j.bop, j.nb)) {
		tell_ranks(j.a, j.aop, j.na);
		tell_ranks(j.b, j.bop, j.nb);
	}
	int rc = acc_aligner_name.pair(&j, e);
	free(op);
	return rc;
}

static int
pair_group(struct acc_align *al, struct acc_joined *j, const struct acc_aligner *way,
	const struct acc_group *g, struct acc_err *e)
{
	if (g->id.kind == WHO_GLOBAL)
		return pair_points(j, e);
	int rc = way == acc_aligners[0] ? acc_arrays_pair(j, &al->h[ACC_A], &al->h[ACC_B],
						  al->h[ACC_A].byop + g->first, e)
					: 0;
	return rc == 0 ? way->pair(j, e) : rc < 0 ? rc : 0;
}

int
acc_align_run(struct acc_align *al, const struct acc_aligner *way, const struct acc_join *join,
	struct acc_maps *rules, acc_align_fn *fn, void *arg, struct acc_err *e)
{
	struct acc_half *a = &al->h[ACC_A], *b = &al->h[ACC_B];
	if (list_ops(a, e) < 0 || list_ops(b, e) < 0)
		return ACC_ENOMEM;
	int rc = acc_join_groups(al, join, e);
	if (rc >= 0 && rules != NULL)
		rc = acc_maps_names(rules, a, e);
	for (uint32_t i = 0; i < a->ngroup && rc >= 0; i++) {
		const struct acc_group *ga = &a->group[i];
		if (ga->mate == ACC_NOMATE)
			continue;
		const struct acc_group *gb = &b->group[ga->mate];
		struct acc_joined j = {.al = al,
			.a = &a->ix,
			.b = &b->ix,
			.scratch = al->scratch,
			.aop = a->byop + ga->first,
			.na = ga->nop,
			.bop = b->byop + gb->first,
			.nb = gb->nop,
			.cross = a->framework != 0 && b->framework != 0 &&
				 a->framework != b->framework};
		if (rules != NULL)
			rc = acc_maps_rows(rules, &j, false, e);
		if (rc >= 0)
			rc = pair_group(al, &j, way, ga, e);
		if (rc >= 0 && way->loose && ga->id.kind != WHO_GLOBAL)
			rc = acc_align_lists(al, &j, e);
		if (rc >= 0 && rules != NULL)
			rc = acc_maps_rows(rules, &j, true, e);
		if (rc >= 0 && way->loose && ga->id.kind != WHO_GLOBAL)
			rc = acc_align_loose(al, &j, rules, e);
		acc_align_rest(al);
	}
	if (rc >= 0)
		rc = acc_align_emit(al, fn, arg, e);
	return rc < 0 ? rc : acc_samples_run(al->samples, fn, arg, e);
}
