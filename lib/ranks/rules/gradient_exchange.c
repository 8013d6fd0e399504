/* What communication asks of the backward pass: the gradient of what was exchanged is exchanged, too; weights
 * that lead up to what is gathered have one; and what is received is used. */
#include "replay/limits.h"
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 8, MOST_MOVED = 64 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

const struct acc_seen_call *
acc_seen_backward(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	return acc_replicas_call(t, c->k->step, c->k->rank, c->k->twin);
}

bool
acc_seen_moves(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	return !c->k->talks && !c->k->backward && c->info != NULL && c->info->cls == ACC_OP_MOVE &&
	       acc_seen_backward(t, c) == NULL;
}

/* Who made this, before its elements were moved; of several, communication: a rank's own part stays as it is.
 * NULL: it is not known of one of them. */
static const struct acc_replica_seen *
origin(const struct acc_replicas *t, const struct acc_replica_seen *s, unsigned hops)
{
	const struct acc_replica_seen *made = acc_seen_maker(t, s), *found = NULL;
	const struct acc_seen_call *c = made == NULL ? NULL : &t->call[made->call];
	if (c == NULL || !acc_seen_moves(t, c))
		return made;
	for (uint32_t i = c->first; i < c->first + c->n && hops > 0; i++) {
		if (t->seen[i].out || t->seen[i].n < 2 || !t->seen[i].real)
			continue;
		const struct acc_replica_seen *from = origin(t, &t->seen[i], hops - 1);
		if (from == NULL || t->call[from->call].k->talks)
			return from;
		found = from;
	}
	return found;
}

/* The gradient that a backward call is given for this output of its forward call: the only one of its size. */
static const struct acc_replica_seen *
gradient_in(const struct acc_replicas *t, const struct acc_seen_call *back,
	const struct acc_replica_seen *y)
{
	const struct acc_replica_seen *only = NULL;
	unsigned n = 0;
	for (uint32_t i = back->first; i < back->first + back->n; i++)
		if (!t->seen[i].out && t->seen[i].n == y->n && t->seen[i].mark != 0) {
			only = &t->seen[i];
			n++;
		}
	return n == 1 ? only : NULL;
}

/* What is exchanged was made with a gradient: where does that come from? */
static int
exchange(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	struct acc_err *e)
{
	const struct acc_replica_seen *in = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		in = !s->out && s->real && s->n > 1 && acc_seen_maker(t, s) != NULL ? s : in;
	}
	const struct acc_replica_seen *y = in == NULL ? NULL : origin(t, in, MOST_HOPS);
	const struct acc_seen_call *back = y == NULL || t->call[y->call].k->backward
						   ? NULL
						   : acc_seen_backward(t, &t->call[y->call]);
	const struct acc_replica_seen *dy = back == NULL ? NULL : gradient_in(t, back, y);
	const struct acc_replica_seen *from = dy == NULL ? NULL : origin(t, dy, MOST_HOPS);
	bool flat = false;
	/* What is moved has the same statistics. */
	int rc = from == NULL || !dy->exact || !t->call[from->call].k->backward
			 ? 1
			 : acc_replicas_flat(t, dy, &flat, e);
	if (rc != 0 || flat)
		return rc < 0 ? rc : 0;
	const char *a = acc_replicas_name(t, c->k->line, e),
		   *b = acc_replicas_name(t, from->line, e);
	return acc_replicas_blame(t, g, dy->line,
		SAY(t,
			"is the gradient that %s made on this rank, moved only, although it is of"
			" what %s exchanged with the other ranks: it must be exchanged, too",
			b, a),
		1, 0, e);
}

/* --- gradients that stop --- */

/* Of an output that wants a gradient and has none: a weight that it was made of, whose op call has no backward
 * pass, either. */
static const struct acc_replica_seen *
weight_behind(const struct acc_replicas *t, const struct acc_replica_seen *y)
{
	for (unsigned hops = 0; y != NULL && hops < MOST_HOPS; hops++) {
		const struct acc_seen_call *c = &t->call[y->call];
		const struct acc_replica_seen *next = NULL;
		if (!y->wants || c->k->backward || c->k->talks || acc_seen_backward(t, c) != NULL)
			return NULL;
		for (uint32_t i = c->first; i < c->first + c->n; i++) {
			const struct acc_replica_seen *s = &t->seen[i];
			if (s->weight && s->wants)
				return s;
			if (!s->out && s->wants && s->n > 1 && next == NULL)
				next = acc_seen_maker(t, s);
		}
		y = next;
	}
	return NULL;
}

/* How many weights of a rank have op calls, in the first step, with a backward pass; 0: this one has. */
static uint64_t
others_with(const struct acc_replicas *t, int64_t rank, const struct acc_replica_seen *w)
{
	uint64_t n = 0;
	for (size_t i = acc_calls_of(t, rank); i < t->f->ncall; i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0] || acc_seen_backward(t, c) == NULL)
			continue;
		for (uint32_t j = c->first; j < c->first + c->n; j++) {
			if (t->seen[j].leaf && t->seen[j].mark == w->mark)
				return 0;
			n += t->seen[j].weight;
		}
	}
	return n;
}

static int
stopped(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	struct acc_err *e)
{
	const struct acc_replica_seen *w = NULL, *out = NULL;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[i];
		out = s->out && out == NULL ? s : out;
		if (w == NULL && !s->out && s->real && s->n > 1)
			w = weight_behind(t, acc_seen_maker(t, s));
	}
	if (w == NULL || out == NULL || others_with(t, c->k->rank, w) < LIMIT_REPLICA_WEIGHTS)
		return 0;
	const char *name = acc_replicas_name(t, w->line, e);
	return acc_replicas_blame(t, g, out->line,
		SAY(t,
			"passes on what is made of the weight of %s, which wants a gradient and has none:"
			" this communication must have a backward pass",
			name),
		1, 0, e);
}

/* --- the gradient of what was gathered --- */

struct moved { /* marks of what a tensor became, before another op call made something else of it */
	uint64_t mark[MOST_MOVED];
	uint32_t n;
};

static void
add_moved(struct moved *m, const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; i < c->first + c->n; i++)
		if (t->seen[i].out && t->seen[i].n > 1 && t->seen[i].mark != 0 && m->n < MOST_MOVED)
			m->mark[m->n++] = t->seen[i].mark;
}

static bool
is_moved(const struct moved *m, const struct acc_replica_seen *s)
{
	bool is = false;
	for (uint32_t i = 0; i < m->n && !s->out && !is; i++)
		is = m->mark[i] == s->mark;
	return is;
}

/* The only op call with a backward pass that is given all of what was gathered, which wants a gradient, moved or
 * joined with others; NULL: none, or several. */
static const struct acc_replica_seen *
only_use(const struct acc_replicas *t, const struct acc_seen_call *gather, uint64_t whole)
{
	struct moved m = {.n = 0};
	const struct acc_replica_seen *use = NULL;
	add_moved(&m, t, gather); /* with the rank's own part, as recorders have it */
	for (const struct acc_seen_call *c = gather + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, gather); c++) {
		bool given = false, used = false;
		for (uint32_t i = c->first; i < c->first + c->n && !c->k->talks && !c->k->backward;
			i++) {
			const struct acc_replica_seen *s = &t->seen[i];
			if (!is_moved(&m, s))
				continue;
			given = true;
			if (!s->wants || s->n != whole || acc_seen_backward(t, c) == NULL)
				continue;
			if (use != NULL)
				return NULL;
			use = s;
			used = true;
		}
		if (given && !used && c->info != NULL && c->info->cls == ACC_OP_MOVE)
			add_moved(&m, t, c);
	}
	return use;
}

/* Is it communicated, as it is, moved or scaled; or something of its size that nobody is known to have made, such as
 * a sum of several? */
static bool
goes_round(const struct acc_replicas *t, const struct acc_replica_seen *d)
{
	struct moved m = {.mark = {d->mark}, .n = 1};
	for (const struct acc_seen_call *from = &t->call[d->call], *c = from + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, from); c++) {
		const struct acc_replica_seen *largest = NULL;
		bool given = false;
		for (uint32_t i = c->first; i < c->first + c->n; i++) {
			const struct acc_replica_seen *s = &t->seen[i];
			given |= is_moved(&m, s);
			if (!s->out && s->real && (largest == NULL || s->n > largest->n))
				largest = s;
		}
		if (c->k->talks && (given || (c->reduces && largest != NULL && largest->n == d->n &&
						     acc_seen_maker(t, largest) == NULL)))
			return true;
		if (given && c->info != NULL &&
			(c->info->cls == ACC_OP_MOVE || c->info->cls == ACC_OP_MUL))
			add_moved(&m, t, c);
	}
	return false;
}

/* Is what an op call makes of this given to a loss, by few op calls? */
static bool
to_loss(const struct acc_replicas *t, const struct acc_replica_seen *use)
{
	const struct acc_seen_call *own = &t->call[use->call];
	const struct acc_replica_seen *x = acc_seen_output(t, own);
	unsigned hops = 0;
	for (const struct acc_seen_call *c = own + 1;
		x != NULL && c < t->call + t->f->ncall && acc_seen_beside(c, own) &&
		!c->k->backward && hops < MOST_HOPS;
		c++) {
		bool given = false;
		for (uint32_t i = c->first; i < c->first + c->n; i++)
			given |= !t->seen[i].out && t->seen[i].mark == x->mark;
		if (given && c->loss)
			return true;
		if (given && (c->info == NULL ||
				     (c->info->cls != ACC_OP_MUL && c->info->cls != ACC_OP_MOVE &&
					     c->info->cls != ACC_OP_CONTRACT)))
			return false;
		x = given ? acc_seen_output(t, c) : x;
		hops += given;
	}
	return false;
}

/* Of what was gathered each rank makes a gradient for the parts of all: where these differ, they must be joined. */
static int
gathered(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	const struct acc_seen_call **peer, struct acc_err *e)
{
	const struct acc_replica_seen *d = NULL;
	uint64_t part = 0; /* the buffers that are filled are no smaller */
	bool wants = false;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		if (!t->seen[i].out && t->seen[i].real && (part == 0 || t->seen[i].n < part))
			part = t->seen[i].n;
		wants |= !t->seen[i].out && t->seen[i].wants;
	}
	const struct acc_replica_seen *use = part < 2 || !acc_seen_among(t, c, g)
						     ? NULL
						     : only_use(t, c, part * g->n);
	const struct acc_seen_call *back = use == NULL ? NULL
						       : acc_seen_backward(t, &t->call[use->call]);
	for (uint32_t i = back == NULL ? 0 : back->first; back != NULL && i < back->first + back->n;
		i++)
		if (t->seen[i].out && acc_seen_input(t, &t->seen[i]) == use)
			d = &t->seen[i];
	bool far = false;
	/* What was detached is no more than data to others, but to a loss that has columns of all. */
	if (d == NULL || d->mark == 0 || (!wants && !to_loss(t, use)) ||
		!acc_replicas_peers(t, g, back, peer) || goes_round(t, d))
		return 0;
	int rc = acc_replicas_far(t, g, peer, (uint32_t)(d - t->seen) - back->first, &far, e);
	return rc < 0 || !far
		       ? rc
		       : acc_replicas_accuse(t, g, d, d->line,
				 SAY(t,
					 "is the gradient of what %s gathered, which differs between the ranks, and goes into "
					 "no communication: what the other ranks' parts get here is lost: a reduction is "
					 "missing",
					 acc_replicas_name(t, c->k->line, e)),
				 e);
}

int
acc_rule_dual(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	bool backward = false;
	int rc = 0;
	for (size_t i = acc_calls_of(t, g->rank[0]); i < t->f->ncall && rc == 0;
		i = t->call[i].next) {
		const struct acc_seen_call *c = &t->call[i];
		if (c->k->step != t->step[0])
			continue;
		backward |= c->k->backward;
		if (c->exchanges && !backward && c->nmember != 1)
			rc = exchange(t, g, c, e);
		else if (c->gathers && !backward && c->nmember != 1)
			rc = stopped(t, g, c, e);
		if (rc == 0 && c->gathers && !c->scatters && !t->scattered)
			rc = gathered(t, g, c, room, e);
	}
	return rc;
}
