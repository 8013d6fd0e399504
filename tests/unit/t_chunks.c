/* Content hashes that follow from those of chunks: against the bytes, gathered one by one. */
#include "metric/chunks.h"
#include "tap.h"

#include <stdlib.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

enum { C = ACC_CHUNK, ROW = C / 4, ROWS = 48, N = ROW * ROWS, TAIL = 1000 };

static uint8_t data[N + TAIL], part[3][N], seen[N + TAIL];

static uint64_t
hash_of(const uint8_t *p, uint64_t n)
{
	XXH64_hash_t h[N / C + 2];
	size_t k = 0;
	for (uint64_t at = 0; at < n; at += C)
		h[k++] = XXH3_64bits(p + at, n - at < C ? n - at : C);
	return XXH3_64bits(h, k * sizeof *h);
}

static uint32_t
add_chunks(uint8_t *out, uint32_t have, const uint8_t *p, uint64_t n)
{
	for (uint64_t at = 0; at < n; at += C, have += 8) {
		const uint64_t h = XXH3_64bits(p + at, n - at < C ? n - at : C);
		memcpy(out + have, &h, 8);
	}
	return have;
}

/* The axes' own places, by the definitions of tensor.h. */
static uint64_t
place(const struct acc_ref *r, uint32_t d, int64_t k)
{
	const struct acc_groups *g = &r->groups;
	if (r->block.n > 0 && r->block.axis == d)
		return (uint64_t)(k / r->block.n * r->block.stride + k % r->block.n * r->stride[d]);
	if (g->n == 0 || d > 0)
		return (uint64_t)(k * r->stride[d]);
	for (int64_t group = 0, i = 0; !g->apart && i < ACC_NPARTS; i++) {
		int64_t before = 0;
		for (int64_t j = 0; j < i; j++)
			before += g->part[j];
		if (k >= g->n * g->part[i]) {
			k -= g->n * g->part[i];
			continue;
		}
		group = k / g->part[i];
		return (uint64_t)((group * (g->part[0] + g->part[1] + g->part[2]) + before +
					  k % g->part[i]) *
				  r->stride[d]);
	}
	return 0;
}

static uint64_t
gather(const struct acc_ref *r, const uint8_t *from)
{
	uint64_t n = 1;
	for (uint32_t d = 0; d < r->ndim; d++)
		n *= (uint64_t)r->shape[d];
	for (uint64_t i = 0; i < n; i++) {
		uint64_t at = r->first, k = i, dense = 1;
		for (uint32_t d = r->ndim; d-- > 0; k /= (uint64_t)r->shape[d]) {
			const uint64_t x = k % (uint64_t)r->shape[d];
			at += r->strided ? place(r, d, (int64_t)x) : x * dense;
			dense *= (uint64_t)r->shape[d];
		}
		seen[i] = from[at];
	}
	return n;
}

static void
is(const struct acc_ref *r, struct acc_str chunks, const uint8_t *storage, bool told,
	const char *what)
{
	uint64_t hash = 0;
	const uint64_t n = gather(r, storage);
	const bool got = acc_chunks_hash(r, n, chunks, &hash);
	ok(got == told && (!got || hash == hash_of(seen, n)), "%s", what);
}

static struct acc_ref
view(uint64_t first, int64_t d0, int64_t s0, int64_t d1, int64_t s1, int64_t d2)
{
	return (struct acc_ref){.dtype = ACC_U8,
		.ndim = 3,
		.shape = {d0, d1, d2},
		.strided = true,
		.stride = {s0, s1, 1},
		.first = first,
		.len = N + TAIL};
}

static void
one_storage(void)
{
	static uint8_t h[8 * (N / C + 1)];
	const struct acc_str chunks = {(char *)h, add_chunks(h, 0, data, N + TAIL)};
	struct acc_ref r = {.dtype = ACC_U8, .ndim = 1, .shape = {N + TAIL}, .len = N + TAIL};
	is(&r, chunks, data, true, "all of it");
	is(&r, (struct acc_str){chunks.p, chunks.n - 8}, data, false, "with a hash less");
	is(&r, (struct acc_str){"", 0}, data, false, "without hashes");
	r = view(C, 2, 4 * ROW, 4, ROW, ROW);
	is(&r, chunks, data, true, "a part");
	r = view(ROW, 2, 4 * ROW, 4, ROW, ROW);
	is(&r, chunks, data, false, "a part that begins within a chunk");
	r = view(0, 3, 4 * ROW, 3, ROW, ROW);
	is(&r, chunks, data, false, "rows of less than a chunk");
	r = view(C, 1, 0, 5, ROW, ROW);
	is(&r, chunks, data, false, "a part that ends within a chunk");
	r = view(N - C, 1, 1, 1, 1, C + TAIL);
	is(&r, chunks, data, true, "the end, with less than a chunk");
	r = view(0, 4, 12 * ROW, 8, ROW, ROW);
	is(&r, chunks, data, true, "two chunks of three");
	r = view(0, 8, ROW, 4, 8 * ROW, ROW);
	is(&r, chunks, data, false, "rows in another order");
	r = view(8 * ROW, 16, ROW, 1, 1, ROW);
	r.block = (struct acc_block){0, 8, 16 * ROW};
	is(&r, chunks, data, true, "blocks of two chunks");
	r.block = (struct acc_block){0, 2, 4 * ROW};
	is(&r, chunks, data, false, "blocks of half a chunk");
	r = view(0, 48, ROW, 1, 1, ROW);
	r.groups = (struct acc_groups){3, {8, 4, 4}, false};
	is(&r, chunks, data, true, "groups of chunks");
	r.groups = (struct acc_groups){3, {12, 2, 2}, false};
	is(&r, chunks, data, false, "groups of less");
}

/* Rows of which the first half lies in one part, the second in another; and what is behind in a third. */
static void
parts(void)
{
	static uint8_t h[8 * (N / C + 3)], whole[N];
	enum { A = 2 * C, B = 3 * C, D = C + 100 };
	uint32_t n = add_chunks(h, 0, part[0], A);
	n = add_chunks(h, n, part[1], B);
	n = add_chunks(h, n, part[2], D);
	const int64_t len[] = {A, B, D};
	const int64_t rows[] = {1, 3, 1, C, 2 * C, 0, 0, 0, 2 * C, 0, 1, 0, C, 0, 1, 1, 2, 0, D, 0};
	struct acc_ref r = {.dtype = ACC_U8,
		.ndim = 1,
		.shape = {A + B + D},
		.len = A + B + D,
		.enc = ACC_PARTS,
		.parts = {.n = 3, .nrows = 20, .len = len, .rows = rows}};
	memcpy(whole, part[1] + C, 2 * C);
	memcpy(whole + 2 * C, part[0], A);
	memcpy(whole + 2 * C + A, part[1], C);
	memcpy(whole + B + A, part[2], D);
	is(&r, (struct acc_str){(char *)h, n}, whole, true, "put together of parts");
	r.strided = true;
	r.stride[0] = 1;
	r.shape[0] = 2 * C;
	r.first = C;
	is(&r, (struct acc_str){(char *)h, n}, whole, true, "a part of that");
	r.first = A + B;
	r.shape[0] = D;
	is(&r, (struct acc_str){(char *)h, n}, whole, true, "its end");
	r.first = 0;
	r.shape[0] = A + B + 50;
	is(&r, (struct acc_str){(char *)h, n}, whole, false, "nearly all");
	/* By columns. */
	const int64_t columns[] = {4, 2, 0, 0, C / 2, C / 2, 1, 0, C / 2, C / 2};
	r = (struct acc_ref){.dtype = ACC_U8,
		.ndim = 1,
		.shape = {4 * C},
		.len = 4 * C,
		.enc = ACC_PARTS,
		.parts = {.n = 2, .nrows = 10, .len = len, .rows = columns}};
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 2; k++)
			memcpy(whole + i * C + k * C / 2, part[k] + i * C / 2, C / 2);
	is(&r, (struct acc_str){(char *)h, 8 * 5}, whole, false, "columns of less than a chunk");
	const int64_t wide[] = {2, 2, 0, 0, C, C, 1, C, C, C};
	r.parts.rows = wide;
	for (int i = 0; i < 2; i++) {
		memcpy(whole + 2 * i * C, part[0] + i * C, C);
		memcpy(whole + (2 * i + 1) * C, part[1] + (i + 1) * C, C);
	}
	is(&r, (struct acc_str){(char *)h, 8 * 5}, whole, true, "columns of a chunk");
}

int
main(void)
{
	uint64_t x = 1;
	for (size_t i = 0; i < sizeof data; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		data[i] = (uint8_t)(x >> 33);
	}
	for (int k = 0; k < 3; k++)
		for (size_t i = 0; i < sizeof part[k]; i++)
			part[k][i] = (uint8_t)(data[i] + 85 * k + 1);
	one_storage();
	parts();
	return done();
}
