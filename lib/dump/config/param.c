#include "dump/config/param.h"

#include <stdlib.h>

enum { KEY_LIMIT = 4096 };

/* Names that tell. Of a nested key the first component counts. */
static const struct {
	const char *word;
	enum dialect dialect;
} words[] = {
	{"runner_config", DIALECT_MINDFORMERS},
	{"parallel_config", DIALECT_MINDFORMERS},
	{"runner_wrapper", DIALECT_MINDFORMERS},
	{"recompute_config", DIALECT_MINDFORMERS},
	{"train_dataset", DIALECT_MINDFORMERS},
	{"train_dataset_task", DIALECT_MINDFORMERS},
	{"lr_schedule", DIALECT_MINDFORMERS},
	{"moe_config", DIALECT_MINDFORMERS},
	{"auto_trans_ckpt", DIALECT_MINDFORMERS},
	{"use_parallel", DIALECT_MINDFORMERS},
	{"parallelism", DIALECT_MINDFORMERS},
	{"micro_batch_interleave_num", DIALECT_MINDFORMERS},
	{"MODEL_ARGS", DIALECT_MEGATRON},
	{"tensor_model_parallel_size", DIALECT_MEGATRON},
	{"ffn_hidden_size", DIALECT_MEGATRON},
	{"micro_batch_size", DIALECT_MEGATRON},
	{"global_batch_size", DIALECT_MEGATRON},
	{"num_layers", DIALECT_MEGATRON},
	{"tokenizer_type", DIALECT_MEGATRON},
	{"train_iters", DIALECT_MEGATRON},
	{"lr_decay_style", DIALECT_MEGATRON},
	{"model_type", DIALECT_HF},
	{"architectures", DIALECT_HF},
	{"transformers_version", DIALECT_HF},
	{"num_hidden_layers", DIALECT_HF},
	{"tokenizer_class", DIALECT_HF},
	{"initializer_range", DIALECT_HF},
	{"n_layer", DIALECT_HF},
	{"per_device_train_batch_size", DIALECT_HFARGS},
	{"num_train_epochs", DIALECT_HFARGS},
	{"lr_scheduler_type", DIALECT_HFARGS},
	{"warmup_ratio", DIALECT_HFARGS},
	{"max_grad_norm", DIALECT_HFARGS},
	{"save_total_limit", DIALECT_HFARGS},
	{"logging_steps", DIALECT_HFARGS},
	{"model_name_or_path", DIALECT_HFARGS},
	{"train_micro_batch_size_per_gpu", DIALECT_DEEPSPEED},
	{"zero_optimization", DIALECT_DEEPSPEED},
	{"train_batch_size", DIALECT_DEEPSPEED},
	{"gradient_clipping", DIALECT_DEEPSPEED},
	{"steps_per_print", DIALECT_DEEPSPEED},
	{"wall_clock_breakdown", DIALECT_DEEPSPEED},
	{"dump_path", DIALECT_MSPROBE},
	{"enable_dataloader", DIALECT_MSPROBE},
	{"overflow_check", DIALECT_MSPROBE},
	{"run_ut", DIALECT_MSPROBE},
	{"free_benchmark", DIALECT_MSPROBE},
	{"common_dump_settings", DIALECT_MSDUMP},
	{"e2e_dump_settings", DIALECT_MSDUMP},
	{"async_dump_settings", DIALECT_MSDUMP},
};
enum { NWORDS = sizeof words / sizeof *words };

/* Where none of these occurs: Megatron's, though others have some of them, too. */
static const char *const common[] = {"hidden_size", "num_attention_heads", "seq_length", "swiglu",
	"use_mcore_models", "clip_grad", "adam_eps", "weight_decay", "lr"};

/* Of those above, names that other programs have, too: one of them alone tells nothing. */
static const char weak[] =
	"train_dataset parallelism moe_config num_layers micro_batch_size global_batch_size"
	" n_layer max_grad_norm warmup_ratio logging_steps model_name_or_path"
	" train_batch_size gradient_clipping";

static int
slurp(struct params *ps, struct acc_err *e)
{
	const uint8_t *p;
	size_t n;
	int rc = 1;
	if (acc_buf_reserve(&ps->text, 1) < 0) /* an empty file has a place, too */
		return acc_nomem(e);
	while (rc > 0) {
		rc = acc_bytes_more(ps->f.b, &p, &n, e);
		if (rc < 0)
			return rc;
		if (n > PARAM_FILE_LIMIT - ps->text.n)
			return acc_fail(e, ACC_ELIMIT, "more than %d MiB: no configuration",
				PARAM_FILE_LIMIT >> 20);
		if (acc_buf_add(&ps->text, p, n) < 0)
			return acc_nomem(e);
		acc_bytes_skip(ps->f.b, n);
	}
	return 0;
}

int
acc_params_open(struct params *ps, struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	*ps = (struct params){.c = c};
	int rc = acc_curve_open(&ps->f, path, e);
	if (rc == 0)
		rc = slurp(ps, e);
	acc_bytes_close(ps->f.b);
	ps->f.b = NULL;
	return rc;
}

void
acc_params_close(struct params *ps)
{
	acc_buf_release(&ps->text);
	acc_arena_release(&ps->mem);
	free(ps->p);
}

int
acc_params_add(struct params *ps, const struct param *p, struct acc_err *e)
{
	if (ps->n == PARAM_LIMIT)
		return acc_fail(e, ACC_ELIMIT, "more than %d parameters", PARAM_LIMIT);
	if (!ACC_ROOM(ps->p, ps->cap, ps->n + 1, e))
		return ACC_ENOMEM;
	struct param *q = &ps->p[ps->n];
	*q = *p;
	q->key.n = p->key.n < KEY_LIMIT ? p->key.n : KEY_LIMIT;
	ps->bytes += (size_t)q->key.n + q->value.n;
	if (ps->bytes > PARAM_FILE_LIMIT)
		return acc_fail(e, ACC_ELIMIT, "names and values of more than %d bytes",
			PARAM_FILE_LIMIT);
	q->key.p = acc_arena_copy(&ps->mem, p->key.p, q->key.n);
	if (p->value.p != NULL)
		q->value.p = acc_arena_copy(&ps->mem, p->value.p, p->value.n);
	if (q->key.p == NULL || (p->value.p != NULL && q->value.p == NULL))
		return acc_nomem(e);
	ps->n++;
	return 0;
}

int
acc_param_put(struct acc_dump_ctx *c, const struct param *p, const char *file, struct acc_err *e)
{
	char where[320];
	struct acc_rec *r = acc_dump_nameless(c, "param");
	int rc = acc_add(r, "", "key", acc_text(p->key));
	rc |= acc_add(r, "", "value", p->value.p == NULL ? acc_nil() : acc_text(p->value));
	if (acc_dialect[p->dialect] != NULL)
		rc |= acc_add(r, "", "dialect", acc_ctext(acc_dialect[p->dialect]));
	if (p->maybe)
		rc |= acc_add(r, "", "maybe", acc_bool(true));
	if (p->few)
		rc |= acc_add(r, "", "few", acc_bool(true));
	snprintf(where, sizeof where, "%.*s%c%llu", 255, file, p->record ? '#' : ':',
		(unsigned long long)p->line);
	rc |= acc_add(r, "", "where", acc_ctext(where));
	return rc < 0 ? acc_nomem(e) : acc_dump_put(c, r, e);
}

/* Do fewer than two names say that this is whose it is? Then what is not there need not be its default. Who starts a
 * program on a command line means that one. */
static bool
by_few(const struct params *ps, enum dialect d, const char *format)
{
	size_t n = 0, model = 0;
	if (d == DIALECT_OTHER || d > DIALECT_HF || strcmp(format, "shell") == 0)
		return false;
	for (size_t i = 0; i < ps->n && n < 2; i++) {
		struct acc_str k = ps->p[i].key;
		const char *dot = k.n == 0 ? NULL : memchr(k.p, '.', k.n);
		model += d == DIALECT_MINDFORMERS && acc_str_starts(k, "model.model_config.");
		k.n = dot == NULL ? k.n : (uint32_t)(dot - k.p);
		for (size_t w = 0; w < NWORDS; w++)
			n += words[w].dialect == d && acc_str_is(k, words[w].word) &&
			     !acc_word_in(weak, k);
	}
	return n + (model > 0) < 2;
}

int
acc_params_put(struct params *ps, const char *format, enum dialect dialect, const char *none,
	struct acc_err *e)
{
	static const char *const framework[DIALECT_N] = {[DIALECT_MINDFORMERS] = "mindspore",
		[DIALECT_MEGATRON] = "pytorch",
		[DIALECT_HF] = "pytorch",
		[DIALECT_HFARGS] = "pytorch",
		[DIALECT_DEEPSPEED] = "pytorch",
		[DIALECT_MSDUMP] = "mindspore"};
	struct acc_source s = {.root = ps->f.dir,
		.format = format,
		.task = "config",
		.framework = framework[dialect],
		ACC_NO_PLACE};
	if (ps->n == 0)
		return acc_fail(e, ACC_EFORMAT, "%s", none);
	int rc = acc_dump_source(ps->c, &s, e);
	const bool few = by_few(ps, dialect, format);
	for (size_t i = 0; i < ps->n && rc == 0; i++) {
		if (ps->p[i].dialect == DIALECT_OTHER)
			ps->p[i].dialect = dialect;
		ps->p[i].few = few && ps->p[i].dialect == dialect;
		rc = acc_param_put(ps->c, &ps->p[i], ps->f.name, e);
	}
	return rc;
}

/* The one with the most of the names that only it has, and at least so many of them. */
static enum dialect
most_named(const struct params *ps, size_t least)
{
	size_t votes[DIALECT_N] = {0};
	enum dialect best = DIALECT_OTHER;
	for (size_t i = 0; i < ps->n; i++) {
		struct acc_str k = ps->p[i].key;
		const char *dot = k.n == 0 ? NULL : memchr(k.p, '.', k.n);
		if (dot != NULL)
			k.n = (uint32_t)(dot - k.p);
		for (size_t w = 0; w < NWORDS; w++)
			if (acc_str_is(k, words[w].word))
				votes[words[w].dialect] += acc_word_in(weak, k) ? 1 : 2;
	}
	/* A model's configuration may stand in that of its training, not the other way round. */
	for (int d = 1; d < DIALECT_N; d++)
		if (votes[d] > votes[best] && votes[d] >= least)
			best = (enum dialect)d;
	return best;
}

enum dialect
acc_params_own(const struct params *ps)
{
	return most_named(ps, 2);
}

enum dialect
acc_params_guess(const struct params *ps)
{
	enum dialect best = most_named(ps, 1);
	for (size_t i = 0; i < ps->n && best == DIALECT_OTHER; i++)
		for (size_t w = 0; w < sizeof common / sizeof *common; w++)
			if (acc_str_is(ps->p[i].key, common[w]))
				best = DIALECT_MEGATRON;
	return best;
}

static bool
name_char(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
}

int
acc_params_words(struct acc_str text, bool quote)
{
	int found = 0;
	for (size_t w = 0; w < NWORDS; w++) {
		size_t n = strlen(words[w].word);
		const char *p = text.p, *end = text.p + text.n;
		while (text.n > 0 && (p = memmem(p, (size_t)(end - p), words[w].word, n)) != NULL) {
			const char *after = p + n;
			bool left = p == text.p || !name_char(p[-1]);
			bool right = after == end || !name_char(*after);
			if (quote)
				left = p > text.p && p[-1] == '"',
				right = after < end && *after == '"';
			found += left && right;
			p = after;
			if (left && right)
				break;
		}
	}
	return found;
}

void
acc_param_fold(char *key, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (key[i] == '-')
			key[i] = '_';
}
