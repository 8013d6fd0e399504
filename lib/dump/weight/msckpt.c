/* Checkpoints of MindSpore: .ckpt */
#include <limits.h>
#include <unistd.h>

#include "dump/place.h"
#include "dump/weight/weight.h"
#include "io/msckpt.h"

/* A text in a checkpoint is a line or so. */
enum { TEXT_LIMIT = 1 << 16 };

/* A tensor, while the pieces that it is cut into are gathered. */
struct gathered {
	struct acc_str tag, type;
	struct acc_ref ref;    /* of the first piece */
	uint64_t at, end, len; /* of all pieces */
	unsigned pieces;
	bool map;
};

struct ckpt {
	struct weights w;
	int fd;
	struct acc_str file;
	struct acc_file_info info;
	struct gathered g;
	struct acc_arena mem; /* of g */
};

/* UTF-32, little-endian, as UTF-8. */
static struct acc_str
utf8(const uint8_t *p, size_t n, struct acc_arena *m)
{
	char *out = acc_alloc(m, n + 1);
	size_t k = 0;
	for (size_t i = 0; out != NULL && i + 4 <= n; i += 4) {
		uint32_t u = (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 |
			     (uint32_t)p[i + 3] << 24;
		if (u > 0x10ffff || (u >= 0xd800 && u < 0xe000))
			u = 0xfffd;
		if (u < 0x80) {
			out[k++] = (char)u;
		} else {
			int more = u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
			out[k++] = (char)((0xf00 >> more & 0xff) | u >> (6 * more));
			while (more-- > 0)
				out[k++] = (char)(0x80 | (u >> (6 * more) & 0x3f));
		}
	}
	return (struct acc_str){out, (uint32_t)k};
}

static int
put_text(struct ckpt *c, struct acc_err *e)
{
	const struct gathered *g = &c->g;
	uint8_t *p = g->len > TEXT_LIMIT ? NULL : acc_alloc(&c->mem, (size_t)g->len);
	struct acc_rec *r = acc_dump_rec(c->w.c, "arg", g->tag);
	int rc = acc_dump_weight_place(&c->w, r, g->tag);
	rc |= acc_add(r, "", "type", acc_ctext("str"));
	if (p != NULL && g->pieces == 1) {
		int got = acc_file_pread(c->fd, p, (size_t)g->len, g->ref.off, e);
		if (got < 0)
			return got;
		rc |= acc_add(r, "", "value", acc_text(utf8(p, (size_t)g->len, &c->mem)));
	}
	return rc < 0 ? acc_nomem(e) : acc_dump_put(c->w.c, r, e);
}

/* One dimension of 0 with one element is how a scalar is written. */
static void
describe(struct gathered *g, struct acc_err *bad)
{
	struct acc_ref *ref = &g->ref;
	uint64_t count, need = 0;
	ref->dtype = acc_dtype_find(g->type);
	if (g->map) {
		acc_fail(bad, ACC_EUNSUP, "a map of tensors is not decoded");
		return;
	}
	if (!acc_dtype_measured(ref->dtype)) {
		acc_fail(bad, ACC_EUNSUP, "elements of type %.*s are not decoded",
			(int)(g->type.n < 40 ? g->type.n : 40), g->type.p);
		return;
	}
	if (ref->ndim == 1 && ref->shape[0] == 0 && g->len == acc_dtype_of(ref->dtype)->size)
		ref->ndim = 0;
	if (!acc_count(ref->shape, ref->ndim, &count) ||
		__builtin_mul_overflow(count, acc_dtype_of(ref->dtype)->size, &need) ||
		need != g->len) {
		acc_fail_at(bad, ACC_EFORMAT, ref->off,
			"checkpoint: %llu bytes are not what type and "
			"dims say",
			(unsigned long long)g->len);
		return;
	}
	ref->len = g->len;
	if (g->pieces > 1) {
		ref->enc = ACC_MSCKPT;
		ref->off = g->at;
		ref->clen = g->end - g->at;
	}
	acc_ref_check(ref, bad);
}

/* Hand on what has been gathered. */
static int
flush(struct ckpt *c, struct acc_err *e)
{
	struct acc_err bad = {0};
	if (c->g.pieces == 0)
		return 0;
	if (!c->g.map && acc_str_is(c->g.type, "str"))
		return put_text(c, e);
	describe(&c->g, &bad);
	const struct weight x = {.name = c->g.tag,
		.file = c->file,
		.info = c->info,
		.ref = &c->g.ref,
		.dtype_raw = c->g.type,
		.err = bad.code != 0 ? &bad : NULL,
		.several = true};
	return acc_dump_weight(&c->w, &x, e);
}

static bool
continues(const struct gathered *g, const struct acc_msckpt_value *v)
{
	return g->pieces > 0 && !g->map && !v->map && acc_str_eq(g->tag, v->tag) &&
	       acc_str_eq(g->type, v->type) && g->ref.ndim == v->ndim && v->ndim > 0 &&
	       memcmp(g->ref.shape, v->shape, v->ndim * sizeof *v->shape) == 0;
}

static int
take(struct ckpt *c, const struct acc_msckpt_value *v, struct acc_err *e)
{
	struct gathered *g = &c->g;
	if (!continues(g, v)) {
		int rc = flush(c, e);
		if (rc < 0)
			return rc;
		acc_arena_reset(&c->mem);
		*g = (struct gathered){.at = v->at, .map = v->map};
		g->tag = acc_arena_str(&c->mem, v->tag);
		g->type = acc_arena_str(&c->mem, v->type);
		if (g->tag.p == NULL || g->type.p == NULL)
			return acc_nomem(e);
		g->ref.ndim = v->ndim;
		memcpy(g->ref.shape, v->shape, v->ndim * sizeof *v->shape);
		g->ref.off = v->off;
	}
	g->pieces++;
	g->end = v->end;
	g->len += v->len;
	return 0;
}

static int
read_values(struct ckpt *c, struct acc_err *e)
{
	struct acc_msckpt it = {.fd = c->fd};
	struct acc_msckpt_value v;
	int rc = acc_msckpt_end(c->fd, c->info.size, &it.end, e);
	if (rc == 0 && it.end == 0)
		rc = acc_fail(e, ACC_ETRUNC, "the file is empty");
	while (rc == 0 && (rc = acc_msckpt_next(&it, &v, e)) > 0)
		rc = take(c, &v, e);
	/* What came before the damage is whole, but of the last one that is not known. */
	if (rc == 0)
		rc = flush(c, e);
	acc_msckpt_release(&it);
	return rc;
}

/* The rank is that of the folder: rank_3/NAME.ckpt */
static bool
level(const char *name, struct place *p)
{
	int64_t rank = acc_dump_place_number(name, "rank_");
	if (rank >= 0)
		p->rank = rank;
	return rank >= 0;
}

/* Others call their checkpoints so too. */
static int
is_ckpt(int dirfd, const char *name, struct acc_err *e)
{
	uint8_t head[4096];
	if (!acc_str_ends(acc_str(name), ".ckpt"))
		return 0;
	int64_t n = acc_file_head(dirfd, name, head, sizeof head, e);
	return n < 0 ? (int)n : n > 0 && acc_msckpt_is(head, (size_t)n);
}

static int
holds(int dirfd, struct acc_err *e)
{
	const char **names;
	struct acc_arena m = {0};
	int found = acc_dir_has_end(dirfd, ".ckpt", e);
	if (found <= 0)
		return found;
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	found = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && found == 0; i++)
		found = is_ckpt(dirfd, names[i], e);
	acc_arena_release(&m);
	return found;
}

static const struct place_rule rule = {level, holds, 1, ".ckpt"};

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir)
		return acc_dump_probe_places(p, &rule, 70);
	bool named = acc_str_ends(p->base, ".ckpt");
	return !acc_msckpt_is(p->head, p->nhead) ? 0 : named ? 93 : 60;
}

/* "llama_rank_3-2_100.ckpt": the second epoch's step 100. */
static int64_t
step_of(const char *file)
{
	const char *dash = strrchr(file, '-');
	const char *under = dash == NULL ? NULL : strchr(dash, '_');
	int64_t epoch, step;
	if (under == NULL || !acc_str_ends(acc_str(under), ".ckpt") ||
		!acc_str_int((struct acc_str){dash + 1, (uint32_t)(under - dash - 1)}, &epoch) ||
		!acc_str_int((struct acc_str){under + 1, (uint32_t)strlen(under) - 6}, &step))
		return -1;
	return step;
}

static int
read_file(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file, int64_t rank,
	struct acc_err *e)
{
	struct ckpt k = {.w = {.c = c, .dir = dir, .io = "param"}, .file = acc_str(file)};
	const struct acc_source s = {.root = dir,
		.format = "msckpt",
		.framework = "mindspore",
		.task = "tensor",
		.step = step_of(file),
		.rank = rank,
		.proc = -1,
		.order = "file"};
	if (!acc_dump_wants(c, s.step, rank))
		return 0;
	k.fd = acc_file_beneath(dirfd, k.file, e);
	if (k.fd < 0)
		return k.fd;
	int rc = acc_file_stat(k.fd, &k.info, e);
	if (rc == 0)
		rc = acc_dump_source(c, &s, e);
	if (rc == 0)
		rc = read_values(&k, e);
	if (rc == 0)
		rc = acc_file_same(k.fd, &k.info, e);
	close(k.fd);
	acc_dump_weights_end(&k.w, dir);
	acc_arena_release(&k.mem);
	return rc;
}

/* A file that cannot be read does not keep the others of its folder back. */
static int
read_folder(struct acc_dump_ctx *c, int dirfd, const char *dir, const char *file,
	const struct place *p, struct acc_err *e)
{
	char path[2 * PATH_MAX];
	const char **names;
	struct acc_arena m = {0};
	if (file != NULL)
		return read_file(c, dirfd, dir, file, p->rank, e);
	int64_t n = acc_dir_list(dirfd, &names, &m, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct acc_err bad = {0};
		rc = is_ckpt(dirfd, names[i], &bad);
		if (rc == 0)
			continue;
		if (rc > 0)
			rc = read_file(c, dirfd, dir, names[i], p->rank, &bad);
		if (bad.code == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, names[i]);
		acc_err_in(&bad, path);
		acc_dump_trouble(c, &bad);
		rc = 0;
	}
	acc_arena_release(&m);
	return rc;
}

static int
read_ckpt(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	return acc_dump_read_places(c, path, &rule, read_folder, e);
}

const struct acc_dump acc_dump_msckpt = {
	.name = "msckpt",
	.help = "checkpoints of MindSpore: a .ckpt, or a folder, also of rank_0, ...",
	.probe = probe,
	.read = read_ckpt,
};
