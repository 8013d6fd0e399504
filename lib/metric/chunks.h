/* chunks.h - the content hash of a tensor, from hashes of what it lies in (inside lib/metric) */
#ifndef ACC_METRIC_CHUNKS_H
#define ACC_METRIC_CHUNKS_H

#include "metric/measurer.h"

/* s.hash of the n elements of a reference that was checked (it may be a view), where each of its chunks is one
 * of the storage, or of one of the parts that this is put together of, whose hashes are `chunks`: s.chunks of
 * the storage. false: it cannot be told without reading. */
bool acc_chunks_hash(const struct acc_ref *ref, uint64_t n, struct acc_str chunks, uint64_t *hash);

#endif
