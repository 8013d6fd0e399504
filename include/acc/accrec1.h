/* accrec1.h - record tensors from a program that cannot link libaccrec: this header is all
 *
 *	struct acc1 *a = acc1_open("rec");                  a folder, which is made; NULL: errno says why
 *	acc1_call(a, "MUL_MAT", NULL);                      the op calls, in the order in which they run
 *	acc1_tensor(a, "in", "0", "f32", 2, shape, stride, data);
 *	acc1_tensor(a, "out", "0", "f32", 2, shape, stride, data);
 *	acc1_float(a, "kw", "eps", 1e-5);                   an attribute
 *	acc1_node(a, "node_3", "Add");                      or: a node of a graph, by its own name, and by theirs
 *	acc1_from(a, "0", "node_2");                        what went into it; of what was not recorded nothing is said
 *	acc1_array(a, "Qcur-0", "f32", 2, shape, stride, data);    or: a tensor, of which no more is known than its name
 *	acc1_close(a);                                      0, or the errno of what could not be written
 *
 * It writes what acc_rec_call of accrec(3) does, rank0.acc and rank0.step0.data, with its checksums, no thread
 * and no statistics; accdump-read(1) and accdiff(1) read it, accrec1(3) is its page. Strides are in bytes and may be
 * those of any view, so nothing is copied by the caller. A name may come as often as it likes: it is numbered.
 * After a failure nothing more is written, and the program goes on; so it does with a NULL for what acc1_open could
 * not open. Not for several threads at once. C99 with POSIX (mkdir), C++11.
 */
#ifndef ACCREC1_H
#define ACCREC1_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { ACC1_DIMS = 64, ACC1_TEXT = 2048 };

struct acc1_name {
	char *op;
	int64_t calls;
	int node; /* a node gave a tensor of this name */
};

struct acc1 {
	FILE *records, *data;
	int failed; /* errno */
	uint64_t n, seq, at;
	struct acc1_name *name;
	size_t nname, nslot;
	size_t *slot; /* by a hash of the name, one more than its place; 0: free */
	char id[9], op[ACC1_TEXT], key[ACC1_TEXT + 64];
	char as[ACC1_TEXT]; /* the name of a node, which its first output has, too */
	const char *pass;
	int64_t call;
	uint32_t sum;           /* of the records so far */
	uint32_t table[8][256]; /* of acc1_sum */
};

/* --- CRC-32, as zip files have it: 8 bytes at a time --- */

static inline void
acc1_sum_start(struct acc1 *a)
{
	for (uint32_t i = 0; i < 256; i++) {
		a->table[0][i] = i;
		for (int bit = 0; bit < 8; bit++)
			a->table[0][i] = a->table[0][i] >> 1 ^
					 (a->table[0][i] & 1 ? 0xedb88320u : 0u);
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t i = 0; i < 256; i++)
			a->table[k][i] = a->table[k - 1][i] >> 8 ^
					 a->table[0][a->table[k - 1][i] & 255];
}

/* Of n more bytes behind those that gave crc; 0 to start. */
static inline uint32_t
acc1_sum(const struct acc1 *a, uint32_t crc, const void *bytes, size_t n)
{
	const unsigned char *p = (const unsigned char *)bytes;
	const uint32_t(*t)[256] = a->table;
	crc = ~crc;
	for (; n >= 8; n -= 8, p += 8) {
		crc ^= p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
		crc = t[7][crc & 255] ^ t[6][crc >> 8 & 255] ^ t[5][crc >> 16 & 255] ^
		      t[4][crc >> 24] ^ t[3][p[4]] ^ t[2][p[5]] ^ t[1][p[6]] ^ t[0][p[7]];
	}
	for (; n > 0; n--)
		crc = crc >> 8 ^ t[0][(crc ^ *p++) & 255];
	return ~crc;
}

/* --- MessagePack --- */

static inline void
acc1_bytes(struct acc1 *a, FILE *f, const void *p, size_t n)
{
	if (a->failed == 0 && n > 0 && fwrite(p, 1, n, f) != n)
		a->failed = errno != 0 ? errno : EIO;
	if (f == a->records)
		a->sum = acc1_sum(a, a->sum, p, n);
}

static inline void
acc1_head(struct acc1 *a, int code, uint64_t n, int bytes)
{
	unsigned char b[9];
	b[0] = (unsigned char)code;
	for (int i = 0; i < bytes; i++)
		b[1 + i] = (unsigned char)(n >> 8 * (bytes - 1 - i));
	acc1_bytes(a, a->records, b, 1 + (size_t)bytes);
}

static inline void
acc1_put_text(struct acc1 *a, const char *s)
{
	const size_t n = strlen(s);
	acc1_head(a, 0xdb, n, 4);
	acc1_bytes(a, a->records, s, n);
}

static inline void
acc1_put_int(struct acc1 *a, const char *key, int64_t v)
{
	acc1_put_text(a, key);
	acc1_head(a, 0xd3, (uint64_t)v, 8);
}

static inline void
acc1_put(struct acc1 *a, const char *key, const char *value)
{
	acc1_put_text(a, key);
	acc1_put_text(a, value);
}

static inline void
acc1_begin(struct acc1 *a, const char *kind, unsigned fields)
{
	acc1_head(a, 0x92, 0, 0);
	acc1_put_text(a, kind);
	acc1_head(a, 0xde, fields, 2);
}

/* --- records --- */

/* framework: what computed, with its version, as "llama.cpp b4000"; or NULL. */
static inline struct acc1 *
acc1_open_for(const char *folder, const char *framework)
{
	/* The name alone, and what has a version behind it. */
	const size_t word = framework == NULL ? 0 : strcspn(framework, " ,");
	const int versions = word > 0 && framework[word] == ' ' && framework[word + 1] >= '0' &&
			     framework[word + 1] <= '9';
	char path[2][ACC1_TEXT], name[64];
	struct acc1 *a = (struct acc1 *)calloc(1, sizeof *a);
	if (a == NULL)
		return NULL;
	if ((size_t)snprintf(path[0], sizeof path[0], "%s/rank0.acc", folder) >= sizeof path[0] ||
		(size_t)snprintf(path[1], sizeof path[1], "%s/rank0.step0.data", folder) >=
			sizeof path[1])
		errno = ENAMETOOLONG;
	else if (mkdir(folder, 0777) == 0 || errno == EEXIST)
		a->records = fopen(path[0], "wbx");
	if (a->records != NULL)
		a->data = fopen(path[1], "wbx");
	if (a->data == NULL) {
		if (a->records != NULL)
			fclose(a->records);
		free(a);
		return NULL;
	}
	const uint64_t now = (uint64_t)time(NULL) * 2654435761u ^ (uint64_t)(uintptr_t)a;
	snprintf(a->id, sizeof a->id, "%08x", (unsigned)(now ^ now >> 32));
	acc1_sum_start(a);
	acc1_begin(a, "acc", 3);
	acc1_put_int(a, "v", 1);
	acc1_put_int(a, "minor", 1);
	acc1_put_text(a, "log");
	acc1_head(a, 0x91, 0, 0);
	acc1_put_text(a, "accrec1.h");
	acc1_begin(a, "source", 3u + (framework != NULL) + (unsigned)versions);
	acc1_put(a, "format", "record");
	if (framework != NULL) {
		snprintf(name, sizeof name, "%.*s", versions && word < 63 ? (int)word : 63,
			framework);
		acc1_put(a, "framework", name);
	}
	if (versions)
		acc1_put(a, "versions", framework);
	acc1_put(a, "task", "tensor");
	acc1_put(a, "id", a->id);
	a->n = 1;
	return a;
}

static inline struct acc1 *
acc1_open(const char *folder)
{
	return acc1_open_for(folder, NULL);
}

/* Where the place of a name stands, or will. There is a free slot. */
static inline size_t *
acc1_slot(const struct acc1 *a, const char *op)
{
	size_t h = 2166136261u;
	for (const char *s = op; *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	for (h ^= h >> 15;; h++) {
		size_t *at = &a->slot[h & (a->nslot - 1)];
		if (*at == 0 || strcmp(a->name[*at - 1].op, op) == 0)
			return at;
	}
}

/* Room for one name more: at most half of the slots are taken. */
static inline int
acc1_room(struct acc1 *a)
{
	const size_t n = a->nslot == 0 ? 64 : 2 * a->nslot;
	if (2 * (a->nname + 1) <= a->nslot)
		return 1;
	struct acc1_name *p = (struct acc1_name *)realloc(a->name, n / 2 * sizeof *p);
	a->name = p != NULL ? p : a->name;
	size_t *slot = p == NULL ? NULL : (size_t *)calloc(n, sizeof *slot);
	if (slot == NULL)
		return 0;
	free(a->slot);
	a->slot = slot;
	a->nslot = n;
	for (size_t i = 0; i < a->nname; i++)
		*acc1_slot(a, a->name[i].op) = i + 1;
	return 1;
}

/* The name's own, made at its first call; NULL: a->failed. */
static inline struct acc1_name *
acc1_named(struct acc1 *a, const char *op)
{
	size_t *at = a->nslot == 0 ? NULL : acc1_slot(a, op);
	if (strlen(op) >= sizeof a->op) {
		a->failed = ENAMETOOLONG;
		return NULL;
	}
	if (at == NULL || *at == 0) {
		char *copy = acc1_room(a) ? (char *)malloc(strlen(op) + 1) : NULL;
		if (copy == NULL) {
			a->failed = ENOMEM;
			return NULL;
		}
		strcpy(copy, op);
		at = acc1_slot(a, op);
		a->name[a->nname].op = copy;
		a->name[a->nname].calls = 0;
		a->name[a->nname].node = 0;
		*at = ++a->nname;
	}
	return &a->name[*at - 1];
}

/* What comes then belongs to this call. pass: "backward", or NULL: forward. */
static inline void
acc1_call(struct acc1 *a, const char *op, const char *pass)
{
	const int backward = pass != NULL && strcmp(pass, "backward") == 0;
	struct acc1_name *name = a == NULL || a->failed != 0 ? NULL : acc1_named(a, op);
	if (name == NULL)
		return;
	/* The backward call of a name is that of its last forward call. */
	a->call = backward && name->calls > 0 ? name->calls - 1 : name->calls++;
	a->pass = backward ? "backward" : "forward";
	strcpy(a->op, op);
	a->as[0] = '\0';
	if (strncmp(op, "Module.", 7) == 0)
		snprintf(a->key, sizeof a->key, "%s.%s.%lld", op, a->pass, (long long)a->call);
	else
		snprintf(a->key, sizeof a->key, "%s.%lld.%s", op, (long long)a->call, a->pass);
}

/* The name's own key: of one that came before, numbered. */
static inline int
acc1_own(struct acc1 *a, const char *name)
{
	struct acc1_name *own = a == NULL || a->failed != 0 ? NULL : acc1_named(a, name);
	if (own == NULL)
		return 0;
	if (own->calls++ == 0)
		snprintf(a->key, sizeof a->key, "%s", name);
	else
		snprintf(a->key, sizeof a->key, "%s.%lld", name, (long long)own->calls - 1);
	a->call = -1;
	a->pass = "forward";
	return 1;
}

/* What comes then belongs to this node of a graph, by its own name. */
static inline void
acc1_node(struct acc1 *a, const char *name, const char *op)
{
	if (!acc1_own(a, name))
		return;
	snprintf(a->op, sizeof a->op, "%s", op);
	strcpy(a->as, name);
}

/* What every record of a call begins with: 7 fields (6 of what goes by its name alone), and 4 that acc1_tail puts. */
static inline void
acc1_fields(struct acc1 *a, const char *kind, unsigned more, const char *io, const char *pos)
{
	const char *word = strcmp(io, "in") == 0    ? "input"
			   : strcmp(io, "out") == 0 ? "output"
			   : strcmp(io, "kw") == 0  ? "kwargs"
						    : io;
	char name[2 * ACC1_TEXT + 128];
	snprintf(name, sizeof name, "%s.%s.%.2000s", a->key, word, pos);
	acc1_begin(a, kind, 10u + (a->call >= 0) + more);
	acc1_put(a, "name", name);
	acc1_put(a, "key", a->key);
	acc1_put(a, "op", a->op);
	if (a->call >= 0)
		acc1_put_int(a, "call", a->call);
	acc1_put(a, "pass", a->pass);
	acc1_put(a, "io", io);
	acc1_put(a, "pos", pos);
}

static inline void
acc1_tail(struct acc1 *a)
{
	acc1_put(a, "src", a->id);
	acc1_put_int(a, "seq", (int64_t)a->seq++);
	acc1_put_int(a, "step", 0);
	acc1_put_int(a, "rank", 0);
	a->n++;
}

static inline size_t
acc1_size(const char *dtype)
{
	static const char *const names[] = {"f64 i64 u64", "f32 i32 u32", "f16 bf16 i16 u16",
		"i8 u8 bool"};
	const size_t n = strlen(dtype);
	for (size_t i = 0; i < 4; i++)
		for (const char *s = names[i]; (s = strstr(s, dtype)) != NULL; s += n)
			if ((s == names[i] || s[-1] == ' ') && (s[n] == ' ' || s[n] == '\0'))
				return (size_t)8 >> i;
	return 0;
}

/* A tensor of the call. io: in, out, kw, param; pos: which, "0", or a name; dtype: f64 f32 f16 bf16, i64 to i8,
 * u64 to u8, bool; shape as ndim extents, the last axis runs fastest where stride (in bytes) is NULL. */
static inline void
acc1_tensor(struct acc1 *a, const char *io, const char *pos, const char *dtype, uint32_t ndim,
	const int64_t *shape, const int64_t *stride, const void *data)
{
	static const char zeros[64] = {0};
	const size_t size = acc1_size(dtype);
	int64_t own[ACC1_DIMS], at[ACC1_DIMS] = {0};
	uint64_t count = 1;
	if (a == NULL)
		return;
	if (a->failed == 0 && (size == 0 || ndim > ACC1_DIMS || a->pass == NULL))
		a->failed = EINVAL;
	for (uint32_t d = 0; d < ndim && a->failed == 0; d++) {
		if (shape[d] < 0 || (shape[d] > 0 && count > UINT64_C(0x7fffffffffffffff) / size /
								     (uint64_t)shape[d]))
			a->failed = EINVAL;
		else
			count *= (uint64_t)shape[d];
	}
	if (a->failed == 0 && count > 0 && data == NULL)
		a->failed = EINVAL;
	if (a->failed != 0)
		return;
	uint64_t step = size; /* of no elements it may be beyond 64 bits */
	int plain = 1;
	for (uint32_t d = ndim; d-- > 0; step *= (uint64_t)shape[d]) {
		own[d] = stride != NULL ? stride[d] : (int64_t)step;
		plain = plain && (own[d] == (int64_t)step || shape[d] == 1);
	}
	const uint64_t len = count * size;
	acc1_bytes(a, a->data, zeros, (size_t)(-a->at & 63));
	a->at += -a->at & 63;
	uint32_t crc = plain ? acc1_sum(a, 0, data, (size_t)len) : 0;
	if (plain)
		acc1_bytes(a, a->data, data, (size_t)len);
	for (uint64_t i = 0; i < count && !plain; i++) {
		const char *p = (const char *)data;
		for (uint32_t d = 0; d < ndim; d++)
			p += at[d] * own[d];
		acc1_bytes(a, a->data, p, size);
		crc = acc1_sum(a, crc, p, size);
		for (uint32_t d = ndim; d-- > 0 && ++at[d] == shape[d];)
			at[d] = 0;
	}
	const int named = a->as[0] != '\0' && strcmp(io, "out") == 0 && strcmp(pos, "0") == 0;
	acc1_fields(a, "tensor", 6u + (unsigned)named, io, pos);
	if (named)
		acc1_put(a, "as", a->as);
	acc1_put(a, "dtype", dtype);
	acc1_put_text(a, "shape");
	acc1_head(a, 0xdd, ndim, 4);
	for (uint32_t d = 0; d < ndim; d++)
		acc1_head(a, 0xd3, (uint64_t)shape[d], 8);
	acc1_put(a, "file", "rank0.step0.data");
	acc1_put_int(a, "off", (int64_t)a->at);
	acc1_put_int(a, "len", (int64_t)len);
	acc1_put_int(a, "crc32", (int64_t)crc);
	acc1_tail(a);
	if (named)
		acc1_named(a, a->as)->node = 1;
	a->at += len;
}

/* A tensor that goes by its name alone, as those of an engine's graph do: an output of no call. */
static inline void
acc1_array(struct acc1 *a, const char *name, const char *dtype, uint32_t ndim, const int64_t *shape,
	const int64_t *stride, const void *data)
{
	if (!acc1_own(a, name))
		return;
	snprintf(a->op, sizeof a->op, "%.*s", ACC1_TEXT - 1, a->key);
	a->as[0] = '\0';
	acc1_tensor(a, "out", "0", dtype, ndim, shape, stride, data);
}

/* What went in at pos is the last tensor that a node of this name gave. */
static inline void
acc1_from(struct acc1 *a, const char *pos, const char *name)
{
	if (a == NULL || a->failed != 0 || a->pass == NULL || a->nname == 0)
		return;
	const size_t at = *acc1_slot(a, name);
	if (at == 0 || !a->name[at - 1].node)
		return;
	acc1_fields(a, "tensor", 1, "in", pos);
	acc1_put(a, "from", name);
	acc1_tail(a);
}

/* Arguments that are no tensors. */
static inline void
acc1_int(struct acc1 *a, const char *io, const char *pos, int64_t v)
{
	if (a == NULL || a->failed != 0 || a->pass == NULL)
		return;
	acc1_fields(a, "arg", 2, io, pos);
	acc1_put(a, "type", "int");
	acc1_put_int(a, "value", v);
	acc1_tail(a);
}

static inline void
acc1_float(struct acc1 *a, const char *io, const char *pos, double v)
{
	uint64_t bits;
	if (a == NULL || a->failed != 0 || a->pass == NULL)
		return;
	memcpy(&bits, &v, sizeof bits);
	acc1_fields(a, "arg", 2, io, pos);
	acc1_put(a, "type", "float");
	acc1_put_text(a, "value");
	acc1_head(a, 0xcb, bits, 8);
	acc1_tail(a);
}

static inline void
acc1_text(struct acc1 *a, const char *io, const char *pos, const char *v)
{
	if (a == NULL || a->failed != 0 || a->pass == NULL)
		return;
	acc1_fields(a, "arg", 2, io, pos);
	acc1_put(a, "type", "str");
	acc1_put(a, "value", v);
	acc1_tail(a);
}

/* n of them: a list, an order of axes. */
static inline void
acc1_ints(struct acc1 *a, const char *io, const char *pos, uint32_t n, const int64_t *v)
{
	if (a == NULL || a->failed != 0 || a->pass == NULL)
		return;
	acc1_fields(a, "arg", 2, io, pos);
	acc1_put(a, "type", "list");
	acc1_put_text(a, "value");
	acc1_head(a, 0xdd, n, 4);
	for (uint32_t i = 0; i < n; i++)
		acc1_head(a, 0xd3, (uint64_t)v[i], 8);
	acc1_tail(a);
}

static inline int
acc1_close(struct acc1 *a)
{
	if (a == NULL)
		return EINVAL;
	acc1_begin(a, "step", 1);
	acc1_put_int(a, "step", 0);
	acc1_begin(a, "end", 3);
	acc1_put_int(a, "n", (int64_t)a->n + 1);
	acc1_put_int(a, "st", 0);
	/* Its own four bytes are not in it. */
	acc1_put_text(a, "crc32");
	acc1_head(a, 0xce, 0, 0);
	const unsigned char end[4] = {(unsigned char)(a->sum >> 24), (unsigned char)(a->sum >> 16),
		(unsigned char)(a->sum >> 8), (unsigned char)a->sum};
	acc1_bytes(a, a->records, end, sizeof end);
	/* The elements first: a record must not refer to what is not there. */
	if (fclose(a->data) != 0 && a->failed == 0)
		a->failed = errno;
	if (fclose(a->records) != 0 && a->failed == 0)
		a->failed = errno;
	const int failed = a->failed;
	for (size_t i = 0; i < a->nname; i++)
		free(a->name[i].op);
	free(a->name);
	free(a->slot);
	free(a);
	return failed;
}

#endif
