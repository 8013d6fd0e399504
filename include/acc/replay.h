/* replay.h - is the recorded output of an operator right for its recorded inputs?
 *
 * A call is recomputed in double from what was recorded of it: forward by evaluating it,
 * backward by the adjoint test, which needs no formula of the gradient: for any change v of an
 * input, <g_in, v> = <g_out, J v>, where J v is what the same evaluation says about v.
 *
 * An operator is one row of a table, in a file of its family in lib/replay/op, and one function that
 * evaluates it; what else is known of it stands in the catalogue (acc/op.h). How a row says what its arguments are called, and what its gradient's structure
 * is, stands at struct acc_op. What cannot be understood is never good: eval then calls
 * acc_cannot, and the call is not audited.
 * Layer lib/replay, on base, stream, op, kernel, payload. */
#ifndef ACC_REPLAY_H
#define ACC_REPLAY_H

#include "acc/op.h"
#include "acc/payload.h"
#include "acc/record.h"
#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- values --- */

enum { ACC_DENSE_DIMS = 16 };

/* A tensor in row-major order without gaps, each element as a double: exact for every float and
 * for integers up to 2^53. Of complex ones v has what is real, and z the parts: operators that know z are audited. */
struct acc_dense {
	enum acc_dtype dtype; /* what the operator saw, whatever the payload holds */
	uint32_t ndim;
	int64_t shape[ACC_DENSE_DIMS];
	size_t n;  /* elements */
	double *v; /* NULL in an argument: recorded without data */
	double *z; /* of a complex tensor in memory: real and imaginary parts in turn; else NULL */
	/* Of outputs: room for the size of what was summed up to give each element, such as
	 * sum |terms|, in the unit of v, where that may be more than the element; 0 at first.
	 * Errors are allowed in proportion. NULL where nobody wants to know. */
	double *mag;
};

enum acc_value_type {
	ACC_A_NONE, /* None */
	ACC_A_TENSOR,
	ACC_A_INT,
	ACC_A_FLOAT,
	ACC_A_BOOL,
	ACC_A_TEXT,  /* a str, or a torch.dtype, a torch.device: see `s` */
	ACC_A_LIST,  /* list, tuple, torch.Size: in order */
	ACC_A_SLICE, /* three items, each None or an int */
	ACC_A_ELLIPSIS,
	ACC_A_OPAQUE /* there was something, and nobody knows what; `s`: the text of a list that is none of integers */
};

/* An argument as it was recorded. */
struct acc_value {
	enum acc_value_type type;
	struct acc_str name; /* of a keyword or parameter; empty: positional */
	union {
		struct acc_dense *t;
		int64_t i;
		double f;
		bool b;
		struct acc_str s;
		struct { /* LIST, SLICE */
			struct acc_value *item;
			uint32_t n;
		};
	};
};

/* Parse a record's `type` and `value` (of kind arg) into *out; strings are borrowed from r, lists
 * go to mem. Anything not understood becomes ACC_A_OPAQUE. 0 or ACC_ENOMEM. */
int acc_value_parse(struct acc_arena *mem, const struct acc_rec *r, struct acc_value *out);

/* --- a call that is being replayed --- */

/* Which way an input goes, and how each number on the way is rounded: see ACC_TANGENT. */
struct acc_tangent {
	const double *of, *along; /* the input's elements; how they change */
	double unit;   /* each number on the way is off by so much of itself, either way; or 0 */
	uint64_t seed; /* which of them which way */
	double sums;   /* set: of so many sums that are rounded is the gradient of a weight */
};

struct acc_replay {
	const struct acc_op *op;
	struct acc_str name;            /* the operator's name alone, e.g. __add__ is add */
	const struct acc_op_info *info; /* its row in the catalogue; NULL: none */
	bool module;          /* recorded by the module: weights are parameters, numbers unknown */
	struct acc_value *in; /* positional, in order; a hole is ACC_A_OPAQUE */
	struct acc_value *kw; /* keywords and parameters */
	uint32_t nin, nkw;
	const struct acc_dense *rec; /* the outputs as recorded, in order; v may be NULL */
	uint32_t nrec;
	/* The evaluation is for the gradient by :move, or of what is added to a product: what gets
	 * no gradient (the padding of an embedding) must not depend on the input then. */
	bool gradient;
	const double *marked; /* by :move, the elements that stand where marks are now; or NULL */
	bool rounds;          /* magnitudes hold what is rounded to the result's dtype on the way */
	bool stepwise; /* each of its steps is an op call of its own, that rounds to the dtype it writes */
	/* Room for as many numbers as the first output has elements, or NULL: the logarithm of what softmax divided
	 * each by. */
	double *divided;
	struct acc_tangent *tangent; /* what is wanted is how the outputs change; or NULL */
	double guess; /* a number that was not recorded, as an evaluation found it; or 0 */
	/* If not NULL, nothing is evaluated: only where elements would be is noted. */
	struct acc_notes *notes;
	struct acc_memos *memos; /* values of earlier calls; or NULL */
	struct acc_arena *mem;   /* for one evaluation */
	const char *why;         /* set by acc_cannot */
};

/* "Not audited: why" (a literal, or in r->mem). Returns ACC_EUNSUP. */
int acc_cannot(struct acc_replay *r, const char *why);

/* An argument by its name in the row's signature: the keyword of that name, or what stands at its
 * position. NULL where it was not given or is None. */
const struct acc_value *acc_arg(const struct acc_replay *r, const char *name);
/* As one type. *out is untouched and 0 is returned where the argument is absent; 1 where it was
 * read; < 0 (with acc_cannot) where it is something else. A float is no int; an int or bool is a
 * float; a 0-d or one-element tensor is a number. */
int acc_arg_int(struct acc_replay *r, const char *name, int64_t *out);
int acc_arg_float(struct acc_replay *r, const char *name, double *out);
int acc_arg_bool(struct acc_replay *r, const char *name, bool *out);
int acc_arg_text(struct acc_replay *r, const char *name, struct acc_str *out);
/* A tensor with data; one that must be there: absent is < 0, with acc_cannot. */
int acc_arg_tensor(struct acc_replay *r, const char *name, const struct acc_dense **out);
int acc_need_tensor(struct acc_replay *r, const char *name, const struct acc_dense **out);
/* A list of ints, or one int as a list of one; a '*' argument: all that stand there. *n is how
 * many; at most max, more is < 0. */
int acc_arg_ints(struct acc_replay *r, const char *name, int64_t *out, uint32_t max, uint32_t *n);
/* A dimension of a tensor of ndim, brought into 0..ndim-1 (of a scalar: 0); dflt where absent. */
int acc_arg_dim(struct acc_replay *r, const char *name, uint32_t ndim, int64_t dflt, uint32_t *out);

/* The shape that out must have for this result: else acc_cannot ("the recorded output has another
 * shape"). */
int acc_out_shape(struct acc_replay *r, const struct acc_dense *out, const int64_t *shape,
	uint32_t ndim);
/* n doubles that live as long as the evaluation, not initialised. NULL: return acc_cannot's. */
double *acc_doubles(struct acc_replay *r, size_t n);

/* --- broadcasting --- */

/* Walks the elements of an output and what they take from inputs that are broadcast to its shape:
 * at[k] is the element of input k. */
enum { ACC_BROADCAST_MAX = 4 };
struct acc_broadcast {
	uint32_t ndim, nin;
	int64_t shape[ACC_DENSE_DIMS];
	int64_t step[ACC_BROADCAST_MAX][ACC_DENSE_DIMS];
	int64_t idx[ACC_DENSE_DIMS];
	size_t at[ACC_BROADCAST_MAX];
	uint32_t lead;                   /* of runs: dimensions before them */
	uint8_t each[ACC_BROADCAST_MAX]; /* 1: as many elements as the run; 0: one for all of it */
};
/* false: they cannot be broadcast to that shape. */
bool acc_broadcast_start(struct acc_broadcast *b, const int64_t *shape, uint32_t ndim,
	const struct acc_dense *const *in, uint32_t nin);
/* The same where out must have the shape that broadcasting gives; < 0 with acc_cannot. */
int acc_broadcast_exact(struct acc_replay *r, struct acc_broadcast *b, const struct acc_dense *out,
	const struct acc_dense *const *in, uint32_t nin);
void acc_broadcast_next(struct acc_broadcast *b);
/* Instead: runs of elements, in each of which an input has one element for each, or one for all.
 * The length of a run; and on to the next one. */
size_t acc_broadcast_run(struct acc_broadcast *b);
void acc_broadcast_skip(struct acc_broadcast *b);

/* --- a row of the table --- */

/* Which errors a right implementation may have; see limits in lib/replay/limit.c. */
enum acc_rounding {
	ACC_EXACT, /* elements are copied, or integers and bools come out: no error at all */
	ACC_ONCE,  /* the exact result, rounded: + - * / of elements, a cast */
	ACC_FEW    /* several roundings on the way, or sums: everything else */
};

enum acc_op_flags {
	/* The gradient is computed from the recorded output rather than the input (tanh). */
	ACC_SAVES_OUTPUT = 1,
	/* J v changes with the input at a scale of 1 whatever the input's size (exp, softmax), not
	 * at the scale of the input (a norm). */
	ACC_UNIT_SCALE = 2,
	/* Its backward is not audited: the recorded inputs do not tell (batch statistics). */
	ACC_NO_BACKWARD = 4,
	/* It is several operators in turn, each of which rounds what it gives. */
	ACC_IN_STEPS = 8,
	/* The magnitudes that it tells are those of its steps, no more: in 16 bits they say what
	 * rounding each step errs by. */
	ACC_TELLS_STEPS = 16,
	/* It, or its slope, has no bound towards 1 (log(1 - x), atanh, asin): there it changes at the scale of
	 * 1 - |x|, and a slope by point is divided by what is left of 1 - x^2. */
	ACC_UNTIL_ONE = 32,
	/* As ACC_SAVES_OUTPUT, but the exponential of the output, 1 at most (log_softmax). */
	ACC_SAVES_LOG = 64,
	/* Each element of its input `var`, a variance, is its own scale. */
	ACC_OWN_SCALE = 128,
	/* A loss, whose gradient is a probability less what was wanted: each row's is off by what a number near 1
	 * was rounded by, though it may be next to nothing. */
	ACC_LESS_TARGET = 256,
	/* It divides by the length of a row of its input: a step of the adjoint test that is small beside all rows
	 * is not beside one that is next to nothing. */
	ACC_BY_LENGTH = 512,
	/* A product whose parts, by place of a kernel, may be rounded to 16 bits before they are added up. */
	ACC_SUMS_PARTS = 1024,
	/* Its gradient is of numbers less their mean, which may be rounded first: much where it is large beside them. */
	ACC_LESS_MEAN = 2048,
	/* It makes steps (fmod): where one lies within the rounding of its inputs, its gradient is that of either side. */
	ACC_STEPS = 8192,
	/* It takes elements by an index, or has a weight that all rows take: that gradient may be added up where it
	 * is, one row after the other. */
	ACC_GATHERS = 16384,
	ACC_PERIODIC = 32768,
	/* Its gradient subtracts that of a softmax's sum, made of the output as it was rounded. */
	ACC_LESS_SUM = 65536,
	/* Where its result is NaN by arithmetic, no library has a number, whatever went in (of relu, the largest of
	 * several, a softmax some do). */
	ACC_KEEPS_NAN = 131072,
	/* It tells itself, by r->tangent, how its outputs change, also where it rounds on the way: of slopes that are
	 * made of what was rounded nobody else knows what is left of them. */
	ACC_TANGENT = 262144,
	/* Its magnitudes hold what each of its steps rounds, forward: in 16 bits, what is beyond is no such rounding. */
	ACC_EVERY_STEP = 524288,
	/* It takes complex numbers, or gives them: each such tensor is that of its parts, in a last dimension of 2. */
	ACC_COMPLEX = 1048576
};

/* An element's place, taken apart as ((a * B) + b) * C + c: what is `in` the block number. */
struct acc_blocks {
	size_t a, b, c;        /* sizes A, B, C; their product is the tensor's n */
	bool by_a, by_b, by_c; /* which of the three tell blocks apart */
};

/* A sum of products, for all operators that are linear in each of two inputs:
 *
 *	out[ob[b] + om[i] + on[j]] = alpha * sum_k x[xb[b] + xm[i] + xk[k]] * y[yb[b] + yk[k] + yn[j]]
 *	                             + beta * bias[bb[b] + bm[i] + bn[j]]
 *
 * with b < nb, i < m, j < n, k < nk. The tables of offsets make it serve matmul with broadcasting,
 * einsum and (with a padded copy of the image) convolution. Every element of out occurs once. */
struct acc_product {
	const double *x, *y;
	size_t nx, ny; /* elements behind x and y */
	size_t nb, m, n, nk;
	const size_t *ob, *om, *on, *xb, *xm, *xk, *yb, *yk, *yn;
	double alpha, beta; /* 1 at first */
	const double *bias; /* or NULL */
	const size_t *bb, *bm, *bn;
	/* Where x is a padded copy: the argument's elements, and which of them each element of x is,
	 * SIZE_MAX for padding; NULL: x is the argument itself, as y is. */
	const double *xsrc;
	const size_t *xfrom;
};

/* How a call may be cut into parts that do not depend on each other, from the shapes alone. Inputs
 * lie to the outputs as in broadcasting, aligned at their last dimensions, if nothing else is said;
 * where an input has the size of the output, it is cut with it, where it has 1 or lacks the
 * dimension, all parts see the same of it. */
struct acc_cut {
	uint32_t
		lead; /* so many leading dimensions of the outputs are cut; all outputs have them */
	const char *
		left; /* names (the first of a word of `sig`) of inputs that begin with these, too */
	const char *whole; /* and of those that each part needs whole */
	double work;       /* nanoseconds for an element of the output; 0: as usual for its class */
};
/* Along every dimension: functions of elements. */
int acc_cut_point(struct acc_replay *r, struct acc_cut *c);

/* The slope of an output element y along the element x of the input of this name. */
struct acc_steep {
	const char *name;
	double x, y, slope;
};

struct acc_op {
	/* Names, separated by blanks, as acc_op_name gives them. An operator's own name in the
	 * catalogue stands for all names that are listed there beside it. Modules, primitives and
	 * torch_npu's operators are not, since their signatures are their own: they stand here,
	 * if it is this one: "linear npu_linear Linear". */
	const char *names;
	/* What its arguments are called, in the order of its positions, separated by blanks.
	 * "a|b": it goes by both names. "*shape" takes this position and all behind it. "x:MODE"
	 * is an input with a gradient, and how the outputs depend on it:
	 *   x:point  each output element on one element of x at most, the one at its place after
	 *            broadcasting x to the output's shape (gelu, clamp)
	 *   x:linear as point, and it is linear in x (+, *, the weight of a norm)
	 *   x:flat   as point, and its gradient is 0 wherever it has one (floor)
	 *   x:same   as point, and its gradient is that of the output (frac)
	 *   x:move   the outputs are elements of x, put elsewhere or dropped, or constants
	 *   x:block  block k of the outputs on block k of x only, see `blocks`
	 *   x:pick   the outputs are elements of x, and their values say which (max); see `pick`
	 *   x:any    in some way
	 *   x:prod   a product; `product` says which
	 * A list of tensors (cat) has one mode for all. */
	const char *sig;
	/* With a tensor as its second argument it is this operator: max(a, b) is maximum. Or NULL. */
	const char *of_two;
	const char *of_one; /* and with one argument alone: where(condition) is nonzero. Or NULL. */
	const struct acc_op *of_others;  /* and of other than two tensors, in any place. Or NULL. */
	const struct acc_op *of_complex; /* and of a complex first argument. Or NULL. */
	const char
		*cls; /* operators whose usual errors are alike: product, norm, activation, ... */
	enum acc_rounding rounding;
	unsigned flags;
	/* Evaluate: fill out[k].v (and .mag), whose dtype, shape and n are those of the recorded
	 * outputs; check them with acc_out_shape. Reads nothing but r's arguments; the same call
	 * is evaluated again with changed inputs. 0, or what acc_cannot returned. */
	int (*eval)(struct acc_replay *r, struct acc_dense *out);
	int which; /* for families that share an eval */
	/* By point and not linear: how large the numbers are, in units of the slope's gradient, that a slope is
	 * made of and that frameworks round each, INFINITY: nobody knows; NULL: as the slope itself. */
	double (*terms)(struct acc_replay *r, const struct acc_steep *at);
	/* For :block, the blocks of the input of this name and of the outputs; NULL: rows along the
	 * last dimension on both sides. */
	int (*blocks)(struct acc_replay *r, const char *name, struct acc_blocks *in,
		struct acc_blocks *out);
	/* For :pick: from[o] is the element of the input of this name that element o of output k
	 * is, SIZE_MAX: none. unsure[i] (false at first): the gradient of element i depends on
	 * how ties are broken. */
	int (*pick)(struct acc_replay *r, const char *name, uint32_t k, size_t *from, bool *unsure);
	/* Instead of eval, for products: fill *p; p->bias may be left NULL. Called with out[0] as
	 * recorded. */
	int (*product)(struct acc_replay *r, const struct acc_dense *out, struct acc_product *p);
	/* `product` looks at shapes only: elements are read as they are needed. */
	bool streams;
	/* Its outputs are its inputs' elements, elsewhere: eval says where through lib/replay/view.h,
	 * or calls acc_cannot where r->notes is there and it looks at elements. */
	bool views;
	bool rows; /* row input[i] of weight (or the other way round), as embedding has them */
	/* How a large call is cut; NULL: it is not. Looks at shapes only. 0, or what acc_cannot
	 * returned. */
	int (*cut)(struct acc_replay *r, struct acc_cut *c);
};

/* The row of an operator by the `op` of a record, such as Functional.linear; NULL: unknown. */
const struct acc_op *acc_op_find(struct acc_str op);
/* All rows, one after another; NULL at the end. */
const struct acc_op *acc_op_row(size_t i);
/* The numbers that decide: accaudit --limits. */
extern const struct acc_limit acc_audit_limits[];
extern const size_t acc_naudit_limits;
/* The audit.cause of an output that only steps rounded to 16 bits explain. */
extern const char acc_audit_rough[];
/* Add all names that a row evaluates, separated by blanks. 0 or ACC_ENOMEM. */
int acc_op_all_names(const struct acc_op *op, struct acc_buf *out);

/* --- the filter --- */

struct acc_audit;
struct acc_audit_opt {
	unsigned threads; /* 0: one per CPU */
	const char *tmpdir;
	bool all; /* look at every part of a large call, whatever it takes */
	/* Calls whose tensors need more than this at a time, as doubles, are not audited; 0: all
	 * are. */
	uint64_t room;
	/* There is a bench beside it: what all f32 calls of a class do, other than products, is then
	 * no usual error of this device if it is far beyond rounding, but another function. */
	bool compared;
	/* Of each rule over ranks, an enum acc_rule_use of acc/ranks.h; NULL: all as they are. The caller's. */
	const uint8_t *rule_use;
	const struct acc_profile *usual; /* by which limits are raised; or NULL */
	struct acc_profile *learn;       /* what is found is noted here; or NULL */
};

/* How far off right kernels of a framework are, of each operator by pass and dtype. Lines
 * "OP<tab>PASS<tab>DTYPE<tab>RMS<tab>MAX<tab>OUTPUTS"; `path` is for messages. 0 or < 0. */
struct acc_profile *acc_profile_new(struct acc_err *e);
void acc_profile_free(struct acc_profile *p);
int acc_profile_read(struct acc_profile *p, const char *text, size_t n, const char *path,
	struct acc_err *e);
/* Of what was noted, that which is near its limit or beyond. */
int acc_profile_text(const struct acc_profile *p, struct acc_buf *out);

typedef int acc_audit_emit_fn(void *arg, struct acc_rec *r);
typedef void acc_audit_trouble_fn(void *arg, const struct acc_err *e);
/* `roots` stays the caller's, and must live as long. */
struct acc_audit *acc_audit_open(struct acc_roots *roots, const struct acc_audit_opt *opt,
	acc_audit_emit_fn *emit, acc_audit_trouble_fn *trouble, void *arg, struct acc_err *e);
/* Take a record; all come out in acc_audit_end. */
int acc_audit_put(struct acc_audit *a, const struct acc_rec *r, struct acc_err *e);
int acc_audit_end(struct acc_audit *a, struct acc_err *e);
void acc_audit_close(struct acc_audit *a);

#ifdef __cplusplus
}
#endif

#endif
