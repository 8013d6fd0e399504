/* sink.h - where a recording goes: a stream of records, and the elements behind them
 *
 * Elements are written before the record that refers to them, so that what is left of a process that
 * died refers to nothing that is not there.
 */
#ifndef REC_SINK_H
#define REC_SINK_H

#include "acc/record.h"

struct sink {
	int64_t rank;
	int dir;              /* of the recording; -1: one stream, with the elements at its end */
	int fd;               /* of the stream */
	bool own;             /* it is closed here */
	struct acc_buf index; /* records that are not written yet */
	struct acc_buf bytes; /* elements that are not written yet */
	uint64_t nrec, seq;
	uint32_t crc;   /* of the stream so far */
	uint64_t begun; /* seq where the step began */
	int64_t step;
	char file[64];       /* of the elements, in dir */
	int data;            /* or the memory that holds them; -1: none yet */
	uint64_t at;         /* its length, with what is not written yet */
	struct acc_buf kept; /* of struct sink_kept: elements that go to the end of the stream */
	char src[9];
	char where[256]; /* of the stream, for messages */
};

/* The head and the source record. 0 or < 0. */
int acc_sink_start(struct sink *s, const char *program, struct acc_rec *source, struct acc_err *e);
/* From now on this step. Of one that ends, here or with the recording, and was not empty, a step record says
 * so. */
int acc_sink_step(struct sink *s, int64_t step, struct acc_err *e);
/* `bytes` of elements follow: where they will be. */
int acc_sink_begin(struct sink *s, uint64_t bytes, uint64_t *off, struct acc_err *e);
int acc_sink_bytes(struct sink *s, const void *p, size_t n, struct acc_err *e);
/* The elements at off belong to the record that comes next. */
int acc_sink_keep(struct sink *s, uint64_t off, uint64_t bytes, struct acc_err *e);
int acc_sink_put(struct sink *s, const struct acc_rec *r, struct acc_err *e);
/* Hand everything so far to the system. */
int acc_sink_flush(struct sink *s, struct acc_err *e);
/* What waits for the end, and the end. */
int acc_sink_end(struct sink *s, int status, struct acc_err *e);
void acc_sink_release(struct sink *s);

#endif
