/* Which op call a record belongs to, and what that call is. */
#include "judge/case.h"
#include "judge/item.h"
#include "judge/picked.h"

/* What is asked of an operator's name at each call of it, once for all. */
struct acc_op_known {
	const struct acc_op_info *info; /* of a module NULL */
	enum acc_op_class cls;
	enum acc_op_sums sums;
	enum acc_op_response response;
	unsigned steps;
	double slope;
	bool module, ranks, talks, hands, writes, partly, state, may_fill;
};

/* Where and in which op call a record stands. */
struct origin {
	struct acc_str key[2];
	int64_t step, rank, seq;
	bool by_proc, passed, backward, grad;
	struct acc_str op, pos;
	uint64_t op_id, twin;
	const struct acc_op_known *known; /* of op */
};

static bool
has_state(struct acc_str op)
{
	const struct acc_str name = acc_op_name(op);
	return acc_str_is(name, "batch_norm") || acc_str_is(name, "instance_norm");
}

/* As long-lived as the case; NULL when memory runs out. */
static const struct acc_op_known *
known(struct acc_case *c, struct acc_str op, struct acc_err *e)
{
	const uint64_t id = acc_hash(op.p, op.n);
	const uint32_t at = acc_ids_get(&c->ops, id);
	if (at != ACC_NOID)
		return c->op[at];
	struct acc_op_known *k = acc_alloc(&c->mem, sizeof *k);
	if (k == NULL || !ACC_ROOM(c->op, c->op_cap, (size_t)c->ops.n + 1, e) ||
		acc_ids_put(&c->ops, id, (uint32_t)c->ops.n, false, e) < 0) {
		acc_nomem(e);
		return NULL;
	}
	const bool module = acc_op_is_module(op);
	*k = (struct acc_op_known){.info = module ? NULL : acc_op_info_of(op),
		.cls = acc_op_class(op),
		.sums = acc_op_sums(op),
		.response = acc_op_response(op),
		.steps = acc_op_steps(op),
		.slope = acc_op_slope(op),
		.module = acc_str_starts(op, "Module."),
		.ranks = acc_op_ranks(op),
		.talks = acc_op_talks(op),
		.hands = acc_op_hands(op),
		.writes = acc_op_in_place(op),
		.partly = acc_op_writes_partly(op),
		.state = has_state(op),
		.may_fill = acc_op_may_fill(op)};
	c->op[c->ops.n - 1] = k;
	return k;
}

/* The device's fields first; those of the bench where the device has none. */
static int64_t
either(const struct acc_picked *s, int first, enum picked_side key)
{
	int64_t v = acc_picked_int(s->side[first][key], INT64_MIN);
	return v != INT64_MIN ? v : acc_picked_int(s->side[ACC_B][key], v);
}

static void
locate(struct origin *p, const struct acc_picked *s, uint8_t sides)
{
	const int first = !s->is_pair || (sides & 1) ? ACC_A : ACC_B;
	const struct acc_val *const *v = s->side[first];
	*p = (struct origin){.key = {{"", 0}, {"", 0}}};
	if (sides & 1)
		p->key[ACC_A] = acc_picked_text(v[KEY]);
	if (sides & 2)
		p->key[ACC_B] = acc_picked_text(s->side[ACC_B][KEY]);
	p->step = either(s, first, STEP);
	p->rank = either(s, first, RANK);
	p->seq = either(s, first, SEQ);
	if (p->rank == INT64_MIN) {
		p->rank = either(s, first, PROC);
		p->by_proc = p->rank != INT64_MIN;
	}
	struct acc_str pass = acc_picked_text(v[PASS]);
	p->passed = pass.n > 0;
	p->backward = acc_str_is(pass, "backward");
	p->grad = acc_str_is(pass, "grad");
	p->op = acc_picked_text(v[OP]);
	p->pos = acc_picked_text(v[POS]);
	struct acc_str op = p->op.n > 0 ? p->op : p->key[sides & 1 ? ACC_A : ACC_B];
	p->op_id = acc_hash(op.p, op.n);
	/* By the bench's number where it has one: a side that computes a part again numbers the
	 * backward calls by those of the second time, which only it has. */
	const bool bench = first == ACC_A && (sides & 2);
	const struct acc_val *const *w = s->side[bench ? ACC_B : first];
	struct acc_str name = acc_picked_text(w[OP]);
	uint64_t id[3] = {name.n > 0 ? acc_hash(name.p, name.n) : p->op_id,
		(uint64_t)acc_picked_int(w[CALL], -1), (uint64_t)(sides == 1 && s->is_pair)};
	p->twin = acc_hash(id, sizeof id);
}

/* Of a side that tells neither steps nor ranks, before the first pair. */
static bool
is_nowhere(const struct acc_call *k)
{
	return k->step == INT64_MIN && k->rank == INT64_MIN;
}

/* Does this record continue the last op call? A record of one side belongs to the call whose
 * key on that side it has. */
static bool
continues(const struct acc_call *k, const struct origin *p, uint8_t sides)
{
	bool has[2] = {p->key[ACC_A].n > 0, p->key[ACC_B].n > 0};
	if (!k->keyed || (!has[ACC_A] && !has[ACC_B]))
		return false;
	if ((sides & 1) && !is_nowhere(k) && (p->step != k->step || p->rank != k->rank))
		return false;
	/* Of a fused call of the device, parts stand with several calls of the bench. */
	if (has[ACC_A] && k->key[ACC_A] != NULL)
		return acc_str_is(p->key[ACC_A], k->key[ACC_A]);
	for (int s = 0; s < 2; s++)
		if (has[s] && k->key[s] != NULL && !acc_str_is(p->key[s], k->key[s]))
			return false;
	return (has[ACC_A] && k->key[ACC_A] != NULL) || (has[ACC_B] && k->key[ACC_B] != NULL);
}

static int
name_call(struct acc_case *c, struct acc_call *k, const struct origin *p, struct acc_err *e)
{
	for (int s = 0; s < 2; s++) {
		struct acc_str key = p->key[s];
		if (key.n == 0 || k->key[s] != NULL)
			continue;
		k->key[s] = acc_arena_copy(&c->mem, key.p, key.n);
		if (k->key[s] == NULL)
			return acc_nomem(e);
	}
	if (k->key[ACC_A] != NULL || k->key[ACC_B] != NULL) {
		k->keyed = true;
		return 0;
	}
	/* No op call: the record alone, under its name. */
	struct acc_str name = acc_picked_text(c->picked->own[NAME]);
	const struct acc_item *it = &c->item[c->nitem - 1];
	for (int s = 0; s < 2; s++)
		if (it->sides & 1 << s) {
			k->key[s] = acc_arena_copy(&c->mem, name.p, name.n);
			if (k->key[s] == NULL)
				return acc_nomem(e);
		}
	return 0;
}

/* Running mean and variance, which the operator itself has changed in an earlier call. */
static bool
is_state(const struct origin *p)
{
	return p->known->state && (acc_str_is(p->pos, "1") || acc_str_is(p->pos, "2"));
}

/* A weight comes from no op: it is the same on both sides, or it is news. */
static bool
is_weight(const struct acc_item *it, const struct origin *p)
{
	if (it->io == ACC_IO_PARAM)
		return true;
	if (p->backward || p->grad || it->kind != ACC_ITEM_TENSOR)
		return false;
	unsigned pos = p->pos.n > 0 && p->pos.p[0] >= '0' && p->pos.p[0] <= '9'
			       ? (unsigned)(p->pos.p[0] - '0')
			       : 0;
	/* Of two digits: the tenth and later ones. */
	if (p->pos.n > 1 && p->pos.p[1] >= '0' && p->pos.p[1] <= '9')
		pos = 10;
	bool second = (it->io == ACC_IO_IN && pos > 0) ||
		      (it->io == ACC_IO_KW &&
			      (acc_str_is(p->pos, "weight") || acc_str_is(p->pos, "bias")));
	const struct acc_op_info *o = !second || is_state(p) ? NULL : p->known->info;
	return o != NULL && (o->flags & ACC_OP_WEIGHTS) != 0 &&
	       (o->cls != ACC_OP_ATTEND || it->io == ACC_IO_KW || pos > 2);
}

/* A kernel of MindSpore takes what it is given; which of that are weights, the function of the other side says. */
static int
weight_of_kernel(struct acc_case *c, struct acc_item *it, const struct origin *p, struct acc_err *e)
{
	struct origin bench = *p;
	if (it->weight || it->sides != 3 || p->op.n == 0 || memchr(p->op.p, '.', p->op.n) != NULL)
		return 0;
	bench.op = acc_picked_text(c->picked->side[ACC_B][OP]);
	bench.pos = acc_picked_text(c->picked->side[ACC_B][POS]);
	bench.known = known(c, bench.op, e);
	it->weight = bench.known != NULL && is_weight(it, &bench);
	return bench.known == NULL ? ACC_ENOMEM : 0;
}

/* Do both sides call the same operator? */
static bool
same_op(const struct acc_picked *s)
{
	return acc_op_same(acc_picked_text(s->side[ACC_A][OP]),
		acc_picked_text(s->side[ACC_B][OP]));
}

static bool
is_guessed(const struct acc_picked *s)
{
	double sure = 1;
	acc_as_f64(s->own[SURE], &sure);
	return sure < 1;
}

/* Is what stands for an op call on this side no more than the name of a tensor? */
static bool
is_named(const struct acc_picked *s, int side)
{
	const struct acc_str op = acc_picked_text(s->side[side][OP]);
	return op.n > 0 && acc_str_eq(op, acc_picked_text(s->side[side][KEY]));
}

/* How accalign pairs what an engine gives by the names of tensors with the outputs of calls. */
static bool
is_array(const struct acc_item *it, const struct acc_picked *s)
{
	const struct acc_str how = acc_picked_text(s->own[HOW]);
	return it->sides == 3 && is_guessed(s) && (is_named(s, ACC_A) || is_named(s, ACC_B)) &&
	       (acc_str_is(how, "name") || acc_str_is(how, "content") || acc_str_is(how, "place"));
}

/* Do the two op calls do the same, or only result in the same? */
static bool
is_loose(const struct acc_item *it, const struct acc_picked *s)
{
	if (it->sides != 3)
		return false;
	if (acc_str_is(acc_picked_text(s->own[HOW]), "fused"))
		return true;
	return is_guessed(s) && (!same_op(s) || is_array(it, s));
}

/* Is it the argument `inplace`, or, where it has no name, may it be? */
static bool
is_told_inplace(const struct acc_picked *s, const struct origin *p, uint8_t sides)
{
	bool told = false;
	acc_as_bool(s->side[sides & 1 ? ACC_A : ACC_B][VALUE], &told);
	return told && (acc_str_is(p->pos, "inplace") || acc_op_may_write(p->op));
}

/* Is it the rank that a sum goes to, and another one? Here is then what the backend leaves (behaviour
 * torch-gloo-reduce-partials). */
static bool
goes_elsewhere(const struct acc_picked *s, const struct origin *p, uint8_t sides)
{
	const int64_t to = acc_picked_int(s->side[sides & 1 ? ACC_A : ACC_B][VALUE], p->rank);
	return p->rank != INT64_MIN && to != p->rank &&
	       (acc_str_is(p->pos, "1") || acc_str_is(p->pos, "dst")) &&
	       acc_str_is(p->op, "Distributed.reduce");
}

int
acc_into_call(struct acc_case *c, struct acc_item *it, struct acc_err *e)
{
	struct origin p;
	locate(&p, c->picked, it->sides);
	p.known = known(c, p.op, e);
	if (p.known == NULL)
		return ACC_ENOMEM;
	c->passed += p.passed;
	struct acc_call *k = c->ncall > 0 ? &c->call[c->ncall - 1] : NULL;
	/* One recorded by hand has one step and one rank, which its pairs have from the bench. */
	if (k != NULL && it->sides == 1 && p.step == INT64_MIN && p.rank == INT64_MIN) {
		p.step = k->step;
		p.rank = k->rank;
	}
	if (k == NULL || !continues(k, &p, it->sides)) {
		uint32_t segment = k == NULL ? 0 : k->segment;
		int64_t step = k == NULL ? p.step : k->step, rank = k == NULL ? p.rank : k->rank;
		bool moved = it->sides != 2 && (p.step != step || p.rank != rank) &&
			     !(k != NULL && is_nowhere(k));
		k = acc_case_call(c, e);
		if (k == NULL)
			return ACC_ENOMEM;
		k->segment = segment + moved;
		c->settles |= moved;
		/* What only the bench has stands at its place among the device's. */
		k->step = it->sides == 2 ? step : p.step;
		k->rank = it->sides == 2 ? rank : p.rank;
		k->by_proc = p.by_proc;
		k->seq = p.seq;
		k->first = it->line;
		k->backward = p.backward;
		k->grad = p.grad;
		k->op_id = p.op_id;
		k->twin = p.twin;
		k->module = p.known->module;
		k->cls = (uint8_t)p.known->cls;
		k->sums = (uint8_t)p.known->sums;
		k->steps = (uint8_t)p.known->steps;
		k->slope = (float)p.known->slope;
		k->ranks = p.known->ranks;
		k->talks = p.known->talks;
		k->hands = p.known->hands;
		k->writes = p.known->writes;
		k->partly = p.known->partly;
		k->response = (uint8_t)p.known->response;
	}
	k->inplace |= it->kind == ACC_ITEM_ARG && is_told_inplace(c->picked, &p, it->sides);
	k->elsewhere |= it->kind == ACC_ITEM_ARG && goes_elsewhere(c->picked, &p, it->sides);
	it->weight = is_weight(it, &p);
	if (weight_of_kernel(c, it, &p, e) < 0)
		return ACC_ENOMEM;
	/* As torch's operators take it, any of them: what stood there before is nothing to it. */
	bool out = it->io == ACC_IO_KW &&
		   (acc_str_is(p.pos, "out") || acc_str_starts(p.pos, "out."));
	if (it->kind == ACC_ITEM_TENSOR &&
		(it->io != ACC_IO_OUT ? out || (p.known->may_fill && acc_op_fills(p.op, p.pos))
				      : k->elsewhere || (p.known->may_fill &&
								(acc_op_is_early(p.op) ||
									acc_op_is_filled_later(p.op,
										p.pos)))))
		it->kind = ACC_ITEM_BUFFER;
	it->array = is_array(it, c->picked);
	k->array |= it->array;
	it->loose = is_loose(it, c->picked);
	it->state = is_state(&p) && !acc_is_output(it) && it->kind == ACC_ITEM_TENSOR;
	it->guessed = is_guessed(c->picked);
	/* Numbers in the wrong places: that their values are right does not help. */
	if (it->permuted && p.passed && !it->weight && same_op(c->picked)) {
		it->rms = it->rms > 1 ? it->rms : 1;
		it->max = it->max > 1 ? it->max : 1;
	}
	k->last = it->line;
	if (acc_is_input(it))
		k->inputs = it->line + 1;
	k->items++;
	it->call = c->ncall - 1;
	if (it->sides & 1)
		c->tensors += it->kind == ACC_ITEM_TENSOR && it->sides == 1;
	return name_call(c, k, &p, e);
}
