/* Ids first: where two sequences part, and what that looks like. */
#include "token/token.h"

#include <inttypes.h>

const char *const acc_tok_part_rule[NPART] = {[PART_NONE] = "",
	[PART_BOS] = "ids-bos",
	[PART_PADDING] = "ids-padding",
	[PART_TEMPLATE] = "ids-template",
	[PART_GENERATION_PROMPT] = "ids-generation-prompt",
	[PART_PROMPT] = "ids-prompt",
	[PART_RETOKENISED] = "ids-retokenised",
	[PART_ENDS] = "ids-end",
	[PART_TIE] = "ids-tie",
	[PART_VOCABULARY] = "ids-vocabulary",
	[PART_OTHER] = "ids"};

static size_t
min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A name of a side, in a sentence. */
static const char *
who(int side)
{
	return side == SIDE_A ? ACC_MSG("rollout") : ACC_MSG("trainer");
}

static size_t
common(const int64_t *a, size_t na, const int64_t *b, size_t nb)
{
	size_t i = 0;
	while (i < na && i < nb && a[i] == b[i])
		i++;
	return i;
}

bool
acc_tok_offset(const struct tok_side *a, const struct tok_side *b, int64_t *off)
{
	*off = (int64_t)b->start - (int64_t)a->start;
	if (a->ids == NULL || b->ids == NULL)
		return true;
	/* All that one has been given to the other as a prompt, to be scored. */
	const size_t c = common(a->ids, a->n, b->ids, b->n);
	if (a->start > 0 && b->start > 0 &&
		(c == min(a->n, b->n) || c > (a->start > b->start ? a->start : b->start)))
		*off = 0;
	const size_t ra = a->n - a->start;
	if (a->start == 0 && b->start > 0 && b->n - b->start < ra && b->n >= ra &&
		common(a->ids, ra, b->ids + b->n - ra, ra) == ra)
		*off = (int64_t)(b->n - ra);
	return true;
}

/* The beginning of a text for people: one line of it. */
static const char *
quote(struct acc_arena *m, struct acc_str s)
{
	enum { SHOWN = 48 };
	char buf[SHOWN + 8];
	size_t n = 0;
	const bool cut = s.n > SHOWN;
	if (cut) {
		s.n = SHOWN;
		while (s.n > 0 && ((uint8_t)s.p[s.n] & 0xc0) == 0x80)
			s.n--;
	}
	for (uint32_t i = 0; i < s.n && n < SHOWN; i++)
		buf[n++] = (uint8_t)s.p[i] < 0x20 || s.p[i] == 0x7f ? ' ' : s.p[i];
	buf[n] = '\0';
	const char *p = acc_arena_printf(m, "\"%s%s\"", buf, cut ? "..." : "");
	return p == NULL ? "" : p;
}

static const char *
list(struct acc_arena *m, const int64_t *ids, size_t n)
{
	enum { SHOWN = 6 };
	const char *p = "";
	for (size_t i = 0; i < n && i < SHOWN && p != NULL; i++)
		p = acc_arena_printf(m, "%s%s%" PRId64, p, i > 0 ? " " : "", ids[i]);
	if (p != NULL && n > SHOWN)
		p = acc_arena_printf(m, "%s ...", p);
	return p == NULL ? "" : p;
}

/* Of two texts, what stands between what they have alike at the beginning and at the end. */
static struct acc_str
lacks(struct acc_str longer, struct acc_str shorter)
{
	uint32_t p = 0, s = 0;
	while (p < longer.n && p < shorter.n && longer.p[p] == shorter.p[p])
		p++;
	while (s < longer.n - p && s < shorter.n - p &&
		longer.p[longer.n - 1 - s] == shorter.p[shorter.n - 1 - s])
		s++;
	return (struct acc_str){longer.p + p, longer.n - p - s};
}

static bool
all_one(const int64_t *ids, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (ids[i] != ids[0])
			return false;
	return n > 0;
}

/* Is an escape of JSON, as \u003c, where two texts part first, that character in the other (behaviour
 * minijinja-tojson)? */
static bool
escaped(struct acc_str a, struct acc_str b)
{
	static const char *const as[] = {"\\u003c", "\\u003e", "\\u0026", "\\u0027"};
	static const char is[] = "<>&'";
	uint32_t i = 0;
	while (i < a.n && i < b.n && a.p[i] == b.p[i])
		i++;
	const struct acc_str rest[2] = {{a.p + i, a.n - i}, {b.p + i, b.n - i}};
	for (int s = 0; s < 2; s++)
		for (size_t k = 0; k < sizeof as / sizeof *as; k++)
			if (acc_str_starts(rest[s], as[k]) && rest[1 - s].n > 0 &&
				rest[1 - s].p[0] == is[k])
				return true;
	return false;
}

/* The prompts part: is one the other with a stretch more? */
static void
part_prompt(const struct tok_side *a, const struct tok_side *b, struct tok_parting *w,
	struct acc_arena *m)
{
	const struct tok_side *more = a->start >= b->start ? a : b, *less = more == a ? b : a;
	const size_t n = less->start, p = common(more->ids, more->start, less->ids, n);
	size_t s = 0;
	while (s < n - p && more->ids[more->start - 1 - s] == less->ids[n - 1 - s])
		s++;
	w->prompt = true;
	w->at = p;
	w->more = more == a ? SIDE_A : SIDE_B;
	w->extra = more->start - n;
	const struct acc_str text = lacks(more->prompt, less->prompt);
	const int64_t *extra = more->ids + p;
	const size_t k = w->extra;
	const char *ids = list(m, extra, k);
	const char *lacking = more->prompt.n > 0 && less->prompt.n > 0 && text.n > 0
				      ? acc_say(m, ", the text %s", quote(m, text))
				      : "";
	if (p + s < n || k == 0) {
		const bool texts = a->prompt.n > 0 && acc_str_eq(a->prompt, b->prompt);
		w->how = texts ? PART_RETOKENISED : PART_PROMPT;
		w->text =
			texts ? acc_say(m,
					"the prompt has the same text and other ids from position %zu on: it was"
					" tokenised anew, and in another way",
					p)
			      : acc_say(m,
					"the prompts differ from position %zu on: id %lld in the rollout, %lld in"
					" the trainer%s",
					p, p < a->start ? (long long)a->ids[p] : -1LL,
					p < b->start ? (long long)b->ids[p] : -1LL,
					escaped(a->prompt, b->prompt)
						? acc_say(m,
							  "; the chat template's tojson escaped one"
							  " text, and not the other (minijinja-tojson)")
						: "");
		return;
	}
	/* What repeats its neighbour may stand at either end of the run. */
	const bool front = p == 0 ||
			   (all_one(more->ids, p) && all_one(extra, k) && extra[0] == more->ids[0]);
	if (k == 1 && front) {
		const bool twice = more->start > 1 && more->ids[0] == more->ids[1];
		w->how = PART_BOS;
		w->text =
			twice ? acc_say(m,
					"the %s's prompt begins with id %lld twice, the other's once: the"
					" beginning of a text was added to one that had it",
					who(w->more), (long long)more->ids[0])
			      : acc_say(m,
					"the %s's prompt begins with id %lld, which the other lacks: the"
					" beginning of a text was added on one side only",
					who(w->more), (long long)more->ids[0]);
	} else if (k > 1 && all_one(extra, k) && (front || p == n)) {
		w->how = PART_PADDING;
		w->text = acc_say(m,
			"the %s's prompt has id %lld %zu times more %s: padding was taken for tokens",
			who(w->more), (long long)extra[0], k,
			front ? acc_say(m, "at its beginning") : acc_say(m, "at its end"));
	} else if (p == n) {
		w->how = PART_GENERATION_PROMPT;
		w->text = acc_say(m,
			"the %s's prompt goes on where the other's ends, by %zu ids (%s)%s: the prompt for"
			" the answer was added on one side only",
			who(w->more), k, ids, lacking);
	} else {
		w->how = PART_TEMPLATE;
		w->text = acc_say(m,
			"the %s's prompt has %zu ids more at position %zu (%s)%s: another chat template or"
			" system prompt",
			who(w->more), k, p, ids, lacking);
	}
}

/* Of the choices that a side gives for a token of its response: how far the second is behind the first. */
static double
margin(const struct tok_side *s, size_t at)
{
	size_t v = 0;
	if (at >= s->ntop || s->topn[at] < 2)
		return NAN;
	for (size_t i = 0; i < at; i++)
		v += (size_t)s->topn[i];
	return s->top[v] - s->top[v + 1];
}

/* Ids that no vocabulary has: below 0, as labels that are ignored have, or beyond all that are known. */
static bool
no_id(int64_t id)
{
	return id < 0 || id >= 1 << 24;
}

static const char *
token_text(const struct tok_side *s, size_t i, struct acc_arena *m)
{
	if (i < s->ntoken)
		return quote(m, s->token[i]);
	return "";
}

/* An id, and its text where the engine told it; "" without memory, which the arena remembers. */
static const char *
id_text(const struct tok_side *s, size_t i, int64_t id, struct acc_arena *m)
{
	const char *text = token_text(s, i, m);
	const char *both = acc_arena_printf(m, "%lld%s%s", (long long)id,
		text[0] != '\0' ? " " : "", text);
	return both == NULL ? "" : both;
}

static void
part_response(const struct tok_side *a, const struct tok_side *b, size_t na, size_t nb, size_t p,
	struct tok_parting *w, struct acc_arena *m)
{
	const bool texts = a->response.n > 0 && acc_str_eq(a->response, b->response);
	w->at = p;
	w->margin = margin(a, p);
	if (isnan(w->margin))
		w->margin = margin(b, p);
	if (p == na || p == nb) {
		const struct tok_side *longer = na > nb ? a : b, *shorter = na > nb ? b : a;
		w->how = PART_ENDS;
		w->more = longer == a ? SIDE_A : SIDE_B;
		w->extra = (na > nb ? na : nb) - p;
		const int64_t *rest = longer->ids != NULL ? longer->ids + longer->start + p : NULL;
		const char *why = shorter->finish.n > 0
					  ? acc_say(m, "; it says %s", quote(m, shorter->finish))
					  : "";
		if (w->extra == 1 && rest != NULL)
			w->text = acc_say(m,
				"the %s's response has one id more, %lld, its last: the end token is counted"
				" on one side only, or a stop string was cut%s",
				who(w->more), (long long)rest[0], why);
		else
			w->text = acc_say(m,
				"the %s's response ends after %zu tokens, the other goes on for %zu: a limit of"
				" length, an end token or a stop string%s",
				who(1 - w->more), p, w->extra, why);
		return;
	}
	const int64_t x = a->ids != NULL ? a->ids[a->start + p] : -1,
		      y = b->ids != NULL ? b->ids[b->start + p] : -1;
	if (a->ids != NULL && b->ids != NULL && no_id(x) != no_id(y)) {
		w->how = PART_VOCABULARY;
		w->text = acc_say(m,
			"id %lld in the %s at token %zu of the response is beyond any vocabulary",
			(long long)(no_id(x) ? x : y), who(no_id(x) ? SIDE_A : SIDE_B), p);
	} else if (texts) {
		w->how = PART_RETOKENISED;
		w->text = acc_say(m,
			"the response has the same text and other ids from token %zu on (%s in the rollout,"
			" %s in the trainer): it was tokenised anew, and in another way",
			p, id_text(a, p, x, m), id_text(b, p, y, m));
	} else {
		w->how = PART_OTHER;
		w->text =
			a->ids != NULL && b->ids != NULL
				? acc_say(m,
					  "the responses part at token %zu: id %s in the rollout, %s in the"
					  " trainer",
					  p, id_text(a, p, x, m), id_text(b, p, y, m))
				: acc_say(m,
					  "the responses part at token %zu: %s in the rollout, %s in the trainer",
					  p, token_text(a, p, m), token_text(b, p, m));
	}
}

/* How many tokens of the responses are the same, by ids or texts. */
static size_t
same_tokens(const struct tok_side *a, const struct tok_side *b, size_t na, size_t nb, int64_t off)
{
	size_t p = 0;
	if (a->ids != NULL && b->ids != NULL)
		return common(a->ids + a->start, na, b->ids + ((int64_t)a->start + off), nb);
	if (a->ntoken == na && b->ntoken == nb) {
		while (p < na && p < nb && acc_str_eq(a->token[p], b->token[p]))
			p++;
		return p;
	}
	/* One side tells no ids: the texts are the same, and so is how many tokens they are. */
	if (na == nb && a->response.n > 0 && acc_str_eq(a->response, b->response))
		return na;
	return SIZE_MAX;
}

struct tok_parting
acc_tok_parting(const struct tok_side *a, const struct tok_side *b, int64_t off, size_t *same,
	struct acc_arena *m)
{
	struct tok_parting w = {.margin = NAN};
	*same = 0;
	if (a->n == 0 || b->n == 0) { /* texts alone */
		const bool differ = a->response.n > 0 && b->response.n > 0 &&
				    !acc_str_eq(a->response, b->response);
		if (differ) {
			const struct acc_str x = lacks(a->response, b->response),
					     y = lacks(b->response, a->response);
			w.how = PART_OTHER;
			w.at = (size_t)(x.p - a->response.p);
			w.text = acc_say(m,
				"the texts part at byte %zu: %s in the rollout, %s in the trainer",
				w.at, quote(m, x), quote(m, y));
		}
		return w;
	}
	if (a->ids != NULL && b->ids != NULL && a->start > 0 && b->start > 0 &&
		off == (int64_t)b->start - (int64_t)a->start &&
		(a->start != b->start || common(a->ids, a->start, b->ids, b->start) < a->start)) {
		part_prompt(a, b, &w, m);
		return w;
	}
	const int64_t from = (int64_t)a->start + off;
	if (from < 0 || (uint64_t)from > b->n)
		return w;
	const size_t na = a->n - a->start, nb = b->n - (size_t)from,
		     p = same_tokens(a, b, na, nb, off);
	if (p == SIZE_MAX) {
		*same = SIZE_MAX;
		return w;
	}
	*same = p;
	if (p < na || p < nb) {
		part_response(a, b, na, nb, p, &w, m);
		w.at = p;
	}
	return w;
}
