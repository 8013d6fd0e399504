#include "io/tar.h"

#include "acc/file.h"

/* The fields of a header, by POSIX.1-2001's pax and ustar. */
enum { BLOCK = 512, NAME = 100, SIZE = 124, SUM = 148, TYPE = 156, MAGIC = 257, PREFIX = 345 };
enum { MEMBERS = 1000000, NAME_LIMIT = 4096, EXTRA_LIMIT = 1 << 16 };

/* What stands before a member and is about it. */
struct extra {
	struct acc_str name; /* empty: as in the header */
	bool has_size;
	uint64_t size;
};

/* Octal, or, with the top bit set, the number itself, big-endian. */
static bool
number(const uint8_t *p, size_t n, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;
	if (p[0] & 0x80) {
		v = p[0] & 0x7f;
		for (i = 1; i < n; i++) {
			if (v >> 55 != 0)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return true;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	for (size_t k = i; k < n; k++)
		if (p[k] != ' ' && p[k] != '\0')
			return false;
	*out = v;
	return true;
}

/* The sum of all bytes, those of the sum itself as blanks. */
static bool
sum_is_right(const uint8_t *h)
{
	uint64_t want, sum = 0;
	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= SUM && i < SUM + 8 ? ' ' : h[i];
	return number(h + SUM, 8, &want) && want == sum;
}

bool
acc_tar_is(const uint8_t *head, size_t n)
{
	return n >= BLOCK && head[0] != '\0' && memcmp(head + MAGIC, "ustar", 5) == 0 &&
	       sum_is_right(head);
}

static struct acc_str
field(const uint8_t *p, size_t n)
{
	return (struct acc_str){(const char *)p, (uint32_t)strnlen((const char *)p, n)};
}

static int
name_of(const uint8_t *h, struct acc_str *out, struct acc_arena *m, struct acc_err *e)
{
	struct acc_str name = field(h + NAME - 100, 100), prefix = {"", 0};
	/* GNU's own form has times where the prefix would be. */
	if (memcmp(h + MAGIC, "ustar\0", 6) == 0)
		prefix = field(h + PREFIX, 155);
	char *p = acc_arena_printf(m, "%.*s%s%.*s", ACC_PRS(prefix), prefix.n > 0 ? "/" : "",
		ACC_PRS(name));
	*out = acc_str(p);
	return p == NULL ? acc_nomem(e) : 0;
}

/* "27 path=a/b\n" each: its length, a key, a value. */
static int
pax(const struct acc_tar *t, struct acc_str s, struct extra *x, struct acc_err *e)
{
	while (s.n > 0 && s.p[0] != '\0') {
		uint32_t i = 0, n = 0;
		for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9' && n < EXTRA_LIMIT; i++)
			n = n * 10 + (uint32_t)(s.p[i] - '0');
		if (i == s.n || s.p[i] != ' ' || n <= i + 1 || n > s.n || s.p[n - 1] != '\n')
			return acc_fail_at(e, ACC_EFORMAT, t->at, "a pax header that is damaged");
		struct acc_str line = {s.p + i + 1, n - i - 2};
		int64_t size;
		if (acc_str_starts(line, "path="))
			x->name = (struct acc_str){line.p + 5, line.n - 5};
		if (acc_str_starts(line, "size=")) {
			if (!acc_str_int((struct acc_str){line.p + 5, line.n - 5}, &size) ||
				size < 0)
				return acc_fail_at(e, ACC_EFORMAT, t->at,
					"a pax header with no size");
			x->has_size = true;
			x->size = (uint64_t)size;
		}
		if (acc_str_starts(line, "GNU.sparse."))
			return acc_fail_at(e, ACC_EUNSUP, t->at, "a sparse member: unpack it");
		s = (struct acc_str){s.p + n, s.n - n};
	}
	return 0;
}

/* A member that is about the next one; or one that is for nobody here. */
static int
take_extra(const struct acc_tar *t, const struct acc_tar_member *x, struct extra *out,
	struct acc_arena *m, struct acc_err *e)
{
	if (x->type != 'L' && x->type != 'x')
		return 0;
	if (x->len > EXTRA_LIMIT)
		return acc_fail_at(e, ACC_ELIMIT, t->at, "a header of more than %d bytes",
			EXTRA_LIMIT);
	char *p = acc_alloc(m, (size_t)x->len);
	if (p == NULL)
		return acc_nomem(e);
	int rc = acc_file_pread(t->fd, p, (size_t)x->len, x->off, e);
	if (rc == 0 && x->type == 'L')
		out->name = field((const uint8_t *)p, (size_t)x->len);
	else if (rc == 0)
		rc = pax(t, (struct acc_str){p, (uint32_t)x->len}, out, e);
	return rc;
}

/* One header. 1, or 0 where an empty block ends it. */
static int
header(struct acc_tar *t, struct extra *x, struct acc_tar_member *out, struct acc_arena *m,
	struct acc_err *e)
{
	static const uint8_t none[BLOCK];
	uint8_t h[BLOCK];
	if (t->size - t->at < BLOCK)
		return acc_fail_at(e, ACC_ETRUNC, t->size, "the tar ends without its last block");
	int rc = acc_file_pread(t->fd, h, sizeof h, t->at, e);
	if (rc < 0 || memcmp(h, none, sizeof h) == 0)
		return rc;
	if (!sum_is_right(h) || !number(h + SIZE, 12, &out->len))
		return acc_fail_at(e, ACC_EFORMAT, t->at, "no header of a tar, or a damaged one");
	if (++t->n > MEMBERS)
		return acc_fail_at(e, ACC_ELIMIT, t->at, "more than %d members", MEMBERS);
	out->type = h[TYPE] == '\0' || h[TYPE] == '7' ? '0' : (char)h[TYPE];
	out->off = t->at + BLOCK;
	bool own = out->type == 'L' || out->type == 'K' || out->type == 'x' || out->type == 'g';
	if (!own && x->has_size)
		out->len = x->size;
	/* Links and folders have none, whatever they say. */
	if (out->type >= '1' && out->type <= '6')
		out->len = 0;
	if (out->len > t->size - out->off)
		return acc_fail_at(e, ACC_ETRUNC, t->at,
			"a member of %llu bytes, of which the tar has %llu",
			(unsigned long long)out->len, (unsigned long long)(t->size - out->off));
	out->name = x->name;
	if (!own && x->name.n == 0)
		rc = name_of(h, &out->name, m, e);
	if (rc == 0 && !own && out->name.n > NAME_LIMIT)
		rc = acc_fail_at(e, ACC_ELIMIT, t->at, "a name of more than %d bytes", NAME_LIMIT);
	return rc < 0 ? rc : 1;
}

int
acc_tar_next(struct acc_tar *t, struct acc_tar_member *out, struct acc_arena *m, struct acc_err *e)
{
	struct extra x = {0};
	for (;;) {
		int rc = header(t, &x, out, m, e);
		if (rc <= 0)
			return rc;
		bool own = out->type == 'L' || out->type == 'K' || out->type == 'x' ||
			   out->type == 'g';
		rc = own ? take_extra(t, out, &x, m, e) : 0;
		uint64_t pad = (BLOCK - out->len % BLOCK) % BLOCK, left = t->size - out->off;
		t->at = out->off + out->len;
		t->at += pad < left - out->len ? pad : left - out->len;
		if (rc < 0 || !own)
			return rc < 0 ? rc : 1;
	}
}
