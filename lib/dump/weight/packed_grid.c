/* Weights in few bits: how their codes lie, and which tensors have the scales, zero points and groups of them. */
#include "dump/weight/packed_impl.h"

#include <endian.h>
#include <unistd.h>

#include "dump/jtree.h"

/* A part of it of this word; -1: there is none. */
int64_t
acc_packed_part(struct packed_set *p, struct packed_weight *w, struct acc_str stem,
	const char *word, struct packed_tensor *x)
{
	return acc_packed_find(p, stem, word, x) ? acc_packed_add(p, w, x) : -1;
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

/* ACC_PACKED_GPTQ's and ACC_PACKED_AWQ's lie turned: what goes in by what comes out. */
static int
turned(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem, struct acc_grid *g,
	struct packed_weight *w)
{
	static const int64_t gptq_bits[] = {4, 8, 3, 2};
	struct packed_tensor q, s, z, x;
	acc_packed_find(p, stem, "qweight", &q);
	g->code.part = acc_packed_add(p, w, &q);
	g->scale = acc_packed_part(p, w, stem, "scales", &s);
	g->zero.part = acc_packed_part(p, w, stem, "qzeros", &z);
	g->index = kind == ACC_PACKED_GPTQ ? acc_packed_part(p, w, stem, "g_idx", &x) : -1;
	const int64_t out = s.t->shape[1], groups = s.t->shape[0];
	if (z.t->ndim != 2 || z.t->shape[0] != groups || groups < 1 || out < 1)
		return misfit(w, "scales or qzeros");
	if (kind == ACC_PACKED_GPTQ) {
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
int
acc_packed_scaled(const struct packed_set *p, const struct packed_tensor *s, struct acc_grid *g,
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
void
acc_packed_shape(struct packed_weight *w, struct acc_grid *g, const struct acc_st_tensor *x,
	int64_t cols)
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
int
acc_packed_bytes(struct packed_set *p, const struct packed_tensor *x, void *out, size_t n,
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
	if (!acc_packed_find(p, stem, "weight_shape", &x) || x.t->dtype != ACC_I64 ||
		x.t->ndim != 1 || x.t->shape[0] < 2 || x.t->shape[0] > 4)
		return acc_fail(e, ACC_EFORMAT,
			"there is no weight_shape that says how many columns it has");
	int rc = acc_packed_bytes(p, &x, shape, (size_t)x.t->shape[0] * sizeof *shape, e);
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
	acc_packed_shape(w, g, head->t, cols);
	g->code = packed(acc_packed_add(p, w, head), bits, 32, 0, words, ACC_CODES_LOW);
	g->kind = ACC_CODE_UNSIGNED;
	g->scale = acc_packed_part(p, w, stem, "weight_scale", &s);
	g->index = acc_packed_part(p, w, stem, "weight_g_idx", &x);
	rc = acc_packed_scaled(p, &s, g, w);
	if (!acc_packed_find(p, stem, "weight_zero_point", &z)) {
		g->add = 1 << (bits - 1);
		return rc;
	}
	if (head->t->ndim != 2 || z.t->dtype != ACC_I32)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"zero points of experts in one tensor, which are not decoded");
	g->zero = packed(acc_packed_add(p, w, &z), bits, 32, 1, g->scale_pitch, ACC_CODES_LOW);
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
	acc_packed_shape(w, g, head->t, half * 2);
	g->code = packed(acc_packed_add(p, w, head), 4, 8, 0, half, ACC_CODES_LOW);
	g->kind = ACC_CODE_FLOAT + acc_grid_type_of(ACC_F4E2M1);
	g->scale = acc_packed_part(p, w, stem, "weight_scale", &s);
	g->divisor = acc_packed_part(p, w, stem, "weight_global_scale", &x);
	int rc = acc_packed_scaled(p, &s, g, w);
	/* MXFP4 has exponents, as bytes. */
	if (s.t->dtype == ACC_U8)
		g->scale_type = acc_grid_type_of(ACC_F8E8M0);
	return g->divisor >= 0 && x.t->dtype != ACC_F32 ? misfit(w, "its global scale") : rc;
}

static int
bytes(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, z, x;
	const bool whole = head->t->dtype == ACC_I8;
	if (head->t->ndim < 1)
		return misfit(w, "its shape");
	acc_packed_shape(w, g, head->t, head->t->shape[head->t->ndim - 1]);
	g->code = packed(acc_packed_add(p, w, head), 8, 8, 0, g->cols, ACC_CODES_LOW);
	g->kind = whole ? (int64_t)ACC_CODE_SIGNED
			: ACC_CODE_FLOAT + acc_grid_type_of(head->t->dtype);
	g->scale = acc_packed_part(p, w, stem,
		kind == ACC_PACKED_INT8     ? "SCB"
		: kind == ACC_PACKED_BLOCKS ? "weight_scale_inv"
					    : "weight_scale",
		&s);
	g->factor = kind == ACC_PACKED_INT8 ? 1.0 / 127 : 1;
	int rc = acc_packed_scaled(p, &s, g, w);
	if (rc < 0 || kind != ACC_PACKED_SCALED)
		return rc;
	g->index = acc_packed_part(p, w, stem, "weight_g_idx", &x);
	if (whole && acc_packed_find(p, stem, "weight_zero_point", &z) && z.t->dtype == ACC_I8)
		g->zero = packed(acc_packed_add(p, w, &z), 8, 8, 0, g->scale_pitch, ACC_CODES_LOW);
	return 0;
}

/* onnxruntime's: of all, or of each row or column; which of these a square does not tell. */
static int
of_onnxruntime(struct packed_set *p, struct acc_str stem, const struct packed_tensor *head,
	struct acc_grid *g, struct packed_weight *w)
{
	struct packed_tensor s, z;
	if (head->t->ndim < 1)
		return misfit(w, "its shape");
	acc_packed_shape(w, g, head->t, head->t->shape[head->t->ndim - 1]);
	g->code = packed(acc_packed_add(p, w, head), 8, 8, 0, g->cols, ACC_CODES_LOW);
	g->kind = head->t->dtype == ACC_I8 ? ACC_CODE_SIGNED : ACC_CODE_UNSIGNED;
	g->scale = acc_packed_part(p, w, stem, "_scale", &s);
	const int64_t n = s.t->ndim == 1 ? s.t->shape[0] : 1, first = head->t->shape[0];
	if (n > 1 && n == first && n == g->cols)
		return acc_fail(&w->bad, ACC_EUNSUP,
			"scales of rows or of columns, which a square does not tell");
	int rc = acc_packed_scaled(p, &s, g, w);
	if (n > 1 && n != first && n == g->cols) {
		g->scale_pitch = n;
		g->row_group = g->rows;
		g->col_group = 1;
		rc = 0;
		w->bad = (struct acc_err){0};
	}
	if (rc == 0 && acc_packed_find(p, stem, "_zero_point", &z)) {
		if (z.t->dtype != head->t->dtype || z.t->len != s.t->len / sizeof(float))
			return misfit(w, "its zero point");
		g->add = z.all != NULL ? *z.all : 0;
		if (z.all == NULL)
			g->zero = packed(acc_packed_add(p, w, &z), 8, 8, 0, g->scale_pitch,
				ACC_CODES_LOW);
	}
	return rc;
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
	if (!acc_packed_find(p, stem, "weight.quant_state.bitsandbytes__nf4", &x))
		acc_packed_find(p, stem, "weight.quant_state.bitsandbytes__fp4", &x);
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
	g->code = packed(acc_packed_add(p, w, head), 4, 8, 0, (int64_t)head->t->len,
		ACC_CODES_HIGH);
	g->scale = acc_packed_part(p, w, stem, "weight.absmax", &s);
	g->scale_type = acc_grid_type_of(s.t->dtype);
	g->table = acc_packed_part(p, w, stem, "weight.quant_map", &x);
	if (s.t->dtype != ACC_U8)
		return 0;
	const struct jnode *off = jtree_get(root, "nested_offset");
	g->inner_table = acc_packed_part(p, w, stem, "weight.nested_quant_map", &x);
	g->inner_scale = acc_packed_part(p, w, stem, "weight.nested_absmax", &x);
	g->inner_group = number(root, "nested_blocksize");
	g->inner_offset = off != NULL && off->type == ACC_JSON_FLOAT
				  ? off->f
				  : (double)number(root, "nested_offset");
	return g->inner_table < 0 || g->inner_scale < 0
		       ? misfit(w, "its nested quant_map or absmax")
		       : 0;
}

int
acc_packed_grid(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w)
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
	int rc = kind == ACC_PACKED_GPTQ || kind == ACC_PACKED_AWQ ? turned(p, kind, stem, &g, w)
		 : kind == ACC_PACKED_INTS                         ? integers(p, stem, head, &g, w)
		 : kind == ACC_PACKED_FLOATS                       ? floats(p, stem, head, &g, w)
		 : kind == ACC_PACKED_NF4                          ? four_bits(p, stem, head, &g, w)
		 : kind == ACC_PACKED_ORT ? of_onnxruntime(p, stem, head, &g, w)
		 : kind == ACC_PACKED_AO || kind == ACC_PACKED_AO_ST
			 ? acc_packed_ao_grid(p, kind, stem, head, &g, w)
			 : bytes(p, kind, stem, head, &g, w);
	memcpy(w->rows, &g, sizeof g);
	if (rc == 0)
		rc = acc_grid_read(&r->parts, &g, &count, &w->bad);
	r->len = count * sizeof(float);
	return rc == 0 ? acc_ref_check(r, &w->bad) : rc;
}
