/* What the files of lib/align share. */
#ifndef ALIGN_IMPL_H
#define ALIGN_IMPL_H

#include "acc/align.h"
#include "acc/file.h"
#include "acc/op.h"
#include "acc/stream.h"
#include "align/fields.h"
#include "stream/store.h"

/* Texts by number, each once. */
struct acc_names {
	struct acc_map at;
	struct acc_arena mem;
	struct acc_named {
		struct acc_str text;
		uint64_t family; /* of an operator; 0: not yet known */
		uint64_t path;   /* acc_path_hash of it; 0: not yet known */
		bool moves;      /* of an operator whose family is known */
		bool nobodys;    /* of an operator: of no framework's */
	} * v;
	uint32_t n;
	size_t cap;
};

/* One (step, rank) of one side; or, once per side, what belongs to none: points of curves and
 * parameters. */
struct acc_group {
	/* All of this is the group's key, without gaps. */
	struct acc_group_id {
		int64_t step; /* INT64_MIN: unknown */
		int64_t who;  /* a rank or a process */
		enum { WHO_RANK, WHO_PROC, WHO_UNKNOWN, WHO_GLOBAL } kind;
		int32_t zero;
	} id;
	uint32_t nop, first; /* slice of byop */
	uint32_t mate;       /* group of the other side, or ACC_NOMATE */
};

struct acc_half {
	struct acc_index ix;
	struct acc_spill op, item; /* of ix: used group by group */
	struct acc_store *store;
	struct acc_fields *fields; /* by the number of a record's keys: where what matters is */
	size_t field_cap;
	uint32_t nfields;
	struct acc_buf key; /* of the last op call */
	uint32_t dtype;     /* of the last record that had one, */
	int8_t num;         /* and what that is */
	struct acc_group *group;
	uint32_t ngroup;
	size_t group_cap;
	struct acc_map groups; /* id to number */
	uint32_t *byop;        /* op calls, group by group */
	uint64_t framework;    /* hash; 0: unknown */
	struct acc_sites *sites;
	struct acc_names names; /* of operators and modules */
	uint32_t last_scope;    /* that of the last op call that had one */
};

/* Tables of names of known programs, and of what is packed; borrowed. */
struct acc_known_names {
	struct acc_maps *const *table, *const *packed;
	size_t n, npacked;
};

struct acc_align {
	struct acc_half h[2];
	struct acc_known_names known; /* table NULL: none */
	acc_align_fn *raw;            /* NULL: pairs are handed out with their values */
	struct acc_scratch *scratch;
	struct acc_samples *samples;
};

/* Memory of acc_pair_equal that is kept from call to call. */
struct acc_scratch {
	struct acc_slot {
		uint64_t id;
		uint32_t head, tail; /* of a list through next[]; head ACC_NOMATE: empty */
	} * slot;
	uint32_t *next;
	uint64_t *ids; /* of acc_mate_by */
	uint32_t *mate;
	size_t nslot, nnext, nids, nmate; /* capacities */
	/* Items of the device that have more than one mate: the others. */
	struct acc_shared_texts {
		uint32_t a, b, nth; /* nth: which it is of the mates of a */
	} * share;
	uint32_t nshare;
	size_t share_cap;
};

void acc_scratch_free(struct acc_scratch *s);
/* Item a of the device also belongs to item b of the bench. */
int acc_share(struct acc_scratch *s, uint32_t a, uint32_t b, uint32_t nth, struct acc_err *e);

/* By enum acc_align_how. */
extern const struct acc_how {
	const char *how;
	double sure;
} acc_item_hows[ACC_HOW_N];

extern const struct acc_aligner acc_aligner_name;

/* --- what records look like --- */
void acc_names_release(struct acc_names *t);
/* Of "Module.module.h.0.attn.GPTAttention.forward.0" the path, module.h.0.attn, and its class. */
struct acc_str acc_module_split(struct acc_str s, struct acc_str *class);
/* A path without the names of wrappers that stand before it: h.0.attn. */
struct acc_str acc_module_strip(struct acc_str path);
/* The hash of such a path. The last word belongs to it (weight) unless it is a class (Linear). */
uint64_t acc_path_hash(struct acc_str s);
/* Is it a module or a parameter, not a call of an operator? */
bool acc_op_is_named(const struct acc_align_call *op);
/* Does it belong to no pass: a weight, a batch, the content of a file? */
bool acc_op_is_loose(const struct acc_align_call *op);
/* acc_item.position of an io and a position. */
uint64_t acc_position(struct acc_str io, struct acc_str pos);
uint64_t acc_hash_pair(uint64_t a, uint64_t b);
void acc_align_read_item(struct acc_align_item *it, const struct acc_seen *r);
int acc_align_read_op(struct acc_half *h, struct acc_align_call *op, const struct acc_seen *r,
	struct acc_str key, struct acc_err *e);
/* The text of a field, or an empty string. */
struct acc_str acc_align_read_text(const struct acc_val *v);

/* The places in the source from which operators are called, one table for each side. */
struct acc_sites *acc_sites_new(struct acc_err *e);
void acc_sites_free(struct acc_sites *s);
int acc_sites_add(struct acc_sites *s, const struct acc_rec *stack, struct acc_err *e);
uint32_t acc_sites_count(const struct acc_sites *s);
/* By the id of a stack record; ACC_NOMATE where it is unknown or has no frame of the model. */
uint32_t acc_sites_find(const struct acc_sites *s, struct acc_str id);
uint64_t acc_site_hash(const struct acc_sites *s, uint32_t site);
/* Of the line of code alone that calls it, and the function in which that stands. */
uint64_t acc_site_line(const struct acc_sites *s, uint32_t site);
/* How alike two places are: 1 the same code all the way, about 0 or below: nothing in common. */
double acc_sites_like(const struct acc_sites *a, uint32_t x, const struct acc_sites *b, uint32_t y);

/* --- what the user says --- */
/* Other names for what the device has; before anything is paired. */
int acc_maps_names(struct acc_maps *ru, struct acc_half *a, struct acc_err *e);
/* Op calls of which a data mapping says that they belong together; before and after the way of
 * pairing, `items` after. */
int acc_maps_rows(struct acc_maps *ru, struct acc_joined *j, bool items, struct acc_err *e);

/* The text under the rules for modules and parameters: 1 if it has changed, in mem. */
int acc_maps_path(struct acc_maps *ru, struct acc_str *text, struct acc_arena *mem,
	struct acc_err *e);

/* Pair what belongs to no op call, and has no partner. ru may be NULL. */
int acc_align_loose(struct acc_align *al, struct acc_joined *j, struct acc_maps *ru,
	struct acc_err *e);

/* lists.c: steps of optimizers, whose lists are divided or ordered otherwise on the two sides. */
int acc_align_lists(struct acc_align *al, struct acc_joined *j, struct acc_err *e);

/* Pair, by values before places, arrays by the names of tensors, which somebody's calls made, with the other side's
 * calls; and calls recorded by hand under names of their own. Arrays of the device get the bench's order, in `order`,
 * which is j->aop. 1; 0: this is nothing of the kind; < 0. */
int acc_arrays_pair(struct acc_joined *j, struct acc_half *a, struct acc_half *b, uint32_t *order,
	struct acc_err *e);

/* A group is done: the index of it is not needed in memory until the next use. */
void acc_align_rest(const struct acc_align *al);
/* Who goes through the op calls says so of each: what he has left behind need not stay in memory. */
void acc_align_turn(const struct acc_align *al, uint32_t *turns);
/* Join the groups of the two sides: sets mate. */
int acc_join_groups(struct acc_align *al, const struct acc_join *join, struct acc_err *e);
/* Hand out everything, in order. */
int acc_align_emit(struct acc_align *al, acc_align_fn *fn, void *arg, struct acc_err *e);

#endif
