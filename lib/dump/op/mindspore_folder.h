/* mindspore_folder.h - one folder of a MindSpore dump, while it is read */
#ifndef DUMP_MINDSPORE_FOLDER_H
#define DUMP_MINDSPORE_FOLDER_H

#include "acc/tensor.h"
#include "dump/op/mindspore.h"

/* In the order in which an op call's records stand. */
enum ms_kind {
	MS_ARGS,   /* {type}.{op}.json: attributes */
	MS_TENSOR, /* one tensor: a .npy file, a row of statistic.csv, or both */
	MS_ALL,    /* all tensors of an op call, as DumpData */
	MS_DEBUG,  /* what the device said of an overflow */
	MS_LOOSE   /* a .npy file that belongs to no op call */
};

struct ms_tensor {
	enum ms_kind kind;
	const struct ms_name *n; /* NULL: MS_LOOSE */
	struct acc_str name;     /* of the file, without its extension; empty: there is none */
	const char *file;        /* NULL: only a row */
	uint32_t row;            /* of the sheet; UINT32_MAX: none */
	uint32_t at, op, times;  /* in the listing; which operator; how often it ran before */
};

struct ms_call {
	uint32_t first, n, at, times, place;
	int64_t time;
	bool loose;
	struct acc_str scoped; /* its name in the order of execution, or empty */
};

/* The shape that a call's inputs of as many elements have. */
struct ms_view {
	int64_t shape[ACC_MAXDIM];
	uint32_t ndim;
	int gone;          /* the axis that is summed up, whose length is what is left; -1: none */
	bool known, first; /* of the first input alone */
};

struct ms_folder {
	struct acc_dump_ctx *c;
	int dirfd;
	const char *dir;
	struct dump_said said;
	const struct ms_order *order; /* or NULL */
	struct ms_count *count;
	struct ms_sheet sheet;
	struct acc_map mapped;  /* name of a file -> pointer to the name it stands for */
	struct acc_buf tensors; /* of struct ms_tensor */
	size_t files;
	bool timed;
	bool cpu;                /* as far as is known */
	unsigned cast;           /* of which bodies it was said: 1 of 32 bits for 16, 2 for 64 */
	struct ms_tensor *first; /* tensors, by op call */
	struct ms_call *calls;   /* in their order */
	size_t ncalls;
	struct ms_view view;       /* of the call whose records are put */
	struct acc_map made;       /* the numbers that kernels gave so far */
	struct acc_arena mem, one; /* of all; of one record */
};
static inline struct ms_tensor *
ms_tensors(const struct ms_folder *f)
{
	return (struct ms_tensor *)(void *)f->tensors.p;
}
static inline size_t
ms_ntensors(const struct ms_folder *f)
{
	return f->tensors.n / sizeof(struct ms_tensor);
}
/* An input of a kernel that is an attribute of it. */
struct ms_attr {
	struct acc_str name; /* empty: it is a tensor */
	const char *type;    /* bool, float, int, list, str */
	int64_t ints[16];
	double f;
	uint32_t n;
	char kind;           /* see acc_kernel_slots */
	bool operand;        /* its name is its place */
	bool written, apart; /* the kernel writes over it; it is of no op call */
	bool result;         /* it is output ints[0] */
};
/* One for each tensor of the call, in f->one; NULL: none of them is one. 0 or ACC_ENOMEM. */
int acc_ms_attrs(struct ms_folder *f, const struct ms_call *c, struct ms_attr **out);
/* What a kernel always does, as the argument that it would be; false: nothing is known. */
bool acc_ms_implied(struct acc_str type, struct acc_str *name, struct acc_str *text);
/* Note the number that a kernel gave, in a small file. 0 or ACC_ENOMEM. */
int acc_ms_made(struct ms_folder *f, const char *file);
/* Find the shape that a call's inputs have, in f->view; attr: what acc_ms_attrs found. */
void acc_ms_view(struct ms_folder *f, const struct ms_call *c, const struct ms_attr *attr);
/* A tensor in the shape in which its call takes it. */
void acc_ms_view_put(const struct ms_folder *f, const struct ms_tensor *t, struct acc_ref *ref);
struct acc_val acc_ms_attr_value(const struct ms_attr *a);
/* Hand all of it on. */
int acc_ms_put(struct ms_folder *f, const struct ms_place *p, struct acc_err *e);

#endif
