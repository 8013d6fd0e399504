/* given.h - some bytes as what a program is given: streams, looked at by the reader that all have */
#ifndef FUZZ_GIVEN_H
#define FUZZ_GIVEN_H

#include "dump.h"

/* Each record up to the end or the first that is refused. 0, or what fn returned below 0. */
static int
given_records(const uint8_t *p, size_t n, int (*fn)(void *arg, struct acc_rec *r), void *arg)
{
	char path[512];
	struct acc_err e = {0};
	struct acc_rec *r;
	int rc = 0;
	fuzz_file("given.acc", p, n);
	snprintf(path, sizeof path, "%s/given.acc", fuzz_folder());
	struct acc_rd *rd = acc_rd_open(path, &e);
	while (rd != NULL && rc >= 0 && acc_rd_next(rd, &r, &e) > 0)
		rc = fn(arg, r);
	acc_rd_close(rd);
	return rc;
}

/* Of two streams with this between them the length of the first; n where there is one alone. */
#define GIVEN_BETWEEN "\n@@\n"
__attribute__((unused)) static size_t
given_first(const uint8_t *p, size_t n)
{
	const void *at = memmem(p, n, GIVEN_BETWEEN, sizeof GIVEN_BETWEEN - 1);
	return at == NULL ? n : (size_t)((const uint8_t *)at - p);
}

/* A fuzzer tries one of several ways for each input, by its length, which it varies; replayed, each is tried. */
__attribute__((unused)) static bool
given_way(size_t n, size_t ways, size_t way)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	return n % ways == way;
#else
	(void)n;
	return way < ways;
#endif
}

#endif
