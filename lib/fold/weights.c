/* Checkpoints over ranks: which parts make up which weight. */
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

#include "acc/file.h"
#include "acc/kernel.h"

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

/* The numbers of mp_rank_TT_PPP_EEE; how many, or 0. */
static int
place_of(struct acc_str s, int64_t c[3])
{
	int n = 0;
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
	if (copy != NULL)
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
	const uint64_t *place = acc_map_get(&t->places, acc_get_text(r, "", "src"));
	int64_t c[3] = {0, 0, 0};
	bool lost = false;
	p->rank = acc_get_int(r, "", "rank", -1);
	p->ndim = shape != NULL && shape->type == ACC_V_INTS ? shape->n : 0;
	p->shape = ints(t, r, "shape", p->ndim, &lost);
	p->begin = ints(t, r, "at", p->ndim, &lost);
	p->whole = p->begin == NULL ? NULL : ints(t, r, "whole", p->ndim, &lost);
	p->begin = p->whole == NULL ? NULL : p->begin;
	*numbers = place == NULL ? 0 : place_of(*(const struct acc_str *)(uintptr_t)*place, c);
	p->t = c[0];
	p->p = c[1];
	p->x = c[2];
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
	uint32_t placed = 0, ranged = 0, most = 0, model = 0;
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
		most = (uint32_t)numbers > most ? (uint32_t)numbers : most;
		model += rc > 0 && acc_str_starts(p->name, "model");
	}
	if (rc < 0 || (ranged == 0 && placed < t->npart) || t->npart == 0)
		return rc < 0 ? rc : 0;
	/* What else Megatron saves beside the model. */
	uint32_t n = 0;
	for (uint32_t i = 0; i < t->npart; i++)
		if (placed == 0 || model == 0 || acc_str_starts(t->part[i].name, "model"))
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
	return ranged > 0 || t->size[0] * t->size[1] * t->size[2] > 1;
}

/* --- weights --- */

static int
by_name(const void *x, const void *y)
{
	const struct fold_part *a = x, *b = y;
	int d = acc_natural_cmp(a->name.p, b->name.p);
	if (d != 0)
		return d;
	const int64_t c[3] = {a->p - b->p, a->x - b->x, a->t - b->t};
	for (int i = 0; i < 3; i++)
		if (c[i] != 0)
			return c[i] < 0 ? -1 : 1;
	for (uint32_t i = 0; a->begin != NULL && b->begin != NULL && i < a->ndim && i < b->ndim;
		i++)
		if (a->begin[i] != b->begin[i])
			return a->begin[i] < b->begin[i] ? -1 : 1;
	return (a->n > b->n) - (a->n < b->n);
}

/* Are they the same but for one rounding, to the nearest or not, of the coarser dtype? What is too small or
 * too large for it is not told. */
static bool
rounded(const enum acc_dtype t[2], const uint8_t *x, const uint8_t *y, size_t n)
{
	const double u = fmax(acc_unit(t[0]), acc_unit(t[1]));
	const double most = fmin(acc_dtypes[t[0]].max, acc_dtypes[t[1]].max);
	const double least = t[0] == ACC_F16 || t[1] == ACC_F16 ? 0x1p-24 : 0x1p-126;
	for (size_t i = 0; i < n; i++) {
		double a = acc_load_f64(t[0], x + i * acc_dtypes[t[0]].size);
		double b = acc_load_f64(t[1], y + i * acc_dtypes[t[1]].size);
		if (isnan(a) != isnan(b) ||
			(fabs(a - b) > 2 * u * fabs(a) + least && fabs(a) < most))
			return false;
	}
	return true;
}

/* Have two parts the same elements? Of other dtypes: but for the rounding of the coarser. 1, 0, or < 0: it
 * cannot be told. */
static int
same(struct acc_fold *f, const struct fold_part *a, const struct fold_part *b, struct acc_err *e)
{
	const struct fold_part *side[2] = {a, b};
	struct fold_source *s[2] = {NULL, NULL};
	void *raw[2] = {malloc(ACC_CHUNK * 16), malloc(ACC_CHUNK * 16)};
	int rc = raw[0] == NULL || raw[1] == NULL ? acc_nomem(e) : 1;
	for (int i = 0; i < 2 && rc > 0; i++) {
		s[i] = acc_source_open(f, side[i], e);
		rc = s[i] == NULL ? ACC_EIO : 1;
	}
	enum acc_dtype t[2];
	for (int i = 0; i < 2 && rc > 0; i++)
		t[i] = acc_source_dtype(s[i]);
	if (rc > 0 &&
		(a->ndim != b->ndim || memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) ||
			acc_source_count(s[0]) != acc_source_count(s[1]) ||
			(t[0] != t[1] &&
				(acc_dtypes[t[0]].cls != 'F' || acc_dtypes[t[1]].cls != 'F'))))
		rc = 0;
	uint64_t n = rc > 0 ? acc_source_count(s[0]) : 0;
	const size_t size = rc > 0 ? acc_dtypes[t[0]].size : 0;
	/* The container's checksum says enough where it covers just these bytes. */
	const struct acc_ref *ref[2] = {NULL, NULL};
	for (int i = 0; i < 2 && rc > 0; i++)
		ref[i] = acc_source_whole(s[i]);
	bool known = rc > 0 && t[0] == t[1] && ref[0] != NULL && ref[1] != NULL &&
		     ref[0]->has_crc && ref[1]->has_crc && ref[0]->crc32 == ref[1]->crc32;
	for (uint64_t at = 0; at < n && rc > 0 && !known;) {
		size_t k = n - at < ACC_CHUNK ? (size_t)(n - at) : ACC_CHUNK;
		const void *x, *y;
		rc = acc_source_read(s[0], at, k, raw[0], &x, e);
		rc = rc < 0 ? rc : acc_source_read(s[1], at, k, raw[1], &y, e);
		rc = rc < 0 ? rc : t[0] == t[1] ? memcmp(x, y, k * size) == 0 : rounded(t, x, y, k);
		at += k;
	}
	for (int i = 0; i < 2; i++) {
		acc_source_close(s[i]);
		free(raw[i]);
	}
	return rc;
}

static int
lose(struct fold_weights *t, struct fold_weight *w, const char *why)
{
	w->how = FOLD_LOST;
	w->why = why;
	t->lost++;
	return 0;
}

static bool
differs(const struct fold_weight *w, int64_t rank)
{
	for (uint32_t i = 0; i < w->ndiffers; i++)
		if (w->differs[i] == rank)
			return true;
	return false;
}

static int
differ(struct fold_weights *t, struct fold_weight *w, int64_t rank, struct acc_err *e)
{
	if (w->differs == NULL)
		w->differs = acc_alloc(&t->mem, w->n * sizeof *w->differs);
	if (w->differs == NULL)
		return acc_nomem(e);
	if (!differs(w, rank))
		w->differs[w->ndiffers++] = rank;
	return 0;
}

/* Copies of the first parts, and (SAME) each of these of the first one. */
static int
compare_copies(struct acc_fold *f, struct fold_weight *w, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	const struct fold_part *p = &t->part[w->first];
	int rc = 0;
	for (uint32_t i = 1; i < w->n && rc >= 0; i++) {
		struct acc_err own = {0};
		if (w->how == FOLD_SPLIT && i < w->parts)
			continue;
		uint32_t of = w->how == FOLD_SPLIT ? i % w->parts : 0;
		rc = same(f, &p[of], &p[i], &own);
		if (rc < 0)
			return own.code == ACC_ENOMEM ? acc_nomem(e)
						      : lose(t, w, "a copy cannot be read");
		if (rc == 0)
			rc = differ(t, w, p[i].rank, e);
	}
	return rc < 0 ? rc : 0;
}

/* The first part of this name, or of one behind it. */
static uint32_t
first_of(const struct fold_weights *t, const char *name)
{
	uint32_t lo = 0, hi = t->npart;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (acc_natural_cmp(t->part[mid].name.p, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* The part of the second layer of a gated unit says whether the first layer has gate and up. 0: it
 * has not the width of either. */
static uint32_t
pieces_of(const struct fold_weights *t, const struct fold_part *p, struct acc_arena *m)
{
	static const char *const words[][2] = {{"linear_fc1", "linear_fc2"},
		{"dense_h_to_4h", "dense_4h_to_h"}};
	for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
		const char *at = memmem(p->name.p, p->name.n, words[k][0], strlen(words[k][0]));
		if (at == NULL)
			continue;
		const char *rest = at + strlen(words[k][0]);
		uint32_t n = (uint32_t)(p->name.p + p->name.n - rest);
		bool bias = n >= 5 && memcmp(rest, ".bias", 5) == 0;
		const char *name = acc_arena_printf(m, "%.*s%s%s%.*s", (int)(at - p->name.p),
			p->name.p, words[k][1], bias ? ".weight" : "", bias ? (int)n - 5 : (int)n,
			bias ? rest + 5 : rest);
		for (uint32_t i = name == NULL ? t->npart : first_of(t, name);
			i < t->npart && acc_natural_cmp(t->part[i].name.p, name) == 0; i++) {
			const struct fold_part *q = &t->part[i];
			if (q->t != p->t || q->ndim != 2 || !acc_str_is(q->name, name))
				continue;
			int64_t own = p->shape[0], other = q->shape[1];
			return own == other ? 1 : own % 2 == 0 && own / 2 == other ? 2 : 0;
		}
	}
	return 0;
}

/* Have all parts the same extents but for that of the axis? And is it divided into the pieces? */
static bool
join(const struct fold_part *p, uint32_t n, uint32_t axis, uint32_t pieces)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (p[i].ndim != p[0].ndim || axis >= p[i].ndim || p[i].shape == NULL ||
			p[i].shape[axis] < 0 || p[i].shape[axis] % pieces != 0 ||
			__builtin_add_overflow(sum, p[i].shape[axis], &sum))
			return false;
		for (uint32_t d = 0; d < p[i].ndim; d++)
			if (d != axis && p[i].shape[d] != p[0].shape[d])
				return false;
	}
	return p[0].ndim <= ACC_FOLD_NDIM;
}

static const struct fold_part *
part_by_name(const struct fold_weights *t, const char *name)
{
	uint32_t i = name == NULL ? t->npart : first_of(t, name);
	return i < t->npart && acc_str_is(t->part[i].name, name) ? &t->part[i] : NULL;
}

/* A part of experts that lie in one tensor, as experts of so many one behind the other. */
static bool
view(struct fold_weights *t, struct fold_part *p, int64_t experts, bool first)
{
	int64_t *shape = acc_alloc(&t->mem, 3 * sizeof *shape);
	if (shape == NULL || p->ndim != 2 || experts <= 0 || p->shape[first] % experts != 0)
		return false;
	shape[0] = experts;
	shape[1] = first ? p->shape[0] : p->shape[0] / experts;
	shape[2] = first ? p->shape[1] / experts : p->shape[1];
	p->shape = shape;
	p->ndim = 3;
	return true;
}

/* Megatron's grouped products: of all experts of a rank one tensor, [width, experts * units] and
 * [experts * units, width], which it takes as [experts, width, units] and [experts, units, width]. How
 * many these are says the router. */
static int
by_stack(struct fold_weights *t, struct fold_weight *w)
{
	struct fold_part *p = &t->part[w->first];
	const uint32_t ranks = (uint32_t)(t->size[0] * t->size[2]);
	struct acc_arena m = {0};
	const bool first = p->name.p[p->name.n - 1] == '1';
	const int head = (int)p->name.n - 15; /* "experts.weight1" */
	const struct fold_part *router = part_by_name(t,
		acc_arena_printf(&m, "%.*srouter.weight", head, p->name.p));
	const struct fold_part *other = part_by_name(t,
		acc_arena_printf(&m, "%.*sexperts.weight%d", head, p->name.p, first ? 2 : 1));
	int64_t all = router != NULL && router->ndim == 2 ? router->shape[0] : 0;
	acc_arena_release(&m);
	if (all <= 0 || all % t->size[2] != 0)
		return lose(t, w, "nothing says how many experts it holds");
	for (uint32_t i = 0; i < w->n; i++)
		if (w->n != ranks || p[i].x * t->size[0] + p[i].t != (int64_t)i)
			return lose(t, w, "not all tensor and expert parallel ranks have a part of it");
	all /= t->size[2];
	/* The second has a row for each unit, the first one or, of gated units, two columns. */
	int64_t units = other == NULL	   ? 0
			: other->ndim == 3 ? other->shape[1]
					   : other->shape[0] / all;
	bool good = true;
	for (uint32_t i = 0; i < w->n && good; i++)
		good = view(t, &p[i], all, first);
	w->pieces = first && units > 0 && p->ndim == 3 && p->shape[2] == 2 * units ? 2 : 1;
	w->how = FOLD_SPLIT;
	w->parts = w->n;
	w->stacks = (uint32_t)t->size[2];
	w->axis = first ? 2 : 1;
	if (!good || (first && p->shape[2] != units * w->pieces))
		return lose(t, w, "its parts do not make up a whole");
	return 0;
}

/* What a tensor parallel group has, and its copies on other stages and expert parallel ranks. */
static int
by_rank(struct acc_fold *f, struct fold_weight *w, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	const struct fold_part *p = &t->part[w->first];
	const uint32_t size = (uint32_t)t->size[0];
	struct acc_arena m = {0};
	if (acc_str_ends(p->name, "experts.weight1") || acc_str_ends(p->name, "experts.weight2"))
		return by_stack(t, w);
	/* Whole groups, each with every rank, and no rank twice. */
	for (uint32_t i = 0; i < w->n; i++)
		if (w->n % size != 0 || p[i].t != (int64_t)(i % size) ||
			(i % size > 0 && (p[i].p != p[i - 1].p || p[i].x != p[i - 1].x)))
			return lose(t, w, "not all tensor parallel ranks have a part of it");
	w->parts = 1;
	w->how = size == 1 ? FOLD_SAME : acc_weights_rule(p->name, p->ndim, &w->axis, &w->pieces);
	if (w->how == FOLD_SPLIT) {
		w->parts = size;
		w->pieces = w->pieces == 0 ? pieces_of(t, p, &m) : w->pieces;
		acc_arena_release(&m);
		if (w->pieces == 0 || !join(p, size, w->axis, w->pieces))
			return lose(t, w, "its parts do not make up a whole");
	}
	bool known = w->how != FOLD_LOST;
	w->how = known ? w->how : FOLD_SAME;
	int rc = w->n > 1 ? compare_copies(f, w, e) : 0;
	/* Of what is split no two tensor parallel ranks have the same. */
	for (uint32_t i = 1; i < w->n && rc == 0; i++)
		known |= p[i].t != p[0].t && !differs(w, p[i].rank);
	if (rc == 0 && !known && w->ndiffers > 0)
		return lose(t, w, "its name does not say how it is split");
	return rc;
}

/* Parts that say where they begin: one behind the other along one axis, or along several. */
static int
by_place(struct fold_weights *t, struct fold_weight *w)
{
	const struct fold_part *p = &t->part[w->first];
	bool whole = p->ndim <= ACC_FOLD_NDIM;
	w->parts = w->n;
	w->pieces = 1;
	for (uint32_t d = 0; d < p->ndim; d++)
		for (uint32_t i = 0; i < w->n && whole; i++)
			whole = p[i].ndim == p->ndim && p[i].begin != NULL &&
				p[i].whole[d] == p->whole[d];
	w->grid = true;
	w->how = !whole ? FOLD_APART : FOLD_SPLIT;
	return 0;
}

static int
group(struct acc_fold *f, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	int rc = 0;
	t->w = calloc((size_t)t->npart + 1, sizeof *t->w);
	if (t->w == NULL)
		return acc_nomem(e);
	if (t->npart > 0)
		qsort(t->part, t->npart, sizeof *t->part, by_name);
	for (uint32_t i = 0; i < t->npart && rc == 0;) {
		struct fold_weight *w = &t->w[t->n++];
		*w = (struct fold_weight){.first = i, .n = 1, .parts = 1, .pieces = 1};
		while (i + w->n < t->npart && acc_str_eq(t->part[i + w->n].name, t->part[i].name))
			w->n++;
		if (t->part[i].begin != NULL)
			rc = by_place(t, w);
		else if (t->size[0] > 0)
			rc = by_rank(f, w, e);
		else
			w->how = w->n > 1 ? FOLD_APART : FOLD_ONE;
		i += w->n;
	}
	return rc;
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
		rc = group(f, e) < 0 ? e->code : 1;
	if (rc <= 0) {
		acc_weights_free(t);
		f->weights = NULL;
	}
	return rc;
}
