/* Which virtual call of a step is which of the reference.
 *
 * Ranks side by side run the same program: their calls of one key are one call. Stages run one
 * behind the other. Calls are matched with the reference's by a chain, in order on both sides,
 * of the largest sum of tensors that some layout explains; what lies between two links is matched
 * where it is the same operators; backward calls follow their forward calls. */
#include "fold/impl.h"
#include "base/order.h"

#include <math.h>
#include <stdlib.h>

enum { WINDOW = 24 }; /* calls of one operator to either side that may be the one */

/* --- the chain --- */

struct edge {
	uint32_t i, j;
	double weight;
	int64_t before; /* the edge before it in the best chain; -1: none */
};

struct chain {
	struct edge *edge;
	uint32_t n;
	size_t cap;
};

/* Of what is surely the same. Of a sum the mean alone is known: where the reference's layout is not known either,
 * it shows which pairs of parts have the same mean, on whatever mesh; and numbers, as the norms of shards are, add up to
 * some other by chance. */
static double
full_weight(const struct acc_fold *f, const struct acc_fold_layout *l)
{
	bool sums = false;
	for (uint32_t d = 0; d < l->n; d++)
		sums |= l->at[d].kind == ACC_PARTIAL;
	if (sums && f->part[0].count == 1)
		return 0;
	return sums && f->both != NULL ? 0.01 : 1;
}

/* What all parts have together, on whatever mesh. */
struct together {
	double ends[2], count, sum; /* sum: of all elements; NaN: not known */
};

static struct together
together(const struct acc_fold_stat *part, uint32_t n)
{
	struct together all = {.count = 0};
	acc_fold_ends(part, n, all.ends);
	for (uint32_t i = 0; i < n; i++) {
		all.count += part[i].count;
		all.sum += part[i].known & 1 << ACC_FOLD_MEAN
				   ? part[i].v[ACC_FOLD_MEAN] * part[i].count
			   : part[i].count == 0 ? 0
						: NAN;
	}
	return all;
}

/* Of copies and summands there are `times` elements for one. If some are summands, and the others copies, has their
 * sum another mean than the reference? */
static bool
other_sum(const struct together *all, const struct fold_item *it, double times, double by)
{
	const double mean = it->stat.v[ACC_FOLD_MEAN], sum = all->sum / it->stat.count;
	bool like = (it->stat.known & 1 << ACC_FOLD_MEAN) == 0;
	for (uint32_t i = 1; (double)i * i <= times && !like; i++) {
		const double n = i;
		if (fmod(times, n) == 0)
			like = (n < times && !(fabs(sum / n - mean) > by)) ||
			       (n > 1 && !(fabs(sum * n / times - mean) > by));
	}
	return !like;
}

/* Whatever the layouts of both sides, the extremes of all parts are those of the whole, but of a sum: are they
 * others? It spares most of the calls that are looked at. */
static bool
others(const struct together *all, uint32_t parts, const struct fold_item *it, double tol)
{
	const uint8_t both = 1 << ACC_FOLD_MAX | 1 << ACC_FOLD_MIN;
	const double max = it->stat.v[ACC_FOLD_MAX], min = it->stat.v[ACC_FOLD_MIN];
	const double size = fmax(fabs(max), fabs(min)), times = all->count / it->stat.count;
	if (!(fabs(all->ends[0] - max) > 2 * tol * size ||
		    fabs(all->ends[1] - min) > 2 * tol * size))
		return false;
	/* What is filled up has other ends, and is no whole number of times as long. */
	return it->split ||
	       ((it->stat.known & both) == both && times <= parts && times == floor(times) &&
		       other_sum(all, it, times, 4 * tol * size));
}

/* Of a call the tensors that may be the reference's. */
static uint32_t
tensors_of(const struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	uint32_t n = 0;
	for (uint32_t i = 0; i < k->n && k->dir == FOLD_FORWARD; i++)
		n += f->device.item[k->first + i].tensor && !f->device.item[k->first + i].fills;
	return n;
}

/* So many calls of a step are matched. */
static uint32_t
matched_of(const struct acc_fold *f, const struct fold_step *t)
{
	return t->reference == FOLD_NONE ? 0 : f->brief > 0 && t->nv > f->brief ? f->brief : t->nv;
}

/* How much of these two calls is one and the same; *any: at most, on whatever mesh. */
static double
likeness(struct acc_fold *f, const struct fold_mesh *m, const struct fold_step *t,
	const struct fold_virtual *v, const uint32_t *with, uint32_t nwith, double *weight,
	double *any)
{
	const struct fold_side *ref = &f->reference;
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	double most = 0, may[2 * WINDOW + 1] = {0};
	memset(weight, 0, nwith * sizeof *weight);
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i];
		if (!own->tensor || own->fills || !acc_fold_gather(f, m, t, v, i))
			continue;
		const enum fold_factor factor = acc_fold_factor(f, k, own);
		const bool scales = factor != FOLD_NO_FACTOR || f->part[0].count == 1;
		const struct together all = together(f->part, m->zip);
		for (uint32_t w = 0; w < nwith; w++) {
			const struct fold_item *it = acc_fold_item_at(ref, &ref->call[with[w]],
				own->pos, i);
			struct acc_fold_layout l, theirs;
			if (it == NULL || !it->tensor)
				continue;
			double tol = own->tol > it->tol ? own->tol : it->tol;
			const bool never = !scales && others(&all, m->zip, it, tol);
			may[w] += !never;
			int sure = never ? 0
					 : acc_fold_like(f, m, with[w], it, tol, factor, &l,
						   &theirs);
			if (sure < 0)
				continue;
			weight[w] += sure == 2 ? full_weight(f, &l) : sure == 1 ? 0.01 : -0.1;
		}
	}
	for (uint32_t w = 0; w < nwith; w++) {
		most = weight[w] > most ? weight[w] : most;
		*any = may[w] > *any ? may[w] : *any;
	}
	return most;
}

static int
add_edge(struct chain *c, uint32_t i, uint32_t j, double weight, struct acc_err *e)
{
	if (!ACC_ROOM(c->edge, c->cap, (size_t)c->n + 1, e))
		return ACC_ENOMEM;
	c->edge[c->n++] = (struct edge){i, j, weight, -1};
	return 0;
}

/* Forward calls of the reference's segment, by operator: op's k-th call. */
struct by_op {
	struct acc_ids first;  /* of an operator, to its list */
	uint32_t *next;        /* of a call, the next of its operator */
	uint32_t *tail, *from; /* of an operator: its last; where its window begins */
};

static int
link_ops(const struct fold_side *s, const struct fold_segment *g, struct by_op *o,
	struct acc_err *e)
{
	const size_t n = (size_t)g->n + 1;
	o->next = calloc(3 * n, sizeof *o->next);
	int rc = o->next == NULL ? acc_nomem(e) : 0;
	o->tail = o->next == NULL ? NULL : o->next + n;
	o->from = o->next == NULL ? NULL : o->tail + n;
	for (uint32_t i = 0; i < g->n && rc == 0; i++) {
		const struct fold_call *k = &s->call[g->first + i];
		if (k->dir != FOLD_FORWARD)
			continue;
		o->next[i] = FOLD_NONE;
		uint32_t head = acc_ids_get(&o->first, k->op);
		if (head != ACC_NOID)
			o->next[o->tail[head]] = i;
		else
			rc = acc_ids_put(&o->first, k->op, o->from[i] = head = i, false, e);
		o->tail[head] = i;
	}
	return rc;
}

/* Calls of the operator from number `seen` - WINDOW to + WINDOW; asked with 0, 1, 2 ... of each operator. */
static uint32_t
window(struct by_op *o, uint64_t op, uint32_t first, uint32_t seen, uint32_t with[2 * WINDOW + 1])
{
	const uint32_t head = acc_ids_get(&o->first, op),
		       most = (seen > WINDOW ? WINDOW : seen) + WINDOW + 1;
	uint32_t n = 0;
	if (head == ACC_NOID)
		return 0;
	if (seen > WINDOW && o->from[head] != FOLD_NONE)
		o->from[head] = o->next[o->from[head]];
	for (uint32_t at = o->from[head]; at != FOLD_NONE && n < most; at = o->next[at])
		with[n++] = first + at;
	return n;
}

/* *could: what the mesh may explain, of all steps. */
static int
add_edges(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, double *could,
	struct chain *c, struct acc_err *e)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	struct by_op ops = {0};
	struct acc_ids seen = {0};
	uint32_t with[2 * WINDOW + 1];
	double weight[2 * WINDOW + 1];
	int rc = link_ops(&f->reference, g, &ops, e);
	const uint32_t most = matched_of(f, t);
	for (uint32_t i = 0; i < most && rc == 0 && *could >= f->enough; i++) {
		const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
		const double all = tensors_of(f, t, &t->v[i]);
		double any = 0;
		if (k->dir != FOLD_FORWARD)
			continue;
		const uint32_t had = acc_ids_get(&seen, k->op), nth = had == ACC_NOID ? 0 : had;
		rc = acc_ids_put(&seen, k->op, nth + 1, true, e);
		uint32_t n = window(&ops, k->op, g->first, nth, with);
		const double like = rc < 0 ? 0 : likeness(f, m, t, &t->v[i], with, n, weight, &any);
		*could -= all - like;
		f->most -= all - any;
		if (like <= 0)
			continue;
		/* The later of the reference first, so that a call is linked once. */
		for (uint32_t w = n; w-- > 0 && rc == 0;)
			if (weight[w] > 0)
				rc = add_edge(c, i, with[w] - g->first, weight[w], e);
	}
	free(ops.next);
	acc_ids_release(&ops.first);
	acc_ids_release(&seen);
	return rc;
}

/* The best chain, by a tree of prefix maxima over the reference's calls. */
static int
link_chain(struct chain *c, uint32_t nref, int64_t *last, struct acc_err *e)
{
	struct best {
		double sum;
		int64_t edge;
	} *tree = calloc((size_t)nref + 2, sizeof *tree);
	*last = -1;
	double most = 0;
	if (tree == NULL)
		return acc_nomem(e);
	for (uint32_t x = 0; x < c->n; x++) {
		struct edge *g = &c->edge[x];
		struct best b = {0, -1};
		for (uint32_t j = g->j; j > 0; j &= j - 1)
			if (tree[j].sum > b.sum)
				b = tree[j];
		g->before = b.edge;
		b = (struct best){b.sum + g->weight, x};
		for (uint32_t j = g->j + 1; j <= nref; j += j & (~j + 1))
			if (b.sum > tree[j].sum)
				tree[j] = b;
		if (b.sum > most) {
			most = b.sum;
			*last = x;
		}
	}
	free(tree);
	return 0;
}

/* Is call i like calls of the reference, but like none from j0 to j1? */
static bool
elsewhere(const struct chain *c, uint32_t i, uint32_t j0, uint32_t j1)
{
	const double like = 0.9; /* one tensor that is surely the same, and one that is not */
	uint32_t low = 0;
	ACC_LOWER(low, c->n, c->edge[low].i < i);
	bool any = false, here = false;
	for (; low < c->n && c->edge[low].i == i; low++)
		if (c->edge[low].weight >= like) {
			any = true;
			here |= c->edge[low].j >= j0 && c->edge[low].j < j1;
		}
	return any && !here;
}

/* Between two links, calls of an operator that is called as often on both sides. */
static void
fill_gap(struct acc_fold *f, struct fold_step *t, const struct chain *c, uint32_t i0, uint32_t i1,
	uint32_t j0, uint32_t j1)
{
	const uint32_t first = f->reference.segment[t->reference].first;
	enum { MOST = 512 };
	const struct fold_side *d = &f->device, *r = &f->reference;
	if (i1 - i0 > MOST || j1 - j0 > MOST)
		return;
	for (uint32_t i = i0; i < i1; i++) {
		const struct fold_call *k = &d->call[t->call[t->v[i].rank]];
		uint32_t own = 0, nth = 0, others = 0, mate = FOLD_NONE;
		if (k->dir != FOLD_FORWARD || elsewhere(c, i, j0 - first, j1 - first))
			continue;
		for (uint32_t x = i0; x < i1; x++) {
			nth = x == i ? own : nth;
			own += d->call[t->call[t->v[x].rank]].op == k->op;
		}
		for (uint32_t x = j0; x < j1; x++)
			if (r->call[x].op == k->op) {
				mate = others == nth ? x : mate;
				others++;
			}
		if (own == others)
			t->v[i].mate = mate;
	}
}

static void
set_mates(struct acc_fold *f, struct fold_step *t, const struct chain *c, int64_t last)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	uint32_t i1 = t->nv, j1 = g->first + g->n;
	for (int64_t x = last;; x = c->edge[x].before) {
		uint32_t i0 = x < 0 ? 0 : c->edge[x].i + 1;
		uint32_t j0 = g->first + (x < 0 ? 0 : c->edge[x].j + 1);
		fill_gap(f, t, c, i0, i1, j0, j1);
		if (x < 0)
			return;
		t->v[c->edge[x].i].mate = j0 - 1;
		t->score += c->edge[x].weight;
		i1 = c->edge[x].i;
		j1 = j0 - 1;
	}
}

/* What stages prepare, such as their weights, each does for itself first. What is surely a call of the
 * reference goes where that stands, so that the two sides have one order. */
ACC_ORDER_2(by_place, struct fold_virtual, place, rank)

static int
sort_stages(struct acc_fold *f, struct fold_step *t, const struct chain *c, struct acc_err *e)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	uint32_t at = 0, end = 0, x = 0;
	bool *taken = calloc((size_t)g->n + 1, sizeof *taken);
	if (taken == NULL)
		return acc_nomem(e);
	for (uint32_t i = 0; i < t->nv; i++)
		if (t->v[i].mate != FOLD_NONE)
			taken[t->v[i].mate - g->first] = true;
	while (end < t->nv && f->device.call[t->call[t->v[end].rank]].dir != FOLD_BACKWARD)
		end++;
	for (uint32_t i = 0; i < end; i++) {
		struct fold_virtual *v = &t->v[i];
		const struct fold_call *k = &f->device.call[t->call[v->rank]];
		uint32_t tensors = 0;
		for (uint32_t n = 0; n < k->n; n++)
			tensors += f->device.item[k->first + n].tensor &&
				   !f->device.item[k->first + n].fills;
		v->place = at = v->mate != FOLD_NONE ? v->mate : at;
		for (; x < c->n && c->edge[x].i <= i; x++) {
			uint32_t j = c->edge[x].j;
			if (c->edge[x].i < i || v->mate != FOLD_NONE || taken[j] ||
				c->edge[x].weight < tensors)
				continue;
			v->mate = v->place = g->first + j;
			taken[j] = true;
		}
	}
	free(taken);
	if (end > 0)
		qsort(t->v, end, sizeof *t->v, by_place);
	return 0;
}

/* Backward calls by their forward calls; gradients of parameters by their name. */
static int
follow(struct acc_fold *f, struct fold_step *t, struct acc_err *e)
{
	struct acc_ids forward = {0};
	const struct fold_side *d = &f->device, *r = &f->reference;
	int rc = 0;
	for (uint32_t i = 0; i < t->nv && rc == 0; i++) {
		struct fold_virtual *v = &t->v[i];
		const struct fold_call *k = &d->call[t->call[v->rank]];
		uint64_t id[2] = {0, v->stage + (uint64_t)v->alone * t->nrank};
		if (k->dir == FOLD_FORWARD && v->mate != FOLD_NONE) {
			id[0] = acc_fold_twin(k->base, k->call, FOLD_BACKWARD);
			rc = acc_ids_put(&forward, acc_hash(id, sizeof id), v->mate, false, e);
		} else if (k->dir == FOLD_BACKWARD) {
			id[0] = k->twin;
			uint32_t mate = acc_ids_get(&forward, acc_hash(id, sizeof id));
			if (mate != ACC_NOID)
				v->mate = acc_fold_by_twin(r,
					acc_fold_twin(r->call[mate].base, r->call[mate].call,
						FOLD_BACKWARD),
					t->reference);
		} else if (k->dir == FOLD_OTHER) {
			v->mate = acc_fold_by_key(r, k->key, t->reference);
		}
	}
	acc_ids_release(&forward);
	return rc;
}

static int
match(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, double *could,
	struct acc_err *e)
{
	struct chain c = {0};
	int64_t last;
	t->score = 0;
	if (t->reference == FOLD_NONE)
		return 0;
	int rc = add_edges(f, m, t, could, &c, e);
	if (rc == 0)
		rc = link_chain(&c, f->reference.segment[t->reference].n, &last, e);
	if (rc == 0) {
		set_mates(f, t, &c, last);
		if (m->stages > 1)
			rc = sort_stages(f, t, &c, e);
		rc = rc < 0 ? rc : follow(f, t, e);
	}
	free(c.edge);
	return rc;
}

static int
find_runs(struct acc_fold *f, struct acc_err *e)
{
	f->runs = calloc((size_t)f->device.nsegment + 1, sizeof *f->runs);
	int rc = f->runs == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < f->device.nsegment && rc == 0; i++)
		rc = acc_fold_runs(&f->device, i, &f->runs[i], e);
	return rc;
}

int
acc_fold_steps(struct acc_fold *f, const struct fold_mesh *m, struct acc_err *e)
{
	int rc = f->nstep == 0 ? acc_fold_list(f, e) : 0;
	if (rc == 0 && f->runs == NULL)
		rc = find_runs(f, e);
	double could = 0;
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++) {
		const struct fold_step *t = &f->step[i];
		rc = acc_fold_lay_out(f, m, &f->step[i], e);
		for (uint32_t k = 0; rc == 0 && k < matched_of(f, t); k++)
			could += tensors_of(f, t, &t->v[k]);
	}
	f->most = could;
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++)
		rc = match(f, m, &f->step[i], &could, e);
	return rc;
}
