/* Weights in GGUF, as llama.cpp writes them: a file, or those of a folder. What is quantized is decoded where it
 * is read, see io/quant.h; types that are not are named. */
#include "dump/place.h"
#include "dump/weight/weight.h"
#include "dump/weight/weight_map.h"
#include "io/quant.h"

#include <endian.h>
#include <unistd.h>

enum { MAXNAME = 4096, MAXDIMS = 8, DEFAULT_ALIGNMENT = 32, DEEPEST = 4 };

/* github.com/ggml-org/ggml, docs/gguf.md and ggml.h: a type's number, and elements and bytes of a block. */
static const struct {
	uint32_t type;
	const char *name;
	enum acc_dtype dtype; /* ACC_NODTYPE: quantized */
} types[] = {{0, "F32", ACC_F32}, {1, "F16", ACC_F16}, {2, "Q4_0", ACC_NODTYPE},
	{3, "Q4_1", ACC_NODTYPE}, {6, "Q5_0", ACC_NODTYPE}, {7, "Q5_1", ACC_NODTYPE},
	{8, "Q8_0", ACC_NODTYPE}, {9, "Q8_1", ACC_NODTYPE}, {10, "Q2_K", ACC_NODTYPE},
	{11, "Q3_K", ACC_NODTYPE}, {12, "Q4_K", ACC_NODTYPE}, {13, "Q5_K", ACC_NODTYPE},
	{14, "Q6_K", ACC_NODTYPE}, {15, "Q8_K", ACC_NODTYPE}, {16, "IQ2_XXS", ACC_NODTYPE},
	{17, "IQ2_XS", ACC_NODTYPE}, {18, "IQ3_XXS", ACC_NODTYPE}, {19, "IQ1_S", ACC_NODTYPE},
	{20, "IQ4_NL", ACC_NODTYPE}, {21, "IQ3_S", ACC_NODTYPE}, {22, "IQ2_S", ACC_NODTYPE},
	{23, "IQ4_XS", ACC_NODTYPE}, {24, "I8", ACC_I8}, {25, "I16", ACC_I16}, {26, "I32", ACC_I32},
	{27, "I64", ACC_I64}, {28, "F64", ACC_F64}, {29, "IQ1_M", ACC_NODTYPE},
	{30, "BF16", ACC_BF16}, {34, "TQ1_0", ACC_NODTYPE}, {35, "TQ2_0", ACC_NODTYPE},
	/* behaviour gguf-mxfp4-clips */
	{39, "MXFP4", ACC_NODTYPE}, {40, "NVFP4", ACC_NODTYPE}};
enum { NTYPES = sizeof types / sizeof *types };

/* Bytes of a value of the metadata; 0: a string, an array, or none that is known. */
static uint32_t
value_size(uint32_t type)
{
	static const uint8_t size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
	return type < sizeof size ? size[type] : 0;
}
enum { STRING = 8, ARRAY = 9 };

struct tensor {
	struct acc_str name;
	uint32_t type, ndim;
	int64_t shape[MAXDIMS];
	uint64_t off; /* from the first byte of the data */
};

struct gguf {
	struct weights w;
	const char *file;
	struct acc_file_info info;
	struct acc_bytes *in;
	uint64_t alignment;
	char framework[64];  /* "llama.cpp, llama": with its architecture */
	struct acc_buf list; /* of struct tensor */
	struct acc_map names;
	struct acc_arena mem;
	struct acc_err *e;
};

static bool
is_gguf(const uint8_t *p, size_t n)
{
	/* Version 1 was of 2023 alone; a file of the other byte order has its version in the last byte. */
	return n >= 8 && memcmp(p, "GGUF", 4) == 0 &&
	       ((p[4] >= 2 && p[4] < 32 && p[5] == 0 && p[6] == 0 && p[7] == 0) ||
		       (p[4] == 0 && p[5] == 0 && p[6] == 0 && p[7] >= 2 && p[7] < 32));
}

static bool
level(const char *name, struct place *p)
{
	(void)name;
	(void)p;
	return false;
}

static int
holds(int dirfd, struct acc_err *e)
{
	return acc_dir_has_end(dirfd, ".gguf", e);
}

static const struct place_rule rule = {level, holds, 0, ".gguf"};

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 68);
	return is_gguf(p->head, p->nhead) ? 97 : acc_str_ends(p->base, ".gguf") ? 30 : 0;
}

/* --- the head of a file --- */

/* n bytes, or skipped where out is NULL. */
static int
take(struct gguf *g, void *out, uint64_t n)
{
	uint8_t *to = out;
	while (n > 0) {
		const uint8_t *p;
		size_t have = acc_bytes_peek(g->in, &p);
		if (have == 0) {
			int rc = acc_bytes_more(g->in, &p, &have, g->e);
			if (rc < 0)
				return rc;
			if (rc == 0)
				return acc_fail_at(g->e, ACC_ETRUNC, acc_bytes_pos(g->in),
					"the head ends too early");
		}
		have = have < n ? have : (size_t)n;
		if (to != NULL) {
			memcpy(to, p, have);
			to += have;
		}
		acc_bytes_skip(g->in, have);
		n -= have;
	}
	return 0;
}

static int
u32(struct gguf *g, uint32_t *v)
{
	int rc = take(g, v, sizeof *v);
	*v = le32toh(*v);
	return rc;
}

static int
u64(struct gguf *g, uint64_t *v)
{
	int rc = take(g, v, sizeof *v);
	*v = le64toh(*v);
	return rc;
}

/* A name, which lives in g->mem. */
static int
text(struct gguf *g, struct acc_str *out)
{
	uint64_t n;
	char buf[MAXNAME];
	int rc = u64(g, &n);
	if (rc == 0 && (n == 0 || n > sizeof buf))
		rc = acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in), "a name of %llu bytes",
			(unsigned long long)n);
	if (rc == 0)
		rc = take(g, buf, n);
	if (rc < 0)
		return rc;
	if (memchr(buf, '\0', (size_t)n) != NULL)
		return acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in), "a zero in a name");
	*out = (struct acc_str){acc_arena_copy(&g->mem, buf, (size_t)n), (uint32_t)n};
	return out->p == NULL ? acc_nomem(g->e) : 0;
}

static int
skip_string(struct gguf *g)
{
	uint64_t n;
	int rc = u64(g, &n);
	return rc < 0 ? rc : take(g, NULL, n);
}

static int
skip_value(struct gguf *g, uint32_t type, int depth)
{
	uint32_t of;
	uint64_t n;
	if (type == STRING)
		return skip_string(g);
	if (value_size(type) > 0)
		return take(g, NULL, value_size(type));
	if (type != ARRAY || depth == DEEPEST)
		return acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
			"a value of unknown type %u", type);
	int rc = u32(g, &of);
	if (rc == 0)
		rc = u64(g, &n);
	if (rc < 0)
		return rc;
	if (value_size(of) > 0)
		return n > g->info.size ? acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
						  "an array of %llu values", (unsigned long long)n)
					: take(g, NULL, n * value_size(of));
	for (; n > 0 && rc == 0; n--)
		rc = skip_value(g, of, depth + 1);
	return rc;
}

static int
metadata(struct gguf *g)
{
	struct acc_str key;
	uint32_t type, v;
	int rc = text(g, &key);
	if (rc == 0)
		rc = u32(g, &type);
	if (rc == 0 && acc_str_is(key, "general.architecture") && type == STRING) {
		rc = text(g, &key);
		if (rc == 0)
			snprintf(g->framework, sizeof g->framework, "llama.cpp, %.*s",
				ACC_PRS(key));
		return rc;
	}
	if (rc < 0 || !acc_str_is(key, "general.alignment") || value_size(type) != 4)
		return rc < 0 ? rc : skip_value(g, type, 0);
	rc = u32(g, &v);
	if (rc == 0 && (v == 0 || (v & (v - 1)) != 0))
		rc = acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
			"an alignment of %u, which is no power of two", v);
	g->alignment = v;
	return rc;
}

/* Dimensions stand with the one that changes fastest first. */
static int
tensor(struct gguf *g)
{
	struct tensor t = {.type = 0};
	uint64_t dim[MAXDIMS];
	const size_t had = g->names.n;
	int rc = text(g, &t.name);
	if (rc == 0)
		rc = u32(g, &t.ndim);
	if (rc == 0 && t.ndim > MAXDIMS)
		rc = acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
			"%.100s: of %u dimensions", t.name.p, t.ndim);
	for (uint32_t i = 0; i < t.ndim && rc == 0; i++) {
		rc = u64(g, &dim[i]);
		if (rc == 0 && dim[i] > INT64_MAX)
			rc = acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
				"%.100s: an impossible shape", t.name.p);
	}
	for (uint32_t i = 0; i < t.ndim && rc == 0; i++)
		t.shape[i] = (int64_t)dim[t.ndim - 1 - i];
	if (rc == 0)
		rc = u32(g, &t.type);
	if (rc == 0)
		rc = u64(g, &t.off);
	if (rc < 0)
		return rc;
	if (acc_map_put(&g->names, t.name, 0) == NULL || acc_buf_add(&g->list, &t, sizeof t) < 0)
		return acc_nomem(g->e);
	return g->names.n == had ? acc_fail_at(g->e, ACC_EFORMAT, acc_bytes_pos(g->in),
					   "%.100s stands twice", t.name.p)
				 : 0;
}

static int
head(struct gguf *g, uint64_t *data)
{
	uint32_t magic, version;
	uint64_t ntensors, nvalues;
	int rc = u32(g, &magic);
	if (rc == 0 && magic != 0x46554747) /* GGUF */
		rc = acc_fail_at(g->e, ACC_EFORMAT, 0, "no GGUF: it begins otherwise");
	if (rc == 0)
		rc = u32(g, &version);
	if (rc == 0 && (version == 0 || version > UINT16_MAX))
		rc = acc_fail(g->e, ACC_EUNSUP, "GGUF of the other byte order");
	else if (rc == 0 && (version < 2 || version > 3))
		rc = acc_fail(g->e, ACC_EUNSUP, "version %u of GGUF: 2 and 3 are read", version);
	if (rc == 0)
		rc = u64(g, &ntensors);
	if (rc == 0)
		rc = u64(g, &nvalues);
	for (; rc == 0 && nvalues > 0; nvalues--)
		rc = metadata(g);
	for (; rc == 0 && ntensors > 0; ntensors--)
		rc = tensor(g);
	if (rc < 0)
		return rc;
	*data = (acc_bytes_pos(g->in) + g->alignment - 1) / g->alignment * g->alignment;
	return 0;
}

/* --- its tensors --- */

/* Of what type it is: its dtype, encoding and bytes. */
static int
size_of(const struct tensor *t, uint64_t count, struct acc_ref *ref, struct acc_err *e)
{
	size_t k = 0;
	while (k < NTYPES && types[k].type != t->type)
		k++;
	if (k == NTYPES)
		return acc_fail(e, ACC_EUNSUP, "unknown type %u of GGUF", t->type);
	ref->dtype = types[k].dtype;
	ref->enc = acc_quant_type(t->type);
	const struct acc_quant *q = acc_quant_of(ref->enc);
	if (q == NULL && ref->dtype == ACC_NODTYPE)
		return acc_fail(e, ACC_EUNSUP, "quantized, as %s, which is not decoded",
			types[k].name);
	if (q != NULL && (t->ndim == 0 || t->shape[t->ndim - 1] % q->n != 0))
		return acc_fail(e, ACC_EFORMAT, "rows that are no blocks of %s", q->name);
	if (q != NULL) {
		ref->dtype = ACC_F32;
		ref->clen = count / q->n * q->size;
	}
	ref->len = count * acc_dtype_of(ref->dtype)->size;
	return 0;
}

static int
put(struct gguf *g, const struct tensor *t, uint64_t data, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct acc_ref ref = {.dtype = ACC_NODTYPE, .ndim = t->ndim};
	uint64_t count;
	size_t k = 0;
	while (k < NTYPES && types[k].type != t->type)
		k++;
	memcpy(ref.shape, t->shape, t->ndim * sizeof *t->shape);
	struct weight w = {.name = t->name,
		.file = acc_str(g->file),
		.info = g->info,
		.ref = &ref,
		.dtype_raw = acc_str(k < NTYPES ? types[k].name : "?"),
		.several = true};
	if (!acc_count(ref.shape, ref.ndim, &count) || count > UINT64_MAX / 16 ||
		t->off % g->alignment != 0) {
		acc_fail(&bad, ACC_EFORMAT, "an impossible shape or place");
	} else if (size_of(t, count, &ref, &bad) == 0) {
		const uint64_t size = ref.enc == ACC_STORED ? ref.len : ref.clen;
		ref.off = data + t->off;
		if (t->off > g->info.size || data > g->info.size - t->off ||
			size > g->info.size - ref.off)
			acc_fail_at(&bad, ACC_ETRUNC, g->info.size,
				"the file ends before its tensor does");
	}
	w.err = bad.code != 0 ? &bad : NULL;
	return acc_dump_weight(&g->w, &w, e);
}

static int
read_file(struct weights *shared, int dirfd, const char *file, const struct place *at,
	struct acc_err *e)
{
	struct gguf g = {.file = file,
		.alignment = DEFAULT_ALIGNMENT,
		.framework = "llama.cpp",
		.e = e};
	uint64_t data = 0;
	int fd = acc_file_beneath(dirfd, acc_str(file), e);
	if (fd < 0)
		return fd;
	int rc = acc_file_stat(fd, &g.info, e);
	if (rc == 0)
		g.in = acc_bytes_part(fd, "", 0, g.info.size, e);
	rc = rc == 0 && g.in == NULL ? -1 : rc;
	if (rc == 0)
		rc = head(&g, &data);
	const struct acc_source s = {.root = shared->dir,
		.format = "gguf",
		.framework = g.framework,
		.task = "tensor",
		.step = at->step,
		.rank = at->rank,
		.proc = -1,
		.order = "names"};
	if (rc == 0)
		rc = acc_dump_source(shared->c, &s, e);
	const struct tensor *t = (const struct tensor *)(const void *)g.list.p;
	g.w = *shared;
	for (size_t i = 0; i < g.list.n / sizeof *t && rc == 0; i++)
		rc = put(&g, &t[i], data, e);
	*shared = g.w;
	if (rc == 0)
		rc = acc_file_same(fd, &g.info, e);
	acc_bytes_close(g.in);
	close(fd);
	acc_buf_release(&g.list);
	acc_map_release(&g.names);
	acc_arena_release(&g.mem);
	return rc;
}

/* The one file that was named, or those of a folder, of which one that cannot be read leaves the others. */
static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *at, struct acc_err *e)
{
	struct weights w = {.c = c, .dir = dir, .io = "param"};
	struct acc_arena m = {0};
	const char **names;
	size_t n = 0;
	int64_t all = 0;
	int rc = 0;
	if (file == NULL)
		all = acc_dir_list(dirfd, &names, &m, e);
	rc = all < 0 ? (int)all : rc;
	for (int64_t i = 0; i < all && rc == 0; i++)
		if (acc_str_ends(acc_str(names[i]), ".gguf"))
			names[n++] = names[i];
	if (n > 0)
		acc_dump_weight_numbers(&w, names, n);
	if (rc == 0 && file != NULL)
		rc = read_file(&w, dirfd, file, at, e);
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct acc_err bad = {0};
		rc = read_file(&w, dirfd, names[i], at, &bad);
		if (bad.code == ACC_ENOMEM)
			rc = acc_nomem(e);
		if (bad.code == 0 || bad.code == ACC_ENOMEM)
			continue;
		char *path = acc_arena_printf(&m, "%s/%s", dir, names[i]);
		acc_err_in(&bad, path == NULL ? names[i] : path);
		acc_dump_say(&w.said, c, &bad);
		rc = 0;
	}
	acc_arena_release(&m);
	acc_dump_weights_end(&w, dir);
	return rc;
}

static int
read_gguf(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_gguf = {
	.name = "gguf",
	.help = "weights in GGUF, as llama.cpp has them: a .gguf file, or a folder",
	.probe = probe,
	.read = read_gguf,
};
