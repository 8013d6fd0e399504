/* What a sample holds under the keys of each writer: the columns of samples_json. */
#include "dump/token/json_forms.h"

#include <math.h>
#include <string.h>

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
		const struct jnode *second = jtree_is_list(n) && n->child != NULL ? n->child->next
										  : NULL;
		double l, i;
		if (second == NULL || !number(n->child, &l) || !number(second, &i))
			return acc_fail(e, ACC_EFORMAT, "no [log-probability, id, text]");
		int rc = acc_sample_add(s, logp, l, e);
		if (rc == 0)
			rc = acc_sample_add(s, id, i, e);
		if (rc == 0 && id == SAMPLE_RESPONSE && second->next != NULL &&
			second->next->type == ACC_JSON_STRING)
			rc = acc_sample_token(s, second->next->s, e);
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
		int rc = acc_sample_add(s, SAMPLE_TOP_N, jtree_is_list(n) ? n->n : 0, e);
		if (rc == 0 && jtree_is_list(n))
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
		const struct jnode *first = jtree_is_object(n) ? n->child : NULL;
		double l = INFINITY;
		int64_t id = -1;
		if (first != NULL && jtree_is_object(first))
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

/* A token's log-probability; llama.cpp's server gives probabilities where it was asked for those behind its samplers. */
static bool
logprob(const struct jnode *n, double *v)
{
	const struct jnode *p = jtree_get(n, "prob");
	if (p == NULL)
		return number(jtree_get(n, "logprob"), v);
	if (!number(p, v) || !isfinite(*v))
		return false;
	*v = log(*v);
	return true;
}

/* The alternatives of a token, in the order in which they stand: likeliest first. */
static int
top(struct sample *s, const struct jnode *alternatives, struct acc_err *e)
{
	int rc = acc_sample_add(s, SAMPLE_TOP_N, alternatives == NULL ? 0 : (double)alternatives->n,
		e);
	for (const struct jnode *n = alternatives == NULL ? NULL : alternatives->child;
		n != NULL && rc == 0; n = n->next) {
		double l, id;
		if (!(jtree_is_object(n) ? logprob(n, &l) : number(n, &l)))
			return acc_fail(e, ACC_EFORMAT, "an alternative without log-probability");
		rc = acc_sample_add(s, SAMPLE_TOP_LOGP, l, e);
		if (rc == 0 && jtree_is_object(n) && number(jtree_get(n, "id"), &id))
			rc = acc_sample_add(s, SAMPLE_TOP_ID, id, e);
	}
	return rc;
}

/* choices[].logprobs of completions. */
int
acc_form_completion(struct sample *s, const struct jnode *lp, struct acc_err *e)
{
	const struct jnode *tokens = jtree_get(lp, "tokens"), *v = jtree_get(lp, "token_logprobs"),
			   *t = jtree_get(lp, "top_logprobs");
	const bool ids = s->column[SAMPLE_RESPONSE].n == 0;
	double l;
	int rc = 0;
	if (!jtree_is_list(tokens) || !jtree_is_list(v))
		return acc_fail(e, ACC_EFORMAT, "logprobs without tokens and token_logprobs");
	for (const struct jnode *n = tokens->child; n != NULL && rc == 0; n = n->next)
		rc = token(s, acc_jtree_text(n), ids, e);
	for (const struct jnode *n = v->child; n != NULL && rc == 0; n = n->next)
		rc = number(n, &l) ? acc_sample_add(s, SAMPLE_ROLLOUT, l, e)
				   : acc_fail(e, ACC_EFORMAT, "token_logprobs: no number");
	for (const struct jnode *n = jtree_is_list(t) ? t->child : NULL; n != NULL && rc == 0;
		n = n->next)
		rc = top(s, jtree_is_object(n) || jtree_is_list(n) ? n : NULL, e);
	return rc;
}

/* What is said of one token, an object. */
static int
one(struct sample *s, const struct jnode *n, bool ids, struct acc_err *e)
{
	const struct jnode *t = jtree_get(n, "top_logprobs");
	double l, id;
	if (!jtree_is_object(n) || !logprob(n, &l))
		return acc_fail(e, ACC_EFORMAT, "a token without logprob");
	const bool told = ids && number(jtree_get(n, "id"), &id);
	int rc = told ? acc_sample_add(s, SAMPLE_RESPONSE, id, e) : 0;
	if (rc == 0)
		rc = token(s, acc_jtree_text(jtree_get(n, "token")), ids && !told, e);
	if (rc == 0)
		rc = acc_sample_add(s, SAMPLE_ROLLOUT, l, e);
	if (t == NULL)
		t = jtree_get(n, "top_probs");
	return rc == 0 && jtree_is_list(t) ? top(s, t, e) : rc;
}

/* choices[].logprobs.content of chats: an object a token. So many were generated, or -1: not said. llama.cpp, which alone
 * tells ids, leaves out tokens (llama-probs-skip-bytes), and what is behind one has another beginning. */
int
acc_form_chat(struct sample *s, const struct jnode *content, double generated, struct acc_err *e)
{
	const bool ids = s->column[SAMPLE_RESPONSE].n == 0;
	int rc = 0;
	for (const struct jnode *n = content->child; n != NULL && rc == 0; n = n->next)
		rc = one(s, n, ids, e);
	if (rc == 0 && content->child != NULL && jtree_get(content->child, "id") != NULL &&
		generated > content->n)
		return acc_fail(e, ACC_EFORMAT,
			"log-probabilities of %u tokens, and %.0f were generated: llama.cpp leaves out those that end"
			" within a character (llama-probs-skip-bytes); ask /completion for return_tokens",
			content->n, generated);
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
	if (acc_str_is(n->key, "prompt_logprobs") && jtree_is_list(n))
		return prompt_logprobs(s, n, e);
	if (role == SAMPLE_NONE || n->type == ACC_JSON_NULL)
		return 0;
	if (jtree_is_list(n) && (role == SAMPLE_ROLLOUT) && n->child != NULL &&
		jtree_is_list(n->child))
		return triples(s, n, SAMPLE_ROLLOUT, SAMPLE_RESPONSE, e);
	/* Under two names of one role, the first counts. */
	if (role < SAMPLE_NCOLUMN)
		return jtree_is_list(n) && s->column[role].n == 0 ? list(s, role, n, e) : 0;
	if (role < SAMPLE_NNUMBER)
		return number(n, &x) && isfinite(x) ? acc_sample_add(s, role, x, e) : 0;
	if (n->type == ACC_JSON_STRING)
		return acc_sample_text(s, role, n->s, e);
	if (jtree_is_object(n)) { /* {"type": "length"}, and messages of a chat */
		const struct jnode *type = jtree_get(n, "type");
		if (role == SAMPLE_FINISH && type != NULL)
			return acc_sample_text(s, role, acc_jtree_text(type), e);
	}
	if ((role == SAMPLE_TEXT_PROMPT || role == SAMPLE_TEXT_RESPONSE) && !jtree_is_list(n))
		return 0;
	struct acc_str text = acc_jtree_dump(n, m);
	return text.p == NULL ? acc_nomem(e) : acc_sample_text(s, role, text, e);
}

/* All of an object but some keys. What says the ids of a prompt by itself comes before what says them with their
 * log-probabilities, and lacks the first. */
int
acc_form_fields(struct sample *s, const struct jnode *o, const char *but, struct acc_err *e)
{
	int rc = 0;
	for (int late = 0; late < 2; late++)
		for (const struct jnode *n = o->child; n != NULL && rc == 0; n = n->next)
			if (acc_str_is(n->key, "prompt_logprobs") == (late == 1) &&
				!acc_word_in(but, n->key))
				rc = field(s, n, e);
	return rc;
}

int
acc_form_meta_info(struct sample *s, const struct jnode *o, struct acc_err *e)
{
	const struct jnode *out = jtree_get(o, "output_token_logprobs"),
			   *in = jtree_get(o, "input_token_logprobs"),
			   *t = jtree_get(o, "output_top_logprobs"),
			   *finish = jtree_get(o, "finish_reason");
	double x;
	int rc = 0;
	/* The ids that stand beside the log-probabilities are those that they are of. */
	if (jtree_is_list(out)) {
		s->column[SAMPLE_RESPONSE].n = 0;
		rc = triples(s, out, SAMPLE_ROLLOUT, SAMPLE_RESPONSE, e);
	}
	if (rc == 0 && jtree_is_list(in)) {
		s->column[SAMPLE_PROMPT].n = 0;
		rc = triples(s, in, SAMPLE_PROMPT_LOGP, SAMPLE_PROMPT, e);
	}
	if (rc == 0 && jtree_is_list(t))
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

/* Where each of llama.cpp's entries stands among the tokens: it leaves out those that end within a character. at[i] is
 * the entry of token i, or NULL: of none, or of one of several. */
static int
places(const struct jnode *tokens, const struct jnode *entries, const struct jnode **at,
	struct acc_arena *m, struct acc_err *e)
{
	const size_t n = tokens->n, k = entries->n;
	double *id = acc_alloc(m, (n + 1) * sizeof *id);
	const struct jnode **entry = acc_alloc(m, (k + 1) * sizeof *entry);
	size_t *first = acc_alloc(m, (k + 1) * sizeof *first), i = 0, j = 0;
	double x;
	if (id == NULL || entry == NULL || first == NULL)
		return acc_nomem(e);
	for (const struct jnode *t = tokens->child; t != NULL; t = t->next, i++)
		if (!number(t, &id[i]))
			return acc_fail(e, ACC_EFORMAT, "tokens: no list of numbers");
	for (const struct jnode *t = entries->child; t != NULL; t = t->next)
		entry[j++] = t;
	for (i = j = 0; i < n && j < k; i++)
		if (number(jtree_get(entry[j], "id"), &x) && x == id[i])
			first[j++] = i;
	if (j < k)
		return acc_fail(e, ACC_EFORMAT, "completion_probabilities are not of these tokens");
	memset(at, 0, n * sizeof *at);
	/* The last place that each may have: where that is the first, too, it is the only one. */
	for (i = n; i > 0 && j > 0; i--)
		if (number(jtree_get(entry[j - 1], "id"), &x) && x == id[i - 1] &&
			first[--j] == i - 1)
			at[i - 1] = entry[j];
	return 0;
}

static int
llama_tokens(struct sample *s, const struct jnode *tokens, const struct jnode *entries,
	struct acc_err *e)
{
	const struct jnode **at = acc_alloc(&s->mem, (tokens->n + 1) * sizeof *at);
	size_t i = 0;
	double id;
	int rc = at == NULL ? acc_nomem(e) : places(tokens, entries, at, &s->mem, e);
	for (const struct jnode *t = tokens->child; t != NULL && rc == 0; t = t->next, i++) {
		rc = number(t, &id) ? acc_sample_add(s, SAMPLE_RESPONSE, id, e) : 0;
		if (rc == 0 && at[i] != NULL) {
			rc = one(s, at[i], false, e);
		} else if (rc == 0) {
			rc = acc_sample_add(s, SAMPLE_ROLLOUT, INFINITY, e);
			if (rc == 0)
				rc = acc_sample_add(s, SAMPLE_TOP_N, 0, e);
		}
	}
	return rc;
}

/* What llama.cpp's own server answers. Its tokens are those of the response, its index is that of a slot. */
int
acc_form_llama(struct sample *s, const struct jnode *o, struct acc_err *e)
{
	const struct jnode *content = jtree_get(o, "content"), *stop = jtree_get(o, "stop_type"),
			   *tokens = jtree_get(o, "tokens"),
			   *entries = jtree_get(o, "completion_probabilities");
	double n = -1;
	int rc = acc_form_fields(s, o, "tokens index id", e);
	number(jtree_get(o, "tokens_predicted"), &n);
	if (rc == 0)
		rc = jtree_is_list(tokens) && tokens->n > 0 ? llama_tokens(s, tokens, entries, e)
							    : acc_form_chat(s, entries, n, e);
	if (rc == 0 && content != NULL && content->type == ACC_JSON_STRING)
		rc = acc_sample_text(s, SAMPLE_TEXT_RESPONSE, content->s, e);
	if (rc == 0 && stop != NULL && stop->type == ACC_JSON_STRING)
		rc = acc_sample_text(s, SAMPLE_FINISH, stop->s, e);
	return rc;
}
