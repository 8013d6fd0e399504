/* What several parts of a tensor are together, by their statistics. */
#include "acc/fold.h"
#include "acc/stat.h"

#include <math.h>

enum {
	MAX = 1 << ACC_FOLD_MAX,
	MIN = 1 << ACC_FOLD_MIN,
	MEAN = 1 << ACC_FOLD_MEAN,
	NORM = 1 << ACC_FOLD_NORM,
	ALL = MAX | MIN | MEAN | NORM
};

static bool
same_shape(const struct acc_fold_stat *a, const struct acc_fold_stat *b)
{
	/* Few, and asked of each part of each mesh that is tried: a call would take longer. */
	for (uint32_t d = 0; d < a->ndim && d < b->ndim; d++)
		if (a->shape[d] != b->shape[d])
			return false;
	return a->ndim == b->ndim;
}

static double
rms(const struct acc_fold_stat *s)
{
	if (s->known & NORM)
		return acc_stat_rms(s->v, s->count);
	double max = s->known & MAX ? fabs(s->v[ACC_FOLD_MAX]) : 0;
	double min = s->known & MIN ? fabs(s->v[ACC_FOLD_MIN]) : 0;
	return max > min ? max : min;
}

/* Not a number is like itself. */
static bool
near(double x, double y, double by)
{
	return x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= by;
}

/* Extremes are as precise as they are large, the mean as the elements are. */
int
acc_fold_same(const struct acc_fold_stat *a, double scale, const struct acc_fold_stat *b,
	double tol)
{
	uint8_t both = a->known & b->known;
	if (!same_shape(a, b) || both == 0)
		return 0;
	double size = rms(b), x[ACC_FOLD_NSTAT];
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		x[i] = a->v[i] * scale;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++) {
		double by = tol * (i == ACC_FOLD_MEAN ? size : fabs(b->v[i]) + size);
		if (both & 1 << i && !near(x[i], b->v[i], by))
			return 0;
	}
	/* A mean alone says something where it is not nearly nothing. */
	if (both == MEAN)
		return fabs(b->v[ACC_FOLD_MEAN]) > 100 * tol * size ? 2 : 1;
	/* What is constant is like much else. */
	bool constant = !(both & MAX) || !(both & MIN) || b->v[ACC_FOLD_MAX] == b->v[ACC_FOLD_MIN];
	return (both & (MEAN | NORM)) == 0 || (constant && b->count > 1) || size == 0 ||
			       !isfinite(size)
		       ? 1
		       : 2;
}

static bool
replicate(const struct acc_fold_stat *part, uint32_t n, double tol, struct acc_fold_stat *whole)
{
	const struct acc_fold_stat *first = &part[0];
	const bool ask = isfinite(tol) && first->known != 0 && first->count > 0;
	for (uint32_t i = 1; i < n; i++)
		if (!same_shape(first, &part[i]) ||
			(ask && acc_fold_same(&part[i], 1, first, tol) == 0))
			return false;
	*whole = *first;
	return true;
}

static bool
shard(const struct acc_fold_stat *part, uint32_t n, uint32_t axis, struct acc_fold_stat *whole)
{
	struct acc_fold_stat w = part[0];
	struct acc_stat_parts all = {0};
	if (axis >= w.ndim)
		return false;
	w.shape[axis] = 0;
	w.count = 0;
	w.known = ALL;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_fold_stat *p = &part[i];
		for (uint32_t d = 0; d < w.ndim; d++)
			if (p->ndim != w.ndim || (d != axis && p->shape[d] != w.shape[d]))
				return false;
		if (__builtin_add_overflow(w.shape[axis], p->shape[axis], &w.shape[axis]))
			return false;
		w.count += p->count;
		if (p->count == 0)
			continue;
		w.known &= p->known;
		acc_stat_add(&all, p->v, p->count);
	}
	if (all.count > 0)
		acc_stat_whole(&all, w.v);
	w.known = all.count > 0 ? w.known : 0;
	*whole = w;
	return true;
}

static bool
partial(const struct acc_fold_stat *part, uint32_t n, struct acc_fold_stat *whole)
{
	struct acc_fold_stat w = part[0];
	double sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!same_shape(&w, &part[i]))
			return false;
		w.known &= part[i].known;
		sum += part[i].v[ACC_FOLD_MEAN];
	}
	w.known = w.known & MEAN ? (w.count == 1 ? ALL : MEAN) : 0;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		w.v[i] = i == ACC_FOLD_NORM ? fabs(sum) : sum;
	*whole = w;
	return true;
}

bool
acc_fold_join(const struct acc_fold_stat *part, uint32_t n, struct acc_place p, double tol,
	struct acc_fold_stat *whole)
{
	switch (p.kind) {
	case ACC_ALONE: /* all are the one rank's */
	case ACC_REPLICATE:
		return replicate(part, n, tol, whole);
	case ACC_SHARD:
		return shard(part, n, p.axis, whole);
	case ACC_PARTIAL:
		return partial(part, n, whole);
	default:
		return false;
	}
}

bool
acc_fold_cut(const struct acc_fold_layout *l, struct acc_fold_stat *w)
{
	uint32_t axis = ACC_FOLD_NDIM;
	for (uint32_t d = 0; d < l->n; d++)
		if (l->at[d].kind == ACC_SHARD && axis != ACC_FOLD_NDIM && axis != l->at[d].axis)
			return false;
		else if (l->at[d].kind == ACC_SHARD)
			axis = l->at[d].axis;
	if (axis >= w->ndim || w->shape[axis] <= l->cut)
		return false;
	const double all = w->count;
	w->count *= (double)l->cut / (double)w->shape[axis];
	w->shape[axis] = l->cut;
	w->v[ACC_FOLD_MEAN] *= all / w->count;
	/* What is not there may have been the largest, or the smallest. */
	if (!l->zeros || w->v[ACC_FOLD_MAX] == 0 || w->v[ACC_FOLD_MIN] == 0)
		w->known &= l->zeros ? MEAN | NORM : 0;
	return true;
}

void
acc_fold_layout_text(const struct acc_fold_layout *l, char buf[ACC_LAYOUT_TEXT])
{
	size_t at = 0;
	buf[0] = '\0';
	if (l->n == 0)
		snprintf(buf, ACC_LAYOUT_TEXT, "Unknown()");
	else if (l->swapped)
		at = (size_t)snprintf(buf, ACC_LAYOUT_TEXT, "Transpose(0,1) ");
	for (int i = 0; i < l->n && at < ACC_LAYOUT_TEXT; i++) {
		const char *gap = i > 0 ? " " : "";
		const struct acc_place *p = &l->at[i];
		const bool cut = p->kind == ACC_SHARD && l->cut > 0;
		int n = cut ? snprintf(buf + at, ACC_LAYOUT_TEXT - at, "%sShard(%u)[:%lld]%s", gap,
				      p->axis, (long long)l->cut, l->zeros ? "" : "?")
			: p->kind == ACC_SHARD
				? snprintf(buf + at, ACC_LAYOUT_TEXT - at, "%sShard(%u)", gap,
					  p->axis)
				: snprintf(buf + at, ACC_LAYOUT_TEXT - at, "%s%s", gap,
					  p->kind == ACC_REPLICATE ? "Replicate()"
					  : p->kind == ACC_ALONE   ? "Alone()"
								   : "Partial(sum)");
		at += n > 0 ? (size_t)n : 0;
	}
	if (l->n == 0 || l->scale == 1 || at >= ACC_LAYOUT_TEXT)
		return;
	if (l->scale < 1)
		snprintf(buf + at, ACC_LAYOUT_TEXT - at, " * 1/%.17g", 1 / l->scale);
	else
		snprintf(buf + at, ACC_LAYOUT_TEXT - at, " * %.17g", l->scale);
}

static bool
take(struct acc_str *s, const char *word)
{
	uint32_t n = (uint32_t)strlen(word);
	if (!acc_str_starts(*s, word))
		return false;
	*s = (struct acc_str){s->p + n, s->n - n};
	return true;
}

static bool
digits(struct acc_str *s, int64_t *v)
{
	struct acc_str d = {s->p, 0};
	while (d.n < s->n && d.n < 9 && s->p[d.n] >= '0' && s->p[d.n] <= '9')
		d.n++;
	*s = (struct acc_str){s->p + d.n, s->n - d.n};
	return d.n > 0 && acc_str_int(d, v);
}

/* Behind a split: how many of it are the whole. */
static bool
parse_cut(struct acc_str *s, struct acc_fold_layout *l)
{
	if (!take(s, "[:"))
		return true;
	if (!digits(s, &l->cut) || l->cut == 0 || !take(s, "]"))
		return false;
	l->zeros = !take(s, "?");
	return true;
}

static bool
parse_scale(struct acc_str *s, double *scale)
{
	int64_t v;
	bool part = take(s, "1/");
	if (!digits(s, &v) || v == 0)
		return false;
	*scale = part ? 1 / (double)v : (double)v;
	return true;
}

bool
acc_fold_layout_parse(struct acc_str s, struct acc_fold_layout *l)
{
	*l = (struct acc_fold_layout){.scale = 1};
	if (acc_str_is(s, "Unknown()"))
		return true;
	l->swapped = take(&s, "Transpose(0,1) ");
	for (; s.n > 0; take(&s, " ")) {
		int64_t axis;
		if (take(&s, "* "))
			return l->n > 0 && parse_scale(&s, &l->scale) && s.n == 0;
		if (l->n == ACC_MESH_DIMS)
			return false;
		struct acc_place *p = &l->at[l->n++];
		if (take(&s, "Replicate()"))
			p->kind = ACC_REPLICATE;
		else if (take(&s, "Alone()"))
			p->kind = ACC_ALONE;
		else if (take(&s, "Partial(sum)"))
			p->kind = ACC_PARTIAL;
		else if (take(&s, "Shard(") && digits(&s, &axis) && take(&s, ")") &&
			 axis < ACC_FOLD_NDIM && parse_cut(&s, l))
			*p = (struct acc_place){ACC_SHARD, (uint8_t)axis};
		else
			return false;
	}
	return l->n > 0;
}
