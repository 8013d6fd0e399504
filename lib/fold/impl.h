/* impl.h - what the files of lib/fold share */
#ifndef FOLD_IMPL_H
#define FOLD_IMPL_H

#include "acc/fold.h"
#include "acc/payload.h"
#include "acc/stream.h"
#include "fold/limits.h"

#define FOLD_NONE UINT32_MAX
#define FOLD_NOWHERE UINT64_MAX

/* What is known of a tensor, as struct acc_fold_stat has it: there are millions, of few shapes. */
struct fold_stat {
	const int64_t *
		shape; /* of its side, or of that of the parts; ndim of ACC_FOLD_NDIM + 1: unknown */
	double count, v[ACC_FOLD_NSTAT];
	uint8_t ndim, known;
};

/* One record of an op call. */
struct fold_item {
	uint64_t at;  /* where its record is kept */
	uint64_t pos; /* hash of io and pos */
	struct fold_stat stat;
	double tol; /* half of the dtype's digits */
	bool tensor, output;
	bool exact;  /* of integers or bools */
	bool listed; /* one of a list */
	bool fills;  /* a buffer that the call fills: no input */
	bool moved;  /* it has the place of the reference's (members.c) */
	/* Of the reference: its ranks have parts of it, in a layout not yet known. Nothing is known of the whole then, but in
	 * v[ACC_FOLD_MAX] and v[ACC_FOLD_MIN] of `stat` stand the largest and the smallest of all parts; NAN: unknown. */
	bool split;
};

enum fold_dir { FOLD_FORWARD, FOLD_BACKWARD, FOLD_OTHER };

struct fold_call {
	uint64_t key, op, base; /* op: of operator and pass; base: of the operator */
	uint64_t twin;          /* of operator, number and pass */
	uint64_t line;          /* of the line of code; where stacks are unknown, of the shapes */
	int64_t call;
	int64_t peer; /* the rank that it hands a tensor to, or gets one from; -1 */
	uint32_t segment, first, n;
	uint32_t of; /* of a reference that was several ranks: the virtual call of its step */
	uint8_t dir;
	bool talks, hands; /* to other ranks; to one, as stages do */
	bool reduces;      /* what other ranks have, too */
	bool sums;         /* that, and gives it to all of them */
	bool scales, adds; /* a number; another tensor */
	bool moves;        /* elements alone */
	bool weighs;       /* one of its inputs is a weight */
	bool late;  /* behind the first gradient of its rank and step, or what hands that on */
	bool mated; /* there is such a call in the reference */
};

/* The op calls of one rank of one step, in order. */
struct fold_segment {
	int64_t step, rank;
	uint32_t first, n;
	bool back; /* a gradient was among them */
};

struct fold_side {
	struct fold_item *item;
	struct fold_call *call;
	struct fold_segment *segment;
	uint32_t nitem, ncall, nsegment;
	size_t item_cap, call_cap, segment_cap;
	struct acc_ids by_key, by_twin; /* with the segment, to calls */
	struct acc_ids by_shape;        /* to shapes, each of ACC_FOLD_NDIM and less, all in mem */
	const int64_t **shape;
	uint32_t nshape;
	size_t shape_cap;
	struct acc_arena mem;
};

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

/* Slices of a part, along the axis of the split. */
struct fold_piece {
	uint32_t part;
	uint64_t start, n;
};

/* In what order slices of the parts are a whole; n 0: one part behind the other. */
struct fold_pieces {
	const struct fold_piece *p;
	uint32_t n;
};

/* What the calls of one line of code say of one argument; or, where those of a line say nothing, those
 * that have other callers, as stages have, and take tensors of the same shapes. */
enum { FOLD_VOTES = 6 };
struct fold_class {
	uint64_t id;
	uint64_t at; /* a record of it */
	uint32_t n;
	struct {
		struct acc_fold_layout layout;
		uint32_t votes;
	} vote[FOLD_VOTES];
	uint32_t
		blank; /* calls of whose layout nothing is known, where others' that all ranks have is */
	struct acc_fold_layout given; /* n 0: not given */
	bool is_given, back;          /* back: of gradients */
	bool wide;                    /* whoever calls */
	bool in_turn;                 /* of that: somewhere the parts stand one behind the other */
	uint32_t summed, unsummed;    /* of that: outputs that a communication takes, or none */
	uint32_t talk;                /* the last of these, of the first rank */
};

/* In what order the parts stand in the whole, where an axis is split: found once, of a tensor that is the reference's.
 * Of a line of code, argument and axis: true for all of the same length; of one shape of it, as where a line lays
 * out all weights; of one tensor, such as tokens sorted by their experts. */
struct fold_order {
	struct fold_piece *piece;
	uint32_t npiece;
	bool theirs; /* they are of the parts of a reference that is several ranks: it has more of them */
	uint32_t right, wrong; /* tensors that are in this order, and that are not */
	bool plain;            /* one part behind the other */
	bool sure;             /* the first that was tried is plain, and not by chance */
	bool as_line;          /* of one shape: it is that of the line */
	double bits;           /* it is so by chance in one of 2 to the power of these */
};

/* Whose parts may stand in another order than one behind the other: of two sides of several ranks those along the
 * later axis, such as heads against samples; along one axis those of which there are more, and of as many nothing
 * tells. */
enum fold_whose { FOLD_MINE, FOLD_THEIRS, FOLD_NOBODY };

/* A tensor whose elements follow its record. */
struct fold_plan {
	uint32_t step, virtual, item; /* the parts: of this call */
	uint32_t order; /* its pieces; FOLD_NONE: one part, or a sum, or one behind the other */
	struct acc_place place;
	uint32_t rank; /* the only part, or the first of n, each so many ranks further */
	uint32_t n, stride;
	/* Where another axis of the mesh splits it, too: so many such rows of parts, one behind the other along an
	 * earlier axis of the tensor; 0 or 1: one. */
	struct {
		uint32_t n, stride;
		uint8_t axis;
	} row;
	enum fold_whose whose;
	bool rows; /* of one part: those of its first axis stand in another order */
	double scale;
	int64_t cut; /* of the axis; 0: all */
	int64_t seq;
};

/* May the elements of a tensor be given, and are they? */
struct fold_sight {
	uint64_t id
		[2]; /* equal for what is the same tensor of the first rank, and of the reference, as
			 * statistics show; 0: unknown */
	uint64_t call; /* equal for the forward and the backward of one call */
	uint8_t dtype;
	bool readable, seen, output, back, first; /* first: of its call */
	bool counts;                              /* what is made of it is as far off as it is */
	bool blank, summand; /* its layout is unknown; a reduction takes it here */
	bool nobody;         /* it is not the reference's that stands in its place */
};

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
	uint32_t brief;   /* so many first op calls alone are matched: a mesh is chosen; 0: all */
	uint32_t nstages; /* of that, the device's; by what its ranks do */
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
	struct acc_fold_stat *part; /* room for the parts of a tensor, twice */
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
	const struct fold_virtual *by; /* that communication, and its item */
	uint32_t out, rank;
	bool alone; /* this rank alone is off */
	/* Calls of the first rank: that sums up what another call of this line gives; that gives
	 * something else than the sum, undivided: only in that it is no mean; that divides what nothing
	 * sums. FOLD_NONE. */
	uint32_t lost, not_sum, apart;
	bool undivided;
};

/* --- read.c --- */
void acc_fold_side_release(struct fold_side *s);
/* A call can be found by its key, and its twin, from now on. */
int acc_fold_index(struct fold_side *s, uint32_t at, struct acc_err *e);
/* What is known of an item, and back: 0 or < 0. */
const struct acc_fold_stat *acc_fold_known(const struct fold_stat *s, struct acc_fold_stat *room);
#define FOLD_STAT(it) acc_fold_known(&(it)->stat, &(struct acc_fold_stat){.ndim = 0})
int acc_fold_keep(struct fold_side *s, struct fold_item *it, const struct acc_fold_stat *stat,
	struct acc_err *e);
/* A record that was kept; valid until the next. 0 or < 0. */
int acc_fold_record(struct acc_fold *f, uint64_t at, struct acc_rec **r, struct acc_err *e);
/* The call of a side by its key, or its twin, in this segment; FOLD_NONE. */
uint32_t acc_fold_by_key(const struct fold_side *s, uint64_t key, uint32_t segment);
uint32_t acc_fold_by_twin(const struct fold_side *s, uint64_t twin, uint32_t segment);
uint64_t acc_fold_twin(uint64_t base, int64_t call, int dir);
const struct fold_item *acc_fold_item_at(const struct fold_side *s, const struct fold_call *k,
	uint64_t pos, uint32_t hint);

/* --- runs.c --- */
int acc_fold_runs(const struct fold_side *s, uint32_t segment, struct fold_runs *t,
	struct acc_err *e);
void acc_fold_runs_free(struct fold_runs *r);
/* How many micro-batches there seem to be; 1: none. */
uint32_t acc_fold_micro(const struct fold_runs *t);
/* The forward run of a call, or of what its gradient belongs to. */
const struct fold_run *acc_fold_run_of(const struct fold_side *s, const struct fold_runs *t,
	uint32_t call);
/* Does this call stand for those of all micro-batches, or for itself (*once)? Else one before it does. */
bool acc_fold_stands(const struct fold_side *s, const struct fold_runs *t, uint32_t call,
	uint32_t micro, bool *once);
/* What a call of the first micro-batch is in the nth; FOLD_NONE. */
uint32_t acc_fold_partner(const struct fold_side *s, const struct fold_runs *t, uint32_t call,
	uint32_t nth);

/* --- solve.c --- */
/* The parts of item i of this virtual call, on each rank of its mesh, into f->part. False: some
 * rank has none. */
bool acc_fold_gather(struct acc_fold *f, const struct fold_mesh *m, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i);
/* Do less than two parts of several, those in f->part, have elements? Then they are the whole, whatever
 * the layout is. */
bool acc_fold_one_has_all(const struct acc_fold *f, const struct fold_mesh *m);
/* How far a tensor is from what it should be, as a share of that. */
double acc_fold_distance(const struct acc_fold_stat *p, const struct acc_fold_stat *want);
/* Those in f->part laid out so, into *whole. */
bool acc_fold_by_layout(struct acc_fold *f, const struct fold_mesh *m,
	const struct acc_fold_layout *l, double tol, struct acc_fold_stat *whole);
/* What may be the reference's but for a factor: nothing; parts, for the loss of a rank is the mean of its
 * own samples; what all ranks of a group have, too, as a sum over all groups. */
enum fold_factor { FOLD_NO_FACTOR, FOLD_OF_PARTS, FOLD_OF_COPIES };
enum fold_factor acc_fold_factor(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
/* The same of an item of a virtual call: what one rank alone has is its copy on all. */
enum fold_factor acc_fold_factor_of(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_virtual *v, const struct fold_item *it);
/* The layout of what is in f->part that gives `want`: 0: none; 1: by little; 2. */
int acc_fold_solve(struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_stat *want,
	double tol, enum fold_factor factor, struct acc_fold_layout *l);
/* Statistics do not tell which axis of the mesh has which part of what is in f->part: ranks that are far apart have
 * what is far apart, as the batch is split over those that split weights among neighbours. */
void acc_fold_straighten(struct acc_fold *f, const struct fold_mesh *m, struct acc_fold_layout *l);
/* By shapes alone, where only one layout is possible. Not of integers that are split, or of which the
 * ranks have others: positions and indices may be each rank's own; nor of what is split where all parts
 * are the same. */
bool acc_fold_by_shape(struct acc_fold *f, const struct fold_mesh *m, const struct fold_item *own,
	const struct acc_fold_stat *want, double tol, struct acc_fold_layout *l);

/* --- both.c: a reference of several ranks that becomes one, too --- */
/* The reference's ranks are those of f->both. 0 or < 0. */
int acc_fold_both(struct acc_fold *f, struct acc_err *e);
/* How many ranks are side by side, by what they do: the ranks of the first stage. */
uint32_t acc_fold_abreast(const struct acc_fold *f);
/* f->reference as one rank, if its ranks are this mesh: what all have, and of what is split the places. */
int acc_fold_both_build(struct acc_fold *f, const struct fold_mesh *m, struct acc_err *e);
/* The largest and the smallest of n parts; NAN: unknown. */
void acc_fold_ends(const struct acc_fold_stat *part, uint32_t n, double ends[2]);
/* As acc_fold_solve, for an item of this call of the reference, and how that lies on its ranks, if they are several;
 * -1: nothing is known of it. */
int acc_fold_like(struct acc_fold *f, const struct fold_mesh *m, uint32_t call,
	const struct fold_item *it, double tol, enum fold_factor factor, struct acc_fold_layout *l,
	struct acc_fold_layout *reference);
/* Are all n the same, with such a share of the noise? */
bool acc_fold_are_copies(const struct acc_fold_stat *part, uint32_t n, double share, double tol);
/* Does the first part stand there again? Then they are no parts of a whole along this axis. */
bool acc_fold_has_twin(const struct acc_fold_stat *part, uint32_t n, double tol);
/* The layout of what all its ranks have. */
struct acc_fold_layout acc_fold_copies_of(const struct acc_fold *g);

/* --- settle.c --- */
/* The layouts of what is split, which the calls vote for that are as the device's: its wholes. */
int acc_fold_both_settle(struct acc_fold *f, struct acc_err *e);
/* How an item of that would be read, of f->both; false: its layout is not known, or splits along several axes. */
bool acc_fold_both_plan(const struct acc_fold *f, const struct fold_item *it, struct fold_plan *p);
/* Is what the reference's first rank has of it the whole? */
bool acc_fold_stored_whole(const struct acc_fold *f, const struct fold_item *it);
/* Of the reference's first rank. */
const struct fold_stat *acc_fold_recorded(const struct acc_fold *f, const struct fold_item *it);

/* --- reduce.c --- */
int acc_fold_takers(struct acc_fold *f, struct fold_step *t, struct acc_err *e);
/* The only tensor that the reference's call takes and v does not, as a bias that is added later; NULL. */
const struct fold_item *acc_fold_lacking(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v);
/* The call, and its item *out, that gives what communication makes of item i of v, and the bias; or
 * NULL. *talk: the first that communicates; talk may be NULL. */
const struct fold_virtual *acc_fold_reduced(struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i, uint32_t *out, const struct fold_virtual **talk);
/* What all ranks hand item i of v to, of communications, scalings and sums; NULL. */
const struct fold_virtual *acc_fold_taker(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i);
/* What is in f->part, of such an item, as what `want` is. */
bool acc_fold_by_reduced(struct acc_fold *f, const struct fold_mesh *m,
	const struct acc_fold_stat *want, const struct fold_item *own, double tol,
	struct acc_fold_layout *l, struct acc_fold_stat *whole);

/* --- whole.c --- */
struct fold_whole {
	struct acc_pay **part;
	uint32_t n;
	int64_t *len;                       /* of the axis, in each part */
	uint64_t outer, axis, inner, count; /* the axis may end within the last part */
	enum acc_dtype in, out;
	bool sums;
	double scale;
	void *raw;
	double *sum;
	uint64_t done, in_run, at_outer; /* where reading stands */
	uint32_t piece;
	/* Of rows of parts: each of them; of which so many elements follow each other, so often; where reading stands. */
	struct fold_whole **row;
	uint32_t nrow, at_row;
	uint64_t turns, in_row;
};
/* Of parts that are filled up: so many of the axis are the whole. */
void acc_whole_cut(struct fold_whole *w, int64_t cut);
/* The n records at[] as parts; NULL where one has no elements that can be read from anywhere (e
 * tells whether that is a failure). part: the first one's shape. */
struct fold_whole *acc_whole_open(struct acc_fold *f, const uint64_t *at, uint32_t n,
	struct acc_place place, const struct acc_fold_stat *part, double scale, struct acc_err *e);
/* n > 1 of these one behind the other along an axis, before which the parts have so many slices; all of them are
 * closed with it, or if it is NULL: they do not fit. */
struct fold_whole *acc_whole_rows(struct fold_whole **row, uint32_t n, uint64_t slices,
	struct acc_err *e);
/* The next elements, at most `room` (up to ACC_CHUNK), of one part, *rank; of an empty part none. */
int acc_whole_next(struct fold_whole *w, struct fold_pieces pieces, void *out, size_t room,
	size_t *n, uint32_t *rank, struct acc_err *e);
/* From the first element again. */
void acc_whole_rewind(struct fold_whole *w);
/* In what order slices of the parts are those of the whole, by their sums. 1, 0: not found, < 0. */
int acc_whole_order(struct fold_whole *w, struct fold_whole *whole, double tol,
	struct fold_piece **out, uint32_t *n, struct acc_err *e);
/* Squares of the differences of each part; and of all, in parts of those of the reference. */
int acc_whole_errors(struct fold_whole *w, struct fold_pieces pieces, struct fold_whole *ref,
	struct fold_pieces theirs, double *error, double *all, struct acc_err *e);
void acc_whole_close(struct fold_whole *w);

/* --- pieces.c --- */
/* The parts of a planned tensor; NULL: not all can be read. *e says why, where that is a failure. */
struct fold_whole *acc_fold_open_plan(struct acc_fold *f, const struct fold_plan *p,
	struct acc_err *e);
/* What the reference has, likewise. */
struct fold_whole *acc_fold_open_want(struct acc_fold *f, const struct fold_item *want,
	struct acc_err *e);
/* The pieces that tensor p is made of, and those of its reference; false: they do not fit. */
bool acc_fold_pieces(struct acc_fold *f, const struct fold_plan *p, const struct fold_whole *w,
	struct fold_pieces *out);
bool acc_fold_their_pieces(struct acc_fold *f, const struct fold_plan *p,
	const struct fold_whole *ref, struct fold_pieces *out);
enum fold_whose acc_fold_whose(const struct acc_fold *f, const struct fold_plan *p,
	const struct fold_item *want);
/* Why elements cannot be read is said once. */
void acc_fold_note(struct acc_fold *f, const struct acc_err *e);
/* The record of this part of a virtual call; NULL. */
const struct fold_item *acc_fold_part_of(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint64_t pos, uint32_t rank);

/* --- orders.c --- */
/* Find out in what order parts stand, line of code by line of code. */
int acc_fold_orders(struct acc_fold *f, struct acc_err *e);
/* p->order, of a tensor of this class that is the reference's `want`, or should be; false: in what order its parts stand
 * is not known. */
bool acc_fold_choose_order(const struct acc_fold *f, struct fold_plan *p, uint32_t cls,
	const struct fold_item *want);

/* --- data.c --- */
/* Which parts of a tensor laid out so, beginning with p->rank, are the whole; false where it is split
 * along several axes of the mesh: then statistics are all there is. */
bool acc_fold_axis(const struct fold_mesh *m, const struct acc_fold_layout *l, struct fold_plan *p);
/* How the elements of item i, which d tells of, would be read; false: they cannot be. */
bool acc_fold_plan(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i, const struct folded *d, struct fold_plan *p);
/* Can they be read, and those of its reference where that is several ranks, and as what? */
bool acc_fold_readable(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *want,
	enum acc_dtype *dtype);
/* Is it what all ranks have, but not bit by bit? f->part holds their statistics. */
bool acc_fold_unlike(const struct acc_fold *f, const struct fold_plan *p);
/* The error of what p is, as a share of the reference's root mean square; NAN: it cannot be read. */
double acc_fold_error(struct acc_fold *f, const struct fold_plan *p, const struct fold_item *want);
/* The rank whose part alone is off, or -1; of what all have, p->rank becomes the worst. */
int64_t acc_fold_off(struct acc_fold *f, struct fold_plan *p, const struct fold_item *want);
/* The elements follow: 1, or < 0. */
int acc_fold_remember(struct acc_fold *f, const struct fold_plan *p, struct acc_err *e);
/* Where no order of the parts is known, or several axes have them: the rank, of those of the mesh, whose part alone is not the reference's
 * where the layout has it; -1: none, or it cannot be told. f->part holds the parts' statistics. */
int64_t acc_fold_guilty(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_item *own, const struct acc_fold_layout *l, const struct fold_item *want);
int acc_fold_data(struct acc_fold *f, const char *src, acc_fold_fn *fn, void *arg,
	struct acc_err *e);

/* --- sums.c --- */
/* Which line's outputs a communication takes, and how often. */
void acc_fold_count_sums(struct acc_fold *f, const struct fold_step *t);
/* What is wrong with the sum that item i, which d tells of, has a summand of: d->lost, not_sum, apart. */
void acc_fold_doubt(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, struct folded *d);

/* --- turned.c --- */
/* Which tensors the ranks take in another order than those of other calls of the line. */
int acc_fold_find_turned(struct acc_fold *f, struct acc_err *e);
/* The call that cuts what this one's input is a part of, if it is one of these; else FOLD_NONE. */
uint32_t acc_fold_turned(const struct acc_fold *f, uint32_t step, uint32_t virtual, uint32_t item);

/* --- sight.c --- */
/* Equal for what is one tensor, as statistics show; 0: it is like much else. */
uint64_t acc_fold_digest(const struct fold_stat *s);
/* Which tensors' elements are given. */
int acc_fold_sight(struct acc_fold *f, struct acc_err *e);

/* --- decide.c --- */
void acc_fold_decide(struct acc_fold *f, struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, struct folded *d);
/* Of one rank, is it no micro-batch's, as what cuts the batch, and the optimizer? Then it is what it is. */
bool acc_fold_is_one(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v);
/* Has each rank all of it? */
bool acc_fold_replicated(const struct acc_fold_layout *l);

/* --- alone.c --- */
/* Which op calls are each rank's own, as those of experts: each is one of the reference. 1: some. */
int acc_fold_alone(struct acc_fold *f, struct acc_err *e);
/* Does each rank call this line for itself; or on tensors of these shapes, as a line that lays out all
 * weights does those of experts? */
bool acc_fold_is_alone(const struct acc_fold *f, const struct fold_call *k);
/* Is it a weight that can be told from others? first: nothing before it is a tensor. */
bool acc_fold_is_weight(const struct fold_call *k, const struct fold_item *it, bool first);
/* A forward call of a known line, that is no communication. */
bool acc_fold_is_own_work(const struct fold_call *k);
/* How many ranks call this line of code, and how many of these for themselves. */
int acc_fold_count_line(const struct acc_fold *f, const struct fold_call *k, uint32_t all,
	uint32_t own, struct acc_ids *seen, struct acc_ids *like, struct acc_err *e);
/* A line of code is so if most of its calls are. */
int acc_fold_settle_lines(struct acc_fold *f, const struct acc_ids *seen,
	const struct acc_ids *like, struct acc_err *e);
/* What lies between calls that are each rank's own is so, too, as what an expert does without weights:
 * it is made only of what they give, and they take what is made of it. */
int acc_fold_alone_between(struct acc_fold *f, struct acc_err *e);
/* So is what is made of gradients that they give alone, call by call: a line divides those of all weights. */
int acc_fold_alone_behind(struct acc_fold *f, struct acc_err *e);

/* The same experts may stand on every so many of the ranks of a mesh of one axis, which becomes one of two then:
 * which number each rank's is, of a call that is its own, says so. */
struct fold_pattern {
	uint32_t span, votes, all;
};
void acc_fold_add_pattern(struct fold_pattern *p, const uint32_t *id, uint32_t n);
void acc_fold_refine(struct acc_fold *f, const struct fold_pattern *p);

/* --- experts.c --- */
/* The same where the reference becomes one rank, too, on both sides, by their weights. 1: some. */
int acc_fold_experts(struct acc_fold *f, struct acc_err *e);

/* --- groups.c --- */
/* The steps, none of which are known yet: each group of ranks, and the reference's segment that they are. */
int acc_fold_list(struct acc_fold *f, struct acc_err *e);
void acc_fold_steps_free(struct acc_fold *f);
/* Of the reference, in its first step. */
uint32_t acc_fold_reference_ranks(const struct acc_fold *f);

/* The calls of an operator are numbered on over stages; gradients have the number of what they belong to. */
struct fold_numbers {
	struct acc_ids count, forward; /* calls of an operator so far; numbers of forward calls */
};
int acc_fold_number(const struct acc_fold *f, struct fold_numbers *n, const struct fold_call *k,
	struct fold_virtual *v, struct acc_err *e);
void acc_fold_numbers_release(struct fold_numbers *n);

/* --- step.c --- */
/* The virtual rank of each step under this mesh, and which calls are which of the reference. */
int acc_fold_steps(struct acc_fold *f, const struct fold_mesh *m, struct acc_err *e);
/* The virtual calls of a step on this mesh, none of them matched. 0 or < 0. */
int acc_fold_lay_out(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t,
	struct acc_err *e);

/* --- members.c --- */
/* What the optimizer of a stage is given, and gives, has the places of the same weights in what the reference's is. */
int acc_fold_members(struct acc_fold *f, struct acc_err *e);

/* --- vote.c --- */
/* Is it one of a list, which is joined, or is it one of what is taken apart, forward or backward? On another
 * rank it may stand for another place of the reference's list, as the tokens of another expert: shapes alone tell nothing. */
bool acc_fold_is_member(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
int acc_fold_vote(struct acc_fold *f, struct acc_err *e);
/* Is it a member of what an optimizer is given, or gives, of other weights than its counterpart is, as on a stage? What
 * stands at its place there is another weight's. */
bool acc_fold_of_others(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, const struct fold_item *own);
/* The reference's tensor that item i of v is a part of; NULL. */
const struct fold_item *acc_fold_counterpart(const struct acc_fold *f, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i);
/* Are these said to be parts, which ranks hand to a sum over all of them: gradients? */
bool acc_fold_is_sum_of(const struct fold_call *k, const struct acc_fold_layout *l);
/* The layout of item i, whose parts are in f->part; want: the reference's or NULL. n 0: unknown. */
struct acc_fold_layout acc_fold_choose(struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it, const struct acc_fold_stat *want, double tol);
/* Of what one rank alone has: the factor that makes it the reference's, of gradients 1/n, too. 0: none. */
double acc_fold_alone_scale(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *own, const struct acc_fold_stat *part,
	const struct acc_fold_stat *want, double tol);
/* Is what is in f->part the reference's but for noise, or behind a fault, or that but for the factor that a group
 * of ranks makes? 1 where neither is near; 0: it may be summands, which are of one shape, too. */
double acc_fold_nearest_factor(struct acc_fold *f, const struct acc_fold_layout *l,
	const struct acc_fold_stat *want, double tol);
/* A tensor of this call is laid out so, which counts for its line of code. */
int acc_fold_say(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	const struct acc_fold_layout *l, struct acc_err *e);
/* Of another one nothing is known. */
int acc_fold_abstain(struct acc_fold *f, const struct fold_call *k, const struct fold_item *own,
	struct acc_err *e);
/* Of the shapes of a call's tensors. */
uint64_t acc_fold_shapes(const struct acc_fold *f, const struct fold_call *k);
/* Its class, or FOLD_NONE. */
uint32_t acc_fold_class(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
/* That of calls on tensors of the same shapes where the line alone is the same, whoever calls. */
uint32_t acc_fold_wide(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_item *it);
/* The layout of most; n 0: they are at odds. */
struct acc_fold_layout acc_fold_winner(const struct fold_class *c);

#endif
