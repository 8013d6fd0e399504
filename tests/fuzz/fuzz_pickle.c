/* Any bytes as a pickle. The tree is touched but not walked: it may be endless. */
#include "acc/pickle.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct acc_arena m = {0};
	struct acc_py *root = NULL;
	struct acc_err e = {0};
	size_t used = 0;
	int rc = acc_pickle_read(data, size, &used, &root, &m, &e);
	if (rc != e.code || rc > 0 || used > size)
		abort();
	if (rc == 0 && root->type >= ACC_PY_LIST && root->type != ACC_PY_GLOBAL)
		for (uint32_t i = 0; i < root->n; i++)
			if (root->item[i] != NULL && root->item[i]->pos > size)
				abort();
	if (m.held > 200 * size + 4096)
		abort();
	acc_arena_release(&m);
	return 0;
}
