/* step.h - meshes, stages, and the calls of a step that stand for one of the reference */
#ifndef FOLD_STEP_H
#define FOLD_STEP_H

#include "fold/side.h"

/* Ranks one behind the other (stages), each a mesh of ranks side by side, which may take the batch in
 * parts, one after another: then these are the mesh's first axis. */
struct fold_mesh {
	uint32_t stages, ranks; /* ranks: of one stage */
	uint32_t micro, zip;    /* parts of the batch; all parts of a tensor, micro * ranks */
	uint32_t n, size[ACC_MESH_DIMS];
};

/* A pass forward or backward through a part of the network, see runs.c. */
struct fold_run {
	uint32_t first, n;      /* its calls */
	uint32_t plain, nplain; /* of these in fold_runs.plain those that do not talk */
	uint64_t ops;
	uint32_t group, nth, count; /* the first of its likes; which of them; there: how many */
	bool back, hands, learns;   /* learns: there are gradients of it */
};
/* Those of a segment. */
struct fold_runs {
	struct fold_run *run;
	uint32_t n;
	size_t cap;
	uint32_t segment, first, ncall;
	uint32_t *plain; /* calls that do not talk, in order */
	uint32_t nplain;
	uint32_t *at, *of; /* of each call of the segment: how many plain ones before it; its run */
};

/* An op call of the virtual rank. */
struct fold_virtual {
	uint32_t rank; /* where its calls on the ranks of the mesh stand in fold_step.call */
	uint32_t mate; /* the reference's call, or FOLD_NONE */
	uint32_t stage;
	int64_t number; /* that it gets; -1: as it has */
	uint32_t
		alone; /* this rank of the mesh, counted from 1, alone has it; 0: all have a part */
	uint32_t place; /* of stages: after which call of the reference it stands */
	bool members; /* its tensors are some of its mate's, which those of other stages are, too */
	bool further; /* and the first of these has said its arguments */
};

/* The ranks of a step that are one of the reference's. */
struct fold_step {
	int64_t step;
	uint32_t *segment; /* of the ranks, in order */
	uint32_t nrank, reference;
	struct fold_virtual *v;
	uint32_t nv;
	size_t vcap;
	uint32_t *call; /* FOLD_NONE: this rank has none */
	size_t ncall, callcap;
	struct fold_virtual *
		laid; /* v as it stands before any is matched, of so many stages and batches; or NULL */
	uint32_t stages, micro;
	double score;          /* what is like the reference */
	struct acc_ids takers; /* what communications take, to virtual calls */
};

/* Of an item of a reference that was several ranks: how its parts lie on them, and the virtual call. */
struct fold_laid {
	struct acc_fold_layout layout; /* n 0: unknown */
	uint32_t call;
	/* What all ranks have a summand of stands where a communication gives the sum: that item. */
	bool sum;
	uint32_t virtual, item;
};

#endif
