/* The tensors of all ranks, and what tells replicas: who made them, which are weights. */
#include "ranks/trace.h"

#include <stdlib.h>

enum { MOST_GROUPS = 4096 };

static uint64_t
text_hash(struct acc_str s)
{
	return acc_hash(s.p, s.n);
}

/* Of the bytes where their checksum was recorded (*exact), else of the statistics. */
static uint64_t
mark_of(const struct acc_rec *r, uint64_t n, bool *exact)
{
	static const char *const stats[] = {"stat.max", "stat.min", "stat.mean", "stat.norm"};
	uint64_t id[6] = {n, text_hash(acc_get_text(r, "", "dtype"))};
	const struct acc_val *crc = acc_get(r, "", "crc32"), *v;
	struct acc_str sum = acc_get_text(r, "", "stat.crc32"),
		       hash = acc_get_text(r, "", "s.hash");
	double x;
	*exact = true;
	if (hash.n > 0) {
		id[2] = text_hash(hash);
	} else if (crc != NULL && acc_get(r, "", "stride") == NULL) {
		id[2] = (uint64_t)acc_get_int(r, "", "crc32", 0) | (uint64_t)1 << 32;
		id[3] = (uint64_t)acc_get_int(r, "", "offset", 0);
		id[4] = (uint64_t)acc_get_int(r, "", "len", 0);
	} else if (sum.n > 0) {
		id[2] = text_hash(sum);
	} else {
		*exact = false;
		for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
			v = acc_get(r, "", stats[i]);
			if (!acc_as_f64(v, &x))
				return 0;
			memcpy(&id[2 + i], &x, sizeof x);
		}
	}
	return acc_hash(id, sizeof id) | 1;
}

/* Of what neither a checksum nor statistics are known: of its elements. */
static int
mark_data(struct acc_replicas *t, const struct acc_fleet_tensor *x, uint64_t *mark,
	struct acc_err *e)
{
	uint64_t id[3] = {(uint64_t)x->dtype, x->n, 0};
	int rc = 1;
	for (uint64_t at = 0; at < x->n && rc == 1; at += ACC_CHUNK) {
		size_t n = x->n - at < ACC_CHUNK ? (size_t)(x->n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, x, at, n, t->a, e);
		if (rc == 1)
			id[2] = acc_mix(id[2] ^ acc_hash(t->a, n * sizeof *t->a));
	}
	*mark = rc == 1 ? acc_hash(id, sizeof id) | 1 : 0;
	return rc < 0 ? rc : 0;
}

static uint64_t
value_hash(const struct acc_rec *r)
{
	const struct acc_val *v = acc_get(r, "", "value");
	uint64_t id[3] = {text_hash(acc_get_text(r, "", "pos")),
		text_hash(acc_get_text(r, "", "type")), 0};
	double x;
	if (acc_as_f64(v, &x))
		memcpy(&id[2], &x, sizeof x);
	else if (v != NULL && v->type == ACC_V_BOOL)
		id[2] = v->b;
	else if (v != NULL && v->type == ACC_V_TEXT)
		id[2] = text_hash(v->s);
	else if (v != NULL && v->type == ACC_V_INTS)
		id[2] = acc_hash(v->ints, v->n * sizeof *v->ints);
	return acc_hash(id, sizeof id);
}

uint64_t
acc_seen_place(int64_t step, int64_t rank, uint64_t what)
{
	uint64_t id[3] = {(uint64_t)step, (uint64_t)rank, what};
	return acc_hash(id, sizeof id);
}

uint64_t
acc_seen_id(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	return acc_seen_place(k->step, k->rank, s->mark);
}

int
acc_replicas_group(struct acc_replicas *t, const int64_t *rank, uint32_t n, bool held,
	struct acc_err *e)
{
	const uint64_t members = acc_hash(rank, n * sizeof *rank) | 1;
	if (n < 2 || t->ngroup == MOST_GROUPS || acc_ids_get(&t->grouped, members) != ACC_NOID)
		return 0;
	for (uint32_t i = 0; i < n; i++) { /* as a list, and of ranks that are here */
		const bool rises = i == 0 || rank[i] > rank[i - 1];
		if (!rises || acc_fleet_index(t->f, rank[i]) == t->f->nrank)
			return 0;
	}
	if (!ACC_ROOM(t->group, t->cap_group, t->ngroup + 1, e))
		return ACC_ENOMEM;
	struct acc_rank_group *p = t->group;
	struct acc_rank_group g = {.n = n,
		.held = held,
		.members = members,
		.who = acc_fleet_ranks(t->f, rank, n)};
	g.rank = (const int64_t *)(void *)acc_arena_copy(&t->f->mem, rank, n * sizeof *rank);
	if (g.rank == NULL || g.who == NULL)
		return acc_nomem(e);
	p[t->ngroup++] = g;
	return acc_ids_put(&t->grouped, members, 1, false, e);
}

static int
add_step(struct acc_replicas *t, int64_t step, struct acc_err *e)
{
	size_t i = t->nstep;
	while (i > 0 && t->step[i - 1] > step)
		i--;
	if (i > 0 && t->step[i - 1] == step)
		return 0;
	if (!ACC_ROOM(t->step, t->cap_step, t->nstep + 1, e))
		return ACC_ENOMEM;
	int64_t *p = t->step;
	memmove(p + i + 1, p + i, (t->nstep++ - i) * sizeof *p);
	p[i] = step;
	return 0;
}

/* Is it what a conversion of weights put out, which wants no gradient, as a model's to another dtype does? What is given it with
 * one is a weight again. */
static bool
converts(const struct acc_replicas *t, const struct acc_replica_seen *out)
{
	const struct acc_seen_call *c = &t->call[out->call];
	bool is = !out->wants && !c->k->talks && !c->k->backward && c->info != NULL &&
		  c->info->cls == ACC_OP_MOVE;
	for (uint32_t j = c->first; j < c->first + c->n && is; j++)
		is = t->seen[j].out || t->seen[j].n < 2 || t->seen[j].leaf || t->seen[j].raw;
	return is;
}

static int
add_seen(struct acc_replicas *t, struct acc_rec *r, size_t line, uint32_t call, struct acc_err *e)
{
	struct acc_fleet_tensor x;
	int rc = acc_fleet_tensor(r, line, &x);
	if (rc <= 0)
		return rc < 0 ? acc_nomem(e) : 0;
	bool exact;
	uint64_t mark = mark_of(r, x.n, &exact);
	exact |= mark == 0;
	if (mark == 0 && x.data && mark_data(t, &x, &mark, e) < 0)
		return e->code;
	if ((rc = t->f->get(t->f->arg, line, &r, e)) < 0)
		return rc;
	struct acc_str io = acc_get_text(r, "", "io");
	const struct acc_val *shape = acc_get(r, "", "shape"), *grad;
	void *p = acc_grow(t->seen, &t->cap_seen, t->nseen + 1, sizeof *t->seen, e);
	if (p == NULL || t->nseen >= ACC_NOID - 1)
		return acc_nomem(e);
	t->seen = p;
	struct acc_replica_seen s = {.line = line,
		.pos = text_hash(acc_get_text(r, "", "pos")),
		.mark = mark,
		.shape = shape->type == ACC_V_INTS
				 ? acc_hash(shape->ints, shape->n * sizeof *shape->ints)
				 : 0,
		.n = x.n,
		.call = call,
		.out = acc_str_is(io, "out") || acc_str_is(io, "grad"),
		.real = acc_is_float(x.dtype)};
	bool wants = false, forward = !t->call[call].k->backward;
	grad = acc_get(r, "", "requires_grad");
	bool said = acc_as_bool(grad, &wants), param = acc_str_is(io, "param");
	uint32_t maker = acc_ids_get(&t->made, acc_seen_id(t, &s));
	s.wants = wants;
	s.exact = exact;
	/* Weights are handed round at the start. */
	bool made = maker != ACC_NOID && !t->call[t->seen[maker].call].hands_round &&
		    !t->call[t->seen[maker].call].begins && !t->seen[maker].raw &&
		    !(wants && converts(t, &t->seen[maker]));
	s.raw = forward && s.real && said && !wants && s.mark != 0 && !t->call[call].k->talks &&
		(s.out ? t->call[call].raw : !made);
	t->call[call].raw &= s.out || s.n < 2 || s.raw;
	s.leaf = forward && !s.out && s.real && s.mark != 0 && (wants || param) && !made;
	t->call[call].begins &= s.out || s.n < 2 || s.leaf || s.raw;
	s.lone = s.leaf && s.n == 1;
	s.leaf &= s.n > 1;
	struct acc_str pos = acc_get_text(r, "", "pos");
	const struct acc_op_info *info = t->call[call].info;
	bool behind = pos.n > 0 && pos.p[0] != '0';
	s.place = param || (info != NULL && (info->flags & ACC_OP_WEIGHTS) != 0 && behind);
	s.weight = s.leaf && s.place;
	s.kept = s.raw && s.place && !s.out && s.n > 1 && !t->call[call].batch;
	s.data = forward && !s.out && s.n > 1 && s.mark != 0 && (!made || !s.real) && said &&
		 !wants && !param && !t->call[call].k->talks;
	t->seen[t->nseen++] = s;
	return 0;
}

/* Does the call make another tensor of this one, not the same with another shape? */
static bool
changes(const struct acc_replicas *t, const struct acc_seen_call *c, uint64_t mark)
{
	bool others = false;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		if (t->seen[i].out && t->seen[i].mark == mark)
			return false;
		others |= t->seen[i].out;
	}
	return others;
}

/* A weight that calls are given. */
static int
note_use(struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t id, uint32_t call,
	struct acc_err *e)
{
	const struct acc_fleet_call *k = t->call[call].k;
	uint32_t was = acc_ids_get(&t->first, id);
	int rc = t->call[call].begins ? 0
				      : acc_ids_put(&t->used, acc_seen_place(k->step, k->rank, 0),
						call, false, e);
	if (rc < 0)
		return rc;
	if (was == ACC_NOID)
		return acc_ids_put(&t->first, id, call, false, e);
	return was == call || t->call[was].k->talks || t->call[call].behind
		       ? 0
		       : acc_ids_put(&t->shared, id, (uint32_t)(s - t->seen), false, e);
}

/* What is gathered: a part of a weight, if nothing made it; then what comes of it is the weight. */
static int
note_gather(struct acc_replicas *t, struct acc_seen_call *c, uint32_t call, struct acc_err *e)
{
	static const char *const names[] = {"1", "tensor", "input", "input_tensor"};
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		bool operand = false;
		for (size_t j = 0; j < sizeof names / sizeof *names; j++)
			operand |= s->pos == text_hash(acc_str(names[j]));
		if (s->out || !operand || !s->real || s->mark == 0)
			continue;
		uint32_t maker = acc_ids_get(&t->made, acc_seen_id(t, s));
		c->hands_round |= maker == ACC_NOID || t->seen[maker].raw;
		int rc = acc_ids_put(&t->gathered, acc_seen_id(t, s), call, false, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* What is summed up before any weight is used is one itself, if nothing made it: so it is made the same on all ranks, which is
 * zero on all but one. */
static void
note_start(struct acc_replicas *t, struct acc_seen_call *c)
{
	bool raw = !c->average;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		raw &= t->seen[i].out ||
		       (t->seen[i].real && t->seen[i].n > 1 && !t->seen[i].wants &&
			       acc_ids_get(&t->made, acc_seen_id(t, &t->seen[i])) == ACC_NOID);
	c->hands_round |= raw && acc_ids_get(&t->used, acc_seen_place(c->k->step, c->k->rank, 0)) ==
					 ACC_NOID;
}

/* The results of a call, when it was read; of a reduction, what it was given, too. */
static int
note(struct acc_replicas *t, uint32_t call, struct acc_err *e)
{
	const struct acc_seen_call *c = &t->call[call];
	bool moves = !c->k->backward && !c->k->talks && c->info != NULL &&
		     (c->info->cls == ACC_OP_MUL || c->info->cls == ACC_OP_MOVE);
	bool reduces = t->call[call].reduces, scales = false;
	int rc = 0;
	/* What is made of a sum by a number is as alike on all ranks. */
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		scales |= !t->seen[i].out && t->seen[i].n > 1 && t->seen[i].mark != 0 &&
			  c->info != NULL && c->info->cls == ACC_OP_MUL && !c->k->backward &&
			  acc_ids_get(&t->reduced, acc_seen_id(t, &t->seen[i])) != ACC_NOID;
	for (uint32_t i = c->first; i < c->first + c->n && rc == 0; i++) {
		struct acc_replica_seen *s = &t->seen[i];
		uint64_t id = acc_seen_id(t, s);
		s->again = ACC_NOID;
		if (s->mark == 0)
			continue;
		if (s->leaf)
			rc = note_use(t, s, id, call, e);
		if (rc == 0 && !s->out && moves && s->n > 1 && changes(t, c, s->mark))
			rc = acc_ids_put(&t->taken, id, call, false, e);
		if (rc == 0 && !s->out && c->k->backward && s->n > 1)
			rc = acc_ids_put(&t->entered, id, i, false, e);
		if (rc < 0)
			break;
		if (s->out) {
			s->again = acc_ids_get(&t->latest, id);
			rc = acc_ids_put(&t->made, id, i, false, e);
			rc = rc < 0 ? rc : acc_ids_put(&t->latest, id, i, true, e);
		} else if (s->n > 1 && c->info != NULL && c->info->cls == ACC_OP_MUL &&
			   !c->k->backward)
			rc = acc_ids_put(&t->scaled, id, call, false, e);
		if (rc == 0 && ((reduces && !(c->elsewhere && s->out)) || (scales && s->out)))
			rc = acc_ids_put(s->out ? &t->reduced : &t->given, id, call, false, e);
	}
	return rc;
}

static int
add_arg(struct acc_replicas *t, struct acc_seen_call *c, const struct acc_rec *r, struct acc_err *e)
{
	const struct acc_val *v = acc_get(r, "", "value");
	struct acc_str word = acc_get_text(r, "", "value");
	struct acc_str pos = acc_get_text(r, "", "pos");
	if (acc_str_is(acc_get_text(r, "", "io"), "out"))
		return 0;
	if (c->to_one && (acc_str_is(pos, "1") || acc_str_is(pos, "dst")))
		c->elsewhere = acc_get_int(r, "", "value", -1) != c->k->rank;
	c->sums |= acc_str_is(word, "sum") || acc_str_is(word, "none");
	c->average |= acc_str_ends(word, "AVG");
	c->picks |= c->k->talks && acc_str_ends(acc_get_text(r, "", "type"), "ReduceOp") &&
		    !acc_str_ends(word, "SUM") && !c->average;
	if (v != NULL && (v->type == ACC_V_BOOL || v->type == ACC_V_F64))
		c->switches += acc_mix(value_hash(r));
	c->args += acc_mix(value_hash(r));
	if (v != NULL && v->type == ACC_V_INTS && c->k->talks && v->n > 0 &&
		acc_str_ends(acc_get_text(r, "", "type"), "ProcessGroup")) {
		c->members = acc_hash(v->ints, v->n * sizeof *v->ints) | 1;
		c->nmember = v->n;
	}
	return v != NULL && v->type == ACC_V_INTS &&
			       acc_str_ends(acc_get_text(r, "", "type"), "ProcessGroup")
		       ? acc_replicas_group(t, v->ints, v->n, false, e)
		       : 0;
}

/* Groups meet in the order of their calls: ranks that are of other groups, too, have other numbers of calls. */
static int
note_meeting(struct acc_replicas *t, struct acc_seen_call *c, uint32_t call, struct acc_err *e)
{
	uint64_t id[3] = {c->k->op, c->members, 0};
	uint64_t kind = acc_seen_place(c->k->step, c->k->rank, acc_hash(id, sizeof id));
	uint32_t times = acc_ids_get(&t->times, kind);
	id[2] = times == ACC_NOID ? 1 : times + 1;
	c->meets = acc_hash(id, sizeof id) | 1;
	int rc = acc_ids_put(&t->times, kind, (uint32_t)id[2], true, e);
	return rc < 0 ? rc
		      : acc_ids_put(&t->met, acc_seen_place(c->k->step, c->k->rank, c->meets), call,
				false, e);
}

static int
read_call(struct acc_replicas *t, uint32_t call, struct acc_err *e)
{
	struct acc_seen_call *c = &t->call[call];
	struct acc_rec *r;
	*c = (struct acc_seen_call){.k = &t->f->call[call],
		.first = (uint32_t)t->nseen,
		.behind = c->behind,
		.amid = c->amid,
		.next = c->next,
		.raw = true};
	const struct acc_fleet_call *k = c->k;
	int rc = add_step(t, k->step, e);
	for (size_t i = 0; i < k->n && rc == 0; i++) {
		rc = t->f->get(t->f->arg, k->line + i, &r, e);
		if (rc < 0)
			break;
		if (i == 0) {
			struct acc_str op = acc_get_text(r, "", "op"),
				       stack = acc_get_text(r, "", "stack");
			uint64_t id[2] = {k->op, text_hash(stack)};
			c->line = stack.n > 0 ? acc_hash(id, sizeof id) | 1 : 0;
			c->info = acc_op_info_of(op);
			acc_seen_name(c, op);
		}
		if (acc_rec_is(r, "tensor"))
			rc = add_seen(t, r, k->line + i, call, e);
		else
			rc = add_arg(t, c, r, e);
	}
	c->n = (uint32_t)t->nseen - c->first;
	if (rc == 0 && c->k->talks && !c->sends && !c->receives)
		rc = note_meeting(t, c, call, e);
	if (rc == 0 && c->gathers)
		rc = note_gather(t, c, call, e);
	if (c->reduces)
		note_start(t, c);
	if (rc == 0)
		rc = note(t, call, e);
	return rc == 0 ? acc_ids_put(&t->at, acc_seen_place(k->step, k->rank, k->key), call, false,
				 e)
		       : rc;
}

/* Which calls are behind the last backward call of their rank and step, and which between the first and that one. */
static int
find_behind(struct acc_replicas *t, struct acc_err *e)
{
	const struct acc_fleet *f = t->f;
	struct acc_ids last = {0}, first = {0};
	int rc = 0;
	for (uint32_t i = 0; i < f->ncall && rc == 0; i++) {
		const uint64_t of = acc_seen_place(f->call[i].step, f->call[i].rank, 0);
		if (!f->call[i].backward)
			continue;
		rc = acc_ids_put(&last, of, i, true, e);
		if (rc == 0 && acc_ids_get(&first, of) == ACC_NOID)
			rc = acc_ids_put(&first, of, i, false, e);
	}
	for (uint32_t i = 0; i < f->ncall && rc == 0; i++) {
		const uint64_t of = acc_seen_place(f->call[i].step, f->call[i].rank, 0);
		const uint32_t at = acc_ids_get(&last, of);
		t->call[i].behind = at != ACC_NOID && at < i;
		t->call[i].amid = at != ACC_NOID && !t->call[i].behind &&
				  acc_ids_get(&first, of) < i;
	}
	acc_ids_release(&last);
	acc_ids_release(&first);
	return rc;
}

/* The calls of each rank, one after the other: what asks for those of one does not see all. */
static int
chain(struct acc_replicas *t, struct acc_err *e)
{
	const struct acc_fleet *f = t->f;
	t->begin = malloc(f->nrank * sizeof *t->begin);
	if (t->begin == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < f->nrank; i++)
		t->begin[i] = (uint32_t)f->ncall;
	for (size_t i = f->ncall; i-- > 0;) {
		uint32_t *begin = &t->begin[acc_fleet_index(f, f->call[i].rank)];
		t->call[i].next = *begin;
		*begin = (uint32_t)i;
	}
	return 0;
}

uint32_t
acc_calls_of(const struct acc_replicas *t, int64_t rank)
{
	const size_t i = acc_fleet_index(t->f, rank);
	return i < t->f->nrank ? t->begin[i] : (uint32_t)t->f->ncall;
}

int
acc_replicas_read(struct acc_replicas *t, struct acc_err *e)
{
	struct acc_fleet *f = t->f;
	if (f->ncall == 0 || f->ncall >= ACC_NOID - 1)
		return 0;
	t->call = calloc(f->ncall, sizeof *t->call);
	t->a = malloc((size_t)ACC_CHUNK * 2 * sizeof *t->a);
	if (t->call == NULL || t->a == NULL)
		return acc_nomem(e);
	t->b = t->a + ACC_CHUNK;
	struct acc_ids runs = {0};
	int rc = chain(t, e);
	rc = rc < 0 ? rc : find_behind(t, e);
	for (uint32_t i = 0; i < f->ncall && rc == 0; i++) {
		const struct acc_fleet_call *k = &f->call[i];
		uint64_t run = acc_seen_place(k->step, k->rank, 0);
		uint32_t was = acc_ids_get(&runs, run);
		t->scattered |= was != ACC_NOID && was + 1 != i;
		rc = acc_ids_put(&runs, run, i, true, e);
		if (rc == 0)
			rc = read_call(t, i, e);
	}
	/* Ranks may have other steps than the others, where each takes as many as it has data, or an optimizer that not all of
	 * them call ends a step: what changes from step to step is not looked for then. */
	if (runs.n < t->nstep * f->nrank)
		t->nstep = 1;
	acc_ids_release(&runs);
	return rc;
}

void
acc_replicas_release(struct acc_replicas *t)
{
	acc_ids_release(&t->at);
	acc_ids_release(&t->met);
	acc_ids_release(&t->times);
	acc_ids_release(&t->made);
	acc_ids_release(&t->latest);
	acc_ids_release(&t->given);
	acc_ids_release(&t->reduced);
	acc_ids_release(&t->scaled);
	acc_ids_release(&t->taken);
	acc_ids_release(&t->entered);
	acc_ids_release(&t->gathered);
	acc_ids_release(&t->first);
	acc_ids_release(&t->shared);
	acc_ids_release(&t->used);
	acc_ids_release(&t->roles);
	acc_ids_release(&t->lined);
	acc_ids_release(&t->drawn);
	acc_ids_release(&t->amid);
	acc_ids_release(&t->grouped);
	acc_ids_release(&t->mixed);
	acc_ids_release(&t->copies);
	free(t->account);
	free(t->crossed);
	free(t->begin);
	free(t->stage);
	free(t->seen);
	free(t->call);
	free(t->step);
	free(t->group);
	free(t->a);
}

const struct acc_seen_call *
acc_replicas_call(const struct acc_replicas *t, int64_t step, int64_t rank, uint64_t key)
{
	uint32_t i = acc_ids_get(&t->at, acc_seen_place(step, rank, key));
	return i == ACC_NOID ? NULL : &t->call[i];
}
