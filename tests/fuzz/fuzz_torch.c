/* Any bytes as the data.pkl of a torch file: what is passed on is a valid reference. */
#include "acc/file.h"
#include "acc/torch.h"
#include "io/crc.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
le(struct acc_buf *b, unsigned k, uint64_t v)
{
	for (; k-- > 0; v >>= 8) {
		uint8_t c = (uint8_t)v;
		acc_buf_add(b, &c, 1);
	}
}

static void
str(struct acc_buf *b, const char *s)
{
	acc_buf_add(b, s, strlen(s));
}

static void
member(struct acc_buf *b, struct acc_buf *dir, const char *name, const void *p, size_t n)
{
	le(dir, 4, 0x02014b50);
	le(dir, 8, 0);
	le(dir, 4, 0);
	le(dir, 4, acc_crc32(0, p, n));
	le(dir, 4, n);
	le(dir, 4, n);
	le(dir, 2, strlen(name));
	le(dir, 8, 0);
	le(dir, 4, 0);
	le(dir, 4, b->n);
	str(dir, name);
	le(b, 4, 0x04034b50);
	le(b, 8, 0);
	le(b, 8, 0);
	le(b, 6, 0);
	le(b, 2, strlen(name));
	le(b, 2, 0);
	str(b, name);
	acc_buf_add(b, p, n);
}

static int
leaf(void *arg, const struct acc_torch_leaf *l)
{
	uint64_t size = *(const uint64_t *)arg;
	if ((l->ref != NULL || l->err != NULL) == (l->value_type != NULL))
		abort();
	if (l->err != NULL && l->err->code == 0)
		abort();
	if (l->ref == NULL || l->err != NULL)
		return 0;
	if (l->ref->off > size || l->ref->clen > size - l->ref->off ||
		acc_ref_check(l->ref, NULL) < 0)
		abort();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t storage[64];
	struct acc_buf b = {0}, dir = {0};
	member(&b, &dir, "archive/data.pkl", data, size);
	member(&b, &dir, "archive/data/0", storage, sizeof storage);
	size_t at = b.n;
	acc_buf_add(&b, dir.p, dir.n);
	le(&b, 4, 0x06054b50);
	le(&b, 4, 0);
	le(&b, 4, 0x00020002);
	le(&b, 4, dir.n);
	le(&b, 4, at);
	le(&b, 2, 0);
	int fd = memfd_create("torch", MFD_CLOEXEC);
	if (fd < 0 || acc_file_write(fd, b.p, b.n, NULL) < 0)
		abort();
	uint64_t n = b.n;
	struct acc_err e = {0};
	int rc = acc_torch_read(fd, 0, n, leaf, &n, &e);
	if (rc != e.code)
		abort();
	/* The zip around it is right. */
	if (strncmp(e.msg, "member", 6) == 0 || strncmp(e.msg, "the zip", 7) == 0)
		abort();
	close(fd);
	acc_buf_release(&b);
	acc_buf_release(&dir);
	return 0;
}
