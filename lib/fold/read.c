/* The index of both sides: op calls by rank and step, and the statistics of their tensors. */
#include "fold/impl.h"
#include "fold/weights.h"

#include <math.h>
#include <stdlib.h>

#include "acc/op.h"
#include "acc/stat.h"

struct acc_fold *
acc_fold_open(const char *tmpdir, struct acc_err *e)
{
	struct acc_fold *f = calloc(1, sizeof *f);
	if (f == NULL) {
		acc_nomem(e);
		return NULL;
	}
	f->groups = f->apart = f->turns = 1;
	f->spool = acc_spool_open(tmpdir, e);
	if (f->spool == NULL) {
		acc_fold_close(f);
		return NULL;
	}
	return f;
}

void
acc_fold_side_release(struct fold_side *s)
{
	free(s->item);
	free(s->call);
	free(s->segment);
	acc_ids_release(&s->by_key);
	acc_ids_release(&s->by_twin);
	acc_ids_release(&s->by_shape);
	free(s->shape);
	acc_arena_release(&s->mem);
	*s = (struct fold_side){0};
}

void
acc_fold_close(struct acc_fold *f)
{
	if (f == NULL)
		return;
	if (f->both != NULL) {
		f->both->spool = NULL; /* it is f's */
		acc_fold_close(f->both);
	}
	acc_fold_steps_free(f);
	acc_fold_side_release(&f->device);
	acc_fold_side_release(&f->reference);
	acc_spool_close(f->spool);
	acc_weights_free(f->weights);
	acc_map_release(&f->stacks);
	acc_ids_release(&f->spots);
	acc_ids_release(&f->by_class);
	acc_ids_release(&f->alone);
	acc_ids_release(&f->turned);
	free(f->all);
	free(f->laid);
	acc_ids_release(&f->by_order);
	for (uint32_t i = 0; i < f->norder; i++)
		free(f->order[i].piece);
	free(f->order);
	free(f->cls);
	free(f->sight);
	free(f->plan);
	free(f->fitted);
	free(f->part);
	free(f);
}

void
acc_fold_whole(struct acc_fold *f)
{
	f->whole = true;
}

static uint64_t
id3(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t id[3] = {a, b, c};
	return acc_hash(id, sizeof id);
}

static uint64_t
text_id(struct acc_str s)
{
	return acc_hash(s.p, s.n);
}

int
acc_fold_record(struct acc_fold *f, uint64_t at, struct acc_rec **r, struct acc_err *e)
{
	int rc = acc_spool_get(f->spool, at, r, e);
	return rc < 0 ? rc : 0;
}

uint64_t
acc_fold_twin(uint64_t base, int64_t call, int dir)
{
	return id3(base, (uint64_t)call, (uint64_t)dir);
}

uint32_t
acc_fold_by_key(const struct fold_side *s, uint64_t key, uint32_t segment)
{
	return acc_ids_get(&s->by_key, id3(key, segment, 0));
}

uint32_t
acc_fold_by_twin(const struct fold_side *s, uint64_t twin, uint32_t segment)
{
	return acc_ids_get(&s->by_twin, id3(twin, segment, 1));
}

int
acc_fold_index(struct fold_side *s, uint32_t at, struct acc_err *e)
{
	const struct fold_call *k = &s->call[at];
	int rc = acc_ids_put(&s->by_key, id3(k->key, k->segment, 0), at, false, e);
	return rc < 0 ? rc : acc_ids_put(&s->by_twin, id3(k->twin, k->segment, 1), at, false, e);
}

const struct fold_item *
acc_fold_item_at(const struct fold_side *s, const struct fold_call *k, uint64_t pos, uint32_t hint)
{
	if (hint < k->n && s->item[k->first + hint].pos == pos)
		return &s->item[k->first + hint];
	for (uint32_t i = 0; i < k->n; i++)
		if (s->item[k->first + i].pos == pos)
			return &s->item[k->first + i];
	return NULL;
}

const struct acc_fold_stat *
acc_fold_known(const struct fold_stat *s, struct acc_fold_stat *room)
{
	room->ndim = s->ndim;
	room->count = s->count;
	room->known = s->known;
	memcpy(room->v, s->v, sizeof room->v);
	for (uint32_t d = 0; s->ndim <= ACC_FOLD_NDIM && d < s->ndim; d++)
		room->shape[d] = s->shape[d];
	return room;
}

/* One copy of each shape. */
static const int64_t *
shape_of(struct fold_side *s, const struct acc_fold_stat *stat, struct acc_err *e)
{
	static const int64_t none[ACC_FOLD_NDIM + 1];
	const uint32_t n = stat->ndim <= ACC_FOLD_NDIM ? stat->ndim : 0;
	if (n == 0)
		return none;
	const size_t size = n * sizeof *stat->shape;
	const uint64_t id = acc_hash(stat->shape, size);
	const uint32_t at = acc_ids_get(&s->by_shape, id);
	if (at != ACC_NOID)
		return s->shape[at];
	const int64_t **all = acc_grow((void *)s->shape, &s->shape_cap, (size_t)s->nshape + 1,
		sizeof *all, e);
	if (all == NULL)
		return NULL;
	s->shape = all;
	all[s->nshape] = (void *)acc_arena_copy(&s->mem, stat->shape, size);
	if (all[s->nshape] == NULL)
		acc_nomem(e);
	else if (acc_ids_put(&s->by_shape, id, s->nshape, false, e) == 0)
		return all[s->nshape++];
	return NULL;
}

int
acc_fold_keep(struct fold_side *s, struct fold_item *it, const struct acc_fold_stat *stat,
	struct acc_err *e)
{
	const int64_t *shape = shape_of(s, stat, e);
	if (shape == NULL)
		return ACC_ENOMEM;
	it->stat = (struct fold_stat){.shape = shape,
		.count = stat->count,
		.ndim = (uint8_t)stat->ndim,
		.known = stat->known};
	memcpy(it->stat.v, stat->v, sizeof stat->v);
	return 0;
}

/* What the recorder computed, or accmetric. */
static void
read_stat(const struct acc_rec *r, struct acc_fold_stat *s)
{
	const struct acc_val *shape = acc_get(r, "", "shape");
	*s = (struct acc_fold_stat){.ndim = ACC_FOLD_NDIM + 1};
	uint64_t count;
	if (shape == NULL || shape->type != ACC_V_INTS || shape->n > ACC_FOLD_NDIM ||
		!acc_count(shape->ints, shape->n, &count))
		return;
	s->ndim = shape->n;
	s->count = (double)count;
	if (shape->n > 0)
		memcpy(s->shape, shape->ints, shape->n * sizeof *shape->ints);
	const bool recorded = acc_get(r, "", "stat.max") != NULL;
	s->known = acc_stat_read(r, "", recorded ? ACC_STAT_RECORDED : ACC_STAT_MEASURED, s->v);
}

static double
tolerance(const struct acc_rec *r)
{
	enum acc_dtype raw = acc_dtype_find(acc_get_text(r, "", "dtype.raw"));
	if (raw == ACC_NODTYPE)
		raw = acc_dtype_find(acc_get_text(r, "", "dtype"));
	double unit = raw == ACC_NODTYPE ? 0 : acc_unit(raw);
	/* Recorders compute statistics in f32 at least. */
	return sqrt(unit > 0x1p-24 ? unit : 0x1p-24);
}

static struct fold_segment *
segment_of(struct fold_side *s, const struct acc_rec *r, struct acc_err *e)
{
	int64_t step = acc_get_int(r, "", "step", -1);
	int64_t rank = acc_get_int(r, "", "rank", acc_get_int(r, "", "proc", -1));
	struct fold_segment *last = s->nsegment > 0 ? &s->segment[s->nsegment - 1] : NULL;
	if (last != NULL && last->step == step && last->rank == rank)
		return last;
	last = acc_grow(s->segment, &s->segment_cap, (size_t)s->nsegment + 1, sizeof *last, e);
	if (last == NULL)
		return NULL;
	s->segment = last;
	last = &s->segment[s->nsegment++];
	*last = (struct fold_segment){.step = step, .rank = rank, .first = s->ncall};
	return last;
}

/* Does it multiply or divide? */
static bool
scales(struct acc_str op)
{
	static const char words[] = "div div_ truediv itruediv __truediv__ __itruediv__ mul mul_"
				    " imul __mul__ __imul__";
	return acc_word_in(words, acc_op_name(op));
}

static bool
adds(struct acc_str op)
{
	return acc_word_in("add add_ iadd __add__ __iadd__", acc_op_name(op));
}

/* Does it take a weight? */
static bool
weighs(struct acc_str op)
{
	const struct acc_op_info *o = acc_op_info_of(op);
	return o != NULL && (o->flags & ACC_OP_WEIGHTS) != 0;
}

static int
new_call(struct fold_side *s, struct fold_segment *seg, const struct acc_rec *r, struct acc_str key,
	struct acc_err *e)
{
	struct acc_str op = acc_get_text(r, "", "op"), pass = acc_get_text(r, "", "pass");
	struct acc_str stack = acc_get_text(r, "", "stack");
	uint32_t at = s->ncall, segment = (uint32_t)(seg - s->segment);
	if (!ACC_ROOM(s->call, s->call_cap, (size_t)at + 1, e))
		return ACC_ENOMEM;
	struct fold_call *k = s->call;
	k += s->ncall++;
	seg->n++;
	*k = (struct fold_call){.key = text_id(key),
		.peer = -1,
		.segment = segment,
		.first = s->nitem};
	k->dir = acc_str_is(pass, "forward") || pass.n == 0 ? FOLD_FORWARD
		 : acc_str_is(pass, "backward")             ? FOLD_BACKWARD
							    : FOLD_OTHER;
	k->late = seg->back;
	/* The first gradient may come from another stage. */
	for (uint32_t i = at; k->dir == FOLD_BACKWARD && !seg->back && i-- > seg->first;) {
		if (!s->call[i].talks)
			break;
		s->call[i].late = true;
	}
	seg->back |= k->dir == FOLD_BACKWARD;
	k->call = acc_get_int(r, "", "call", -1);
	uint64_t base = op.n > 0 ? text_id(op) : k->key;
	k->base = base;
	k->op = id3(base, text_id(pass), 0);
	k->twin = acc_fold_twin(base, k->call, k->dir);
	k->talks = acc_op_talks(op);
	k->hands = acc_op_hands(op);
	k->reduces = k->talks && (memmem(op.p, op.n, "reduce", 6) != NULL ||
					 memmem(op.p, op.n, "Reduce", 6) != NULL);
	k->sums = k->talks && memmem(op.p, op.n, "all_reduce", 10) != NULL;
	k->scales = scales(op);
	k->adds = adds(op);
	k->moves = acc_op_class(op) == ACC_OP_MOVE;
	k->weighs = weighs(op);
	k->line = stack.n > 0 ? text_id(stack) : 0;
	/* A gradient comes from nowhere, or from where all do: its line is that of its forward call. */
	uint32_t from = k->dir != FOLD_BACKWARD
				? ACC_NOID
				: acc_fold_by_twin(s, acc_fold_twin(base, k->call, FOLD_FORWARD),
					  segment);
	k->line = from != ACC_NOID ? s->call[from].line : k->line;
	return acc_fold_index(s, at, e);
}

static int
add_item(struct fold_side *s, const struct acc_rec *r, uint64_t at, struct acc_err *e)
{
	struct acc_str key = acc_get_text(r, "", "key"), io = acc_get_text(r, "", "io");
	struct acc_str pos = acc_get_text(r, "", "pos");
	key = key.n > 0 ? key : acc_get_text(r, "", "name");
	struct fold_segment *seg = segment_of(s, r, e);
	if (seg == NULL)
		return ACC_ENOMEM;
	if (seg->n == 0 || s->call[s->ncall - 1].key != text_id(key)) {
		int rc = new_call(s, seg, r, key, e);
		if (rc < 0)
			return rc;
	}
	if (!ACC_ROOM(s->item, s->item_cap, (size_t)s->nitem + 1, e))
		return ACC_ENOMEM;
	struct fold_item *it = s->item;
	it += s->nitem++;
	s->call[s->ncall - 1].n++;
	*it = (struct fold_item){.at = at, .pos = id3(text_id(io), text_id(pos), 2)};
	it->listed = pos.n > 0 && memchr(pos.p, '.', pos.n) != NULL;
	it->tensor = acc_rec_is(r, "tensor");
	enum acc_dtype t = acc_dtype_find(acc_get_text(r, "", "dtype"));
	it->output = acc_str_is(io, "out");
	it->fills = !it->output && acc_op_fills(acc_get_text(r, "", "op"), pos);
	it->exact = t != ACC_NODTYPE && acc_dtype_of(t)->eps == 0;
	it->tol = tolerance(r);
	if (it->tensor) {
		struct acc_fold_stat stat;
		read_stat(r, &stat);
		return acc_fold_keep(s, it, &stat, e);
	}
	if (s->call[s->ncall - 1].hands && acc_word_in("1 dst src", pos))
		acc_as_int(acc_get(r, "", "value"), &s->call[s->ncall - 1].peer);
	return 0;
}

static int
add_stack(struct acc_fold *f, const struct acc_rec *r, uint64_t at, struct acc_err *e)
{
	struct acc_str id = acc_get_text(r, "", "id");
	const struct acc_val *v = acc_get(r, "", "frames");
	if (acc_map_put(&f->stacks, id, at) == NULL)
		return acc_nomem(e);
	if (v == NULL || v->type != ACC_V_TEXTS || v->n == 0)
		return 0;
	return acc_ids_put(&f->spots, text_id(id), (uint32_t)text_id(v->texts[0]) & INT32_MAX, true,
		e);
}

int
acc_fold_add(struct acc_fold *f, bool reference, const struct acc_rec *r, struct acc_err *e)
{
	uint64_t at;
	bool ours = acc_rec_is(r, "tensor") || acc_rec_is(r, "arg");
	if (acc_rec_is(r, "pair"))
		return acc_fail(e, ACC_EUSAGE,
			"a stream of pairs: ranks are folded before accalign");
	if (f->roots != NULL && acc_rec_is(r, "source")) {
		int added = acc_roots_add(f->roots, r, e);
		if (added < 0)
			return added;
	}
	if (reference && !ours)
		return 0;
	int rc = acc_spool_put(f->spool, r, &at, e);
	if (rc == 0 && !reference) {
		if (!ACC_ROOM(f->all, f->all_cap, f->nall + 1, e))
			return ACC_ENOMEM;
		uint64_t *all = f->all;
		all[f->nall++] = at;
		if (acc_rec_is(r, "stack"))
			rc = add_stack(f, r, at, e);
	}
	if (rc == 0 && ours)
		rc = add_item(reference ? &f->reference : &f->device, r, at, e);
	return rc;
}
