/* The steps of the device, the ranks of each, and which of the reference's ranks these are.
 *
 * Where the reference has several ranks, too, and the device a multiple of them, as tensor parallelism over
 * four has of that over two, each group of the device's ranks is one of the reference's. */
#include "fold/impl.h"
#include "base/order.h"

#include <stdlib.h>

void
acc_fold_steps_free(struct acc_fold *f)
{
	for (uint32_t i = 0; i < f->nstep; i++) {
		free(f->step[i].segment);
		free(f->step[i].v);
		free(f->step[i].laid);
		free(f->step[i].call);
		acc_ids_release(&f->step[i].takers);
	}
	free(f->step);
	for (uint32_t i = 0; i < f->device.nsegment && f->runs != NULL; i++)
		acc_fold_runs_free(&f->runs[i]);
	free(f->runs);
	f->runs = NULL;
	f->step = NULL;
	f->nstep = 0;
	f->step_cap = 0;
}

struct place {
	struct fold_segment s;
	uint32_t i;
};

ACC_ORDER_2(by_number, struct place, s.step, s.rank)

/* Segments of a side in the order of steps and ranks; NULL: no memory. */
static struct place *
in_order(const struct fold_side *s)
{
	struct place *o = calloc((size_t)s->nsegment + 1, sizeof *o);
	for (uint32_t i = 0; i < s->nsegment && o != NULL; i++)
		o[i] = (struct place){s->segment[i], i};
	if (o != NULL)
		qsort(o, s->nsegment, sizeof *o, by_number);
	return o;
}

static uint32_t
end_of_step(const struct place *o, uint32_t from, uint32_t n)
{
	uint32_t end = from;
	while (end < n && o[end].s.step == o[from].s.step)
		end++;
	return end;
}

/* The group'th share of n ranks of a step. */
static int
add_step(struct acc_fold *f, const struct place *o, uint32_t n, uint32_t group, uint32_t reference,
	struct acc_err *e)
{
	struct fold_step *t = acc_grow(f->step, &f->step_cap, (size_t)f->nstep + 1, sizeof *t, e);
	const uint32_t members = n / f->groups;
	if (t == NULL)
		return ACC_ENOMEM;
	f->step = t;
	t += f->nstep++;
	*t = (struct fold_step){.step = o[0].s.step, .nrank = members, .reference = reference};
	t->segment = calloc((size_t)members + 1, sizeof *t->segment);
	if (t->segment == NULL)
		return acc_nomem(e);
	const uint32_t first = group / f->apart * members * f->apart + group % f->apart;
	const uint32_t turns = members % f->turns == 0 ? f->turns : 1, ranks = members / turns;
	for (uint32_t k = 0; k < members; k++)
		t->segment[k] = o[first + (k % ranks * turns + k / ranks) * f->apart].i;
	return 0;
}

int
acc_fold_list(struct acc_fold *f, struct acc_err *e)
{
	const uint32_t n = f->device.nsegment, nref = f->reference.nsegment;
	struct place *o = in_order(&f->device), *r = o == NULL ? NULL : in_order(&f->reference);
	int rc = r == NULL ? acc_nomem(e) : 0;
	bool one = rc == 0 && end_of_step(o, 0, n) == n && end_of_step(r, 0, nref) == nref;
	for (uint32_t i = 0, end, at = 0, till; i < n && rc == 0; i = end) {
		end = end_of_step(o, i, n);
		while (at < nref && !one && r[at].s.step < o[i].s.step)
			at++;
		till = at < nref && (one || r[at].s.step == o[i].s.step) ? end_of_step(r, at, nref)
									 : at;
		for (uint32_t g = 0; g < f->groups && rc == 0; g++)
			rc = add_step(f, &o[i], end - i, g,
				till - at == f->groups ? r[at + g].i : FOLD_NONE, e);
	}
	free(o);
	free(r);
	return rc;
}

uint32_t
acc_fold_reference_ranks(const struct acc_fold *f)
{
	const struct fold_side *r = &f->reference;
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->nsegment; i++) {
		uint32_t before = 0;
		while (before < i && r->segment[before].rank != r->segment[i].rank)
			before++;
		n += r->segment[i].step == r->segment[0].step && before == i;
	}
	return n;
}

int
acc_fold_number(const struct acc_fold *f, struct fold_numbers *n, const struct fold_call *k,
	struct fold_virtual *v, struct acc_err *e)
{
	uint64_t id[2] = {
		k->dir == FOLD_BACKWARD ? k->twin : acc_fold_twin(k->base, k->call, FOLD_BACKWARD),
		v->stage + (uint64_t)v->alone * f->mesh.stages};
	uint64_t h = acc_hash(id, sizeof id);
	v->number = -1;
	if ((f->mesh.stages < 2 && f->mesh.micro < 2 && f->alone.n == 0) || k->call < 0 ||
		k->dir == FOLD_OTHER)
		return 0;
	uint32_t at = acc_ids_get(k->dir == FOLD_BACKWARD ? &n->forward : &n->count,
		k->dir == FOLD_BACKWARD ? h : k->base);
	if (k->dir == FOLD_BACKWARD) {
		v->number = at == ACC_NOID ? -1 : (int64_t)at;
		return 0;
	}
	at = at == ACC_NOID ? 0 : at;
	v->number = at;
	int rc = acc_ids_put(&n->count, k->base, at + 1, true, e);
	return rc < 0 ? rc : acc_ids_put(&n->forward, h, at, true, e);
}

void
acc_fold_numbers_release(struct fold_numbers *n)
{
	acc_ids_release(&n->count);
	acc_ids_release(&n->forward);
}
