/* Weights that one side has and the other lacks. */
#include "judge/weights.h"
#include "acc/say.h"

#include <math.h>

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

/* What the pairs have of a side: layers, by the part of its names before them; shapes of two dimensions or more, and
 * content; steps and ranks. And what is missing of its counterpart. */
struct common {
	struct acc_ids layer, shape, content, place;
	uint64_t pairs;   /* that belong to no layer */
	uint64_t outside; /* weights of no layer that only this side has */
	uint64_t least,
		all; /* elements of the smallest that only this side has, and of all those */
	uint64_t
		inside; /* elements of matrices that only this side has, in layers that both have */
	struct acc_some within, layers,
		beyond; /* of a layer that both have; of whole layers; of none */
};

static const char *const prefixes[] = {"a.", "b."};

/* What a side's record of a tensor says. */
struct own {
	const char *name;
	uint64_t layer, shape, content, place; /* hashes; 0: none, unknown */
	bool zero;                             /* all of it is 0 */
	bool buffer;                           /* it is said to be one */
	bool vector, varied;                   /* of one axis; not all the same */
};

static int
own_of(struct acc_weights *t, uint32_t i, int side, struct own *o, struct acc_err *e)
{
	struct acc_rec *r;
	const char *p = prefixes[side];
	double min = NAN, max = NAN;
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	if (rc < 0)
		return rc;
	struct acc_str name = acc_get_text(r, p, "name"), hash = acc_get_text(r, p, "s.hash");
	const struct acc_val *v = acc_get(r, p, "shape");
	const int64_t place[2] = {acc_get_int(r, p, "step", INT64_MIN),
		acc_get_int(r, p, "rank", INT64_MIN)};
	acc_as_f64(acc_get(r, p, "s.min"), &min);
	acc_as_f64(acc_get(r, p, "s.max"), &max);
	*o = (struct own){.name = acc_arena_copy(&t->c->mem, name.p, name.n),
		.place = acc_hash(place, sizeof place),
		.content = hash.n == 0 ? 0 : acc_hash(hash.p, hash.n),
		.zero = min == 0 && max == 0,
		.vector = v != NULL && v->type == ACC_V_INTS && v->n == 1,
		.varied = min < max};
	acc_as_bool(acc_get(r, p, "buffer"), &o->buffer);
	if (o->name == NULL)
		return acc_nomem(e);
	if (v != NULL && v->type == ACC_V_INTS && v->n > 1)
		o->shape = acc_hash(v->ints, v->n * sizeof *v->ints);
	struct acc_str l = layer(o->name);
	o->layer = l.n == 0 ? 0 : acc_hash(l.p, l.n);
	return 0;
}

/* A pair, on one of its sides. */
static int
look_pair(struct acc_weights *t, uint32_t i, int side, struct common *c, struct acc_err *e)
{
	struct own o;
	int rc = own_of(t, i, side, &o, e);
	if (rc == 0 && o.layer != 0)
		rc = acc_ids_put(&c->layer, o.layer, i, false, e);
	c->pairs += o.layer == 0;
	if (rc == 0 && o.shape != 0)
		rc = acc_ids_put(&c->shape, o.shape, i, false, e);
	if (rc == 0 && o.content != 0)
		rc = acc_ids_put(&c->content, o.content, i, false, e);
	return rc < 0 ? rc : acc_ids_put(&c->place, o.place, i, false, e);
}

/* What is no weight of the model: states of an optimizer, and what belongs to quantized weights. */
static bool
is_beside(const char *name)
{
	static const char *const globs[] = {"optimizer.*", "optimizer_state*", "*.exp_avg",
		"*.exp_avg_sq", "*_scale", "*_scale_inv", "*.scale", "*.zero_point", "*rope.freqs",
		"*rotary_emb*"};
	/* Flax calls the weight of a norm so. */
	static const char *const norms[] = {"*norm*.scale", "*.ln*.scale"};
	bool norm = false, beside = false;
	for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
		norm |= acc_glob(norms[i], acc_str(name));
	for (size_t i = 0; i < sizeof globs / sizeof *globs; i++)
		beside |= acc_glob(globs[i], acc_str(name));
	return beside && !norm;
}

/* Positions and masks: nothing is trained, and no format of quantized weights keeps them, in these. */
static bool
is_index(enum acc_dtype t)
{
	return t == ACC_I64 || t == ACC_BOOL;
}

/* The elements of what one side has alone. */
static int
elements(struct acc_weights *t, uint32_t i, uint64_t *n, struct acc_err *e)
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

/* What one side has alone. */
static int
look_alone(struct acc_weights *t, uint32_t i, int side, bool named_alike, struct common *c,
	struct acc_err *e)
{
	const struct acc_item *it = &t->c->item[i];
	struct own o;
	int rc = own_of(t, i, side, &o, e);
	if (rc < 0)
		return rc;
	if (o.buffer || is_buffer(o.name) || is_beside(o.name) || acc_may_lack(t->c, o.name) ||
		it->ndim == 0 || it->ndim == 255 || is_index((enum acc_dtype)it->dtype[side]))
		return 0;
	/* A bias that is zero is as good as none where other programs name it. */
	if (!named_alike && o.zero)
		return 0;
	/* A step or rank that one side does not have at all is no lack of single tensors. */
	if (acc_ids_get(&c->place, o.place) == ACC_NOID)
		return 0;
	uint64_t n;
	if ((rc = elements(t, i, &n, e)) < 0)
		return rc;
	c->least = c->all == 0 || n < c->least ? n : c->least;
	c->all += n;
	if (o.layer != 0) {
		if (it->ndim > 1 && acc_ids_get(&c->layer, o.layer) != ACC_NOID)
			c->inside += n;
		acc_some_add(acc_ids_get(&c->layer, o.layer) != ACC_NOID ? &c->within : &c->layers,
			i);
		return 0;
	}
	/* It may be tied to another matrix: that has its shape, and, where that is known, its content. A vector, such as
	 * the bias of a head, has another's content, which is none that many have. */
	const bool held = o.content != 0 && acc_ids_get(&c->content, o.content) != ACC_NOID;
	const bool tied = o.vector ? held && (o.varied || o.zero)
				   : o.shape != 0 && acc_ids_get(&c->shape, o.shape) != ACC_NOID &&
					     (o.content == 0 || held);
	c->outside++;
	if (!tied)
		acc_some_add(&c->beyond, i);
	c->outside -= tied;
	return 0;
}

/* Each side has a weight that the other lacks, and they may be the same one. */
int
acc_weights_strangers(struct acc_weights *t, struct acc_err *e)
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
		int rc = acc_weights_name(t, i, &own, NULL, NULL, e);
		if (rc < 0)
			return rc;
		struct acc_rec *r;
		bool buffer = false;
		rc = acc_case_record(t->c, it, &r, e);
		if (rc < 0)
			return rc;
		acc_as_bool(acc_get(r, prefixes[side], "buffer"), &buffer);
		if (buffer || is_buffer(own) || acc_may_lack(t->c, own))
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

static int
say_lost(struct acc_weights *t, int side, const struct common *c, struct acc_err *e)
{
	static const char *const whose[] = {"device", "bench"};
	/* What has its beginning and its end, the embedding and the last norm, is no stage of a pipeline. */
	const bool whole = c->pairs > 0 && c->outside == 0;
	const struct acc_some *const some[] = {&c->within, whole ? &c->layers : NULL,
		c->layers.n == 0 ? &c->beyond : NULL};
	uint64_t n = 0;
	uint32_t first = 0;
	for (int k = 0; k < 3; k++)
		if (some[k] != NULL && some[k]->n > 0) {
			first = n == 0 || some[k]->first < first ? some[k]->first : first;
			n += some[k]->n;
		}
	if (n == 0)
		return 0;
	struct acc_finding *f = acc_case_find(t->c, "missing", e);
	if (f == NULL || acc_weights_name(t, first, &f->name, NULL, NULL, e) < 0)
		return acc_nomem(e);
	f->rule = "weights";
	f->value = (double)n;
	f->bad = true;
	f->text = acc_say(&t->c->mem,
		"the %s lacks %llu %s%s that the %s has, first %s"
		" (--allow-missing accepts it)",
		whose[!side], (unsigned long long)n,
		t->c->item[first].io == ACC_IO_PARAM ? "weight" : "tensor", n == 1 ? "" : "s",
		whose[side], f->name);
	return f->text == NULL ? acc_nomem(e) : 0;
}

/* Does one of the sides call a pair a parameter? A .npz calls nothing so. */
static int
are_weights(struct acc_weights *t, uint32_t i, struct acc_err *e)
{
	struct acc_rec *r;
	int rc = acc_case_record(t->c, &t->c->item[i], &r, e);
	return rc < 0 ? rc
		      : acc_str_is(acc_get_text(r, "a.", "io"), "param") ||
				acc_str_is(acc_get_text(r, "b.", "io"), "param");
}

int
acc_weights_lost(struct acc_weights *t, struct acc_err *e)
{
	struct acc_recorded how;
	struct common both[2] = {{.pairs = 0}, {.pairs = 0}};
	uint32_t first = 0;
	while (first < t->c->nitem &&
		(t->c->item[first].kind != ACC_ITEM_TENSOR || t->c->item[first].sides != 3))
		first++;
	if (first >= t->c->nitem || t->only[ACC_A].n + t->only[ACC_B].n == 0)
		return 0;
	int rc = acc_recorded(t->c, &t->c->call[t->c->item[first].call], &how, e);
	/* Other programs write weights, or tensors of any kind, in ways of their own. */
	const bool alike = how.alike && t->renamed.n == 0;
	const int weights = rc < 0 || alike ? 1 : are_weights(t, first, e);
	if (rc < 0 || weights <= 0)
		return rc < 0 ? rc : weights;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < t->c->nitem && rc == 0; i = acc_step(t->c, i)) {
			const struct acc_item *it = &t->c->item[i];
			if (it->kind != ACC_ITEM_TENSOR || (it->sides == 3) != (pass == 0))
				continue;
			for (int side = ACC_A; side <= ACC_B && rc == 0; side++)
				if (pass == 0)
					rc = look_pair(t, i, side, &both[side], e);
				else if (it->sides >> side & 1)
					rc = look_alone(t, i, side, alike, &both[side], e);
		}
	/* Where each lacks something, it may be the same under names of its own. */
	uint64_t n[2];
	for (int side = ACC_A; side <= ACC_B; side++) {
		const struct common *c = &both[side];
		n[side] = c->within.n + c->layers.n + c->beyond.n;
	}
	const int more = both[ACC_B].inside > both[ACC_A].inside ? ACC_B : ACC_A;
	const bool uneven = both[!more].inside > 0 && both[more].inside > both[!more].inside;
	const int side = uneven                                                ? more
			 : n[ACC_B] > 0 && both[ACC_B].least > both[ACC_A].all ? ACC_B
			 : n[ACC_A] > 0                                        ? ACC_A
									       : ACC_B;
	/* All that the other has alone cannot be any of these, or not all of these: there are too few elements. */
	const bool sure = t->guessed.n == 0 || t->only[!side].n == 0;
	if (rc == 0 && sure && (uneven || n[!side] == 0 || both[side].least > both[!side].all))
		rc = say_lost(t, side, &both[side], e);
	for (int s = ACC_A; s <= ACC_B; s++) {
		acc_ids_release(&both[s].layer);
		acc_ids_release(&both[s].shape);
		acc_ids_release(&both[s].content);
		acc_ids_release(&both[s].place);
	}
	return rc;
}
