/* Many measurements, by threads, results in order.
 *
 * A worker takes the oldest unit (a chunk of 65,536 elements) of a measure that was begun, else
 * begins the next measure: opens its files and counts its units. A measure of one unit, or
 * one that must be read in order, it then does alone. Results of units go to slots of a ring
 * and are merged in the order in which the units were given out, so that what is added to
 * what does not depend on the threads. A full ring holds the workers back, which bounds
 * memory.
 *
 * What was measured lately is not measured again: the same tensors are an output here and an
 * input there, and weights are shared. The last readings are kept for that. */
#include "payload/job.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 256, AUTO_THREADS = 16, SLOTS_PER_THREAD = 4, STACK = 1 << 20 };
/* Arrays that are walked by strides need some MiB each: not too many at a time. */
enum { MAX_HEAVY = 4 };
/* Who waits is woken once for so many results, if they are of so few bytes. */
enum { ENDED = 32, SMALL = 128 << 10 };

enum state { QUEUED, BUSY, SHARED, DONE };

struct entry {
	struct acc_job m;        /* released when the entry is used again */
	void (*task)(void *tag); /* this instead of a measure */
	enum state state;
	uint64_t like; /* the running number of the first such measure; its own: this one */
	uint64_t given, merged; /* units, while SHARED */
};

struct slot {
	struct entry *of;
	uint64_t unit;
	bool done;
	struct acc_job_part part;
};

struct acc_pool {
	struct acc_roots *roots;
	struct acc_pool_opt opt;
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	bool stop;
	/* The queue, by running numbers: taken, shared <= begun <= added. Entries from shared on
	 * may have units to give. */
	struct entry *entry;
	uint64_t taken, shared, begun, added;
	uint64_t key[ACC_METER_QUEUE];
	struct acc_reading *reading; /* of the entries taken last */
	unsigned heavy;
	struct slot *slot;
	size_t nslot;
	uint64_t merged, given;      /* units: merged <= given <= merged + nslot */
	const struct entry *awaited; /* who waits is woken when this one is measured */
	pthread_t *thread;
	unsigned nthread;
	struct bench *own; /* where no thread could be started, he who takes does the work */
};

/* A worker's own memory. */
struct bench {
	struct acc_job_buffers buffer;
	struct acc_job_part part;
};

static struct entry *
entry_at(struct acc_pool *m, uint64_t i)
{
	return &m->entry[i % ACC_METER_QUEUE];
}

/* With the lock held, as all of the following. */
static void
ended(struct acc_pool *m, struct entry *en)
{
	en->state = DONE;
	if (en == m->awaited || en->m.a.ref.len + en->m.b.ref.len > SMALL)
		pthread_cond_signal(&m->done);
}

/* Merge what is complete, in order. */
static void
merge(struct acc_pool *m)
{
	const uint64_t before = m->merged;
	for (; m->merged < m->given; m->merged++) {
		struct slot *s = &m->slot[m->merged % m->nslot];
		if (!s->done)
			break;
		acc_job_merge(&s->of->m, &s->part);
		if (++s->of->merged == s->of->m.units) {
			acc_job_end(&s->of->m);
			ended(m, s->of);
		}
	}
	if (m->merged != before)
		pthread_cond_broadcast(&m->work);
}

/* Give out a unit, if there is one and a slot for it. */
static bool
share(struct acc_pool *m, struct bench *w)
{
	while (m->shared < m->begun) {
		const struct entry *en = entry_at(m, m->shared);
		if (en->state == BUSY || (en->state == SHARED && en->given < en->m.units))
			break;
		m->shared++;
	}
	if (m->given - m->merged == m->nslot)
		return false;
	for (uint64_t i = m->shared; i < m->begun; i++) {
		struct entry *en = entry_at(m, i);
		if (en->state != SHARED || en->given == en->m.units)
			continue;
		struct slot *s = &m->slot[m->given++ % m->nslot];
		*s = (struct slot){.of = en, .unit = en->given++};
		pthread_mutex_unlock(&m->lock);
		acc_job_unit(&en->m, s->unit, &w->buffer, &s->part);
		pthread_mutex_lock(&m->lock);
		s->done = true;
		merge(m);
		return true;
	}
	return false;
}

/* Begin the next measure, and do it if it is small. */
static bool
begin(struct acc_pool *m, struct bench *w)
{
	if (m->begun == m->added)
		return false;
	struct entry *en = entry_at(m, m->begun);
	if (en->state == DONE) { /* it is like another */
		m->begun++;
		return true;
	}
	if (en->task != NULL) {
		m->begun++;
		en->state = BUSY;
		pthread_mutex_unlock(&m->lock);
		en->task(en->m.tag);
		pthread_mutex_lock(&m->lock);
		en->state = DONE;
		pthread_cond_signal(&m->done);
		return true;
	}
	const bool heavy = acc_job_heavy(&en->m);
	if (heavy && m->heavy == MAX_HEAVY)
		return false;
	m->heavy += heavy;
	m->begun++;
	en->state = BUSY;
	pthread_mutex_unlock(&m->lock);
	acc_job_prepare(&en->m, m->roots, &m->opt, &w->buffer);
	const bool alone = en->m.serial || en->m.units <= 1;
	if (alone) {
		acc_job_all(&en->m, &w->buffer, &w->part);
		acc_job_end(&en->m);
	}
	pthread_mutex_lock(&m->lock);
	if (alone) {
		ended(m, en);
		if (heavy) {
			m->heavy--;
			pthread_cond_broadcast(&m->work);
		}
	} else {
		m->heavy -= heavy;
		en->state = SHARED;
		pthread_cond_broadcast(&m->work);
	}
	return true;
}

static void *
worker(void *arg)
{
	struct acc_pool *m = arg;
	struct bench w = {0};
	pthread_mutex_lock(&m->lock);
	while (!m->stop)
		if (!share(m, &w) && !begin(m, &w))
			pthread_cond_wait(&m->work, &m->lock);
	pthread_mutex_unlock(&m->lock);
	acc_job_buffers_release(&w.buffer);
	return NULL;
}

static unsigned
cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > AUTO_THREADS ? AUTO_THREADS : (unsigned)n;
}

static int
start(struct acc_pool *m, unsigned threads, struct acc_err *e)
{
	pthread_attr_t attr;
	if (pthread_attr_init(&attr) != 0)
		return acc_nomem(e);
	pthread_attr_setstacksize(&attr, STACK);
	while (m->nthread < threads &&
		pthread_create(&m->thread[m->nthread], &attr, worker, m) == 0)
		m->nthread++;
	pthread_attr_destroy(&attr);
	if (m->nthread == 0)
		m->own = calloc(1, sizeof *m->own);
	return m->nthread == 0 && m->own == NULL ? acc_nomem(e) : 0;
}

/* The last of the next entries that is not measured yet: to wake who waits takes as long as to measure a small tensor. */
static const struct entry *
last_of_next(struct acc_pool *m)
{
	uint64_t i = m->added - m->taken > ENDED ? m->taken + ENDED : m->added;
	do
		i--;
	while (i > m->taken && entry_at(m, i)->state == DONE);
	return entry_at(m, i);
}

/* With the lock held: wait until something is done, or do it. False: time is up. */
static bool
await(struct acc_pool *m, const struct timespec *until)
{
	if (m->own != NULL)
		return share(m, m->own) || begin(m, m->own);
	m->awaited = until == NULL ? last_of_next(m) : entry_at(m, m->taken);
	return until == NULL ? pthread_cond_wait(&m->done, &m->lock) == 0
			     : pthread_cond_timedwait(&m->done, &m->lock, until) == 0;
}

struct acc_pool *
acc_pool_open(struct acc_roots *r, const struct acc_pool_opt *opt, struct acc_err *e)
{
	struct acc_pool *m = calloc(1, sizeof *m);
	unsigned threads = opt->threads == 0 ? cpus() : opt->threads;
	if (threads > MAX_THREADS)
		threads = MAX_THREADS;
	if (m == NULL) {
		acc_nomem(e);
		return NULL;
	}
	m->roots = r;
	m->opt = *opt;
	m->opt.map = false;
	m->nslot = (size_t)threads * SLOTS_PER_THREAD;
	m->slot = calloc(m->nslot, sizeof *m->slot);
	m->thread = calloc(threads, sizeof *m->thread);
	/* The hash states within want more than malloc's alignment. */
	m->entry = aligned_alloc(64, (ACC_METER_QUEUE * sizeof *m->entry + 63) / 64 * 64);
	m->reading = calloc(ACC_METER_QUEUE, sizeof *m->reading);
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->work, NULL);
	pthread_cond_init(&m->done, NULL);
	if (m->slot == NULL || m->thread == NULL || m->entry == NULL || m->reading == NULL) {
		acc_nomem(e);
		acc_pool_close(m);
		return NULL;
	}
	m->opt.map = opt->map && acc_guard_install();
	if (start(m, threads, e) < 0) {
		acc_pool_close(m);
		return NULL;
	}
	return m;
}

/* The first of the last entries that is like the new one, or the new one. */
static uint64_t
find_like(struct acc_pool *m, const struct entry *en)
{
	const uint64_t key = en->task != NULL ? 0 : acc_job_key(&en->m);
	m->key[m->added % ACC_METER_QUEUE] = key;
	uint64_t i = m->added < ACC_METER_QUEUE ? 0 : m->added - ACC_METER_QUEUE + 1;
	for (; key != 0 && i < m->added; i++)
		if (m->key[i % ACC_METER_QUEUE] == key && entry_at(m, i)->like == i &&
			acc_job_same(&entry_at(m, i)->m, &en->m))
			return i;
	return m->added;
}

static int
add(struct acc_pool *m, void *tag, void (*task)(void *tag), struct acc_operand a,
	struct acc_operand b, double min_scale, struct acc_err *e)
{
	/* Only this thread moves `added` and `taken`. */
	if (m->added - m->taken == ACC_METER_QUEUE)
		return 1;
	struct entry *en = entry_at(m, m->added);
	if (m->added >= ACC_METER_QUEUE)
		acc_job_release(&en->m);
	if (acc_job_init(&en->m, &m->opt, tag, a, b, min_scale) < 0)
		return acc_nomem(e);
	en->task = task;
	en->like = find_like(m, en);
	pthread_mutex_lock(&m->lock);
	en->state = en->like == m->added ? QUEUED : DONE;
	en->given = en->merged = 0;
	m->added++;
	pthread_cond_signal(&m->work);
	pthread_mutex_unlock(&m->lock);
	return 0;
}

int
acc_pool_add(struct acc_pool *m, void *tag, struct acc_operand a, struct acc_operand b,
	double min_scale, struct acc_err *e)
{
	return add(m, tag, NULL, a, b, min_scale, e);
}

int
acc_pool_add_task(struct acc_pool *m, void (*task)(void *tag), void *tag, struct acc_err *e)
{
	return add(m, tag, task, (struct acc_operand){0}, (struct acc_operand){0}, 0, e);
}

int
acc_pool_take(struct acc_pool *m, bool wait, struct acc_reading *out)
{
	if (m->taken == m->added)
		return 0;
	struct entry *en = entry_at(m, m->taken);
	pthread_mutex_lock(&m->lock);
	while ((wait || m->own != NULL) && en->state != DONE)
		await(m, NULL);
	const bool done = en->state == DONE;
	pthread_mutex_unlock(&m->lock);
	if (!done)
		return 0;
	if (en->like == m->taken)
		acc_job_reading(&en->m, out);
	else {
		*out = m->reading[en->like % ACC_METER_QUEUE];
		out->chunks = NULL; /* they may be gone */
		out->nchunks = 0;
	}
	out->tag = en->m.tag;
	m->reading[m->taken++ % ACC_METER_QUEUE] = *out;
	acc_job_close(&en->m);
	return 1;
}

bool
acc_pool_wait(struct acc_pool *m, double seconds)
{
	struct timespec t;
	if (m->taken == m->added)
		return true;
	const struct entry *en = entry_at(m, m->taken);
	clock_gettime(CLOCK_REALTIME, &t);
	const int64_t ns = t.tv_nsec + (int64_t)(seconds * 1e9);
	t.tv_sec += ns / 1000000000;
	t.tv_nsec = ns % 1000000000;
	pthread_mutex_lock(&m->lock);
	while (en->state != DONE && await(m, &t))
		;
	const bool done = en->state == DONE;
	pthread_mutex_unlock(&m->lock);
	return done;
}

uint64_t
acc_pool_bytes(struct acc_pool *m)
{
	uint64_t n = 0;
	pthread_mutex_lock(&m->lock);
	for (uint64_t i = m->taken; i < m->begun; i++)
		n += entry_at(m, i)->state == SHARED ? acc_job_bytes(&entry_at(m, i)->m) : 0;
	pthread_mutex_unlock(&m->lock);
	return n;
}

void
acc_pool_close(struct acc_pool *m)
{
	if (m == NULL)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_broadcast(&m->work);
	pthread_mutex_unlock(&m->lock);
	if (m->own != NULL)
		acc_job_buffers_release(&m->own->buffer);
	for (unsigned i = 0; i < m->nthread; i++)
		pthread_join(m->thread[i], NULL);
	for (uint64_t i = 0; i < m->added && i < ACC_METER_QUEUE; i++)
		acc_job_release(&m->entry[i].m);
	pthread_cond_destroy(&m->work);
	pthread_cond_destroy(&m->done);
	pthread_mutex_destroy(&m->lock);
	if (m->opt.map)
		acc_guard_remove();
	free(m->own);
	free(m->slot);
	free(m->thread);
	free(m->entry);
	free(m->reading);
	free(m);
}
