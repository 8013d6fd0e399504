/* Which row runs. */
#include "kernel/audit.h"
#include "kernel/one.h"

#include <stdatomic.h>

static const struct acc_row *const rows[] = {
	&acc_row_base,
#if defined(__x86_64__)
	&acc_row_avx2,
	&acc_row_avx512,
#endif
};
enum { NROW = sizeof rows / sizeof *rows };

/* Chosen at the first call, to the same value whoever comes first. */
static _Atomic(const struct acc_row *) chosen;

static const struct acc_row *
row(void)
{
	const struct acc_row *r = atomic_load_explicit(&chosen, memory_order_acquire);
	if (r != NULL)
		return r;
	for (size_t i = 0; i < NROW; i++)
		if (rows[i]->usable())
			r = rows[i];
	atomic_store_explicit(&chosen, r, memory_order_release);
	return r;
}

const struct acc_audit_row *
acc_audit_row(void)
{
	return row()->audit;
}

const char *
acc_kernel_isa(void)
{
	return row()->name;
}

size_t
acc_kernel_isas(const char *names[ACC_KERNEL_ROWS])
{
	size_t n = 0;
	for (size_t i = 0; i < NROW; i++)
		if (rows[i]->usable())
			names[n++] = rows[i]->name;
	return n;
}

int
acc_kernel_force(const char *isa, struct acc_err *e)
{
	for (size_t i = 0; i < NROW; i++)
		if (strcmp(rows[i]->name, isa) == 0 && rows[i]->usable()) {
			atomic_store_explicit(&chosen, rows[i], memory_order_release);
			return 0;
		}
	return acc_fail(e, ACC_EUSAGE, "no instruction set '%.40s' here", isa);
}

void
acc_kernel_load(enum acc_dtype t, const void *p, size_t n, double *out)
{
	float x[256];
	const uint8_t *b = p;
	if (!acc_is_narrow(t) || t == ACC_F32) {
		acc_wide_load(t, p, n, out);
		return;
	}
	for (size_t off = 0, m; off < n; off += m) {
		m = n - off < 256 ? n - off : 256;
		acc_narrow_load(row(), t, acc_codes_of(t), b + off * acc_dtype_of(t)->size, m, x);
		for (size_t i = 0; i < m; i++)
			out[off + i] = (double)x[i];
	}
}

void
acc_kernel_one(enum acc_dtype t, const void *p, size_t n, struct acc_one *out)
{
	acc_one_run(row(), t, p, n, out);
}

uint64_t
acc_kernel_hash(const void *p, size_t n)
{
	return row()->hash(p, n);
}

void
acc_kernel_two(enum acc_dtype ta, const void *a, enum acc_dtype tb, const void *b, size_t n,
	uint64_t at, const struct acc_kernel_opt *opt, struct acc_one *oa, struct acc_one *ob,
	struct acc_two *out)
{
	acc_two_run(row(), ta, a, tb, b, n, at, opt, oa, ob, out);
}
