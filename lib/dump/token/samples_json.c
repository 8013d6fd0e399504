/* Samples as JSON, an object a line or a list of them: verl's rollout_data_dir, SGLang's meta_info, what
 * servers answer that speak as OpenAI's (vLLM among them), and what people write themselves.
 *
 *	{"input": "...", "output": "...", "score": 1.0, "step": 1}
 *	{"text": "...", "meta_info": {"output_token_logprobs": [[-4.4, 34, null], ...]}}
 *	{"id": "cmpl-8", "choices": [{"logprobs": {"tokens": [...], "token_logprobs": [...]}}]}
 *	{"prompt_ids": [...], "response_ids": [...], "logprobs": [...]}
 */
#include "dump/jtree.h"
#include "dump/place.h"
#include "dump/token/sample.h"

#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* --- values --- */

static bool
number(const struct jnode *n, double *v)
{
	if (n == NULL)
		return false;
	switch (n->type) {
	case ACC_JSON_INT:
		*v = (double)n->i;
		return true;
	case ACC_JSON_FLOAT:
		*v = isinf(n->f) && n->f > 0
			     ? NAN
			     : n->f; /* an infinite one is not taken for one that is absent */
		return true;
	case ACC_JSON_TRUE:
	case ACC_JSON_FALSE:
		*v = n->type == ACC_JSON_TRUE;
		return true;
	case ACC_JSON_NULL: /* of the first token of a prompt nobody knows it */
		*v = INFINITY;
		return true;
	default:
		return false;
	}
}

static bool
is_list(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_ARRAY;
}

static bool
is_object(const struct jnode *n)
{
	return n != NULL && n->type == ACC_JSON_OBJECT;
}

/* "token_id:123", as vLLM writes it where it was asked to. */
static bool
id_of(struct acc_str text, int64_t *id)
{
	return acc_str_starts(text, "token_id:") &&
	       acc_str_int((struct acc_str){text.p + 9, text.n - 9}, id);
}

/* --- the forms --- */

/* [[log-probability, id, text], ...] of SGLang. */
static int
triples(struct sample *s, const struct jnode *list, enum sample_role logp, enum sample_role id,
	struct acc_err *e)
{
	for (const struct jnode *n = list->child; n != NULL; n = n->next) {
		const struct jnode *second = is_list(n) && n->child != NULL ? n->child->next : NULL;
		double l, i;
		if (second == NULL || !number(n->child, &l) || !number(second, &i))
			return acc_fail(e, ACC_EFORMAT, "no [log-probability, id, text]");
		int rc = acc_sample_add(s, logp, l, e);
		if (rc == 0)
			rc = acc_sample_add(s, id, i, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* [[[log-probability, id, text], ...], ...] */
static int
tops(struct sample *s, const struct jnode *list, struct acc_err *e)
{
	for (const struct jnode *n = list->child; n != NULL; n = n->next) {
		int rc = acc_sample_add(s, SAMPLE_TOP_N, is_list(n) ? n->n : 0, e);
		if (rc == 0 && is_list(n))
			rc = triples(s, n, SAMPLE_TOP_LOGP, SAMPLE_TOP_ID, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* {"34": {"logprob": -4.4, "rank": 1}, ...} of vLLM, a token: that of the one that stands in the prompt is the
 * first. */
static int
prompt_logprobs(struct sample *s, const struct jnode *list, struct acc_err *e)
{
	const bool ids = s->column[SAMPLE_PROMPT].n == 0;
	for (const struct jnode *n = list->child; n != NULL; n = n->next) {
		const struct jnode *first = is_object(n) ? n->child : NULL;
		double l = INFINITY;
		int64_t id = -1;
		if (first != NULL && is_object(first))
			number(jtree_get(first, "logprob"), &l);
		else if (first != NULL || !number(n, &l))
			return acc_fail(e, ACC_EFORMAT,
				"no prompt_logprobs: neither numbers nor ids");
		if (first != NULL)
			acc_str_int(first->key, &id);
		int rc = acc_sample_add(s, SAMPLE_PROMPT_LOGP, l, e);
		if (rc == 0 && ids && first != NULL && n == list->child)
			rc = acc_sample_add(s, SAMPLE_PROMPT, -1, e);
		else if (rc == 0 && ids && (first != NULL || n != list->child))
			rc = first == NULL ? 0 : acc_sample_add(s, SAMPLE_PROMPT, (double)id, e);
		if (rc < 0)
			return rc;
	}
	/* The first has no log-probability, and so no id. */
	if (ids && s->column[SAMPLE_PROMPT].n > 0 &&
		s->column[SAMPLE_PROMPT].n + 1 == s->column[SAMPLE_PROMPT_LOGP].n) {
		int rc = acc_sample_add(s, SAMPLE_PROMPT, 0, e);
		double *v = s->column[SAMPLE_PROMPT].v;
		if (rc < 0)
			return rc;
		memmove(v + 1, v, (s->column[SAMPLE_PROMPT].n - 1) * sizeof *v);
		v[0] = -1;
	}
	return 0;
}

/* The text of a token, or the id that stands for it. */
static int
token(struct sample *s, struct acc_str text, bool ids, struct acc_err *e)
{
	int64_t id;
	if (ids && id_of(text, &id))
		return acc_sample_add(s, SAMPLE_RESPONSE, (double)id, e);
	return acc_sample_token(s, text, e);
}

/* The alternatives of a token, in the order in which they stand: likeliest first. */
static int
top(struct sample *s, const struct jnode *alternatives, struct acc_err *e)
{
	int rc = acc_sample_add(s, SAMPLE_TOP_N, alternatives == NULL ? 0 : (double)alternatives->n,
		e);
	for (const struct jnode *n = alternatives == NULL ? NULL : alternatives->child;
		n != NULL && rc == 0; n = n->next) {
		double l;
		if (!number(n->type == ACC_JSON_OBJECT ? jtree_get(n, "logprob") : n, &l))
			return acc_fail(e, ACC_EFORMAT, "an alternative without log-probability");
		rc = acc_sample_add(s, SAMPLE_TOP_LOGP, l, e);
	}
	return rc;
}

/* choices[].logprobs of completions. */
static int
completion(struct sample *s, const struct jnode *lp, struct acc_err *e)
{
	const struct jnode *tokens = jtree_get(lp, "tokens"), *v = jtree_get(lp, "token_logprobs"),
			   *t = jtree_get(lp, "top_logprobs");
	const bool ids = s->column[SAMPLE_RESPONSE].n == 0;
	double l;
	int rc = 0;
	if (!is_list(tokens) || !is_list(v))
		return acc_fail(e, ACC_EFORMAT, "logprobs without tokens and token_logprobs");
	for (const struct jnode *n = tokens->child; n != NULL && rc == 0; n = n->next)
		rc = token(s, acc_jtree_text(n), ids, e);
	for (const struct jnode *n = v->child; n != NULL && rc == 0; n = n->next)
		rc = number(n, &l) ? acc_sample_add(s, SAMPLE_ROLLOUT, l, e)
				   : acc_fail(e, ACC_EFORMAT, "token_logprobs: no number");
	for (const struct jnode *n = is_list(t) ? t->child : NULL; n != NULL && rc == 0;
		n = n->next)
		rc = top(s, is_object(n) || is_list(n) ? n : NULL, e);
	return rc;
}

/* choices[].logprobs.content of chats. */
static int
chat(struct sample *s, const struct jnode *content, struct acc_err *e)
{
	const bool ids = s->column[SAMPLE_RESPONSE].n == 0;
	int rc = 0;
	for (const struct jnode *n = content->child; n != NULL && rc == 0; n = n->next) {
		double l;
		if (!is_object(n) || !number(jtree_get(n, "logprob"), &l))
			return acc_fail(e, ACC_EFORMAT, "logprobs.content: no logprob");
		rc = token(s, acc_jtree_text(jtree_get(n, "token")), ids, e);
		if (rc == 0)
			rc = acc_sample_add(s, SAMPLE_ROLLOUT, l, e);
		const struct jnode *t = jtree_get(n, "top_logprobs");
		if (rc == 0 && is_list(t))
			rc = top(s, t, e);
	}
	return rc;
}

static int
list(struct sample *s, enum sample_role role, const struct jnode *v, struct acc_err *e)
{
	for (const struct jnode *n = v->child; n != NULL; n = n->next) {
		double x;
		if (!number(n, &x))
			return acc_fail(e, ACC_EFORMAT, "%.*s: no list of numbers",
				v->key.n < 60 ? (int)v->key.n : 60, v->key.p);
		int rc = acc_sample_add(s, role, x, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A key of an object with its value, by what the key is called. */
static int
field(struct sample *s, const struct jnode *n, struct acc_err *e)
{
	const enum sample_role role = acc_sample_role(n->key);
	struct acc_arena *m = &s->mem;
	double x;
	if (acc_str_is(n->key, "prompt_logprobs") && is_list(n))
		return prompt_logprobs(s, n, e);
	if (role == SAMPLE_NONE || n->type == ACC_JSON_NULL)
		return 0;
	if (is_list(n) && (role == SAMPLE_ROLLOUT) && n->child != NULL && is_list(n->child))
		return triples(s, n, SAMPLE_ROLLOUT, SAMPLE_RESPONSE, e);
	/* Under two names of one role, the first counts. */
	if (role < SAMPLE_NCOLUMN)
		return is_list(n) && s->column[role].n == 0 ? list(s, role, n, e) : 0;
	if (role < SAMPLE_NNUMBER)
		return number(n, &x) && isfinite(x) ? acc_sample_add(s, role, x, e) : 0;
	if (n->type == ACC_JSON_STRING)
		return acc_sample_text(s, role, n->s, e);
	if (is_object(n)) { /* {"type": "length"}, and messages of a chat */
		const struct jnode *type = jtree_get(n, "type");
		if (role == SAMPLE_FINISH && type != NULL)
			return acc_sample_text(s, role, acc_jtree_text(type), e);
	}
	if ((role == SAMPLE_TEXT_PROMPT || role == SAMPLE_TEXT_RESPONSE) && !is_list(n))
		return 0;
	struct acc_str text = acc_jtree_dump(n, m);
	return text.p == NULL ? acc_nomem(e) : acc_sample_text(s, role, text, e);
}

/* All of an object but some keys. What says the ids of a prompt by itself comes before what says them with their
 * log-probabilities, and lacks the first. */
static int
fields(struct sample *s, const struct jnode *o, const char *but, struct acc_err *e)
{
	int rc = 0;
	for (int late = 0; late < 2; late++)
		for (const struct jnode *n = o->child; n != NULL && rc == 0; n = n->next)
			if (acc_str_is(n->key, "prompt_logprobs") == (late == 1) &&
				!acc_word_in(but, n->key))
				rc = field(s, n, e);
	return rc;
}

static int
meta_info(struct sample *s, const struct jnode *o, struct acc_err *e)
{
	const struct jnode *out = jtree_get(o, "output_token_logprobs"),
			   *in = jtree_get(o, "input_token_logprobs"),
			   *t = jtree_get(o, "output_top_logprobs"),
			   *finish = jtree_get(o, "finish_reason");
	double x;
	int rc = 0;
	/* The ids that stand beside the log-probabilities are those that they are of. */
	if (is_list(out)) {
		s->column[SAMPLE_RESPONSE].n = 0;
		rc = triples(s, out, SAMPLE_ROLLOUT, SAMPLE_RESPONSE, e);
	}
	if (rc == 0 && is_list(in)) {
		s->column[SAMPLE_PROMPT].n = 0;
		rc = triples(s, in, SAMPLE_PROMPT_LOGP, SAMPLE_PROMPT, e);
	}
	if (rc == 0 && is_list(t))
		rc = tops(s, t, e);
	if (rc == 0 && number(jtree_get(o, "cached_tokens"), &x) && isfinite(x))
		rc = acc_sample_add(s, SAMPLE_CACHED, x, e);
	if (rc == 0 && finish != NULL)
		rc = field(s, finish, e);
	const struct jnode *version = jtree_get(o, "weight_version"), *id = jtree_get(o, "id");
	if (rc == 0 && version != NULL)
		rc = field(s, version, e);
	if (rc == 0 && id != NULL && !s->has[SAMPLE_ID])
		rc = field(s, id, e);
	return rc;
}

/* --- a file --- */

struct reading {
	struct sample_file f;
	struct sample s;
	uint64_t line; /* values of the file so far */
	struct acc_arena mem, put;
};

static int
put(struct reading *r, uint64_t nth, struct acc_err *bad, int rc, struct acc_err *e)
{
	char where[64];
	if (nth > 0)
		snprintf(where, sizeof where, "sample %" PRIu64 ".%" PRIu64, r->line, nth);
	else
		snprintf(where, sizeof where, "sample %" PRIu64, r->line);
	if (rc == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc < 0)
		acc_sample_bad(&r->f, where, bad);
	else
		rc = acc_sample_put(&r->f, &r->s, where, e);
	acc_sample_clear(&r->s);
	return rc == ACC_ENOMEM || (rc < 0 && e->code == rc) ? rc : 0;
}

/* One of a server's answers: what is said of all its choices, and one of them. */
static int
choice(struct reading *r, const struct jnode *o, const struct jnode *c, const struct jnode *id,
	struct acc_err *e)
{
	struct sample *s = &r->s;
	const struct jnode *lp = jtree_get(c, "logprobs"), *message = jtree_get(c, "message"),
			   *meta = jtree_get(c, "meta_info"), *index = jtree_get(c, "index");
	int rc = fields(s, o, "choices id", e);
	if (rc == 0)
		rc = fields(s, c, "index logprobs", e);
	if (rc == 0 && is_object(message) && jtree_get(message, "content") != NULL)
		rc = acc_sample_text(s, SAMPLE_TEXT_RESPONSE,
			acc_jtree_text(jtree_get(message, "content")), e);
	if (rc == 0 && is_object(lp))
		rc = is_list(jtree_get(lp, "content")) ? chat(s, jtree_get(lp, "content"), e)
						       : completion(s, lp, e);
	if (rc == 0 && is_object(meta))
		rc = meta_info(s, meta, e);
	const struct acc_str name = acc_jtree_text(id);
	/* Of several choices each has its number. */
	const char *own = jtree_get(o, "choices")->n == 1
				  ? acc_arena_copy(&r->mem, name.p, name.n)
				  : acc_arena_printf(&r->mem, "%.*s/%lld", ACC_PRS(name),
					    index != NULL && index->type == ACC_JSON_INT
						    ? (long long)index->i
						    : 0);
	if (rc == 0 && own == NULL)
		return acc_nomem(e);
	return rc == 0 && name.n > 0 ? acc_sample_text(s, SAMPLE_ID, acc_str(own), e) : rc;
}

static int object(struct reading *r, const struct jnode *o, const struct jnode *id, uint64_t nth,
	struct acc_err *e);

/* A list of samples in an object that says of what they are. */
static int
several(struct reading *r, const struct jnode *list, struct acc_err *e)
{
	uint64_t nth = 0;
	int rc = 0;
	for (const struct jnode *n = list->child; n != NULL && rc == 0; n = n->next)
		rc = object(r, n, NULL, ++nth, e);
	return rc;
}

static int
object(struct reading *r, const struct jnode *o, const struct jnode *id, uint64_t nth,
	struct acc_err *e)
{
	struct acc_err bad = {0};
	if (!is_object(o)) {
		acc_fail(&bad, ACC_EFORMAT, "no object");
		return put(r, nth, &bad, ACC_EFORMAT, e);
	}
	const struct jnode *choices = jtree_get(o, "choices"), *meta = jtree_get(o, "meta_info"),
			   *samples = jtree_get(o, "samples"), *response = jtree_get(o, "response");
	const struct jnode *own = jtree_get(o, "custom_id");
	/* A line of a batch: {"custom_id": ..., "response": {"body": {...}}}. */
	if (is_object(response) && is_object(jtree_get(response, "body")))
		return object(r, jtree_get(response, "body"), own, nth, e);
	if (is_list(samples) && nth == 0)
		return several(r, samples, e);
	if (is_list(choices)) {
		uint64_t at = 0;
		int rc = 0;
		for (const struct jnode *c = choices->child; c != NULL && rc == 0; c = c->next) {
			bad = (struct acc_err){0};
			int got = is_object(c) ? choice(r, o, c,
							 id != NULL ? id : jtree_get(o, "id"), &bad)
					       : acc_fail(&bad, ACC_EFORMAT,
							 "a choice that is no object");
			rc = put(r, choices->n > 1 ? ++at : 0, &bad, got, e);
		}
		return rc;
	}
	int rc = fields(&r->s, o, "", &bad);
	if (rc == 0 && is_object(meta))
		rc = meta_info(&r->s, meta, &bad);
	return put(r, nth, &bad, rc, e);
}

/* The value that begins with t. */
static int
value(struct reading *r, struct acc_json *j, const struct acc_json_tok *t, struct acc_err *bad,
	struct acc_err *e)
{
	struct jnode *root;
	struct acc_err big = {0};
	acc_arena_reset(&r->mem);
	int rc = acc_jtree_read(j, t, &r->mem, &root, bad);
	if (rc < 0)
		return rc;
	r->line++;
	if (root == NULL) {
		acc_fail(&big, ACC_ELIMIT, "too large");
		return put(r, 0, &big, ACC_ELIMIT, e);
	}
	return object(r, root, NULL, 0, e);
}

/* Values from `at` on, up to the end, or the first that is wrong: its place in *wrong. 1: so it was. */
static int
values(struct reading *r, int fd, uint64_t at, uint64_t size, uint64_t *wrong, struct acc_err *bad,
	struct acc_err *e)
{
	struct acc_json_tok t;
	struct acc_json *j = acc_json_open(acc_bytes_part(fd, r->f.path, at, size - at, e), true,
		e);
	int rc, got;
	bool list = false;
	if (j == NULL)
		return e->code != 0 ? e->code : ACC_ENOMEM;
	*wrong = at;
	while ((got = rc = acc_json_next(j, &t, bad)) > 0) {
		*wrong = t.pos;
		if (t.type == ACC_JSON_ARRAY && r->line == 0 && !list) {
			list = true;
			continue;
		}
		if (t.type == ACC_JSON_ARRAY_END && list)
			continue;
		rc = value(r, j, &t, bad, e);
		if (rc < 0)
			break;
	}
	acc_json_close(j);
	if (rc == ACC_ENOMEM || e->code != 0)
		return e->code != 0 ? e->code : acc_nomem(e);
	if (rc >= 0 || bad->code == 0)
		return rc < 0 ? rc : 0;
	/* In a list nothing can be read behind what is wrong. */
	if (list && got < 0) {
		*wrong = UINT64_MAX;
		return 1;
	}
	*wrong = list ? UINT64_MAX : *wrong;
	return 1;
}

/* The first line behind this byte. */
static int
next_line(int fd, uint64_t at, uint64_t size, uint64_t *next, struct acc_err *e)
{
	char buf[65536];
	while (at < size) {
		int64_t n = acc_file_peek(fd, buf, sizeof buf, at, e);
		if (n < 0)
			return (int)n;
		const char *end = n == 0 ? NULL : memchr(buf, '\n', (size_t)n);
		if (end != NULL) {
			*next = at + (uint64_t)(end - buf) + 1;
			return 0;
		}
		if (n == 0)
			break;
		at += (uint64_t)n;
	}
	*next = size;
	return 0;
}

/* A line that is no JSON is named, and those behind it are read. */
static int
lines(struct reading *r, int fd, uint64_t size, struct acc_err *e)
{
	uint64_t at = 0, wrong = 0;
	int rc = 0;
	while (at < size && rc == 0) {
		struct acc_err bad = {0}, named = {0};
		rc = values(r, fd, at, size, &wrong, &bad, e);
		if (rc <= 0)
			break;
		char where[64];
		r->line++;
		snprintf(where, sizeof where, "sample %" PRIu64, r->line);
		bad.where[0] = '\0';
		char text[256];
		acc_err_text(&bad, text, sizeof text);
		acc_fail(&named, bad.code, "%.200s", text);
		acc_sample_clear(&r->s);
		acc_sample_bad(&r->f, where, &named);
		rc = 0;
		if (wrong == UINT64_MAX)
			break;
		rc = next_line(fd, wrong, size, &at, e);
	}
	return rc;
}

static int
read_file(struct acc_dump_ctx *c, const char *root, int dirfd, const char *file, const char *path,
	struct acc_err *e)
{
	struct reading r = {.f = {.c = c, .path = path, .root = root, .format = "samples_json"}};
	struct acc_file_info info;
	acc_sample_place(file, &r.f.step, &r.f.rank);
	int fd = acc_file_beneath(dirfd, acc_str(file), e);
	if (fd < 0)
		return fd;
	int rc = acc_file_stat(fd, &info, e);
	if (rc == 0)
		rc = lines(&r, fd, info.size, e);
	if (rc == 0)
		rc = acc_file_same(fd, &info, e);
	close(fd);
	acc_sample_end(&r.f);
	acc_sample_release(&r.s);
	acc_arena_release(&r.mem);
	return rc;
}

static int
read_folder(struct acc_dump_ctx *c, const char *dir, int dirfd, struct acc_err *e)
{
	struct acc_arena m = {0};
	const char **names;
	int64_t step, rank, n = acc_dir_list(dirfd, &names, &m, e);
	int rc = n < 0 ? (int)n : 0;
	for (int64_t i = 0; i < n && rc == 0; i++) {
		if (!acc_sample_place(names[i], &step, &rank) ||
			!acc_str_ends(acc_str(names[i]), ".jsonl") ||
			!acc_dump_wants(c, step, rank))
			continue;
		const char *path = acc_arena_printf(&m, "%s/%s", dir, names[i]);
		rc = path == NULL ? acc_nomem(e) : read_file(c, dir, dirfd, names[i], path, e);
		if (rc < 0)
			acc_err_in(e, path);
	}
	acc_arena_release(&m);
	return rc;
}

static int
read_json(struct acc_dump_ctx *c, const char *path, struct acc_err *e)
{
	char dir[PATH_MAX];
	const char *file = NULL;
	int fd = acc_dump_open_place(path, dir, &file, e);
	if (fd < 0)
		return fd;
	int rc = file == NULL ? read_folder(c, dir, fd, e) : read_file(c, dir, fd, file, path, e);
	close(fd);
	return rc;
}

/* --- recognising --- */

/* verl's lines have texts, and none of them log-probabilities. */
static bool
is_verl(const uint8_t *p, size_t n)
{
	return memmem(p, n, "\"input\":", 8) != NULL && memmem(p, n, "\"output\":", 9) != NULL &&
	       (memmem(p, n, "\"score\":", 8) != NULL || memmem(p, n, "\"step\":", 7) != NULL);
}

static bool
is_answer(const uint8_t *p, size_t n)
{
	return memmem(p, n, "\"choices\":", 10) != NULL && memmem(p, n, "\"object\":", 9) != NULL;
}

/* A long prompt may stand before what says what it is. name NULL: the file that was given, by whatever link. */
static int
look(const struct acc_probe *p, const char *name)
{
	enum { FAR = 1 << 20 };
	uint8_t *head = malloc(FAR);
	int sure = 0;
	if (head == NULL)
		return -97;
	const int fd = name == NULL ? acc_sample_open(p) : -1;
	const int64_t n = name != NULL ? acc_file_head(p->dirfd, name, head, FAR, p->e)
			  : fd < 0     ? fd
				       : acc_file_peek(fd, head, FAR, 0, p->e);
	if (fd >= 0)
		close(fd);
	if (n < 0)
		sure = -97;
	size_t i = 0;
	while (n > 0 && i < (size_t)n && head[i] != '\0' && strchr(" \t\r\n", head[i]) != NULL)
		i++;
	if (n > 0 && i < (size_t)n && (head[i] == '{' || head[i] == '[') &&
		(is_verl(head, (size_t)n) || is_answer(head, (size_t)n) ||
			acc_sample_named(head, (size_t)n)))
		sure = 98;
	free(head);
	return sure;
}

static int
probe(const struct acc_probe *p)
{
	if (p->is_dir) {
		struct acc_arena m = {0};
		const char **names;
		int64_t step, rank, n = acc_dir_list(p->dirfd, &names, &m, p->e);
		int sure = n < 0 ? -60 : 0;
		for (int64_t i = 0; i < n && sure == 0; i++)
			if (acc_sample_place(names[i], &step, &rank) &&
				acc_str_ends(acc_str(names[i]), ".jsonl"))
				sure = look(p, names[i]) > 0 ? 60 : 0;
		acc_arena_release(&m);
		return sure;
	}
	return (acc_str_ends(p->base, ".json") || acc_str_ends(p->base, ".jsonl")) && p->nhead > 0
		       ? look(p, NULL)
		       : 0;
}

const struct acc_dump acc_dump_samples_json = {
	.name = "samples_json",
	.help = "samples of a language model as JSON: verl, SGLang, vLLM, by hand",
	.probe = probe,
	.read = read_json,
};
