/* fold.h - the ranks of one side as one virtual rank
 *
 * A network that runs on many ranks holds parts of what one rank would hold. Each tensor of an op
 * call stands on every rank; what the whole is follows from its layout: all ranks have it
 * (Replicate), each has a piece of an axis (Shard), or a summand (Partial). The words are those of
 * PyTorch's DTensor. Layouts are found against a reference, the same network on one rank, and
 * belong to a line of code and argument: all its calls vote, so that a tensor that is wrong
 * is laid out as its likes are.
 * Layer lib/fold, on base, stream, op, stat, payload. */
#ifndef ACC_FOLD_H
#define ACC_FOLD_H

#include "acc/record.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- one tensor --- */
/* ACC_ALONE: what each rank has is another tensor of the whole, as of experts. */
enum acc_place_kind { ACC_PLACE_UNKNOWN, ACC_REPLICATE, ACC_SHARD, ACC_PARTIAL, ACC_ALONE };
/* A mesh of ranks has one axis or more, the last of neighbours. */
enum { ACC_MESH_DIMS = 3, ACC_FOLD_NDIM = 16 };
struct acc_place {
	uint8_t kind; /* enum acc_place_kind */
	uint8_t axis; /* of the tensor; of ACC_SHARD */
};
struct acc_fold_layout {
	uint8_t n; /* axes of the mesh; 0: unknown */
	struct acc_place at[ACC_MESH_DIMS];
	bool swapped; /* the first two axes of the parts are the other way round in the whole */
	double scale; /* of what the places give; 1 mostly, 1/n of means over n ranks */
	/* Of what is split along one axis, filled up: so many of that are the whole; 0: all. zeros: the rest are. */
	int64_t cut;
	bool zeros;
};
enum { ACC_FOLD_MAX, ACC_FOLD_MIN, ACC_FOLD_MEAN, ACC_FOLD_NORM, ACC_FOLD_NSTAT };
/* What is known of a tensor without its elements. */
struct acc_fold_stat {
	uint32_t ndim; /* at most ACC_FOLD_NDIM */
	int64_t shape[ACC_FOLD_NDIM];
	double count;
	uint8_t known; /* bit i: v[i] is */
	double v[ACC_FOLD_NSTAT];
};
/* n > 0 parts laid out along one axis of the mesh become *whole. tol: relative to the root mean
 * square of elements, how far what should be equal may lie apart. False: they cannot be so laid
 * out. Of a sum the maximum, minimum and norm are unknown, but where it has a single element. */
bool acc_fold_join(const struct acc_fold_stat *part, uint32_t n, struct acc_place p, double tol,
	struct acc_fold_stat *whole);
/* Of parts that are filled up: *w, all of them, becomes the whole. False: it is no longer than that. */
bool acc_fold_cut(const struct acc_fold_layout *l, struct acc_fold_stat *w);
/* Is a * scale the same as b? 0: no; 1: as far as little shows it; 2: yes. */
int acc_fold_same(const struct acc_fold_stat *a, double scale, const struct acc_fold_stat *b,
	double tol);
/* "Shard(0)", "Replicate() Shard(1) * 1/4" into buf, always terminated; and back, false where the
 * text is none. */
enum { ACC_LAYOUT_TEXT = 96 };
void acc_fold_layout_text(const struct acc_fold_layout *l, char buf[ACC_LAYOUT_TEXT]);
bool acc_fold_layout_parse(struct acc_str s, struct acc_fold_layout *l);

/* --- a whole side --- */
struct acc_fold;
struct acc_fold *acc_fold_open(const char *tmpdir, struct acc_err *e);
/* Give the elements of tensors, too, from files of sources that are read from now on, where those of
 * all parts can be had; *roots stays the caller's. */
struct acc_roots;
int acc_fold_tensors(struct acc_fold *f, struct acc_roots *roots);
/* After acc_fold_run: why elements could not be read at first, and of how many tensors. */
const struct acc_err *acc_fold_trouble(const struct acc_fold *f, uint64_t *n);
/* A record of the side that is folded, or of the reference. */
int acc_fold_add(struct acc_fold *f, bool reference, const struct acc_rec *r, struct acc_err *e);
/* Layouts as acc_fold_print writes them, to be taken as they are; text need not stay. */
int acc_fold_given(struct acc_fold *f, struct acc_str text, const char *name, struct acc_err *e);
/* A reference of several ranks becomes one rank, too, as it does where it is the device and this one its
 * reference. */
void acc_fold_whole(struct acc_fold *f);
/* After all records: 1: the layout is found; 0: no layout explains the ranks, for acc_fold_why. */
int acc_fold_find(struct acc_fold *f, struct acc_err *e);
const char *acc_fold_why(const struct acc_fold *f);
/* Of a checkpoint, which needs no reference: behind acc_fold_run, how many weights could not be put
 * together, the first of them and why (borrowed from f), and how many tensors are none of the model's and were left out. False: it is none. */
struct acc_fold_weights {
	uint64_t lost, others;
	const char *first, *why;
};
bool acc_fold_weights(const struct acc_fold *f, struct acc_fold_weights *out);
/* The mesh and a line for each line of code and argument, for people and acc_fold_given. */
int acc_fold_print(struct acc_fold *f, struct acc_buf *text, struct acc_err *e);
/* Hand out the records of the virtual rank, and data records behind them; or, where no layout was found, all as they came. */
typedef int acc_fold_fn(void *arg, const struct acc_rec *r);
int acc_fold_run(struct acc_fold *f, acc_fold_fn *fn, void *arg, struct acc_err *e);
void acc_fold_close(struct acc_fold *f);

#ifdef __cplusplus
}
#endif

#endif
