/* find.h - from records to meshes: read.c, runs.c, solve.c, both.c, settle.c, reduce.c */
#ifndef FOLD_FIND_H
#define FOLD_FIND_H

#include "fold/state.h"

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

/* Of a tensor by its statistics; 0: not known, or all its elements are equal. */
uint64_t acc_fold_stat_id(const struct fold_stat *s);
uint64_t acc_fold_ops_of(const struct fold_side *s, const struct fold_runs *t,
	const struct fold_run *r);
/* Are these runs of the same operators those of two batches, by the weights that they take? */
bool acc_fold_same_weights(const struct fold_side *s, const struct fold_runs *t,
	const struct fold_run *a, const struct fold_run *b);

/* --- runs_again.c --- */
/* Cut forward runs where a network is run again. 0 or < 0. */
int acc_fold_split_again(const struct fold_side *s, struct fold_runs *t, struct acc_err *e);

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

#endif
