/* The records of two sides, paired in each way: no record of a side is in two pairs. */
#include "acc/align.h"
#include "given.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct in {
	struct acc_align *al;
	enum acc_side side;
	uint64_t taken, out;
};

static int
take(void *arg, struct acc_rec *r)
{
	struct in *in = arg;
	int rc = acc_align_add(in->al, in->side, r, NULL);
	in->taken += rc > 0;
	return rc;
}

static int
emit(void *arg, const struct acc_rec *r)
{
	struct in *in = arg;
	if (acc_rec_is(r, "pair") && ++in->out > in->taken)
		abort();
	return 0;
}

static void
pair(const uint8_t *p, size_t n, const struct acc_aligner *way)
{
	struct acc_err e = {0};
	struct in in = {.al = acc_align_open(fuzz_folder(), &e), .side = ACC_A};
	size_t first = given_first(p, n), skip = first + sizeof GIVEN_BETWEEN - 1;
	if (in.al == NULL)
		abort();
	int rc = given_records(p, first, take, &in);
	in.side = ACC_B;
	if (rc >= 0 && skip <= n)
		rc = given_records(p + skip, n - skip, take, &in);
	if (rc >= 0 &&
		acc_align_run(in.al, way, &(struct acc_join){0}, NULL, emit, &in, &e) != e.code)
		abort(); /* a failure that says nothing */
	acc_align_close(in.al);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < acc_naligners; i++)
		if (given_way(n, acc_naligners, i))
			pair(p, n, acc_aligners[i]);
	return 0;
}
