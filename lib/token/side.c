/* A sample out of its record. A stream is not to be believed: every length is checked. */
#include "token/token.h"

#include <stdlib.h>

static double
load(const uint8_t *p, bool narrow)
{
	uint64_t bits = 0;
	double d;
	float f;
	for (int k = narrow ? 3 : 7; k >= 0; k--)
		bits = bits << 8 | p[k];
	const uint32_t low = (uint32_t)bits;
	memcpy(&f, &low, sizeof f);
	memcpy(&d, &bits, sizeof d);
	return narrow ? (double)f : d;
}

/* n numbers, of 32 or 64 bits as their length says. *out grows. */
static int
floats(const struct acc_val *v, size_t n, double **out, size_t *room, struct acc_err *e)
{
	if (v == NULL || v->type != ACC_V_BIN || n == 0)
		return 0;
	const bool narrow = v->s.n == n * 4;
	if (!narrow && v->s.n != n * 8)
		return acc_fail(e, ACC_EFORMAT, "a sample of %zu tokens with %u bytes of numbers",
			n, v->s.n);
	if (!ACC_ROOM(*out, *room, n, e))
		return ACC_ENOMEM;
	double *p = *out;
	for (size_t i = 0; i < n; i++)
		p[i] = load((const uint8_t *)v->s.p + i * (narrow ? 4 : 8), narrow);
	return 1;
}

static const struct acc_val *
ints(const struct acc_rec *r, const char *prefix, const char *key)
{
	const struct acc_val *v = acc_get(r, prefix, key);
	return v != NULL && v->type == ACC_V_INTS ? v : NULL;
}

/* How many tokens: as many as any column has. */
static size_t
count(const struct acc_rec *r, const char *prefix, const struct tok_side *s)
{
	static const char *const keys[] = {"logp.rollout", "logp.train", "logp.ref"};
	const struct acc_val *v = acc_get(r, prefix, "mask");
	if (s->ids != NULL)
		return s->n;
	if (v != NULL && v->type == ACC_V_BIN)
		return v->s.n;
	if (s->ntoken > 0)
		return s->start + s->ntoken;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		v = acc_get(r, prefix, keys[i]);
		if (v != NULL && v->type == ACC_V_BIN)
			return v->s.n / (v->s.n % 8 == 0 ? 8 : 4);
	}
	return 0;
}

static int
columns(struct tok_side *s, const struct acc_rec *r, const char *prefix, int column,
	struct acc_err *e)
{
	static const char *const keys[2][3] = {{"logp.rollout", "logp.train", "logp.ref"},
		{"logp.train", "logp.rollout", "logp.ref"}};
	size_t have = 0;
	int rc = 0;
	s->single = true;
	for (int i = 0; i < 3 && rc >= 0; i++) {
		const struct acc_val *v = acc_get(r, prefix, keys[column][i]);
		if (v == NULL)
			continue;
		if (have++ == 0)
			rc = floats(v, s->n, &s->logp, &s->room, e);
		else if (i < 2)
			s->single = false;
	}
	if (have == 0 || s->n == 0) {
		free(s->logp);
		s->logp = NULL;
		s->room = 0;
	}
	return rc < 0 ? rc : 0;
}

static int
choices(struct tok_side *s, const struct acc_rec *r, const char *prefix, struct acc_err *e)
{
	const struct acc_val *n = ints(r, prefix, "top.n"), *id = ints(r, prefix, "top.ids"),
			     *v = acc_get(r, prefix, "top.logp");
	uint64_t all = 0;
	s->topn = s->topid = NULL;
	s->ntop = s->ntopv = 0;
	if (n == NULL || v == NULL || n->n != s->n - s->start)
		return 0;
	for (uint32_t i = 0; i < n->n; i++) {
		if (n->ints[i] < 0 || n->ints[i] > ACC_MAX_RECORD)
			return acc_fail(e, ACC_EFORMAT, "a token with %lld choices",
				(long long)n->ints[i]);
		all += (uint64_t)n->ints[i];
	}
	if (all > ACC_MAX_RECORD)
		return acc_fail(e, ACC_EFORMAT, "more choices than a record holds");
	int rc = floats(v, (size_t)all, &s->top, &s->top_room, e);
	if (rc <= 0)
		return rc;
	s->ntopv = (size_t)all;
	s->topn = n->ints;
	s->ntop = n->n;
	s->topid = id != NULL && id->n == all ? id->ints : NULL;
	return 0;
}

int
acc_tok_side_read(struct tok_side *s, const struct acc_rec *r, const char *prefix, int column,
	struct acc_err *e)
{
	const struct acc_val *ids = ints(r, prefix, "ids"), *texts = acc_get(r, prefix, "tokens"),
			     *mask = acc_get(r, prefix, "mask");
	const int64_t start = acc_get_int(r, prefix, "start", 0);
	struct tok_side keep = *s;
	*s = (struct tok_side){.logp = keep.logp,
		.room = keep.room,
		.top = keep.top,
		.top_room = keep.top_room};
	s->is = true;
	s->name = acc_get_text(r, prefix, "name");
	s->sample = acc_get_text(r, prefix, "sample");
	s->group = acc_get_text(r, prefix, "group");
	s->version = acc_get_text(r, prefix, "version");
	s->finish = acc_get_text(r, prefix, "finish");
	s->prompt = acc_get_text(r, prefix, "prompt");
	s->response = acc_get_text(r, prefix, "response");
	s->step = acc_get_int(r, prefix, "step", -1);
	s->rank = acc_get_int(r, prefix, "rank", -1);
	s->cached = acc_get_int(r, prefix, "cached", -1);
	s->pad = acc_get_int(r, prefix, "pad", 0);
	s->counted = acc_get_int(r, prefix, "counted.pad", 0);
	s->ids = ids == NULL ? NULL : ids->ints;
	s->n = ids == NULL ? 0 : ids->n;
	if (texts != NULL && texts->type == ACC_V_TEXTS) {
		s->token = texts->texts;
		s->ntoken = texts->n;
	}
	s->start = start < 0 ? 0 : (size_t)start;
	s->n = count(r, prefix, s);
	if (s->start > s->n || s->n > ACC_MAX_RECORD)
		return acc_fail(e, ACC_EFORMAT, "a prompt of %zu in %zu tokens", s->start, s->n);
	if (s->ids == NULL && s->ntoken > 0 && s->ntoken != s->n - s->start)
		return acc_fail(e, ACC_EFORMAT, "%zu texts for %zu tokens", s->ntoken,
			s->n - s->start);
	if (mask != NULL && mask->type == ACC_V_BIN) {
		if (mask->s.n != s->n)
			return acc_fail(e, ACC_EFORMAT, "a mask of %u for %zu tokens", mask->s.n,
				s->n);
		s->mask = (const uint8_t *)mask->s.p;
	}
	int rc = columns(s, r, prefix, column, e);
	return rc < 0 ? rc : choices(s, r, prefix, e);
}

void
acc_tok_side_release(struct tok_side *s)
{
	free(s->logp);
	free(s->top);
	*s = (struct tok_side){0};
}
