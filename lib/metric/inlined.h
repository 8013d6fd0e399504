/* inlined.h - payload that comes in the stream (inside lib/metric)
 *
 * A stream with payload has all its records first, then the bytes. What must be measured can
 * be measured only then: from the first tensor on that has neither a file nor, it seems, an
 * end as a record without data, all records are kept aside on disk, and so are the bytes. */
#ifndef ACC_METRIC_INLINED_H
#define ACC_METRIC_INLINED_H

#include "metric/side.h"

struct inlined;
struct inlined *acc_inlined_open(const char *tmpdir, struct acc_err *e);
void acc_inlined_close(struct inlined *in);

/* Would this side's payload come in data records, if any came? */
bool acc_inlined_expected(const struct side *s);
/* This side's payload may come. */
int acc_inlined_expect(struct inlined *in, const struct acc_rec *r, const struct side *s,
	struct acc_err *e);
/* Keep a record; the bytes of a data record also where they can be read at any place. */
int acc_inlined_keep(struct inlined *in, const struct acc_rec *r, struct acc_err *e);
/* No more records: what came can be read. */
int acc_inlined_ready(struct inlined *in, struct acc_roots *roots, struct acc_err *e);
/* The next of the records kept: 1, 0 or < 0. */
int acc_inlined_next(struct inlined *in, struct acc_rec **r, struct acc_err *e);
/* If payload came for this side, make it refer to it. */
void acc_inlined_refer(const struct inlined *in, const struct acc_rec *r, struct side *s);

#endif
