/* Reading records into op calls. */
#include "acc/judge.h"

#include <math.h>
#include <stdlib.h>

#include "judge/case.h"
#include "judge/picked.h"

struct acc_case *
acc_case_open(const struct acc_judge_opt *opt, struct acc_err *e)
{
	struct acc_case *c = calloc(1, sizeof *c);
	if (c == NULL) {
		acc_nomem(e);
		return NULL;
	}
	c->opt = *opt;
	/* Of one rank and step so much stays in memory, what is known of 50,000 op calls and more. */
	c->items = (struct acc_spill){.dir = opt->tmpdir, .keep = 48 << 20};
	c->calls = (struct acc_spill){.dir = opt->tmpdir, .keep = 8 << 20};
	c->picked = calloc(1, sizeof *c->picked);
	if (c->picked == NULL)
		acc_nomem(e);
	else
		c->spool = acc_spool_open(opt->tmpdir, e);
	if (c->spool == NULL) {
		free(c->picked);
		free(c);
		return NULL;
	}
	return c;
}

void
acc_case_close(struct acc_case *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < acc_njudges; i++)
		if (acc_judges[i]->release != NULL)
			acc_judges[i]->release(c);
	acc_out_free(c->out);
	acc_spool_close(c->spool);
	acc_picked_release(c->picked);
	free(c->picked);
	acc_arena_release(&c->mem);
	acc_ids_release(&c->ranks[ACC_A]);
	acc_ids_release(&c->ranks[ACC_B]);
	acc_spill_release(&c->items);
	acc_spill_release(&c->calls);
	free(c->verdict);
	free(c->finding);
	free(c);
}

/* What is counted here is counted in 32 bits. */
static void *
room(struct acc_spill *s, size_t n, size_t size, struct acc_err *e)
{
	if (n < UINT32_MAX)
		return acc_spill_room(s, n, size, e);
	acc_nomem(e);
	return NULL;
}

void
acc_case_rest(const struct acc_case *c)
{
	acc_spill_rest(&c->items);
	acc_spill_rest(&c->calls);
}

static struct acc_item *
new_item(struct acc_case *c, struct acc_err *e)
{
	void *p = room(&c->items, (size_t)c->nitem + 1, sizeof *c->item, e);
	if (p == NULL)
		return NULL;
	c->item = p;
	c->item[c->nitem] = (struct acc_item){.line = c->nitem, .call = ACC_NOCALL};
	return &c->item[c->nitem++];
}

static struct acc_call *
new_call(struct acc_case *c, struct acc_err *e)
{
	void *p = room(&c->calls, (size_t)c->ncall + 1, sizeof *c->call, e);
	if (p == NULL)
		return NULL;
	c->call = p;
	c->call[c->ncall] = (struct acc_call){0};
	return &c->call[c->ncall++];
}

/* A step or rank ended: what is known of it waits until all are judged. */
static int
settle(struct acc_case *c, struct acc_err *e)
{
	int rc = acc_spill_settle(&c->items, e);
	if (rc == 0)
		rc = acc_spill_settle(&c->calls, e);
	c->item = c->items.p;
	c->call = c->calls.p;
	c->settles = false;
	return rc;
}

/* Where and in which op call a record stands. */
struct origin {
	struct acc_str key[2];
	int64_t step, rank, seq;
	bool by_proc, passed, backward, grad;
	struct acc_str op, pos;
	uint64_t op_id, twin;
};

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
	struct acc_str name = acc_op_name(p->op);
	return (acc_str_is(name, "batch_norm") || acc_str_is(name, "instance_norm")) &&
	       (acc_str_is(p->pos, "1") || acc_str_is(p->pos, "2"));
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
	const struct acc_op_info *o = !second || acc_op_is_module(p->op) || is_state(p)
					      ? NULL
					      : acc_op_info_of(p->op);
	return o != NULL && (o->flags & ACC_OP_WEIGHTS) != 0 &&
	       (o->cls != ACC_OP_ATTEND || it->io == ACC_IO_KW || pos > 2);
}

/* A kernel of MindSpore takes what it is given; which of that are weights, the function of the other side says. */
static bool
is_weight_of_kernel(const struct acc_item *it, const struct origin *p, const struct acc_picked *s)
{
	struct origin bench = *p;
	if (it->sides != 3 || p->op.n == 0 || memchr(p->op.p, '.', p->op.n) != NULL)
		return false;
	bench.op = acc_picked_text(s->side[ACC_B][OP]);
	bench.pos = acc_picked_text(s->side[ACC_B][POS]);
	return is_weight(it, &bench);
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

static int
into_call(struct acc_case *c, struct acc_item *it, struct acc_err *e)
{
	struct origin p;
	locate(&p, c->picked, it->sides);
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
		k = new_call(c, e);
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
		k->module = acc_str_starts(p.op, "Module.");
		k->op_id = p.op_id;
		k->twin = p.twin;
		k->cls = (uint8_t)acc_op_class(p.op);
		k->sums = (uint8_t)acc_op_sums(p.op);
		k->steps = (uint8_t)acc_op_steps(p.op);
		k->slope = (float)acc_op_slope(p.op);
		k->ranks = acc_op_ranks(p.op);
		k->talks = acc_op_talks(p.op);
		k->hands = acc_op_hands(p.op);
		k->writes = acc_op_in_place(p.op);
		k->partly = acc_op_writes_partly(p.op);
		k->response = (uint8_t)acc_op_response(p.op);
	}
	k->inplace |= it->kind == ACC_ITEM_ARG && is_told_inplace(c->picked, &p, it->sides);
	k->elsewhere |= it->kind == ACC_ITEM_ARG && goes_elsewhere(c->picked, &p, it->sides);
	it->weight = is_weight(it, &p) || is_weight_of_kernel(it, &p, c->picked);
	/* As torch's operators take it, any of them: what stood there before is nothing to it. */
	bool out = it->io == ACC_IO_KW &&
		   (acc_str_is(p.pos, "out") || acc_str_starts(p.pos, "out."));
	if (it->kind == ACC_ITEM_TENSOR &&
		(it->io != ACC_IO_OUT ? out || acc_op_fills(p.op, p.pos)
				      : k->elsewhere || acc_op_is_early(p.op) ||
						acc_op_is_filled_later(p.op, p.pos)))
		it->kind = ACC_ITEM_BUFFER;
	it->array = is_array(it, c->picked);
	it->loose = is_loose(it, c->picked);
	it->state = is_state(&p) && !acc_is_output(it) && it->kind == ACC_ITEM_TENSOR;
	it->guessed = is_guessed(c->picked);
	/* Numbers in the wrong places: that their values are right does not help. */
	if (it->permuted && p.passed && !it->weight && same_op(c->picked)) {
		it->rms = it->rms > 1 ? it->rms : 1;
		it->max = it->max > 1 ? it->max : 1;
	}
	k->last = it->line;
	k->items++;
	it->call = c->ncall - 1;
	if (it->sides & 1)
		c->tensors += it->kind == ACC_ITEM_TENSOR && it->sides == 1;
	return name_call(c, k, &p, e);
}

static int
count_rank(struct acc_case *c, int side, struct acc_err *e)
{
	int64_t rank = acc_picked_int(c->picked->side[side][RANK], INT64_MIN);
	if (rank == INT64_MIN || (c->nranks[side] > 0 && rank == c->last_rank[side]))
		return 0;
	c->last_rank[side] = rank;
	uint64_t id = acc_hash(&rank, sizeof rank);
	if (acc_ids_get(&c->ranks[side], id) != ACC_NOID)
		return 0;
	return acc_ids_put(&c->ranks[side], id, c->nranks[side]++, false, e);
}

int
acc_case_add(struct acc_case *c, const struct acc_rec *r, struct acc_err *e)
{
	/* Payload is of no use to who reads only what is bad. */
	if (acc_rec_is(r, "data") && !c->opt.all)
		return 0;
	int rc = c->settles ? settle(c, e) : 0;
	struct acc_item *it = rc < 0 ? NULL : new_item(c, e);
	if (it == NULL)
		return rc < 0 ? rc : ACC_ENOMEM;
	rc = acc_spool_put(c->spool, r, &it->at, e);
	if (rc < 0)
		return rc;
	c->by_names |= acc_rec_is(r, "source") && acc_str_is(acc_get_text(r, "", "order"), "names");
	if (acc_rec_is(r, "source"))
		c->overflow_dump |= acc_str_starts(acc_get_text(r, "", "task"), "overflow");
	if (acc_rec_is(r, "source") || acc_rec_is(r, "stack"))
		it->kind = ACC_ITEM_AUX;
	else if (acc_rec_is(r, "finding")) {
		it->kind = ACC_ITEM_FINDING;
		c->judged_before += acc_is_judged(r);
	} else if (acc_rec_is(r, "pair") || acc_rec_is(r, "tensor") || acc_rec_is(r, "arg")) {
		if (acc_picked_get(c->picked, r) < 0)
			return acc_nomem(e);
		acc_item_measure(it, c->picked);
		acc_noise_get(c->opt.noise, r, it);
		c->pairs += c->picked->is_pair;
		for (int s = 0; s < 2 && rc == 0; s++)
			rc = count_rank(c, s, e);
		for (int s = 0; s < 2; s++) {
			const struct acc_val *const *v = c->picked->side[s];
			if (v[AUDIT_OK] != NULL || v[AUDIT_SKIP] != NULL)
				acc_coverage_add(&c->cover[s], r,
					!c->picked->is_pair ? ""
					: s == ACC_A        ? "a."
							    : "b.");
		}
		c->late |= it->late;
		c->audited += !isnan(it->audit[ACC_A]) || !isnan(it->audit[ACC_B]) || it->doubted;
		c->measured += it->measure != ACC_UNMEASURED && it->kind == ACC_ITEM_TENSOR;
		if (rc == 0)
			rc = into_call(c, it, e);
	}
	for (size_t i = 0; i < acc_njudges && rc == 0; i++)
		if (acc_judges[i]->record != NULL)
			rc = acc_judges[i]->record(c, r, e);
	return rc;
}

int
acc_case_judge(struct acc_case *c, struct acc_err *e)
{
	/* Results of earlier judges, joined: their verdicts stand, there is nothing to add. */
	if (c->judged_before > 0)
		return acc_join(c, e);
	size_t i = 0;
	int rc = acc_settle_late(c, e);
	while (!acc_judges[i]->fits(c))
		i++; /* the last one always does */
	if (rc == 0)
		rc = acc_judges[i]->judge(c, e);
	if (rc == 0)
		rc = acc_say_accepted(c, e);
	if (rc == 0)
		rc = acc_say_before(c, e);
	if (rc == 0)
		rc = acc_explain(c, e);
	if (rc == 0)
		rc = acc_take_findings(c, e);
	/* What a sentence lacks would not be seen: see acc_got. */
	return rc == 0 && c->mem.lost ? acc_nomem(e) : rc;
}

int
acc_case_status(const struct acc_case *c)
{
	for (uint32_t i = 0; i < c->nfinding; i++)
		if (c->finding[i].bad || (c->opt.strict && c->finding[i].doubtful))
			return 1;
	return 0;
}

int
acc_case_record(struct acc_case *c, const struct acc_item *it, struct acc_rec **r,
	struct acc_err *e)
{
	int rc = acc_spool_get(c->spool, it->at, r, e);
	/* Who takes no error takes a failure for "it says nothing": the whole judgement is lost. */
	c->mem.lost |= rc < 0 && e == NULL;
	return rc < 0 ? rc : 0;
}

int
acc_case_mark(struct acc_case *c, struct acc_item *it, const struct acc_verdict *v,
	struct acc_err *e)
{
	if (!ACC_ROOM(c->verdict, c->verdict_cap, (size_t)c->nverdict + 1, e))
		return ACC_ENOMEM;
	c->verdict[c->nverdict++] = *v;
	it->mark = c->nverdict;
	return 0;
}

struct acc_finding *
acc_case_find(struct acc_case *c, const char *what, struct acc_err *e)
{
	if (!ACC_ROOM(c->finding, c->finding_cap, (size_t)c->nfinding + 1, e))
		return NULL;
	struct acc_finding *f = &c->finding[c->nfinding++];
	*f = (struct acc_finding){.what = what};
	f->step = f->rank = f->seq = f->comm = INT64_MIN;
	f->value = f->limit = f->confidence = NAN;
	return f;
}
