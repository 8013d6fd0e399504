/* What a weight of one rank is called where one rank has all: stages number their layers from 0 on, the
 * chunks of interleaved stages are model0, model1 ..., and expert parallel ranks number their experts. */
#include "fold/weights.h"

#include <ctype.h>
#include <stdlib.h>

/* A name as words between dots, of which numbers are found. */
struct named {
	struct acc_str head;   /* before the number of the layer: "model.decoder.layers." */
	int64_t layer, expert; /* -1: none */
	int64_t chunk;
	struct acc_str layer_at, expert_at; /* the digits */
};

static struct acc_str
word_at(struct acc_str s, uint32_t from)
{
	uint32_t n = 0;
	while (from + n < s.n && s.p[from + n] != '.')
		n++;
	return (struct acc_str){s.p + from, n};
}

/* The digits at the end of a word. */
static struct acc_str
tail_digits(struct acc_str w)
{
	uint32_t n = 0;
	while (n < w.n && isdigit((unsigned char)w.p[w.n - 1 - n]))
		n++;
	return (struct acc_str){w.p + w.n - n, n};
}

static struct named
parse(struct acc_str s)
{
	struct named t = {.layer = -1, .expert = -1, .chunk = -1};
	struct acc_str last = {s.p, 0};
	bool experts = false;
	for (uint32_t i = 0; i < s.n; i += word_at(s, i).n + 1) {
		struct acc_str w = word_at(s, i), d = tail_digits(w);
		bool number = d.n > 0 && d.n == w.n;
		if (i == 0 && d.n > 0 && acc_str_starts(w, "model") && w.n == d.n + 5)
			acc_str_int(d, &t.chunk);
		else if (number && acc_word_in("layers layer h blocks", last) && t.layer < 0 &&
			 acc_str_int(d, &t.layer)) {
			t.layer_at = d;
			t.head = (struct acc_str){s.p, i};
		} else if (number && acc_word_in("local_experts experts", last))
			t.expert_at = acc_str_int(d, &t.expert) ? d : (struct acc_str){NULL, 0};
		else if (experts && d.n > 0 && i + w.n == s.n &&
			 acc_word_in("linear_fc1 linear_fc2", last))
			t.expert_at = acc_str_int(d, &t.expert) ? d : (struct acc_str){NULL, 0};
		experts |= acc_str_is(w, "experts");
		last = w;
	}
	return t;
}

/* How many layers a chunk of a stage has, under the names that begin so. */
static struct acc_str
stage_key(struct acc_arena *m, const struct named *t, int64_t chunk, int64_t stage)
{
	struct acc_str head = t->head;
	if (t->chunk >= 0) {
		uint32_t skip = word_at(head, 0).n;
		head = (struct acc_str){head.p + skip, head.n - skip};
	} else if (acc_str_starts(head, "model.")) {
		head = (struct acc_str){head.p + 5, head.n - 5};
	}
	return acc_str_made(acc_arena_printf(m, "%lld %lld %.*s", (long long)chunk,
		(long long)stage, ACC_PRS(head)));
}

static int
count(struct fold_weights *t, struct acc_map *most, struct acc_map *least, int64_t *chunks,
	int64_t *experts)
{
	for (uint32_t i = 0; i < t->npart; i++) {
		struct fold_part *p = &t->part[i];
		struct named n = parse(p->name);
		*chunks = n.chunk + 1 > *chunks ? n.chunk + 1 : *chunks;
		*experts = n.expert + 1 > *experts ? n.expert + 1 : *experts;
		if (n.layer < 0)
			continue;
		struct acc_str key = stage_key(&t->mem, &n, n.chunk < 0 ? 0 : n.chunk, p->p);
		uint64_t *k = key.p == NULL ? NULL : acc_map_put(most, key, 0);
		uint64_t *l = k == NULL ? NULL : acc_map_put(least, key, UINT64_MAX);
		if (l == NULL)
			return ACC_ENOMEM;
		k = acc_map_get(most, key);
		*k = (uint64_t)n.layer + 1 > *k ? (uint64_t)n.layer + 1 : *k;
		*l = (uint64_t)n.layer < *l ? (uint64_t)n.layer : *l;
	}
	return 0;
}

/* The layers before those of this chunk of this stage; 0 where layers are numbered through. */
static int
layers_before(struct fold_weights *t, const struct named *n, const struct fold_part *p,
	const struct acc_map *most, const struct acc_map *least, int64_t *out)
{
	int64_t own = n->chunk < 0 ? 0 : n->chunk;
	*out = 0;
	for (int64_t c = 0; c <= own; c++)
		for (int64_t s = 0; s < t->size[1]; s++) {
			struct acc_str key = stage_key(&t->mem, n, c, s);
			const uint64_t *k = key.p == NULL ? NULL : acc_map_get(most, key);
			if (key.p == NULL)
				return ACC_ENOMEM;
			/* Of one that has any, the first is 0, or they are numbered through. */
			if (k != NULL && *acc_map_get(least, key) != 0) {
				*out = 0;
				return 0;
			}
			if (k != NULL && (c < own || s < p->p))
				*out += (int64_t)*k;
		}
	return 0;
}

/* name with numbers in place of those at `layer_at` and `expert_at`, and without the chunk's. */
static struct acc_str
renamed(struct fold_weights *t, struct acc_str s, const struct named *n, int64_t layer,
	int64_t expert)
{
	struct acc_buf b = {0};
	char number[24];
	int rc = 0;
	for (uint32_t i = 0; i < s.n && rc == 0;) {
		if (i == 0 && n->chunk >= 0) {
			rc = acc_buf_add(&b, "model", 5);
			i = word_at(s, 0).n;
		} else if (n->layer >= 0 && s.p + i == n->layer_at.p) {
			int k = snprintf(number, sizeof number, "%lld", (long long)layer);
			rc = acc_buf_add(&b, number, (size_t)k);
			i += n->layer_at.n;
		} else if (n->expert >= 0 && s.p + i == n->expert_at.p) {
			int k = snprintf(number, sizeof number, "%lld", (long long)expert);
			rc = acc_buf_add(&b, number, (size_t)k);
			i += n->expert_at.n;
		} else {
			rc = acc_buf_add(&b, s.p + i++, 1);
		}
	}
	char *copy = rc < 0 ? NULL : acc_arena_copy(&t->mem, b.p, b.n);
	struct acc_str out = {copy, (uint32_t)b.n};
	acc_buf_release(&b);
	return out;
}

int
acc_weights_names(struct fold_weights *t, struct acc_err *e)
{
	struct acc_map most = {0}, least = {0};
	int64_t chunks = 0, experts = 0;
	int rc = count(t, &most, &least, &chunks, &experts);
	for (uint32_t i = 0; i < t->npart && rc == 0; i++) {
		struct fold_part *p = &t->part[i];
		struct named n = parse(p->name);
		int64_t before = 0;
		if (n.layer >= 0)
			rc = layers_before(t, &n, p, &most, &least, &before);
		if (rc == 0)
			p->name = renamed(t, p->name, &n, n.layer + before,
				n.expert + (t->size[2] > 1 ? p->x * experts : 0));
		rc = p->name.p == NULL ? ACC_ENOMEM : rc;
	}
	acc_map_release(&most);
	acc_map_release(&least);
	return rc < 0 ? acc_nomem(e) : 0;
}

/* --- what is split over tensor parallel ranks --- */

/* Megatron-LM's tensor_parallel/layers.py: columns, rows, vocabulary; Hugging Face's words for them. */
static const char columns[] =
	"word_embeddings output_layer lm_head embed_tokens linear_qkv query_key_value linear_q linear_kv"
	" query key_value linear_q_proj linear_q_up_proj linear_kv_up_proj q_proj k_proj v_proj gate_proj"
	" up_proj",
		  units[] = "linear_fc1 dense_h_to_4h", /* gate, then up */
	rows[] = "linear_proj dense linear_fc2 dense_4h_to_h o_proj down_proj",
		  whole[] = "router gate wg position_embeddings q_layernorm k_layernorm";

enum fold_how
acc_weights_rule(struct acc_str name, uint32_t ndim, uint8_t *axis, uint32_t *pieces)
{
	uint32_t end = name.n, from;
	while (end > 0 && name.p[end - 1] != '.')
		end--;
	struct acc_str last = {name.p + end, name.n - end};
	for (from = end > 0 ? end - 1 : 0; from > 0 && name.p[from - 1] != '.';)
		from--;
	struct acc_str module = {name.p + from, end > 0 ? end - 1 - from : 0};
	const bool bias = acc_str_starts(last, "bias");
	*axis = 0;
	*pieces = 1;
	if (acc_str_starts(last, "layer_norm_") || acc_glob("*norm*", module) ||
		acc_word_in(whole, module) || acc_str_is(last, "expert_bias"))
		return FOLD_SAME;
	if (!bias && !acc_str_starts(last, "weight"))
		return FOLD_LOST;
	if (acc_word_in(columns, module) && ndim > 0)
		return FOLD_SPLIT;
	if (acc_word_in(units, module) && ndim > 0) {
		*pieces = 0;
		return FOLD_SPLIT;
	}
	*axis = 1;
	if (acc_word_in(rows, module))
		return bias ? FOLD_SAME : ndim == 2 ? FOLD_SPLIT : FOLD_LOST;
	return FOLD_LOST;
}
