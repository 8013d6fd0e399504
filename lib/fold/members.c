/* An optimizer is given its weights in lists: of weights, of their gradients, of its states. A stage has some of the weights,
 * in the same order, and the reference all of them: which they are, their shapes and values tell. */
#include "fold/impl.h"

#include <stdlib.h>

enum { MOST_LISTS = 8, MOST_PAIRS = 1 << 22 };

struct lists { /* of what a call is given; what it gives is the same, one list behind the other */
	uint32_t *at; /* n items of each list */
	uint32_t n, lists, outputs;
	uint32_t first_output;
};

/* Its place, L.I. */
static int
place_of(struct acc_fold *f, const struct fold_item *it, unsigned *list, unsigned *i,
	struct acc_err *e)
{
	struct acc_rec *r;
	char text[32];
	int rc = acc_fold_record(f, it->at, &r, e);
	if (rc < 0)
		return rc;
	struct acc_str pos = acc_get_text(r, "", "pos");
	snprintf(text, sizeof text, "%.*s", ACC_PRS(pos));
	char *dot, *end;
	const unsigned long l = strtoul(text, &dot, 10);
	const unsigned long m = dot > text && *dot == '.' ? strtoul(dot + 1, &end, 10) : 0;
	if (dot == text || *dot != '.' || end == dot + 1 || l > 999 || m > 9999999)
		return 0;
	*list = (unsigned)l;
	*i = (unsigned)m;
	return 1;
}

/* Filled lists of as many members each, in their order, and as many outputs of each member. 1, 0 or < 0; l->at is to be
 * freed. */
static int
read_lists(struct acc_fold *f, const struct fold_side *s, const struct fold_call *k,
	struct lists *l, struct acc_err *e)
{
	uint32_t n[MOST_LISTS] = {0}, total = 0, given = 0;
	*l = (struct lists){.at = calloc((size_t)k->n + 1, sizeof *l->at)};
	if (l->at == NULL)
		return acc_nomem(e);
	for (uint32_t x = 0; x < k->n; x++) {
		const struct fold_item *it = &s->item[k->first + x];
		unsigned list = 0, i = 0;
		if (it->tensor && it->output) {
			l->first_output = l->outputs++ == 0 ? k->first + x : l->first_output;
			if (l->first_output + l->outputs - 1 != k->first + x)
				return 0;
		}
		if (!it->tensor || it->output)
			continue;
		int rc = it->listed ? place_of(f, it, &list, &i, e) : 0;
		if (rc < 0)
			return rc;
		if (rc == 0 || list >= MOST_LISTS || i != n[list]++)
			return 0;
		l->at[given++] = k->first + x;
	}
	for (int i = 0; i < MOST_LISTS; i++) {
		if (n[i] > 0 && n[i] != n[0])
			return 0;
		l->lists += n[i] > 0;
		total += n[i];
	}
	l->n = n[0];
	return l->n > 0 && total == given && l->outputs % l->n == 0;
}

/* What speaks for it that a member of the device's lists is this one of the reference's: its value and its gradient; < 0: it is
 * not, by its shape. */
static int32_t
likeness(const struct acc_fold *f, const struct lists *d, uint32_t i, const struct lists *r,
	uint32_t j)
{
	int32_t sum = 0;
	for (uint32_t x = 0; x < d->lists && x < 2; x++) {
		const struct fold_item *a = &f->device.item[d->at[x * d->n + i]],
				       *b = &f->reference.item[r->at[x * r->n + j]];
		if (a->stat.ndim != b->stat.ndim || a->stat.ndim > ACC_FOLD_NDIM ||
			memcmp(a->stat.shape, b->stat.shape,
				a->stat.ndim * sizeof *a->stat.shape) != 0)
			return -1;
		if (acc_fold_same(FOLD_STAT(a), 1, FOLD_STAT(b),
			    a->tol > b->tol ? a->tol : b->tol) > 0)
			sum += x == 0 ? 2 : 1;
	}
	return sum;
}

/* The order is the same in both: of all ways to give each member of the device's a place, those that most speaks for. What has
 * one place in all of these is there: to[i]; FOLD_NONE: it may have several, as what begins with one number everywhere. */
static int
find_places(const struct acc_fold *f, const struct lists *d, const struct lists *r, uint32_t *to,
	struct acc_err *e)
{
	const size_t n = d->n, m = r->n;
	int32_t *own = malloc(3 * n * m * sizeof *own), *before, *behind, best = -1, most;
	if (own == NULL)
		return acc_nomem(e);
	before = own + n * m;
	behind = before + n * m;
	for (size_t i = 0; i < n; i++) {
		most = i == 0 ? 0 : -1;
		for (size_t j = 0; j < m; j++) {
			const size_t at = i * m + j;
			own[at] = likeness(f, d, (uint32_t)i, r, (uint32_t)j);
			before[at] = own[at] < 0 || most < 0 ? -1 : most + own[at];
			most = i > 0 && before[at - m] > most ? before[at - m] : most;
			best = i == n - 1 && before[at] > best ? before[at] : best;
		}
	}
	for (size_t i = n; i-- > 0;) {
		most = i == n - 1 ? 0 : -1;
		to[i] = FOLD_NONE;
		unsigned places = 0;
		for (size_t j = m; j-- > 0;) {
			const size_t at = i * m + j;
			behind[at] = own[at] < 0 || most < 0 ? -1 : most + own[at];
			most = i < n - 1 && behind[at + m] > most ? behind[at + m] : most;
			if (best >= 0 && before[at] >= 0 && behind[at] >= 0 &&
				before[at] + behind[at] - own[at] == best) {
				to[i] = places++ == 0 ? (uint32_t)j : FOLD_NONE;
			}
		}
	}
	free(own);
	return best > (int32_t)n; /* for most weights their values */
}

static void
take_place(struct fold_item *own, const struct fold_item *of)
{
	own->pos = of->pos;
	own->moved = true;
}

/* 1: they have their places; 0; < 0. */
static int
move(struct acc_fold *f, const struct fold_call *k, const struct fold_call *of, struct acc_err *e)
{
	struct lists d = {0}, r = {0};
	uint32_t *to = NULL;
	int rc = read_lists(f, &f->device, k, &d, e);
	rc = rc == 1 ? read_lists(f, &f->reference, of, &r, e) : rc;
	const bool fit = rc == 1 && d.n < r.n && d.lists == r.lists &&
			 d.outputs / d.n == r.outputs / r.n && r.n <= MOST_PAIRS / d.n;
	if (fit && (to = malloc(d.n * sizeof *to)) == NULL)
		rc = acc_nomem(e);
	rc = rc < 0 || !fit ? (rc < 0 ? rc : 0) : find_places(f, &d, &r, to, e);
	for (uint32_t i = 0; rc == 1 && i < d.n; i++) {
		for (uint32_t x = 0; x < d.lists && to[i] != FOLD_NONE; x++)
			take_place(&f->device.item[d.at[x * d.n + i]],
				&f->reference.item[r.at[x * r.n + to[i]]]);
		for (uint32_t x = 0; x < d.outputs / d.n && to[i] != FOLD_NONE; x++)
			take_place(&f->device.item[d.first_output + x * d.n + i],
				&f->reference.item[r.first_output + x * r.n + to[i]]);
	}
	free(to);
	free(d.at);
	free(r.at);
	return rc;
}

/* The reference's call, which another stage's may be, too. */
static uint32_t
call_of(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	const struct fold_call *k)
{
	const uint32_t at = v->mate != FOLD_NONE || t->reference == FOLD_NONE
				    ? v->mate
				    : acc_fold_by_key(&f->reference, k->key, t->reference);
	return at != FOLD_NONE && f->reference.call[at].op == k->op ? at : FOLD_NONE;
}

/* Those of one call of the reference stand together, where the last of them stands. */
static int
gather(struct fold_step *t, struct acc_err *e)
{
	struct fold_virtual *v = malloc(((size_t)t->nv + 1) * sizeof *v);
	uint32_t n = 0;
	if (v == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < t->nv; i++) {
		bool last = true;
		for (uint32_t k = i + 1; k < t->nv && last && t->v[i].members; k++)
			last = !t->v[k].members || t->v[k].mate != t->v[i].mate;
		const uint32_t from = n;
		for (uint32_t k = 0; k < i && last && t->v[i].members; k++)
			if (t->v[k].members && t->v[k].mate == t->v[i].mate)
				v[n++] = t->v[k];
		if (last)
			v[n++] = t->v[i];
		for (uint32_t k = from + 1; k < n; k++)
			v[k].further = true;
	}
	memcpy(t->v, v, n * sizeof *v);
	free(v);
	return 0;
}

/* Do all its ranks' calls have their places in one of the reference's? 1, 0, < 0. */
static int
find_members(struct acc_fold *f, const struct fold_step *t, struct fold_virtual *v,
	struct acc_err *e)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	const uint32_t of = k->late && k->dir == FOLD_FORWARD && !k->talks ? call_of(f, t, v, k)
									   : FOLD_NONE;
	int rc = of != FOLD_NONE;
	for (uint32_t z = 0; z < f->mesh.zip && rc == 1; z++) {
		const uint32_t call = t->call[v->rank + z];
		if (z == 0 || call != t->call[v->rank + z - 1])
			rc = call == FOLD_NONE
				     ? 0
				     : move(f, &f->device.call[call], &f->reference.call[of], e);
	}
	if (rc != 1)
		return rc;
	v->mate = of;
	v->members = true;
	return 1;
}

int
acc_fold_members(struct acc_fold *f, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep && rc >= 0; s++) {
		bool any = false;
		for (uint32_t i = 0; i < f->step[s].nv && rc >= 0; i++) {
			rc = find_members(f, &f->step[s], &f->step[s].v[i], e);
			any |= rc == 1;
		}
		if (any && rc >= 0)
			rc = gather(&f->step[s], e);
	}
	return rc < 0 ? rc : 0;
}
