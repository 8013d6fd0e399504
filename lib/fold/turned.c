/* Parts that the ranks take in another order than elsewhere. Statistics of the whole do not show it, nor does
 * the reference, but where the ranks cut the whole themselves, each takes one of what the cut gives: rank by
 * rank, the same ones in most calls of a line of code. */
#include "fold/impl.h"

#include <stdlib.h>

/* An output of a call that gives several: which. */
struct cut {
	uint32_t call, nth;
};

/* What a call takes on all ranks. */
struct taken {
	uint64_t place, line, order, likes; /* likes: of line and order */
	uint32_t cut;
};

struct turned {
	struct cut *cut;
	uint32_t ncut;
	size_t cut_cap;
	struct taken *taken;
	uint32_t ntaken;
	size_t taken_cap;
	struct acc_ids
		by_tensor;    /* of a rank, to the cut that gives it; FOLD_NONE - 1: several may */
	struct acc_ids count; /* of a line; and of a line and order */
};

static const uint32_t AMBIGUOUS = FOLD_NONE - 1;

static uint64_t
pair_id(uint64_t a, uint64_t b)
{
	const uint64_t id[2] = {a, b};
	return acc_hash(id, sizeof id);
}

static uint64_t
place_of(uint32_t step, uint32_t virtual, uint32_t item)
{
	return pair_id(pair_id(step, virtual), item);
}

static uint32_t
gives(const struct fold_side *s, const struct fold_call *k)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < k->n; i++)
		n += s->item[k->first + i].tensor && s->item[k->first + i].output;
	return n;
}

static int
find_cuts(const struct fold_side *s, struct turned *t, struct acc_err *e)
{
	int rc = 0;
	for (uint32_t c = 0; c < s->ncall && rc == 0; c++) {
		const struct fold_call *k = &s->call[c];
		if (!k->moves || k->talks || k->dir != FOLD_FORWARD || gives(s, k) < 2)
			continue;
		for (uint32_t i = 0, nth = 0; i < k->n && rc == 0; i++) {
			const struct fold_item *it = &s->item[k->first + i];
			const uint64_t tensor = acc_fold_digest(&it->stat);
			if (!it->tensor || !it->output)
				continue;
			nth++;
			if (tensor == 0)
				continue;
			const uint64_t id = pair_id(tensor, k->segment);
			const uint32_t old = acc_ids_get(&t->by_tensor, id);
			if (old != ACC_NOID) {
				if (old != AMBIGUOUS && t->cut[old].nth != nth)
					rc = acc_ids_put(&t->by_tensor, id, AMBIGUOUS, true, e);
				continue;
			}
			if (!ACC_ROOM(t->cut, t->cut_cap, (size_t)t->ncut + 1, e))
				return ACC_ENOMEM;
			t->cut[t->ncut] = (struct cut){c, nth};
			rc = acc_ids_put(&t->by_tensor, id, t->ncut++, false, e);
		}
	}
	return rc;
}

static int
add_one(struct acc_ids *count, uint64_t id, struct acc_err *e)
{
	uint32_t n = acc_ids_get(count, id);
	return acc_ids_put(count, id, n == ACC_NOID ? 1 : n + 1, true, e);
}

/* Which of the parts of a cut each rank takes here, where they take different ones. */
static int
take(struct acc_fold *f, struct turned *o, uint32_t step, uint32_t virtual, uint32_t item,
	struct acc_err *e)
{
	const struct fold_step *t = &f->step[step];
	const struct fold_virtual *v = &t->v[virtual];
	const struct fold_side *s = &f->device;
	const struct fold_call *k = &s->call[t->call[v->rank]];
	const struct fold_item *own = &s->item[k->first + item];
	uint32_t cls = acc_fold_class(f, k, own), first = FOLD_NONE;
	uint64_t order = 0;
	bool varies = false;
	for (uint32_t r = 0; r < f->mesh.zip; r++) {
		uint32_t call = t->call[v->rank + r], at;
		const struct fold_item *it = call == FOLD_NONE ? NULL
							       : acc_fold_item_at(s, &s->call[call],
									 own->pos, item);
		if (it == NULL || acc_fold_digest(&it->stat) == 0)
			return 0;
		at = acc_ids_get(&o->by_tensor,
			pair_id(acc_fold_digest(&it->stat), s->call[call].segment));
		if (at == ACC_NOID || at == AMBIGUOUS)
			return 0;
		first = r == 0 ? at : first;
		varies |= o->cut[at].nth != o->cut[first].nth;
		order = pair_id(order, o->cut[at].nth);
	}
	if (!varies || cls == FOLD_NONE)
		return 0;
	if (!ACC_ROOM(o->taken, o->taken_cap, (size_t)o->ntaken + 1, e))
		return ACC_ENOMEM;
	struct taken *p = o->taken;
	p += o->ntaken++;
	*p = (struct taken){place_of(step, virtual, item), cls, order, pair_id(cls, order),
		o->cut[first].call};
	int rc = add_one(&o->count, p->line, e);
	return rc < 0 ? rc : add_one(&o->count, p->likes, e);
}

/* What is in another order than two thirds of what its line takes. */
static int
settle(struct acc_fold *f, const struct turned *o, struct acc_err *e)
{
	struct acc_ids usual = {0};
	int rc = 0;
	for (uint32_t i = 0; i < o->ntaken && rc == 0; i++) {
		const struct taken *p = &o->taken[i];
		uint32_t all = acc_ids_get(&o->count, p->line),
			 n = acc_ids_get(&o->count, p->likes);
		if (3 * (uint64_t)n >= 2 * (uint64_t)all)
			rc = acc_ids_put(&usual, p->line, 1, true, e);
	}
	for (uint32_t i = 0; i < o->ntaken && rc == 0; i++) {
		const struct taken *p = &o->taken[i];
		uint32_t all = acc_ids_get(&o->count, p->line),
			 n = acc_ids_get(&o->count, p->likes);
		if (acc_ids_get(&usual, p->line) != ACC_NOID && 3 * (uint64_t)n < 2 * (uint64_t)all)
			rc = acc_ids_put(&f->turned, p->place, p->cut, true, e);
	}
	acc_ids_release(&usual);
	return rc;
}

int
acc_fold_find_turned(struct acc_fold *f, struct acc_err *e)
{
	struct turned o = {0};
	int rc = find_cuts(&f->device, &o, e);
	for (uint32_t s = 0; s < f->nstep && o.ncut > 0; s++)
		for (uint32_t i = 0; i < f->step[s].nv; i++) {
			const struct fold_virtual *v = &f->step[s].v[i];
			const struct fold_call *k = &f->device.call[f->step[s].call[v->rank]];
			for (uint32_t x = 0; x < k->n && rc == 0; x++) {
				const struct fold_item *it = &f->device.item[k->first + x];
				if (k->dir == FOLD_FORWARD && !k->talks && v->alone == 0 &&
					it->tensor && !it->output)
					rc = take(f, &o, s, i, x, e);
			}
		}
	rc = rc < 0 ? rc : settle(f, &o, e);
	free(o.cut);
	free(o.taken);
	acc_ids_release(&o.by_tensor);
	acc_ids_release(&o.count);
	return rc;
}

uint32_t
acc_fold_turned(const struct acc_fold *f, uint32_t step, uint32_t virtual, uint32_t item)
{
	uint32_t cut = acc_ids_get(&f->turned, place_of(step, virtual, item));
	return cut == ACC_NOID ? FOLD_NONE : cut;
}
