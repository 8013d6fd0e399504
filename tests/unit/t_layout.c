/* Layouts: which ones fit two shapes, what they are called, that a view is what its name says; and
 * how often random content looks like another order of itself. */
#include "tap.h"

#include "metric/layout.h"

#include <math.h>
#include <stdlib.h>

static void
shape(struct acc_ref *r, const char *text)
{
	*r = (struct acc_ref){.dtype = ACC_F32};
	for (char *p = (char *)text; *p != '\0'; p += *p == ' ')
		r->shape[r->ndim++] = strtoll(p, &p, 10);
}

/* All layouts of two shapes, in order. */
static void
names(const char *a, const char *b, const char *want)
{
	static struct layout l[MAX_LAYOUTS];
	struct acc_ref x, y;
	char got[2000] = "", one[320];
	shape(&x, a);
	shape(&y, b);
	size_t n = acc_layouts(&x, &y, l);
	for (size_t i = 0; i < n; i++) {
		acc_layout_text(&l[i], one, sizeof one);
		snprintf(got + strlen(got), sizeof got - strlen(got), "%s%s", i > 0 ? " " : "",
			one);
	}
	ok(strcmp(got, want) == 0, "[%s] and [%s]: %s (%s)", a, b, want, got);
}

static void
enumeration(void)
{
	names("3 4", "4 3", "a.permute(1,0)");
	names("3 3", "3 3", "a.permute(1,0)");
	names("3 4", "3 4", "");
	names("5", "5", "");
	names("12", "3 4", "a.view(4,3).permute(1,0)");
	names("1 3 4", "4 3", "a.permute(0,2,1).reshape");
	names("2 3 4", "3 2 4", "a.permute(1,0,2)");
	names("2 2 5", "2 2 5", "a.permute(1,0,2)");
	names("2 3 5", "15 2", "a.permute(1,2,0).reshape a.permute(2,1,0).reshape");
	names("6 4", "8 3", "");
	names("3 4", "5 6", "");
	names("0 3", "3 0", "");
	names("2 3", "6 3",
		"b.part(0,0,2) b.part(0,2,2) b.part(0,4,2) "
		"b.view(2,3,3).part(1,0,1).reshape b.view(2,3,3).part(1,1,1).reshape "
		"b.view(2,3,3).part(1,2,1).reshape");
	names("9", "3",
		"a.part(0,0,3) a.part(0,3,3) a.part(0,6,3) a.view(3,3).part(1,0,1).reshape "
		"a.view(3,3).part(1,1,1).reshape a.view(3,3).part(1,2,1).reshape");
	names("3 2", "2 6",
		"b.part(1,0,3).permute(1,0) b.part(1,3,3).permute(1,0) "
		"b.view(2,3,2).part(2,0,1).permute(1,2,0).reshape "
		"b.view(2,3,2).part(2,1,1).permute(1,2,0).reshape");
	names("", "3", "b.part(0,0,1).reshape b.part(0,1,1).reshape b.part(0,2,1).reshape");
	names("2 3 2 3 2 3 2", "3 2 3 2 3 2 2", "");
}

/* A shape that nobody believes must not cost time. */
static void
hostile(void)
{
	static struct layout l[MAX_LAYOUTS];
	struct acc_ref x, y;
	shape(&x, "4611686018427387904");
	shape(&y, "2305843009213693952");
	ok(acc_layouts(&x, &y, l) <= MAX_LAYOUTS, "tensors of 2^62 elements");
	shape(&x, "2 2 2 2 2 2");
	ok(acc_layouts(&x, &x, l) == MAX_LAYOUTS, "more orders than are kept");
	static struct layout w[MAX_WEIGHT_LAYOUTS];
	shape(&x, "4611686018427387904");
	shape(&y, "1 2305843009213693952 2");
	ok(acc_weight_layouts(&x, &x, w) <= MAX_WEIGHT_LAYOUTS, "weights of 2^62 elements");
	ok(acc_weight_layouts(&x, &y, w) <= MAX_WEIGHT_LAYOUTS, "flattened");
	shape(&x, "2305843009213693952 2 1");
	shape(&y, "1 2");
	ok(acc_weight_layouts(&x, &y, w) <= MAX_WEIGHT_LAYOUTS, "2^61 experts");
}

/* Two groups of 3 queries, a key and a value each: 0 1 2, 3, 4 and 5 6 7, 8, 9. */
static void
groups(void)
{
	static const int64_t want[10] = {0, 1, 2, 5, 6, 7, 3, 8, 4, 9};
	struct acc_groups g = {.n = 2, .part = {3, 1, 1}}, back = g;
	bool right = true, inverse = true;
	int64_t run;
	back.apart = true;
	for (int64_t i = 0; i < 10; i++) {
		right &= acc_grouped(&g, i, &run) == want[i];
		inverse &= acc_grouped(&back, acc_grouped(&g, i, &run), &run) == i;
	}
	ok(right, "by groups, read part by part");
	ok(inverse, "and the other way round");
	acc_grouped(&g, 1, &run);
	ok(run == 2, "what lies one behind the other");
}

/* Where element i of the viewed tensor lies, against the same by hand. */
static void
view(void)
{
	struct acc_ref r, v;
	/* a.view(2,3,4).part(1,1,2).permute(2,0,1) of 24 elements that lie backwards */
	struct layout l = {.side = 'a',
		.nview = 3,
		.view = {2, 3, 4},
		.part_dim = 1,
		.part_start = 1,
		.part_len = 2,
		.permuted = true,
		.nperm = 3,
		.perm = {2, 0, 1}};
	shape(&r, "6 4");
	r.strided = true;
	r.stride[0] = -4;
	r.stride[1] = -1;
	r.first = 23;
	acc_layout_view(&l, &r, &v);
	ok(v.ndim == 3 && v.shape[0] == 4 && v.shape[1] == 2 && v.shape[2] == 2, "its shape");
	bool good = true;
	for (int64_t i = 0; i < 4; i++)
		for (int64_t j = 0; j < 2; j++)
			for (int64_t k = 0; k < 2; k++) {
				int64_t at = (int64_t)v.first + i * v.stride[0] + j * v.stride[1] +
					     k * v.stride[2];
				good = good && at == 23 - (j * 12 + (k + 1) * 4 + i);
			}
	ok(good, "its elements");
}

/* The place of an element, as tensor.h says it. */
static int64_t
place(const struct acc_ref *r, const int64_t *ix)
{
	int64_t at = (int64_t)r->first;
	for (uint32_t i = 0; i < r->ndim; i++) {
		const bool b = r->block.n > 0 && r->block.axis == i;
		at += b ? ix[i] / r->block.n * r->block.stride + ix[i] % r->block.n * r->stride[i]
			: ix[i] * r->stride[i];
	}
	return at;
}

/* A matrix of 6 by `n` columns in blocks, n = x * y, as view(6, x, y).permute(1, 0, 2); of its
 * columns those from `part` on. */
static void
view_blocks(int64_t block, int64_t x, int64_t y, int64_t part, bool can)
{
	struct layout l = {.side = 'a',
		.nview = 3,
		.view = {6, x, y},
		.part_dim = part > 0 ? 2 : -1,
		.part_start = part,
		.part_len = y - part,
		.permuted = true,
		.nperm = 3,
		.perm = {1, 0, 2}};
	struct acc_ref r, v;
	shape(&r, "6 0");
	r.shape[1] = x * y;
	r.strided = true;
	r.stride[0] = block;
	r.stride[1] = 1;
	r.block = (struct acc_block){1, block, 6 * block};
	bool good = acc_layout_view(&l, &r, &v) == can;
	for (int64_t i = 0; i < x && can; i++)
		for (int64_t j = 0; j < 6; j++)
			for (int64_t k = part; k < y; k++)
				good = good && place(&v, (const int64_t[]){i, j, k - part}) ==
						       place(&r, (const int64_t[]){j, i * y + k});
	ok(good, "%lld columns in blocks of %lld, in %lld parts, from %lld on: %s",
		(long long)(x * y), (long long)block, (long long)x, (long long)part,
		can ? "viewed" : "cannot be viewed");
}

static void
blocks(void)
{
	view_blocks(4, 3, 8, 0, true); /* a part is some blocks, */
	view_blocks(8, 6, 4, 0, true); /* a block is some parts, */
	view_blocks(4, 5, 4, 0, true); /* or the same */
	view_blocks(4, 2, 6, 0, false);
	view_blocks(4, 3, 8, 4, true);
	view_blocks(4, 3, 8, 3, false);
	view_blocks(16, 3, 5, 0, true); /* fewer than a block */
}

static double
gauss(uint64_t *s)
{
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		*s = *s * 6364136223846793005u + 1442695040888963407u;
		sum += (double)(*s >> 11) * 0x1p-53;
	}
	return sum;
}

/* Square matrices of independent noise, and noise on a matrix that is the same: how many look
 * transposed? */
static void
chance(void)
{
	enum { ROUNDS = 40000 };
	uint64_t seed = 1;
	for (int n = 2; n <= 8; n++) {
		uint32_t alarms = 0, missed = 0;
		for (int t = 0; t < ROUNDS; t++) {
			double a[64], b[64], spread = 0, mean = 0, far[3] = {0};
			for (int i = 0; i < n * n; i++) {
				a[i] = gauss(&seed);
				b[i] = gauss(&seed);
				mean += b[i] / (n * n);
			}
			for (int i = 0; i < n * n; i++) {
				int at = i % n * n + i / n;
				double c = a[at] + 0.001 * b[i];
				spread += (b[i] - mean) * (b[i] - mean);
				far[0] += (a[i] - b[i]) * (a[i] - b[i]);
				far[1] += (a[at] - b[i]) * (a[at] - b[i]);
				far[2] += (a[at] - c) * (a[at] - c);
			}
			alarms += acc_layout_is(sqrt(far[1] / spread), sqrt(far[0] / spread),
				(uint64_t)(n * n));
			missed += !acc_layout_is(sqrt(far[2] / spread), sqrt(far[0] / spread),
				(uint64_t)(n * n));
		}
		ok(alarms <= 4, "%d x %d: %u of %d random pairs look transposed", n, n, alarms,
			ROUNDS);
		ok(missed <= ROUNDS / (n == 2 ? 50 : 1000),
			"%d x %d: %u of %d transposed with noise of 0.001 do not", n, n, missed,
			ROUNDS);
	}
}

int
main(void)
{
	enumeration();
	hostile();
	view();
	blocks();
	groups();
	chance();
	return done();
}
