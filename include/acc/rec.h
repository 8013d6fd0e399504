/* rec.h - recording op calls, by any program: libaccrec
 *
 * A recording is accstream(5), which accdump-read reads as a dump:
 *
 *	struct acc_recording *r = acc_rec_open("rec", &opt, why, sizeof why);
 *	acc_rec_call(r, &call, item, nitems);     for each op call, from any thread
 *	acc_rec_step(r, 1);                       behind a training step
 *	acc_rec_close(r);
 *
 * What is recorded is copied into a queue of fixed size; a thread of the library's own computes
 * statistics and writes. A call allocates nothing, and waits only while the queue is full (or does
 * not wait: `drop`). What was written before the process dies is readable; its reader says that the
 * end is missing.
 *
 * Functions return 0, or < 0 once something could not be written (acc_rec_error says what): then
 * nothing more is recorded, and the program may go on. In a child of fork they do nothing, and return
 * ACC_REC_CHILD: only the parent records. Strings and arrays are borrowed for the call alone. All
 * may be called from several threads, but close.
 *
 * This header needs no other of acctools.
 * Layer lib/rec, on base, io, stream, kernel. */
#ifndef ACC_REC_H
#define ACC_REC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ACC_REC_API __attribute__((visibility("default")))

enum { ACC_REC_CHILD = 1, ACC_REC_MAXDIM = 64 };

/* What is kept of a tensor: its elements; their statistics as msprobe defines them (stat.max,
 * stat.min, stat.mean, stat.norm; in double, not rounded to the tensor's dtype); the CRC-32 of its
 * row-major bytes (stat.crc32); only dtype, shape and stride; or statistics and a few elements, if they
 * are not complex: the first 8 (stat.first), and the 8 of the largest magnitude, NaN and infinities before
 * all others (stat.worst), with their row-major indices (stat.worst.at). */
enum acc_rec_detail {
	ACC_REC_FULL,
	ACC_REC_STATISTICS,
	ACC_REC_HASH,
	ACC_REC_DESCRIPTION,
	ACC_REC_FEW
};

struct acc_rec_options {
	int64_t rank;        /* < 0: unknown, 0 in the name of the file */
	const char *program; /* for the head of the stream; NULL: "libaccrec" */
	const char *framework,
		*device;  /* pytorch (or with versions: "pytorch 2.15.0"), cpu ...; NULL: unknown */
	const char *task; /* what most tensors have: tensor, statistics, md5; NULL: tensor */
	size_t queue;     /* bytes; 0: 64 MiB */
	bool drop;    /* a tensor for which the queue has no room is recorded without its elements,
	                       * and with `err`; otherwise the caller waits */
	bool deflate; /* in a folder: elements are compressed, by zlib at its fastest */
};

struct acc_recording;

/* Record into a folder, which is made where it is not there: rankN.acc, and the elements in
 * rankN.stepM.data. Several ranks may share it. What is there already is not overwritten.
 * Step 0 begins. NULL: why[] (n bytes) says why. */
ACC_REC_API struct acc_recording *acc_rec_open(const char *folder,
	const struct acc_rec_options *opt, char *why, size_t n);
/* Record into one stream: a file, a pipe, a socket. fd stays the caller's. Elements of full tensors are
 * kept in memory until the end, for that is where a stream has them: for long runs, record
 * statistics or hashes, or into a folder. */
ACC_REC_API struct acc_recording *acc_rec_open_fd(int fd, const struct acc_rec_options *opt,
	char *why, size_t n);

/* An op call, or a part of one: its inputs may be recorded before it runs, its outputs after. */
struct acc_rec_call {
	const char *op;   /* Functional.linear, Tensor.add, Module.conv1.Conv2d */
	int64_t call;     /* which call of this operator; < 0: not numbered */
	const char *pass; /* forward, backward, grad (gradients of parameters) */
	const char
		*key; /* NULL: "op.call.pass", of an op that starts with Module. "op.pass.call" */
	const char *scope; /* key of the module call around it; or NULL */
	uint64_t stack;    /* of acc_rec_stack; 0: none */
	const char *
		stack_from; /* of a backward call: the forward call that the stack is of; or NULL */
	bool recompute;     /* it ran before, and runs again because its result was not kept */
};

enum acc_rec_type {
	ACC_REC_TENSOR,
	ACC_REC_NONE,
	ACC_REC_BOOL,  /* i */
	ACC_REC_INT,   /* i */
	ACC_REC_FLOAT, /* f */
	ACC_REC_TEXT,  /* text: of what is nested, JSON */
	ACC_REC_INTS   /* ndim integers at `shape`: a torch.Size, the ranks of a group */
};

/* One argument or result of an op call. */
struct acc_rec_item {
	int type;        /* enum acc_rec_type */
	const char *io;  /* in, kw (a keyword argument), out, param, grad */
	const char *pos; /* which: "0", of what is nested "1.0", of kw and param the name */
	const char *cls; /* its class as the program calls it: torch.Tensor, int, slice; or NULL */
	int64_t i;
	double f;
	const char *text;
	/* Of a tensor: */
	const char *dtype; /* float32, torch.bfloat16, f16, int64 ... */
	uint32_t ndim;
	const int64_t *shape;
	const int64_t *stride; /* in elements, >= 0; NULL: row-major without gaps */
	const void *data;      /* the element of index (0, 0, ...); NULL: it is only described */
	int detail;            /* enum acc_rec_detail */
	int requires_grad;     /* 0, 1; < 0: unknown */
	bool stays; /* a tensor without gaps that nobody changes or frees until acc_rec_sync
	                        * returns: it is read where it is */
};

/* With no item: that it ran, and from where. */
ACC_REC_API int acc_rec_call(struct acc_recording *r, const struct acc_rec_call *call,
	const struct acc_rec_item *item, size_t n);
/* Frames innermost first, such as "File a.py, line 3, in f, \n return g(x)"; *id names them in
 * calls. The same frames may be given again: they are written once. */
ACC_REC_API int acc_rec_stack(struct acc_recording *r, const char *const *frame, size_t n,
	uint64_t *id);
/* From now on op calls belong to this step (>= 0); the elements go to another file. The same step again
 * changes nothing; one that was left is not gone back to, which ends the recording. */
ACC_REC_API int acc_rec_step(struct acc_recording *r, int64_t step);
/* Wait until all that was recorded so far has been handed to the system. */
ACC_REC_API int acc_rec_sync(struct acc_recording *r);
/* Tensors that were recorded without their elements because the queue had no room. */
ACC_REC_API uint64_t acc_rec_dropped(struct acc_recording *r);
/* What went wrong, or "". Valid until close. */
ACC_REC_API const char *acc_rec_error(struct acc_recording *r);
/* Write what is queued, and the end. 0, or < 0 where anything was not written; why[] (may be NULL)
 * says what. NULL is fine. */
ACC_REC_API int acc_rec_close(struct acc_recording *r, char *why, size_t n);

#ifdef __cplusplus
}
#endif

#endif
