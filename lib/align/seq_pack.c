/* One call whose result is packed (q, k and v from one product) against several calls that take the
 * same and make the parts: what comes out of it belongs to what comes out of all of them, and so do
 * its weights; in backward the incoming gradients, and those of the weights. */
#include "align/seq.h"

enum { REACH = 64 };

/* Two sides: of the packed call, and of the parts. */
struct pack {
	struct seq *s;
	bool b;
	const struct acc_index *p, *q;
	const uint32_t *part;
	uint32_t n;
};

static bool
is_place(const struct acc_align_item *it, enum acc_io io, uint64_t position)
{
	return it->io == io && it->position == position && it->has_shape;
}

static uint32_t
find_item(const struct acc_index *ix, uint32_t op, enum acc_io io, uint64_t position)
{
	const struct acc_align_call *o = &ix->op[op];
	for (uint32_t i = o->first; i < o->first + o->n; i++)
		if (is_place(&ix->item[i], io, position))
			return i;
	return ACC_NOMATE;
}

/* Elements of the first tensor that comes out of a call; 0: none. */
static uint64_t
size(const struct acc_index *ix, uint32_t op)
{
	const struct acc_align_call *o = &ix->op[op];
	for (uint32_t i = o->first; i < o->first + o->n; i++)
		if (ix->item[i].io == ACC_IO_OUT && ix->item[i].has_shape)
			return ix->item[i].count;
	return 0;
}

static int
mate(const struct pack *k, uint32_t packed, uint32_t part, uint32_t place)
{
	struct acc_joined *j = k->s->j;
	uint32_t a = k->b ? part : packed, b = k->b ? packed : part;
	if (!k->b && place > 0 && acc_share(j->scratch, a, b, place, k->s->e) < 0)
		return ACC_ENOMEM;
	acc_mate_items(j, a, b);
	j->a->item[a].how = j->b->item[b].how = ACC_HOW_FUSED;
	return 0;
}

/* Mate an item of the packed op call with those of the same place of the parts, if these add up to
 * it; what all of them take, with that of the first. */
static int
mate_item(const struct pack *k, uint32_t i, bool forward)
{
	const struct acc_align_item *it = &k->p->item[i];
	uint32_t other[SEQ_PARTS];
	uint64_t sum = 0;
	for (uint32_t t = 0; t < k->n; t++) {
		other[t] = find_item(k->q, k->part[t], it->io, it->position);
		if (other[t] == ACC_NOMATE || k->q->item[other[t]].mate != ACC_NOMATE)
			return 0;
		sum += k->q->item[other[t]].count;
	}
	if (it->mate != ACC_NOMATE)
		return 0;
	if (sum != it->count)
		return forward && it->io == ACC_IO_IN && k->q->item[other[0]].shape == it->shape
			       ? mate(k, i, other[0], 0)
			       : 0;
	int rc = 0;
	for (uint32_t t = k->n; t-- > 0 && rc == 0;)
		rc = mate(k, i, other[t], t);
	return rc;
}

/* All of an op call, forward or backward. */
static int
mate_all(const struct pack *k, uint32_t op, bool forward)
{
	const struct acc_align_call *o = &k->p->op[op];
	int rc = 0;
	for (uint32_t i = o->first; i < o->first + o->n && rc == 0; i++)
		if (k->p->item[i].has_shape)
			rc = mate_item(k, i, forward);
	if (rc == 0 && o->mate == ACC_NOMATE && k->q->op[k->part[0]].mate == ACC_NOMATE)
		acc_mate_ops(k->s->j, k->b ? k->part[0] : op, k->b ? op : k->part[0], "fused",
			acc_item_hows[ACC_HOW_FUSED].sure);
	return rc;
}

int
acc_seq_unpack(struct seq *s, acc_seq_back_fn *back, void *arg)
{
	int rc = 0;
	for (uint32_t i = 0; i < s->npack && rc == 0; i++) {
		const struct seq_pack *x = &s->pack[i];
		uint32_t part[SEQ_PARTS], op = back(arg, x->b, x->op);
		struct pack k = {.s = s,
			.b = x->b,
			.p = x->b ? s->j->b : s->j->a,
			.q = x->b ? s->j->a : s->j->b,
			.part = x->part,
			.n = x->n};
		bool all = op != ACC_NOMATE;
		rc = mate_all(&k, x->op, true);
		for (uint32_t t = 0; t < x->n; t++)
			all = (part[t] = back(arg, !x->b, x->part[t])) != ACC_NOMATE && all;
		k.part = part;
		if (rc == 0 && all)
			rc = mate_all(&k, op, false);
	}
	return rc;
}

/* --- finding them --- */

/* Does call y of q take what call x of p takes? */
static bool
same_source(const struct seq *s, bool swapped, const struct call *x, const struct call *y)
{
	return swapped ? acc_seq_origin(s, y->from[0], x->from[0]) == 1
		       : acc_seq_origin(s, x->from[0], y->from[0]) == 1;
}

/* The free calls from `from` on that make up packed call x; they are taken then. */
static bool
collect(struct seq *s, struct seq_pack *k, uint32_t x, uint32_t from)
{
	const struct call *p = k->b ? s->b : s->a, *q = k->b ? s->a : s->b;
	uint32_t *mate_of = k->b ? s->ma : s->mb, n = k->b ? s->na : s->nb, call[SEQ_PARTS];
	uint64_t left = size(k->b ? s->j->b : s->j->a, p[x].op);
	k->n = 0;
	k->op = p[x].op;
	for (uint32_t y = from; y < n && y < from + REACH && left > 0; y++) {
		uint64_t m = size(k->b ? s->j->a : s->j->b, q[y].op);
		if (mate_of[y] != ACC_NOMATE || q[y].family != p[x].family || m == 0 || m > left ||
			!same_source(s, k->b, &p[x], &q[y]))
			continue;
		if (k->n == SEQ_PARTS)
			return false;
		call[k->n] = y;
		k->part[k->n++] = q[y].op;
		left -= m;
	}
	if (left > 0 || k->n < 2)
		return false;
	for (uint32_t t = 0; t < k->n; t++) {
		mate_of[call[t]] = x;
		if (k->b)
			s->how[call[t]] = SEQ_PACKED;
	}
	(k->b ? s->mb : s->ma)[x] = call[0];
	if (!k->b)
		s->how[x] = SEQ_PACKED;
	return true;
}

static int
one_side(struct seq *s, bool b)
{
	const struct call *c = b ? s->b : s->a;
	const uint32_t *mate_of = b ? s->mb : s->ma;
	uint32_t n = b ? s->nb : s->na, at = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct seq_pack k = {.b = b};
		if (mate_of[i] != ACC_NOMATE)
			at = mate_of[i] + 1;
		else if (c[i].from[0] != ACC_NOMATE &&
			 collect(s, &k, i, at > REACH / 2 ? at - REACH / 2 : 0)) {
			if (!ACC_ROOM(s->pack, s->pack_cap, (size_t)s->npack + 1, s->e))
				return ACC_ENOMEM;
			s->pack[s->npack++] = k;
		}
	}
	return 0;
}

int
acc_seq_packed(struct seq *s)
{
	int rc = one_side(s, false);
	return rc < 0 ? rc : one_side(s, true);
}
