#include "dump/refer.h"

#include "acc/stream.h"

int
acc_dump_refer(struct acc_dump_ctx *c, struct dump_said *said, struct acc_rec *r,
	const struct acc_ref *ref, struct acc_err *bad, const char *where)
{
	int rc = 0;
	if (bad->code == 0)
		return acc_ref_put(r, ref);
	if (ref->dtype != ACC_NODTYPE)
		rc |= acc_add(r, "", "dtype", acc_ctext(acc_dtype_of(ref->dtype)->name));
	if (ref->ndim > 0)
		rc |= acc_add(r, "", "shape", acc_ints(ref->shape, ref->ndim));
	return rc | acc_dump_say_err(said, c, r, bad, where);
}
