/* Samples as JSON, an object a line or a list of them: verl's rollout_data_dir, SGLang's meta_info, what
 * servers answer that speak as OpenAI's (vLLM among them), and what people write themselves.
 *
 *	{"input": "...", "output": "...", "score": 1.0, "step": 1}
 *	{"text": "...", "meta_info": {"output_token_logprobs": [[-4.4, 34, null], ...]}}
 *	{"id": "cmpl-8", "choices": [{"logprobs": {"tokens": [...], "token_logprobs": [...]}}]}
 *	{"content": "...", "completion_probabilities": [{"id": 34, "logprob": -4.4, "top_logprobs": [...]}, ...]}
 *	{"prompt_ids": [...], "response_ids": [...], "logprobs": [...]}
 */
#include "dump/place.h"
#include "dump/token/json_forms.h"

#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

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

/* How many tokens an answer of one choice says that it has; -1: it does not. */
static double
generated(const struct jnode *o)
{
	const struct jnode *usage = jtree_get(o, "usage"),
			   *n = jtree_is_object(usage) ? jtree_get(usage, "completion_tokens")
						       : NULL;
	return n != NULL && n->type == ACC_JSON_INT && jtree_get(o, "choices")->n == 1
		       ? (double)n->i
		       : -1;
}

/* One of a server's answers: what is said of all its choices, and one of them. */
static int
choice(struct reading *r, const struct jnode *o, const struct jnode *c, const struct jnode *id,
	struct acc_err *e)
{
	struct sample *s = &r->s;
	const struct jnode *lp = jtree_get(c, "logprobs"), *message = jtree_get(c, "message"),
			   *meta = jtree_get(c, "meta_info"), *index = jtree_get(c, "index");
	int rc = acc_form_fields(s, o, "choices id", e);
	if (rc == 0)
		rc = acc_form_fields(s, c, "index logprobs", e);
	if (rc == 0 && jtree_is_object(message) && jtree_get(message, "content") != NULL)
		rc = acc_sample_text(s, SAMPLE_TEXT_RESPONSE,
			acc_jtree_text(jtree_get(message, "content")), e);
	if (rc == 0 && jtree_is_object(lp))
		rc = jtree_is_list(jtree_get(lp, "content"))
			     ? acc_form_chat(s, jtree_get(lp, "content"), generated(o), e)
			     : acc_form_completion(s, lp, e);
	if (rc == 0 && jtree_is_object(meta))
		rc = acc_form_meta_info(s, meta, e);
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
	if (!jtree_is_object(o)) {
		acc_fail(&bad, ACC_EFORMAT, "no object");
		return put(r, nth, &bad, ACC_EFORMAT, e);
	}
	const struct jnode *choices = jtree_get(o, "choices"), *meta = jtree_get(o, "meta_info"),
			   *samples = jtree_get(o, "samples"), *response = jtree_get(o, "response");
	const struct jnode *own = jtree_get(o, "custom_id");
	/* A line of a batch: {"custom_id": ..., "response": {"body": {...}}}. */
	if (jtree_is_object(response) && jtree_is_object(jtree_get(response, "body")))
		return object(r, jtree_get(response, "body"), own, nth, e);
	if (jtree_is_list(samples) && nth == 0)
		return several(r, samples, e);
	if (jtree_is_list(choices)) {
		uint64_t at = 0;
		int rc = 0;
		for (const struct jnode *c = choices->child; c != NULL && rc == 0; c = c->next) {
			bad = (struct acc_err){0};
			int got = jtree_is_object(c)
					  ? choice(r, o, c, id != NULL ? id : jtree_get(o, "id"),
						    &bad)
					  : acc_fail(&bad, ACC_EFORMAT,
						    "a choice that is no object");
			rc = put(r, choices->n > 1 ? ++at : 0, &bad, got, e);
		}
		return rc;
	}
	int rc = jtree_is_list(jtree_get(o, "completion_probabilities"))
			 ? acc_form_llama(&r->s, o, &bad)
			 : acc_form_fields(&r->s, o, "", &bad);
	if (rc == 0 && jtree_is_object(meta))
		rc = acc_form_meta_info(&r->s, meta, &bad);
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

/* So have TRL's completions, which come as parquet. */
static bool
is_trl(const uint8_t *p, size_t n)
{
	return memmem(p, n, "\"prompt\":", 9) != NULL &&
	       memmem(p, n, "\"completion\":", 13) != NULL &&
	       memmem(p, n, "\"advantage\":", 12) != NULL;
}

static bool
is_answer(const uint8_t *p, size_t n)
{
	return (memmem(p, n, "\"choices\":", 10) != NULL &&
		       memmem(p, n, "\"object\":", 9) != NULL) ||
	       memmem(p, n, "\"completion_probabilities\":", 27) != NULL;
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
		(is_verl(head, (size_t)n) || is_trl(head, (size_t)n) ||
			is_answer(head, (size_t)n) || acc_sample_named(head, (size_t)n)))
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
