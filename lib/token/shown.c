/* Of the worst samples, the tokens around the one that is farthest off, to be shown. Only a sample that is among
 * the worst ten so far is copied. */
#include "token/token.h"

/* The worse sample first; of two that are as bad, the one that came first. */
int
acc_tok_by_worst(const void *x, const void *y, void *arg)
{
	const struct acc_tokens *t = arg;
	const struct tok_sum *a = &t->sum[*(const size_t *)x], *b = &t->sum[*(const size_t *)y];
	const double p = a->n > 0 ? a->s2 / a->n : -1, q = b->n > 0 ? b->s2 / b->n : -1;
	if (p != q)
		return p > q ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* Where a sample goes that is worse than one that is kept; NULL: nowhere. */
static struct tok_shown *
place(struct acc_tokens *t, size_t sample)
{
	struct tok_shown *best = NULL;
	if (t->nshown < TOK_WORST)
		return &t->shown[t->nshown++];
	for (size_t i = 0; i < TOK_WORST; i++)
		if (best == NULL || acc_tok_by_worst(&t->shown[i].sample, &best->sample, t) > 0)
			best = &t->shown[i];
	return acc_tok_by_worst(&sample, &best->sample, t) < 0 ? best : NULL;
}

/* A number as streams have it, little-endian. */
static void
store(uint8_t *p, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	for (int k = 0; k < 8; k++)
		p[k] = (uint8_t)(bits >> 8 * k);
}

/* The beginning of a token's text, whole characters of it. */
static int
put_text(struct tok_shown *w, size_t i, struct acc_str s)
{
	uint32_t n = s.n;
	if (n > TOK_TEXT) {
		n = TOK_TEXT;
		while (n > 0 && ((uint8_t)s.p[n] & 0xc0) == 0x80)
			n--;
	}
	w->len[i] = (uint8_t)n;
	return acc_buf_add(&w->texts, s.p, n);
}

static bool
counted(const struct tok_side *s, size_t i)
{
	return (s->mask == NULL || s->mask[i]) && isfinite(s->logp[i]);
}

int
acc_tok_show(struct acc_tokens *t, const struct tok_sum *s, const struct tok_side *a,
	const struct tok_side *b, int64_t off, size_t same, struct acc_err *e)
{
	const size_t sample = s->order, ib = s->n == 0 ? 0 : (size_t)((int64_t)a->start + off);
	struct tok_shown *w = s->n == 0 ? NULL : place(t, sample);
	if (w == NULL)
		return 0;
	const size_t half = TOK_SHOWN / 2, last = same > TOK_SHOWN ? same - TOK_SHOWN : 0,
		     from = s->max_at < half ? 0 : s->max_at - half;
	w->sample = sample;
	w->from = from < last ? from : last;
	w->n = same < TOK_SHOWN ? same : TOK_SHOWN;
	w->has_ids = a->ids != NULL || b->ids != NULL;
	w->texts.n = 0;
	/* The texts are of responses, which may begin elsewhere on the other side. */
	const bool at_a = a->ntoken >= same,
		   at_b = ib >= b->start && b->ntoken >= ib - b->start + same;
	w->has_texts = at_a || at_b;
	for (size_t i = 0; i < w->n; i++) {
		const size_t at = w->from + i, x = a->start + at, y = ib + at;
		const bool both = counted(a, x) && counted(b, y);
		w->id[i] = a->ids != NULL ? a->ids[x] : b->ids != NULL ? b->ids[y] : 0;
		store(w->logp[SIDE_A] + 8 * i, both ? a->logp[x] : (double)NAN);
		store(w->logp[SIDE_B] + 8 * i, both ? b->logp[y] : (double)NAN);
		if (w->has_texts &&
			put_text(w, i, at_a ? a->token[at] : b->token[y - b->start]) < 0)
			return acc_nomem(e);
	}
	return 0;
}

int
acc_tok_put_shown(struct acc_tokens *t, const struct tok_sum *s)
{
	static const char *const keys[NSIDE] = {"tok.logp_a", "tok.logp_b"};
	const struct tok_shown *w = NULL;
	struct acc_rec *r = &t->out;
	struct acc_str text[TOK_SHOWN];
	for (size_t i = 0; i < t->nshown && w == NULL; i++)
		w = t->shown[i].sample == s->order ? &t->shown[i] : NULL;
	if (w == NULL)
		return 0;
	int rc = acc_add(r, "", "tok.from", acc_int((int64_t)w->from));
	if (rc == 0 && w->has_ids)
		rc = acc_add(r, "", "tok.ids", acc_ints(w->id, (uint32_t)w->n));
	const char *p = (const char *)w->texts.p;
	for (size_t i = 0; i < w->n && w->has_texts; p += w->len[i++])
		text[i] = (struct acc_str){p, w->len[i]};
	if (rc == 0 && w->has_texts)
		rc = acc_add(r, "", "tok.texts", acc_texts(text, (uint32_t)w->n));
	for (int k = 0; k < NSIDE && rc == 0; k++) {
		const struct acc_val v = {.type = ACC_V_BIN,
			.s = {(const char *)w->logp[k], (uint32_t)(8 * w->n)}};
		rc = acc_add(r, "", keys[k], v);
	}
	return rc;
}

void
acc_tok_shown_release(struct acc_tokens *t)
{
	for (size_t i = 0; i < TOK_WORST; i++)
		acc_buf_release(&t->shown[i].texts);
}
