/* row.h - what a row (an instruction set) provides: loops over one block
 *
 * A block is n <= ACC_BLOCK numbers, n a multiple of ACC_QUAD, all of them finite: kernel.c puts
 * zeros where something is to be left out, and corrects the counts. A row may be given
 * numbers that are not finite (the caller then sees that sumsq is not finite and comes
 * again); it must not trap.
 */
#ifndef ACC_KERNEL_ROW_H
#define ACC_KERNEL_ROW_H

#include "acc/kernel.h"

#include <math.h>

enum { ACC_QUAD = 64 }; /* four times 16 lanes */
enum { ACC_HASHING = 640 };

struct acc_blk1 {
	double sum, sumsq, min, max;
	uint32_t zero;
};

struct acc_blk2 {
	struct acc_blk1 a, b;
	double dot, absd, dd, rel, ee;
	double maxd, maxr, maxe;
	uint32_t b0;       /* b == 0 and a != 0 */
	uint32_t lt1, lt5; /* r < 0.001, 0.005, where r = 0 if b == 0 */
	uint32_t outside;
};

struct acc_ulps {
	uint64_t max;
	uint32_t same;
	uint32_t bin[ACC_ULP_BINS];
};

struct acc_row {
	const char *name;
	bool (*usable)(void);
	void (*one)(const float *x, size_t n, struct acc_blk1 *o);
	void (*one_f16)(const void *p, size_t n, struct acc_blk1 *o); /* any alignment */
	void (*one_bf16)(const void *p, size_t n, struct acc_blk1 *o);
	/* opt->scale > 0 and a float */
	void (*two)(const float *a, const float *b, size_t n, const struct acc_kernel_opt *opt,
		struct acc_blk2 *o);
	/* The same, and the distances, of codes of f16 or bf16. What is equal on both sides is left
	 * out of the sums of d, r and e, as if the rest stood next to each other. If the sides'
	 * sumsq are not finite, nothing else counts. */
	void (*two_f16)(const void *a, const void *b, size_t n, const struct acc_kernel_opt *opt,
		struct acc_blk2 *o, struct acc_ulps *u);
	void (*two_bf16)(const void *a, const void *b, size_t n, const struct acc_kernel_opt *opt,
		struct acc_blk2 *o, struct acc_ulps *u);
	/* All three without r, e, their maxima and counts, outside, b0, and the distances. */
	void (*plain)(const float *a, const float *b, size_t n, struct acc_blk2 *o);
	void (*plain_f16)(const void *a, const void *b, size_t n, struct acc_blk2 *o);
	void (*plain_bf16)(const void *a, const void *b, size_t n, struct acc_blk2 *o);
	/* Codes of sign and magnitude, whose distance is that of their signed values: 32 bits
	 * (or the floats themselves), 16 bits. */
	void (*ulp32)(const void *a, const void *b, size_t n, struct acc_ulps *o);
	void (*ulp16)(const void *a, const void *b, size_t n, struct acc_ulps *o);
	void (*f16)(const void *p, float *x, size_t n); /* any n, any alignment */
	void (*bf16)(const void *p, float *x, size_t n);
	uint64_t (*hash)(const void *p, size_t n);
	/* The same piece by piece, in a state of ACC_HASHING bytes, aligned to 64. */
	void (*hash_start)(void *state);
	void (*hash_add)(void *state, const void *p, size_t n);
	uint64_t (*hash_end)(void *state);
	/* Copy a pair of blocks, with zeros in both where one is not finite; bit i of `bad` says
	 * where. Returns how many are kept; *range is that of the first side's kept ones. */
	size_t (*clean)(const float *a, const float *b, size_t n, float *x, float *y,
		uint64_t bad[ACC_BLOCK / 64], struct acc_blk1 *range);
	/* The same in double: n a multiple of 16, all finite; d[i] is a[i] - b[i] (exact where it
	 * matters); scale may be 0. Of the sides themselves wide_two gives sumsq and b.zero. */
	void (*wide_one)(const double *x, size_t n, struct acc_blk1 *o);
	void (*wide_two)(const double *a, const double *b, const double *d, size_t n,
		const struct acc_kernel_opt *opt, struct acc_blk2 *o);
	/* In how many pairs are both finite? */
	size_t (*finite_pairs)(const double *a, const double *b, size_t n);
	/* Distances of 64-bit codes, sign and magnitude or signed numbers, returning how many are
	 * equal; and what the distances give. */
	size_t (*far)(const uint64_t *x, const uint64_t *y, size_t n, bool magnitudes, uint64_t *u);
	void (*ulp64)(const uint64_t *u, size_t n, struct acc_ulps *o);
	/* The first i where |a - b|, r or e is max, as `two` computed it; n if there is none. */
	size_t (*find_d)(const float *a, const float *b, size_t n, double max);
	size_t (*find_r)(const float *a, const float *b, size_t n, float max);
	size_t (*find_e)(const float *a, const float *b, size_t n, float scale, float max);
	const struct acc_audit_row *audit;
};

extern const struct acc_row acc_row_base;
#if defined(__x86_64__)
extern const struct acc_row acc_row_avx2, acc_row_avx512;
#endif

/* The 16 lanes of a block's sum, by halves. */
double acc_fold(const double lane[16]);

/* What the addition rounds away is kept (Knuth); what is not finite has no remainder. */
static inline void
acc_sum_add(struct acc_sum *s, double v)
{
	const double t = s->hi + v, w = t - s->hi, rest = (s->hi - (t - w)) + (v - w);
	s->hi = t;
	s->lo += rest - rest == 0 ? rest : 0;
}

/* A sum that is v 2^exp. */
void acc_sum_add_at(struct acc_sum *s, double v, int exp);
/* Sums of blocks in double are of numbers times 2^k, where their squares need that. */
enum { ACC_SCALED = 600 };
/* That k: 0, or one of +-ACC_SCALED, by the largest of n numbers. */
int acc_scale_of(const double *x, size_t n, double sumsq);

/* r and e of one element, as wide_two takes them. */
static inline double
acc_wide_r(double d, double b)
{
	return b == 0 ? 0 : fabs(d) / fabs(b);
}

static inline double
acc_wide_e(double d, double b, double scale)
{
	return d == 0 ? 0 : fabs(d) / (fabs(b) + scale);
}

/* --- loading --- */
/* The dtype of one component. */
enum acc_dtype acc_component(enum acc_dtype t);
/* Does f32 hold all its values? Not of complex. */
bool acc_is_narrow(enum acc_dtype t);
/* What an 8-bit float means: its values, and sign and rank among its finite magnitudes. */
struct acc_codes {
	float value[256];
	uint16_t code[256];
	enum acc_dtype wider; /* f16 or bf16, which holds all its values: */
	uint16_t half[256];
	float magnitude[256]; /* rising; `n` of them */
	size_t n;
};
const struct acc_codes *acc_codes_of(enum acc_dtype t); /* NULL where none are needed */
bool acc_is_8bit(enum acc_dtype t);                     /* a float that needs acc_codes */
/* n numbers of a narrow dtype; `codes` for an 8-bit float. */
void acc_narrow_load(const struct acc_row *row, enum acc_dtype t, const struct acc_codes *codes,
	const void *p, size_t n, float *out);
/* The same without copying, where the bytes are aligned f32 already. */
const float *acc_narrow_view(const struct acc_row *row, enum acc_dtype t,
	const struct acc_codes *codes, const void *p, size_t n, float *buf);
void acc_wide_load(enum acc_dtype t, const void *p, size_t n, double *out);
/* A number rounded to a float dtype, to nearest even, as a code of magnitude: how many of its
 * numbers from 0; what is beyond its range is one further than its largest. */
uint64_t acc_round_code(enum acc_dtype t, const struct acc_codes *codes, double x);

#endif
