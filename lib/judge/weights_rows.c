#include "judge/weights_rows.h"

#include "acc/record.h"

#include <ctype.h>

/* Megatron: megatron/core/transformer/attention.py (a group's queries, its key, its value) and mlp.py (gate,
 * then up); Hugging Face: modeling_llama.py and those after it, modeling_phi3.py for what is packed;
 * GPT-2: Conv1D of q, k, v; Meta: github.com/meta-llama/llama, which takes pairs as complex numbers. */
static const struct {
	const char *glob;
	struct acc_named_rows is;
} rows[] = {
	{"*self_attention.linear_qkv.weight", {"Megatron", ACC_ROWS_GROUPS, -1}},
	{"*self_attention.linear_qkv.bias", {"Megatron", ACC_ROWS_GROUPS, -1}},
	{"*language_model.*.query_key_value.*", {"Megatron", ACC_ROWS_GROUPS, -1}},
	{"*mlp.*linear_fc1.weight*", {"Megatron", ACC_ROWS_BLOCKS, -1}},
	{"*mlp.*linear_fc1.bias*", {"Megatron", ACC_ROWS_BLOCKS, -1}},
	{"*language_model.*.dense_h_to_4h.*", {"Megatron", ACC_ROWS_BLOCKS, -1}},
	{"*.self_attn.qkv_proj.*", {"Hugging Face", ACC_ROWS_BLOCKS, -1}},
	{"*.mlp.gate_up_proj.*", {"Hugging Face", ACC_ROWS_BLOCKS, -1}},
	{"*.attn.c_attn.*", {"GPT-2", ACC_ROWS_BLOCKS, -1}},
	{"*.self_attn.q_proj.*", {"Hugging Face", ACC_ROWS_HALVES, 0}},
	{"*.self_attn.k_proj.*", {"Hugging Face", ACC_ROWS_HALVES, 1}},
	{"*.self_attn.v_proj.*", {"Hugging Face", ACC_ROWS_PLAIN, 2}},
	{"*.gate_proj.*", {"Hugging Face", ACC_ROWS_PLAIN, 0}},
	{"*.up_proj.*", {"Hugging Face", ACC_ROWS_PLAIN, 1}},
};

/* Meta's names, and no longer ones that end alike: MindFormers' have the rows of Hugging Face. */
static const struct {
	const char *word;
	struct acc_named_rows is;
} meta[] = {
	{"attention.wq.", {"Meta", ACC_ROWS_PAIRS, 0}},
	{"attention.wk.", {"Meta", ACC_ROWS_PAIRS, 1}},
	{"attention.wv.", {"Meta", ACC_ROWS_PLAIN, 2}},
	{"feed_forward.w1.", {"Meta", ACC_ROWS_PLAIN, 0}},
	{"feed_forward.w3.", {"Meta", ACC_ROWS_PLAIN, 1}},
};

/* What stands behind "layers." and a number. */
static struct acc_str
behind(struct acc_str s, uint32_t k)
{
	while (k < s.n && isdigit((unsigned char)s.p[k]))
		k++;
	return k < s.n ? (struct acc_str){s.p + k + 1, s.n - k - 1} : ACC_STR("");
}

/* llama.cpp's convert_hf_to_gguf.py: LlamaModel permutes, as Meta's rows are. Those of llama_model_rope_type (NEOX) whose
 * models permute nothing have those of Hugging Face. */
enum acc_llama_cpp
acc_llama_cpp_of(struct acc_str framework)
{
	static const char halves[] =
		"qwen2 qwen2moe qwen3 qwen3moe gemma gemma2 gemma3 phi2 phi3 starcoder2 stablelm gptneox";
	static const char begins[] = "llama.cpp, ";
	if (!acc_str_starts(framework, begins))
		return ACC_GGUF_NONE;
	const uint32_t n = sizeof begins - 1;
	const struct acc_str arch = {framework.p + n, framework.n - n};
	return acc_str_is(arch, "llama")   ? ACC_GGUF_PAIRS
	       : acc_word_in(halves, arch) ? ACC_GGUF_HALVES
					   : ACC_GGUF_NONE;
}

static const struct {
	const char *word;
	struct acc_named_rows is;
} gguf[] = {
	{"attn_q.", {"llama.cpp", ACC_ROWS_PAIRS, 0}},
	{"attn_k.", {"llama.cpp", ACC_ROWS_PAIRS, 1}},
	{"attn_v.", {"llama.cpp", ACC_ROWS_PLAIN, 2}},
	{"ffn_gate.", {"llama.cpp", ACC_ROWS_PLAIN, 0}},
	{"ffn_up.", {"llama.cpp", ACC_ROWS_PLAIN, 1}},
};

struct acc_named_rows
acc_rows_of(struct acc_str name, enum acc_llama_cpp file)
{
	struct acc_str s = name;
	if (file != ACC_GGUF_NONE && acc_str_starts(s, "blk."))
		for (size_t i = 0; i < sizeof gguf / sizeof *gguf; i++)
			if (acc_str_starts(behind(s, 4), gguf[i].word)) {
				struct acc_named_rows is = gguf[i].is;
				if (is.rows == ACC_ROWS_PAIRS && file == ACC_GGUF_HALVES)
					is.rows = ACC_ROWS_HALVES;
				return is;
			}
	if (acc_str_starts(s, "module."))
		s = (struct acc_str){s.p + 7, s.n - 7};
	if (acc_str_starts(s, "layers."))
		for (size_t i = 0; i < sizeof meta / sizeof *meta; i++)
			if (acc_str_starts(behind(s, 7), meta[i].word))
				return meta[i].is;
	/* Keras has the weights of a layer by number behind its name. */
	char keras[512];
	const char *vars = name.n == 0 ? NULL : memmem(name.p, name.n, "/vars/", 6);
	if (vars != NULL && (size_t)(vars - name.p) + 2 < sizeof keras) {
		const int n = snprintf(keras, sizeof keras, "%.*s.", (int)(vars - name.p), name.p);
		s = (struct acc_str){keras, (uint32_t)n};
	} else {
		s = name;
	}
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (acc_glob(rows[i].glob, s))
			return rows[i].is;
	return (struct acc_named_rows){NULL, ACC_ROWS_ANY, -1};
}

struct acc_expert
acc_expert_of(struct acc_str name)
{
	/* Mixtral's w1 and w3, as Meta's, are gate and up. */
	static const struct {
		const char *word;
		int half;
	} words[] = {{"w1.", 0}, {"gate_proj.", 0}, {"w3.", 1}, {"up_proj.", 1}};
	const char *at = name.n == 0 ? NULL : memmem(name.p, name.n, "experts.", 8);
	struct acc_expert x = {-1, -1};
	if (at == NULL)
		return x;
	struct acc_str s = {at + 8, (uint32_t)(name.p + name.n - at) - 8};
	uint32_t k = 0;
	while (k < s.n && isdigit((unsigned char)s.p[k]))
		k++;
	if (k == s.n || s.p[k] != '.' || !acc_str_int((struct acc_str){s.p, k}, &x.number))
		return (struct acc_expert){-1, -1};
	s = behind(s, 0);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (acc_str_starts(s, words[i].word))
			x.half = words[i].half;
	return x;
}

/* The numbers of "word(1,2,3)" at *p, which moves behind them. */
static bool
numbers(const char **p, const char *end, const char *word, int64_t *out, uint32_t *n)
{
	const size_t len = strlen(word);
	const char *q = *p;
	if ((size_t)(end - q) < len || memcmp(q, word, len) != 0)
		return false;
	*n = 0;
	for (q += len; q < end && *q != ')'; q++) {
		int64_t v = 0;
		while (q < end && isdigit((unsigned char)*q) && v < INT64_MAX / 10 - 1)
			v = v * 10 + (*q++ - '0');
		if (*n < 8)
			out[(*n)++] = v;
		if (q >= end || *q == ')')
			break;
	}
	*p = q < end ? q + 1 : end;
	return true;
}

struct acc_laid_out
acc_layout_parse(struct acc_str text)
{
	struct acc_laid_out l = {0};
	const char *p = text.p, *end = text.p + text.n;
	int64_t v[8];
	uint32_t n;
	if (text.n < 2)
		return l;
	l.side = *p++;
	while (p < end) {
		if (numbers(&p, end, ".view(", l.view, &l.nview) ||
			numbers(&p, end, ".permute(", l.perm, &l.nperm))
			continue;
		if (numbers(&p, end, ".part(", v, &n)) {
			if (l.nparts++ == 0 && n == 3) {
				l.axis = v[0];
				l.start = v[1];
				l.len = v[2];
			} else if (n == 3) {
				l.second = v[1];
			}
		} else if (numbers(&p, end, ".group(", v, &n) ||
			   numbers(&p, end, ".ungroup(", v, &n)) {
			l.grouped = true;
		} else {
			p++;
		}
	}
	return l;
}

bool
acc_laid_backwards(const struct acc_laid_out *l, const int64_t *shape, uint32_t n)
{
	if (l->nparts > 0 || l->nperm != n || n < 2 || (l->nview != 0 && l->nview != n))
		return false;
	bool square = true;
	for (uint32_t i = 0; i < n; i++) {
		if (l->perm[i] != (int64_t)(n - 1 - i) ||
			(l->nview != 0 && l->view[i] != shape[n - 1 - i]))
			return false;
		square &= shape[i] == shape[n - 1 - i];
	}
	return !square;
}

uint32_t
acc_laid_head(const struct acc_laid_out *l)
{
	/* In front of it one that goes to the end, or two behind that change places. */
	return l->nview == 4 && l->nperm == 4 &&
	       (l->perm[3] == 0 || (l->perm[0] == 0 && l->perm[2] == 3));
}

/* Do two axes of a view, within an axis of heads, change places, one of them of the pair? `pairs`: these lie side
 * by side in what is viewed. */
static bool
rotates(const struct acc_laid_out *l, bool pairs)
{
	const uint32_t head = acc_laid_head(l);
	if (l->nview < 3 || l->nview > 4 || l->nperm != l->nview || l->nparts > 0)
		return false;
	/* Of what is transposed, the axis that is none of a head's comes first, or goes there. */
	for (uint32_t i = 0, k = 0; i < l->nperm; i++) {
		const int64_t other = l->nview < 4 ? -1 : head == 1 ? 0 : 3;
		if (l->perm[i] == other)
			continue;
		if (l->perm[i] != head + (k == 1 ? 2 : k == 2 ? 1 : 0))
			return false;
		k++;
	}
	return l->view[head + (pairs ? 2 : 1)] == 2;
}

/* Of two tensors of the same elements. */
static int
same_size(const struct acc_named_rows name[2], const struct acc_laid_out *l, int *which)
{
	const enum acc_rows a = name[0].rows, b = name[1].rows;
	/* Transposed, as frameworks have it, is of no account here. */
	const bool turned = l->nperm == 2 && l->nview == 0,
		   moved = (l->nperm > 0 && !turned) || l->grouped;
	*which = 0;
	if ((a == ACC_ROWS_PAIRS && b == ACC_ROWS_HALVES) ||
		(a == ACC_ROWS_HALVES && b == ACC_ROWS_PAIRS)) {
		*which = a == ACC_ROWS_HALVES;
		/* What is viewed is the device's. */
		return l->side == 'a' && rotates(l, a == ACC_ROWS_PAIRS);
	}
	if ((a == ACC_ROWS_GROUPS && b == ACC_ROWS_BLOCKS) ||
		(a == ACC_ROWS_BLOCKS && b == ACC_ROWS_GROUPS)) {
		*which = a == ACC_ROWS_BLOCKS;
		return moved;
	}
	return a == b && !turned ? !moved : -1;
}

bool
acc_laid_stacked(const struct acc_laid_out *l)
{
	return l->nparts == 1 && l->nview == 4 && l->nperm == 4 && l->axis == 0 && l->perm[1] == 2;
}

int
acc_rows_fit(const struct acc_named_rows name[2], const struct acc_laid_out *l, int *which)
{
	const int whole = l->side == 'b';
	if (name[0].dialect == NULL || name[1].dialect == NULL)
		return -1;
	if (l->nparts == 0)
		return same_size(name, l, which);
	/* A part of a weight that is packed, on either side. */
	*which = whole;
	if (l->nparts > 1 || name[!whole].part < 0)
		return -1;
	/* Rotary pairs within groups: Megatron's are halves. */
	const bool pairs = name[!whole].rows == ACC_ROWS_PAIRS;
	if (name[whole].rows == ACC_ROWS_GROUPS && l->nview == 5 && l->nperm == 5)
		return pairs && l->axis == 1 && l->view[2] == 2;
	if (pairs && name[whole].rows == ACC_ROWS_GROUPS)
		return 0;
	/* The same of what is packed one behind the other. */
	if (name[whole].rows == ACC_ROWS_BLOCKS && acc_laid_stacked(l))
		return pairs && l->axis == 0 && l->view[1] == 2;
	if (pairs && name[whole].rows == ACC_ROWS_BLOCKS && l->nperm == 0)
		return 0;
	/* As it lies, or transposed. */
	if (l->nperm > 0 && l->nperm != (l->nview == 0 ? 2 : 3))
		return -1;
	if (name[whole].rows == ACC_ROWS_BLOCKS)
		return l->nview == 0;
	if (name[whole].rows == ACC_ROWS_GROUPS)
		return l->nview > 1 && l->axis == 1;
	return -1;
}
