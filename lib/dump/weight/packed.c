#include "dump/weight/packed.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "dump/jtree.h"

enum kind { NONE, GPTQ, AWQ, INTS, FLOATS, SCALED, BLOCKS, NF4, INT8, LORA, LORA_IN, NKINDS };

/* A weight's name is its stem and a word; so are those of its parts. */
static const struct {
	const char *head, *raw;
	const char *part[6];
} kinds[NKINDS] = {
	[GPTQ] = {"qweight", "GPTQ", {"qzeros", "scales", "g_idx"}},
	[AWQ] = {"qweight", "AWQ", {"qzeros", "scales"}},
	[INTS] = {"weight_packed", "compressed-tensors integers",
		{"weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"}},
	[FLOATS] = {"weight_packed", "compressed-tensors FP4",
		{"weight_scale", "weight_global_scale"}},
	[SCALED] = {"weight", "compressed-tensors",
		{"weight_scale", "weight_zero_point", "weight_g_idx"}},
	[BLOCKS] = {"weight", "FP8 in blocks", {"weight_scale_inv"}},
	[NF4] = {"weight", "bitsandbytes, 4 bits",
		{"weight.absmax", "weight.quant_map", "weight.nested_absmax",
			"weight.nested_quant_map", "weight.quant_state.bitsandbytes__nf4",
			"weight.quant_state.bitsandbytes__fp4"}},
	[INT8] = {"weight", "bitsandbytes, 8 bits", {"SCB", "weight_format"}},
	[LORA] = {"weight", "LoRA", {"lora_A.weight", "lora_B.weight"}},
	[LORA_IN] = {"base_layer.weight", "LoRA",
		{"lora_A.default.weight", "lora_B.default.weight"}},
};
/* Before the names of an adapter's file. */
static const char wrapper[] = "base_model.model.";

/* Two numbers, [128, 128]. */
static void
block(struct packed_set *p, const struct jnode *n)
{
	if (n == NULL || n->type != ACC_JSON_ARRAY || n->n != 2)
		return;
	const struct jnode *a = n->child, *b = a->next;
	if (a->type == ACC_JSON_INT && b->type == ACC_JSON_INT && a->i > 0 && b->i > 0 &&
		a->i <= ACC_GRID_MOST && b->i <= ACC_GRID_MOST) {
		p->block[0] = a->i;
		p->block[1] = b->i;
	}
}

static double
real(const struct jnode *n)
{
	return n == NULL                   ? NAN
	       : n->type == ACC_JSON_INT   ? (double)n->i
	       : n->type == ACC_JSON_FLOAT ? n->f
					   : NAN;
}

static bool
is_true(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_TRUE;
}

static int
adapter(struct packed_set *p, struct acc_err *e)
{
	struct jnode *root = NULL;
	struct acc_err bad = {0};
	p->adapter = NAN;
	int rc = acc_dir_has(p->dirfd, ADAPTER_CONFIG, e);
	if (rc <= 0)
		return rc;
	if (acc_jtree_file(p->dirfd, ADAPTER_CONFIG, ADAPTER_CONFIG, &p->mem, &root, &bad) < 0 &&
		bad.code == ACC_ENOMEM)
		return acc_nomem(e);
	const struct jnode *ranks = jtree_get(root, "rank_pattern"),
			   *alphas = jtree_get(root, "alpha_pattern");
	p->adapter = real(jtree_get(root, "lora_alpha"));
	p->adapter_root = is_true(jtree_get(root, "use_rslora"));
	p->adapter_turned = is_true(jtree_get(root, "fan_in_fan_out"));
	p->adapter_apart = (ranks != NULL && ranks->type == ACC_JSON_OBJECT && ranks->n > 0) ||
			   (alphas != NULL && alphas->type == ACC_JSON_OBJECT && alphas->n > 0) ||
			   is_true(jtree_get(root, "use_dora"));
	return 0;
}

int
acc_packed_begin(struct packed_set *p, struct acc_err *e)
{
	static const char *const files[] = {"config.json", "quantize_config.json"};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		struct jnode *root = NULL;
		struct acc_err bad = {0};
		int rc = acc_dir_has(p->dirfd, files[i], e);
		if (rc < 0)
			return rc;
		/* What is wrong with it is said where it is compared. */
		if (rc > 0 &&
			acc_jtree_file(p->dirfd, files[i], files[i], &p->mem, &root, &bad) < 0 &&
			bad.code == ACC_ENOMEM)
			return acc_nomem(e);
		const struct jnode *q = i == 0 ? jtree_get(root, "quantization_config") : root;
		p->zero_as_is |= acc_str_is(acc_jtree_text(jtree_get(q, "checkpoint_format")),
			"gptq_v2");
		block(p, jtree_get(q, "weight_block_size"));
		const struct jnode *groups = jtree_get(q, "config_groups");
		for (const struct jnode *g = groups != NULL && groups->type == ACC_JSON_OBJECT
						     ? groups->child
						     : NULL;
			g != NULL; g = g->next)
			block(p, jtree_get(jtree_get(g, "weights"), "block_structure"));
	}
	return adapter(p, e);
}

static bool
find(struct packed_set *p, struct acc_str stem, const char *word, struct packed_tensor *out)
{
	const char *name = acc_arena_printf(&p->mem, "%.*s%s", ACC_PRS(stem), word);
	return name != NULL && p->find(p->arg, acc_str(name), out) && out->t->at == NULL;
}

static bool
is_float8(enum acc_dtype t)
{
	return t == ACC_F8E4M3 || t == ACC_F8E5M2 || t == ACC_F8E4M3FNUZ || t == ACC_F8E5M2FNUZ;
}

/* One of an adapter's matrices of a stem, which its own file calls otherwise. */
static bool
find_adapter(struct packed_set *p, struct acc_str stem, enum kind kind, int i,
	struct packed_tensor *out)
{
	const char *name = acc_arena_printf(&p->mem, "%s%.*s", kind == LORA ? wrapper : "",
		ACC_PRS(stem));
	return name != NULL && find(p, acc_str(name), kinds[kind].part[i], out) &&
	       out->t->ndim == 2;
}

static enum kind
adapter_of(struct packed_set *p, struct acc_str stem, struct packed_tensor *head)
{
	struct packed_tensor x;
	for (enum kind k = LORA; k <= LORA_IN; k++)
		if (find(p, stem, kinds[k].head, head) && head->t->ndim == 2 &&
			find_adapter(p, stem, k, 0, &x) && find_adapter(p, stem, k, 1, &x))
			return k;
	return NONE;
}

/* Of what kind the weight of a stem is, and its tensor. */
static enum kind
kind_of(struct packed_set *p, struct acc_str stem, struct packed_tensor *head)
{
	struct packed_tensor x, y;
	const enum kind added = adapter_of(p, stem, head);
	if (added != NONE)
		return added;
	if (find(p, stem, "qweight", head) && find(p, stem, "scales", &x) &&
		find(p, stem, "qzeros", &y) && head->t->dtype == ACC_I32 && y.t->dtype == ACC_I32 &&
		head->t->ndim == 2 && x.t->ndim == 2)
		/* Packed along what goes in, or along what comes out. */
		return head->t->shape[1] == x.t->shape[1]       ? GPTQ
		       : head->t->shape[1] * 8 == x.t->shape[1] ? AWQ
								: NONE;
	if (find(p, stem, "weight_packed", head) && find(p, stem, "weight_scale", &x))
		return head->t->dtype == ACC_I32 ? INTS : head->t->dtype == ACC_U8 ? FLOATS : NONE;
	if (!find(p, stem, "weight", head))
		return NONE;
	const enum acc_dtype t = head->t->dtype;
	if (t == ACC_U8 && find(p, stem, "weight.quant_map", &x) &&
		find(p, stem, "weight.absmax", &y) &&
		(find(p, stem, kinds[NF4].part[4], &x) || find(p, stem, kinds[NF4].part[5], &x)))
		return NF4;
	if (t == ACC_I8 && find(p, stem, "SCB", &x) && x.t->dtype == ACC_F32)
		return INT8;
	if (is_float8(t) && find(p, stem, "weight_scale_inv", &x) && x.t->ndim == 2)
		return BLOCKS;
	return (t == ACC_I8 || is_float8(t)) && find(p, stem, "weight_scale", &x) ? SCALED : NONE;
}

/* Does the name end in this word, behind a point or alone? Its stem. */
static bool
stem_of(struct acc_str name, const char *word, struct acc_str *stem)
{
	const uint32_t n = (uint32_t)strlen(word);
	if (!acc_str_ends(name, word) || (name.n > n && name.p[name.n - n - 1] != '.'))
		return false;
	*stem = (struct acc_str){name.p, name.n - n};
	return true;
}

/* --- a weight --- */

static int64_t
add(struct packed_set *p, struct packed_weight *w, const struct packed_tensor *x)
{
	const uint32_t i = w->n++;
	w->src[i] = p->src;
	w->file[i] = acc_str(x->file);
	w->off[i] = (int64_t)x->t->off;
	w->len[i] = (int64_t)x->t->len;
	w->fsize[i] = (int64_t)x->info->size;
	w->mtime[i] = x->info->mtime_ns;
	w->ref.parts.n = w->n;
	return i;
}

/* A part of it of this word; -1: there is none. */
static int64_t
add_part(struct packed_set *p, struct packed_weight *w, struct acc_str stem, const char *word,
	struct packed_tensor *x)
{
	return find(p, stem, word, x) ? add(p, w, x) : -1;
}

static struct acc_grid_codes
packed(int64_t part, int64_t bits, int64_t unit, int64_t along, int64_t pitch, int64_t order)
{
	return (struct acc_grid_codes){part, bits, unit, along, pitch, order};
}

static int
misfit(struct packed_weight *w, const char *what)
{
	return acc_fail(&w->bad, ACC_EFORMAT, "%s does not fit the weight's packed tensor", what);
}

static int64_t
blocks_of(int64_t n, int64_t size)
{
	return (n + size - 1) / size;
}

/* GPTQ's and AWQ's lie turned: what goes in by what comes out. */
static int
turned(struct packed_set *p, enum kind kind, struct acc_str stem, struct acc_grid *g,
	struct packed_weight *w)
{
	static const int64_t gptq_bits[] = {4, 8, 3, 2};
	struct packed_tensor q, s, z, x;
	find(p, stem, "qweight", &q);
	g->code.part = add(p, w, &q);
	g->scale = add_part(p, w, stem, "scales", &s);
	g->zero.part = add_part(p, w, stem, "qzeros", &z);
	g->index = kind == GPTQ ? add_part(p, w, stem, "g_idx", &x) : -1;
	const int64_t out = s.t->shape[1], groups = s.t->shape[0];
	if (z.t->ndim != 2 || z.t->shape[0] != groups || groups < 1 || out < 1)
		return misfit(w, "scales or qzeros");
	if (kind == GPTQ) {
		int64_t bits = 0;
		for (size_t i = 0; i < sizeof gptq_bits / sizeof *gptq_bits && bits == 0; i++)
			bits = blocks_of(out * gptq_bits[i], 32) == z.t->shape[1] ? gptq_bits[i]
										  : 0;
		if (bits == 0)
			return acc_fail(&w->bad, ACC_EUNSUP,
				"GPTQ of other than 2, 3, 4 or 8 bits, which is not decoded");
		/* Rows that fill a word up are none of the weight's. */
		g->rows = g->index >= 0 && x.t->ndim == 1 ? x.t->shape[0]
							  : q.t->shape[0] * 32 / bits;
		if (blocks_of(g->rows * bits, 32) != q.t->shape[0])
			return misfit(w, "g_idx");
		g->code = packed(g->code.part, bits, 32, 1, out, ACC_CODES_LOW);
		g->zero = packed(g->zero.part, bits, 32, 0, z.t->shape[1], ACC_CODES_LOW);
		g->add = p->zero_as_is ? 0 : 1;
	} else {
		g->rows = q.t->shape[0];
		g->code = packed(g->code.part, 4, 32, 0, q.t->shape[1], ACC_CODES_AWQ);
		g->zero = packed(g->zero.part, 4, 32, 0, z.t->shape[1], ACC_CODES_AWQ);
	}
	g->cols = out;
	if (g->rows > ACC_GRID_MOST || (g->index < 0 && g->rows % groups != 0) ||
		(g->index >= 0 && (x.t->dtype != ACC_I32 || x.t->ndim != 1)))
		return misfit(w, "scales or g_idx");
	g->kind = ACC_CODE_UNSIGNED;
	g->row_group = blocks_of(g->rows, groups);
	g->col_group = 1;
	g->index_rows = 1;
	g->scale_type = acc_grid_type_of(s.t->dtype);
	g->scale_pitch = out;
	w->ref.ndim = 2;
	w->ref.shape[0] = out;
	w->ref.shape[1] = g->rows;
	w->ref.strided = true;
	w->ref.stride[0] = 1;
	w->ref.stride[1] = out;
	return 0;
}

/* Scales of rows by groups of columns; or of blocks, of which the last of an axis may be smaller; or one of all. */
static int
scaled(const struct packed_set *p, const struct packed_tensor *s, struct acc_grid *g,
	struct packed_weight *w)
{
	static const int64_t usual[] = {128, 64, 32, 256, 16, 512};
	int64_t rows = 1, cols = 1;
	for (uint32_t i = 0; i < s->t->ndim; i++)
		*(i + 1 < s->t->ndim || s->t->ndim == 1 ? &rows : &cols) *= s->t->shape[i];
	g->scale_type = acc_grid_type_of(s->t->dtype);
	g->scale_pitch = cols;
	if (rows < 1 || cols < 1 || g->rows < 1 || g->cols < 1 || s->t->ndim > 3)
		return misfit(w, "its scale");
	g->row_group = g->rows % rows == 0 ? g->rows / rows : 0;
	g->col_group = g->cols % cols == 0 ? g->cols / cols : 0;
	if (rows == 1 || rows == g->rows)
		return g->row_group > 0 && g->col_group > 0 ? 0 : misfit(w, "its scale");
	if (p->block[0] > 0 && blocks_of(g->rows, p->block[0]) == rows &&
		blocks_of(g->cols, p->block[1]) == cols) {
		g->row_group = p->block[0];
		g->col_group = p->block[1];
		return 0;
	}
	for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
		if (blocks_of(g->rows, usual[i]) == rows && blocks_of(g->cols, usual[i]) == cols) {
			g->row_group = g->col_group = usual[i];
			return 0;
		}
	return misfit(w, "its scale");
}

/* The same shape as x, but for the last axis. */
static void
shape_of(struct packed_weight *w, struct acc_grid *g, const struct acc_st_tensor *x, int64_t cols)
{
	g->rows = 1;
	w->ref.ndim = x->ndim;
	for (uint32_t i = 0; i < x->ndim; i++) {
		w->ref.shape[i] = i + 1 == x->ndim ? cols : x->shape[i];
		g->rows *= i + 1 == x->ndim ? 1 : x->shape[i];
	}
	g->cols = cols;
}

/* The bytes of a small tensor. */
static int
bytes_of(struct packed_set *p, const struct packed_tensor *x, void *out, size_t n,
	struct acc_err *e)
{
	int fd = x->t->len != n ? acc_fail(e, ACC_EFORMAT, "%.100s: of %llu bytes", x->t->name.p,
					  (unsigned long long)x->t->len)
				: acc_file_beneath(p->dirfd, acc_str(x->file), e);
	if (fd < 0)
		return fd;
	int rc = acc_file_pread(fd, out, n, x->t->off, e);
	close(fd);
	return rc;
}

/* How many columns of how many bits a row of so many words has. */
static int
columns(struct packed_set *p, struct acc_str stem, int64_t words, int64_t *cols, int64_t *bits,
	struct acc_err *e)
{
	static const int64_t usual[] = {4, 8, 2, 3, 5, 6, 7, 1};
	struct packed_tensor x;
	int64_t shape[4];
	if (!find(p, stem, "weight_shape", &x) || x.t->dtype != ACC_I64 || x.t->ndim != 1 ||
		x.t->shape[0] < 2 || x.t->shape[0] > 4)
		return acc_fail(e, ACC_EFORMAT,
			"there is no weight_shape that says how many columns it has");
	int rc = bytes_of(p, &x, shape, (size_t)x.t->shape[0] * sizeof *shape, e);
	if (rc < 0)
		return rc;
	*cols = (int64_t)le64toh((uint64_t)shape[x.t->shape[0] - 1]);
	*bits = 0;
	for (size_t i = 0; i < sizeof usual / sizeof *usual && *bits == 0; i++)
		if (*cols > 0 && *cols < ACC_GRID_MOST && (*cols * usual[i] + 31) / 32 == words)
			*bits = usual[i];
	return *bits > 0 ? 0
			 : acc_fail(e, ACC_EFORMAT,
				   "weight_shape does not fit the weight's packed tensor");
}

static int
integers(struct packed_set *p, struct acc_str stem, const struct packed_tensor *head,
	struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, z, x;
	int64_t cols = 0, bits = 0;
	const int64_t words = head->t->ndim > 1 ? head->t->shape[head->t->ndim - 1] : 0;
	int rc = columns(p, stem, words, &cols, &bits, &w->bad);
	if (rc < 0)
		return rc;
	shape_of(w, g, head->t, cols);
	g->code = packed(add(p, w, head), bits, 32, 0, words, ACC_CODES_LOW);
	g->kind = ACC_CODE_UNSIGNED;
	g->scale = add_part(p, w, stem, "weight_scale", &s);
	g->index = add_part(p, w, stem, "weight_g_idx", &x);
	rc = scaled(p, &s, g, w);
	if (!find(p, stem, "weight_zero_point", &z)) {
		g->add = 1 << (bits - 1);
		return rc;
	}
	if (head->t->ndim != 2 || z.t->dtype != ACC_I32)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"zero points of experts in one tensor, which are not decoded");
	g->zero = packed(add(p, w, &z), bits, 32, 1, g->scale_pitch, ACC_CODES_LOW);
	return rc;
}

static int
floats(struct packed_set *p, struct acc_str stem, const struct packed_tensor *head,
	struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, x;
	const int64_t half = head->t->ndim > 1 ? head->t->shape[head->t->ndim - 1] : 0;
	if (half < 1 || half > ACC_GRID_MOST / 2)
		return misfit(w, "its shape");
	shape_of(w, g, head->t, half * 2);
	g->code = packed(add(p, w, head), 4, 8, 0, half, ACC_CODES_LOW);
	g->kind = ACC_CODE_FLOAT + acc_grid_type_of(ACC_F4E2M1);
	g->scale = add_part(p, w, stem, "weight_scale", &s);
	g->divisor = add_part(p, w, stem, "weight_global_scale", &x);
	int rc = scaled(p, &s, g, w);
	/* MXFP4 has exponents, as bytes. */
	if (s.t->dtype == ACC_U8)
		g->scale_type = acc_grid_type_of(ACC_F8E8M0);
	return g->divisor >= 0 && x.t->dtype != ACC_F32 ? misfit(w, "its global scale") : rc;
}

static int
bytes(struct packed_set *p, enum kind kind, struct acc_str stem, const struct packed_tensor *head,
	struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, z, x;
	const bool whole = head->t->dtype == ACC_I8;
	if (head->t->ndim < 1)
		return misfit(w, "its shape");
	shape_of(w, g, head->t, head->t->shape[head->t->ndim - 1]);
	g->code = packed(add(p, w, head), 8, 8, 0, g->cols, ACC_CODES_LOW);
	g->kind = whole ? (int64_t)ACC_CODE_SIGNED
			: ACC_CODE_FLOAT + acc_grid_type_of(head->t->dtype);
	g->scale = add_part(p, w, stem,
		kind == INT8     ? "SCB"
		: kind == BLOCKS ? "weight_scale_inv"
				 : "weight_scale",
		&s);
	g->factor = kind == INT8 ? 1.0 / 127 : 1;
	int rc = scaled(p, &s, g, w);
	if (rc < 0 || kind != SCALED)
		return rc;
	g->index = add_part(p, w, stem, "weight_g_idx", &x);
	if (whole && find(p, stem, "weight_zero_point", &z) && z.t->dtype == ACC_I8)
		g->zero = packed(add(p, w, &z), 8, 8, 0, g->scale_pitch, ACC_CODES_LOW);
	return 0;
}

/* A whole number of a configuration. */
static int64_t
number(const struct jnode *root, const char *key)
{
	const struct jnode *n = jtree_get(root, key);
	return n != NULL && n->type == ACC_JSON_INT ? n->i : 0;
}

/* What bitsandbytes keeps as JSON in a tensor of bytes. */
static int
state_of(struct packed_set *p, struct acc_str stem, struct jnode **root, struct acc_err *e)
{
	enum { MOST = 1 << 16 };
	struct packed_tensor x;
	struct acc_json_tok t;
	*root = NULL;
	if (!find(p, stem, kinds[NF4].part[4], &x))
		find(p, stem, kinds[NF4].part[5], &x);
	if (x.t->dtype != ACC_U8 || x.t->len > MOST)
		return acc_fail(e, ACC_EFORMAT, "a quant_state that is no text");
	int fd = acc_file_beneath(p->dirfd, acc_str(x.file), e);
	if (fd < 0)
		return fd;
	struct acc_json *j = acc_json_open(acc_bytes_part(fd, x.file, x.t->off, x.t->len, e), false,
		e);
	int rc = j == NULL ? ACC_ENOMEM : acc_json_next(j, &t, e);
	if (rc > 0)
		rc = acc_jtree_read(j, &t, &p->mem, root, e);
	acc_json_close(j);
	close(fd);
	return rc < 0 ? rc : 0;
}

static int
four_bits(struct packed_set *p, struct acc_str stem, const struct packed_tensor *head,
	struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, x;
	struct jnode *root;
	uint64_t count;
	int rc = state_of(p, stem, &root, &w->bad);
	const struct jnode *shape = jtree_get(root, "shape");
	if (rc < 0)
		return rc;
	for (const struct jnode *n = shape != NULL && shape->type == ACC_JSON_ARRAY ? shape->child
										    : NULL;
		n != NULL; n = n->next) {
		if (n->type != ACC_JSON_INT || n->i < 0 || w->ref.ndim == 8)
			return misfit(w, "the shape of its quant_state");
		w->ref.shape[w->ref.ndim++] = n->i;
	}
	if (w->ref.ndim == 0 || !acc_count(w->ref.shape, w->ref.ndim, &count) || count == 0 ||
		count > ACC_GRID_MOST || (count + 1) / 2 > head->t->len)
		return misfit(w, "the shape of its quant_state");
	g->rows = 1;
	g->cols = (int64_t)count;
	g->row_group = 1;
	g->col_group = number(root, "blocksize");
	g->kind = ACC_CODE_TABLE;
	g->code = packed(add(p, w, head), 4, 8, 0, (int64_t)head->t->len, ACC_CODES_HIGH);
	g->scale = add_part(p, w, stem, "weight.absmax", &s);
	g->scale_type = acc_grid_type_of(s.t->dtype);
	g->table = add_part(p, w, stem, "weight.quant_map", &x);
	if (s.t->dtype != ACC_U8)
		return 0;
	const struct jnode *off = jtree_get(root, "nested_offset");
	g->inner_table = add_part(p, w, stem, "weight.nested_quant_map", &x);
	g->inner_scale = add_part(p, w, stem, "weight.nested_absmax", &x);
	g->inner_group = number(root, "nested_blocksize");
	g->inner_offset = off != NULL && off->type == ACC_JSON_FLOAT
				  ? off->f
				  : (double)number(root, "nested_offset");
	return g->inner_table < 0 || g->inner_scale < 0
		       ? misfit(w, "its nested quant_map or absmax")
		       : 0;
}

/* A weight and the product that is added to it. */
static int
with_adapter(struct packed_set *p, enum kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w)
{
	struct packed_tensor a, b;
	struct acc_ref *r = &w->ref;
	uint64_t count = 0;
	find_adapter(p, stem, kind, 0, &a);
	find_adapter(p, stem, kind, 1, &b);
	const bool turned = p->adapter_turned;
	const int64_t rank = a.t->shape[0];
	struct acc_lora l = {.rows = head->t->shape[0], .cols = head->t->shape[1], .rank = rank};
	l.base = (struct acc_lora_matrix){add(p, w, head), acc_grid_type_of(head->t->dtype), 0};
	l.left = (struct acc_lora_matrix){add(p, w, turned ? &a : &b),
		acc_grid_type_of((turned ? &a : &b)->t->dtype), turned};
	l.right = (struct acc_lora_matrix){add(p, w, turned ? &b : &a),
		acc_grid_type_of((turned ? &b : &a)->t->dtype), turned};
	l.factor = p->adapter / (p->adapter_root ? sqrt((double)rank) : (double)rank);
	if (p->adapter_apart)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"an adapter of several ranks or scales, or DoRA, which is not added");
	if (acc_dtype_of(head->t->dtype)->cls != 'F' || acc_dtype_of(head->t->dtype)->size < 2)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"an adapter of a quantized weight, which is not added");
	if (!isfinite(l.factor))
		return acc_fail(&w->bad, ACC_EFORMAT,
			"no " ADAPTER_CONFIG " says what its adapter is multiplied by");
	if (b.t->shape[1] != rank || a.t->shape[1] != (turned ? l.rows : l.cols) ||
		b.t->shape[0] != (turned ? l.cols : l.rows))
		return acc_fail(&w->bad, ACC_EFORMAT,
			"matrices of an adapter that do not fit its weight");
	memcpy(w->rows, &l, sizeof l);
	r->parts.nrows = ACC_LORA_N;
	r->enc = ACC_LORA;
	int rc = acc_lora_read(&r->parts, &l, &count, &w->bad);
	r->ndim = 2;
	r->shape[0] = head->t->shape[0];
	r->shape[1] = head->t->shape[1];
	r->len = count * sizeof(float);
	return rc;
}

static int
make(struct packed_set *p, enum kind kind, struct acc_str stem, const struct packed_tensor *head,
	struct packed_weight *w)
{
	struct acc_grid g = {.code = {.part = -1},
		.zero = {.part = -1},
		.index = -1,
		.table = -1,
		.divisor = -1,
		.inner_table = -1,
		.inner_scale = -1,
		.factor = 1};
	uint64_t count = 0;
	struct acc_ref *r = &w->ref;
	r->dtype = ACC_F32;
	r->enc = ACC_GRID;
	r->parts = (struct acc_parts){.nrows = ACC_GRID_N,
		.src = w->src,
		.file = w->file,
		.off = w->off,
		.len = w->len,
		.fsize = w->fsize,
		.mtime = w->mtime,
		.rows = w->rows};
	if (kind == LORA || kind == LORA_IN)
		return with_adapter(p, kind, stem, head, w);
	int rc = kind == GPTQ || kind == AWQ ? turned(p, kind, stem, &g, w)
		 : kind == INTS              ? integers(p, stem, head, &g, w)
		 : kind == FLOATS            ? floats(p, stem, head, &g, w)
		 : kind == NF4               ? four_bits(p, stem, head, &g, w)
					     : bytes(p, kind, stem, head, &g, w);
	memcpy(w->rows, &g, sizeof g);
	if (rc == 0)
		rc = acc_grid_read(&r->parts, &g, &count, &w->bad);
	r->len = count * sizeof(float);
	return rc == 0 ? acc_ref_check(r, &w->bad) : rc;
}

/* The stem of a weight, of that of its part. */
static struct acc_str
unwrapped(enum kind kind, struct acc_str stem)
{
	const uint32_t n = sizeof wrapper - 1;
	return kind == LORA && stem.n > n && memcmp(stem.p, wrapper, n) == 0
		       ? (struct acc_str){stem.p + n, stem.n - n}
		       : stem;
}

int
acc_packed(struct packed_set *p, const struct packed_tensor *x, struct packed_weight *out,
	struct acc_err *e)
{
	struct packed_tensor head;
	struct acc_str stem;
	acc_arena_reset(&p->mem);
	if (x->t->at != NULL)
		return 0;
	for (enum kind k = NONE + 1; k < NKINDS; k++) {
		if (stem_of(x->t->name, kinds[k].head, &stem) && kind_of(p, stem, &head) == k &&
			head.t == x->t) {
			*out = (struct packed_weight){.raw = kinds[k].raw};
			const char *name = acc_arena_printf(&p->mem, "%.*sweight", ACC_PRS(stem));
			if (name == NULL)
				return acc_nomem(e);
			out->name = acc_str(name);
			make(p, k, stem, x, out);
			return out->bad.code == ACC_ENOMEM ? acc_nomem(e) : 1;
		}
		for (int i = 0; i < 6 && kinds[k].part[i] != NULL; i++)
			if (stem_of(x->t->name, kinds[k].part[i], &stem) &&
				kind_of(p, unwrapped(k, stem), &head) == k)
				return 2;
	}
	return 0;
}
