/* What was found, as records of accstream(5). */
#include "token/token.h"

/* The standard error over samples of a mean over their tokens. */
double
acc_tok_error(const struct acc_tokens *t, double mean, double (*of)(const struct tok_sum *s))
{
	double sum = 0, n = 0, k = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct tok_sum *s = &t->sum[i];
		if (s->n == 0)
			continue;
		const double d = of(s) - mean * s->n;
		sum += d * d;
		n += s->n;
		k++;
	}
	return k < 2 ? NAN : sqrt(sum * k / (k - 1)) / n;
}

double
acc_tok_k1(const struct tok_sum *s)
{
	return -s->s1;
}

static double
k2_of(const struct tok_sum *s)
{
	return s->s2 / 2;
}

static double
k3_of(const struct tok_sum *s)
{
	return s->s3;
}

double
acc_tok_largest(const struct tok_all *w)
{
	return w->n > 0 ? fmax(fabs(w->most), fabs(w->least)) : 0;
}

/* --- records --- */

static int
number(struct acc_rec *r, const char *key, double v)
{
	return isnan(v) ? 0 : acc_add(r, "", key, acc_f64(v));
}

static int
put_sample(struct acc_tokens *t, const struct tok_sum *s)
{
	struct acc_rec *r = &t->out;
	const double n = s->n;
	int rc = acc_rec_start(r, ACC_STR("sample"));
	if (rc == 0)
		rc = acc_add(r, "", "name", acc_text(acc_tok_name(t, s->order)));
	if (rc == 0 && s->step >= 0)
		rc = acc_add(r, "", "step", acc_int(s->step));
	const int64_t rank = s->rank[SIDE_B] >= 0 ? s->rank[SIDE_B] : s->rank[SIDE_A];
	if (rc == 0 && rank >= 0)
		rc = acc_add(r, "", "rank", acc_int(rank));
	if (rc == 0)
		rc = acc_add(r, "", "tok.n", acc_int(s->n));
	if (rc == 0 && s->parted != PART_NONE)
		rc = acc_add(r, "", "tok.parted", acc_ctext(acc_tok_part_rule[s->parted]));
	if (rc == 0 && s->parted != PART_NONE)
		rc = acc_add(r, "", "tok.parted_at", acc_int(s->parted_at));
	if (rc < 0 || s->n == 0)
		return rc;
	rc |= number(r, "tok.k1", (0 - s->s1) / n);
	rc |= number(r, "tok.k3", s->s3 / n);
	rc |= number(r, "tok.rms", sqrt(s->s2 / n));
	rc |= number(r, "tok.log_ratio", s->s1);
	rc |= number(r, "tok.max", (double)s->max);
	rc |= acc_add(r, "", "tok.max_at", acc_int(s->max_at));
	return rc < 0 ? rc : acc_tok_put_shown(t, s);
}

static int
put_point(struct acc_tokens *t, const char *tag, int64_t step, double v)
{
	struct acc_rec *r = &t->out;
	int rc = acc_rec_start(r, ACC_STR("scalar"));
	if (rc == 0)
		rc = acc_add(r, "", "tag", acc_ctext(tag));
	if (rc == 0)
		rc = acc_add(r, "", "step", acc_int(step));
	return rc == 0 ? acc_add(r, "", "value", acc_f64(v)) : rc;
}

static int
put_finding(struct acc_tokens *t, const struct tok_finding *f)
{
	struct acc_rec *r = &t->out;
	const char *text = f->text;
	unsigned right, of;
	int rc = acc_rec_start(r, ACC_STR("finding"));
	if (rc == 0)
		rc = acc_add(r, "", "what", acc_ctext(f->what));
	if (rc == 0 && f->sample != SIZE_MAX)
		rc = acc_add(r, "", "name", acc_text(acc_tok_name(t, f->sample)));
	if (rc == 0 && f->rule != NULL)
		rc = acc_add(r, "", "rule", acc_ctext(f->rule));
	if (rc == 0 && f->at >= 0)
		rc = acc_add(r, "", "tok.at", acc_int(f->at));
	if (rc == 0)
		rc = number(r, "value", f->value);
	if (rc == 0)
		rc = number(r, "limit", f->limit);
	if (rc == 0 && f->limit_from != NULL)
		rc = acc_add(r, "", "limit_from", acc_ctext(f->limit_from));
	if (rc == 0 && strcmp(f->what, "culprit") == 0 && acc_tok_measured(f->rule, &right, &of)) {
		rc = number(r, "confidence", (double)right / of);
		text = acc_say(&t->mem, "%s; such a verdict was right in %u of %u cases", f->text,
			right, of);
	}
	return rc == 0 ? acc_put_said(r, "", "text", &t->mem, text) : rc;
}

/* All the metrics, under the names of accstream(5). */
static int
put_metrics(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	struct acc_rec *r = &t->out;
	const double n = w->n, m = w->seq_n, k1 = (0 - w->s1) / n, k2 = w->s2 / 2 / n,
		     k3 = w->s3 / n;
	const double va = w->paa - w->pa * w->pa / n, vb = w->pbb - w->pb * w->pb / n,
		     vab = w->pab - w->pa * w->pb / n, pd = w->pd / n;
	int rc = acc_rec_start(r, ACC_STR("rollout"));
	rc |= acc_add(r, "", "name", acc_ctext("all"));
	rc |= acc_add(r, "", "tok.n", acc_int((int64_t)n));
	rc |= acc_add(r, "", "tok.samples", acc_int((int64_t)m));
	rc |= number(r, "tok.k1", k1);
	rc |= number(r, "tok.k1_se", acc_tok_error(t, k1, acc_tok_k1));
	rc |= number(r, "tok.k2", k2);
	rc |= number(r, "tok.k2_se", acc_tok_error(t, k2, k2_of));
	rc |= number(r, "tok.k3", k3);
	rc |= number(r, "tok.k3_se", acc_tok_error(t, k3, k3_of));
	rc |= number(r, "tok.rms", sqrt(w->s2 / n));
	rc |= number(r, "tok.abs", w->sabs / n);
	rc |= number(r, "tok.max_abs", acc_tok_largest(w));
	rc |= number(r, "tok.exp_abs", w->sexp / n);
	rc |= number(r, "tok.ratio_min", exp(w->least));
	rc |= number(r, "tok.ratio_mean", w->w / n);
	rc |= number(r, "tok.ratio_max", exp(w->most));
	rc |= number(r, "tok.clip", w->clipped / n);
	rc |= number(r, "tok.ess", w->w * w->w / (n * w->w2));
	rc |= number(r, "tok.ess_seq", w->seq_w * w->seq_w / (m * w->seq_w2));
	rc |= number(r, "tok.chi2", w->rho2 / n - 1);
	rc |= number(r, "tok.chi2_seq", w->seq_rho2 / m - 1);
	rc |= number(r, "tok.log_ppl_diff", w->dppl / m);
	rc |= number(r, "tok.log_ppl_abs_diff", w->dppl_abs / m);
	rc |= number(r, "tok.log_ppl_diff_max", w->dppl_max);
	rc |= number(r, "tok.log_ppl_diff_min", w->dppl_min);
	rc |= number(r, "tok.ppl_ratio", w->ppl / m);
	rc |= number(r, "tok.prob_diff_mean", pd);
	rc |= number(r, "tok.prob_diff_max", w->pmax);
	rc |= number(r, "tok.prob_diff_std",
		n > 1 ? sqrt(fmax(w->pdd - n * pd * pd, 0) / (n - 1)) : NAN);
	rc |= number(r, "tok.pearson", va > 0 && vb > 0 ? vab / sqrt(va * vb) : NAN);
	rc |= number(r, "tok.entropy_a",
		w->nent[SIDE_A] > 0 ? w->ent[SIDE_A] / w->nent[SIDE_A] : NAN);
	rc |= number(r, "tok.entropy_b",
		w->nent[SIDE_B] > 0 ? w->ent[SIDE_B] / w->nent[SIDE_B] : NAN);
	return rc;
}

/* The next place of the scatter that has tokens: its middle. */
static int
put_place(struct acc_tokens *t)
{
	const uint32_t *both = t->all.both;
	struct acc_rec *r = &t->out;
	while (t->cell < (size_t)TOK_VALUES * TOK_VALUES && both[t->cell] == 0)
		t->cell++;
	if (t->cell == (size_t)TOK_VALUES * TOK_VALUES)
		return 0;
	const size_t at = t->cell++, row = at / TOK_VALUES, column = at % TOK_VALUES;
	int rc = acc_rec_start(r, ACC_STR("scatter"));
	rc |= number(r, "tok.a", -((double)row + 0.5) / 4);
	rc |= number(r, "tok.b", -((double)column + 0.5) / 4);
	rc |= acc_add(r, "", "tok.n", acc_int(both[at]));
	return rc < 0 ? rc : 1;
}

/* Point number i of the curves; 0 behind the last. */
static int
put_curve(struct acc_tokens *t, size_t i)
{
	static const char *const tags[] = {"rollout/k1", "rollout/rms", "rollout/k3",
		"rollout/exp_abs"};
	const enum acc_token_by by = t->opt.by;
	/* Of positions and samples the sums of the first two are kept. */
	const size_t ntags = by == ACC_TOKEN_STEP ? 4 : 2, at = i / ntags,
		     n = by == ACC_TOKEN_STEP       ? t->nsteps
			 : by == ACC_TOKEN_POSITION ? t->all.nplace
			 : by == ACC_TOKEN_SAMPLE   ? t->n
						    : 0;
	int64_t x = (int64_t)at;
	if (by == ACC_TOKEN_VALUE)
		return put_place(t);
	double v[4] = {NAN, NAN, NAN, NAN}, many = 0, s1 = 0, s2 = 0;
	if (at >= n)
		return 0;
	if (by == ACC_TOKEN_STEP) {
		const struct tok_step *s = &t->steps[at];
		x = s->step;
		many = s->n, s1 = s->s1, s2 = s->s2;
		v[2] = s->s3 / s->n;
		v[3] = s->sexp / s->n;
	} else if (by == ACC_TOKEN_POSITION) {
		const struct tok_cell *c = &t->all.place[at];
		many = c->n, s1 = c->s1, s2 = c->s2;
	} else {
		const struct tok_sum *s = &t->sum[at];
		many = s->n, s1 = s->s1, s2 = s->s2;
	}
	v[0] = -s1 / many;
	v[1] = sqrt(s2 / many);
	int rc = put_point(t, tags[i % ntags], x, v[i % ntags]);
	return rc < 0 ? rc : 1;
}

int
acc_tokens_next(struct acc_tokens *t, struct acc_rec **out, struct acc_err *e)
{
	const size_t metrics = t->all.n > 0;
	size_t i = t->at++;
	int rc;
	*out = &t->out;
	if (i < t->nworst) {
		rc = put_sample(t, &t->sum[t->worst[i]]);
	} else if ((rc = put_curve(t, i - t->nworst)) != 0) {
		t->npoints = i - t->nworst + 1;
	} else if ((i -= t->nworst + t->npoints) < metrics) {
		rc = put_metrics(t);
	} else if ((i -= metrics) < t->nfinding) {
		rc = put_finding(t, &t->finding[i]);
	} else {
		return 0;
	}
	return rc < 0 ? acc_rec_fail(e, rc) : 1;
}
