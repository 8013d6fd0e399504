/* op.h - what is known of operators, by their names
 *
 * One catalogue for all that asks: which operators may stand for each other, what one does to
 * errors, which of its inputs are weights, what recorders leave out of it. A row is a line in
 * lib/op/catalogue; lib/op/catalogue.h says what stands in it. Names are those of records:
 * Functional.linear, Tensor.__add__, Aten.add_.Tensor, NPU.npu_rms_norm, Module.a.b.Linear,
 * Mint.add, Primitive.norm.RmsNorm.
 * Layer lib/op, on base. */
#ifndef ACC_OP_H
#define ACC_OP_H

#include "acc/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which errors an operator adds by itself. */
enum acc_op_class {
	ACC_OP_OTHER,
	ACC_OP_MOVE,   /* copies elements: view, cat, index, ... */
	ACC_OP_ADD,    /* no absolute error grows: + - neg clamp max ... of elements */
	ACC_OP_MUL,    /* no relative error grows: * / of elements */
	ACC_OP_STEADY, /* no element moves further than the inputs did, or acc_op_slope times as far:
	                  * mean, max, tanh, gelu, ... */
	ACC_OP_CONTRACT, /* products summed up: matmul, linear, conv, ... */
	ACC_OP_ATTEND,   /* products, and softmax between them: attention in one call */
	ACC_OP_RANDOM,   /* draws numbers: dropout, rand, ... */
	ACC_OP_ALLOC     /* leaves its output uninitialised: empty, ... */
};

/* Whose terms may cancel? */
enum acc_op_sums { ACC_NO_SUM, ACC_MEAN, ACC_SUM };

/* What becomes of a small error of an input where the slope is not bounded by what the result is
 * relative to. */
enum acc_op_response {
	ACC_OP_EVEN,     /* of its size */
	ACC_OP_ROOT,     /* of its root: near zero the slope has no bound */
	ACC_OP_EXPONENT, /* an absolute error becomes a relative one, or that of an angle */
	ACC_OP_SOFTMAX,  /* the same; backwards, what all elements have in common is taken off */
	ACC_OP_LOGITS, /* backwards, an absolute error of what came forward becomes a relative one */
	ACC_OP_DEVIATION, /* backwards, that of what is divided by the deviation of a channel */
	ACC_OP_KINK,      /* of its size; backwards, a few elements go another way */
	ACC_OP_KINK_ROWS  /* the same, but whole rows do */
};

enum acc_op_flag {
	ACC_OP_WEIGHTS =
		1, /* its second and later inputs are weights; of ATTEND, those behind the third */
	ACC_OP_INPLACE = 2,   /* writes to an input, although its name does not end in _ */
	ACC_OP_KEYWORDS = 4,  /* often given keywords that change the result */
	ACC_OP_NUMBERS = 8,   /* as a module or primitive, it has numbers that change the result */
	ACC_OP_HANDS_ON = 16, /* may hand its input on as it is, untouched */
	ACC_OP_FILLS = 32,    /* its first argument is no input, but what it fills */
	ACC_OP_TALKS = 64     /* takes part in what other ranks do at the same time */
};

struct acc_op_info {
	const char *names; /* separated by blanks; its own first */
	const char *family;
	enum acc_op_class cls;
	unsigned flags; /* of enum acc_op_flag */
};

/* The row of an operator; NULL: unknown. */
const struct acc_op_info *acc_op_info_of(struct acc_str op);
/* All rows, one after another; NULL at the end. */
const struct acc_op_info *acc_op_info_at(size_t i);
/* Its first name. */
struct acc_str acc_op_own_name(const struct acc_op_info *o);

/* The operator's name alone, a part of op: without its namespace, path and overload, and without
 * underscores around it: __add__ and add_ are add. But __rand__, which is no rand, keeps them, as
 * the catalogue has it. */
struct acc_str acc_op_name(struct acc_str op);
/* Is it the call of a module (Module.a.b.Linear, Cell.a.b.Dense)? */
bool acc_op_is_module(struct acc_str op);
/* Equal for operators of one family; of what is unknown, for those of one name. */
uint64_t acc_op_family(struct acc_str op);
/* May the calls that make up an operator of the one family end in one of the other, a linear layer
 * in the addition of its bias? 0: no; 1: that is how most do; above: some do. Families as
 * acc_op_family has them. */
unsigned acc_op_ends_in(uint64_t whole, uint64_t last);
/* The rows that say so, families both; NULL at the end. */
struct acc_op_whole {
	const char *whole, *ends; /* ends: separated by blanks, the usual one first */
};
const struct acc_op_whole *acc_op_whole_at(size_t i);
/* Of a module, whose name is the user's, only that it sums up products is believed. */
enum acc_op_class acc_op_class(struct acc_str op);
/* Does it sum up its first input, or take the mean of it? By its family. */
enum acc_op_sums acc_op_sums(struct acc_str op);
/* By its family. */
enum acc_op_response acc_op_response(struct acc_str op);
/* How far an element of a STEADY one moves at most, times what its inputs did; of others 1. By its
 * family. */
double acc_op_slope(struct acc_str op);
/* Does it find places by rank (sort, topk, argmax, max along an axis, max_pool with indices), of which
 * near-equal values have several? By its family. */
bool acc_op_ranks(struct acc_str op);
/* How often it rounds where every step of its formula rounds to the dtype; 1 for what is one step,
 * or unknown. By its family. */
unsigned acc_op_steps(struct acc_str op);
/* Two names of one operator: Tensor.__matmul__ and Torch.matmul? */
bool acc_op_same(struct acc_str a, struct acc_str b);
/* Does it send to other ranks, or take from them: a function of torch.distributed, a primitive of
 * MindSpore's communication, a kernel that joins a product with its communication? */
bool acc_op_talks(struct acc_str op);
/* Does it send to one other rank, or take from one? */
bool acc_op_hands(struct acc_str op);
/* Is the content of an argument at this position (0, 0.3, output_tensor) no input? It is only there to be filled,
 * as the buffers that torch.distributed's functions receive into, and what fill_ or copy_ writes to; or nothing but
 * its form is looked at, as stride, size and zeros_like do. */
bool acc_op_fills(struct acc_str op, struct acc_str pos);
/* May acc_op_fills, acc_op_is_early or acc_op_is_filled_later say so of any of its arguments? */
bool acc_op_may_fill(struct acc_str op);
/* Is its output recorded before it is there? batch_isend_irecv gives the buffers that others fill while it is
 * waited for. */
bool acc_op_is_early(struct acc_str op);
/* Is what stands at this position, of its inputs as of its outputs, there for others to fill? FSDP2's
 * all_gather_copy_in writes this rank's part of it. */
bool acc_op_is_filled_later(struct acc_str op, struct acc_str pos);
/* Does it write to elements of its first argument that others tell, and leave the rest (__setitem__, index_copy_,
 * scatter_)? What it held before may never have been written, and is no input where nothing of it is left. */
bool acc_op_writes_partly(struct acc_str op);
/* Does it write to its first argument, by its row or by the spelling of its name (add_)? */
bool acc_op_in_place(struct acc_str op);
/* Has it an argument `inplace`, with which it does? */
bool acc_op_may_write(struct acc_str op);

/* --- kernels of MindSpore, whose dumps hold attributes as inputs --- */
/* What a kernel takes at a slot: a tensor (type 0; many: one or more), or an attribute of this name. Type:
 * b a Bool, f a float, i an integer, n a number, c a number that may be an operand, I integers, A an axis or several,
 * r how a loss is reduced, k a share that is kept, ! a tensor that is written over (its name is the number of the
 * output that stands for it), = none: what the kernel always does, NAME=TEXT. */
struct acc_kernel_slot {
	struct acc_str name;
	char type;
	bool many;
};
/* Has this kernel attributes that are dumped? */
bool acc_kernel_known(struct acc_str type);
/* What it takes, given what was dumped: a letter a slot, b, f, i of one element, I of a short list of integers,
 * t of what can only be a tensor. To be read by acc_kernel_word; NULL: not known so. */
const char *acc_kernel_slots(struct acc_str type, const char *kinds);
/* The next slot of *p; false at the end. */
bool acc_kernel_word(const char **p, struct acc_kernel_slot *out);
/* Where torch's function has what a call has at this place: MindSpore's primitives, as msprobe names them
 * (Primitive.norm.LayerNorm), take some tensors in another order. Else pos as it is. */
struct acc_str acc_op_torch_place(struct acc_str op, struct acc_str pos);
/* What an argument is of torch's function of an operator's family where it is not given; empty: not known. */
struct acc_str acc_op_default(struct acc_str op, struct acc_str name);
/* Does this argument of an operator show in nothing that it gives, but in the statistics that it writes? */
bool acc_op_writes_later(struct acc_str op, struct acc_str pos);

#ifdef __cplusplus
}
#endif

#endif
