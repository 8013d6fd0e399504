/* A configuration in YAML: MindFormers' (MindSpore Transformers'), Megatron's own tests', that of
 * a launcher of Hugging Face's Trainer.
 *
 *	train_dataset: &train_dataset {batch_size: 6}      train_dataset.batch_size 6
 *	task: {dataset_config: *train_dataset}             task.dataset_config.batch_size 6
 *	input_columns: ["input_ids", "labels"]             input_columns [input_ids, labels]
 *	callbacks: [{type: MFLossMonitor}]                 callbacks.0.type MFLossMonitor
 */
#include "acc/yaml.h"
#include "dump/config/param.h"

enum { DEPTH = 64, KEY = 4096, WORK = 1 << 24 };

/* A map or list that is being gone through, and what it is called. */
struct level {
	const struct acc_yaml *at; /* the next key of a map, the next element of a list */
	uint32_t nkey;             /* of the path before it */
	uint32_t index;
	bool map;
	const struct acc_yaml *in;  /* the map or list */
	const struct acc_yaml *own; /* the map that this is merged into; NULL: into none */
};

struct walk {
	struct params *ps;
	struct level level[DEPTH];
	int depth;
	char key[KEY];
	uint32_t nkey;
	uint64_t work; /* values and keys looked at so far: aliases repeat them */
};

static const struct acc_yaml *
behind(const struct acc_yaml *y)
{
	return y->kind == ACC_YAML_ALIAS ? y->child : y;
}

static int
work(struct walk *w, const struct acc_yaml *y, struct acc_err *e)
{
	if (++w->work <= WORK)
		return 0;
	return acc_fail(e, ACC_ELIMIT, "line %u: aliases stand for more than %d values", y->line,
		WORK);
}

static int
push(struct walk *w, const struct acc_yaml *y, const struct acc_yaml *own, struct acc_err *e)
{
	if (w->depth == DEPTH)
		return acc_fail(e, ACC_ELIMIT, "line %u: deeper than %d levels", y->line, DEPTH);
	w->level[w->depth++] = (struct level){.at = y->child,
		.in = y,
		.own = own,
		.nkey = w->nkey,
		.map = y->kind == ACC_YAML_MAP};
	return 0;
}

static void
name(struct walk *w, uint32_t nkey, const char *part)
{
	size_t n = strlen(part), room = KEY - nkey - 1;
	w->nkey = nkey;
	if (nkey > 0 && room > 0) {
		w->key[w->nkey++] = '.';
		room--;
	}
	n = n < room ? n : room;
	memcpy(w->key + w->nkey, part, n);
	w->nkey += (uint32_t)n;
}

/* --num-layers under MODEL_ARGS, and variables under ENV_VARS: Megatron's tests. */
static enum dialect
special(struct acc_str *key)
{
	if (acc_str_starts(*key, "ENV_VARS.")) {
		*key = (struct acc_str){key->p + 9, key->n - 9};
		return DIALECT_EXPORT;
	}
	const char *dash = key->n == 0 ? NULL : memmem(key->p, key->n, "--", 2);
	if (dash == NULL || (dash > key->p && dash[-1] != '.'))
		return DIALECT_OTHER;
	*key = (struct acc_str){dash + 2, (uint32_t)(key->p + key->n - dash) - 2};
	acc_param_fold((char *)key->p, key->n);
	return DIALECT_MEGATRON;
}

static int
put(struct walk *w, struct acc_str value, bool null, uint32_t line, struct acc_err *e)
{
	char copy[KEY];
	memcpy(copy, w->key, w->nkey);
	struct param p = {.key = {copy, w->nkey}, .value = value, .line = line};
	if (null)
		p.value.p = NULL;
	p.dialect = special(&p.key);
	return acc_params_add(w->ps, &p, e);
}

/* 1, 0, < 0. */
static int
is_scalars(struct walk *w, const struct acc_yaml *list, struct acc_err *e)
{
	for (const struct acc_yaml *y = list->child; y != NULL; y = y->next) {
		if (behind(y)->kind != ACC_YAML_SCALAR)
			return 0;
		if (work(w, list, e) < 0)
			return ACC_ELIMIT;
	}
	return 1;
}

/* A list of plain values is one value. */
static int
put_list(struct walk *w, const struct acc_yaml *list, uint32_t line, struct acc_err *e)
{
	struct acc_buf b = {0};
	int rc = acc_buf_add(&b, "[", 1);
	for (const struct acc_yaml *y = list->child; y != NULL && rc == 0; y = y->next) {
		const char *text = behind(y)->text;
		if (y != list->child)
			rc = acc_buf_add(&b, ", ", 2);
		if (rc == 0)
			rc = acc_buf_add(&b, text, strlen(text));
		if (rc == 0 && b.n > PARAM_FILE_LIMIT)
			rc = ACC_ELIMIT;
	}
	if (rc == 0)
		rc = acc_buf_add(&b, "]", 1);
	rc = rc < 0 ? acc_fail(e, rc, "line %u: a list that is too long", line)
		    : put(w, (struct acc_str){(char *)b.p, (uint32_t)b.n}, false, line, e);
	acc_buf_release(&b);
	return rc;
}

static int
value(struct walk *w, const struct acc_yaml *at, struct acc_err *e)
{
	const struct acc_yaml *y = behind(at);
	if (y->kind == ACC_YAML_SCALAR)
		return put(w, acc_str(y->text), y->null, at->line, e);
	int rc = y->kind == ACC_YAML_LIST ? is_scalars(w, y, e) : 0;
	if (rc > 0)
		return put_list(w, y, at->line, e);
	return rc < 0 ? rc : push(w, y, NULL, e);
}

/* Has a map this key? 1, 0, < 0. */
static int
has(struct walk *w, const struct acc_yaml *map, const char *key, struct acc_err *e)
{
	for (const struct acc_yaml *k = map->child; k != NULL; k = k->next->next) {
		if (k->kind == ACC_YAML_SCALAR && strcmp(k->text, key) == 0)
			return 1;
		if (work(w, map, e) < 0)
			return ACC_ELIMIT;
	}
	return 0;
}

/* The next value of a map. A merge (<<: *other, or a list of such) is gone through as part of
 * the map itself, without what the map has of its own. */
static int
entry(struct walk *w, struct level *l, struct acc_err *e)
{
	const struct acc_yaml *k = l->at, *v = k->next;
	l->at = v->next;
	const struct acc_yaml *key = behind(k), *to = behind(v);
	if (key->kind != ACC_YAML_SCALAR)
		return 0; /* a key that is a map is no parameter's name */
	w->nkey = l->nkey;
	if (strcmp(key->text, "<<") == 0 && to->kind != ACC_YAML_SCALAR)
		return push(w, to, l->own != NULL ? l->own : l->in, e);
	int rc = l->own == NULL ? 0 : has(w, l->own, key->text, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	name(w, l->nkey, key->text);
	return value(w, v, e);
}

static int
walk(struct walk *w, const struct acc_yaml *root, struct acc_err *e)
{
	char number[16];
	int rc = push(w, root, NULL, e);
	while (rc == 0 && w->depth > 0) {
		struct level *l = &w->level[w->depth - 1];
		if ((rc = work(w, l->in, e)) < 0)
			break;
		if (l->at == NULL) {
			w->depth--;
		} else if (l->map) {
			rc = entry(w, l, e);
		} else {
			const struct acc_yaml *v = l->at;
			snprintf(number, sizeof number, "%u", l->index++);
			l->at = v->next;
			if (l->own != NULL && behind(v)->kind == ACC_YAML_MAP) {
				w->nkey = l->nkey;
				rc = push(w, behind(v), l->own, e);
				continue;
			}
			name(w, l->nkey, number);
			rc = value(w, v, e);
		}
	}
	return rc;
}

static bool
is_yaml_name(struct acc_str s)
{
	return acc_str_ends(s, ".yaml") || acc_str_ends(s, ".yml");
}

static int
probe(const struct acc_probe *p)
{
	struct acc_str head = {(const char *)p->head, (uint32_t)p->nhead};
	if (p->is_dir || p->nhead == 0 || memchr(p->head, '\0', p->nhead) != NULL)
		return 0;
	bool word = false;
	/* At the start of a line, as YAML has its keys. */
	for (const char *q = head.p, *end = head.p + head.n, *nl; q < end && !word; q = nl + 1) {
		nl = memchr(q, '\n', (size_t)(end - q));
		nl = nl == NULL ? end : nl;
		const char *colon = memchr(q, ':', (size_t)(nl - q));
		word = colon != NULL &&
		       acc_params_words((struct acc_str){q, (uint32_t)(colon - q)}, false) > 0 &&
		       memchr(q, ' ', (size_t)(colon - q)) == NULL;
	}
	if (is_yaml_name(p->base))
		return word ? 90 : 50;
	return word && head.p[0] != '{' ? 40 : 0;
}

/* learning_rate: {desc: null, value: 0.1}, as W&B and SwanLab have it (behaviour swanlab-config-values): NAME.value is NAME where each key is of
 * such a map. */
static void
unwrap(struct params *ps)
{
	static const char *const own[] = {"value", "desc", "sort"};
	size_t values = 0, n = 0;
	for (size_t i = 0; i < ps->n; i++) {
		const struct acc_str k = ps->p[i].key;
		const char *dot = k.n == 0 ? NULL : memchr(k.p, '.', k.n);
		bool known = acc_str_is(k, "wandb_version");
		for (size_t w = 0; dot != NULL && w < sizeof own / sizeof *own; w++)
			known |= acc_str_starts(
				(struct acc_str){dot + 1, (uint32_t)(k.p + k.n - dot) - 1}, own[w]);
		if (!known)
			return;
		values += dot != NULL && acc_str_ends(k, ".value");
	}
	if (ps->n > 0 && acc_str_starts(ps->p[ps->n - 1].key, "_wandb."))
		values++;
	for (size_t i = 0; i < ps->n && values > 0; i++) {
		struct param p = ps->p[i];
		const char *dot = memchr(p.key.p, '.', p.key.n);
		if (dot == NULL || strncmp(dot, ".value", 6) != 0 ||
			acc_str_starts(p.key, "_wandb."))
			continue;
		/* What is behind ".value" moves up to where that was. */
		char *to = (char *)dot;
		const uint32_t rest = (uint32_t)(p.key.p + p.key.n - dot) - 6;
		memmove(to, dot + 6, rest);
		p.key.n = (uint32_t)(to - p.key.p) + rest;
		ps->p[n++] = p;
	}
	ps->n = values > 0 ? n : ps->n;
}

/* One of conda's dependencies, numpy=1.24.4=build, or of pip's, torch==2.1.2; others have no version. */
static int
put_package(struct params *to, struct acc_str s, uint64_t line, struct acc_err *e)
{
	uint32_t n = 0, end;
	while (n < s.n && s.p[n] != '=' && s.p[n] != ' ' && s.p[n] != '<' && s.p[n] != '>')
		n++;
	uint32_t from = n;
	while (from < s.n && s.p[from] == '=')
		from++;
	for (end = from; end < s.n && s.p[end] != '=' && s.p[end] != ' ';)
		end++;
	if (n == 0 || from == n || end == from)
		return 0;
	const struct param p = {.key = {s.p, n},
		.value = {s.p + from, end - from},
		.line = line,
		.dialect = DIALECT_PIP};
	int rc = acc_params_add(to, &p, e);
	if (rc == 0)
		acc_param_fold((char *)to->p[to->n - 1].key.p, n);
	return rc;
}

/* What conda env export writes: the packages, by their names, and not by their places in the list. */
static bool
is_conda(const struct params *ps)
{
	static const char *const own[] = {"name", "channels", "dependencies", "prefix",
		"variables"};
	bool some = false;
	for (size_t i = 0; i < ps->n; i++) {
		bool known = false;
		for (size_t k = 0; k < sizeof own / sizeof *own; k++) {
			const size_t n = strlen(own[k]);
			const struct acc_str key = ps->p[i].key;
			known |= acc_str_starts(key, own[k]) && (key.n == n || key.p[n] == '.');
		}
		if (!known)
			return false;
		some |= acc_str_starts(ps->p[i].key, "dependencies") && ps->p[i].value.n > 0 &&
			memchr(ps->p[i].value.p, '=', ps->p[i].value.n) != NULL;
	}
	return some;
}

static int
conda(struct params *ps, struct acc_err *e)
{
	const size_t n = ps->n;
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		const struct param p = ps->p[i];
		struct acc_str v = p.value;
		if (!acc_str_starts(p.key, "dependencies"))
			continue;
		if (v.n >= 2 && v.p[0] == '[')
			v = (struct acc_str){v.p + 1, v.n - 2};
		while (v.n > 0 && rc == 0) {
			const char *comma = memmem(v.p, v.n, ", ", 2);
			const uint32_t k = comma == NULL ? v.n : (uint32_t)(comma - v.p);
			rc = put_package(ps, (struct acc_str){v.p, k}, p.line, e);
			v = comma == NULL ? (struct acc_str){NULL, 0}
					  : (struct acc_str){comma + 2, v.n - k - 2};
		}
	}
	memmove(ps->p, ps->p + n, (ps->n - n) * sizeof *ps->p);
	ps->n -= n;
	return rc;
}

/* Hydra's overrides.yaml, a list of "key=value": the map that it means. */
static int
overrides(struct acc_yaml *root, struct acc_arena *m)
{
	if (root == NULL || root->kind != ACC_YAML_LIST)
		return 0;
	for (const struct acc_yaml *c = root->child; c != NULL; c = c->next)
		if (c->kind != ACC_YAML_SCALAR || c->null || strchr(c->text, '=') == NULL ||
			*c->text == '=' || strcspn(c->text, " \t") < strcspn(c->text, "="))
			return 0;
	for (struct acc_yaml *c = root->child, *v; c != NULL; c = v->next) {
		const char *key = c->text + strspn(c->text, "+"), *sign = strchr(key, '=');
		v = acc_alloc(m, sizeof *v);
		c->text = acc_arena_printf(m, "%.*s", (int)(sign - key), key);
		if (v == NULL || c->text == NULL)
			return ACC_ENOMEM;
		*v = *c;
		v->text = sign + 1;
		c->next = v;
	}
	root->kind = ACC_YAML_MAP;
	return 0;
}

static int
read_yaml(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps;
	struct acc_arena m = {0};
	struct acc_yaml *root = NULL;
	int rc = acc_params_open(&ps, c, path, e);
	struct walk w = {.ps = &ps};
	if (rc == 0)
		rc = acc_yaml_parse(ps.text.p, ps.text.n, &m, &root, e);
	if (rc == 0 && overrides(root, &m) < 0)
		rc = acc_nomem(e);
	if (rc == 0 && (root == NULL || root->kind != ACC_YAML_MAP))
		rc = acc_fail(e, ACC_EFORMAT, "no configuration: it is no map");
	if (rc == 0)
		rc = walk(&w, root, e);
	if (rc == 0)
		unwrap(&ps);
	if (rc == 0 && is_conda(&ps))
		rc = conda(&ps, e);
	if (rc == 0)
		rc = acc_params_put(&ps, "yaml", acc_params_own(&ps), "no value in it", e);
	acc_arena_release(&m);
	acc_params_close(&ps);
	return rc;
}

const struct acc_dump acc_dump_config_yaml = {
	.name = "yaml",
	.help = "a configuration in YAML: MindFormers, Megatron's tests",
	.probe = probe,
	.read = read_yaml,
};
