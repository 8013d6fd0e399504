/* The structure of an error: in which rows, columns, channels it sits, and what it is there. By two
 * more passes over a pair: sums along every axis, then sums over the sets that these propose. */
#include "metric/limits.h"
#include "metric/where_state.h"

#include "acc/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
	struct where *w; /* NULL: no memory, or of a dtype that has no order */
	bool lost;
};

/* --- tracks --- */

static bool
add_track(struct where *w, int axis, int64_t extent, int64_t stride, int64_t from, int64_t width,
	size_t nbin)
{
	struct track *t = &w->track[w->ntrack++];
	*t = (struct track){axis, extent, stride, from, width, nbin, NULL, NULL, NULL};
	t->bin = calloc(nbin, sizeof *t->bin);
	if (axis != WHERE_FLAT && width == 1 && (int64_t)nbin == extent) {
		t->pa = calloc(nbin, sizeof *t->pa);
		t->pb = calloc(nbin, sizeof *t->pb);
		if (t->pa == NULL || t->pb == NULL)
			return false;
	}
	return t->bin != NULL;
}

/* All of an axis; of a long one also its beginning, index by index. */
static bool
track_axis(struct where *w, int axis, int64_t extent, int64_t stride)
{
	int64_t width = 1;
	while ((extent + width - 1) / width > WHERE_BINS)
		width *= 2;
	return add_track(w, axis, extent, stride, 0, width,
		       (size_t)((extent + width - 1) / width)) &&
	       (width == 1 || add_track(w, axis, extent, stride, 0, 1, WHERE_BINS));
}

static bool
open_tracks(struct where *w, const struct acc_ref *ref)
{
	int64_t stride = 1;
	int axes = 0;
	bool good = true;
	w->row = 1;
	for (uint32_t k = ref->ndim; k-- > 0 && good && axes < WHERE_AXES;) {
		if (ref->shape[k] <= 1)
			continue;
		good = track_axis(w, (int)k, ref->shape[k], stride);
		w->row = axes == 0 ? ref->shape[k] : w->row;
		stride *= ref->shape[k];
		axes++;
	}
	if (good && axes > 1)
		good = track_axis(w, WHERE_FLAT, (int64_t)w->count, 1);
	return good;
}

static void
end(void *state)
{
	struct where *w = ((struct state *)state)->w;
	for (int i = 0; w != NULL && i < w->ntrack; i++) {
		free(w->track[i].bin);
		free(w->track[i].pa);
		free(w->track[i].pb);
	}
	for (int i = 0; w != NULL && i < w->nedge; i++)
		free(w->edge[i].bin);
	if (w != NULL)
		acc_arena_release(&w->mem);
	free(w);
}

static void
begin(void *state, const struct acc_reading *r, const struct acc_ref *a, const struct acc_ref *b)
{
	struct state *s = state;
	uint64_t count;
	*s = (struct state){NULL, false};
	if (acc_dtype_of(a->dtype)->cls == 'C' || acc_dtype_of(b->dtype)->cls == 'C' ||
		r->two.same == r->two.n || !acc_count(a->shape, a->ndim, &count))
		return;
	struct where *w = s->w = calloc(1, sizeof *w);
	s->lost = w == NULL;
	if (w == NULL)
		return;
	w->ndim = a->ndim;
	w->count = (double)count;
	w->scale = r->scale > 0 ? r->scale : 1;
	const double ua = acc_unit(a->dtype), ub = acc_unit(b->dtype), u = ua > ub ? ua : ub;
	w->rounding = u * u;
	w->nonfinite = r->two.kind_diff > 0;
	s->lost = !open_tracks(w, a);
}

/* --- elements --- */

struct element {
	double n, y, x, z;
	bool zero, nan, inf, minus;
};

/* Where both are zero nothing can be told: padding, masks, what relu left. */
static struct element
look(const struct where *w, double a, double b)
{
	struct element e = {0};
	if (w->nonfinite) {
		bool same = isfinite(a) ? isfinite(b) : isnan(a) ? isnan(b) : a == b;
		e.n = 1;
		e.y = same ? 0 : 1;
		e.nan = !same && isnan(a);
		e.inf = !same && isinf(a);
		return e;
	}
	if (!isfinite(a) || !isfinite(b) || (a == 0 && b == 0))
		return e;
	e.n = 1;
	e.z = 1 / (fabs(b) + w->scale);
	e.y = (a - b) * e.z;
	e.x = b * e.z;
	e.zero = a == 0;
	e.minus = fabs(a + b) <= 0.01 * fabs(b);
	return e;
}

static void
count_in(struct where_tally *t, const struct element *e)
{
	t->n += e->n;
	t->s += e->y * e->y;
	t->xx += e->x * e->x;
	t->xy += e->x * e->y;
	t->zz += e->z * e->z;
	t->yz += e->y * e->z;
	t->xz += e->x * e->z;
	t->other += e->n > 0 && (t->other == 0 || t->x != e->x || t->y != e->y);
	t->x = e->n > 0 ? e->x : t->x;
	t->y = e->n > 0 ? e->y : t->y;
	t->zero += e->zero;
	t->nan += e->nan;
	t->inf += e->inf;
	t->minus += e->minus;
}

/* Signs for an index within a slice, as bits. */
static unsigned
signs(uint64_t i)
{
	uint64_t h = (i >> 4) + 0x9e3779b97f4a7c15;
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	h = (h ^ h >> 27) * 0x94d049bb133111eb;
	return (unsigned)((h ^ h >> 31) >> (i & 15) * 4) & 15;
}

static void
project(double out[WHERE_SIGNS], unsigned sign, double v)
{
	for (int k = 0; k < WHERE_SIGNS; k++)
		out[k] += sign >> k & 1 ? -v : v;
}

/* How many bits of its significand a number has. */
static int
bits_of(double v)
{
	uint64_t u;
	memcpy(&u, &v, sizeof u);
	u &= 0xfffffffffffff;
	return u == 0 ? 1 : 53 - __builtin_ctzll(u);
}

/* n elements of one row, of which all but the last axis are the same. */
static void
sum_track(const struct where *w, struct track *t, const struct element *e, const double *a,
	size_t n)
{
	const int64_t pos = (int64_t)w->pos;
	for (size_t j = 0; j < n; j++) {
		const int64_t p = pos + (int64_t)j, at = p / t->stride % t->extent;
		const int64_t bin = (at - t->from) / t->width;
		if (at < t->from || bin >= (int64_t)t->nbin)
			continue;
		t->bin[bin].n += e[j].n;
		t->bin[bin].s += e[j].y * e[j].y;
		if (t->pa == NULL || w->nonfinite || e[j].n == 0)
			continue;
		const int64_t slice = p / (t->stride * t->extent) * t->stride + p % t->stride;
		const unsigned sign = signs((uint64_t)slice);
		project(t->pa[bin], sign, a[j] / (fabs(a[j]) + w->scale));
		project(t->pb[bin], sign, e[j].x);
	}
}

static bool
lies_in(const struct where *w, const struct proposal *p, int64_t pos)
{
	for (int i = 0; i < p->n; i++) {
		const struct where_set *s = &p->set[i];
		int64_t at = pos;
		for (int k = 0; s->axis != WHERE_FLAT && k < w->ntrack; k++)
			if (w->track[k].axis == s->axis) {
				at = pos / w->track[k].stride % s->extent;
				break;
			}
		if (!acc_where_in(s, at))
			return false;
	}
	return true;
}

static void
count_all(struct where *w, const struct element *e, double a, double b)
{
	const int of_a = bits_of(a), of_b = bits_of(b);
	count_in(&w->all, e);
	w->bits[0] = isfinite(a) && of_a > w->bits[0] ? of_a : w->bits[0];
	w->bits[1] = isfinite(b) && of_b > w->bits[1] ? of_b : w->bits[1];
}

/* Numbers of so few bits were rounded to 16, whatever dtype they are kept in. */
static void
see_rounding(struct where *w)
{
	const int bits = w->bits[0] < w->bits[1] ? w->bits[0] : w->bits[1];
	const double u = bits <= 8 ? acc_unit(ACC_BF16) : bits <= 11 ? acc_unit(ACC_F16) : 0;
	w->rounding = u * u > w->rounding ? u * u : w->rounding;
}

static void
chunk(void *state, const double *a, const double *b, size_t n)
{
	enum { SOME = 256 };
	struct where *w = ((struct state *)state)->w;
	struct element e[SOME];
	if (w == NULL || ((struct state *)state)->lost)
		return;
	for (size_t i = 0; i < n;) {
		size_t m = n - i < SOME ? n - i : SOME;
		for (size_t j = 0; j < m; j++) {
			e[j] = look(w, a[i + j], b[i + j]);
			if (w->pass == SUM)
				count_all(w, &e[j], a[i + j], b[i + j]);
		}
		for (int k = 0; w->pass == SUM && k < w->ntrack; k++)
			sum_track(w, &w->track[k], e, a + i, m);
		for (int k = 0; w->pass == SHARPEN && k < w->nedge; k++)
			sum_track(w, &w->edge[k], e, a + i, m);
		for (int k = 0; w->pass == TALLY && k < w->nproposal; k++)
			for (size_t j = 0; j < m; j++)
				if (lies_in(w, &w->proposal[k], (int64_t)(w->pos + j)))
					count_in(&w->proposal[k].in, &e[j]);
		w->pos += m;
		i += m;
	}
}

/* --- what they give --- */

static void
choose_place(struct where *w)
{
	double best = 0;
	for (int i = 0; i < w->nproposal; i++) {
		const struct proposal *p = &w->proposal[i];
		double gain = acc_where_gain(w->all.n, w->all.s, p->in.n, p->in.s, w->rounding) -
			      p->cost;
		if (!acc_where_stands_out(w->all.n, w->all.s, p->in.n, p->in.s, w->rounding) ||
			!(gain > best))
			continue;
		best = gain;
		w->place = p;
	}
}

/* Is an axis in another order? What that explains is no matter of places. */
static void
choose_order(struct where *w)
{
	for (int i = w->ntrack; i-- > 0 && w->how == WHERE_UNKNOWN && !w->nonfinite;) {
		const struct track *t = &w->track[i];
		if (t->pa == NULL)
			continue;
		w->along = t->axis;
		w->how = acc_where_order((const double(*)[WHERE_SIGNS])t->pa,
			(const double(*)[WHERE_SIGNS])t->pb, t->nbin, w->count / (double)t->extent,
			&w->by);
	}
}

static void
say(struct where *w)
{
	const char *text = NULL, *how;
	const int sets = w->place == NULL ? 0 : w->place->n;
	for (int i = 0; i < sets; i++) {
		const struct where_set *s = &w->place->set[i];
		const char *name = acc_where_name(&w->mem, s, w->ndim);
		text = i == 0 || text == NULL || name == NULL
			       ? name
			       : acc_say(&w->mem, "%s, %s", text, name);
		acc_where_slice(s, w->slice[i], sizeof w->slice[i]);
		w->slices[i] = acc_str(w->slice[i]);
		w->axes[i] = s->axis;
	}
	how = w->how == WHERE_UNKNOWN ? NULL : acc_where_how_name(&w->mem, w->how, w->by, w->along);
	if (how != NULL)
		text = text != NULL ? acc_say(&w->mem, "%s, %s", text, how)
				    : acc_say(&w->mem, "everywhere, %s", how);
	w->text = text;
}

/* Behind the sums: what they propose. 1: edges are to be looked at. */
static int
first(struct where *w)
{
	w->by = NAN;
	choose_order(w);
	int rc = w->how == WHERE_SHIFT || w->how == WHERE_ORDER ? 0 : acc_where_sets(w);
	return rc < 0 ? rc : acc_where_edges(w);
}

static void
finish(struct where *w)
{
	if (w->pass == TALLY)
		choose_place(w);
	if (w->how == WHERE_UNKNOWN)
		w->how = acc_where_how(w->place != NULL ? &w->place->in : &w->all, &w->by);
	say(w);
}

static int
more(void *state)
{
	struct state *s = state;
	struct where *w = s->w;
	if (s->lost)
		return ACC_ENOMEM;
	if (w != NULL && w->pass == SUM && !w->nonfinite && w->rounding > 0)
		see_rounding(w);
	if (w == NULL || !(w->all.s >= 9 * w->rounding) || w->all.s == 0)
		return 0;
	int rc = w->pass == SUM ? first(w) : 0;
	if (w->pass == SHARPEN)
		acc_where_take_edges(w);
	if (rc < 0 || w->pass == TALLY || w->nset == 0 || w->how == WHERE_SHIFT ||
		w->how == WHERE_ORDER) {
		finish(w);
		return rc == 0 && w->mem.lost ? ACC_ENOMEM : rc;
	}
	w->pass = w->pass == SUM && rc > 0 ? SHARPEN : TALLY;
	w->pos = 0;
	if (w->pass == TALLY)
		acc_where_propose(w);
	return 1;
}

static const struct acc_second passes = {
	.size = sizeof(struct state),
	.begin = begin,
	.chunk = chunk,
	.more = more,
	.end = end,
};

/* --- the fields --- */

static const struct where *
known(const struct acc_subject *s)
{
	const struct state *p = s->second;
	return p == NULL || p->w == NULL || p->w->text == NULL ? NULL : p->w;
}

static struct acc_val
text(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL ? acc_nil() : acc_ctext(w->text);
}

static struct acc_val
said(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL ? acc_nil() : acc_message(&w->mem, w->text);
}

static struct acc_val
axis(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->place == NULL ? acc_nil() : acc_ints(w->axes, (uint32_t)w->place->n);
}

static struct acc_val
set(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->place == NULL ? acc_nil()
					     : acc_texts(w->slices, (uint32_t)w->place->n);
}

static struct acc_val
share(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->place == NULL ? acc_nil() : acc_f64(w->place->in.s / w->all.s);
}

static struct acc_val
of(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->place == NULL ? acc_nil() : acc_f64(w->place->in.n / w->all.n);
}

static struct acc_val
how(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->how == WHERE_UNKNOWN ? acc_nil() : acc_ctext(acc_where_hows[w->how]);
}

static struct acc_val
by(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || isnan(w->by) ? acc_nil() : acc_f64(w->by);
}

static struct acc_val
along(struct acc_subject *s)
{
	const struct where *w = known(s);
	return w == NULL || w->how < WHERE_SHIFT ? acc_nil() : acc_int(w->along);
}

#define WHERE(id, key, fn, message, definition) \
	const struct acc_metric acc_metric_##id = { \
		.name = key, \
		.of = ACC_OF_PAIR, \
		.unit = "", \
		.help = definition, \
		.value = fn, \
		.said = message, \
		.second = &passes, \
	}

WHERE(where, "m.where", text, said,
	"where in the tensor the error sits, and what it is there, in words");
WHERE(where_axis, "m.where.axis", axis, NULL, "the axes of that place; -1: row-major order");
WHERE(where_set, "m.where.set", set, NULL,
	"of each axis the indices: 3  4:8  12:  0::5  32:64%64  3, 7");
WHERE(where_share, "m.where.share", share, NULL, "the part of the squared error that is there");
WHERE(where_of, "m.where.of", of, NULL, "the part of the elements that are there");
WHERE(where_how, "m.where.how", how, NULL,
	"scale, offset, sign, zero, nan, inf, shift, swap or order");
WHERE(where_by, "m.where.by", by, NULL, "the factor, the offset, or how far it is shifted");
WHERE(where_along, "m.where.along", along, NULL, "the axis of a shift, a swap or another order");
