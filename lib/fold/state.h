/* state.h - a fold, and what becomes of the parts of a tensor */
#ifndef FOLD_STATE_H
#define FOLD_STATE_H

#include "fold/plan.h"

struct acc_fold {
	struct acc_spool *spool;
	struct fold_side device, reference;
	uint64_t *all; /* the device's records, in order */
	size_t nall, all_cap;
	struct acc_map stacks; /* of the device: id to where the record is kept */
	struct acc_ids
		spots; /* of lines of code: where the call itself stands, without its callers */
	struct fold_step *step;
	uint32_t nstep;
	size_t step_cap;
	struct fold_runs *runs; /* of each segment of the device */
	struct acc_ids alone;   /* operators and lines of code that each rank calls for itself */
	struct acc_ids
		turned; /* what parts are taken of in another order, to the calls that cut it */
	/* Each of so many groups of the device's ranks is a rank of the reference, in order; those of a
	 * group are `apart` ranks apart, such as 0 and 2, 1 and 3. */
	uint32_t groups, apart;
	/* So many stages are neighbours, such as ranks 0 and 1, and each rank of a stage comes that many ranks after
	 * the one before it; 1: the ranks of a stage stand together. */
	uint32_t turns;
	struct fold_mesh mesh; /* of a group */
	bool whole;            /* the reference, too, becomes one rank */
	bool lone; /* it is one rank, and reduces over a group that is itself alone: the ranks' sums are of more */
	uint32_t brief; /* so many first op calls alone are matched: a mesh is chosen; 0: all */
	/* Of the mesh that is tried: an end to it is no loss where it can explain less than `enough`; `most`: what any mesh of as
	 * many stages and micro-batches may explain at most, as far as it was looked at. */
	double enough, most;
	uint32_t nstages;       /* of that, the device's; by what its ranks do */
	struct acc_fold *both;  /* as which its ranks are the device; NULL: it has one */
	struct fold_laid *laid; /* of that, of each item */
	bool mesh_given;
	struct fold_class *cls;
	uint32_t ncls;
	size_t cls_cap;
	struct acc_ids by_class;
	struct fold_order *order;
	uint32_t norder;
	size_t order_cap;
	struct acc_ids by_order;
	struct acc_fold_stat *part; /* room for the parts of a tensor, see find.c */
	struct acc_roots *roots;    /* of both sides' files; NULL: statistics alone */
	struct fold_sight
		*sight; /* of each tensor of a virtual call, in order; NULL: statistics alone */
	bool elements;  /* some are seen */
	struct fold_piece *fitted; /* room for those of one tensor */
	size_t fitted_cap;
	struct acc_err
		trouble; /* the first tensor that could not be read, and how many could not */
	uint64_t ntrouble;
	struct fold_plan *plan;
	size_t nplan, plan_cap;
	struct fold_weights *weights; /* of a checkpoint; else NULL */
	double back; /* what most gradients that are split are multiplied by; 0: unknown */
	bool found;
	char why[256];
};

/* Has the reference several ranks, too? */
static inline bool
acc_fold_many(const struct acc_fold *f)
{
	return f->groups > 1 || f->both != NULL || f->whole;
}

/* Is it one rank, which takes the batch in parts, one after another? */
static inline bool
acc_fold_in_time(const struct fold_mesh *m)
{
	return m->micro > 1 && m->zip == m->micro && m->stages == 1;
}

/* So many neighbours have calls of their own, where any have: all, or those along the last of two axes, if the
 * same experts stand on several ranks. */
static inline uint32_t
acc_fold_span(const struct fold_mesh *m)
{
	return m->n == 1 ? m->zip : m->size[m->n - 1];
}

/* Has one rank alone what this call takes and gives? */
static inline bool
acc_fold_lone(const struct acc_fold *f, const struct fold_virtual *v)
{
	return v->alone > 0 && f->mesh.n == 1;
}

/* What becomes of the parts of a tensor. */
struct folded {
	const struct fold_item *own, *it; /* it: the reference's, or NULL */
	const struct acc_fold_stat *want; /* NULL, or its_stat */
	struct acc_fold_stat its_stat;
	double tol;
	struct acc_fold_layout layout, made; /* made: of what communication gave */
	struct acc_fold_stat whole;
	/* What makes that of them, such as a division behind the communication, by its item; the communication. */
	const struct fold_virtual *by, *talk;
	uint32_t out, rank;
	bool alone; /* this rank alone is off */
	/* Calls of the first rank: that sums up what another call of this line gives; that gives
	 * something else than the sum, undivided: only in that it is no mean; that divides what nothing
	 * sums. FOLD_NONE. */
	uint32_t lost, not_sum, apart;
	bool undivided;
};

#endif
