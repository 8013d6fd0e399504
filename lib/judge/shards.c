/* What each rank of one side has a part of, as FSDP gives its optimizer parts of gradients and weights, and all ranks of the
 * other have whole. Rank by rank their shapes differ, and nothing is compared; but statistics of all parts are those of
 * the whole: the extremes, the sum of the squares, the sum. */
#include "acc/say.h"
#include "acc/stat.h"
#include "judge/first_bad.h"

#include <stdlib.h>

#include "judge/bounds.h"
#include "judge/case.h"

enum { MAXDIM = 8 };

struct whole {
	double v[ACC_STATS], count;
	int64_t shape[MAXDIM];
	uint32_t ndim;
};

/* One tensor of one op call, on all ranks. */
struct sharded {
	uint64_t list;    /* of the call, which of its tensors are members of one list */
	uint64_t member;  /* of the call: the same of each list */
	uint32_t item, n; /* the first rank's; ranks */
	int axis;
	bool device;        /* it has the parts */
	bool broken;        /* not all of it is known */
	struct whole of[2]; /* of what comes in parts its shape so far */
	struct acc_stat_parts part;
	double off;
	uint32_t all, like; /* of the first of a list: how many of it are known, are right */
	double unlike;      /* how far the whole of one rank is from that of the first */
};

struct shards {
	struct scan *s;
	struct acc_case *c;
	struct sharded *v;
	uint32_t n;
	size_t cap;
	struct acc_ids by_name, first_of, right; /* right: members of a list that went in */
};

static bool
read_side(const struct acc_rec *r, const char *side, struct whole *w)
{
	const struct acc_val *shape = acc_get(r, side, "shape");
	if (shape == NULL || shape->type != ACC_V_INTS || shape->n == 0 || shape->n > MAXDIM)
		return false;
	w->ndim = shape->n;
	w->count = 1;
	for (uint32_t d = 0; d < shape->n; d++) {
		w->shape[d] = shape->ints[d];
		w->count *= (double)shape->ints[d];
	}
	acc_stat_read(r, side, ACC_STAT_MEASURED, w->v);
	return w->count == 0 || (w->count > 0 && acc_stat_finite(w->v));
}

/* The axis along which alone the shapes differ; -1. */
static int
axis_of(const struct whole *a, const struct whole *b)
{
	int axis = -1;
	for (uint32_t d = 0; d < a->ndim && a->ndim == b->ndim; d++) {
		if (a->shape[d] != b->shape[d] && axis >= 0)
			return -1;
		if (a->shape[d] != b->shape[d])
			axis = (int)d;
	}
	return axis;
}

/* Another part, along this axis. */
static bool
add_part(struct sharded *s, struct whole *w, const struct whole *part)
{
	const int axis = s->axis;
	for (uint32_t d = 0; d < w->ndim; d++)
		if (w->ndim != part->ndim || ((int)d != axis && w->shape[d] != part->shape[d]))
			return false;
	if (__builtin_add_overflow(w->shape[axis], part->shape[axis], &w->shape[axis]))
		return false;
	acc_stat_add(&s->part, part->v, part->count);
	return true;
}

/* By how much *a is another than *b, in parts of that. */
static double
far_off(const struct whole *a, const struct whole *b)
{
	double apart[ACC_STATS], off = 0;
	acc_stat_apart(a->v, b->v, b->count, apart);
	for (int i = 0; i < ACC_STATS; i++)
		off = fmax(off, apart[i]);
	return b->v[ACC_STAT_NORM] > 0 ? off : NAN;
}

static bool
same_shape(const struct whole *a, const struct whole *b)
{
	return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof *a->shape) == 0;
}

/* One rank's of it. What an optimizer is given may be found to be another on each rank, where it is whole; of what else
 * differs nothing is said, for it may be each rank's own, as what a sum over the ranks takes. */
static void
add_rank(struct sharded *s, const struct whole of[2], bool steps)
{
	const int axis = axis_of(&of[ACC_A], &of[ACC_B]);
	const bool device = axis >= 0 && of[ACC_A].shape[axis] < of[ACC_B].shape[axis];
	const int parts = device ? ACC_A : ACC_B, whole = device ? ACC_B : ACC_A;
	if (axis < 0 || (s->n > 0 && (axis != s->axis || device != s->device ||
					     !same_shape(&s->of[whole], &of[whole])))) {
		s->broken = true;
		return;
	}
	if (s->n > 0)
		s->unlike = fmax(s->unlike, far_off(&of[whole], &s->of[whole]));
	if (s->unlike > 0 && !steps) {
		s->broken = true;
		return;
	}
	if (s->n++ == 0) {
		s->axis = axis;
		s->device = device;
		s->of[whole] = of[whole];
		s->of[parts] = of[parts];
		s->of[parts].shape[axis] = 0;
	}
	s->broken |= !add_part(s, &s->of[parts], &of[parts]);
}

static int
take(struct shards *t, uint32_t item, struct acc_err *e)
{
	struct acc_case *c = t->c;
	const struct acc_item *it = &c->item[item];
	const struct acc_call *k = &c->call[it->call];
	struct acc_rec *r;
	struct whole of[2] = {{.count = 0}};
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	const struct acc_str pos = acc_get_text(r, "a.", "pos");
	uint32_t n = 0;
	while (n < pos.n && pos.p[n] != '.')
		n++;
	const uint64_t call[] = {(uint64_t)k->step, acc_hash(k->key[ACC_A], strlen(k->key[ACC_A]))};
	const uint64_t list[] = {acc_hash(call, sizeof call), it->io, acc_hash(pos.p, n)};
	const uint64_t member[] = {list[0], n < pos.n ? acc_hash(pos.p + n, pos.n - n) : 0};
	const uint64_t name[] = {acc_hash(list, sizeof list), member[1]};
	const uint64_t id = acc_hash(name, sizeof name);
	uint32_t at = acc_ids_get(&t->by_name, id);
	if (at == ACC_NOID) {
		if (!ACC_ROOM(t->v, t->cap, (size_t)t->n + 1, e))
			return ACC_ENOMEM;
		at = t->n++;
		t->v[at] = (struct sharded){.list = name[0],
			.member = acc_hash(member, sizeof member),
			.item = item};
		if (acc_ids_put(&t->by_name, id, at, true, e) < 0)
			return ACC_ENOMEM;
	}
	struct sharded *s = &t->v[at];
	if (read_side(r, "a.", &of[ACC_A]) && read_side(r, "b.", &of[ACC_B]))
		add_rank(s, of, acc_call_steps(k));
	else
		s->broken = true;
	return 0;
}

/* How far the parts are together from the whole, in parts of that; NAN: they are not all of it. */
static double
distance(struct sharded *s, uint32_t ranks)
{
	struct whole *p = &s->of[s->device ? ACC_A : ACC_B], *w = &s->of[s->device ? ACC_B : ACC_A];
	if (s->broken || s->n != ranks || p->shape[s->axis] != w->shape[s->axis] ||
		s->part.count != w->count)
		return NAN;
	acc_stat_whole(&s->part, p->v);
	const double off = far_off(&s->of[ACC_A], &s->of[ACC_B]);
	return isnan(off) ? off : fmax(off, s->unlike);
}

/* Distances of all, and what is asked of lists and members. */
static int
sum_up(struct shards *t, double limit, struct acc_err *e)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct sharded *s = &t->v[i];
		s->off = distance(s, (uint32_t)t->c->nranks[ACC_A]);
		if (isnan(s->off))
			continue;
		if (acc_ids_put(&t->first_of, s->list, i, false, e) < 0)
			return ACC_ENOMEM;
		struct sharded *first = &t->v[acc_ids_get(&t->first_of, s->list)];
		first->all++;
		first->like += s->off <= limit;
		if (s->off <= limit && acc_is_input(&t->c->item[s->item]) &&
			acc_ids_put(&t->right, s->member, i, false, e) < 0)
			return ACC_ENOMEM;
	}
	return 0;
}

/* That the parts of what is off are this tensor's shows another of its list, or the same member of another list that
 * the op call is given, which is the other side's: of gradients the weights. */
static bool
is_known(const struct shards *t, const struct sharded *s)
{
	const struct sharded *first = &t->v[acc_ids_get(&t->first_of, s->list)];
	return acc_ids_get(&t->right, s->member) != ACC_NOID ||
	       (first->like > 0 && 4 * first->like >= 3 * (first->all - 1));
}

/* The device's norm by the bench's, where it is the same for all that are off as s is; else 0. */
static double
factor_of(const struct shards *t, const struct sharded *s, double limit)
{
	const double times = s->of[ACC_A].v[ACC_STAT_NORM] / s->of[ACC_B].v[ACC_STAT_NORM];
	for (uint32_t i = 0; i < t->n; i++) {
		const struct sharded *o = &t->v[i];
		if (o->list == s->list && o->off > limit &&
			!(fabs(o->of[ACC_A].v[ACC_STAT_NORM] / o->of[ACC_B].v[ACC_STAT_NORM] -
				  times) <= 0.01 * times))
			return 0;
	}
	return times;
}

static int
say(const struct shards *t, const struct sharded *s, double limit, struct acc_err *e)
{
	struct acc_case *c = t->c;
	const struct acc_item *it = &c->item[s->item];
	const struct acc_call *k = &c->call[it->call];
	const double times = factor_of(t, s, limit);
	uint32_t off = 0, all = 0;
	struct acc_rec *r;
	for (uint32_t i = 0; i < t->n; i++) {
		all += t->v[i].list == s->list && !isnan(t->v[i].off);
		off += t->v[i].list == s->list && t->v[i].off > limit;
	}
	int rc = acc_case_record(c, it, &r, e);
	if (rc < 0)
		return rc;
	const char *stack, *src, *place = acc_say_position(c, r, it);
	const struct acc_str pos = acc_get_text(r, "a.", "pos");
	const char *at = acc_arena_copy(&c->mem, pos.p, pos.n);
	src = acc_say_source(c, k, &stack, e);
	if (place == NULL || at == NULL || src == NULL)
		return e->code == 0 ? acc_nomem(e) : e->code;
	struct acc_finding *f = acc_witness_find(t->s, ACC_WITNESS_shards, "culprit", "shards", e);
	if (f == NULL)
		return e->code;
	f->name = acc_call_name(k);
	f->io = acc_say_io(it);
	f->pos = at;
	f->step = k->step;
	f->value = s->off;
	f->limit = limit;
	f->stack = stack;
	const char *by = times == 0 ? ""
				    : acc_say(&c->mem, ", the device's norm %.6g times the bench's",
					      times);
	if (s->unlike > limit) {
		f->value = s->unlike;
		f->text = acc_say(&c->mem,
			"%s: %s is another on each rank of the %s, by up to %.3g of it by their statistics (limit %.2g), and one"
			" of which each has a part on the other side, as in %u of %u of its list; what it is given beside"
			" agrees, and so does all that was compared before it: is it reduced, and over all ranks?%s%s",
			f->name, place, s->device ? "bench" : "device", s->unlike, limit, off, all,
			src[0] != '\0' ? "; at " : "", src);
		return f->text == NULL ? acc_nomem(e) : f->bad;
	}
	f->text = acc_say(&c->mem,
		"%s: %s is off: the parts that the %s's ranks have are together not the whole that each of the other side"
		" has, by %.3g of it by their statistics (limit %.2g)%s, as in %u of %u of its list; what it is given"
		" beside agrees, and so does all that was compared before it: what sums, divides or stores it over the"
		" ranks is another%s%s",
		f->name, place, s->device ? "device" : "bench", s->off, limit, acc_got(by), off,
		all, src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL || by == NULL ? acc_nomem(e) : f->bad;
}

/* Of those that are off, and surely the same tensor, the first. 1: said. */
static int
find_first(struct shards *t, double limit, uint32_t *call, struct acc_err *e)
{
	if (sum_up(t, limit, e) < 0)
		return ACC_ENOMEM;
	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].off > limit && acc_is_input(&t->c->item[t->v[i].item]) &&
			is_known(t, &t->v[i])) {
			*call = t->c->item[t->v[i].item].call;
			return say(t, &t->v[i], limit, e);
		}
	return 0;
}

/* Is an optimizer given tensors on one side alone, as where no gradient came to what it steps? Which; -1. */
static int
fed_alone(const struct acc_case *c, uint32_t call)
{
	const struct acc_call *k = &c->call[call];
	uint32_t n[2] = {0, 0};
	if (k->key[ACC_A] == NULL || !acc_call_steps(k))
		return -1;
	for (uint32_t i = k->first; i < k->inputs; i++) {
		const struct acc_item *it = &c->item[i];
		if (it->call == call && it->kind == ACC_ITEM_TENSOR && acc_is_input(it))
			for (int side = 0; side < 2; side++)
				n[side] += it->sides >> side & 1;
	}
	return n[ACC_A] == 0 && n[ACC_B] > 0 ? ACC_B : n[ACC_B] == 0 && n[ACC_A] > 0 ? ACC_A : -1;
}

/* Of two sides that were recorded alike. 1: said. */
static int
say_unfed(struct scan *s, uint32_t call, int fed, struct acc_err *e)
{
	struct acc_case *c = s->c;
	const struct acc_call *k = &c->call[call];
	struct acc_recorded how;
	int rc = acc_recorded(c, k, &how, e);
	if (rc < 0 || !how.alike)
		return rc;
	const char *stack, *where = acc_say_where(c, k), *src = acc_say_source(c, k, &stack, e);
	if (where == NULL || src == NULL)
		return e->code == 0 ? acc_nomem(e) : e->code;
	struct acc_finding *f = acc_witness_find(s, ACC_WITNESS_unfed, "missing", "unfed", e);
	if (f == NULL)
		return e->code;
	f->name = acc_call_name(k);
	f->step = k->step;
	f->rank = k->rank;
	f->stack = stack;
	f->text = acc_say(&c->mem,
		"%s%s: no tensor is given to it on the %s, and weights and gradients on the %s: nothing is learnt there; are"
		" the gradients where the optimizer looks for them, or are they never reduced?%s%s (--allow-missing"
		" accepts it)",
		where, f->name, fed == ACC_A ? "bench" : "device",
		fed == ACC_A ? "device" : "bench", src[0] != '\0' ? "; at " : "", src);
	return f->text == NULL ? acc_nomem(e) : f->bad;
}

int
acc_say_unfed(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	int rc = 0;
	for (uint32_t i = 0; i < c->ncall && rc == 0; i = acc_step(c, i)) {
		const int fed = fed_alone(c, i);
		if (fed < 0 || acc_may_lack(c, acc_call_name(&c->call[i])))
			continue;
		rc = say_unfed(s, i, fed, e);
		*call = rc > 0 ? i : *call;
	}
	return rc;
}

int
acc_say_shards(struct scan *s, uint32_t *call, struct acc_err *e)
{
	struct acc_case *c = s->c;
	struct shards t = {.s = s, .c = c};
	int rc = 0;
	if (c->nranks[ACC_A] < 2 || c->nranks[ACC_A] != c->nranks[ACC_B])
		return 0;
	for (uint32_t i = 0; i < c->nitem && rc == 0; i = acc_step(c, i)) {
		const struct acc_item *it = &c->item[i];
		if (acc_other_shape(it) && it->note_shape && !it->exact && it->call != ACC_NOCALL &&
			c->call[it->call].key[ACC_A] != NULL && !c->call[it->call].backward)
			rc = take(&t, i, e);
	}
	/* As of what a backward pass makes where not all of it was recorded; behind it weights are off, as the gradients. */
	const double limit = LIMIT_MARGIN * (LIMIT_UNTRACED_FLOOR * s->unit +
						    LIMIT_UNSEEN_GAIN * acc_recent(s, true));
	if (rc == 0 && t.n > 0)
		rc = find_first(&t, limit, call, e);
	acc_ids_release(&t.by_name);
	acc_ids_release(&t.first_of);
	acc_ids_release(&t.right);
	free(t.v);
	return rc;
}
