/* A weight to which the product of two thin matrices is added, as LoRA has it, each by reference: the sum, as it is read. */
#include "payload/pay.h"

#include <math.h>
#include <stdlib.h>

#include "io/lora.h"

enum { TOGETHER = 1024 };

struct acc_added {
	struct acc_parted *parts;
	struct acc_lora l;
	enum acc_dtype base;
	uint64_t count;
	bool reach;
	double unit;         /* of the type in which they are added */
	float *left, *right; /* rows by rank; rank by columns */
};

/* n elements of a part, `step` apart, as rows of `cols`. */
static int
take(struct acc_added *x, const struct acc_lora_matrix *m, int64_t rows, int64_t cols, float **out,
	struct acc_err *e)
{
	const enum acc_dtype t = acc_grid_type(m->type);
	const uint64_t size = acc_dtype_of(t)->size, n = (uint64_t)(rows * cols);
	uint8_t *raw = malloc(n * size);
	*out = malloc(n * sizeof **out);
	int rc = raw == NULL || *out == NULL
			 ? acc_nomem(e)
			 : acc_parted_bytes(x->parts, (uint32_t)m->part, 0, n * size, raw, e);
	for (int64_t r = 0; r < rows && rc == 0; r++)
		for (int64_t c = 0; c < cols; c++)
			(*out)[r * cols + c] = (float)acc_load_f64(t,
				raw + (uint64_t)(m->turned ? c * rows + r : r * cols + c) * size);
	free(raw);
	return rc;
}

void
acc_added_close(struct acc_added *x)
{
	if (x == NULL)
		return;
	acc_parted_close(x->parts);
	free(x->left);
	free(x->right);
	free(x);
}

struct acc_added *
acc_added_open(struct acc_roots *r, const struct acc_ref *ref, struct acc_err *e)
{
	struct acc_added *x = calloc(1, sizeof *x);
	int rc = x == NULL ? acc_nomem(e) : acc_lora_read(&ref->parts, &x->l, &x->count, e);
	if (rc == 0 && (ref->dtype != ACC_F32 || ref->len != x->count * sizeof(float)))
		rc = acc_fail(e, ACC_EFORMAT, "another sum than its shape needs");
	if (rc == 0 && (x->parts = acc_parted_open_bytes(r, ref, e)) == NULL)
		rc = ACC_EIO;
	if (rc == 0 && x->count > 0) {
		x->reach = ref->reach;
		x->base = acc_grid_type(x->l.base.type);
		x->unit = acc_dtype_of(x->base)->eps / 2;
		rc = take(x, &x->l.left, x->l.rows, x->l.rank, &x->left, e);
	}
	if (rc == 0 && x->count > 0)
		rc = take(x, &x->l.right, x->l.rank, x->l.cols, &x->right, e);
	if (rc < 0) {
		acc_added_close(x);
		return NULL;
	}
	return x;
}

/* Where the adapter has been added, its product, the factor's and the sum were rounded, and the parts of the
 * product were added up. Twice that, as a whole step of a grid is twice what its rounding does. */
static double
reach_of(const struct acc_added *x, double base, double add, double all)
{
	return 2 *
	       (x->unit * (2 * fabs(add) + fabs(base + add)) + 0x1p-24 * (double)x->l.rank * all);
}

int
acc_added_read(const struct acc_added *x, uint64_t first, size_t n, float *out, struct acc_err *e)
{
	const uint64_t cols = (uint64_t)x->l.cols, size = acc_dtype_of(x->base)->size;
	uint8_t raw[TOGETHER * 8];
	double sum[TOGETHER], all[TOGETHER];
	if (first > x->count || n > x->count - first)
		return acc_fail(e, ACC_EFORMAT, "elements that the sum does not have");
	while (n > 0) {
		const uint64_t row = first / cols, col = first % cols;
		size_t k = cols - col < n ? (size_t)(cols - col) : n;
		k = k < TOGETHER ? k : TOGETHER;
		int rc = acc_parted_bytes(x->parts, (uint32_t)x->l.base.part, first * size,
			k * size, raw, e);
		if (rc < 0)
			return rc;
		memset(sum, 0, k * sizeof *sum);
		memset(all, 0, k * sizeof *all);
		for (int64_t j = 0; j < x->l.rank; j++) {
			const double b = x->left[row * (uint64_t)x->l.rank + (uint64_t)j];
			const float *a = x->right + (uint64_t)j * cols + col;
			for (size_t i = 0; i < k; i++) {
				sum[i] += b * a[i];
				all[i] += fabs(b * a[i]);
			}
		}
		for (size_t i = 0; i < k; i++) {
			const double base = acc_load_f64(x->base, raw + i * size),
				     add = x->l.factor * sum[i];
			out[i] = (float)(x->reach ? reach_of(x, base, add,
							    fabs(x->l.factor) * all[i])
						  : base + add);
		}
		out += k;
		first += k;
		n -= k;
	}
	return acc_parted_unchanged(x->parts, e);
}
