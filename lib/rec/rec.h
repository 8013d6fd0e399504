/* rec.h - what passes through the queue, and the two ends of it */
#ifndef LIB_REC_REC_H
#define LIB_REC_REC_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "acc/base.h"
#include "acc/rec.h"
#include "acc/tensor.h"
#include "rec/queue.h"
#include "rec/same.h"
#include "rec/sink.h"

enum msg_kind { MSG_CALL, MSG_ITEM, MSG_STACK, MSG_STEP, MSG_SYNC, MSG_STOP };

/* Strings of a message, in this order, each present where its bit is set, terminated. */
enum { CALL_OP, CALL_PASS, CALL_KEY, CALL_SCOPE, CALL_STACK_FROM, CALL_N };
enum { ITEM_IO, ITEM_POS, ITEM_CLS, ITEM_TEXT, ITEM_DTYPE, ITEM_N };
enum { MSG_STRINGS = 5 };

/* Its strings follow, of a tensor shape and perhaps stride, then its elements; of a stack its
 * frames. */
struct msg {
	uint32_t kind, has;
	uint32_t len[MSG_STRINGS]; /* of the strings, with their ends */
	uint32_t n;                /* dimensions; frames */
	int64_t i;                 /* value; number of the call; step; MSG_SYNC: which */
	double f;
	uint64_t bytes; /* of the elements; of the frames */
	uint64_t stack;
	const void *stays; /* elements that are read where they are; NULL: they follow */
	int type, dtype, detail, requires_grad;
	uint32_t place; /* of elements that are kept, in struct same; SAME_PLACES: none */
	bool strided, elements, dropped, recompute;
	bool again; /* they stand at that place already, and do not follow */
};

struct acc_recording {
	pid_t pid;
	struct queue q;
	struct sink sink; /* the writer's, once it runs */
	pthread_t writer;
	pthread_mutex_t lock; /* of those who record */
	bool drop, deflate;
	int64_t step;
	atomic_uint_fast64_t dropped;
	struct same same;
	struct acc_ids stacks;
	struct acc_buf frames;
	uint8_t stage[1 << 15]; /* small things wait here to be queued together */
	size_t staged;
	/* What the writer says. */
	pthread_mutex_t said;
	pthread_cond_t synced;
	uint64_t sync_asked, sync_done;
	bool failed;
	struct acc_err e;
	char text[600];
};

/* The writer: takes messages until MSG_STOP. */
void *acc_rec_write(void *recording);
/* The first failure stays. */
void acc_rec_failed(struct acc_recording *r, const struct acc_err *e);
/* Row-major copy of a strided tensor, in pieces. */
typedef void gather_fn(void *arg, const void *p, size_t n);
void acc_rec_gather(const uint8_t *data, size_t esize, uint32_t ndim, const int64_t *shape,
	const int64_t *stride, gather_fn *fn, void *arg);

#endif
