/* The two sequences of forward op calls are aligned by all that is known of each call; backward
 * calls follow them; what stands outside of the sequence pairs by name. */
#include "align/seq.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t
position(const struct acc_align_item *it)
{
	return it->position;
}

static uint64_t
call_id(const struct acc_align_call *op)
{
	return acc_hash_pair(op->op_text, (uint64_t)op->call);
}

/* The next tensor from *i on that has no partner, and goes into the call. */
static bool
next_tensor(const struct acc_index *ix, const struct acc_align_call *op, uint32_t *i)
{
	while (*i < op->first + op->n && (!ix->item[*i].tensor || ix->item[*i].io != ACC_IO_IN ||
						 ix->item[*i].mate != ACC_NOMATE))
		++*i;
	return *i < op->first + op->n;
}

/* Operators of other names may have other arguments in front, as einsum has its formula: then tensors belong
 * together in their order. */
static void
shift_items(struct acc_joined *j, const struct acc_align_call *a, const struct acc_align_call *b)
{
	bool any = false;
	for (uint32_t i = a->first; i < a->first + a->n; i++) {
		struct acc_align_item *x = &j->a->item[i];
		if (x->mate == ACC_NOMATE || x->io != ACC_IO_IN ||
			x->tensor == j->b->item[x->mate].tensor)
			continue;
		any = true;
	}
	for (uint32_t i = a->first; i < a->first + a->n && any; i++) {
		struct acc_align_item *x = &j->a->item[i];
		if (x->mate == ACC_NOMATE || x->io != ACC_IO_IN)
			continue;
		j->b->item[x->mate].mate = ACC_NOMATE;
		x->mate = ACC_NOMATE;
	}
	uint32_t p = a->first, q = b->first;
	while (any && next_tensor(j->a, a, &p) && next_tensor(j->b, b, &q))
		acc_mate_items(j, p++, q++);
}

bool
acc_seq_is_inner(const struct acc_align_call *op)
{
	static const char *const names[] = {"cross_entropy", "l1_loss", "kl_div", "normalize",
		"cosine_similarity", "triplet_margin_loss", "cosine_embedding_loss",
		"margin_ranking_loss", "hinge_embedding_loss", "poisson_nll_loss",
		"gaussian_nll_loss", "instance_norm", "softmin", "softsign", "tanhshrink",
		"local_response_norm"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char text[64];
		const int n = snprintf(text, sizeof text, "Functional.%s", names[i]);
		if (op->name == acc_hash(text, (size_t)n))
			return true;
	}
	return false;
}

/* The gradients of a call's inputs, in their order; how many: 0 where they are more. */
enum { GRADIENTS = 8 };
static uint32_t
gradients(const struct acc_index *ix, const struct acc_align_call *op, uint32_t *out)
{
	uint32_t n = 0;
	for (uint32_t i = op->first; i < op->first + op->n; i++)
		if (ix->item[i].tensor && ix->item[i].has_shape && ix->item[i].io == ACC_IO_OUT) {
			if (n == GRADIENTS)
				return 0;
			out[n++] = i;
		}
	return n;
}

enum { ENOUGH = 30 };

/* Where the bench has fewer, as of a loss whose target has none, and the first and the last of the device's have one shape:
 * unless values tell, nobody knows which is which, and none is the bench's. */
static void
part_doubtful(struct acc_joined *j, const uint32_t *p, uint32_t n, const uint32_t *q, uint32_t m)
{
	int straight = 0, turned = 0;
	for (uint32_t i = 0; i < m; i++) {
		const struct acc_align_item *v = &j->a->item[p[i]], *w = &j->b->item[q[i]],
					    *u = &j->a->item[p[n - 1 - i]];
		if (v->shape != w->shape || u->shape != w->shape)
			return;
		straight += acc_seq_value_points(v->like, w->like, v->liked & w->liked);
		turned += acc_seq_value_points(u->like, w->like, u->liked & w->liked);
	}
	if (straight >= turned + ENOUGH)
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct acc_align_item *it = &j->a->item[p[i]];
		if (it->mate != ACC_NOMATE)
			j->b->item[it->mate].mate = ACC_NOMATE;
		it->mate = ACC_NOMATE;
	}
	for (uint32_t i = 0; i < m && turned >= straight + ENOUGH; i++)
		acc_mate_items(j, p[n - 1 - i], q[i]);
}

/* Between frameworks: msprobe 26.2 writes those of a primitive of MindSpore from the last to the first. Where shapes fit
 * either way, values tell. */
static void
turn_gradients(struct acc_joined *j, const struct acc_align_call *x, const struct acc_align_call *y)
{
	uint32_t p[GRADIENTS], q[GRADIENTS];
	const uint32_t n = gradients(j->a, x, p), m = gradients(j->b, y, q);
	int straight = 0, turned = 0;
	bool fits = true, other = true;
	if (n > 1 && m > 0 && m < n)
		part_doubtful(j, p, n, q, m);
	if (n < 2 || m < n) /* the bench's may have a bias, too */
		return;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_item *v = &j->a->item[p[i]], *w = &j->b->item[q[i]],
					    *u = &j->b->item[q[n - 1 - i]];
		fits &= v->shape == w->shape;
		other &= v->shape == u->shape;
		straight += acc_seq_value_points(v->like, w->like, v->liked & w->liked);
		turned += acc_seq_value_points(v->like, u->like, v->liked & u->liked);
	}
	if (!other || (fits && turned < straight + ENOUGH))
		return;
	for (uint32_t i = 0; i < n; i++)
		acc_mate_items(j, p[i], q[n - 1 - i]);
}

/* Nothing that comes out of these is the same thing. */
static void
part_gradients(struct acc_joined *j, const struct acc_align_call *x)
{
	for (uint32_t i = x->first; i < x->first + x->n; i++) {
		struct acc_align_item *it = &j->a->item[i];
		if (it->mate == ACC_NOMATE || it->io != ACC_IO_OUT)
			continue;
		j->b->item[it->mate].mate = ACC_NOMATE;
		it->mate = ACC_NOMATE;
	}
}

int
acc_seq_mate_items(struct acc_joined *j, uint32_t a, uint32_t b, struct acc_err *e)
{
	const struct acc_align_call *x = &j->a->op[a], *y = &j->b->op[b];
	int rc = acc_mate_by(j, a, b, position, e);
	if (rc >= 0 && x->name != y->name)
		shift_items(j, x, y);
	if (rc >= 0 && j->cross && x->pass == ACC_PASS_BACKWARD) {
		turn_gradients(j, x, y);
		if (acc_seq_is_inner(x) || acc_seq_is_inner(y))
			part_gradients(j, x);
	}
	return rc;
}

static int
mate(struct acc_joined *j, uint32_t a, uint32_t b, const char *how, double sure, struct acc_err *e)
{
	acc_mate_ops(j, a, b, how, sure);
	return acc_seq_mate_items(j, a, b, e);
}

static double
sure(const struct seq *s, uint32_t i)
{
	struct seq other = *s; /* where shapes hang on numbers, they may differ */
	other.loose = true;
	int v = s->how[i] >= SEQ_FUSED_A
			? SEQ_SURE / 2 + acc_seq_value(&s->a[i], &s->b[s->ma[i]])
			: acc_seq_points(s->how[i] == SEQ_SOURCE ? &other : s, i, s->ma[i]);
	return v >= SEQ_CERTAIN ? 1 : v <= 0 ? 0 : (double)v / SEQ_CERTAIN;
}

/* Where one call stands for several, only what comes out of the last of them (and in backward
 * what comes in) is the same in both. */
static void
keep(struct acc_joined *j, uint32_t a, enum acc_io io)
{
	const struct acc_align_call *op = &j->a->op[a];
	for (uint32_t i = op->first; i < op->first + op->n; i++) {
		struct acc_align_item *it = &j->a->item[i];
		if (it->mate == ACC_NOMATE || it->io == io)
			continue;
		j->b->item[it->mate].mate = ACC_NOMATE;
		it->mate = ACC_NOMATE;
	}
}

/* These two were no pair. */
static void
part(struct seq *s, uint32_t x)
{
	struct acc_joined *j = s->j;
	j->a->op[s->a[x].op].mate = j->b->op[s->b[s->ma[x]].op].mate = ACC_NOMATE;
	s->mb[s->ma[x]] = ACC_NOMATE;
	s->ma[x] = ACC_NOMATE;
}

static int
apply(struct seq *s)
{
	static const char *const how[] = {"source", "weights", "sequence", "likeness", "rule",
		"fused", "fused", "fused"};
	int rc = 0;
	for (uint32_t i = 0; i < s->na && rc >= 0; i++) {
		if (s->ma[i] == ACC_NOMATE || s->how[i] == SEQ_PACKED)
			continue;
		const struct call *x = &s->a[i], *y = &s->b[s->ma[i]];
		if (s->values) {
			acc_mate_ops(s->j, x->op, y->op, how[s->how[i]], sure(s, i));
			if (!acc_seq_value_items(s, i, s->ma[i]))
				part(s, i);
			continue;
		}
		rc = mate(s->j, x->op, y->op, how[s->how[i]], sure(s, i), s->e);
		if (rc >= 0 && s->how[i] < SEQ_FUSED_A && acc_seq_swapped(s, i, s->ma[i])) {
			s->a[i].swapped = true;
			acc_seq_swap_items(s->j, x->op, y->op, ACC_IO_IN);
		}
		if (rc >= 0 && s->how[i] >= SEQ_FUSED_A) {
			keep(s->j, x->op, ACC_IO_OUT);
			acc_seq_fused_inputs(s, i, s->ma[i]);
		}
	}
	return rc;
}

/* Tables of calls by operator and number. Of several the first counts. */
static int
put(struct acc_ids *m, const struct acc_align_call *op, uint32_t v, struct acc_err *e)
{
	return acc_ids_put(m, call_id(op), v, false, e);
}

static uint32_t
get(const struct acc_ids *m, const struct acc_align_call *op)
{
	return acc_ids_get(m, call_id(op));
}

static bool
backward(const struct seq *s, const struct acc_align_call *op)
{
	return op->pass == ACC_PASS_BACKWARD && op->module == s->modules;
}

/* Forward and backward calls of both sides, by name. */
struct passes {
	struct acc_ids fwd[2], back[2];
	const struct acc_joined *j;
};

static int
index_passes(const struct seq *s, struct passes *p)
{
	struct acc_joined *j = s->j;
	int rc = 0;
	for (uint32_t i = 0; i < s->na && rc == 0; i++) {
		acc_align_turn(j->al, &j->turns);
		rc = put(&p->fwd[0], &j->a->op[s->a[i].op], i, s->e);
	}
	for (uint32_t i = 0; i < s->nb && rc == 0; i++) {
		acc_align_turn(j->al, &j->turns);
		rc = put(&p->fwd[1], &j->b->op[s->b[i].op], i, s->e);
	}
	for (uint32_t i = 0; i < j->na && rc == 0; i++)
		if (backward(s, &j->a->op[j->aop[i]]))
			rc = put(&p->back[0], &j->a->op[j->aop[i]], j->aop[i], s->e);
	for (uint32_t i = 0; i < j->nb && rc == 0; i++)
		if (backward(s, &j->b->op[j->bop[i]]))
			rc = put(&p->back[1], &j->b->op[j->bop[i]], j->bop[i], s->e);
	p->j = j;
	return rc;
}

static uint32_t
backward_of(void *arg, bool b, uint32_t op)
{
	const struct passes *p = arg;
	return get(&p->back[b], &(b ? p->j->b : p->j->a)->op[op]);
}

/* A backward call belongs to the forward call of its name and number. */
static int
follow(struct seq *s, const struct passes *p)
{
	struct acc_joined *j = s->j;
	int rc = 0;
	for (uint32_t i = 0; i < j->na && rc >= 0; i++) {
		const struct acc_align_call *op = &j->a->op[j->aop[i]];
		uint32_t f = backward(s, op) && op->mate == ACC_NOMATE ? get(&p->fwd[0], op)
								       : ACC_NOMATE;
		if (f == ACC_NOMATE || s->ma[f] == ACC_NOMATE || s->how[f] == SEQ_PACKED)
			continue;
		const struct acc_align_call *fa = &j->a->op[s->a[f].op];
		uint32_t b = get(&p->back[1], &j->b->op[s->b[s->ma[f]].op]);
		if (b != ACC_NOMATE && j->b->op[b].mate == ACC_NOMATE)
			rc = mate(j, j->aop[i], b, fa->how, fa->sure, s->e);
		if (rc >= 0 && b != ACC_NOMATE && s->a[f].swapped)
			acc_seq_swap_items(j, j->aop[i], b, ACC_IO_OUT);
		if (rc >= 0 && s->how[f] >= SEQ_FUSED_A)
			keep(j, j->aop[i], ACC_IO_IN);
	}
	return rc < 0 ? rc : 0;
}

/* Modules, parameters, and backward calls of which no forward call was recorded. */
static uint32_t
outside(const struct seq *s, const struct acc_index *ix, const uint32_t *op, uint32_t n,
	const struct acc_ids *fwd, uint32_t *out)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		acc_align_turn(s->j->al, &s->j->turns);
		bool inside = !o->module &&
			      (o->forward || (backward(s, o) && get(fwd, o) != ACC_NOMATE));
		if (o->mate == ACC_NOMATE && !inside)
			out[k++] = op[i];
	}
	return k;
}

static uint32_t
paths(const struct acc_index *ix, const uint32_t *op, uint32_t n, uint32_t *out, uint64_t *id)
{
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct acc_align_call *o = &ix->op[op[i]];
		if (o->mate != ACC_NOMATE || (o->module && o->pass != ACC_PASS_GRAD) ||
			acc_op_is_loose(o))
			continue;
		const uint64_t parts[3] = {o->scope, o->pass_name, (uint64_t)o->call};
		id[k] = acc_hash(parts, sizeof parts);
		out[k++] = op[i];
	}
	return k;
}

/* What is left of parameters, without the names of wrappers such as DDP. */
static int
by_path(struct acc_joined *j, struct acc_err *e)
{
	struct acc_joined k = *j;
	uint64_t *id = malloc(((size_t)j->na + j->nb + 1) * sizeof *id);
	uint32_t *op = malloc(((size_t)j->na + j->nb + 1) * sizeof *op);
	int rc = id == NULL || op == NULL ? acc_nomem(e) : 0;
	if (rc == 0) {
		k.na = paths(j->a, j->aop, j->na, op, id);
		k.nb = paths(j->b, j->bop, j->nb, op + k.na, id + k.na);
		k.aop = op;
		k.bop = op + k.na;
		rc = acc_mate_calls(&k, id, id + k.na, position, "path", 0.9, e);
	}
	free(id);
	free(op);
	return rc;
}

static int
by_name(struct seq *s, const struct passes *p)
{
	struct acc_joined k = *s->j;
	uint32_t *op = malloc(((size_t)k.na + k.nb + 1) * sizeof *op);
	if (op == NULL)
		return acc_nomem(s->e);
	k.aop = op;
	k.na = outside(s, k.a, s->j->aop, s->j->na, &p->fwd[0], op);
	k.bop = op + k.na;
	k.nb = outside(s, k.b, s->j->bop, s->j->nb, &p->fwd[1], op + k.na);
	int rc = acc_aligner_name.pair(&k, s->e);
	if (rc >= 0)
		rc = by_path(&k, s->e);
	free(op);
	return rc;
}

/* What follows from the pairs of forward calls, and what has nothing to do with them. */
static int
others(struct seq *s)
{
	struct passes p = {0};
	int rc = index_passes(s, &p);
	if (rc == 0 && s->values)
		acc_seq_split(s);
	if (rc == 0 && !s->values)
		rc = follow(s, &p);
	else if (rc == 0)
		rc = acc_seq_back(s, &p.fwd[!s->j->b->kernels]);
	if (rc == 0 && !s->values)
		rc = acc_seq_again(s, backward_of, &p);
	if (rc == 0 && !s->modules)
		rc = acc_seq_unpack(s, backward_of, &p);
	if (rc == 0 && !s->modules)
		rc = by_name(s, &p);
	acc_ids_release(&p.fwd[0]);
	acc_ids_release(&p.fwd[1]);
	acc_ids_release(&p.back[0]);
	acc_ids_release(&p.back[1]);
	return rc;
}

/* Each round knows the pairs of the one before, so it sees where more inputs come from. */
static int
rounds(struct seq *s)
{
	enum { ROUNDS = 4 };
	int rc = acc_seq_between(s);
	if (rc >= 0)
		rc = acc_seq_uncross(s);
	s->flow = true;
	for (int i = 0; i < ROUNDS && rc >= 0; i++) {
		uint32_t before = s->npair;
		rc = acc_seq_learn(s);
		if (rc >= 0)
			rc = acc_seq_between(s);
		if (s->npair == before)
			break;
	}
	return rc;
}

/* A primitive that only sums up products is no convolution or linear layer that takes a bias: what adds the bias to its
 * result ends that. */
static void
give_biases(struct seq *s)
{
	enum { NEXT = 4 };
	for (uint32_t i = 0; i < s->na; i++) {
		const uint32_t y = s->ma[i];
		if (y == ACC_NOMATE || s->how[i] == SEQ_RULE || s->how[i] == SEQ_PACKED ||
			(!s->a[i].product && s->a[i].family != s->b[y].family) ||
			s->b[y].takes <= s->a[i].takes)
			continue;
		for (uint32_t k = i + 1; k < s->na && k <= i + NEXT; k++) {
			const struct call *c = &s->a[k];
			if (s->ma[k] != ACC_NOMATE || c->from[0] == ACC_NOMATE ||
				c->from[0] / SEQ_OUTS != i || c->out != s->a[i].out ||
				acc_op_ends_in(s->b[y].family, c->family) != 1)
				continue;
			s->ma[i] = ACC_NOMATE;
			acc_seq_mate(s, k, y, SEQ_FUSED_B);
			break;
		}
	}
}

static int
align(struct acc_joined *j, bool modules, struct acc_err *e)
{
	struct seq s = {.j = j, .modules = modules, .e = e};
	s.values = j->cross && !modules && j->a->kernels != j->b->kernels;
	int rc = acc_seq_calls(&s);
	if (rc >= 0)
		rc = acc_seq_anchors(&s);
	if (rc >= 0)
		rc = rounds(&s);
	if (rc >= 0)
		acc_seq_reject(&s);
	if (rc >= 0)
		rc = acc_seq_left(&s);
	if (rc >= 0)
		rc = acc_seq_uncross(&s);
	if (rc >= 0 && !modules)
		rc = acc_seq_packed(&s);
	s.loose = true;
	if (rc >= 0)
		rc = acc_seq_between(&s);
	if (rc >= 0)
		acc_seq_reject(&s);
	if (rc >= 0)
		rc = acc_seq_same(&s);
	if (rc >= 0)
		acc_seq_onward(&s);
	if (rc >= 0 && s.values) {
		acc_seq_wholes(&s);
		acc_seq_unreduced(&s);
	} else if (rc >= 0 && !modules) {
		rc = acc_seq_fused(&s);
		if (rc >= 0 && j->cross)
			give_biases(&s);
	}
	if (rc >= 0)
		acc_seq_distrust(&s);
	if (rc >= 0 && !modules)
		acc_seq_steps(&s);
	if (rc >= 0)
		rc = apply(&s);
	if (rc >= 0)
		rc = others(&s);
	free(s.a);
	free(s.b);
	free(s.ma);
	free(s.mb);
	free(s.how);
	free(s.near);
	free(s.pack);
	acc_ids_release(&s.unshaped);
	return rc;
}

/* Modules pair by name where they can; then those are left that are called otherwise. */
static int
pair(struct acc_joined *j, struct acc_err *e)
{
	int rc = align(j, false, e);
	return rc < 0 ? rc : align(j, true, e);
}

const struct acc_aligner acc_aligner_sequence = {
	.name = "sequence",
	.help = "the best alignment of the two sequences of calls, whatever their names",
	.pair = pair,
	.loose = true,
};
