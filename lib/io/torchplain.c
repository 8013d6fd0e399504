/* A bare pickle of numpy arrays: what pickle.dump writes, paddle.save, and numpy.save of what is no array. */
#include "io/torchold.h"

#include "acc/file.h"

bool
acc_torchplain_is(int fd, uint64_t base, uint64_t size)
{
	uint8_t head[2];
	return size > sizeof head && acc_file_pread(fd, head, sizeof head, base, NULL) == 0 &&
	       head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
}

/* What paddle.save notes beside the tensors. */
static bool
is_paddle(const struct acc_py *root)
{
	for (uint32_t i = 0; root->type == ACC_PY_DICT && i < root->n; i += 2)
		if (root->item[i]->type == ACC_PY_STR &&
			acc_str_is(root->item[i]->s, "StructuredToParameterName@@"))
			return true;
	return false;
}

int
acc_torchplain_read(int fd, uint64_t base, uint64_t size, struct acc_torchsrc *src,
	struct acc_py **root, struct acc_arena *m, struct acc_err *e)
{
	if (size > UINT32_MAX)
		return acc_fail(e, ACC_ELIMIT, "a pickle of more than 4 GiB");
	uint8_t *p = acc_alloc(m, (size_t)size);
	struct acc_zip_member *pkl = acc_alloc(m, sizeof *pkl);
	size_t used = 0;
	if (p == NULL || pkl == NULL)
		return acc_nomem(e);
	*pkl = (struct acc_zip_member){.off = base, .len = size, .clen = size, .enc = ACC_STORED};
	*src = (struct acc_torchsrc){.old = true, .plain = true, .pkl = pkl, .bytes = p};
	int rc = acc_file_pread(fd, p, (size_t)size, base, e);
	struct acc_err why = {0};
	if (rc == 0 && (rc = acc_pickle_read(p, (size_t)size, &used, root, m, &why)) < 0) {
		why.pos += base;
		if (e != NULL && e->code == 0)
			*e = why;
	}
	if (rc == 0 && used != size)
		rc = acc_fail_at(e, ACC_EFORMAT, base + used,
			"the file goes on for %llu bytes behind its pickle",
			(unsigned long long)(size - used));
	if (rc == 0)
		src->paddle = is_paddle(*root);
	return rc;
}
