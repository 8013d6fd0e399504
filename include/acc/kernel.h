/* kernel.h - one pass over a chunk of one tensor, or of a pair, gives every sum
 *
 * A metric is a formula over these sums. Values are taken as doubles: exact for every float
 * dtype up to f64 and for integers up to 2^53; wider integers are rounded in the statistics
 * and compared exactly. Complex elements count as |z| in the statistics and as 2 n components
 * in the comparison (indices are those of elements).
 *
 * Order of summation: blocks of 2,048 elements; in a block 16 lanes of double, element i in
 * lane i mod 16; lanes folded by halves (8, 4, 2, 1); blocks of a chunk, then chunks of 65,536
 * elements, added in order with a compensated sum. What is left out (not finite, behind the
 * end) adds +0. In whole blocks of two equal dtypes of 16 or 8 bits, the sums of d, r and e are
 * over the elements that differ, as if these stood next to each other. So the bits depend on no
 * instruction set, compiler or number of threads.
 *
 * Error bounds, u = 2^-53: a sum of n terms t_i is within 136 u sum|t_i| of the exact sum of
 * its terms as rounded, for any n up to 2^50 (127 additions in a lane, 4 in the fold, and the
 * compensation). d is within u of a - b; squares and products of values of f32 and narrower
 * are exact, of d and of f64 within u. r and e are computed in f32, as numpy and torch do, where
 * both dtypes are floats that fit f32, and r and e^2 of elements i, i + 16, i + 32 and i + 48 of
 * 64 are added in f32 first: then the sum of r is within 2^-22, that of e^2 within 2^-20, of
 * itself. Else r and e are in double, as they are in a block in which the largest r is not below
 * 2^125 or the largest e not in [2^-60, 2^62) (or 0). Blocks of f64 whose squares overflow, or lose
 * digits to underflow, are summed up of numbers times 2^-600 or 2^600.
 * Layer lib/kernel, on base. */
#ifndef ACC_KERNEL_H
#define ACC_KERNEL_H

#include "acc/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ACC_CHUNK = 65536, ACC_BLOCK = 2048, ACC_ULP_BINS = 65 };

/* A sum that keeps what it rounds away. Its value is (hi + lo) 2^exp; exp is even, and 0 but where f64
 * would overflow or underflow. */
struct acc_sum {
	double hi, lo;
	int64_t exp; /* as wide as the others: nothing of it is padding */
};

/* Of one tensor. min, max (-0 is given as +0), sums are over the finite elements; n - nan - posinf - neginf of
 * them, and min = +inf, max = -inf where there are none. */
struct acc_one {
	uint64_t n, nan, posinf, neginf, zero;
	uint64_t sat; /* finite and |x| == the largest finite value; floats only */
	double min, max;
	struct acc_sum sum, sumsq;
	uint64_t hash; /* XXH3-64 of a chunk's bytes, in the same pass; not merged */
};

/* Of a pair: d = a - b over the elements where both are finite ("used"). */
struct acc_two {
	uint64_t n, used;
	/* Equal bits, after rounding to the coarser dtype where they differ; any NaN equals any
	 * NaN, -0 is not +0. Integers by value. */
	uint64_t same;
	uint64_t kind_diff; /* not finite on a side, and not the same NaN / +Inf / -Inf on both */
	uint64_t kind_diff_unsigned; /* the same with the sign of infinity ignored */
	struct acc_sum dot, aa, bb;  /* sum a b, a^2, b^2 over used */
	struct acc_sum absd, dd;     /* sum |a - b|, (a - b)^2 */
	double max_absd;
	uint64_t max_absd_at; /* lowest row-major index; 0 if the largest is 0 */
	/* r = |d| / |b| over used with b != 0 */
	uint64_t nrel;
	uint64_t b_zero; /* used, b == 0 and a != 0 */
	struct acc_sum rel;
	double max_rel;
	uint64_t max_rel_at;
	uint64_t lt_1e3, lt_5e3; /* used with r < 0.001 (0.005), or d == 0 */
	uint64_t outside;        /* of all n: not(|d| <= atol + rtol |b|), or kinds differ */
	/* Over used: distance in units of the last place of the coarser dtype (the one of larger
	 * eps; of an integer and a float, the float): how many of its numbers further, where
	 * -0 = +0 and what is beyond its range is one further than its largest; of complex numbers the farther
	 * component's. Two integers: |a - b|, exactly. Bin 0 is 0, bin k is [2^(k-1), 2^k). */
	uint64_t ulp_max, ulp_max_at;
	uint64_t ulp[ACC_ULP_BINS];
	/* e = |d| / (|b| + scale), for attribution */
	struct acc_sum ee;
	double max_e;
	uint64_t max_e_at;
};

struct acc_kernel_opt {
	double rtol, atol;
	double scale; /* s of e above; 0: e is 0 where b is 0 and d is 0, else inf */
	/* All of these are finite and >= 0. */
	/* Neither r nor e nor units in the last place are wanted, which take the longer half: of acc_two,
	 * n, used, kind_diff*, dot, aa, bb, absd, dd and max_absd* are as ever, the rest is anything; and the
	 * hash of neither side. */
	bool plain;
};

/* The name of the instruction set that runs ("avx2", ...); those that can run here, the
 * slowest first: their number. */
enum { ACC_KERNEL_ROWS = 4 };
const char *acc_kernel_isa(void);
size_t acc_kernel_isas(const char *names[ACC_KERNEL_ROWS]);
/* Force a row by name, for tests; with it go the loops of audits. 0 or ACC_EUSAGE. Not to be called
 * while kernels run. */
int acc_kernel_force(const char *isa, struct acc_err *e);

/* n <= ACC_CHUNK elements, native byte order, row-major, any alignment. `at` is the row-major
 * index of the first one. The results are overwritten. The two dtypes may differ. */
void acc_kernel_one(enum acc_dtype t, const void *p, size_t n, struct acc_one *out);
void acc_kernel_two(enum acc_dtype ta, const void *a, enum acc_dtype tb, const void *b, size_t n,
	uint64_t at, const struct acc_kernel_opt *opt, struct acc_one *oa, struct acc_one *ob,
	struct acc_two *out);
/* acc_one.hash alone: of any n bytes. */
uint64_t acc_kernel_hash(const void *p, size_t n);
/* n elements of a dtype that is not complex, any n. */
void acc_kernel_load(enum acc_dtype t, const void *p, size_t n, double *out);
/* The magnitudes of n elements, any n. */
void acc_kernel_abs(enum acc_dtype t, const void *p, size_t n, double *out);
/* Add the next chunk's result; zero-initialised (acc_*_init) to start. */
void acc_one_init(struct acc_one *s);
void acc_two_init(struct acc_two *s);
void acc_one_merge(struct acc_one *s, const struct acc_one *next);
void acc_two_merge(struct acc_two *s, const struct acc_two *next);
double acc_sum_value(const struct acc_sum *s);
/* Without an overflow on the way: its root, its n-th part, the root of that; two roots by each
 * other; and the same sum at another exp. */
double acc_sum_root(const struct acc_sum *s);
double acc_sum_root_over(const struct acc_sum *s, const struct acc_sum *by);
double acc_sum_mean(const struct acc_sum *s, uint64_t n);
double acc_sum_rms(const struct acc_sum *s, uint64_t n);
struct acc_sum acc_sum_at(const struct acc_sum *s, int exp);
/* Of all `count` elements of a tensor, as the recorders define them: stat.max, stat.min, stat.mean and
 * stat.norm are added to a record. 0 or ACC_ENOMEM. */
struct acc_rec;
int acc_stat_put(struct acc_rec *r, enum acc_dtype dtype, uint32_t ndim, uint64_t count,
	const struct acc_one *o);

#ifdef __cplusplus
}
#endif

#endif
