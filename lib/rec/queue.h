/* queue.h - bytes from many threads to one, through a ring of fixed size */
#ifndef REC_QUEUE_H
#define REC_QUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue {
	uint8_t *ring;
	size_t size;
	uint64_t put, taken; /* bytes so far */
	bool closed;         /* the reader is gone: what is put is thrown away */
	bool waits;          /* the reader, for more */
	pthread_mutex_t lock;
	pthread_cond_t more, room;
};

/* 0 or -1: no memory. */
int acc_queue_open(struct queue *q, size_t size);
void acc_queue_release(struct queue *q);
/* Waits for room, and may come out in parts: who puts several things that belong together keeps
 * other threads away. */
void acc_queue_put(struct queue *q, const void *p, size_t n);
/* Bytes that can be put without waiting. */
size_t acc_queue_room(struct queue *q);
/* At most n bytes that are there, at least one: *p; waits for them. They stay until acc_queue_done. */
size_t acc_queue_get(struct queue *q, size_t n, const uint8_t **p);
/* Would acc_queue_get wait? */
bool acc_queue_empty(struct queue *q);
void acc_queue_done(struct queue *q, size_t n);
/* The reader takes nothing more. */
void acc_queue_shut(struct queue *q);

#endif
