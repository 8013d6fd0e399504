/* Records kept aside in an unlinked file, so that a judge of a million records stays small. */
#include "stream/store.h"

#include <stdlib.h>

struct acc_spool {
	struct acc_store *store;
};

struct acc_spool *
acc_spool_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_spool *sp = calloc(1, sizeof *sp);
	if (sp == NULL) {
		acc_nomem(e);
		return NULL;
	}
	sp->store = acc_store_open(tmpdir, "", e);
	if (sp->store == NULL) {
		free(sp);
		return NULL;
	}
	return sp;
}

int
acc_spool_put(struct acc_spool *sp, const struct acc_rec *r, uint64_t *at, struct acc_err *e)
{
	int64_t keys = acc_store_keys(sp->store, r, e);
	return keys < 0 ? (int)keys : acc_store_put(sp->store, r, (uint32_t)keys, at, e);
}

int
acc_spool_get(struct acc_spool *sp, uint64_t at, struct acc_rec **out, struct acc_err *e)
{
	return acc_store_rec(sp->store, at, out, e);
}

void
acc_spool_close(struct acc_spool *sp)
{
	if (sp == NULL)
		return;
	acc_store_close(sp->store);
	free(sp);
}
