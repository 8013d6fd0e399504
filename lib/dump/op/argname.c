#include "dump/op/argname.h"

static const struct word {
	const char *word, *io;
} words[] = {{"input", "in"}, {"output", "out"}, {"kwargs", "kw"}, {"parameters", "param"}};

/* What ptdbg_ascend and TroubleShooter write before an API's name. A module that a user named may have '_' in
 * its own name. */
static const char *const types[] = {"Tensor", "Torch", "Functional", "NPU", "VF", "Aten",
	"Distributed", "Module", "NN"};

/* Does one of the words stand at place i, up to the end or a '.'? */
static const struct word *
word_at(struct acc_str s, uint32_t i)
{
	for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
		size_t n = strlen(words[k].word);
		if (s.n - i >= n && memcmp(s.p + i, words[k].word, n) == 0 &&
			(s.n - i == n || s.p[i + n] == '.'))
			return &words[k];
	}
	return NULL;
}

/* The last place where an op call's key is followed by one of the words. */
static const struct word *
split(struct acc_str name, struct acc_opkey *k, uint32_t *nkey)
{
	for (uint32_t i = name.n; i-- > 2;) {
		char sep = name.p[i - 1];
		if (sep != '_' && sep != '.')
			continue;
		const struct word *w = word_at(name, i);
		*nkey = i - 1;
		if (w != NULL && acc_opkey_parse((struct acc_str){name.p, i - 1}, sep, k) &&
			(acc_str_is(k->pass, "forward") || acc_str_is(k->pass, "backward")))
			return w;
	}
	return NULL;
}

struct acc_str
acc_dump_argname_find(struct acc_str name)
{
	struct acc_opkey k;
	uint32_t n;
	return (struct acc_str){name.p, split(name, &k, &n) == NULL ? name.n : n};
}

static int
dotted(struct acc_str *op, struct acc_arena *m)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t n = strlen(types[i]);
		if (op->n > n + 1 && op->p[n] == '_' && memcmp(op->p, types[i], n) == 0) {
			char *p = acc_arena_copy(m, op->p, op->n);
			if (p == NULL)
				return ACC_ENOMEM;
			p[n] = '.';
			op->p = p;
			return 0;
		}
	}
	return 0;
}

static int
fill(struct acc_str key, const struct acc_opkey *k, struct acc_arena *m, struct argname *out)
{
	*out = (struct argname){.key = key,
		.op = k->op,
		.call = k->call,
		.pass = k->pass,
		.io = "",
		.pos = {"", 0}};
	return dotted(&out->op, m);
}

int
acc_dump_argname_key(struct acc_str key, char sep, struct acc_arena *m, struct argname *out)
{
	struct acc_opkey k;
	acc_opkey_parse(key, sep, &k);
	return fill(key, &k, m, out);
}

int
acc_dump_argname(struct acc_str name, struct acc_arena *m, struct argname *out)
{
	struct acc_opkey k;
	uint32_t n;
	const struct word *w = split(name, &k, &n);
	if (w == NULL) {
		*out = (struct argname){.key = name,
			.op = name,
			.call = -1,
			.pass = {"", 0},
			.io = "out",
			.pos = ACC_STR("0")};
		return 0;
	}
	int rc = fill((struct acc_str){name.p, n}, &k, m, out);
	uint32_t skip = n + 1 + (uint32_t)strlen(w->word) + 1;
	out->io = w->io;
	out->pos = skip < name.n ? (struct acc_str){name.p + skip, name.n - skip} : ACC_STR("0");
	return rc;
}

static int
push(struct acc_rec *r, const char *key, struct acc_val v)
{
	return acc_rec_push(r, &(struct acc_field){.key = acc_str(key), .v = v});
}

int
acc_dump_argname_put(struct acc_rec *r, const struct argname *a)
{
	int rc = push(r, "key", acc_text(a->key));
	rc |= push(r, "op", acc_text(a->op));
	if (a->call >= 0)
		rc |= push(r, "call", acc_int(a->call));
	if (a->pass.n > 0)
		rc |= push(r, "pass", acc_text(a->pass));
	if (a->io[0] != '\0')
		rc |= push(r, "io", acc_ctext(a->io));
	if (a->pos.n > 0)
		rc |= push(r, "pos", acc_text(a->pos));
	return rc;
}
