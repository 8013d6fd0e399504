/* A configuration in JSON: Hugging Face's config.json of a model, its TrainingArguments,
 * DeepSpeed's; msprobe's config.json, the file of MINDSPORE_DUMP_CONFIG.
 *
 *	{"hidden_size": 4096, "rope_scaling": {"factor": 8.0}}   rope_scaling.factor 8.0
 *	{"optimizer": {"params": {"betas": [0.9, 0.95]}}}        optimizer.params.betas [0.9, 0.95]
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dump/config/param.h"
#include "dump/foreign.h"
#include "dump/place.h"

enum { DEPTH = 64, KEY = 4096, LONGEST = 4096, SEARCHED = 1 << 20, OWN_SURE = 10 };

struct level {
	uint32_t nkey; /* of the path before it */
	uint32_t index;
	bool map;
	bool plain;    /* a list, of plain values so far */
	uint64_t from; /* of a list: its first byte */
	size_t first;  /* of a list: the parameters before it */
};

struct walk {
	struct params *ps;
	struct level level[DEPTH];
	int depth;
	char key[KEY];
	uint32_t nkey;
	uint64_t pos, line; /* a place in the text, and its line */
};

static uint64_t
line_at(struct walk *w, uint64_t pos)
{
	const uint8_t *text = w->ps->text.p;
	for (; w->pos < pos && w->pos < w->ps->text.n; w->pos++)
		w->line += text[w->pos] == '\n';
	return w->line;
}

static void
name(struct walk *w, uint32_t nkey, struct acc_str part)
{
	uint32_t room = KEY - nkey - 1;
	w->nkey = nkey;
	if (nkey > 0 && room > 0) {
		w->key[w->nkey++] = '.';
		room--;
	}
	part.n = part.n < room ? part.n : room;
	memcpy(w->key + w->nkey, part.p, part.n);
	w->nkey += part.n;
}

/* An element of a list is called by its number. */
static void
element(struct walk *w)
{
	struct level *l = w->depth == 0 ? NULL : &w->level[w->depth - 1];
	char number[16];
	if (l == NULL || l->map)
		return;
	snprintf(number, sizeof number, "%u", l->index++);
	name(w, l->nkey, acc_str(number));
}

static int
open_level(struct walk *w, const struct acc_json_tok *t, struct acc_err *e)
{
	element(w);
	if (w->depth > 0)
		w->level[w->depth - 1].plain = false;
	if (w->depth == DEPTH)
		return acc_fail_at(e, ACC_ELIMIT, t->pos, "deeper than %d levels", DEPTH);
	w->level[w->depth++] = (struct level){.nkey = w->nkey,
		.from = t->pos,
		.map = t->type == ACC_JSON_OBJECT,
		.plain = t->type == ACC_JSON_ARRAY,
		.first = w->ps->n};
	return 0;
}

/* A list of plain values is one value, as it stands in the text. */
static int
close_level(struct walk *w, const struct acc_json_tok *t, struct acc_err *e)
{
	const struct level *l = &w->level[--w->depth];
	w->nkey = l->nkey;
	if (!l->plain || w->depth == 0)
		return 0;
	struct param p = {.key = {w->key, l->nkey}, .line = line_at(w, l->from)};
	if (l->first < w->ps->n)
		p.line = w->ps->p[l->first].line;
	w->ps->n = l->first;
	if (t->pos >= w->ps->text.n || t->pos - l->from > 1 << 20)
		return 0;
	struct acc_buf b = {0};
	int rc = 0;
	for (uint64_t i = l->from; i <= t->pos && rc == 0; i++) {
		char c = (char)w->ps->text.p[i];
		bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
		if (!blank)
			rc = acc_buf_add(&b, &c, 1);
		if (c == ',' && rc == 0)
			rc = acc_buf_add(&b, " ", 1);
	}
	p.value = (struct acc_str){(char *)b.p, (uint32_t)b.n};
	rc = rc < 0 ? acc_nomem(e) : acc_params_add(w->ps, &p, e);
	acc_buf_release(&b);
	return rc;
}

static int
scalar(struct walk *w, const struct acc_json_tok *t, struct acc_err *e)
{
	element(w);
	struct param p = {.key = {w->key, w->nkey}, .value = t->s, .line = line_at(w, t->pos)};
	if (t->type == ACC_JSON_TRUE || t->type == ACC_JSON_FALSE)
		p.value = acc_str(t->type == ACC_JSON_TRUE ? "true" : "false");
	if (t->type == ACC_JSON_NULL)
		p.value.p = NULL;
	return acc_params_add(w->ps, &p, e);
}

static int
walk(struct walk *w, struct acc_json *j, struct acc_err *e)
{
	struct acc_json_tok t;
	int rc = acc_json_next(j, &t, e);
	if (rc > 0 && t.type != ACC_JSON_OBJECT)
		return acc_fail(e, ACC_EFORMAT, "no configuration: it is no object");
	for (; rc > 0; rc = rc < 0 ? rc : acc_json_next(j, &t, e)) {
		switch (t.type) {
		case ACC_JSON_OBJECT:
		case ACC_JSON_ARRAY:
			rc = open_level(w, &t, e);
			break;
		case ACC_JSON_OBJECT_END:
		case ACC_JSON_ARRAY_END:
			rc = close_level(w, &t, e);
			break;
		case ACC_JSON_KEY:
			name(w, w->level[w->depth - 1].nkey, t.s);
			break;
		default:
			rc = scalar(w, &t, e);
		}
	}
	return rc;
}

/* The reader wants a descriptor, and lines are counted in the text. */
static struct acc_json *
open_text(const struct params *ps, struct acc_err *e)
{
	int fd = memfd_create("acc", MFD_CLOEXEC);
	if (fd < 0) {
		acc_fail(e, ACC_EIO, "no memory file:");
		return NULL;
	}
	if (acc_file_write(fd, ps->text.p, ps->text.n, e) < 0 || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return NULL;
	}
	return acc_json_open(acc_bytes_open(fd, ps->f.name, false, e), false, e);
}

static int
probe(const struct acc_probe *p)
{
	struct acc_str head = {(const char *)p->head, (uint32_t)p->nhead};
	uint32_t i = 0;
	while (i < head.n && head.p[i] != '\0' && strchr(" \t\r\n", head.p[i]) != NULL)
		i++;
	if (p->is_dir || i == head.n || head.p[i] != '{')
		return 0;
	if (acc_params_words(head, true) > 0)
		return 80;
	return acc_str_is(p->base, "config.json") || acc_str_is(p->base, "ds_config.json") ? 60 : 0;
}

/* A loss with so many digits was computed: nobody sets it. */
static bool
is_result(double v)
{
	char text[32];
	acc_f64_repr(v, text, sizeof text);
	return strlen(text) >= sizeof "0.12345678" - 1;
}

/* Of keys that nobody knows: one object of a moderate size, so that no vocabulary or index is taken
 * for a configuration. */
static int
search(const struct acc_probe *p)
{
	struct acc_json_tok t = {0};
	struct stat st;
	size_t values = 0;
	/* all_results.json and its like are no settings. */
	if (p->is_dir || p->nhead == 0 || !acc_str_ends(p->base, ".json") ||
		acc_foreign_results(p->base) || acc_foreign(p->head, p->nhead) != NULL ||
		acc_foreign_stacks(p->base, p->head, p->nhead) || stat(p->path, &st) < 0 ||
		st.st_size > SEARCHED)
		return 0;
	int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct acc_json *j = fd < 0 ? NULL
				    : acc_json_open(acc_bytes_open(fd, p->path, false, p->e), false,
					      p->e);
	int rc = j != NULL ? acc_json_next(j, &t, p->e)
		 : fd >= 0 ? p->e->code
			   : acc_fail(p->e, ACC_EIO, "cannot open:");
	bool object = rc > 0 && t.type == ACC_JSON_OBJECT;
	bool loss = false, result = false;
	for (; rc > 0 && object && !result; rc = acc_json_next(j, &t, p->e)) {
		values += t.type >= ACC_JSON_STRING;
		/* Arrays as text, stacks: somebody's results. */
		result |= t.type == ACC_JSON_STRING && t.s.n > LONGEST;
		if (t.type == ACC_JSON_KEY)
			loss = acc_str_ends(t.s, "loss") || acc_str_ends(t.s, "losses");
		result |= loss && t.type == ACC_JSON_FLOAT && is_result(t.f);
	}
	acc_json_close(j);
	return acc_dump_sure(rc < 0 ? rc : object && values > 0 && !result, OWN_SURE);
}

static int
read_json(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	struct params ps;
	int rc = acc_params_open(&ps, c, path, e);
	struct walk w = {.ps = &ps, .line = 1};
	struct acc_json *j = rc < 0 ? NULL : open_text(&ps, e);
	if (rc == 0)
		rc = j == NULL ? ACC_EIO : walk(&w, j, e);
	if (rc == 0)
		rc = acc_params_put(&ps, "json", acc_params_own(&ps), "no value in it", e);
	acc_json_close(j);
	acc_params_close(&ps);
	return rc;
}

const struct acc_dump acc_dump_config_json = {
	.name = "json",
	.help = "a configuration in JSON: Hugging Face's, DeepSpeed's, a recorder's",
	.probe = probe,
	.search = search,
	.read = read_json,
};
