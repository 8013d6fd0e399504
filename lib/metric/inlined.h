/* inlined.h - payload that comes in the stream (inside lib/metric)
 *
 * A stream with payload has all its records first, then the bytes. From the first tensor on that
 * has neither a file nor, it seems, an end as a record without data, all records are kept aside
 * on disk. The bytes go to another file; as soon as those of the oldest record are there it can be
 * measured, and when it has been, they are dropped. */
#ifndef ACC_METRIC_INLINED_H
#define ACC_METRIC_INLINED_H

#include "metric/side.h"

struct inlined;
/* The bytes are found through `roots`. */
struct inlined *acc_inlined_open(const char *tmpdir, struct acc_roots *roots, struct acc_err *e);
void acc_inlined_close(struct inlined *in);

/* Would this side's payload come in data records, if any came? */
bool acc_inlined_expected(const struct side *s);
/* This side's payload may come. */
int acc_inlined_expect(struct inlined *in, const struct acc_rec *r, const struct side *s,
	struct acc_err *e);
/* Keep a record. */
int acc_inlined_keep(struct inlined *in, const struct acc_rec *r, struct acc_err *e);
/* Take the bytes of a data record, if it is open those of rd, too. 1: its tensor is complete; 0: it
 * is not; < 0: failure. *known: it is of a tensor that is measured here. */
int acc_inlined_store(struct inlined *in, const struct acc_rec *r, struct acc_rd *rd, bool *known,
	struct acc_err *e);
/* The oldest of the records kept, until acc_inlined_pop: 1, 0 or < 0. */
int acc_inlined_peek(struct inlined *in, struct acc_rec **r, struct acc_err *e);
void acc_inlined_pop(struct inlined *in);
/* May more bytes come for this side? */
bool acc_inlined_waits(const struct inlined *in, const struct acc_rec *r, const struct side *s);
/* If payload came for this side, make it refer to it. */
void acc_inlined_refer(const struct inlined *in, const struct acc_rec *r, struct side *s);
/* This side has been measured. */
void acc_inlined_done(struct inlined *in, const struct acc_rec *r, const struct side *s);

#endif
