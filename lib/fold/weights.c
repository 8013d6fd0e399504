/* Checkpoints over ranks: which parts make up which weight. */
#include "fold/weights.h"

#include <stdlib.h>

#include "acc/file.h"

enum { MOST_SHARES = 4096 };

void
acc_weights_free(struct fold_weights *t)
{
	if (t == NULL)
		return;
	acc_map_release(&t->places);
	acc_arena_release(&t->mem);
	free(t->part);
	free(t->w);
	free(t);
}

/* --- parts --- */

/* The digits behind `word`, which s begins with, and what follows them. */
static bool
number(struct acc_str *s, const char *word, int64_t *out)
{
	uint32_t n = (uint32_t)strlen(word), k = n;
	if (!acc_str_starts(*s, word))
		return false;
	while (k < s->n && s->p[k] >= '0' && s->p[k] <= '9')
		k++;
	if (!acc_str_int((struct acc_str){s->p + n, k - n}, out) || *out < 0 || *out >= MOST_SHARES)
		return false;
	*s = (struct acc_str){s->p + k, s->n - k};
	return true;
}

/* The numbers of mp_rank_TT_PPP_EEE, and of [bf16_]zero_pp_rank_D_ before it, or of layer_L_expert_E_; how
 * many of the first, or 0. Of layer_L-model_TT it is one. */
static int
place_of(struct acc_str s, int64_t c[FOLD_COORDS])
{
	int n = 0;
	if (acc_str_starts(s, "bf16_"))
		s = (struct acc_str){s.p + 5, s.n - 5};
	if (number(&s, "zero_pp_rank_", &c[3]) && acc_str_starts(s, "_"))
		s = (struct acc_str){s.p + 1, s.n - 1};
	int64_t other;
	if (number(&s, "layer_", &other) && number(&s, "-model_", &c[0]))
		return 1;
	if (acc_str_starts(s, "_"))
		s = (struct acc_str){s.p + 1, s.n - 1};
	if (number(&s, "expert_", &other) && acc_str_starts(s, "_"))
		s = (struct acc_str){s.p + 1, s.n - 1};
	if (!acc_str_starts(s, "mp_rank_"))
		return 0;
	for (uint32_t i = 7; i < s.n && s.p[i] == '_' && n < 3;) {
		uint32_t k = i + 1;
		while (k < s.n && s.p[k] >= '0' && s.p[k] <= '9')
			k++;
		if (!acc_str_int((struct acc_str){s.p + i + 1, k - i - 1}, &c[n]) || c[n] < 0 ||
			c[n] >= MOST_SHARES)
			break;
		n++;
		i = k;
	}
	return n;
}

int
acc_weights_place(const struct fold_weights *t, const struct acc_rec *r, int64_t c[FOLD_COORDS])
{
	const uint64_t *place = acc_map_get(&t->places, acc_get_text(r, "", "src"));
	memset(c, 0, FOLD_COORDS * sizeof *c);
	return place == NULL ? 0 : place_of(*(const struct acc_str *)(uintptr_t)*place, c);
}

static int
add_source(struct fold_weights *t, const struct acc_rec *r, struct acc_err *e)
{
	struct acc_str place = acc_get_text(r, "", "place"), id = acc_get_text(r, "", "id");
	char *copy = acc_arena_copy(&t->mem, place.p, place.n);
	struct acc_str *s = acc_alloc(&t->mem, sizeof *s);
	if (copy == NULL || s == NULL ||
		acc_map_put(&t->places, id, (uint64_t)(uintptr_t)s) == NULL)
		return acc_nomem(e);
	*s = (struct acc_str){copy, place.n};
	t->whole |= acc_word_in("universal dcp", acc_get_text(r, "", "format"));
	return 0;
}

static const int64_t *
ints(struct fold_weights *t, const struct acc_rec *r, const char *key, uint32_t n, bool *lost)
{
	const struct acc_val *v = acc_get(r, "", key);
	if (v == NULL || v->type != ACC_V_INTS || v->n != n)
		return NULL;
	int64_t *copy = acc_alloc(&t->mem, (n + 1) * sizeof *copy);
	*lost |= copy == NULL;
	if (copy != NULL && n > 0) /* an array without elements lies nowhere */
		memcpy(copy, v->ints, n * sizeof *copy);
	return copy;
}

/* A name without the range that a part of a distributed checkpoint has. */
static struct acc_str
without_range(struct acc_str s)
{
	const char *p = s.n > 0 && s.p[s.n - 1] == ']' ? memrchr(s.p, '[', s.n) : NULL;
	return p == NULL || p == s.p ? s : (struct acc_str){s.p, (uint32_t)(p - s.p)};
}

/* 1: a part; 0: of no weight; or < 0. */
static int
look(struct fold_weights *t, const struct acc_rec *r, struct fold_part *p, int *numbers,
	struct acc_err *e)
{
	struct acc_str name = acc_get_text(r, "", "name");
	const struct acc_val *shape = acc_get(r, "", "shape");
	int64_t c[FOLD_COORDS];
	bool lost = false;
	p->rank = acc_get_int(r, "", "rank", -1);
	p->ndim = shape != NULL && shape->type == ACC_V_INTS ? shape->n : 0;
	p->shape = ints(t, r, "shape", p->ndim, &lost);
	p->begin = p->shape == NULL ? NULL : ints(t, r, "at", p->ndim, &lost);
	p->whole = p->begin == NULL ? NULL : ints(t, r, "whole", p->ndim, &lost);
	p->begin = p->whole == NULL ? NULL : p->begin;
	*numbers = acc_weights_place(t, r, c);
	p->t = c[0];
	p->p = c[1];
	p->x = c[2];
	p->d = c[3];
	if (p->begin != NULL)
		name = without_range(name);
	const char *copy = acc_arena_copy(&t->mem, name.p, name.n);
	p->name = (struct acc_str){copy, name.n};
	return lost || copy == NULL ? acc_nomem(e) : 1;
}

static bool
is_expert(struct acc_str s)
{
	return memmem(s.p, s.n, ".experts.", 9) != NULL;
}

/* The second of two numbers is the pipeline's, or, where all ranks have the same names and experts
 * among them, the experts'. */
static void
second_number(struct fold_weights *t)
{
	uint64_t sum[2] = {0, 0};
	bool experts = false, two = false;
	for (uint32_t i = 0; i < t->npart; i++) {
		const struct fold_part *p = &t->part[i];
		two |= p->p == 1;
		if (p->p < 2)
			sum[p->p] += acc_hash(p->name.p, p->name.n);
		experts |= is_expert(p->name);
	}
	for (uint32_t i = 0; i < t->npart && two && experts && sum[0] == sum[1]; i++) {
		t->part[i].x = t->part[i].p;
		t->part[i].p = 0;
	}
}

/* Is there something of each rank? */
static bool
complete(struct fold_weights *t)
{
	const int64_t n = t->size[0] * t->size[1] * t->size[2];
	bool *seen = n > (1 << 24) ? NULL : calloc((size_t)n, sizeof *seen);
	int64_t all = 0;
	for (uint32_t i = 0; i < t->npart && seen != NULL; i++) {
		const struct fold_part *p = &t->part[i];
		bool *one = &seen[(p->x * t->size[1] + p->p) * t->size[0] + p->t];
		all += !*one;
		*one = true;
	}
	free(seen);
	return all == n;
}

/* All tensors of the device, as parts. 1: they may be a checkpoint over ranks; 0. */
static int
collect(struct acc_fold *f, struct fold_weights *t, struct acc_err *e)
{
	uint32_t placed = 0, ranged = 0, flat = 0, most = 0, model = 0, module = 0;
	bool zero = false;
	int64_t step = INT64_MIN;
	struct acc_rec *r;
	int rc = 0;
	for (size_t i = 0; i < f->nall && rc == 0; i++) {
		rc = acc_fold_record(f, f->all[i], &r, e);
		if (rc == 0 && acc_rec_is(r, "source"))
			rc = add_source(t, r, e);
	}
	t->part = calloc((size_t)f->device.nitem + 1, sizeof *t->part);
	if (rc < 0 || t->part == NULL)
		return rc < 0 ? rc : acc_nomem(e);
	for (uint32_t i = 0; i < f->device.nitem && rc >= 0; i++) {
		const struct fold_item *it = &f->device.item[i];
		struct fold_part *p = &t->part[t->npart];
		int numbers = 0;
		if (!it->tensor)
			continue;
		rc = acc_fold_record(f, it->at, &r, e);
		if (rc == 0 && (acc_get(r, "", "pass") != NULL ||
				       !acc_str_is(acc_get_text(r, "", "io"), "param")))
			return 0;
		int64_t own = rc < 0 ? 0 : acc_get_int(r, "", "step", -1);
		/* Several iterations are several checkpoints. */
		if (rc == 0 && step != INT64_MIN && own != step)
			return 0;
		step = own;
		rc = rc < 0 ? rc : look(t, r, p, &numbers, e);
		p->at = it->at;
		p->n = t->npart;
		p->item = i;
		t->npart += rc > 0;
		placed += numbers > 0;
		ranged += p->begin != NULL;
		flat += acc_weights_is_flat(p->name);
		zero |= acc_str_starts(p->name, "optimizer_state_dict.");
		most = (uint32_t)numbers > most ? (uint32_t)numbers : most;
		model += rc > 0 && acc_str_starts(p->name, "model");
		module += rc > 0 && acc_str_starts(p->name, "module.");
	}
	/* Of what was chosen nothing may have parts. */
	if (rc >= 0 && t->npart > 0 && t->whole && placed + ranged + flat == 0)
		return 1;
	if (rc < 0 || (ranged + flat == 0 && placed < t->npart) || t->npart == 0)
		return rc < 0 ? rc : 0;
	if (flat > 0)
		return acc_weights_fsdp(f, t, e);
	/* What else Megatron, or DeepSpeed, saves beside the model. */
	const char *top = model > 0 ? "model" : module > 0 ? "module." : "";
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->npart; i++)
		if (placed == 0 || zero || acc_str_starts(t->part[i].name, top))
			t->part[n++] = t->part[i];
		else
			t->others++;
	t->npart = n;
	if (most == 2)
		second_number(t);
	for (uint32_t i = 0; i < n && placed > 0; i++) {
		const int64_t c[3] = {t->part[i].t, t->part[i].p, t->part[i].x};
		for (int k = 0; k < 3; k++)
			t->size[k] = c[k] + 1 > t->size[k] ? c[k] + 1 : t->size[k];
	}
	if (placed > 0 && !complete(t)) {
		snprintf(f->why, sizeof f->why, "not all mp_rank_* of the checkpoint are there");
		return 0;
	}
	t->data = 0;
	rc = placed > 0 && zero ? acc_weights_zero(f, t, e) : 0;
	return rc != 0 ? rc : ranged > 0 || t->size[0] * t->size[1] * t->size[2] > 1;
}

int
acc_weights_find(struct acc_fold *f, struct acc_err *e)
{
	struct fold_weights *t = f->weights = calloc(1, sizeof *t);
	if (t == NULL)
		return acc_nomem(e);
	int rc = f->roots == NULL || f->device.nitem == 0 ? 0 : collect(f, t, e);
	if (rc > 0 && t->size[0] > 0)
		rc = acc_weights_names(t, e) < 0 ? ACC_ENOMEM : 1;
	if (rc > 0)
		rc = acc_weights_group(f, e) < 0 ? e->code : 1;
	if (rc <= 0) {
		acc_weights_free(t);
		f->weights = NULL;
	}
	return rc;
}
