/* coarse.h - sources whose kernels are known to be off by more than others', and by how much */
#ifndef ACC_AUDIT_COARSE_H
#define ACC_AUDIT_COARSE_H

#include "acc/base.h"
#include "acc/record.h"
#include "acc/replay.h"

/* Zero it to start. */
struct acc_coarse {
	struct acc_map sources;      /* their ids */
	struct acc_profile *profile; /* which raises their limits; NULL: there are none */
};

/* A source record. 0 or < 0. */
int acc_coarse_add(struct acc_coarse *c, const struct acc_rec *source, struct acc_err *e);
/* Is this record of such a source? */
bool acc_coarse_is(const struct acc_coarse *c, const struct acc_rec *r);
void acc_coarse_release(struct acc_coarse *c);

#endif
