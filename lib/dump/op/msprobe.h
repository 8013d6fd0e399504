/* msprobe.h - what the files of the msprobe reader share */
#ifndef DUMP_MSPROBE_H
#define DUMP_MSPROBE_H

#include "acc/dump.h"
#include "dump/jtree.h"
#include "dump/payload.h"
#include "dump/say.h"

/* From the 64-bit hash of an op call's key to a small number: 24 bytes an entry. */
struct hmap {
	uint64_t *hash; /* 0: empty */
	uint32_t *val;
	size_t n, cap;
};
/* The value's place; a new key starts at `init`, *added (may be NULL) says so. NULL when
 * memory runs out. */
uint32_t *acc_hmap_put(struct hmap *m, uint64_t hash, uint32_t init, bool *added);
void acc_hmap_release(struct hmap *m);

/* Texts that occur often, kept once and numbered. */
struct texts {
	struct acc_map at;
	struct acc_str *p;
	size_t cap;
	struct acc_arena mem;
};

/* What stack.json and construct.json say. */
struct msprobe_maps {
	struct hmap stack_of, parent_of; /* key -> index of stack, of parents.p */
	struct texts frames, parents;
	struct msprobe_stack {
		uint32_t first, n; /* in frame */
		struct acc_str id; /* once it is registered with the context */
	} * stack;
	size_t nstack, cap_stack;
	uint32_t *frame; /* indices of frames.p */
	size_t nframe, cap_frame;
	struct hmap same; /* hash of a stack's frames -> index of stack */
};
/* Read one of them; `b` is closed. What was read before a failure stays. */
int acc_msprobe_stacks(struct msprobe_maps *m, struct acc_bytes *b, struct acc_err *e);
int acc_msprobe_parents(struct msprobe_maps *m, struct acc_bytes *b, struct acc_err *e);
/* An empty string where it is unknown. */
struct acc_str acc_msprobe_parent(const struct msprobe_maps *m, struct acc_str key);
/* NULL where it is unknown. */
struct msprobe_stack *acc_msprobe_stack(const struct msprobe_maps *m, struct acc_str key);
struct acc_str acc_msprobe_stack_id(struct msprobe_maps *m, struct msprobe_stack *s,
	struct acc_dump_ctx *c);
void acc_msprobe_maps_release(struct msprobe_maps *m);

/* One dump.json that is being read. */
struct msprobe {
	struct acc_dump_ctx *c;
	const char *dir; /* its folder, for messages and as root */
	const char *file;
	int dirfd; /* < 0: no payload is looked for */
	int64_t step, rank, proc;
	struct msprobe_maps maps;
	struct hmap seen;
	struct hmap risk;     /* of a function's name, an enum of count_risk */
	uint64_t nops;        /* op calls read, */
	uint64_t napis, nlow; /* of these PyTorch's functions, and those of low risk */
	bool structure; /* the task: there are no tensors, the op calls stand in construct.json */
	bool no_folder; /* dump_tensor_data is missing, and that was said */
	struct dump_said said; /* troubles of single tensors */
	struct acc_arena mem;  /* of one op call */
	struct acc_buf path;
};
/* Report, but not without end: a copy without its tensors has thousands of them. */
void acc_msprobe_trouble(struct msprobe *m, struct acc_err *e);
/* Hand on the records of one op call, which is in m->mem. */
int acc_msprobe_op(struct msprobe *m, struct acc_str key, const struct jnode *value,
	struct acc_err *e);
/* Hand on an op call of which nothing but its name is known. */
int acc_msprobe_call(struct msprobe *m, struct acc_str key, struct acc_err *e);
/* All op calls that construct.json names, one after another; `b` is closed. */
int acc_msprobe_structure(struct msprobe *m, struct acc_bytes *b, struct acc_err *e);
/* The op call that is being walked, and its leaf that is next. */
struct msprobe_op {
	struct msprobe *m;
	struct acc_str key, pass, scope;
	struct acc_opkey parsed;
	struct msprobe_stack *stack;
	struct acc_str stack_from;
	const char *io;
	struct acc_str pos;  /* 0, 1.0, weight */
	struct acc_str path; /* key, member, pos */
};
/* What an object has that may be a leaf; NULL: it has no such member, or is none. */
struct msprobe_leaf {
	const struct jnode *whole, *type, *dtype, *shape, *max, *min, *mean, *norm, *md5, *grad,
		*data_name, *value, *format, *ranks;
};
void acc_msprobe_members(const struct jnode *n, struct msprobe_leaf *l);
/* Hand on the record of an object with a `type`, or of what stands where one should. */
int acc_msprobe_leaf(struct msprobe_op *o, const struct msprobe_leaf *leaf, struct acc_err *e);
int acc_msprobe_bare(struct msprobe_op *o, const struct jnode *n, struct acc_err *e);
/* Of so many functions, no view among them is a recording at risk level FOCUS. */
enum { FOCUS_TOLD = 200 };
/* A whole dump.json; `b` is closed. Single bad places are troubles, also a truncated end. */
int acc_msprobe_json(struct msprobe *m, struct acc_bytes *b, struct acc_err *e);
void acc_msprobe_release(struct msprobe *m);

#endif
