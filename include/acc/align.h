/* align.h - which record of the device belongs to which of the bench
 *
 * The records of both sides are kept in temporary files; in memory stands an index of them:
 * op calls and, in each, items (one per record). Steps and ranks are joined first; then a way
 * of pairing, which is one file in lib/align and one row in lib/align/table.h, sets the mates
 * inside each joined group; then the pairs are written in the order of the device.
 *
 * Names are kept as 64-bit hashes: two names are taken to be equal if their hashes are.
 * Layer lib/align, on base, io, stream, op, stat. */
#ifndef ACC_ALIGN_H
#define ACC_ALIGN_H

#include "acc/call.h"
#include "acc/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACC_NOMATE UINT32_MAX

/* How an item was matched where that is not how its op call was. */
enum acc_align_how {
	ACC_HOW_OP,
	ACC_HOW_NAME,
	ACC_HOW_RULE,
	ACC_HOW_PATH,
	ACC_HOW_CONTENT,
	ACC_HOW_PATTERN,
	ACC_HOW_TIED,
	ACC_HOW_PART,
	ACC_HOW_FUSED,
	ACC_HOW_ORDER,
	ACC_HOW_PLACE,
	ACC_HOW_N
};

/* Statistics of one tensor, whoever computed them. */
enum { ACC_LIKE_MAX, ACC_LIKE_MIN, ACC_LIKE_MEAN, ACC_LIKE_RMS, ACC_NLIKE };

/* One record. */
struct acc_align_item {
	uint64_t at;       /* where its record is kept */
	uint64_t position; /* hash of io and pos */
	uint64_t row;      /* of the name behind the op call's key, such as .input.0 */
	uint64_t name;     /* the whole of it */
	uint64_t shape;
	uint64_t count; /* elements; 0: unknown */
	uint64_t dims;  /* of the extents but those of 1, in any order */
	uint64_t print; /* of its content, or of all its statistics; 0: unknown or says little */
	float like[ACC_NLIKE];
	uint8_t liked;  /* bit i: like[i] is known */
	uint32_t dtype; /* of the text that msprobe prints as dtype, such as <class 'int'> */
	uint32_t type;  /* of the last part of the type: Tensor, int; 0: absent */
	uint32_t mate;  /* item of the other side, or ACC_NOMATE */
	int8_t num;     /* enum acc_dtype as the operator saw it */
	int8_t grad;    /* requires_grad; -1: absent */
	uint8_t io;     /* enum acc_io */
	bool has_shape, has_dtype;
	bool tensor; /* no argument, point or parameter */
	uint8_t how; /* enum acc_align_how */
};

/* One op call; also one point of a curve, one parameter. Its records stand together. */
struct acc_align_call {
	uint64_t base;   /* of operator and pass, without the call's number; or of the whole key */
	uint64_t names;  /* of the names of its records, in order */
	int64_t call;    /* -1: not numbered; of a curve the step */
	const char *how; /* how it was matched; borrowed from the way of pairing */
	uint32_t first, n; /* items */
	uint32_t group;
	uint32_t mate; /* op call of the other side, or ACC_NOMATE */
	double sure;
	uint64_t name; /* of the operator, whatever the pass; base is of name and pass_name */
	uint64_t pass_name;
	uint32_t op_text, scope_text; /* in the side's table of names, or ACC_NOMATE */
	uint64_t family;              /* of all operators that do the same, in any framework */
	uint64_t scope;               /* of the path of the enclosing module; of a curve's point its
				       * rank + 1; 0: unknown */
	uint32_t site; /* where the model calls it, for acc_sites_like; ACC_NOMATE: unknown */
	uint8_t pass;  /* enum acc_pass */
	bool forward, module;
	bool moves; /* the operator only copies elements */
	bool array; /* one tensor by its name, of which accdump-read --outputs says that a call made it */
	bool nobodys; /* no framework's operator: a name that somebody gave what he recorded */
};

/* What the two sides look like to a way of pairing. */
struct acc_index {
	struct acc_align_call *op;
	struct acc_align_item *item;
	uint32_t nop, nitem;
	bool kernels; /* calls of kernels, as MindSpore dumps them, not of a framework's operators */
	const struct acc_sites *sites;
};

/* One joined (step, rank): op calls by number, in the order in which they ran. */
struct acc_joined {
	struct acc_index *a, *b;
	const uint32_t *aop, *bop;
	uint32_t na, nb;
	bool cross; /* the sides come from different frameworks */
	struct acc_scratch *scratch;
	const struct acc_align *al;
	uint32_t turns; /* of acc_align_turn */
};

struct acc_aligner {
	const char *name, *help;
	/* Calls acc_mate_ops and acc_mate_items (or acc_mate_by) for what belongs together. */
	int (*pair)(struct acc_joined *j, struct acc_err *e);
	bool loose; /* what belongs to no op call pairs by more than its name */
};
extern const struct acc_aligner *const acc_aligners[]; /* the first is the default */
extern const size_t acc_naligners;
/* By name; NULL if there is none. */
const struct acc_aligner *acc_aligner_find(const char *name);

/* --- for ways of pairing --- */
/* These two are the same op call. how: static text; sure: 0 to 1. */
void acc_mate_ops(struct acc_joined *j, uint32_t a, uint32_t b, const char *how, double sure);
void acc_mate_items(struct acc_joined *j, uint32_t a, uint32_t b);
/* Pair equal numbers, each with the first of the other list that is still free: mate[i] is an
 * index of b or ACC_NOMATE. 0 or ACC_ENOMEM. */
int acc_pair_equal(struct acc_scratch *s, const uint64_t *a, uint32_t na, const uint64_t *b,
	uint32_t nb, uint32_t *mate, struct acc_err *e);
/* Pair the items of two op calls by what `id` says of them. */
int acc_mate_by(struct acc_joined *j, uint32_t a, uint32_t b,
	uint64_t (*id)(const struct acc_align_item *), struct acc_err *e);
/* Pair op calls by ida[], idb[] (one per op call of the group, in order), then their items by
 * `id`. */
int acc_mate_calls(struct acc_joined *j, const uint64_t *ida, const uint64_t *idb,
	uint64_t (*id)(const struct acc_align_item *), const char *how, double sure,
	struct acc_err *e);

/* --- the whole --- */
/* Steps and ranks that the user joins by hand: pairs of device, bench. */
struct acc_join {
	const int64_t (*steps)[2];
	size_t nsteps;
	const int64_t (*ranks)[2];
	size_t nranks;
};

/* What the user says of names: msprobe's mapping files of every kind (data, API, cell, layer),
 * and other names for the device's modules and parameters. */
struct acc_maps;
struct acc_maps *acc_maps_new(struct acc_err *e);
void acc_maps_free(struct acc_maps *ru);
int acc_maps_map(struct acc_maps *ru, const char *path, struct acc_err *e);
/* "s/REGEX/TEXT/" (extended; g behind it: everywhere), "OLD=NEW" (a prefix), or "@FILE" with
 * one of these a line. */
int acc_maps_rename(struct acc_maps *ru, const char *rule, struct acc_err *e);
/* The n > 0 bytes of such a file; where: its name, for messages. It is for many models: that a
 * rule was never used is not reported. */
int acc_maps_rename_text(struct acc_maps *ru, const char *text, size_t n, const char *where,
	struct acc_err *e);
/* A point of the device, whose tag names a parameter behind a slash (local_norm/WEIGHT, and before
 * another slash grad_reduced/WEIGHT/norm), gets its other name, and the old tag as tag.raw where
 * it has none. 1: it was changed, 0, < 0. */
int acc_maps_tag(struct acc_maps *ru, struct acc_rec *r, struct acc_err *e);
/* After acc_align_run: what was never used, or not as it was meant. */
typedef int acc_maps_fn(void *arg, const char *rule, const char *text);
int acc_maps_report(const struct acc_maps *ru, acc_maps_fn *fn, void *arg);

/* Op calls, with the scope in which each ran, as calls of modules: what the first op call of one takes first, and what
 * its last one gives, under the scope as a name (Module.PATH.CLASS.forward.N). Calls of modules that a recorder wrote,
 * and what is no op call, pass as they are; an op call without a scope is left out. Each record is handed to fn, and is
 * fn's for that time. < 0 from fn ends it. */
struct acc_modules;
typedef int acc_modules_fn(void *arg, struct acc_rec *r);
struct acc_modules *acc_modules_open(acc_modules_fn *fn, void *arg, struct acc_err *e);
int acc_modules_add(struct acc_modules *m, struct acc_rec *r, struct acc_err *e);
/* Hand on what has begun. */
int acc_modules_end(struct acc_modules *m, struct acc_err *e);
/* How many calls of modules there were, and op calls' records of which nobody knows in which they ran. */
uint64_t acc_modules_count(const struct acc_modules *m, uint64_t *nowhere);
void acc_modules_close(struct acc_modules *m);

struct acc_align;
/* Before acc_align_run: rules of acc_maps_rename_text for weights' names. Of each of the n tables, the
 * names of one program's; the npacked last are applied one after the other to what is left, and make
 * one name of those whose content other programs pack. All are borrowed until acc_align_close. */
void acc_align_known(struct acc_align *al, struct acc_maps *const *table, size_t n,
	struct acc_maps *const *packed, size_t npacked);
struct acc_align *acc_align_open(const char *tmpdir, struct acc_err *e);
/* 1: taken, to be paired; 0: nothing to pair (source, stack, unknown kinds): pass it on;
 * < 0: failure. A pair record is refused. */
int acc_align_add(struct acc_align *al, enum acc_side side, const struct acc_rec *r,
	struct acc_err *e);
/* Once, after all records: pair, and hand out pair and finding records in order. A negative
 * return of fn stops and is returned. */
typedef int acc_align_fn(void *arg, const struct acc_rec *r);
int acc_align_run(struct acc_align *al, const struct acc_aligner *way, const struct acc_join *join,
	struct acc_maps *rules, acc_align_fn *fn, void *arg, struct acc_err *e);
/* Hand out pair records, but no others, to this, with the values of their fields as MessagePack alone: for who
 * only writes them. */
void acc_align_raw(struct acc_align *al, acc_align_fn *fn);
void acc_align_close(struct acc_align *al);

#ifdef __cplusplus
}
#endif

#endif
