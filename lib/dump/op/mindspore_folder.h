/* mindspore_folder.h - one folder of a MindSpore dump, while it is read */
#ifndef DUMP_MINDSPORE_FOLDER_H
#define DUMP_MINDSPORE_FOLDER_H

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
	struct ms_tensor *first; /* tensors, by op call */
	struct ms_call *calls;   /* in their order */
	size_t ncalls;
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
/* Hand all of it on. */
int acc_ms_put(struct ms_folder *f, const struct ms_place *p, struct acc_err *e);

#endif
