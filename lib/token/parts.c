/* Causes that a part of the samples, or of the positions, has: the others are as they should be. */
#include "token/token.h"
#include "token/limits.h"
#include "base/order.h"

#include <stdlib.h>

double
acc_tok_rms(double s2, double n)
{
	return n > 0 ? sqrt(s2 / n) : 0;
}

struct tok_finding *
acc_tok_named(struct acc_tokens *t, const char *rule, size_t sample, double left)
{
	struct tok_finding *f = acc_tok_find(t, "culprit", rule);
	if (f == NULL)
		return NULL;
	f->sample = sample;
	f->value = acc_tok_rms(t->all.s2, t->all.n);
	f->limit = left;
	f->limit_from = ACC_MSG("left without this cause");
	return f;
}

/* Is a difference of this size, over n tokens, what noise has? */
bool
acc_tok_small(const struct acc_tokens *t, double s2, double n)
{
	return acc_tok_rms(s2, n) <= t->limit;
}

size_t
acc_tok_worst(const struct acc_tokens *t)
{
	size_t w = SIZE_MAX;
	for (size_t i = 0; i < t->n; i++)
		if (t->sum[i].n > 0 && (w == SIZE_MAX || fabs((double)t->sum[i].max) >
								 fabs((double)t->sum[w].max)))
			w = i;
	return w;
}

/* --- a part of the samples --- */

struct feature {
	const char *rule;
	const char *which, *what;                /* samples these are, and what they say */
	uint64_t (*of)(const struct tok_sum *s); /* 0: not known */
};

static uint64_t
versions(const struct tok_sum *s)
{
	return s->flags & FLAG_HAS_VERSION ? 1 + !(s->flags & FLAG_VERSIONS) : 0;
}

static uint64_t
version(const struct tok_sum *s)
{
	return s->version;
}

static uint64_t
rank(const struct tok_sum *s)
{
	return s->rank[SIDE_B] < 0 ? 0 : (uint64_t)s->rank[SIDE_B] + 1;
}

static uint64_t
rank_of_rollout(const struct tok_sum *s)
{
	return s->rank[SIDE_A] < 0 ? 0 : (uint64_t)s->rank[SIDE_A] + 1;
}

static uint64_t
cached(const struct tok_sum *s)
{
	return s->cached < 0 ? 0 : 1 + (s->cached == 0);
}

static uint64_t
padded(const struct tok_sum *s)
{
	return 1 + (s->pad == 0);
}

static uint64_t
later(const struct tok_sum *s)
{
	return s->group == 0 ? 0 : 1 + !(s->flags & FLAG_LATER);
}

static uint64_t
finish(const struct tok_sum *s)
{
	return s->finish;
}

static uint64_t
step(const struct tok_sum *s)
{
	return s->step < 0 ? 0 : (uint64_t)s->step + 1;
}

enum { NWITHIN = 5 }; /* the first of these */
static const struct feature features[] = {
	{"stale", ACC_MSG("those of which the two sides name other versions of the weights"),
		ACC_MSG("stale weights"), versions},
	{"stale", ACC_MSG("those by weights of another version than the rest"),
		ACC_MSG("stale weights"), version},
	{"rank", ACC_MSG("those of one rank or of some ranks"),
		ACC_MSG("what these ranks compute, or hold"), rank},
	{"rank", ACC_MSG("those of one rank or of some ranks"),
		ACC_MSG("what these ranks compute, or hold"), rank_of_rollout},
	{"prefix-cache", ACC_MSG("those of whose prompt something was in the cache"),
		ACC_MSG("the prefix cache"), cached},
	{"padding", ACC_MSG("those that were padded before the prompt"),
		ACC_MSG("padding, or positions that count it"), padded},
	{"prefix-cache", ACC_MSG("those whose prompt an earlier sample had"),
		ACC_MSG("the prefix cache"), later},
	{"finish", ACC_MSG("those that ended in one way (finish)"), ACC_MSG("aborted and resumed?"),
		finish},
	{"step", ACC_MSG("those of some steps"), ACC_MSG("something changed between steps"), step},
};

struct keyed {
	uint64_t key;
	double s2, n;
	size_t samples, at;
};

ACC_ORDER_2(by_key, struct keyed, key, at)

/* How many ways there are to choose k of n; enough where it is past 1,000. */
static double
ways(size_t n, size_t k)
{
	double w = 1;
	for (size_t i = 0; i < k && i < n - k && w < 1e3; i++)
		w *= (double)(n - i) / (double)(i + 1);
	return w;
}

/* Samples of some values are at fault, and those of the others are not. */
static bool
parts(struct acc_tokens *t, const struct feature *ft, struct keyed *v, double limit, double apart)
{
	size_t n = 0, groups = 0, bad = 0, good = 0, off = 0, first = SIZE_MAX;
	double s2 = 0, m = 0, rest2 = 0, restm = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct tok_sum *s = &t->sum[i];
		const uint64_t key = s->n == 0 ? 0 : ft->of(s);
		if (s->n > 0 && key == 0)
			return false;
		if (s->n > 0)
			v[n++] = (struct keyed){key, s->s2, s->n, 1, i};
	}
	if (n < 4)
		return false;
	qsort(v, n, sizeof *v, by_key);
	uint64_t number = 0;
	bool one = true;
	const double base = acc_tok_rms(t->all.s2, t->all.n), edge = fmax(limit, base / TOK_APART);
	for (size_t i = 0; i < n; groups++) {
		struct keyed g = v[i];
		size_t over = g.n > 0 && acc_tok_rms(g.s2, g.n) > edge, k = i + 1;
		for (; k < n && v[k].key == v[i].key; k++) {
			g.s2 += v[k].s2;
			g.n += v[k].n;
			over += acc_tok_rms(v[k].s2, v[k].n) > edge;
		}
		if (acc_tok_rms(g.s2, g.n) > edge) {
			first = first == SIZE_MAX ? v[i].at : first;
			one = bad == 0;
			number = v[i].key - 1;
			bad += k - i;
			off += k - i - over;
			s2 += g.s2;
			m += g.n;
		} else {
			good += k - i;
			off += over;
			rest2 += g.s2;
			restm += g.n;
		}
		i = k;
	}
	const double x = acc_tok_rms(s2, m), y = acc_tok_rms(rest2, restm);
	if (bad == 0 || good == 0 || groups > 64 || x < apart * y || off * 10 > n ||
		ways(n, bad) < 100)
		return false;
	struct tok_finding *f = acc_tok_named(t, ft->rule, first, y);
	if (f == NULL)
		return true;
	const char *which = strcmp(ft->rule, "rank") == 0 && one
				    ? acc_say(&t->mem, "those of rank %llu",
					      (unsigned long long)number)
				    : acc_say(&t->mem, "%s", ft->which);
	f->text = acc_say(&t->mem,
		"%zu of %zu samples, %s, have %.3g (root mean square), the others %.3g: %s", bad, n,
		which, x, y, ft->what);
	return true;
}

static bool
any_part(struct acc_tokens *t, size_t nfeatures, double limit, double apart)
{
	struct keyed *v = calloc(t->n + 1, sizeof *v);
	bool found = false;
	if (v == NULL) {
		t->mem.lost = true;
		return false;
	}
	for (size_t i = 0; i < nfeatures && !found; i++)
		found = parts(t, &features[i], v, limit, apart);
	free(v);
	return found;
}

bool
acc_tok_groups(struct acc_tokens *t)
{
	return any_part(t, sizeof features / sizeof *features, t->limit, TOK_APART);
}

bool
acc_tok_within(struct acc_tokens *t)
{
	/* How a sample ended, and its length, go with how sure its tokens are, and so with the size of noise: of
	 * these it is not asked. */
	return any_part(t, NWITHIN, 0, TOK_WITHIN);
}

static int
by_size(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;
	const double p = acc_tok_rms(a->s2, a->n), q = acc_tok_rms(b->s2, b->n);
	return p != q ? (p > q ? -1 : 1) : (a->at > b->at) - (a->at < b->at);
}

bool
acc_tok_samples(struct acc_tokens *t)
{
	struct keyed *v = calloc(t->n + 1, sizeof *v);
	size_t n = 0, k = 0, single = 0;
	double s2 = 0, m = 0;
	if (v == NULL) {
		t->mem.lost = true;
		return false;
	}
	for (size_t i = 0; i < t->n; i++)
		if (t->sum[i].n > 0)
			v[n++] = (struct keyed){0, t->sum[i].s2, t->sum[i].n, 1, i};
	qsort(v, n, sizeof *v, by_size);
	const double edge = fmax(t->limit, acc_tok_rms(t->all.s2, t->all.n) / TOK_APART);
	while (k < n && acc_tok_rms(v[k].s2, v[k].n) > edge) {
		const struct tok_sum *s = &t->sum[v[k].at];
		/* One token alone is no sample. */
		single += s->n < 2 || acc_tok_rms(fmax(s->s2 - (double)s->max * (double)s->max, 0),
					      s->n - 1) <= edge;
		s2 += v[k].s2;
		m += v[k].n;
		k++;
	}
	const double x = acc_tok_rms(s2, m),
		     y = acc_tok_rms(t->all.s2 - s2 > 0 ? t->all.s2 - s2 : 0, t->all.n - m);
	const bool found = k > 0 && k * 4 <= n && n >= 4 && x >= TOK_APART * y &&
			   acc_tok_small(t, y * y, 1) && 2 * single < k;
	struct tok_finding *f = found ? acc_tok_named(t, "samples", v[0].at, y) : NULL;
	if (f != NULL)
		f->text = acc_say(&t->mem,
			"%zu of %zu samples have %.3g (root mean square), the others %.3g: something happened to these"
			" alone (aborted and resumed, put off, of older weights)",
			k, n, x, y);
	free(v);
	return found;
}

/* --- from a position on --- */

struct change {
	size_t at;
	double before, after, score, gain;
	bool found;
};

/* Where two stretches of one variance each explain best what the positions have. */
static struct change
change(const struct acc_tokens *t, const struct tok_cell *c, size_t n)
{
	enum {
		LEAST = 24,
		FIRST = 8
	}; /* tokens on either side; what the first tokens have is no stretch */
	struct change w = {.score = INFINITY};
	double all2 = 0, alln = 0, s2 = 0, m = 0;
	const double floor2 = (t->limit / 8) * (t->limit / 8) + 1e-24;
	for (size_t i = 0; i < n; i++) {
		all2 += c[i].s2;
		alln += c[i].n;
	}
	const double whole = alln * log(all2 / (alln > 0 ? alln : 1) + floor2);
	for (size_t i = 0; i + 1 < n; i++) {
		s2 += c[i].s2;
		m += c[i].n;
		const double r2 = all2 - s2 > 0 ? all2 - s2 : 0, k = alln - m;
		if (m < LEAST || k < LEAST || i + 1 < FIRST || n - i - 1 < FIRST)
			continue;
		const double score = m * log(s2 / m + floor2) + k * log(r2 / k + floor2);
		if (score < w.score) {
			w.score = score;
			w.at = i + 1;
			w.before = acc_tok_rms(s2, m);
			w.after = acc_tok_rms(r2, k);
		}
	}
	w.gain = whole - w.score;
	w.found = isfinite(w.score) && w.gain > 40;
	return w;
}

/* Of the samples that have tokens in the stretch at fault, do nearly all show it? Else it is these samples. */
static bool
in_all(const struct acc_tokens *t, const struct change *c, bool whole, bool later, double x)
{
	enum { LEAST = 8 };
	size_t n = 0, without = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct tok_sum *s = &t->sum[i];
		const size_t from = whole ? s->start : 0, to = from + s->tokens;
		const size_t begin = later && c->at > from ? c->at : from,
			     end = later || c->at > to ? to : c->at;
		if (s->n == 0 || end < begin + LEAST)
			continue;
		n++;
		without += acc_tok_rms(s->s2, (double)(end - begin)) < x / TOK_APART;
	}
	return without * 10 <= n;
}

bool
acc_tok_position(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	struct change p = change(t, w->place, w->nplace), q = change(t, w->end, w->nend);
	const bool whole = q.found && (!p.found || q.gain > p.gain);
	const struct change *c = whole ? &q : &p;
	if (!c->found)
		return false;
	const bool later = c->after > c->before;
	const double x = later ? c->after : c->before, y = later ? c->before : c->after;
	if (x < TOK_APART * y || !acc_tok_small(t, y * y, 1) || !in_all(t, c, whole, later, x))
		return false;
	struct tok_finding *f = acc_tok_named(t, "position", acc_tok_worst(t), y);
	if (f == NULL)
		return true;
	f->at = (int64_t)c->at;
	f->text =
		later ? acc_say(&t->mem,
				"from position %zu of %s on it is %.3g (root mean square), before %.3g: a limit of context,"
				" positions (rope), a block of the cache, prefill in chunks",
				c->at,
				whole ? acc_say(&t->mem, "prompt and response")
				      : acc_say(&t->mem, "the response"),
				x, y)
		      : acc_say(&t->mem,
				"up to position %zu of %s it is %.3g (root mean square), from there on %.3g: what comes"
				" first is computed in another way (prefill, a window)",
				c->at,
				whole ? acc_say(&t->mem, "prompt and response")
				      : acc_say(&t->mem, "the response"),
				x, y);
	return true;
}
