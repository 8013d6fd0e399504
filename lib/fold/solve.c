/* Which layout of the parts of a tensor gives the reference's? */
#include "fold/impl.h"

#include <math.h>

bool
acc_fold_gather(struct acc_fold *f, const struct fold_mesh *m, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t i)
{
	const struct fold_side *s = &f->device;
	const struct fold_call *first = &s->call[t->call[v->rank]];
	uint64_t pos = s->item[first->first + i].pos;
	for (uint32_t r = 0; r < m->zip; r++) {
		uint32_t call = t->call[v->rank + r];
		const struct fold_item *it = call == FOLD_NONE
						     ? NULL
						     : acc_fold_item_at(s, &s->call[call], pos, i);
		if (it == NULL || !it->tensor || it->stat.ndim > ACC_FOLD_NDIM)
			return false;
		acc_fold_known(&it->stat, &f->part[r]);
	}
	return true;
}

/* n parts at `from` become n / size of the mesh's axis behind them. */
static bool
join_axis(const struct fold_mesh *m, int axis, struct acc_place p, double tol,
	const struct acc_fold_stat *from, uint32_t n, struct acc_fold_stat *to)
{
	for (uint32_t i = 0, k = 0; i < n; i += m->size[axis], k++)
		if (!acc_fold_join(&from[i], m->size[axis], p, tol, &to[k]))
			return false;
	return true;
}

/* The first two axes of the parts, the other way round. */
static void
swap_axes(struct acc_fold *f, const struct fold_mesh *m)
{
	for (uint32_t r = 0; r < m->zip; r++) {
		int64_t *shape = f->part[r].shape, n = shape[0];
		shape[0] = shape[1];
		shape[1] = n;
	}
}

static bool
by_layout(struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_layout *l,
	double tol, struct acc_fold_stat *whole)
{
	const struct acc_fold_stat *from = f->part;
	struct acc_fold_stat *to = f->part + m->zip;
	uint32_t n = m->zip;
	if (l->n != m->n)
		return false;
	for (int d = (int)m->n - 1; d >= 0; d--) {
		if (!join_axis(m, d, l->at[d], tol, from, n, to))
			return false;
		from = to;
		n /= m->size[d];
		to += n;
	}
	*whole = *from;
	for (int i = 0; i < ACC_FOLD_NSTAT; i++)
		whole->v[i] *= l->scale;
	return l->cut == 0 || acc_fold_cut(l, whole);
}

bool
acc_fold_one_has_all(const struct acc_fold *f, const struct fold_mesh *m)
{
	uint32_t n = 0;
	for (uint32_t r = 0; r < m->zip; r++)
		n += f->part[r].count > 0;
	return m->zip > 1 && n < 2;
}

bool
acc_fold_by_layout(struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_layout *l,
	double tol, struct acc_fold_stat *whole)
{
	if (l->swapped)
		swap_axes(f, m);
	bool is = by_layout(f, m, l, tol, whole);
	if (l->swapped)
		swap_axes(f, m);
	return is;
}

struct search {
	const struct fold_mesh *m;
	const struct acc_fold_stat *want;
	double tol;
	enum fold_factor factor;
	bool copies;  /* the parts are alike but for noise: no summands */
	double times; /* so many times the reference's elements the parts have; 0: it is not asked */
	struct acc_fold_layout now, best;
	int sure;
};

static void
consider(struct search *s, const struct acc_fold_stat *whole, double scale)
{
	int sure = acc_fold_same(whole, scale, s->want, s->tol);
	if (sure <= s->sure)
		return;
	s->sure = sure;
	s->best = s->now;
	s->best.scale = scale;
}

enum fold_factor
acc_fold_factor(const struct acc_fold *f, const struct fold_call *k, const struct fold_item *it)
{
	/* Ranks that are one of several of the reference sum over more ranks than it does, and divide by more. */
	if (k->dir ==
		FOLD_BACKWARD) /* one over a rank's own tokens, which are as many on each, is a copy */
		return it->stat.count == 1 && f->both == NULL ? FOLD_OF_COPIES : FOLD_OF_PARTS;
	/* A mean over all tokens is, where ranks average, one over a rank's share of them. What it makes is judged. */
	if (!it->output && it->stat.count == 1 && f->both == NULL && !k->late)
		return FOLD_OF_COPIES;
	if (!(acc_fold_many(f) || f->lone) || !k->late)
		return FOLD_NO_FACTOR;
	const bool sums = f->groups > 1 || f->both != NULL || f->whole || f->lone;
	if (f->lone && !k->talks && !k->scales)
		return FOLD_NO_FACTOR;
	return sums && (k->talks || (k->scales && !it->output)) ? FOLD_OF_COPIES : FOLD_OF_PARTS;
}

enum fold_factor
acc_fold_factor_of(const struct acc_fold *f, const struct fold_call *k,
	const struct fold_virtual *v, const struct fold_item *it)
{
	const enum fold_factor factor = acc_fold_factor(f, k, it);
	return v->alone > 0 && factor == FOLD_OF_PARTS ? FOLD_OF_COPIES : factor;
}

/* The loss of a rank is the mean of its own samples: its gradients are as many times larger, and
 * the mean of the ranks' losses is the loss. Of what all ranks have no factor is a layout's. */
static void
finish(struct search *s, const struct acc_fold_stat *whole)
{
	bool split = false;
	double all = 1;
	struct acc_fold_stat cut = *whole;
	if (s->now.cut > 0 && !acc_fold_cut(&s->now, &cut))
		return;
	whole = &cut;
	consider(s, whole, 1);
	for (uint32_t d = 0; d < s->m->n; d++) {
		split |= s->now.at[d].kind != ACC_REPLICATE;
		bool copies = s->now.at[d].kind == ACC_REPLICATE;
		if (copies ? s->factor != FOLD_OF_COPIES
			   : s->factor == FOLD_NO_FACTOR && s->want->count != 1)
			continue;
		consider(s, whole, 1.0 / s->m->size[d]);
		all *= s->m->size[d];
	}
	if (split && all > 1)
		consider(s, whole, 1 / all);
}

/* Can the first of what this axis joins become the reference's? Shapes only grow: most ways end here, before
 * the statistics of all parts are joined. What is filled up is longer. */
static bool
may_fit(const struct search *s, int axis, struct acc_place p, const struct acc_fold_stat *from)
{
	const struct acc_fold_stat *want = s->want;
	for (uint32_t d = 0; d < want->ndim && s->now.cut == 0; d++) {
		int64_t n = from[0].shape[d];
		for (uint32_t i = 1; p.kind == ACC_SHARD && p.axis == d && i < s->m->size[axis];
			i++)
			if (__builtin_add_overflow(n, from[i].shape[d], &n) || n > want->shape[d])
				return false;
		if (axis == 0 ? n != want->shape[d] : n > want->shape[d])
			return false;
	}
	return true;
}

/* How many times the reference's elements the parts have together: what is split has them once, and copies and
 * summands of so many parts have them as many times. 0: it has none, or is filled up, and nothing follows. */
static double
times_of(const struct acc_fold_stat *part, uint32_t n, const struct acc_fold_stat *want)
{
	double sum = 0;
	for (uint32_t r = 0; r < n; r++)
		sum += part[r].count;
	return want->count > 0 && sum > 0 ? sum / want->count : 0;
}

/* Can the axes from this one on make one of so many times the reference, if this one does it so many times? It ends
 * most ways before the statistics of any part are joined. */
static bool
can_make(const struct search *s, int axis, double times, double by)
{
	double left = 1;
	for (int d = 0; d < axis; d++)
		left *= s->m->size[d];
	times /= by;
	return s->now.cut > 0 || times == 0 || (times == floor(times) && fmod(left, times) == 0);
}

static void
descend(struct search *s, int axis, const struct acc_fold_stat *from, uint32_t n,
	struct acc_fold_stat *to)
{
	if (axis < 0) {
		finish(s, from);
		return;
	}
	uint32_t left = n / s->m->size[axis], ndim = from[0].ndim;
	/* One alone has all; as a summand, its mean alone would tell. */
	uint32_t ways = s->m->size[axis] == 1 ? 1 : ndim + 2 - s->copies;
	/* On a mesh of several axes parts that are nearly alike, as weights are after a step or two, are no copies where
	 * others are to the last digits: these come first, and the others last. */
	const bool several = s->m->n > 1 && ways > 1;
	for (uint32_t c = 0; c < ways + several && s->sure < 2; c++) {
		struct acc_place p = {.kind = ACC_REPLICATE};
		const double tol = several && c == 0 ? FOLD_COPIES * s->tol : s->tol;
		if (c > 0 && c < ways)
			p = c <= ndim ? (struct acc_place){ACC_SHARD, (uint8_t)(c - 1)}
				      : (struct acc_place){ACC_PARTIAL, 0};
		s->now.at[axis] = p;
		const double times = s->times, by = p.kind == ACC_SHARD ? 1 : s->m->size[axis];
		if (!can_make(s, axis, times, by) || !may_fit(s, axis, p, from) ||
			!join_axis(s->m, axis, p, tol, from, n, to))
			continue;
		s->times = times / by;
		descend(s, axis - 1, to, left, to + left);
		s->times = times;
	}
}

/* Are all parts the same but for noise? Their sum has n times the mean, which is all that statistics have of
 * it. */
static bool
are_copies(const struct acc_fold *f, const struct fold_mesh *m)
{
	struct acc_fold_stat whole;
	return m->zip > 1 && f->part[0].count > 1 &&
	       acc_fold_join(f->part, m->zip, (struct acc_place){ACC_REPLICATE, 0}, FOLD_NOISE,
		       &whole);
}

static uint32_t
order_of(const struct acc_place *p)
{
	return p->kind == ACC_SHARD ? p->axis : ACC_FOLD_NDIM + (p->kind == ACC_PARTIAL);
}

void
acc_fold_straighten(struct acc_fold *f, const struct fold_mesh *m, struct acc_fold_layout *l)
{
	struct acc_fold_stat whole, other;
	for (uint32_t k = 0; k + 1 < l->n; k++)
		for (uint32_t d = 0; d + 1 < l->n; d++) {
			struct acc_fold_layout x = *l;
			x.at[d] = l->at[d + 1];
			x.at[d + 1] = l->at[d];
			if (l->at[d].kind != ACC_REPLICATE && l->at[d + 1].kind != ACC_REPLICATE &&
				order_of(&l->at[d]) > order_of(&l->at[d + 1]) &&
				acc_fold_by_layout(f, m, l, INFINITY, &whole) &&
				acc_fold_by_layout(f, m, &x, INFINITY, &other) &&
				whole.ndim == other.ndim &&
				memcmp(whole.shape, other.shape,
					whole.ndim * sizeof *whole.shape) == 0)
				*l = x;
		}
}

/* The axis along which alone the parts are together longer than the whole, by less than one of them, as where a
 * vocabulary is filled up to a number that can be split; ACC_FOLD_NDIM: there is none. */
static uint32_t
filled(const struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_stat *want)
{
	const struct acc_fold_stat *p = &f->part[0];
	uint32_t axis = ACC_FOLD_NDIM;
	for (uint32_t d = 0; d < want->ndim && want->ndim == p->ndim; d++)
		if (p->shape[d] != want->shape[d])
			axis = axis == ACC_FOLD_NDIM ? d : ACC_FOLD_NDIM + 1;
	bool alike = axis < ACC_FOLD_NDIM && f->both == NULL && !f->whole;
	for (uint32_t r = 1; r < m->zip && alike; r++)
		alike = f->part[r].ndim == p->ndim &&
			memcmp(f->part[r].shape, p->shape, p->ndim * sizeof *p->shape) == 0;
	if (!alike)
		return ACC_FOLD_NDIM;
	for (uint32_t d = m->n; d-- > 0;) {
		int64_t all;
		if (!__builtin_mul_overflow(p->shape[axis], (int64_t)m->size[d], &all) &&
			want->shape[axis] > 1 && all > want->shape[axis] &&
			all - want->shape[axis] < p->shape[axis])
			return axis;
	}
	return ACC_FOLD_NDIM;
}

int
acc_fold_solve(struct acc_fold *f, const struct fold_mesh *m, const struct acc_fold_stat *want,
	double tol, enum fold_factor factor, struct acc_fold_layout *l)
{
	struct search s = {.m = m, .want = want, .tol = tol, .factor = factor};
	if (want->ndim > ACC_FOLD_NDIM || f->part[0].ndim != want->ndim)
		return 0;
	s.copies = acc_fold_many(f) && are_copies(f, m);
	s.times = times_of(f->part, m->zip, want);
	s.now = (struct acc_fold_layout){.n = (uint8_t)m->n, .scale = 1};
	descend(&s, (int)m->n - 1, f->part, m->zip, f->part + m->zip);
	/* Tokens may stand before samples, as sequence parallelism has them. */
	if (s.sure < 2 && want->ndim > 1 && want->shape[0] != want->shape[1]) {
		s.now = (struct acc_fold_layout){.n = (uint8_t)m->n, .swapped = true, .scale = 1};
		swap_axes(f, m);
		descend(&s, (int)m->n - 1, f->part, m->zip, f->part + m->zip);
		swap_axes(f, m);
	}
	const uint32_t axis = s.sure == 0 ? filled(f, m, want) : ACC_FOLD_NDIM;
	if (axis < ACC_FOLD_NDIM) {
		s.now = (struct acc_fold_layout){.n = (uint8_t)m->n,
			.scale = 1,
			.cut = want->shape[axis],
			.zeros = true};
		descend(&s, (int)m->n - 1, f->part, m->zip, f->part + m->zip);
	}
	*l = s.best;
	if (s.sure > 0)
		acc_fold_straighten(f, m, l);
	return s.sure;
}

static bool
all_same(const struct acc_fold *f, const struct fold_mesh *m, double tol)
{
	for (uint32_t r = 1; r < m->zip; r++)
		if (acc_fold_same(&f->part[r], 1, &f->part[0], tol) == 0)
			return false;
	return m->zip > 1;
}

bool
acc_fold_by_shape(struct acc_fold *f, const struct fold_mesh *m, const struct fold_item *own,
	const struct acc_fold_stat *want, double tol, struct acc_fold_layout *l)
{
	struct acc_fold_stat whole;
	const struct acc_fold_stat *p = &f->part[0];
	struct acc_place at = {.kind = ACC_REPLICATE};
	uint32_t split = 0;
	if (want->ndim > ACC_FOLD_NDIM || p->ndim != want->ndim)
		return false;
	for (uint32_t d = 0; d < p->ndim; d++)
		if (p->shape[d] != want->shape[d]) {
			at = (struct acc_place){ACC_SHARD, (uint8_t)d};
			split++;
		}
	/* On a mesh of several axes a split axis may be any of them; what one rank takes in parts is cut by samples. */
	const bool doubt = !acc_fold_in_time(m) && (own->exact || all_same(f, m, tol));
	if (split > 1 || (split == 1 && (m->n > 1 || doubt)) ||
		(split == 0 && own->exact && m->zip > 1 && !all_same(f, m, tol)))
		return false;
	*l = (struct acc_fold_layout){.n = (uint8_t)m->n, .scale = 1};
	for (uint32_t d = 0; d < m->n; d++)
		l->at[d] = at;
	/* What it is filled up with only elements can tell from it. */
	if (split == 1 && f->roots != NULL && f->groups == 1 && filled(f, m, want) == at.axis)
		l->cut = want->shape[at.axis];
	return acc_fold_by_layout(f, m, l, tol, &whole) &&
	       memcmp(whole.shape, want->shape, want->ndim * sizeof *want->shape) == 0;
}
