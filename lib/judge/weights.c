/* Tensors that belong to no op call: do both sides have the same weights, the same batch? Values
 * must be equal but for a cast; nothing computes here that could explain a difference. */
#include "judge/weights.h"
#include "acc/tensor.h"
#include "acc/say.h"

#include <math.h>

#include "judge/limits.h"

/* Some of the tensors: how many, and the first. */
struct some {
	uint64_t n;
	uint32_t first;
};

enum { NRANKED = 8 };

struct count {
	struct acc_case *c;
	struct some same, cast, near, other, apart, unknown; /* each pair is one of these */
	struct some only[2], renamed, guessed, laid, dtype;
	struct acc_odd odd;
	struct acc_copies copies;
	uint64_t turned, straight; /* square ones of other order; not square ones of the same */
	uint64_t convention;       /* not square ones of other order */
	uint32_t worst[NRANKED];   /* items, the worst first */
	uint32_t nworst;
};

static void
add(struct some *s, uint32_t i)
{
	if (s->n++ == 0)
		s->first = i;
}

static void
rank(struct count *t, uint32_t i)
{
	const struct acc_item *item = t->c->item;
	uint32_t at = t->nworst;
	while (at > 0 && !(item[t->worst[at - 1]].rms >= item[i].rms))
		at--;
	if (at == NRANKED)
		return;
	uint32_t n = t->nworst < NRANKED ? t->nworst++ : NRANKED - 1;
	for (; n > at; n--)
		t->worst[n] = t->worst[n - 1];
	t->worst[at] = i;
}

/* A pair that holds something else. One that was guessed says no more than that neither of the two has
 * its content on the other side. */
static void
differs(struct count *t, uint32_t i, bool guessed)
{
	add(guessed ? &t->apart : &t->other, i);
	if (!guessed)
		rank(t, i);
}

/* Which order the axes of a matrix have, where it can tell. */
static void
order(struct count *t, const struct acc_rec *r, bool permuted)
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

static void
values(struct count *t, const struct acc_rec *r, uint32_t i, bool guessed)
{
	const struct acc_item *it = &t->c->item[i];
	double same = NAN, outside = NAN;
	bool equal = false, known = acc_as_bool(acc_get(r, "", "m.equal"), &equal);
	acc_as_f64(acc_get(r, "", "m.same"), &same);
	acc_as_f64(acc_get(r, "", "m.outside"), &outside);
	if (isnan(same) && !known && it->measure == ACC_UNMEASURED) {
		/* Other shapes cannot hold the same values. */
		if (acc_get(r, "", "m.skip") != NULL && it->note_shape && !it->broken) {
			differs(t, i, guessed);
		} else {
			add(&t->unknown, i);
		}
	} else if (same == 1 || (isnan(same) && (known ? equal : it->rms == 0))) {
		add(it->note_dtype ? &t->cast : &t->same, i);
	} else if (outside == 0 ||
		   (isnan(outside) && it->rms <= LIMIT_VALUES_U * acc_unit(it->dtype[ACC_B]))) {
		add(&t->near, i);
	} else {
		differs(t, i, guessed);
	}
}

static int
look(struct count *t, uint32_t i, struct acc_err *e)
{
	static const char *const guess[] = {"content", "pattern", "part", "order", "place"};
	const struct acc_item *it = &t->c->item[i];
	struct acc_rec *r;
	int copies = acc_weights_copies(&t->copies, t->c, i, e);
	if (copies < 0)
		return copies;
	if (it->sides != 3) {
		add(&t->only[it->sides & 1 ? ACC_A : ACC_B], i);
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
		add(&t->guessed, i);
	else if (acc_str_is(how, "rule") || acc_str_is(how, "path"))
		add(&t->renamed, i);
	if (layout.n > 0)
		add(&t->laid, i);
	if (it->note_dtype)
		add(&t->dtype, i);
	order(t, r, memmem(layout.p, layout.n, "permute", 7) != NULL);
	rc = it->rms == 0 ? 0 : acc_accepted(t->c, it, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	const uint64_t before = t->other.n + t->apart.n;
	values(t, r, i, guessed && !alone);
	if (t->other.n + t->apart.n == before)
		rc = acc_odd_add(&t->odd, t->c, i, r, e);
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
put(struct count *t, const char **text, uint64_t n, const char *what)
{
	if (n > 0 && *text != NULL)
		*text = acc_say(&t->c->mem, "%s%s%llu %s", *text, (*text)[0] == '\0' ? "" : ", ",
			(unsigned long long)n, what);
}

static int
name_of(struct count *t, uint32_t i, const char **a, const char **b, const char **layout,
	struct acc_err *e)
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
say(struct count *t, const struct some *s, const char *rule, const char *text, bool both,
	struct acc_err *e)
{
	const char *a, *b, *layout;
	if (s->n == 0)
		return 0;
	int rc = name_of(t, s->first, &a, &b, &layout, e);
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

/* What one side may lack: buffers, which the program makes anew. */
static bool
is_buffer(const char *name)
{
	static const char *const globs[] = {"*running_mean", "*running_var", "*num_batches_tracked",
		"*inv_freq", "*position_ids", "*_extra_state*", "*masked_bias", "*attn.bias",
		"*attention.bias", "*mask", "*relative_position_index", "*_cached", "*rng_state*"};
	for (size_t i = 0; i < sizeof globs / sizeof *globs; i++)
		if (acc_glob(globs[i], acc_str(name)))
			return true;
	return false;
}

/* A name up to the number of its layer, "model.layers.3."; without one, nothing. */
static struct acc_str
layer(const char *name)
{
	const char *end = name;
	for (const char *p = name; (p = strchr(p, '.')) != NULL; p++) {
		size_t digits = strspn(p + 1, "0123456789");
		if (digits > 0 && p[1 + digits] == '.')
			end = p + digits + 2;
	}
	return (struct acc_str){name, (uint32_t)(end - name)};
}

/* What both sides have: layers, and shapes of two dimensions or more. */
struct common {
	struct acc_ids layer, shape, place; /* place: step and rank */
	bool whole; /* one side lacks whole layers, as a stage of a pipeline does */
};

/* Step and rank of a side's tensor, in one number. */
static int
place_of(struct count *t, uint32_t i, int side, uint64_t *place, struct acc_err *e)
{
	struct acc_rec *r;
	const char *prefix = side == ACC_A ? "a." : "b.";
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	const int64_t v[3] = {side, rc < 0 ? 0 : acc_get_int(r, prefix, "step", INT64_MIN),
		rc < 0 ? 0 : acc_get_int(r, prefix, "rank", INT64_MIN)};
	*place = acc_hash(v, sizeof v);
	return rc;
}

/* The name of a tensor, and a hash of its shape; 0: of fewer than two dimensions. */
static int
shape_of(struct count *t, uint32_t i, const char **name, uint64_t *shape, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	if (rc < 0)
		return rc;
	const struct acc_val *v = acc_get(r, t->c->item[i].sides & 1 ? "a." : "b.", "shape");
	bool matrix = v != NULL && v->type == ACC_V_INTS && v->n > 1;
	*shape = matrix ? acc_hash(v->ints, v->n * sizeof *v->ints) : 0;
	return name_of(t, i, name, NULL, NULL, e);
}

/* Of what one side has alone: is it a weight that the other should have? It has its layer; or
 * others without a layer, and no tensor of this shape, which might be tied to it. */
static int
is_lost(struct count *t, const struct common *both, uint32_t i, struct acc_err *e)
{
	const struct acc_item *it = &t->c->item[i];
	const char *name;
	uint64_t shape, place;
	int rc = shape_of(t, i, &name, &shape, e);
	if (rc < 0)
		return rc;
	struct acc_str l = layer(name);
	if (is_buffer(name) || acc_may_lack(t->c, name) || it->ndim == 0 || it->ndim == 255)
		return 0;
	/* A step or rank that one side does not have at all is no lack of single tensors. */
	rc = place_of(t, i, it->sides & 1 ? ACC_A : ACC_B, &place, e);
	if (rc < 0 || acc_ids_get(&both->place, place) == ACC_NOID)
		return rc;
	if (l.n > 0)
		return acc_ids_get(&both->layer, acc_hash(l.p, l.n)) != ACC_NOID;
	return !both->whole && (shape == 0 || acc_ids_get(&both->shape, shape) == ACC_NOID);
}

static int
look_common(struct count *t, uint32_t i, struct common *both, struct acc_err *e)
{
	const char *name;
	uint64_t shape, place;
	int rc = shape_of(t, i, &name, &shape, e);
	if (rc < 0)
		return rc;
	struct acc_str l = layer(name);
	uint64_t id = acc_hash(l.p, l.n);
	if (t->c->item[i].sides != 3) {
		both->whole |= l.n > 0 && acc_ids_get(&both->layer, id) == ACC_NOID;
		return 0;
	}
	if (l.n > 0)
		rc = acc_ids_put(&both->layer, id, i, false, e);
	if (rc == 0 && shape != 0)
		rc = acc_ids_put(&both->shape, shape, i, false, e);
	for (int side = ACC_A; side <= ACC_B && rc == 0; side++)
		if ((rc = place_of(t, i, side, &place, e)) >= 0)
			rc = acc_ids_put(&both->place, place, i, false, e);
	return rc;
}

static int
commons(struct count *t, struct common *both, struct acc_err *e)
{
	int rc = 0;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < t->c->nitem && rc == 0; i = acc_step(t->c, i))
			if (t->c->item[i].kind == ACC_ITEM_TENSOR &&
				(t->c->item[i].sides == 3) == (pass == 0))
				rc = look_common(t, i, both, e);
	return rc;
}

/* The elements of what one side has alone. */
static int
elements(struct count *t, uint32_t i, uint64_t *n, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	const struct acc_val *v = rc < 0 ? NULL
					 : acc_get(r, t->c->item[i].sides & 1 ? "a." : "b.",
						   "shape");
	*n = 0;
	if (v != NULL && v->type == ACC_V_INTS && !acc_count(v->ints, v->n, n))
		*n = 0;
	return rc < 0 ? rc : 0;
}

/* Each side has a weight that the other lacks, and they may be the same one. */
static int
strangers(struct count *t, struct acc_err *e)
{
	const char *name[2] = {NULL, NULL};
	uint64_t n[2] = {0, 0}, count[2] = {0, 0};
	uint8_t ndim[2] = {0, 0};
	for (uint32_t i = 0; i < t->c->nitem; i = acc_step(t->c, i)) {
		const struct acc_item *it = &t->c->item[i];
		const int side = it->sides == 1 ? ACC_A : ACC_B;
		const char *own;
		if (it->kind != ACC_ITEM_TENSOR || it->sides == 3 || it->sides == 0 ||
			it->ndim == 0 || it->ndim == 255)
			continue;
		int rc = name_of(t, i, &own, NULL, NULL, e);
		if (rc < 0)
			return rc;
		if (is_buffer(own) || acc_may_lack(t->c, own))
			continue;
		if (n[side]++ == 0 || (it->ndim > 1 && ndim[side] < 2)) {
			name[side] = own;
			ndim[side] = it->ndim;
			rc = elements(t, i, &count[side], e);
			if (rc < 0)
				return rc;
		}
	}
	if (n[0] == 0 || n[1] == 0 || t->guessed.n == 0 ||
		(count[0] != count[1] && (ndim[0] < 2 || ndim[1] < 2)))
		return 0;
	struct acc_finding *f = acc_case_find(t->c, "missing", e);
	if (f == NULL)
		return ACC_ENOMEM;
	f->name = name[0];
	f->rule = "content";
	f->value = (double)(n[0] + n[1]);
	f->bad = true;
	f->text = acc_say(&t->c->mem,
		"%llu weight%s of the device and %llu of the bench have nothing of that content on the"
		" other side, first %s and %s (accalign --rename or --map says what they are)",
		(unsigned long long)n[0], n[0] == 1 ? "" : "s", (unsigned long long)n[1], name[0],
		name[1]);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Weights that one of two files of the same kind and names lacks. */
static int
lost(struct count *t, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	int side = t->only[ACC_A].n > 0 ? ACC_A : ACC_B;
	uint64_t pairs = t->same.n + t->cast.n + t->near.n + t->other.n + t->apart.n + t->unknown.n;
	struct acc_recorded how;
	struct common both = {.whole = false};
	struct some gone = {0};
	if (t->only[side].n == 0 || t->only[!side].n > 0 || pairs == 0 || t->guessed.n > 0 ||
		t->renamed.n > 0 || t->laid.n > 0)
		return 0;
	uint32_t first = 0;
	while (t->c->item[first].kind != ACC_ITEM_TENSOR || t->c->item[first].sides != 3)
		first++;
	int rc = acc_recorded(t->c, &t->c->call[t->c->item[first].call], &how, e);
	if (rc < 0 || !how.alike)
		return rc;
	rc = commons(t, &both, e);
	for (uint32_t i = 0; i < t->c->nitem && rc >= 0; i = acc_step(t->c, i)) {
		const struct acc_item *it = &t->c->item[i];
		if (it->kind != ACC_ITEM_TENSOR || it->sides == 3 || it->sides == 0)
			continue;
		rc = is_lost(t, &both, i, e);
		if (rc > 0)
			add(&gone, i);
	}
	acc_ids_release(&both.layer);
	acc_ids_release(&both.shape);
	acc_ids_release(&both.place);
	if (rc < 0 || gone.n == 0)
		return rc < 0 ? rc : 0;
	struct acc_finding *f = acc_case_find(t->c, "missing", e);
	if (f == NULL || name_of(t, gone.first, &f->name, NULL, NULL, e) < 0)
		return acc_nomem(e);
	f->rule = "weights";
	f->value = (double)gone.n;
	f->bad = true;
	f->text = acc_say(&t->c->mem,
		"the %s lacks %llu %s%s that the %s has, first %s"
		" (--allow-missing accepts it)",
		whose[!side], (unsigned long long)gone.n,
		t->c->item[gone.first].io == ACC_IO_PARAM ? "weight" : "tensor",
		gone.n == 1 ? "" : "s", whose[side], f->name);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* What of it is beyond which limit, in mem. NULL: failure. */
static const char *
how_far(struct count *t, const struct acc_item *it, struct acc_err *e)
{
	double out = NAN, rtol = NAN, atol = NAN, nonfinite = NAN;
	struct acc_rec *r;
	if (isnan(it->max))
		return "of a different shape";
	if (acc_case_record(t->c, it, &r, e) < 0)
		return NULL;
	acc_as_f64(acc_get(r, "", "m.nonfinite"), &nonfinite);
	if (nonfinite > 0)
		return acc_say(&t->c->mem, "NaN or Inf on one side alone in %.0f element%s",
			nonfinite, nonfinite == 1 ? "" : "s");
	acc_as_f64(acc_get(r, "", "m.outside"), &out);
	acc_as_f64(acc_get(r, "", "m.rtol"), &rtol);
	acc_as_f64(acc_get(r, "", "m.atol"), &atol);
	if (isnan(out) || isnan(rtol) || isnan(atol))
		return acc_say(&t->c->mem, "off by up to %.2g of the bench's%s", it->max,
			acc_got(acc_beyond(&t->c->mem, it->rms,
				LIMIT_VALUES_U * acc_unit((enum acc_dtype)it->dtype[ACC_B]), NAN)));
	return acc_say(&t->c->mem,
		"off by up to %.2g of the bench's; %.3g %% of it outside the limit of %.2g of the "
		"bench's + %.2g",
		it->max, 100 * out, rtol, atol);
}

static int
differ(struct count *t, struct acc_finding *f, const char **text, struct acc_err *e)
{
	const char **ranked = acc_alloc(&t->c->mem, NRANKED * sizeof *ranked);
	const struct acc_item *first = &t->c->item[t->other.first];
	const struct acc_call *k = &t->c->call[first->call];
	int ok = name_of(t, t->other.first, &f->name, NULL, NULL, e);
	if (ok < 0)
		return ok;
	for (uint32_t i = 0; i < t->nworst && ranked != NULL; i++) {
		int rc = name_of(t, t->worst[i], &ranked[i], NULL, NULL, e);
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
	if (*text != NULL && (ok = acc_weights_rank(t->c, t->other.first, &f->rank, text, e)) < 0)
		return ok;
	if (*text != NULL && t->nworst > 1)
		*text = acc_say(&t->c->mem, "%s; worst %s", *text, ranked[0]);
	return 0;
}

/* What was paired by a guess, and is not the same: no difference of two tensors of which nothing says
 * that they belong together, but each lacks its like. */
static int
apart(struct count *t, struct acc_err *e)
{
	const char *a, *b;
	if (t->apart.n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(t->c, "missing", e);
	int rc = f == NULL ? ACC_ENOMEM : name_of(t, t->apart.first, &a, &b, NULL, e);
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
summary(struct count *t, struct acc_err *e)
{
	const char *text = "";
	uint64_t pairs = t->same.n + t->cast.n + t->near.n + t->other.n + t->apart.n + t->unknown.n;
	/* Square matrices alone turned: nobody has meant that. */
	bool turned = t->turned > 0 && t->convention == 0 && t->straight > 0;
	bool unmatched = t->only[ACC_A].n + t->only[ACC_B].n > 0;
	put(t, &text, t->same.n, "with the same values");
	put(t, &text, t->cast.n, "the same but for a cast");
	put(t, &text, t->near.n, "the same within torch.testing's tolerance");
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
	struct count t = {.c = c};
	int rc = 0;
	for (uint32_t i = 0; i < c->nitem && rc >= 0; i = acc_step(c, i))
		if (c->item[i].kind == ACC_ITEM_TENSOR)
			rc = look(&t, i, e);
	if (rc >= 0)
		rc = acc_odd_find(&t.odd, c, e);
	if (rc >= 0)
		rc = summary(&t, e);
	if (rc >= 0)
		rc = acc_weights_say_copies(&t.copies, c, e);
	if (rc >= 0)
		rc = acc_odd_say(&t.odd, c, e);
	if (rc >= 0)
		rc = apart(&t, e);
	if (rc >= 0)
		rc = strangers(&t, e);
	if (rc >= 0)
		rc = lost(&t, e);
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
		rc = say(&t, &t.unknown, "unmeasured", "not compared", true, e);
	acc_odd_release(&t.odd);
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
