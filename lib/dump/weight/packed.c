/* Weights that a checkpoint has in few bits, or with an adapter: which tensors belong together. */
#include "dump/weight/packed_impl.h"

#include "dump/jtree.h"

/* A weight's name is its stem and a word; so are those of its parts. */
static const struct {
	const char *head, *raw;
	const char *part[6];
} kinds[ACC_PACKED_N] = {
	[ACC_PACKED_GPTQ] = {"qweight", "GPTQ", {"qzeros", "scales", "g_idx"}},
	[ACC_PACKED_AWQ] = {"qweight", "AWQ", {"qzeros", "scales"}},
	[ACC_PACKED_INTS] = {"weight_packed", "compressed-tensors integers",
		{"weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"}},
	[ACC_PACKED_FLOATS] = {"weight_packed", "compressed-tensors FP4",
		{"weight_scale", "weight_global_scale"}},
	[ACC_PACKED_SCALED] = {"weight", "compressed-tensors",
		{"weight_scale", "weight_zero_point", "weight_g_idx"}},
	[ACC_PACKED_BLOCKS] = {"weight", "FP8 in blocks", {"weight_scale_inv"}},
	[ACC_PACKED_NF4] = {"weight", "bitsandbytes, 4 bits",
		{"weight.absmax", "weight.quant_map", "weight.nested_absmax",
			"weight.nested_quant_map", "weight.quant_state.bitsandbytes__nf4",
			"weight.quant_state.bitsandbytes__fp4"}},
	[ACC_PACKED_INT8] = {"weight", "bitsandbytes, 8 bits", {"SCB", "weight_format"}},
	[ACC_PACKED_AO] = {"qdata", "torchao", {"scale", "zero_point", "per_tensor_scale"}},
	[ACC_PACKED_AO_ST] = {"_weight_qdata", "torchao",
		{"_weight_scale", "_weight_zero_point", "_weight_per_tensor_scale"}},
	[ACC_PACKED_ORT] = {"_quantized", "onnxruntime", {"_scale", "_zero_point"}},
	[ACC_PACKED_LORA] = {"weight", "LoRA", {"lora_A.weight", "lora_B.weight"}},
	[ACC_PACKED_LORA_IN] = {"base_layer.weight", "LoRA",
		{"lora_A.default.weight", "lora_B.default.weight"}},
};

const char *
acc_packed_word(enum acc_packed_kind kind, int i)
{
	return i == 0 ? kinds[kind].head : kinds[kind].part[i - 1];
}

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
	return acc_packed_adapter(p, e);
}

bool
acc_packed_find(struct packed_set *p, struct acc_str stem, const char *word,
	struct packed_tensor *out)
{
	const char *name = acc_arena_printf(&p->mem, "%.*s%s", ACC_PRS(stem), word);
	return name != NULL && p->find(p->arg, acc_str(name), out) && out->t->at == NULL &&
	       (out->all == NULL || strcmp(word, "_zero_point") == 0);
}

int64_t
acc_packed_add(struct packed_set *p, struct packed_weight *w, const struct packed_tensor *x)
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

static bool
is_float8(enum acc_dtype t)
{
	return t == ACC_F8E4M3 || t == ACC_F8E5M2 || t == ACC_F8E4M3FNUZ || t == ACC_F8E5M2FNUZ;
}

/* Of what kind the weight of a stem is, and its tensor. */
static enum acc_packed_kind
kind_of(struct packed_set *p, struct acc_str stem, struct packed_tensor *head)
{
	struct packed_tensor x, y;
	const enum acc_packed_kind added = acc_packed_adapted(p, stem, head);
	if (added != ACC_PACKED_NONE)
		return added;
	if (acc_packed_find(p, stem, "qweight", head) && acc_packed_find(p, stem, "scales", &x) &&
		acc_packed_find(p, stem, "qzeros", &y) && head->t->dtype == ACC_I32 &&
		y.t->dtype == ACC_I32 && head->t->ndim == 2 && x.t->ndim == 2)
		/* Packed along what goes in, or along what comes out. */
		return head->t->shape[1] == x.t->shape[1]       ? ACC_PACKED_GPTQ
		       : head->t->shape[1] * 8 == x.t->shape[1] ? ACC_PACKED_AWQ
								: ACC_PACKED_NONE;
	if (acc_packed_find(p, stem, "weight_packed", head) &&
		acc_packed_find(p, stem, "weight_scale", &x))
		return head->t->dtype == ACC_I32  ? ACC_PACKED_INTS
		       : head->t->dtype == ACC_U8 ? ACC_PACKED_FLOATS
						  : ACC_PACKED_NONE;
	if (acc_packed_ao(p, ACC_PACKED_AO, stem, head))
		return ACC_PACKED_AO;
	if (acc_packed_ao(p, ACC_PACKED_AO_ST, stem, head))
		return ACC_PACKED_AO_ST;
	if (acc_packed_find(p, stem, "_quantized", head) &&
		acc_packed_find(p, stem, "_scale", &x) &&
		(head->t->dtype == ACC_I8 || head->t->dtype == ACC_U8) && x.t->dtype == ACC_F32)
		return ACC_PACKED_ORT;
	if (!acc_packed_find(p, stem, "weight", head))
		return ACC_PACKED_NONE;
	const enum acc_dtype t = head->t->dtype;
	if (t == ACC_U8 && acc_packed_find(p, stem, "weight.quant_map", &x) &&
		acc_packed_find(p, stem, "weight.absmax", &y) &&
		(acc_packed_find(p, stem, "weight.quant_state.bitsandbytes__nf4", &x) ||
			acc_packed_find(p, stem, "weight.quant_state.bitsandbytes__fp4", &x)))
		return ACC_PACKED_NF4;
	if (t == ACC_I8 && acc_packed_find(p, stem, "SCB", &x) && x.t->dtype == ACC_F32)
		return ACC_PACKED_INT8;
	if (is_float8(t) && acc_packed_find(p, stem, "weight_scale_inv", &x) && x.t->ndim == 2)
		return ACC_PACKED_BLOCKS;
	return (t == ACC_I8 || is_float8(t)) && acc_packed_find(p, stem, "weight_scale", &x)
		       ? ACC_PACKED_SCALED
		       : ACC_PACKED_NONE;
}

/* Does the name end in this word, behind a point or alone, or in this end of a word? Its stem. */
static bool
stem_of(struct acc_str name, const char *word, struct acc_str *stem)
{
	const uint32_t n = (uint32_t)strlen(word);
	if (!acc_str_ends(name, word) ||
		(name.n > n && name.p[name.n - n - 1] != '.' && (word[0] != '_' || word[1] == 'w')))
		return false;
	*stem = (struct acc_str){name.p, name.n - n};
	return true;
}

static int
make(struct packed_set *p, enum acc_packed_kind kind, struct acc_str stem,
	const struct packed_tensor *head, struct packed_weight *w)
{
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
	return kind >= ACC_PACKED_LORA ? acc_packed_added(p, kind, stem, head, w)
				       : acc_packed_grid(p, kind, stem, head, w);
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
	for (enum acc_packed_kind k = ACC_PACKED_NONE + 1; k < ACC_PACKED_N; k++) {
		if (stem_of(x->t->name, kinds[k].head, &stem) &&
			(stem.n > 0 || k != ACC_PACKED_AO) && kind_of(p, stem, &head) == k &&
			head.t == x->t) {
			*out = (struct packed_weight){.raw = kinds[k].raw};
			/* A subclass's own tensors are behind its name. */
			const char *name =
				k == ACC_PACKED_AO
					? acc_arena_printf(&p->mem, "%.*s", (int)stem.n - 1, stem.p)
				: k == ACC_PACKED_ORT
					? acc_arena_printf(&p->mem, "%.*s", ACC_PRS(stem))
					: acc_arena_printf(&p->mem, "%.*sweight", ACC_PRS(stem));
			if (name == NULL)
				return acc_nomem(e);
			out->name = acc_str(name);
			make(p, k, stem, x, out);
			return out->bad.code == ACC_ENOMEM ? acc_nomem(e) : 1;
		}
		for (int i = 0; i < 6 && kinds[k].part[i] != NULL; i++)
			if (stem_of(x->t->name, kinds[k].part[i], &stem) &&
				kind_of(p, acc_packed_unwrapped(k, stem), &head) == k)
				return 2;
	}
	return 0;
}
