/* The gradient of what goes to other ranks is the sum of what all of them make of it: its elements are found again in
 * what their op calls are given, and those of the gradients that these make in the gradient that its own gets. */
#include "acc/say.h"
#include "base/order.h"
#include "ranks/asked.h"
#include "ranks/fit.h"
#include "replay/limits.h"

#include <math.h>
#include <stdlib.h>

enum {
	MOST_MARKS = 48,
	MOST_USES = 6,
	MOST_TRIED = 32,
	MOST_BACK = 16,
	MOST_RANKS = ACC_FIT_TERMS,
	MOST_HOPS = 8,
	MOST_SOURCES = 256,
	SAMPLES = 256,
	FEW_SAMPLES = 16
};

static const uint64_t MOST_ELEMENTS = 1 << 22; /* larger ones take long to look through */

#define SAY(t, ...) acc_say(&(t)->f->mem, __VA_ARGS__)

struct sample {                  /* an element of what is sent */
	double v, d;             /* and of its gradient */
	double part[MOST_RANKS]; /* of what each rank makes of it */
	uint32_t found;          /* on which ranks: bits */
	uint32_t last;           /* by which use last */
	bool dead;               /* it is found more than once */
};

struct source {
	struct acc_replicas *t;
	const struct acc_rank_group *g;
	const struct acc_seen_call *talk;
	const struct acc_replica_seen *in, *x,
		*dx;      /* what is sent, what its op call put out, the gradient of that */
	struct sample *s; /* by v */
	size_t n;
};

/* --- elements --- */

ACC_ORDER(by_value, struct sample, v)

/* What is recorded of both: 1: there are elements to read; 0, < 0. */
static int
tensors(struct source *s, const struct acc_replica_seen *a, const struct acc_replica_seen *b,
	struct acc_fleet_tensor x[2], struct acc_err *e)
{
	const struct acc_replica_seen *const seen[2] = {a, b};
	int rc = 1;
	for (int i = 0; i < 2 && rc == 1; i++) {
		struct acc_rec *r;
		rc = s->t->f->get(s->t->f->arg, seen[i]->line, &r, e);
		if (rc < 0)
			return rc;
		rc = acc_fleet_tensor(r, seen[i]->line, &x[i]);
		if (rc < 0)
			return acc_nomem(e);
		rc = rc == 1 && x[i].data && x[i].n <= MOST_ELEMENTS;
	}
	return rc == 1 && x[0].n == x[1].n;
}

static int
take_samples(struct source *s, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	struct acc_fleet_tensor x[2];
	int rc = tensors(s, s->x, s->dx, x, e);
	const uint64_t every = rc == 1 ? x[0].n / SAMPLES + 1 : 1;
	s->n = 0;
	for (uint64_t at = 0; rc == 1 && at < x[0].n; at += ACC_CHUNK) {
		const size_t n = x[0].n - at < ACC_CHUNK ? (size_t)(x[0].n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, &x[0], at, n, t->a, e);
		rc = rc == 1 ? acc_fleet_read(t->f, &x[1], at, n, t->b, e) : rc;
		for (uint64_t i = (every - at % every) % every; rc == 1 && i < n && s->n < SAMPLES;
			i += every)
			if (isfinite(t->a[i]) && isfinite(t->b[i]))
				s->s[s->n++] = (struct sample){.v = t->a[i], .d = t->b[i]};
	}
	if (rc != 1 || s->n < FEW_SAMPLES)
		return rc < 0 ? rc : 0;
	qsort(s->s, s->n, sizeof *s->s, by_value);
	for (size_t i = 1; i < s->n; i++)
		if (s->s[i].v == s->s[i - 1].v)
			s->s[i].dead = s->s[i - 1].dead = true;
	return 1;
}

/* Finds them in what an op call of a rank is given, and adds the gradient that it makes there. 1; 0: it cannot be read;
 * < 0. */
static int
find(struct source *s, uint32_t rank, uint32_t use, const struct acc_replica_seen *u,
	const struct acc_replica_seen *du, bool *any, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	struct acc_fleet_tensor x[2];
	int rc = tensors(s, u, du, x, e);
	for (uint64_t at = 0; rc == 1 && at < x[0].n; at += ACC_CHUNK) {
		const size_t n = x[0].n - at < ACC_CHUNK ? (size_t)(x[0].n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, &x[0], at, n, t->a, e);
		rc = rc == 1 ? acc_fleet_read(t->f, &x[1], at, n, t->b, e) : rc;
		for (size_t i = 0; rc == 1 && i < n; i++) {
			const struct sample key = {.v = t->a[i]};
			struct sample *p = bsearch(&key, s->s, s->n, sizeof key, by_value);
			if (p == NULL)
				continue;
			*any = true;
			p->dead |= p->last == use;
			p->last = use;
			p->found |= 1U << rank;
			p->part[rank] += t->b[i];
		}
	}
	return rc;
}

/* --- who uses it --- */

struct marks {
	uint64_t mark[MOST_MARKS];
	unsigned n;
};

static void
add_outputs(struct marks *m, const struct acc_replicas *t, const struct acc_seen_call *c)
{
	for (uint32_t i = c->first; i < c->first + c->n && m->n < MOST_MARKS; i++)
		if (t->seen[i].out && t->seen[i].real && t->seen[i].n > 1 && t->seen[i].mark != 0)
			m->mark[m->n++] = t->seen[i].mark;
}

static bool
is_of(const struct marks *m, const struct acc_replica_seen *s)
{
	bool is = false;
	for (unsigned i = 0; i < m->n && !is && !s->out; i++)
		is = m->mark[i] == s->mark;
	return is;
}

/* Is it given something that nobody is known to have made, such as a slice of what came? */
static bool
is_open(const struct acc_replicas *t, const struct acc_seen_call *c)
{
	bool open = false;
	for (uint32_t i = c->first; i < c->first + c->n && !open; i++)
		open = !t->seen[i].out && t->seen[i].real && t->seen[i].n > 1 && !t->seen[i].leaf &&
		       acc_seen_maker(t, &t->seen[i]) == NULL;
	return open;
}

/* Does it hand on what it is given as it is, in another shape? */
static bool
hands_on(const struct acc_replicas *t, const struct acc_seen_call *c,
	const struct acc_replica_seen *u)
{
	bool same = false;
	for (uint32_t i = c->first; i < c->first + c->n && !same; i++)
		same = t->seen[i].out && t->seen[i].mark == u->mark;
	return same;
}

struct user { /* of a rank */
	uint32_t rank, used, tried;
	struct marks m, open; /* what is known to be it, moved or joined; what may be */
};

/* An op call with a backward pass. 1; 0: not all that it makes of it is known; < 0. */
static int
use(struct source *s, struct user *w, const struct acc_seen_call *c, struct acc_err *e)
{
	const struct acc_replicas *t = s->t;
	int rc = 1;
	for (uint32_t i = c->first; i < c->first + c->n && rc == 1; i++) {
		const struct acc_replica_seen *u = &t->seen[i], *du;
		const bool is = is_of(&w->m, u);
		bool any = false;
		if ((!is && !is_of(&w->open, u)) || !u->wants || hands_on(t, c, u) ||
			++w->tried > MOST_TRIED)
			continue;
		du = acc_seen_gradient(t, c->k->step, c->k->rank, u);
		rc = du == NULL ? 0
				: find(s, w->rank, w->rank * MOST_TRIED + w->tried, u, du, &any, e);
		w->used += any;
		rc = rc == 0 && !is ? 1 : rc;
	}
	return rc == 1 && (w->used > MOST_USES || w->tried > MOST_TRIED) ? 0 : rc;
}

/* The first call of a rank in the step; NULL: there is none. */
static const struct acc_seen_call *
first_of(const struct acc_replicas *t, int64_t step, int64_t rank)
{
	for (const struct acc_seen_call *c = t->call; c < t->call + t->f->ncall; c++)
		if (c->k->rank == rank && c->k->step == step)
			return c;
	return NULL;
}

/* Does it cut or turn what is sent, before that, on the rank that sends it? What it makes may be what is sent. */
static bool
leads_there(const struct source *s, const struct acc_seen_call *c)
{
	return acc_seen_beside(c, s->talk) && c < s->talk && c->info != NULL &&
	       c->info->cls == ACC_OP_MOVE;
}

/* Is what it was cut into joined to the same again, by an op call that has a gradient? Then what takes that takes it a
 * second time. */
static bool
makes_again(const struct marks *m, const struct acc_replicas *t, const struct acc_seen_call *cut)
{
	for (const struct acc_seen_call *c = cut + 1;
		c < t->call + t->f->ncall && acc_seen_beside(c, cut) && !c->k->backward; c++) {
		if (c->k->talks || acc_seen_backward(t, c) == NULL)
			continue;
		bool given = false, again = false;
		for (uint32_t i = c->first; i < c->first + c->n; i++) {
			given |= is_of(m, &t->seen[i]);
			for (unsigned k = 0; k < m->n; k++)
				again |= t->seen[i].out && t->seen[i].mark == m->mark[k];
		}
		if (again && !given)
			return true;
	}
	return false;
}

/* The op calls of a rank that are given it. 1, 0, < 0, as above. */
static int
uses(struct source *s, uint32_t rank, struct acc_err *e)
{
	const struct acc_replicas *t = s->t;
	struct user w = {.rank = rank, .m = {.mark = {s->in->mark, s->x->mark}, .n = 2}};
	/* What is sent to one rank is found there by its elements. */
	const struct acc_seen_call *const first = first_of(t, s->talk->k->step, s->g->rank[rank]),
					  *const talk = s->talk->sends ? NULL
								       : acc_replicas_call(t,
										 s->talk->k->step,
										 s->g->rank[rank],
										 s->talk->k->key);
	int rc = first != NULL && (talk != NULL || s->talk->sends);
	bool behind = talk == NULL; /* other communication */
	for (const struct acc_seen_call *c = first; rc == 1 && c < t->call + t->f->ncall &&
						    acc_seen_beside(c, first) && !c->k->backward;
		c++) {
		bool given = c == talk;
		for (uint32_t i = c->first; i < c->first + c->n; i++)
			given |= is_of(&w.m, &t->seen[i]);
		behind |= talk != NULL && c > talk && c->k->talks;
		if (c->k->talks ? given : given && acc_seen_moves(t, c))
			add_outputs(&w.m, t, c);
		else if (!behind && c > talk && acc_seen_moves(t, c) && is_open(t, c))
			add_outputs(&w.open, t, c);
		else if (!c->k->talks && acc_seen_backward(t, c) != NULL)
			rc = given && (leads_there(s, c) || makes_again(&w.m, t, c))
				     ? 0
				     : use(s, &w, c, e);
	}
	return rc < 0 ? rc : rc == 1 && w.m.n < MOST_MARKS;
}

/* --- the sum --- */

struct fit { /* the gradient, of what each rank makes of it */
	struct acc_fit of;
	uint32_t column[MOST_RANKS];
};

static void
sum_up(const struct source *s, struct fit *f)
{
	uint32_t found = 0;
	*f = (struct fit){.of.n = 0};
	for (size_t i = 0; i < s->n; i++)
		found |= s->s[i].dead ? 0 : s->s[i].found;
	for (uint32_t r = 0; r < s->g->n; r++)
		if (found >> r & 1)
			f->column[f->of.n++] = r;
	for (size_t i = 0; i < s->n; i++) {
		const struct sample *p = &s->s[i];
		double part[MOST_RANKS];
		for (uint32_t k = 0; k < f->of.n; k++)
			part[k] = p->part[f->column[k]];
		if (!p->dead && p->found != 0)
			acc_fit_add(&f->of, part, p->d);
	}
}

/* How much of each rank's part is in it, of all but one that is lost (*lost; -1: none is); 0: not as much of each. */
static double
shared(const struct fit *f, int64_t *lost)
{
	double most = 0;
	*lost = -1;
	for (uint32_t i = 0; i < f->of.n; i++)
		most = fabs(f->of.c[i]) > fabs(most) ? f->of.c[i] : most;
	for (uint32_t i = 0; i < f->of.n; i++) {
		if (fabs(f->of.c[i]) <= LIMIT_RANKS_FACTOR * fabs(most))
			*lost = f->column[i];
		else if (fabs(f->of.c[i] - most) > LIMIT_RANKS_FACTOR * fabs(most))
			return 0;
	}
	return most;
}

/* What is exchanged goes to one rank each, whose gradient comes back as it is. What is gathered some scale by the number
 * of ranks, for the mean that is taken of weights. */
static bool
is_scaled(const struct source *s, double c)
{
	const double n = s->g->n;
	return s->talk->exchanges &&
	       (fabs(c / n - 1) <= LIMIT_RANKS_FACTOR || fabs(c * n - 1) <= LIMIT_RANKS_FACTOR);
}

static int
judge(struct source *s, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	struct fit f;
	int64_t lost = -1;
	int rc = take_samples(s, e);
	for (uint32_t r = 0; r < s->g->n && rc == 1; r++)
		rc = uses(s, r, e);
	if (rc != 1)
		return rc;
	sum_up(s, &f);
	const double c = f.of.n < 2 || f.of.elements < FEW_SAMPLES * (size_t)f.of.n ||
					 !acc_fit_solve(&f.of)
				 ? 0
				 : shared(&f, &lost);
	if (c == 0 || (lost < 0 && !is_scaled(s, c)))
		return 0;
	const char *name = acc_replicas_name(t, s->talk->k->line, e);
	return acc_replicas_blame(t, s->g, s->dx->line,
		lost < 0
			? SAY(t,
				  "is the gradient of what %s gives to the other ranks, and is %.4g times what these"
				  " make of that",
				  name, c)
			: SAY(t,
				  "is the gradient of what %s gives to the other ranks, and lacks what rank %lld"
				  " makes of that: what the others make is in it",
				  name, (long long)s->g->rank[lost]),
		1, 0, e);
}

/* --- what is sent --- */

/* Are its elements, or some of them that are looked at, among those that this put out? */
static int
holds(struct source *s, const struct acc_replica_seen *x, const struct acc_replica_seen *in,
	bool *is, struct acc_err *e)
{
	struct acc_replicas *t = s->t;
	struct acc_fleet_tensor y[2];
	int rc = tensors(s, in, in, y, e);
	const size_t some = rc == 1 && y[0].n < ACC_CHUNK ? (size_t)y[0].n : ACC_CHUNK;
	rc = rc == 1 ? acc_fleet_read(t->f, &y[0], 0, some, t->b, e) : rc;
	const size_t n = some < SAMPLES ? some : SAMPLES;
	for (size_t i = 0; i < n && rc == 1; i++)
		s->s[i] = (struct sample){.v = t->b[i * (some / n)]};
	if (rc == 1) {
		qsort(s->s, n, sizeof *s->s, by_value);
		rc = tensors(s, x, x, y, e);
	}
	for (uint64_t at = 0; rc == 1 && at < y[0].n; at += ACC_CHUNK) {
		const size_t k = y[0].n - at < ACC_CHUNK ? (size_t)(y[0].n - at) : ACC_CHUNK;
		rc = acc_fleet_read(t->f, &y[0], at, k, t->a, e);
		for (size_t i = 0; rc == 1 && i < k; i++) {
			const struct sample key = {.v = t->a[i]};
			struct sample *p = bsearch(&key, s->s, n, sizeof key, by_value);
			if (p != NULL)
				p->found = 1;
		}
	}
	*is = rc == 1 && n >= FEW_SAMPLES / 2;
	for (size_t i = 0; i < n && *is; i++) /* of equal ones, such as zeros, one is found */
		*is = s->s[i].found || (i > 0 && s->s[i].v == s->s[i - 1].v) ||
		      (i + 1 < n && s->s[i].v == s->s[i + 1].v);
	return rc < 0 ? rc : 0;
}

/* Who made this, before its elements were moved; of what moved them in a way that was not recorded, the last op call
 * whose output holds them. NULL: it is not known. 0 or < 0. */
static int
origin(struct source *s, const struct acc_replica_seen **out, struct acc_err *e)
{
	const struct acc_replicas *t = s->t;
	const struct acc_replica_seen *in = s->in, *made = acc_seen_maker(t, in);
	int rc = 0;
	*out = NULL;
	for (unsigned hops = 0;
		hops < MOST_HOPS && made != NULL && acc_seen_moves(t, &t->call[made->call]);
		hops++) {
		in = acc_seen_real(t, &t->call[made->call], false);
		made = in == NULL ? NULL : acc_seen_maker(t, in);
	}
	if (made != NULL && !t->call[made->call].k->talks && !t->call[made->call].k->backward)
		*out = made;
	if (made != NULL || in == s->in)
		return 0;
	const struct acc_seen_call *from = s->talk;
	unsigned tried = 0;
	for (const struct acc_seen_call *c = from; c-- > t->call && acc_seen_beside(c, from) &&
						   tried < MOST_BACK && *out == NULL && rc == 0;) {
		const struct acc_replica_seen *x = c->k->talks || c->k->backward ||
								   acc_seen_backward(t, c) == NULL
							   ? NULL
							   : acc_seen_real(t, c, true);
		bool is = false;
		if (x == NULL || x->n < s->in->n)
			continue;
		tried++;
		rc = holds(s, x, s->in, &is, e);
		*out = is ? x : NULL;
	}
	return rc;
}

/* Has another rank the same from an op call of its own? */
static bool
is_replica(const struct source *s)
{
	const struct acc_replicas *t = s->t;
	const struct acc_fleet_call *own = t->call[s->x->call].k;
	bool is = false;
	for (uint32_t r = 0; r < s->g->n && !is; r++) {
		const uint32_t m = acc_ids_get(&t->made,
			acc_seen_place(own->step, s->g->rank[r], s->x->mark));
		is = s->g->rank[r] != own->rank && m != ACC_NOID &&
		     !t->call[t->seen[m].call].k->talks;
	}
	return is;
}

/* The only input of a backward call that is as large as what its forward call put out. */
static const struct acc_replica_seen *
gradient_in(const struct acc_replicas *t, const struct acc_replica_seen *x)
{
	const struct acc_seen_call *back = acc_seen_backward(t, &t->call[x->call]);
	const struct acc_replica_seen *only = NULL;
	for (uint32_t i = back == NULL ? 0 : back->first; back != NULL && i < back->first + back->n;
		i++) {
		if (t->seen[i].out || t->seen[i].n != x->n)
			continue;
		if (only != NULL)
			return NULL;
		only = &t->seen[i];
	}
	return only;
}

static int
sent(struct source *s, const struct acc_seen_call *c, unsigned *n, struct acc_err *e)
{
	const struct acc_replicas *t = s->t;
	const struct acc_replica_seen *last = NULL;
	int rc = 0;
	for (uint32_t i = c->first; i < c->first + c->n && rc == 0; i++) {
		s->in = &t->seen[i];
		s->x = NULL;
		if (!s->in->out && s->in->real && s->in->n > 1)
			rc = origin(s, &s->x, e);
		s->dx = s->x == NULL || s->x == last ? NULL : gradient_in(t, s->x);
		last = s->x == NULL ? last : s->x;
		if (rc == 0 && s->dx != NULL && s->dx->mark != 0 && !is_replica(s) &&
			++*n <= MOST_SOURCES)
			rc = judge(s, e);
	}
	return rc;
}

int
acc_rule_adjoint(struct acc_replicas *t, const struct acc_rank_group *g,
	const struct acc_seen_call **room, struct acc_err *e)
{
	struct source s = {.t = t, .g = g};
	unsigned n = 0;
	int rc = 0;
	(void)room;
	if (t->scattered || t->nstep == 0 || g->n > MOST_RANKS)
		return 0;
	s.s = malloc(SAMPLES * sizeof *s.s);
	if (s.s == NULL)
		return acc_nomem(e);
	for (size_t i = 0; i < t->f->ncall && rc == 0; i++) {
		const struct acc_seen_call *c = &t->call[i];
		s.talk = c;
		if ((c->gathers || c->exchanges || c->sends) && !c->scatters &&
			c->k->step == t->step[0] && c->nmember != 1 && acc_seen_among(t, c, g))
			rc = sent(&s, c, &n, e);
	}
	free(s.s);
	return rc;
}
