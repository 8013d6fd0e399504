/* Of two sides of several ranks each: which op calls are each rank's own, as those of its experts.
 *
 * No rank has what all of a side have together, so that it is told by the weights, which no noise changes. What
 * the ranks of one side call a line of code with are weights of their own, and no parts of one, if they are
 * whole on the other side and some rank there has two of them; or if the other side's, too, are of its ranks'
 * own. Parts that tensor parallelism makes are never together on a rank. */
#include "fold/impl.h"

#include <stdlib.h>

/* A weight that a rank holds. */
struct held {
	const struct fold_item *it;
	uint64_t shape, digest;
	uint32_t segment, side, id; /* id: the same for what is one weight */
};

struct weights {
	struct acc_fold *f[2]; /* the device, and the reference as a device */
	struct held *held;
	uint32_t n, many;
	size_t cap;
	struct acc_ids id[2]; /* of a rank's tensor, to what it is */
	struct acc_ids on[2]; /* which are on this side; and on its rank */
	struct acc_ids own;   /* those of lines that are known */
};

static void
release(struct weights *w)
{
	free(w->held);
	for (int i = 0; i < 2; i++) {
		acc_ids_release(&w->id[i]);
		acc_ids_release(&w->on[i]);
	}
	acc_ids_release(&w->own);
}

static uint64_t
both_of(uint64_t a, uint64_t b)
{
	const uint64_t id[2] = {a, b};
	return acc_hash(id, sizeof id);
}

static int
hold(struct weights *w, uint32_t side, const struct fold_call *k, const struct fold_item *it,
	struct acc_err *e)
{
	struct held *h = acc_grow(w->held, &w->cap, (size_t)w->n + 1, sizeof *h, e);
	const uint64_t digest = acc_fold_digest(&it->stat);
	if (h == NULL)
		return ACC_ENOMEM;
	w->held = h;
	/* Each rank's once. */
	const uint64_t seen = both_of(digest, k->segment);
	if (acc_ids_get(&w->id[side], seen) != ACC_NOID)
		return 0;
	h[w->n++] = (struct held){it,
		acc_hash(it->stat.shape, it->stat.ndim * sizeof *it->stat.shape), digest,
		k->segment, side, 0};
	return acc_ids_put(&w->id[side], seen, 0, false, e);
}

static int
collect(struct weights *w, uint32_t side, struct acc_err *e)
{
	const struct fold_side *s = &w->f[side]->device;
	int rc = 0;
	for (uint32_t c = 0; c < s->ncall && rc == 0; c++) {
		const struct fold_call *k = &s->call[c];
		bool first = true;
		for (uint32_t i = 0; i < k->n && rc == 0 && acc_fold_is_own_work(k); i++) {
			const struct fold_item *it = &s->item[k->first + i];
			if (it->stat.ndim <= ACC_FOLD_NDIM && acc_fold_is_weight(k, it, first))
				rc = hold(w, side, k, it, e);
			first &= !it->tensor;
		}
	}
	return rc;
}

static int
by_size(const void *x, const void *y)
{
	const struct held *a = x, *b = y;
	const double p = a->it->stat.v[ACC_FOLD_NORM], q = b->it->stat.v[ACC_FOLD_NORM];
	if (a->shape != b->shape)
		return a->shape < b->shape ? -1 : 1;
	return p != q ? (p > q) - (p < q) : (a->digest > b->digest) - (a->digest < b->digest);
}

/* What is the same but for noise has one number. */
static int
number(struct weights *w, struct acc_err *e)
{
	int rc = 0;
	if (w->n > 0)
		qsort(w->held, w->n, sizeof *w->held, by_size);
	for (uint32_t i = 0, last = 0; i < w->n && rc == 0; i++) {
		struct held *h = &w->held[i];
		const struct held *o = &w->held[last];
		const double tol = h->it->tol > o->it->tol ? h->it->tol : o->it->tol;
		if (i > 0 && (h->shape != o->shape || acc_fold_same(FOLD_STAT(h->it), 1,
							      FOLD_STAT(o->it), tol) != 2)) {
			last = i;
			w->many++;
		}
		h->id = w->many;
		rc = acc_ids_put(&w->id[h->side], both_of(h->digest, h->segment), h->id, true, e);
		rc = rc < 0 ? rc
			    : acc_ids_put(&w->on[h->side], both_of(h->id, UINT64_MAX), 1, true, e);
		rc = rc < 0 ? rc
			    : acc_ids_put(&w->on[h->side], both_of(h->id, h->segment), 1, true, e);
	}
	return rc;
}

/* The weight that this call takes, or lays out for those that do; ACC_NOID. */
static uint32_t
weight_of(const struct weights *w, uint32_t side, const struct fold_call *k)
{
	const struct fold_side *s = &w->f[side]->device;
	bool first = true;
	for (uint32_t i = 0; i < k->n; i++) {
		const struct fold_item *it = &s->item[k->first + i];
		if (it->tensor && !it->output && !(k->weighs && first)) {
			const uint32_t id = acc_ids_get(&w->id[side],
				both_of(acc_fold_digest(&it->stat), k->segment));
			if (id != ACC_NOID)
				return id;
		}
		first &= !it->tensor;
	}
	return ACC_NOID;
}

/* Are these two on one rank of this side? */
static bool
together(const struct weights *w, uint32_t side, uint32_t a, uint32_t b)
{
	const uint32_t n = w->f[side]->device.nsegment;
	for (uint32_t i = 0; i < n; i++)
		if (acc_ids_get(&w->on[side], both_of(a, i)) != ACC_NOID &&
			acc_ids_get(&w->on[side], both_of(b, i)) != ACC_NOID)
			return true;
	return false;
}

/* On how many ranks is this call known to be the rank's own? *all: of those that have a weight there. */
static uint32_t
ranks_own(const struct weights *w, uint32_t side, const struct fold_step *t,
	const struct fold_virtual *v, uint32_t *all)
{
	const struct acc_fold *f = w->f[side];
	uint32_t before = ACC_NOID;
	bool differ = false, whole = true, proven = false;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		const uint32_t call = t->call[v->rank + r];
		const uint32_t id = call == FOLD_NONE ? ACC_NOID
						      : weight_of(w, side, &f->device.call[call]);
		if (id == ACC_NOID)
			continue;
		++*all;
		whole &= acc_ids_get(&w->on[!side], both_of(id, UINT64_MAX)) != ACC_NOID;
		proven |= acc_ids_get(&w->own, both_of(id, 0)) != ACC_NOID;
		if (before != ACC_NOID && before != id) {
			differ = true;
			proven = proven || together(w, !side, before, id);
		}
		before = id;
	}
	return differ && whole && proven ? *all : 0;
}

/* Lines of a side that most ranks call for themselves. */
static int
find_lines(struct weights *w, uint32_t side, struct acc_err *e)
{
	struct acc_fold *f = w->f[side];
	struct acc_ids seen = {0}, like = {0};
	int rc = 0;
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv && rc == 0; i++) {
			const struct fold_virtual *v = &f->step[s].v[i];
			const struct fold_call *k = &f->device.call[f->step[s].call[v->rank]];
			uint32_t all = 0, n = 0;
			if (acc_fold_is_own_work(k))
				n = ranks_own(w, side, &f->step[s], v, &all);
			if (all > 0)
				rc = acc_fold_count_line(f, k, all, n, &seen, &like, e);
		}
	rc = rc < 0 ? rc : acc_fold_settle_lines(f, &seen, &like, e);
	acc_ids_release(&seen);
	acc_ids_release(&like);
	return rc;
}

/* The weights of those lines. */
static int
know(struct weights *w, uint32_t side, struct acc_err *e)
{
	const struct acc_fold *f = w->f[side];
	int rc = 0;
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++) {
		const struct fold_call *k = &f->device.call[i];
		const uint32_t id = acc_fold_is_own_work(k) && acc_fold_is_alone(f, k)
					    ? weight_of(w, side, k)
					    : ACC_NOID;
		if (id != ACC_NOID)
			rc = acc_ids_put(&w->own, both_of(id, 0), 1, true, e);
	}
	return rc;
}

/* Do the same experts stand on several ranks? */
static int
find_pattern(const struct weights *w, uint32_t side, struct acc_err *e)
{
	struct acc_fold *f = w->f[side];
	struct fold_pattern p = {.span = 0};
	uint32_t *id = calloc((size_t)f->mesh.zip + 1, sizeof *id);
	if (id == NULL)
		return acc_nomem(e);
	for (uint32_t s = 0; s < f->nstep; s++)
		for (uint32_t i = 0; i < f->step[s].nv; i++) {
			const uint32_t *call = &f->step[s].call[f->step[s].v[i].rank];
			bool all = true;
			for (uint32_t r = 0; r < f->mesh.zip && all; r++) {
				const struct fold_call *k = &f->device.call[call[r]];
				all = call[r] != FOLD_NONE && acc_fold_is_own_work(k) &&
				      acc_fold_is_alone(f, k);
				id[r] = all ? weight_of(w, side, k) : ACC_NOID;
				all &= id[r] != ACC_NOID;
			}
			if (all)
				acc_fold_add_pattern(&p, id, f->mesh.zip);
		}
	free(id);
	acc_fold_refine(f, &p);
	return 0;
}

/* What all ranks call with the same weights, or with parts of one, parts the stretches of calls that are each
 * rank's own; so does what is made of the gradients of these. */
static int
part_stretches(const struct weights *w, uint32_t side, struct acc_err *e)
{
	struct acc_fold *f = w->f[side];
	struct acc_ids weighing = {0};
	int rc = 0;
	for (uint32_t i = 0; i < f->device.ncall && rc == 0; i++) {
		const struct fold_call *k = &f->device.call[i];
		if (acc_fold_is_own_work(k) && k->weighs && !acc_fold_is_alone(f, k))
			rc = acc_ids_put(&weighing, both_of(k->base, k->line), 1, true, e);
	}
	for (uint32_t i = 0; i < f->device.ncall; i++) {
		struct fold_call *k = &f->device.call[i];
		k->mated = acc_ids_get(&weighing, both_of(k->base, k->line)) != ACC_NOID ||
			   (k->late && k->dir == FOLD_FORWARD && !acc_fold_is_alone(f, k));
	}
	acc_ids_release(&weighing);
	return rc;
}

int
acc_fold_experts(struct acc_fold *f, struct acc_err *e)
{
	struct weights w = {.f = {f, f->both}};
	int rc = 0;
	bool may = true;
	for (uint32_t i = 0; i < 2; i++) {
		const struct fold_mesh *m = &w.f[i]->mesh;
		may &= m->n == 1 && m->micro == 1 && m->stages == 1;
	}
	if (!may)
		return 0;
	for (uint32_t i = 0; i < 2 && rc == 0; i++)
		rc = collect(&w, i, e);
	rc = rc < 0 ? rc : number(&w, e);
	/* What one side shows the other one follows. */
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 2 && rc == 0; i++) {
			rc = find_lines(&w, i, e);
			rc = rc < 0 ? rc : know(&w, i, e);
		}
	for (uint32_t i = 0; i < 2 && rc == 0; i++) {
		rc = w.f[i]->alone.n > 0 ? acc_fold_alone_between(w.f[i], e) : 0;
		rc = rc == 0 && w.f[i]->alone.n > 0 ? acc_fold_alone_behind(w.f[i], e) : rc;
		rc = rc < 0 ? rc : part_stretches(&w, i, e);
		rc = rc == 0 && w.f[i]->alone.n > 0 ? find_pattern(&w, i, e) : rc;
	}
	release(&w);
	return rc < 0 ? rc : f->alone.n > 0 || f->both->alone.n > 0;
}
