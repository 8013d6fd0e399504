/* What is said of the samples, when all were taken. */
#include "token/limits.h"
#include "token/token.h"

#include <stdlib.h>

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
