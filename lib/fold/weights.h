/* weights.h - the ranks' parts of checkpoints (inside lib/fold)
 *
 * Weights belong to no op call, and no reference is needed: what a part is follows from its name, as
 * Megatron gives them, from its rank's place, or from where torch.distributed.checkpoint says that it
 * begins. Each weight becomes a whole under the name that it has where one rank has all. */
#ifndef FOLD_WEIGHTS_H
#define FOLD_WEIGHTS_H

#include "fold/impl.h"

/* Elements of a flat tensor. */
struct fold_stretch {
	uint64_t at; /* its record */
	uint64_t from, n;
	int64_t rank;
};

/* One tensor of one rank. */
struct fold_part {
	uint64_t at;         /* its record */
	uint32_t n, item;    /* which it is, in the order of records */
	int64_t rank;        /* of the stream; -1: it has none */
	int64_t t, p, x;     /* tensor, pipeline, expert parallel rank */
	struct acc_str name; /* as it is recorded; then as the whole is called */
	uint32_t ndim;
	const int64_t *shape, *begin, *whole; /* begin, whole: of a part that says where; or NULL */
	/* Of what lies in flat tensors: these elements, one behind the other. `at` is the first's. */
	const struct fold_stretch *run;
	uint32_t nrun;   /* 0: it is all of its record */
	int64_t d;       /* data parallel rank; -1: none */
	bool copy, own;  /* of what other parts are; own: the model's of what its optimizer has */
	const char *bad; /* why it cannot be read; NULL */
};

enum fold_how { FOLD_ONE, FOLD_SAME, FOLD_SPLIT, FOLD_APART, FOLD_LOST };

/* Parts of one name. */
struct fold_weight {
	uint32_t first, n;
	uint32_t parts;   /* those from `first` on that make up the whole; the others are copies */
	uint8_t how;      /* FOLD_APART: as they are, for a grid of parts is none of these */
	uint8_t axis;     /* of FOLD_SPLIT, */
	uint32_t pieces;  /* and into how many pieces each part is: gate and up */
	uint32_t stacks;  /* and of what is split along the first axis, too: into how many */
	bool grid;        /* the parts say where they stand, along several axes */
	const char *why;  /* of FOLD_LOST */
	int64_t *differs; /* ranks whose copy is another than the first */
	uint32_t ndiffers;
	bool own;    /* some of these are the model's own copies */
	int64_t seq; /* of the record, where its elements follow */
};

struct fold_weights {
	struct acc_arena mem;
	struct acc_map places; /* id of a source: its place in the text `place` */
	struct fold_part *part;
	uint32_t npart;
	struct fold_weight *w;
	uint32_t n;
	int64_t size[3]; /* tensor, pipeline, expert parallel ranks; 0: no ranks */
	int64_t data;    /* those that flat tensors lie on; 0: there are none */
	bool whole; /* some source is a checkpoint that is no rank's: nothing is to be put together */
	uint64_t others; /* tensors that are none of the model's: of optimizers */
	uint64_t lost;
};

/* weights_name.c: the names of wholes. 0 or < 0. */
int acc_weights_names(struct fold_weights *t, struct acc_err *e);
/* Of a tensor parallel rank's part by its name: FOLD_SPLIT, with axis and pieces (0: as its sibling
 * says), FOLD_SAME, or FOLD_LOST where the name says nothing. */
enum fold_how acc_weights_rule(struct acc_str name, uint32_t ndim, uint8_t *axis, uint32_t *pieces);
/* weights_group.c: which parts make up which weight: t->w. 0 or < 0. */
int acc_weights_group(struct acc_fold *f, struct acc_err *e);
/* weights.c: 1: these are checkpoints, and t->w says what becomes of them; 0: they are not. */
int acc_weights_find(struct acc_fold *f, struct acc_err *e);
void acc_weights_free(struct fold_weights *t);

enum { FOLD_COORDS = 4 }; /* tensor, pipeline, expert, data parallel rank */
/* weights.c: those of a record, by its source's place; how many the place has. */
int acc_weights_place(const struct fold_weights *t, const struct acc_rec *r,
	int64_t c[FOLD_COORDS]);

/* weights_flat.c: */
struct fold_parts {
	struct fold_part *p;
	uint32_t n;
	size_t cap;
};
void acc_flat_release(struct fold_parts *v);
struct fold_part *acc_flat_add(struct fold_parts *v, const struct fold_part *p, struct acc_err *e);
struct fold_cuts {
	struct fold_stretch *v;
	uint32_t n;
	size_t cap;
	bool lacks;
};
/* Elements [from, from + n) of nflat flat tensors one behind the other, behind those in *c. */
int acc_flat_cut(struct fold_cuts *c, const struct fold_part *const *flat, uint32_t nflat,
	int64_t from, int64_t n, struct acc_err *e);
/* What is in *c, which is empty then, as the elements of *out. */
int acc_flat_done(struct fold_weights *t, struct fold_cuts *c, struct fold_part *out,
	struct acc_err *e);
/* 1: these are DeepSpeed's, and t->part is what they are parts of; 0: they are not. */
int acc_weights_zero(struct acc_fold *f, struct fold_weights *t, struct acc_err *e);
/* weights_order.c: the same of flat parameters of FSDP, by the reference. */
int acc_weights_fsdp(struct acc_fold *f, struct fold_weights *t, struct acc_err *e);
bool acc_weights_is_flat(struct acc_str name);

/* tiles.c: */
/* A part of a tensor of any layout, element by element. NULL: it has none, or e. */
struct fold_source;
struct fold_source *acc_source_open(struct acc_fold *f, const struct fold_part *p,
	struct acc_err *e);
uint64_t acc_source_count(const struct fold_source *s);
enum acc_dtype acc_source_dtype(const struct fold_source *s);
/* Its reference, if that is all of it, without gaps; or NULL. */
const struct acc_ref *acc_source_whole(const struct fold_source *s);
bool acc_source_random(const struct fold_source *s);
/* As acc_pay_read. */
int acc_source_read(struct fold_source *s, uint64_t first, size_t n, void *raw, const void **out,
	struct acc_err *e);
void acc_source_close(struct fold_source *s);

/* A box of the whole, and where it stands in its part. */
struct fold_tile {
	uint32_t part;
	int64_t begin[ACC_FOLD_NDIM], size[ACC_FOLD_NDIM], from[ACC_FOLD_NDIM];
};
/* A whole of this shape made of tiles of the parts, by reference; what that points to is in *m. 1; 0: the
 * elements of a part do not lie one behind the other in a file; or < 0, as where the tiles do not make it
 * up, each element once. */
int acc_tiles_ref(struct acc_fold *f, const struct fold_part *parts, uint32_t npart,
	const struct fold_tile *tile, uint32_t ntile, const int64_t *shape, uint32_t ndim,
	struct acc_arena *m, struct acc_ref *ref, struct acc_err *e);

/* weights_emit.c */
int acc_weights_run(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e);
int acc_weights_print(struct acc_fold *f, struct acc_buf *text, struct acc_err *e);
/* weights_settings.c: the records of what the optimizers' groups of parameters are set to. */
int acc_weights_put_settings(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e);

#endif
