/* The virtual rank of a step: which op calls of the ranks are one, in what order, and which is
 * which of the reference.
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

/* Is it handed on from one to the other of ranks that are one of the reference's? */
static bool
stays_within(const struct acc_fold *f, const struct fold_step *t, const struct fold_call *k)
{
	bool is = false;
	for (uint32_t i = 0; i < t->nrank && acc_fold_many(f) && k->peer >= 0; i++)
		is |= f->device.segment[t->segment[i]].rank == k->peer;
	return is;
}

static int
put_virtual(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	uint32_t call, uint32_t alone, struct acc_err *e)
{
	if (stays_within(f, t, &f->device.call[call]))
		return 0;
	if (!ACC_ROOM(t->v, t->vcap, (size_t)t->nv + 1, e))
		return ACC_ENOMEM;
	struct fold_virtual *v = t->v;
	if (!ACC_ROOM(t->call, t->callcap, t->ncall + m->zip, e))
		return ACC_ENOMEM;
	uint32_t *c = t->call;
	v[t->nv++] = (struct fold_virtual){.rank = (uint32_t)t->ncall,
		.mate = FOLD_NONE,
		.stage = stage,
		.number = -1,
		.alone = alone,
		.place = FOLD_NONE};
	const struct fold_runs *runs = &f->runs[t->segment[stage * m->ranks]];
	bool once;
	acc_fold_stands(&f->device, runs, call, m->micro, &once);
	for (uint32_t k = 0; k < m->micro; k++) {
		uint32_t of = once ? call : acc_fold_partner(&f->device, runs, call, k);
		for (uint32_t r = 0; r < m->ranks; r++)
			c[t->ncall++] = r == 0 || of == FOLD_NONE
						? of
						: acc_fold_by_key(&f->device,
							  f->device.call[of].key,
							  t->segment[stage * m->ranks + r]);
	}
	/* One rank's own call stands for all that have others; those that have the same weights have parts. */
	c += t->ncall - m->zip;
	const uint32_t span = acc_fold_span(m);
	uint32_t own_call = alone > 0 ? c[alone - 1] : call;
	for (uint32_t r = 0; r < m->zip && alone > 0; r++)
		if (r % span != alone - 1)
			c[r] = c[r - r % span + alone - 1];
	if (own_call == FOLD_NONE) {
		t->nv--;
		t->ncall -= m->zip;
	}
	return 0;
}

/* Calls from here to there, of which some are each rank's own: those of the first rank, then those of the
 * second. */
static int
put_alone(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	uint32_t first, uint32_t end, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t r = 0; r < acc_fold_span(m); r++)
		for (uint32_t k = first; k < end && rc == 0; k++) {
			bool own = acc_fold_is_alone(f, &f->device.call[k]);
			if (own || r == 0)
				rc = put_virtual(f, m, t, stage, k, own ? r + 1 : 0, e);
		}
	return rc;
}

/* A stretch of calls that begins and ends with a rank's own, and has none of the reference's others. */
static uint32_t
stretch(const struct acc_fold *f, uint32_t k, uint32_t end)
{
	uint32_t last = k;
	bool back = f->device.call[k].dir == FOLD_BACKWARD;
	for (uint32_t i = k; i < end; i++) {
		const struct fold_call *c = &f->device.call[i];
		bool own = acc_fold_is_alone(f, c);
		if ((!own && c->mated) || (c->dir == FOLD_BACKWARD) != back)
			break;
		last = own ? i + 1 : last;
	}
	return last;
}

/* Where the calls of a run stand in what all stages do: forward, backward, what follows; in each by
 * the parts of the network that a stage has. */
struct turn {
	int part;
	uint32_t chunk;
};

/* A run that has gradients, or is large where there are none, is a part of the network, from 1 on; what
 * is small goes with the one before it. */
static void
turns_of(const struct fold_runs *t, struct turn *turn, uint32_t *chunks)
{
	uint32_t large = 0, last = 0, chunk = 0;
	bool learns = false;
	for (uint32_t i = 0; i < t->n; i++) {
		const struct fold_run *r = &t->run[i];
		large = !r->back && r->nplain > large ? r->nplain : large;
		last = r->back ? i : last;
		learns |= r->learns;
	}
	for (uint32_t i = 0; i < t->n; i++) {
		const struct fold_run *r = &t->run[i];
		turn[i].part = last > 0 && i > last ? 2 : r->back;
		if (r->group == i && turn[i].part == 0 &&
			(learns ? r->learns : 4 * r->nplain >= large))
			chunk++;
		turn[i].chunk = r->group != i ? turn[r->group].chunk : chunk;
	}
	*chunks = chunk > *chunks ? chunk : *chunks;
}

/* The calls of a stage whose turn it is, in order. */
static int
put_turn(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, uint32_t stage,
	const struct turn *turn, struct turn now, struct acc_err *e)
{
	const struct fold_runs *runs = &f->runs[t->segment[stage * m->ranks]];
	bool once;
	int rc = 0;
	for (uint32_t k = runs->first; k < runs->first + runs->ncall && rc == 0; k++) {
		uint32_t at = runs->of[k - runs->first];
		const struct fold_run *own = acc_fold_run_of(&f->device, runs, k);
		uint32_t from = (uint32_t)(own - runs->run);
		if (turn[at].part != now.part || turn[from].chunk != now.chunk)
			continue;
		if (acc_fold_stands(&f->device, runs, k, m->micro, &once))
			rc = put_virtual(f, m, t, stage, k, 0, e);
	}
	return rc;
}

static int
put_turns(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct turn **turn,
	uint32_t chunks, struct acc_err *e)
{
	int rc = 0;
	for (int part = 0; part < 3; part++)
		for (uint32_t c = 0; c <= chunks; c++)
			for (uint32_t i = 0; i < m->stages && rc == 0; i++) {
				/* Gradients run through the stages from the last. */
				bool back = part == 1;
				struct turn now = {part, back ? chunks - c : c};
				uint32_t stage = back ? m->stages - 1 - i : i;
				rc = put_turn(f, m, t, stage, turn[stage], now, e);
			}
	return rc;
}

/* One rank does all: its own order. */
static int
put_all(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct acc_err *e)
{
	const struct fold_runs *runs = &f->runs[t->segment[0]];
	bool once;
	int rc = 0;
	for (uint32_t k = runs->first; k < runs->first + runs->ncall && rc == 0; k++) {
		uint32_t end = f->alone.n > 0 ? stretch(f, k, runs->first + runs->ncall) : k;
		if (end > k) {
			rc = put_alone(f, m, t, 0, k, end, e);
			k = end - 1;
		} else if (acc_fold_stands(&f->device, runs, k, m->micro, &once)) {
			rc = put_virtual(f, m, t, 0, k, 0, e);
		}
	}
	return rc;
}

static int
lay_out(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct acc_err *e)
{
	uint32_t chunks = 0;
	t->nv = 0;
	t->ncall = 0;
	if (m->stages == 1)
		return put_all(f, m, t, e);
	struct turn **turn = calloc((size_t)m->stages + 1, sizeof(struct turn *));
	int rc = turn == NULL ? acc_nomem(e) : 0;
	for (uint32_t i = 0; i < m->stages && rc == 0; i++) {
		const struct fold_runs *runs = &f->runs[t->segment[i * m->ranks]];
		turn[i] = calloc((size_t)runs->n + 1, sizeof **turn);
		if (turn[i] == NULL)
			rc = acc_nomem(e);
		else
			turns_of(runs, turn[i], &chunks);
	}
	if (rc == 0)
		rc = put_turns(f, m, t, turn, chunks, e);
	for (uint32_t i = 0; i < m->stages && turn != NULL; i++)
		free(turn[i]);
	free(turn);
	return rc;
}

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

/* Whatever the layouts of both sides, the extremes of all parts are those of the whole, but of a sum: are they
 * others? It spares most of the calls that are looked at. */
static bool
other_ends(const double ends[2], const struct fold_item *it, double tol)
{
	const double max = it->stat.v[ACC_FOLD_MAX], min = it->stat.v[ACC_FOLD_MIN];
	const double size = fmax(fabs(max), fabs(min));
	return it->split &&
	       (fabs(ends[0] - max) > 2 * tol * size || fabs(ends[1] - min) > 2 * tol * size);
}

/* How much of these two calls is one and the same. */
static double
likeness(struct acc_fold *f, const struct fold_mesh *m, const struct fold_step *t,
	const struct fold_virtual *v, const uint32_t *with, uint32_t nwith, double *weight)
{
	const struct fold_side *ref = &f->reference;
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	double most = 0;
	memset(weight, 0, nwith * sizeof *weight);
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *own = &f->device.item[k->first + i];
		if (!own->tensor || own->fills || !acc_fold_gather(f, m, t, v, i))
			continue;
		const enum fold_factor factor = acc_fold_factor(f, k, own);
		const bool scales = factor != FOLD_NO_FACTOR || f->part[0].count == 1;
		double ends[2];
		acc_fold_ends(f->part, m->zip, ends);
		for (uint32_t w = 0; w < nwith; w++) {
			const struct fold_item *it = acc_fold_item_at(ref, &ref->call[with[w]],
				own->pos, i);
			struct acc_fold_layout l, theirs;
			if (it == NULL || !it->tensor)
				continue;
			double tol = own->tol > it->tol ? own->tol : it->tol;
			int sure = !scales && other_ends(ends, it, tol)
					   ? 0
					   : acc_fold_like(f, m, with[w], it, tol, factor, &l,
						     &theirs);
			if (sure < 0)
				continue;
			weight[w] += sure == 2 ? full_weight(f, &l) : sure == 1 ? 0.01 : -0.1;
		}
	}
	for (uint32_t w = 0; w < nwith; w++)
		most = weight[w] > most ? weight[w] : most;
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

static int
add_edges(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct chain *c,
	struct acc_err *e)
{
	const struct fold_segment *g = &f->reference.segment[t->reference];
	struct by_op ops = {0};
	struct acc_ids seen = {0};
	uint32_t with[2 * WINDOW + 1];
	double weight[2 * WINDOW + 1];
	int rc = link_ops(&f->reference, g, &ops, e);
	const uint32_t most = f->brief > 0 && t->nv > f->brief ? f->brief : t->nv;
	for (uint32_t i = 0; i < most && rc == 0; i++) {
		const struct fold_call *k = &f->device.call[t->call[t->v[i].rank]];
		if (k->dir != FOLD_FORWARD)
			continue;
		const uint32_t had = acc_ids_get(&seen, k->op), nth = had == ACC_NOID ? 0 : had;
		rc = acc_ids_put(&seen, k->op, nth + 1, true, e);
		uint32_t n = window(&ops, k->op, g->first, nth, with);
		if (rc < 0 || n == 0 || likeness(f, m, t, &t->v[i], with, n, weight) <= 0)
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
	uint32_t low = 0, high = c->n;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		if (c->edge[mid].i < i)
			low = mid + 1;
		else
			high = mid;
	}
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
match(struct acc_fold *f, const struct fold_mesh *m, struct fold_step *t, struct acc_err *e)
{
	struct chain c = {0};
	int64_t last;
	t->score = 0;
	if (t->reference == FOLD_NONE)
		return 0;
	int rc = add_edges(f, m, t, &c, e);
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
	for (uint32_t i = 0; i < f->nstep && rc == 0; i++) {
		rc = lay_out(f, m, &f->step[i], e);
		if (rc == 0)
			rc = match(f, m, &f->step[i], e);
	}
	return rc;
}
