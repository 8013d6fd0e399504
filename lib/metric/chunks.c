/* The content hash is over the hashes of chunks of 65,536 elements. Parts of weights mostly begin and end with
 * such a chunk, since their rows are long, so that the hash of what is put together of them, or of a part of
 * it, follows from theirs. */
#include "metric/chunks.h"

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* What lies in more parts, or bands of them, is looked at for each chunk, and hardly made of chunks. */
enum { MOST = 4096 };

/* How many elements of the last axes lie one behind the other, and how many axes are before them. */
static uint64_t
inner_of(const struct acc_ref *ref, uint32_t *outer)
{
	uint64_t n = 1;
	uint32_t d = ref->ndim;
	for (; d > 0; d--) {
		const bool split = (ref->block.n > 0 && ref->block.axis == d - 1) ||
				   (ref->groups.n > 0 && d == 1);
		if (split || (ref->shape[d - 1] != 1 && ref->stride[d - 1] != (int64_t)n))
			break;
		n *= (uint64_t)ref->shape[d - 1];
	}
	*outer = d;
	return n;
}

/* Where index k of an axis lies; *run: how many from it on lie one behind the other. */
static int64_t
place(const struct acc_ref *ref, uint32_t axis, int64_t k, int64_t *run)
{
	const int64_t left = ref->shape[axis] - k, stride = ref->stride[axis];
	const struct acc_block *b = &ref->block;
	int64_t to = k * stride;
	*run = left;
	if (ref->groups.n > 0 && axis == 0)
		to = acc_grouped(&ref->groups, k, run) * stride;
	if (b->n > 0 && b->axis == axis) {
		to = k / b->n * b->stride + k % b->n * stride;
		*run = b->n - k % b->n;
	}
	*run = *run < left ? *run : left;
	return to;
}

/* Element `index` of the reference, and those behind it, in its storage. */
static bool
in_storage(const struct acc_ref *ref, uint64_t n, uint64_t index, struct acc_run *out)
{
	if (!ref->strided) {
		*out = (struct acc_run){ref->first + index, n - index};
		return true;
	}
	uint32_t outer;
	const uint64_t inner = inner_of(ref, &outer);
	int64_t at = (int64_t)(ref->first + index % inner), run;
	out->n = inner - index % inner;
	index /= inner;
	for (uint32_t d = outer; d-- > 0; index /= (uint64_t)ref->shape[d]) {
		at += place(ref, d, (int64_t)(index % (uint64_t)ref->shape[d]), &run);
		if (d + 1 == outer && ref->stride[d] == (int64_t)inner)
			out->n += (uint64_t)(run - 1) * inner;
	}
	out->at = (uint64_t)at;
	return at >= 0;
}

static uint64_t
chunks_of(uint64_t n)
{
	return n / ACC_CHUNK + (n % ACC_CHUNK != 0);
}

/* Elements of part i, or of the storage itself. */
static uint64_t
elements(const struct acc_ref *ref, uint32_t i)
{
	const uint64_t len = ref->enc == ACC_PARTS ? (uint64_t)ref->parts.len[i] : ref->len;
	return len / acc_dtype_of(ref->dtype)->size;
}

/* The chunk of k elements from `index` on: which of all is it? */
static bool
find(const struct acc_ref *ref, uint64_t n, uint64_t index, uint64_t k, uint64_t *chunk)
{
	struct acc_run run, in;
	uint32_t part = 0;
	if (!in_storage(ref, n, index, &run) || run.n < k)
		return false;
	in = run;
	if (ref->enc == ACC_PARTS && (!acc_part_at(&ref->parts, run.at, &part, &in) || in.n < k))
		return false;
	const uint64_t all = elements(ref, part);
	if (in.at % ACC_CHUNK != 0 || in.at + k > all || (k < ACC_CHUNK && in.at + k != all))
		return false;
	*chunk = in.at / ACC_CHUNK;
	for (uint32_t i = 0; i < part; i++)
		*chunk += chunks_of(elements(ref, i));
	return true;
}

bool
acc_chunks_hash(const struct acc_ref *ref, uint64_t n, struct acc_str chunks, uint64_t *hash)
{
	const uint32_t parts = ref->enc == ACC_PARTS ? ref->parts.n : 1;
	uint64_t all = 0, at;
	XXH3_state_t state;
	if (chunks.n == 0 || ref->parts.n > MOST || ref->parts.nrows > MOST ||
		(ref->enc != ACC_PARTS && ref->enc != ACC_STORED))
		return false;
	for (uint32_t i = 0; i < parts; i++)
		all += chunks_of(elements(ref, i));
	if (chunks.n % 8 != 0 || chunks.n / 8 != all)
		return false;
	XXH3_INITSTATE(&state);
	XXH3_64bits_reset(&state);
	for (uint64_t i = 0; i < n; i += ACC_CHUNK) {
		if (!find(ref, n, i, n - i < ACC_CHUNK ? n - i : ACC_CHUNK, &at))
			return false;
		XXH3_64bits_update(&state, chunks.p + 8 * at, 8);
	}
	*hash = XXH3_64bits_digest(&state);
	return true;
}
