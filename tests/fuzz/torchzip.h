/* torchzip.h - a zip with right checksums, as that of torch.save around a pickle */
#ifndef FUZZ_TORCHZIP_H
#define FUZZ_TORCHZIP_H

#include "acc/base.h"
#include "io/crc.h"

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

/* A stored member; dir is the directory of all, to come last. */
static void
fuzz_zip_member(struct acc_buf *b, struct acc_buf *dir, const char *name, const void *p, size_t n)
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

/* The directory of this many members, and the end; *dir is empty then. */
static void
fuzz_zip_end(struct acc_buf *b, struct acc_buf *dir, size_t members)
{
	size_t at = b->n;
	acc_buf_add(b, dir->p, dir->n);
	le(b, 4, 0x06054b50);
	le(b, 4, 0);
	le(b, 2, members);
	le(b, 2, members);
	le(b, 4, dir->n);
	le(b, 4, at);
	le(b, 2, 0);
	dir->n = 0;
}

/* archive/data.pkl of these bytes, and archive/data/0 of 64 bytes, into *b. */
__attribute__((unused)) __attribute__((unused)) static void
fuzz_torchzip(struct acc_buf *b, const void *pickle, size_t n)
{
	static const uint8_t storage[64];
	struct acc_buf dir = {0};
	fuzz_zip_member(b, &dir, "archive/data.pkl", pickle, n);
	fuzz_zip_member(b, &dir, "archive/data/0", storage, sizeof storage);
	fuzz_zip_end(b, &dir, 2);
	acc_buf_release(&dir);
}

#endif
