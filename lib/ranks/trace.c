/* The ways of gradients: from the call that made one to the reduction and the optimizer, and back. */
#include "ranks/asked.h"

#include <stdio.h>

enum { MOST_HOPS = 5, MOST_CUTS = 4 };

bool
acc_seen_among(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_rank_group *g)
{
	return c->members == 0 ? g->n == t->f->nrank : c->members == g->members;
}

const struct acc_seen_call *
acc_seen_caller(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	return s == NULL ? NULL : &t->call[s->call];
}

const struct acc_replica_seen *
acc_seen_output(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].n > 1)
			return &t->seen[i];
	return NULL;
}

const struct acc_replica_seen *
acc_seen_real(const struct acc_replicas *t, const struct acc_seen_call *c, bool out)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out == out && t->seen[i].n > 1 && t->seen[i].real)
			return &t->seen[i];
	return NULL;
}

/* The input of this place; order: of this number, of the inputs that are tensors. */
static const struct acc_replica_seen *
input_at(const struct acc_replicas *t, const struct acc_seen_call *fwd, uint64_t pos, bool order)
{
	uint32_t k = 0;
	for (uint32_t i = fwd->first; i < fwd->first + fwd->n; i++) {
		char number[16];
		if (t->seen[i].out)
			continue;
		size_t n = (size_t)snprintf(number, sizeof number, "%u", k++);
		if ((order ? acc_hash(number, n) : t->seen[i].pos) == pos)
			return &t->seen[i];
	}
	return NULL;
}

const struct acc_replica_seen *
acc_seen_input(const struct acc_replicas *t, const struct acc_replica_seen *gradient)
{
	const struct acc_seen_call *back = &t->call[gradient->call],
				   *fwd = acc_replicas_call(t, back->k->step, back->k->rank,
					   back->k->twin);
	const struct acc_replica_seen *only = NULL;
	unsigned n = 0;
	for (int order = 0; fwd != NULL && order < 2; order++) {
		bool all = true;
		for (uint32_t i = back->first; i < back->first + back->n && all; i++) {
			const struct acc_replica_seen *s = &t->seen[i],
						      *in = input_at(t, fwd, s->pos, order);
			all = !s->out || (in != NULL && in->n == s->n);
		}
		if (all)
			return input_at(t, fwd, gradient->pos, order);
	}
	for (uint32_t i = fwd == NULL ? 0 : fwd->first; fwd != NULL && i < fwd->first + fwd->n; i++)
		if (!t->seen[i].out && t->seen[i].n == gradient->n) {
			only = &t->seen[i];
			n++;
		}
	return n == 1 ? only : NULL;
}

/* What a call made this of: its largest operand, at least as large. */
static const struct acc_replica_seen *
operand_of(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *out)
{
	const struct acc_replica_seen *best = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		if (!s->out && s->real && s->n >= out->n && (best == NULL || s->n > best->n))
			best = s;
	}
	return best;
}

/* Does the call only move, turn or convert one tensor, all of it? */
static bool
is_whole_move(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *out)
{
	const struct acc_replica_seen *in = NULL;
	unsigned n = 0;
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (!t->seen[i].out && t->seen[i].real && t->seen[i].n > 1) {
			in = &t->seen[i];
			n++;
		}
	return !c->k->talks && !c->k->backward && c->info != NULL && c->info->cls == ACC_OP_MOVE &&
	       n == 1 && in->n <= out->n;
}

const struct acc_replica_seen *
acc_seen_gradient_in(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; s != NULL && s->mark != 0 && hops < MOST_HOPS; hops++) {
		uint32_t made = acc_ids_get(&t->made, acc_seen_id(t, s));
		if (made == ACC_NOID || t->seen[made].call >= s->call)
			return NULL;
		const struct acc_seen_call *c = &t->call[t->seen[made].call];
		if (c->k->backward)
			return &t->seen[made];
		bool passes = c->reduces || (c->info != NULL && c->info->cls == ACC_OP_MUL) ||
			      is_whole_move(t, c, &t->seen[made]);
		s = passes ? operand_of(t, c, &t->seen[made]) : NULL;
	}
	return NULL;
}

const struct acc_replica_seen *
acc_seen_weight(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_replica_seen *made = acc_seen_gradient_in(t, s),
				      *w = made == NULL ? NULL : acc_seen_input(t, made);
	return w != NULL && w->leaf ? w : NULL;
}

bool
acc_seen_given(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; s != NULL && s->mark != 0 && hops < MOST_HOPS; hops++) {
		uint64_t id = acc_seen_id(t, s);
		uint32_t next = acc_ids_get(&t->taken, id);
		if (acc_ids_get(&t->given, id) != ACC_NOID)
			return true;
		const struct acc_seen_call *c = next == ACC_NOID ? NULL : &t->call[next];
		s = NULL;
		for (uint32_t i = c == NULL ? 0 : c->first; c != NULL && i < c->first + c->n; i++)
			if (t->seen[i].out && s == NULL)
				s = &t->seen[i];
	}
	return false;
}

bool
acc_seen_joined_with(const struct acc_replicas *t, const struct acc_replica_seen *s, int64_t rank,
	const struct acc_seen_call **last)
{
	*last = NULL;
	for (unsigned hops = 0; s != NULL && s->mark != 0 && hops < MOST_HOPS; hops++) {
		const uint64_t id = acc_seen_id(t, s);
		const uint32_t sum = acc_ids_get(&t->given, id),
			       next = sum != ACC_NOID ? sum : acc_ids_get(&t->taken, id);
		const struct acc_seen_call *c = next == ACC_NOID ? NULL : &t->call[next];
		*last = sum != ACC_NOID ? c : *last;
		if (sum != ACC_NOID && acc_seen_joins(t, c, c->k->rank, rank))
			return true;
		const struct acc_replica_seen *out = c == NULL ? NULL : acc_seen_real(t, c, true);
		s = out == s ? NULL : out;
	}
	return false;
}

const struct acc_replica_seen *
acc_seen_maker(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	uint32_t i = s->mark == 0 ? ACC_NOID : acc_ids_get(&t->made, acc_seen_id(t, s));
	if (i == ACC_NOID || t->seen[i].call == s->call)
		return NULL;
	/* What makes several gradients is recorded when it has made the last: a hook has been given the others by then. */
	const struct acc_seen_call *c = &t->call[s->call];
	const bool hooked = c->amid && !c->k->backward && !s->out &&
			    t->call[t->seen[i].call].k->backward;
	return t->seen[i].call > s->call && !hooked ? NULL : &t->seen[i];
}

const struct acc_replica_seen *
acc_seen_made_in(const struct acc_replicas *t, const struct acc_replica_seen *s, int64_t step)
{
	const uint32_t made = s->mark == 0 ? ACC_NOID
					   : acc_ids_get(&t->latest,
						     acc_seen_place(step, t->call[s->call].k->rank,
							     s->mark));
	return made == ACC_NOID || t->seen[made].n != s->n ? NULL : &t->seen[made];
}

const struct acc_replica_seen *
acc_seen_unscaled(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		const struct acc_replica_seen *made = acc_seen_maker(t, s);
		const struct acc_seen_call *c = made == NULL ? NULL : &t->call[made->call];
		if (c == NULL || c->k->talks || c->k->backward || c->info == NULL ||
			c->info->cls != ACC_OP_MUL)
			return s;
		const struct acc_replica_seen *from = NULL;
		for (uint32_t i = c->first; i < c->first + c->n && from == NULL; i++)
			if (!t->seen[i].out && t->seen[i].n == s->n && t->seen[i].real)
				from = &t->seen[i];
		if (from == NULL)
			return s;
		s = from;
	}
	return s;
}

const struct acc_seen_call *
acc_seen_joined(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, acc_seen_unscaled(t, s));
	const struct acc_seen_call *c = made == NULL ? NULL : &t->call[made->call];
	/* What is filled up to a number of elements was joined before. */
	for (unsigned hops = 0; hops < MOST_CUTS && c != NULL && is_whole_move(t, c, made);
		hops++) {
		const struct acc_replica_seen *from = acc_seen_maker(t, acc_seen_real(t, c, false));
		const struct acc_seen_call *before = acc_seen_caller(t, from);
		if (before == NULL || before->k->talks || before->k->backward ||
			before->info == NULL || before->info->cls != ACC_OP_MOVE)
			break;
		made = from;
		c = before;
	}
	return c == NULL || c->k->talks || c->k->backward || c->info == NULL ||
			       c->info->cls != ACC_OP_MOVE
		       ? NULL
		       : c;
}

int
acc_seen_elements(struct acc_replicas *t, const struct acc_replica_seen *s, uint64_t first,
	size_t n, double *out, bool *known, struct acc_err *e)
{
	struct acc_rec *r;
	struct acc_fleet_tensor x = {0};
	int rc = t->f->get(t->f->arg, s->line, &r, e);
	if (rc < 0)
		return rc;
	if ((rc = acc_fleet_tensor(r, s->line, &x)) < 0)
		return acc_nomem(e);
	rc = rc == 1 && x.data && x.n == s->n ? acc_fleet_read(t->f, &x, first, n, out, e) : 0;
	*known = rc == 1;
	return rc < 0 ? rc : 0;
}

const struct acc_replica_seen *
acc_seen_summand(const struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *c)
{
	if (c->k->rank != g->rank[0] || !c->k->talks || !c->reduces || c->picks ||
		!acc_seen_among(t, c, g))
		return NULL;
	const struct acc_replica_seen *in = acc_seen_real(t, c, false),
				      *made = in == NULL ? NULL : acc_seen_maker(t, in);
	const struct acc_seen_call *by = acc_seen_caller(t, made);
	return by == NULL || by->k->talks || by->k->backward ? NULL : made;
}

uint32_t
acc_seen_reduced(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	for (unsigned hops = 0; hops < MOST_CUTS && s != NULL && s->mark != 0; hops++) {
		const uint32_t by = acc_ids_get(&t->reduced, acc_seen_id(t, s));
		const struct acc_seen_call *cut = acc_seen_caller(t, acc_seen_maker(t, s));
		if (by != ACC_NOID || cut == NULL || !acc_seen_moves(t, cut))
			return by;
		s = acc_seen_real(t, cut, false);
	}
	return ACC_NOID;
}

const struct acc_replica_seen *
acc_seen_piece(const struct acc_replicas *t, const struct acc_replica_seen *flat,
	const struct acc_seen_call *join, uint32_t k)
{
	const struct acc_seen_call *from = &t->call[flat->call];
	const struct acc_replica_seen *piece = NULL;
	uint32_t parts = 0, cut = 0;
	uint64_t n = 0;
	for (uint32_t i = join->first; i < join->first + join->n; i++)
		if (!t->seen[i].out) {
			n = parts == k ? t->seen[i].n : n;
			parts++;
		}
	for (const struct acc_seen_call *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from); c++) {
		bool given = false;
		for (uint32_t i = c->first; i < c->first + c->n && !c->k->talks; i++) {
			given |= !t->seen[i].out && t->seen[i].mark == flat->mark;
			if (!given || !t->seen[i].out || t->seen[i].n >= flat->n)
				continue;
			piece = cut == k ? &t->seen[i] : piece;
			cut++;
		}
	}
	return cut == parts && piece != NULL && piece->n == n ? piece : NULL;
}

const struct acc_replica_seen *
acc_seen_moved(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	const struct acc_fleet_call *k = t->call[s->call].k;
	const struct acc_seen_call *c = t->nstep < 2 || k->step != t->step[0]
						? NULL
						: acc_replicas_call(t, t->step[1], k->rank, k->key);
	for (uint32_t j = c == NULL ? 0 : c->first; c != NULL && j < c->first + c->n; j++)
		if (t->seen[j].leaf && t->seen[j].pos == s->pos && t->seen[j].shape == s->shape)
			return &t->seen[j];
	return s;
}

bool
acc_seen_shared(const struct acc_replicas *t, const struct acc_replica_seen *s)
{
	return acc_ids_get(&t->shared, acc_seen_id(t, s)) != ACC_NOID &&
	       acc_ids_get(&t->shared, acc_seen_id(t, acc_seen_moved(t, s))) != ACC_NOID;
}

int64_t
acc_replicas_step_before(const struct acc_replicas *t, int64_t step)
{
	for (size_t i = t->nstep; i-- > 1;)
		if (t->step[i] == step)
			return t->step[i - 1];
	return INT64_MIN;
}
