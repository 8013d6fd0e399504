/* chunks.h - the content hash of a tensor, from hashes of what it lies in (inside lib/metric) */
#ifndef ACC_METRIC_CHUNKS_H
#define ACC_METRIC_CHUNKS_H

#include "metric/measurer.h"

/* Elements that lie one behind the other. */
struct acc_run {
	uint64_t at, n;
};

/* Of a storage that is put together of parts that were checked: in which one its element `at` lies, where there, and
 * how many of the next ones follow it. false: in none. (part_of.c) */
bool acc_part_at(const struct acc_parts *p, uint64_t at, uint32_t *part, struct acc_run *out);
/* s.hash of the n elements of a reference that was checked (it may be a view), where each of its chunks is one
 * of the storage, or of one of the parts that this is put together of, whose hashes are `chunks`: s.chunks of
 * the storage. false: it cannot be told without reading. */
bool acc_chunks_hash(const struct acc_ref *ref, uint64_t n, struct acc_str chunks, uint64_t *hash);

#endif
