/* Tensors that belong to no op call: do both sides have the same weights, the same batch? Values
 * must be equal but for a cast; nothing computes here that could explain a difference. */
#include "judge/picked.h"
#include "judge/weights.h"
#include "judge/accept.h"
#include "acc/tensor.h"
#include "acc/say.h"
#include "io/grid.h"
#include "io/quant.h"

#include <math.h>

#include "judge/limits.h"

void
acc_some_add(struct acc_some *s, uint32_t i)
{
	if (s->n++ == 0)
		s->first = i;
}

static void
rank(struct acc_weights *t, uint32_t i)
{
	const struct acc_item *item = t->c->item;
	uint32_t at = t->nworst;
	while (at > 0 && !(item[t->worst[at - 1]].rms >= item[i].rms))
		at--;
	if (at == ACC_NRANKED)
		return;
	uint32_t n = t->nworst < ACC_NRANKED ? t->nworst++ : ACC_NRANKED - 1;
	for (; n > at; n--)
		t->worst[n] = t->worst[n - 1];
	t->worst[at] = i;
}

/* A pair that holds something else. One that was guessed says no more than that neither of the two has
 * its content on the other side. */
static void
differs(struct acc_weights *t, uint32_t i, bool guessed)
{
	acc_some_add(guessed ? &t->apart : &t->other, i);
	if (!guessed)
		rank(t, i);
}

/* Which order the axes of a matrix have, where it can tell. */
static void
order(struct acc_weights *t, const struct acc_rec *r, bool permuted)
{
	const struct acc_val *shape = acc_get(r, "b.", "shape"), *own = acc_get(r, "a.", "shape");
	/* Experts in one tensor have an order of their own. */
	if (shape == NULL || shape->type != ACC_V_INTS || shape->n != 2 || own == NULL ||
		own->type != ACC_V_INTS || own->n != 2)
		return;
	bool square = shape->ints[0] == shape->ints[1];
	t->turned += square && permuted;
	t->convention += !square && permuted;
	t->straight += !square && !permuted && shape->ints[0] > 1 && shape->ints[1] > 1;
}

/* Is all of a weight so small that the absolute part of torch.testing's tolerance takes any other for it? */
static bool
is_small(const struct acc_item *it, const struct acc_rec *r)
{
	static const char *const side[] = {"a.", "b."};
	double rtol = 0, most = 0;
	if (it->io != ACC_IO_PARAM)
		return false;
	for (int k = 0; k < 4; k++) {
		double v = 0;
		acc_as_f64(acc_get(r, side[k & 1], k < 2 ? "s.min" : "s.max"), &v);
		most = fmax(most, fabs(v));
	}
	acc_as_f64(acc_get(r, "", "m.rtol"), &rtol);
	return it->rms > LIMIT_VALUES_SMALL + rtol && (it->ndim > 1 || most > LIMIT_VALUES_NOISE);
}

/* Is it no other factor that it is off by? */
static bool
is_rounding(double along)
{
	return along <= LIMIT_REACH_ALONG && along >= LIMIT_REACH_CUT;
}

bool
acc_is_rounded(double most, double rms, double along, double limit)
{
	return most <= limit && rms <= LIMIT_REACH_RMS && is_rounding(along);
}

/* Of a pair of which a side is quantized: 1, the same within the rounding of its format; 0, not; < 0: nothing says. */
static int
rounded(const struct acc_rec *r)
{
	static const char *const side[] = {"a.", "b."};
	double most = NAN, rms = NAN, along = 0, limit = LIMIT_REACH;
	acc_as_f64(acc_get(r, "", "m.reach.along"), &along);
	for (int k = 0; k < 2; k++)
		if (acc_grid_carries(acc_get_text(r, side[k], "dtype.raw")))
			limit = LIMIT_REACH_CARRIED;
	if (acc_as_f64(acc_get(r, "", "m.reach"), &most) &&
		acc_as_f64(acc_get(r, "", "m.reach.rms"), &rms))
		return acc_is_rounded(most, rms, along, limit);
	for (int k = 0; k < 2; k++) {
		const struct acc_str raw = acc_get_text(r, side[k], "dtype.raw");
		if (acc_quant_named(raw) != ACC_STORED || acc_grid_named(raw))
			return -1;
	}
	return 0;
}

/* Is a side a weight with an adapter? */
static bool
is_added(const struct acc_rec *r)
{
	return acc_str_is(acc_get_text(r, "a.", "dtype.raw"), "LoRA") ||
	       acc_str_is(acc_get_text(r, "b.", "dtype.raw"), "LoRA");
}

/* Were statistics all that could be compared, and are the elements other ones by their hashes? A weight with rows in
 * another order has the same statistics. */
static bool
same_statistics_alone(const struct acc_rec *r)
{
	const struct acc_str a = acc_get_text(r, "a.", "s.hash"),
			     b = acc_get_text(r, "b.", "s.hash");
	return acc_get(r, "", "m.skip") != NULL && a.n > 0 && b.n > 0 && !acc_str_eq(a, b) &&
	       acc_str_eq(acc_get_text(r, "a.", "dtype"), acc_get_text(r, "b.", "dtype"));
}

/* Is what it is off by no more than two runs of the bench differ in it? */
static bool
is_inside(const struct acc_item *it)
{
	return it->noise_rms > 0 && it->rms <= LIMIT_NOISE_WEIGHT * it->noise_rms &&
	       it->max <= 2 * LIMIT_NOISE_WEIGHT * it->noise_max;
}

static void
values(struct acc_weights *t, const struct acc_rec *r, uint32_t i, bool guessed)
{
	const struct acc_item *it = &t->c->item[i];
	double same = NAN, outside = NAN;
	bool equal = false, known = acc_as_bool(acc_get(r, "", "m.equal"), &equal);
	acc_as_f64(acc_get(r, "", "m.same"), &same);
	acc_as_f64(acc_get(r, "", "m.outside"), &outside);
	if (acc_ids_get(&t->columns, i) == ACC_UNSCALED) {
		differs(t, i, guessed);
		return;
	}
	if (isnan(same) && !known && it->measure == ACC_UNMEASURED) {
		/* Other shapes cannot hold the same values. */
		if (acc_get(r, "", "m.skip") != NULL && it->note_shape && !it->broken) {
			differs(t, i, guessed);
		} else {
			acc_some_add(&t->unknown, i);
		}
	} else if (isnan(same) && !known && it->rms == 0 && same_statistics_alone(r)) {
		acc_some_add(&t->unknown, i);
		t->unseen = true;
	} else if (same == 1 || (isnan(same) && (known ? equal : it->rms == 0))) {
		acc_some_add(it->note_dtype ? &t->cast : &t->same, i);
	} else if (acc_ids_get(&t->folded, i) != ACC_NOID) {
		acc_some_add(&t->scaled, i);
	} else if (rounded(r) != 0) {
		acc_some_add(rounded(r) < 0 ? &t->unknown
			     : is_added(r)  ? &t->merged
					    : &t->quantized,
			i);
		if (rounded(r) > 0 && it->rms > LIMIT_EMPTIED)
			acc_some_add(&t->emptied, i);
		t->unseen |= rounded(r) < 0;
	} else if ((outside == 0 && !is_small(it, r)) ||
		   (isnan(outside) && it->rms <= LIMIT_VALUES_U * acc_unit(it->dtype[ACC_B]))) {
		acc_some_add(&t->near, i);
	} else if (!guessed && is_inside(it)) {
		acc_some_add(&t->inside, i);
	} else {
		differs(t, i, guessed);
	}
}

/* Is it a moment that an optimizer keeps, by its name? */
static bool
is_moment(struct acc_str name)
{
	static const char *const of[] = {"exp_avg", ".mu.", ".nu.", "/mu/", "/nu/", "'mu'", "'nu'"};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		if (name.n > 0 && memmem(name.p, name.n, of[i], strlen(of[i])) != NULL)
			return true;
	return false;
}

static int
look(struct acc_weights *t, uint32_t i, struct acc_err *e)
{
	static const char *const guess[] = {"content", "pattern", "part", "order", "place"};
	const struct acc_item *it = &t->c->item[i];
	struct acc_rec *r;
	int copies = acc_weights_copies(&t->copies, t->c, i, e);
	if (copies < 0)
		return copies;
	if (it->sides != 3) {
		acc_some_add(acc_ids_get(&t->folded, i) != ACC_NOID
				     ? &t->scaled
				     : &t->only[it->sides & 1 ? ACC_A : ACC_B],
			i);
		return 0;
	}
	int rc = acc_case_record(t->c, it, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str how = acc_get_text(r, "", "how"), layout = acc_get_text(r, "", "m.layout");
	bool guessed = false, alone = acc_str_is(how, "place");
	for (size_t k = 0; k < sizeof guess / sizeof *guess; k++)
		guessed |= acc_str_is(how, guess[k]);
	if (guessed)
		acc_some_add(&t->guessed, i);
	else if (acc_str_is(how, "rule") || acc_str_is(how, "path"))
		acc_some_add(&t->renamed, i);
	if (layout.n > 0)
		acc_some_add(&t->laid, i);
	if (it->note_dtype)
		acc_some_add(&t->dtype, i);
	if (it->note_dtype && is_moment(acc_get_text(r, "b.", "name")))
		acc_some_add(&t->moments, i);
	order(t, r,
		memmem(layout.p, layout.n, ".permute(1,0)", 13) != NULL &&
			memmem(layout.p, layout.n, ".view(", 6) == NULL);
	rc = it->rms == 0 ? 0 : acc_accepted(t->c, it, e);
	if (rc > 0)
		rc = acc_odd_other(&t->odd, r, e) < 0 ? ACC_ENOMEM : 1;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	const uint64_t before = t->other.n + t->apart.n, same = t->same.n + t->near.n;
	values(t, r, i, guessed && !alone);
	t->still |= t->same.n + t->near.n > same && it->b_rms > 0 &&
		    is_moment(acc_get_text(r, "b.", "name"));
	if (t->other.n + t->apart.n == before)
		rc = acc_odd_add(&t->odd, t->c, i, r, e);
	else
		rc = acc_odd_other(&t->odd, r, e);
	struct acc_verdict v = {.level = "error",
		.rule = "values",
		.limit = NAN,
		.value = it->rms,
		.limit_from = "torch.testing.assert_close"};
	if (t->apart.n > 0 && t->other.n + t->apart.n > before && guessed && !alone)
		v.rule = "content";
	return rc == 0 && t->other.n + t->apart.n > before
		       ? acc_case_mark(t->c, &t->c->item[i], &v, e)
		       : rc;
}

/* --- what to say --- */

/* "a, b, ..." after what stands there. */
static void
put(struct acc_weights *t, const char **text, uint64_t n, const char *what)
{
	if (n > 0 && *text != NULL)
		*text = acc_say(&t->c->mem, "%s%s%llu %s", *text, (*text)[0] == '\0' ? "" : ", ",
			(unsigned long long)n, what);
}

int
acc_weights_name(struct acc_weights *t, uint32_t i, const char **a, const char **b,
	const char **layout, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	if (rc < 0)
		return rc;
	struct acc_str s[3] = {acc_get_text(r, "", "name"), acc_get_text(r, "b.", "name"),
		acc_get_text(r, "", "m.layout")};
	const char **out[3] = {a, b, layout};
	for (int k = 0; k < 3; k++)
		if (out[k] != NULL &&
			(*out[k] = acc_arena_copy(&t->c->mem, s[k].p, s[k].n)) == NULL)
			return acc_nomem(e);
	return 0;
}

/* A finding about some of the tensors. */
static int
say(struct acc_weights *t, const struct acc_some *s, const char *rule, const char *text, bool both,
	struct acc_err *e)
{
	const char *a, *b, *layout;
	if (s->n == 0)
		return 0;
	int rc = acc_weights_name(t, s->first, &a, &b, &layout, e);
	struct acc_finding *f = rc < 0 ? NULL : acc_case_find(t->c, "unmatched", e);
	if (f == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	f->name = a;
	f->rule = rule;
	f->value = (double)s->n;
	f->doubtful = true;
	f->text = acc_say(&t->c->mem, "%s: %llu tensor%s, first %s%s%s%s%s%s", text,
		(unsigned long long)s->n, s->n == 1 ? "" : "s", a, both ? " with " : "",
		both ? b : "", both && layout[0] != '\0' ? " (" : "", both ? layout : "",
		both && layout[0] != '\0' ? ")" : "");
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* The last finding rests on this behaviour, where there is one, and where a source has this format, or framework;
 * NULL: in any case. */
static int
rests(struct acc_weights *t, bool any, const char *by, const char *id, struct acc_err *e)
{
	int fits = !any ? 0 : by == NULL ? 1 : acc_has_source(t->c, "format", by, e);
	if (any && fits == 0)
		fits = acc_has_source(t->c, "framework", by, e);
	return fits <= 0 ? fits : acc_rests_on(t->c, &t->c->finding[t->c->nfinding - 1], id, e);
}

/* What of it is beyond which limit, in mem. NULL: failure. */
static const char *
how_far(struct acc_weights *t, const struct acc_item *it, struct acc_err *e)
{
	double out = NAN, rtol = NAN, atol = NAN, rms = NAN, nonfinite = NAN, along = 0;
	struct acc_rec *r;
	if (isnan(it->max))
		return "of a different shape";
	if (acc_case_record(t->c, it, &r, e) < 0)
		return NULL;
	acc_as_f64(acc_get(r, "", "m.nonfinite"), &nonfinite);
	if (nonfinite > 0) {
		const bool quantized = acc_quant_named(acc_get_text(r, "a.", "dtype.raw")) !=
					       ACC_STORED ||
				       acc_quant_named(acc_get_text(r, "b.", "dtype.raw")) !=
					       ACC_STORED;
		const char *text = acc_say(&t->c->mem,
			"NaN or Inf on one side alone in %.0f element%s", nonfinite,
			nonfinite == 1 ? "" : "s");
		return text == NULL || !quantized
			       ? text
			       : acc_say(&t->c->mem,
					 "%s; llama.cpp's quantizers leave no NaN "
					 "(gguf-quantize-nan)",
					 text);
	}
	acc_as_f64(acc_get(r, "", "m.reach.along"), &along);
	if (acc_as_f64(acc_get(r, "", "m.reach"), &out) &&
		acc_as_f64(acc_get(r, "", "m.reach.rms"), &rms))
		return acc_say(&t->c->mem,
			"off by up to %.2g times what the rounding of its format can do; %.2g in the "
			"root mean square%s",
			out, rms,
			!is_rounding(along) ? "; by a factor that rounding does not leave" : "");
	acc_as_f64(acc_get(r, "", "m.outside"), &out);
	acc_as_f64(acc_get(r, "", "m.rtol"), &rtol);
	acc_as_f64(acc_get(r, "", "m.atol"), &atol);
	if (isnan(out) || isnan(rtol) || isnan(atol))
		return acc_say(&t->c->mem, "off by up to %.2g of the bench's%s", it->max,
			acc_got(acc_beyond(&t->c->mem, it->rms,
				LIMIT_VALUES_U * acc_unit((enum acc_dtype)it->dtype[ACC_B]), NAN)));
	if (out == 0)
		return acc_say(&t->c->mem,
			"off by up to %.2g of the bench's, of which all is as small as the tolerance of "
			"%.2g",
			it->max, atol);
	return acc_say(&t->c->mem,
		"off by up to %.2g of the bench's; %.3g %% of it outside the limit of %.2g of the "
		"bench's + %.2g",
		it->max, 100 * out, rtol, atol);
}

static int
differ(struct acc_weights *t, struct acc_finding *f, const char **text, struct acc_err *e)
{
	const char **ranked = acc_alloc(&t->c->mem, ACC_NRANKED * sizeof *ranked);
	const struct acc_item *first = &t->c->item[t->other.first];
	const struct acc_call *k = &t->c->call[first->call];
	int ok = acc_weights_name(t, t->other.first, &f->name, NULL, NULL, e);
	if (ok < 0)
		return ok;
	for (uint32_t i = 0; i < t->nworst && ranked != NULL; i++) {
		int rc = acc_weights_name(t, t->worst[i], &ranked[i], NULL, NULL, e);
		if (rc < 0)
			return rc;
	}
	if (ranked == NULL)
		return acc_nomem(e);
	f->bad = true;
	f->ranked = ranked;
	f->nranked = t->nworst;
	f->step = k->step;
	f->rank = k->by_proc ? INT64_MIN : k->rank;
	f->value = first->max;
	/* Of tensors that are no weights, an order of names is not the one that counts. */
	*text = acc_say(&t->c->mem, "%s; first%s %s, ", *text,
		t->c->by_names && t->c->item[t->other.first].io == ACC_IO_OUT
			? " by name (nothing says what ran first)"
			: "",
		f->name);
	const char *far = how_far(t, first, e);
	if (far == NULL)
		return e->code != 0 ? e->code : acc_nomem(e);
	if (*text != NULL)
		*text = acc_say(&t->c->mem, "%s%s", *text, far);
	if (*text != NULL && (ok = acc_weights_cause(t, t->other.first, text, e)) < 0)
		return ok;
	if (*text != NULL && (ok = acc_weights_from(t, text, e)) < 0)
		return ok;
	if (*text != NULL && (ok = acc_weights_step(t, text, e)) < 0)
		return ok;
	if (*text != NULL && (ok = acc_weights_rank(t->c, t->other.first, &f->rank, text, e)) < 0)
		return ok;
	if (*text != NULL && t->nworst > 1)
		*text = acc_say(&t->c->mem, "%s; worst %s", *text, ranked[0]);
	return 0;
}

/* What was paired by a guess, and is not the same: no difference of two tensors of which nothing says
 * that they belong together, but each lacks its like. */
static int
apart(struct acc_weights *t, struct acc_err *e)
{
	const char *a, *b;
	if (t->apart.n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(t->c, "missing", e);
	int rc = f == NULL ? ACC_ENOMEM : acc_weights_name(t, t->apart.first, &a, &b, NULL, e);
	if (rc < 0)
		return rc;
	f->name = a;
	f->rule = "content";
	f->value = (double)t->apart.n;
	f->bad = true;
	f->text = acc_say(&t->c->mem,
		"no tensor of the bench has the content of %llu weight%s of the device, first %s; by its"
		" place it may be %s (accalign --rename or --map says what it is)",
		(unsigned long long)t->apart.n, t->apart.n == 1 ? "" : "s", a, b);
	return f->text == NULL ? acc_nomem(e)
			       : acc_weights_rank(t->c, t->apart.first, &f->rank, &f->text, e);
}

/* One line for all of it. */
static int
summary(struct acc_weights *t, struct acc_err *e)
{
	const char *text = "";
	uint64_t pairs = t->same.n + t->cast.n + t->quantized.n + t->scaled.n + t->merged.n +
			 t->near.n + t->inside.n + t->other.n + t->apart.n + t->unknown.n;
	/* Square matrices alone turned: nobody has meant that. */
	bool turned = t->turned > 0 && t->convention == 0 && t->straight > 0;
	bool unmatched = t->only[ACC_A].n + t->only[ACC_B].n > 0;
	put(t, &text, t->same.n, "with the same values");
	put(t, &text, t->cast.n, "the same but for a cast");
	put(t, &text, t->quantized.n, "the same within the rounding of their quantized format");
	put(t, &text, t->scaled.n, "the same but for columns that were multiplied");
	put(t, &text, t->merged.n, "the same within the rounding of what an adapter is merged in");
	put(t, &text, t->near.n, "the same within torch.testing's tolerance");
	put(t, &text, t->inside.n, "inside the spread of the bench's own runs");
	put(t, &text, t->other.n, "with other values");
	put(t, &text, t->apart.n, "without their content on the other side");
	put(t, &text, t->unknown.n, "not compared");
	put(t, &text, t->renamed.n, "under another name");
	put(t, &text, t->laid.n, "in another layout");
	put(t, &text, t->only[ACC_A].n, "only in the device");
	put(t, &text, t->only[ACC_B].n, "only in the bench");
	struct acc_finding *f = acc_case_find(t->c,
		t->other.n > 0 || turned || t->copies.n[ACC_A] + t->copies.n[ACC_B] > 0
			? "difference"
		: unmatched || t->unknown.n > 0 ? "unmatched"
						: "clean",
		e);
	if (f == NULL || text == NULL)
		return acc_nomem(e);
	f->rule = "same values";
	f->value = (double)pairs;
	text = acc_say(&t->c->mem, "%llu tensor%s compared: %s", (unsigned long long)pairs,
		pairs == 1 ? "" : "s", text);
	f->bad = turned;
	if (turned && text != NULL)
		text = acc_say(&t->c->mem,
			"%s; %llu square matri%s of the same shape"
			" transposed, and no other matrix is",
			text, (unsigned long long)t->turned, t->turned == 1 ? "x is" : "ces are");
	int rc = text == NULL ? 0 : acc_weights_mesh(t->c, &text, e);
	if (rc == 0 && t->nworst > 0 && text != NULL)
		rc = differ(t, f, &text, e);
	f->text = text;
	return rc == 0 && text == NULL ? acc_nomem(e) : rc;
}

static int
judge(struct acc_case *c, struct acc_err *e)
{
	struct acc_weights t = {.c = c};
	int rc = acc_odd_sources(&t.odd, c, e);
	if (rc >= 0)
		rc = acc_weights_scaled(&t, e);
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i))
		if (c->item[i].kind == ACC_ITEM_TENSOR)
			rc = look(&t, i, e);
	/* Flax turns its kernels, and no embedding. */
	t.odd.usual = t.straight > 3 * t.convention   ? ACC_USUAL_STRAIGHT
		      : t.convention > 3 * t.straight ? ACC_USUAL_TURNED
						      : ACC_USUAL_NONE;
	if (rc >= 0)
		rc = acc_odd_find(&t.odd, c, e);
	if (t.unseen)
		c->nothing = "the elements of some weights cannot be seen";
	if (rc >= 0)
		rc = summary(&t, e);
	if (rc >= 0)
		rc = acc_say_neither(c, true, e);
	if (rc >= 0)
		rc = acc_weights_say_copies(&t.copies, c, e);
	if (rc >= 0)
		rc = acc_odd_say(&t.odd, c, e);
	if (rc >= 0)
		rc = apart(&t, e);
	if (rc >= 0)
		rc = acc_weights_say_scaled(&t, e);
	if (rc >= 0)
		rc = acc_weights_strangers(&t, e);
	if (rc >= 0)
		rc = acc_weights_lost(&t, e);
	if (rc >= 0)
		rc = acc_weights_settings(&t, e);
	if (rc >= 0)
		rc = say(&t, &t.only[ACC_A], "device", "only in the device", false, e);
	if (rc >= 0)
		rc = say(&t, &t.only[ACC_B], "bench", "only in the bench", false, e);
	if (rc >= 0)
		rc = say(&t, &t.guessed, "pairing",
			"paired by content, shape or order, not by name"
			" (state the names with accalign --rename or --map; where both sides are measured"
			" before, content does)",
			true, e);
	if (rc >= 0)
		rc = say(&t, &t.renamed, "name", "under another name", true, e);
	if (rc >= 0)
		rc = say(&t, &t.laid, "layout", "in another layout", true, e);
	if (rc >= 0)
		rc = say(&t, &t.dtype, "dtype", "in another dtype", true, e);
	if (rc >= 0)
		rc = rests(&t, t.dtype.n > 0, "dcp", "dcp-load-casts", e);
	if (rc >= 0)
		rc = rests(&t, t.dtype.n > 0, "orbax", "orbax-restore-casts", e);
	if (rc >= 0)
		rc = rests(&t, t.moments.n > 0, "pytorch", "torch-optimizer-load-casts", e);
	if (rc >= 0)
		rc = rests(&t, t.moments.n > 0, "jax", "optax-moments-two-dtypes", e);
	if (rc >= 0)
		rc = say(&t, &t.emptied, "empty",
			"mostly lost, since a block's scale cannot be so small", true, e);
	if (rc >= 0)
		rc = rests(&t, t.emptied.n > 0, NULL, "gguf-tiny-blocks", e);
	if (rc >= 0)
		rc = say(&t, &t.unknown, "unmeasured", "not compared", true, e);
	acc_odd_release(&t.odd);
	acc_ids_release(&t.folded);
	acc_ids_release(&t.columns);
	return rc;
}

static bool
fits(const struct acc_case *c)
{
	return c->passed == 0;
}

const struct acc_judge acc_judge_weights = {
	.fits = fits,
	.judge = judge,
};
