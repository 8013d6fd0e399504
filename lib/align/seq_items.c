/* What goes into and comes out of two calls of different frameworks: arguments stand in other
 * places, in other shapes, and into other calls of those that make up the one. So values, origins
 * and shapes decide, and places only between what is equal. */
#include "align/seq.h"

#include <stdlib.h>

/* A cross-entropy with smoothing is 26 kernels. */
enum { MOST = 48, REACH = 32, FAR = 8, SURE = 20, WEAK = -60, NO = -1000 };

/* One tensor of a call, or of one of its parts. */
struct end {
	uint32_t item, op;
	uint32_t from;  /* where it comes from (seq_out), or ACC_NOMATE */
	uint32_t place; /* among the tensors of its call */
	uint32_t off;   /* how far the part stands before its call, in points */
	bool part;      /* of a part, not of the call itself */
	bool weak;      /* most likely of this side only: needs more than its size to pair */
};

struct ends {
	struct end v[MOST];
	uint32_t n;
};

/* torch's batch_norm takes the running statistics before scale and shift, kernels behind them. */
static uint32_t
place_of(const struct acc_index *ix, const struct call *c, uint32_t place)
{
	static const uint32_t kernel[] = {0, 3, 4, 1, 2};
	static const char norm[] = "batch_norm";
	if (!ix->kernels || place >= sizeof kernel / sizeof *kernel ||
		c->family != acc_hash(norm, sizeof norm - 1))
		return place;
	return kernel[place];
}

/* One side of the two calls. */
struct half {
	const struct acc_index *ix;
	const struct call *c;
	const uint32_t *mate;
	uint32_t x; /* the call */
	uint64_t
		chain; /* of the free calls before it, the k-th is bit k - 1: its result leads to x */
};

/* Does an input come from a part of the call? Then it is of this side only. */
static bool
inner(const struct half *h, uint32_t from)
{
	uint32_t k = from == ACC_NOMATE ? h->x : h->x - from / SEQ_OUTS;
	return from != ACC_NOMATE && from / SEQ_OUTS < h->x && k <= REACH &&
	       (h->chain >> (k - 1) & 1);
}

static void
find_chain(struct half *h)
{
	for (uint32_t k = 0; k <= REACH && k <= h->x; k++) {
		const struct call *c = &h->c[h->x - k];
		if (k > 0 && (h->chain >> (k - 1) & 1) == 0)
			continue;
		for (int t = 0; t < SEQ_INS; t++) {
			uint32_t from = c->from[t] == ACC_NOMATE ? h->x : c->from[t] / SEQ_OUTS;
			if (from < h->x && h->x - from <= REACH && h->mate[from] == ACC_NOMATE &&
				!h->c[from].moves)
				h->chain |= UINT64_C(1) << (h->x - from - 1);
		}
	}
}

static void
add_inputs(struct ends *e, const struct half *h, uint32_t x)
{
	const struct call *c = &h->c[x];
	const struct acc_align_call *op = &h->ix->op[c->op];
	uint32_t n = 0, off = h->x - x;
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		const struct acc_align_item *it = &h->ix->item[i];
		if (!it->tensor || !(acc_seq_is_input(it) || it->io == ACC_IO_PARAM))
			continue;
		uint32_t from = n < SEQ_INS && it->io != ACC_IO_PARAM ? c->from[n] : ACC_NOMATE;
		if (it->mate == ACC_NOMATE && e->n < MOST)
			e->v[e->n++] = (struct end){.item = i,
				.op = c->op,
				.from = from,
				.place = place_of(h->ix, c, n),
				.off = off < FAR ? 2 * off : 2 * FAR,
				.part = x != h->x,
				.weak = inner(h, from) ||
					(x != h->x && (h->chain >> (h->x - x - 1) & 1) == 0)};
		n++;
	}
}

static void
add_outputs(struct ends *e, const struct half *h, uint32_t x)
{
	const struct acc_align_call *op = &h->ix->op[h->c[x].op];
	uint32_t n = 0;
	for (uint32_t i = op->first; i < op->first + op->n; i++)
		if (h->ix->item[i].tensor && h->ix->item[i].io == ACC_IO_OUT && e->n < MOST)
			e->v[e->n++] = (struct end){.item = i,
				.op = h->c[x].op,
				.from = ACC_NOMATE,
				.place = n++,
				.part = x != h->x,
				.weak = x != h->x};
}

/* The free calls before the call, which may be parts of it. */
static void
add_parts(struct ends *e, const struct half *h,
	void (*add)(struct ends *, const struct half *, uint32_t))
{
	for (uint32_t k = h->x; k-- > 0 && h->x - k <= REACH;)
		if (h->mate[k] == ACC_NOMATE && !h->c[k].moves)
			add(e, h, k);
}

static bool
whole_numbers(const struct acc_align_item *it)
{
	return it->num != ACC_NODTYPE &&
	       (acc_dtype_of(it->num)->cls == 'I' || acc_dtype_of(it->num)->cls == 'U');
}

static bool
constant(const struct acc_align_item *it)
{
	return (it->liked & 3) == 3 && it->like[ACC_LIKE_MAX] == it->like[ACC_LIKE_MIN];
}

/* How well two tensors fit; above SURE something speaks for them. */
static int
points(const struct seq *s, const struct end *x, const struct end *y)
{
	const struct acc_align_item *p = &s->j->a->item[x->item], *q = &s->j->b->item[y->item];
	if (p->count != q->count || whole_numbers(p) != whole_numbers(q))
		return NO;
	int v = acc_seq_value_points(p->like, q->like, p->liked & q->liked);
	v += 40 * acc_seq_origin(s, x->from, y->from);
	v += p->shape == q->shape ? 4 : p->dims == q->dims ? 2 : 0;
	if (constant(p) && v > 0 && p->count > 1 && p->shape == q->shape)
		v += SURE; /* scales of 1, biases of 0 */
	/* The very same is what goes in, not what has become of it in a part: a weight that has decayed. */
	if (p->print != 0 && p->print == q->print && p->count > 1)
		v += SURE;
	/* A number is a constant of the formula, or one of many. */
	if (p->count == 1 && (x->part || y->part) && v < SURE)
		return NO;
	/* Of parts, only what says more than that it has as many elements. */
	if ((x->weak || y->weak) && v < SURE)
		return NO;
	/* What is handed on unchanged goes into several: those next to the end are meant. */
	return v - (int)(x->off + y->off);
}

/* Pair the ends, the best first; whether something but shapes spoke for one of them. */
static bool
mate_ends(struct seq *s, struct ends *p, struct ends *q)
{
	bool known = false;
	for (;;) {
		int best = WEAK - 1;
		uint32_t bi = 0, bk = 0, far = 0;
		for (uint32_t i = 0; i < p->n; i++)
			for (uint32_t k = 0; k < q->n; k++) {
				const struct end *x = &p->v[i], *y = &q->v[k];
				if (s->j->a->item[x->item].mate != ACC_NOMATE ||
					s->j->b->item[y->item].mate != ACC_NOMATE ||
					(x->part && y->part))
					continue;
				int v = points(s, x, y);
				uint32_t d = x->place > y->place ? x->place - y->place
								 : y->place - x->place;
				if (v < best || (v == best && d >= far) || v < WEAK)
					continue;
				best = v;
				far = d;
				bi = i;
				bk = k;
			}
		if (best < WEAK)
			return known;
		acc_mate_items(s->j, p->v[bi].item, q->v[bk].item);
		known |= best >= SURE;
		if (p->v[bi].part) {
			/* What only a part has is said to be paired as the whole is. */
			struct acc_align_call *op = &s->j->a->op[p->v[bi].op];
			const struct acc_align_call *whole = &s->j->b->op[q->v[bk].op];
			op->how = whole->how;
			op->sure = whole->sure;
		}
	}
}

/* Arguments that are no tensors, by their places. */
static void
mate_args(struct seq *s, const struct acc_align_call *x, const struct acc_align_call *y)
{
	for (uint32_t i = x->first; i < x->first + x->n; i++)
		for (uint32_t k = y->first; k < y->first + y->n; k++) {
			const struct acc_align_item *p = &s->j->a->item[i], *q = &s->j->b->item[k];
			if (!p->tensor && !q->tensor && p->position == q->position &&
				p->mate == ACC_NOMATE && q->mate == ACC_NOMATE)
				acc_mate_items(s->j, i, k);
		}
}

/* The only argument of these that is a number with a fraction, if there is but one; else NULL. */
static struct acc_align_item *
only_number(const struct acc_index *ix, const struct acc_align_call *op,
	struct acc_align_item *found, bool *several)
{
	const uint32_t real = (uint32_t)acc_hash("<class 'float'>", 15);
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		struct acc_align_item *it = &ix->item[i];
		if (it->tensor || it->dtype != real || it->mate != ACC_NOMATE)
			continue;
		*several |= found != NULL;
		found = it;
	}
	return found;
}

/* max(x, slope x) is leaky_relu: the factor of the part is the slope. */
static void
mate_slope(struct seq *s, const struct half *a, const struct call *whole)
{
	static const char leaky[] = "leaky_relu", mul[] = "mul";
	struct acc_align_item *p = NULL;
	struct acc_align_call *part = NULL;
	const struct acc_align_call *w = &s->j->b->op[whole->op];
	bool several = false;
	if (whole->family != acc_hash(leaky, sizeof leaky - 1) ||
		a->c[a->x].family == whole->family)
		return;
	for (uint32_t k = a->x; k-- > 0 && a->x - k <= FAR;) {
		if (a->mate[k] != ACC_NOMATE || (a->chain >> (a->x - k - 1) & 1) == 0 ||
			a->c[k].family != acc_hash(mul, sizeof mul - 1))
			continue;
		part = &s->j->a->op[a->c[k].op];
		p = only_number(a->ix, part, p, &several);
	}
	struct acc_align_item *q = only_number(s->j->b, w, NULL, &several);
	if (p == NULL || q == NULL || several)
		return;
	acc_mate_items(s->j, (uint32_t)(p - s->j->a->item), (uint32_t)(q - s->j->b->item));
	part->how = w->how;
	part->sure = w->sure;
}

/* Give up what was paired of op call x of a. */
static void
part(struct seq *s, const struct acc_align_call *x)
{
	for (uint32_t i = x->first; i < x->first + x->n; i++) {
		struct acc_align_item *it = &s->j->a->item[i];
		if (it->mate != ACC_NOMATE)
			s->j->b->item[it->mate].mate = ACC_NOMATE;
		it->mate = ACC_NOMATE;
	}
}

bool
acc_seq_value_items(struct seq *s, uint32_t x, uint32_t y)
{
	const struct call *c = &s->a[x], *d = &s->b[y];
	struct half a = {s->j->a, s->a, s->ma, x, 0}, b = {s->j->b, s->b, s->mb, y, 0};
	struct ends p = {.n = 0}, q = {.n = 0};
	find_chain(&a);
	find_chain(&b);
	add_outputs(&p, &a, x);
	add_outputs(&q, &b, y);
	bool known = mate_ends(s, &p, &q);
	/* What a kernel gives beside its result, a part of the other side may give. */
	if (p.n != q.n) {
		add_parts(&p, &a, add_outputs);
		add_parts(&q, &b, add_outputs);
		mate_ends(s, &p, &q);
	}
	p.n = q.n = 0;
	add_inputs(&p, &a, x);
	add_inputs(&q, &b, y);
	add_parts(&p, &a, add_inputs);
	add_parts(&q, &b, add_inputs);
	known |= mate_ends(s, &p, &q);
	if (!known && s->how[x] != SEQ_RULE && (c->liked & d->liked) != 0) {
		part(s, &s->j->a->op[c->op]);
		return false;
	}
	if (c->name == d->name || c->family == d->family)
		mate_args(s, &s->j->a->op[c->op], &s->j->b->op[d->op]);
	mate_slope(s, &a, d);
	return true;
}
