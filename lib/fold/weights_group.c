/* Checkpoints over ranks: the parts of each weight, how they make it up, and whether copies are the same. */
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

#include "acc/file.h"
#include "acc/kernel.h"
#include "base/order.h"

static int
by_name(const void *x, const void *y)
{
	const struct fold_part *a = x, *b = y;
	int d = acc_natural_cmp(a->name.p, b->name.p);
	if (d != 0)
		return d;
	const int64_t c[4] = {a->copy - b->copy, a->p - b->p, a->x - b->x, a->t - b->t};
	for (int i = 0; i < 4; i++)
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
	const double most = fmin(acc_dtype_of(t[0])->max, acc_dtype_of(t[1])->max);
	const double least = t[0] == ACC_F16 || t[1] == ACC_F16 ? 0x1p-24 : 0x1p-126;
	for (size_t i = 0; i < n; i++) {
		double a = acc_load_f64(t[0], x + i * acc_dtype_of(t[0])->size);
		double b = acc_load_f64(t[1], y + i * acc_dtype_of(t[1])->size);
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
			(t[0] != t[1] && (acc_dtype_of(t[0])->cls != 'F' ||
						 acc_dtype_of(t[1])->cls != 'F'))))
		rc = 0;
	uint64_t n = rc > 0 ? acc_source_count(s[0]) : 0;
	const size_t size = rc > 0 ? acc_dtype_of(t[0])->size : 0;
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
		/* A copy is one of the part of its rank. */
		while (p[i].copy && of + 1 < w->n && (p[of].t != p[i].t || p[of].copy))
			of++;
		if (p[i].copy && (p[of].t != p[i].t || of == i))
			continue;
		rc = same(f, &p[of], &p[i], &own);
		if (rc < 0)
			return own.code == ACC_ENOMEM ? acc_nomem(e)
						      : lose(t, w, "a copy cannot be read");
		w->own |= rc == 0 && p[i].own;
		if (rc == 0)
			rc = differ(t, w, p[i].rank, e);
	}
	return rc < 0 ? rc : 0;
}

/* The first part of this name, or of one behind it. */
static uint32_t
first_of(const struct fold_weights *t, const char *name)
{
	uint32_t lo = 0;
	ACC_LOWER(lo, t->npart, acc_natural_cmp(t->part[lo].name.p, name) < 0);
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

enum { MOST_EXTENT = INT32_MAX };

/* A part of experts that lie in one tensor, as experts of so many one behind the other. */
static bool
view(struct fold_weights *t, struct fold_part *p, int64_t experts, bool first)
{
	int64_t *shape = acc_alloc(&t->mem, 3 * sizeof *shape);
	if (shape == NULL || p->ndim != 2 || experts <= 0 || p->shape[first] % experts != 0)
		return false;
	for (int d = 0; d < 2; d++)
		if (p->shape[d] < 0 || p->shape[d] > MOST_EXTENT)
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
			return lose(t, w,
				"not all tensor and expert parallel ranks have a part of it");
	all /= t->size[2];
	/* The second has a row for each unit, the first one or, of gated units, two columns. */
	int64_t units = other == NULL      ? 0
			: other->ndim == 3 ? other->shape[1]
			: other->ndim == 2 ? other->shape[0] / all
					   : 0;
	bool good = true;
	for (uint32_t i = 0; i < w->n && good; i++)
		good = view(t, &p[i], all, first) &&
		       memcmp(p[i].shape, p[0].shape, 3 * sizeof *p[0].shape) == 0;
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
	uint32_t n = w->n;
	while (n > 0 && p[n - 1].copy)
		n--;
	if (n == 0)
		return lose(t, w, "there are only copies of it");
	for (uint32_t i = 0; i < n; i++)
		if (p[i].bad != NULL)
			return lose(t, w, p[i].bad);
	/* Whole groups, each with every rank, and no rank twice. */
	for (uint32_t i = 0; i < n; i++)
		if (n % size != 0 || p[i].t != (int64_t)(i % size) ||
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
	if (rc == 0 && !known && w->ndiffers > 0) {
		w->ndiffers = 0;
		return lose(t, w, "its name does not say how it is split");
	}
	return rc;
}

static bool
same_box(const struct fold_part *a, const struct fold_part *b)
{
	const size_t size = a->ndim * sizeof *a->shape;
	return memcmp(a->begin, b->begin, size) == 0 && memcmp(a->shape, b->shape, size) == 0;
}

/* What several ranks have of the same place, behind those that make up the whole. They stand in the order of
 * where they begin. *of: of each copy, which part it is one of. */
static uint32_t *
copies_last(struct fold_part *p, struct fold_weight *w)
{
	struct fold_part *copy = calloc(w->n, sizeof *copy);
	uint32_t *of = calloc(w->n, sizeof *of), n = 0, k = 0;
	for (uint32_t i = 0; i < w->n && copy != NULL && of != NULL; i++)
		if (n > 0 && same_box(&p[n - 1], &p[i])) {
			of[k] = n - 1;
			copy[k++] = p[i];
		} else {
			p[n++] = p[i];
		}
	if (copy == NULL || of == NULL) {
		free(copy);
		free(of);
		return NULL;
	}
	memcpy(p + n, copy, k * sizeof *copy);
	free(copy);
	w->parts = n;
	return of;
}

/* Parts that say where they begin: one behind the other along one axis, or along several; of what is
 * replicated each rank that has it says the same. */
static int
by_place(struct acc_fold *f, struct fold_weight *w, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	struct fold_part *p = &t->part[w->first];
	bool whole = p->ndim <= ACC_FOLD_NDIM;
	w->pieces = 1;
	for (uint32_t d = 0; d < p->ndim; d++)
		for (uint32_t i = 0; i < w->n && whole; i++)
			whole = p[i].ndim == p->ndim && p[i].begin != NULL &&
				p[i].whole[d] == p->whole[d];
	w->grid = true;
	w->how = FOLD_APART;
	w->parts = w->n;
	if (!whole)
		return 0;
	uint32_t *of = copies_last(p, w);
	int rc = of == NULL ? acc_nomem(e) : 0;
	w->how = FOLD_SPLIT;
	if (w->parts == 1 && memcmp(p->shape, p->whole, p->ndim * sizeof *p->shape) == 0) {
		w->how = FOLD_SAME;
		w->grid = false;
	}
	for (uint32_t i = w->parts; i < w->n && rc == 0; i++) {
		struct acc_err own = {0};
		int is = same(f, &p[of[i - w->parts]], &p[i], &own);
		if (is == 0)
			rc = differ(t, w, p[i].rank, e);
		else if (is < 0) {
			rc = own.code == ACC_ENOMEM ? acc_nomem(e)
						    : lose(t, w, "a copy cannot be read");
			break;
		}
	}
	free(of);
	return rc;
}

/* What each rank has of one name, beside parts of others that say where they begin: all the same, as buffers
 * are, or nothing says what they are. */
static int
by_copies(struct acc_fold *f, struct fold_weight *w, struct acc_err *e)
{
	w->how = FOLD_SAME;
	int rc = compare_copies(f, w, e);
	if (rc < 0 || w->ndiffers == 0)
		return rc;
	w->ndiffers = 0;
	return lose(f->weights, w, "nothing says how it is split, and the ranks differ in it");
}

int
acc_weights_group(struct acc_fold *f, struct acc_err *e)
{
	struct fold_weights *t = f->weights;
	int rc = 0;
	t->w = calloc((size_t)t->npart + 1, sizeof *t->w);
	if (t->w == NULL)
		return acc_nomem(e);
	if (t->npart > 0)
		qsort(t->part, t->npart, sizeof *t->part, by_name);
	bool ranged = false;
	for (uint32_t i = 0; i < t->npart; i++)
		ranged |= t->part[i].begin != NULL && t->part[i].rank >= 0;
	for (uint32_t i = 0; i < t->npart && rc == 0;) {
		struct fold_weight *w = &t->w[t->n++];
		*w = (struct fold_weight){.first = i, .n = 1, .parts = 1, .pieces = 1};
		while (i + w->n < t->npart && acc_str_eq(t->part[i + w->n].name, t->part[i].name))
			w->n++;
		if (t->part[i].begin != NULL)
			rc = by_place(f, w, e);
		else if (t->size[0] > 0)
			rc = by_rank(f, w, e);
		else if (w->n > 1 && ranged)
			rc = by_copies(f, w, e);
		else
			w->how = w->n > 1 ? FOLD_APART : FOLD_ONE;
		i += w->n;
	}
	return rc;
}
