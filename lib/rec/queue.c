#include "rec/queue.h"

#include <stdlib.h>
#include <string.h>

int
acc_queue_open(struct queue *q, size_t size)
{
	q->ring = malloc(size);
	q->size = size;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	pthread_cond_init(&q->room, NULL);
	return q->ring == NULL ? -1 : 0;
}

void
acc_queue_release(struct queue *q)
{
	free(q->ring);
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->more);
	pthread_cond_destroy(&q->room);
}

static size_t
min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* How many bytes at a time: the reader works while the rest is copied. */
enum { PIECE = 1 << 18 };

void
acc_queue_put(struct queue *q, const void *p, size_t n)
{
	const uint8_t *from = p;
	pthread_mutex_lock(&q->lock);
	while (n > 0 && !q->closed) {
		size_t used = (size_t)(q->put - q->taken), at = (size_t)(q->put % q->size);
		size_t k = min(min(n, PIECE), min(q->size - used, q->size - at));
		if (k == 0) {
			pthread_cond_wait(&q->room, &q->lock);
			continue;
		}
		/* Nobody else puts, and the reader does not look behind `put`. */
		pthread_mutex_unlock(&q->lock);
		memcpy(q->ring + at, from, k);
		pthread_mutex_lock(&q->lock);
		q->put += k;
		from += k;
		n -= k;
		if (q->waits)
			pthread_cond_signal(&q->more);
	}
	pthread_mutex_unlock(&q->lock);
}

size_t
acc_queue_room(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	size_t n = q->closed ? SIZE_MAX : q->size - (size_t)(q->put - q->taken);
	pthread_mutex_unlock(&q->lock);
	return n;
}

size_t
acc_queue_get(struct queue *q, size_t n, const uint8_t **p)
{
	pthread_mutex_lock(&q->lock);
	q->waits = true;
	while (q->put == q->taken)
		pthread_cond_wait(&q->more, &q->lock);
	q->waits = false;
	size_t at = (size_t)(q->taken % q->size);
	n = min(n, min((size_t)(q->put - q->taken), q->size - at));
	*p = q->ring + at;
	pthread_mutex_unlock(&q->lock);
	return n;
}

bool
acc_queue_empty(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	bool yes = q->put == q->taken;
	pthread_mutex_unlock(&q->lock);
	return yes;
}

void
acc_queue_done(struct queue *q, size_t n)
{
	pthread_mutex_lock(&q->lock);
	q->taken += n;
	pthread_cond_signal(&q->room);
	pthread_mutex_unlock(&q->lock);
}

void
acc_queue_shut(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->room);
	pthread_mutex_unlock(&q->lock);
}
