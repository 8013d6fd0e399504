/* arrived.h - payload that came in the stream
 *
 * The bytes of a tensor come in data records, each from where the one before ended. They are kept
 * in an unlinked file, which the roots know as a source: a tensor that refers to it is read as any
 * other. Where the size of a tensor is known, bytes of others may come in between, and its place
 * can be given back and be written over.
 */
#ifndef ACC_PAYLOAD_ARRIVED_H
#define ACC_PAYLOAD_ARRIVED_H

#include "acc/payload.h"
#include "acc/stream.h"

/* How a reference names the file. */
#define ACC_ARRIVED_SOURCE "payload in the stream"
#define ACC_ARRIVED_FILE "payload"
/* A size that is not known: as many bytes as come one after another. */
#define ACC_ARRIVED_ANY UINT64_MAX

/* Which tensor: the side of a pair, or empty; the source, and the number in it. */
struct acc_arrived_id {
	struct acc_str side, src;
	int64_t seq;
};

struct acc_payload {
	uint64_t at, size, have; /* place in the file, bytes expected, bytes that came */
	uint32_t wanted;         /* expected how often, less done with how often */
	uint32_t crc;            /* CRC-32 of what came, as its records say; of a large one */
	bool unsummed;           /* of some no record says it */
};

struct acc_arrived;
struct acc_arrived *acc_arrived_open(const char *tmpdir, struct acc_roots *roots,
	struct acc_err *e);
void acc_arrived_close(struct acc_arrived *in);

/* Bytes of a tensor may come. One that is expected already keeps its size. */
int acc_arrived_expect(struct acc_arrived *in, const struct acc_arrived_id *id, uint64_t size,
	struct acc_err *e);
/* What came of it, until the next is expected; NULL: it is not expected. */
const struct acc_payload *acc_arrived_find(const struct acc_arrived *in,
	const struct acc_arrived_id *id);
/* The tensor of a data record. */
struct acc_arrived_id acc_arrived_of(const struct acc_rec *data);
/* Take the bytes of a data record of a tensor that is expected; of an open one those of rd (else
 * NULL), too. 1: all its bytes came; 0: not yet; < 0: failure. */
int acc_arrived_take(struct acc_arrived *in, const struct acc_rec *data, struct acc_rd *rd,
	struct acc_err *e);
/* One of those that expected it needs it no more; when none does, its place is free. Only where its
 * size is known. */
void acc_arrived_done(struct acc_arrived *in, const struct acc_arrived_id *id);
/* n bytes from a place in the file. */
int acc_arrived_read(const struct acc_arrived *in, uint64_t at, void *p, size_t n,
	struct acc_err *e);

#endif
