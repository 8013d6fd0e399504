/* mindspore.h - what the files of the reader of MindSpore's dumps share */
#ifndef DUMP_MINDSPORE_H
#define DUMP_MINDSPORE_H

#include "acc/file.h"
#include "dump/say.h"

/* The name of a file of one kernel's tensor, or of all its tensors; or a row of statistic.csv:
 *
 *	Conv2D.Default_conv1-Conv2d_Conv2D-op3.0.2.1733905446819790.input.0.NCHW.float16
 *
 * type, op, task, stream, time, io, slot, format, dtype. Millions of rows are kept. */
struct ms_name {
	struct acc_str type, op;
	struct acc_str format, dtype;
	int64_t time;               /* microseconds; -1: not said */
	int32_t task, stream, slot; /* -1: not said */
	char io;                    /* i, o; 0: a file of all tensors */
};
/* Take a name without its extension apart; false if it is none of these. */
bool acc_ms_name(struct acc_str name, struct ms_name *out);
/* A name of a file without an extension, or with .bin. */
bool acc_ms_name_all(struct acc_str name, struct ms_name *out);

/* One statistic.csv. */
struct ms_row {
	struct ms_name n;
	const int64_t *shape;
	struct ms_value *val; /* of the sheet's statistics */
	uint8_t ndim;
	bool empty;
};
struct ms_value {
	union {
		double f;
		int64_t i;
		const char *text;
	};
	enum acc_type type; /* BIN: absent */
};
struct ms_sheet {
	const char *key[32]; /* stat.max, ... */
	uint32_t nkey;
	struct ms_row *row;
	size_t n, cap;
	bool sums;   /* there are checksums, */
	bool others; /* and other statistics */
};
/* All rows, in m but for s->row. Bad rows are troubles. 0 or < 0. */
int acc_ms_sheet(struct ms_sheet *s, struct acc_bytes *b, struct acc_arena *m,
	struct dump_said *said, struct acc_dump_ctx *c, struct acc_err *e);
/* Is it the head of one? */
bool acc_ms_is_sheet(const uint8_t *p, size_t n);

/* ms_execution_order_graph_N.csv: the scoped names of kernels, in the order in which they ran. */
struct ms_order {
	struct acc_map at; /* the name as files have it -> index of name[] */
	struct acc_str *name;
	size_t n, cap;
	struct acc_arena mem;
};
int acc_ms_order(struct ms_order *o, struct acc_bytes *b, struct acc_err *e);
void acc_ms_order_release(struct ms_order *o);

/* A folder that holds the tensors of one iteration of one graph. */
struct ms_place {
	const char *path;             /* beneath the root */
	int64_t step, rank, graph;    /* -1: unknown */
	int64_t time;                 /* of its first tensor; INT64_MAX: unknown */
	const struct ms_order *order; /* NULL: unknown */
	uint32_t runs;                /* how often the iteration ran, as far as is said */
	const char *device;           /* npu, cuda, cpu; NULL: unknown */
};
/* How often kernels of a type have run in this step so far. */
struct ms_count {
	struct acc_map of;
};
int acc_ms_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const struct ms_place *p,
	struct ms_count *count, struct acc_err *e);
/* The time of the first tensor in it; INT64_MAX where none has one. */
int acc_ms_first_time(int dirfd, int64_t *first, struct acc_err *e);

#endif
