#include "dump/payload.h"

#include "acc/file.h"
#include "acc/npy.h"
#include "acc/torch.h"

#include <unistd.h>

struct found {
	struct acc_ref *ref;
	struct acc_err *e;
	unsigned n;
};

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	struct found *f = arg;
	if (l->err != NULL && l->err->code != 0) {
		if (f->e != NULL && f->e->code == 0)
			*f->e = *l->err;
		return l->err->code;
	}
	if (l->ref == NULL)
		return acc_fail(f->e, ACC_EFORMAT, "holds a value of type %.60s, not a tensor",
			l->value_type);
	if (f->n++ > 0)
		return acc_fail(f->e, ACC_EFORMAT, "holds more than one tensor");
	*f->ref = *l->ref;
	return 0;
}

static int
npy(int fd, uint64_t size, struct acc_ref *ref, struct acc_arena *m, struct acc_err *e)
{
	/* Headers are small, but nothing says so: twice as much until it is enough. */
	for (uint64_t n = 4096;; n *= 2) {
		n = n < size ? n : size;
		void *p = acc_alloc(m, n);
		if (p == NULL)
			return acc_nomem(e);
		int64_t len = acc_file_pread(fd, p, n, 0, e);
		if (len == 0)
			len = acc_npy_header(p, n, ref, NULL, m, e);
		if (len < 0)
			return (int)len;
		if (len > 0)
			break;
		if (n == size)
			return acc_fail_at(e, ACC_ETRUNC, size, "the file ends in its header");
	}
	if (ref->len > size - ref->off)
		return acc_fail_at(e, ACC_ETRUNC, size,
			"the file ends here, %llu more bytes were "
			"expected",
			(unsigned long long)(ref->len - (size - ref->off)));
	if (ref->len < size - ref->off)
		return acc_fail_at(e, ACC_EFORMAT, ref->off + ref->len,
			"the file goes on for %llu "
			"bytes behind its elements",
			(unsigned long long)(size - ref->off - ref->len));
	return 0;
}

static int
describe(int fd, struct acc_ref *ref, struct acc_arena *m, struct acc_err *e)
{
	uint8_t magic[6] = {0};
	struct acc_file_info info;
	struct found f = {.ref = ref, .e = e};
	int rc = acc_file_stat(fd, &info, e);
	if (rc < 0)
		return rc;
	if (info.size < sizeof magic)
		return acc_fail_at(e, ACC_ETRUNC, info.size, "the file is too short for a tensor");
	rc = acc_file_pread(fd, magic, sizeof magic, 0, e);
	if (rc < 0)
		return rc;
	if (memcmp(magic, "\x93NUMPY", 6) == 0)
		rc = npy(fd, info.size, ref, m, e);
	else
		rc = acc_torch_read(fd, 0, info.size, leaf, &f, e);
	if (rc == 0 && magic[0] != 0x93 && f.n == 0)
		rc = acc_fail(e, ACC_EFORMAT, "holds no tensor");
	if (rc == 0)
		rc = acc_ref_check(ref, e);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	ref->fsize = info.size;
	ref->mtime_ns = info.mtime_ns;
	return rc;
}

int
acc_dump_payload(int dirfd, struct acc_str file, struct acc_ref *ref, struct acc_arena *m,
	struct acc_err *e)
{
	*ref = (struct acc_ref){.dtype = ACC_NODTYPE};
	int fd = acc_file_beneath(dirfd, file, e);
	if (fd < 0)
		return fd;
	int rc = describe(fd, ref, m, e);
	close(fd);
	ref->file = file;
	return rc;
}
