#include "dump/token/sample.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>

/* Names of columns, with blanks around each. */
static const struct {
	enum sample_role role;
	const char *names;
} roles[] = {
	{SAMPLE_ALL, "tokens input_ids sequences ids all_ids"},
	{SAMPLE_PROMPT, "prompts prompt_ids prompt_token_ids"},
	{SAMPLE_RESPONSE,
		"responses response_ids response_token_ids output_ids output_token_ids completion_ids "
		"completion_token_ids token_ids"},
	{SAMPLE_ROLLOUT,
		"rollout_log_probs rollout_logprobs sampling_log_probs sampling_logprobs sampling_logps "
		"sampling_per_token_logps generation_logprobs inference_logprobs logprobs logprob logps "
		"token_logprobs output_token_logprobs output_logprobs response_logprobs completion_logprobs"},
	{SAMPLE_TRAIN,
		"log_probs old_log_probs old_log_prob old_logprobs train_log_probs train_logprobs "
		"action_log_probs old_per_token_logps per_token_logps prev_logprobs trainer_logprobs "
		"actor_log_probs"},
	{SAMPLE_REF,
		"ref_log_prob ref_log_probs ref_logprobs reference_logprobs ref_per_token_logps "
		"reference_policy_logprobs base_action_log_probs"},
	{SAMPLE_PROMPT_LOGP, "prompt_logprobs prompt_log_probs"},
	{SAMPLE_MASK,
		"response_mask loss_mask loss_masks action_mask completion_mask token_mask mask"},
	{SAMPLE_ATTENTION, "attention_mask"},
	{SAMPLE_LENGTH, "response_length response_lengths"},
	{SAMPLE_STEP, "step global_step rollout_id"},
	{SAMPLE_RANK, "rank dp_rank"},
	{SAMPLE_CACHED, "cached_tokens"},
	{SAMPLE_TEXT_PROMPT, "input prompt prompt_text"},
	{SAMPLE_TEXT_RESPONSE, "output response completion text response_text"},
	{SAMPLE_ID, "id uid sample_id request_id custom_id index rid"},
	{SAMPLE_GROUP, "group_index group group_id prompt_index"},
	{SAMPLE_VERSION, "weight_version weight_versions policy_version param_version"},
	{SAMPLE_FINISH, "finish_reason status stop_reason"},
};

enum sample_role
acc_sample_role(struct acc_str key)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
		if (acc_word_in(roles[i].names, key))
			return roles[i].role;
	return SAMPLE_NONE;
}

/* Does this word stand in it, and no longer one? */
static bool
has_word(const uint8_t *head, size_t n, const char *word, size_t len)
{
	for (const uint8_t *p = head; (p = memmem(p, n - (size_t)(p - head), word, len)) != NULL;
		p++) {
		const int before = p == head ? 0 : p[-1], after = p + len == head + n ? 0 : p[len];
		/* In a pickle q or r stands behind a text: it is kept. */
		const bool in = (before >= 'a' && before <= 'z') || before == '_' ||
				(after >= 'a' && after <= 'z' && after != 'q' && after != 'r') ||
				after == '_';
		if (!in)
			return true;
	}
	return false;
}

static bool
has_role(const uint8_t *head, size_t n, enum sample_role role, const char *but)
{
	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		if (roles[i].role != role)
			continue;
		for (const char *p = roles[i].names; *p != '\0';) {
			const size_t len = strcspn(p, " ");
			if (!acc_word_in(but, (struct acc_str){p, (uint32_t)len}) &&
				has_word(head, n, p, len))
				return true;
			p += len + (p[len] == ' ');
		}
	}
	return false;
}

bool
acc_sample_named(const uint8_t *head, size_t n)
{
	bool logp = false;
	for (enum sample_role r = SAMPLE_ROLLOUT; r <= SAMPLE_PROMPT_LOGP && n > 0; r++)
		logp |= has_role(head, n, r, "");
	return logp &&
	       (has_role(head, n, SAMPLE_ALL, "ids") || has_role(head, n, SAMPLE_PROMPT, "") ||
		       has_role(head, n, SAMPLE_RESPONSE, "") ||
		       has_role(head, n, SAMPLE_TEXT_RESPONSE, "") || has_word(head, n, "ids", 3) ||
		       has_word(head, n, "choices", 7) || has_word(head, n, "meta_info", 9));
}

/* --- what a reader adds --- */

int
acc_sample_add(struct sample *s, enum sample_role role, double v, struct acc_err *e)
{
	if (role >= SAMPLE_NNUMBER)
		return 0;
	s->has[role] = true;
	if (role >= SAMPLE_NCOLUMN) {
		s->number[role] = fabs(v) < 0x1p62 ? (int64_t)v : -1;
		return 0;
	}
	struct sample_column *c = &s->column[role];
	if (c->n >= SAMPLE_TOKENS)
		return acc_fail(e, ACC_ELIMIT, "more than %d tokens", SAMPLE_TOKENS);
	if (!ACC_ROOM(c->v, c->cap, c->n + 1, e))
		return ACC_ENOMEM;
	c->v[c->n++] = v;
	return 0;
}

int
acc_sample_text(struct sample *s, enum sample_role role, struct acc_str text, struct acc_err *e)
{
	const char *copy = acc_arena_copy(&s->mem, text.p, text.n);
	if (copy == NULL)
		return acc_nomem(e);
	s->has[role] = true;
	s->text[role] = (struct acc_str){copy, text.n};
	return 0;
}

int
acc_sample_token(struct sample *s, struct acc_str text, struct acc_err *e)
{
	struct acc_str *p = acc_grow(s->token, &s->cap_token, s->ntoken + 1, sizeof *p, e);
	const char *copy = p == NULL ? NULL : acc_arena_copy(&s->mem, text.p, text.n);
	if (p != NULL)
		s->token = p;
	if (copy == NULL)
		return acc_nomem(e);
	p[s->ntoken++] = (struct acc_str){copy, text.n};
	return 0;
}

void
acc_sample_clear(struct sample *s)
{
	for (int i = 0; i < SAMPLE_NCOLUMN; i++)
		s->column[i].n = 0;
	memset(s->has, 0, sizeof s->has);
	memset(s->text, 0, sizeof s->text);
	s->ntoken = 0;
	acc_arena_reset(&s->mem);
}

void
acc_sample_release(struct sample *s)
{
	for (int i = 0; i < SAMPLE_NCOLUMN; i++)
		free(s->column[i].v);
	free(s->token);
	acc_arena_release(&s->mem);
	*s = (struct sample){0};
}

/* --- one shape --- */

/* A sample as its record has it. */
struct shaped {
	size_t n, start; /* ids, of which the first `start` are the prompt's */
	size_t pad;      /* tokens of padding that stood before the prompt */
	size_t counted;  /* tokens of padding that the mask counts */
	double *ids;     /* NULL: not known */
	double *logp[3]; /* rollout, train, ref: of all n, INFINITY where there is none */
	double *mask;    /* or NULL: of all n */
};

static double *
numbers(struct acc_arena *m, size_t n, double v)
{
	double *p = acc_alloc(m, (n + 1) * sizeof *p);
	for (size_t i = 0; p != NULL && i < n; i++)
		p[i] = v;
	return p;
}

static bool
is_at(const struct sample *s, enum sample_role r)
{
	return s->column[r].n > 0;
}

/* How long prompt and response are. The response is what is left of all ids behind its prompt, its length, or
 * its log-probabilities. */
static int
lengths(const struct sample *s, struct shaped *w, struct acc_err *e)
{
	const size_t all = s->column[SAMPLE_ALL].n, prompt = s->column[SAMPLE_PROMPT].n,
		     response = s->column[SAMPLE_RESPONSE].n;
	size_t logp = 0;
	for (enum sample_role r = SAMPLE_ROLLOUT; r <= SAMPLE_REF; r++)
		logp = s->column[r].n > logp ? s->column[r].n : logp;
	if (all == 0) {
		w->start = prompt > 0 ? prompt : s->column[SAMPLE_PROMPT_LOGP].n;
		w->n = w->start + (response > 0 ? response : logp);
		return 0;
	}
	w->n = all;
	size_t len = response > 0 ? response : logp;
	if (s->has[SAMPLE_LENGTH])
		len = s->number[SAMPLE_LENGTH] < 0 ? 0 : (size_t)s->number[SAMPLE_LENGTH];
	else if (prompt > 0 && response == 0 && prompt <= all)
		len = all - prompt;
	else if (len + 1 >= all && s->column[SAMPLE_MASK].n > 0 && s->column[SAMPLE_MASK].n < all)
		len = s->column[SAMPLE_MASK].n;
	if (len > all)
		return acc_fail(e, ACC_EFORMAT,
			"%zu tokens, of which %zu are said to be the response", all, len);
	w->start = len >= all ? (len == all ? 0 : all - len) : all - len;
	return 0;
}

/* One value a token: of all, of all but the first, or of the response. */
static int
spread(const struct sample *s, enum sample_role r, const struct shaped *w, double *out,
	struct acc_err *e)
{
	const struct sample_column *c = &s->column[r];
	const size_t response = w->n - w->start;
	size_t at;
	if (c->n == response)
		at = w->start;
	else if (c->n == w->n || (c->n + 1 == w->n && r != SAMPLE_MASK) ||
		 (c->n + 1 == w->n && c->n > response))
		at = w->n - c->n;
	else
		return acc_fail(e, ACC_EFORMAT,
			"%zu values for %zu tokens, of which %zu are the response", c->n, w->n,
			response);
	for (size_t i = 0; i < c->n; i++)
		out[at + i] = c->v[i];
	return 0;
}

/* Tokens of padding go. */
static void
unpad(struct shaped *w, const struct sample *s)
{
	const struct sample_column *att = &s->column[SAMPLE_ATTENTION];
	size_t n = 0, start = w->start;
	if (att->n != w->n || w->n == 0)
		return;
	for (size_t i = 0; i < w->n && att->v[i] == 0; i++)
		w->pad++;
	if (w->pad == w->n)
		w->pad = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (att->v[i] == 0) {
			start -= i < w->start;
			w->counted += w->mask != NULL && w->mask[i] != 0;
			continue;
		}
		if (w->ids != NULL)
			w->ids[n] = w->ids[i];
		for (int k = 0; k < 3; k++)
			if (w->logp[k] != NULL)
				w->logp[k][n] = w->logp[k][i];
		if (w->mask != NULL)
			w->mask[n] = w->mask[i];
		n++;
	}
	w->n = n;
	w->start = start;
}

static int
shape(struct sample_file *f, const struct sample *s, struct shaped *w, struct acc_err *e)
{
	struct acc_arena *m = &f->mem;
	int rc = lengths(s, w, e);
	if (rc < 0)
		return rc;
	if (w->n == 0)
		return s->has[SAMPLE_TEXT_RESPONSE]
			       ? 0
			       : acc_fail(e, ACC_EFORMAT,
					 "neither tokens nor a text of a response");
	const struct sample_column *all = &s->column[SAMPLE_ALL], *p = &s->column[SAMPLE_PROMPT],
				   *r = &s->column[SAMPLE_RESPONSE];
	if (all->n > 0 || r->n > 0) {
		w->ids = numbers(m, w->n, -1);
		if (w->ids == NULL)
			return acc_nomem(e);
		if (all->n > 0)
			memcpy(w->ids, all->v, w->n * sizeof *w->ids);
		else if (p->n > 0)
			memcpy(w->ids, p->v, p->n * sizeof *w->ids);
		if (all->n == 0)
			memcpy(w->ids + w->start, r->v, r->n * sizeof *w->ids);
	}
	for (int k = 0; k < 3 && rc == 0; k++) {
		const bool prompt = k == 0 && is_at(s, SAMPLE_PROMPT_LOGP);
		if (!is_at(s, SAMPLE_ROLLOUT + k) && !prompt)
			continue;
		w->logp[k] = numbers(m, w->n, INFINITY);
		if (w->logp[k] == NULL)
			return acc_nomem(e);
		if (is_at(s, SAMPLE_ROLLOUT + k))
			rc = spread(s, SAMPLE_ROLLOUT + k, w, w->logp[k], e);
		const struct sample_column *q = &s->column[SAMPLE_PROMPT_LOGP];
		for (size_t i = 0; prompt && i < q->n && i < w->start; i++)
			w->logp[k][i] = q->v[i];
	}
	if (rc == 0 && is_at(s, SAMPLE_MASK)) {
		w->mask = numbers(m, w->n, 0);
		rc = w->mask == NULL ? acc_nomem(e) : spread(s, SAMPLE_MASK, w, w->mask, e);
	}
	if (rc == 0 && w->ids == NULL && s->ntoken > 0 && s->ntoken + w->start != w->n)
		rc = acc_fail(e, ACC_EFORMAT, "%zu texts of tokens for %zu values", s->ntoken,
			w->n - w->start);
	if (rc == 0)
		unpad(w, s);
	return rc;
}

/* --- the record --- */

/* Numbers of 32 bits where these hold them all. */
static int
put_floats(struct acc_rec *r, const char *key, const double *v, size_t n, struct acc_arena *m)
{
	bool narrow = true;
	for (size_t i = 0; i < n && narrow; i++)
		narrow = isnan(v[i]) || (double)(float)v[i] == v[i];
	const size_t size = narrow ? sizeof(float) : sizeof(double);
	uint8_t *p = acc_alloc(m, n * size + 1);
	if (p == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const float x = narrow ? (float)v[i] : 0;
		uint32_t a;
		uint64_t b;
		memcpy(&a, &x, sizeof a);
		memcpy(&b, &v[i], sizeof b);
		for (size_t k = 0; k < size; k++)
			p[i * size + k] = (uint8_t)(narrow ? a >> (8 * k) : b >> (8 * k));
	}
	struct acc_val x = {.type = ACC_V_BIN, .s = {(char *)p, (uint32_t)(n * size)}};
	return acc_add(r, "", key, x);
}

static int
put_ints(struct acc_rec *r, const char *key, const double *v, size_t n, struct acc_arena *m)
{
	int64_t *p = acc_alloc(m, (n + 1) * sizeof *p);
	if (p == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < n; i++)
		p[i] = fabs(v[i]) < 0x1p62 ? (int64_t)v[i] : -1;
	return acc_add(r, "", key, acc_ints(p, (uint32_t)n));
}

static int
put_mask(struct acc_rec *r, const struct shaped *w, struct acc_arena *m)
{
	uint8_t *p = acc_alloc(m, w->n + 1);
	if (p == NULL)
		return ACC_ENOMEM;
	for (size_t i = 0; i < w->n; i++)
		p[i] = w->mask[i] != 0;
	struct acc_val x = {.type = ACC_V_BIN, .s = {(char *)p, (uint32_t)w->n}};
	return acc_add(r, "", "mask", x);
}

/* The beginning of a text, whole characters of it. */
static struct acc_str
begin(struct acc_str s)
{
	if (s.n <= SAMPLE_TEXT)
		return s;
	s.n = SAMPLE_TEXT;
	while (s.n > 0 && ((uint8_t)s.p[s.n] & 0xc0) == 0x80)
		s.n--;
	return s;
}

static int
fill(struct acc_rec *r, const struct sample *s, const struct shaped *w, struct acc_arena *m)
{
	static const char *const logp[3] = {"logp.rollout", "logp.train", "logp.ref"};
	static const struct {
		enum sample_role role;
		const char *key;
	} texts[] = {{SAMPLE_ID, "sample"}, {SAMPLE_GROUP, "group"}, {SAMPLE_VERSION, "version"},
		{SAMPLE_FINISH, "finish"}};
	int rc = 0;
	for (size_t i = 0; i < sizeof texts / sizeof *texts && rc == 0; i++)
		if (s->text[texts[i].role].n > 0)
			rc = acc_add(r, "", texts[i].key, acc_text(begin(s->text[texts[i].role])));
	if (rc == 0 && s->has[SAMPLE_CACHED])
		rc = acc_add(r, "", "cached", acc_int(s->number[SAMPLE_CACHED]));
	if (rc == 0 && w->ids != NULL)
		rc = put_ints(r, "ids", w->ids, w->n, m);
	if (rc == 0 && s->ntoken > 0 && s->ntoken == w->n - w->start)
		rc = acc_add(r, "", "tokens", acc_texts(s->token, (uint32_t)s->ntoken));
	for (int k = 0; k < 3 && rc == 0; k++)
		if (w->logp[k] != NULL)
			rc = put_floats(r, logp[k], w->logp[k], w->n, m);
	if (rc == 0 && w->mask != NULL)
		rc = put_mask(r, w, m);
	const struct sample_column *id = &s->column[SAMPLE_TOP_ID],
				   *lp = &s->column[SAMPLE_TOP_LOGP], *n = &s->column[SAMPLE_TOP_N];
	if (rc == 0 && n->n > 0 && n->n == w->n - w->start && lp->n > 0) {
		rc = put_ints(r, "top.n", n->v, n->n, m);
		if (rc == 0 && id->n == lp->n)
			rc = put_ints(r, "top.ids", id->v, id->n, m);
		if (rc == 0)
			rc = put_floats(r, "top.logp", lp->v, lp->n, m);
	}
	if (rc == 0 && w->pad > 0)
		rc = acc_add(r, "", "pad", acc_int((int64_t)w->pad));
	if (rc == 0 && w->counted > 0)
		rc = acc_add(r, "", "counted.pad", acc_int((int64_t)w->counted));
	if (rc == 0 && s->text[SAMPLE_TEXT_PROMPT].n > 0)
		rc = acc_add(r, "", "prompt", acc_text(begin(s->text[SAMPLE_TEXT_PROMPT])));
	if (rc == 0 && s->has[SAMPLE_TEXT_RESPONSE])
		rc = acc_add(r, "", "response", acc_text(begin(s->text[SAMPLE_TEXT_RESPONSE])));
	return rc == 0 ? acc_add(r, "", "start", acc_int((int64_t)w->start)) : rc;
}

/* A record, and the pair of two, is at most ACC_MAX_RECORD. */
static bool
too_large(const struct acc_rec *r)
{
	size_t n = 0;
	for (uint32_t i = 0; i < r->n; i++)
		n += r->f[i].v.type == ACC_V_INTS ? (size_t)r->f[i].v.n * 5
		     : r->f[i].v.type == ACC_V_BIN || r->f[i].v.type == ACC_V_TEXT ? r->f[i].v.s.n
										   : 16;
	for (uint32_t i = 0; i < r->n; i++)
		for (uint32_t k = 0; r->f[i].v.type == ACC_V_TEXTS && k < r->f[i].v.n; k++)
			n += r->f[i].v.texts[k].n + 5;
	return n > ACC_MAX_RECORD / 2 - 4096;
}

static int
source(struct sample_file *f, int64_t step, int64_t rank, struct acc_err *e)
{
	if (f->source && f->at_step == step && f->at_rank == rank)
		return 0;
	const struct acc_source s = {.root = f->root,
		.format = f->format,
		.task = "samples",
		.step = step,
		.rank = rank,
		.proc = -1};
	f->source = true;
	f->at_step = step;
	f->at_rank = rank;
	return acc_dump_source(f->c, &s, e);
}

void
acc_sample_bad(struct sample_file *f, const char *where, struct acc_err *why)
{
	enum { SAID = 5 };
	struct acc_err named = {0};
	f->n++;
	if (f->bad++ < SAID) {
		acc_fail(&named, why->code == ACC_ENOTE ? ACC_EFORMAT : why->code, "%s: %.200s",
			where, why->msg);
		acc_err_in(&named, f->path);
		acc_dump_trouble(f->c, &named);
	}
	*why = (struct acc_err){0};
}

void
acc_sample_end(struct sample_file *f)
{
	struct acc_err e = {0};
	if (f->bad > 0) {
		acc_fail(&e, ACC_EFORMAT, "%llu of %llu samples could not be read",
			(unsigned long long)f->bad, (unsigned long long)f->n);
		acc_err_in(&e, f->path);
		acc_dump_trouble(f->c, &e);
	}
	acc_rec_release(&f->rec);
	acc_arena_release(&f->mem);
}

int
acc_sample_put(struct sample_file *f, struct sample *s, const char *where, struct acc_err *e)
{
	struct acc_err bad = {0};
	struct shaped w = {0};
	const int64_t step = s->has[SAMPLE_STEP] ? s->number[SAMPLE_STEP] : f->step,
		      rank = s->has[SAMPLE_RANK] ? s->number[SAMPLE_RANK] : f->rank;
	acc_arena_reset(&f->mem);
	int rc = shape(f, s, &w, &bad);
	if (rc == ACC_ENOMEM)
		return acc_nomem(e);
	if (rc < 0) {
		acc_sample_bad(f, where, &bad);
		return 0;
	}
	if (!acc_dump_wants(f->c, step, rank)) {
		f->n++;
		return 0;
	}
	rc = source(f, step, rank, e);
	if (rc < 0)
		return rc;
	struct acc_rec *r = acc_dump_rec(f->c, "sample", acc_str(where));
	if (fill(r, s, &w, &f->mem) < 0)
		return acc_nomem(e);
	if (too_large(r)) {
		acc_fail(&bad, ACC_ELIMIT,
			"%zu tokens and their choices are more than a record holds", w.n);
		acc_sample_bad(f, where, &bad);
		return 0;
	}
	f->n++;
	return acc_dump_put(f->c, r, e);
}

/* --- names of files --- */

static bool
digits(const char **p, int64_t *out)
{
	const char *s = *p;
	while (*s >= '0' && *s <= '9')
		s++;
	const bool any = s > *p && acc_str_int((struct acc_str){*p, (uint32_t)(s - *p)}, out);
	*p = s;
	return any;
}

bool
acc_sample_place(const char *name, int64_t *step, int64_t *rank)
{
	static const char *const words[] = {"", "rollout_", "train_", "completions_", "step_"};
	*step = *rank = -1;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		const char *p = name;
		int64_t s, r = -1;
		if (!acc_str_starts(acc_str(name), words[i]))
			continue;
		p += strlen(words[i]);
		if (!digits(&p, &s))
			continue;
		if (*p == '_' && i > 0) {
			p++;
			if (!digits(&p, &r))
				continue;
		}
		const bool pt = i > 0 && (strcmp(p, ".pt") == 0 || strcmp(p, ".npz") == 0);
		if (!pt && strcmp(p, ".jsonl") != 0)
			continue;
		*step = s;
		*rank = r;
		return true;
	}
	return false;
}

int
acc_sample_open(const struct acc_probe *p)
{
	const int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? acc_fail(p->e, ACC_EIO, "cannot open:") : fd;
}
