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

int
acc_tokens_status(const struct acc_tokens *t)
{
	return t->status;
}
