/* A file mapped as a whole, for reading without copying.
 *
 * Touching a page behind the end of a file that shrank raises SIGBUS. The handler installed
 * here puts pages of zeros there and marks the mapping as torn; whoever read from it looks at
 * the mark afterwards and throws away what it computed. Faults elsewhere go where they went
 * before.
 *
 * Addresses are congruent to file offsets modulo 2 MiB, so that the kernel can map large pages,
 * and mappings are never multiples of 2 MiB long and adjacent: two streams whose addresses
 * differ by a multiple of 256 MiB compete for the same places in some first-level caches. */
#include "payload/pay.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WINDOW = 2 << 20 };

struct acc_mapped {
	uint8_t *reserved;
	size_t nreserved;
	uint8_t *file; /* what is mapped of the file, from a multiple of WINDOW on */
	size_t nfile;
	size_t lead; /* bytes of `file` before the tensor's */
	size_t dropped;
	atomic_bool torn;
};

static _Thread_local struct acc_mapped *volatile guarded[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct sigaction before;

static bool
mend(struct acc_mapped *m, uintptr_t at)
{
	const uintptr_t lo = (uintptr_t)m->file, hi = lo + m->nfile;
	if (at < lo || at >= hi)
		return false;
	/* First the mark: who sees a zero sees the mark. */
	atomic_store(&m->torn, true);
	uintptr_t page = at & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
	return mmap((void *)page, hi - page, PROT_READ,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		       0) != MAP_FAILED;
}

static void
on_bus(int sig, siginfo_t *info, void *context)
{
	const int saved = errno;
	for (int k = 0; k < 2; k++)
		if (guarded[k] != NULL && mend(guarded[k], (uintptr_t)info->si_addr)) {
			errno = saved;
			return;
		}
	errno = saved;
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(sig, info, context);
	else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
		before.sa_handler(sig);
	else /* the instruction runs again, and has its way */
		sigaction(SIGBUS, &before, NULL);
}

bool
acc_guard_install(void)
{
	struct sigaction sa = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO | SA_RESTART};
	sigemptyset(&sa.sa_mask);
	pthread_mutex_lock(&lock);
	bool good = users > 0 || sigaction(SIGBUS, &sa, &before) == 0;
	users += good;
	pthread_mutex_unlock(&lock);
	return good;
}

void
acc_guard_remove(void)
{
	pthread_mutex_lock(&lock);
	if (--users == 0)
		sigaction(SIGBUS, &before, NULL);
	pthread_mutex_unlock(&lock);
}

void
acc_guard_enter(struct acc_mapped *a, struct acc_mapped *b)
{
	guarded[0] = a;
	guarded[1] = b;
}

struct acc_mapped *
acc_mapped_open(int fd, uint64_t off, uint64_t len)
{
	struct acc_mapped *m = calloc(1, sizeof *m);
	if (m == NULL || len == 0 || len > SIZE_MAX / 2)
		goto fail;
	m->lead = off % WINDOW;
	m->nfile = m->lead + (size_t)len;
	/* Room to choose the address, and an odd bit more. */
	m->nreserved = (m->nfile + WINDOW - 1) / WINDOW * WINDOW + WINDOW + (64 << 10);
	void *p = mmap(NULL, m->nreserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	if (p == MAP_FAILED)
		goto fail;
	m->reserved = p;
	m->file = m->reserved + (WINDOW - (uintptr_t)p % WINDOW) % WINDOW;
	if (mmap(m->file, m->nfile, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
		    (off_t)(off - m->lead)) != MAP_FAILED)
		return m;
	munmap(m->reserved, m->nreserved);
fail:
	free(m);
	return NULL;
}

void
acc_mapped_close(struct acc_mapped *m)
{
	if (m == NULL)
		return;
	munmap(m->reserved, m->nreserved);
	free(m);
}

const uint8_t *
acc_mapped_at(const struct acc_mapped *m, uint64_t at)
{
	return m->file + m->lead + at;
}

bool
acc_mapped_torn(const struct acc_mapped *m)
{
	return atomic_load(&((struct acc_mapped *)(uintptr_t)m)->torn);
}

/* Pages count as this process's memory until they are given back. */
void
acc_mapped_drop(struct acc_mapped *m, uint64_t at)
{
	size_t end = (m->lead + (size_t)at) / WINDOW * WINDOW;
	if (end > m->dropped) {
		madvise(m->file + m->dropped, end - m->dropped, MADV_DONTNEED);
		m->dropped = end;
	}
}
