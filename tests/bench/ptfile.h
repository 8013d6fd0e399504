/* ptfile.h - files as torch.save writes them: a zip of stored members, one of them a pickle */
#ifndef ACC_BENCH_PTFILE_H
#define ACC_BENCH_PTFILE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct bytes {
	uint8_t p[2048];
	size_t n;
};

#define LIT(s) (s), sizeof(s) - 1

static void
put(struct bytes *b, const void *p, size_t n)
{
	memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void
le(struct bytes *b, uint64_t v, int n)
{
	for (; n > 0; n--, v >>= 8)
		b->p[b->n++] = (uint8_t)v;
}

static void
text(struct bytes *b, const char *s)
{
	put(b, s, strlen(s));
}

/* What torch.save pickles of a contiguous tensor, without its memo. */
static void
pickle(struct bytes *b, const char *storage, const uint64_t *shape, int ndim)
{
	uint64_t count = 1;
	for (int d = 0; d < ndim; d++)
		count *= shape[d];
	put(b, LIT("\x80\x02"
		   "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\n"));
	text(b, storage);
	put(b, LIT("\nX\1\0\0\0"
		   "0X\3\0\0\0cpuJ"));
	le(b, count, 4);
	put(b, LIT("tQK\0("));
	for (int d = 0; d < ndim; d++) {
		put(b, LIT("J"));
		le(b, shape[d], 4);
	}
	put(b, LIT("t("));
	for (int d = 0; d < ndim; d++) {
		uint64_t step = 1;
		for (int e = d + 1; e < ndim; e++)
			step *= shape[e];
		put(b, LIT("J"));
		le(b, step, 4);
	}
	put(b, LIT("t\x89"
		   "ccollections\nOrderedDict\n)RtR."));
}

struct member {
	const char *name;
	uint32_t crc, size;
	uint64_t at;
};

/* The header of a stored member; its bytes begin at a multiple of 64, as torch has it. */
static void
local(FILE *f, struct member *m, uint64_t *pos)
{
	struct bytes b = {.n = 0};
	size_t name = strlen(m->name), pad = (64 - (*pos + 30 + name + 4) % 64) % 64;
	m->at = *pos;
	text(&b, "PK\3\4");
	le(&b, 10, 2);
	le(&b, 0, 8);
	le(&b, m->crc, 4);
	le(&b, m->size, 4);
	le(&b, m->size, 4);
	le(&b, name, 2);
	le(&b, pad + 4, 2);
	text(&b, m->name);
	text(&b, "FB");
	le(&b, pad, 2);
	memset(b.p + b.n, 'Z', pad);
	b.n += pad;
	fwrite(b.p, 1, b.n, f);
	*pos += b.n + m->size;
}

static void
directory(FILE *f, const struct member *m, int n, uint64_t pos)
{
	struct bytes b = {.n = 0};
	for (int i = 0; i < n; i++) {
		text(&b, "PK\1\2");
		le(&b, 10, 2);
		le(&b, 10, 2);
		le(&b, 0, 8);
		le(&b, m[i].crc, 4);
		le(&b, m[i].size, 4);
		le(&b, m[i].size, 4);
		le(&b, strlen(m[i].name), 2);
		le(&b, 0, 12);
		le(&b, m[i].at, 4);
		text(&b, m[i].name);
	}
	size_t size = b.n;
	text(&b, "PK\5\6");
	le(&b, 0, 4);
	le(&b, (uint64_t)n, 2);
	le(&b, (uint64_t)n, 2);
	le(&b, size, 4);
	le(&b, pos, 4);
	le(&b, 0, 2);
	fwrite(b.p, 1, b.n, f);
}

#endif
