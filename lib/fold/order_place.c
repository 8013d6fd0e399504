/* Where the reference's weights stand in a flat parameter: by some of their elements, and, of those whose
 * elements are others, by what stands behind what in other layers. */
#include "fold/order.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

#include "acc/kernel.h"

uint64_t
acc_order_sample_at(int64_t count, int i)
{
	return (uint64_t)((double)count * (i + 0.5) / SAMPLES);
}

bool
acc_order_take(struct fold_source *s, uint64_t at, double *out)
{
	double raw[2];
	const void *p;
	if (at >= acc_source_count(s) || acc_source_read(s, at, 1, raw, &p, NULL) < 0)
		return false;
	*out = acc_load_f64(acc_source_dtype(s), p);
	return true;
}

/* --- by elements --- */

/* Does this weight stand here? */
static bool
stands(struct order *o, const struct known *k, int64_t at)
{
	const enum acc_dtype t = acc_source_dtype(o->source);
	const double u = fmax(acc_unit(t), acc_unit(k->dtype));
	int same = 0;
	if (k->count > (int64_t)acc_source_count(o->source) - at)
		return false;
	for (int i = 0; i < SAMPLES; i++) {
		double x;
		if (!acc_order_take(o->source, (uint64_t)at + acc_order_sample_at(k->count, i), &x))
			return false;
		same += fabs(x - k->sample[i]) <= 2 * u * fabs(k->sample[i]);
		if (same + SAMPLES - 1 - i < ENOUGH)
			return false;
	}
	return true;
}

static int64_t
aligned(int64_t at, int64_t align)
{
	return (at + align - 1) / align * align;
}

/* The weight of this unit that stands here, and is not found yet; one that says something first. */
static struct known *
at_place(struct order *o, uint32_t unit, int64_t at)
{
	struct known *found = NULL;
	for (uint32_t i = 0; i < o->nknown; i++) {
		struct known *k = &o->known[i];
		if (k->unit == unit && k->at < 0 && (found == NULL || !k->constant) &&
			stands(o, k, at)) {
			found = k;
			if (!k->constant)
				break;
		}
	}
	return found;
}

static void
put_at(struct known *k, int64_t at)
{
	k->at = at;
}

/* The places in rising order that sizes of this unit's weights reach from here, each taken once at the most:
 * *n of them, as many as MOST_PLACES. NULL: no memory. */
static int64_t *
reach(struct order *o, uint32_t unit, int64_t from, size_t *n)
{
	int64_t *place = calloc(MOST_PLACES, sizeof *place);
	int64_t *both = calloc(MOST_PLACES, sizeof *both);
	const int64_t end = (int64_t)acc_source_count(o->source);
	*n = place == NULL || both == NULL ? 0 : 1;
	if (*n > 0)
		place[0] = from;
	for (uint32_t i = 0; i<o->nknown && * n> 0; i++) {
		const struct known *k = &o->known[i];
		const int64_t size = aligned(k->count, o->align);
		size_t x = 0, y = 0, m = 0;
		if (k->unit != unit || k->at >= 0 || size > end)
			continue;
		/* Those that were there, and the same so much further on. */
		while (m < MOST_PLACES && (x < *n || (y < *n && place[y] + size < end))) {
			bool further = x == *n || (y < *n && place[y] + size < place[x]);
			int64_t next = further ? place[y++] + size : place[x++];
			if (next < end && (m == 0 || both[m - 1] != next))
				both[m++] = next;
			else if (next >= end)
				break;
		}
		memcpy(place, both, m * sizeof *place);
		*n = m;
	}
	free(both);
	return place;
}

/* The next place, by sizes of weights, at which one stands that says something. NULL: none; e of memory. */
static struct known *
resume(struct order *o, uint32_t unit, int64_t from, int64_t *at, struct acc_err *e)
{
	size_t n;
	int64_t *place = reach(o, unit, from, &n);
	struct known *found = NULL;
	if (n == 0)
		acc_nomem(e);
	for (size_t i = 1; i < n && found == NULL; i++) {
		*at = place[i];
		found = at_place(o, unit, *at);
		found = found != NULL && !found->constant ? found : NULL;
	}
	free(place);
	return found;
}

/* What can be found by elements, from the first to the last. */
int
acc_order_by_elements(struct order *o, uint32_t unit, struct acc_err *e)
{
	int64_t at = 0;
	const int64_t end = (int64_t)acc_source_count(o->source);
	while (at < end) {
		struct known *k = at_place(o, unit, at);
		struct acc_err own = {0};
		if (k == NULL)
			k = resume(o, unit, at, &at, &own);
		if (own.code < 0)
			return acc_nomem(e);
		if (k == NULL)
			break;
		put_at(k, at);
		at = aligned(at + k->count, o->align);
	}
	return 0;
}

/* --- by the order in other layers --- */

ACC_ORDER_OF(by_at, struct known, at)

/* Those of the unit that have a place, in order; n of them. free() them. */
static struct known **
placed(struct order *o, uint32_t unit, uint32_t *n)
{
	struct known **v = calloc((size_t)o->nknown + 1, sizeof(struct known *));
	*n = 0;
	for (uint32_t i = 0; i < o->nknown && v != NULL; i++)
		if (o->known[i].unit == unit && o->known[i].at >= 0)
			v[(*n)++] = &o->known[i];
	if (v != NULL && *n > 0)
		qsort((void *)v, *n, sizeof(struct known *), by_at);
	return v;
}

static const struct known start; /* before the first */

static int
vote(struct order *o, const struct known *a, const struct known *b, struct acc_err *e)
{
	struct next own = {.from = a->role, .to = b->role, .votes = 1};
	for (int i = 0; i < NUMBERS; i++)
		own.step[i] = a == &start ? 0 : b->number[i] - a->number[i];
	for (uint32_t i = 0; i < o->nnext; i++)
		if (o->next[i].from == own.from && o->next[i].to == own.to &&
			memcmp(o->next[i].step, own.step, sizeof own.step) == 0) {
			o->next[i].votes++;
			return 0;
		}
	if (!ACC_ROOM(o->next, o->cap, (size_t)o->nnext + 1, e))
		return ACC_ENOMEM;
	o->next[o->nnext++] = own;
	return 0;
}

/* What follows what, where nothing is between them. */
int
acc_order_learn(struct order *o, uint32_t unit, struct acc_err *e)
{
	uint32_t n;
	struct known **v = placed(o, unit, &n);
	int rc = v == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < n && rc == 0; i++) {
		const struct known *before = i == 0 ? &start : v[i - 1];
		if (v[i]->at == (i == 0 ? 0 : aligned(before->at + before->count, o->align)))
			rc = vote(o, before, v[i], e);
	}
	free((void *)v);
	return rc;
}

/* Does the one stand behind the other, as this says? Before all stands the start. */
static bool
follows(const struct next *x, const struct known *before, const struct known *k)
{
	if (k->role != x->to || x->from != before->role)
		return false;
	for (int i = 0; i < NUMBERS && before != &start; i++)
		if (k->number[i] != before->number[i] + x->step[i])
			return false;
	return true;
}

/* What stands behind this weight, or before it, by most votes, if it is as large as the gap at the most. */
static struct known *
neighbour(struct order *o, const struct known *of, bool behind, uint32_t unit, int64_t room)
{
	struct known *found = NULL;
	uint32_t most = 0;
	for (uint32_t x = 0; x < o->nnext; x++)
		for (uint32_t i = 0; i < o->nknown && o->next[x].votes > most; i++) {
			struct known *k = &o->known[i];
			if (k->unit != unit || k->at >= 0 || k->count > room ||
				!(behind ? follows(&o->next[x], of, k)
					 : follows(&o->next[x], k, of)))
				continue;
			found = k;
			most = o->next[x].votes;
		}
	return found;
}

/* The only one that is left of this size, where it fills the gap. */
static struct known *
only_one(struct order *o, uint32_t unit, int64_t room, int64_t slack)
{
	struct known *found = NULL;
	for (uint32_t i = 0; i < o->nknown; i++) {
		struct known *k = &o->known[i];
		if (k->unit != unit || k->at >= 0 || k->count > room || k->count + slack <= room)
			continue;
		if (found != NULL)
			return NULL;
		found = k;
	}
	return found;
}

/* The weight of this unit that ends before this place by its elements. */
static struct known *
before_place(struct order *o, uint32_t unit, int64_t end)
{
	for (uint32_t i = 0; i < o->nknown; i++) {
		struct known *k = &o->known[i];
		int64_t at = end - aligned(k->count, o->align);
		if (k->unit == unit && k->at < 0 && !k->constant && at >= 0 && stands(o, k, at))
			return k;
	}
	return NULL;
}

/* Between the end of one and the end of the flat parameter, but for its padding: what follows in other
 * layers, and what the elements say, this first or that. */
static bool
forward(struct order *o, uint32_t unit, const struct known *last, int64_t at, bool elements)
{
	const struct unit *u = &o->unit[unit];
	const int64_t slack = (int64_t)u->n + o->align - 1;
	while (u->count - at >= slack) {
		struct known *k = elements ? at_place(o, unit, at) : NULL;
		k = k != NULL && !k->constant ? k : neighbour(o, last, true, unit, u->count - at);
		k = k != NULL ? k : at_place(o, unit, at);
		k = k != NULL ? k : only_one(o, unit, u->count - at, slack);
		if (k == NULL)
			return false;
		put_at(k, at);
		at = aligned(at + k->count, o->align);
		last = k;
	}
	return true;
}

static bool
backward(struct order *o, uint32_t unit, const struct known *first, bool elements)
{
	int64_t at = first->at;
	while (at > 0) {
		struct known *k = elements ? before_place(o, unit, at) : NULL;
		k = k != NULL ? k : neighbour(o, first, false, unit, at);
		k = k != NULL ? k : before_place(o, unit, at);
		k = k != NULL ? k : only_one(o, unit, at, o->align);
		if (k == NULL || aligned(k->count, o->align) > at)
			return false;
		at -= aligned(k->count, o->align);
		put_at(k, at);
		first = k;
	}
	return true;
}

/* Weights that stand one behind the other. */
struct row {
	uint32_t first, n;
	int64_t size;
};

static int
by_size(const void *x, const void *y)
{
	const struct row *a = x, *b = y;
	return a->size != b->size ? (a->size > b->size ? -1 : 1)
				  : (a->first > b->first) - (a->first < b->first);
}

/* Those of v, the longest first; how many, at least one, which may be empty. */
static uint32_t
rows_of(const struct order *o, struct known *const *v, uint32_t nv, struct row *row)
{
	uint32_t n = 0;
	row[0] = (struct row){.n = 0};
	for (uint32_t i = 0, k; i < nv; i = k) {
		int64_t end = v[i]->at, begin = end;
		for (k = i; k < nv && v[k]->at == end; k++)
			end = aligned(end + v[k]->count, o->align);
		row[n++] = (struct row){i, k - i, end - begin};
	}
	if (n > 0)
		qsort(row, n, sizeof *row, by_size);
	return n > 0 ? n : 1;
}

/* How many elements stand where they are the reference's. */
static int64_t
agreement(struct order *o, uint32_t unit)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < o->nknown; i++) {
		const struct known *k = &o->known[i];
		if (k->unit == unit && k->at >= 0 && stands(o, k, k->at))
			sum += k->count;
	}
	return sum;
}

/* This row alone is right, and the others follow from it: how many elements are the reference's then; -1: they
 * do not. */
static int64_t
from_row(struct order *o, uint32_t unit, struct known *const *v, const int64_t *at,
	const struct row *row, bool elements)
{
	for (uint32_t i = 0; i < o->nknown; i++)
		if (o->known[i].unit == unit)
			o->known[i].at = -1;
	for (uint32_t i = row->first; i < row->first + row->n; i++)
		v[i]->at = at[i];
	const struct known *last = row->n == 0 ? &start : v[row->first + row->n - 1];
	int64_t end = row->n == 0 ? 0 : aligned(last->at + last->count, o->align);
	if (!forward(o, unit, last, end, elements) ||
		(row->n > 0 && !backward(o, unit, v[row->first], elements)))
		return -1;
	return agreement(o, unit);
}

/* Do they stand one behind the other, from the first element to the padding? */
static bool
is_full(const struct order *o, const struct unit *u, struct known *const *v, uint32_t n)
{
	int64_t at = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (v[i]->at != at)
			return false;
		at = aligned(at + v[i]->count, o->align);
	}
	return n > 0 && u->count - at < (int64_t)u->n + o->align - 1;
}

int
acc_order_full(struct order *o, uint32_t unit, struct acc_err *e)
{
	uint32_t n;
	struct known **v = placed(o, unit, &n);
	if (v == NULL)
		return acc_nomem(e);
	bool full = is_full(o, &o->unit[unit], v, n);
	free((void *)v);
	return full;
}

/* Parts of ranks that have changed places move what is in them: then what is found by elements stands in
 * several rows, of which the one counts that most agrees with, if the rest follows from it. */
int
acc_order_complete(struct order *o, uint32_t unit, struct acc_err *e)
{
	enum { MOST_ROWS = 8 };
	struct unit *u = &o->unit[unit];
	uint32_t n;
	int64_t best = -1;
	struct known **v = placed(o, unit, &n);
	struct row *row = calloc((size_t)n + 1, sizeof *row);
	int64_t *at = calloc((size_t)n + 1, sizeof *at);
	int64_t *kept = calloc((size_t)o->nknown + 1, sizeof *kept);
	int rc = v == NULL || row == NULL || at == NULL || kept == NULL ? acc_nomem(e) : 0;
	uint32_t nrow = rc < 0 ? 0 : rows_of(o, v, n, row);
	for (uint32_t i = 0; i < n && rc == 0; i++)
		at[i] = v[i]->at;
	bool all = rc == 0 && is_full(o, u, v, n);
	for (uint32_t k = 0; k < 2 * nrow && k < 2 * MOST_ROWS && !all; k++) {
		int64_t score = from_row(o, unit, v, at, &row[k / 2], k % 2 != 0);
		for (uint32_t i = 0; i < o->nknown && score > best; i++)
			kept[i] = o->known[i].at;
		best = score > best ? score : best;
	}
	for (uint32_t i = 0; i < o->nknown && !all && best >= 0; i++)
		if (o->known[i].unit == unit)
			o->known[i].at = kept[i];
	u->lost = rc == 0 && !all && best < 0;
	if (u->lost)
		u->why = "in what order weights stand in it nothing shows";
	free((void *)v);
	free(row);
	free(at);
	free(kept);
	return rc;
}
