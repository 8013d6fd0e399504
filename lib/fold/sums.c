/* What is wrong with a sum over the ranks: a communication that gives something else than the sum of
 * what the ranks have, which is as the reference's; gradients that are divided by the number of ranks
 * but summed by nothing; a product whose summands a communication adds up behind its other calls. */
#include "fold/impl.h"

#include <math.h>

#include "acc/op.h"

void
acc_fold_count_sums(struct acc_fold *f, const struct fold_step *t)
{
	for (uint32_t i = 0; i < t->nv; i++) {
		const struct fold_virtual *v = &t->v[i];
		const struct fold_call *k = &f->device.call[t->call[v->rank]];
		for (uint32_t x = 0; x < k->n && k->dir == FOLD_FORWARD && !k->talks; x++) {
			const struct fold_item *own = &f->device.item[k->first + x];
			uint32_t cls = own->tensor && own->output ? acc_fold_wide(f, k, own)
								  : ACC_NOID;
			const struct fold_virtual *talk = NULL;
			uint32_t out;
			if (cls == ACC_NOID)
				continue;
			struct fold_class *c = &f->cls[cls];
			bool summed = acc_fold_reduced(f, t, v, x, &out, &talk) != NULL;
			c->summed += summed;
			c->unsummed += !summed;
			c->talk = summed ? t->call[talk->rank] : c->talk;
		}
	}
}

/* Do the parts of item i add up to the reference's, times a factor that is 1 or one over the ranks? */
static double
adds_up(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct folded *d)
{
	const double scale[2] = {1, 1.0 / f->mesh.zip};
	for (int s = 0; s < 2 && d->it != NULL; s++) {
		const struct fold_plan p = {.step = (uint32_t)(t - f->step),
			.virtual = (uint32_t)(v - t->v),
			.item = i,
			.order = FOLD_NONE,
			.place = {ACC_PARTIAL, 0},
			.n = f->mesh.zip,
			.stride = 1,
			.scale = scale[s]};
		struct acc_fold_stat sum;
		double error = f->roots == NULL ? NAN : acc_fold_error(f, &p, d->it);
		if (error <= FOLD_NOISE)
			return scale[s];
		/* Of a sum statistics have the mean alone. */
		if (isnan(error) && acc_fold_gather(f, &f->mesh, t, v, i) &&
			acc_fold_join(f->part, f->mesh.zip, p.place, d->tol, &sum) &&
			acc_fold_same(&sum, scale[s], d->want, d->tol) == 2)
			return scale[s];
	}
	return 0;
}

/* Does what takes item i of v on all ranks divide it by their number? */
static const struct fold_virtual *
divided(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i)
{
	const struct fold_virtual *by = acc_fold_taker(f, t, v, i);
	const struct fold_call *k = by == NULL ? NULL : &f->device.call[t->call[by->rank]];
	double n = f->mesh.zip;
	for (uint32_t x = 0; k != NULL && k->scales && x < k->n; x++) {
		struct acc_rec *r;
		double by_what = NAN;
		const struct fold_item *it = &f->device.item[k->first + x];
		if (it->tensor || acc_fold_record(f, it->at, &r, NULL) < 0)
			continue;
		acc_as_f64(acc_get(r, "", "value"), &by_what);
		if (by_what == n || by_what == 1 / n)
			return by;
	}
	return NULL;
}

static struct acc_str
op_of(struct acc_fold *f, uint32_t call)
{
	struct acc_rec *r;
	int rc = acc_fold_record(f, f->device.item[f->device.call[call].first].at, &r, NULL);
	return rc < 0 ? acc_str("") : acc_get_text(r, "", "op");
}

/* Is what a communication adds up behind most other calls of this line taken by none here? What only
 * moves elements makes no summands. */
static bool
is_lost(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v, uint32_t i,
	const struct fold_class *c)
{
	uint32_t out;
	if (c->summed == 0 || c->summed < 2 * c->unsummed ||
		acc_fold_reduced(f, t, v, i, &out, NULL) != NULL)
		return false;
	struct acc_str talk = op_of(f, c->talk);
	return memmem(talk.p, talk.n, "reduce", 6) != NULL &&
	       acc_op_class(op_of(f, t->call[v->rank])) != ACC_OP_MOVE;
}

/* Is what a reduction gave the sum of what the ranks have, and no gradient of a weight, but what its backward pass goes on
 * with? The loss of a rank is the mean of its part, and by that all gradients are scaled until those of weights are
 * averaged: a hook of DDP's sees them before (behaviour torch-ddp-hook-is-local). */
static bool
is_scaled_sum(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, const struct folded *d)
{
	const struct acc_place partial = {ACC_PARTIAL, 0};
	const struct fold_segment *at =
		v->mate == FOLD_NONE ? NULL
				     : &f->reference.segment[f->reference.call[v->mate].segment];
	struct acc_fold_stat sum;
	bool goes_on = false;
	for (uint32_t c = at == NULL ? 0 : v->mate + 1;
		at != NULL && c < at->first + at->n && !goes_on; c++) {
		const struct fold_call *k = &f->reference.call[c];
		for (uint32_t x = 0; k->dir == FOLD_BACKWARD && x < k->n && !goes_on; x++) {
			const struct fold_item *it = &f->reference.item[k->first + x];
			goes_on = it->tensor && !it->output &&
				  acc_fold_same(FOLD_STAT(it), 1, d->want, 0) == 2;
		}
	}
	return goes_on && d->by != NULL && d->layout.n == 1 &&
	       d->layout.at[0].kind == ACC_PARTIAL && d->layout.scale == 1.0 / f->mesh.zip &&
	       d->made.scale == 1 && acc_fold_gather(f, &f->mesh, t, v, i) &&
	       acc_fold_join(f->part, f->mesh.zip, partial, d->tol, &sum) &&
	       acc_fold_same(&sum, 1, &d->whole, d->tol) == 2;
}

void
acc_fold_doubt(struct acc_fold *f, const struct fold_step *t, const struct fold_virtual *v,
	uint32_t i, struct folded *d)
{
	const struct fold_call *k = &f->device.call[t->call[v->rank]];
	uint32_t cls = acc_fold_wide(f, k, d->own);
	const struct fold_class *c = cls == ACC_NOID ? NULL : &f->cls[cls];
	if (!d->own->output || k->talks || v->alone > 0 || c == NULL)
		return;
	if (d->by == NULL && k->dir == FOLD_FORWARD) {
		d->lost = is_lost(f, t, v, i, c) ? c->talk : FOLD_NONE;
		return;
	}
	/* Along one axis of the mesh it is known who has the summands. */
	if (f->mesh.n > 1 || d->want == NULL)
		return;
	bool unlike = d->by != NULL && acc_fold_same(&d->whole, 1, d->want, d->tol) == 0;
	const struct fold_virtual *apart = d->by == NULL && k->dir == FOLD_BACKWARD
						   ? divided(f, t, v, i)
						   : NULL;
	if (!unlike && apart == NULL)
		return;
	if (unlike && is_scaled_sum(f, t, v, i, d)) {
		for (int n = 0; n < ACC_FOLD_NSTAT; n++)
			d->whole.v[n] *= d->layout.scale;
		acc_fold_gather(f, &f->mesh, t, d->by, d->out);
		return;
	}
	/* What was made of it is the bench's but for that factor: of a sum that is no mean, it says that the parts
	 * add up, too. */
	int undivided = unlike ? acc_fold_same(&d->whole, 1.0 / f->mesh.zip, d->want, d->tol) : 0;
	double scale = undivided == 2 ? 1.0 / f->mesh.zip : adds_up(f, t, v, i, d);
	if (unlike && scale > 0) {
		const struct fold_virtual *talk = NULL;
		uint32_t out;
		acc_fold_reduced(f, t, v, i, &out, &talk);
		d->not_sum = talk != NULL ? t->call[talk->rank] : FOLD_NONE;
		d->undivided = undivided != 0;
	} else if (scale < 1 && scale > 0) {
		d->apart = t->call[apart->rank];
	}
	acc_fold_gather(f, &f->mesh, t, d->by != NULL ? d->by : v, d->by != NULL ? d->out : i);
}
