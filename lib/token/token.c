#include "token/token.h"
#include "token/limits.h"

#include <stdlib.h>

const struct acc_token_preset acc_token_presets[] = {
	{"bf16", "heads, or models, in bf16 on either side (default)", 0x1p-9},
	{"fp16", "heads, or models, in fp16", 0x1p-12},
	{"fp32", "both sides in fp32, other kernels", 0x1p-18},
	{"fp8", "a model in fp8 on one side", 0x1p-7},
	{"exact", "bit for bit, as kernels that do not depend on the batch give", 0},
};
const size_t acc_ntoken_presets = sizeof acc_token_presets / sizeof *acc_token_presets;

const struct acc_limit acc_token_limits[] = {
	{"noise", TOK_NOISE,
		"root mean square of l, times the preset's unit and the range of logits",
		"twice what models in bf16 have against fp32, tests/RESULTS.md"},
	{"noise-run", TOK_NOISE_RUN, "root mean square of l, times that of --noise",
		"twice what one side differs by from itself"},
	{"one", TOK_ONE, "l of one token, times what all may have",
		"the tails of rounding, tests/RESULTS.md"},
	{"tie", TOK_TIE, "first and second choice, times the unit and the range of logits",
		"four times the noise of one log-probability: two logits of two sides, of many tokens"},
	{"share", TOK_SHARE, "of the sum of squares that a few tokens own where they are the cause",
		"what leaves more is not the only cause"},
	{"fit", TOK_FIT, "of the sum of squares that a temperature leaves, at most",
		"0.05 to 0.27 of temperatures, 0.48 and more of all else, tests/RESULTS.md"},
	{"seen", TOK_SEEN,
		"of the sum of squares that is told by how often an id came before, at least",
		"0.5 to 0.7 of penalties, 0.03 of all else whose means have two signs, tests/RESULTS.md"},
	{"kept", TOK_KEPT,
		"-log of the least share of the probability that top-p, top-k or min-p keep",
		"the likeliest token is always kept: a twentieth; routing that differs has far less"},
	{"apart", TOK_APART, "times as far off as the rest is a part at fault", "tests/RESULTS.md"},
	{"within", TOK_WITHIN,
		"the same within what noise may be: of versions, ranks and the cache alone",
		"noise has one size in each, tests/RESULTS.md"},
	{"mean", TOK_MEAN, "standard errors of a mean that is not noise's",
		"two in a billion by chance"},
};
const size_t acc_ntoken_limits = sizeof acc_token_limits / sizeof *acc_token_limits;

struct acc_tokens *
acc_tokens_open(const struct acc_token_opt *opt, struct acc_err *e)
{
	struct acc_tokens *t = calloc(1, sizeof *t);
	if (t == NULL) {
		acc_nomem(e);
		return NULL;
	}
	t->opt = *opt;
	if (acc_tok_all_open(&t->all, e) < 0 || acc_tok_all_open(&t->noise, e) < 0) {
		acc_tokens_close(t);
		return NULL;
	}
	if (opt->by == ACC_TOKEN_VALUE)
		t->all.both = calloc((size_t)TOK_VALUES * TOK_VALUES, sizeof *t->all.both);
	if (opt->by == ACC_TOKEN_VALUE && t->all.both == NULL) {
		acc_nomem(e);
		acc_tokens_close(t);
		return NULL;
	}
	return t;
}

void
acc_tokens_close(struct acc_tokens *t)
{
	if (t == NULL)
		return;
	for (int i = 0; i < NSIDE; i++)
		acc_tok_side_release(&t->side[i]);
	acc_tok_shown_release(t);
	acc_tok_all_close(&t->all);
	acc_tok_all_close(&t->noise);
	free(t->sum);
	free(t->seen.slot);
	free(t->worst);
	free(t->steps);
	acc_ids_release(&t->by_step);
	acc_buf_release(&t->names);
	acc_map_release(&t->prompts);
	acc_arena_release(&t->mem);
	acc_arena_release(&t->one);
	acc_rec_release(&t->out);
	free(t);
}

struct tok_finding *
acc_tok_find(struct acc_tokens *t, const char *what, const char *rule)
{
	if (t->nfinding == sizeof t->finding / sizeof *t->finding)
		return NULL;
	struct tok_finding *f = &t->finding[t->nfinding++];
	*f = (struct tok_finding){.what = what,
		.rule = rule,
		.sample = SIZE_MAX,
		.at = -1,
		.value = NAN,
		.limit = NAN};
	return f;
}

struct acc_str
acc_tok_name(const struct acc_tokens *t, size_t sample)
{
	const struct tok_sum *s = &t->sum[sample];
	/* Where no sample has a name, there are none. */
	return s->name_n == 0 ? ACC_STR("")
			      : (struct acc_str){(const char *)t->names.p + s->name, s->name_n};
}

/* --- taking samples --- */

static uint64_t
hash(struct acc_str s)
{
	const uint64_t h = s.n == 0 ? 0 : acc_hash(s.p, s.n);
	return s.n > 0 && h == 0 ? 1 : h;
}

/* One side scored all of the other as a prompt. */
static void
as_scored(struct tok_side *a, struct tok_side *b, int64_t off)
{
	struct tok_side *score = b->start > a->start ? b : a, *gen = score == b ? a : b;
	if (off != 0 || score->start == gen->start || score->start < gen->n)
		return;
	score->start = gen->start;
	score->n = gen->n;
	score->ntop = 0;
}

static int
note_sample(struct acc_tokens *t, const struct tok_side *a, const struct tok_side *b,
	struct acc_err *e)
{
	if (!ACC_ROOM(t->sum, t->cap, t->n + 1, e))
		return ACC_ENOMEM;
	struct tok_sum *p = t->sum;
	p += t->n;
	const struct acc_str name = a->sample.n > 0   ? a->sample
				    : b->sample.n > 0 ? b->sample
						      : a->name;
	*p = (struct tok_sum){.name = t->names.n,
		.name_n = name.n > 200 ? 200 : name.n,
		.order = (uint32_t)t->n,
		.step = a->step >= 0 ? a->step : b->step,
		.rank = {a->rank, b->rank},
		.cached = a->cached >= 0 ? a->cached : b->cached,
		.pad = a->pad > b->pad ? a->pad : b->pad,
		.version = hash(a->version),
		.finish = hash(a->finish.n > 0 ? a->finish : b->finish),
		.start = (uint32_t)a->start,
		.tokens = (uint32_t)(a->n - a->start)};
	if (a->version.n > 0 && b->version.n > 0)
		p->flags |= FLAG_HAS_VERSION |
			    (acc_str_eq(a->version, b->version) ? 0 : FLAG_VERSIONS);
	/* Whose prompt came before? */
	const struct tok_side *s = a->ids != NULL && a->start > 0 ? a : b;
	const uint64_t h = s->ids != NULL && s->start > 0
				   ? acc_hash(s->ids, s->start * sizeof *s->ids)
				   : hash(a->prompt.n > 0 ? a->prompt : b->prompt);
	if (h != 0) {
		const size_t before = t->prompts.n;
		if (acc_map_put(&t->prompts, (struct acc_str){(const char *)&h, sizeof h}, 0) ==
			NULL)
			return acc_nomem(e);
		p->group = h;
		p->flags |= t->prompts.n == before ? FLAG_LATER : 0;
	}
	if (acc_buf_add(&t->names, name.p, p->name_n) < 0)
		return acc_nomem(e);
	t->n++;
	return 0;
}

static int
note_parting(struct acc_tokens *t, struct tok_sum *s, struct tok_parting *w, struct acc_err *e)
{
	/* Two choices as good as the same, by rounding. */
	const double range = fmin(fmax(4, -(double)s->low), 8),
		     tie = TOK_TIE * t->opt.preset->unit * range;
	if (w->how == PART_OTHER && w->margin <= tie) {
		w->how = PART_TIE;
		w->text = acc_say(&t->one,
			"greedy generations part at token %zu, where the first choice is %.3g before the second: a tie,"
			" within what rounding does (%.3g)",
			w->at, w->margin, tie);
	}
	s->parted = (uint8_t)w->how;
	s->parted_at = (uint32_t)w->at;
	struct tok_first *f = &t->part[w->how];
	if (w->how == PART_NONE || f->n++ > 0)
		return 0;
	f->sample = s->order;
	f->at = w->at;
	f->text = acc_say_copy(&t->mem, &t->one, w->text);
	return f->text == NULL ? acc_nomem(e) : 0;
}

static int
step_of(struct acc_tokens *t, const struct tok_sum *s, double sexp, struct acc_err *e)
{
	if (s->n == 0 || s->step < 0)
		return 0;
	const uint64_t id = acc_hash(&s->step, sizeof s->step);
	const uint32_t at = acc_ids_get(&t->by_step, id);
	struct tok_step *p = at == ACC_NOID ? NULL : &t->steps[at];
	if (p == NULL) {
		if (acc_ids_put(&t->by_step, id, (uint32_t)t->nsteps, false, e) < 0)
			return ACC_ENOMEM;
		p = acc_grow(t->steps, &t->cap_steps, t->nsteps + 1, sizeof *p, e);
		if (p == NULL)
			return ACC_ENOMEM;
		t->steps = p;
		p += t->nsteps++;
		*p = (struct tok_step){.step = s->step};
	}
	p->n += s->n;
	p->s1 += s->s1;
	p->s2 += s->s2;
	p->s3 += s->s3;
	p->sexp += sexp;
	return 0;
}

static int
compare(struct acc_tokens *t, struct tok_side *a, struct tok_side *b, bool noise, struct acc_err *e)
{
	struct tok_sum second = {0}, *s = &second;
	struct tok_all *all = noise ? &t->noise : &t->all;
	int64_t off;
	size_t same = 0;
	acc_arena_reset(&t->one);
	acc_tok_offset(a, b, &off);
	as_scored(a, b, off);
	int rc = noise ? 0 : note_sample(t, a, b, e);
	if (rc < 0)
		return rc;
	if (!noise)
		s = &t->sum[t->n - 1];
	struct tok_parting w = acc_tok_parting(a, b, off, &same, &t->one);
	if (same == SIZE_MAX) {
		same = 0;
		t->uncompared++;
		t->unknown++;
		t->uncompared_why = ACC_MSG("one side tells neither ids nor texts of its tokens");
	}
	const int64_t from = (int64_t)a->start + off;
	if (from < 0 || (uint64_t)from > b->n)
		same = 0;
	const double sexp = all->sexp;
	rc = acc_tok_sums(t, all, s, a, b, off, same, e);
	if (rc == 0 && !noise)
		rc = acc_tok_show(t, s, a, b, off, same, e);
	if (rc < 0 || noise)
		return rc;
	t->uncompared += s->n == 0 && w.how == PART_NONE && same > 0 &&
			 (a->logp == NULL || b->logp == NULL);
	if (a->logp == NULL || b->logp == NULL)
		t->uncompared_why = a->logp == NULL
					    ? ACC_MSG("the rollout has no log-probabilities")
					    : ACC_MSG("the trainer has no log-probabilities");
	rc = note_parting(t, s, &w, e);
	if (t->one.lost)
		return acc_nomem(e);
	return rc < 0 ? rc : step_of(t, s, all->sexp - sexp, e);
}

int
acc_tokens_add(struct acc_tokens *t, const struct acc_rec *r, bool noise, struct acc_err *e)
{
	const bool pair = acc_rec_is(r, "pair");
	const bool in_a = pair && acc_str_is(acc_get_text(r, "", "a.kind"), "sample"),
		   in_b = pair && acc_str_is(acc_get_text(r, "", "b.kind"), "sample");
	if (!acc_rec_is(r, "sample") && !in_a && !in_b)
		return 0;
	t->pairs++;
	if (pair && in_a != in_b) {
		t->only[in_a ? SIDE_A : SIDE_B]++;
		return 1;
	}
	int rc = acc_tok_side_read(&t->side[SIDE_A], r, pair ? "a." : "", SIDE_A, e);
	if (rc == 0)
		rc = acc_tok_side_read(&t->side[SIDE_B], r, pair ? "b." : "", SIDE_B, e);
	if (rc < 0)
		return rc;
	if (!pair && t->side[SIDE_A].single) {
		t->byside++;
		return 1;
	}
	rc = compare(t, &t->side[SIDE_A], &t->side[SIDE_B], noise, e);
	return rc < 0 ? rc : 1;
}

/* --- judging --- */

/* All in their order; or the worst ten. */
static int
order(struct acc_tokens *t, struct acc_err *e)
{
	t->worst = calloc(t->n + 1, sizeof *t->worst);
	if (t->worst == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < t->n; i++)
		t->worst[i] = i;
	t->nworst = t->n;
	if (t->opt.all)
		return 0;
	qsort_r(t->worst, t->n, sizeof *t->worst, acc_tok_by_worst, t);
	t->nworst = t->n < TOK_WORST ? t->n : TOK_WORST;
	return 0;
}

/* How far apart by rounding the two may be. */
static void
limits(struct acc_tokens *t)
{
	double low = 0, n = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->sum[i].n > 0) {
			low += fmin(-(double)t->sum[i].low, 64);
			n++;
		}
	/* A logit ranges over as much as the least likely tokens that were sampled tell; beyond 8 they tell of the
	 * tail, and not of the logits that most tokens are told by. */
	t->range = n > 0 ? fmin(fmax(low / n, 4), 8) : 4;
	t->noise_rms = acc_tok_rms(t->noise.s2, t->noise.n);
	t->limit = TOK_NOISE * t->opt.preset->unit * t->range;
	t->limit_from = t->opt.preset->name;
	if (t->noise.n > 0) {
		t->limit = TOK_NOISE_RUN * t->noise_rms;
		t->limit_from = "noise";
	}
}

/* --- ids and masks --- */

static int
judge_ids(struct acc_tokens *t, struct acc_err *e)
{
	for (int how = PART_BOS; how < NPART; how++) {
		const struct tok_first *p = &t->part[how];
		if (p->n == 0)
			continue;
		const bool tie = how == PART_TIE;
		struct tok_finding *f = acc_tok_find(t, tie ? "other" : "culprit",
			acc_tok_part_rule[how]);
		if (f == NULL)
			continue;
		f->sample = p->sample;
		f->at = (int64_t)p->at;
		f->value = (double)p->n;
		f->text = acc_say(&t->mem, "%llu of %zu samples: %s", (unsigned long long)p->n,
			t->n, p->text);
		if (f->text == NULL)
			return acc_nomem(e);
		t->status |= !tie;
	}
	return 0;
}

static int
judge_masks(struct acc_tokens *t, struct acc_err *e)
{
	const struct tok_all *w = &t->all;
	static const char *const names[NSIDE] = {ACC_MSG("rollout"), ACC_MSG("trainer")};
	struct tok_finding *f = NULL;
	const uint64_t *prompt = w->mask_prompt;
	for (int k = 0; k < NSIDE; k++) {
		const uint64_t other = prompt[1 - k];
		if (w->counted[k] > 0 && w->counted[k] != w->counted[1 - k] &&
			(f = acc_tok_find(t, "culprit", "mask-padding")) != NULL)
			f->text = acc_say(&t->mem,
				"the %s's mask counts %llu tokens of padding, which no attention sees",
				names[k], (unsigned long long)w->counted[k]);
		if (prompt[k] > 0 && other == 0 && w->masked[0] > 0 && w->masked[1] > 0 &&
			(f = acc_tok_find(t, "culprit", "mask-prompt")) != NULL)
			f->text = acc_say(&t->mem,
				"the %s's mask counts %llu tokens of prompts, the other's none",
				names[k], (unsigned long long)prompt[k]);
	}
	if (w->counted[0] > 0 && w->counted[0] == w->counted[1] &&
		(f = acc_tok_find(t, "culprit", "mask-padding")) != NULL)
		f->text = acc_say(&t->mem,
			"the masks count %llu tokens of padding, which no attention sees",
			(unsigned long long)w->counted[0]);
	if (w->mask_samples > 0) {
		const uint64_t n = w->mask_samples;
		f = acc_tok_find(t, "culprit",
			w->mask_shift == n  ? "mask-shift"
			: w->mask_last == n ? "mask-end"
					    : "mask");
		if (f != NULL) {
			f->sample = w->mask_first;
			f->text =
				w->mask_shift == n
					? acc_say(&t->mem,
						  "in %llu of %zu samples the trainer's mask is the rollout's one token later",
						  (unsigned long long)n, t->n)
				: w->mask_last == n
					? acc_say(&t->mem,
						  "in %llu of %zu samples the last token of the response (the end token) counts on one side"
						  " only",
						  (unsigned long long)n, t->n)
					: acc_say(&t->mem,
						  "in %llu of %zu samples the masks differ: %llu tokens count in the rollout alone, %llu in the trainer alone",
						  (unsigned long long)n, t->n,
						  (unsigned long long)w->mask_more[SIDE_A],
						  (unsigned long long)w->mask_more[SIDE_B]);
			f->value = (double)n;
		}
	}
	if (f != NULL)
		t->status |= 1;
	return t->mem.lost ? acc_nomem(e) : 0;
}

/* --- numbers --- */

static int
judge_nan(struct acc_tokens *t, struct acc_err *e)
{
	static const char *const names[NSIDE] = {ACC_MSG("rollout"), ACC_MSG("trainer")};
	for (int k = 0; k < NSIDE; k++) {
		struct tok_finding *f = t->all.nans[k] == 0
						? NULL
						: acc_tok_find(t, "culprit", "not-finite");
		if (f == NULL)
			continue;
		f->text = acc_say(&t->mem,
			"%llu log-probabilities of the %s are not finite: NaN, or a token that it gives no"
			" probability",
			(unsigned long long)t->all.nans[k], names[k]);
		for (size_t i = 0; i < t->n && f->sample == SIZE_MAX; i++)
			f->sample = t->sum[i].flags & FLAG_NAN ? i : SIZE_MAX;
		f->value = (double)t->all.nans[k];
		t->status |= 1;
	}
	return t->mem.lost ? acc_nomem(e) : 0;
}

/* The means, as sentence. */
static const char *
means(struct acc_tokens *t, size_t samples)
{
	const struct tok_all *w = &t->all;
	return acc_say(&t->mem,
		"%.0f tokens of %zu samples: k1 %.3g, k3 %.3g, mean exp|l| %.6g, largest ratio %.4g, %.3g%% clipped, l"
		" %.3g (root mean square)",
		w->n, samples, (0 - w->s1) / w->n, w->s3 / w->n, w->sexp / w->n,
		exp(acc_tok_largest(w)), 100 * w->clipped / w->n, acc_tok_rms(w->s2, w->n));
}

static size_t
compared(const struct acc_tokens *t)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++)
		n += t->sum[i].n > 0;
	return n;
}

/* Is it more than noise? */
static bool
differs(const struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	const double x = acc_tok_rms(w->s2, w->n), mean = w->s1 / w->n, one = acc_tok_largest(w);
	if (t->opt.preset->unit == 0 && t->noise.n == 0)
		return w->s2 > 0;
	if (x > t->limit)
		return true;
	if (t->noise.n > 0
			? one > TOK_NOISE_RUN * fmax(acc_tok_largest(&t->noise), 4 * t->noise_rms)
			: one > TOK_ONE * t->limit)
		return true;
	/* Of tokens that one side sampled, rounding makes the mean of l half its variance below 0. */
	const double se = acc_tok_error(t, -mean, acc_tok_k1);
	return isfinite(se) && fabs(mean + x * x / 2) > TOK_MEAN * se &&
	       fabs(mean + x * x / 2) > t->limit / 2;
}

static void
next(struct acc_tokens *t)
{
	const struct tok_finding *f = NULL;
	for (size_t i = 0; i < t->nfinding && f == NULL; i++)
		if (t->finding[i].sample != SIZE_MAX && strcmp(t->finding[i].what, "other") != 0)
			f = &t->finding[i];
	if (f == NULL)
		return;
	const struct tok_sum *s = &t->sum[f->sample];
	struct acc_str name = acc_tok_name(t, f->sample);
	if (acc_str_starts(name, "sample ")) {
		name.p += 7;
		name.n -= 7;
	}
	const bool ids = strncmp(f->rule, "ids", 3) == 0;
	const size_t sample = f->sample, at = ids          ? s->parted_at
					      : f->at >= 0 ? (size_t)f->at
							   : s->max_at;
	struct tok_finding *n = acc_tok_find(t, "next", NULL);
	if (n == NULL)
		return;
	n->sample = sample;
	n->at = (int64_t)at;
	n->text =
		ids ? acc_say(&t->mem,
			      "print the ids of sample %.*s in both programs, where they are made, around position %zu",
			      ACC_PRS(name), at)
		    : acc_say(&t->mem,
			      "record sample %.*s in full in both engines, up to token %zu of its response, and compare the"
			      " recordings layer by layer: accdiff ENGINE TRAINER",
			      ACC_PRS(name), at);
}

static int
judge_numbers(struct acc_tokens *t, struct acc_err *e)
{
	const struct tok_all *w = &t->all;
	struct tok_finding *f;
	if (w->n == 0)
		return 0;
	const char *text = means(t, compared(t));
	const double x = acc_tok_rms(w->s2, w->n);
	if (text != NULL && !differs(t) && acc_tok_within(t)) {
		f = acc_tok_find(t, "other", "log-probabilities");
		if (f != NULL)
			f->text = text;
		t->status |= 1;
		return 0;
	}
	if (!differs(t)) {
		f = acc_tok_find(t, "clean", "noise");
		if (f == NULL || text == NULL)
			return text == NULL ? acc_nomem(e) : 0;
		f->value = x;
		f->limit = t->limit;
		f->limit_from = t->limit_from;
		f->text = w->s2 == 0 ? acc_say(&t->mem,
					       "%.0f tokens of %zu samples: the same, bit for bit",
					       w->n, compared(t))
				     : acc_say(&t->mem, "noise: %s", text);
		return f->text == NULL ? acc_nomem(e) : 0;
	}
	f = acc_tok_find(t, "difference", "log-probabilities");
	if (f == NULL || text == NULL)
		return text == NULL ? acc_nomem(e) : 0;
	f->value = x;
	f->limit = t->limit;
	f->limit_from = t->limit_from;
	f->text = text;
	t->status |= 1;
	return acc_tok_cause(t, e);
}

/* What was not compared. */
static int
judge_rest(struct acc_tokens *t, struct acc_err *e)
{
	static const char *const names[NSIDE] = {ACC_MSG("rollout"), ACC_MSG("trainer")};
	for (int k = 0; k < NSIDE; k++) {
		struct tok_finding *f = t->only[k] == 0 ? NULL
							: acc_tok_find(t, "unmatched", "samples");
		if (f != NULL) {
			f->text = acc_say(&t->mem, "%llu samples are in the %s alone",
				(unsigned long long)t->only[k], names[k]);
			f->value = (double)t->only[k];
		}
		f = t->all.absent[k] == 0 ? NULL : acc_tok_find(t, "unmatched", "tokens");
		if (f != NULL) {
			f->text = acc_say(&t->mem,
				"%llu tokens have no log-probability in the %s and were not compared",
				(unsigned long long)t->all.absent[k], names[k]);
			f->value = (double)t->all.absent[k];
		}
	}
	if (t->uncompared > 0) {
		struct tok_finding *f = acc_tok_find(t, "unmatched", "uncompared");
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"the log-probabilities of %llu samples were not compared: %s",
				(unsigned long long)t->uncompared, t->uncompared_why);
	}
	return t->mem.lost ? acc_nomem(e) : 0;
}

int
acc_tokens_judge(struct acc_tokens *t, struct acc_err *e)
{
	limits(t);
	int rc = judge_ids(t, e);
	if (rc == 0)
		rc = judge_masks(t, e);
	if (rc == 0)
		rc = judge_nan(t, e);
	if (rc == 0)
		rc = judge_numbers(t, e);
	if (rc == 0)
		rc = judge_rest(t, e);
	if (rc == 0)
		next(t);
	bool parted = false;
	for (int i = PART_BOS; i < NPART; i++)
		parted |= t->part[i].n > 0;
	/* That texts are the same is an answer where there is nothing else. */
	if (t->all.n == 0 && !parted && t->n > t->unknown && t->status == 0) {
		struct tok_finding *f = acc_tok_find(t, "clean", "ids");
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"%zu samples have the same ids, or texts; no log-probability was compared",
				t->n);
	}
	if (rc == 0 && t->n == t->unknown)
		t->status = 2;
	return rc < 0 ? rc : t->mem.lost ? acc_nomem(e) : order(t, e);
}

int
acc_tokens_status(const struct acc_tokens *t)
{
	return t->status;
}
