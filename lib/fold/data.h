/* data.h - elements: whole.c, pieces.c, orders.c, data.c, sums.c, turned.c, sight.c */
#ifndef FOLD_DATA_H
#define FOLD_DATA_H

#include "fold/state.h"

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

#endif
