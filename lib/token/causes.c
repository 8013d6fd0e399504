/* Causes: what would make just this difference, and its witness. One row each, the surest first.
 *
 * A rule tells how much of the sum of squares of l is left once its cause is taken away, and makes its
 * sentence; it holds where it has its witness and what is left is little. */
#include "token/token.h"
#include "token/limits.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *
who(int side)
{
	return side == SIDE_A ? ACC_MSG("rollout") : ACC_MSG("trainer");
}

/* --- other numbers than natural logarithms --- */

static bool
scale(struct acc_tokens *t)
{
	static const char *const what[NSCALE / 2] = {ACC_MSG("probabilities"),
		ACC_MSG("logarithms to the base 10"), ACC_MSG("logarithms to the base 2")};
	const struct tok_all *w = &t->all;
	for (int i = 0; i < NSCALE; i++) {
		const double left = acc_tok_rms(w->scale[i], w->nscale[i]),
			     base = acc_tok_rms(w->s2, w->n);
		/* A probability of 0 has no logarithm. */
		if (w->nscale[i] < 0.5 * w->n || w->nscale[i] < 4 || left > base / 8 ||
			left > fmax(t->limit, base / 50))
			continue;
		struct tok_finding *f = acc_tok_named(t, "scale", acc_tok_worst(t), left);
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"the %s's numbers are %s, not natural logarithms: taken as such, %.3g of %.3g (root mean"
				" square) is left",
				who(i % 2), what[i / 2], left, base);
		return true;
	}
	return false;
}

/* --- rows where nothing was computed --- */

static bool
placeholder(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	size_t first = SIZE_MAX, n = 0;
	double s2 = 0, m = 0;
	int side = SIDE_A;
	for (size_t i = 0; i < t->n; i++) {
		const struct tok_sum *s = &t->sum[i];
		if ((s->flags & (FLAG_CONST_A | FLAG_CONST_B)) == 0)
			continue;
		if (first == SIZE_MAX)
			side = s->flags & FLAG_CONST_A ? SIDE_A : SIDE_B;
		first = first == SIZE_MAX ? i : first;
		n++;
		s2 += s->s2;
		m += s->n;
	}
	if (n == 0)
		return false;
	const double left = acc_tok_rms(w->s2 - s2 > 0 ? w->s2 - s2 : 0, w->n - m);
	struct tok_finding *f = acc_tok_named(t, "placeholder", first, left);
	if (f != NULL)
		f->text = acc_say(&t->mem,
			"of %zu samples all log-probabilities of the %s are one number, as where none was computed;"
			" without these, %.3g of %.3g is left",
			n, who(side), left, f->value);
	return true;
}

/* --- one token late or early --- */

static bool
shift(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	for (int k = 0; k < NSHIFT; k++) {
		const double left = acc_tok_rms(w->shift[k], w->nshift[k]),
			     base = acc_tok_rms(w->shift0[k], w->nshift[k]);
		if (w->nshift[k] < 8 || left > base / 4 || base <= t->limit)
			continue;
		struct tok_finding *f = acc_tok_named(t, "shift", acc_tok_worst(t), left);
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"the trainer's log-probabilities are the rollout's one token %s: moved back, %.3g of %.3g"
				" is left",
				k == 0 ? acc_say(&t->mem, "later") : acc_say(&t->mem, "earlier"),
				left, base);
		return true;
	}
	return false;
}

/* --- processed, not raw --- */

static bool
processed(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	const double base = acc_tok_rms(w->s2, w->n), tol = fmin(3 * t->limit, base / 4),
		     mean = w->s1 / w->n;
	if (w->n < 30)
		return false;
	for (int side = SIDE_A; side <= SIDE_B; side++) {
		const double against = side == SIDE_A ? w->most : -w->least,
			     far = side == SIDE_A ? -w->least : w->most;
		const double by = side == SIDE_A ? -mean : mean;
		if (against > tol || by <= tol / 6)
			continue;
		const bool sums = w->ntop[side] > 0 && w->topless[side] == 0 &&
				  w->topless[1 - side] > 0;
		const bool ones = side == SIDE_A && w->one >= 3 && w->one >= 0.005 * w->nones;
		/* What is kept has the likeliest token: a share of it this small is none. */
		if (far > TOK_KEPT && !sums && !ones)
			continue;
		struct tok_finding *f = acc_tok_named(t, "processed", acc_tok_worst(t),
			against > 0 ? against : 0);
		if (f == NULL)
			return true;
		const char *how =
			sums   ? acc_say(&t->mem,
					 ", and the probabilities of its choices sum up to 1")
			: ones ? acc_say(&t->mem,
					 ", and of %.0f tokens it is 0, a probability of 1, where the other has"
					 " less",
					 w->one)
			       : "";
		f->text = acc_say(&t->mem,
			"the %s's log-probabilities are never below the other's, by %.3g on average, by %.3g at most%s:"
			" they are of fewer tokens (top-p, top-k, min-p), processed and not raw; %.3g of the other's"
			" probability lies on these",
			who(side), by, far, how, side == SIDE_A ? w->w / w->n : exp(-by));
		return true;
	}
	return false;
}

/* --- temperature --- */

static bool
temperature(struct acc_tokens *t, double ratio, double left, double base, double n, bool exact)
{
	struct tok_finding *f = acc_tok_named(t, "temperature", acc_tok_worst(t), left);
	if (f == NULL)
		return true;
	f->text =
		exact ? acc_say(&t->mem,
				"the first and second choice of %.0f tokens are %.6g times as far apart in the rollout as in"
				" the trainer: a temperature of %.4g on the rollout's side (or of %.4g on the trainer's); taken"
				" away, %.3g of %.3g is left",
				n, ratio, 1 / ratio, ratio, left, base)
		      : acc_say(&t->mem,
				"the rollout's log-probabilities vary %.3g times as much as the trainer's: a temperature of"
				" about %.2g on the rollout's side (or of %.2g on the trainer's); taken away, %.3g of %.3g is"
				" left",
				ratio, 1 / ratio, ratio, left, base);
	return true;
}

static bool
temperature_exact(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	if (w->nd < 8 || !(w->db > 0))
		return false;
	const double r = w->dab / w->db;
	const double left = acc_tok_rms(fmax(w->da - 2 * r * w->dab + r * r * w->db, 0), w->nd),
		     base = acc_tok_rms(w->dres, w->nd);
	if (!(r > 0.02 && r < 50) || fabs(r - 1) < 0.004 || left > base / 4)
		return false;
	return temperature(t, r, left, base, w->nd, true);
}

/* Where no choices are told. What a temperature leaves of one side by a straight line in the other is little both
 * ways round; what comes of noise, of another context or of other weights is so one way at most. */
static bool
temperature_fit(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	const double n = w->n, caa = w->aa - w->a * w->a / n, cbb = w->bb - w->b * w->b / n,
		     cab = w->ab - w->a * w->b / n;
	if (n < 30 || w->nd >= 8 || !(caa > 0 && cbb > 0 && cab > 0))
		return false;
	const double of_b = caa - cab * cab / cbb, of_a = cbb - cab * cab / caa,
		     left2 = fmax(fmax(of_a, of_b), 0), ratio = sqrt(caa / cbb);
	/* Where only a constant was taken away, it is no temperature. */
	const double offset2 = w->s2 - w->s1 * w->s1 / n;
	if (!(ratio > 0.05 && ratio < 20) || fabs(ratio - 1) < 0.03 || left2 > TOK_FIT * w->s2 ||
		left2 > 0.5 * offset2)
		return false;
	return temperature(t, ratio, acc_tok_rms(left2, n), acc_tok_rms(w->s2, n), n, false);
}

/* --- penalties --- */

static bool
penalty(struct acc_tokens *t)
{
	const struct tok_cell *s = t->all.seen;
	const double base2 = t->all.s2;
	double n1 = 0, s1 = 0, between = 0;
	for (int i = 0; i < NSEEN; i++) {
		between += s[i].n > 0 ? s[i].s1 * s[i].s1 / s[i].n : 0;
		n1 += i > 0 ? s[i].n : 0;
		s1 += i > 0 ? s[i].s1 : 0;
	}
	if (s[0].n < 16 || n1 < 16)
		return false;
	/* What the normaliser makes of it differs from token to token: not all is explained. */
	const double m0 = s[0].s1 / s[0].n, m1 = s1 / n1;
	if (m0 * m1 >= 0 || between < TOK_SEEN * base2)
		return false;
	struct tok_finding *f = acc_tok_named(t, "penalty", acc_tok_worst(t),
		acc_tok_rms(fmax(base2 - between, 0), t->all.n));
	if (f != NULL)
		f->text = acc_say(&t->mem,
			"of ids that came before in the sample l is %.3g on average, of others %.3g (%.0f and %.0f tokens):"
			" a penalty of repetition, presence or frequency on the %s's side",
			m1, m0, n1, s[0].n, who(m1 > m0 ? SIDE_A : SIDE_B));
	return true;
}

/* --- rounding of one side --- */

static bool
head(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	for (int side = SIDE_A; side <= SIDE_B; side++) {
		if (w->ngrid[side] < 16 || w->grid[side] < 0.9 * w->ngrid[side] ||
			w->grid[1 - side] > 0.5 * w->ngrid[1 - side])
			continue;
		/* What rounding to half a unit may do to a logit as large as these. */
		if (acc_tok_rms(w->s2, w->n) > TOK_NOISE * 0x1p-9 * t->range * 2)
			continue;
		struct tok_finding *f = acc_tok_named(t, "head", acc_tok_worst(t), 0);
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"of %.0f of %.0f tokens the %s's first and second choice are a multiple of 2^-8 apart: its"
				" logits are bf16 (the head, lm_head), and what differs is no more than that does",
				w->grid[side], w->ngrid[side], who(side));
		return true;
	}
	for (int side = SIDE_A; side <= SIDE_B; side++) {
		const bool bf16 = w->bf16[side] >= w->n, fp16 = w->fp16[side] >= w->n;
		if (w->n < 16 || !(bf16 || fp16) || w->bf16[1 - side] > 0.5 * w->n ||
			w->fp16[1 - side] > 0.5 * w->n)
			continue;
		const double size = acc_tok_rms(side == SIDE_A ? w->aa : w->bb, w->n),
			     unit = bf16 ? 0x1p-9 : 0x1p-12;
		if (acc_tok_rms(w->s2, w->n) > 2 * unit * size)
			continue;
		struct tok_finding *f = acc_tok_named(t, "head", acc_tok_worst(t), 0);
		if (f != NULL)
			f->text = acc_say(&t->mem,
				"all of the %s's log-probabilities are numbers of %s, and what differs is no more than that"
				" rounding does",
				who(side), bf16 ? "bf16" : "fp16");
		return true;
	}
	return false;
}

/* --- few tokens, or all --- */

/* The largest l of so small a share of the tokens that they own nearly all of the sum of squares. */
static double
few(const struct tok_all *w, double *n, double *s2)
{
	*n = *s2 = 0;
	for (int i = TOK_BINS - 1; i > 0; i--) {
		if (*n + w->bin[i].n > 0.1 * w->n && *n + w->bin[i].n > 1)
			break;
		*n += w->bin[i].n;
		*s2 += w->bin[i].s2;
	}
	return w->s2 > 0 ? *s2 / w->s2 : 0;
}

static bool
one_token(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	const size_t at = acc_tok_worst(t);
	const struct tok_sum *s = at == SIZE_MAX ? NULL : &t->sum[at];
	const double x = s == NULL ? 0 : (double)s->max,
		     y = acc_tok_rms(fmax(w->s2 - x * x, 0), w->n - 1);
	if (w->n < 4 || x * x < 0.9 * w->s2 || !acc_tok_small(t, y * y, 1))
		return false;
	struct tok_finding *f = acc_tok_named(t, "token", at, y);
	if (f == NULL)
		return true;
	f->at = s->max_at;
	f->text = acc_say(&t->mem,
		"one token, %u of the response, is off by %.4g, a ratio of %.4g; all others have %.3g (root mean square)",
		s->max_at, x, exp(fabs(x)), y);
	return true;
}

/* Has at least one sample in five such a token? */
static bool
in_many(const struct acc_tokens *t, double size)
{
	size_t n = 0, with = 0;
	for (size_t i = 0; i < t->n; i++) {
		n += t->sum[i].n > 0;
		with += t->sum[i].n > 0 && fabs((double)t->sum[i].max) > size;
	}
	return with * 5 >= n;
}

static bool
routing(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	double n, s2;
	const double share = few(w, &n, &s2), y = acc_tok_rms(fmax(w->s2 - s2, 0), w->n - n),
		     x = acc_tok_rms(s2, n);
	const size_t at = acc_tok_worst(t);
	if (n < 2 || at == SIZE_MAX || share < TOK_SHARE || !acc_tok_small(t, y * y, 1) ||
		x < 2 * TOK_APART * y || !in_many(t, x / 2))
		return false;
	struct tok_finding *f = acc_tok_named(t, "routing", at, y);
	if (f != NULL)
		f->text = acc_say(&t->mem,
			"%.0f of %.0f tokens have %.3g (root mean square), the others %.3g, in no place or sample of their"
			" own: rare and large, as where an expert is routed to otherwise",
			n, w->n, x, y);
	return true;
}

static bool
unrelated(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	const double n = w->n, caa = w->aa - w->a * w->a / n, cbb = w->bb - w->b * w->b / n,
		     cab = w->ab - w->a * w->b / n;
	if (n < 64 || !(caa > 0 && cbb > 0) || cab > 0.5 * sqrt(caa * cbb))
		return false;
	struct tok_finding *f = acc_tok_named(t, "unrelated", acc_tok_worst(t), NAN);
	if (f != NULL)
		f->text = acc_say(&t->mem,
			"the log-probabilities of the same tokens have a correlation of %.2g: those of one side are of other"
			" positions, other tokens or another model",
			cab / sqrt(caa * cbb));
	return true;
}

/* Some samples differ and the others do not, and nothing that is known of them tells which. */
static bool
some(struct acc_tokens *t)
{
	const double edge = fmax(t->limit, acc_tok_rms(t->all.s2, t->all.n) / TOK_APART);
	size_t n = 0, bad = 0;
	double s2 = 0, m = 0;
	for (size_t i = 0; i < t->n; i++) {
		const struct tok_sum *s = &t->sum[i];
		const bool over = s->n > 0 && acc_tok_rms(s->s2, s->n) > edge;
		n += s->n > 0;
		bad += over;
		s2 += over ? s->s2 : 0;
		m += over ? s->n : 0;
	}
	const double x = acc_tok_rms(s2, m), y = acc_tok_rms(fmax(t->all.s2 - s2, 0), t->all.n - m);
	if (bad == 0 || (n - bad) * 10 < n || x < TOK_APART * y || !acc_tok_small(t, y * y, 1))
		return false;
	struct tok_finding *f = acc_tok_find(t, "difference", "some");
	if (f == NULL)
		return true;
	f->sample = acc_tok_worst(t);
	f->value = x;
	f->text = acc_say(&t->mem,
		"%zu of %zu samples have %.3g (root mean square), the others %.3g, and nothing that is known of them tells"
		" which: record what else is known of a sample (rank, version of the weights, what was in the cache)",
		bad, n, x, y);
	return true;
}

/* Nothing but its size is known: no cause is accused, and what is left is told. */
static bool
spread(struct acc_tokens *t)
{
	const struct tok_all *w = &t->all;
	double early = 0, late = 0, n0 = 0, n1 = 0;
	for (size_t i = 0; i < w->nplace; i++) {
		const bool first = i < w->nplace / 2;
		*(first ? &early : &late) += w->place[i].s2;
		*(first ? &n0 : &n1) += w->place[i].n;
	}
	const double x = acc_tok_rms(early, n0), y = acc_tok_rms(late, n1);
	const bool grows = n0 > 100 && n1 > 100 && y > 1.5 * x;
	struct tok_finding *f = acc_tok_find(t, "difference", grows ? "grows" : "alike");
	if (f == NULL)
		return true;
	f->sample = acc_tok_worst(t);
	f->value = acc_tok_rms(w->s2, w->n);
	f->text =
		grows ? acc_say(&t->mem,
				"all tokens differ, and more the later they are (%.3g, then %.3g, root mean square): a cache (KV)"
				" that is quantised, or positions, would do that",
				x, y)
		      : acc_say(&t->mem,
				"all tokens differ alike (%.3g, root mean square), in no sample, position or rank of their own,"
				" and no cause that has a name fits: other weights on one side (quantised, or of another step)"
				" would do that, and so would another beginning (a token more in front)",
				f->value);
	return true;
}

const struct acc_token_cause acc_token_causes[] = {
	{"scale", "probabilities, or logarithms to another base"},
	{"placeholder", "one number where none was computed"},
	{"shift", "one token later or earlier"},
	{"stale", "weights of another version"},
	{"rank", "one rank"},
	{"prefix-cache", "what stood in the cache of prefixes"},
	{"padding", "padding, or positions that count it"},
	{"finish", "samples that ended in one way"},
	{"step", "certain steps"},
	{"samples", "a few samples"},
	{"position", "from a position on, or up to one"},
	{"processed", "top-p, top-k, min-p on one side"},
	{"temperature", "another temperature"},
	{"penalty", "penalties of repetition"},
	{"head", "logits, or log-probabilities, of 16 bits"},
	{"token", "one token"},
	{"routing", "rare and large, as of experts"},
	{"unrelated", "of other positions, tokens or another model"},
	{"some", "none: some samples differ, and nothing tells which"},
	{"alike", "none: all tokens differ alike"},
	{"grows", "none: all tokens differ, more the later they are"},
};
const size_t acc_ntoken_causes = sizeof acc_token_causes / sizeof *acc_token_causes;

int
acc_tok_cause(struct acc_tokens *t, struct acc_err *e)
{
	static bool (*const rules[])(struct acc_tokens *) = {scale, placeholder, shift, one_token,
		acc_tok_groups, acc_tok_samples, temperature_exact, temperature_fit, penalty,
		acc_tok_position, processed, head, routing, unrelated, some, spread};
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		const bool found = rules[i](t);
		if (t->mem.lost)
			return acc_nomem(e);
		if (found)
			break;
	}
	return 0;
}
