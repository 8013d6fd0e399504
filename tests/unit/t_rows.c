/* Whole audits with every instruction set that runs here, and 1, 2 and 7 threads: the same bytes. */
#include "tap.h"

#include "acc/kernel.h"
#include "acc/replay.h"
#include "acc/stream.h"

#include <glob.h>
#include <stdlib.h>

static struct acc_buf out;
static int troubles;

static int
emit(void *arg, struct acc_rec *r)
{
	(void)arg;
	return acc_encode(r, &out, NULL);
}

static void
trouble(void *arg, const struct acc_err *e)
{
	(void)arg;
	(void)e;
	troubles++;
}

/* The records of one stream with what the audit says of them, encoded in `out`. */
static bool
audit(char *path, unsigned threads)
{
	struct acc_err e = {0};
	struct acc_audit_opt opt = {.threads = threads,
		.tmpdir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"};
	struct acc_roots *roots = acc_roots_open(&e);
	struct acc_in *in = acc_in_open(&path, 1, &e);
	struct acc_audit *a = acc_audit_open(roots, &opt, emit, trouble, NULL, &e);
	struct acc_rec *r;
	int rc = in == NULL || a == NULL ? -1 : 1;
	while (rc > 0 && (rc = acc_in_next(in, &r, &e)) > 0)
		if (acc_audit_put(a, r, &e) < 0)
			rc = -1;
	if (rc == 0)
		rc = acc_audit_end(a, &e);
	acc_audit_close(a);
	acc_in_close(in);
	acc_roots_close(roots);
	return rc == 0;
}

/* The hash of all audits; 0: something failed. */
static uint64_t
all(const glob_t *g, unsigned threads, size_t *size)
{
	uint64_t hash = 0;
	*size = 0;
	for (size_t i = 0; i < g->gl_pathc; i++) {
		out.n = 0;
		if (!audit(g->gl_pathv[i], threads) || out.n == 0)
			return 0;
		const uint64_t two[] = {hash, acc_hash(out.p, out.n)};
		hash = acc_hash(two, sizeof two);
		*size += out.n;
	}
	return hash;
}

int
main(void)
{
	const char *isa[ACC_KERNEL_ROWS];
	size_t n = acc_kernel_isas(isa), size;
	glob_t g = {0};
	if (glob("tests/data/replay/*", 0, NULL, &g) != 0 ||
		glob("tests/data/replay_fused/*", GLOB_APPEND, NULL, &g) != 0 ||
		glob("tests/data/replay_ops/*", GLOB_APPEND, NULL, &g) != 0)
		return 2;
	uint64_t want = all(&g, 1, &size);
	ok(want != 0 && size > 100000, "%zu streams audited: %zu bytes, %d troubles", g.gl_pathc,
		size, troubles);
	for (size_t i = 0; i < n; i++) {
		ok(acc_kernel_force(isa[i], NULL) == 0, "%s runs", isa[i]);
		ok(all(&g, 1, &size) == want, "%s: the same bytes", isa[i]);
	}
	ok(all(&g, 2, &size) == want && all(&g, 7, &size) == want,
		"2 and 7 threads: the same bytes");
	globfree(&g);
	acc_buf_release(&out);
	return done();
}
