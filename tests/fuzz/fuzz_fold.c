/* The ranks of a side and a reference, folded; with the layout that was found, given back, once more. */
#include "acc/fold.h"
#include "given.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct in {
	struct acc_fold *fold;
	bool reference;
};

static int
take(void *arg, struct acc_rec *r)
{
	struct in *in = arg;
	return acc_rec_is(r, "data") ? 0 : acc_fold_add(in->fold, in->reference, r, NULL);
}

static int
emit(void *arg, const struct acc_rec *r)
{
	(void)arg;
	return r->n > ACC_MAX_FIELDS ? -1 : 0;
}

/* layout: given, where it has bytes; then that which was found. */
static void
fold(const uint8_t *p, size_t n, struct acc_buf *layout)
{
	struct acc_err e = {0};
	struct in in = {.fold = acc_fold_open(fuzz_folder(), &e)};
	struct acc_roots *roots = acc_roots_open(&e);
	size_t first = given_first(p, n), skip = first + sizeof GIVEN_BETWEEN - 1;
	if (in.fold == NULL || roots == NULL)
		abort();
	acc_roots_foreign(roots, true);
	if (layout->n > 0 &&
		acc_fold_given(in.fold, (struct acc_str){(char *)layout->p, (uint32_t)layout->n},
			"given", &e) < 0)
		abort(); /* what it prints it takes */
	if (n % 2 == 0)
		acc_fold_tensors(in.fold, roots);
	if (n % 3 == 0)
		acc_fold_whole(in.fold);
	int rc = given_records(p, first, take, &in);
	in.reference = true;
	if (rc >= 0 && skip <= n)
		rc = given_records(p + skip, n - skip, take, &in);
	layout->n = 0;
	int found = rc < 0 ? rc : acc_fold_find(in.fold, &e);
	if (found > 0 && acc_fold_print(in.fold, layout, &e) < 0)
		abort();
	if (found >= 0)
		acc_fold_run(in.fold, emit, NULL, &e);
	acc_fold_close(in.fold);
	acc_roots_close(roots);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct acc_buf layout = {0};
	fold(p, n, &layout);
	if (layout.n > 0)
		fold(p, n, &layout);
	acc_buf_release(&layout);
	return 0;
}
