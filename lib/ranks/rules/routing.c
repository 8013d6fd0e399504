/* What ranks choose the largest of: that of the same tokens is the same on all ranks. */
#include "acc/say.h"
#include "ranks/asked.h"

enum { MOST_HOPS = 6 };

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

/* Is it, of the same op call in the first step, the same on all ranks? */
static bool
was_alike(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t j, const struct acc_seen_call **room)
{
	const struct acc_seen_call *first = acc_replicas_call(t, t->step[0], c->k->rank, c->k->key);
	return first != NULL && first->n == c->n && acc_replicas_peers(t, g, first, room) &&
	       acc_replicas_marked(t, g, room, j);
}

/* Is all else that an op call is given the same on all ranks, made by one before it? 1, 0, < 0. */
static int
others_alike(struct acc_replicas *t, const struct acc_rank_group *g, const struct acc_seen_call *c,
	uint32_t j, const struct acc_seen_call **room, struct acc_err *e)
{
	bool any = false;
	if (!acc_replicas_peers(t, g, c, room))
		return 0;
	for (uint32_t i = 0; i < c->n; i++) {
		const struct acc_replica_seen *s = &t->seen[c->first + i];
		enum acc_alike is = ACC_EQUAL;
		if (s->out || i == j)
			continue;
		int rc = acc_seen_maker(t, s) == NULL ? 0
						      : acc_replicas_alike(t, g, room, i, &is, e);
		if (rc < 0 || is >= ACC_APART || acc_seen_maker(t, s) == NULL)
			return rc;
		any |= s->n > 1;
	}
	return any;
}

/* A bias of what the largest k are chosen of, that nobody made and that ranks had alike: it balances what is
 * chosen, and parts. Or another one on each rank, of what is the same on all, whose largest are the same then. */
static int
balance(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e)
{
	const struct acc_replica_seen *in = acc_seen_real(t, peer[0], false),
				      *made = in == NULL ? NULL : acc_seen_maker(t, in);
	const struct acc_seen_call *c = made == NULL ? NULL : &t->call[made->call];
	if (c == NULL || c->info == NULL || c->info->cls != ACC_OP_ADD)
		return 0;
	for (uint32_t j = 0; j < c->n; j++) {
		const struct acc_replica_seen *s = &t->seen[c->first + j];
		if (s->out || s->n < 2 || s->n >= in->n || s->wants || !s->real ||
			acc_seen_maker(t, s) != NULL)
			continue;
		const bool began = c->k->step == t->step[0];
		int rc = began ? others_alike(t, g, c, j, room, e) : was_alike(t, g, c, j, room);
		if (rc < 0)
			return rc;
		if (rc == 0)
			continue;
		if (!acc_replicas_peers(t, g, c, room))
			continue;
		enum acc_alike is = ACC_EQUAL;
		rc = acc_replicas_alike(t, g, room, j, &is, e);
		if (rc < 0 || is != ACC_APART)
			return rc;
		const char *name = acc_replicas_name(t, peer[0]->k->line, e);
		if (began) {
			const struct acc_seen_call *odd = room[acc_replicas_odd(t, g, room, j)];
			return acc_replicas_blame(t, g, acc_seen_real(t, odd, true)->line,
				SAY(t,
					"has a bias added that is another on rank %lld, to what is the same on all ranks: %s "
					"chooses differently on each",
					(long long)odd->k->rank, name),
				1, 0, e);
		}
		const struct acc_replica_seen *update = acc_seen_made_in(t, s,
			acc_replicas_step_before(t, c->k->step));
		return acc_replicas_blame(t, g,
			update == NULL ? acc_seen_real(t, c, true)->line : update->line,
			SAY(t,
				update == NULL
					? "has a bias added that was the same on these ranks in step %lld, and that differs "
					  "between them since step %lld: %s chooses by it; what it counts must be summed up "
					  "over the ranks"
					: "is a bias that was the same on these ranks in step %lld, and that differs between "
					  "them since step %lld: %s chooses by it; what it counts must be summed up over the "
					  "ranks",
				(long long)t->step[0], (long long)c->k->step, name),
			1, 0, e);
	}
	return 0;
}

/* Does a rank, behind this call and in the forward pass, give what it put out to the others? */
static bool
is_handed_on(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (const struct acc_seen_call *o = c + 1;
		o < t->call + t->f->ncall && acc_seen_beside(o, c) && !o->k->backward; o++)
		for (uint32_t i = o->first; o->k->talks && i < o->first + o->n; i++)
			for (uint32_t j = c->first; j < c->first + c->n; j++)
				if (t->seen[j].out && !t->seen[i].out && t->seen[j].mark != 0 &&
					t->seen[j].mark == t->seen[i].mark)
					return true;
	return false;
}

/* Are rows its places, so that experts choose their tokens, and each rank has its own experts? */
static int
chooses_rows(struct acc_replicas *t, const struct acc_seen_call *c, bool *is, struct acc_err *e)
{
	double dim = -1;
	*is = false;
	for (size_t i = 0; i < c->k->n; i++) {
		struct acc_rec *r;
		int rc = t->f->get(t->f->arg, c->k->line + i, &r, e);
		if (rc < 0)
			return rc;
		struct acc_str pos = acc_get_text(r, "", "pos");
		const bool second = acc_str_is(acc_op_name(acc_get_text(r, "", "op")), "argmax")
					    ? acc_str_is(pos, "1")
					    : acc_str_is(pos, "2");
		if ((second || acc_str_is(pos, "dim")) && acc_as_f64(acc_get(r, "", "value"), &dim))
			*is |= dim == 0;
	}
	return 0;
}

/* The product that a choice is made of, by what works on elements; NULL: by something else, or other ranks are told of it. */
static const struct acc_seen_call *
product_of(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (unsigned hops = 0; hops < MOST_HOPS; hops++) {
		const struct acc_replica_seen *in = acc_seen_real(t, c, false),
					      *made = in == NULL ? NULL : acc_seen_maker(t, in);
		const bool told = is_handed_on(t, c);
		c = acc_seen_caller(t, made);
		if (told || c == NULL || c->k->talks || c->k->backward || c->info == NULL)
			return NULL;
		if (c->info->cls == ACC_OP_CONTRACT)
			return is_handed_on(t, c) ? NULL : c;
		if (made->n != in->n || c->info->cls == ACC_OP_MOVE)
			return NULL;
	}
	return NULL;
}

/* A router: of the same tokens, by a weight that is not the same. */
static int
router(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e)
{
	const struct acc_seen_call *c = peer[0], *product = product_of(t, c);
	const struct acc_replica_seen *x = product == NULL ? NULL
							   : acc_seen_real(t, product, false);
	const struct acc_replica_seen *made = x == NULL ? NULL : acc_seen_maker(t, x);
	bool rows = false;
	if (made == NULL || made->raw || c->k->step != t->step[0] ||
		!acc_replicas_peers(t, g, product, room) ||
		!acc_replicas_marked(t, g, room, (uint32_t)(x - t->seen) - product->first))
		return 0;
	int rc = chooses_rows(t, c, &rows, e);
	for (uint32_t j = 0; j < product->n && rc == 0 && !rows; j++) {
		const struct acc_replica_seen *w = &t->seen[product->first + j];
		enum acc_alike is = ACC_EQUAL;
		if (!w->weight || w == x || w->n <= 1)
			continue;
		rc = acc_replicas_alike(t, g, room, j, &is, e);
		if (rc < 0 || is != ACC_APART)
			continue;
		const struct acc_seen_call *odd = room[acc_replicas_odd(t, g, room, j)];
		return acc_replicas_blame(t, g, t->seen[odd->first + j].line,
			SAY(t,
				"is a weight that is another on rank %lld, by which %s chooses of what is the same"
				" on all ranks",
				(long long)odd->k->rank, acc_replicas_name(t, c->k->line, e)),
			1, 0, e);
	}
	return rc;
}

int
acc_rule_choice(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call *const *peer, const struct acc_seen_call **room,
	struct acc_err *e)
{
	int rc = balance(t, g, peer, room, e);
	return rc != 0 ? rc : router(t, g, peer, room, e);
}
